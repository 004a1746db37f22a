/* SPDX-License-Identifier: BSD-2-Clause
 *
 * batch - transfers of many nodes through one network, and what became of them.
 *
 * Purpose    The worlds of lant/checks and lant/incast: nodes send as a plan says, until all has
 *            come.
 * Inputs     A plan, which lant_batch_plan makes; the configurations of nodes and network.
 * Outputs    struct lant_batch_outcome.
 * Ownership  The caller closes the plan with lab_plan_close.
 * Time       Cycles of 6.4 ns.
 * Limits     Those of sender.h.
 * Source     Our choice.
 */
#ifndef LAB_LANT_BATCH_H
#define LAB_LANT_BATCH_H

#include "lab/lant/bench.h"
#include "lab/plan.h"

#define LANT_TO_OTHERS UINT32_MAX

/* Nodes from `first` on, `senders` of them, send `each` messages. */
struct lant_batch_traffic {
    uint32_t nodes, first, senders, each, bytes;
    uint32_t to;          /* The receiver of all; LANT_TO_OTHERS: any other node. */
    uint64_t interval_ps; /* Mean time from one to the next, as by Poisson; 0: none. */
};

struct lant_batch_outcome {
    double mean, worst; /* From a program's wish until its message's receiver sees the end. */
    double cycles;      /* From the first wish until the last end. */
    double gbps;        /* Payload, of all together. */
    double switches;    /* Passed by a packet with data or without, the mean. */
    uint64_t lost;      /* Messages that did not come, or with wrong bytes. */
    uint64_t again, timeouts;
    uint64_t refused; /* Packets that a receiver dropped, since its tables were full. */
    uint64_t nacked;  /* By switches. */
    uint64_t busy_ps; /* All lines together. */
};

/* 0 if nothing came. */
static inline double lant_batch_share(double of, double all)
{
    return all > 0 ? of / all : 0;
}

void lant_batch_plan(struct lab_plan *plan, const struct lant_batch_traffic *traffic,
                     uint64_t seed);
/* The number of nodes that the network has is the plan's. */
struct lant_batch_outcome lant_batch_run(struct lab_run *run, const struct lab_plan *plan,
                                         const struct lant_node_config *config,
                                         const struct lant_fabric_config *fabric, uint32_t window);

#endif
