/* SPDX-License-Identifier: BSD-2-Clause
 *
 * watch - the events of nodes, as a timeline and as packets.
 *
 * Purpose    Each node has a track of the packets that leave it, and tracks of the numbers of loads
 *            and stores, packets of the DMA engine, and entries of the inbound CAM in use. A
 *            capture has every packet that comes to a node.
 * Inputs     A trace, a capture, or both; the world's calls.
 * Ownership  The watch owns neither trace nor capture.
 * Units      A captured packet is its flits, each with its bit 63 first, as it came.
 * Limits     LANT_WATCH_NODES_MAX nodes have tracks.
 * Source     wire/lant.h.
 */
#ifndef LAB_LANT_WATCH_H
#define LAB_LANT_WATCH_H

#include "lab/lant/fabric.h"
#include "sim/capture.h"
#include "sim/trace.h"

#define LANT_WATCH_NODES_MAX 64u

enum lant_level {
    LANT_LEVEL_SHM,
    LANT_LEVEL_RDMA,
    LANT_LEVEL_CAM,
    LANT_LEVEL_COUNT,
};

struct lant_watch {
    struct sim *sim;
    struct sim_trace *trace;     /* NULL: none is written. */
    struct sim_capture *capture; /* Likewise. */
    uint32_t nodes;              /* Nodes that have tracks. */
    struct {
        uint32_t output, levels[LANT_LEVEL_COUNT];
        uint32_t now[LANT_LEVEL_COUNT];
    } tracks[LANT_WATCH_NODES_MAX];
};

/* NULL if there is neither trace nor capture. Freed by lant_watch_close. */
struct lant_watch *lant_watch_open(struct sim *sim, struct sim_trace *trace,
                                   struct sim_capture *capture, uint32_t nodes);
void lant_watch_close(struct lant_watch *watch);

/* For the three below `watch` may be NULL: nobody looks. A packet leaves a node in this time. */
void lant_watch_sent(struct lant_watch *watch, uint32_t node, const struct lant_header *header,
                     uint64_t begin_ps, uint64_t end_ps);
/* The numbers in use now. */
void lant_watch_levels(struct lant_watch *watch, uint32_t node,
                       const uint32_t levels[LANT_LEVEL_COUNT]);
/* A packet has come to a node. */
void lant_watch_came(struct lant_watch *watch, const struct lant_frame *frame);

#endif
