/* SPDX-License-Identifier: BSD-2-Clause
 *
 * clock - the only place of the live world that reads a clock.
 */
#ifndef DRIVERS_CLOCK_H
#define DRIVERS_CLOCK_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#include "base/instant.h"

/* Monotonic time, by which engines count. */
static inline struct instant clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct instant){(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
}

/* Nanoseconds since the Unix epoch, for captures and the kernel's stamps. */
static inline uint64_t clock_unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The clock of a thread of this process: how long it has run on a processor. */
static inline clockid_t clock_of_thread(pthread_t thread)
{
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) == 0 ? clock : CLOCK_PROCESS_CPUTIME_ID;
}

/* How long the thread of `clock` has run; 0 if the system does not tell. False: it has ended. */
static inline bool clock_read_ran(clockid_t clock, uint64_t *ns)
{
    struct timespec ran;
    const bool told = clock_gettime(clock, &ran) == 0;
    *ns = told ? (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec : 0;
    return told || errno != EINVAL;
}

/* How often the calling thread has slept so far, that is left its processor by itself; 0 if the
 * system does not tell. */
static inline long clock_sleeps(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

#endif
