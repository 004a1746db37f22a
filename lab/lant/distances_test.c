/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    LNI-80: distances that routed packets have are those of the networks (Table 3.1).
 * Method  Small networks, all pairs: the sum of distances is held against sums that know nothing of
 *         routing. Random pairs lead to the same mean, as far as their error says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/check.h"
#include "lab/lant/distances.h"

/* All ordered pairs, as a sum. */
static uint64_t routed(const struct lant_network *network)
{
    struct prng prng;
    prng_init(&prng, network->nodes);
    const struct lant_distances all = lant_all_distances(network, &prng);
    assert_int_equal(all.pairs, (uint64_t)network->nodes * (network->nodes - 1));
    assert_true(all.error == 0);
    const struct lant_distances some = lant_some_distances(network, 20000, &prng);
    assert_true(some.pairs == 20000 && fabs(some.mean - all.mean) <= 4 * some.error);
    return (uint64_t)llround(all.mean * (double)all.pairs);
}

/* -- Tori and meshes ----------------------------------------------------------------------------*/

static uint32_t apart(uint32_t a, uint32_t b, uint32_t size, bool mesh)
{
    const uint32_t direct = a > b ? a - b : b - a;
    return mesh || direct < size - direct ? direct : size - direct;
}

static uint64_t expected_torus(const struct lant_network *network)
{
    uint64_t sum = 0;
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t size = network->torus.size[d], others = network->nodes / size;
        for (uint32_t pair = 0; pair < size * size; pair++) {
            sum += (uint64_t)others * others * apart(pair / size, pair % size, size, network->mesh);
        }
    }
    return sum;
}

static void test_tori(void **state)
{
    (void)state;
    static const uint32_t SIZES[][3] = {{1, 1, 2}, {2, 3, 4}, {5, 5, 6}, {8, 1, 3}, {10, 2, 7}};
    for (uint32_t i = 0; i < 2 * COUNT_OF(SIZES); i++) {
        const uint32_t *size = SIZES[i / 2];
        struct lant_network network = lant_torus_of(size[0], size[1], size[2]);
        network.mesh = i % 2 == 1;
        assert_int_equal(network.nodes, size[0] * size[1] * size[2]);
        assert_int_equal(routed(&network), expected_torus(&network));
    }
}

/* -- Fat trees ----------------------------------------------------------------------------------*/

/* Two nodes are below one switch of level l if their numbers divided by k^(l+1) are the same; all
 * are below the top. */
static uint64_t expected_tree(const struct lant_network *network)
{
    uint64_t sum = 0;
    for (uint32_t pair = 0; pair < network->nodes * network->nodes; pair++) {
        uint32_t from = pair / network->nodes / network->tree.arity;
        uint32_t to = pair % network->nodes / network->tree.arity;
        uint32_t level = 0;
        for (; level + 1 < network->tree.levels && (from != to || network->turns_at_the_top);
             level++) {
            from /= network->tree.arity;
            to /= network->tree.arity;
        }
        const bool self = pair / network->nodes == pair % network->nodes;
        sum += self ? 0 : 2 * level + 1 + network->counts_links;
    }
    return sum;
}

static void test_trees(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes, radix, top, levels;
    } TREES[] = {{8, 8, 8, 1},   {9, 8, 8, 2},    {32, 8, 8, 2},  {33, 8, 8, 3},
                 {128, 8, 8, 3}, {16, 8, 4, 2},   {17, 8, 4, 3},  {64, 4, 4, 5},
                 {64, 4, 2, 6},  {50, 10, 10, 2}, {51, 10, 5, 3}, {250, 10, 10, 3}};
    for (uint32_t i = 0; i < 4 * COUNT_OF(TREES); i++) {
        struct lant_network network =
            lant_fat_tree_of(TREES[i / 4].nodes, TREES[i / 4].radix, TREES[i / 4].top);
        assert_int_equal(network.tree.levels, TREES[i / 4].levels);
        network.counts_links = i % 2 == 1;
        network.turns_at_the_top = i / 2 % 2 == 1;
        assert_int_equal(routed(&network), expected_tree(&network));
    }
}

/* -- Dragonflies --------------------------------------------------------------------------------*/

/* One link joins two groups: number k of the one, k groups behind its next one, which is number G -
 * 2 - k of the other. A packet whose router does not have this link has one switch more to
 * cross. */
static uint32_t expected_dragonfly(const struct lant_dragonfly *dragonfly, uint32_t from,
                                   uint32_t to)
{
    const uint32_t in_group = dragonfly->routers * dragonfly->hosts, groups = dragonfly->groups;
    const uint32_t from_group = from / in_group, to_group = to / in_group;
    const uint32_t from_router = from % in_group / dragonfly->hosts;
    const uint32_t to_router = to % in_group / dragonfly->hosts;
    if (from_group == to_group) {
        return from_router == to_router ? 1 : 2;
    }
    const uint32_t k = (to_group + groups - from_group - 1) % groups;
    const bool first_has_it = from_router == k / dragonfly->globals;
    const bool last_has_it = to_router == (groups - 2 - k) / dragonfly->globals;
    return (first_has_it ? 1u : 2u) + (last_has_it ? 1u : 2u);
}

static void test_dragonflies(void **state)
{
    (void)state;
    static const uint32_t SHAPES[][4] = {{9, 8, 4, 1}, {5, 4, 2, 1}, {3, 2, 1, 1},
                                         {8, 4, 2, 2}, {1, 5, 3, 1}, {300, 2, 1, 150}};
    for (uint32_t i = 0; i < COUNT_OF(SHAPES); i++) {
        const uint32_t *shape = SHAPES[i];
        const struct lant_network network =
            lant_dragonfly_of(shape[0], shape[1], shape[2], shape[3]);
        uint64_t sum = 0;
        struct prng prng;
        prng_init(&prng, i);
        assert_int_equal(network.nodes, shape[0] * shape[1] * shape[2]);
        for (uint32_t pair = 0; pair < network.nodes * network.nodes; pair++) {
            const uint32_t from = pair / network.nodes, to = pair % network.nodes;
            const uint32_t distance = lant_distance(&network, from, to, &prng);
            assert_int_equal(distance, expected_dragonfly(&network.dragonfly, from, to));
            sum += from == to ? 0 : distance;
        }
        assert_int_equal(routed(&network), sum);
    }
}

/* LNI-77: detours take one switch more at most, and on average. */
static void test_detours(void **state)
{
    (void)state;
    struct lant_network network = lant_dragonfly_of(9, 8, 2, 1);
    struct prng prng;
    prng_init(&prng, 1);
    const double minimal = lant_all_distances(&network, &prng).mean;
    network.dragonfly.valiant = true;
    assert_true(lant_all_distances(&network, &prng).mean > minimal + 0.5);
    for (uint32_t to = 16; to < network.nodes; to++) {
        assert_in_range(lant_distance(&network, 3, to, &prng), 2, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tori),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_dragonflies),
        cmocka_unit_test(test_detours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
