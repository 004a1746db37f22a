/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hangs - a program of two connected queue pairs, A and B, that hangs in one of several ways, or
 * does not.
 *
 * Usage: hangs WAY, under `nonic run`. Prints "hangs A B", the numbers of the queue pairs, when it
 * does.
 */
#include "tests/hostile/victim.h"

static struct victim a, b;

static void post_receive(const struct victim *v)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory, .length = 64, .lkey = v->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(v->qp, &wr, &bad) == 0);
}

static void ask_for_event(const struct victim *v, int solicited)
{
    EXPECT(ibv_req_notify_cq(v->cq, solicited) == 0);
}

/* A's message, whose completion A takes. B takes none. */
static void send_to_b(const struct address *peer)
{
    EXPECT(victim_post(&a, IBV_WR_SEND, peer, 8) == 0);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
}

static void hang(const struct address *of_a, const struct address *of_b, const char *way)
{
    if (strcmp(way, "peer-state") == 0) {
        victim_connect(a.qp, of_b, 0, 7);
        EXPECT(victim_post(&a, IBV_WR_SEND, of_b, 8) == 0);
        return;
    }
    if (strcmp(way, "no-answer") == 0) {
        struct address nobody = *of_b;
        nobody.qpn ^= 0x800000;
        victim_connect(a.qp, &nobody, 0, 7);
        EXPECT(victim_post(&a, IBV_WR_SEND, of_b, 8) == 0);
        return;
    }
    victim_connect(a.qp, of_b, 14, 7);
    victim_connect(b.qp, of_a, 14, 7);
    if (strcmp(way, "no-receive") == 0) {
        EXPECT(victim_post(&a, IBV_WR_SEND, of_b, 8) == 0);
        ask_for_event(&a, 0);
        return;
    }
    post_receive(&a);
    post_receive(&b);
    if (strcmp(way, "both-wait") == 0) {
        ask_for_event(&a, 0);
        ask_for_event(&b, 0);
    } else if (strcmp(way, "lost-wakeup") == 0) {
        send_to_b(of_b);
        ask_for_event(&b, 0);
    } else if (strcmp(way, "not-solicited") == 0) {
        ask_for_event(&b, 1);
        send_to_b(of_b);
    } else if (strcmp(way, "not-polled") == 0) {
        send_to_b(of_b);
    } else if (strcmp(way, "error-state") == 0) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
        struct ibv_wc wc;
        EXPECT(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == 0);
        while (ibv_poll_cq(a.cq, 1, &wc) > 0) {
        }
    }
}

/* Messages to and fro, each polled for, for ever. */
static void work(const struct address *of_b)
{
    for (;;) {
        send_to_b(of_b);
        EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
        post_receive(&b);
    }
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    victim_open(&a);
    victim_open(&b);
    const struct address of_a = victim_address(&a), of_b = victim_address(&b);
    hang(&of_a, &of_b, argv[1]);
    printf("hangs %u %u\n", a.qp->qp_num, b.qp->qp_num);
    fflush(stdout);
    if (strcmp(argv[1], "works") == 0) {
        work(&of_b);
    }
    struct ibv_cq *cq;
    void *context;
    EXPECT(ibv_get_cq_event(b.channel, &cq, &context) == 0);
    return 0;
}
