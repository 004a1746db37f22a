/* SPDX-License-Identifier: BSD-2-Clause
 *
 * psn - packet sequence numbers: 24 bits that wrap, as a type of their own.
 *
 * Half of the number space is "ahead" of any PSN, the other half "behind" it (IBTA 9.7.2).
 */
#ifndef TRANSPORT_IBTA_PSN_H
#define TRANSPORT_IBTA_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

struct psn {
    uint32_t value;
};

static inline struct psn psn_of(uint32_t value)
{
    return (struct psn){value & PSN_MASK};
}

static inline struct psn psn_after(struct psn psn, uint32_t packets)
{
    return (struct psn){(psn.value + packets) & PSN_MASK};
}

static inline struct psn psn_before(struct psn psn, uint32_t packets)
{
    return (struct psn){(psn.value - packets) & PSN_MASK};
}

/* How far `to` is ahead of `from`: -2^23 .. 2^23-1. */
static inline int32_t psn_distance(struct psn from, struct psn to)
{
    return (int32_t)((to.value - from.value) << 8) >> 8;
}

static inline bool psn_equal(struct psn a, struct psn b)
{
    return a.value == b.value;
}

#endif
