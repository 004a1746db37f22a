/* SPDX-License-Identifier: BSD-2-Clause
 *
 * flow - three ways in which a receiver keeps its sender from overflowing it.
 *
 * Credits: the sender may have so many units on their way. On/off: the receiver says stop above
 * one mark and go below another. Pause: the receiver asks for silence for a time (IEEE 802.3 31B).
 * All three are counters; when the words travel is the business of the links.
 */
#ifndef SIM_FLOW_H
#define SIM_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* -- Credits: kept by the sender ----------------------------------------------------------------*/

struct sim_credits {
    uint32_t available;
};

static inline bool sim_credits_take(struct sim_credits *credits, uint32_t units)
{
    if (credits->available < units) {
        return false;
    }
    credits->available -= units;
    return true;
}

static inline void sim_credits_return(struct sim_credits *credits, uint32_t units)
{
    credits->available += units;
}

/* -- On/off: kept by the receiver ---------------------------------------------------------------*/

struct sim_onoff {
    uint32_t high, low; /* Stop at `high` or more, go at `low` or fewer units; low < high. */
    uint32_t stored;
    bool stopped; /* What the sender was told last. */
};

/* Both return whether the sender has to be told the new value of `stopped`. */
static inline bool sim_onoff_stored(struct sim_onoff *flow, uint32_t units)
{
    flow->stored += units;
    const bool tell = !flow->stopped && flow->stored >= flow->high;
    flow->stopped |= tell;
    return tell;
}

static inline bool sim_onoff_taken(struct sim_onoff *flow, uint32_t units)
{
    CHECK(flow->stored >= units && flow->low < flow->high);
    flow->stored -= units;
    const bool tell = flow->stopped && flow->stored <= flow->low;
    flow->stopped &= !tell;
    return tell;
}

/* -- Pause: kept by the sender ------------------------------------------------------------------*/

#define SIM_PAUSE_QUANTUM_BITS 512

struct sim_pause {
    uint64_t until_ps; /* No transmission begins before this time. */
};

/* A pause of `quanta` at a link of `bit_ps` picoseconds a bit; 0 quanta: go on at once. */
static inline void sim_pause_heard(struct sim_pause *pause, uint64_t now_ps, uint16_t quanta,
                                   uint64_t bit_ps)
{
    pause->until_ps = now_ps + (uint64_t)quanta * SIM_PAUSE_QUANTUM_BITS * bit_ps;
}

static inline bool sim_pause_silent(const struct sim_pause *pause, uint64_t now_ps)
{
    return now_ps < pause->until_ps;
}

#endif
