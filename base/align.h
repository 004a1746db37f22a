/* SPDX-License-Identifier: BSD-2-Clause
 *
 * align - sizes and positions that are whole multiples of something.
 */
#ifndef BASE_ALIGN_H
#define BASE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE_BYTES 64

/* The smallest multiple of `unit`, a power of two, that is at least `bytes`. A result beyond 64
 * bits wraps. */
static inline uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

/* Room for `bytes` in whole cache lines, so that what follows starts on one. */
static inline size_t line_aligned(size_t bytes)
{
    return round_up(bytes, CACHE_LINE_BYTES);
}

#endif
