/* SPDX-License-Identifier: BSD-2-Clause
 *
 * random - numbers by which processes differ: addresses, ports, slots, seeds.
 *
 * Purpose    The kernel's random numbers. Where the kernel gives none (a filter of system calls),
 *            numbers made of the clock and the process, which others may guess.
 * Threads    Any.
 */
#ifndef DRIVERS_RANDOM_H
#define DRIVERS_RANDOM_H

#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/prng.h"
#include "drivers/clock.h"

/* `count` is 8 at most. May be a cancellation point. */
static inline void random_draw(void *bytes, size_t count)
{
    if (getrandom(bytes, count, 0) != (ssize_t)count) {
        struct prng generator;
        prng_init(&generator, clock_now().ns ^ (uint64_t)getpid() << 32);
        const uint64_t drawn = prng_next(&generator);
        memcpy(bytes, &drawn, count);
    }
}

#endif
