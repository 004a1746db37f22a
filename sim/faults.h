/* SPDX-License-Identifier: BSD-2-Clause
 *
 * faults - a fault element: faults of packets, datagrams and other whole units.
 *
 * Purpose    Decides of one unit after the other whether a fault strikes it. The caller carries the
 *            fault out.
 * Outputs    sim_fault_strikes; how often each fault struck, by name.
 * Ownership  A value without memory of its own. Zeroed memory makes no faults.
 * Units      Millionths: 1,000,000 strikes every unit.
 * Limits     None. For bits that are flipped at a rate there is sim/errors.h.
 * Source     docs/decisions/0006: the faults that the live NIC makes on purpose, and those of ends.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"

/* drop: it is lost. duplicate: it comes twice. reorder: some later units overtake it. late: it
 * comes after its sender has given it up. cut: from now on everything is lost for a while. damage:
 * some of its bytes or bits change. lazy: one end leaves for later what it could do now. mark: a
 * router says that it met congestion, if the unit may carry that. */
#define SIM_FAULTS(X) X(drop) X(duplicate) X(reorder) X(late) X(cut) X(damage) X(lazy) X(mark)

enum sim_fault {
#define FAULT(name) SIM_FAULT_##name,
    SIM_FAULTS(FAULT)
#undef FAULT
    SIM_FAULT_COUNT
};

struct sim_faults {
    uint32_t millionths[SIM_FAULT_COUNT];
    uint64_t struck[SIM_FAULT_COUNT];
};

/* Does the fault strike this time? Draws nothing if it never does. */
static inline bool sim_fault_strikes(struct sim_faults *faults, enum sim_fault fault,
                                     struct prng *prng)
{
    const bool strikes = prng_chance(prng, faults->millionths[fault]);
    faults->struck[fault] += strikes;
    return strikes;
}

const char *sim_fault_name(enum sim_fault fault);

#endif
