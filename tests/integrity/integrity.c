/* SPDX-License-Identifier: BSD-2-Clause
 *
 * integrity - an ordinary verbs program that checks every byte of random operations.
 *
 * Goal       Whatever two processes do to each other over reliable connections, every byte arrives
 *            once, where and what it should be.
 * Method     Two processes, several queue pairs, both sides active. Each operation owns a slot of
 *            the peer's memory: it is written, read back and compared, added to and compared, or
 *            sent and recognised by a pattern that both sides can compute. Sizes favour zero, MTU
 *            edges and small ones. With --flush what is written is flushed before it is read
 *            back. The seed decides everything but the timing. Usage: integrity [--seed N]
 *            [--ops N] [--qps N] [--events] [--flush]
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs/newer.h"

#define QPS_MAX         64
#define SLOTS           8
#define SLOT_BYTES      (1 << 18)
#define RECEIVES        32
#define GIVE_UP_SECONDS 120

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "integrity: " __VA_ARGS__);                                                \
        fprintf(stderr, "\nreplay: integrity --seed %" PRIu64 " --ops %d --qps %d\n", seed, ops,   \
                qps);                                                                              \
        exit(1);                                                                                   \
    } while (0)

static uint64_t seed = 1;
static int ops = 500, qps = 4, role;
static bool events, flushes;

/* The address that each side tells the other, per queue pair. */
struct address {
    uint32_t qpn, psn, rkey;
    uint64_t memory;
    union ibv_gid gid;
};

enum stage {
    FREE,
    WRITING,  /* The slot is written, and then read back. */
    FLUSHING, /* It was written: in between it is flushed. */
    READING,  /* The slot is read back into `echo`, and compared when that is done. */
    SENDING,
    ADDING,
};

struct slot {
    enum stage stage;
    uint32_t bytes;
    uint64_t tag;
};

struct connection {
    struct ibv_qp *qp;
    struct address peer;
    uint8_t *shared; /* The peer writes and reads here: SLOTS slots and a counter. */
    uint8_t *source; /* SLOTS slots: what we send and write. */
    uint8_t *echo;   /* SLOTS slots: what we read back. */
    uint8_t *inbox;  /* RECEIVES slots. */
    struct ibv_mr *shared_mr, *source_mr, *echo_mr, *inbox_mr;
    struct slot slots[SLOTS];
    uint64_t random;
    uint64_t counter; /* The value that the peer's counter must hold. */
    uint32_t started, finished, sent, received;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct connection connections[QPS_MAX];

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint8_t pattern(uint64_t tag, uint32_t index)
{
    return (uint8_t)(tag * 131 + index * 7 + (index >> 8) * 13 + (index >> 16) * 29);
}

static void fill(uint8_t *bytes, uint32_t count, uint64_t tag)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = pattern(tag, i);
    }
}

static void expect(const uint8_t *bytes, uint32_t count, uint64_t tag, const char *what, int q)
{
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] != pattern(tag, i)) {
            FAIL("role %d qp %d: %s: byte %u of %u is %02x, not %02x", role, q, what, i, count,
                 bytes[i], pattern(tag, i));
        }
    }
}

/* The n-th message of a side on a queue pair: both sides know its tag and size. */
static uint64_t message_tag(int from, int q, uint32_t n)
{
    return (uint64_t)from * 1000003 + (uint64_t)q * 10007 + n;
}

static uint32_t draw_bytes(uint64_t *random)
{
    static const uint32_t edges[] = {0,    1,    7,    8,    63,   64,   255,  256,   257,
                                     1023, 1024, 1025, 4095, 4096, 4097, 8192, 65535, 65536};
    const uint64_t r = next_random(random);
    switch (r % 4) {
    case 0: return edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
    case 1: return (uint32_t)((r >> 8) % 128);
    case 2: return (uint32_t)((r >> 8) % 9000);
    default: return (uint32_t)((r >> 8) % (SLOT_BYTES + 1));
    }
}

static uint32_t message_bytes(int from, int q, uint32_t n)
{
    uint64_t random = seed ^ message_tag(from, q, n) * 0x2545f4914f6cdd1du;
    return draw_bytes(&random) % 65537;
}

/* -- Set-up -------------------------------------------------------------------------------------*/

static uint8_t *make_memory(size_t bytes, int access, struct ibv_mr **mr)
{
    uint8_t *memory = aligned_alloc(4096, bytes);
    if (memory == NULL) {
        FAIL("no memory");
    }
    memset(memory, 0, bytes);
    *mr = ibv_reg_mr(pd, memory, bytes, access);
    if (*mr == NULL) {
        FAIL("ibv_reg_mr: %s", strerror(errno));
    }
    return memory;
}

static void post_receive(struct connection *c, uint32_t n)
{
    const uint32_t slot = n % RECEIVES;
    struct ibv_sge sge = {(uintptr_t)c->inbox + (uint64_t)slot * 65536, 65536, c->inbox_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(c->qp, &wr, &bad) != 0) {
        FAIL("ibv_post_recv");
    }
}

static struct ibv_qp *make_qp(const struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .qp_type = IBV_QPT_RC,
                                       .sq_sig_all = 1,
                                       .cap = *cap,
                                       .pd = pd,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD};
    if (flushes) {
        init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.send_ops_flags = IBV_QP_EX_WITH_FLUSH;
    }
    struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
    if (qp == NULL) {
        FAIL("ibv_create_qp_ex: %s", strerror(errno));
    }
    return qp;
}

static void make_connection(int q)
{
    struct connection *c = &connections[q];
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                    IBV_ACCESS_REMOTE_ATOMIC | (flushes ? IBV_ACCESS_FLUSH_GLOBAL : 0);
    c->random = seed * 77 + (uint64_t)q * 2 + (uint64_t)role;
    c->shared = make_memory(SLOTS * SLOT_BYTES + 4096, all, &c->shared_mr);
    c->source = make_memory(SLOTS * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE, &c->source_mr);
    c->echo = make_memory(SLOTS * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE, &c->echo_mr);
    c->inbox = make_memory(RECEIVES * 65536, IBV_ACCESS_LOCAL_WRITE, &c->inbox_mr);
    c->qp = make_qp(&(struct ibv_qp_cap){.max_send_wr = 2 * SLOTS,
                                         .max_recv_wr = RECEIVES,
                                         .max_send_sge = 3,
                                         .max_recv_sge = 1,
                                         .max_inline_data = 64});
}

static void move_to_rts(int q)
{
    struct connection *c = &connections[q];
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC |
                                                  (flushes ? IBV_ACCESS_FLUSH_GLOBAL : 0u)};
    int bad = ibv_modify_qp(c->qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .dest_qp_num = c->peer.qpn,
        .rq_psn = c->peer.psn,
        .path_mtu = (enum ibv_mtu)(IBV_MTU_256 + (seed + (uint64_t)q) % 5),
        .max_dest_rd_atomic = 8,
        .min_rnr_timer = 5,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = c->peer.gid, .hop_limit = 64}}};
    bad |= ibv_modify_qp(c->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = (uint32_t)(0xfffff0 - 100 * q),
                                .timeout = 16, /* A process may be away for half a second. */
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 8};
    bad |= ibv_modify_qp(c->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (bad) {
        FAIL("ibv_modify_qp");
    }
}

static int reap(void);

static void exchange(int fd, const void *ours, void *theirs, size_t bytes)
{
    if (write(fd, ours, bytes) != (ssize_t)bytes) {
        FAIL("the peer is gone");
    }
    size_t got = 0;
    while (got < bytes) {
        /* The peer may still need receives of ours before it can answer. */
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        while (poll(&readable, 1, 1) == 0) {
            reap();
        }
        const ssize_t count = read(fd, (uint8_t *)theirs + got, bytes - got);
        if (count <= 0) {
            FAIL("the peer is gone");
        }
        got += (size_t)count;
    }
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (list == NULL || list[0] == NULL || (context = ibv_open_device(list[0])) == NULL) {
        FAIL("no device");
    }
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    channel = events ? ibv_create_comp_channel(context) : NULL;
    cq = ibv_create_cq(context, QPS_MAX * (2 * SLOTS + RECEIVES), NULL, channel, 0);
    if (pd == NULL || cq == NULL || (events && ibv_req_notify_cq(cq, 0) != 0)) {
        FAIL("no completion queue");
    }
}

static void connect_all(int fd)
{
    struct address ours[QPS_MAX] = {0}, theirs[QPS_MAX];
    for (int q = 0; q < qps; q++) {
        make_connection(q);
        ours[q] = (struct address){.qpn = connections[q].qp->qp_num,
                                   .psn = (uint32_t)(0xfffff0 - 100 * q),
                                   .rkey = connections[q].shared_mr->rkey,
                                   .memory = (uintptr_t)connections[q].shared};
        if (ibv_query_gid(context, 1, 0, &ours[q].gid) != 0) {
            FAIL("ibv_query_gid");
        }
    }
    exchange(fd, ours, theirs, sizeof(ours));
    for (int q = 0; q < qps; q++) {
        connections[q].peer = theirs[q];
        move_to_rts(q);
        for (uint32_t n = 0; n < RECEIVES; n++) {
            post_receive(&connections[q], n);
        }
    }
    char token = 'x';
    exchange(fd, &token, &token, 1);
}

/* -- Operations ---------------------------------------------------------------------------------*/

static int split(struct connection *c, struct ibv_mr *mr, uint64_t address, uint32_t bytes,
                 struct ibv_sge *sges)
{
    int count = 0;
    while (bytes > 0) {
        const uint32_t part = count == 2 ? bytes : 1 + (uint32_t)(next_random(&c->random) % bytes);
        sges[count++] = (struct ibv_sge){address, part, mr->lkey};
        address += part;
        bytes -= part;
    }
    return count;
}

static void post(struct connection *c, uint32_t s, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->wr_id = (uint64_t)1 << 32 | s;
    const int reason = ibv_post_send(c->qp, wr, &bad);
    if (reason != 0) {
        FAIL("ibv_post_send: %s", strerror(reason));
    }
}

static void start_write(struct connection *c, uint32_t s)
{
    struct slot *slot = &c->slots[s];
    struct ibv_sge sges[3];
    slot->stage = WRITING;
    slot->bytes = draw_bytes(&c->random);
    slot->tag = next_random(&c->random);
    fill(c->source + s * SLOT_BYTES, slot->bytes, slot->tag);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sges};
    if (slot->bytes <= 64 && next_random(&c->random) % 2 && slot->bytes > 0) {
        sges[0] = (struct ibv_sge){(uintptr_t)c->source + s * SLOT_BYTES, slot->bytes, 0};
        wr.num_sge = 1;
        wr.send_flags = IBV_SEND_INLINE;
    } else {
        wr.num_sge =
            split(c, c->source_mr, (uintptr_t)c->source + s * SLOT_BYTES, slot->bytes, sges);
    }
    wr.wr.rdma.remote_addr = c->peer.memory + (uint64_t)s * SLOT_BYTES;
    wr.wr.rdma.rkey = c->peer.rkey;
    post(c, s, &wr);
}

/* Flushes what was written, or all that the peer has. */
static void start_flush(struct connection *c, uint32_t s)
{
    struct slot *slot = &c->slots[s];
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(c->qp);
    slot->stage = FLUSHING;
    ibv_wr_start(ex);
    ex->wr_id = (uint64_t)1 << 32 | s;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ((struct qp_ex_45 *)(void *)ex)
        ->wr_flush(ex, c->peer.rkey, c->peer.memory + (uint64_t)s * SLOT_BYTES, slot->bytes,
                   IBV_FLUSH_GLOBAL, next_random(&c->random) % 2);
    const int reason = ibv_wr_complete(ex);
    if (reason != 0) {
        FAIL("ibv_wr_flush: %s", strerror(reason));
    }
}

static void start_read(struct connection *c, uint32_t s)
{
    struct slot *slot = &c->slots[s];
    struct ibv_sge sges[3];
    slot->stage = READING;
    memset(c->echo + s * SLOT_BYTES, 0xee, slot->bytes);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .sg_list = sges};
    wr.num_sge = split(c, c->echo_mr, (uintptr_t)c->echo + s * SLOT_BYTES, slot->bytes, sges);
    wr.wr.rdma.remote_addr = c->peer.memory + (uint64_t)s * SLOT_BYTES;
    wr.wr.rdma.rkey = c->peer.rkey;
    post(c, s, &wr);
}

static void start_send(struct connection *c, uint32_t s, int q)
{
    struct slot *slot = &c->slots[s];
    struct ibv_sge sges[3];
    slot->stage = SENDING;
    slot->bytes = message_bytes(role, q, c->sent);
    slot->tag = message_tag(role, q, c->sent);
    fill(c->source + s * SLOT_BYTES, slot->bytes, slot->tag);
    struct ibv_send_wr wr = {.opcode = c->sent % 3 == 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                             .imm_data = c->sent,
                             .sg_list = sges};
    wr.num_sge = split(c, c->source_mr, (uintptr_t)c->source + s * SLOT_BYTES, slot->bytes, sges);
    c->sent++;
    post(c, s, &wr);
}

static void start_add(struct connection *c, uint32_t s)
{
    struct slot *slot = &c->slots[s];
    struct ibv_sge sge = {(uintptr_t)c->echo + s * SLOT_BYTES, 8, c->echo_mr->lkey};
    slot->stage = ADDING;
    slot->tag = c->counter;
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};
    wr.wr.atomic.remote_addr = c->peer.memory + SLOTS * SLOT_BYTES;
    wr.wr.atomic.rkey = c->peer.rkey;
    if (next_random(&c->random) % 2) {
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.compare_add = next_random(&c->random);
        c->counter += wr.wr.atomic.compare_add;
    } else {
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.wr.atomic.compare_add = c->counter;
        wr.wr.atomic.swap = c->counter = next_random(&c->random);
    }
    post(c, s, &wr);
}

static void start(struct connection *c, uint32_t s, int q)
{
    c->started++;
    switch (next_random(&c->random) % 4) {
    case 0: start_send(c, s, q); break;
    case 1: start_add(c, s); break;
    default: start_write(c, s); break;
    }
}

/* -- Completions --------------------------------------------------------------------------------*/

static void finish(struct connection *c, uint32_t s, int q)
{
    struct slot *slot = &c->slots[s];
    switch (slot->stage) {
    case WRITING:
        if (flushes) {
            start_flush(c, s);
        } else {
            start_read(c, s);
        }
        return;
    case FLUSHING: start_read(c, s); return;
    case READING: expect(c->echo + s * SLOT_BYTES, slot->bytes, slot->tag, "read back", q); break;
    case ADDING:
        if (memcmp(c->echo + s * SLOT_BYTES, &slot->tag, 8) != 0) {
            FAIL("role %d qp %d: an atomic returned another value than the counter had", role, q);
        }
        break;
    case SENDING: break;
    case FREE: FAIL("a completion for nothing");
    }
    slot->stage = FREE;
    c->finished++;
}

static void receive(struct connection *c, const struct ibv_wc *wc, int q)
{
    if (wc->wr_id != c->received) {
        FAIL("role %d qp %d: receive %" PRIu64 " completed, not %u", role, q, wc->wr_id,
             c->received);
    }
    const uint32_t bytes = message_bytes(!role, q, c->received);
    if (wc->byte_len != bytes) {
        FAIL("role %d qp %d: message %u has %u bytes, not %u", role, q, c->received, wc->byte_len,
             bytes);
    }
    const bool immediate = wc->wc_flags & IBV_WC_WITH_IMM;
    if (immediate != (c->received % 3 == 0) || (immediate && wc->imm_data != c->received)) {
        FAIL("role %d qp %d: immediate of message %u", role, q, c->received);
    }
    expect(c->inbox + (c->received % RECEIVES) * 65536, bytes, message_tag(!role, q, c->received),
           "received", q);
    post_receive(c, c->received + RECEIVES);
    c->received++;
}

static int find(uint32_t qpn)
{
    for (int q = 0; q < qps; q++) {
        if (connections[q].qp->qp_num == qpn) {
            return q;
        }
    }
    FAIL("a completion of an unknown queue pair");
}

static int reap(void)
{
    struct ibv_wc wc[16];
    const int count = ibv_poll_cq(cq, 16, wc);
    for (int i = 0; i < count; i++) {
        const int q = find(wc[i].qp_num);
        if (wc[i].status != IBV_WC_SUCCESS) {
            FAIL("role %d qp %d: %s", role, q, ibv_wc_status_str(wc[i].status));
        }
        if (wc[i].wr_id >> 32) {
            finish(&connections[q], (uint32_t)wc[i].wr_id, q);
        } else {
            receive(&connections[q], &wc[i], q);
        }
    }
    return count;
}

static void wait_for_event(void)
{
    struct ibv_cq *of;
    void *unused;
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    if (poll(&fd, 1, 50) == 1 && ibv_get_cq_event(channel, &of, &unused) == 0) {
        ibv_ack_cq_events(of, 1);
        ibv_req_notify_cq(cq, 0);
    }
}

static bool done(void)
{
    for (int q = 0; q < qps; q++) {
        if (connections[q].finished < (uint32_t)ops) {
            return false;
        }
    }
    return true;
}

static void run(void)
{
    const time_t began = time(NULL);
    while (!done()) {
        for (int q = 0; q < qps; q++) {
            struct connection *c = &connections[q];
            const uint32_t s = (uint32_t)(next_random(&c->random) % SLOTS);
            if (c->started < (uint32_t)ops && c->slots[s].stage == FREE) {
                start(c, s, q);
            }
        }
        if (reap() == 0 && events) {
            wait_for_event();
        }
        if (time(NULL) - began > GIVE_UP_SECONDS) {
            FAIL("role %d: no end in sight", role);
        }
    }
}

/* Both sides go on serving until both are done; then all messages must have arrived. */
static void settle(int fd)
{
    uint32_t sent[QPS_MAX] = {0}, expected[QPS_MAX];
    for (int q = 0; q < qps; q++) {
        sent[q] = connections[q].sent;
    }
    exchange(fd, sent, expected, sizeof(sent));
    const time_t began = time(NULL);
    for (int q = 0; q < qps; q++) {
        while (connections[q].received < expected[q]) {
            reap();
            if (time(NULL) - began > GIVE_UP_SECONDS) {
                FAIL("role %d qp %d: %u of %u messages", role, q, connections[q].received,
                     expected[q]);
            }
        }
    }
    uint64_t ours[QPS_MAX] = {0}, theirs[QPS_MAX];
    for (int q = 0; q < qps; q++) {
        ours[q] = connections[q].counter;
    }
    exchange(fd, ours, theirs, sizeof(ours));
    for (int q = 0; q < qps; q++) {
        if (memcmp(connections[q].shared + SLOTS * SLOT_BYTES, &theirs[q], 8) != 0) {
            FAIL("role %d qp %d: the counter is not what its peer made of it", role, q);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"ops", required_argument, NULL, 'o'},
        {"qps", required_argument, NULL, 'q'},  {"events", no_argument, NULL, 'e'},
        {"flush", no_argument, NULL, 'f'},      {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 's': seed = strtoull(optarg, NULL, 10); break;
        case 'o': ops = atoi(optarg); break;
        case 'q': qps = atoi(optarg) < QPS_MAX ? atoi(optarg) : QPS_MAX; break;
        case 'e': events = true; break;
        case 'f': flushes = true; break;
        default: return 2;
        }
    }
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        return 2;
    }
    const pid_t child = fork();
    role = child == 0;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    close(fds[!role]);
    open_device();
    connect_all(fds[role]);
    run();
    settle(fds[role]);
    if (child == 0) {
        return 0;
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) {
        return 1;
    }
    printf("integrity: %d operations on each of %d queue pairs, both ways, all bytes right\n", ops,
           qps);
    return 0;
}
