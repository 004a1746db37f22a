/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design_faults - accidents that only hardware has, by seed: frames to a design with a wrong FCS,
 * frames that are cut on their way, resets while the design runs.
 *
 * Outputs    What becomes of a frame, and whether a reset begins at an edge; counters.
 * Units      Millionths: of the frames to a port, of the edges of the clock.
 * Limits     A frame's fate is a function of the seed, the port and how many frames went there
 *            before it; a drawn reset is one of the seed and the edge.
 */
#ifndef SIM_PARTS_DESIGN_FAULTS_H
#define SIM_PARTS_DESIGN_FAULTS_H

#include "base/prng.h"
#include "hdl/model.h"
#include "hdl/port.h"

#define SIM_DESIGN_RESETS_MAX 16

/* Zeroed: there are none. */
struct sim_design_fault_rates {
    uint32_t badfcs_ppm;   /* A frame comes whole, and is bad. */
    uint32_t truncate_ppm; /* A frame ends early, after one byte or more, and is bad. */
    uint32_t reset_ppm;    /* At each edge. */
    uint32_t resets;       /* At these times, which ascend. */
    uint64_t reset_ps[SIM_DESIGN_RESETS_MAX];
};

struct sim_design_faults {
    struct sim_design_fault_rates rates;
    struct prng frames[HDL_PORTS_MAX], edges; /* A stream each. */
    uint32_t resets_come;                     /* From reset_ps. */
    uint64_t badfcs, truncated, resets;
    uint64_t last_reset_ps;
};

void sim_design_faults_init(struct sim_design_faults *faults,
                            const struct sim_design_fault_rates *rates, uint64_t seed);
/* The next frame to a port; true: it is bad now. */
bool sim_design_faults_strike(struct sim_design_faults *faults, uint32_t port,
                              struct hdl_frame *frame);
/* The next edge; true: it is one with reset, which the time of one before it began or which was
 * drawn. */
bool sim_design_faults_reset(struct sim_design_faults *faults, uint64_t now_ps);

static inline bool sim_design_faults_may_reset(const struct sim_design_fault_rates *rates)
{
    return rates->resets > 0 || rates->reset_ppm > 0;
}

#endif
