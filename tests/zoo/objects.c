/* SPDX-License-Identifier: BSD-2-Clause
 *
 * objects - mistakes with queue pairs and other objects.
 */
#include <sys/wait.h>

#include "tests/zoo/zoo.h"

static int to_init(struct ibv_qp *qp, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

/* It forgets a bit of the mask. The call says only EINVAL, of all attributes. */
static void attributes(bool right)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, a.cq);
    const int mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | (right ? IBV_QP_ACCESS_FLAGS : 0);
    EXPECT((to_init(qp, mask) == 0) == right);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

static void connect_with(struct patience patience)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, a.cq);
    connect_to(qp, qp, patience);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* A timeout of 0 is none: if a packet is lost, both sides wait for ever. In a laboratory nothing is
 * lost. */
static void timeout_zero(bool right)
{
    struct patience patience = usual;
    patience.timeout = right ? 14 : 0;
    connect_with(patience);
}

/* No retry: one lost packet ends the connection. Programs that zero rdma_conn_param ask for it. */
static void retry_zero(bool right)
{
    struct patience patience = usual;
    patience.retries = right ? 7 : 0;
    connect_with(patience);
}

/* A peer whose message finds no receive waits 655 ms before it tries again: 0 is the longest time,
 * not the shortest. */
static void rnr_timer(bool right)
{
    struct patience patience = usual;
    patience.rnr_timer = right ? 12 : 0;
    connect_with(patience);
}

/* A peer that never posts a receive is never noticed. */
static void rnr_endless(bool right)
{
    struct patience patience = usual;
    patience.rnr_retries = right ? 6 : 7;
    connect_with(patience);
}

/* The two sides do not agree on the first PSN: each has drawn one, and says 0 of the other's.
 * Nothing is refused, and no request is ever answered. */
static void psn(bool right)
{
    struct patience patience = usual;
    patience.timeout = 8;
    patience.retries = 1;
    patience.first_psn = right ? 0 : 0x4711;
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, a.cq);
    connect_to(qp, qp, patience);
    receive_datagram(qp);
    send_one(
        (struct message){.qp = qp, .opcode = IBV_WR_SEND, .bytes = 8, .flags = IBV_SEND_SIGNALED});
    if (right) {
        take(a.cq, 2);
    } else {
        EXPECT(victim_wait(&a) == IBV_WC_RETRY_EXC_ERR);
    }
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* It destroys the queue before what uses it, and does not look at the answer: the queue is never
 * destroyed. */
static void busy(bool right)
{
    struct ibv_cq *cq = ibv_create_cq(a.context, 4, NULL, NULL, 0);
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, cq);
    if (!right) {
        EXPECT(ibv_destroy_cq(cq) != 0);
    }
    EXPECT(ibv_destroy_qp(qp) == 0);
    EXPECT(ibv_destroy_cq(cq) == 0);
}

/* It leaves a queue pair. The system takes it when the program ends; a server has fewer of them
 * with each connection. */
static void left_over(bool right)
{
    struct ibv_cq *cq = ibv_create_cq(a.context, 4, NULL, NULL, 0);
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, cq);
    if (right) {
        EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
    } else {
        exit(0);
    }
}

/* It registers memory for each message. Hardware pins each page and tells its own tables of it:
 * that costs more than the message. */
static void register_each(bool right)
{
    struct ibv_mr *mr = right ? registered(a.memory, BYTES, 0) : NULL;
    for (int i = 0; i < 1100; i++) {
        struct ibv_mr *used = right ? mr : registered(a.memory, BYTES, 0);
        send_one(
            (struct message){.opcode = IBV_WR_RDMA_WRITE, .mr = used, .flags = IBV_SEND_SIGNALED});
        take(a.cq, 1);
        if (!right) {
            EXPECT(ibv_dereg_mr(used) == 0);
        }
    }
    if (right) {
        EXPECT(ibv_dereg_mr(mr) == 0);
    }
}

/* An address without a GRH: on InfiniBand a LID was enough, on Ethernet it leads nowhere. nonic
 * finds the way to a nonic on this machine, hardware refuses it. */
static void address(bool right)
{
    struct ibv_port_attr port;
    EXPECT(ibv_query_port(a.context, 1, &port) == 0);
    struct ibv_ah_attr attr = {.is_global = right,
                               .dlid = port.lid,
                               .grh = {.dgid = of_a.gid, .hop_limit = 1},
                               .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);
    EXPECT(ah != NULL);
    EXPECT(ibv_destroy_ah(ah) == 0);
}

/* A child of fork posts to a queue pair of its parent's. Drivers of hardware leave the queue out of
 * the child's memory (ibv_fork_init), so that it ends by SIGSEGV; or both write one queue. */
static void inherited(bool right)
{
    int status;
    const struct message message = {.opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED};
    const pid_t child = fork();
    if (child == 0) {
        if (!right) {
            (void)post(message);
        }
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    send_one(message);
    take(a.cq, 1);
}

const struct mistake object_mistakes[] = {
    {"attributes", attributes},
    {"timeout-zero", timeout_zero},
    {"retry-zero", retry_zero},
    {"rnr-timer", rnr_timer},
    {"rnr-endless", rnr_endless},
    {"psn", psn},
    {"busy", busy},
    {"inherited", inherited},
    {"left-over", left_over},
    {"register-each", register_each},
    {"address", address},
    {NULL, NULL},
};
