/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_post - requests to an EFA device. Its library judges more than others do: the states, flags
 * and opcodes below, each by its errno; states are those that the program set.
 */
#include "drivers/system/poisoned.h"
#include "verbs/efa.h"

/* A receive has no more in an SGE, whatever it says: a descriptor has 16 bits for it. */
#define RECEIVE_SGE_BYTES_MAX UINT16_MAX

/* -- Sends --------------------------------------------------------------------------------------*/

int efa_judge_send(const struct ibv_qp *qp, uint32_t flags)
{
    const bool ready = qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
    const bool signaled = (flags & IBV_SEND_SIGNALED) ||
                          CONTAINER_OF_CONST(qp, struct verbs_qp, ex.qp_base)->signals_all;
    return !ready || !signaled || (flags & ~(uint32_t)(IBV_SEND_SIGNALED | IBV_SEND_INLINE)) != 0
               ? EINVAL
               : 0;
}

int efa_post_request(struct ibv_qp *ibv, const struct send_request *request)
{
    struct qp *core = qp_of(ibv)->core;
    if (memory_is_watched()) {
        post_tell_send(live_of(ibv->context), core, request->kind, request->flags & WORK_INLINE,
                       request->sges, request->sge_count);
    }
    if (!efa_take_slots(qp_of(ibv), 1)) {
        return ENOMEM;
    }
    const int reason = status_errno(qp_post_send(core, request));
    if (reason != 0) {
        efa_give_slots(qp_of(ibv), 1);
    }
    return reason;
}

/* (locked) */
static int post_one(struct ibv_qp *ibv, const struct ibv_send_wr *wr)
{
    int reason = efa_judge_send(ibv, wr->send_flags);
    if (reason == 0 && wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
        reason = EINVAL;
    }
    if (reason != 0 || wr->wr.ud.ah == NULL || wr->num_sge < 0 || wr->num_sge > NIC_SGE_MAX) {
        return EINVAL;
    }
    const struct send_request request = {
        .wr_id = wr->wr_id,
        .kind = (enum work_kind)wr->opcode,
        .flags = wr->send_flags,
        .sges = (const struct sge *)(const void *)wr->sg_list,
        .sge_count = (uint32_t)wr->num_sge,
        .immediate = wr->imm_data,
        .av = &ah_of(wr->wr.ud.ah)->av,
        .destination_qpn = efa_number_of(wr->wr.ud.remote_qpn),
        .destination_qkey = wr->wr.ud.remote_qkey,
    };
    return efa_post_request(ibv, &request);
}

int efa_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct live *live = live_of(ibv->context);
    int reason = 0;
    live_lock(live);
    INVARIANTS(verbs_qp_check(qp_of(ibv)));
    post_note_time(live, qp_of(ibv)->core);
    for (; wr != NULL && reason == 0; wr = wr->next) {
        reason = post_one(ibv, wr);
        if (reason != 0) {
            *bad = wr;
            initialised(bad, sizeof(*bad));
        }
    }
    live_posted(live, qp_of(ibv)->core);
    live_unlock(live);
    return reason;
}

/* -- Receives -----------------------------------------------------------------------------------*/

static int post_one_receive(struct ibv_qp *ibv, const struct ibv_recv_wr *wr)
{
    struct ibv_sge sges[NIC_SGE_MAX];
    struct ibv_recv_wr one = {.wr_id = wr->wr_id, .sg_list = sges, .num_sge = wr->num_sge}, *bad;
    if (ibv->state == IBV_QPS_RESET || ibv->state == IBV_QPS_ERR || wr->num_sge < 0 ||
        wr->num_sge > NIC_SGE_MAX) {
        return EINVAL;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        sges[i] = wr->sg_list[i];
        if (sges[i].length > RECEIVE_SGE_BYTES_MAX) {
            sges[i].length = RECEIVE_SGE_BYTES_MAX;
        }
    }
    return post_recv(ibv, &one, &bad);
}

int efa_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    for (; wr != NULL; wr = wr->next) {
        const int reason = post_one_receive(ibv, wr);
        if (reason != 0) {
            *bad = wr;
            initialised(bad, sizeof(*bad));
            return reason;
        }
    }
    return 0;
}
