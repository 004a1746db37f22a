/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/parts/design_faults.h"

#define MILLION 1000000

/* The ports' own streams have seeds from 0 on; these count down from the last number, and from the
 * middle. */
void sim_design_faults_init(struct sim_design_faults *faults,
                            const struct sim_design_fault_rates *rates, uint64_t seed)
{
    *faults = (struct sim_design_faults){.rates = *rates};
    for (uint32_t i = 0; i < HDL_PORTS_MAX; i++) {
        prng_init(&faults->frames[i], ~(seed * HDL_PORTS_MAX + i));
    }
    prng_init(&faults->edges, ~seed ^ UINT64_C(1) << 63);
}

bool sim_design_faults_strike(struct sim_design_faults *faults, uint32_t port,
                              struct hdl_frame *frame)
{
    /* As many draws for each frame, so that none depends on the fate of another one. */
    struct prng *stream = &faults->frames[port];
    const uint64_t badfcs = prng_next(stream), truncate = prng_next(stream);
    const uint64_t length = prng_next(stream);
    if (truncate % MILLION < faults->rates.truncate_ppm && frame->bytes > 1) {
        frame->bytes = 1 + (uint32_t)(length % (frame->bytes - 1));
        faults->truncated++;
    } else if (badfcs % MILLION < faults->rates.badfcs_ppm) {
        faults->badfcs++;
    } else {
        return false;
    }
    frame->bad = true;
    return true;
}

bool sim_design_faults_reset(struct sim_design_faults *faults, uint64_t now_ps)
{
    const struct sim_design_fault_rates *rates = &faults->rates;
    bool due = prng_chance(&faults->edges, rates->reset_ppm);
    while (faults->resets_come < rates->resets && rates->reset_ps[faults->resets_come] < now_ps) {
        faults->resets_come++;
        due = true;
    }
    return due;
}
