/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bench - nodes of a run, and a program on each that notes when things happen.
 *
 * Purpose    Most experiments open a world with the run's parameters, do one thing or many, and
 *            note when it was done.
 * Ownership  The bench owns its world until lant_bench_end.
 * Source     Lant 3.4, 6.4: how the document measured.
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
    uint64_t filled;         /* Bytes of the node's memory that lant_bench_fill has filled. */
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

/* All data that the calls below move are words that nothing else has. Each transfer is
 * compared with them, every byte, and a wrong one fails the run. */
static inline uint64_t lant_bench_word(uint32_t node, uint64_t address)
{
    uint64_t word = ((uint64_t)node << 48 ^ address) + UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

/* The first bytes of the node's memory are such words. */
void lant_bench_fill(struct lant_bench *bench, uint32_t node, uint64_t bytes);
/* Bytes of node 0's memory, from its beginning, are in that of node `to` as well. */
void lant_bench_compare(struct lant_bench *bench, uint32_t to, uint64_t address, uint64_t bytes);

/* A store of such words to an address that is a multiple of 8. False: no room for it. */
MUST_USE bool lant_bench_put(struct lant_bench *bench, uint32_t from, uint32_t to, uint64_t address,
                             uint32_t bytes);
/* A store of so many bytes from node 0 to node `to`; returns when the bus answers, in cycles. */
double lant_bench_store(struct lant_bench *bench, uint32_t to, uint32_t bytes);
/* A transfer of so many bytes from node 0 to node `to`. */
void lant_bench_transfer(struct lant_bench *bench, uint32_t to, uint32_t bytes, uint32_t tag);
/* Runs until the counter is at `value`. False: it never is, and the run has failed. */
bool lant_bench_until(struct lant_bench *bench, const uint64_t *counter, uint64_t value);
/* Bits of payload per second that come to node `to`, in Gb/s: `bytes`, of which the second half
 * counts; 0 if the run has failed. */
double lant_bench_goodput(struct lant_bench *bench, uint32_t to, uint32_t bytes);

/* For packets that no node makes. The payload becomes such words, by the footer's offset. */
void lant_bench_load(struct lant_packet *packet);
/* A packet came as lant_bench_load made it. */
bool lant_bench_whole(const struct lant_frame *frame);

static inline double lant_in_cycles(uint64_t ps)
{
    return (double)ps / LANT_CYCLE_PS;
}

#endif
