/* SPDX-License-Identifier: BSD-2-Clause
 *
 * estimate - what a designer works out from measurements: gains, shares, peak computing throughput.
 *
 * Purpose    The arithmetic of 7.3, and what the document derives from its own numbers.
 * Inputs     Measured or printed figures.
 * Outputs    Estimates. They are quotients of what is put in: no report shows them as results.
 * Ownership  Values only.
 * Threads    No state.
 * Time       Cycles of 6.4 ns where it says so.
 * Units      Bytes, bits per second, floating-point operations per second.
 * Limits     The document's own: that a node's accelerators share nothing but the link and the
 *            logic.
 * Source     Lant 7.3, Table 7.4; specification 2.18, 9.M, Annex A.2; LNI-85.
 */
#ifndef LAB_LANT_ESTIMATE_H
#define LAB_LANT_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* One kind of accelerator, and the FPGA that it is for. */
struct lant_estimate_input {
    uint32_t block_bytes, block_flops;
    uint32_t hls_cycles;   /* What the accelerator takes for a block. */
    uint32_t path_cycles;  /* What the path takes for one, without computing (Table 7.3). */
    double path_bps;       /* Data through one accelerator at that ratio. */
    double link_bps;       /* What the link carries of data. */
    double logic;          /* Flip-flops of the FPGA. */
    double stack_share;    /* What the network takes of these: 0 to below 1. */
    double block_logic;    /* What an accelerator takes. */
    uint32_t accelerators; /* That are to be used. */
};

struct lant_estimate {
    double ratio;        /* Computing to communicating: R. */
    double blocks_per_s; /* Through one accelerator. */
    double block_flops;  /* A second, of one accelerator. */
    double flops;        /* A second, of those to be used. */
    double logic_fits;   /* Accelerators in the FPGA. */
    double needed_bps;   /* What those to be used ask of the link. */
    bool exceeds_link;   /* The link does not carry that, and `flops` is out of reach: */
    uint32_t link_fits;  /* so many it does, */
    double link_flops;   /* which make this. */
};

struct lant_estimate lant_estimate(const struct lant_estimate_input *input);

/* What the faster one saves of the slower one: 0 to 1. */
double lant_estimate_gain(double slower, double faster);
/* A part of a whole: 0 to 1. */
double lant_estimate_share(double part, double whole);
/* Header and footer, of a packet with so many flits of payload. */
double lant_estimate_overhead(uint32_t payload_flits);
/* What a line's MAC takes of it: `frame_flits` for each packet, and a flit for each `pause_flits`
 * (0: none). */
double lant_estimate_mac_share(uint32_t packet_flits, uint32_t frame_flits, uint32_t pause_flits);
/* The latency that an accelerator must have for a ratio R. */
double lant_estimate_compute_cycles(double ratio, double path_cycles);

#endif
