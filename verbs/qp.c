/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp - queue pairs: creation, states, attributes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "drivers/system/guard.h"
#include "verbs/checking.h"
#include "verbs/efa_mapped.h"
#include "verbs/internal.h"
#include "verbs/newer.h"
#include "verbs/odd.h"
#include "verbs/strict.h"
#include "wire/inet.h"

/* -- Creation -----------------------------------------------------------------------------------*/

static bool type_of(enum ibv_qp_type from, enum qp_type *type)
{
    if (is_efa()) {
        *type = (enum qp_type)from;
        return from == IBV_QPT_UD || from == IBV_QPT_DRIVER;
    }
    if (from != IBV_QPT_RC && from != IBV_QPT_UC && from != IBV_QPT_UD &&
        from != IBV_QPT_XRC_SEND && from != IBV_QPT_XRC_RECV) {
        return false;
    }
    *type = (enum qp_type)from;
    return true;
}

/* The parts of a new queue pair. */
struct ingredients {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_xrcd *xrcd;
    struct ibv_qp_init_attr *attr;
    bool extended;
    bool unsolicited; /* SRD. */
};

/* An XRC receiver has neither memory nor queues, and an XRC sender has no receives, whatever else
 * the program has filled in. The protection domain that a receiver was made with is shown to the
 * program all the same, as rdma-core does: librdmacm takes it from there. */
static void drop_unused(struct ingredients *from)
{
    struct ibv_qp_init_attr *attr = from->attr;
    if (attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV) {
        attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
        attr->recv_cq = NULL;
        attr->srq = NULL;
    }
    if (attr->qp_type == IBV_QPT_XRC_RECV) {
        attr->cap = (struct ibv_qp_cap){0};
        attr->send_cq = NULL;
        from->pd = NULL;
    }
}

static bool complete(const struct ingredients *from)
{
    switch ((enum qp_type)from->attr->qp_type) {
    case QP_XRC_TARGET: return from->xrcd != NULL && !from->extended;
    case QP_XRC_INITIATOR: return from->pd != NULL && from->attr->send_cq != NULL;
    case QP_RC:
    case QP_UC:
    case QP_UD:
    case QP_SRD: break;
    }
    return from->pd != NULL && from->attr->send_cq != NULL && from->attr->recv_cq != NULL;
}

static bool on_one_context(const struct ingredients *from)
{
    const struct ibv_qp_init_attr *attr = from->attr;
    return STRICT_JOINS(from->context, from->pd) && STRICT_JOINS(from->context, from->xrcd) &&
           STRICT_JOINS(from->context, attr->send_cq) &&
           STRICT_JOINS(from->context, attr->recv_cq) && STRICT_JOINS(from->context, attr->srq);
}

static int judge_ingredients(const struct ingredients *from)
{
    const struct nic_limits *limits = limits_of(from->context);
    const struct ibv_qp_cap *cap = &from->attr->cap;
    if (cap->max_send_wr > limits->sends_per_qp || cap->max_send_sge > limits->sges ||
        cap->max_inline_data > limits->inline_bytes) {
        return EINVAL;
    }
    if (from->attr->srq == NULL &&
        (cap->max_recv_wr > limits->receives_per_qp || cap->max_recv_sge > limits->sges)) {
        return EINVAL;
    }
    return complete(from) && on_one_context(from) ? 0 : EINVAL;
}

static struct qp_request request_of(const struct ingredients *from, enum qp_type type)
{
    const struct ibv_qp_init_attr *attr = from->attr;
    return (struct qp_request){
        .type = type,
        .pd = from->pd == NULL ? NULL : pd_core(from->pd),
        .send_cq = attr->send_cq == NULL ? NULL : &cq_of(attr->send_cq)->core,
        .receive_cq = attr->recv_cq == NULL ? NULL : &cq_of(attr->recv_cq)->core,
        .srq = attr->srq == NULL ? NULL : &srq_of(attr->srq)->core,
        .xrcd = type == QP_XRC_TARGET ? xrcd_core(from->xrcd) : NULL,
        .capacity = {.sends = attr->cap.max_send_wr,
                     .receives = attr->cap.max_recv_wr,
                     .send_sges = attr->cap.max_send_sge,
                     .receive_sges = attr->cap.max_recv_sge,
                     .inline_bytes = attr->cap.max_inline_data},
        .signal_all = attr->sq_sig_all,
        .unsolicited = from->unsolicited,
    };
}

/* The capacity that programs are told. */
static struct ibv_qp_cap granted(const struct qp *core)
{
    const struct qp_capacity capacity = qp_capacity_of(core);
    if (qp_type_of(core) == QP_XRC_TARGET) {
        return (struct ibv_qp_cap){0};
    }
    return (struct ibv_qp_cap){
        .max_send_wr = capacity.sends,
        .max_recv_wr = capacity.receives,
        .max_send_sge = capacity.send_sges,
        .max_recv_sge = capacity.receive_sges,
        .max_inline_data = capacity.inline_bytes,
    };
}

/* The core in a block; 0 or errno. Locked. */
static int create_core(const struct ingredients *from, const struct qp_request *request,
                       size_t front, struct verbs_qp *qp)
{
    const enum status status =
        qp_create(live_nic(live_of(from->context)), request, (uint8_t *)qp + front, &qp->core);
    if (status != STATUS_OK) {
        return status_errno(status);
    }
    CHECK(qp_context(qp->core) == qp && qp_state_of(qp->core) == QP_RESET);
    if (request->type == QP_XRC_TARGET && !xrc_target_add(from->xrcd, qp)) {
        qp_destroy(qp->core);
        return ENOMEM;
    }
    if (request->type == QP_UD) {
        live_show_variants(live_of(from->context));
    }
    INVARIANTS(verbs_qp_check(qp));
    return 0;
}

/* The object and its core in one block, so that both are found on neighbouring cache lines. */
static int create_block(const struct ingredients *from, enum qp_type type, struct verbs_qp **result)
{
    struct qp_request request = request_of(from, type);
    const size_t front =
        line_aligned(from->extended ? sizeof(struct verbs_qp)
                                    : offsetof(struct verbs_qp, ex) + sizeof(struct ibv_qp));
    CHECK(front == line_aligned(front)); /* So that the core begins with a cache line. */
    const size_t bytes = front + qp_bytes(type, &request.capacity, request.srq != NULL);
    struct memory memory;
    struct verbs_qp *qp = memory_take(from->pd, bytes, MEMORY_QP, &memory);
    if (qp == NULL) {
        return ENOMEM;
    }
    qp->memory = memory;
    /* Once it is in the NIC's table, our thread may tell others of it (nldev_objects.c). */
    qp->ex.qp_base.context = from->context;
    request.context = qp;
    struct live *live = live_of(from->context);
    live_lock(live);
    const int reason = create_core(from, &request, front, qp);
    live_unlock(live);
    if (reason != 0) {
        memory_give(from->pd, qp, &memory, MEMORY_QP);
        return reason;
    }
    *result = qp;
    return 0;
}

void qp_fill_public(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr, struct verbs_qp *qp)
{
    struct ibv_qp *ibv = &qp->ex.qp_base;
    ibv->qp_context = attr->qp_context;
    ibv->pd = pd;
    ibv->send_cq = attr->send_cq;
    ibv->recv_cq = attr->recv_cq;
    ibv->srq = attr->srq;
    ibv->qp_num = is_efa() ? efa_qpn_of(qp_number(qp->core)) : qp_number(qp->core);
    ibv->handle = ibv->qp_num;
    ibv->state = (enum ibv_qp_state)qp_state_of(qp->core);
    ibv->qp_type = attr->qp_type;
    qp->signals_all = attr->sq_sig_all != 0;
    qp->sole.promised = has_thread_domain(pd);
    pthread_mutex_init(&ibv->mutex, NULL);
    pthread_cond_init(&ibv->cond, NULL);
}

static struct verbs_qp *create(struct ingredients *from)
{
    enum qp_type type;
    if (!type_of(from->attr->qp_type, &type)) {
        return fail(EOPNOTSUPP);
    }
    if (!context_hold(from->context)) {
        return NULL;
    }
    struct ibv_pd *shown = from->pd;
    struct ibv_qp_init_attr *programs = from->attr, used = *programs;
    from->attr = &used;
    drop_unused(from);
    struct verbs_qp *qp = NULL;
    int reason = judge_ingredients(from);
    if (type == QP_RC || type == QP_UC || type == QP_UD) {
        odd_capacity(&used.cap, used.srq != NULL, limits_of(from->context));
    }
    if (reason == 0) {
        reason = create_block(from, type, &qp);
    }
    if (reason != 0) {
        context_release(from->context);
        return fail(reason);
    }
    qp_fill_public(shown, &used, qp);
    programs->cap = granted(qp->core);
    initialised(&programs->cap, sizeof(programs->cap));
    if (is_efa()) {
        efa_qp_made(qp);
    }
    if (is_checked()) {
        checking_qp_made(qp, used.sq_sig_all != 0);
    }
    return qp;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (is_efa()) {
        return qp_create_plain(pd, attr, NULL);
    }
    struct ingredients from = {.context = pd->context, .pd = pd, .attr = attr};
    struct verbs_qp *qp = create(&from);
    return qp == NULL ? NULL : &qp->ex.qp_base;
}

static int judge_extensions(const struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if ((attr->comp_mask & ~known) ||
        ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags != 0)) {
        return EOPNOTSUPP;
    }
    return 0;
}

static struct ibv_qp *create_extended(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                      bool unsolicited)
{
    struct ingredients from = {
        .context = context,
        .pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
        .xrcd = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? attr->xrcd : NULL,
        /* The extended struct begins with the plain one. */
        .attr = (struct ibv_qp_init_attr *)(void *)attr,
        .extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .unsolicited = unsolicited,
    };
    struct verbs_qp *qp = create(&from);
    if (qp == NULL) {
        return NULL;
    }
    if (from.extended) {
        qp->extended = true;
        CHECK(qp->memory.bytes >= sizeof(*qp)); /* It is not cut off behind struct ibv_qp. */
        const int reason = qp_ex_init(qp, attr->send_ops_flags, attr->cap.max_send_wr);
        if (reason != 0) {
            ibv_destroy_qp(&qp->ex.qp_base);
            return fail(reason);
        }
    }
    return &qp->ex.qp_base;
}

struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    if (is_efa()) {
        return qp_create_direct(context, attr, NULL);
    }
    const int reason = judge_extensions(attr);
    return reason != 0 ? fail(reason) : create_extended(context, attr, false);
}

struct ibv_qp *qp_create_direct(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                const struct efa_qp_init_attr *efa)
{
    const int reason = efa_judge_qp(limits_of(context), attr, efa);
    if (reason != 0) {
        return fail(reason);
    }
    efa_round_capacity(&attr->cap);
    return create_extended(context, attr,
                           efa != NULL && (efa->flags & EFA_QP_UNSOLICITED_WRITE_RECV));
}

struct ibv_qp *qp_create_plain(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
                               const struct efa_qp_init_attr *efa)
{
    struct ibv_qp_init_attr_ex ex = {0};
    memcpy(&ex, attr, sizeof(*attr)); /* The extended struct begins with the plain one. */
    ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    ex.pd = pd;
    struct ibv_qp *qp = qp_create_direct(pd->context, &ex, efa);
    if (qp != NULL) {
        attr->cap = ex.cap;
        initialised(&attr->cap, sizeof(attr->cap));
    }
    return qp;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
    return qp_of(ibv)->extended ? &qp_of(ibv)->ex : NULL;
}

/* -- Destruction --------------------------------------------------------------------------------*/

/* Returns how many completions were taken out. */
static uint32_t destroy_core(struct live *live, struct qp *core)
{
    /* The last acknowledgement may still wait for something to travel with. */
    live_flush(live);
    live_end_qp(live, core);
    const struct nic_av av = *qp_av(core);
    /* Some devices keep them, some take them out; none shows them late. */
    const bool forgets = live_is_strict(live) || is_odd(ODD_LATE);
    const uint32_t forgotten = forgets ? qp_forget_completions(core) : 0;
    qp_destroy(core);
    live_release(live, &av);
    return forgotten;
}

/* The domain whose allocator a queue pair's block is from. NULL for a receiver of XRC: it only
 * shows its domain, which may be gone before it. */
static struct ibv_pd *owner_of_block(const struct verbs_qp *qp)
{
    const struct ibv_qp *ibv = &qp->ex.qp_base;
    return ibv->qp_type == IBV_QPT_XRC_RECV ? NULL : ibv->pd;
}

static void withdraw(struct verbs_qp *qp)
{
    struct live *live = live_of(qp->ex.qp_base.context);
    uint32_t forgotten = 0;
    if (is_checked()) {
        checking_qp_ends(qp);
        checking_qp_gone(qp->ex.qp_base.qp_num);
    }
    if (is_efa()) {
        efa_unmap_qp(qp);
        efa_qp_gone(qp);
    }
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp));
    if (qp->ex.qp_base.qp_type != IBV_QPT_XRC_RECV || xrc_target_drop(qp)) {
        forgotten = destroy_core(live, qp->core);
    }
    unlock_settled(live);
    if (forgotten != 0 && live_is_strict(live)) {
        strict_refuse(STRICT_DESTROYED);
    }
}

/* The queue pair whose block is to be given back: this one; for a target with several handles
 * perhaps another one, or none (NULL). */
static struct verbs_qp *find_holder(struct verbs_qp *qp)
{
    if (qp->ex.qp_base.qp_type != IBV_QPT_XRC_RECV) {
        return qp;
    }
    struct live *live = live_of(qp->ex.qp_base.context);
    live_lock(live);
    struct verbs_qp *holder = xrc_target_end(qp);
    CHECK(holder == NULL || holder->memory.bytes > 0);
    live_unlock(live);
    return holder;
}

static void wait_for_events(struct verbs_qp *qp)
{
    struct ibv_qp *ibv = &qp->ex.qp_base;
    event_forget(context_of(ibv->context), qp);
    pthread_mutex_lock(&ibv->mutex);
    event_await_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, &qp->async_events_delivered,
                     "ibv_destroy_qp");
    pthread_mutex_unlock(&ibv->mutex);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
}

static bool is_attached(const struct verbs_qp *qp)
{
    struct live *live = live_of(qp->ex.qp_base.context);
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp));
    const bool attached = nic_is_attached(live_nic(live), qp->core);
    live_unlock(live);
    return attached;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct verbs_qp *qp = qp_of(ibv);
    if (is_attached(qp)) {
        return checking_busy("queue pair in a multicast group");
    }
    struct ibv_context *context = ibv->context;
    const bool opened = ibv->qp_type == IBV_QPT_XRC_RECV && !xrc_target_holds(qp);
    withdraw(qp);
    wait_for_events(qp);
    if (qp->extended) {
        qp_ex_free(qp);
    }
    /* Another handle's end may give this one's block back from now on. */
    struct verbs_qp *holder = find_holder(qp);
    if (opened) {
        free(qp);
    }
    if (holder != NULL) {
        const struct memory memory = holder->memory;
        memory_give(owner_of_block(holder), holder, &memory, MEMORY_QP);
    }
    context_release(context);
    return 0;
}

/* -- Attributes ---------------------------------------------------------------------------------*/

/* A number that is too large for a byte stays one that means nothing. */
static uint8_t byte_of(uint32_t number)
{
    return number > UINT8_MAX ? UINT8_MAX : (uint8_t)number;
}

/* Access flags come as programs have them at hand, optional bits and all. */
static void to_core(const struct ibv_qp_attr *from, struct qp_attributes *to)
{
    *to = (struct qp_attributes){
        .state = byte_of(from->qp_state),
        .current_state = byte_of(from->cur_qp_state),
        .path_mtu = byte_of(from->path_mtu),
        .qkey = from->qkey,
        .psn = {.receive = from->rq_psn, .send = from->sq_psn},
        .destination_qpn = from->dest_qp_num,
        .access = from->qp_access_flags & (ACCESS_LOCAL_WRITE | ACCESS_REMOTE),
        .pkey_index = from->pkey_index,
        .port = from->port_num,
        .notify_when_drained = from->en_sqd_async_notify != 0,
        .max_reads_out = from->max_rd_atomic,
        .max_reads_in = from->max_dest_rd_atomic,
        .min_rnr_timer = from->min_rnr_timer,
        .timeout = from->timeout,
        .retry_count = from->retry_cnt,
        .rnr_retry = from->rnr_retry,
    };
}

static void from_core(const struct qp_attributes *from, struct ibv_qp_attr *to)
{
    *to = (struct ibv_qp_attr){
        .qp_state = (enum ibv_qp_state)from->state,
        .cur_qp_state = (enum ibv_qp_state)from->current_state,
        .path_mtu = (enum ibv_mtu)from->path_mtu,
        .path_mig_state = IBV_MIG_MIGRATED,
        .qkey = from->qkey,
        .rq_psn = from->psn.receive,
        .sq_psn = from->psn.send,
        .dest_qp_num = from->destination_qpn,
        .qp_access_flags = from->access,
        .pkey_index = from->pkey_index,
        .en_sqd_async_notify = from->notify_when_drained,
        .sq_draining = from->draining,
        .max_rd_atomic = from->max_reads_out,
        .max_dest_rd_atomic = from->max_reads_in,
        .min_rnr_timer = from->min_rnr_timer,
        .port_num = from->port,
        .timeout = from->timeout,
        .retry_cnt = from->retry_count,
        .rnr_retry = from->rnr_retry,
    };
    av_to_attr(&from->av, &to->ah_attr);
}

/* The way to the peer. Its queue pair is named together with its address, or was before. */
static int resolve(struct live *live, const struct qp *core, const struct ibv_ah_attr *attr,
                   uint32_t mask, struct qp_attributes *attributes)
{
    if (inet_is_multicast(attr->grh.dgid.raw)) {
        return EINVAL; /* A connection has one peer. */
    }
    struct qp_attributes before;
    qp_query(core, &before);
    const int reason = av_from_attr(live, attr, &attributes->av);
    const uint32_t qpn =
        mask & QP_ATTR_DEST_QPN ? attributes->destination_qpn : before.destination_qpn;
    return reason != 0 ? reason : status_errno(live_resolve(live, &attributes->av, qpn & 0xffffff));
}

/* The link to the peer is known. */
static int modify_resolved(struct live *live, struct verbs_qp *qp,
                           const struct qp_attributes *attributes, uint32_t mask)
{
    live_flush(live);
    /* Off the board while the change is made, so that no local peer acts on the old state. */
    live_withdraw_qp(live, qp->core);
    const enum status status = qp_modify(qp->core, attributes, mask, live_now(live));
    live_publish_qp(live, qp->core);
    live_flush(live);
    return status_errno(status);
}

/* The queue pair holds the link of its address vector. */
static int modify_locked(struct live *live, struct verbs_qp *qp, const struct ibv_qp_attr *attr,
                         uint32_t mask)
{
    struct qp_attributes attributes;
    to_core(attr, &attributes);
    if (mask & QP_ATTR_AV) {
        const int reason = resolve(live, qp->core, &attr->ah_attr, mask, &attributes);
        if (reason != 0) {
            return reason;
        }
        CHECK(attributes.av.link != NULL);
        /* Blocks have no FLUSH: a queue pair made for it keeps to RC (docs/decisions/0033). */
        attributes.av.peer = qp_ex_flushes(qp) ? 0 : attributes.av.peer;
    }
    const struct nic_av before = *qp_av(qp->core);
    const int reason = modify_resolved(live, qp, &attributes, mask);
    if (reason != 0) {
        live_release(live, &attributes.av);
    } else if ((mask & QP_ATTR_AV) || qp_av(qp->core)->link == NULL) {
        live_release(live, &before);
    }
    return reason;
}

EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    struct verbs_qp *qp = qp_of(ibv);
    struct live *live = live_of(ibv->context);
    struct ibv_qp_attr found = *attr;
    if (is_closed(ibv->context)) {
        return EBADF;
    }
    int reason = is_efa()           ? efa_judge_modify(attr, (uint32_t)mask)
                 : mask & IBV_QP_AV ? av_find_lid(live, &found.ah_attr)
                                    : 0;
    if (reason != 0) {
        return reason;
    }
    if (is_checked() && (mask & IBV_QP_STATE) && attr->qp_state != IBV_QPS_RTS) {
        checking_qp_ends(qp);
    }
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp));
    const enum qp_state before = qp_state_of(qp->core);
    reason = modify_locked(live, qp, &found, (uint32_t)mask);
    ibv->state = (enum ibv_qp_state)qp_state_of(qp->core);
    unlock_settled(live);
    if (reason == 0 && ibv->state == IBV_QPS_RESET && is_efa()) {
        efa_reset_mapped_qp(qp);
        efa_qp_reset(qp);
    }
    if (reason == 0 && ibv->state == IBV_QPS_RTS) {
        const uint32_t changes = odd_changes();
        if (changes != 0) {
            event_on_port_change(changes);
        }
    }
    if (is_checked()) {
        struct qp_attributes attributes;
        to_core(attr, &attributes);
        checking_modified(qp, &attributes, (uint32_t)mask, before, reason);
    }
    return reason;
}

EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
                        struct ibv_qp_init_attr *init)
{
    (void)mask; /* Everything is at hand: more than asked for does no harm. */
    struct verbs_qp *qp = qp_of(ibv);
    struct live *live = live_of(ibv->context);
    struct qp_attributes attributes;
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp));
    qp_query(qp->core, &attributes);
    live_unlock(live);
    from_core(&attributes, attr);
    attr->cap = granted(qp->core);
    ibv->state = attr->qp_state;
    *init = (struct ibv_qp_init_attr){
        .qp_context = ibv->qp_context,
        .send_cq = ibv->send_cq,
        .recv_cq = ibv->recv_cq,
        .srq = ibv->srq,
        .cap = attr->cap,
        .qp_type = ibv->qp_type,
        .sq_sig_all = qp_signals_all(qp->core),
    };
    initialised(attr, sizeof(*attr));
    initialised(init, sizeof(*init));
    return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)op;
    /* The device and its processor are one, so nothing differs for the device alone. */
    if (flags & ~(uint32_t)(DATA_IN_ORDER_RETURN_CAPS | DATA_IN_ORDER_DEVICE_ONLY)) {
        return 0;
    }
    struct live *live = live_of(qp->context);
    live_lock(live);
    const bool early = qp_places_early(qp_of(qp)->core);
    live_unlock(live);
    /* Else payload lands in ascending order, packet after packet, last byte last; or the last bytes
     * alone come last, as the processor has it. */
    const bool in_order =
        GUARD_COPIES_IN_ORDER && qp->qp_type == IBV_QPT_RC && !early && !is_odd(ODD_PIECES);
    if (flags & DATA_IN_ORDER_RETURN_CAPS) {
        return in_order ? DATA_IN_ORDER_WHOLE_MSG | DATA_IN_ORDER_ALIGNED_128_BYTES : 0;
    }
    return in_order;
}

/* -- Enhanced connection establishment: as of a device without it -------------------------------*/

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return EOPNOTSUPP;
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return EOPNOTSUPP;
}
