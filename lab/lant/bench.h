/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bench - nodes of a run, and a program on each that notes when things happen.
 *
 * Purpose    Most experiments open a world with the run's parameters, do one thing or many, and
 *            note when it was done.
 * Ownership  The bench owns its world until lant_bench_end.
 * Source     Specification 6.
 */
#ifndef LAB_LANT_BENCH_H
#define LAB_LANT_BENCH_H

#include "lab/lant/experiments.h"
#include "lab/lant/node.h"

struct lant_bench;

/* Counts of a node's program. */
struct lant_probe {
    struct lant_bench *bench;
    uint64_t done;        /* Accesses answered on the bus. */
    uint64_t done_ps;     /* The last of them. */
    uint64_t data;        /* The bytes of the last load. */
    uint64_t confirmed;   /* Stores whose peers have them. */
    uint64_t pushed;      /* Transfers that have left, */
    uint64_t pushed_ps;   /* the last of them, */
    uint64_t pushed_tags; /* and a bit for the tag of each, modulo 64; */
    uint64_t sent;        /* that were acknowledged, */
    uint64_t sent_ps;     /* the last; */
    uint64_t received;    /* that have come. */
    uint64_t received_ps;
    struct sim_event *wakes; /* Scheduled when an access is answered; NULL: none. */
};

struct lant_bench {
    struct lab_run *run;
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct lant_world world;
    struct lant_probe *probes; /* By node. */
};

/* The configuration that the run's parameters make. Those on which the experiment does not depend
 * have their defaults. */
struct lant_node_config lant_config_of(struct lab_run *run);

/* The bytes of so many packets as this parameter says. */
uint32_t lant_segment_of(struct lab_run *run, const char *name);

/* Two interfaces, one MAC line between them, no switch. */
struct lant_fabric_config lant_line_of(struct lab_run *run);
/* Nodes with a switch each, in a row around a ring. */
struct lant_fabric_config lant_ring_of(struct lab_run *run, uint32_t nodes);
#define LANT_LINE_USES "mac mac_frame mac_pause "

struct lant_bench *lant_bench_begin(struct lab_run *run, const struct lant_node_config *config,
                                    const struct lant_fabric_config *fabric);
void lant_bench_end(struct lant_bench *bench);
/* Runs until no node has anything to do. */
void lant_bench_settle(struct lant_bench *bench);

/* A store of so many bytes from node 0 to node `to`; returns when the bus answers, in cycles. */
double lant_bench_store(struct lant_bench *bench, uint32_t to, uint32_t bytes);
/* A transfer of so many bytes from node 0 to node `to`. */
void lant_bench_transfer(struct lant_bench *bench, uint32_t to, uint32_t bytes, uint32_t tag);
/* Runs until the counter is at `value`. False: it never is, and the run has failed. */
bool lant_bench_until(struct lant_bench *bench, const uint64_t *counter, uint64_t value);
/* Bits of payload per second that come to node `to`, in Gb/s: `bytes`, of which the second half
 * counts; 0 if the run has failed. */
double lant_bench_goodput(struct lant_bench *bench, uint32_t to, uint32_t bytes);

static inline double lant_in_cycles(uint64_t ps)
{
    return (double)ps / LANT_CYCLE_PS;
}

#endif
