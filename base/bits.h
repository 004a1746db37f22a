/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bits - sizes that are powers of two.
 */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdint.h>

/* The smallest power of two that is at least `least`; 1 for 0. Wide enough never to wrap. */
static inline uint64_t power_of_two(uint32_t least)
{
    return least <= 1 ? 1 : (uint64_t)1 << (32 - __builtin_clz(least - 1));
}

#endif
