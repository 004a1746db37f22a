/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each rule of the controller does what its header says, alone.
 * Method  Rounds of reports by hand: bytes acknowledged, lost, marked, and their delay. The effect
 *         of all rules on a queue: tests/scenarios/congestion_scenario_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/common/congestion.h"

#define PACKET  4096u
#define BASE_NS 1000000u

struct bench {
    struct congestion congestion;
    struct congestion_policy policy;
    uint64_t now_ns;
};

struct round {
    uint32_t queue_ns;
    uint32_t acked, lost, marked; /* Packets. */
    bool app_limited;
};

static void start(struct bench *bench)
{
    *bench = (struct bench){.policy = congestion_policy_default(), .now_ns = 5};
    congestion_init(&bench->congestion, &bench->policy, PACKET);
}

static uint32_t window(const struct bench *bench)
{
    return congestion_window(&bench->congestion, &bench->policy);
}

static void report(struct bench *bench, const struct round *round)
{
    congestion_on_report(&bench->congestion, &bench->policy,
                         &(struct congestion_report){
                             .now = {bench->now_ns},
                             .acked_bytes = round->acked * PACKET,
                             .lost_bytes = round->lost * PACKET,
                             .ce_packets = round->marked,
                             .delay_ns = BASE_NS + round->queue_ns,
                             .base_ns = BASE_NS,
                             .smoothed_ns = BASE_NS + round->queue_ns,
                             .app_limited = round->app_limited,
                         });
}

/* A report, and after it a round trip passes. */
static void play(struct bench *bench, const struct round *round, int times)
{
    for (int n = 0; n < times; n++) {
        report(bench, round);
        bench->now_ns += BASE_NS + round->queue_ns;
    }
}

/* Out of the start, by a queue that then is gone; no round has to settle any more. */
static void leave_start(struct bench *bench)
{
    start(bench);
    play(bench, &(struct round){.acked = 256}, 2);
    play(bench, &(struct round){.queue_ns = 3000000}, 2);
    assert_int_equal(bench->congestion.mode, CONGESTION_DELAY);
    play(bench, &(struct round){.queue_ns = 0}, 4);
}

static void test_start(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    assert_int_equal(window(&bench), 65536);
    assert_true(congestion_rate(&bench.congestion, &bench.policy) == UINT64_MAX);
    play(&bench, &(struct round){.acked = 16}, 1);
    assert_int_equal(window(&bench), 2 * 65536);
    assert_true(congestion_rate(&bench.congestion, &bench.policy) == 2 * 2 * 65536 * 1000ull);
    /* Rounds that did not fill the window do not let it grow. */
    play(&bench, &(struct round){.acked = 16, .app_limited = true}, 3);
    assert_int_equal(window(&bench), 2 * 65536);
    /* A packet of more than a tenth of the first window's bytes: ten of them. */
    congestion_init(&bench.congestion, &bench.policy, 9000);
    assert_int_equal(window(&bench), 90000);
}

static void test_delay(void **state)
{
    (void)state;
    struct bench bench;
    leave_start(&bench);
    /* 4 KB a round trip at first, later more: never more than an eighth. */
    bench.congestion.calm_rounds = 0;
    const uint32_t before = window(&bench);
    report(&bench, &(struct round){.acked = before / PACKET});
    assert_in_range(window(&bench), before + 3900, before + 4096);
    bench.congestion.calm_rounds = 200;
    const uint32_t calm = window(&bench);
    report(&bench, &(struct round){.acked = calm / PACKET});
    assert_in_range(window(&bench), calm + 4096 * 8, calm + calm / 8);
    /* A queue below the target is not cut; one that has risen by more is, in the measure of it. */
    const uint32_t full = window(&bench);
    play(&bench, &(struct round){.queue_ns = 900000}, 4);
    assert_int_equal(window(&bench), full);
    play(&bench, &(struct round){.queue_ns = 1100000}, 2);
    assert_in_range(window(&bench), full / 2 - 256, full / 2);
    /* No queue of whatever length takes more than half at a time. */
    leave_start(&bench);
    const uint32_t again = window(&bench);
    play(&bench, &(struct round){.queue_ns = 50000000}, 2);
    assert_in_range(window(&bench), again / 2 - 256, again / 2);
}

/* A lost packet in each round, and a queue that nobody sees: nothing happens, up to 5 %. */
static void test_random_loss(void **state)
{
    (void)state;
    for (uint32_t percent = 1; percent <= 5; percent++) {
        struct bench bench;
        leave_start(&bench);
        struct prng prng;
        prng_init(&prng, percent);
        const uint32_t before = window(&bench);
        for (int n = 0; n < 2000; n++) {
            struct round round = {.app_limited = true};
            for (uint32_t packet = 0; packet < 20; packet++) {
                const bool lost = prng_chance(&prng, percent * 10000);
                round.lost += lost;
                round.acked += !lost;
            }
            play(&bench, &round, 1);
        }
        assert_int_equal(window(&bench), before);
    }
}

static void test_loss_that_counts(void **state)
{
    (void)state;
    /* A fifth of all packets. */
    struct bench bench;
    leave_start(&bench);
    uint32_t before = window(&bench);
    play(&bench, &(struct round){.acked = 80, .lost = 20, .app_limited = true}, 2);
    assert_in_range(window(&bench), before / 10 * 7 - 4096, before / 10 * 7);
    /* It was a mistake. */
    congestion_undo(&bench.congestion, &bench.policy);
    assert_int_equal(window(&bench), before);
    /* One packet while there is a queue: enough to empty the queue. */
    leave_start(&bench);
    before = window(&bench);
    play(&bench, &(struct round){.queue_ns = 100000, .lost = 1}, 4);
    assert_int_equal(window(&bench), before);
    play(&bench, &(struct round){.queue_ns = 600000, .lost = 1}, 2);
    assert_in_range(window(&bench), before / 2, before * 3 / 4);
    /* Two cuts in a row: the first one's window comes back. */
    play(&bench, &(struct round){.queue_ns = 600000, .lost = 1}, 3);
    assert_true(window(&bench) < before / 2);
    congestion_undo(&bench.congestion, &bench.policy);
    assert_int_equal(window(&bench), before);
    /* But not for ever, and not twice. */
    play(&bench, &(struct round){.queue_ns = 600000, .lost = 1}, 2);
    play(&bench, &(struct round){.queue_ns = 600000}, bench.policy.undo_rounds + 1);
    const uint32_t after = window(&bench);
    congestion_undo(&bench.congestion, &bench.policy);
    assert_int_equal(window(&bench), after);
}

/* Cuts do not shorten the queue: from then on delay is nobody's business, until it is gone. */
static void test_competition(void **state)
{
    (void)state;
    struct bench bench;
    leave_start(&bench);
    const uint32_t before = window(&bench);
    const struct round queue = {.queue_ns = 8000000};
    int rounds = 0;
    while (bench.congestion.mode != CONGESTION_COMPETITIVE) {
        play(&bench, &queue, 1);
        assert_true(++rounds < 16);
    }
    assert_int_equal(window(&bench), before);
    play(&bench, &queue, 20);
    assert_int_equal(window(&bench), before);
    /* It looks now and then whether that is still so. */
    rounds = 0;
    while (bench.congestion.mode == CONGESTION_COMPETITIVE) {
        play(&bench, &queue, 1);
        assert_true(++rounds < 32);
    }
    assert_true(window(&bench) < before);
    while (bench.congestion.mode != CONGESTION_COMPETITIVE) {
        play(&bench, &queue, 1);
    }
    assert_int_equal(window(&bench), before);
    /* A loss is one. */
    play(&bench, &(struct round){.queue_ns = 8000000, .lost = 1}, 2);
    assert_in_range(window(&bench), before / 10 * 7 - 4096, before / 10 * 7);
    play(&bench, &(struct round){.queue_ns = 0}, 3);
    assert_int_equal(bench.congestion.mode, CONGESTION_DELAY);
}

/* The window follows the share of marks, not their mere presence. */
static void test_marks(void **state)
{
    (void)state;
    struct bench few, many;
    leave_start(&few);
    leave_start(&many);
    const uint32_t before = window(&few);
    play(&few, &(struct round){.acked = 50, .marked = 5, .app_limited = true}, 20);
    play(&many, &(struct round){.acked = 50, .marked = 50, .app_limited = true}, 20);
    assert_true(window(&few) < before && window(&many) < window(&few) / 4);
    /* The first marks end the start. */
    start(&few);
    play(&few, &(struct round){.acked = 50, .marked = 5}, 2);
    assert_int_equal(few.congestion.mode, CONGESTION_DELAY);
}

static void test_silence(void **state)
{
    (void)state;
    struct bench bench;
    leave_start(&bench);
    const uint32_t before = window(&bench);
    congestion_on_silence(&bench.congestion, &bench.policy, (struct instant){bench.now_ns});
    assert_int_equal(window(&bench), before / 2);
    congestion_undo(&bench.congestion, &bench.policy);
    assert_int_equal(window(&bench), before);
    for (int n = 0; n < 2; n++) {
        assert_true(window(&bench) > 2 * PACKET);
        congestion_on_silence(&bench.congestion, &bench.policy, (struct instant){bench.now_ns});
    }
    assert_int_equal(window(&bench), 2 * PACKET);
    assert_int_equal(bench.congestion.mode, CONGESTION_STARTING);
    /* No cut takes more, but the pace falls on. */
    leave_start(&bench);
    const struct round awful = {.queue_ns = 0, .acked = 1, .lost = 10, .app_limited = true};
    play(&bench, &awful, 200);
    assert_int_equal(window(&bench), 2 * PACKET);
    const uint64_t pace = congestion_rate(&bench.congestion, &bench.policy);
    assert_in_range(pace, PACKET / 16 * 1000, PACKET / 8 * 1000);
}

/* The window stays between its bounds, whatever answers a peer sends. */
static void test_any_reports(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 9);
    for (int run = 0; run < 200; run++) {
        struct bench bench;
        start(&bench);
        bench.policy.most_bytes = run % 2 == 0 ? 1u << 20 : 1u << 30;
        for (int n = 0; n < 2000; n++) {
            congestion_on_report(
                &bench.congestion, &bench.policy,
                &(struct congestion_report){
                    .now = {bench.now_ns += prng_next(&prng) >> (20 + prng_below(&prng, 44))},
                    .acked_bytes = (uint32_t)prng_next(&prng) >> prng_below(&prng, 32),
                    .lost_bytes = (uint32_t)prng_next(&prng) >> prng_below(&prng, 32),
                    .ce_packets = (uint32_t)prng_below(&prng, 256),
                    .delay_ns = (uint32_t)prng_next(&prng) >> prng_below(&prng, 32),
                    .base_ns = (uint32_t)prng_next(&prng) >> prng_below(&prng, 32),
                    .smoothed_ns = (uint32_t)prng_next(&prng) >> prng_below(&prng, 32),
                    .app_limited = prng_chance(&prng, 300000),
                });
            if (prng_chance(&prng, 10000)) {
                congestion_on_silence(&bench.congestion, &bench.policy,
                                      (struct instant){bench.now_ns});
            }
            if (prng_chance(&prng, 10000)) {
                congestion_undo(&bench.congestion, &bench.policy);
            }
            assert_in_range(window(&bench), 2 * PACKET, bench.policy.most_bytes);
            assert_true(congestion_rate(&bench.congestion, &bench.policy) > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),       cmocka_unit_test(test_delay),
        cmocka_unit_test(test_random_loss), cmocka_unit_test(test_loss_that_counts),
        cmocka_unit_test(test_competition), cmocka_unit_test(test_marks),
        cmocka_unit_test(test_silence),     cmocka_unit_test(test_any_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
