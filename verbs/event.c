/* SPDX-License-Identifier: BSD-2-Clause
 *
 * event - completion channels and asynchronous events: queues that wake a file descriptor.
 *
 * The NIC calls event_on_* with its lock held, from whichever thread made progress; they queue and
 * count up an eventfd. Programs that take an event take one count, and acknowledge it later; what
 * an event is about cannot be destroyed before that (ibv_ack_cq_events(3)).
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "drivers/uncancelled.h"
#include "verbs/internal.h"

/* Blocks as the program set the descriptor. False with errno: nothing there, or interrupted. */
static bool count_down(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

/* An event was withdrawn: its count goes too, unless a reader has taken it already. In a child of
 * fork the counter is its parent's. */
static void take_back(const struct live *live, int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    uint64_t count;
    if (!live_is_inherited(live) && uncancelled_poll(&readable, 1, 0) == 1) {
        (void)!uncancelled_read(fd, &count, sizeof(count));
    }
}

/* -- Completion channels ------------------------------------------------------------------------*/

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct verbs_channel *channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return fail(ENOMEM);
    }
    channel->ibv.context = context;
    channel->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (channel->ibv.fd < 0) {
        free(channel);
        return fail(EMFILE);
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
    pthread_mutex_unlock(&channel->mutex);
    if (busy) {
        return EBUSY;
    }
    close(ibv->fd);
    pthread_mutex_destroy(&channel->mutex);
    free(channel);
    return 0;
}

void event_on_completion(void *unused, struct cq *core)
{
    (void)unused;
    struct verbs_cq *cq = CONTAINER_OF(core, struct verbs_cq, core);
    struct channel_event *event = cq->ex.channel == NULL ? NULL : malloc(sizeof(*event));
    if (event == NULL) {
        return;
    }
    struct verbs_channel *channel = channel_of(cq->ex.channel);
    event->cq = cq;
    pthread_mutex_lock(&channel->mutex);
    list_append(&channel->events, &event->node);
    pthread_mutex_unlock(&channel->mutex);
    uncancelled_count_up(channel->ibv.fd, 1);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    struct verbs_channel *channel = channel_of(ibv);
    struct list *node = NULL;
    /* A count without an event is one that was withdrawn between the two. */
    while (node == NULL) {
        if (!count_down(ibv->fd)) {
            return -1;
        }
        pthread_mutex_lock(&channel->mutex);
        node = list_pop(&channel->events);
        if (node != NULL) {
            CONTAINER_OF(node, struct channel_event, node)->cq->comp_events_delivered++;
        }
        pthread_mutex_unlock(&channel->mutex);
    }
    struct channel_event *event = CONTAINER_OF(node, struct channel_event, node);
    *cq = (struct ibv_cq *)(void *)&event->cq->ex;
    *cq_context = event->cq->ex.cq_context;
    free(event);
    return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int count)
{
    pthread_mutex_lock(&ibv->mutex);
    ibv->comp_events_completed += count;
    pthread_cond_signal(&ibv->cond);
    pthread_mutex_unlock(&ibv->mutex);
}

void channel_forget(struct verbs_channel *channel, const struct verbs_cq *cq)
{
    pthread_mutex_lock(&channel->mutex);
    for (struct list *node = channel->events.next; node != &channel->events;) {
        struct channel_event *event = CONTAINER_OF(node, struct channel_event, node);
        node = node->next;
        if (event->cq == cq) {
            list_remove(&event->node);
            free(event);
            take_back(live_of(channel->ibv.context), channel->ibv.fd);
        }
    }
    channel->ibv.refcnt--;
    pthread_mutex_unlock(&channel->mutex);
}

/* -- Asynchronous events ------------------------------------------------------------------------*/

static void queue_event(struct context *context, const struct ibv_async_event *what,
                        const void *object)
{
    struct async_event *event = malloc(sizeof(*event));
    if (event == NULL) {
        return;
    }
    event->event = *what;
    event->object = object;
    pthread_mutex_lock(&context->mutex);
    list_append(&context->events, &event->node);
    pthread_mutex_unlock(&context->mutex);
    uncancelled_count_up(context->verbs.context.async_fd, 1);
}

static void on_qp_event(struct verbs_qp *qp, struct ibv_async_event *event)
{
    event->element.qp = &qp->ex.qp_base;
    queue_event(context_of(qp->ex.qp_base.context), event, qp);
}

void event_on_async(void *unused, const struct nic_event *from)
{
    (void)unused;
    struct ibv_async_event event = {.event_type = (enum ibv_event_type)from->kind};
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
        event.element.cq = (struct ibv_cq *)(void *)&cq->ex;
        queue_event(context_of(cq->ex.context), &event, cq);
    } else {
        struct verbs_srq *srq = CONTAINER_OF(from->srq, struct verbs_srq, core);
        event.element.srq = &srq->ibv;
        queue_event(context_of(srq->ibv.context), &event, srq);
    }
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

EXPORT int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *out)
{
    struct context *context = context_of(ibv);
    struct list *node = NULL;
    while (node == NULL) {
        if (!count_down(ibv->async_fd)) {
            return -1;
        }
        pthread_mutex_lock(&context->mutex);
        node = list_pop(&context->events);
        if (node != NULL) {
            note_delivered(&CONTAINER_OF(node, struct async_event, node)->event);
        }
        pthread_mutex_unlock(&context->mutex);
    }
    struct async_event *event = CONTAINER_OF(node, struct async_event, node);
    *out = event->event;
    free(event);
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
    pthread_mutex_lock(&context->mutex);
    for (struct list *node = context->events.next; node != &context->events;) {
        struct async_event *event = CONTAINER_OF(node, struct async_event, node);
        node = node->next;
        if (event->object == object) {
            list_remove(&event->node);
            free(event);
            take_back(context->live, context->verbs.context.async_fd);
        }
    }
    pthread_mutex_unlock(&context->mutex);
}
