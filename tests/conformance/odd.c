/* SPDX-License-Identifier: BSD-2-Clause
 *
 * odd - a program that relies on what no document promises, and its right twin: under `nonic run
 * --odd` the first breaks.
 *
 * Usage: odd MISTAKE [right], under `nonic run --odd=SEED`. Status 1: it broke.
 */
#include <poll.h>

#include "tests/hostile/victim.h"

enum {
    ROUNDS = 40
};

static struct victim v;
static struct address self;
static bool is_right;

static void receive(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v.memory + 64, .length = 64, .lkey = v.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(v.qp, &wr, &bad) == 0);
}

static struct ibv_wc wait_for_one(void)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(v.cq, 1, &wc) == 0) {
    }
    return wc;
}

/* It tells sends from receives by the opcode of a completion that failed. */
static void opcode(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    EXPECT(ibv_modify_qp(v.qp, &attr, IBV_QP_STATE) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        receive();
        const struct ibv_wc wc = wait_for_one();
        EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR);
        EXPECT(is_right ? wc.wr_id == 2 : wc.opcode == IBV_WC_RECV);
    }
}

/* It takes an immediate value of 0 for none. */
static void immediate(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        receive();
        EXPECT(victim_post(&v, IBV_WR_SEND, &self, 8) == 0);
        for (int j = 0; j < 2; j++) {
            const struct ibv_wc wc = wait_for_one();
            EXPECT(wc.status == IBV_WC_SUCCESS);
            EXPECT(is_right ? !(wc.wc_flags & IBV_WC_WITH_IMM) : wc.imm_data == 0);
        }
    }
}

/* An event, if there is one. */
static bool take_event(int wait_ms)
{
    struct pollfd ready = {.fd = v.channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    if (poll(&ready, 1, wait_ms) != 1) {
        return false;
    }
    EXPECT(ibv_get_cq_event(v.channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
    return true;
}

/* It takes an event for a completion: there is none before the message. */
static void event(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
        const bool came = take_event(0);
        EXPECT(is_right || !came || ibv_poll_cq(v.cq, 1, &wc) == 1);
        EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &self, 8) == 0);
        EXPECT(take_event(5000));
        EXPECT(wait_for_one().status == IBV_WC_SUCCESS);
    }
}

/* It counts on a post that is refused at exactly what it asked for. */
static void capacity(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = v.cq,
            .recv_cq = v.cq,
            .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp = ibv_create_qp(v.pd, &attr);
        EXPECT(qp != NULL);
        EXPECT(is_right ? attr.cap.max_send_wr >= 16 : attr.cap.max_send_wr == 16);
        EXPECT(ibv_destroy_qp(qp) == 0);
    }
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"opcode", opcode}, {"immediate", immediate}, {"event", event}, {"capacity", capacity}};

int main(int argc, char **argv)
{
    EXPECT(argc >= 2);
    is_right = argc == 3;
    victim_open(&v);
    self = victim_address(&v);
    victim_connect(v.qp, &self, 14, 7);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        if (strcmp(mistakes[i].name, argv[1]) == 0) {
            mistakes[i].make();
        }
    }
    return 0;
}
