/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fields - groups of bits in the 64-bit words of the machines' packets.
 */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* A field of a 64-bit word: `bits` of them, fewer than 64, from bit `at` on. */
static inline uint64_t field(uint64_t word, uint32_t at, uint32_t bits)
{
    return word >> at & ((UINT64_C(1) << bits) - 1);
}

/* `value` as it stands in the word; a value that is too wide for its field would change its
 * neighbour. */
static inline uint64_t placed(uint64_t value, uint32_t at, uint32_t bits)
{
    CHECK(value >> bits == 0);
    return value << at;
}

static inline uint64_t flag(bool value, uint32_t at)
{
    return (uint64_t)value << at;
}

#endif
