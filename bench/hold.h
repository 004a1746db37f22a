/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hold - the world in which event queues are compared: a fixed number of events are pending, and
 * each event that runs is scheduled again ("hold", Jones, "An empirical comparison of
 * priority-queue and event-set implementations", 1986). Included from C and from C++.
 */
#ifndef BENCH_HOLD_H
#define BENCH_HOLD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest random delay, and what events of a network wait for: 64, 1,518 and 4,188 bytes at
 * 100 Gb/s with 160 bits around each, then no, 500 or 1,000 ns of cable. In picoseconds. */
#define HOLD_RANDOM_PS 2000000u
static const uint32_t hold_fixed_ps[9] = {6720,   123040,  336640,  506720, 623040,
                                          836640, 1006720, 1123040, 1336640};

struct hold {
    uint64_t pending, runs, state;
    int fixed; /* The delays are of nine kinds, not random. */
};

/* usage: PROGRAM PENDING random|fixed */
static inline struct hold hold_parse(int count, char **arguments)
{
    struct hold hold = {0, 2000000, 88172645463325252u, 0};
    hold.pending = count == 3 ? strtoull(arguments[1], NULL, 10) : 0;
    hold.fixed = count == 3 && strcmp(arguments[2], "fixed") == 0;
    if (hold.pending == 0 || (!hold.fixed && strcmp(arguments[2], "random") != 0)) {
        fprintf(stderr, "usage: %s PENDING random|fixed\n", arguments[0]);
        exit(2);
    }
    return hold;
}

static inline uint64_t hold_delay_ps(struct hold *hold)
{
    hold->state ^= hold->state << 13;
    hold->state ^= hold->state >> 7;
    hold->state ^= hold->state << 17;
    const uint64_t drawn = hold->state >> 32;
    return hold->fixed ? hold_fixed_ps[drawn * 9 >> 32] : 1 + (drawn * HOLD_RANDOM_PS >> 32);
}

static inline double hold_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
