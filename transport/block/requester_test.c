/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The sending side of a stream of blocks keeps RC's order on a network that loses,
 *         duplicates and reorders, re-sends only what is lost, and gives up when it should.
 * Method  A requester against a plain model of a responder, in virtual time: each position is
 *         marked, each block executed in order, each answer written from that. Runs by seed; and by
 *         hand where one rule is looked at. BN, RN and TSN start just below their wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "transport/block/requester_blocks.h"
#include "transport/common/timing.h"

#define MTU      256
#define FIRST_BN 0xfffffff0u
#define FIRST_RN 0xfffffffau
#define MESSAGES 64
#define BLOCKS   1024
#define FLYING   8192

struct flying {
    uint64_t at_ns;
    bool to_peer;
    uint32_t message; /* Which one a request belongs to. */
    struct block_packet packet;
};

struct message {
    struct work *work;
    uint32_t executions;
    uint64_t delivered[8]; /* READ: positions of each block. */
    bool completed;
};

struct bench {
    struct block_requester *requester;
    struct send_queue queue;
    void *memory, *queue_memory;
    struct block_requester_config config;
    struct path_policy policy;
    struct instant now;
    struct prng prng;
    struct message messages[MESSAGES];
    uint32_t posted, completed;
    bool draining;
    /* The network, in millionths; delays of its paths. */
    uint32_t loss, duplication, answer_loss;
    uint64_t delay_ns[4], jitter_ns;
    struct flying flying[FLYING];
    uint32_t flying_count;
    /* The responder: by BN - FIRST_BN. */
    uint64_t got[BLOCKS];
    uint8_t declined[BLOCKS]; /* The state of its record. */
    uint64_t wanted[BLOCKS];
    uint32_t base, seen;
    uint32_t kept[3], kept_next; /* Atomics whose results are kept: as many as reads_max. */
    uint32_t receives, receives_used;
    uint32_t answers;
    uint32_t declines, no_contexts; /* Millionths. */
    uint64_t refused_ns;
    /* Counts. */
    uint32_t sent, resent, probes, rnr;
    struct block_outgoing out;
};

static struct bench *begin(uint64_t seed)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->policy = path_policy_default();
    bench->config = (struct block_requester_config){
        .first_block = FIRST_BN,
        .first_receive = FIRST_RN,
        .first_tsn = psn_of(0xfffff0),
        .window = 64,
        .read_blocks = 4,
        .mtu_bytes = MTU,
        .packet_cost = 64,
        .trip_ns = 200000,
        .path_count = 1,
        .retry_limit = 7,
        .rnr_limit = RNR_RETRY_FOREVER,
        .reads_max = 3,
        .timeout_code = 14,
        .policy = &bench->policy,
    };
    prng_init(&bench->prng, seed);
    bench->now.ns = 1000000;
    for (uint32_t i = 0; i < 4; i++) {
        bench->delay_ns[i] = 50000;
    }
    bench->receives = 1000;
    return bench;
}

static void start(struct bench *bench)
{
    bench->memory = calloc(1, block_requester_bytes(64, bench->config.path_count));
    bench->requester = block_requester_init(bench->memory, 64, &bench->config, bench->now);
    bench->queue_memory = calloc(1, send_queue_bytes(MESSAGES, 64));
    send_queue_init(&bench->queue, MESSAGES, 64, bench->queue_memory);
}

static void end(struct bench *bench)
{
    block_requester_check(bench->requester, &bench->queue);
    free(bench->memory);
    free(bench->queue_memory);
    free(bench);
}

static struct work *post(struct bench *bench, uint8_t kind, uint32_t bytes, uint8_t flags)
{
    assert_true(bench->posted < MESSAGES);
    struct work *work = send_queue_at(&bench->queue, bench->queue.tail++);
    memset(work, 0, sizeof(*work));
    work->kind = kind;
    work->bytes = bytes;
    work->flags = flags;
    work->wr_id = bench->posted;
    work->remote_address = 0x10000 + bench->posted * 0x10000;
    work->remote_key = 1;
    bench->messages[bench->posted++].work = work;
    return work;
}

static uint32_t end_of(const struct work *work)
{
    return work->first_block - FIRST_BN + block_message_blocks(work->packets);
}

/* -- The network --------------------------------------------------------------------------------*/

static void fly_once(struct bench *bench, const struct block_packet *packet, bool to_peer,
                     uint32_t message, uint8_t path)
{
    const uint64_t jitter = bench->jitter_ns == 0 ? 0 : prng_below(&bench->prng, bench->jitter_ns);
    assert_true(bench->flying_count < FLYING);
    bench->flying[bench->flying_count++] = (struct flying){
        .at_ns = bench->now.ns + bench->delay_ns[path % 4] + jitter,
        .to_peer = to_peer,
        .message = message,
        .packet = *packet,
    };
}

static void fly(struct bench *bench, const struct block_packet *packet, bool to_peer,
                uint32_t message, uint8_t path)
{
    if (prng_chance(&bench->prng, to_peer ? bench->loss : bench->answer_loss)) {
        return;
    }
    fly_once(bench, packet, to_peer, message, path);
    if (prng_chance(&bench->prng, bench->duplication)) {
        fly_once(bench, packet, to_peer, message, path);
    }
}

/* The earliest, in the order of departure; false: nothing flies. */
static bool land(struct bench *bench, struct flying *landed)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < bench->flying_count; i++) {
        if (bench->flying[i].at_ns < bench->flying[first].at_ns) {
            first = i;
        }
    }
    if (bench->flying_count == 0) {
        return false;
    }
    *landed = bench->flying[first];
    bench->flying_count--;
    memmove(&bench->flying[first], &bench->flying[first + 1],
            (bench->flying_count - first) * sizeof(struct flying));
    return true;
}

static uint64_t next_landing(const struct bench *bench)
{
    uint64_t at_ns = UINT64_MAX;
    for (uint32_t i = 0; i < bench->flying_count; i++) {
        at_ns = bench->flying[i].at_ns < at_ns ? bench->flying[i].at_ns : at_ns;
    }
    return at_ns;
}

/* -- The responder ------------------------------------------------------------------------------*/

static const struct work *work_of(const struct bench *bench, uint32_t at)
{
    for (uint32_t i = 0; i < bench->posted; i++) {
        const struct work *work = bench->messages[i].work;
        if (work->started && work->packets != 0 && at >= work->first_block - FIRST_BN &&
            at < end_of(work)) {
            return work;
        }
    }
    return NULL;
}

static uint8_t last_of(const struct work *work, uint32_t at)
{
    return block_last_position(work->packets, at - (work->first_block - FIRST_BN));
}

static bool is_complete(const struct bench *bench, uint32_t at)
{
    const struct work *work = work_of(bench, at);
    return work != NULL &&
           bench->got[at] == (work_wants_response(work) ? 1 : block_positions(last_of(work, at)));
}

/* Records of the oldest blocks that are not complete. */
static void report(const struct bench *bench, struct block_answer *answer)
{
    uint32_t at = bench->base;
    while (at < bench->seen) {
        if (is_complete(bench, at)) {
            at++;
            continue;
        }
        if (answer->record_count == BLOCK_RECORDS_MAX) {
            answer->more = true;
            return;
        }
        struct block_record *record = &answer->records[answer->record_count++];
        *record = (struct block_record){
            .number = FIRST_BN + at, .state = bench->declined[at], .bitmap = bench->got[at]};
        if (bench->got[at] != 0 || bench->declined[at] != 0) {
            at++;
            continue;
        }
        record->state = BLOCK_STATE_RUN;
        while (at < bench->seen && bench->got[at] == 0 && bench->declined[at] == 0) {
            record->bitmap++;
            at++;
        }
    }
}

static void answer(struct bench *bench, const struct block_packet *echo, uint8_t status)
{
    struct block_packet packet = {.opcode = BLOCK_ANSWER,
                                  .tsn = (0xfffffa + bench->answers++) & PSN_MASK};
    packet.answer = (struct block_answer){
        .base = FIRST_BN + bench->base,
        .receive_limit = FIRST_RN + bench->receives,
        .echo_path = echo->path,
        .echo_tsn = echo->tsn,
        .status = status,
        .rnr_code = 1,
    };
    report(bench, &packet.answer);
    assert_int_equal(block_judge(&packet, MTU), BLOCK_CONSISTENT);
    fly(bench, &packet, false, 0, echo->path);
}

static void send_data(struct bench *bench, uint32_t at, uint64_t wanted, uint8_t round)
{
    const struct work *work = work_of(bench, at);
    const uint32_t index = at - (work->first_block - FIRST_BN);
    struct block_packet packet = {.opcode = BLOCK_DATA,
                                  .number = FIRST_BN + at,
                                  .index = index,
                                  .last_position = last_of(work, at),
                                  .last_block = at + 1 == end_of(work),
                                  .round = round};
    for (uint32_t position = 0; position < 64; position++) {
        if ((wanted >> position & 1) == 0) {
            continue;
        }
        packet.position = (uint8_t)position;
        const uint32_t offset = (index * 64 + position) * MTU;
        packet.payload_bytes = work->kind == WORK_ATOMIC_WRITE ? 0
                               : work->bytes - offset < MTU    ? work->bytes - offset
                                                               : MTU;
        fly(bench, &packet, false, 0, 0);
    }
}

static void execute(struct bench *bench)
{
    while (is_complete(bench, bench->base)) {
        const uint32_t at = bench->base;
        const struct work *work = work_of(bench, at);
        struct message *message = &bench->messages[work->wr_id];
        bench->base++;
        if (work_is_atomic(work)) {
            bench->kept[bench->kept_next++ % COUNT_OF(bench->kept)] = at + 1;
        }
        if (work_wants_response(work)) {
            send_data(bench, at, bench->wanted[at], 0);
        }
        if (at + 1 == end_of(work)) {
            message->executions++;
            if (work_takes_receive(work)) {
                assert_int_equal(work->receive_number, FIRST_RN + bench->receives_used);
                bench->receives_used++;
                assert_true(bench->receives_used <= bench->receives);
            }
        }
    }
}

/* A WRITE that is placed before its turn must not be seen: no WRITE before it may name the same
 * memory. */
static void check_early(const struct bench *bench, const struct work *work)
{
    for (uint32_t i = 0; i < work->wr_id; i++) {
        const struct work *before = bench->messages[i].work;
        if (work_is_atomic(before)) {
            assert_true(end_of(before) <= bench->base);
        }
        if (!work_is(before, WORK_IS_WRITE) || before->bytes == 0 ||
            end_of(before) <= bench->base) {
            continue;
        }
        assert_int_equal(before->remote_key, work->remote_key);
        assert_true(before->remote_address + before->bytes <= work->remote_address ||
                    work->remote_address + work->bytes <= before->remote_address);
    }
}

/* A packet of a message whose turn may be to come: true if it is kept. */
static bool keeps(struct bench *bench, const struct work *work, uint32_t at,
                  const struct block_packet *packet, uint8_t *status)
{
    const bool in_order = work->first_block - FIRST_BN <= bench->base;
    const bool takes =
        work_takes_receive(work) && work->receive_number - FIRST_RN >= bench->receives;
    if (in_order) {
        *status = takes ? BLOCK_STATUS_RNR : BLOCK_STATUS_NONE;
    } else if (takes || (packet->opcode == BLOCK_WRITE && work->packets > 1 && !packet->early) ||
               prng_chance(&bench->prng, bench->declines)) {
        bench->declined[at] = BLOCK_STATE_ORDER;
        return false;
    }
    if (at != bench->base && bench->got[at] == 0 && prng_chance(&bench->prng, bench->no_contexts)) {
        bench->declined[at] = BLOCK_STATE_NO_CONTEXT;
        return false;
    }
    if (!in_order && packet->opcode == BLOCK_WRITE && work->packets > 1) {
        check_early(bench, work);
    }
    return *status == BLOCK_STATUS_NONE;
}

static bool is_kept(const struct bench *bench, uint32_t at)
{
    for (uint32_t i = 0; i < COUNT_OF(bench->kept); i++) {
        if (bench->kept[i] == at + 1) {
            return true;
        }
    }
    return false;
}

static void on_request(struct bench *bench, const struct flying *landed)
{
    const struct block_packet *packet = &landed->packet;
    const uint32_t at = packet->number - FIRST_BN;
    uint8_t status = BLOCK_STATUS_NONE;
    if (at >= bench->seen) {
        bench->seen = at + 1;
    }
    if (packet->opcode == BLOCK_PROBE) {
        answer(bench, packet, status);
        return;
    }
    const struct work *work = bench->messages[landed->message].work;
    if (at < bench->base) {
        if (work->kind == WORK_READ || (work_is_atomic(work) && is_kept(bench, at))) {
            send_data(bench, at, packet->opcode == BLOCK_READ ? packet->wanted : 1, packet->round);
        }
        if (packet->ack_request) {
            answer(bench, packet, status);
        }
        return;
    }
    assert_true(at - bench->base < 64);
    const uint8_t declined = bench->declined[at];
    const bool kept = keeps(bench, work, at, packet, &status);
    if (kept) {
        bench->declined[at] = 0;
        bench->got[at] |= UINT64_C(1) << packet->position;
        bench->wanted[at] |= packet->opcode == BLOCK_READ ? packet->wanted : 1;
        execute(bench);
    }
    if (packet->ack_request || status != BLOCK_STATUS_NONE || (!kept && declined == 0)) {
        answer(bench, packet, status);
    }
}

/* -- The requester ------------------------------------------------------------------------------*/

static void check_fence(const struct bench *bench, const struct work *work)
{
    for (uint32_t i = 0; i < work->wr_id && (work->flags & WORK_FENCE); i++) {
        const struct message *before = &bench->messages[i];
        assert_true(before->completed || !work_wants_response(before->work) ||
                    (before->work->awaited == 0 && before->work->moves_pending == 0));
    }
}

static bool pull(struct bench *bench)
{
    struct block_outgoing *out = &bench->out;
    if (!block_requester_next(bench->requester, &bench->queue, bench->draining, bench->now, out)) {
        return false;
    }
    bench->sent++;
    bench->resent += out->resent;
    bench->probes += out->work == NULL;
    if (out->work != NULL && work_is_local(out->work)) {
        return true;
    }
    struct block_packet packet = {.opcode = out->opcode,
                                  .ack_request = out->ack_request,
                                  .tsn = out->tsn.value,
                                  .number = out->number,
                                  .index = out->index,
                                  .position = out->position,
                                  .last_position = out->last_position,
                                  .last_block = out->last_block,
                                  .early = out->early,
                                  .resent = out->resent,
                                  .path = out->path,
                                  .round = out->round,
                                  .payload_bytes = out->bytes};
    if (out->work != NULL) {
        check_fence(bench, out->work);
        packet.message_bytes = out->work->bytes;
        packet.wanted = out->wanted;
        if (out->opcode == BLOCK_ATOMIC) {
            packet.atomic.kind = BLOCK_FETCH_ADD;
        }
    }
    assert_int_equal(block_judge(&packet, MTU), BLOCK_CONSISTENT);
    fly(bench, &packet, true, out->work == NULL ? 0 : (uint32_t)out->work->wr_id, out->path);
    return true;
}

static uint32_t pull_all(struct bench *bench)
{
    uint32_t count = 0;
    while (pull(bench)) {
        count++;
        assert_true(count < 100000);
    }
    return count;
}

static void collect(struct bench *bench)
{
    struct work *work;
    while ((work = block_requester_completed(bench->requester, &bench->queue)) != NULL) {
        assert_int_equal(work->status, COMPLETION_SUCCESS);
        assert_int_equal(work->wr_id, bench->completed);
        assert_true(work_is_local(work) || bench->messages[work->wr_id].executions == 1);
        bench->messages[work->wr_id].completed = true;
        bench->completed++;
        bench->queue.head++;
    }
}

static void on_arrival(struct bench *bench, const struct block_packet *packet)
{
    if (packet->opcode == BLOCK_ANSWER) {
        const struct block_progress progress = block_requester_on_answer(
            bench->requester, &bench->queue, packet, bench->now, bench->now);
        assert_true(progress.verdict == BLOCK_PROGRESS || progress.verdict == BLOCK_STALE ||
                    progress.verdict == BLOCK_PAUSE);
        bench->rnr += progress.verdict == BLOCK_PAUSE;
    } else {
        const struct block_progress progress =
            block_requester_on_data(bench->requester, &bench->queue, packet, bench->now);
        assert_true(progress.verdict == BLOCK_DATA_COMES || progress.verdict == BLOCK_STALE);
        if (progress.verdict == BLOCK_DATA_COMES) {
            struct message *message = &bench->messages[progress.work->wr_id];
            const uint64_t bit = UINT64_C(1) << packet->position;
            assert_int_equal(progress.offset, (packet->index * 64 + packet->position) * MTU);
            assert_true((message->delivered[packet->index] & bit) == 0);
            message->delivered[packet->index] |= bit;
            block_requester_on_moved(bench->requester, progress.work);
        }
    }
    collect(bench);
}

/* One thing happens: something lands, or a timer runs out. */
static void step(struct bench *bench)
{
    const struct instant deadline = block_requester_deadline(bench->requester);
    const uint64_t landing = next_landing(bench);
    assert_true(landing != UINT64_MAX || deadline.ns != UINT64_MAX);
    if (deadline.ns < landing) {
        bench->now.ns = deadline.ns > bench->now.ns ? deadline.ns : bench->now.ns;
        if (block_requester_on_time(bench->requester, bench->now)) {
            assert_int_equal(
                block_requester_on_timeout(bench->requester, &bench->queue, bench->now).verdict,
                BLOCK_PROGRESS);
        }
    } else {
        struct flying landed;
        assert_true(land(bench, &landed));
        bench->now.ns = landed.at_ns;
        if (landed.to_peer) {
            on_request(bench, &landed);
            if (prng_chance(&bench->prng, 200000)) {
                bench->receives++;
            }
        } else {
            on_arrival(bench, &landed.packet);
        }
    }
    pull_all(bench);
    collect(bench);
}

static void run(struct bench *bench)
{
    pull_all(bench);
    collect(bench);
    for (uint32_t steps = 0; bench->completed != bench->posted; steps++) {
        assert_true(steps < 400000);
        step(bench);
    }
    assert_true(block_requester_drained(bench->requester, &bench->queue));
}

/* -- By seed ------------------------------------------------------------------------------------*/

static void post_something(struct bench *bench)
{
    static const uint8_t kinds[] = {
        WORK_WRITE, WORK_WRITE,        WORK_WRITE,           WORK_SEND,
        WORK_SEND,  WORK_READ,         WORK_FETCH_ADD,       WORK_WRITE_IMMEDIATE,
        WORK_WRITE, WORK_ATOMIC_WRITE, WORK_LOCAL_INVALIDATE};
    static const uint32_t packets[] = {0, 1, 1, 1, 2, 3, 9, 64, 65, 140};
    const uint8_t kind = kinds[prng_below(&bench->prng, sizeof(kinds))];
    const uint32_t count = packets[prng_below(&bench->prng, COUNT_OF(packets))];
    const uint32_t bytes = work_kind_in(work_kinds(WORK_IS_ATOMIC), kind) ? 8
                           : count == 0                                   ? 0
                                        : count * MTU - (uint32_t)prng_below(&bench->prng, MTU);
    struct work *work =
        post(bench, kind, bytes, prng_chance(&bench->prng, 100000) ? WORK_FENCE : 0);
    if (prng_chance(&bench->prng, 500000)) {
        work->remote_address = 0x10000 + prng_below(&bench->prng, 40) * MTU;
    }
    work->remote_key = 1 + prng_chance(&bench->prng, 100000);
}

static void run_seed(uint64_t seed)
{
    static const uint32_t losses[] = {0, 10000, 100000, 300000};
    struct bench *bench = begin(seed);
    bench->loss = losses[seed % 4];
    bench->answer_loss = losses[seed / 4 % 4];
    bench->duplication = seed % 3 == 0 ? 50000 : 0;
    bench->jitter_ns = seed % 5 == 0 ? 200000 : seed % 5 == 1 ? 10000 : 0;
    bench->config.path_count = (uint8_t)(1 + seed % 3);
    bench->delay_ns[1] = 400000;
    bench->delay_ns[2] = 1000000;
    bench->config.link_window_bytes = seed % 7 == 0 ? 4000 : seed % 7 == 1 ? 40000 : 0;
    bench->config.window = seed % 6 == 0 ? 3 : 64;
    bench->config.read_blocks = 1 + seed % 4;
    bench->config.timeout_code = 22;
    bench->config.packet_cost = seed % 11 == 0 ? 0 : 64;
    bench->receives = (uint32_t)(seed % 8);
    bench->declines = seed % 9 == 0 ? 200000 : 0;
    bench->no_contexts = seed % 10 == 0 ? 200000 : 0;
    start(bench);
    const uint32_t count = 1 + (uint32_t)prng_below(&bench->prng, 40);
    for (uint32_t i = 0; i < count; i++) {
        post_something(bench);
        if (prng_chance(&bench->prng, 300000)) {
            pull_all(bench);
        }
    }
    run(bench);
    end(bench);
}

/* EXA-77 EXA-78 EXA-84 EXA-85 EXA-86 EXA-87 EXA-94 EXA-96 */
static void test_bad_networks(void **state)
{
    (void)state;
    const char *from = getenv("BLOCK_SEED");
    const uint64_t first = from == NULL ? 0 : strtoull(from, NULL, 10);
    const uint64_t count = from == NULL ? 6000 : 1;
    for (uint64_t seed = first; seed < first + count; seed++) {
        run_seed(seed);
    }
}

/* -- By hand ------------------------------------------------------------------------------------*/

static struct bench *simple(void)
{
    struct bench *bench = begin(1);
    start(bench);
    return bench;
}

static bool lost(struct bench *bench)
{
    struct flying landed;
    return land(bench, &landed);
}

/* Lets all that flies land, and what follows from it, but no timer run out. */
static void quiesce(struct bench *bench)
{
    while (bench->flying_count != 0) {
        const uint64_t landing = next_landing(bench);
        struct flying landed;
        assert_true(land(bench, &landed));
        bench->now.ns = landing;
        if (landed.to_peer) {
            on_request(bench, &landed);
        } else {
            on_arrival(bench, &landed.packet);
        }
        pull_all(bench);
    }
    collect(bench);
}

static struct block_progress told(struct bench *bench, const struct block_answer *answer)
{
    const struct block_packet packet = {
        .opcode = BLOCK_ANSWER, .tsn = bench->answers++, .answer = *answer};
    return block_requester_on_answer(bench->requester, &bench->queue, &packet, bench->now,
                                     bench->now);
}

/* Packets under way when an answer has come from so far, and the window of paths is no limit. */
static uint32_t under_way(uint64_t trip_ns)
{
    struct bench *bench = begin(1);
    bench->policy.congestion.start_bytes = 1 << 24;
    bench->config.trip_ns = trip_ns;
    bench->config.link_window_bytes = 100 * (MTU + 64);
    bench->config.far_window_bytes = 1000 * (MTU + 64);
    start(bench);
    post(bench, WORK_WRITE, 8 * MTU, 0);
    post(bench, WORK_WRITE, 2000 * MTU, 0);
    pull_all(bench);
    assert_int_equal(path_flight(paths_at(&bench->requester->paths, 0)), 100 * (MTU + 64));
    bench->now.ns += trip_ns;
    assert_int_equal(
        told(bench,
             &(struct block_answer){.base = FIRST_BN + 1, .echo_tsn = 0xfffff7, .limit_void = true})
            .verdict,
        BLOCK_PROGRESS);
    pull_all(bench);
    const uint32_t packets = path_flight(paths_at(&bench->requester->paths, 0)) / (MTU + 64);
    end(bench);
    return packets;
}

/* On a long route the whole grant may be under way; on a short one it gains nothing. */
static void test_windows_of_long_ways(void **state)
{
    (void)state;
    assert_in_range(under_way(BLOCK_FAR_NS / 2), 80, 100);
    assert_in_range(under_way(BLOCK_FAR_NS * 2), 900, 1000);
}

/* EXA-97 */
static void test_answers_are_asked_for_once_a_block(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->policy.congestion.start_bytes = 1 << 24;
    bench->policy.congestion.start_packets = 1 << 12;
    start(bench);
    post(bench, WORK_WRITE, 4 * 64 * MTU, 0);
    run(bench);
    assert_int_equal(bench->sent, 4 * 64);
    assert_in_range(bench->answers, 4, 12);
    assert_int_equal(bench->resent, 0);
    const uint32_t answers = bench->answers;
    for (uint32_t i = 0; i < 12; i++) {
        post(bench, WORK_SEND, 8, WORK_SIGNALED);
    }
    run(bench);
    assert_in_range(bench->answers, answers + 1, answers + 2);
    end(bench);
}

/* EXA-97 */
static void test_old_answers_change_nothing(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 1, 0);
    post(bench, WORK_WRITE, 1, 0);
    assert_int_equal(pull_all(bench), 2);
    bench->answers = 5;
    const struct block_answer one = {.base = FIRST_BN + 1, .echo_void = true, .limit_void = true};
    assert_int_equal(told(bench, &one).verdict, BLOCK_PROGRESS);
    bench->answers = 5;
    const struct block_answer two = {.base = FIRST_BN + 2, .echo_void = true, .limit_void = true};
    assert_int_equal(told(bench, &two).verdict, BLOCK_STALE);
    assert_int_equal(bench->requester->base, FIRST_BN + 1);
    assert_int_equal(told(bench, &two).verdict, BLOCK_PROGRESS);
    assert_int_equal(bench->requester->base, FIRST_BN + 2);
    end(bench);
}

/* A program that comes back after a while finds answers that lay here: its absence is no part of
 * the round trip, which says how long the network's queues are. */
static void test_answers_that_lay_here(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 1, 0);
    assert_int_equal(pull_all(bench), 1);
    struct path *path = paths_at(&bench->requester->paths, 0);
    const struct block_packet packet = {
        .opcode = BLOCK_ANSWER,
        .answer = {.base = FIRST_BN + 1,
                   .limit_void = true,
                   .echo_tsn = psn_before(path->next, 1).value,
                   .echo_delay_ns = 3000},
    };
    const struct instant came = instant_after(bench->now, 103000);
    bench->now = instant_after(came, 5000000);
    assert_int_equal(
        block_requester_on_answer(bench->requester, &bench->queue, &packet, came, bench->now)
            .verdict,
        BLOCK_PROGRESS);
    assert_int_equal(path->rtt.newest_ns, 100000);
    end(bench);
}

/* EXA-103 */
static void test_impossible_answers_change_nothing(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 3 * MTU, 0);
    post(bench, WORK_READ, 3 * MTU, 0);
    assert_int_equal(pull_all(bench), 4);
    const struct block_answer answers[] = {
        {.base = FIRST_BN + 3, .echo_void = true},
        {.base = FIRST_BN - 2000, .echo_void = true},
        {.base = FIRST_BN + 2, .echo_void = true, .status = BLOCK_STATUS_INVALID_REQUEST},
        {.base = FIRST_BN + 1, .echo_path = 1},
        {.base = FIRST_BN + 1, .echo_tsn = 0xfffff4},
        {.base = FIRST_BN,
         .echo_void = true,
         .record_count = 1,
         .records = {{.number = FIRST_BN, .bitmap = 8}}},
        {.base = FIRST_BN,
         .echo_void = true,
         .record_count = 1,
         .records = {{.number = FIRST_BN + 2, .bitmap = 1}}},
        {.base = FIRST_BN,
         .echo_void = true,
         .record_count = 1,
         .records = {{.number = FIRST_BN + 1, .state = BLOCK_STATE_RUN, .bitmap = 2}}},
        {.base = FIRST_BN,
         .echo_void = true,
         .record_count = 1,
         .records = {{.number = FIRST_BN, .state = BLOCK_STATE_REFUSED}}},
    };
    struct block_requester *before = malloc(sizeof(*before));
    *before = *bench->requester;
    for (uint32_t i = 0; i < COUNT_OF(answers); i++) {
        assert_int_equal(told(bench, &answers[i]).verdict, BLOCK_IMPOSSIBLE);
        assert_memory_equal(before, bench->requester, sizeof(*before));
    }
    const struct block_packet data[] = {
        {.opcode = BLOCK_DATA, .number = FIRST_BN + 2, .payload_bytes = MTU},
        {.opcode = BLOCK_DATA, .number = FIRST_BN, .payload_bytes = MTU},
        {.opcode = BLOCK_DATA, .number = FIRST_BN + 1, .position = 3, .payload_bytes = MTU},
    };
    for (uint32_t i = 0; i < COUNT_OF(data); i++) {
        assert_int_equal(
            block_requester_on_data(bench->requester, &bench->queue, &data[i], bench->now).verdict,
            BLOCK_IMPOSSIBLE);
        assert_memory_equal(before, bench->requester, sizeof(*before));
    }
    free(before);
    end(bench);
}

/* EXA-103: a run that begins before base does not go beyond what was begun either. */
static void test_runs_end_with_what_was_begun(void **state)
{
    (void)state;
    struct bench *bench = simple();
    for (uint32_t i = 0; i < 3; i++) {
        post(bench, WORK_WRITE, 8, 0);
    }
    assert_int_equal(pull_all(bench), 3);
    struct block_answer answer = {.base = FIRST_BN + 1, .echo_void = true, .limit_void = true};
    assert_int_equal(told(bench, &answer).verdict, BLOCK_PROGRESS);
    answer.base = FIRST_BN;
    answer.record_count = 1;
    answer.records[0] =
        (struct block_record){.number = FIRST_BN, .state = BLOCK_STATE_RUN, .bitmap = 4};
    assert_int_equal(told(bench, &answer).verdict, BLOCK_IMPOSSIBLE);
    answer.records[0].bitmap = 3;
    assert_int_equal(told(bench, &answer).verdict, BLOCK_PROGRESS);
    assert_int_equal(bench->requester->blocks[(FIRST_BN + 2) & 63].state, BLOCK_SENDING_INCOMPLETE);
    end(bench);
}

/* EXA-90: what was declined for its order goes again when base has come to it, and what is missing
 * when a later packet is known to have come; neither before. */
static void test_declined_for_its_order(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 8, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    assert_int_equal(pull_all(bench), 3);
    struct block_answer answer = {
        .base = FIRST_BN,
        .echo_void = true,
        .limit_void = true,
        .record_count = 2,
        .records = {{.number = FIRST_BN, .state = BLOCK_STATE_RUN, .bitmap = 1},
                    {.number = FIRST_BN + 1, .state = BLOCK_STATE_ORDER}}};
    assert_int_equal(told(bench, &answer).verdict, BLOCK_PROGRESS);
    bench->now.ns += 300000;
    assert_int_equal(pull_all(bench), 0);
    answer.echo_void = false;
    answer.echo_tsn = bench->out.tsn.value;
    assert_int_equal(told(bench, &answer).verdict, BLOCK_PROGRESS);
    bench->now.ns += 300000;
    assert_int_equal(pull_all(bench), 1);
    assert_int_equal(bench->out.number, FIRST_BN);
    answer.base = FIRST_BN + 1;
    answer.echo_tsn = bench->out.tsn.value;
    answer.record_count = 1;
    answer.records[0] = answer.records[1];
    assert_int_equal(told(bench, &answer).verdict, BLOCK_PROGRESS);
    bench->now.ns += 300000;
    assert_int_equal(pull_all(bench), 2);
    assert_int_equal(bench->out.number, FIRST_BN + 1);
    end(bench);
}

/* Only the packet that was lost goes again. */
static void test_one_lost_packet(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 20 * MTU, 0);
    assert_int_equal(pull_all(bench), 20);
    assert_true(lost(bench));
    run(bench);
    assert_int_equal(bench->resent, 1);
    assert_int_equal(bench->probes, 0);
    end(bench);
}

/* EXA-98: a tail is found by a probe, and nothing else goes again. */
static void test_lost_tail(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 20 * MTU, 0);
    assert_int_equal(pull_all(bench), 20);
    bench->flying_count -= 2;
    const uint64_t begun = bench->now.ns;
    run(bench);
    assert_int_equal(bench->resent, 2);
    assert_int_equal(bench->probes, 1);
    assert_true(bench->now.ns - begun < 10000000);
    end(bench);
}

/* EXA-98 */
static void test_lost_answer(void **state)
{
    (void)state;
    struct bench *bench = simple();
    bench->answer_loss = 1000000;
    post(bench, WORK_WRITE, 20 * MTU, 0);
    pull_all(bench);
    quiesce(bench);
    bench->answer_loss = 0;
    run(bench);
    assert_int_equal(bench->resent, 0);
    assert_int_equal(bench->probes, 1);
    end(bench);
}

/* A message that nothing follows is followed by a probe while packets were lost lately. */
static void test_probe_behind_a_lone_message(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 20 * MTU, 0);
    pull_all(bench);
    assert_true(lost(bench));
    run(bench);
    post(bench, WORK_WRITE, 8, 0);
    assert_int_equal(pull_all(bench), 2);
    assert_null(bench->out.work);
    quiesce(bench);
    bench->now.ns += 2000000000;
    post(bench, WORK_WRITE, 8, 0);
    assert_int_equal(pull_all(bench), 1);
    quiesce(bench);
    end(bench);
}

/* EXA-97: blocks of which nothing came are asked for as a run. */
static void test_lost_run(void **state)
{
    (void)state;
    struct bench *bench = simple();
    for (uint32_t i = 0; i < 50; i++) {
        post(bench, WORK_SEND, 8, 0);
    }
    assert_int_equal(pull_all(bench), 50);
    for (uint32_t i = 0; i < 49; i++) {
        assert_true(lost(bench));
    }
    const uint64_t begun = bench->now.ns;
    quiesce(bench);
    while (bench->completed != bench->posted) {
        step(bench);
    }
    assert_int_equal(bench->resent, 49);
    assert_true(bench->now.ns - begun < 4 * 2 * bench->delay_ns[0]);
    end(bench);
}

/* EXA-65: paths that differ lose nothing. */
static void test_unequal_paths(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    bench->delay_ns[1] = 1050000;
    start(bench);
    for (uint32_t i = 0; i < 16; i++) {
        post(bench, WORK_WRITE, 64 * MTU, 0);
    }
    run(bench);
    assert_int_equal(bench->resent, 0);
    end(bench);
}

/* Nothing is heard until the path has left its own route twice; then all requests complete. */
static void leave_the_own_way(struct bench *bench)
{
    struct path *path = paths_at(&bench->requester->paths, 0);
    while (path->turns != 2) {
        bench->now = block_requester_deadline(bench->requester);
        assert_false(block_requester_on_time(bench->requester, bench->now));
        while (pull(bench)) {
            assert_int_equal(bench->out.opcode, BLOCK_PROBE);
            assert_false(bench->out.own_route);
        }
    }
    const struct block_answer done = {.base = FIRST_BN + bench->posted,
                                      .limit_void = true,
                                      .answers_probe = true,
                                      .echo_tsn = bench->out.tsn.value};
    assert_int_equal(told(bench, &done).verdict, BLOCK_PROGRESS);
    assert_int_equal(path->turns, 2);
}

/* `posted` messages leave, and one probe of the own route with them. */
static void probe_the_own_way(struct bench *bench, uint32_t posted)
{
    uint32_t probes = 0;
    for (uint32_t i = 0; i < posted; i++) {
        post(bench, WORK_WRITE, MTU, 0);
    }
    while (pull(bench)) {
        assert_true(bench->out.own_route || bench->out.opcode == BLOCK_WRITE);
        assert_int_equal(bench->out.round, 0);
        probes += bench->out.own_route;
    }
    assert_int_equal(probes, 1);
}

static struct bench *away(void)
{
    struct bench *bench = simple();
    post(bench, WORK_WRITE, MTU, 0);
    assert_int_equal(pull_all(bench), 1);
    leave_the_own_way(bench);
    return bench;
}

static uint32_t turns_after(struct bench *bench, bool answers_probe)
{
    const struct block_answer answer = {.base = FIRST_BN + 1,
                                        .limit_void = true,
                                        .answers_probe = answers_probe,
                                        .echo_void = true};
    assert_true(told(bench, &answer).verdict != BLOCK_IMPOSSIBLE);
    return paths_at(&bench->requester->paths, 0)->turns;
}

/* EXA-100: a path that left its own route, which may have been dead or the peer's that only paused,
 * tries it again while it is in use, and takes it when that is answered. */
static void test_a_path_comes_home(void **state)
{
    (void)state;
    struct bench *bench = away();
    bench->now.ns += 2 * bench->policy.revive_ns;
    assert_false(pull(bench)); /* It is idle. */
    probe_the_own_way(bench, 2);
    assert_int_equal(turns_after(bench, false), 2); /* To something else. */
    assert_int_equal(turns_after(bench, true), 0);
    bench->now.ns += bench->policy.revive_most_ns;
    post(bench, WORK_WRITE, MTU, 0);
    while (pull(bench)) {
        assert_false(bench->out.own_route);
    }
    end(bench);
}

/* EXA-100: tries that are in vain become rare; an answer to another probe is none to them. */
static void test_a_path_stays_away(void **state)
{
    (void)state;
    struct bench *bench = away();
    uint64_t wait = bench->policy.revive_ns;
    for (uint32_t tries = 0; tries < 10; tries++) {
        bench->now.ns += wait;
        probe_the_own_way(bench, 1);
        wait = 2 * wait < bench->policy.revive_most_ns ? 2 * wait : bench->policy.revive_most_ns;
        bench->now.ns += wait - 1;
        post(bench, WORK_WRITE, MTU, 0);
        assert_true(pull(bench) && bench->out.opcode == BLOCK_WRITE);
        bench->now.ns -= wait - 1;
    }
    bench->requester->paths.probes = 1;
    assert_true(pull(bench) && bench->out.opcode == BLOCK_PROBE && !bench->out.own_route);
    assert_int_equal(bench->out.round, 2);
    assert_int_equal(turns_after(bench, true), 2);
    end(bench);
}

/* EXA-78: D. A request that has to wait for its turn waits at the peer. */
static void test_order_of_writes(void **state)
{
    (void)state;
    struct bench *bench = simple();
    struct work *first = post(bench, WORK_WRITE, 2 * MTU, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    assert_int_equal(pull_all(bench), 4);
    assert_true(bench->out.early);
    struct work *same = post(bench, WORK_WRITE, 2 * MTU, 0);
    same->remote_address = first->remote_address + 2 * MTU - 1;
    assert_int_equal(pull_all(bench), 2);
    assert_false(bench->out.early);
    quiesce(bench);
    assert_int_equal(bench->completed, 3);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0)->remote_key = 2;
    assert_int_equal(pull_all(bench), 4);
    assert_false(bench->out.early);
    quiesce(bench);
    post(bench, WORK_FETCH_ADD, 8, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    assert_int_equal(pull_all(bench), 3);
    assert_false(bench->out.early);
    quiesce(bench);
    assert_int_equal(bench->completed, bench->posted);
    end(bench);
}

/* EXA-78: the peer has no room for requests that wait: until all is executed no other one leaves. A
 * declined block goes behind the last one it waits for, and goes again only when base has come half
 * the way. */
static void test_declined_writes(void **state)
{
    (void)state;
    struct bench *bench = simple();
    for (uint32_t i = 0; i < 9; i++) {
        post(bench, WORK_WRITE, 2 * MTU, 0)->remote_address = 0;
    }
    assert_int_equal(pull_all(bench), 18);
    const struct block_answer declined = {
        .base = FIRST_BN,
        .echo_tsn = bench->out.tsn.value,
        .record_count = 1,
        .records = {{.number = FIRST_BN + 8, .state = BLOCK_STATE_ORDER}}};
    bench->flying_count = 0;
    bench->now.ns += 100000;
    assert_int_equal(told(bench, &declined).verdict, BLOCK_PROGRESS);
    bench->now.ns += 100000;
    post(bench, WORK_WRITE, 2 * MTU, 0)->remote_address = 0;
    assert_int_equal(pull_all(bench), 2);
    assert_true(bench->out.resent && bench->out.number == FIRST_BN + 8);
    for (uint32_t base = 0; base < 5; base++) {
        const struct block_answer again = {
            .base = FIRST_BN + base,
            .echo_tsn = bench->out.tsn.value,
            .record_count = 1,
            .records = {{.number = FIRST_BN + 8, .state = BLOCK_STATE_ORDER}}};
        bench->now.ns += 100000;
        assert_int_equal(told(bench, &again).verdict, BLOCK_PROGRESS);
        assert_int_equal(pull_all(bench), base == 4 ? 2 : 0);
    }
    const struct block_answer all = {.base = FIRST_BN + 9, .echo_void = true};
    bench->flying_count = 0;
    assert_int_equal(told(bench, &all).verdict, BLOCK_PROGRESS);
    assert_int_equal(pull_all(bench), 2);
    assert_false(bench->out.resent);
    end(bench);
}

/* EXA-87 */
static void test_fence(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_READ, 2 * MTU, 0);
    post(bench, WORK_SEND, 8, 0);
    assert_int_equal(pull_all(bench), 2);
    post(bench, WORK_SEND, 8, WORK_FENCE);
    assert_int_equal(pull_all(bench), 0);
    quiesce(bench);
    assert_int_equal(bench->completed, 3);
    end(bench);
}

/* EXA-88 */
static void test_receive_limit(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->receives = 1;
    start(bench);
    for (uint32_t i = 0; i < 3; i++) {
        post(bench, WORK_SEND, 8, 0);
    }
    pull_all(bench);
    const struct block_answer limit = {
        .base = FIRST_BN + 1, .echo_void = true, .receive_limit = FIRST_RN + 1};
    bench->flying_count = 0;
    assert_int_equal(bench->sent, 3); /* Nobody has told of a limit. */
    assert_int_equal(told(bench, &limit).verdict, BLOCK_PROGRESS);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_WRITE, 8, 0);
    bench->now.ns += 1000000;
    assert_int_equal(pull_all(bench), 0);
    const struct block_answer all = {
        .base = FIRST_BN + 3, .echo_void = true, .receive_limit = FIRST_RN + 3};
    assert_int_equal(told(bench, &all).verdict, BLOCK_PROGRESS);
    bench->now.ns += 1000000;
    assert_int_equal(pull_all(bench), 2); /* One may always be under way. */
    end(bench);
}

/* EXA-88: a wait is not counted twice, ends by its time only, and re-sends what is not marked. */
static void test_no_receive(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.rnr_limit = 1;
    start(bench);
    post(bench, WORK_SEND, 2 * MTU, 0);
    assert_int_equal(pull_all(bench), 2);
    const struct block_answer early = {.base = FIRST_BN,
                                       .status = BLOCK_STATUS_RNR,
                                       .limit_void = true,
                                       .echo_tsn = 0xfffff0,
                                       .rnr_code = 14};
    assert_int_equal(told(bench, &early).verdict, BLOCK_PAUSE);
    struct block_answer again = early;
    again.echo_tsn++;
    assert_int_equal(told(bench, &again).verdict, BLOCK_PROGRESS);
    assert_int_equal(pull_all(bench), 0);
    assert_int_equal(block_requester_deadline(bench->requester).ns,
                     bench->now.ns + rnr_timer_ns(14));
    bench->now.ns += rnr_timer_ns(14);
    assert_int_equal(pull_all(bench), 2);
    assert_true(bench->out.resent && bench->out.ack_request);
    assert_int_equal(told(bench, &again).verdict, BLOCK_PROGRESS); /* Left before the wait. */
    again.echo_tsn++;
    const struct block_progress progress = told(bench, &again);
    assert_int_equal(progress.verdict, BLOCK_FAILED);
    assert_int_equal(progress.work->status, COMPLETION_RNR_RETRY_EXCEEDED);
    assert_int_equal(pull_all(bench), 0);
    end(bench);
}

/* EXA-88: giving up waits for the data of a READ before it, which may come behind the refusal. */
static void test_no_receive_behind_a_read(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.rnr_limit = 0;
    start(bench);
    post(bench, WORK_READ, MTU, 0);
    struct work *send = post(bench, WORK_SEND, 8, 0);
    assert_int_equal(pull_all(bench), 2);
    const struct block_answer none = {.base = FIRST_BN + 1,
                                      .status = BLOCK_STATUS_RNR,
                                      .limit_void = true,
                                      .echo_tsn = bench->out.tsn.value,
                                      .rnr_code = 14};
    const struct block_progress progress = told(bench, &none);
    assert_int_equal(progress.verdict, BLOCK_FAILED);
    assert_ptr_equal(progress.work, send);
    assert_int_equal(send->status, COMPLETION_RNR_RETRY_EXCEEDED);
    bench->messages[0].executions = 1;
    const struct block_packet data = {
        .opcode = BLOCK_DATA, .number = FIRST_BN, .last_block = true, .payload_bytes = MTU};
    on_arrival(bench, &data);
    assert_int_equal(bench->completed, 1);
    assert_int_equal(bench->requester->mode, BLOCK_REQUESTER_STOPPED);
    end(bench);
}

/* EXA-88: the count starts anew when base moves. */
static void test_pauses_start_anew(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.rnr_limit = 1;
    start(bench);
    for (uint32_t i = 0; i < 5; i++) {
        post(bench, WORK_SEND, 8, 0);
        pull_all(bench);
        const struct block_answer none = {.base = FIRST_BN + i,
                                          .status = BLOCK_STATUS_RNR,
                                          .limit_void = true,
                                          .echo_tsn = bench->out.tsn.value,
                                          .rnr_code = 14};
        assert_int_equal(told(bench, &none).verdict, BLOCK_PAUSE);
        bench->now.ns += rnr_timer_ns(14);
        assert_int_equal(pull_all(bench), 1);
        const struct block_answer done = {
            .base = FIRST_BN + i + 1, .echo_void = true, .limit_void = true};
        assert_int_equal(told(bench, &done).verdict, BLOCK_PROGRESS);
        bench->now.ns += 1000000;
    }
    end(bench);
}

static void test_depth_of_reads(void **state)
{
    (void)state;
    struct bench *bench = simple();
    for (uint32_t i = 0; i < 5; i++) {
        post(bench, i % 2 == 0 ? WORK_READ : WORK_FETCH_ADD, 8, 0);
    }
    assert_int_equal(pull_all(bench), 3);
    run(bench);
    end(bench);
}

/* EXA-103: a block of which not all has left cannot have been executed. */
static void test_base_beyond_what_was_sent(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 3 * MTU, 0);
    assert_true(pull(bench) && pull(bench));
    const struct block_answer beyond = {
        .base = FIRST_BN + 1, .echo_void = true, .limit_void = true};
    assert_int_equal(told(bench, &beyond).verdict, BLOCK_IMPOSSIBLE);
    assert_true(pull(bench));
    assert_int_equal(told(bench, &beyond).verdict, BLOCK_PROGRESS);
    end(bench);
}

/* EXA-103: neither by data of a READ that took another path. */
static void test_data_beyond_what_was_sent(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    bench->policy.congestion.start_bytes = 1;
    bench->policy.congestion.start_packets = 4;
    start(bench);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    post(bench, WORK_READ, MTU, 0);
    assert_in_range(pull_all(bench), 2, 63);
    assert_int_equal(bench->out.opcode, BLOCK_READ);
    const struct block_packet data = {
        .opcode = BLOCK_DATA, .number = FIRST_BN + 1, .last_block = true, .payload_bytes = MTU};
    assert_int_equal(
        block_requester_on_data(bench->requester, &bench->queue, &data, bench->now).verdict,
        BLOCK_IMPOSSIBLE);
    assert_int_equal(bench->requester->base, FIRST_BN);
    run(bench);
    end(bench);
}

/* Positions that an answer lists go again; positions that only an earlier answer listed have
 * come. */
static void test_reports_replace_each_other(void **state)
{
    (void)state;
    struct bench *bench = simple();
    for (uint32_t i = 0; i < 3; i++) {
        post(bench, WORK_WRITE, 2 * MTU, 0);
    }
    assert_int_equal(pull_all(bench), 6);
    bench->now.ns += 100000;
    struct block_answer listed = {
        .base = FIRST_BN,
        .limit_void = true,
        .echo_tsn = 0xfffff5,
        .record_count = 2,
        .records = {{.number = FIRST_BN, .bitmap = 1}, {.number = FIRST_BN + 1, .bitmap = 2}}};
    assert_int_equal(told(bench, &listed).verdict, BLOCK_PROGRESS);
    listed.record_count = 1;
    assert_int_equal(told(bench, &listed).verdict, BLOCK_PROGRESS);
    bench->now.ns += 1000000;
    assert_int_equal(pull_all(bench), 1);
    assert_int_equal(bench->out.number, FIRST_BN);
    assert_int_equal(bench->out.position, 1);
    /* It is on its way: no answer from before says that it is lost again. */
    assert_int_equal(told(bench, &listed).verdict, BLOCK_PROGRESS);
    bench->now.ns += 1000000;
    assert_int_equal(pull_all(bench), 0);
    end(bench);
}

/* EXA-89: of a refused request, and of those behind it, nothing goes again. */
static void test_nothing_of_a_refused_request_goes_again(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_READ, MTU, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    post(bench, WORK_READ, MTU, 0);
    assert_int_equal(pull_all(bench), 6);
    bench->now.ns += 100000;
    const struct block_answer refusal = {
        .base = FIRST_BN + 1,
        .limit_void = true,
        .echo_tsn = 0xfffff5,
        .status = BLOCK_STATUS_ACCESS,
        .record_count = 3,
        .records = {{.number = FIRST_BN + 1, .bitmap = 1},
                    {.number = FIRST_BN + 2, .bitmap = 1},
                    {.number = FIRST_BN + 3, .state = BLOCK_STATE_ORDER}}};
    assert_int_equal(told(bench, &refusal).verdict, BLOCK_FAILED);
    bench->now.ns += 10000000;
    while (pull(bench)) {
        assert_true(bench->out.opcode == BLOCK_PROBE ||
                    (bench->out.opcode == BLOCK_READ && bench->out.number == FIRST_BN));
    }
    end(bench);
}

/* EXA-95: for want of a context a block waits longer and longer. */
static void test_no_context(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, MTU, 0);
    pull_all(bench);
    for (uint32_t i = 0; i < 14; i++) {
        const struct block_answer none = {
            .base = FIRST_BN,
            .limit_void = true,
            .echo_tsn = bench->out.tsn.value,
            .record_count = 1,
            .records = {{.number = FIRST_BN, .state = BLOCK_STATE_NO_CONTEXT}}};
        bench->now.ns += 1000000;
        assert_int_equal(told(bench, &none).verdict, BLOCK_PROGRESS);
        const uint64_t pause = i < 9 ? 20000u << i : 10000000;
        bench->now.ns += pause - 1;
        while (pull(bench)) {
            assert_null(bench->out.work);
        }
        bench->now.ns += 2000;
        assert_true(pull(bench));
        assert_true(bench->out.resent);
    }
    end(bench);
}

/* EXA-99: a new bit is progress, an old one is none. */
static void test_what_is_progress(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 4 * MTU, 0);
    pull_all(bench);
    struct block_answer bits = {.base = FIRST_BN,
                                .limit_void = true,
                                .echo_void = true,
                                .record_count = 1,
                                .records = {{.number = FIRST_BN, .bitmap = 1}}};
    bench->now.ns += 1000;
    assert_int_equal(told(bench, &bits).verdict, BLOCK_PROGRESS);
    const uint64_t at_ns = bench->requester->retry_at.ns;
    assert_int_equal(at_ns, bench->now.ns + ack_timeout_ns(14));
    bench->now.ns += 1000;
    assert_int_equal(told(bench, &bits).verdict, BLOCK_PROGRESS);
    assert_int_equal(bench->requester->retry_at.ns, at_ns);
    bits.records[0].bitmap = 3;
    assert_int_equal(told(bench, &bits).verdict, BLOCK_PROGRESS);
    assert_int_equal(bench->requester->retry_at.ns, at_ns + 1000);
    end(bench);
}

/* EXA-89: requests before the refused one are done first, their data too. */
static void test_refusals(void **state)
{
    (void)state;
    static const uint8_t statuses[][2] = {
        {BLOCK_STATUS_INVALID_REQUEST, COMPLETION_REMOTE_INVALID_REQUEST},
        {BLOCK_STATUS_ACCESS, COMPLETION_REMOTE_ACCESS},
        {BLOCK_STATUS_OPERATIONAL, COMPLETION_REMOTE_OPERATION}};
    for (uint32_t i = 0; i < COUNT_OF(statuses); i++) {
        struct bench *bench = simple();
        struct work *read = post(bench, WORK_READ, MTU, 0);
        struct work *write = post(bench, WORK_WRITE, MTU, 0);
        post(bench, WORK_WRITE, MTU, 0);
        assert_int_equal(pull_all(bench), 3);
        const struct block_answer refusal = {
            .base = FIRST_BN + 1, .echo_void = true, .limit_void = true, .status = statuses[i][0]};
        assert_ptr_equal(told(bench, &refusal).work, write);
        assert_int_equal(write->status, statuses[i][1]);
        assert_int_equal(told(bench, &refusal).verdict, BLOCK_PROGRESS);
        assert_null(block_requester_completed(bench->requester, &bench->queue));
        post(bench, WORK_WRITE, MTU, 0);
        assert_int_equal(pull_all(bench), 0);
        /* The data are asked for again, if they do not come. */
        bench->now.ns += 100000000;
        assert_false(block_requester_on_time(bench->requester, bench->now) &&
                     block_requester_last_try(bench->requester));
        while (pull(bench) && bench->out.work == NULL) {
        }
        assert_int_equal(bench->out.opcode, BLOCK_READ);
        const struct block_packet data = {
            .opcode = BLOCK_DATA, .number = FIRST_BN, .last_block = true, .payload_bytes = MTU};
        assert_ptr_equal(
            block_requester_on_data(bench->requester, &bench->queue, &data, bench->now).work, read);
        block_requester_on_moved(bench->requester, read);
        assert_ptr_equal(block_requester_completed(bench->requester, &bench->queue), read);
        assert_int_equal(bench->requester->mode, BLOCK_REQUESTER_STOPPED);
        end(bench);
    }
}

/* EXA-99 */
static void test_gives_up(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.retry_limit = 2;
    bench->loss = 1000000;
    start(bench);
    post(bench, WORK_WRITE, MTU, 0);
    pull_all(bench);
    const uint64_t begun = bench->now.ns, timeout = ack_timeout_ns(14);
    struct block_progress progress = {BLOCK_STALE, NULL, 0};
    while (progress.verdict != BLOCK_FAILED) {
        const struct instant deadline = block_requester_deadline(bench->requester);
        assert_true(deadline.ns > bench->now.ns);
        bench->now = deadline;
        if (block_requester_on_time(bench->requester, bench->now)) {
            assert_int_equal(block_requester_waits_since(bench->requester).ns,
                             bench->now.ns - timeout);
            progress = block_requester_on_timeout(bench->requester, &bench->queue, bench->now);
        }
        pull_all(bench);
    }
    assert_int_equal(bench->now.ns - begun, 3 * timeout);
    assert_int_equal(progress.work->status, COMPLETION_RETRY_EXCEEDED);
    /* The oldest block; by the second timeout the window is full. */
    assert_int_equal(bench->resent, 1);
    assert_int_equal(block_requester_deadline(bench->requester).ns, UINT64_MAX);
    end(bench);
}

/* EXA-99: nothing is executed for a timeout: the oldest block goes again, whatever was said of
 * it. */
static void test_timeout_sends_base_again(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 3 * MTU, 0);
    post(bench, WORK_WRITE, MTU, 0);
    pull_all(bench);
    /* All has come, says the peer; but nothing is executed. */
    struct block_answer bits = {.base = FIRST_BN, .limit_void = true, .echo_void = true};
    for (int timeout = 0; timeout < 2; timeout++) {
        assert_int_equal(told(bench, &bits).verdict, BLOCK_PROGRESS);
        while (!block_requester_on_time(bench->requester, bench->now)) {
            while (pull(bench)) {
                assert_null(bench->out.work);
            }
            bench->now = block_requester_deadline(bench->requester);
        }
        const struct block_progress progress =
            block_requester_on_timeout(bench->requester, &bench->queue, bench->now);
        assert_int_equal(progress.verdict, BLOCK_PROGRESS);
        uint32_t again = 0;
        while (pull(bench)) {
            again += bench->out.work != NULL;
            assert_true(bench->out.work == NULL || bench->out.number == FIRST_BN);
        }
        assert_int_equal(again, 3);
        bits.echo_void = false;
        bits.echo_tsn = bench->out.tsn.value;
        bench->now.ns += 200000;
    }
    end(bench);
}

/* EXA-99: all is executed, but a result is missing, and no round trip is known that would say when
 * to ask for it: it is asked for before the retries are over. */
static void test_timeout_asks_for_data_again(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.trip_ns = 0;
    start(bench);
    post(bench, WORK_FETCH_ADD, 8, 0);
    post(bench, WORK_FETCH_ADD, 8, 0);
    assert_int_equal(pull_all(bench), 2);
    const struct block_answer all = {.base = FIRST_BN + 2, .limit_void = true, .echo_void = true};
    assert_int_equal(told(bench, &all).verdict, BLOCK_PROGRESS);
    while (!block_requester_on_time(bench->requester, bench->now)) {
        assert_int_equal(pull_all(bench), 0);
        bench->now = block_requester_deadline(bench->requester);
    }
    assert_int_equal(
        block_requester_on_timeout(bench->requester, &bench->queue, bench->now).verdict,
        BLOCK_PROGRESS);
    assert_int_equal(pull_all(bench), 1);
    assert_int_equal(bench->out.number, FIRST_BN);
    assert_int_equal(bench->out.round, 1);
    end(bench);
}

/* EXA-99 */
static void test_timer_code_0_never_gives_up(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.timeout_code = 0;
    bench->loss = 1000000;
    start(bench);
    post(bench, WORK_WRITE, MTU, 0);
    pull_all(bench);
    for (uint32_t i = 0; i < 100; i++) {
        bench->now = block_requester_deadline(bench->requester);
        assert_false(block_requester_on_time(bench->requester, bench->now));
        pull_all(bench);
    }
    bench->loss = 0;
    run(bench);
    end(bench);
}

/* EXA-101 */
static void test_draining(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.window = 2;
    start(bench);
    post(bench, WORK_WRITE, 3 * 64 * MTU, 0);
    post(bench, WORK_WRITE, 1, 0);
    assert_true(pull(bench));
    bench->draining = true;
    pull_all(bench);
    assert_false(block_requester_drained(bench->requester, &bench->queue));
    while (bench->completed != 1) {
        step(bench);
    }
    assert_true(block_requester_drained(bench->requester, &bench->queue));
    assert_int_equal(pull_all(bench), 0);
    bench->draining = false;
    run(bench);
    end(bench);
}

/* EXA-85: what a READ lacks is asked for, and nothing else. */
static void test_lost_data(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_READ, 20 * MTU, 0);
    assert_int_equal(pull_all(bench), 1);
    assert_int_equal(bench->out.wanted, 0xfffff);
    struct flying landed;
    assert_true(land(bench, &landed));
    bench->now.ns = landed.at_ns;
    on_request(bench, &landed);
    memmove(&bench->flying[3], &bench->flying[4], 16 * sizeof(struct flying));
    bench->flying_count--;
    quiesce(bench);
    bench->now = block_requester_deadline(bench->requester);
    assert_int_equal(block_requester_on_time(bench->requester, bench->now), false);
    assert_true(pull(bench));
    assert_int_equal(bench->out.wanted, 8);
    assert_int_equal(bench->out.round, 1);
    quiesce(bench);
    assert_int_equal(bench->completed, 1);
    end(bench);
}

/* EXA-84: a READ that the link cannot hold at a time is asked for in pieces. */
static void test_pieces_of_a_read(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.link_window_bytes = 16 * (MTU + 64);
    start(bench);
    post(bench, WORK_READ, 64 * MTU, 0);
    const uint32_t pieces = pull_all(bench);
    assert_in_range(pieces, 2, 4);
    assert_true(bench->requester->read_flight <= bench->config.link_window_bytes);
    run(bench);
    assert_int_equal(bench->resent, 0);
    end(bench);
}

/* EXA-85: data of another place or length than asked for. */
static void test_wrong_data(void **state)
{
    (void)state;
    const struct block_packet packets[] = {
        {.index = 1, .last_position = 1, .last_block = true, .payload_bytes = MTU},
        {.last_position = 2, .last_block = true, .payload_bytes = MTU},
        {.last_position = 1, .payload_bytes = MTU},
        {.last_position = 1, .last_block = true, .payload_bytes = MTU - 1},
        {.last_position = 1, .position = 1, .last_block = true, .payload_bytes = MTU},
    };
    for (uint32_t i = 0; i < COUNT_OF(packets); i++) {
        struct bench *bench = simple();
        struct work *read = post(bench, WORK_READ, 2 * MTU - 1, 0);
        assert_int_equal(pull_all(bench), 1);
        struct block_packet packet = packets[i];
        packet.opcode = BLOCK_DATA;
        packet.number = FIRST_BN;
        const struct block_progress progress =
            block_requester_on_data(bench->requester, &bench->queue, &packet, bench->now);
        assert_int_equal(progress.verdict, i < 3 ? BLOCK_BAD_ORDER : BLOCK_BAD_LENGTH);
        assert_ptr_equal(progress.work, read);
        assert_int_equal(read->status, COMPLETION_BAD_RESPONSE);
        end(bench);
    }
}

/* EXA-89: a READ whose memory went away while its data left. */
static void test_refused_read(void **state)
{
    (void)state;
    struct bench *bench = simple();
    struct work *read = post(bench, WORK_READ, 2 * MTU, 0);
    post(bench, WORK_WRITE, 1, 0);
    assert_int_equal(pull_all(bench), 2);
    const struct block_answer refusal = {
        .base = FIRST_BN + 2,
        .echo_void = true,
        .limit_void = true,
        .status = BLOCK_STATUS_ACCESS,
        .record_count = 1,
        .records = {{.number = FIRST_BN, .state = BLOCK_STATE_REFUSED}}};
    assert_ptr_equal(told(bench, &refusal).work, read);
    assert_int_equal(read->status, COMPLETION_REMOTE_ACCESS);
    assert_int_equal(bench->requester->mode, BLOCK_REQUESTER_STOPPED);
    end(bench);
}

/* Bad data end their READ when what is before it has ended: nothing waits for ever. */
static void test_wrong_data_behind_a_write(void **state)
{
    (void)state;
    struct bench *bench = simple();
    struct work *write = post(bench, WORK_WRITE, 8, 0);
    struct work *read = post(bench, WORK_READ, MTU, 0);
    assert_int_equal(pull_all(bench), 2);
    const struct block_packet data = {
        .opcode = BLOCK_DATA, .number = FIRST_BN + 1, .last_block = true, .payload_bytes = 5};
    assert_int_equal(
        block_requester_on_data(bench->requester, &bench->queue, &data, bench->now).verdict,
        BLOCK_BAD_LENGTH);
    assert_int_equal(read->status, COMPLETION_BAD_RESPONSE);
    const struct block_answer one = {.base = FIRST_BN + 1, .echo_void = true, .limit_void = true};
    assert_int_equal(told(bench, &one).verdict, BLOCK_PROGRESS);
    assert_ptr_equal(block_requester_completed(bench->requester, &bench->queue), write);
    assert_int_equal(bench->requester->mode, BLOCK_REQUESTER_STOPPED);
    end(bench);
}

/* EXA-100: a path that loses everything is left, and what was out there goes again. */
static void test_dead_path(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    start(bench);
    for (uint32_t i = 0; i < 20; i++) {
        post(bench, WORK_WRITE, 4 * MTU, 0);
    }
    pull_all(bench);
    while (bench->completed != bench->posted) {
        for (uint32_t i = 0; i < bench->flying_count;) {
            if (bench->flying[i].to_peer && bench->flying[i].packet.path == 1) {
                bench->flying[i] = bench->flying[--bench->flying_count];
            } else {
                i++;
            }
        }
        step(bench);
    }
    assert_true(bench->now.ns < 100000000);
    end(bench);
}

/* EXA-96 EXA-100: a block that had come whole over a path that was left since is forgotten by the
 * peer. Nothing will ever be echoed there: it goes elsewhere at once. */
static void test_forgotten_behind_a_dead_path(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    start(bench);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    assert_int_equal(pull_all(bench), 4);
    assert_int_equal(bench->out.path, 1);
    struct block_answer part = {
        .base = FIRST_BN,
        .echo_void = true,
        .limit_void = true,
        .record_count = 2,
        .records = {{.number = FIRST_BN, .bitmap = 1}, {.number = FIRST_BN + 1, .bitmap = 1}}};
    assert_int_equal(told(bench, &part).verdict, BLOCK_PROGRESS);
    part.record_count = 1;
    assert_int_equal(told(bench, &part).verdict, BLOCK_PROGRESS);
    struct path *dead = paths_at(&bench->requester->paths, 1);
    dead->suspect = true;
    dead->timeout_at = INSTANT_NEVER;
    const struct block_answer forgotten = {
        .base = FIRST_BN + 1,
        .echo_void = true,
        .limit_void = true,
        .record_count = 1,
        .records = {{.number = FIRST_BN + 1, .state = BLOCK_STATE_RUN, .bitmap = 1}}};
    assert_int_equal(told(bench, &forgotten).verdict, BLOCK_PROGRESS);
    bench->now.ns += 1000000;
    assert_int_equal(pull_all(bench), 2);
    assert_true(bench->out.resent);
    assert_int_equal(bench->out.number, FIRST_BN + 1);
    assert_int_equal(bench->out.path, 0);
    end(bench);
}

/* EXA-100: a WRITE that is half sent on a path that was left goes on over the other one, though a
 * READ is half asked for there that has no room before its data come. */
static void test_half_sent_on_a_dead_path(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    bench->config.link_window_bytes = 4000;
    bench->policy.congestion.start_bytes = 1;
    bench->policy.congestion.start_packets = 4;
    start(bench);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    post(bench, WORK_READ, 64 * MTU, 0);
    pull_all(bench);
    assert_int_equal(bench->requester->open, 3);
    struct path *dead = paths_at(&bench->requester->paths, 0);
    dead->suspect = true;
    dead->settled_bytes = dead->sent_bytes;
    dead->timeout_at = INSTANT_NEVER;
    bool goes_on = false;
    for (uint32_t i = 0; i < 4 && !goes_on; i++) {
        bench->now.ns += 1000000;
        while (!goes_on && pull(bench)) {
            goes_on = bench->out.opcode == BLOCK_WRITE && bench->out.path == 1;
        }
        const struct path *path = paths_at(&bench->requester->paths, 1);
        const struct block_answer echo = {.base = FIRST_BN,
                                          .limit_void = true,
                                          .echo_path = 1,
                                          .echo_tsn = psn_before(path->next, 1).value};
        assert_int_equal(told(bench, &echo).verdict, BLOCK_PROGRESS);
    }
    assert_true(goes_on);
    end(bench);
}

/* The path is left, and all that is out there is lost. */
static void leave(struct bench *bench, uint32_t path)
{
    struct path *dead = paths_at(&bench->requester->paths, path);
    dead->suspect = true;
    dead->settled_bytes = dead->sent_bytes;
    dead->timeout_at = INSTANT_NEVER;
    bench->flying_count = 0;
    for (uint32_t bn = bench->requester->oldest; bn != bench->requester->next; bn++) {
        struct block_sending *block = &bench->requester->blocks[bn & bench->requester->mask];
        if (block->path == path) {
            block->state = BLOCK_SENDING_DUE;
            bench->requester->missing[0] |= UINT64_C(1) << (bn & bench->requester->mask);
            bench->requester->resend_at = (struct instant){0};
        }
    }
}

/* Until a request of this kind leaves again; by which path. */
static uint8_t pulled_again(struct bench *bench, uint8_t opcode)
{
    for (uint32_t i = 0; i < 8; i++) {
        bench->now.ns += 1000000;
        assert_false(block_requester_on_time(bench->requester, bench->now));
        while (pull(bench)) {
            if (bench->out.opcode == opcode && bench->out.resent) {
                return bench->out.path;
            }
        }
    }
    fail_msg("it never goes again");
    return 0;
}

/* EXA-100: a READ that is half asked for on a path that was left is asked for again on another, for
 * the rest has no room before its data come. (rc_scenario --seed 1854) */
static void test_half_asked_on_a_dead_path(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    start(bench);
    bench->requester->read_window = 4000;
    post(bench, WORK_READ, 64 * MTU, 0);
    pull_all(bench);
    assert_int_equal(bench->requester->open, 1);
    leave(bench, 0);
    assert_int_equal(pulled_again(bench, BLOCK_READ), 1);
    end(bench);
}

/* EXA-100: a WRITE that is half sent on a path that was left would go on elsewhere, but a READ is
 * half asked for there, whose data were lost: the READ is asked for again first. */
static void test_what_goes_again_gives_way(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    bench->policy.congestion.start_bytes = 1;
    bench->policy.congestion.start_packets = 4;
    start(bench);
    bench->requester->read_window = 4000;
    post(bench, WORK_READ, 64 * MTU, 0);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    pull_all(bench);
    assert_int_equal(bench->requester->open, 3);
    const uint8_t read_path = bench->requester->blocks[FIRST_BN & 63].path;
    leave(bench, !read_path);
    assert_false(pull(bench));
    assert_int_equal(bench->requester->resending, FIRST_BN + 1);
    assert_int_not_equal(bench->requester->resend_left, 0);
    bench->requester->blocks[FIRST_BN & 63].state = BLOCK_SENDING_DUE;
    bench->requester->resend_at = (struct instant){0};
    assert_int_equal(pulled_again(bench, BLOCK_READ), read_path);
    end(bench);
}

/* The peer keeps nothing of a block whose turn has not come, as one does whose hold is full: that
 * may not keep base, half sent, from going on. (rc_scenario --seed 78430369) */
static void test_base_goes_on_before_others_again(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.path_count = 2;
    bench->policy.congestion.start_bytes = 1;
    bench->policy.congestion.start_packets = 4;
    start(bench);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    post(bench, WORK_WRITE, MTU, 0);
    pull_all(bench);
    const struct block_sending *base = &bench->requester->blocks[FIRST_BN & 63];
    struct block_sending *second = &bench->requester->blocks[(FIRST_BN + 1) & 63];
    assert_int_equal(bench->requester->open, 1u << base->path);
    assert_int_not_equal(second->path, base->path);
    bench->now.ns += 1000000;
    const struct block_answer echo = {.base = FIRST_BN,
                                      .limit_void = true,
                                      .echo_path = base->path,
                                      .echo_tsn = base->newest.value};
    assert_int_equal(told(bench, &echo).verdict, BLOCK_PROGRESS);
    second->state = BLOCK_SENDING_DUE;
    bench->requester->missing[0] |= UINT64_C(1) << ((FIRST_BN + 1) & bench->requester->mask);
    bench->requester->resend_at = (struct instant){0};
    assert_true(pull(bench));
    assert_int_equal(bench->out.number, FIRST_BN);
    assert_false(bench->out.resent);
    while (bench->out.number == FIRST_BN) {
        assert_true(pull(bench));
    }
    assert_true(bench->out.resent);
    end(bench);
}

/* The nearest path decides, and a round trip of BLOCK_FAR_NS is a long one. */
static void test_the_nearest_path_says_how_far_the_peer_is(void **state)
{
    (void)state;
    static const struct {
        uint64_t trips_ns[2];
        bool far;
    } cases[] = {{{BLOCK_FAR_NS, 2 * BLOCK_FAR_NS}, true},
                 {{2 * BLOCK_FAR_NS, BLOCK_FAR_NS}, true},
                 {{BLOCK_FAR_NS - 1, 2 * BLOCK_FAR_NS}, false},
                 {{2 * BLOCK_FAR_NS, BLOCK_FAR_NS - 1}, false}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench *bench = begin(1);
        bench->config.path_count = 2;
        bench->config.trip_ns = 0;
        start(bench);
        for (uint32_t path = 0; path < 2; path++) {
            rtt_sample(&paths_at(&bench->requester->paths, path)->rtt, &bench->policy.rtt,
                       cases[i].trips_ns[path], bench->now);
        }
        block_note_distance(bench->requester);
        assert_int_equal(bench->requester->far, cases[i].far);
        end(bench);
    }
}

/* The window counts what a READ's data will take; those of its last packet may be few. */
static void test_flight_of_reads(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_READ, 2 * MTU + 1, 0);
    assert_int_equal(pull_all(bench), 1);
    assert_int_equal(bench->requester->read_flight, 3 * 64 + 2 * MTU + 1);
    end(bench);
}

static void take_packet(struct bench *bench, uint8_t position)
{
    const struct block_packet data = {.opcode = BLOCK_DATA,
                                      .number = FIRST_BN,
                                      .position = position,
                                      .last_position = 2,
                                      .last_block = true,
                                      .payload_bytes = MTU};
    assert_int_equal(
        block_requester_on_data(bench->requester, &bench->queue, &data, bench->now).verdict,
        BLOCK_DATA_COMES);
}

/* The window of READs grows up to all the blocks that they may ask for; then it is no limit. */
static void test_window_of_reads_grows(void **state)
{
    (void)state;
    const uint32_t most = 4 * 64 * (MTU + 64);
    struct bench *bench = simple();
    post(bench, WORK_READ, 3 * MTU, 0);
    assert_int_equal(pull_all(bench), 1);
    bench->requester->read_window = most - (MTU + 64) / 4;
    take_packet(bench, 0);
    assert_int_equal(bench->requester->read_window, most);
    take_packet(bench, 1);
    assert_int_equal(bench->requester->read_window, 0);
    end(bench);
}

/* EXA-85: data that left before others which have come are given a quarter of a round trip. */
static void test_late_data_have_a_quarter_of_a_round_trip(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->config.trip_ns = 0;
    start(bench);
    const uint64_t trip_ns = 8 * bench->policy.reordering_least_ns;
    rtt_sample(&paths_at(&bench->requester->paths, 0)->rtt, &bench->policy.rtt, trip_ns,
               bench->now);
    post(bench, WORK_READ, 3 * MTU, 0);
    assert_int_equal(pull_all(bench), 1);
    take_packet(bench, 1);
    const struct block_sending *block = block_at(bench->requester, FIRST_BN);
    assert_true(block->data_missed);
    assert_int_equal(block->due.ns, bench->now.ns + trip_ns / 4);
    end(bench);
}

/* EXA-98: each probe without an answer doubles the time to the next, up to 64 times. */
static void test_probes_become_rare(void **state)
{
    (void)state;
    struct bench *bench = simple();
    post(bench, WORK_WRITE, 1, 0);
    assert_int_equal(pull_all(bench), 1);
    const struct rtt *rtt = &paths_at(&bench->requester->paths, 0)->rtt;
    for (uint32_t silences = 1; silences < 9; silences++) {
        bench->now = bench->requester->probe_at;
        (void)!block_requester_on_time(bench->requester, bench->now);
        assert_int_equal(bench->requester->probe_at.ns - bench->now.ns,
                         2 * rtt_pto_ns(rtt, &bench->policy.rtt, silences < 6 ? silences : 6));
    }
    end(bench);
}

/* EXA-95: a block that went on after it was declined waits until an answer echoes the packet that
 * left since: the context may be there by then. */
static void test_declined_and_gone_on(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->policy.congestion.start_bytes = 1;
    bench->policy.congestion.start_packets = 4;
    start(bench);
    post(bench, WORK_WRITE, 6 * MTU, 0);
    const uint32_t begun = pull_all(bench);
    assert_in_range(begun, 1, 5);
    const struct block_answer none = {
        .base = FIRST_BN,
        .limit_void = true,
        .echo_tsn = bench->out.tsn.value,
        .record_count = 1,
        .records = {{.number = FIRST_BN, .state = BLOCK_STATE_NO_CONTEXT}}};
    bench->now.ns += 200000;
    assert_int_equal(told(bench, &none).verdict, BLOCK_PROGRESS);
    assert_int_equal(pull_all(bench), 6 - begun);
    bench->now.ns += 100000;
    while (pull(bench)) {
        assert_null(bench->out.work);
    }
    end(bench);
}

/* EXA-89: a READ before bad data is asked for again; a block that is half sent behind them does not
 * go on. */
static void test_nothing_behind_bad_data_goes_on(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    bench->policy.congestion.start_bytes = 1;
    bench->policy.congestion.start_packets = 4;
    start(bench);
    post(bench, WORK_READ, MTU, 0);
    post(bench, WORK_READ, MTU, 0);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    pull_all(bench);
    assert_int_equal(bench->requester->open, 1);
    bench->now.ns += 200000;
    const struct block_answer both = {
        .base = FIRST_BN + 2, .limit_void = true, .echo_tsn = bench->out.tsn.value};
    assert_int_equal(told(bench, &both).verdict, BLOCK_PROGRESS);
    const struct block_packet bad = {
        .opcode = BLOCK_DATA, .number = FIRST_BN + 1, .last_block = true, .payload_bytes = 5};
    assert_int_equal(
        block_requester_on_data(bench->requester, &bench->queue, &bad, bench->now).verdict,
        BLOCK_BAD_LENGTH);
    uint32_t again = 0;
    for (int ms = 0; ms < 20; ms++) {
        bench->now.ns += 1000000;
        (void)!block_requester_on_time(bench->requester, bench->now);
        while (pull(bench)) {
            assert_true(bench->out.work == NULL || bench->out.number == FIRST_BN);
            again += bench->out.work != NULL;
        }
    }
    assert_true(again > 0);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_networks),
        cmocka_unit_test(test_base_goes_on_before_others_again),
        cmocka_unit_test(test_windows_of_long_ways),
        cmocka_unit_test(test_a_path_comes_home),
        cmocka_unit_test(test_a_path_stays_away),
        cmocka_unit_test(test_answers_are_asked_for_once_a_block),
        cmocka_unit_test(test_old_answers_change_nothing),
        cmocka_unit_test(test_answers_that_lay_here),
        cmocka_unit_test(test_impossible_answers_change_nothing),
        cmocka_unit_test(test_runs_end_with_what_was_begun),
        cmocka_unit_test(test_declined_for_its_order),
        cmocka_unit_test(test_one_lost_packet),
        cmocka_unit_test(test_lost_tail),
        cmocka_unit_test(test_lost_answer),
        cmocka_unit_test(test_probe_behind_a_lone_message),
        cmocka_unit_test(test_lost_run),
        cmocka_unit_test(test_unequal_paths),
        cmocka_unit_test(test_order_of_writes),
        cmocka_unit_test(test_declined_writes),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_receive_limit),
        cmocka_unit_test(test_no_receive),
        cmocka_unit_test(test_no_receive_behind_a_read),
        cmocka_unit_test(test_pauses_start_anew),
        cmocka_unit_test(test_depth_of_reads),
        cmocka_unit_test(test_base_beyond_what_was_sent),
        cmocka_unit_test(test_data_beyond_what_was_sent),
        cmocka_unit_test(test_reports_replace_each_other),
        cmocka_unit_test(test_nothing_of_a_refused_request_goes_again),
        cmocka_unit_test(test_no_context),
        cmocka_unit_test(test_what_is_progress),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_timeout_sends_base_again),
        cmocka_unit_test(test_timeout_asks_for_data_again),
        cmocka_unit_test(test_timer_code_0_never_gives_up),
        cmocka_unit_test(test_draining),
        cmocka_unit_test(test_lost_data),
        cmocka_unit_test(test_pieces_of_a_read),
        cmocka_unit_test(test_wrong_data),
        cmocka_unit_test(test_wrong_data_behind_a_write),
        cmocka_unit_test(test_refused_read),
        cmocka_unit_test(test_dead_path),
        cmocka_unit_test(test_half_sent_on_a_dead_path),
        cmocka_unit_test(test_half_asked_on_a_dead_path),
        cmocka_unit_test(test_what_goes_again_gives_way),
        cmocka_unit_test(test_forgotten_behind_a_dead_path),
        cmocka_unit_test(test_the_nearest_path_says_how_far_the_peer_is),
        cmocka_unit_test(test_flight_of_reads),
        cmocka_unit_test(test_window_of_reads_grows),
        cmocka_unit_test(test_late_data_have_a_quarter_of_a_round_trip),
        cmocka_unit_test(test_probes_become_rare),
        cmocka_unit_test(test_declined_and_gone_on),
        cmocka_unit_test(test_nothing_behind_bad_data_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
