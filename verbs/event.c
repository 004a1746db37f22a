/* SPDX-License-Identifier: BSD-2-Clause
 *
 * event - completion channels and asynchronous events: queues that wake a file descriptor.
 *
 * The NIC calls event_on_* with its lock held, from whichever thread made progress; they queue and
 * count up an eventfd. Programs that take an event take one count, and acknowledge it later; what
 * an event is about cannot be destroyed before that (ibv_ack_cq_events(3)).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "verbs/checking.h"
#include "verbs/internal.h"

/* A program that has closed the descriptor, which is lent to it, is not woken any more. */
static void count_up(int fd, uint64_t count)
{
    if (descriptor_is_lent(fd)) {
        system_count_up(fd, count);
    }
}

/* Blocks as the program set the descriptor. False with errno: nothing there, or interrupted. */
static bool count_down(int fd)
{
    uint64_t count;
    errno = EBADF;
    return descriptor_is_lent(fd) && read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

/* An event was withdrawn: its count goes, too. But a reader may have taken the count already; it
 * waits for the lock that our caller has. In a child of fork the counter is its parent's. */
static void take_back(const struct live *live, int fd)
{
    uint64_t count;
    if (!live_is_inherited(live) && descriptor_is_lent(fd)) {
        (void)!system_read_now(fd, &count, sizeof(count));
    }
}

/* -- Completion channels ------------------------------------------------------------------------*/

/* (mutex) A queue is in its channel's list while it has events, and while it is the channel's. */
static void channel_check(const struct verbs_channel *channel)
{
    list_check(&channel->events);
    CHECK(channel->ibv.refcnt >= 0);
    CHECK(channel->ibv.refcnt > 0 || list_empty(&channel->events));
}

static void waiting_check(const struct verbs_channel *channel, const struct verbs_cq *cq)
{
    channel_check(channel);
    list_check(&cq->waiting);
    CHECK(list_empty(&cq->waiting) == (cq->events == 0));
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct verbs_channel *channel = object_make(context, sizeof(*channel));
    if (channel == NULL) {
        return NULL;
    }
    channel->ibv.context = context;
    channel->ibv.fd = descriptor_lend(system_eventfd(EFD_CLOEXEC | EFD_SEMAPHORE));
    if (channel->ibv.fd < 0) {
        const int reason = errno;
        object_free(context, channel);
        return fail(reason);
    }
    list_init(&channel->events);
    pthread_mutex_init(&channel->mutex, NULL);
    return &channel->ibv;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct verbs_channel *channel = channel_of(ibv);
    pthread_mutex_lock(&channel->mutex);
    const bool busy = ibv->refcnt > 0;
    INVARIANTS(channel_check(channel));
    pthread_mutex_unlock(&channel->mutex);
    if (busy) {
        return checking_busy("completion channel");
    }
    descriptor_take_back(ibv->fd);
    pthread_mutex_destroy(&channel->mutex);
    object_free(ibv->context, channel);
    return 0;
}

void event_on_completion(struct cq *core)
{
    struct verbs_cq *cq = CONTAINER_OF(core, struct verbs_cq, core);
    if (cq->ex.channel == NULL || is_closed(cq->ex.context)) {
        return;
    }
    struct verbs_channel *channel = channel_of(cq->ex.channel);
    pthread_mutex_lock(&channel->mutex);
    INVARIANTS(waiting_check(channel, cq));
    if (cq->events++ == 0) {
        list_append(&channel->events, &cq->waiting);
    }
    INVARIANTS(waiting_check(channel, cq));
    pthread_mutex_unlock(&channel->mutex);
    count_up(channel->ibv.fd, 1);
}

/* One event of the queue that has waited longest; NULL: there is none. A queue with several goes to
 * the end. */
static struct verbs_cq *next_event(struct verbs_channel *channel)
{
    struct list *node = list_pop(&channel->events);
    if (node == NULL) {
        return NULL;
    }
    struct verbs_cq *cq = CONTAINER_OF(node, struct verbs_cq, waiting);
    INVARIANTS(CHECK(channel_of(cq->ex.channel) == channel && cq->events > 0));
    cq->comp_events_delivered++;
    if (--cq->events > 0) {
        list_append(&channel->events, &cq->waiting);
    }
    INVARIANTS(waiting_check(channel, cq));
    return cq;
}

/* A program that is checked is told if no other thread acknowledges for a second. */
void event_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                      const uint32_t *delivered, const char *call)
{
    struct timespec end;
    int reason = is_checked() ? 0 : ETIMEDOUT;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    while (*completed != *delivered && reason == 0) {
        reason = pthread_cond_timedwait(cond, mutex, &end);
    }
    if (is_checked() && *completed != *delivered) {
        pthread_mutex_unlock(mutex);
        checking_waits_for_async(call, *delivered - *completed);
        pthread_mutex_lock(mutex);
    }
    while (*completed != *delivered) {
        pthread_cond_wait(cond, mutex);
    }
}

/* For a program that is checked, and waits for an event of this channel. */
struct waiting {
    const struct verbs_channel *channel;
    struct checker *checker;
    bool armed; /* A queue asks for an event. */
};

static void look_at_queue(void *waiting, const struct verbs_cq *cq)
{
    struct waiting *it = waiting;
    if (cq->ex.channel == &it->channel->ibv && cq->events == 0) {
        it->armed |= cq->core.arming != CQ_NOT_ARMED;
        checker_waits(it->checker, cq->ex.handle, cq_count(&cq->core),
                      cq->core.arming == CQ_ARMED_NEXT);
    }
}

static void judge_wait(struct verbs_channel *channel)
{
    struct live *live = live_of(channel->ibv.context);
    const int flags = fcntl(channel->ibv.fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK)) {
        return; /* It does not wait here. */
    }
    struct waiting waiting = {.channel = channel, .checker = checking_enter()};
    live_lock(live);
    pthread_mutex_lock(&channel->mutex);
    if (list_empty(&channel->events)) {
        cq_each(look_at_queue, &waiting);
        if (!waiting.armed) {
            checker_waits_unarmed(waiting.checker);
        }
    }
    pthread_mutex_unlock(&channel->mutex);
    live_unlock(live);
    checking_leave();
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    struct verbs_channel *channel = channel_of(ibv);
    struct verbs_cq *found = NULL;
    if (is_checked()) {
        judge_wait(channel);
    }
    /* A count without an event is one that was withdrawn between the two. */
    while (found == NULL) {
        if (!count_down(ibv->fd)) {
            return -1;
        }
        pthread_mutex_lock(&channel->mutex);
        found = next_event(channel);
        pthread_mutex_unlock(&channel->mutex);
    }
    if (is_checked()) {
        checking_event_taken(found);
    }
    *cq = (struct ibv_cq *)(void *)&found->ex;
    *cq_context = found->ex.cq_context;
    initialised(cq, sizeof(*cq));
    initialised(cq_context, sizeof(*cq_context));
    return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int count)
{
    if (is_checked()) {
        checking_events_acked(ibv, count);
    }
    pthread_mutex_lock(&ibv->mutex);
    ibv->comp_events_completed += count;
    pthread_cond_signal(&ibv->cond);
    pthread_mutex_unlock(&ibv->mutex);
}

void channel_forget(struct verbs_channel *channel, struct verbs_cq *cq)
{
    pthread_mutex_lock(&channel->mutex);
    INVARIANTS(waiting_check(channel, cq));
    CHECK(channel->ibv.refcnt > 0);
    list_remove(&cq->waiting);
    for (; cq->events > 0; cq->events--) {
        take_back(live_of(channel->ibv.context), channel->ibv.fd);
    }
    channel->ibv.refcnt--;
    INVARIANTS(waiting_check(channel, cq));
    pthread_mutex_unlock(&channel->mutex);
}

/* -- Asynchronous events ------------------------------------------------------------------------*/

/* (mutex) Events about the port are among those that wait, PORT_EVENTS_MAX at most. A context that
 * is closed has none. */
static void events_check(const struct context *context)
{
    list_check(&context->events);
    list_check(&context->spare_events);
    CHECK(context->port_events <= PORT_EVENTS_MAX);
    CHECK(context->port_events == 0 || !list_empty(&context->events));
    CHECK(list_empty(&context->events) || !is_closed(&context->verbs.context));
}

void event_open(struct context *context)
{
    list_init(&context->events);
    list_init(&context->spare_events);
    for (size_t i = 0; i < COUNT_OF(context->reserve); i++) {
        list_append(&context->spare_events, &context->reserve[i].node);
    }
    INVARIANTS(events_check(context));
}

enum about {
    ABOUT_QP,
    ABOUT_CQ,
    ABOUT_SRQ,
    ABOUT_DEVICE,
};

static enum about about_of(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return ABOUT_QP;
    case IBV_EVENT_CQ_ERR: return ABOUT_CQ;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: return ABOUT_SRQ;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_WQ_FATAL: break;
    }
    return ABOUT_DEVICE;
}

static bool is_of_reserve(const struct context *context, const struct async_event *event)
{
    return event >= context->reserve && event < context->reserve + COUNT_OF(context->reserve);
}

/* Under the context's mutex, as all that follows. NULL: no memory. */
static struct async_event *take_event(struct context *context)
{
    struct async_event *event = malloc(sizeof(*event));
    if (event != NULL) {
        return event;
    }
    struct list *spare = list_pop(&context->spare_events);
    event = spare == NULL ? NULL : CONTAINER_OF(spare, struct async_event, node);
    CHECK(event == NULL || is_of_reserve(context, event)); /* Others are given back to the heap. */
    return event;
}

static void give_event(struct context *context, struct async_event *event)
{
    if (is_of_reserve(context, event)) {
        list_append(&context->spare_events, &event->node);
    } else {
        free(event);
    }
}

/* False: nobody is to be woken. `object` is NULL if it is about the port. */
static bool append_event(struct context *context, const struct ibv_async_event *what,
                         const void *object)
{
    if (is_closed(&context->verbs.context)) {
        return false;
    }
    struct async_event *event = take_event(context);
    if (event == NULL) {
        const bool first = !context->lost_events;
        context->lost_events = true;
        return first;
    }
    event->event = *what;
    event->object = object;
    context->port_events += object == NULL;
    list_append(&context->events, &event->node);
    INVARIANTS(events_check(context));
    return true;
}

static void queue_event(struct context *context, const struct ibv_async_event *what,
                        const void *object)
{
    pthread_mutex_lock(&context->mutex);
    /* Not later: once the context is closed, the number may be another file's. */
    if (append_event(context, what, object)) {
        count_up(context->verbs.context.async_fd, 1);
    }
    pthread_mutex_unlock(&context->mutex);
}

static void on_qp_event(struct verbs_qp *qp, struct ibv_async_event *event)
{
    CHECK(about_of(event->event_type) == ABOUT_QP); /* Else its delivery is not counted. */
    event->element.qp = &qp->ex.qp_base;
    queue_event(context_of(qp->ex.qp_base.context), event, qp);
}

void event_on_async(const struct nic_event *from)
{
    struct ibv_async_event event = {.event_type = (enum ibv_event_type)from->kind};
    CHECK((from->qp != NULL) + (from->cq != NULL) + (from->srq != NULL) == 1);
    if (from->qp != NULL && qp_type_of(from->qp) == QP_XRC_TARGET) {
        const struct verbs_qp *holder = qp_context(from->qp);
        struct verbs_qp *qp;
        for (uint32_t i = 0; (qp = xrc_target_handle(holder, i)) != NULL; i++) {
            on_qp_event(qp, &event);
        }
    } else if (from->qp != NULL) {
        on_qp_event(qp_context(from->qp), &event);
    } else if (from->cq != NULL) {
        struct verbs_cq *cq = CONTAINER_OF(from->cq, struct verbs_cq, core);
        CHECK(about_of(event.event_type) == ABOUT_CQ);
        event.element.cq = (struct ibv_cq *)(void *)&cq->ex;
        queue_event(context_of(cq->ex.context), &event, cq);
    } else {
        struct verbs_srq *srq = CONTAINER_OF(from->srq, struct verbs_srq, core);
        CHECK(about_of(event.event_type) == ABOUT_SRQ);
        event.element.srq = &srq->ibv;
        queue_event(context_of(srq->ibv.context), &event, srq);
    }
}

/* Makes room for an event about the port: drops the oldest one about it, and takes over its count.
 * The newest event tells the port's state. */
static void replace_port_event(struct context *context, const struct ibv_async_event *what)
{
    struct list *node = context->events.next;
    while (CONTAINER_OF(node, struct async_event, node)->object != NULL) {
        node = node->next;
        CHECK(node != &context->events); /* The caller has counted one that is about the port. */
    }
    list_remove(node);
    CONTAINER_OF(node, struct async_event, node)->event = *what;
    list_append(&context->events, node);
}

static void queue_port_event(struct context *context, enum ibv_event_type type)
{
    const struct ibv_async_event event = {.event_type = type, .element.port_num = 1};
    pthread_mutex_lock(&context->mutex);
    const bool full = context->port_events == PORT_EVENTS_MAX;
    CHECK(about_of(type) == ABOUT_DEVICE);
    if (full) {
        replace_port_event(context, &event);
    }
    pthread_mutex_unlock(&context->mutex);
    if (!full) {
        queue_event(context, &event, NULL);
    }
}

static void tell_port_change(void *state, struct context *context)
{
    static const struct {
        enum live_change change;
        enum ibv_event_type type;
    } events[] = {{LIVE_CHANGE_PORT_DOWN, IBV_EVENT_PORT_ERR},
                  {LIVE_CHANGE_PORT_UP, IBV_EVENT_PORT_ACTIVE},
                  {LIVE_CHANGE_GIDS, IBV_EVENT_GID_CHANGE}};
    const uint32_t *changes = state;
    if (live_is_inherited(context->live)) {
        return; /* The events that it waits for are its parent's. */
    }
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        if (*changes & events[i].change) {
            queue_port_event(context, events[i].type);
        }
    }
}

void event_on_port_change(uint32_t changes)
{
    context_each(tell_port_change, &changes);
}

/* One more event about an object was delivered to the program. */
static void note_delivered(const struct ibv_async_event *event)
{
    switch (about_of(event->event_type)) {
    case ABOUT_QP: qp_of(event->element.qp)->async_events_delivered++; break;
    case ABOUT_CQ: cq_of(event->element.cq)->async_events_delivered++; break;
    case ABOUT_SRQ: srq_of(event->element.srq)->async_events_delivered++; break;
    case ABOUT_DEVICE: break;
    }
}

/* False: there is none. If there was no memory for more events, the last one says that the device
 * has failed: programs cannot know which events were lost. */
static bool take_oldest(struct context *context, struct ibv_async_event *out)
{
    INVARIANTS(events_check(context));
    struct list *node = list_pop(&context->events);
    if (node == NULL) {
        *out = (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL};
        const bool lost = context->lost_events;
        context->lost_events = false;
        return lost;
    }
    struct async_event *event = CONTAINER_OF(node, struct async_event, node);
    *out = event->event;
    CHECK((event->object == NULL) == (about_of(out->event_type) == ABOUT_DEVICE));
    context->port_events -= event->object == NULL;
    note_delivered(out);
    give_event(context, event);
    INVARIANTS(events_check(context));
    return true;
}

EXPORT int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *out)
{
    struct context *context = context_of(ibv);
    bool found = false;
    while (!found) {
        if (!count_down(ibv->async_fd)) {
            return -1;
        }
        pthread_mutex_lock(&context->mutex);
        found = take_oldest(context, out);
        pthread_mutex_unlock(&context->mutex);
    }
    initialised(out, sizeof(*out));
    return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
    pthread_mutex_lock(mutex);
    (*completed)++;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    switch (about_of(event->event_type)) {
    case ABOUT_QP: {
        struct ibv_qp *qp = event->element.qp;
        acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
        break;
    }
    case ABOUT_CQ: {
        struct ibv_cq *cq = event->element.cq;
        acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
        break;
    }
    case ABOUT_SRQ: {
        struct ibv_srq *srq = event->element.srq;
        acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
        break;
    }
    case ABOUT_DEVICE: break;
    }
}

void event_forget(struct context *context, const void *object)
{
    CHECK(object != NULL); /* That is the port, which stays. */
    pthread_mutex_lock(&context->mutex);
    for (struct list *node = context->events.next; node != &context->events;) {
        struct async_event *event = CONTAINER_OF(node, struct async_event, node);
        node = node->next;
        if (event->object == object) {
            list_remove(&event->node);
            give_event(context, event);
            take_back(context->live, context->verbs.context.async_fd);
        }
    }
    INVARIANTS(events_check(context));
    pthread_mutex_unlock(&context->mutex);
}

void event_close(struct context *context)
{
    struct list *node;
    pthread_mutex_lock(&context->mutex);
    atomic_store(&context->closed, true);
    while ((node = list_pop(&context->events)) != NULL) {
        give_event(context, CONTAINER_OF(node, struct async_event, node));
    }
    context->port_events = 0;
    INVARIANTS(events_check(context));
    pthread_mutex_unlock(&context->mutex);
}
