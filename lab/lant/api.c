/* SPDX-License-Identifier: BSD-2-Clause
 *
 * api - see api.h.
 */
#include "lab/lant/api_internal.h"

/* -- Calls --------------------------------------------------------------------------------------*/

static struct sim *sim_of(const struct lant_api *api)
{
    return api->node->world->sim;
}

static void wake(struct lant_api *api)
{
    if (!sim_event_scheduled(&api->wake)) {
        sim_after(sim_of(api), &api->wake, 0);
    }
}

void lant_api_return(struct lant_call *call, enum lant_result result)
{
    if (call->step < LANT_CALL_RETURNING) {
        call->result = result;
        call->step = LANT_CALL_RETURNING;
        sim_reschedule(sim_of(call->api), &call->event, sim_of(call->api)->now_ps);
    }
}

/* A time of a call has passed: its cost, its patience, or no time (its way back to the program). */
static void on_event(struct sim *sim, struct sim_event *event)
{
    struct lant_call *call = CONTAINER_OF(event, struct lant_call, event);
    switch ((enum lant_call_step)call->step) {
    case LANT_CALL_PAYS:
        call->step = LANT_CALL_WANTS;
        wake(call->api);
        return;
    case LANT_CALL_WANTS: UNREACHABLE("nothing passes while a call asks for room");
    case LANT_CALL_WAITS: call->result = LANT_RESULT_TIMEOUT; break;
    case LANT_CALL_RETURNING: break;
    case LANT_CALL_RETURNED: UNREACHABLE("a call has returned already");
    }
    list_remove(&call->place);
    call->step = LANT_CALL_RETURNED;
    call->returned_ps = sim->now_ps;
    if (call->on_return != NULL) {
        call->on_return(call);
    }
}

void lant_api_begin(struct lant_api *api, struct lant_call *call, enum lant_call_kind kind)
{
    *call = (struct lant_call){.on_return = call->on_return,
                               .context = call->context,
                               .api = api,
                               .kind = (uint8_t)kind,
                               .step = LANT_CALL_WANTS,
                               .order = ++api->began,
                               .name = (uint32_t)(api->began % LANT_DEVICE_NAMES),
                               .failed = api->counters.failed,
                               .fence = LANT_SHM_NO_FENCES};
    list_init(&call->place);
    list_init(&call->store_place);
    sim_event_init(&call->event, on_event);
    list_append(&api->calls, &call->place);
    wake(api);
}

/* The call waits as long as the configuration says. */
static void wait_for_notification(struct lant_call *call)
{
    struct sim *sim = sim_of(call->api);
    const uint64_t timeout_ps = call->api->config.timeout_ps;
    call->step = LANT_CALL_WAITS;
    if (timeout_ps < LANT_NEVER - sim->now_ps) {
        sim_after(sim, &call->event, timeout_ps);
    }
}

/* -- Transfers ----------------------------------------------------------------------------------*/

static void begin_send(struct lant_api *api, struct lant_call *call, enum lant_call_kind kind,
                       const struct lant_descriptor *descriptor)
{
    lant_api_begin(api, call, kind);
    call->work = (struct lant_work){.descriptor = *descriptor, .tag = call->name};
    if (api->config.send_ps != 0) {
        call->step = LANT_CALL_PAYS;
        sim_after(sim_of(api), &call->event, api->config.send_ps);
    }
}

void lant_api_send(struct lant_api *api, struct lant_call *call, uint64_t source,
                   uint64_t destination, uint32_t bytes)
{
    const struct lant_descriptor descriptor = {
        .source = source, .destination = destination, .bytes = bytes};
    begin_send(api, call, LANT_CALL_SEND, &descriptor);
}

void lant_api_send_blocking(struct lant_api *api, struct lant_call *call, uint64_t source,
                            uint64_t destination, uint32_t bytes)
{
    const struct lant_descriptor descriptor = {
        .source = source, .destination = destination, .bytes = bytes};
    begin_send(api, call, LANT_CALL_SEND_BLOCKING, &descriptor);
}

static void submit(struct lant_call *call)
{
    switch (lant_node_submit(call->api->node, LANT_QUEUE_CPU, &call->work)) {
    case LANT_SUBMIT_COMMITTED:
        call->api->counters.sends++;
        if (call->kind == LANT_CALL_SEND_BLOCKING) {
            wait_for_notification(call);
        } else {
            call->step = LANT_CALL_WAITS;
        }
        return;
    case LANT_SUBMIT_FULL: return; /* It asks again when something has left the queue. */
    case LANT_SUBMIT_NO_BYTES:
    case LANT_SUBMIT_RESERVED:
    case LANT_SUBMIT_UNALIGNED:
    case LANT_SUBMIT_RANGE: lant_api_return(call, LANT_RESULT_REFUSED); return;
    case LANT_SUBMIT_PART:
    case LANT_SUBMIT_ORDER:
    case LANT_SUBMIT_PLACE:
    case LANT_SUBMIT_COUNT: break;
    }
    UNREACHABLE("no verdict on a whole descriptor");
}

void lant_api_confirm_notif(struct lant_api *api, struct lant_call *call)
{
    lant_api_begin(api, call, LANT_CALL_CONFIRM);
    wait_for_notification(call);
}

void lant_api_recv(struct lant_api *api, struct lant_call *call)
{
    lant_api_begin(api, call, LANT_CALL_RECV);
    wait_for_notification(call);
}

void lant_api_quick_recv(struct lant_api *api, struct lant_call *call)
{
    lant_api_begin(api, call, LANT_CALL_QUICK_RECV);
    wait_for_notification(call);
}

void lant_api_rdma_fence(struct lant_api *api, struct lant_call *call)
{
    lant_api_begin(api, call, LANT_CALL_RDMA_FENCE);
    call->step = LANT_CALL_WAITS;
}

/* -- Notifications ------------------------------------------------------------------------------*/

static enum lant_result result_of(const struct lant_notification *notification)
{
    return notification->status & LANT_STATUS_ERRORS ? LANT_RESULT_FAILED : LANT_RESULT_OK;
}

/* The transfer with this tag that has not returned; NULL: none. */
static struct lant_call *transfer_named(struct lant_api *api, uint32_t tag)
{
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        struct lant_call *call = lant_call_at(at);
        if (call->name == tag && call->step == LANT_CALL_WAITS &&
            (call->kind == LANT_CALL_SEND || call->kind == LANT_CALL_SEND_BLOCKING)) {
            return call;
        }
    }
    return NULL;
}

static void take_sent(struct lant_api *api, const struct lant_notification *notification)
{
    const enum lant_result result = result_of(notification);
    struct lant_call *call = transfer_named(api, notification->tag);
    api->counters.notified++;
    api->counters.failed += result == LANT_RESULT_FAILED;
    if (call != NULL && call->kind == LANT_CALL_SEND_BLOCKING) {
        lant_api_return(call, result);
        return;
    }
    if (call != NULL && result == LANT_RESULT_FAILED) {
        lant_api_return(call, result); /* Not all of it will ever have left. */
    }
    lant_notifications_put(&api->aside[LANT_ASIDE_SENT], notification);
}

static void take_notification(struct lant_api *api, const struct lant_notification *notification)
{
    switch ((enum lant_notification_kind)notification->kind) {
    case LANT_NOTIFY_SENT: take_sent(api, notification); return;
    case LANT_NOTIFY_RECV:
        lant_notifications_put(&api->aside[LANT_ASIDE_RECV], notification);
        return;
    case LANT_NOTIFY_RECV_REG:
        lant_notifications_put(&api->aside[LANT_ASIDE_RECV_REG], notification);
        return;
    }
    UNREACHABLE("a notification of no kind");
}

/* The oldest notification that was put aside, for a call that waits for its kind. */
static void give(struct lant_api *api, struct lant_call *call)
{
    struct lant_notification notification;
    switch ((enum lant_call_kind)call->kind) {
    case LANT_CALL_CONFIRM:
        if (lant_notifications_take(&api->aside[LANT_ASIDE_SENT], &notification)) {
            lant_api_return(call, result_of(&notification));
        }
        return;
    case LANT_CALL_RECV:
    case LANT_CALL_QUICK_RECV:
        if (lant_notifications_take(
                &api->aside[call->kind == LANT_CALL_RECV ? LANT_ASIDE_RECV : LANT_ASIDE_RECV_REG],
                &notification)) {
            call->received.bytes = notification.bytes;
            call->received.address = notification.destination;
            call->received.node = notification.node;
            lant_api_return(call, LANT_RESULT_OK);
        }
        return;
    case LANT_CALL_RDMA_FENCE:
        if (api->counters.sends == api->counters.notified) {
            lant_api_return(call, api->counters.failed == call->failed ? LANT_RESULT_OK
                                                                       : LANT_RESULT_FAILED);
        }
        return;
    case LANT_CALL_SEND:
    case LANT_CALL_SEND_BLOCKING:
    case LANT_CALL_SHM_WRITE:
    case LANT_CALL_SHM_READ:
    case LANT_CALL_SHM_FENCE: return;
    }
    UNREACHABLE("a call of no kind");
}

static bool waits_for_notification(const struct lant_call *call)
{
    return call->step == LANT_CALL_WAITS && call->kind != LANT_CALL_SHM_WRITE &&
           call->kind != LANT_CALL_SHM_READ && call->kind != LANT_CALL_SHM_FENCE;
}

/* Does a call still wait for a notification, behind those that were put aside? */
static bool wants_notification(struct lant_api *api)
{
    bool wants = false;
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        struct lant_call *call = lant_call_at(at);
        if (waits_for_notification(call)) {
            give(api, call);
            wants |= call->step == LANT_CALL_WAITS;
        }
    }
    for (uint32_t i = 0; i < LANT_ASIDE_COUNT; i++) {
        wants = wants && api->aside[i].count < api->aside[i].depth;
    }
    return wants;
}

static struct lant_device *device_named(struct lant_api *api, uint32_t name)
{
    for (struct list *at = api->devices.next; at != &api->devices; at = at->next) {
        struct lant_device *device = CONTAINER_OF(at, struct lant_device, place);
        if (lant_device_name(device) == name) {
            return device;
        }
    }
    return NULL;
}

/* Devices read their queue at once. A program reads its own only while it waits for something.
 * Notifications that it does not read fill the queue, and hold those who would put more in. */
static void read_notifications(struct lant_api *api)
{
    struct lant_notification notification;
    while (lant_node_poll(api->node, LANT_QUEUE_FPGA, &notification)) {
        struct lant_device *device = device_named(api, notification.tag);
        if (device == NULL) {
            api->counters.strange++;
        } else {
            device->on_notification(device, &notification);
        }
    }
    while (wants_notification(api) && lant_node_poll(api->node, LANT_QUEUE_CPU, &notification)) {
        take_notification(api, &notification);
    }
}

void lant_api_forget_arrivals(struct lant_api *api)
{
    struct lant_notification notification;
    while (lant_node_poll(api->node, LANT_QUEUE_CPU, &notification)) {
        if (notification.kind == LANT_NOTIFY_SENT) {
            take_notification(api, &notification);
        }
    }
    lant_notifications_init(&api->aside[LANT_ASIDE_RECV], LANT_NOTIFICATIONS_MAX);
    lant_notifications_init(&api->aside[LANT_ASIDE_RECV_REG], LANT_NOTIFICATIONS_MAX);
}

/* -- Calls of the node to its program -----------------------------------------------------------*/

static bool is_access(const struct lant_call *call)
{
    return call->kind == LANT_CALL_SHM_WRITE || call->kind == LANT_CALL_SHM_READ;
}

static void on_wake(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_api *api = CONTAINER_OF(event, struct lant_api, wake);
    read_notifications(api);
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        struct lant_call *call = lant_call_at(at);
        if (call->kind == LANT_CALL_SHM_FENCE) {
            lant_api_look_at_fence(call);
        } else if (call->step == LANT_CALL_WANTS && is_access(call)) {
            lant_api_access_next(call);
        } else if (call->step == LANT_CALL_WANTS) {
            submit(call);
        }
    }
}

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct lant_api *api = context;
    struct lant_device *device = device_named(api, done->token);
    wake(api);
    if (device != NULL) {
        device->on_done(device, done);
        return;
    }
    for (struct list *at = api->stores.next; at != &api->stores; at = at->next) {
        struct lant_call *call = CONTAINER_OF(at, struct lant_call, store_place);
        if (call->name == done->token) {
            lant_api_take_done(call, done);
            return;
        }
    }
    api->counters.strange++;
}

static void on_pushed(void *context, uint32_t tag)
{
    struct lant_api *api = context;
    struct lant_call *call = transfer_named(api, tag);
    if (call != NULL && call->kind == LANT_CALL_SEND) {
        lant_api_return(call, LANT_RESULT_OK);
    }
    wake(api);
}

static void on_ready(void *context, enum lant_queue queue)
{
    (void)queue;
    wake(context);
}

static void on_stored(void *context, uint64_t address)
{
    struct lant_api *api = context;
    for (struct list *at = api->devices.next; at != &api->devices; at = at->next) {
        struct lant_device *device = CONTAINER_OF(at, struct lant_device, place);
        if (device->on_stored != NULL) {
            device->on_stored(device, address);
        }
    }
}

void lant_api_open(struct lant_api *api, const struct lant_api_config *config,
                   struct lant_node *node)
{
    *api = (struct lant_api){.node = node, .config = *config};
    list_init(&api->calls);
    list_init(&api->stores);
    list_init(&api->devices);
    sim_event_init(&api->wake, on_wake);
    for (uint32_t i = 0; i < LANT_ASIDE_COUNT; i++) {
        lant_notifications_init(&api->aside[i], LANT_NOTIFICATIONS_MAX);
    }
    node->program = (struct lant_program){.context = api,
                                          .on_done = on_done,
                                          .on_pushed = on_pushed,
                                          .on_ready = on_ready,
                                          .on_stored = on_stored};
}

void lant_api_close(struct lant_api *api)
{
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        sim_cancel(&lant_call_at(at)->event);
    }
    sim_cancel(&api->wake);
    api->node->program = (struct lant_program){0};
}

void lant_api_add_device(struct lant_api *api, struct lant_device *device)
{
    device->number = api->device_count++;
    list_init(&device->place);
    list_append(&api->devices, &device->place);
}
