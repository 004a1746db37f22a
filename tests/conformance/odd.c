/* SPDX-License-Identifier: BSD-2-Clause
 *
 * odd - a program that relies on what no document promises, and its right twin: under `nonic run
 * --odd` the first breaks.
 *
 * Usage: odd MISTAKE [right], under `nonic run --odd=SEED`. Status 1: it broke.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

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

/* Its own SENDs, each with what it sends and what it receives. */
static void each_message(void (*look)(const struct ibv_wc *wc))
{
    for (int i = 0; i < ROUNDS; i++) {
        receive();
        EXPECT(victim_post(&v, IBV_WR_SEND, &self, 8) == 0);
        for (int j = 0; j < 2; j++) {
            const struct ibv_wc wc = wait_for_one();
            EXPECT(wc.status == IBV_WC_SUCCESS);
            look(&wc);
        }
    }
}

/* It adds up what it has sent by the completions. */
static void look_at_length(const struct ibv_wc *wc)
{
    EXPECT((is_right && wc->opcode == IBV_WC_SEND) || wc->byte_len == 8);
}

static void length(void)
{
    each_message(look_at_length);
}

/* It skips 40 bytes where a flag says so, whatever its queue pair is. */
static void look_at_flag(const struct ibv_wc *wc)
{
    EXPECT(is_right || !(wc->wc_flags & IBV_WC_GRH));
}

static void flag(void)
{
    each_message(look_at_flag);
}

/* It compares the source of all messages with the last one's. */
static void look_at_source(const struct ibv_wc *wc)
{
    static uint32_t last;
    if (wc->opcode == IBV_WC_RECV) {
        EXPECT(is_right || last == 0 || wc->src_qp == last);
        last = wc->src_qp;
    }
}

static void source(void)
{
    each_message(look_at_source);
}

/* It knows what its usual device says about an error. */
static void vendor(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    EXPECT(ibv_modify_qp(v.qp, &attr, IBV_QP_STATE) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        receive();
        const struct ibv_wc wc = wait_for_one();
        EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR);
        EXPECT(is_right || wc.vendor_err == 0);
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

/* It takes an event for a completion: the one that it polled was there before it asked. */
static void event(void)
{
    EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
    EXPECT(!take_event(0)); /* There was no completion yet. */
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &self, 8) == 0);
        EXPECT(take_event(5000));
        EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
        EXPECT(wait_for_one().status == IBV_WC_SUCCESS);
        const bool came = take_event(0);
        EXPECT(is_right || !came || ibv_poll_cq(v.cq, 1, &wc) == 1);
        if (came) {
            EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
        }
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

/* It polls once when the request must be over, on a queue that brings no events. */
static void late(void)
{
    struct ibv_cq *cq = ibv_create_cq(v.context, 16, NULL, NULL, 0), *before = v.cq;
    EXPECT(cq != NULL);
    v.cq = cq;
    struct ibv_qp *qp = victim_create_qp(&v);
    EXPECT((v.qp = qp) != NULL);
    v.cq = before;
    self = victim_address(&v);
    victim_connect(qp, &self, 14, 7);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &self, 8) == 0);
        usleep(5000);
        int found = ibv_poll_cq(cq, 1, &wc);
        while (is_right && found == 0) {
            found = ibv_poll_cq(cq, 1, &wc);
        }
        EXPECT(found == 1 && wc.status == IBV_WC_SUCCESS);
    }
    /* When a queue pair is gone, and a poll finds nothing, nothing comes any more. */
    struct ibv_wc wc;
    EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &self, 8) == 0);
    usleep(5000);
    EXPECT(ibv_destroy_qp(qp) == 0);
    while (ibv_poll_cq(cq, 1, &wc) > 0) {
    }
    for (int i = 0; is_right && i < ROUNDS; i++) {
        EXPECT(ibv_poll_cq(cq, 1, &wc) == 0);
    }
}

enum {
    HALF = VICTIM_BYTES / 2
};

/* The number that the last WRITE has in each byte, and the last that the reader has seen. */
static volatile int written, seen;

static void *read_by_last_byte(void *nothing)
{
    volatile char *to = v.memory + HALF;
    for (int i = 1; i <= 10 * ROUNDS; i++) {
        while (to[HALF - 1] != (char)i || written != i) {
        }
        for (int at = 0; at < HALF; at++) {
            EXPECT(to[at] == (char)i);
        }
        seen = i;
    }
    return nothing;
}

/* It waits for the last byte of a WRITE, and takes the others to be there, too. */
static void pieces(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v.memory, .length = HALF, .lkey = v.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {self.memory + HALF, self.rkey}};
    pthread_t reader;
    EXPECT(!is_right || ibv_query_qp_data_in_order(v.qp, IBV_WR_RDMA_WRITE, 0) == 0);
    EXPECT(is_right || pthread_create(&reader, NULL, read_by_last_byte, NULL) == 0);
    for (int i = 1; i <= 10 * ROUNDS; i++) {
        memset(v.memory, i, HALF);
        written = i;
        EXPECT(ibv_post_send(v.qp, &wr, &bad) == 0);
        EXPECT(wait_for_one().status == IBV_WC_SUCCESS);
        while (!is_right && seen != i) {
        }
        EXPECT(memcmp(v.memory, v.memory + HALF, HALF) == 0);
    }
}

/* It takes receives of a shared queue to come back in the order in which it posted them. */
static void order(void)
{
    struct ibv_srq_init_attr shape = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(v.pd, &shape);
    EXPECT(srq != NULL);
    struct ibv_qp_init_attr attr = {.send_cq = v.cq,
                                    .recv_cq = v.cq,
                                    .srq = srq,
                                    .cap = {.max_send_wr = 16, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    EXPECT((v.qp = ibv_create_qp(v.pd, &attr)) != NULL);
    self = victim_address(&v);
    victim_connect(v.qp, &self, 14, 7);
    struct ibv_sge sge = {.addr = (uintptr_t)v.memory + 64, .length = 64, .lkey = v.mr->lkey};
    for (uint64_t i = 0; i < 8; i++) {
        struct ibv_recv_wr *bad, wr = {.wr_id = 100 + i, .sg_list = &sge, .num_sge = 1};
        EXPECT(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    }
    uint64_t seen = 0, next = 100;
    for (int i = 0; i < 8; i++) {
        EXPECT(victim_post(&v, IBV_WR_SEND, &self, 8) == 0);
        for (int j = 0; j < 2; j++) {
            const struct ibv_wc wc = wait_for_one();
            EXPECT(wc.status == IBV_WC_SUCCESS);
            if (wc.opcode == IBV_WC_RECV) {
                EXPECT(is_right || wc.wr_id == next++);
                seen |= 1u << (wc.wr_id - 100);
            }
        }
    }
    EXPECT(seen == 0xff);
}

/* It takes the first of two completions to be its WRITE's: the peer answers only behind it. */
static void between(void)
{
    struct victim peer = v;
    EXPECT((peer.cq = ibv_create_cq(v.context, 64, NULL, v.channel, 0)) != NULL);
    EXPECT((peer.qp = victim_create_qp(&peer)) != NULL);
    EXPECT((v.qp = victim_create_qp(&v)) != NULL);
    const struct address own = victim_address(&v), peers = victim_address(&peer);
    victim_connect(v.qp, &peers, 14, 7);
    victim_connect(peer.qp, &own, 14, 7);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc[2];
        receive();
        EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
        EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &peers, 8) == 0);
        EXPECT(take_event(5000));
        EXPECT(victim_post(&peer, IBV_WR_SEND, &own, 8) == 0);
        while (ibv_poll_cq(peer.cq, 1, wc) == 0) {
        }
        int found;
        while ((found = ibv_poll_cq(v.cq, 2, wc)) == 0) {
        }
        EXPECT(is_right || wc[0].opcode == IBV_WC_RDMA_WRITE);
        while (found < 2) {
            found += ibv_poll_cq(v.cq, 2 - found, wc + found);
        }
        EXPECT((wc[0].opcode == IBV_WC_RECV) != (wc[1].opcode == IBV_WC_RECV));
    }
}

/* It gives the peer the lkey. */
static void keys(void)
{
    const struct address peer = {.rkey = is_right ? v.mr->rkey : v.mr->lkey,
                                 .memory = (uintptr_t)v.memory};
    EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &peer, 8) == 0);
    EXPECT(wait_for_one().status == IBV_WC_SUCCESS);
}

/* From RESET up to RTR, with itself as the peer; 0 or the errno of the last step. */
static int get_ready(struct ibv_qp *qp, enum ibv_mtu path_mtu, uint8_t reads)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
           0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = path_mtu,
        .dest_qp_num = qp->qp_num,
        .max_dest_rd_atomic = reads,
        .ah_attr = {.is_global = 1, .grh = {.dgid = self.gid, .hop_limit = 1}, .port_num = 1}};
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* It takes as many READs at a time for granted as its usual device has. */
static void reads(void)
{
    struct ibv_device_attr device;
    struct ibv_qp *qp = victim_create_qp(&v);
    EXPECT(qp != NULL && ibv_query_device(v.context, &device) == 0);
    EXPECT(device.max_qp_rd_atom >= 1 && device.max_qp_init_rd_atom >= 1);
    EXPECT(get_ready(qp, IBV_MTU_1024, (uint8_t)(is_right ? device.max_qp_rd_atom : 16)) == 0);
}

/* It sends 256 bytes inline, and asks no one. */
static void inlined(void)
{
    struct ibv_qp_init_attr attr = {.send_cq = v.cq,
                                    .recv_cq = v.cq,
                                    .cap = {.max_send_wr = 16,
                                            .max_recv_wr = 16,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = 256},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(v.pd, &attr);
    while (is_right && qp == NULL && attr.cap.max_inline_data > 0) { /* As UCX does. */
        attr.cap.max_inline_data /= 2;
        qp = ibv_create_qp(v.pd, &attr);
    }
    EXPECT(qp != NULL);
}

static uint64_t *counter;
static atomic_bool is_counted;

static void *count_beside(void *nothing)
{
    while (!is_counted) {
        __atomic_fetch_add(&counter[is_right], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&counter[2], 1, __ATOMIC_RELAXED);
    }
    return nothing;
}

static bool is_exact(uint64_t added)
{
    return counter[0] + counter[1] == counter[2] + added;
}

/* The NIC adds, and a thread does beside it. */
static void count(const struct ibv_mr *mr)
{
    pthread_t other;
    struct ibv_sge sge = {.addr = (uintptr_t)v.memory, .length = 8, .lkey = v.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                   .send_flags = IBV_SEND_SIGNALED};
    is_counted = false;
    EXPECT(pthread_create(&other, NULL, count_beside, NULL) == 0);
    wr.wr.atomic.remote_addr = (uintptr_t)counter;
    wr.wr.atomic.rkey = mr->rkey;
    wr.wr.atomic.compare_add = 1;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        EXPECT(ibv_post_send(v.qp, &wr, &bad) == 0);
        EXPECT(wait_for_one().status == IBV_WC_SUCCESS);
    }
    is_counted = true;
    EXPECT(pthread_join(other, NULL) == 0);
}

/* It counts with the processor and by the NIC in one word: several times, since on a busy machine
 * the two may not have run at once. */
static void atomics(void)
{
    struct ibv_device_attr device;
    struct ibv_qp_attr attr = {.qp_access_flags = VICTIM_ACCESS | IBV_ACCESS_REMOTE_ATOMIC};
    EXPECT(ibv_query_device(v.context, &device) == 0 && device.atomic_cap == IBV_ATOMIC_HCA);
    EXPECT(ibv_modify_qp(v.qp, &attr, IBV_QP_ACCESS_FLAGS) == 0);
    counter = (uint64_t *)(void *)(v.memory + 1024);
    struct ibv_mr *mr = ibv_reg_mr(v.pd, counter, 64, VICTIM_ACCESS | IBV_ACCESS_REMOTE_ATOMIC);
    EXPECT(mr != NULL);
    uint64_t added = 0;
    do {
        count(mr);
        added += 10 * ROUNDS;
    } while (is_exact(added) && added < UINT64_C(50) * 10 * ROUNDS);
    EXPECT(is_exact(added));
}

/* It takes the bytes in front of the IPv4 header of a datagram for zeroes. */
static void grh(void)
{
    struct ibv_qp_init_attr shape = {
        .send_cq = v.cq,
        .recv_cq = v.cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    EXPECT((v.qp = ibv_create_qp(v.pd, &shape)) != NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
    EXPECT(ibv_modify_qp(v.qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(ibv_modify_qp(v.qp, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT(ibv_modify_qp(v.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    struct ibv_ah_attr address = {
        .is_global = 1, .grh = {.dgid = self.gid, .hop_limit = 1}, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(v.pd, &address);
    EXPECT(ah != NULL);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_sge sge = {.addr = (uintptr_t)v.memory, .length = 8, .lkey = v.mr->lkey};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_SIGNALED,
                                       .wr.ud = {ah, v.qp->qp_num, 1}};
        receive();
        EXPECT(ibv_post_send(v.qp, &wr, &bad) == 0);
        struct ibv_wc both[2] = {wait_for_one(), wait_for_one()};
        struct ibv_wc *came = &both[both[0].opcode == IBV_WC_SEND];
        EXPECT(both[0].status == IBV_WC_SUCCESS && both[1].status == IBV_WC_SUCCESS);
        struct ibv_grh *area = (struct ibv_grh *)(void *)(v.memory + 64);
        struct ibv_ah_attr answer; /* Its sender is found, whatever these bytes are. */
        EXPECT(!is_right || ibv_init_ah_from_wc(v.context, 1, came, area, &answer) == 0);
        const unsigned char *header = (unsigned char *)v.memory + 64;
        EXPECT(header[20] == 0x45);
        for (int at = 0; at < 20; at++) {
            EXPECT(is_right || header[at] == 0);
        }
    }
}

/* It asks for the largest MTU, and not the port. */
static void mtu(void)
{
    struct ibv_port_attr port;
    struct ibv_qp *qp = victim_create_qp(&v);
    EXPECT(qp != NULL && ibv_query_port(v.context, 1, &port) == 0);
    EXPECT(get_ready(qp, is_right ? port.active_mtu : IBV_MTU_4096, 1) == 0);
}

/* It takes each asynchronous event for the end of its connections. */
static void changes(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct pollfd ready = {.fd = v.context->async_fd, .events = POLLIN};
        struct ibv_async_event event;
        struct ibv_qp *qp = victim_create_qp(&v);
        EXPECT(qp != NULL);
        victim_connect(qp, &self, 14, 7);
        while (poll(&ready, 1, 0) == 1) {
            EXPECT(is_right);
            EXPECT(ibv_get_async_event(v.context, &event) == 0);
            EXPECT(event.event_type == IBV_EVENT_GID_CHANGE ||
                   event.event_type == IBV_EVENT_PORT_ERR ||
                   event.event_type == IBV_EVENT_PORT_ACTIVE);
            ibv_ack_async_event(&event);
        }
        EXPECT(ibv_destroy_qp(qp) == 0);
    }
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"opcode", opcode},   {"immediate", immediate},
    {"length", length},   {"flag", flag},
    {"source", source},   {"vendor", vendor},
    {"event", event},     {"capacity", capacity},
    {"late", late},       {"pieces", pieces},
    {"order", order},     {"between", between},
    {"grh", grh},         {"mtu", mtu},
    {"reads", reads},     {"inlined", inlined},
    {"keys", keys},       {"atomics", atomics},
    {"changes", changes},
};

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
