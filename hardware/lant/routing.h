/* SPDX-License-Identifier: BSD-2-Clause
 *
 * routing - the port by which a packet leaves a switch: arithmetic on the destination, no tables.
 *
 * Purpose    The four ways of routing that the switch can be built for: the prototype's by places
 *            (cabinet, chassis, daughter), dragonfly (minimal and Valiant's), fat tree, torus.
 * Inputs     The network and the switch's place in it; a destination; a random word.
 * Units      Ports are numbered from 0; each network below says where they lead.
 * Limits     Destinations are nodes of 22 bits; in a dragonfly also places, of 48.
 * Source     Lant 3.1.3, 3.4.2; LNI-74 to LNI-77. All ways but the first are our choice.
 *
 * If several ports are equally good, the random word chooses one, each as likely as the others.
 * `choices` says how many there were; with one, the word does not matter.
 */
#ifndef HARDWARE_LANT_ROUTING_H
#define HARDWARE_LANT_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/lant.h"

struct lant_route {
    bool exists;      /* False: the network has no such node. */
    bool is_here;     /* The port leads to the node itself. */
    uint32_t port;    /* If it exists. */
    uint32_t choices; /* Ports, or links, that were as good. */
};

/* -- The prototype ------------------------------------------------------------------------------*/

/* Ports are bits of masks: those in a mask are equally good. The daughters of a chassis stand in a
 * ring, the shorter way around which is taken. A size of 0 is that of the field. */
struct lant_places {
    uint32_t self;                         /* The node at the local port. */
    uint32_t cabinets, chassis, daughters; /* 0: 256, 16, 1024. */
    uint8_t local;                         /* Its port. */
    uint8_t uplinks;                       /* Ports to other cabinets, */
    uint8_t chassis_ports;                 /* to other chassis, */
    uint8_t daughters_up, daughters_down;  /* to the daughter of the next, and the last number. */
};

/* Ports 0 to chassis, 1 and 2 around the ring, 3 up (3.4.2), 4 local. Which ones lead to the other
 * daughters is not in the source. */
static inline struct lant_places lant_places_prototype(uint32_t self)
{
    return (struct lant_places){.self = self,
                                .local = 4,
                                .uplinks = 1 << 3,
                                .chassis_ports = 1 << 0,
                                .daughters_up = 1 << 1,
                                .daughters_down = 1 << 2};
}

struct lant_route lant_route_places(const struct lant_places *places, uint32_t destination,
                                    uint32_t random);

/* -- Dragonfly ----------------------------------------------------------------------------------*/

/* Group: cabinet; router in it: chassis; host: daughter. A router's ports: its hosts, then the
 * routers of its group in ascending order without itself, then its global links. Links k + j(G-1),
 * for each j, of group g lead to group g + 1 + k, where they are G - 2 - k + j(G-1). Links beyond
 * the last whole j(G-1) are not there. */
struct lant_dragonfly {
    uint32_t groups, routers, hosts, globals; /* G <= routers * globals + 1. */
    bool valiant; /* The first router sends to a random group; AGE must be counted. */
};

static inline uint32_t lant_dragonfly_links(const struct lant_dragonfly *dragonfly)
{
    const uint32_t others = dragonfly->groups - 1;
    return others == 0 ? 0 : dragonfly->routers * dragonfly->globals / others * others;
}

/* Where link `link` of `group` leads: the peer's group and its number there. */
static inline uint32_t lant_dragonfly_peer(const struct lant_dragonfly *dragonfly, uint32_t group,
                                           uint32_t link, uint32_t *peer_link)
{
    const uint32_t others = dragonfly->groups - 1;
    const uint32_t k = link % others;
    *peer_link = link - k + others - 1 - k;
    return (group + 1 + k) % dragonfly->groups;
}

/* At router `router` of `group`. `age` is the packet's: 0 at the first router. */
struct lant_route lant_route_dragonfly(const struct lant_dragonfly *dragonfly, uint32_t group,
                                       uint32_t router, uint32_t destination, uint32_t age,
                                       uint32_t random);
/* The same for a place. A node's number has 8 bits for the cabinet, so that groups of 128 hosts end
 * at 32,768; Table 3.1 goes on. */
struct lant_route lant_route_dragonfly_place(const struct lant_dragonfly *dragonfly, uint32_t group,
                                             uint32_t router, struct lant_place there, uint32_t age,
                                             uint32_t random);

/* -- Fat tree -----------------------------------------------------------------------------------*/

/* A k-ary n-tree: nodes 0 .. k^n - 1, n levels of k^(n-1) switches. A switch's number has n - 1
 * digits to the base k; those of level l and l + 1 are joined if they differ in digit l at most.
 * Ports 0 .. k-1 lead down, k .. 2k-1 up; the port is the digit of the joined switch or node. The
 * switches at the top need no ports up, and may have more down: `top` of them, so that there are
 * top k^(n-1) nodes, and the highest digit of nodes, and of the switches below the top, is less
 * than `top`. */
struct lant_fat_tree {
    uint32_t arity, levels;
    uint32_t top; /* 0: as many as `arity`. */
};

struct lant_route lant_route_fat_tree(const struct lant_fat_tree *tree, uint32_t level,
                                      uint32_t position, uint32_t destination, uint32_t random);

/* -- Torus --------------------------------------------------------------------------------------*/

#define LANT_TORUS_DIMENSIONS_MAX 6u

/* A node's number has its coordinates as digits, dimension 0 the lowest. Ports 2d and 2d + 1 lead
 * up and down in dimension d, the next port is local. In the order of dimensions, the shorter way
 * around; if both are as short, chance decides. */
struct lant_torus {
    uint32_t dimensions;
    uint32_t size[LANT_TORUS_DIMENSIONS_MAX];
};

struct lant_route lant_route_torus(const struct lant_torus *torus, uint32_t self,
                                   uint32_t destination, uint32_t random);

/* -- Distances ----------------------------------------------------------------------------------*/

#define LANT_NO_HOPS UINT32_MAX /* The network has no such node. */

/* The hops that a shortest way has, by arithmetic on the two numbers (5.2.2.1): links between
 * nodes' switches in a torus, switches crossed in a fat tree, 0 to the node itself. Detours are
 * longer. */
uint32_t lant_hops_torus(const struct lant_torus *torus, uint32_t self, uint32_t destination);
uint32_t lant_hops_fat_tree(const struct lant_fat_tree *tree, uint32_t self, uint32_t destination);

#endif
