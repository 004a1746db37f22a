/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Routers of a torus lose nothing, keep each path's packets in order, and do not lock up:
 *         with two channels. With one they do. Behaviour EXA-63.
 * Method  Random all-to-all traffic on tori whose wires are delays, every word compared; a ring
 *         under a load that closes the circle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/test_torus.h"

#define ENDS 256u

struct traffic {
    struct prng prng;
    struct torus *torus;
    struct test_packet packets[ENDS];
    uint32_t at[ENDS];
    struct torus_sink sinks[ENDS];
    uint16_t next[ENDS][ENDS], expected[ENDS][ENDS];
    uint64_t sent, received;
    uint32_t ends, further; /* Not 0: each end sends to the node that is `further` further. */
    uint32_t sink_percent;
    bool over;
};

static struct traffic *traffic_new(struct exanest_router_config config, uint32_t delay,
                                   uint64_t seed)
{
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    prng_init(&traffic->prng, seed);
    traffic->torus = torus_new(config, delay);
    traffic->ends = traffic->torus->nodes * EXANEST_ROUTER_LOCALS;
    traffic->sink_percent = 100;
    CHECK(traffic->ends <= ENDS);
    return traffic;
}

static void traffic_free(struct traffic *traffic)
{
    torus_free(traffic->torus);
    free(traffic);
}

static void begin(struct traffic *traffic, uint32_t end)
{
    uint32_t to = (uint32_t)prng_below(&traffic->prng, traffic->ends);
    if (traffic->further != 0) {
        to = (end + traffic->further * EXANEST_ROUTER_LOCALS) % traffic->ends;
    }
    const struct torus_flow flow = {end, to, traffic->next[end][to]++};
    traffic->packets[end] =
        torus_packet(torus_target(traffic->torus, to / 4, (uint8_t)(to % 4)), torus_number(flow));
    traffic->at[end] = 0;
    traffic->sent++;
}

static void feed(struct traffic *traffic, uint32_t end)
{
    struct exanest_router *router = &traffic->torus->routers[end / 4];
    if (traffic->at[end] == traffic->packets[end].count) {
        if (traffic->over) {
            return;
        }
        begin(traffic, end);
    }
    const struct exanest_beat *beat = &traffic->packets[end].beats[traffic->at[end]];
    if (exanest_router_ready(router, end % 4, beat)) {
        exanest_router_take(router, end % 4, beat);
        traffic->at[end]++;
    }
}

static void drain(struct traffic *traffic, uint32_t end)
{
    struct exanest_router *router = &traffic->torus->routers[end / 4];
    struct exanest_beat beat;
    if (!exanest_router_offer(router, end % 4, &beat) ||
        prng_below(&traffic->prng, 100) >= traffic->sink_percent) {
        return;
    }
    exanest_router_taken(router, end % 4);
    if (torus_sink(&traffic->sinks[end], &beat)) {
        const struct torus_flow flow = torus_flow(traffic->sinks[end].number);
        assert_int_equal(flow.to, end);
        assert_int_equal(flow.sequence, traffic->expected[flow.from][end]++ & 0x3fff);
        traffic->received++;
    }
}

static void run(struct traffic *traffic, uint32_t cycles)
{
    for (uint32_t cycle = 0; cycle < cycles; cycle++) {
        torus_cycle(traffic->torus);
        for (uint32_t end = 0; end < traffic->ends; end++) {
            drain(traffic, end);
            feed(traffic, end);
        }
    }
}

/* Sends no more; lets everything arrive. False: it does not. */
static bool finish(struct traffic *traffic)
{
    traffic->over = true;
    for (uint32_t i = 0; i < 200 && traffic->received < traffic->sent; i++) {
        const uint64_t before = traffic->received;
        run(traffic, 5000);
        if (traffic->received == before) {
            return false;
        }
    }
    run(traffic, 500);
    for (uint32_t node = 0; node < traffic->torus->nodes; node++) {
        const struct exanest_router *router = &traffic->torus->routers[node];
        assert_true(exanest_router_idle(router));
        for (uint32_t port = EXANEST_ROUTER_LOCALS; port < router->ports; port++) {
            for (uint32_t channel = 0; channel < router->channels; channel++) {
                assert_int_equal(router->outputs[port].credits[channel],
                                 router->lanes[exanest_router_lane(port, channel)].slots);
            }
        }
    }
    return traffic->received == traffic->sent;
}

/* EXA-63: random all-to-all on 64 routers, as fast as they take it. */
static void test_all_to_all(void **state)
{
    (void)state;
    struct traffic *traffic = traffic_new(exanest_router_default(0, 0, 8, 8), 63, 1);
    run(traffic, 12000);
    assert_true(traffic->received > 7000);
    assert_true(finish(traffic));
    traffic_free(traffic);
}

/* EXA-63: as few slots as can be, slow sinks, other shapes of torus. */
static void test_small(void **state)
{
    (void)state;
    static const uint8_t sizes[][3] = {{4, 4, 1}, {8, 1, 1}, {3, 3, 3}, {4, 3, 2}, {2, 2, 2}};
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        struct exanest_router_config config =
            exanest_router_default(0, 0, sizes[i][0], sizes[i][1]);
        config.size[2] = sizes[i][2];
        config.local_slots = config.remote_slots = (uint8_t)(1 + i % 2);
        config.latency = (uint16_t)(1 + 10 * i);
        config.word_hundredths = i % 2 == 0 ? 100 : EXANEST_ROUTER_WORD;
        struct traffic *traffic = traffic_new(config, 1 + 5 * i, i);
        traffic->sink_percent = 30;
        run(traffic, 20000);
        assert_true(finish(traffic));
        traffic_free(traffic);
    }
}

/* EXA-63: all go three hops up a ring of eight. With one channel they wait for one another for
 * ever; with two they do not. */
static void test_dateline(void **state)
{
    (void)state;
    for (uint8_t channels = 1; channels <= 2; channels++) {
        for (uint8_t slots = 1; slots <= 4; slots++) {
            struct exanest_router_config config = exanest_router_default(0, 0, 8, 1);
            config.channels = channels;
            config.remote_slots = slots;
            struct traffic *traffic = traffic_new(config, 5, 1);
            traffic->further = 3;
            run(traffic, 20000);
            assert_int_equal(finish(traffic), channels == 2);
            traffic_free(traffic);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_dateline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
