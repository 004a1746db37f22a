/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_qp - queue pairs of an EFA device: what they may be made with, each refusal by its errno, and
 * how their capacities are rounded.
 */
#include "base/bits.h"
#include "verbs/efa.h"

/* UD sends these, and SRD those as well. */
#define SEND_OPS_UD ((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))
#define SEND_OPS_SRD                                                                               \
    (SEND_OPS_UD | (uint64_t)(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |               \
                              IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM))

/* -- Creation -----------------------------------------------------------------------------------*/

/* In the order of rdma-core's efa_check_qp_attr. */
static int judge_attributes(const struct ibv_qp_init_attr_ex *attr,
                            const struct efa_qp_init_attr *efa)
{
    if (attr->qp_type == IBV_QPT_DRIVER && efa->driver_qp_type != EFA_QP_TYPE_SRD) {
        return EOPNOTSUPP;
    }
    if (efa->flags & ~(uint32_t)(EFA_QP_UNSOLICITED_WRITE_RECV | EFA_QP_INLINE_WRITE)) {
        return EOPNOTSUPP;
    }
    if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
        return EOPNOTSUPP;
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
        return EINVAL;
    }
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
        (attr->send_ops_flags & ~(attr->qp_type == IBV_QPT_DRIVER ? SEND_OPS_SRD : SEND_OPS_UD))) {
        return EOPNOTSUPP;
    }
    if (efa->wr_flags & ~(uint64_t)EFA_WR_WITH_HINTS) {
        return EOPNOTSUPP;
    }
    return attr->recv_cq == NULL || attr->send_cq == NULL || attr->srq != NULL ? EINVAL : 0;
}

/* Each takes a descriptor for each of its SGEs. */
uint32_t efa_receives_max(const struct nic_limits *limits, uint32_t sges)
{
    return sges == 0 ? limits->receives_per_qp : limits->receives_per_qp / sges;
}

static int judge_capacity(const struct nic_limits *limits, const struct ibv_qp_cap *cap)
{
    return cap->max_send_sge > limits->sges || cap->max_recv_sge > limits->sges ||
                   cap->max_send_wr > limits->sends_per_qp ||
                   cap->max_recv_wr > efa_receives_max(limits, cap->max_recv_sge) ||
                   cap->max_inline_data > limits->inline_bytes
               ? EINVAL
               : 0;
}

static uint32_t rounded(uint32_t count)
{
    return count == 0 ? 0 : (uint32_t)power_of_two(count);
}

/* A queue of sends has 2^n requests, a queue of receives 2^n descriptors. */
void efa_round_capacity(struct ibv_qp_cap *cap)
{
    cap->max_send_wr = rounded(cap->max_send_wr);
    if (cap->max_recv_sge > 0) {
        cap->max_recv_wr = rounded(cap->max_recv_wr * cap->max_recv_sge) / cap->max_recv_sge;
    }
}

int efa_judge_qp(const struct nic_limits *limits, const struct ibv_qp_init_attr_ex *attr,
                 const struct efa_qp_init_attr *efa)
{
    static const struct efa_qp_init_attr none;
    if (efa == NULL && attr->qp_type != IBV_QPT_UD) {
        return EOPNOTSUPP;
    }
    const int reason = judge_attributes(attr, efa == NULL ? &none : efa);
    return reason != 0 ? reason : judge_capacity(limits, &attr->cap);
}

/* -- Attributes ---------------------------------------------------------------------------------*/

int efa_judge_modify(const struct ibv_qp_attr *attr, uint32_t mask)
{
    const uint32_t known = QP_ATTR_STATE | QP_ATTR_CUR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY |
                           QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY | QP_ATTR_SQ_PSN |
                           QP_ATTR_RNR_RETRY;
    const bool leaves = (mask & QP_ATTR_STATE) &&
                        (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR);
    const bool works = attr->cur_qp_state >= IBV_QPS_RTR && attr->cur_qp_state <= IBV_QPS_SQE;
    if (mask & ~known) {
        return EOPNOTSUPP;
    }
    return (mask & QP_ATTR_CUR_STATE) && (leaves || !works) ? EINVAL : 0;
}

/* -- Slots of send queues -----------------------------------------------------------------------*/

/* By the lower half of a number: none are alike. */
static struct place {
    struct verbs_qp *qp;      /* (locked) */
    _Atomic int32_t unpolled; /* Sends whose completions were not polled; each has a slot. */
} table[256];

static struct place *place_of(uint32_t qpn)
{
    return &table[qpn % COUNT_OF(table)];
}

void efa_qp_made(struct verbs_qp *qp)
{
    struct live *live = live_of(qp->ex.qp_base.context);
    struct place *place = place_of(qp->ex.qp_base.qp_num);
    live_lock(live);
    place->qp = qp;
    atomic_store(&place->unpolled, 0);
    live_unlock(live);
}

void efa_qp_gone(struct verbs_qp *qp)
{
    struct live *live = live_of(qp->ex.qp_base.context);
    struct place *place = place_of(qp->ex.qp_base.qp_num);
    live_lock(live);
    place->qp = place->qp == qp ? NULL : place->qp;
    live_unlock(live);
}

bool efa_take_slots(struct verbs_qp *qp, uint32_t count)
{
    const int32_t room = (int32_t)qp_capacity_of(qp->core).sends;
    struct place *place = place_of(qp->ex.qp_base.qp_num);
    if (atomic_fetch_add(&place->unpolled, (int32_t)count) + (int32_t)count <= room) {
        return true;
    }
    efa_give_slots(qp, count);
    return false;
}

void efa_give_slots(struct verbs_qp *qp, uint32_t count)
{
    atomic_fetch_sub(&place_of(qp->ex.qp_base.qp_num)->unpolled, (int32_t)count);
}

void efa_qp_reset(struct verbs_qp *qp)
{
    atomic_store(&place_of(qp->ex.qp_base.qp_num)->unpolled, 0);
}

void efa_send_polled(uint32_t qpn)
{
    struct place *place = place_of(qpn);
    if (place->qp != NULL && place->qp->ex.qp_base.qp_num == qpn &&
        atomic_load(&place->unpolled) > 0) {
        efa_give_slots(place->qp, 1);
    }
}
