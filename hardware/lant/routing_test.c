/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every node is reached from every other by the fewest hops there are, without a loop;
 *         equal ways are chosen equally often.
 * Method  Packets walk from port to port, by each network's definition, for all pairs of nodes and
 *         several random words. Their hops are held against the known formula, in the dragonfly
 *         against a search through all links. Chi-square over the choices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/lant/lfsr.h"
#include "hardware/lant/routing.h"

/* -- The prototype ------------------------------------------------------------------------------*/

/* LNI-74, LNI-04. */
static void test_places(void **state)
{
    (void)state;
    const uint32_t there = lant_global_node(UINT64_C(0x0520140011110000));
    assert_int_equal(there, 0x14805);
    const struct lant_places one = lant_places_prototype(0x14403);
    const struct lant_places two = lant_places_prototype(0x14805);
    struct lant_route route = lant_route_places(&one, there, 0x12345678);
    assert_true(route.exists && !route.is_here && route.port == 0 && route.choices == 1);
    route = lant_route_places(&two, there, 0);
    assert_true(route.exists && route.is_here && route.port == 4);
    for (uint32_t cabinet = 0; cabinet < 256; cabinet++) {
        const uint32_t node = lant_node((struct lant_place){(uint16_t)cabinet, 2, 5});
        route = lant_route_places(&one, node, cabinet * 0x01010101);
        assert_int_equal(route.port, cabinet == 5 ? 0 : 3);
        assert_int_equal(route.choices, 1);
    }
    assert_false(lant_route_places(&one, LANT_NODES_MAX, 0).exists);
}

/* Places that the machine does not have: each of the three numbers at its limit and beyond. */
static void test_places_missing(void **state)
{
    (void)state;
    struct lant_places places = lant_places_prototype(lant_node((struct lant_place){1, 1, 1}));
    places.cabinets = 3;
    places.chassis = 4;
    places.daughters = 8;
    for (uint32_t cabinet = 0; cabinet < 5; cabinet++) {
        for (uint32_t chassis = 0; chassis < 6; chassis++) {
            for (uint32_t daughter = 0; daughter < 10; daughter++) {
                const struct lant_place place = {(uint16_t)cabinet, (uint16_t)chassis,
                                                 (uint16_t)daughter};
                assert_int_equal(lant_route_places(&places, lant_node(place), 0).exists,
                                 cabinet < 3 && chassis < 4 && daughter < 8);
            }
        }
    }
}

/* The ring of daughters: all pairs, the shorter way around. */
static void test_places_ring(void **state)
{
    (void)state;
    for (uint32_t size = 2; size <= 9; size++) {
        for (uint32_t pair = 0; pair < size * size; pair++) {
            const uint32_t from = pair / size, to = pair % size;
            const uint32_t up = (to + size - from) % size;
            uint32_t at = from, hops = 0;
            for (;; hops++) {
                struct lant_places places = lant_places_prototype(at);
                places.daughters = size;
                const struct lant_route route = lant_route_places(&places, to, pair << 27);
                if (route.is_here) {
                    break;
                }
                assert_true(route.port == 1 || route.port == 2);
                at = (at + (route.port == 1 ? 1 : size - 1)) % size;
            }
            assert_int_equal(at, to);
            assert_int_equal(hops, up < size - up ? up : size - up);
        }
    }
}

/* -- Dragonfly ----------------------------------------------------------------------------------*/

struct walk {
    uint32_t group, router, age;
};

/* Where a port leads; the definition in prose, link by link. */
static void cross(const struct lant_dragonfly *dragonfly, struct walk *at, uint32_t port)
{
    const uint32_t locals = dragonfly->hosts + dragonfly->routers - 1;
    assert_in_range(port, dragonfly->hosts, locals + dragonfly->globals - 1);
    at->age++;
    if (port < locals) {
        const uint32_t index = port - dragonfly->hosts;
        at->router = index < at->router ? index : index + 1;
        return;
    }
    const uint32_t link = at->router * dragonfly->globals + port - locals;
    assert_true(link < lant_dragonfly_links(dragonfly));
    uint32_t peer_link, back;
    const uint32_t group = lant_dragonfly_peer(dragonfly, at->group, link, &peer_link);
    assert_int_not_equal(group, at->group);
    assert_int_equal(lant_dragonfly_peer(dragonfly, group, peer_link, &back), at->group);
    assert_int_equal(back, link);
    at->group = group;
    at->router = peer_link / dragonfly->globals;
}

/* Routers on the way, both ends' included. */
static uint32_t walk_dragonfly(const struct lant_dragonfly *dragonfly, struct walk at, uint32_t to,
                               struct prng *prng)
{
    for (uint32_t routers = 1; routers <= 8; routers++) {
        const struct lant_route route = lant_route_dragonfly(dragonfly, at.group, at.router, to,
                                                             at.age, (uint32_t)prng_next(prng));
        assert_true(route.exists);
        if (route.is_here) {
            const struct lant_place place = lant_place(to);
            assert_true(place.cabinet == at.group && place.chassis == at.router);
            assert_int_equal(place.daughter, route.port);
            return routers;
        }
        cross(dragonfly, &at, route.port);
    }
    fail();
    return 0;
}

/* Looks at all links to the target's group. This router's own are preferred, whatever router they
 * lead to. 0: it depends on chance. */
static uint32_t fewest_routers(const struct lant_dragonfly *dragonfly, struct walk from,
                               struct lant_place to)
{
    if (from.group == to.cabinet) {
        return from.router == to.chassis ? 1 : 2;
    }
    bool own = false, own_far = false, far_there = false, any_far = false, far_all = true;
    for (uint32_t link = 0; link < lant_dragonfly_links(dragonfly); link++) {
        uint32_t peer_link;
        if (lant_dragonfly_peer(dragonfly, from.group, link, &peer_link) == to.cabinet) {
            const bool mine = link / dragonfly->globals == from.router;
            const bool there = peer_link / dragonfly->globals == to.chassis;
            own |= mine;
            own_far |= mine && !there;
            far_there |= mine && there;
            any_far |= !there;
            far_all &= !there;
        }
    }
    if (own) {
        return own_far && !far_there ? 3 : far_there && !own_far ? 2 : 0;
    }
    return far_all ? 4 : any_far ? 0 : 3;
}

static const struct lant_dragonfly DRAGONFLIES[] = {
    {.groups = 9, .routers = 4, .hosts = 2, .globals = 2}, /* One link a pair of groups. */
    {.groups = 5, .routers = 4, .hosts = 3, .globals = 2}, /* Two. */
    {.groups = 4, .routers = 3, .hosts = 1, .globals = 3}, /* Three, of one router. */
    {.groups = 6, .routers = 4, .hosts = 2, .globals = 2}, /* Links left over. */
    {.groups = 2, .routers = 2, .hosts = 2, .globals = 1}, /* Both links of a group to the other. */
    {.groups = 1, .routers = 5, .hosts = 2, .globals = 0}, /* No other group. */
    {.groups = 33, .routers = 16, .hosts = 1, .globals = 2}, /* All chassis numbers. */
    {.groups = 3, .routers = 1, .hosts = 4, .globals = 2},   /* A router a group, a link a pair. */
};

/* LNI-75, LNI-77: all pairs; minimal ways are minimal, Valiant's have a router more at most. */
static void test_dragonfly(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    for (uint32_t i = 0; i < 2 * COUNT_OF(DRAGONFLIES); i++) {
        struct lant_dragonfly dragonfly = DRAGONFLIES[i / 2];
        const uint32_t routers = dragonfly.groups * dragonfly.routers;
        uint32_t most = 0;
        dragonfly.valiant = i % 2 == 1;
        for (uint32_t pair = 0; pair < routers * routers; pair++) {
            const uint32_t from = pair / routers, to = pair % routers;
            const struct walk at = {from / dragonfly.routers, from % dragonfly.routers, 0};
            const struct lant_place place = {(uint16_t)(to / dragonfly.routers),
                                             (uint16_t)(to % dragonfly.routers),
                                             (uint16_t)(pair % dragonfly.hosts)};
            const uint32_t fewest = fewest_routers(&dragonfly, at, place);
            for (uint32_t tries = 0; tries < 4; tries++) {
                const uint32_t made = walk_dragonfly(&dragonfly, at, lant_node(place), &prng);
                assert_in_range(made, 1, dragonfly.valiant ? 5 : 4);
                assert_true(dragonfly.valiant || fewest == 0 || made == fewest);
                assert_true(at.group != place.cabinet || made == fewest);
                most = made > most ? made : most;
            }
        }
        assert_true(i > 1 || most == (dragonfly.valiant ? 5 : 4));
    }
}

static void test_dragonfly_missing(void **state)
{
    (void)state;
    const struct lant_dragonfly *dragonfly = &DRAGONFLIES[0];
    static const struct lant_place MISSING[] = {{9, 0, 0}, {0, 4, 0}, {0, 0, 2}, {3, 1, 1023}};
    for (uint32_t i = 0; i < COUNT_OF(MISSING); i++) {
        assert_false(
            lant_route_dragonfly(dragonfly, 0, 0, lant_node(MISSING[i]), 0, i << 30).exists);
        assert_false(lant_route_dragonfly_place(dragonfly, 0, 0, MISSING[i], 0, i << 30).exists);
    }
}

/* More groups than a node's number has room for: group g's link g' - g - 1 leads to group g'. */
static void test_dragonfly_places(void **state)
{
    (void)state;
    const struct lant_dragonfly large = {.groups = 2048, .routers = 8, .hosts = 16, .globals = 256};
    const struct lant_place there = {2000, 3, 15};
    const struct lant_route local = lant_route_dragonfly_place(&large, 700, 0, there, 0, 0);
    const struct lant_route global = lant_route_dragonfly_place(&large, 700, 5, there, 1, 0);
    assert_true(local.exists && !local.is_here && global.exists && !global.is_here);
    assert_int_equal(local.port, 16 + 5 - 1); /* To the owner of link 1299. */
    assert_int_equal(global.port, 16 + 7 + 1299 % 256);
    const struct lant_route at_last = lant_route_dragonfly_place(&large, 2000, 3, there, 3, 0);
    const struct lant_place beyond = {2048, 0, 0};
    assert_false(lant_route_dragonfly_place(&large, 0, 0, beyond, 0, 0).exists);
    assert_true(at_last.is_here);
    assert_int_equal(at_last.port, 15);
}

/* -- Fat tree -----------------------------------------------------------------------------------*/

static uint32_t power(uint32_t base, uint32_t exponent)
{
    return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

/* The highest digit, that of the top, may be as large as it likes. */
static uint32_t with_digit(const struct lant_fat_tree *tree, uint32_t position, uint32_t index,
                           uint32_t value)
{
    const uint32_t below = power(tree->arity, index);
    const uint32_t above = index + 2 == tree->levels ? 0 : position / below / tree->arity;
    return (above * tree->arity + value) * below + position % below;
}

/* The level of the first switch that has both below. */
static uint32_t level_of_both(const struct lant_fat_tree *tree, uint32_t from, uint32_t to)
{
    uint32_t level = 0;
    while (level + 1 < tree->levels &&
           from / power(tree->arity, level + 1) != to / power(tree->arity, level + 1)) {
        level++;
    }
    return level;
}

/* LNI-75: 2L - 1 switches if the L-th level is the first from which both are below. */
static void walk_tree(const struct lant_fat_tree *tree, uint32_t from, uint32_t to,
                      struct prng *prng)
{
    uint32_t level = 0, switches = 1;
    uint32_t position = tree->levels == 1 ? 0 : from / tree->arity;
    for (;; switches++) {
        const struct lant_route route =
            lant_route_fat_tree(tree, level, position, to, (uint32_t)prng_next(prng));
        assert_true(route.exists && switches < 2 * tree->levels);
        if (route.is_here) {
            assert_int_equal(level, 0);
            assert_int_equal(position * tree->arity + route.port, to);
            break;
        }
        if (level + 1 == tree->levels || route.port < tree->arity) {
            level--;
            position = with_digit(tree, position, level, route.port);
        } else {
            assert_int_equal(route.choices, tree->arity);
            position = with_digit(tree, position, level, route.port - tree->arity);
            level++;
        }
    }
    assert_int_equal(switches, 2 * level_of_both(tree, from, to) + 1);
    assert_int_equal(lant_hops_fat_tree(tree, from, to), from == to ? 0 : switches); /* LNI-W-1 */
}

static void test_fat_tree(void **state)
{
    (void)state;
    static const struct lant_fat_tree TREES[] = {{2, 1, 0}, {2, 4, 0},  {3, 3, 0}, {4, 3, 0},
                                                 {7, 2, 0}, {16, 1, 0}, {2, 1, 5}, {2, 4, 4},
                                                 {3, 3, 6}, {4, 3, 7},  {7, 2, 2}, {5, 2, 10}};
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t i = 0; i < COUNT_OF(TREES); i++) {
        const uint32_t top = TREES[i].top == 0 ? TREES[i].arity : TREES[i].top;
        const uint32_t nodes = power(TREES[i].arity, TREES[i].levels - 1) * top;
        for (uint32_t pair = 0; pair < nodes * nodes; pair++) {
            walk_tree(&TREES[i], pair / nodes, pair % nodes, &prng);
        }
        assert_false(lant_route_fat_tree(&TREES[i], 0, 0, nodes, 0).exists);
        assert_int_equal(lant_hops_fat_tree(&TREES[i], 0, nodes), LANT_NO_HOPS);
        assert_int_equal(lant_hops_fat_tree(&TREES[i], nodes, 0), LANT_NO_HOPS);
    }
    const struct lant_fat_tree largest = {2, 22, 0};
    for (uint32_t i = 0; i < 2000; i++) {
        walk_tree(&largest, (uint32_t)prng_below(&prng, LANT_NODES_MAX),
                  (uint32_t)prng_below(&prng, LANT_NODES_MAX), &prng);
    }
}

/* -- Torus --------------------------------------------------------------------------------------*/

static void walk_torus(const struct lant_torus *torus, uint32_t from, uint32_t to,
                       struct prng *prng)
{
    uint32_t fewest = 0, hops = 0, dimension = 0;
    for (uint32_t d = 0, a = from, b = to; d < torus->dimensions; d++) {
        const uint32_t size = torus->size[d], up = (b % size + size - a % size) % size;
        fewest += up < size - up ? up : size - up;
        a /= size;
        b /= size;
    }
    for (uint32_t at = from;; hops++) {
        const struct lant_route route = lant_route_torus(torus, at, to, (uint32_t)prng_next(prng));
        assert_true(route.exists && hops <= fewest);
        if (route.is_here) {
            assert_int_equal(at, to);
            assert_int_equal(route.port, 2 * torus->dimensions);
            break;
        }
        uint32_t below = 1;
        for (uint32_t d = 0; d < route.port / 2; d++) {
            below *= torus->size[d];
        }
        const uint32_t size = torus->size[route.port / 2], coordinate = at / below % size;
        const uint32_t next = (coordinate + (route.port % 2 == 0 ? 1 : size - 1)) % size;
        at = at - coordinate * below + next * below;
        assert_true(route.port / 2 >= dimension); /* Their order. */
        dimension = route.port / 2;
    }
    assert_int_equal(hops, fewest);
    assert_int_equal(lant_hops_torus(torus, from, to), hops); /* LNI-W-1 */
}

static void test_torus(void **state)
{
    (void)state;
    static const struct lant_torus TORI[] = {{1, {7}},       {2, {4, 5}},       {3, {4, 2, 3}},
                                             {3, {1, 6, 1}}, {4, {2, 2, 2, 3}}, {0, {0}}};
    struct prng prng;
    prng_init(&prng, 5);
    for (uint32_t i = 0; i < COUNT_OF(TORI); i++) {
        uint32_t nodes = 1;
        for (uint32_t d = 0; d < TORI[i].dimensions; d++) {
            nodes *= TORI[i].size[d];
        }
        for (uint32_t pair = 0; pair < nodes * nodes; pair++) {
            walk_torus(&TORI[i], pair / nodes, pair % nodes, &prng);
        }
        assert_false(lant_route_torus(&TORI[i], 0, nodes, 0).exists);
        assert_int_equal(lant_hops_torus(&TORI[i], 0, nodes), LANT_NO_HOPS);
        assert_int_equal(lant_hops_torus(&TORI[i], nodes, 0), LANT_NO_HOPS);
    }
}

/* -- Chance -------------------------------------------------------------------------------------*/

/* Chi-square of `count` bins is below what one in a thousand exceeds. */
static void assert_even(const uint32_t *bins, uint32_t count, uint32_t tries)
{
    static const double LIMITS[] = {0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32};
    const double mean = (double)tries / count;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += ((double)bins[i] - mean) * ((double)bins[i] - mean) / mean;
    }
    assert_in_range(count, 2, COUNT_OF(LIMITS));
    assert_true(sum < LIMITS[count - 1]);
}

enum {
    TRIES = 80000,
};

/* LNI-76: over the candidate ports, with the words of the register; never another port. */
static void test_chance_tree_and_torus(void **state)
{
    (void)state;
    const struct lant_fat_tree tree = {8, 3, 0};
    const struct lant_torus torus = {2, {6, 4}};
    struct lant_places places = lant_places_prototype(0);
    uint32_t up[8] = {0}, ways[2] = {0}, links[3] = {0}, around[2] = {0}, lfsr = 99;
    places.daughters = 8;
    places.uplinks = 1 << 0 | 1 << 3 | 1 << 5;
    for (uint32_t i = 0; i < TRIES; i++) {
        const uint32_t random = lant_lfsr_word(&lfsr);
        const struct lant_route in_tree = lant_route_fat_tree(&tree, 1, 0, 511, random);
        const struct lant_route in_torus = lant_route_torus(&torus, 0, 3, random);
        const struct lant_route in_places = lant_route_places(&places, 1 << 14, random);
        const struct lant_route in_ring = lant_route_places(&places, 4, random);
        assert_int_equal(in_tree.choices, 8);
        assert_in_range(in_ring.port, 1, 2);
        around[in_ring.port - 1]++;
        assert_int_equal(in_torus.choices, 2);
        assert_int_equal(in_places.choices, 3);
        assert_in_range(in_tree.port, 8, 15);
        assert_in_range(in_torus.port, 0, 1);
        up[in_tree.port - 8]++;
        ways[in_torus.port]++;
        assert_true(places.uplinks >> in_places.port & 1);
        links[in_places.port == 0 ? 0 : in_places.port == 3 ? 1 : 2]++;
        /* A route with one way has it always. */
        assert_int_equal(lant_route_fat_tree(&tree, 1, 9, 77, random).port, 1);
        assert_int_equal(lant_route_torus(&torus, 0, 2, random).port, 0);
        assert_int_equal(lant_route_torus(&torus, 0, 6, random).port, 2);
    }
    assert_even(up, 8, TRIES);
    assert_even(ways, 2, TRIES);
    assert_even(around, 2, TRIES);
    assert_even(links, 3, TRIES);
}

/* Two links lead to each other group; routers that own none choose among the owners. A router that
 * owns several chooses among them. */
static void test_chance_dragonfly(void **state)
{
    (void)state;
    struct lant_dragonfly dragonfly = DRAGONFLIES[1]; /* Links 0, 4 lead to group 1. */
    const struct lant_dragonfly pair = {.groups = 2, .routers = 1, .hosts = 1, .globals = 4};
    const uint32_t to = lant_node((struct lant_place){1, 0, 0});
    uint32_t owners[2] = {0}, own[4] = {0}, detours[2] = {0}, lfsr = 5;
    for (uint32_t i = 0; i < TRIES; i++) {
        const uint32_t random = lant_lfsr_word(&lfsr);
        const struct lant_route local = lant_route_dragonfly(&dragonfly, 0, 1, to, 0, random);
        assert_int_equal(local.choices, 2);
        assert_true(local.port == 3 || local.port == 4); /* To router 0, and 2. */
        owners[local.port - 3]++;
        const struct lant_route mine = lant_route_dragonfly(&dragonfly, 0, 2, to, 0, random);
        assert_int_equal(mine.choices, 1);
        assert_int_equal(mine.port, 3 + 3);
        const struct lant_route any = lant_route_dragonfly(&pair, 0, 0, to, 0, random);
        assert_int_equal(any.choices, 4);
        assert_in_range(any.port, 1, 4);
        own[any.port - 1]++;
        dragonfly.valiant = true;
        const struct lant_route detour = lant_route_dragonfly(&dragonfly, 0, 1, to, 0, random);
        assert_int_equal(detour.choices, 2);
        assert_in_range(detour.port, 6, 7);
        detours[detour.port - 6]++;
        dragonfly.valiant = false;
    }
    assert_even(owners, 2, TRIES);
    assert_even(detours, 2, TRIES);
    assert_even(own, 4, TRIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_places_missing),
        cmocka_unit_test(test_places_ring),
        cmocka_unit_test(test_dragonfly),
        cmocka_unit_test(test_dragonfly_missing),
        cmocka_unit_test(test_dragonfly_places),
        cmocka_unit_test(test_fat_tree),
        cmocka_unit_test(test_torus),
        cmocka_unit_test(test_chance_tree_and_torus),
        cmocka_unit_test(test_chance_dragonfly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
