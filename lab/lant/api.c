/* SPDX-License-Identifier: BSD-2-Clause
 *
 * api - see api.h.
 */
#include "lab/lant/api.h"

/* -- Calls --------------------------------------------------------------------------------------*/

static struct lant_call *call_at(struct list *place)
{
    return CONTAINER_OF(place, struct lant_call, place);
}

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

static void return_with(struct lant_call *call, enum lant_result result)
{
    if (call->step < LANT_CALL_RETURNING) {
        call->result = result;
        call->step = LANT_CALL_RETURNING;
        sim_reschedule(sim_of(call->api), &call->event, sim_of(call->api)->now_ps);
    }
}

/* What passes in a call is its cost, its patience, or no time: its way back to the program. */
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

static void begin(struct lant_api *api, struct lant_call *call, enum lant_call_kind kind)
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
    begin(api, call, kind);
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
    case LANT_SUBMIT_RANGE: return_with(call, LANT_RESULT_REFUSED); return;
    case LANT_SUBMIT_PART:
    case LANT_SUBMIT_ORDER:
    case LANT_SUBMIT_PLACE:
    case LANT_SUBMIT_COUNT: break;
    }
    UNREACHABLE("no verdict on a whole descriptor");
}

void lant_api_confirm_notif(struct lant_api *api, struct lant_call *call)
{
    begin(api, call, LANT_CALL_CONFIRM);
    wait_for_notification(call);
}

void lant_api_recv(struct lant_api *api, struct lant_call *call)
{
    begin(api, call, LANT_CALL_RECV);
    wait_for_notification(call);
}

void lant_api_quick_recv(struct lant_api *api, struct lant_call *call)
{
    begin(api, call, LANT_CALL_QUICK_RECV);
    wait_for_notification(call);
}

void lant_api_rdma_fence(struct lant_api *api, struct lant_call *call)
{
    begin(api, call, LANT_CALL_RDMA_FENCE);
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
        struct lant_call *call = call_at(at);
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
        return_with(call, result);
        return;
    }
    if (call != NULL && result == LANT_RESULT_FAILED) {
        return_with(call, result); /* Not all of it will ever have left. */
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

/* The oldest of what was put aside, for a call that waits for its kind. */
static void give(struct lant_api *api, struct lant_call *call)
{
    struct lant_notification notification;
    switch ((enum lant_call_kind)call->kind) {
    case LANT_CALL_CONFIRM:
        if (lant_notifications_take(&api->aside[LANT_ASIDE_SENT], &notification)) {
            return_with(call, result_of(&notification));
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
            return_with(call, LANT_RESULT_OK);
        }
        return;
    case LANT_CALL_RDMA_FENCE:
        if (api->counters.sends == api->counters.notified) {
            return_with(call,
                        api->counters.failed == call->failed ? LANT_RESULT_OK : LANT_RESULT_FAILED);
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
        struct lant_call *call = call_at(at);
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

/* Devices read their queue at once. A program reads its own only while it waits for something: what
 * it does not read fills the queue, and holds who would put more in. */
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

/* -- Loads and stores ---------------------------------------------------------------------------*/

static bool is_access(const struct lant_call *call)
{
    return call->kind == LANT_CALL_SHM_WRITE || call->kind == LANT_CALL_SHM_READ;
}

static void begin_access(struct lant_api *api, struct lant_call *call, enum lant_call_kind kind,
                         uint64_t address, uint64_t length)
{
    begin(api, call, kind);
    call->left = length;
    call->access = (struct lant_shm_access){
        .address = address, .token = call->name, .store = kind == LANT_CALL_SHM_WRITE};
    call->node = lant_global_node(address);
    if (length == 0 || length > LANT_ADDRESSES - lant_global_address(address)) {
        call->left = 0;
        return_with(call, LANT_RESULT_REFUSED);
        return;
    }
    list_append(&api->stores, &call->store_place);
}

void lant_api_shm_write(struct lant_api *api, struct lant_call *call, uint64_t address,
                        const void *bytes, uint64_t length)
{
    begin_access(api, call, LANT_CALL_SHM_WRITE, address, length);
    call->from = bytes;
}

void lant_api_shm_read(struct lant_api *api, struct lant_call *call, uint64_t address, void *bytes,
                       uint64_t length)
{
    begin_access(api, call, LANT_CALL_SHM_READ, address, length);
    call->to = bytes;
}

/* The longest access that a bus can do at once. */
static uint32_t access_bytes(uint64_t address, uint64_t left)
{
    const uint64_t in_line = LANT_SHM_ACCESS_MAX - address % LANT_SHM_ACCESS_MAX;
    const uint32_t most = (uint32_t)(left < in_line ? left : in_line);
    uint32_t bytes = most & ~UINT32_C(7);
    if (address % 8 != 0 || bytes == 0) {
        bytes = 4;
        while (bytes > most || address % bytes != 0) {
            bytes /= 2;
        }
    }
    return bytes;
}

/* The next access of the call, if the node has room. */
static void access_next(struct lant_call *call)
{
    struct lant_shm_access *access = &call->access;
    struct lant_shm_access next = *access;
    next.address += access->bytes;
    next.bytes = access_bytes(next.address, call->left);
    const uint8_t *from = access->store ? call->from + call->done : NULL;
    if (!lant_node_access(call->api->node, &next, from)) {
        return;
    }
    *access = next;
    call->gather = lant_shm_gather_begin(access);
    call->unfinished += lant_shm_access_beats(access);
    call->left -= access->bytes;
    call->step = LANT_CALL_WAITS;
}

/* Those that began later than the store, and cover its node. */
static void tell_fences(struct lant_api *api, const struct lant_call *store)
{
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        struct lant_call *fence = call_at(at);
        fence->denied |= fence->kind == LANT_CALL_SHM_FENCE && fence->order > store->order &&
                         (fence->node == LANT_ALL_NODES || fence->node == store->node);
    }
}

/* All of an access has its answer on the bus. */
static void access_answered(struct lant_call *call)
{
    const uint8_t response = call->gather.response;
    call->done += call->access.bytes;
    if (call->gather.fake || (response != LANT_OKAY && response != LANT_EXOKAY)) {
        call->left = 0;
        call->denied = true;
        return_with(call, LANT_RESULT_FAILED);
    } else if (call->left == 0) {
        return_with(call, LANT_RESULT_OK);
    } else {
        call->step = LANT_CALL_WANTS;
    }
}

static void take_done(struct lant_call *call, const struct lant_shm_done *done)
{
    if (lant_shm_done_on_bus(done)) {
        lant_shm_gather_add(&call->gather, &call->access, done,
                            call->access.store ? NULL : call->to + call->done);
        if (call->gather.unanswered == 0) {
            access_answered(call);
        }
    }
    if (lant_shm_done_final(done)) {
        call->unfinished--;
        call->denied |= done->kind == LANT_SHM_DENIED;
    }
    if (call->denied && call->access.store) {
        tell_fences(call->api, call);
    }
    if (call->unfinished == 0 && call->left == 0) {
        list_remove(&call->store_place);
    }
}

enum lant_store_state lant_api_poll(const struct lant_call *call)
{
    if (call->denied || (call->step >= LANT_CALL_RETURNING && call->result != LANT_RESULT_OK)) {
        return LANT_STORE_FAILED;
    }
    return call->step < LANT_CALL_RETURNING || call->unfinished != 0 ? LANT_STORE_WAITS
                                                                     : LANT_STORE_DONE;
}

/* -- Fences of loads and stores -----------------------------------------------------------------*/

void lant_api_shm_fence(struct lant_api *api, struct lant_call *call, uint32_t node)
{
    begin(api, call, LANT_CALL_SHM_FENCE);
    call->node = node;
}

/* The interface's own fence covers what it has taken: earlier stores must all have been. */
static bool may_fence(const struct lant_call *fence)
{
    const struct list *stores = &fence->api->stores;
    for (const struct list *at = stores->next; at != stores; at = at->next) {
        const struct lant_call *call = CONTAINER_OF_CONST(at, struct lant_call, store_place);
        if (call->order < fence->order && call->step < LANT_CALL_RETURNING &&
            call->kind == LANT_CALL_SHM_WRITE) {
            return false;
        }
    }
    return true;
}

static void look_at_fence(struct lant_call *call)
{
    struct lant_shm *shm = &call->api->node->shm;
    if (call->step == LANT_CALL_WANTS && may_fence(call)) {
        call->fence = lant_shm_fence_begin(shm, call->node);
        call->step = call->fence == LANT_SHM_NO_FENCES ? LANT_CALL_WANTS : LANT_CALL_WAITS;
    }
    if (call->step != LANT_CALL_WAITS) {
        return;
    }
    const enum lant_shm_fence_state state = lant_shm_fence_look(shm, call->fence);
    if (state != LANT_SHM_FENCE_WAITS) {
        lant_shm_fence_end(shm, call->fence);
        return_with(call, state == LANT_SHM_FENCE_FAILED || call->denied ? LANT_RESULT_FAILED
                                                                         : LANT_RESULT_OK);
    }
}

/* -- What the node tells its program ------------------------------------------------------------*/

static void on_wake(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_api *api = CONTAINER_OF(event, struct lant_api, wake);
    read_notifications(api);
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        struct lant_call *call = call_at(at);
        if (call->kind == LANT_CALL_SHM_FENCE) {
            look_at_fence(call);
        } else if (call->step == LANT_CALL_WANTS && is_access(call)) {
            access_next(call);
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
            take_done(call, done);
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
        return_with(call, LANT_RESULT_OK);
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
        sim_cancel(&call_at(at)->event);
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
