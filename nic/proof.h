/* SPDX-License-Identifier: BSD-2-Clause
 *
 * proof - has somebody who wants our packets received one at this address?
 *
 * Purpose    A peer may name any address as its own, also that of a stranger. Before data leaves
 *            for the address, a challenge goes there: a small packet with a number that nobody can
 *            guess. The response with the same number is the proof, and has to be given again from
 *            time to time.
 * Inputs     proof_challenge when one leaves, proof_on_response, proof_renew.
 * Outputs    proof_due; proof.given: data may leave for the address.
 * Ownership  The caller owns the struct; zeroed is an address that was just named.
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
 * to 2^10 of it: 10 s, as routes that died are tried again (transport/common/path.h). */
#define PROOF_PAUSE_NS      UINT64_C(10000000)
#define PROOF_PAUSE_DOUBLES 10
/* The proof has to be repeated after this long in use, ... */
#define PROOF_LASTS_NS UINT64_C(1000000000)
/* ... and ends when this number of challenges in a row got no response: after 5 s. */
#define PROOF_TRIES_LOST 10
#define PROOF_TRIES_MAX  64

struct proof {
    uint64_t number;     /* In the challenges that are out. */
    struct instant next; /* No challenge leaves before. */
    uint8_t tries;       /* Challenges since the last response; stops at 255. */
    bool given;          /* Data may leave for the address. */
    bool once;           /* It was given at some time: the host there wanted our packets. */
};

/* May a challenge leave? `paid`: the peer has sent enough bytes to pay for it. An address that
 * responded once gets challenges without payment, since the route by which the peer would pay may
 * be the one that died. */
static inline bool proof_due(const struct proof *proof, bool paid, struct instant now)
{
    return instant_reached(now, proof->next) && (proof->once || paid);
}

/* A challenge leaves: returns its number. `random` is the number if the last one was responded to.
 */
uint64_t proof_challenge(struct proof *proof, uint64_t random, struct instant now);

/* False: no challenge with the response's number is out. */
MUST_USE bool proof_on_response(struct proof *proof, uint64_t number);

/* The peer named the address again. */
void proof_renew(struct proof *proof);

#endif
