/* SPDX-License-Identifier: BSD-2-Clause
 *
 * messages - one process with two connected queue pairs, for callgrind: how many instructions a
 * message takes, at both ends together.
 *
 * Usage: messages WAY BYTES COUNT
 *   send   SEND, its receive and both completions
 *   write  RDMA WRITE and its completion
 *   read   RDMA READ and its completion
 *   pong   one way of a ping-pong of SENDs: post, poll the receive, post another one
 *   srq    the same with shared receives
 *   idle   polls of an empty completion queue
 *
 * nonic's thread would look now and then whether the program still polls, and take over under
 * valgrind, which is slow: it sleeps instead (ppoll below).
 */
#include <poll.h>
#include <sys/syscall.h>
#include <valgrind/callgrind.h>

#include "tests/hostile/victim.h"

enum {
    ALONE = 1000,  /* Messages until nonic's thread sleeps. */
    WARM = 8000,   /* Messages until we count: rings and habits are as later on, and nonic's lock is
                      the program's (LOCK_TO_BELIEVE). */
    RECEIVES = 64, /* Posted at each end. */
    SIGNALED = 16, /* SENDs of a ping-pong, of which one is signaled. */
    INLINE = 64,
    PLACE = 1 << 20, /* Bytes of each end's memory. */
};

static volatile bool alone;

/* In place of the C library's, for nonic's thread. */
int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    return (int)syscall(SYS_ppoll, files, count, alone ? NULL : timeout, mask, 8);
}

struct end {
    struct ibv_cq *cq;
    struct ibv_srq *srq; /* NULL: its own receives. */
    struct ibv_qp *qp;
    char *memory;
    uint64_t remote; /* The other end's memory. */
};

static struct victim own; /* The device, and one region for both ends. */
static struct end ends[2];

static void make_end(struct end *end, bool shared)
{
    struct ibv_srq_init_attr shape = {.attr = {.max_wr = 2 * RECEIVES, .max_sge = 1}};
    EXPECT((end->cq = ibv_create_cq(own.context, 512, NULL, NULL, 0)) != NULL);
    EXPECT(!shared || (end->srq = ibv_create_srq(own.pd, &shape)) != NULL);
    struct ibv_qp_init_attr attr = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .srq = end->srq,
                                    .cap = {.max_send_wr = 128,
                                            .max_recv_wr = shared ? 0 : 2 * RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = shared ? 0 : 1,
                                            .max_inline_data = INLINE},
                                    .qp_type = IBV_QPT_RC};
    EXPECT((end->qp = ibv_create_qp(own.pd, &attr)) != NULL);
}

static void make_ends(bool shared)
{
    const struct patience patience = {
        .timeout = 14, .retries = 7, .rnr_retries = 7, .rnr_timer = 12};
    victim_open(&own);
    char *memory = aligned_alloc(4096, 2 * PLACE);
    EXPECT(memory != NULL);
    memset(memory, 1, 2 * PLACE);
    EXPECT((own.mr = ibv_reg_mr(own.pd, memory, 2 * PLACE, VICTIM_ACCESS)) != NULL);
    for (int i = 0; i < 2; i++) {
        make_end(&ends[i], shared);
        ends[i].memory = memory + i * PLACE;
        ends[i].remote = (uintptr_t)memory + (uint64_t)!i * PLACE;
    }
    for (int i = 0; i < 2; i++) {
        struct address peer = victim_address(&own);
        peer.qpn = ends[!i].qp->qp_num;
        victim_connect_with(ends[i].qp, &peer, patience);
    }
}

static void post(const struct end *end, enum ibv_wr_opcode opcode, uint32_t bytes, bool signaled)
{
    const bool fits = opcode != IBV_WR_RDMA_READ && bytes <= INLINE;
    struct ibv_sge sge = {.addr = (uintptr_t)end->memory, .length = bytes, .lkey = own.mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .opcode = opcode,
              .send_flags = (signaled ? IBV_SEND_SIGNALED : 0U) | (fits ? IBV_SEND_INLINE : 0U),
              .wr.rdma = {end->remote, own.mr->rkey}};
    EXPECT(ibv_post_send(end->qp, &wr, &bad) == 0);
}

static void receive(const struct end *end, uint32_t bytes)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)end->memory + PLACE / 2, .length = bytes, .lkey = own.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    EXPECT((end->srq == NULL ? ibv_post_recv(end->qp, &wr, &bad)
                             : ibv_post_srq_recv(end->srq, &wr, &bad)) == 0);
}

/* Polls until a completion of this kind comes; others are those of signaled SENDs. */
static void take(const struct end *end, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;
    do {
        while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
        }
        EXPECT(wc.status == IBV_WC_SUCCESS);
    } while (wc.opcode != opcode);
}

static void send_one(uint32_t bytes, int number)
{
    (void)number;
    receive(&ends[1], bytes);
    post(&ends[0], IBV_WR_SEND, bytes, true);
    take(&ends[1], IBV_WC_RECV);
    take(&ends[0], IBV_WC_SEND);
}

static void write_one(uint32_t bytes, int number)
{
    (void)number;
    post(&ends[0], IBV_WR_RDMA_WRITE, bytes, true);
    take(&ends[0], IBV_WC_RDMA_WRITE);
}

static void read_one(uint32_t bytes, int number)
{
    (void)number;
    post(&ends[0], IBV_WR_RDMA_READ, bytes, true);
    take(&ends[0], IBV_WC_RDMA_READ);
}

static void one_way(uint32_t bytes, int number)
{
    const struct end *from = &ends[number & 1], *to = &ends[!(number & 1)];
    post(from, IBV_WR_SEND, bytes, number / 2 % SIGNALED == 0);
    take(to, IBV_WC_RECV);
    receive(to, bytes);
}

/* A poll of a device that has had something to do: its rings are there. */
static void poll_once(uint32_t bytes, int number)
{
    struct ibv_wc wc;
    if (number < WARM) {
        write_one(bytes, number);
        return;
    }
    EXPECT(ibv_poll_cq(ends[0].cq, 1, &wc) == 0);
}

static const struct {
    const char *name;
    void (*message)(uint32_t bytes, int number);
    bool shared, receives;
} ways[] = {
    {"send", send_one, false, false}, {"write", write_one, false, false},
    {"read", read_one, false, false}, {"pong", one_way, false, true},
    {"srq", one_way, true, true},     {"idle", poll_once, false, false},
};

int main(int argc, char **argv)
{
    size_t way = 0;
    EXPECT(argc == 4);
    while (strcmp(argv[1], ways[way].name) != 0) {
        EXPECT(++way < sizeof(ways) / sizeof(ways[0]));
    }
    const uint32_t bytes = (uint32_t)atoi(argv[2]);
    const int count = atoi(argv[3]);
    EXPECT(bytes <= PLACE / 2 && count > 0);
    make_ends(ways[way].shared);
    for (int i = 0; ways[way].receives && i < 2 * RECEIVES; i++) {
        receive(&ends[i & 1], bytes);
    }
    for (int i = 0; i < WARM + count; i++) {
        if (i == ALONE) {
            alone = true;
        }
        if (i == WARM) {
            CALLGRIND_TOGGLE_COLLECT;
        }
        ways[way].message(bytes, i);
    }
    CALLGRIND_TOGGLE_COLLECT;
    alone = false;
    _exit(0);
}
