/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The number of READs and atomics that a peer may have outstanding changes in the middle of
 *         a session (IBTA 11.2.5.2): no result that the peer waits for is lost, those that are kept
 *         for duplicates are the newest, and a READ is refused only if there may be none.
 * Method  Atomics, duplicates, answers and new limits at random, against a list of results.
 */
#include "nic/block/block_bench.h"

#include "base/bytes.h"
#include "base/prng.h"

enum {
    STEPS = 400,
    SEEDS = 200,
};

struct kept {
    uint32_t number;
    bool answered; /* Once at least. */
};

struct world {
    struct bench bench;
    struct prng prng;
    struct kept kept[BENCH_READS]; /* The oldest first. */
    uint32_t count, limit, next;
};

static const uint8_t none[BENCH_MTU];

static struct world *begin(uint64_t seed)
{
    const struct bench_config config = {.held = 4};
    struct world *world = calloc(1, sizeof(*world));
    bench_make(&world->bench, &config);
    bench_speak_blocks(&world->bench, 0, 0);
    prng_init(&world->prng, seed);
    world->limit = BENCH_READS;
    return world;
}

static void end(struct world *world)
{
    bench_end(&world->bench);
    free(world);
}

/* FETCH_ADD of 1, so that each returns its number. True: there is a move to make. */
static bool atomic_arrives(struct world *world, uint32_t number, bool again, struct nic_move *move)
{
    struct bench *bench = &world->bench;
    const struct block_packet packet = {
        .opcode = BLOCK_ATOMIC,
        .session = BENCH_SESSION,
        .number = number,
        .last_block = true,
        .ack_request = true,
        .resent = again,
        .round = again,
        .key = bench->region[0].key,
        .atomic = {.kind = BLOCK_FETCH_ADD, .swap_or_add = 1},
    };
    const struct block_arrival arrival = {.packet = packet, .at = bench->now};
    const bool moves = block_receive_on_packet(bench->qp, &arrival, bench->now, move);
    block_receive_check(bench->qp);
    return moves;
}

static void finish(struct world *world, struct nic_move *move)
{
    bench_make_move(move);
    block_receive_on_moved(world->bench.qp, move, NIC_MOVED, world->bench.now);
    block_receive_check(world->bench.qp);
}

static void note(struct world *world)
{
    if (world->count == world->limit) {
        assert_true(world->kept[0].answered);
        memmove(world->kept, world->kept + 1, --world->count * sizeof(world->kept[0]));
    }
    world->kept[world->count++] = (struct kept){world->next++, false};
}

static bool is_full(const struct world *world)
{
    return world->limit == 0 || (world->count == world->limit && !world->kept[0].answered);
}

static void new_atomic(struct world *world)
{
    struct nic_move move;
    if (is_full(world)) {
        return; /* The peer knows how many it may have. */
    }
    assert_true(atomic_arrives(world, world->next, false, &move));
    finish(world, &move);
    note(world);
}

/* Results leave; returns how many, and each is that of a number that `wanted` has. */
static uint32_t pull(struct world *world, uint64_t wanted)
{
    struct bench *bench = &world->bench;
    struct nic_departure departure;
    uint32_t results = 0;
    while (block_receive_ready(bench->qp) &&
           block_receive_next(bench->qp, bench->now, &departure)) {
        struct block_packet reply;
        assert_int_equal(block_decode(departure.headers, departure.headers_bytes, none,
                                      (departure.payload_bytes + 3) & ~3u, &reply),
                         BLOCK_GOOD);
        if (reply.opcode == BLOCK_DATA) {
            const uint8_t *at = (const uint8_t *)(uintptr_t)departure.segments[0].address;
            assert_int_equal(load_be64(at), reply.number);
            assert_true(wanted >> (world->next - 1 - reply.number) & 1);
            results++;
        }
    }
    return results;
}

static void answer(struct world *world)
{
    uint32_t due = 0;
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < world->count; i++) {
        if (!world->kept[i].answered) {
            world->kept[i].answered = true;
            wanted |= (uint64_t)1 << (world->next - 1 - world->kept[i].number);
            due++;
        }
    }
    assert_int_equal(pull(world, wanted), due);
}

/* The peer asks again for a result that was answered: if the result is kept, it comes again, else
 * nothing comes. */
static void duplicate(struct world *world)
{
    struct nic_move move;
    answer(world);
    if (world->next == 0) {
        return;
    }
    const uint32_t back = (uint32_t)prng_below(&world->prng, 8);
    const uint32_t number = world->next - 1 - (back < world->next ? back : 0);
    bool kept = false;
    for (uint32_t i = 0; i < world->count; i++) {
        kept |= world->kept[i].number == number;
    }
    assert_false(atomic_arrives(world, number, true, &move));
    assert_int_equal(pull(world, (uint64_t)1 << (world->next - 1 - number)), kept);
}

/* `moving`: an atomic will be executed, and takes a place among the results. */
static void change_limit(struct world *world, uint32_t limit, bool moving)
{
    const uint32_t rest = limit - (moving && limit != 0);
    const uint32_t gone = world->count > rest ? world->count - rest : 0;
    bool may = limit != 0 || !moving;
    for (uint32_t i = 0; i < gone; i++) {
        may &= world->kept[i].answered;
    }
    assert_int_equal(block_receive_may_limit(world->bench.qp, limit), may);
    if (may) {
        const uint32_t dropped = world->count > limit ? world->count - limit : 0;
        block_receive_limit_results(world->bench.qp, limit);
        world->limit = limit;
        world->count -= dropped;
        memmove(world->kept, world->kept + dropped, world->count * sizeof(world->kept[0]));
    }
    block_receive_check(world->bench.qp);
}

static void atomic_beside_a_new_limit(struct world *world)
{
    struct nic_move move;
    if (is_full(world)) {
        return;
    }
    assert_true(atomic_arrives(world, world->next, false, &move));
    change_limit(world, (uint32_t)prng_below(&world->prng, BENCH_READS + 1), true);
    finish(world, &move);
    note(world);
}

static void limits_against_a_list(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct world *world = begin(seed);
        for (int step = 0; step < STEPS; step++) {
            switch (prng_below(&world->prng, 8)) {
            case 0: answer(world); break;
            case 1: duplicate(world); break;
            case 2: atomic_beside_a_new_limit(world); break;
            case 3:
                change_limit(world, (uint32_t)prng_below(&world->prng, BENCH_READS + 1), false);
                break;
            default: new_atomic(world); break;
            }
        }
        assert_int_equal(world->bench.qp->state, QP_RTR);
        end(world);
    }
}

static void read_arrives(struct world *world)
{
    struct bench *bench = &world->bench;
    struct nic_move move;
    const struct block_packet packet = {
        .opcode = BLOCK_READ,
        .session = BENCH_SESSION,
        .number = world->next++,
        .last_block = true,
        .ack_request = true,
        .key = bench->region[0].key,
        .message_bytes = 8,
        .wanted = 1,
    };
    const struct block_arrival arrival = {.packet = packet, .at = bench->now};
    assert_false(block_receive_on_packet(bench->qp, &arrival, bench->now, &move));
}

static void pull_all(struct world *world)
{
    struct nic_departure departure;
    while (block_receive_next(world->bench.qp, world->bench.now, &departure)) {
    }
}

/* As a program does it. */
static enum status set_reads_in(struct world *world, uint8_t reads)
{
    const struct qp_attributes attributes = {.state = QP_SQD, .max_reads_in = reads};
    return qp_modify(world->bench.qp, &attributes, QP_ATTR_STATE | QP_ATTR_MAX_DEST_RD_ATOMIC,
                     world->bench.now);
}

static struct world *begin_in_sqd(void)
{
    const struct bench_config config = {.held = 4};
    struct world *world = calloc(1, sizeof(*world));
    bench_make(&world->bench, &config);
    bench_modify(&world->bench, QP_RTS,
                 QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                     QP_ATTR_MAX_QP_RD_ATOMIC,
                 0);
    bench_modify(&world->bench, QP_SQD, 0, 0);
    bench_speak_blocks(&world->bench, 0, 0);
    return world;
}

static void reads_go_by_the_limit(void **state)
{
    (void)state;
    struct world *world = begin_in_sqd();
    read_arrives(world);
    assert_int_equal(set_reads_in(world, 0), STATUS_BUSY); /* The peer waits for it. */
    pull_all(world);
    assert_int_equal(set_reads_in(world, 0), STATUS_OK);
    assert_int_equal(set_reads_in(world, 1), STATUS_OK);
    read_arrives(world);
    pull_all(world);
    assert_int_equal(world->bench.qp->state, QP_SQD);
    assert_int_equal(set_reads_in(world, 0), STATUS_OK);
    read_arrives(world);
    assert_int_equal(world->bench.qp->state, QP_ERR);
    end(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_against_a_list),
        cmocka_unit_test(reads_go_by_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
