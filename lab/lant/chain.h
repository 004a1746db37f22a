/* SPDX-License-Identifier: BSD-2-Clause
 *
 * chain - blocks of data through two accelerators on two nodes: Fig. 7.1.
 *
 * Purpose    The application of 7.2.2: gives blocks to the accelerator of node 0, whose results go
 *            to the one of node 1, and takes their results in the memory of node 1.
 * Inputs     Which dataflow: (c), in which F1 transfers and tells F2; or (b), in which the CPU of
 *            node 0 does. How many blocks, and what everything costs.
 * Outputs    The time of the first block; the time between two blocks. Every byte is compared.
 * Limits     LANT_CHAIN_UNDER_WAY_MAX blocks under way. As in the document one application drives
 *            both nodes: it sees a result in node 1 and gives node 0 more work at once. The CPU
 *            does as many things at a time as it is asked for.
 * Source     Lant 7.1.2, 7.1.3, 7.2.2, Table 7.3.
 *
 *   (c) CPU0 -> F1: pull, compute, write -> transfer BRAM0 to BRAM1 -> five stores -> F2 -> CPU1
 *   (b) CPU0 -> F1: pull, compute, write to DRAM0 -> CPU0 -> transfer DRAM0 to BRAM1 -> CPU0 ->
 *       five stores -> F2 -> CPU1
 */
#ifndef LAB_LANT_CHAIN_H
#define LAB_LANT_CHAIN_H

#include "lab/lant/accelerator.h"

#define LANT_CHAIN_UNDER_WAY_MAX 8u
#define LANT_CHAIN_BLOCK_MAX     32768u
#define LANT_CHAIN_MEMORY        (4u << 20) /* The memory that the nodes need. */

struct lant_chain_costs {
    uint32_t submit;      /* From the application's time stamp until F1 has its work. */
    uint32_t notice;      /* From F2's notification until the application's time stamp. */
    uint32_t burst;       /* A copy of 128 bytes. */
    uint32_t turn;        /* From a buffer that becomes free to the next block. */
    uint32_t cpu_path;    /* (b): what the CPU takes for a block, in two halves. */
    double detour_cycles; /* (b): what DRAM takes for a byte beside the copies. */
};

struct lant_chain_config {
    struct lant_chain_costs costs;
    bool by_cpu;             /* (b). */
    uint32_t bytes, blocks;  /* A block's; how many there are. */
    uint32_t under_way;      /* Blocks, at most. */
    uint64_t latency_cycles; /* The time of each computation. */
    uint32_t buffers;        /* For F1's results. */
    bool direct, overlap;    /* See accelerator.h. */
};

struct lant_chain {
    struct lant_chain_config config;
    struct lant_world *world;
    struct lant_api apis[2];
    struct lant_accelerator accelerators[2];
    uint32_t submitted, ready, finished; /* Blocks: given to F1, results of F2's, seen. */
    bool submitting, failed;
    struct sim_event submit, notice, path;
    struct lant_call call, store; /* The CPU's, in (b); the second is F2's work. */
    bool sent;                    /* F1's result; F2's work comes next. */
    struct lant_accelerator_work work;
    uint64_t result; /* Where F1's result is that the CPU gives on. */
    uint8_t words[LANT_ACCELERATOR_WORK_BYTES];
    uint64_t wrong; /* Bytes of results that are not what they must be. */
    uint64_t first_ps, half_ps, last_ps;
};

/* The world has two nodes, of LANT_CHAIN_MEMORY. */
void lant_chain_open(struct lant_chain *chain, const struct lant_chain_config *config,
                     struct lant_world *world);
/* Until all blocks are through. False: something has failed for good. */
MUST_USE bool lant_chain_run(struct lant_chain *chain);
void lant_chain_close(struct lant_chain *chain);

/* After a run of at least two blocks: the mean time between two, of the second half. */
static inline double lant_chain_period_ps(const struct lant_chain *chain)
{
    const uint32_t blocks = chain->config.blocks;
    return (double)(chain->last_ps - chain->half_ps) / (blocks - blocks / 2);
}

#endif
