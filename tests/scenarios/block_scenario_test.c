/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_scenario_test - the same observations of programs over RC and over blocks.
 *
 * Goal    The same programs, posted to both ends of a connection of RC, and of ones of blocks that
 *         are placed early or held, end with the same completions and, if nothing failed, the same
 *         memory. While one runs, the last packet of a WRITE comes last, and where blocks are held
 *         nothing of a later WRITE shows before all of an earlier one.
 * Method  Two NICs in virtual time. The seed draws a program for each end, or for one of them,
 *         which then may have a request that has to fail, and a bad network. Targets of WRITEs,
 *         READs and atomics overlap at will. Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/scenarios/seeds.h"
#include "tests/world/nic_world.h"
#include "tests/world/variety.h"
#include "wire/block.h"

#define REQUESTS_MAX 48
#define SLOT_BYTES   40000u /* Three blocks of the smallest packets. */
#define TARGET_BYTES 60000u
#define BASE         0x100000000u
#define US           UINT64_C(1000000)
#define STEPS_MAX    3000000
#define MORE_STEPS   50

enum manner {
    MANNER_RC,
    MANNER_EARLY,
    MANNER_HOLD,
    MANNER_AUTO,
    MANNER_COUNT,
};

/* Why a request fails; most do not. */
enum flaw {
    FLAW_NONE,
    FLAW_KEY,       /* No such key at the peer. */
    FLAW_BOUNDS,    /* Beyond the peer's region. */
    FLAW_LONG,      /* A SEND longer than its receive. */
    FLAW_LOCAL_KEY, /* No such key here. */
    FLAW_COUNT,
};

struct request {
    enum work_kind kind;
    uint32_t bytes, offset; /* In the target. */
    uint64_t operand;
    uint32_t flags;
    enum flaw flaw;
};

/* The requests that one end posts, and the receives that the other end has open for them. */
struct program {
    uint32_t count, receives_at_once;
    struct request requests[REQUESTS_MAX];
};

struct programs {
    struct program of[2];
    enum path_mtu mtu;
    bool fails; /* One of the first end's requests. */
};

/* The completions of an end's requests, or of its receives. */
struct log {
    struct cq cq;
    struct completion ring[128];
    struct completion done[2 * REQUESTS_MAX];
    uint32_t done_count;
};

struct end {
    struct pd pd;
    struct log sent, received;
    struct qp *qp;
    void *qp_memory;
    struct region local, target;
    uint8_t *local_bytes;  /* A slot for each request, then one for each receive. */
    uint8_t *target_bytes; /* The peer writes to this memory and reads it. */
    uint32_t receives_posted;
};

#define LOCAL_BYTES ((uint64_t)2 * REQUESTS_MAX * SLOT_BYTES)

struct run {
    struct nic_world world;
    struct end ends[2];
    uint64_t seed;
    enum manner manner;
};

static struct seeds seeds;

/* -- Programs -----------------------------------------------------------------------------------*/

static uint32_t draw_bytes(struct prng *prng, uint32_t mtu_bytes)
{
    switch (prng_below(prng, 4)) {
    case 0: return (uint32_t)prng_below(prng, 9);
    case 1: return mtu_bytes * (uint32_t)(1 + prng_below(prng, 3)) - (uint32_t)prng_below(prng, 2);
    case 2: return (uint32_t)prng_below(prng, 5000);
    default: return (uint32_t)prng_below(prng, SLOT_BYTES);
    }
}

static struct request draw_request(struct prng *prng, uint32_t mtu_bytes)
{
    static const enum work_kind kinds[] = {
        WORK_WRITE, WORK_WRITE,     WORK_WRITE_IMMEDIATE, WORK_SEND,        WORK_SEND_IMMEDIATE,
        WORK_READ,  WORK_FETCH_ADD, WORK_COMPARE_SWAP,    WORK_ATOMIC_WRITE};
    struct request request = {.kind = kinds[prng_below(prng, COUNT_OF(kinds))],
                              .bytes = draw_bytes(prng, mtu_bytes),
                              .operand = prng_next(prng),
                              .flags = (prng_below(prng, 8) == 0 ? WORK_FENCE : 0u) |
                                       (prng_below(prng, 4) == 0 ? WORK_SOLICITED : 0u)};
    if (work_kind_in(work_kinds(WORK_IS_ATOMIC), request.kind)) {
        request.bytes = 8;
        request.offset = 8 * (uint32_t)prng_below(prng, 64);
    } else {
        request.offset = (uint32_t)prng_below(prng, TARGET_BYTES - request.bytes);
    }
    return request;
}

static void draw_program(struct prng *prng, enum path_mtu mtu, struct program *program)
{
    program->count = 4 + (uint32_t)prng_below(prng, REQUESTS_MAX - 4);
    program->receives_at_once = 1 + (uint32_t)prng_below(prng, 32);
    bool read = false;
    for (uint32_t i = 0; i < program->count; i++) {
        struct request *request = &program->requests[i];
        *request = draw_request(prng, path_mtu_bytes(mtu));
        if (request->kind != WORK_READ && read) {
            /* Without it what follows a READ may change what the READ returns (IBTA 10.8.3.3). */
            request->flags |= WORK_FENCE;
        }
        read = request->kind == WORK_READ || (read && (request->flags & WORK_FENCE) == 0);
    }
}

static void draw_flaw(struct prng *prng, struct program *program)
{
    struct request *flawed = &program->requests[prng_below(prng, program->count)];
    flawed->flaw = (enum flaw)(1 + prng_below(prng, FLAW_COUNT - 1));
    flawed->kind = flawed->flaw == FLAW_LONG ? WORK_SEND : WORK_WRITE;
    flawed->bytes = 700 + (uint32_t)prng_below(prng, 3000);
    flawed->offset = 0;
}

/* How far the other end comes before one end's failure ends both is chance: so where one fails, the
 * other one posts nothing. */
static void draw_programs(struct prng *prng, struct programs *programs)
{
    programs->mtu = PATH_MTU_256 + (enum path_mtu)prng_below(prng, 5);
    draw_program(prng, programs->mtu, &programs->of[0]);
    programs->fails = prng_below(prng, 2);
    if (programs->fails) {
        draw_flaw(prng, &programs->of[0]);
    } else if (prng_below(prng, 4) != 0) {
        draw_program(prng, programs->mtu, &programs->of[1]);
    }
}

/* -- Two ends -----------------------------------------------------------------------------------*/

static void *zeroed(size_t bytes)
{
    const size_t room = (bytes + 63u) & ~(size_t)63u;
    void *memory = aligned_alloc(64, room);
    memset(memory, 0, room);
    return memory;
}

static void add_region(struct run *run, uint32_t node, struct region *region, uint8_t *memory,
                       uint64_t bytes, uint32_t access)
{
    const struct region_request request = {
        .address = (uintptr_t)memory, .bytes = bytes, .start = BASE, .access = access};
    assert_int_equal(
        region_add(nic_regions(run->world.nodes[node].nic), &run->ends[node].pd, &request, region),
        STATUS_OK);
}

static void make_end(struct run *run, uint32_t node)
{
    struct end *end = &run->ends[node];
    struct nic *nic = run->world.nodes[node].nic;
    const uint32_t all =
        ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
    end->local_bytes = zeroed(LOCAL_BYTES);
    end->target_bytes = zeroed(TARGET_BYTES);
    add_region(run, node, &end->local, end->local_bytes, LOCAL_BYTES, ACCESS_LOCAL_WRITE);
    add_region(run, node, &end->target, end->target_bytes, TARGET_BYTES, all);
    cq_init(&end->sent.cq, 100, end->sent.ring);
    cq_init(&end->received.cq, 100, end->received.ring);
    struct qp_request request = {.type = QP_RC,
                                 .pd = &end->pd,
                                 .send_cq = &end->sent.cq,
                                 .receive_cq = &end->received.cq,
                                 .capacity = {.sends = REQUESTS_MAX,
                                              .receives = REQUESTS_MAX,
                                              .send_sges = 1,
                                              .receive_sges = 1},
                                 .signal_all = true};
    end->qp_memory = zeroed(qp_bytes(QP_RC, &request.capacity, false));
    assert_int_equal(qp_create(nic, &request, end->qp_memory, &end->qp), STATUS_OK);
}

static void connect_end(struct run *run, uint32_t node, enum path_mtu mtu)
{
    const struct instant now = sim_instant(&run->world.sim);
    struct qp_attributes step = {.state = QP_INIT,
                                 .port = 1,
                                 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                                           ACCESS_REMOTE_ATOMIC,
                                 .path_mtu = (uint8_t)mtu,
                                 .psn = {.receive = 7, .send = 7},
                                 .destination_qpn = qp_number(run->ends[!node].qp),
                                 .av = {.source = run->world.nodes[node].gid,
                                        .destination = run->world.nodes[!node].gid,
                                        .peer = NIC_WORLD_PEER},
                                 .max_reads_out = 16,
                                 .max_reads_in = 16,
                                 .min_rnr_timer = 12,
                                 .timeout = 12,
                                 .retry_count = 7,
                                 .rnr_retry = 7};
    static const uint32_t masks[] = {QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
                                     QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                                         QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
                                         QP_ATTR_MIN_RNR_TIMER,
                                     QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                                         QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_SQ_PSN};
    for (uint32_t i = 0; i < COUNT_OF(masks); i++) {
        step.state = (uint8_t)(QP_INIT + i);
        assert_int_equal(qp_modify(run->ends[node].qp, &step, masks[i] | QP_ATTR_STATE, now),
                         STATUS_OK);
    }
}

static struct nic_world_settings draw_weather(struct prng *prng)
{
    const uint64_t latency_ps = US + prng_below(prng, 20 * US);
    const uint32_t worst = prng_below(prng, 3) == 0 ? 0 : 60000;
    return (struct nic_world_settings){
        .move_ps = prng_below(prng, 2) ? 3 * US : 0,
        .link = {
            .latency_ps = latency_ps,
            .reorder_ps = 4 * latency_ps,
            .late_ps = 3000 * US,
            .faults.millionths = {[SIM_FAULT_drop] = (uint32_t)prng_below(prng, worst + 1),
                                  [SIM_FAULT_duplicate] = (uint32_t)prng_below(prng, worst + 1),
                                  [SIM_FAULT_reorder] = (uint32_t)prng_below(prng, 2 * worst + 1),
                                  [SIM_FAULT_late] = worst == 0 ? 0 : 1000,
                                  [SIM_FAULT_lazy] = (uint32_t)prng_below(prng, 300000)}}};
}

/* Where the interface has the connection's MTU, blocks may carry more. */
static struct nic_limits limits_of(struct prng *prng, enum manner manner, enum path_mtu mtu)
{
    static const enum nic_transport transports[MANNER_COUNT] = {
        NIC_TRANSPORT_RC, NIC_TRANSPORT_BLOCK, NIC_TRANSPORT_BLOCK, NIC_TRANSPORT_AUTO};
    const bool scarce = prng_below(prng, 3) == 0, beyond = prng_below(prng, 2) == 0;
    return (struct nic_limits){
        .qps = 4,
        .regions = 8,
        .sends_per_qp = REQUESTS_MAX,
        .receives_per_qp = REQUESTS_MAX,
        .sges = 2,
        .inline_bytes = 64,
        .reads_per_qp = 16,
        .cq_entries = 256,
        .mtu = beyond ? mtu : PATH_MTU_4096,
        .block = {.transport = transports[manner],
                  .place = manner == MANNER_HOLD ? BLOCK_PLACE_HOLD : BLOCK_PLACE_EARLY,
                  .window = 64u << prng_below(prng, 3),
                  .contexts = scarce ? 16 : 256,
                  .held = scarce ? 1 : 512,
                  .reads = scarce ? 1 : 64,
                  .paths = 1 + (uint32_t)prng_below(prng, 3),
                  .peers = 1,
                  .beyond_mtu = beyond,
                  .auto_losses = 1}};
}

static struct run *begin(uint64_t seed, enum manner manner, enum path_mtu mtu)
{
    struct run *run = calloc(1, sizeof(*run));
    struct prng prng;
    prng_init(&prng, seed * 3 + 1);
    const struct nic_world_settings settings = draw_weather(&prng);
    const struct nic_limits limits = limits_of(&prng, manner, mtu);
    run->seed = seed;
    run->manner = manner;
    nic_world_init(&run->world, seed, &settings, &limits);
    for (uint32_t node = 0; node < 2; node++) {
        nic_note_answers(run->world.nodes[node].nic, NIC_WORLD_PEER, true);
        make_end(run, node);
    }
    connect_end(run, 0, mtu);
    connect_end(run, 1, mtu);
    return run;
}

static void end_run(struct run *run)
{
    for (uint32_t node = 0; node < 2; node++) {
        struct end *end = &run->ends[node];
        qp_destroy(end->qp);
        free(end->qp_memory);
        free(end->local_bytes);
        free(end->target_bytes);
    }
    nic_world_free(&run->world);
    free(run);
}

/* -- Posting and reaping ------------------------------------------------------------------------*/

static void post(struct run *run, uint32_t node, const struct request *request, uint32_t number)
{
    struct end *end = &run->ends[node];
    uint8_t *slot = end->local_bytes + (size_t)number * SLOT_BYTES;
    for (uint32_t i = 0; i < request->bytes; i++) {
        slot[i] = (uint8_t)(1 + (node * 101 + number * 37 + i * 7 + (i >> 8)) % 255);
    }
    const struct sge sge = {BASE + (uint64_t)number * SLOT_BYTES, request->bytes,
                            end->local.key ^ (request->flaw == FLAW_LOCAL_KEY ? 1u << 20 : 0)};
    const bool bounds = request->flaw == FLAW_BOUNDS;
    const struct send_request send = {
        .wr_id = number,
        .kind = request->kind,
        .flags = request->flags,
        .sges = &sge,
        .sge_count = 1,
        .immediate = number * 0x01010101u,
        .remote_address = BASE + (bounds ? TARGET_BYTES - 600 : request->offset),
        .remote_key = run->ends[!node].target.key ^ (request->flaw == FLAW_KEY ? 1u << 20 : 0),
        .compare_or_add = request->operand & 3,
        .swap = request->operand & 7};
    assert_int_equal(qp_post_send(end->qp, &send), STATUS_OK);
}

static void post_all(struct run *run, uint32_t node, const struct program *program)
{
    for (uint32_t i = 0; i < program->count; i++) {
        post(run, node, &program->requests[i], i);
    }
}

/* The receive that a SEND which is too long meets is the one of its turn. */
static uint32_t receive_bytes(const struct program *program, uint32_t receive)
{
    uint32_t turn = 0;
    for (uint32_t i = 0; i < program->count; i++) {
        const struct request *request = &program->requests[i];
        if (!work_kind_in(work_kinds(WORK_IS_SEND | WORK_HAS_IMMEDIATE), request->kind)) {
            continue;
        }
        if (turn++ == receive) {
            return request->flaw == FLAW_LONG ? 600 : SLOT_BYTES;
        }
    }
    return SLOT_BYTES;
}

/* At the end that is not the program's. */
static void post_receives(struct run *run, uint32_t node, const struct program *program)
{
    struct end *end = &run->ends[node];
    uint32_t open = end->receives_posted - end->received.done_count;
    while (open < program->receives_at_once && end->receives_posted < REQUESTS_MAX) {
        const uint32_t number = end->receives_posted;
        const struct sge sge = {BASE + (uint64_t)(REQUESTS_MAX + number) * SLOT_BYTES,
                                receive_bytes(program, number), end->local.key};
        if (qp_state_of(end->qp) == QP_ERR ||
            qp_post_receive(end->qp, number, &sge, 1) != STATUS_OK) {
            return;
        }
        end->receives_posted++;
        open++;
    }
}

static void reap_log(struct log *log)
{
    while (log->done_count < COUNT_OF(log->done) &&
           cq_poll(&log->cq, &log->done[log->done_count], 1) == 1) {
        log->done_count++;
    }
}

static void reap(struct run *run)
{
    for (uint32_t node = 0; node < 2; node++) {
        reap_log(&run->ends[node].sent);
        reap_log(&run->ends[node].received);
    }
}

/* -- The same completions and memory ------------------------------------------------------------*/

/* Receives are posted until the queue pair fails, so the number of flushed ones is chance. With RC,
 * a receive whose bytes were on their way at that time completes behind the failure: it is put
 * where it belongs. */
static void drop_flushed(struct log *log, bool sorts)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < log->done_count; i++) {
        if (log->done[i].status != COMPLETION_FLUSHED) {
            uint32_t at = kept++;
            const struct completion moved = log->done[i];
            for (; sorts && at > 0 && log->done[at - 1].wr_id > moved.wr_id; at--) {
                log->done[at] = log->done[at - 1];
            }
            log->done[at] = moved;
        }
    }
    log->done_count = kept;
}

static bool is_done(const struct run *run, const struct programs *programs)
{
    return run->ends[0].sent.done_count >= programs->of[0].count &&
           run->ends[1].sent.done_count >= programs->of[1].count;
}

static struct run *execute(uint64_t seed, enum manner manner, const struct programs *programs)
{
    struct run *run = begin(seed, manner, programs->mtu);
    post_all(run, 0, &programs->of[0]);
    post_all(run, 1, &programs->of[1]);
    for (uint32_t steps = 0; !is_done(run, programs); steps++) {
        if (steps > STEPS_MAX) {
            fail_msg("seed %llu: manner %u: %u of %u and %u of %u done", (unsigned long long)seed,
                     manner, run->ends[0].sent.done_count, programs->of[0].count,
                     run->ends[1].sent.done_count, programs->of[1].count);
        }
        post_receives(run, 0, &programs->of[1]);
        post_receives(run, 1, &programs->of[0]);
        (void)nic_world_step(&run->world);
        reap(run);
    }
    for (uint32_t more = 0; more < MORE_STEPS && nic_world_step(&run->world); more++) {
        reap(run); /* Moves that were on their way into memory. */
    }
    drop_flushed(&run->ends[0].received, manner == MANNER_RC || manner == MANNER_AUTO);
    drop_flushed(&run->ends[1].received, manner == MANNER_RC || manner == MANNER_AUTO);
    return run;
}

/* A responder that refused a request does not answer the READs and atomics before it again. With RC
 * it says only once that it refuses. A requester that does not hear it repeats the request until
 * its retries are used up, and maybe a request before it, too. */
static bool may_miss(const struct completion *completion, bool blocks)
{
    const bool answered =
        COMPLETION_READ == completion->kind || COMPLETION_COMPARE_SWAP == completion->kind ||
        COMPLETION_FETCH_ADD == completion->kind || COMPLETION_ATOMIC_WRITE == completion->kind;
    return completion->status == COMPLETION_RETRY_EXCEEDED && (!blocks || answered);
}

static void compare_logs(const struct run *rc, const struct run *other, uint32_t node,
                         const struct log *expected, const struct log *log, bool fails)
{
    for (uint32_t i = 0; i < expected->done_count; i++) {
        const struct completion *a = &expected->done[i], *b = &log->done[i];
        const bool good = a->status == COMPLETION_SUCCESS;
        if (fails && a->status != b->status &&
            (may_miss(a, false) || may_miss(b, other->manner != MANNER_AUTO))) {
            return;
        }
        if (a->wr_id != b->wr_id || a->status != b->status ||
            (good && (a->kind != b->kind || a->bytes != b->bytes || a->flags != b->flags ||
                      a->immediate != b->immediate || a->solicited != b->solicited))) {
            fail_msg("seed %llu: manner %u: node %u: completion %u: request %llu, status %u, and "
                     "%llu, %u",
                     (unsigned long long)rc->seed, other->manner, node, i,
                     (unsigned long long)a->wr_id, a->status, (unsigned long long)b->wr_id,
                     b->status);
        }
    }
    if (expected->done_count != log->done_count) {
        fail_msg("seed %llu: manner %u: node %u: %u completions instead of %u",
                 (unsigned long long)rc->seed, other->manner, node, log->done_count,
                 expected->done_count);
    }
}

static void compare(const struct run *rc, const struct run *other, bool fails)
{
    for (uint32_t node = 0; node < 2; node++) {
        const struct end *a = &rc->ends[node], *b = &other->ends[node];
        compare_logs(rc, other, node, &a->sent, &b->sent, fails);
        compare_logs(rc, other, node, &a->received, &b->received, fails);
        /* The bytes that a flushed request wrote do not matter. */
        if (!fails && (memcmp(a->target_bytes, b->target_bytes, TARGET_BYTES) != 0 ||
                       memcmp(a->local_bytes, b->local_bytes, LOCAL_BYTES) != 0)) {
            fail_msg("seed %llu: manner %u: other memory", (unsigned long long)rc->seed,
                     other->manner);
        }
    }
}

struct sums {
    uint64_t streams, resent, declined;
};

static void add_up(const struct run *run, struct sums *sums)
{
    for (uint32_t node = 0; node < 2; node++) {
        const uint64_t *values = nic_counters(run->world.nodes[node].nic)->values;
        sums->streams += values[COUNTER_block_streams];
        sums->resent += values[COUNTER_retransmitted_pkts];
        sums->declined += values[COUNTER_blocks_declined];
    }
}

/* EXA-78 EXA-89 EXA-105 EXA-110 */
static void test_same_program_same_end(void **state)
{
    (void)state;
    struct sums sums[MANNER_COUNT] = {0};
    uint64_t seed;
    struct seeds these = seeds;
    while (seeds_next(&these, &seed)) {
        struct prng prng;
        struct programs programs = {0};
        prng_init(&prng, seed);
        draw_programs(&prng, &programs);
        struct run *rc = execute(seed, MANNER_RC, &programs);
        for (enum manner manner = MANNER_EARLY; manner < MANNER_COUNT; manner++) {
            struct run *other = execute(seed, manner, &programs);
            compare(rc, other, programs.fails);
            add_up(other, &sums[manner]);
            end_run(other);
        }
        end_run(rc);
    }
    for (enum manner manner = MANNER_EARLY; manner < MANNER_COUNT && these.count >= 100; manner++) {
        assert_true(sums[manner].streams > 0 && sums[manner].resent > 0);
    }
}

/* -- The order in which bytes are seen ----------------------------------------------------------*/

/* WRITEs beside each other, of bytes that are not 0. */
static void draw_writes(struct prng *prng, struct program *program)
{
    uint32_t offset = 0;
    while (program->count < 8) {
        const uint32_t bytes = 1 + (uint32_t)prng_below(prng, TARGET_BYTES / 8);
        program->requests[program->count++] =
            (struct request){.kind = WORK_WRITE, .bytes = bytes, .offset = offset};
        offset += bytes;
    }
}

/* How much of a WRITE is there: its bytes in ascending order, and in all. */
static void look(const uint8_t *target, const struct request *request, uint32_t *before,
                 uint32_t *in_all)
{
    *before = *in_all = 0;
    for (uint32_t i = 0; i < request->bytes; i++) {
        const bool there = target[request->offset + i] != 0;
        *before += there && *before == i;
        *in_all += there;
    }
}

/* The last packet has at least these bytes, whether its stream carries the MTU or more. */
static uint32_t last_of(uint32_t bytes)
{
    const uint32_t mtu = path_mtu_bytes(PATH_MTU_256), full = 2 * mtu - BLOCK_PAYLOAD_STEP;
    const uint32_t by_mtu = 1 + (bytes - 1) % mtu, by_full = 1 + (bytes - 1) % full;
    return by_mtu < by_full ? by_mtu : by_full;
}

static void expect_order(const struct run *run, const struct program *program, enum manner manner)
{
    bool complete = true; /* All the earlier ones. */
    for (uint32_t i = 0; i < program->count; i++) {
        const struct request *request = &program->requests[i];
        const uint32_t last_bytes = last_of(request->bytes);
        uint32_t before, in_all;
        look(run->ends[1].target_bytes, request, &before, &in_all);
        const uint8_t *end = run->ends[1].target_bytes + request->offset + request->bytes;
        bool begun = false;
        for (uint32_t k = 1; k <= last_bytes; k++) {
            begun |= end[-(int32_t)k] != 0;
        }
        if (begun && (in_all < request->bytes || !complete)) {
            fail_msg("seed %llu: manner %u: WRITE %u shows its end too early",
                     (unsigned long long)run->seed, manner, i);
        }
        if (manner == MANNER_HOLD && ((in_all != 0 && !complete) || before != in_all)) {
            fail_msg("seed %llu: WRITE %u shows before its turn", (unsigned long long)run->seed, i);
        }
        complete = complete && in_all == request->bytes;
    }
}

/* EXA-76 EXA-77 EXA-110 */
static void test_ends_come_last(void **state)
{
    (void)state;
    uint64_t seed;
    struct seeds these = seeds;
    while (seeds_next(&these, &seed)) {
        const enum manner manner = seed % 2 ? MANNER_EARLY : MANNER_HOLD;
        struct prng prng;
        struct program program = {0};
        prng_init(&prng, seed);
        draw_writes(&prng, &program);
        struct run *run = begin(seed, manner, PATH_MTU_256);
        post_all(run, 0, &program);
        uint64_t arrived = 0;
        for (uint32_t steps = 0; run->ends[0].sent.done_count < program.count; steps++) {
            assert_true(steps < STEPS_MAX);
            (void)nic_world_step(&run->world);
            reap(run);
            if (run->world.arrived != arrived && run->world.arrived % 3 == 0) {
                expect_order(run, &program, manner);
            }
            arrived = run->world.arrived;
        }
        expect_order(run, &program, manner);
        end_run(run);
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 150);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_program_same_end),
                                       cmocka_unit_test(test_ends_come_last)};
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
