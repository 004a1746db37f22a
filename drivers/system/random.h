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

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/prng.h"
#include "drivers/system/clock.h"
#include "drivers/system/system.h"

/* Draws bytes that nobody can guess; false: the kernel gives none. No cancellation point. */
static inline bool random_secret(void *bytes, size_t count)
{
    const int cancellation = uncancelled_begin();
    const bool drawn = getrandom(bytes, count, GRND_NONBLOCK) == (ssize_t)count;
    uncancelled_end(cancellation);
    return drawn;
}

/* Draws `count` bytes, at most 8. No cancellation point. */
static inline void random_draw(void *bytes, size_t count)
{
    if (!random_secret(bytes, count)) {
        struct prng generator;
        prng_init(&generator, clock_now().ns ^ (uint64_t)getpid() << 32);
        const uint64_t drawn = prng_next(&generator);
        memcpy(bytes, &drawn, count);
    }
}

#endif
