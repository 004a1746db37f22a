/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    For any descriptors, any order of memory's answers, any pages that cannot be read, and
 *         any times at which the network is ready: each packet that was asked for and could be read
 *         leaves once, right in every bit, in its block's order. Descriptors end with Done or Error
 *         as they should.
 * Method  Random worlds beside the model of exadma_world.h. Of each seed: ports, slots, entries,
 *         latencies, chances. Blocks are issued again, under the next sequence, as soon as Done or
 *         Error is there, while packets of the old instance are still under way. Behaviours EXA-11,
 *         EXA-16, EXA-18 to EXA-20, EXA-22 to EXA-31.
 *
 *         --seed N, --seeds FIRST COUNT: which worlds.
 */
#include "hardware/exanest/exadma_world.h"

#define SEEDS_USUAL 200

static uint64_t first_seed = 1, seed_count = SEEDS_USUAL, seed;

/* The events of all worlds together. */
static struct {
    struct exanest_scheduler_counters counters;
    uint64_t packets, controls, unread, waits;
} sum;

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

static struct world *random_world(void)
{
    struct prng prng;
    prng_init(&prng, seed);
    static const uint32_t chances[] = {0, 0, 20000, 300000, 800000};
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.ports = 1 + (uint32_t)prng_below(&prng, 4);
    config.slots = 1 + (uint32_t)prng_below(&prng, 16);
    config.scheduler_entries = prng_below(&prng, 3) ? 1024 : 1 + (uint32_t)prng_below(&prng, 20);
    config.scheduler_cycles = 5 + (uint32_t)(prng_below(&prng, 4) ? 0 : prng_below(&prng, 20));
    config.shifter_cycles = (uint32_t)prng_below(&prng, 5);
    config.control_bytes = prng_below(&prng, 2) ? 16 : 32;
    config.reads_max = (uint32_t)(prng_below(&prng, 4) ? 0 : 1 + prng_below(&prng, 3));
    config.holds_slot = prng_below(&prng, 5) == 0;
    config.hold_cycles = (uint32_t)prng_below(&prng, 30);
    config.cuts_at_source = prng_below(&prng, 5) == 0;
    config.shifter_bubble = (uint32_t)(prng_below(&prng, 5) ? 0 : prng_below(&prng, 10));
    config.drains = prng_below(&prng, 5) == 0;
    config.shares_buffer = prng_below(&prng, 5) == 0;
    struct world *world = world_new(&config, seed);
    world->latency = (uint32_t)prng_below(&prng, 60);
    world->latency_more = (uint32_t)prng_below(&prng, 100);
    world->not_ready = chances[prng_below(&prng, COUNT_OF(chances))];
    world->no_beat = chances[prng_below(&prng, COUNT_OF(chances))];
    world->no_read = chances[prng_below(&prng, COUNT_OF(chances))];
    world->fault = prng_below(&prng, 2) ? 0 : 30000;
    world->pause = (uint32_t)prng_below(&prng, 4);
    world->skips_idle = true;
    world->mixes_widths = true;
    return world;
}

static struct exanest_descriptor random_block(struct world *world, uint32_t tid)
{
    static const uint32_t most[] = {16, 300, 1500, 16384};
    return (struct exanest_descriptor){
        .source = (uint64_t)tid << 32 | below(world, 1 << 20),
        .target = {.coordinate = below(world, 1 << 22), .va = prng_next(&world->prng) >> 22},
        .notify = below(world, 2),
        .bytes = (uint16_t)(1 + below(world, most[below(world, 4)])),
        .pdid = (uint16_t)(100 + below(world, 8)),
        .sequence = (uint16_t)below(world, EXANEST_SEQUENCES),
        .path = (uint8_t)below(world, world->dma->config.ports),
    };
}

/* Can software post it: it never was, or it is over? */
static bool free_to_post(const struct world *world, uint32_t tid)
{
    const struct world_block *block = &world->blocks[tid];
    const struct exanest_descriptor now = exanest_pending_descriptor(&world->dma->list, tid);
    return !block->posted || (world->store_head == world->store_tail && (now.done || now.error));
}

/* The next instance: the same block again, or another one, always with the next sequence. */
static void post_again(struct world *world, uint32_t tid)
{
    struct world_block *block = &world->blocks[tid];
    struct exanest_descriptor descriptor = random_block(world, tid);
    if (block->posted) {
        const uint16_t sequence = (uint16_t)((block->descriptor.sequence + 1u) % EXANEST_SEQUENCES);
        if (below(world, 2)) {
            descriptor = block->descriptor;
            descriptor.chained = false;
            descriptor.waits = false;
        }
        descriptor.sequence = sequence;
    }
    world_post(world, tid, &descriptor);
    if (below(world, 4) == 0) {
        world_post_control(world, tid, below(world, world->dma->config.ports));
    }
}

/* A chain of up to six blocks, the last one first. */
static void post_chain(struct world *world, uint32_t tids)
{
    const uint32_t length = 2 + below(world, 5), base = below(world, tids);
    if (length > tids) {
        return;
    }
    for (uint32_t at = 0; at < length; at++) {
        if (!free_to_post(world, (base + at) % tids)) {
            return;
        }
    }
    for (uint32_t at = length; at-- > 0;) {
        const uint32_t tid = (base + at) % tids;
        const struct world_block *block = &world->blocks[tid];
        struct exanest_descriptor descriptor = random_block(world, tid);
        if (block->posted) {
            descriptor.sequence = (uint16_t)((block->descriptor.sequence + 1u) % EXANEST_SEQUENCES);
        }
        descriptor.chained = at + 1 != length;
        descriptor.successor = (uint16_t)((base + at + 1) % tids);
        descriptor.waits = at != 0;
        world_post(world, tid, &descriptor);
        world->blocks[tid].predecessor = at == 0 ? -1 : (int)((base + at + tids - 1) % tids);
    }
}

/* Has it been enqueued, by software or by its predecessor? */
static bool started(const struct world *world, uint32_t tid)
{
    const struct world_block *block = &world->blocks[tid];
    return block->posted && (!block->descriptor.waits || block->issued != 0);
}

static void check_all(struct world *world, uint32_t tids)
{
    for (uint32_t tid = 0; tid < tids; tid++) {
        struct world_block *block = &world->blocks[tid];
        for (uint32_t i = 0; i < block->records; i++) {
            assert_true(block->record[i].faulted); /* All others have left. */
        }
        block->records = 0;
        if (started(world, tid)) {
            world_check_end(world, tid);
        }
    }
    for (uint32_t port = 0; port < world->dma->config.ports; port++) {
        const struct world_port *to = &world->ports[port];
        assert_int_equal(to->control_head, to->control_tail);
        assert_int_equal(to->packet.count, 0);
    }
}

static void release_parked(struct world *world, uint32_t tids)
{
    for (uint32_t tid = 0; tid < tids; tid++) {
        struct world_block *block = &world->blocks[tid];
        if (block->posted && !started(world, tid)) {
            block->posted = false; /* Software gives up and takes the identifier for another. */
        }
    }
}

static void add_up(const struct world *world)
{
    const struct exanest_scheduler_counters *counters = &world->dma->scheduler.counters;
    for (uint32_t i = 0; i < EXANEST_TURN_COUNT; i++) {
        sum.counters.turns[i] += counters->turns[i];
    }
    sum.counters.second_reads += counters->second_reads;
    sum.counters.faults += counters->faults;
    sum.counters.stale_faults += counters->stale_faults;
    sum.counters.chained += counters->chained;
    sum.packets += world->packets;
    for (uint32_t port = 0; port < world->dma->config.ports; port++) {
        const struct exanest_exadma_port *of = &world->dma->ports[port];
        assert_int_equal(of->exanetizer.counters.packets, world->ports[port].packets);
        assert_int_equal(of->exanetizer.counters.control_packets, world->ports[port].controls);
        sum.controls += world->ports[port].controls;
        sum.waits += of->exanetizer.counters.waits;
    }
}

static void run_world(void)
{
    struct world *world = random_world();
    const uint32_t tids = 1 + below(world, below(world, 3) ? 20 : 200);
    for (int phase = 0; phase < 4; phase++) {
        for (int i = 0; i < 6000; i++) {
            if (below(world, 30) == 0) {
                const uint32_t tid = below(world, tids);
                if (below(world, 10) == 0 && world->store_head == world->store_tail) {
                    post_chain(world, tids);
                } else if (free_to_post(world, tid)) {
                    post_again(world, tid);
                }
            }
            world_cycle(world);
        }
        world_drain(world);
        check_all(world, tids);
        release_parked(world, tids);
    }
    add_up(world);
    world_free(world);
}

static void test_worlds(void **state)
{
    (void)state;
    for (seed = first_seed; seed < first_seed + seed_count; seed++) {
        run_world();
    }
}

/* Each of what the worlds are for did happen. */
static void test_variety(void **state)
{
    (void)state;
    if (seed_count < SEEDS_USUAL) {
        return;
    }
    assert_true(sum.packets > 10000 && sum.controls > 1000 && sum.waits > 10000);
    assert_true(sum.counters.faults > 100 && sum.counters.stale_faults > 20);
    assert_true(sum.counters.chained > 100 && sum.counters.second_reads > 100);
    assert_true(sum.counters.turns[EXANEST_TURN_KILLED] > 50);
    assert_true(sum.counters.turns[EXANEST_TURN_NO_SLOT] > 1000);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        first_seed = strtoull(argv[2], NULL, 10);
        seed_count = 1;
    } else if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        first_seed = strtoull(argv[2], NULL, 10);
        seed_count = strtoull(argv[3], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds),
        cmocka_unit_test(test_variety),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed) {
        print_error("seed %llu\n", (unsigned long long)seed);
    }
    return failed;
}
