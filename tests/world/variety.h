/* SPDX-License-Identifier: BSD-2-Clause
 *
 * variety - faults that struck in all the worlds of a test: one that never did has proved nothing.
 */
#ifndef TESTS_WORLD_VARIETY_H
#define TESTS_WORLD_VARIETY_H

#include "sim/faults.h"

struct variety {
    uint64_t struck[SIM_FAULT_COUNT];
};

static inline void variety_add(struct variety *variety, const struct sim_faults *faults)
{
    for (uint32_t fault = 0; fault < SIM_FAULT_COUNT; fault++) {
        variety->struck[fault] += faults->struck[fault];
    }
}

/* Bit f of `wanted`: fault f is to have struck. Returns the name of one that did not; NULL: all
 * did. */
static inline const char *variety_missing(const struct variety *variety, uint32_t wanted)
{
    for (uint32_t fault = 0; fault < SIM_FAULT_COUNT; fault++) {
        if (wanted >> fault & 1 && variety->struck[fault] == 0) {
            return sim_fault_name(fault);
        }
    }
    return NULL;
}

#endif
