/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lant/distances.h"

#include <math.h>

#include "base/check.h"

#define HOPS_MAX 1000000u

static uint32_t word(struct prng *prng)
{
    return (uint32_t)(prng_next(prng) >> 32);
}

/* -- Tori ---------------------------------------------------------------------------------------*/

struct lant_network lant_torus_of(uint32_t a, uint32_t b, uint32_t c)
{
    return (struct lant_network){
        .kind = LANT_TORUS, .nodes = a * b * c, .torus = {.dimensions = 3, .size = {a, b, c}}};
}

static uint32_t torus_distance(const struct lant_torus *torus, uint32_t from, uint32_t to,
                               struct prng *prng)
{
    for (uint32_t at = from, links = 0;; links++) {
        const struct lant_route route = lant_route_torus(torus, at, to, word(prng));
        CHECK(route.exists && links < HOPS_MAX);
        if (route.is_here) {
            return links;
        }
        const uint32_t dimension = route.port / 2;
        const bool up = route.port % 2 == 0;
        uint32_t stride = 1;
        for (uint32_t d = 0; d < dimension; d++) {
            stride *= torus->size[d];
        }
        const uint32_t size = torus->size[dimension], place = at / stride % size;
        const uint32_t next =
            up ? (place + 1 == size ? 0 : place + 1) : (place == 0 ? size - 1 : place - 1);
        at = at - place * stride + next * stride;
    }
}

/* In a torus of twice the size, of which the nodes are the corner, no way leads around an end. */
static struct lant_torus doubled(const struct lant_torus *torus)
{
    struct lant_torus twice = *torus;
    for (uint32_t d = 0; d < torus->dimensions; d++) {
        twice.size[d] *= 2;
    }
    return twice;
}

static uint32_t in_doubled(const struct lant_torus *torus, uint32_t node)
{
    uint32_t number = 0, stride = 1;
    for (uint32_t d = 0; d < torus->dimensions; d++) {
        number += node % torus->size[d] * stride;
        node /= torus->size[d];
        stride *= 2 * torus->size[d];
    }
    return number;
}

/* The dimensions of two in which the nodes have the same place. */
static uint32_t same_twos(const struct lant_torus *torus, uint32_t from, uint32_t to)
{
    uint32_t same = 0;
    for (uint32_t d = 0; d < torus->dimensions; d++) {
        const uint32_t size = torus->size[d];
        same += size == 2 && from % size == to % size;
        from /= size;
        to /= size;
    }
    return same;
}

static uint32_t mesh_distance(const struct lant_torus *torus, uint32_t from, uint32_t to,
                              struct prng *prng)
{
    const struct lant_torus twice = doubled(torus);
    return torus_distance(&twice, in_doubled(torus, from), in_doubled(torus, to), prng);
}

/* -- Fat trees ----------------------------------------------------------------------------------*/

struct lant_network lant_fat_tree_of(uint32_t nodes, uint32_t radix, uint32_t top)
{
    struct lant_fat_tree tree = {.arity = radix / 2, .levels = 1, .top = top};
    for (uint64_t most = top; most < nodes; most *= tree.arity) {
        tree.levels++;
    }
    return (struct lant_network){.kind = LANT_FAT_TREE, .nodes = nodes, .tree = tree};
}

static uint32_t tree_distance(const struct lant_network *network, uint32_t from, uint32_t to,
                              struct prng *prng)
{
    const struct lant_fat_tree *tree = &network->tree;
    const uint32_t arity = tree->arity;
    uint32_t level = 0, below = 1; /* k^level. */
    uint32_t position = tree->levels == 1 ? 0 : from / arity;
    bool up = true;
    for (uint32_t switches = 1;; switches++) {
        struct lant_route route = lant_route_fat_tree(tree, level, position, to, word(prng));
        CHECK(route.exists && switches < 2 * tree->levels);
        const bool at_top = level + 1 == tree->levels;
        if (network->turns_at_the_top && up && !at_top) {
            route = (struct lant_route){.port = arity + word(prng) % arity};
        }
        if (route.is_here) {
            return switches + network->counts_links;
        }
        up = !at_top && route.port >= arity;
        level -= up ? 0 : 1;
        below /= up ? 1 : arity;
        /* The highest digit may be larger than the others. */
        const uint32_t above = level + 2 == tree->levels ? 0 : position / below / arity;
        position = (above * arity + route.port - (up ? arity : 0)) * below + position % below;
        level += up ? 1 : 0;
        below *= up ? arity : 1;
    }
}

/* -- Dragonflies --------------------------------------------------------------------------------*/

struct lant_network lant_dragonfly_of(uint32_t groups, uint32_t routers, uint32_t hosts,
                                      uint32_t globals)
{
    return (struct lant_network){
        .kind = LANT_DRAGONFLY,
        .nodes = groups * routers * hosts,
        .dragonfly = {.groups = groups, .routers = routers, .hosts = hosts, .globals = globals}};
}

static struct lant_place place_of(const struct lant_dragonfly *dragonfly, uint32_t node)
{
    const uint32_t router = node / dragonfly->hosts;
    return (struct lant_place){.cabinet = (uint16_t)(router / dragonfly->routers),
                               .chassis = (uint16_t)(router % dragonfly->routers),
                               .daughter = (uint16_t)(node % dragonfly->hosts)};
}

static uint32_t dragonfly_distance(const struct lant_dragonfly *dragonfly, uint32_t from,
                                   uint32_t to, struct prng *prng)
{
    const struct lant_place there = place_of(dragonfly, to);
    uint32_t group = place_of(dragonfly, from).cabinet, router = place_of(dragonfly, from).chassis;
    for (uint32_t switches = 1;; switches++) {
        const struct lant_route route =
            lant_route_dragonfly_place(dragonfly, group, router, there, switches - 1, word(prng));
        CHECK(route.exists && switches < HOPS_MAX);
        if (route.is_here) {
            return switches;
        }
        const uint32_t port = route.port - dragonfly->hosts;
        if (port < dragonfly->routers - 1) {
            router = port + (port >= router);
        } else {
            const uint32_t link = router * dragonfly->globals + port - (dragonfly->routers - 1);
            uint32_t peer_link;
            group = lant_dragonfly_peer(dragonfly, group, link, &peer_link);
            router = peer_link / dragonfly->globals;
        }
    }
}

/* -- Means --------------------------------------------------------------------------------------*/

uint32_t lant_distance(const struct lant_network *network, uint32_t from, uint32_t to,
                       struct prng *prng)
{
    switch (network->kind) {
    case LANT_TORUS: {
        const uint32_t links = network->mesh ? mesh_distance(&network->torus, from, to, prng)
                                             : torus_distance(&network->torus, from, to, prng);
        return links + (network->counts_twos ? same_twos(&network->torus, from, to) : 0);
    }
    case LANT_FAT_TREE: return tree_distance(network, from, to, prng);
    case LANT_DRAGONFLY: return dragonfly_distance(&network->dragonfly, from, to, prng);
    }
    UNREACHABLE("a network outside its enum");
}

struct lant_distances lant_all_distances(const struct lant_network *network, struct prng *prng)
{
    uint64_t sum = 0;
    for (uint32_t from = 0; from < network->nodes; from++) {
        for (uint32_t to = 0; to < network->nodes; to++) {
            sum += from == to ? 0 : lant_distance(network, from, to, prng);
        }
    }
    const uint64_t pairs = (uint64_t)network->nodes * (network->nodes - 1);
    return (struct lant_distances){.pairs = pairs, .sum = sum, .mean = (double)sum / (double)pairs};
}

struct lant_distances lant_some_distances(const struct lant_network *network, uint64_t pairs,
                                          struct prng *prng)
{
    uint64_t sum = 0, squares = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        const uint32_t from = (uint32_t)prng_below(prng, network->nodes);
        const uint32_t other = (uint32_t)prng_below(prng, network->nodes - 1);
        const uint64_t distance = lant_distance(network, from, other + (other >= from), prng);
        sum += distance;
        squares += distance * distance;
    }
    const double mean = (double)sum / (double)pairs;
    const double variance = (double)squares / (double)pairs - mean * mean;
    return (struct lant_distances){
        .pairs = pairs, .sum = sum, .mean = mean, .error = sqrt(fmax(variance, 0) / (double)pairs)};
}
