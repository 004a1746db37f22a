/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_context - what an EFA device's context has in place of a RoCE device's: it has no shared
 * receive queues, XRC, memory windows, device memory, on-demand paging or clocks, and other ways to
 * post and to poll.
 *
 * The calls that make an object fail, so those that take one never get one. Calls by symbol are
 * refused where they are.
 */
#include "verbs/efa.h"
#include "verbs/refusals.h"

REFUSE_POINTER(struct ibv_srq, no_srq, U struct ibv_context *context,
               U struct ibv_srq_init_attr_ex *attr)
REFUSE_POINTER(struct ibv_xrcd, no_xrcd, U struct ibv_context *context,
               U struct ibv_xrcd_init_attr *attr)
REFUSE_POINTER(struct ibv_qp, no_open_qp, U struct ibv_context *context,
               U struct ibv_qp_open_attr *attr)
REFUSE_POINTER(struct ibv_dm, no_dm, U struct ibv_context *context,
               U struct ibv_alloc_dm_attr *attr)
REFUSE_POINTER(struct ibv_mr, no_null_mr, U struct ibv_pd *pd)
REFUSE_POINTER(struct ibv_mw, no_mw, U struct ibv_pd *pd, U enum ibv_mw_type type)
REFUSE_INT(no_advice, U struct ibv_pd *pd, U enum ibv_advise_mr_advice advice, U uint32_t flags,
           U struct ibv_sge *sges, U uint32_t count)
REFUSE_INT(no_clock, U struct ibv_context *context, U struct ibv_values_ex *values)

void efa_fill_slots(struct verbs_context *verbs)
{
    verbs->create_srq_ex = no_srq;
    verbs->open_xrcd = no_xrcd;
    verbs->open_qp = no_open_qp;
    verbs->alloc_dm = no_dm;
    verbs->alloc_null_mr = no_null_mr;
    verbs->context.ops.alloc_mw = no_mw;
    verbs->advise_mr = no_advice;
    verbs->query_rt_values = no_clock;
    verbs->context.ops.post_send = efa_post_send;
    verbs->context.ops.post_recv = efa_post_recv;
    verbs->context.ops.poll_cq = efa_poll_cq;
    verbs->context.ops.req_notify_cq = efa_request_notify;
}
