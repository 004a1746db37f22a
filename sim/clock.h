/* SPDX-License-Identifier: BSD-2-Clause
 *
 * clock - the edges of a clock domain, in picoseconds.
 *
 * The period is a fraction, so that clocks that are no whole number of picoseconds (322.265625 MHz)
 * do not drift: edge n lies at n * numerator / denominator, rounded down.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

#include "base/check.h"

/* Products of a time and a frequency. */
__extension__ typedef unsigned __int128 sim_wide;

struct sim_clock {
    uint64_t numerator, denominator; /* Picoseconds per cycle; the denominator is not 0. */
};

/* Of a frequency: hertz / per, e.g. 78,125,000 / 1. */
static inline struct sim_clock sim_clock_hz(uint64_t hertz)
{
    CHECK(hertz > 0);
    return (struct sim_clock){UINT64_C(1000000000000), hertz};
}

/* When edge `cycle` is; edge 0 is at time 0. */
static inline uint64_t sim_clock_at(struct sim_clock clock, uint64_t cycle)
{
    return (uint64_t)((sim_wide)cycle * clock.numerator / clock.denominator);
}

/* The first edge at or after `ps`, by number. */
static inline uint64_t sim_clock_edge(struct sim_clock clock, uint64_t ps)
{
    const sim_wide scaled = (sim_wide)ps * clock.denominator;
    return (uint64_t)((scaled + clock.numerator - 1) / clock.numerator);
}

#endif
