/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The torus router takes the shortest way, and no way closes a circle of waiting. Behaviour
 *         EXA-63.
 * Method  All pairs of places of several tori: their ways, and the graph of what waits for what,
 *         with two channels and with one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/exanest/test_torus.h"

#define LANES (TORUS_NODES * EXANEST_ROUTER_LANES_MAX)

/* Bit l of waits[k]: a packet in lane k may wait for lane l. */
struct graph {
    uint64_t waits[LANES][LANES / 64];
    uint8_t colours[LANES];
};

static uint32_t distance(uint32_t a, uint32_t b, uint32_t size)
{
    const uint32_t up = (b + size - a) % size;
    return up < size - up ? up : size - up;
}

/* Follows a packet from node to node; notes which lane waits for which. */
static void follow(const struct torus *torus, struct graph *graph, uint32_t from, uint32_t to,
                   uint8_t fpga)
{
    const struct exanest_router *first = &torus->routers[from];
    const struct exanest_place end = torus_place(first->size, to, fpga);
    uint32_t node = from, input = 2, channel = 0, hops = 0;
    uint32_t lane = node * EXANEST_ROUTER_LANES_MAX + exanest_router_lane(input, 0);
    for (;;) {
        uint32_t output, next;
        const struct exanest_router *router = &torus->routers[node];
        assert_true(exanest_router_route(router, input, channel, end, &output, &next));
        if (output < EXANEST_ROUTER_LOCALS) {
            assert_int_equal(output, fpga);
            break;
        }
        assert_true(next < router->channels);
        node = torus_neighbour(torus, node, output);
        input = torus_opposite(output);
        channel = next;
        assert_true(++hops <= torus->nodes);
        const uint32_t to_lane =
            node * EXANEST_ROUTER_LANES_MAX + exanest_router_lane(input, channel);
        graph->waits[lane][to_lane / 64] |= UINT64_C(1) << to_lane % 64;
        lane = to_lane;
    }
    assert_int_equal(node, to);
    uint32_t least = 0;
    const uint32_t places[3] = {end.x, end.y, end.z};
    for (uint32_t d = 0; d < 3; d++) {
        least += distance(first->own[d], places[d], first->size[d]);
    }
    assert_int_equal(hops, least);
}

/* Does a circle begin at this lane? Colours: 1 on the way, 2 seen to the end. */
static bool closes(struct graph *graph, uint32_t lane)
{
    graph->colours[lane] = 1;
    for (uint32_t i = 0; i < LANES / 64; i++) {
        for (uint64_t waits = graph->waits[lane][i]; waits != 0; waits &= waits - 1) {
            const uint32_t next = i * 64 + (uint32_t)__builtin_ctzll(waits);
            if (graph->colours[next] == 1 || (graph->colours[next] == 0 && closes(graph, next))) {
                return true;
            }
        }
    }
    graph->colours[lane] = 2;
    return false;
}

static bool has_circle(uint8_t x, uint8_t y, uint8_t z, uint8_t channels)
{
    struct exanest_router_config config = exanest_router_default(0, 0, x, y);
    struct graph *graph = calloc(1, sizeof(*graph));
    config.size[2] = z;
    config.channels = channels;
    struct torus *torus = torus_new(config, 1);
    bool found = false;
    for (uint32_t from = 0; from < torus->nodes; from++) {
        for (uint32_t to = 0; to < torus->nodes; to++) {
            follow(torus, graph, from, to, 2);
            follow(torus, graph, from, to, 3);
        }
    }
    for (uint32_t lane = 0; lane < LANES && !found; lane++) {
        found = graph->colours[lane] == 0 && closes(graph, lane);
    }
    torus_free(torus);
    free(graph);
    return found;
}

/* EXA-63: the shortest way between all pairs; no circle of waiting with two channels. */
static void test_ways(void **state)
{
    (void)state;
    static const uint8_t sizes[][3] = {{8, 8, 1},  {5, 4, 3}, {2, 2, 1}, {1, 7, 2},
                                       {64, 1, 1}, {3, 3, 3}, {1, 1, 1}, {4, 4, 4}};
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_false(has_circle(sizes[i][0], sizes[i][1], sizes[i][2], 2));
    }
    /* The dateline is needed where a packet takes two hops in a ring. */
    assert_true(has_circle(8, 8, 1, 1));
    assert_true(has_circle(5, 4, 3, 1));
    assert_true(has_circle(4, 4, 1, 1));
    assert_false(has_circle(3, 3, 1, 1));
}

/* Half way round: as many pairs go up as down. */
static void test_balance(void **state)
{
    (void)state;
    struct torus *torus = torus_new(exanest_router_default(0, 0, 4, 1), 1);
    uint32_t up = 0, output, channel;
    for (uint32_t node = 0; node < 4; node++) {
        for (uint8_t fpga = 0; fpga < 4; fpga++) {
            const struct exanest_place place = {.x = (uint8_t)((node + 2) % 4), .fpga = fpga};
            assert_true(
                exanest_router_route(&torus->routers[node], 0, 0, place, &output, &channel));
            up += output == 4;
        }
    }
    assert_int_equal(up, 8);
    torus_free(torus);
}

/* The comparison of EXA-A13: one port to F1's crossbar. */
static void test_one_local_port(void **state)
{
    (void)state;
    struct exanest_router_config config = exanest_router_default(0, 0, 4, 4);
    uint32_t output, channel;
    config.one_local_port = true;
    struct torus *torus = torus_new(config, 1);
    for (uint8_t fpga = 0; fpga < 4; fpga++) {
        const struct exanest_place place = {.fpga = fpga};
        assert_true(exanest_router_route(&torus->routers[0], 4, 0, place, &output, &channel));
        assert_int_equal(output, 0);
    }
    torus_free(torus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_one_local_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
