/* SPDX-License-Identifier: BSD-2-Clause
 *
 * clock - the only place of the live world that reads a clock.
 */
#ifndef DRIVERS_CLOCK_H
#define DRIVERS_CLOCK_H

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

#endif
