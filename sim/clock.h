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

#define SIM_PS_PER_SECOND UINT64_C(1000000000000)
#define SIM_MILLION       1000000

/* In lowest terms: most clocks have whole picoseconds, and then nothing is divided. */
static inline struct sim_clock sim_clock_period(uint64_t numerator, uint64_t denominator)
{
    CHECK(numerator > 0 && denominator > 0);
    uint64_t divisor = numerator;
    for (uint64_t rest = denominator; rest != 0;) {
        const uint64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return (struct sim_clock){numerator / divisor, denominator / divisor};
}

/* The clock of a frequency in hertz that is `ppm` millionths too fast. */
static inline struct sim_clock sim_clock_hz_ppm(uint64_t hertz, int32_t ppm)
{
    CHECK(hertz > 0 && ppm > -SIM_MILLION);
    return ppm == 0 ? sim_clock_period(SIM_PS_PER_SECOND, hertz)
                    : sim_clock_period(SIM_PS_PER_SECOND * SIM_MILLION,
                                       hertz * (uint64_t)(SIM_MILLION + ppm));
}

static inline struct sim_clock sim_clock_hz(uint64_t hertz)
{
    return sim_clock_hz_ppm(hertz, 0);
}

/* The time of edge `cycle`; edge 0 is at time 0. */
static inline uint64_t sim_clock_at(struct sim_clock clock, uint64_t cycle)
{
    return clock.denominator == 1
               ? cycle * clock.numerator
               : (uint64_t)((sim_wide)cycle * clock.numerator / clock.denominator);
}

/* The first edge at or after `ps`, by number. */
static inline uint64_t sim_clock_edge(struct sim_clock clock, uint64_t ps)
{
    if (clock.denominator == 1) {
        return (ps + clock.numerator - 1) / clock.numerator;
    }
    const sim_wide scaled = (sim_wide)ps * clock.denominator;
    return (uint64_t)((scaled + clock.numerator - 1) / clock.numerator);
}

#endif
