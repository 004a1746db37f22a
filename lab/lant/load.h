/* SPDX-License-Identifier: BSD-2-Clause
 *
 * load - tori, fat trees and dragonflies of Lant's switches and links, and packets for them.
 *
 * Purpose    Runs a network of 1,024, 8,192 or 65,536 nodes (about) under a load, as the parameters
 *            say what lines and switches are like.
 * Time       Cycles of 6.4 ns; microseconds where it says so.
 * Units      The load of a node's line that is never idle is 1, the line's own flits included. A
 *            latency counts up to the end of a packet's frame.
 * Limits     Queues have no bound: the document assumes credits. So networks that cannot carry what
 *            is offered have latencies that grow as long as the run lasts.
 * Source     Lant 3.1.3, Table 3.6, 3.4.3. The networks are our choice.
 */
#ifndef LAB_LANT_LOAD_H
#define LAB_LANT_LOAD_H

#include "lab/lab.h"
#include "lab/lant/distances.h"

#define LANT_KINDS 3u /* enum lant_network_kind. */

#define LANT_GROUP_ROUTERS 8u
#define LANT_ROUTER_HOSTS  16u
#define LANT_GROUP_HOSTS   (LANT_GROUP_ROUTERS * LANT_ROUTER_HOSTS)

/* The parameters that lant_load_network asks for. */
#define LANT_LOAD_USES "mac mac_frame mac_pause switch torus group forwards queues "

/* Networks of about `nodes` nodes. */
struct lant_size {
    uint32_t nodes;
    uint32_t torus[3], power[3]; /* As in Table 3.1, and a power of two. */
    uint32_t radix;              /* A tree of three levels, all ports of whose top lead down. */
    uint32_t globals;            /* Global links of a dragonfly's router; each joins two groups. */
};

extern const struct lant_size lant_size_1k, lant_size_8k, lant_size_64k;

/* Their names in rows and figures, by kind. */
extern const char *const lant_network_names[LANT_KINDS];
extern const char *const lant_network_ids[LANT_KINDS];

struct lant_traffic {
    double load;
    double warm_us, stop_us; /* From when on is measured; when nodes stop making packets. */
    char destinations[32];   /* As pattern_open reads it; if empty, any other node. */
    bool opposite;           /* The node half of all numbers further. */
    bool one_path;           /* Packets of a pair take one, where several are equal. */
    bool detours;            /* In a dragonfly. */
};

struct lant_outcome {
    double latency; /* Mean, in cycles. */
    double carried; /* Load. */
    double share;   /* The delivered share of the load that was offered in the same time. */
};

struct lant_outcome lant_load_network(struct lab_run *run, const struct lant_size *size,
                                      enum lant_network_kind kind,
                                      const struct lant_traffic *traffic);

/* A dragonfly as the parameters say, with about as many global links a group. */
struct lant_dragonfly lant_dragonfly_under_load(struct lab_run *run, const struct lant_size *size);

/* The network with the parameters' own values, for lant_distance. */
struct lant_network lant_network_of(const struct lant_size *size, enum lant_network_kind kind);

#endif
