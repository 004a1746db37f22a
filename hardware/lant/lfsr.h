/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lfsr - the 32-bit shift register with feedback that makes random numbers in hardware.
 *
 * Purpose    Repeatable random words, at the cost of a register and three gates.
 * Time       Not used: it moves when it is asked, so that idle cycles can be left out. In hardware
 *            it runs freely; the words are as good.
 * Limits     A period of 2^32 - 1. A word is never 0.
 * Source     Lant 5.3.1; LNI-81. The polynomial is our choice.
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

/* The state 16 shifts later. Bit n of the sequence is the sum of bits n-1, n-2, n-22 and n-32. The
 * latter two are known for all 16 bits, which gives `known`; what bits n-1 and n-2 of the state add
 * to the first two comes with it. The rest is a division by 1 + z + z^2, z being a shift to the
 * right: (1 + z) (1 + z^3) (1 + z^6) (1 + z^12), up to z^23. */
static inline uint32_t lant_lfsr_half(uint32_t state)
{
    const uint32_t known = (state >> 16 ^ state >> 6) & 0xffff;
    uint32_t bits = known ^ (state ^ state >> 1) << 15 ^ (state & 1) << 14;
    bits &= 0xffff;
    bits ^= bits >> 1;
    bits ^= bits >> 3;
    bits ^= bits >> 6;
    bits ^= bits >> 12;
    return state << 16 | bits;
}

/* 32 shifts. */
static inline uint32_t lant_lfsr_word(uint32_t *state)
{
    CHECK(*state != 0);
    *state = lant_lfsr_half(lant_lfsr_half(*state));
    return *state;
}

/* A random word as a number below `bound`, which is not 0. */
static inline uint32_t lant_random_below(uint32_t word, uint32_t bound)
{
    return (uint32_t)((uint64_t)word * bound >> 32);
}

#endif
