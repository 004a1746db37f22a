/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The builders of named topologies. Each says first how large the network would be, in 64 bits,
 * and takes memory only if it fits.
 */
#include "sim/topology.h"
#include "sim/topology_internal.h"

/* The ports of a switch begin with those that lead to its nodes, `nodes_each` of them. */
static void join_nodes(struct topology *topology, uint32_t nodes_each)
{
    uint32_t switch_vertex = topology->nodes, port = 0;
    for (uint32_t node = 0; node < topology->nodes; node++) {
        topology_join(topology, (struct topology_end){node, 0},
                      (struct topology_end){switch_vertex, port}, TOPOLOGY_LINK_OF_NODE);
        if (++port == nodes_each) {
            switch_vertex++;
            port = 0;
        }
    }
}

/* Sets the degrees: of all nodes the one, of all switches the other. */
static void set_degrees(struct topology *topology, uint32_t of_nodes, uint32_t of_switches)
{
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        topology_set_degree(topology, vertex, vertex < topology->nodes ? of_nodes : of_switches);
    }
}

/* Writes the labels of nodes, which have all digits, and of switches, which lack the lowest. */
static void write_labels(struct topology *topology)
{
    topology->labels =
        topology_take(topology, topology_vertices(topology), sizeof(topology->labels[0]));
    for (uint32_t node = 0; node < topology->nodes; node++) {
        topology->labels[node] = topology_label(topology, 0, node);
    }
    for (uint32_t i = 0; i < topology->switches; i++) {
        topology->labels[topology->nodes + i] = topology_label(topology, 1, i);
    }
}

/* -- Star, all to all ---------------------------------------------------------------------------*/

bool topology_build_star(struct topology *topology, const struct topology_sizes *sizes, char *error,
                         size_t error_bytes)
{
    const uint32_t nodes = sizes->list[0];
    if (!topology_fits(nodes, 2 * (uint64_t)nodes, error, error_bytes)) {
        return false;
    }
    topology_reserve(topology, nodes, 1, 2 * nodes);
    set_degrees(topology, 1, nodes);
    join_nodes(topology, nodes);
    return true;
}

bool topology_build_all_to_all(struct topology *topology, const struct topology_sizes *sizes,
                               char *error, size_t error_bytes)
{
    const uint32_t nodes = sizes->list[0];
    if (nodes < 2 || nodes > TOPOLOGY_ALL_TO_ALL_MAX) {
        return text_refuse(error, error_bytes, "all-to-all joins 2 to %u nodes, not %u",
                           TOPOLOGY_ALL_TO_ALL_MAX, nodes);
    }
    topology_reserve(topology, nodes, 0, nodes * (nodes - 1));
    set_degrees(topology, nodes - 1, 0);
    for (uint32_t one = 0; one < nodes; one++) {
        for (uint32_t other = one + 1; other < nodes; other++) {
            topology_join(topology, (struct topology_end){one, other - 1},
                          (struct topology_end){other, one}, TOPOLOGY_LINK_OF_NODE);
        }
    }
    return true;
}

/* -- Fat tree -----------------------------------------------------------------------------------
 *
 * A folded Clos network of switches with `radix` ports: half of them down and half up, but at the
 * top all down. A node's number has a digit for each level, less than half the radix; the highest
 * one, less than the radix. The switches of a level are numbered by all digits but the lowest:
 * those above the level say which subtree it is, those up to the level which of its switches. */

struct tree {
    uint32_t half, levels;
    uint32_t width; /* Switches of a level that is not the top; the top has half as many. */
};

static bool tree_size(const struct topology_sizes *sizes, struct tree *tree, char *error,
                      size_t error_bytes)
{
    const uint32_t radix = sizes->list[0], levels = sizes->extra != 0 ? sizes->extra : 3;
    uint64_t width = 2;
    if (radix < 4 || radix % 2 != 0) {
        return text_refuse(error, error_bytes, "a fat tree's radix is even and 4 or more, not %u",
                           radix);
    }
    for (uint32_t level = 1; level < levels && width <= TOPOLOGY_NODES_MAX; level++) {
        width *= radix / 2;
    }
    /* Too wide is too many nodes; only what fits is used. */
    *tree = (struct tree){radix / 2, levels, (uint32_t)width};
    const uint64_t nodes = width * tree->half;
    return topology_fits(nodes, nodes + width * tree->half * (2 * (uint64_t)levels - 1), error,
                         error_bytes);
}

static void write_tree_labels(struct topology *topology, const struct tree *tree)
{
    write_labels(topology);
    for (uint32_t i = 0; i < topology->switches; i++) {
        const uint32_t level = i / tree->width;
        topology->labels[topology->nodes + i] =
            topology_label(topology, 1, i % tree->width) | level << TOPOLOGY_LEVEL_SHIFT;
    }
}

/* Joins the switches of one level with those above: at a link's upper end the port says what the
 * digit of the lower switch is, at its lower end what that of the upper switch is. */
static void join_level(struct topology *topology, const struct tree *tree, uint32_t level,
                       uint32_t stride)
{
    const uint32_t first = topology->nodes + level * tree->width, above = first + tree->width;
    const uint32_t size = level + 2 == tree->levels ? 2 * tree->half : tree->half;
    for (uint32_t i = 0; i < tree->width; i++) {
        const uint32_t digit = i / stride % size;
        const uint32_t base = i - digit * stride;
        for (uint32_t up = 0; up < tree->half; up++) {
            topology_join(topology, (struct topology_end){first + i, tree->half + up},
                          (struct topology_end){above + base + up * stride, digit},
                          TOPOLOGY_LINK_BETWEEN_SWITCHES);
        }
    }
}

bool topology_build_fat_tree(struct topology *topology, const struct topology_sizes *sizes,
                             char *error, size_t error_bytes)
{
    struct tree tree = {0};
    if (!tree_size(sizes, &tree, error, error_bytes)) {
        return false;
    }
    const uint32_t nodes = tree.width * tree.half;
    const uint32_t switches = tree.width * (tree.levels - 1) + tree.width / 2;
    topology_reserve(topology, nodes, switches, nodes + switches * 2 * tree.half);
    set_degrees(topology, 1, 2 * tree.half);
    for (uint32_t level = 0; level < tree.levels; level++) {
        topology_add_digit(topology, level + 1 == tree.levels ? 2 * tree.half : tree.half);
    }
    topology->ports_down = tree.half;
    write_tree_labels(topology, &tree);
    join_nodes(topology, topology->digits[0].size);
    for (uint32_t level = 0, stride = 1; level + 1 < tree.levels; level++, stride *= tree.half) {
        join_level(topology, &tree, level, stride);
    }
    return true;
}

/* -- Torus --------------------------------------------------------------------------------------*/

/* Joins every switch with the next one up in a dimension; `stride` is their distance in number. */
static void join_rings(struct topology *topology, const struct topology_digit *digit,
                       uint32_t stride)
{
    const uint32_t first = topology->nodes;
    for (uint32_t i = 0; i < topology->switches; i++) {
        const uint32_t position = i / stride % digit->size;
        const uint32_t next = position + 1 < digit->size ? i + stride : i - position * stride;
        if (digit->both_ports || position == 0) {
            topology_join(topology, (struct topology_end){first + i, digit->port},
                          (struct topology_end){first + next, digit->port + digit->both_ports},
                          TOPOLOGY_LINK_BETWEEN_SWITCHES);
        }
    }
}

/* Writes the digits of a torus, and which ports lead on in each dimension; returns the degree of
 * a switch. A ring of two is one link, so it takes one port. */
static uint32_t add_dimensions(struct topology *topology, const struct topology_sizes *sizes,
                               uint32_t nodes_each)
{
    uint32_t port = nodes_each;
    topology_add_digit(topology, nodes_each);
    for (uint32_t i = 0; i < sizes->count; i++) {
        topology_add_digit(topology, sizes->list[i]);
        topology->digits[i + 1].port = port;
        topology->digits[i + 1].both_ports = sizes->list[i] > 2;
        port += 1 + topology->digits[i + 1].both_ports;
    }
    return port;
}

bool topology_build_torus(struct topology *topology, const struct topology_sizes *sizes,
                          char *error, size_t error_bytes)
{
    const uint32_t nodes_each = sizes->extra != 0 ? sizes->extra : 1;
    uint64_t switches = 1, degree = nodes_each;
    for (uint32_t i = 0; i < sizes->count; i++) {
        if (sizes->list[i] < 2) {
            return text_refuse(error, error_bytes, "a torus has 2 or more in each dimension");
        }
        switches *= switches <= TOPOLOGY_NODES_MAX ? sizes->list[i] : 1;
        degree += sizes->list[i] > 2 ? 2 : 1;
    }
    const uint64_t nodes = switches * nodes_each;
    if (!topology_fits(nodes, nodes + switches * degree, error, error_bytes)) {
        return false;
    }
    topology_reserve(topology, (uint32_t)nodes, (uint32_t)switches,
                     (uint32_t)(nodes + switches * degree));
    set_degrees(topology, 1, add_dimensions(topology, sizes, nodes_each));
    write_labels(topology);
    join_nodes(topology, nodes_each);
    for (uint32_t i = 0, stride = 1; i < sizes->count; stride *= sizes->list[i++]) {
        join_rings(topology, &topology->digits[i + 1], stride);
    }
    return true;
}

/* -- Dragonfly ----------------------------------------------------------------------------------
 *
 * In a group of `routers` all are joined with each other. The `reach` global links of a group lead
 * to every other group, in the arrangement of a palm tree. Global link number x of a group (counted
 * through its routers) leads x + 1 groups back, and is number reach - 1 - x there. */

static void join_group(struct topology *topology, uint32_t first, uint32_t nodes_each,
                       uint32_t routers)
{
    for (uint32_t one = 0; one < routers; one++) {
        for (uint32_t other = one + 1; other < routers; other++) {
            topology_join(topology, (struct topology_end){first + one, nodes_each + other - 1},
                          (struct topology_end){first + other, nodes_each + one},
                          TOPOLOGY_LINK_BETWEEN_SWITCHES);
        }
    }
}

static struct topology_end global_end(const struct topology *topology, uint32_t group, uint32_t x)
{
    const struct topology_gateway gateway = topology->gateways[x];
    const uint32_t routers = topology->digits[1].size;
    return (struct topology_end){topology->nodes + group * routers + gateway.router,
                                 topology->digits[0].size + topology->local_ports + gateway.port};
}

static void join_groups(struct topology *topology, uint32_t reach)
{
    for (uint32_t group = 0; group <= reach; group++) {
        for (uint32_t x = 0; x < reach; x++) {
            /* Each link has two ends: the group with the lower number joins it. */
            const uint32_t other = group > x ? group - x - 1 : group + reach - x;
            if (group < other) {
                topology_join(topology, global_end(topology, group, x),
                              global_end(topology, other, reach - 1 - x), TOPOLOGY_LINK_GLOBAL);
            }
        }
    }
}

static void write_gateways(struct topology *topology, uint32_t reach, uint32_t links_each)
{
    topology->gateways = topology_take(topology, reach, sizeof(topology->gateways[0]));
    for (uint32_t x = 0; x < reach; x++) {
        topology->gateways[x] =
            (struct topology_gateway){(uint16_t)(x / links_each), (uint16_t)(x % links_each)};
    }
}

bool topology_build_dragonfly(struct topology *topology, const struct topology_sizes *sizes,
                              char *error, size_t error_bytes)
{
    const uint32_t nodes_each = sizes->list[0], routers = sizes->list[1], links = sizes->list[2];
    const uint64_t reach = (uint64_t)routers * links;
    if (reach > UINT16_MAX) {
        return text_refuse(error, error_bytes, "a group has %llu global links; %u is the most",
                           (unsigned long long)reach, UINT16_MAX);
    }
    const uint64_t switches = (reach + 1) * routers;
    const uint64_t degree = (uint64_t)nodes_each + routers - 1 + links;
    const uint64_t nodes = switches * nodes_each;
    if (!topology_fits(nodes, nodes + switches * degree, error, error_bytes)) {
        return false;
    }
    topology_reserve(topology, (uint32_t)nodes, (uint32_t)switches,
                     (uint32_t)(nodes + switches * degree));
    set_degrees(topology, 1, (uint32_t)degree);
    topology_add_digit(topology, nodes_each);
    topology_add_digit(topology, routers);
    topology_add_digit(topology, (uint32_t)reach + 1);
    topology->local_ports = routers - 1;
    write_labels(topology);
    write_gateways(topology, (uint32_t)reach, links);
    join_nodes(topology, nodes_each);
    for (uint32_t group = 0; group <= reach; group++) {
        join_group(topology, topology->nodes + group * routers, nodes_each, routers);
    }
    join_groups(topology, (uint32_t)reach);
    return true;
}
