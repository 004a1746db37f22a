/* SPDX-License-Identifier: BSD-2-Clause
 *
 * post - work requests on their way in: the path every message takes, so it is short.
 */
#include "drivers/system/poisoned.h"
#include "verbs/internal.h"
#include "verbs/newer.h"
#include "verbs/odd.h"
#include "verbs/strict.h"

_Static_assert(sizeof(struct sge) == sizeof(struct ibv_sge), "SGEs are passed through");
_Static_assert(offsetof(struct sge, bytes) == offsetof(struct ibv_sge, length), "SGE length");
_Static_assert(offsetof(struct sge, key) == offsetof(struct ibv_sge, lkey), "SGE key");

static const struct sge *sges_of(const struct ibv_sge *sges)
{
    return (const struct sge *)(const void *)sges;
}

int bind_request(struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey,
                 struct window_bind *bind)
{
    const unsigned int known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED |
                               IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
    /* Local rights are the region's: programs that ask for them here mean nothing by it. */
    const unsigned int ignored = IBV_ACCESS_LOCAL_WRITE;
    if (mw == NULL || (info->mw_access_flags & ~(known | ignored)) ||
        (info->length != 0 && info->mr == NULL)) {
        return EINVAL;
    }
    /* A bind that closes a window needs no region. */
    if (info->length != 0 && mr_of(info->mr)->imported) {
        return EOPNOTSUPP;
    }
    INVARIANTS(CHECK(mw_of(mw)->core.kind != REGION_MEMORY));
    *bind = (struct window_bind){
        .window = &mw_of(mw)->core,
        .region = info->mr == NULL || info->length == 0 ? NULL : &mr_of(info->mr)->core,
        .address = info->addr,
        .bytes = info->length,
        .access = info->mw_access_flags & known,
        .key = rkey,
    };
    return 0;
}

static int translate_local(const struct ibv_send_wr *wr, struct send_request *request)
{
    request->sge_count = 0;
    if (wr->opcode != IBV_WR_BIND_MW) {
        return 0;
    }
    if (wr->bind_mw.mw == NULL || wr->bind_mw.mw->type != IBV_MW_TYPE_2) {
        return EINVAL;
    }
    return bind_request(wr->bind_mw.mw, &wr->bind_mw.bind_info, wr->bind_mw.rkey, &request->bind);
}

int post_translate(const struct ibv_qp *qp, const struct ibv_send_wr *wr,
                   struct send_request *request)
{
    if (wr->num_sge < 0 || wr->num_sge > NIC_SGE_MAX ||
        (wr->send_flags & ~(unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
                                          IBV_SEND_INLINE))) {
        return EINVAL;
    }
    request->wr_id = wr->wr_id;
    request->kind = (enum work_kind)wr->opcode;
    request->flags = wr->send_flags;
    request->sges = sges_of(wr->sg_list);
    request->sge_count = (uint32_t)wr->num_sge;
    request->immediate = wr->imm_data;
    request->srqn = UNLIKELY(qp->qp_type == IBV_QPT_XRC_SEND) ? wr->qp_type.xrc.remote_srqn : 0;
    /* This struct has no place for the arguments of a FLUSH: ibv_wr_flush posts it. */
    if (!work_kind_in(work_kinds(WORK_ON_ANY) & ~work_kinds(WORK_IS_FLUSH), wr->opcode)) {
        return EOPNOTSUPP;
    }
    if (qp->qp_type == IBV_QPT_UD) {
        if (wr->wr.ud.ah == NULL) {
            return EINVAL;
        }
        request->av = &ah_of(wr->wr.ud.ah)->av;
        request->destination_qpn = wr->wr.ud.remote_qpn;
        request->destination_qkey = wr->wr.ud.remote_qkey;
        return 0;
    }
    if (work_kind_in(work_kinds(WORK_HAS_OPERANDS), wr->opcode)) {
        request->remote_address = wr->wr.atomic.remote_addr;
        request->remote_key = wr->wr.atomic.rkey;
        request->compare_or_add = wr->wr.atomic.compare_add;
        request->swap = wr->wr.atomic.swap;
        return 0;
    }
    request->remote_address = wr->wr.rdma.remote_addr;
    request->remote_key = wr->wr.rdma.rkey;
    return UNLIKELY(work_kind_in(work_kinds(WORK_IS_LOCAL), wr->opcode))
               ? translate_local(wr, request)
               : 0;
}

bool post_names_foreign_handle(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    return qp->qp_type == IBV_QPT_UD && wr->wr.ud.ah != NULL &&
           ah_of(wr->wr.ud.ah)->pd != qp_pd(qp_of(qp)->core);
}

/* Each call that posts is made twice: with `strict` and without. A message pays for neither. */
static ALWAYS_INLINE int post_one(struct verbs_qp *qp, struct ibv_send_wr *wr, bool strict)
{
    struct send_request request;
    int reason = post_translate(&qp->ex.qp_base, wr, &request);
    if (reason == 0) {
        reason = status_errno(strict ? slots_post_sends(qp->core, &request, 1)
                                     : qp_post_send(qp->core, &request));
    }
    if (reason == 0 && wr->opcode == IBV_WR_BIND_MW) {
        wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
    }
    return reason;
}

void post_note_time(struct live *live, const struct qp *qp)
{
    const enum qp_state state = qp_state_of(qp);
    if (UNLIKELY(state == QP_ERR || state == QP_SQE)) {
        nic_note_time(live_nic(live), live_now(live));
    }
}

static void tell_memory(struct live *live, const struct pd *pd, const struct sge *sges,
                        uint32_t count, bool lands, uint32_t qpn)
{
    const struct region_table *regions = nic_regions(live_nic(live));
    struct segment segment;
    for (uint32_t i = 0; i < count; i++) {
        if (region_judge(regions, sges[i].key, pd, NULL, sges[i].address, sges[i].bytes,
                         lands ? ACCESS_LOCAL_WRITE : 0, &segment) != REACH_ALLOWED) {
            continue;
        }
        if (lands) {
            initialised((const void *)(uintptr_t)segment.address, segment.bytes);
        } else {
            undefined_judge(&segment);
        }
        poison_judge(&segment, 1, lands, "a request that is posted to", qpn);
    }
}

void post_tell_send(struct live *live, const struct qp *qp, enum work_kind kind, bool is_inline,
                    const struct sge *sges, uint32_t count)
{
    for (uint32_t i = 0; is_inline && i < count; i++) {
        undefined_judge(&(struct segment){.address = sges[i].address, .bytes = sges[i].bytes});
    }
    if (!is_inline) {
        tell_memory(live, qp_pd(qp), sges, count, work_kind_in(work_kinds(WORK_BRINGS_DATA), kind),
                    qp_number(qp));
    }
}

static void tell_sends(struct live *live, const struct qp *qp, const struct ibv_send_wr *wr)
{
    for (; wr != NULL; wr = wr->next) {
        if (wr->num_sge > 0) {
            post_tell_send(live, qp, (enum work_kind)wr->opcode,
                           (wr->send_flags & IBV_SEND_INLINE) != 0, sges_of(wr->sg_list),
                           (uint32_t)wr->num_sge);
        }
    }
}

static void tell_receives(struct live *live, const struct pd *pd, const struct ibv_recv_wr *wr,
                          uint32_t qpn)
{
    for (; wr != NULL; wr = wr->next) {
        if (wr->num_sge > 0) {
            tell_memory(live, pd, sges_of(wr->sg_list), (uint32_t)wr->num_sge, true, qpn);
        }
    }
}

static ALWAYS_INLINE int post_requests(struct ibv_qp *ibv, struct ibv_send_wr *wr,
                                       struct ibv_send_wr **bad, bool strict)
{
    struct live *live = live_of(ibv->context);
    int reason = 0;
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp_of(ibv)));
    post_note_time(live, qp_of(ibv)->core);
    if (memory_is_watched()) {
        tell_sends(live, qp_of(ibv)->core, wr);
    }
    for (; wr != NULL; wr = wr->next) {
        reason = strict && post_names_foreign_handle(ibv, wr) ? EINVAL
                                                              : post_one(qp_of(ibv), wr, strict);
        if (UNLIKELY(reason != 0)) {
            *bad = wr;
            initialised(bad, sizeof(*bad));
            break;
        }
    }
    live_posted(live, qp_of(ibv)->core);
    live_unlock(live);
    return reason;
}

int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return post_requests(ibv, wr, bad, false);
}

int post_send_strictly(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    const int reason = post_requests(ibv, wr, bad, true);
    return reason == EINVAL && post_names_foreign_handle(ibv, *bad)
               ? strict_refuse(STRICT_AH_DOMAIN)
               : strict_if_full(reason, STRICT_SEND_SLOTS);
}

static int receive_count(const struct ibv_recv_wr *wr)
{
    return wr->num_sge < 0 || wr->num_sge > NIC_SGE_MAX ? -1 : wr->num_sge;
}

static ALWAYS_INLINE enum status post_receive(struct qp *qp, struct srq *srq, uint64_t wr_id,
                                              const struct sge *sges, uint32_t count, bool strict)
{
    if (qp != NULL) {
        return strict ? slots_post_receive(qp, wr_id, sges, count)
                      : qp_post_receive(qp, wr_id, sges, count);
    }
    return strict ? slots_post_shared(srq, wr_id, sges, count)
                  : srq_post_receive(srq, wr_id, sges, count);
}

/* Into a queue pair's own queue, or a shared one: the other is NULL, which the compiler knows. */
static ALWAYS_INLINE int post_receives(struct ibv_context *context, struct qp *qp, struct srq *srq,
                                       struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
                                       bool strict)
{
    struct live *live = live_of(context);
    enum status status = STATUS_OK;
    INVARIANTS(CHECK((qp == NULL) != (srq == NULL)));
    live_lock(live);
    if (qp != NULL) {
        post_note_time(live, qp);
    }
    if (memory_is_watched()) {
        tell_receives(live, qp != NULL ? qp_pd(qp) : srq->pd, wr, qp != NULL ? qp_number(qp) : 0);
    }
    for (; wr != NULL; wr = wr->next) {
        const int count = receive_count(wr);
        const struct sge *sges = sges_of(wr->sg_list);
        status = count < 0 ? STATUS_INVALID
                           : post_receive(qp, srq, wr->wr_id, sges, (uint32_t)count, strict);
        if (status != STATUS_OK) {
            *bad = wr;
            initialised(bad, sizeof(*bad));
            break;
        }
    }
    if (qp != NULL && UNLIKELY(qp_state_of(qp) == QP_ERR)) {
        live_flush(live); /* They are complete: somebody may wait for that. */
    }
    live_unlock(live);
    return status_errno(status);
}

int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return post_receives(ibv->context, qp_of(ibv)->core, NULL, wr, bad, false);
}

int post_recv_strictly(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return strict_if_full(post_receives(ibv->context, qp_of(ibv)->core, NULL, wr, bad, true),
                          STRICT_RECEIVE_SLOTS);
}

int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return post_receives(ibv->context, NULL, &srq_of(ibv)->core, wr, bad, false);
}

int post_srq_recv_strictly(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return strict_if_full(post_receives(ibv->context, NULL, &srq_of(ibv)->core, wr, bad, true),
                          STRICT_SRQ_SLOTS);
}

int post_srq_recv_as_wished(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct live *live = live_of(ibv->context);
    const int reason =
        live_is_strict(live) ? post_srq_recv_strictly(ibv, wr, bad) : post_srq_recv(ibv, wr, bad);
    live_lock(live);
    struct receive_queue *queue = &srq_of(ibv)->core.queue;
    if (is_odd(ODD_ORDER) && receive_queue_count(queue) >= 2 && odd_draw(ODD_ORDER, 2) == 0) {
        receive_queue_swap_newest(queue);
    }
    live_unlock(live);
    return reason;
}

int bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    if (mw == NULL || mw->type != IBV_MW_TYPE_1 || pd_core(mw->pd) != qp_pd(qp_of(ibv)->core)) {
        return EINVAL;
    }
    const uint32_t rkey = ibv_inc_rkey(mw->rkey);
    struct send_request request = {
        .wr_id = bind->wr_id, .kind = WORK_BIND_WINDOW, .flags = bind->send_flags};
    int reason = bind_request(mw, &bind->bind_info, rkey, &request.bind);
    if (reason != 0) {
        return reason;
    }
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp_of(ibv)));
    post_note_time(live, qp_of(ibv)->core);
    const bool strict = live_is_strict(live);
    reason = status_errno(strict ? slots_post_sends(qp_of(ibv)->core, &request, 1)
                                 : qp_post_send(qp_of(ibv)->core, &request));
    if (reason == 0) {
        mw->rkey = rkey;
    }
    live_posted(live, qp_of(ibv)->core);
    live_unlock(live);
    return strict ? strict_if_full(reason, STRICT_SEND_SLOTS) : reason;
}
