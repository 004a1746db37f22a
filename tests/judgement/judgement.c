/* SPDX-License-Identifier: BSD-2-Clause
 *
 * judgement - an ordinary verbs program that makes mistakes on purpose, and says what came of them.
 *
 * Goal    What a device says of a connection must not depend on how it reaches the peer: by
 *         packets, by shared memory, by another protocol, recorded or not. tests/judgement/run
 *         compares what this program prints over each of them.
 * Method  Worlds of many pairs of RC queue pairs. In each pair the halves may not fit each other:
 *         first PSNs, path MTUs, READ depths, access rights, numbers, protection domains, keys,
 *         addresses, states. Half A then posts random requests, one by one or as a list. In a
 *         second round halves may have begun anew, or have changed their rights. A line for each
 *         half tells its completions, its state, and a sum of its memory. The seed decides
 *         everything. Both halves are in this process, or B's are in a child (--two).
 */
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAIRS      256
#define ROUNDS     2
#define REQUESTS   6
#define RECEIVES   6
#define SLOT_BYTES 8192
#define AREA_BYTES                                                                                 \
    (REQUESTS * SLOT_BYTES) /* A sends from it and reads into it; B receives into it. */
#define OPEN_BYTES 16384    /* Bytes that B opens to A. */
#define READ_BYTES_MAX                                                                             \
    4096 /* 16 packets of the smallest MTU: a device may ask for more by several requests. */
/* Added to the number of one of our queue pairs it gives a number without a queue pair. */
#define NOBODY          5000
#define GIVE_UP_SECONDS 60

enum {
    A,
    B
};

#define NEED(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "judgement: %s:%d: %s\n", __FILE__, __LINE__, #what);                  \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

/* -- The plan, which both processes draw from the same seed -------------------------------------*/

struct request {
    enum ibv_wr_opcode opcode;
    uint32_t bytes, from; /* In A's area. */
    uint64_t at;          /* In the memory that B opened. */
    bool wrong_key;
};

struct turn {        /* One round. */
    bool restart[2]; /* These halves begin anew. */
    uint32_t send_psn, receive_psn;
    unsigned access; /* The rights that B's queue pair grants. */
    uint32_t count;
    bool as_list;
    struct request requests[REQUESTS];
};

struct plan {
    enum ibv_mtu mtu[2];
    uint8_t depth[2]; /* A's max_rd_atomic, B's max_dest_rd_atomic. */
    uint8_t rnr_retry;
    bool other_number; /* B's peer is a queue pair that is not there. */
    bool other_domain; /* B's memory is in another domain than its queue pair. */
    bool ready;        /* B is in RTS, else in RTR. */
    bool away;         /* B stays in INIT. */
    unsigned open;     /* The rights that B's region grants. */
    uint32_t receives;
    struct turn turns[ROUNDS];
};

static uint64_t state;
static bool together; /* No half begins anew without the other. */

static uint64_t draw(uint64_t bound)
{
    uint64_t word = state += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return (word ^ word >> 31) % bound;
}

static bool once_in(uint64_t times)
{
    return draw(times) == 0;
}

static unsigned draw_access(void)
{
    const unsigned all =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    return IBV_ACCESS_LOCAL_WRITE | (once_in(4) ? (unsigned)draw(16) & all : all);
}

/* Memory that is READ is written by none, and each request has memory of A's of its own: otherwise
 * the order of accesses would be left open (IBTA 10.8.3.3). */
static void draw_request(struct request *request, uint32_t slot)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_READ,
        IBV_WR_RDMA_READ,
        IBV_WR_SEND,
        IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_ATOMIC_FETCH_AND_ADD,
    };
    static const uint32_t sizes[] = {0, 1, 8, 200, 256, 257, 512, 1000, 1024, 2049, 4096, 5000};
    request->opcode = opcodes[draw(sizeof(opcodes) / sizeof(opcodes[0]))];
    request->bytes = sizes[draw(sizeof(sizes) / sizeof(sizes[0]))];
    request->wrong_key = once_in(20);
    if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request->bytes = 8;
    } else if (request->opcode == IBV_WR_RDMA_READ && request->bytes > READ_BYTES_MAX) {
        request->bytes = READ_BYTES_MAX;
    }
    const uint32_t there = request->opcode == IBV_WR_RDMA_READ ? 0 : OPEN_BYTES / 2;
    request->from = slot * SLOT_BYTES + (uint32_t)draw(384) * 8;
    request->at = once_in(20) ? OPEN_BYTES + 8 * draw(2) - 8 : there + draw(384) * 8;
}

static uint32_t packets_of(const struct request *request, enum ibv_mtu mtu)
{
    const uint32_t mtu_bytes = 128u << mtu;
    return request->bytes == 0 ? 1 : (request->bytes + mtu_bytes - 1) / mtu_bytes;
}

/* The halves cut the answer to a READ differently: A takes it for a bad response. */
static bool answer_is_bad(const struct plan *plan, const struct request *request)
{
    return request->opcode == IBV_WR_RDMA_READ &&
           packets_of(request, plan->mtu[A]) != packets_of(request, plan->mtu[B]);
}

/* A's first PSN is the one that B expects. `before` is the turn before this one; NULL: none. */
static bool begins_alike(const struct turn *turn, const struct turn *before)
{
    if (turn->restart[A] && turn->restart[B]) {
        return turn->send_psn == turn->receive_psn;
    }
    return before != NULL && !turn->restart[A] && !turn->restart[B] && begins_alike(before, NULL);
}

/* Has the turn a READ or an atomic? One that B takes for an old one, which it does not know, gets
 * no answer. A sends it again whenever a later packet is acknowledged, and gives up after retry_cnt
 * times; how far behind it A has sent by then is a matter of time. */
static bool wants_responses(const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->count; i++) {
        const enum ibv_wr_opcode opcode = turn->requests[i].opcode;
        if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            return true;
        }
    }
    return false;
}

/* Where A stands after a round in which all went well. */
static uint32_t psn_behind(const struct plan *plan, const struct turn *turn)
{
    uint32_t psn = turn->send_psn;
    for (uint32_t i = 0; i < turn->count; i++) {
        psn += packets_of(&turn->requests[i], plan->mtu[A]);
    }
    return psn & 0xffffff;
}

/* The halves' first PSNs: mostly the same, near the end of all numbers now and then. */
static void draw_psns(struct turn *turn)
{
    turn->send_psn = (once_in(4) ? 0xfffffe : (uint32_t)draw(1 << 24)) & 0xffffff;
    const uint32_t ahead = once_in(2) ? (uint32_t)draw(8) : (uint32_t)draw(1 << 24);
    turn->receive_psn = (turn->send_psn + (once_in(4) ? ahead - 4 : 0)) & 0xffffff;
}

static void draw_restarts(const struct plan *plan, struct turn *turn, const struct turn *before)
{
    draw_psns(turn);
    if (before == NULL) {
        turn->restart[A] = turn->restart[B] = true;
        return;
    }
    turn->restart[A] = once_in(2);
    turn->restart[B] = once_in(2);
    turn->restart[B] = together ? turn->restart[A] : turn->restart[B];
    /* Programs begin with the same numbers each time; or go on where they were. */
    if (once_in(2)) {
        turn->send_psn = once_in(2) ? before->send_psn : psn_behind(plan, before);
        turn->receive_psn = once_in(2) ? before->receive_psn : psn_behind(plan, before);
    }
}

static void draw_turn(const struct plan *plan, struct turn *turn, const struct turn *before)
{
    turn->access = draw_access();
    turn->count = 1 + (uint32_t)draw(REQUESTS);
    turn->as_list = once_in(3);
    for (uint32_t i = 0; i < turn->count; i++) {
        draw_request(&turn->requests[i], i);
        /* Whether B has executed later requests by then would be a matter of time. */
        turn->as_list &= !answer_is_bad(plan, &turn->requests[i]);
    }
    draw_restarts(plan, turn, before);
    turn->as_list &= begins_alike(turn, before) || !wants_responses(turn);
}

static void draw_plan(struct plan *plan)
{
    *plan = (struct plan){
        .mtu = {(enum ibv_mtu)(1 + draw(5)), IBV_MTU_256},
        .rnr_retry = (uint8_t)draw(2),
        .other_number = once_in(25),
        .other_domain = once_in(25),
        .ready = once_in(2),
        .away = once_in(25),
        .open = draw_access(),
        .receives = once_in(4) ? (uint32_t)draw(RECEIVES) : RECEIVES,
    };
    plan->mtu[B] = once_in(4) ? (enum ibv_mtu)(1 + draw(5)) : plan->mtu[A];
    /* Whether a peer refuses more READs than it answers at a time is a matter of time, unless it
     * answers none: when they come, some may be answered. */
    plan->depth[A] = (uint8_t)(1 + draw(4));
    plan->depth[B] = once_in(8) ? 0 : (uint8_t)(plan->depth[A] + draw(2));
    for (int i = 0; i < ROUNDS; i++) {
        draw_turn(plan, &plan->turns[i], i == 0 ? NULL : &plan->turns[i - 1]);
    }
}

/* -- A half -------------------------------------------------------------------------------------*/

struct device {
    struct ibv_context *context;
    struct ibv_pd *pds[2];
    union ibv_gid gid;
};

struct half {
    int role;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *area, *open;
    uint8_t *memory; /* AREA_BYTES, then OPEN_BYTES. */
    uint32_t posted, done;
    bool failed;
    uint32_t completed;
    struct ibv_wc wcs[ROUNDS * (REQUESTS + RECEIVES)];
};

/* The address that one half tells the other. */
struct address {
    uint32_t number, key;
    uint64_t at;
    union ibv_gid gid;
};

static void open_device(struct device *device)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    NEED(devices != NULL && devices[0] != NULL);
    device->context = ibv_open_device(devices[0]);
    NEED(device->context != NULL);
    ibv_free_device_list(devices);
    NEED(ibv_query_gid(device->context, 1, 0, &device->gid) == 0);
    for (int i = 0; i < 2; i++) {
        device->pds[i] = ibv_alloc_pd(device->context);
        NEED(device->pds[i] != NULL);
    }
}

static void fill(struct half *half)
{
    for (uint32_t i = 0; i < AREA_BYTES + OPEN_BYTES; i++) {
        half->memory[i] = (uint8_t)(i * 7 + (uint32_t)half->role * 91 + i / 251);
    }
}

static void make_half(struct half *half, const struct device *device, const struct plan *plan,
                      int role)
{
    *half = (struct half){.role = role};
    half->cq = ibv_create_cq(device->context, 32, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = half->cq,
        .recv_cq = half->cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
    };
    half->qp = ibv_create_qp(device->pds[0], &attr);
    half->memory = malloc(AREA_BYTES + OPEN_BYTES);
    NEED(half->cq != NULL && half->qp != NULL && half->memory != NULL);
    half->area = ibv_reg_mr(device->pds[0], half->memory, AREA_BYTES, IBV_ACCESS_LOCAL_WRITE);
    half->open = ibv_reg_mr(device->pds[plan->other_domain], half->memory + AREA_BYTES, OPEN_BYTES,
                            (int)plan->open);
    NEED(half->area != NULL && half->open != NULL);
}

static void drop_half(struct half *half)
{
    NEED(ibv_destroy_qp(half->qp) == 0 && ibv_destroy_cq(half->cq) == 0);
    NEED(ibv_dereg_mr(half->area) == 0 && ibv_dereg_mr(half->open) == 0);
    free(half->memory);
}

static struct address address_of(const struct half *half, const struct device *device)
{
    return (struct address){.number = half->qp->qp_num,
                            .key = half->open->rkey,
                            .at = (uintptr_t)half->open->addr,
                            .gid = device->gid};
}

/* Up to RTR or RTS, from RESET. */
static void connect_half(struct half *half, const struct plan *plan, const struct turn *turn,
                         const struct address *peer)
{
    const bool b = half->role == B;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = turn->access};
    NEED(ibv_modify_qp(half->qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    if (b && plan->away) {
        return;
    }
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = plan->mtu[half->role],
        .dest_qp_num = peer->number + (b && plan->other_number ? NOBODY : 0),
        .rq_psn = b ? turn->receive_psn : 1,
        .max_dest_rd_atomic = b ? plan->depth[B] : 1,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .hop_limit = 64}},
    };
    NEED(ibv_modify_qp(half->qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    if (b && !plan->ready) {
        return;
    }
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = b ? 1 : turn->send_psn,
        .timeout = 14,
        .retry_cnt = 2,
        .rnr_retry = plan->rnr_retry,
        .max_rd_atomic = b ? 1 : plan->depth[A],
    };
    NEED(ibv_modify_qp(half->qp, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void post_receives(struct half *half, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->receives; i++) {
        struct ibv_sge sge = {(uintptr_t)half->area->addr + i * SLOT_BYTES, 5000, half->area->lkey};
        struct ibv_recv_wr *bad, wr = {.wr_id = 100 + i, .sg_list = &sge, .num_sge = 1};
        NEED(ibv_post_recv(half->qp, &wr, &bad) == 0);
    }
}

static void begin_turn(struct half *half, const struct plan *plan, int number,
                       const struct address *peer)
{
    const struct turn *turn = &plan->turns[number];
    if (turn->restart[half->role]) {
        if (number > 0) {
            struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
            NEED(ibv_modify_qp(half->qp, &attr, IBV_QP_STATE) == 0);
            half->done = half->posted;
            half->failed = false;
        }
        fill(half);
        connect_half(half, plan, turn, peer);
        if (half->role == B) {
            post_receives(half, plan);
        }
    } else if (half->role == B) {
        /* Refused in the error state. */
        struct ibv_qp_attr attr = {.qp_access_flags = turn->access};
        (void)ibv_modify_qp(half->qp, &attr, IBV_QP_ACCESS_FLAGS);
    }
}

static void make_wr(const struct half *half, const struct request *request, uint64_t id,
                    const struct address *peer, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    *sge = (struct ibv_sge){(uintptr_t)half->area->addr + request->from, request->bytes,
                            half->area->lkey};
    *wr = (struct ibv_send_wr){
        .wr_id = id, .sg_list = sge, .num_sge = 1, .opcode = request->opcode, .imm_data = 0x55};
    const uint32_t key = peer->key ^ (request->wrong_key ? 0x100 : 0);
    if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr->wr.atomic.remote_addr = peer->at + request->at;
        wr->wr.atomic.rkey = key;
        wr->wr.atomic.compare_add = id;
    } else {
        wr->wr.rdma.remote_addr = peer->at + request->at;
        wr->wr.rdma.rkey = key;
    }
}

/* The next request, or all of them. */
static void post_next(struct half *half, const struct turn *turn, uint32_t *next,
                      const struct address *peer)
{
    struct ibv_send_wr wrs[REQUESTS], *bad;
    struct ibv_sge sges[REQUESTS];
    uint32_t count = 0;
    do {
        const uint32_t at = *next + count;
        make_wr(half, &turn->requests[at], at, peer, &wrs[count], &sges[count]);
        wrs[count].next = NULL;
        if (count > 0) {
            wrs[count - 1].next = &wrs[count];
        }
        count++;
    } while (turn->as_list && *next + count < turn->count);
    NEED(ibv_post_send(half->qp, wrs, &bad) == 0);
    *next += count;
    half->posted += count;
}

static void collect(struct half *half)
{
    struct ibv_wc *wc = &half->wcs[half->completed];
    while (ibv_poll_cq(half->cq, 1, wc) == 1) {
        half->completed++;
        half->done += half->role == A;
        NEED(half->completed < sizeof(half->wcs) / sizeof(half->wcs[0]));
        wc = &half->wcs[half->completed];
    }
}

/* -- Telling ------------------------------------------------------------------------------------*/

static uint64_t sum(const uint8_t *bytes, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void tell(FILE *out, uint64_t world, int pair, int round, const struct half *half)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    NEED(ibv_query_qp(half->qp, &attr, IBV_QP_STATE, &init) == 0);
    fprintf(out, "%" PRIu64 ".%d %d%c state %d memory %016" PRIx64, world, pair, round,
            "AB"[half->role], attr.qp_state, sum(half->memory, AREA_BYTES + OPEN_BYTES));
    for (uint32_t i = 0; i < half->completed; i++) {
        const struct ibv_wc *wc = &half->wcs[i];
        fprintf(out, " %" PRIu64 ":%d", wc->wr_id, wc->status);
        if (wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV) {
            fprintf(out, "/%u/%x", wc->byte_len, wc->wc_flags & IBV_WC_WITH_IMM ? wc->imm_data : 0);
        }
    }
    fprintf(out, "\n");
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static int peer_fd = -1; /* The other process; -1: both halves are here. */

static void exchange(const void *mine, void *theirs, size_t bytes)
{
    NEED(write(peer_fd, mine, bytes) == (ssize_t)bytes);
    NEED(recv(peer_fd, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static void meet(void)
{
    char word = 1;
    if (peer_fd >= 0) {
        exchange(&word, &word, 1);
    }
}

struct world {
    struct plan plans[PAIRS];
    struct half halves[2][PAIRS];
    struct address addresses[2][PAIRS];
    bool here[2];
};

static void run_requests(struct world *world, int round)
{
    const time_t end = time(NULL) + GIVE_UP_SECONDS;
    uint32_t next[PAIRS] = {0};
    for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < PAIRS; i++) {
            struct half *half = &world->halves[A][i];
            const struct turn *turn = &world->plans[i].turns[round];
            collect(half);
            if (world->here[B]) {
                collect(&world->halves[B][i]);
            }
            if (half->done == half->posted && next[i] < turn->count) {
                post_next(half, turn, &next[i], &world->addresses[B][i]);
            }
            busy |= half->done != half->posted || next[i] < turn->count;
        }
        NEED(time(NULL) < end);
    }
}

static void run_round(struct world *world, uint64_t number, int round, FILE *out)
{
    for (int role = A; role <= B; role++) {
        for (int i = 0; i < PAIRS && world->here[role]; i++) {
            begin_turn(&world->halves[role][i], &world->plans[i], round,
                       &world->addresses[!role][i]);
        }
    }
    meet();
    if (world->here[A]) {
        run_requests(world, round);
    }
    meet();
    for (int i = 0; i < PAIRS; i++) {
        for (int role = A; role <= B; role++) {
            if (world->here[role]) {
                collect(&world->halves[role][i]);
                tell(out, number, i, round, &world->halves[role][i]);
            }
        }
    }
    meet();
}

static void run_world(struct world *world, uint64_t number, const struct device *device, FILE *out)
{
    state = number * UINT64_C(0x2545f4914f6cdd1d);
    for (int i = 0; i < PAIRS; i++) {
        draw_plan(&world->plans[i]);
        for (int role = A; role <= B; role++) {
            if (world->here[role]) {
                make_half(&world->halves[role][i], device, &world->plans[i], role);
                world->addresses[role][i] = address_of(&world->halves[role][i], device);
            }
        }
    }
    if (peer_fd >= 0) {
        exchange(world->addresses[world->here[B]], world->addresses[world->here[A]],
                 sizeof(world->addresses[0]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        run_round(world, number, round, out);
    }
    for (int role = A; role <= B; role++) {
        for (int i = 0; i < PAIRS && world->here[role]; i++) {
            drop_half(&world->halves[role][i]);
        }
    }
    meet();
}

/* B's halves, in a process of its own, which writes its lines to a file of its own. */
static FILE *split(struct world *world, FILE *out, const char *file)
{
    int ends[2];
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const pid_t parent = getpid();
    const pid_t child = fork();
    NEED(child >= 0);
    const int role = child == 0 ? B : A;
    world->here[!role] = false;
    peer_fd = ends[role];
    close(ends[!role]);
    if (role == A) {
        return out;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    NEED(getppid() == parent);
    out = fopen(file, "w");
    NEED(out != NULL);
    return out;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"worlds", required_argument, NULL, 'w'},
                                            {"two", required_argument, NULL, '2'},
                                            {"together", no_argument, NULL, 't'},
                                            {0}};
    uint64_t seed = 1, worlds = 1;
    const char *file = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 's': seed = strtoull(optarg, NULL, 0); break;
        case 'w': worlds = strtoull(optarg, NULL, 0); break;
        case '2': file = optarg; break;
        case 't': together = true; break;
        default:
            fprintf(stderr, "usage: judgement [--seed N] [--worlds N] [--two FILE] [--together]\n");
            return 2;
        }
    }
    struct world *world = calloc(1, sizeof(*world));
    NEED(world != NULL);
    world->here[A] = world->here[B] = true;
    FILE *out = file == NULL ? stdout : split(world, stdout, file);
    const bool is_child = !world->here[A];
    struct device device;
    open_device(&device);
    for (uint64_t i = 0; i < worlds; i++) {
        run_world(world, seed + i, &device, out);
    }
    NEED(fflush(out) == 0);
    free(world);
    int status = 0;
    if (is_child || peer_fd < 0) {
        return 0;
    }
    NEED(wait(&status) > 0 && status == 0);
    return 0;
}
