/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/api/efa_program.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs/efa_newer.h"

int efa_open(void **state)
{
    struct efa *efa = calloc(1, sizeof(*efa));
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list[0]);
    efa->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(efa->context);
    efa->memory = aligned_alloc(4096, EFA_MEMORY_BYTES);
    efa->pd = ibv_alloc_pd(efa->context);
    efa->cq = ibv_create_cq(efa->context, 64, NULL, NULL, 0);
    efa->mr = ibv_reg_mr(efa->pd, efa->memory, EFA_MEMORY_BYTES, IBV_ACCESS_LOCAL_WRITE);
    *state = efa;
    return efa->pd == NULL || efa->cq == NULL || efa->mr == NULL ||
           ibv_query_gid(efa->context, 1, 0, &efa->gid) != 0;
}

int efa_close(void **state)
{
    struct efa *efa = *state;
    assert_int_equal(ibv_dereg_mr(efa->mr), 0);
    assert_int_equal(ibv_destroy_cq(efa->cq), 0);
    assert_int_equal(ibv_dealloc_pd(efa->pd), 0);
    assert_int_equal(ibv_close_device(efa->context), 0);
    free(efa->memory);
    free(efa);
    return 0;
}

static const struct ibv_qp_cap usual = {.max_send_wr = 4,
                                        .max_recv_wr = 4,
                                        .max_send_sge = 2,
                                        .max_recv_sge = 2,
                                        .max_inline_data = 32};

struct ibv_qp *efa_queue_pair(struct efa *efa, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = usual, .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(efa->pd, &attr);
    assert_non_null(qp);
    return qp;
}

struct ibv_qp *efa_queue_pair_srd(struct efa *efa, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = usual, .qp_type = IBV_QPT_DRIVER};
    struct ibv_qp *qp = efadv_create_driver_qp(efa->pd, &attr, EFA_QP_TYPE_SRD);
    assert_non_null(qp);
    return qp;
}

struct ibv_qp *efa_queue_pair_ex(struct efa *efa, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = usual,
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = efa->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM};
    struct ibv_qp *qp = ibv_create_qp_ex(efa->context, &attr);
    assert_non_null(qp);
    return qp;
}

int efa_modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {
        .qp_state = state, .cur_qp_state = qp->state, .port_num = 1, .qkey = EFA_QKEY};
    return ibv_modify_qp(qp, &attr, mask);
}

void efa_lead(struct ibv_qp *qp, enum ibv_qp_state state)
{
    static const int masks[] = {[IBV_QPS_INIT] =
                                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
                                [IBV_QPS_RTR] = IBV_QP_STATE,
                                [IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN,
                                [IBV_QPS_SQD] = IBV_QP_STATE};
    const enum ibv_qp_state last = state == IBV_QPS_ERR ? IBV_QPS_INIT : state;
    for (enum ibv_qp_state next = IBV_QPS_INIT; next <= last; next++) {
        assert_int_equal(efa_modify(qp, next, masks[next]), 0);
    }
    if (state == IBV_QPS_ERR) {
        assert_int_equal(efa_modify(qp, state, IBV_QP_STATE), 0);
    }
}

struct ibv_ah *efa_handle(struct efa *efa)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = efa->gid}};
    struct ibv_ah *ah = ibv_create_ah(efa->pd, &attr);
    assert_non_null(ah);
    return ah;
}

int efa_send(struct efa *efa, struct ibv_qp *from, const struct ibv_qp *to, struct ibv_ah *ah,
             uint32_t bytes, unsigned int flags)
{
    struct ibv_sge sge = {.addr = (uintptr_t)efa->memory, .length = bytes, .lkey = efa->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = to->qp_num;
    wr.wr.ud.remote_qkey = EFA_QKEY;
    return ibv_post_send(from, &wr, &bad);
}

int efa_receive(struct efa *efa, struct ibv_qp *qp, uint32_t offset, uint32_t bytes)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)efa->memory + offset, .length = bytes, .lkey = efa->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 88, .sg_list = &sge, .num_sge = 1};
    return ibv_post_recv(qp, &wr, &bad);
}

struct ibv_wc efa_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc = {0};
    int found = 0;
    for (const time_t end = time(NULL) + 20; found == 0 && time(NULL) < end;) {
        found = ibv_poll_cq(cq, 1, &wc);
    }
    assert_int_equal(found, 1);
    return wc;
}
