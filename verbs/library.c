/* SPDX-License-Identifier: BSD-2-Clause
 *
 * library - the ties between this room and the process's NIC: events of the NIC, and the locks and
 * objects of this room that a fork and netlink have to know.
 *
 * The lists of verbs objects outlive a fork, but a child's NIC has none of its parent's: only what
 * is of the NIC that is asked about counts. Nor does what is left of a context that was closed,
 * which a kernel would have destroyed (closing.c).
 */
#include "kernel/nldev_objects.h"
#include "nic/inventory.h"
#include "verbs/blocks.h"
#include "verbs/checking.h"
#include "verbs/efa_mapped.h"
#include "verbs/internal.h"
#include "verbs/odd.h"

static bool is_of(const struct objects_collection *collection, const struct ibv_context *context)
{
    return CONTAINER_OF_CONST(context, struct context, verbs.context)->live == collection->live &&
           !is_closed(context);
}

static uint32_t context_number(const struct ibv_context *context)
{
    return CONTAINER_OF_CONST(context, struct context, verbs.context)->number;
}

/* The domain has objects, which were made with a handle of it: so it has a number. */
static uint32_t domain_number(const struct pd *pd)
{
    const uint32_t number = CONTAINER_OF_CONST(pd, struct protection_domain, core)->number;
    INVARIANTS(CHECK(number != 0));
    return number;
}

/* -- A kind each --------------------------------------------------------------------------------*/

static void add_context(void *state, struct context *context)
{
    if (is_of(state, &context->verbs.context)) {
        objects_add(state, context->number);
    }
}

/* Parent domains and imports are other handles of a domain. */
static void add_pd(void *state, const struct verbs_pd *pd)
{
    if (is_of(state, pd->ibv.context) && !pd->parent && !pd->imported) {
        struct nldev_resource *resource = objects_add(state, pd->ibv.handle);
        nldev_set(resource, PD_USERS, pd->core->users);
        nldev_set(resource, PD_CTXN, context_number(pd->ibv.context));
    }
}

static void add_cq(void *state, const struct verbs_cq *cq)
{
    if (is_of(state, cq->ex.context)) {
        struct nldev_resource *resource = objects_add(state, cq->ex.handle);
        nldev_set(resource, CQ_ENTRIES, cq->core.capacity);
        nldev_set(resource, CQ_USERS, cq->core.users);
        nldev_set(resource, CQ_CTXN, context_number(cq->ex.context));
    }
}

static void add_srq(void *state, const struct verbs_srq *srq)
{
    if (is_of(state, srq->ibv.context)) {
        const struct srq *core = &srq->core;
        struct nldev_resource *resource = objects_add(state, srq->ibv.handle);
        nldev_set(resource, SRQ_PDN, domain_number(core->pd));
        CHECK((core->xrcd == NULL) == (core->cq == NULL));
        nldev_set(resource, SRQ_TYPE, core->xrcd == NULL ? IBV_SRQT_BASIC : IBV_SRQT_XRC);
        if (core->cq != NULL) {
            nldev_set(resource, SRQ_CQN,
                      CONTAINER_OF_CONST(core->cq, struct verbs_cq, core)->ex.handle);
        }
    }
}

/* A target is of all programs that opened it. */
static bool is_left_over(const struct qp *qp)
{
    const struct verbs_qp *handle = qp_context(qp);
    return qp_type_of(qp) != QP_XRC_TARGET && is_closed(handle->ex.qp_base.context);
}

static void add_qp(struct objects_collection *collection, const struct qp *qp)
{
    struct qp_attributes attributes;
    if (is_left_over(qp)) {
        return;
    }
    struct nldev_resource *resource =
        objects_add(collection, is_efa() ? efa_qpn_of(qp_number(qp)) : qp_number(qp));
    const enum qp_type type = qp_type_of(qp);
    CHECK((qp_pd(qp) == NULL) == (type == QP_XRC_TARGET));
    qp_query(qp, &attributes);
    if (qp_pd(qp) != NULL) {
        nldev_set(resource, QP_PDN, domain_number(qp_pd(qp)));
    }
    nldev_set(resource, QP_TYPE, (uint64_t)type);
    nldev_set(resource, QP_STATE, (uint64_t)attributes.state);
    nldev_set(resource, QP_SEND_PSN, attributes.psn.send);
    if (type == QP_RC || type == QP_UC) {
        nldev_set(resource, QP_PEER, attributes.destination_qpn);
        nldev_set(resource, QP_RECEIVE_PSN, attributes.psn.receive);
    }
    if (type != QP_UD) {
        nldev_set(resource, QP_MIGRATION, IBV_MIG_MIGRATED);
    }
}

static void add_region(struct objects_collection *collection, const struct region *region)
{
    if (region->kind == REGION_MEMORY &&
        !is_closed(CONTAINER_OF_CONST(region, struct verbs_mr, core)->ibv.context)) {
        /* The upper 24 bits of a key are the region's number in the table. */
        struct nldev_resource *resource = objects_add(collection, region->key >> 8);
        nldev_set(resource, MR_PDN, domain_number(region->pd));
        nldev_set(resource, MR_BYTES, region->bytes);
        nldev_set(resource, MR_IOVA, region->start);
        nldev_set(resource, MR_RKEY, region->key);
        nldev_set(resource, MR_LKEY, region_lkey(nic_regions(live_nic(collection->live)), region));
    }
}

/* -- All of a kind ------------------------------------------------------------------------------*/

static void add_qps(struct objects_collection *collection)
{
    const struct qp *qp;
    for (uint32_t at = 0; (qp = nic_each_qp(live_nic(collection->live), &at)) != NULL;) {
        add_qp(collection, qp);
    }
}

static void add_regions(struct objects_collection *collection)
{
    const struct region *region;
    for (uint32_t at = 0; (region = nic_each_region(live_nic(collection->live), &at)) != NULL;) {
        add_region(collection, region);
    }
}

static void collect(enum nldev_kind kind, struct objects_collection *collection)
{
    switch (kind) {
    case NLDEV_PD: pd_each(add_pd, collection); break;
    case NLDEV_CQ: cq_each(add_cq, collection); break;
    case NLDEV_QP: add_qps(collection); break;
    case NLDEV_MR: add_regions(collection); break;
    case NLDEV_CTX: context_each(add_context, collection); break;
    case NLDEV_SRQ: srq_each(add_srq, collection); break;
    case NLDEV_CM_ID:
    case NLDEV_KINDS: CHECK(false);
    }
}

/* -- The process's NIC --------------------------------------------------------------------------*/

/* Nobody holds a lock of the objects, nor waits: all threads that did so are the parent's. */
static void free_locks_of_cq(struct ibv_cq *cq)
{
    pthread_mutex_init(&cq->mutex, NULL);
    pthread_cond_init(&cq->cond, NULL);
    if (cq->channel != NULL) {
        pthread_mutex_init(&channel_of(cq->channel)->mutex, NULL);
    }
}

static void free_locks_of_srq(struct ibv_srq *srq)
{
    pthread_mutex_init(&srq->mutex, NULL);
    pthread_cond_init(&srq->cond, NULL);
}

/* A queue pair that is being made does not have all of it. A target of XRC is of several
 * programs. */
static void free_locks_of(const struct qp *core)
{
    struct verbs_qp *qp = qp_context(core);
    struct ibv_qp *ibv = &qp->ex.qp_base;
    if (qp_type_of(core) == QP_XRC_TARGET || ibv->context == NULL) {
        return;
    }
    qp_ex_in_child(qp);
    if (!qp->memory.from_program) { /* The program's memory may be its parent's as well. */
        pthread_mutex_init(&ibv->mutex, NULL);
        pthread_cond_init(&ibv->cond, NULL);
    }
    pthread_mutex_init(&context_of(ibv->context)->mutex, NULL);
    if (ibv->send_cq != NULL) {
        free_locks_of_cq(ibv->send_cq);
    }
    if (ibv->recv_cq != NULL) {
        free_locks_of_cq(ibv->recv_cq);
    }
    if (ibv->srq != NULL) {
        free_locks_of_srq(ibv->srq);
    }
}

static void in_child(struct live *live)
{
    const struct qp *qp;
    for (uint32_t at = 0; live != NULL && (qp = nic_each_qp(live_nic(live), &at)) != NULL;) {
        free_locks_of(qp);
    }
    blocks_in_child();
    checking_in_child();
    context_in_child();
    cq_in_child();
    efa_mapped_in_child();
    dm_in_child();
    pd_in_child();
    srq_in_child();
}

struct live *library_open(void)
{
    static const struct process_library library = {.in_child = in_child, .collect = collect};
    static const struct live_listener listener = {.on_completion_event = event_on_completion,
                                                  .on_async_event = event_on_async,
                                                  .on_port_change = event_on_port_change};
    process_attach(&library);
    struct live *live = process_live_started();
    if (live != NULL) {
        live_lock(live);
        live_listen(live, &listener);
        live_unlock(live);
        checking_begin(live);
    }
    return live;
}
