/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The torus router keeps its latency and pace, serves its inputs in turn, and survives what
 *         neighbours do wrong. Behaviours EXA-64, EXA-68 (EXA-A4).
 * Method  Single packets and streams between two routers, with cycles counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/exanest/test_torus.h"

static void test_latency(void **state)
{
    (void)state;
    struct torus *torus = torus_new(exanest_router_default(0, 0, 4, 1), 63);
    struct exanest_beat beat;
    for (uint32_t hops = 0; hops < 3; hops++) {
        const struct test_packet packet = test_packet(torus_target(torus, hops, 1), 1, 7);
        const uint64_t from = torus->now;
        exanest_router_take(&torus->routers[0], 2, &packet.beats[0]);
        assert_false(exanest_router_idle(&torus->routers[0]));
        while (!exanest_router_offer(&torus->routers[hops], 1, &beat)) {
            torus_cycle(torus);
            assert_true(torus->now < from + 1000);
        }
        assert_true(test_beat_equal(&beat, &packet.beats[0]));
        assert_int_equal(torus->now - from, 120 * (hops + 1) + 63 * hops);
        exanest_router_taken(&torus->routers[hops], 1);
        for (uint32_t i = 0; i < 200; i++) {
            torus_cycle(torus);
        }
        for (uint32_t node = 0; node < 4; node++) {
            assert_true(exanest_router_idle(&torus->routers[node]));
        }
    }
    torus_free(torus);
}

/* Virtual cut-through: the header leaves before the end has come. */
static void test_cut_through(void **state)
{
    (void)state;
    struct torus *torus = torus_new(exanest_router_default(0, 0, 4, 1), 63);
    struct exanest_router *router = &torus->routers[0];
    const struct test_packet packet = test_packet(torus_target(torus, 1, 0), 18, 7);
    struct exanest_beat beat;
    uint64_t taken_at[18];
    uint32_t at = 0, left = 0;
    for (uint64_t cycle = 0; left < 18; cycle++) {
        exanest_router_step(router);
        if (cycle % 100 == 0 && at < 18) {
            exanest_router_take(router, 0, &packet.beats[at]);
            taken_at[at++] = cycle;
        }
        if (exanest_router_offer(router, 4, &beat)) {
            assert_true(left < at && test_beat_equal(&beat, &packet.beats[left]));
            const uint64_t expected = taken_at[left] + (left == 0 ? 120 : left == 1 ? 22 : 1);
            assert_int_equal(cycle, expected);
            exanest_router_taken(router, 4);
            left++;
        }
    }
    torus_free(torus);
}

/* Cycles for packets of 18 words over one link, in tens of Mb/s of payload. */
static uint32_t pace(struct exanest_router_config config)
{
    struct torus *torus = torus_new(config, 63);
    const struct test_packet packet = test_packet(torus_target(torus, 1, 0), 18, 7);
    struct exanest_router *from = &torus->routers[0], *to = &torus->routers[1];
    uint32_t at = 0, words = 0;
    struct exanest_beat beat;
    const uint32_t cycles = 200000;
    for (uint32_t cycle = 0; cycle < cycles; cycle++) {
        torus_cycle(torus);
        if (exanest_router_ready(from, 0, &packet.beats[at])) {
            exanest_router_take(from, 0, &packet.beats[at]);
            at = (at + 1) % 18;
        }
        if (exanest_router_offer(to, 0, &beat)) {
            exanest_router_taken(to, 0);
            words++;
        }
    }
    torus_free(torus);
    return (uint32_t)((uint64_t)words * 2048 * 150 / 18 / cycles / 10);
}

/* EXA-68 (EXA-A4): 7.97 Gb/s with g_rtr = 4, 7.77 with 5; too few slots do not cover a credit's
 * way. */
static void test_pace(void **state)
{
    (void)state;
    struct exanest_router_config config = exanest_router_default(0, 0, 4, 1);
    assert_in_range(pace(config), 794, 798);
    config.gap_hundredths = 500;
    assert_in_range(pace(config), 774, 778);
    config = exanest_router_default(0, 0, 4, 1);
    config.remote_slots = 3;
    assert_in_range(pace(config), 200, 400);
    config.word_hundredths = 100;
    config.gap_hundredths = 0;
    config.remote_slots = 40;
    config.local_slots = 40;
    assert_in_range(pace(config), 1690, 1707);
}

/* EXA-64: four local inputs, and packets that pass by, share a remote output in turn. */
static void test_fairness(void **state)
{
    (void)state;
    struct exanest_router_config config = exanest_router_default(0, 0, 8, 1);
    struct torus *torus = torus_new(config, 1);
    struct exanest_router *router = &torus->routers[0];
    const struct test_packet packet = test_packet(torus_target(torus, 1, 0), 18, 7);
    uint32_t at[4] = {0}, words[4] = {0};
    struct exanest_beat beat;
    for (uint32_t cycle = 0; cycle < 100000; cycle++) {
        torus_cycle(torus);
        for (uint32_t port = 0; port < 4; port++) {
            if (exanest_router_ready(router, port, &packet.beats[at[port]])) {
                exanest_router_take(router, port, &packet.beats[at[port]]);
                at[port] = (at[port] + 1) % 18;
                words[port]++;
            }
        }
        if (exanest_router_offer(&torus->routers[1], 0, &beat)) {
            exanest_router_taken(&torus->routers[1], 0);
        }
    }
    const uint32_t all = words[0] + words[1] + words[2] + words[3];
    assert_true(all > 40000);
    for (uint32_t port = 0; port < 4; port++) {
        assert_in_range(words[port] * 400, all * 95, all * 105);
    }
    torus_free(torus);
}

/* Gives all words of a packet to a port. */
static void give(struct exanest_router *router, uint32_t port, struct test_packet packet,
                 uint8_t channel)
{
    for (uint32_t i = 0; i < packet.count; i++) {
        packet.beats[i].channel = channel;
        assert_true(exanest_router_ready(router, port, &packet.beats[i]));
        exanest_router_take(router, port, &packet.beats[i]);
    }
}

static void test_wrong(void **state)
{
    (void)state;
    struct torus *torus = torus_new(exanest_router_default(0, 0, 4, 4), 1);
    struct exanest_router *router = &torus->routers[0];
    struct test_packet packet = test_packet(torus_target(torus, 1, 0), 18, 7);
    uint32_t channel;
    packet.beats[0].word.high ^= 4;
    give(router, 0, packet, 0);
    assert_int_equal(router->credits_due, 0);
    give(router, 5, packet, 1);
    assert_int_equal(router->counters.bad_headers, 2);
    /* The neighbour gets its slot back, on the channel that it had used. */
    assert_true(exanest_router_next_credit(router, 5, &channel));
    assert_int_equal(channel, 1);
    assert_false(exanest_router_next_credit(router, 5, &channel));

    const struct exanest_place outside = {.x = 1, .y = 4};
    packet = test_packet((struct exanest_target){exanest_coordinate(outside), 0}, 2, 7);
    give(router, 3, packet, 0);
    give(router, 4, packet, 0);
    assert_int_equal(router->counters.outside, 2);
    assert_true(exanest_router_next_credit(router, 4, &channel));

    packet = test_packet(torus_target(torus, 0, 0), 18, 7);
    give(router, 4, packet, 2);
    assert_int_equal(router->counters.wrong_channels, 1);
    exanest_router_on_credit(router, 4, 0);
    exanest_router_on_credit(router, 4, 3);
    assert_int_equal(router->counters.wrong_credits, 2);
    assert_int_equal(router->packets, 0);
    for (uint32_t i = 0; i < EXANEST_ROUTER_REMOTE_SLOTS + 3; i++) {
        give(router, 4, packet, 0);
    }
    assert_int_equal(router->counters.overruns, 3);
    assert_int_equal(router->packets, EXANEST_ROUTER_REMOTE_SLOTS);
    torus_free(torus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latency), cmocka_unit_test(test_cut_through),
        cmocka_unit_test(test_pace),    cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
