/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The bench loses and invents no word, its receiver takes words at the rate that was set,
 *         and it sees each time without a word.
 * Method  Streams of both kinds of packets; one that is stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/exanest/bench.h"

#define US (1000 * SIM_NS)

struct world {
    struct sim sim;
    struct exanest_bench bench;
};

static struct exanest_bench_config usual(void)
{
    struct exanest_bench_config config = {
        .datapath_hz = 150000000,
        .crossbar = exanest_crossbar_default(),
        .link = exanest_link_default(),
        .sources = 2,
        .words = EXANEST_PACKET_WORDS_MAX,
        .take_ps = 12800,
    };
    config.link.serializer.line = exanest_line_gap(0, 150, 10000);
    return config;
}

static struct world *open_world(const struct exanest_bench_config *config)
{
    struct world *world = malloc(sizeof(*world));
    assert_non_null(world);
    sim_init(&world->sim, 1);
    exanest_bench_open(&world->bench, config, &world->sim);
    return world;
}

static void close_world(struct world *world)
{
    exanest_bench_close(&world->bench);
    free(world);
}

/* Two sources take turns; what they gave is somewhere. */
static void test_words(void **state)
{
    (void)state;
    for (uint32_t words = 1; words <= EXANEST_PACKET_WORDS_MAX; words++) {
        struct exanest_bench_config config = usual();
        config.words = words;
        config.take_ps = 0;
        struct world *world = open_world(&config);
        struct exanest_bench *bench = &world->bench;
        exanest_bench_run(bench, 20 * US);
        const struct exanest_deserializer *receiver = exanest_bench_receiver(bench);
        assert_true(bench->taken > 0);
        assert_int_equal(bench->taken + receiver->fifo.used, receiver->counters.words);
        assert_int_equal(receiver->counters.misframed + receiver->counters.bad_headers, 0);
        assert_int_equal(receiver->counters.words / words, receiver->counters.packets);
        assert_true(bench->crossbar.counters.words >= receiver->counters.words);
        assert_in_range(bench->crossbar.counters.words - receiver->counters.words, 0, 300);
        close_world(world);
    }
}

static void test_rate(void **state)
{
    (void)state;
    struct exanest_bench_config config = usual();
    config.take_ps = 25600;
    struct world *world = open_world(&config);
    exanest_bench_run(&world->bench, 20 * US);
    const uint64_t before = world->bench.taken;
    exanest_bench_run(&world->bench, 20 * US + 256 * US);
    assert_in_range(world->bench.taken - before, 9999, 10001);
    close_world(world);
}

/* After a stall: none if the drain is as fast as the line or slower, one if it is faster. */
static void test_bubbles(void **state)
{
    (void)state;
    static const uint64_t take_ps[] = {12800, 6666, 14000};
    for (uint32_t i = 0; i < COUNT_OF(take_ps); i++) {
        struct exanest_bench_config config = usual();
        config.take_ps = take_ps[i];
        struct world *world = open_world(&config);
        struct exanest_bench *bench = &world->bench;
        exanest_bench_run(bench, 5 * US);
        bench->stalled = true;
        const uint64_t before = bench->taken;
        exanest_bench_run(bench, 15 * US);
        assert_int_equal(bench->taken, before);
        assert_true(exanest_bench_receiver(bench)->fifo.used > 184);
        bench->stalled = false;
        exanest_bench_watch(bench);
        exanest_bench_run(bench, 25 * US);
        assert_int_equal(bench->bubbles, i == 1);
        assert_int_equal(exanest_bench_receiver(bench)->counters.lost, 0);
        if (i == 1) {
            assert_in_range(bench->bubble_ps, 360000, 420000);
        }
        close_world(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_bubbles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
