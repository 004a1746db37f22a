/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srq - shared receive queues.
 */
#include <stdlib.h>
#include <string.h>

#include "verbs/checking.h"
#include "verbs/internal.h"
#include "verbs/strict.h"

/* -- All of them --------------------------------------------------------------------------------*/

static struct {
    pthread_mutex_t mutex;
    struct list all; /* struct verbs_srq */
    uint32_t last_handle;
} queues = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = {&queues.all, &queues.all}};

/* It gets a number among them. All else of it is there: others may look at it from now on. */
static void enter(struct verbs_srq *srq)
{
    pthread_mutex_lock(&queues.mutex);
    srq->ibv.handle = ++queues.last_handle;
    list_append(&queues.all, &srq->node);
    pthread_mutex_unlock(&queues.mutex);
}

static void leave(struct verbs_srq *srq)
{
    pthread_mutex_lock(&queues.mutex);
    list_remove(&srq->node);
    pthread_mutex_unlock(&queues.mutex);
}

void srq_each(void (*visit)(void *state, const struct verbs_srq *srq), void *state)
{
    pthread_mutex_lock(&queues.mutex);
    for (struct list *node = queues.all.next; node != &queues.all; node = node->next) {
        visit(state, CONTAINER_OF(node, struct verbs_srq, node));
    }
    pthread_mutex_unlock(&queues.mutex);
}

void srq_in_child(void)
{
    pthread_mutex_init(&queues.mutex, NULL);
}

/* (locked) Only a queue of XRC has a domain, a completion queue and, until its context is closed, a
 * number. A queue is armed for no more receives than it can hold. */
static void verbs_srq_check(const struct verbs_srq *srq)
{
    const struct srq *core = &srq->core;
    receive_queue_check(&core->queue);
    CHECK(core->queue.slots == srq->slots);
    CHECK(receive_queue_bytes(core->queue.limit, core->queue.sge_max) <= srq->memory.bytes);
    CHECK(core->pd != NULL && core->pd->users > 0);
    CHECK((core->xrcd == NULL) == (core->cq == NULL));
    CHECK(core->xrcd != NULL || core->number == 0);
    CHECK(core->limit_armed <= core->queue.limit);
    CHECK(list_empty(&core->event_link) == (core->events == 0));
}

/* -- Creation -----------------------------------------------------------------------------------*/

static bool within_limits(struct ibv_context *context, const struct ibv_srq_attr *attr)
{
    const struct nic_limits *limits = limits_of(context);
    return attr->max_wr > 0 && attr->max_wr <= limits->receives_per_srq &&
           attr->max_sge <= limits->sges;
}

/* The members that only XRC shared receive queues have. */
struct xrc_part {
    struct ibv_xrcd *xrcd;
    struct ibv_cq *cq;
};

/* 0 or errno; locked. */
static int create_core(struct live *live, struct ibv_pd *pd, const struct ibv_srq_attr *attr,
                       const struct xrc_part *xrc, struct verbs_srq *srq)
{
    srq_init(&srq->core, pd_core(pd), attr->max_wr, attr->max_sge, srq->slots);
    if (xrc != NULL) {
        srq->core.xrcd = xrcd_core(xrc->xrcd);
        srq->core.cq = &cq_of(xrc->cq)->core;
        const enum status status = srq_enter(live_nic(live), &srq->core);
        if (status != STATUS_OK) {
            return status_errno(status);
        }
    }
    srq->core.pd->users++;
    INVARIANTS(verbs_srq_check(srq));
    return 0;
}

static struct ibv_srq *create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr,
                              const struct xrc_part *xrc)
{
    if (!within_limits(pd->context, attr)) {
        return fail(EINVAL);
    }
    if (attr->max_sge == 0) {
        attr->max_sge = 1;
    }
    struct verbs_srq *srq = object_make(pd->context, sizeof(*srq));
    if (srq == NULL) {
        return NULL;
    }
    srq->slots =
        memory_take(pd, receive_queue_bytes(attr->max_wr, attr->max_sge), MEMORY_SRQ, &srq->memory);
    if (srq->slots == NULL) {
        object_free(pd->context, srq);
        return fail(ENOMEM);
    }
    struct live *live = live_of(pd->context);
    /* Others see one of XRC as soon as it is in the NIC's table. */
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = srq_context;
    srq->ibv.pd = pd;
    srq->sole.promised = has_thread_domain(pd);
    live_lock(live);
    const int reason = create_core(live, pd, attr, xrc, srq);
    live_unlock(live);
    if (reason != 0) {
        memory_give(pd, srq->slots, &srq->memory, MEMORY_SRQ);
        object_free(pd->context, srq);
        return fail(reason);
    }
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    enter(srq);
    if (is_checked()) {
        checking_srq_made(srq);
    }
    return &srq->ibv;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return is_efa() ? fail(EOPNOTSUPP) : create(pd, attr->srq_context, &attr->attr, NULL);
}

struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t xrc_mask = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc_mask;
    const enum ibv_srq_type type =
        attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
    if ((attr->comp_mask & ~known) || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
        return fail(EOPNOTSUPP);
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd == NULL) {
        return fail(EINVAL);
    }
    if (!STRICT_JOINS(context, attr->pd)) {
        return NULL;
    }
    if (type == IBV_SRQT_BASIC) {
        return create(attr->pd, attr->srq_context, &attr->attr, NULL);
    }
    if ((attr->comp_mask & xrc_mask) != xrc_mask || attr->xrcd == NULL || attr->cq == NULL) {
        return fail(EINVAL);
    }
    if (!STRICT_JOINS(context, attr->xrcd) || !STRICT_JOINS(context, attr->cq)) {
        return NULL;
    }
    const struct xrc_part xrc = {.xrcd = attr->xrcd, .cq = attr->cq};
    return create(attr->pd, attr->srq_context, &attr->attr, &xrc);
}

/* Only those that requests can name have one. */
int srq_get_number(struct ibv_srq *srq, uint32_t *number)
{
    if (srq_of(srq)->core.xrcd == NULL) {
        return EINVAL;
    }
    *number = srq_of(srq)->core.number;
    initialised(number, sizeof(*number));
    return 0;
}

/* Changes all or nothing; the new size is judged. 0 or errno. */
static int resize(struct verbs_srq *srq, const struct ibv_srq_attr *attr, bool arm)
{
    if (attr->max_wr == 0 || attr->max_wr > limits_of(srq->ibv.context)->receives_per_srq) {
        return EINVAL;
    }
    struct memory memory;
    void *slots =
        memory_take(srq->ibv.pd, receive_queue_bytes(attr->max_wr, srq->core.queue.sge_max),
                    MEMORY_SRQ, &memory);
    if (slots == NULL) {
        return ENOMEM;
    }
    struct live *live = live_of(srq->ibv.context);
    live_lock(live);
    INVARIANTS(verbs_srq_check(srq));
    const uint32_t limit = arm ? attr->srq_limit : srq->core.limit_armed;
    const bool fits = srq_may_resize(&srq->core, attr->max_wr, limit);
    if (fits) {
        const struct memory old = srq->memory;
        srq->slots = slots;
        srq->memory = memory;
        slots = srq_resize(&srq->core, attr->max_wr, slots);
        memory = old;
        srq->core.limit_armed = limit;
    }
    INVARIANTS(verbs_srq_check(srq));
    live_unlock(live);
    memory_give(srq->ibv.pd, slots, &memory, MEMORY_SRQ);
    if (is_checked() && fits) {
        checking_srq_resized(srq);
    }
    return fits ? 0 : EINVAL;
}

EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    struct verbs_srq *srq = srq_of(ibv);
    if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)) {
        return EINVAL;
    }
    if (mask & IBV_SRQ_MAX_WR) {
        return resize(srq, attr, mask & IBV_SRQ_LIMIT);
    }
    struct live *live = live_of(ibv->context);
    int reason = 0;
    live_lock(live);
    INVARIANTS(verbs_srq_check(srq));
    if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > srq->core.queue.limit) {
        reason = EINVAL;
    } else if (mask & IBV_SRQ_LIMIT) {
        srq->core.limit_armed = attr->srq_limit;
    }
    live_unlock(live);
    return reason;
}

EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    struct verbs_srq *srq = srq_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_srq_check(srq));
    *attr = (struct ibv_srq_attr){.max_wr = srq->core.queue.limit,
                                  .max_sge = srq->core.queue.sge_max,
                                  .srq_limit = srq->core.limit_armed};
    live_unlock(live);
    initialised(attr, sizeof(*attr));
    return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct verbs_srq *srq = srq_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_srq_check(srq));
    if (srq->core.users > 0) {
        live_unlock(live);
        return checking_busy("shared receive queue");
    }
    nic_forget_srq(&srq->core);
    if (srq->core.number != 0) {
        srq_leave(live_nic(live), &srq->core);
    }
    CHECK(srq->core.pd->users > 0 && list_empty(&srq->core.event_link));
    srq->core.pd->users--;
    /* Before its domain may go. */
    leave(srq);
    live_unlock(live);
    if (is_checked()) {
        checking_srq_gone(srq);
    }
    event_forget(context_of(ibv->context), srq);
    pthread_mutex_lock(&ibv->mutex);
    event_await_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, &srq->async_events_delivered,
                     "ibv_destroy_srq");
    pthread_mutex_unlock(&ibv->mutex);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    memory_give(ibv->pd, srq->slots, &srq->memory, MEMORY_SRQ);
    object_free(ibv->context, srq);
    return 0;
}
