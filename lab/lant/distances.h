/* SPDX-License-Identifier: BSD-2-Clause
 *
 * distances - distances that packets go in tori, fat trees and dragonflies.
 *
 * Purpose    Routes packets hop by hop, as the switch does (hardware/lant/routing.h), and counts.
 * Outputs    Switches crossed; their mean over all pairs of nodes, or over random ones.
 * Ownership  Values only: a network of any size takes no memory.
 * Units      A packet crosses a switch when it comes in and goes out, be it to a node. In a torus
 *            the node's own switch does not count, as it does not in Table 3.1: a distance is the
 *            number of links.
 * Limits     2^22 nodes. A packet that does not arrive ends the program.
 * Source     Lant, Table 3.1.
 */
#ifndef LAB_LANT_DISTANCES_H
#define LAB_LANT_DISTANCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "hardware/lant/routing.h"

enum lant_network_kind {
    LANT_TORUS,
    LANT_FAT_TREE,
    LANT_DRAGONFLY,
};

struct lant_network {
    enum lant_network_kind kind;
    uint32_t nodes; /* A fat tree may have more: the first `nodes` ones are used. */
    struct lant_torus torus;
    bool mesh;        /* No packet goes around the ends of the torus. */
    bool counts_twos; /* A dimension of two counts one link, crossed or not. */
    struct lant_fat_tree tree;
    bool counts_links;     /* Links crossed, those of nodes included. */
    bool turns_at_the_top; /* Packets go up all the way. */
    struct lant_dragonfly dragonfly;
};

struct lant_network lant_torus_of(uint32_t a, uint32_t b, uint32_t c);
/* The tree of the fewest levels that has `nodes` nodes. At the top, switches use `top` of their
 * ports: all `radix` ones, or half of them as on other levels. */
struct lant_network lant_fat_tree_of(uint32_t nodes, uint32_t radix, uint32_t top);
/* Any two groups have one link, or several if `globals`, those of a router, are enough for that. */
struct lant_network lant_dragonfly_of(uint32_t groups, uint32_t routers, uint32_t hosts,
                                      uint32_t globals);

/* A packet goes from one node to another; `prng` chooses where there is a choice. */
uint32_t lant_distance(const struct lant_network *network, uint32_t from, uint32_t to,
                       struct prng *prng);

struct lant_distances {
    uint64_t pairs; /* Ordered pairs of two nodes, */
    uint64_t sum;   /* and their distances together. */
    double mean;
    double error; /* The mean's standard error; 0 if these are all pairs. */
};

struct lant_distances lant_all_distances(const struct lant_network *network, struct prng *prng);
struct lant_distances lant_some_distances(const struct lant_network *network, uint64_t pairs,
                                          struct prng *prng);

#endif
