/* SPDX-License-Identifier: BSD-2-Clause
 *
 * r5 - the real-time core of an FPGA: the firmware, and the time and the hardware that it needs.
 *
 * Purpose    Carries out the firmware's actions after their cost, and tells it their results.
 * Ownership  The R5 owns firmware and scratchpad; fabric and FPGA are the machine's.
 * Time       An action is done after its cost, at the next edge of the datapath's clock if it
 *            touches hardware; a store that the hardware stalls takes longer (5.2).
 * Limits     One action at a time on a core; one core, or two.
 * Source     Xirouchakis 4.1, 6.2.
 *
 * The document runs its firmware on one core. With a second one, the first still runs the loop and
 * all accesses, but gives computing (EXANEST_DO_WORK) to the second if that has nothing to do, and
 * goes on at once with what the result will be. To give it costs nothing.
 *
 * The driver brings a page in `fault_ps` after its fault was reported, and tells the R5 which
 * blocks read from it. Nobody is told of a fault of the destination: the sender's R5 tries again
 * after a time.
 */
#ifndef LAB_EXANEST_R5_H
#define LAB_EXANEST_R5_H

#include "hardware/exanest/firmware.h"
#include "lab/exanest/fabric.h"

#define EXANEST_FAULT_PS UINT64_C(4000000) /* 4 us to bring a page in: our choice. */

struct exanest_r5 {
    struct exanest_fabric *fabric;
    struct exanest_fpga *fpga;
    uint32_t number; /* The FPGA's. */
    bool sleeping;
    bool called;                /* While it slept, something came. */
    struct sim_event due;       /* The action's cost is over, or the sleep. */
    struct sim_event attention; /* Something has come into the mailbox while it sleeps. */
    struct sim_event driver;    /* The oldest page fault is repaired. */
    bool repairing;
    struct exanest_page_fault fault;
    uint64_t fault_ps;
    uint64_t began_ps;  /* The action did, */
    uint64_t busy_ps;   /* and the time of all of them. */
    bool two_cores;     /* A second core computes, */
    uint64_t second_ps; /* and has something to do until then. */
    struct exanest_host_store store;
    struct exanest_host_load load;
    struct exanest_firmware_action action;
    struct exanest_firmware firmware;
    struct exanest_scratchpad scratchpad;
};

/* `r5` must not move afterwards. It begins to run at once, on one core or two. */
void exanest_r5_open(struct exanest_r5 *r5, struct exanest_fabric *fabric, uint32_t number,
                     const struct exanest_firmware_config *config, uint32_t cores);

/* The driver gives page and channel `page` to a domain. */
void exanest_r5_bind(struct exanest_r5 *r5, uint32_t page, uint16_t pdid);

/* A program of the domain posts a transfer in its page. The doorbell's generation is the caller's.
 */
enum exanest_pad_access exanest_r5_post(struct exanest_r5 *r5, uint32_t page, uint32_t channel,
                                        const struct exanest_transfer *transfer);

/* A program's view of its transfer. */
struct exanest_transfer exanest_r5_transfer(const struct exanest_r5 *r5, uint32_t page,
                                            uint32_t channel);

/* It has nothing to do, and no timer runs. */
bool exanest_r5_idle(const struct exanest_r5 *r5);

#endif
