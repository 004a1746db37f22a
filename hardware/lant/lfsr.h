/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lfsr - the 32-bit shift register with feedback that makes random numbers in hardware.
 *
 * Purpose    Repeatable random words, at the cost of a register and three gates.
 * Inputs     A seed other than 0.
 * Outputs    Bits and words.
 * Ownership  A value: the state itself.
 * Threads    One caller at a time.
 * Time       Not used: it moves when it is asked, so that idle cycles can be left out. In hardware
 *            it runs freely; the words are as good.
 * Units      Bits.
 * Limits     A period of 2^32 - 1. A word is never 0.
 * Source     Lant 5.3.1; specification 2.15, LNI-81. The polynomial is our choice.
 *
 * x^32 + x^22 + x^2 + x + 1 is primitive: all states but 0 are passed. A word is what the register
 * holds after 32 shifts, which share no bit with the word before. Because 32 has no divisor in
 * common with 2^32 - 1, words have the same period.
 */
#ifndef HARDWARE_LANT_LFSR_H
#define HARDWARE_LANT_LFSR_H

#include <stdint.h>

#include "base/check.h"

static inline uint32_t lant_lfsr_shift(uint32_t state)
{
    const uint32_t in = (state >> 31 ^ state >> 21 ^ state >> 1 ^ state) & 1;
    return state << 1 | in;
}

static inline uint32_t lant_lfsr_word(uint32_t *state)
{
    CHECK(*state != 0);
    for (uint32_t i = 0; i < 32; i++) {
        *state = lant_lfsr_shift(*state);
    }
    return *state;
}

/* A random word as a number below `bound`, which is not 0. */
static inline uint32_t lant_random_below(uint32_t word, uint32_t bound)
{
    return (uint32_t)((uint64_t)word * bound >> 32);
}

#endif
