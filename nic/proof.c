/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/proof.h"

static uint64_t pause_ns(const struct proof *proof)
{
    return PROOF_PAUSE_NS << (proof->tries < PROOF_PAUSE_DOUBLES ? proof->tries
                                                                 : PROOF_PAUSE_DOUBLES);
}

uint64_t proof_challenge(struct proof *proof, uint64_t random, struct instant now)
{
    if (proof->tries == 0) {
        proof->number = random;
    }
    proof->next = instant_after(now, pause_ns(proof));
    proof->tries = proof->tries == UINT8_MAX ? UINT8_MAX : (uint8_t)(proof->tries + 1);
    proof->given = proof->given && proof->tries < PROOF_TRIES_LOST;
    if (!proof->once && proof->tries >= PROOF_TRIES_MAX) {
        proof->next = INSTANT_NEVER;
    }
    return proof->number;
}

bool proof_on_response(struct proof *proof, uint64_t number)
{
    if (proof->tries == 0 || number != proof->number) {
        return false;
    }
    const bool exhausted = proof->next.ns == UINT64_MAX;
    proof->next = exhausted ? (struct instant){0} : instant_after(proof->next, PROOF_LASTS_NS);
    proof->tries = 0;
    proof->given = true;
    proof->once = true;
    return true;
}

void proof_renew(struct proof *proof)
{
    if (proof->next.ns == UINT64_MAX) {
        proof->next = (struct instant){0};
    }
}
