/* SPDX-License-Identifier: BSD-2-Clause
 *
 * odd - a device that does all that the documents allow and that devices seldom do (`nonic run
 * --odd`): which oddities are wanted, and what is drawn for them.
 *
 * Purpose    A program that relies on more than the documents promise breaks here, and not at a
 *            customer's.
 * Inputs     NONIC_ODD: a seed, and words for oddities, or -WORD for all but these.
 * Outputs    The same decisions for the same calls in the same order, for each word by itself.
 * Threads    Any.
 * Source     docs/odd.md has the clauses, docs/decisions/0059 what was not allowed.
 */
#ifndef DRIVERS_ODD_H
#define DRIVERS_ODD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/nic.h"

#define ODD_WORDS(WORD)                                                                            \
    WORD(FIELDS, "fields")   /* Undefined fields of completions have any value. */                 \
    WORD(EVENTS, "events")   /* Events come for nothing. */                                        \
    WORD(SIZES, "sizes")     /* Objects are larger than was asked for. */                          \
    WORD(LATE, "late")       /* Completions come later, where no event tells of them. */           \
    WORD(PIECES, "pieces")   /* Data land in pieces, in any order. */                              \
    WORD(ORDER, "order")     /* Receives of a shared queue, completions of two queues. */          \
    WORD(GRH, "grh")         /* The first bytes of a GRH over IPv4 have any value. */              \
    WORD(MTU, "mtu")         /* The port's MTU is a small one. */                                  \
    WORD(SMALL, "small")     /* So are the device's limits. */                                     \
    WORD(KEYS, "keys")       /* An lkey is no rkey. */                                             \
    WORD(ATOMICS, "atomics") /* Atomics are not atomic with the processor's. */                    \
    WORD(CHANGES, "changes") /* The table of GIDs changes, or a cable is loose for a moment. */

#define ODD_ENUM(name, text) ODD_##name,
enum odd_word {
    ODD_WORDS(ODD_ENUM) ODD_COUNT
};
#undef ODD_ENUM

/* A bit for each that is wanted. They do not change once there is a device. */
extern uint32_t odd_wanted;

static ALWAYS_INLINE bool is_odd(enum odd_word word)
{
    return UNLIKELY((odd_wanted & 1u << word) != 0);
}

/* Before the first object is made. NULL: nothing is odd. False: `error` says what is wrong with the
 * text, and nothing has changed. */
bool odd_begin(const char *text, char *error, size_t error_bytes);

/* A number below `bound`. */
uint32_t odd_draw(enum odd_word word, uint32_t bound);

/* Makes the move: data in pieces, now and then slowly; an atomic in two steps. */
MUST_USE enum nic_move_result odd_move(struct nic_move *move);

#endif
