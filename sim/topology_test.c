/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every topology is a network whose links have two ends, and its routes arrive by a
 *         shortest way.
 * Method  The test walks between every pair of nodes of many small networks, with several
 *         entropies, and compares the hops with those of a search in breadth. In a dragonfly it
 *         compares them with the one global link between two groups, found by looking at all links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "sim/topology_checks.h"

static void open_named(struct topology *topology, const char *description)
{
    char error[TOPOLOGY_ERROR_BYTES] = "";
    if (!topology_open(topology, description, error, sizeof(error))) {
        fail_msg("%s: %s", description, error);
    }
}

static const struct {
    const char *description;
    uint32_t nodes, switches;
} small[] = {
    {"star:2", 2, 1},
    {"star:17", 17, 1},
    {"all-to-all:2", 2, 0},
    {"all-to-all:9", 9, 0},
    {"fat-tree:4", 16, 20},
    {"fat-tree:4:1", 4, 1},
    {"fat-tree:4:2", 8, 6},
    {"fat-tree:4:4", 32, 56},
    {"fat-tree:4:6", 128, 352},
    {"fat-tree:6", 54, 45},
    {"fat-tree:6:2", 18, 9},
    {"fat-tree:6:4", 162, 189},
    {"fat-tree:10:2", 50, 15},
    {"fat-tree:10:3", 250, 125},
    {"torus:2", 2, 2},
    {"torus:3", 3, 3},
    {"torus:7", 7, 7},
    {"torus:8:3", 24, 8},
    {"torus:2x2", 4, 4},
    {"torus:2x3x4", 24, 24},
    {"torus:5x6", 30, 30},
    {"torus:4x4x4", 64, 64},
    {"torus:3x2x5:2", 60, 30},
    {"torus:2x2x2x2x2x2x2", 128, 128},
    {"torus:3x3x3x3", 81, 81},
    {"torus:17x2:5", 170, 34},
    {"dragonfly:1,1,1", 2, 2},
    {"dragonfly:1,1,4", 5, 5},
    {"dragonfly:2,1,2", 6, 3},
    {"dragonfly:1,2,1", 6, 6},
    {"dragonfly:2,4,2", 72, 36},
    {"dragonfly:3,2,3", 42, 14},
    {"dragonfly:1,5,3", 80, 80},
    {"dragonfly:3,6,1", 126, 42},
};

/* -- Dragonflies --------------------------------------------------------------------------------*/

struct fly {
    struct topology topology;
    uint32_t nodes_each, routers, links;
};

static uint32_t group_of(const struct fly *fly, uint32_t router)
{
    return (router - fly->topology.nodes) / fly->routers;
}

/* The router from which a global link leads to another group; there is exactly one. */
static uint32_t gateway(const struct fly *fly, uint32_t from, uint32_t to)
{
    uint32_t found = FAR;
    for (uint32_t i = 0; i < fly->routers; i++) {
        const uint32_t router = fly->topology.nodes + from * fly->routers + i;
        for (uint32_t p = 0; p < topology_degree(&fly->topology, router); p++) {
            const struct topology_port *port = topology_port_of(&fly->topology, router, p);
            if (port->link_class == TOPOLOGY_LINK_GLOBAL && group_of(fly, port->peer) == to) {
                assert_true(found == FAR);
                found = router;
            }
        }
    }
    assert_true(found != FAR);
    return found;
}

static void check_way(const struct fly *fly, uint32_t from, uint32_t to)
{
    const uint32_t source = topology_port_of(&fly->topology, from, 0)->peer;
    const uint32_t target = topology_port_of(&fly->topology, to, 0)->peer;
    const uint32_t groups[2] = {group_of(fly, source), group_of(fly, target)};
    uint8_t expected[5], found[5];
    uint32_t hops = 0;
    expected[hops++] = TOPOLOGY_LINK_OF_NODE;
    if (groups[0] != groups[1]) {
        if (gateway(fly, groups[0], groups[1]) != source) {
            expected[hops++] = TOPOLOGY_LINK_BETWEEN_SWITCHES;
        }
        expected[hops++] = TOPOLOGY_LINK_GLOBAL;
        if (gateway(fly, groups[1], groups[0]) != target) {
            expected[hops++] = TOPOLOGY_LINK_BETWEEN_SWITCHES;
        }
    } else if (source != target) {
        expected[hops++] = TOPOLOGY_LINK_BETWEEN_SWITCHES;
    }
    expected[hops++] = TOPOLOGY_LINK_OF_NODE;
    assert_int_equal(walk(&fly->topology, from, to, 3, hops, found), hops);
    assert_memory_equal(found, expected, hops);
}

static void check_dragonfly(const char *description)
{
    struct fly fly;
    open_named(&fly.topology, description);
    assert_int_equal(
        sscanf(description, "dragonfly:%u,%u,%u", &fly.nodes_each, &fly.routers, &fly.links), 3);
    for (uint32_t from = 0; from < fly.topology.nodes; from++) {
        for (uint32_t to = 0; to < fly.topology.nodes; to++) {
            if (from != to) {
                check_way(&fly, from, to);
            }
        }
    }
    topology_close(&fly.topology);
}

static void test_every_pair(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(small); i++) {
        struct topology topology;
        open_named(&topology, small[i].description);
        assert_int_equal(topology.nodes, small[i].nodes);
        assert_int_equal(topology.switches, small[i].switches);
        check_links(&topology);
        if (topology.kind == TOPOLOGY_DRAGONFLY) {
            check_dragonfly(small[i].description);
        } else {
            check_shortest(&topology);
        }
        topology_close(&topology);
    }
}

/* -- Choices ------------------------------------------------------------------------------------*/

/* The switch that is highest on the way. */
static uint32_t top_of(const struct topology *tree, uint32_t from, uint32_t to, uint32_t entropy)
{
    uint32_t vertex = from, top = 0;
    while (vertex != to) {
        vertex = topology_port_of(tree, vertex, topology_route(tree, vertex, to, entropy))->peer;
        top = vertex > top ? vertex : top;
    }
    return top;
}

/* In a tree of radix 8 and three levels each two nodes of different pods have 16 ways. */
static void test_ways_of_a_tree(void **state)
{
    (void)state;
    enum {
        WAYS = 16,
        TRIES = 16000
    };
    struct topology tree;
    uint32_t by_entropy[WAYS] = {0}, by_destination[WAYS] = {0};
    open_named(&tree, "fat-tree:8");
    const uint32_t first = topology_vertices(&tree) - WAYS;
    for (uint32_t entropy = 1; entropy <= TRIES; entropy++) {
        by_entropy[top_of(&tree, 3, 100, entropy) - first]++;
    }
    for (uint32_t to = 16; to < 128; to++) {
        by_destination[top_of(&tree, 3, to, 0) - first]++;
    }
    for (uint32_t i = 0; i < WAYS; i++) {
        assert_in_range(by_entropy[i], 800, 1200);
        assert_int_equal(by_destination[i], 7);
    }
    topology_close(&tree);
}

/* Half way round both ways are as short: entropy takes either. Else there is but one. */
static void test_ways_of_a_torus(void **state)
{
    (void)state;
    struct topology torus;
    uint32_t up = 0;
    open_named(&torus, "torus:8x8");
    for (uint32_t entropy = 1; entropy <= 1000; entropy++) {
        up += topology_route(&torus, 64, 4, entropy) == 1;
        assert_int_equal(topology_route(&torus, 64, 3, entropy), 1);
        assert_int_equal(topology_route(&torus, 64, 5, entropy), 2);
        assert_int_equal(topology_route(&torus, 64, 5 + 8 * 3, entropy), 2);
        assert_int_equal(topology_route(&torus, 64 + 5, 5 + 8 * 3, entropy), 3);
    }
    assert_in_range(up, 400, 600);
    topology_close(&torus);
}

/* A detour begins at each of the first router's global links, as often at one as at another, and
 * arrives at the fifth router at the latest; within a group there is none. */
static void test_detours(void **state)
{
    (void)state;
    enum {
        PORTS = 3,
        TRIES = 90
    };
    struct topology fly;
    uint32_t taken[PORTS] = {0}, others = 0, fives = 0;
    uint8_t classes[5];
    open_named(&fly, "dragonfly:2,4,3");
    for (uint32_t pair = 0; pair < fly.nodes * fly.nodes; pair++) {
        const uint32_t from = pair / fly.nodes, to = pair % fly.nodes;
        const uint32_t first = topology_port_of(&fly, from, 0)->peer;
        const uint32_t route = topology_route(&fly, first, to, 0);
        const bool inside = from / 8 == to / 8;
        for (uint32_t tries = 0; tries < TRIES; tries++) {
            const uint32_t port = topology_detour(&fly, first, to, pair * TRIES + tries);
            const struct topology_port *way = topology_port_of(&fly, first, port);
            if (inside) {
                assert_int_equal(port, route);
                continue;
            }
            assert_int_equal(way->link_class, TOPOLOGY_LINK_GLOBAL);
            taken[port - 5]++;
            others++;
            fives += walk(&fly, way->peer, to, 0, 4, classes) == 4;
        }
    }
    assert_true(fives > others / 4 && fives < others);
    for (uint32_t i = 0; i < PORTS; i++) {
        assert_in_range(taken[i], others / 3 - others / 100, others / 3 + others / 100);
    }
    topology_close(&fly);
}

/* -- Large ones ---------------------------------------------------------------------------------*/

static const struct {
    const char *description;
    uint32_t nodes, bytes_a_node;
} large[] = {
    {"star:262144", 262144, 20},        {"fat-tree:64:3", 65536, 56},
    {"fat-tree:80:3", 128000, 56},      {"fat-tree:4:17", 262144, 346},
    {"torus:64x64x64", 262144, 80},     {"torus:32x32x32:8", 262144, 31},
    {"torus:8x8x8x8x8x8", 262144, 128}, {"torus:262144", 262144, 48},
    {"dragonfly:8,16,8", 16512, 48},    {"dragonfly:12,32,21", 258432, 59},
    {"all-to-all:1024", 1024, 8188},
};

/* They open, take as much memory as the page says, and some of their routes arrive. */
static void test_large_ones(void **state)
{
    enum {
        WALKS = 1000
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        struct topology topology;
        struct prng prng;
        prng_init(&prng, i);
        open_named(&topology, large[i].description);
        assert_int_equal(topology.nodes, large[i].nodes);
        assert_int_equal(topology_bytes(&topology) / topology.nodes, large[i].bytes_a_node);
        uint8_t *const classes = malloc(topology_vertices(&topology));
        for (uint32_t tries = 0; tries < WALKS; tries++) {
            const uint32_t from = (uint32_t)prng_below(&prng, topology.nodes);
            const uint32_t to = (uint32_t)prng_below(&prng, topology.nodes);
            (void)walk(&topology, from, to, tries, topology_vertices(&topology), classes);
        }
        free(classes);
        topology_close(&topology);
    }
}

/* -- Descriptions -------------------------------------------------------------------------------*/

static void test_links_of_a_description(void **state)
{
    (void)state;
    struct topology topology;
    open_named(&topology, "dragonfly:2,2,2@100,20/200/12.5,1500.25");
    topology_default_link(&topology, 8000, 7);
    assert_int_equal(topology.links[0].byte_fs, 80000);
    assert_int_equal(topology.links[0].latency_ps, 20000);
    assert_int_equal(topology.links[1].byte_fs, 40000);
    assert_int_equal(topology.links[1].latency_ps, 7);
    assert_int_equal(topology.links[2].byte_fs, 640000);
    assert_int_equal(topology.links[2].latency_ps, 1500250);
    topology_close(&topology);
    open_named(&topology, "torus:4x4@400");
    assert_int_equal(topology.links[1].byte_fs, 20000);
    assert_int_equal(topology.links[1].latency_ps, 500000);
    topology_close(&topology);
    open_named(&topology, "star:4");
    topology_default_link(&topology, 8000, 7);
    assert_int_equal(topology.links[0].byte_fs, 8000);
    topology_close(&topology);
}

static const char *const refused[] = {
    "",
    "star",
    "star:",
    "star:1",
    "star:262145",
    "star:4:",
    "star:4:2",
    "star:4,4",
    "star:4 ",
    "star:-4",
    "star:99999999999999999999",
    "Star:4",
    "mesh:4x4",
    "all-to-all:1",
    "all-to-all:1025",
    "fat-tree:2",
    "fat-tree:5",
    "fat-tree:4:0",
    "fat-tree:4:18",
    "fat-tree:262144:262144",
    "torus:1x4",
    "torus:4x",
    "torus:x4",
    "torus:0x4",
    "torus:64x64x65",
    "torus:262144x262144x262144x262144x262144",
    "torus:2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2",
    "torus:4x4:0",
    "torus:4x4:16385",
    "dragonfly:2,2",
    "dragonfly:2,2,2,2",
    "dragonfly:2,2,0",
    "dragonfly:16,32,16",
    "dragonfly:1,512,1",
    "dragonfly:1,1,262144",
    "dragonfly:1,1,65535",
    "dragonfly:262144,262144,262144",
    "star:4@",
    "star:4@0",
    "star:4@0.009",
    "star:4@100,",
    "star:4@100,5ns",
    "star:4@100,5,6",
    "star:4@100/100",
    "star:4@100000.001",
    "torus:4x4@100/",
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct topology topology;
        char error[TOPOLOGY_ERROR_BYTES] = "";
        if (topology_open(&topology, refused[i], error, sizeof(error))) {
            fail_msg("%s was opened", refused[i]);
        }
        assert_in_range(strlen(error), 10, sizeof(error) - 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair),
        cmocka_unit_test(test_ways_of_a_tree),
        cmocka_unit_test(test_ways_of_a_torus),
        cmocka_unit_test(test_large_ones),
        cmocka_unit_test(test_detours),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_links_of_a_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
