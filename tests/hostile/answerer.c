/* SPDX-License-Identifier: BSD-2-Clause
 *
 * answerer - a UD server that answers whoever writes to it, and remembers nobody: a victim of
 * strangers.
 *
 * Prints its address and queue pair number, then, after each 1,000 datagrams, how many there were.
 */
#include <arpa/inet.h>

#include "tests/hostile/victim.h"

#define QKEY      0x11111111
#define RECEIVES  256
#define SENDS     64
#define GRH_BYTES 40
#define BYTES     (GRH_BYTES + 64)

static char memory[RECEIVES][BYTES];

static struct ibv_qp *make_ready(struct victim *v)
{
    struct ibv_qp_init_attr wanted = {.send_cq = v->cq,
                                      .recv_cq = v->cq,
                                      .cap = {.max_send_wr = SENDS,
                                              .max_recv_wr = RECEIVES,
                                              .max_send_sge = 1,
                                              .max_recv_sge = 1},
                                      .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(v->pd, &wanted);
    EXPECT(qp != NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
           0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    return qp;
}

static void receive(struct ibv_qp *qp, uint32_t key, uint64_t index)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory[index], .length = BYTES, .lkey = key};
    struct ibv_recv_wr *bad, wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(qp, &wr, &bad) == 0);
}

/* The address handle is gone when the answer may still wait in the send queue. */
static void answer(struct victim *v, struct ibv_qp *qp, struct ibv_wc *wc)
{
    struct ibv_grh *grh = (struct ibv_grh *)(void *)memory[wc->wr_id];
    struct ibv_ah *ah = ibv_create_ah_from_wc(v->pd, wc, grh, 1);
    EXPECT(ah != NULL);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = wc->src_qp;
    wr.wr.ud.remote_qkey = QKEY;
    EXPECT(ibv_post_send(qp, &wr, &bad) == 0);
    EXPECT(ibv_destroy_ah(ah) == 0);
}

int main(void)
{
    struct victim v;
    victim_open(&v);
    EXPECT((v.cq = ibv_create_cq(v.context, RECEIVES + SENDS, NULL, NULL, 0)) != NULL);
    struct ibv_mr *mr = ibv_reg_mr(v.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    EXPECT(mr != NULL);
    struct ibv_qp *qp = make_ready(&v);
    for (uint64_t i = 0; i < RECEIVES; i++) {
        receive(qp, mr->lkey, i);
    }
    const struct address own = victim_address(&v);
    char text[INET_ADDRSTRLEN];
    printf("%s %u\n", inet_ntop(AF_INET, own.gid.raw + 12, text, sizeof(text)), qp->qp_num);
    fflush(stdout);
    for (uint32_t count = 0, waiting = 0;;) {
        struct ibv_wc wc;
        if (ibv_poll_cq(v.cq, 1, &wc) == 0) {
            continue;
        }
        EXPECT(wc.status == IBV_WC_SUCCESS);
        if (wc.opcode & IBV_WC_RECV) {
            if (waiting < SENDS) { /* Else it gets no answer. */
                answer(&v, qp, &wc);
                waiting++;
            }
            receive(qp, mr->lkey, wc.wr_id);
            if (++count % 1000 == 0) {
                printf("%u\n", count);
                fflush(stdout);
            }
        } else {
            waiting--;
        }
    }
}
