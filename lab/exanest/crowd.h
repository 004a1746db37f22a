/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crowd - every FPGA of a torus writes to and reads from random others, all at the same time.
 *
 * Purpose    Plans transfers of random sizes between random addresses, lets the machine do them,
 *            and looks at every byte of memory behind it.
 * Outputs    Counts of lost, wrong and disordered transfers; the rate.
 * Ownership  The crowd owns its plan. The world is the caller's.
 * Time       Virtual. The world finds a standstill by itself: words stand somewhere, and none has
 *            moved for longer than the patience of any unit.
 * Limits     EXANEST_WRITE_CHANNELS writes of an FPGA; each of at most EXANEST_CROWD_BYTES_MAX.
 * Source     EXA-63. Sizes and numbers are our choice.
 *
 * The targets at an FPGA lie side by side, without gaps of whole words. So a block that writes a
 * byte too many spoils its neighbour.
 */
#ifndef LAB_EXANEST_CROWD_H
#define LAB_EXANEST_CROWD_H

#include "lab/exanest/machine.h"
#include "lab/exanest/order.h"

#define EXANEST_CROWD_BYTES_MAX 32768u
/* Transfers of an FPGA that are under way at a time, in chains. */
#define EXANEST_CROWD_CHAINS 4u

struct exanest_crowd_transfer {
    uint32_t from, to, bytes, id;
    uint64_t source, va, notify_va; /* 0: nobody is told. */
    bool reads;
};

struct exanest_crowd {
    uint32_t fpgas, writes; /* By each FPGA. */
    uint32_t count;
    struct exanest_crowd_transfer *transfers; /* All, those of each FPGA together. */
    uint64_t *used;                           /* By FPGA: where the next bytes for it lie. */
    uint64_t bytes;                           /* Payload, in all. */
    struct exanest_order order;
    uint64_t *samples; /* Words written to memory, now and then. */
    uint32_t sample_count, sample_places;
};

struct exanest_crowd_result {
    uint32_t transfers;
    uint32_t lost;   /* Transfers that did not end, or not well. */
    uint32_t wrong;  /* FPGAs whose memory is not as it must be. */
    uint64_t late;   /* Packets out of order. */
    bool stands;     /* A standstill, */
    bool idle;       /* or all TIDs and contexts are free in the end. */
    double gbps;     /* Payload for an FPGA, over the middle half of the words. */
    uint64_t cycles; /* Stepped, of all FPGAs. */
    uint64_t words, packets, resent, timeouts, unanswered;
    uint64_t longest; /* Cycles that an answer waited, at most. */
};

/* Plans the memory of the FPGAs. To be called before the machine is opened. */
void exanest_crowd_plan(struct exanest_crowd *crowd, const uint8_t size[3], uint32_t writes,
                        uint64_t seed);
uint64_t exanest_crowd_process_bytes(const struct exanest_crowd *crowd);
void exanest_crowd_close(struct exanest_crowd *crowd);

struct exanest_crowd_result exanest_crowd_run(struct exanest_crowd *crowd,
                                              struct exanest_machine *machine);

#endif
