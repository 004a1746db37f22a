/* SPDX-License-Identifier: BSD-2-Clause
 *
 * chain_runs - blocks through two accelerators, in worlds as the run's parameters say.
 *
 * Purpose    The measurements of chapter 7, for lant/accelerators and lant/estimate.
 * Inputs     The parameters LANT_CHAIN_USES; a block's bytes; for how long each accelerator
 *            computes, in cycles.
 * Outputs    Latency in cycles, throughput in Gb/s. A wrong byte fails the run.
 * Source     Lant 7.2.
 */
#ifndef LAB_LANT_CHAIN_RUNS_H
#define LAB_LANT_CHAIN_RUNS_H

#include "lab/lant/bench.h"
#include "lab/lant/chain.h"

#define LANT_CHAIN_USES                                                                            \
    LANT_LINE_USES                                                                                 \
    "shm_issue shm_beat shm_receive shm_done shm_rows rdma_setup ram rdma_receive rdma_done ack "  \
    "rows operations timers early_timer early engine_window timeout retries register segment "     \
    "receiver copy submit notice cpu_path detour turn blocks buffers intermediate overlap "        \
    "software "

/* With `software` transfers are driven as Fig. 7.1 (b) has it, else as (c). */
double lant_chain_latency(struct lab_run *run, bool software, uint32_t bytes, uint64_t compute);
double lant_chain_throughput(struct lab_run *run, bool software, uint32_t bytes, uint64_t compute);

#endif
