/* SPDX-License-Identifier: BSD-2-Clause
 *
 * psn - packet sequence numbers: 24 bits that wrap, as a type of their own.
 *
 * Half of the number space is "ahead" of any PSN, the other half "behind" it (IBTA 9.7.2).
 */
#ifndef TRANSPORT_COMMON_PSN_H
#define TRANSPORT_COMMON_PSN_H

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

/* Half of all PSNs: the most that may be in flight, and the packets of the largest message at the
 * smallest MTU (9.7.2). At this distance psn_distance() says that `to` is behind. */
#define PSN_HALF (1u << 23)

/* How many PSNs lie from `from` on before `to`: 0 .. 2^24-1. */
static inline uint32_t psn_count(struct psn from, struct psn to)
{
    return (to.value - from.value) & PSN_MASK;
}

/* Does `psn` lie before the end of the PSNs that begin with `first`, up to PSN_HALF of them: among
 * them, or before them? */
static inline bool psn_before_end(struct psn psn, struct psn first, uint32_t packets)
{
    const uint32_t into = psn_count(first, psn);
    return into < packets || into > PSN_HALF;
}

static inline bool psn_equal(struct psn a, struct psn b)
{
    return a.value == b.value;
}

#endif
