/* SPDX-License-Identifier: BSD-2-Clause
 *
 * topology - vertices, the links that join them, and the way that a packet goes.
 *
 * Purpose    A network as a value: end nodes, switches, the links between their ports, and for
 *            every vertex and destination the port by which a packet leaves.
 * Inputs     A description such as "torus:8x8x8" (topology_open), or a graph as text
 *            (topology_parse); docs/topologies.md has both grammars. Files are the caller's.
 * Outputs    The arrays of ports, and topology_route.
 * Ownership  The topology owns its arrays until topology_close.
 * Threads    After it was opened it does not change: any number of threads may ask for routes.
 * Time       A route costs the same however large the network is.
 * Limits     The TOPOLOGY_..._MAX below. A network that exceeds them, or in which not every node
 *            reaches every other, is refused with an error that says so. Deadlock: with queues that
 *            drop, or grow, nothing can. With credits, a fat tree (up, then down), a star and
 *            all-to-all cannot either. A torus in the order of its dimensions needs two virtual
 *            channels a ring. A dragonfly needs one virtual channel before the global link and
 *            another behind it, with detours two on global links as well. Of a graph from text
 *            nothing is known, unless it is a tree.
 * Source     Leiserson, "Fat-trees" (1985); Petrini, Vanneschi, "k-ary n-trees" (1997); Dally,
 *            Seitz, "Deadlock-free message routing" (1987); Kim, Dally, Scott, Abts,
 *            "Technology-driven, highly-scalable dragonfly topology" (2008), Valiant's detours
 *            among them, but here by a link of the first switch, so that a packet carries nothing
 *            for it; Camarero, Vallejo, Beivide, "Topological characterization of Hamming and
 *            dragonfly networks" (2014) for the palm tree.
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define TOPOLOGY_NODES_MAX      (1u << 18)
#define TOPOLOGY_PORTS_MAX      (1u << 24) /* All vertices together. */
#define TOPOLOGY_ALL_TO_ALL_MAX 1024u      /* Nodes: they have a million ports already. */
#define TOPOLOGY_CLASSES_MAX    256u
#define TOPOLOGY_ERROR_BYTES    160 /* No error is longer. */

/* For graphs from text. */
#define TOPOLOGY_TEXT_MAX      (1u << 28) /* Bytes. */
#define TOPOLOGY_NAME_MAX      31u        /* Letters of a name. */
#define TOPOLOGY_SWITCHES_MAX  (1u << 18)
#define TOPOLOGY_DEGREE_MAX    65535u     /* Ports of one vertex. */
#define TOPOLOGY_DETOURS_MAX   (1u << 20) /* Ports that routes name. */
#define TOPOLOGY_TABLE_MAX     (1u << 24) /* Entries: vertices that choose, times destinations. */
#define TOPOLOGY_SEARCH_MAX    (1u << 29) /* Destinations times ports, which are all looked at. */
#define TOPOLOGY_SETS_MAX      65535u     /* Different sets of ports among which entropy chooses. */
#define TOPOLOGY_SET_PORTS_MAX (1u << 24) /* All of them together. */

/* Properties that links of one class share. */
struct topology_link {
    uint32_t byte_fs;    /* How long a byte takes to pass: 80,000 at 100 Gb/s. Never 0. */
    uint64_t latency_ps; /* From the last bit sent to the last bit received. */
    bool rate_given;     /* By the description or the text; else topology_default_link sets it. */
    bool latency_given;
};

/* A port, and the one to which its link leads. */
struct topology_port {
    uint32_t peer;           /* A vertex. */
    uint32_t peer_port : 24; /* The index of the port among the peer's. */
    uint32_t link_class : 8; /* Index in the topology's `links`. */
};

enum topology_kind {
    TOPOLOGY_STAR,
    TOPOLOGY_ALL_TO_ALL,
    TOPOLOGY_FAT_TREE,
    TOPOLOGY_TORUS,
    TOPOLOGY_DRAGONFLY,
    TOPOLOGY_TEXT,
};

/* The label of a vertex holds its coordinates as digits: where it is in the torus, in the tree, or
 * in which group. The lowest digit of a node's label is the port of its switch that leads to it. */
#define TOPOLOGY_DIGITS_MAX 20u
#define TOPOLOGY_LABEL_BITS 32u

struct topology_digit {
    uint32_t size; /* The digit is less. */
    uint32_t mask, shift;
    uint32_t port;   /* Torus: the port one up in this dimension. */
    bool both_ports; /* Torus: the one behind it leads down; else up and down are the same. */
};

/* The port of a dragonfly's group that leads to another group. */
struct topology_gateway {
    uint16_t router, port; /* In the group; among the global ports of the router. */
};

struct topology_table;

/* The vertices 0 to nodes-1 are end nodes, which never forward; those from `nodes` to
 * nodes+switches-1 are switches. */
struct topology {
    enum topology_kind kind;
    uint32_t nodes, switches;
    uint32_t *first_port; /* The ports of vertex v: first_port[v] up to first_port[v + 1] - 1. */
    struct topology_port *ports;
    uint32_t link_count; /* The classes. */
    struct topology_link links[TOPOLOGY_CLASSES_MAX];
    size_t bytes;

    /* The parts of which routes are made. */
    uint32_t *labels; /* One a vertex; NULL where nobody asks. */
    uint32_t digit_count;
    struct topology_digit digits[TOPOLOGY_DIGITS_MAX];
    uint8_t digit_of_bit[TOPOLOGY_LABEL_BITS];
    uint32_t above[TOPOLOGY_DIGITS_MAX]; /* The bits of all digits behind this one. */
    uint32_t ports_down;                 /* Fat tree: of a switch that has ports up. */
    uint32_t local_ports;                /* Dragonfly: of a router, to others of its group. */
    struct topology_gateway *gateways;   /* Dragonfly: by the distance between the groups. */
    struct topology_table *table;        /* Text: everything. */
};

/* The classes of named topologies. */
enum {
    TOPOLOGY_LINK_OF_NODE,          /* Between a node and a switch, or two nodes. */
    TOPOLOGY_LINK_BETWEEN_SWITCHES, /* In a dragonfly: of one group. */
    TOPOLOGY_LINK_GLOBAL,           /* Between the groups of a dragonfly. */
};

/* Whether a text begins as a description does: with the name of a topology. */
bool topology_is_named(const char *text);
#define TOPOLOGY_NAMES "star, all-to-all, fat-tree, torus or dragonfly"

/* Opens a topology by its description: a name, its sizes, and perhaps what its links are like.
 * False: nothing is open, and `error` says what is wrong. Aborts without memory. */
MUST_USE bool topology_open(struct topology *topology, const char *description, char *error,
                            size_t error_bytes);
/* The same for a graph of `bytes` of text. The text may go away afterwards. */
MUST_USE bool topology_parse(struct topology *topology, const char *text, size_t bytes, char *error,
                             size_t error_bytes);
void topology_close(struct topology *topology);

/* Rate and latency for those links to which nothing gave theirs: a byte takes `byte_fs`, not 0.
 * Before that they have 100 Gb/s and 500 ns. */
void topology_default_link(struct topology *topology, uint32_t byte_fs, uint64_t latency_ps);

/* The index, among the ports of `vertex`, of the one by which a packet for `destination` leaves.
 * `vertex` is another node, or a switch that a packet for `destination` reaches. Where there are
 * several shortest ways, `entropy` chooses one: 0 always the same one for a destination. A flow
 * whose packets shall not overtake each other has one entropy all the way. */
uint32_t topology_route(const struct topology *topology, uint32_t vertex, uint32_t destination,
                        uint32_t entropy);

/* The same at a packet's first switch, `vertex`, if the packet takes a detour (Valiant): in a
 * dragonfly, if the destination is in another group, any of the switch's global links.
 * topology_route gives the ports after that one. In other networks this is topology_route. */
uint32_t topology_detour(const struct topology *topology, uint32_t vertex, uint32_t destination,
                         uint32_t entropy);

/* Its memory, beside the struct itself. */
size_t topology_bytes(const struct topology *topology);

static inline uint32_t topology_vertices(const struct topology *topology)
{
    return topology->nodes + topology->switches;
}

/* How many ports a vertex has. */
static inline uint32_t topology_degree(const struct topology *topology, uint32_t vertex)
{
    return topology->first_port[vertex + 1] - topology->first_port[vertex];
}

static inline const struct topology_port *topology_port_of(const struct topology *topology,
                                                           uint32_t vertex, uint32_t port)
{
    return &topology->ports[topology->first_port[vertex] + port];
}

#endif
