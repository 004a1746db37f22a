/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Routes of named topologies: a few comparisons of digits, and no table that grows with the
 * network. A network asks once a hop, so nothing here divides.
 */
#include "sim/topology.h"
#include "sim/topology_internal.h"

static uint32_t digit_of(const struct topology_digit *digit, uint32_t label)
{
    return label >> digit->shift & digit->mask;
}

/* The difference of two labels, without the port at the last switch. */
static uint32_t difference_of(const struct topology *topology, uint32_t here, uint32_t there)
{
    return (here ^ there) & topology->above[0];
}

static uint32_t port_of_node(const struct topology *topology, uint32_t there)
{
    return there & topology->digits[0].mask;
}

/* Dimension by dimension, each the shorter way round; if both are as short, entropy chooses. */
static uint32_t torus_route(const struct topology *topology, uint32_t here, uint32_t there,
                            uint32_t entropy)
{
    const uint32_t difference = difference_of(topology, here, there);
    if (difference == 0) {
        return port_of_node(topology, there);
    }
    const uint32_t index = topology->digit_of_bit[__builtin_ctz(difference)];
    const struct topology_digit *digit = &topology->digits[index];
    const uint32_t from = digit_of(digit, here), to = digit_of(digit, there);
    const uint32_t up = to - from + (to < from ? digit->size : 0);
    const uint32_t down = digit->size - up;
    const bool goes_up = up < down || (up == down && topology_choose(entropy, index, 2) == 0);
    return digit->port + (digit->both_ports && !goes_up);
}

/* Down as soon as the destination is below. Until then up: with entropy 0 by the destination's own
 * digits, so that destinations spread over the ways; any other entropy shifts that choice. */
static uint32_t fat_tree_route(const struct topology *topology, uint32_t here, uint32_t there,
                               uint32_t entropy)
{
    const uint32_t level = here >> TOPOLOGY_LEVEL_SHIFT;
    const uint32_t digit = digit_of(&topology->digits[level], there);
    if (((here ^ there) & topology->above[level]) == 0) {
        return digit;
    }
    const uint32_t down = topology->ports_down;
    const uint32_t up = digit + topology_choose(entropy, level, down);
    return down + up - (up >= down ? down : 0);
}

/* Local, global, local; a global link joins each two groups, so there is one way. */
static uint32_t dragonfly_route(const struct topology *topology, uint32_t here, uint32_t there)
{
    if (difference_of(topology, here, there) == 0) {
        return port_of_node(topology, there);
    }
    const struct topology_digit *const group = &topology->digits[2];
    const uint32_t router = digit_of(&topology->digits[1], here);
    const uint32_t from = digit_of(group, here), to = digit_of(group, there);
    const uint32_t nodes = topology->digits[0].size;
    uint32_t next = digit_of(&topology->digits[1], there);
    if (from != to) {
        const uint32_t distance = from - to + (from < to ? group->size : 0);
        const struct topology_gateway gateway = topology->gateways[distance - 1];
        next = gateway.router;
        if (next == router) {
            return nodes + topology->local_ports + gateway.port;
        }
    }
    return nodes + next - (next > router);
}

/* Any global link, if the destination is in another group. */
static uint32_t dragonfly_detour(const struct topology *topology, uint32_t vertex,
                                 uint32_t destination, uint32_t entropy)
{
    const uint32_t here = topology->labels[vertex], there = topology->labels[destination];
    const struct topology_digit *const group = &topology->digits[2];
    if (digit_of(group, here) == digit_of(group, there)) {
        return dragonfly_route(topology, here, there);
    }
    const uint32_t before = topology->digits[0].size + topology->local_ports;
    return before + topology_choose(entropy, 0, topology_degree(topology, vertex) - before);
}

static uint32_t switch_route(const struct topology *topology, uint32_t vertex, uint32_t destination,
                             uint32_t entropy)
{
    const uint32_t here = topology->labels[vertex], there = topology->labels[destination];
    if (topology->kind == TOPOLOGY_TORUS) {
        return torus_route(topology, here, there, entropy);
    }
    return topology->kind == TOPOLOGY_FAT_TREE ? fat_tree_route(topology, here, there, entropy)
                                               : dragonfly_route(topology, here, there);
}

uint32_t topology_route(const struct topology *topology, uint32_t vertex, uint32_t destination,
                        uint32_t entropy)
{
    switch (topology->kind) {
    case TOPOLOGY_STAR: return vertex < topology->nodes ? 0 : destination;
    case TOPOLOGY_ALL_TO_ALL: return destination - (destination > vertex);
    case TOPOLOGY_FAT_TREE:
    case TOPOLOGY_TORUS:
    case TOPOLOGY_DRAGONFLY:
        return vertex < topology->nodes ? 0 : switch_route(topology, vertex, destination, entropy);
    case TOPOLOGY_TEXT: return topology_table_route(topology, vertex, destination, entropy);
    }
    UNREACHABLE("no kind of topology");
}

uint32_t topology_detour(const struct topology *topology, uint32_t vertex, uint32_t destination,
                         uint32_t entropy)
{
    CHECK(vertex >= topology->nodes);
    return topology->kind == TOPOLOGY_DRAGONFLY
               ? dragonfly_detour(topology, vertex, destination, entropy)
               : topology_route(topology, vertex, destination, entropy);
}
