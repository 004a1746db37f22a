/* SPDX-License-Identifier: BSD-2-Clause
 *
 * identifiers - numbers that are not used again while a packet with them may be on its way.
 *
 * Purpose    Gives one number after the other, and makes the caller wait before one is given that
 *            may still be remembered, or on its way.
 * Inputs     The time, and how long a number lives in the network.
 * Outputs    Whether the next number is free, and the number.
 * Ownership  A value; zeroed memory with `count` set is one that has given none.
 * Time       Ticks of the caller's choice.
 * Units      `count` is a power of two, and at least 2.
 * Limits     A number counts as used until its half of all numbers has been left for a lifetime, so
 *            the wait begins earlier than it must if half of the numbers are given in a lifetime.
 * Source     Our choice: else a new transfer could be taken for a copy of an old one. LNI-93.
 */
#ifndef TRANSPORT_LANT_IDENTIFIERS_H
#define TRANSPORT_LANT_IDENTIFIERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "transport/lant/ticks.h"

struct lant_identifiers {
    uint32_t count, next;
    bool left[2];        /* This half of the numbers was given before, all of it, */
    uint64_t left_at[2]; /* and its last number at this time. */
};

/* When the next number is free, if nothing is given before; 0: it is. */
static inline uint64_t lant_identifier_free_at(const struct lant_identifiers *identifiers,
                                               uint64_t lifetime)
{
    const uint32_t half = identifiers->next >= identifiers->count / 2;
    return identifiers->left[half] ? lant_time_after(identifiers->left_at[half], lifetime) : 0;
}

static inline bool lant_identifier_free(const struct lant_identifiers *identifiers, uint64_t now,
                                        uint64_t lifetime)
{
    return now >= lant_identifier_free_at(identifiers, lifetime);
}

/* The next one, which is free. */
static inline uint32_t lant_identifier_take(struct lant_identifiers *identifiers, uint64_t now)
{
    const uint32_t taken = identifiers->next;
    const uint32_t half = taken >= identifiers->count / 2;
    CHECK(identifiers->count >= 2 && (identifiers->count & (identifiers->count - 1)) == 0);
    identifiers->next = (taken + 1) & (identifiers->count - 1);
    if ((identifiers->next & (identifiers->count / 2 - 1)) == 0) {
        identifiers->left[half] = true;
        identifiers->left_at[half] = now;
    }
    return taken;
}

/* The operation with this number sends no more packets. If it was the last one of its half, the
 * half rests from now on. Without this call the half rests from the time when the number was
 * given. */
static inline void lant_identifier_over(struct lant_identifiers *identifiers, uint32_t number,
                                        uint64_t now)
{
    if (((number + 1) & (identifiers->count / 2 - 1)) == 0) {
        identifiers->left_at[number >= identifiers->count / 2] = now;
    }
}

#endif
