/* SPDX-License-Identifier: BSD-2-Clause
 *
 * posts - requests that the NIC refuses, or that end with an error. Programs that do not look at
 * what the call returns wait for a completion that never comes.
 */
#include "tests/zoo/zoo.h"

static const unsigned int SIGNALED = IBV_SEND_SIGNALED;

/* It sends before the queue pair is in RTS. Some devices take the request and drop it. */
static void post_state(bool right)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, a.cq);
    if (right) {
        join(qp, qp);
    }
    const struct message message = {.qp = qp,
                                    .opcode = IBV_WR_RDMA_READ,
                                    .flags = SIGNALED,
                                    .memory = a.memory,
                                    .to = (uintptr_t)b.memory};
    EXPECT((post(message) == 0) == right);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* A READ on a connection that has none: UC. */
static void post_kind(bool right)
{
    struct ibv_qp *qp = another_qp(right ? IBV_QPT_RC : IBV_QPT_UC, a.cq);
    if (right) {
        join(qp, qp);
    } else {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
        EXPECT(ibv_modify_qp(qp, &attr,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                 IBV_QP_ACCESS_FLAGS) == 0);
        attr = (struct ibv_qp_attr){
            .qp_state = IBV_QPS_RTR,
            .path_mtu = IBV_MTU_1024,
            .dest_qp_num = qp->qp_num,
            .ah_attr = {.is_global = 1, .grh = {.dgid = of_a.gid, .hop_limit = 1}, .port_num = 1}};
        EXPECT(ibv_modify_qp(qp, &attr,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                 IBV_QP_RQ_PSN) == 0);
        attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
        EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    }
    EXPECT((post((struct message){.qp = qp, .opcode = IBV_WR_RDMA_READ, .flags = SIGNALED}) == 0) ==
           right);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* Two SGEs, where one was asked for when the queue pair was made. */
static void sge_count(bool right)
{
    struct ibv_sge sges[2] = {{.addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey},
                              {.addr = (uintptr_t)a.memory + 8, .length = 8, .lkey = a.mr->lkey}};
    struct ibv_send_wr *bad, wr = {.sg_list = sges,
                                   .num_sge = right ? 1 : 2,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = SIGNALED,
                                   .wr.rdma = {of_b.memory, of_b.rkey}};
    EXPECT((ibv_post_send(a.qp, &wr, &bad) == 0) == right);
    take(a.cq, right);
}

/* More is sent inline than was granted. */
static void inline_length(bool right)
{
    const struct message message = {.opcode = IBV_WR_RDMA_WRITE,
                                    .bytes = right ? INLINE : 4 * INLINE,
                                    .flags = SIGNALED | IBV_SEND_INLINE};
    EXPECT((post(message) == 0) == right);
    take(a.cq, right);
}

/* An atomic is about 8 bytes at an address that is no multiple of 8. */
static void atomic_shape(bool right)
{
    struct ibv_qp_attr attr = {.qp_access_flags = VICTIM_ACCESS | IBV_ACCESS_REMOTE_ATOMIC};
    const struct message message = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                    .bytes = 8,
                                    .to = of_b.memory + (right ? 8 : 4),
                                    .flags = SIGNALED};
    EXPECT(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS) == 0);
    EXPECT((post(message) == 0) == right);
    take(a.cq, right);
}

/* A receive goes to a queue pair that has a shared queue. */
static void post_refused(bool right)
{
    struct ibv_srq_init_attr shape = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(a.pd, &shape);
    EXPECT(srq != NULL);
    struct ibv_qp_init_attr attr = {.send_cq = a.cq,
                                    .recv_cq = a.cq,
                                    .srq = srq,
                                    .cap = {.max_send_wr = SENDS, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(a.pd, &attr);
    EXPECT(qp != NULL);
    join(qp, qp);
    struct ibv_sge sge = {.addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    if (right) {
        EXPECT(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    } else {
        EXPECT(ibv_post_recv(qp, &wr, &bad) != 0);
    }
    EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0);
}

/* It posts faster than the NIC sends. Hardware answers the same, most often earlier. */
static void post_full(bool right)
{
    int refused = 0;
    for (int i = 0; i < 2 * SENDS; i++) {
        const struct message message = {.opcode = IBV_WR_SEND, .flags = SIGNALED};
        if (right) {
            receive_one();
        }
        refused += post(message) != 0; /* Without a receive none of them can be sent. */
        if (right) {
            take(a.cq, 1);
            take(b.cq, 1);
        }
    }
    EXPECT((refused > 0) != right);
}

/* The rkey is not that of the memory. */
static void request_failed(bool right)
{
    const struct message message = {.opcode = IBV_WR_RDMA_WRITE,
                                    .to = of_b.memory + (right ? 0 : VICTIM_BYTES),
                                    .flags = SIGNALED};
    EXPECT(post(message) == 0);
    EXPECT(victim_wait(&a) == (right ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
}

const struct mistake post_mistakes[] = {
    {"post-state", post_state},
    {"post-kind", post_kind},
    {"sge-count", sge_count},
    {"inline-length", inline_length},
    {"atomic-shape", atomic_shape},
    {"post-refused", post_refused},
    {"post-full", post_full},
    {"request-failed", request_failed},
    {NULL, NULL},
};
