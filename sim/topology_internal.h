/* SPDX-License-Identifier: BSD-2-Clause
 *
 * topology_internal - the construction of topologies.
 *
 * A builder takes memory, says how many ports each vertex has, and then joins ports, each port
 * exactly once. Where routes are arithmetic it also writes the labels.
 */
#ifndef SIM_TOPOLOGY_INTERNAL_H
#define SIM_TOPOLOGY_INTERNAL_H

#include "sim/text.h"
#include "sim/topology.h"

/* Stands in a port's `peer` until it is joined. */
#define TOPOLOGY_NOBODY UINT32_MAX

/* A label of a fat tree has the switch's level above the digits. */
#define TOPOLOGY_LEVEL_SHIFT 27

/* One end of a link. */
struct topology_end {
    uint32_t vertex, port;
};

/* Takes memory. The degrees follow, vertex by vertex, by topology_set_degree. */
void topology_reserve(struct topology *topology, uint32_t nodes, uint32_t switches,
                      uint32_t port_count);
/* Says how many ports a vertex has. Vertices come in order. */
static inline void topology_set_degree(struct topology *topology, uint32_t vertex, uint32_t degree)
{
    topology->first_port[vertex + 1] = topology->first_port[vertex] + degree;
}

void topology_join(struct topology *topology, struct topology_end one, struct topology_end other,
                   uint32_t link_class);

/* Memory that is counted, and is zero. */
void *topology_take(struct topology *topology, size_t count, size_t bytes);

/* Adds a digit behind those that labels have already. */
void topology_add_digit(struct topology *topology, uint32_t size);
/* The number that counts through all digits from `first` on, as a label. */
uint32_t topology_label(const struct topology *topology, uint32_t first, uint32_t number);

/* -- Named topologies ---------------------------------------------------------------------------*/

/* The sizes behind the name: "8x8x8:4" is a list of three and an extra of 4. */
struct topology_sizes {
    uint32_t list[TOPOLOGY_DIGITS_MAX];
    uint32_t count;
    uint32_t extra; /* 0: none. */
};

/* Each builds its network, or says why it cannot. */
typedef bool topology_builder(struct topology *topology, const struct topology_sizes *sizes,
                              char *error, size_t error_bytes);
topology_builder topology_build_star, topology_build_all_to_all, topology_build_fat_tree,
    topology_build_torus, topology_build_dragonfly;

/* Refuses sizes that exceed the limits. */
bool topology_fits(uint64_t nodes, uint64_t ports, char *error, size_t error_bytes);

/* -- Links --------------------------------------------------------------------------------------*/

/* Reads a rate in Gb/s and a latency in ns into a class; the latency may be NULL. */
bool topology_read_link(struct topology_link *link, struct text_word rate,
                        const struct text_word *latency);
#define TOPOLOGY_LINK_GRAMMAR                                                                      \
    "a rate is 0.01 to 100000 Gb/s, a latency 0 to 1000000000 ns, with up to three places"

/* Gives the links what they have until topology_default_link says otherwise. */
void topology_set_defaults(struct topology *topology);

/* -- Graphs from text ---------------------------------------------------------------------------*/

/* A way that the text prescribes: at `vertex`, packets for the node may take `port`. */
struct topology_detour {
    uint32_t vertex, destination, port;
    uint32_t line;
};

/* Finds the shortest ways of a network that is joined, with detours instead of them where there are
 * any, in the order of destination, vertex, port. `names` has the name of every vertex, for the
 * errors: a vertex that does not reach a node, detours that go round in circles, or a table beyond
 * the limits. */
bool topology_table_build(struct topology *topology, const struct text_word *names,
                          const struct topology_detour *detours, uint32_t detour_count, char *error,
                          size_t error_bytes);
void topology_table_close(struct topology_table *table);
uint32_t topology_table_route(const struct topology *topology, uint32_t vertex,
                              uint32_t destination, uint32_t entropy);

/* -- Entropy ------------------------------------------------------------------------------------*/

/* One of `count` ways at the switch that is `step` steps on. The choices of one entropy at several
 * steps are independent; entropy 0 always takes 0. */
static inline uint32_t topology_choose(uint32_t entropy, uint32_t step, uint32_t count)
{
    uint64_t mixed = entropy * (UINT64_C(0x9e3779b97f4a7c15) + step * UINT64_C(0xda942042e4dd58b4));
    mixed ^= mixed >> 32;
    mixed *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)((mixed >> 32) * count >> 32);
}

#endif
