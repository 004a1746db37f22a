/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What a link does to datagrams is what its settings say, and no more: each that is sent
 *         arrives after the latency, unless a fault struck it; and every fault is counted.
 * Method  Numbered datagrams, one every microsecond, each with its time of sending; the test
 *         notes who arrives when, and compares with counts by hand. Then all faults at once, over
 *         many seeds: what was sent is what was lost plus what arrived.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/world/link.h"

#define DATAGRAMS  1000u
#define PERIOD_PS  1000000u
#define LATENCY_PS 2500000u
#define BYTES      64u

struct post {
    uint64_t number, sent_ps;
};

struct world {
    struct sim sim;
    struct link link;
    struct sim_pool pool;
    uint32_t arrivals[DATAGRAMS];
    uint64_t newest;             /* Number. */
    uint64_t overtaken, damaged; /* Arrivals. */
    uint64_t least_ps, most_ps;  /* Ways. */
    uint64_t total;
};

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(sim, struct world, sim);
    struct datagram *datagram = link_datagram(event);
    struct post post;
    uint8_t harmed = 0;
    assert_int_equal(datagram->from, 7);
    assert_int_equal(datagram->to, 9);
    assert_int_equal(datagram->count, BYTES);
    memcpy(&post, datagram->bytes, sizeof(post));
    for (uint32_t i = sizeof(post); i < BYTES; i++) {
        harmed |= datagram->bytes[i];
    }
    link_give(datagram);
    world->total++;
    world->damaged += harmed != 0 || post.number >= DATAGRAMS;
    if (world->link.settings.damage_bytes != 0) {
        return; /* Its numbers may be anything. */
    }
    const uint64_t way_ps = sim->now_ps - post.sent_ps;
    assert_in_range(post.number, 0, DATAGRAMS - 1);
    world->arrivals[post.number]++;
    world->overtaken += post.number < world->newest;
    world->newest = post.number > world->newest ? post.number : world->newest;
    world->least_ps = way_ps < world->least_ps ? way_ps : world->least_ps;
    world->most_ps = way_ps > world->most_ps ? way_ps : world->most_ps;
}

static void send_all(struct world *world)
{
    for (uint64_t i = 0; i < DATAGRAMS; i++) {
        uint8_t bytes[BYTES] = {0};
        const struct post post = {i, world->sim.now_ps};
        memcpy(bytes, &post, sizeof(post));
        link_send(&world->link, 7, 9, bytes, BYTES);
        sim_run_until(&world->sim, world->sim.now_ps + PERIOD_PS);
    }
    while (sim_step(&world->sim)) {
    }
    assert_int_equal(sim_pool_taken(&world->pool), 0);
}

/* Runs a world of its own for the settings. */
static void run_with(struct world *world, uint64_t seed, struct link_settings settings,
                     uint32_t datagrams)
{
    memset(world, 0, sizeof(*world));
    settings.latency_ps = LATENCY_PS;
    world->least_ps = UINT64_MAX;
    sim_init(&world->sim, seed);
    link_pool_open(&world->pool, datagrams, BYTES);
    link_init(&world->link, &world->sim, &world->pool, &settings, on_arrival);
    send_all(world);
    sim_pool_close(&world->pool);
}

static void run(struct world *world, uint64_t seed, struct link_settings settings)
{
    run_with(world, seed, settings, 2 * DATAGRAMS);
}

static struct world world;

static void test_good_link(void **state)
{
    (void)state;
    run(&world, 1, (struct link_settings){.reorder_ps = 5, .late_ps = 5, .cut_ps = 5});
    assert_int_equal(world.total, DATAGRAMS);
    assert_int_equal(world.overtaken, 0);
    assert_int_equal(world.least_ps, LATENCY_PS);
    assert_int_equal(world.most_ps, LATENCY_PS);
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        assert_int_equal(world.arrivals[i], 1);
    }
}

static void test_drop_and_duplicate(void **state)
{
    (void)state;
    run(&world, 1, (struct link_settings){.faults.millionths = {[SIM_FAULT_drop] = 1000000}});
    assert_int_equal(world.total, 0);
    assert_int_equal(world.link.lost, DATAGRAMS);
    run(&world, 1, (struct link_settings){.faults.millionths = {[SIM_FAULT_duplicate] = 1000000}});
    assert_int_equal(world.link.settings.faults.struck[SIM_FAULT_duplicate], DATAGRAMS);
    assert_int_equal(world.link.sent, 2 * DATAGRAMS);
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        assert_int_equal(world.arrivals[i], 2);
    }
}

/* Reordered and late ones differ only in how long they take. */
static void test_delays(void **state)
{
    (void)state;
    static const enum sim_fault faults[] = {SIM_FAULT_reorder, SIM_FAULT_late};
    for (int i = 0; i < 2; i++) {
        struct link_settings settings = {.reorder_ps = 40000000, .late_ps = 900000000};
        settings.faults.millionths[faults[i]] = 200000;
        const uint64_t longest_ps = i == 0 ? settings.reorder_ps : settings.late_ps;
        run(&world, 3, settings);
        assert_int_equal(world.total, DATAGRAMS);
        assert_int_equal(world.least_ps, LATENCY_PS);
        assert_in_range(world.most_ps, LATENCY_PS + longest_ps * 9 / 10, LATENCY_PS + longest_ps);
        assert_in_range(world.link.settings.faults.struck[faults[i]], 150, 250);
        assert_in_range(world.overtaken, 120, 250);
    }
}

/* A cut loses everything until it is over: the losses come in rows. */
static void test_cuts(void **state)
{
    (void)state;
    struct link_settings settings = {.faults.millionths = {[SIM_FAULT_cut] = 10000},
                                     .cut_ps = 40 * PERIOD_PS};
    run(&world, 4, settings);
    const uint64_t cuts = world.link.settings.faults.struck[SIM_FAULT_cut];
    uint64_t rows = 0, longest = 0, length = 0;
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        length = world.arrivals[i] == 0 ? length + 1 : 0;
        rows += length == 1;
        longest = length > longest ? length : longest;
    }
    assert_in_range(cuts, 3, 20);
    assert_in_range(rows, 1, cuts);
    assert_in_range(longest, 10, 82);
    assert_true(world.link.lost > 5 * cuts);
    assert_int_equal(world.total + world.link.lost, DATAGRAMS);
}

static void test_damage(void **state)
{
    (void)state;
    struct link_settings settings = {.faults.millionths = {[SIM_FAULT_damage] = 1000000},
                                     .damage_bytes = BYTES};
    run(&world, 5, settings);
    assert_int_equal(world.total, DATAGRAMS);
    assert_int_equal(world.link.settings.faults.struck[SIM_FAULT_damage], DATAGRAMS);
    /* The first 16 of 64 bytes are numbers, and what harms them is not always seen. */
    assert_in_range(world.damaged, DATAGRAMS * 7 / 10, DATAGRAMS);
}

static void test_crowd(void **state)
{
    (void)state;
    run_with(&world, 6, (struct link_settings){.reorder_ps = 0}, 2);
    assert_true(world.link.crowded > 0);
    assert_int_equal(world.link.crowded, world.link.lost);
    assert_int_equal(world.total + world.link.lost, DATAGRAMS);
}

static void test_all_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct link_settings settings = {
            .reorder_ps = 10000000, .late_ps = 500000000, .cut_ps = 30000000};
        struct prng prng;
        prng_init(&prng, seed);
        for (uint32_t fault = 0; fault < SIM_FAULT_damage; fault++) {
            settings.faults.millionths[fault] = (uint32_t)prng_below(&prng, 100000);
        }
        run(&world, seed, settings);
        const uint64_t *struck = world.link.settings.faults.struck;
        assert_int_equal(world.link.sent, DATAGRAMS + struck[SIM_FAULT_duplicate]);
        assert_int_equal(world.link.sent, world.total + world.link.lost);
        assert_true(world.link.lost >= struck[SIM_FAULT_drop] + struck[SIM_FAULT_cut]);
        const uint64_t digest = world.sim.now_ps ^ world.most_ps;
        run(&world, seed, settings);
        assert_int_equal(world.sim.now_ps ^ world.most_ps, digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_link),  cmocka_unit_test(test_drop_and_duplicate),
        cmocka_unit_test(test_delays),     cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_damage),     cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_all_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
