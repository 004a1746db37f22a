/* SPDX-License-Identifier: BSD-2-Clause
 *
 * proof - has somebody who wants our packets received one at this address?
 *
 * Purpose    Whoever speaks for a peer may name any address as the peer's. Before data leave for
 *            it, a challenge goes there: a small packet with a number that nobody can guess. The
 *            response that repeats the number is the proof, and has to be repeated.
 * Inputs     proof_challenge when one leaves, proof_on_response, proof_renew.
 * Outputs    proof_due; proof.given: data may leave for the address.
 * Ownership  The caller owns the struct; zeroed is an address that was just named.
 * Threads    One caller at a time; no globals.
 * Time       `now` is an argument.
 * Units      Nanoseconds.
 * Limits     An address that never responded gets PROOF_TRIES_MAX challenges, and one more each
 *            time the peer names it again.
 * Source     docs/decisions/0026-several-ways.md; RFC 9000, 8.2 (path validation).
 */
#ifndef NIC_PROOF_H
#define NIC_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"

/* Without a response the next challenge follows after this long, then after pauses that double up
 * to 2^10 of it: 10 s, as ways that died are tried again (transport/block/path.h). */
#define PROOF_PAUSE_NS      UINT64_C(10000000)
#define PROOF_PAUSE_DOUBLES 10
/* The proof has to be repeated after this long in use, ... */
#define PROOF_LASTS_NS UINT64_C(1000000000)
/* ... and is over with so many challenges in vain: after 5 s. */
#define PROOF_TRIES_LOST 10
#define PROOF_TRIES_MAX  64

struct proof {
    uint64_t number;     /* In the challenges that are out. */
    struct instant next; /* No challenge leaves before. */
    uint8_t tries;       /* Challenges since the last response; stops at 255. */
    bool given;          /* Data may leave for the address. */
    bool once;           /* It was given at some time: whoever is there knew what he asked for. */
};

/* May a challenge leave? `paid`: the peer has sent as much as that costs. An address that responded
 * once is tried again without, since the way that the peer would pay by may be the one that died.
 */
static inline bool proof_due(const struct proof *proof, bool paid, struct instant now)
{
    return instant_reached(now, proof->next) && (proof->once || paid);
}

/* A challenge leaves: returns its number. `random` is the number if the last one was responded to.
 */
uint64_t proof_challenge(struct proof *proof, uint64_t random, struct instant now);

/* False: the response has not the number of a challenge that is out. */
MUST_USE bool proof_on_response(struct proof *proof, uint64_t number);

/* The peer named the address again. */
void proof_renew(struct proof *proof);

#endif
