/* SPDX-License-Identifier: BSD-2-Clause
 *
 * abi_check - the layouts programs were compiled with, and the numbers the NIC shares with them.
 */
#include "verbs/internal.h"
#include "verbs/newer.h"

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define OFFSET(type, field, bytes)                                                                 \
    _Static_assert(offsetof(struct type, field) == (bytes), #type "." #field)
/* rdma-core appends fields to some structures; those that we know stay where they are. */
#define END(type, field, bytes)                                                                    \
    _Static_assert(offsetof(struct type, field) + sizeof(((struct type *)NULL)->field) == (bytes), \
                   #type)
/* It grows at its beginning. */
#define BEFORE_CONTEXT(field, bytes)                                                               \
    _Static_assert(offsetof(struct verbs_context, context) -                                       \
                           offsetof(struct verbs_context, field) ==                                \
                       (bytes),                                                                    \
                   "verbs_context." #field)
/* Its size is the processor's: 40 on x86-64, 48 on arm64. */
#define MUTEX              sizeof(pthread_mutex_t)
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

BEFORE_CONTEXT(query_port, 320);
BEFORE_CONTEXT(priv, 112);
BEFORE_CONTEXT(sz, 8);
SIZE(ibv_context, 288 + MUTEX);
OFFSET(ibv_context, ops, 8);
OFFSET(ibv_context, ops.alloc_mw, 64);
OFFSET(ibv_context, ops.poll_cq, 96);
OFFSET(ibv_context, ops.req_notify_cq, 104);
OFFSET(ibv_context, ops.post_srq_recv, 168);
OFFSET(ibv_context, ops.post_send, 208);
OFFSET(ibv_context, ops.post_recv, 216);
OFFSET(ibv_context, cmd_fd, 264);
OFFSET(ibv_context, async_fd, 268);
OFFSET(ibv_context, abi_compat, 280 + MUTEX);
SIZE(ibv_device, 664);
OFFSET(ibv_device, name, 24);
OFFSET(ibv_device, dev_name, 88);
OFFSET(ibv_device, dev_path, 152);
OFFSET(ibv_device, ibdev_path, 408);
SIZE(ibv_pd, 16);
SIZE(ibv_mr, 48);
SIZE(ibv_ah, 24);
SIZE(ibv_mw, 32);
SIZE(ibv_comp_channel, 16);
SIZE(ibv_srq, 88 + MUTEX);
SIZE(ibv_cq, 88 + MUTEX);
SIZE(ibv_cq_ex, 248 + MUTEX);
SIZE(ibv_qp, 120 + MUTEX);
END(ibv_qp_ex, wr_atomic_write, 312 + MUTEX);
OFFSET(qp_ex_45, wr_flush, 312 + MUTEX);
OFFSET(verbs_qp, newer, offsetof(struct verbs_qp, ex));
SIZE(ibv_wc, 48);
SIZE(ibv_send_wr, 128);
SIZE(ibv_recv_wr, 32);
SIZE(ibv_device_attr, 232);
SIZE(ibv_device_attr_ex, 400);
END(ibv_port_attr, port_cap_flags2, 50);
SIZE(ibv_qp_attr, 144);
SIZE(ibv_qp_init_attr, 64);
SIZE(ibv_qp_init_attr_ex, 136);
SIZE(ibv_gid_entry, 32);
SIZE(port_attr_49, 56);
OFFSET(port_attr_49, active_speed_ex, 52);
SIZE(mr_init_attr_59, 72);
OFFSET(mr_init_attr_59, iova, 24);
OFFSET(mr_init_attr_59, fd_offset, 48);
OFFSET(mr_init_attr_59, buf, 64);

SAME(QP_RC, IBV_QPT_RC);
SAME(QP_UC, IBV_QPT_UC);
SAME(QP_UD, IBV_QPT_UD);
SAME(QP_XRC_INITIATOR, IBV_QPT_XRC_SEND);
SAME(QP_XRC_TARGET, IBV_QPT_XRC_RECV);
SAME(QP_RESET, IBV_QPS_RESET);
SAME(QP_RTR, IBV_QPS_RTR);
SAME(QP_ERR, IBV_QPS_ERR);
SAME(QP_ATTR_STATE, IBV_QP_STATE);
SAME(QP_ATTR_CUR_STATE, IBV_QP_CUR_STATE);
SAME(QP_ATTR_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ATTR_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(QP_ATTR_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(QP_ATTR_PORT, IBV_QP_PORT);
SAME(QP_ATTR_QKEY, IBV_QP_QKEY);
SAME(QP_ATTR_AV, IBV_QP_AV);
SAME(QP_ATTR_PATH_MTU, IBV_QP_PATH_MTU);
SAME(QP_ATTR_TIMEOUT, IBV_QP_TIMEOUT);
SAME(QP_ATTR_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(QP_ATTR_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(QP_ATTR_RQ_PSN, IBV_QP_RQ_PSN);
SAME(QP_ATTR_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(QP_ATTR_ALT_PATH, IBV_QP_ALT_PATH);
SAME(QP_ATTR_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(QP_ATTR_SQ_PSN, IBV_QP_SQ_PSN);
SAME(QP_ATTR_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(QP_ATTR_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(QP_ATTR_CAP, IBV_QP_CAP);
SAME(QP_ATTR_DEST_QPN, IBV_QP_DEST_QPN);
SAME(QP_ATTR_RATE_LIMIT, IBV_QP_RATE_LIMIT);
SAME(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
SAME(ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_GLOBAL);
SAME(ACCESS_FLUSH_PERSISTENT, IBV_ACCESS_FLUSH_PERSISTENT);
SAME(ROCE_PLACEMENT_GLOBAL, IBV_FLUSH_GLOBAL);
SAME(ROCE_PLACEMENT_PERSISTENT, IBV_FLUSH_PERSISTENT);
SAME(ROCE_SELECT_RANGE, IBV_FLUSH_RANGE);
SAME(ROCE_SELECT_REGION, IBV_FLUSH_MR);

#define SAME_WORK(argument, name, number, verbs, completion, traits)                               \
    SAME(WORK_##name, IBV_WR_##verbs);
#define SAME_COMPLETION(argument, name, number, verbs) SAME(COMPLETION_##name, IBV_WC_##verbs);
/* clang-format off */
WORK_KINDS(SAME_WORK, 0)
COMPLETION_KINDS(SAME_COMPLETION, 0)
/* clang-format on */

SAME(WORK_FENCE, IBV_SEND_FENCE);
SAME(WORK_SIGNALED, IBV_SEND_SIGNALED);
SAME(WORK_SOLICITED, IBV_SEND_SOLICITED);
SAME(WORK_INLINE, IBV_SEND_INLINE);
SAME(COMPLETION_LOCAL_LENGTH, IBV_WC_LOC_LEN_ERR);
SAME(COMPLETION_LOCAL_PROTECTION, IBV_WC_LOC_PROT_ERR);
SAME(COMPLETION_FLUSHED, IBV_WC_WR_FLUSH_ERR);
SAME(COMPLETION_WINDOW_BIND, IBV_WC_MW_BIND_ERR);
SAME(COMPLETION_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR);
SAME(COMPLETION_REMOTE_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR);
SAME(COMPLETION_REMOTE_ACCESS, IBV_WC_REM_ACCESS_ERR);
SAME(COMPLETION_REMOTE_OPERATION, IBV_WC_REM_OP_ERR);
SAME(COMPLETION_RETRY_EXCEEDED, IBV_WC_RETRY_EXC_ERR);
SAME(COMPLETION_RNR_RETRY_EXCEEDED, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(COMPLETION_HAS_GRH, IBV_WC_GRH);
SAME(COMPLETION_HAS_IMMEDIATE, IBV_WC_WITH_IMM);
SAME(COMPLETION_HAS_INVALIDATE, IBV_WC_WITH_INV);
SAME(PATH_MTU_256, IBV_MTU_256);
SAME(PATH_MTU_4096, IBV_MTU_4096);
SAME(NIC_EVENT_CQ_ERROR, IBV_EVENT_CQ_ERR);
SAME(NIC_EVENT_QP_REQUEST_ERROR, IBV_EVENT_QP_REQ_ERR);
SAME(NIC_EVENT_QP_ACCESS_ERROR, IBV_EVENT_QP_ACCESS_ERR);
SAME(NIC_EVENT_COMMUNICATION_ESTABLISHED, IBV_EVENT_COMM_EST);
SAME(NIC_EVENT_SQ_DRAINED, IBV_EVENT_SQ_DRAINED);
SAME(NIC_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED);
SAME(NIC_EVENT_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED);
