/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timers - one deadline for each transaction identifier, the earliest first.
 *
 * Purpose    The firmware never looks through 1,024 transactions for one that is late.
 * Ownership  The caller owns the struct; zeroed memory has no timers.
 * Limits     EXANEST_TIDS timers; at most 10 exchanges for a change (a binary heap).
 * Source     Our choice: the document says that a missing response is a timeout (4.1), not how.
 */
#ifndef HARDWARE_EXANEST_TIMERS_H
#define HARDWARE_EXANEST_TIMERS_H

#include "wire/exanest.h"

struct exanest_timers {
    uint32_t count;
    uint16_t heap[EXANEST_TIDS];  /* TIDs; the parent of i is (i - 1) / 2, and not later. */
    uint16_t place[EXANEST_TIDS]; /* By TID: 1 + its index in the heap; 0: no timer. */
    uint64_t deadline[EXANEST_TIDS];
};

/* Sets the timer of `tid`, or moves it. */
void exanest_timers_set(struct exanest_timers *timers, uint32_t tid, uint64_t deadline);
/* There need not be one. */
void exanest_timers_cancel(struct exanest_timers *timers, uint32_t tid);

static inline bool exanest_timers_running(const struct exanest_timers *timers, uint32_t tid)
{
    return timers->place[tid] != 0;
}

/* The earliest deadline; UINT64_MAX: there is no timer. */
static inline uint64_t exanest_timers_deadline(const struct exanest_timers *timers)
{
    return timers->count == 0 ? UINT64_MAX : timers->deadline[timers->heap[0]];
}

/* The owner of the earliest timer; there must be one. */
static inline uint32_t exanest_timers_first(const struct exanest_timers *timers)
{
    return timers->heap[0];
}

/* The order of the whole heap. Slow: for tests. */
void exanest_timers_check(const struct exanest_timers *timers);

#endif
