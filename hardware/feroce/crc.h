/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crc - the board's ICRC unit: a word of up to 64 bytes each cycle, by matrices over GF(2).
 *
 * Purpose    CRC-32 of a frame whose words come without a gap between them, and without one between
 *            frames.
 * Inputs     feroce_crc_take: a word in a cycle, at most. Masked octets are ones already
 *            (feroce_crc_mask).
 * Outputs    feroce_crc_offer: the ICRC, in one cycle.
 * Time       One call of feroce_crc_step is a cycle. With the document's three stages the result
 *            stands three cycles after the last word.
 * Units      Bytes; slices of 32 bits.
 * Limits     Words of FEROCE_CRC_SLICES_MAX slices; a word has any whole number of them.
 * Source     FERoCE's pages "CRC32 operation" and "CRC implementation"; rows FER-A33, FER-A34.
 *
 * The register is the reflected one: bit 31 is the coefficient of x^0, and a slice is four octets,
 * the first in the lowest bits. Feeding a slice I turns the register S into M (S + I): M is the
 * linear map of 32 shifts, + is XOR. So a word of n slices turns it into
 *
 *     M^n I0 + M^(n-1) I1 + ... + M I(n-1) + M^n S
 *
 * which for n = 2 and 16 are the document's two formulas. Only the last term has S in it. So a
 * first stage makes the other products, a second one sums them, and the third adds M^n S to the
 * sum. That product must close within one cycle, because the next word's product needs its result.
 *
 * A formula can be made wrong in ways that show what it rests on: enum feroce_crc_fault.
 */
#ifndef HARDWARE_FEROCE_CRC_H
#define HARDWARE_FEROCE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define FEROCE_CRC_SLICES_MAX 16u
#define FEROCE_CRC_TREE_MAX   8u

/* The register after the eight octets of ones in front of every packet. */
#define FEROCE_CRC_START 0xdebb20e3u

/* -- Matrices -----------------------------------------------------------------------------------*/

/* 32 by 32 bits: column[j] is what bit j becomes. */
struct feroce_matrix {
    uint32_t column[32];
};

/* The product with a vector: AND and XOR. */
static inline uint32_t feroce_matrix_apply(const struct feroce_matrix *matrix, uint32_t vector)
{
    uint32_t sum = 0;
    for (uint32_t j = 0; j < 32; j++) {
        sum ^= matrix->column[j] & -(vector >> j & 1);
    }
    return sum;
}

/* The matrix that applies `second` and then `first`. */
struct feroce_matrix feroce_matrix_product(const struct feroce_matrix *first,
                                           const struct feroce_matrix *second);

/* -- Formulas -----------------------------------------------------------------------------------*/

enum feroce_crc_fault {
    FEROCE_CRC_RIGHT,
    FEROCE_CRC_SLICE_POWER, /* The power of M at I0 is one too high. */
    FEROCE_CRC_SEED_POWER,  /* The one at S is. */
    FEROCE_CRC_SEED_EARLY,  /* The unit adds M^n S in its first stage, with the S of that cycle. */
};

struct feroce_crc_formula {
    enum feroce_crc_fault fault;
    struct feroce_matrix power[FEROCE_CRC_SLICES_MAX + 2]; /* The faults need one more. */
};

/* A word on the datapath: tkeep is `slices` times 1111. */
struct feroce_crc_word {
    uint8_t slices; /* 1..FEROCE_CRC_SLICES_MAX. */
    bool last;      /* The frame ends with it. */
    uint32_t slice[FEROCE_CRC_SLICES_MAX];
};

void feroce_crc_formula_init(struct feroce_crc_formula *formula, enum feroce_crc_fault fault);

/* `count` bytes, a multiple of 4 and not 0. */
struct feroce_crc_word feroce_crc_word_of(const uint8_t *bytes, size_t count, bool last);

/* The register after a word. It comes to be at once: FEROCE_CRC_SEED_EARLY changes nothing here. */
uint32_t feroce_crc_after(const struct feroce_crc_formula *formula, uint32_t seed,
                          const struct feroce_crc_word *word);

/* The octets of a register that leave at the frame's end, to be stored least significant octet
 * first. */
static inline uint32_t feroce_crc_finish(uint32_t crc)
{
    return ~crc;
}

/* Routers may change this octet of the packet, counted from the IP header's first one: the ICRC
 * takes it for ones. */
static inline bool feroce_crc_is_masked(size_t octet)
{
    return octet == 1 || octet == 8 || octet == 10 || octet == 11 || octet == 26 || octet == 27 ||
           octet == 32;
}

/* Puts ones there, in the first `count` bytes of a packet from its IP header on. */
void feroce_crc_mask(uint8_t *packet, size_t count);

/* -- The unit -----------------------------------------------------------------------------------*/

struct feroce_crc_config {
    uint8_t width_bytes; /* The datapath's: a multiple of 4, 4..64. */
    uint8_t tree_cycles; /* Registers in the XOR tree: 1 in the document; up to TREE_MAX. */
    enum feroce_crc_fault fault;
};

/* The mark that travels beside a word through the stages. */
struct feroce_crc_mark {
    bool there, first, last;
    uint8_t slices;
};

struct feroce_crc_counters {
    uint64_t words, frames;
};

struct feroce_crc {
    struct feroce_crc_config config;
    bool begins; /* The next word is a frame's first. */
    bool taken;  /* A word came in this cycle: */
    bool ended;  /* The register holds a frame's end, in this cycle. */
    struct feroce_crc_word word;
    struct feroce_crc_mark products_of, sum_of[FEROCE_CRC_TREE_MAX];
    uint32_t products[FEROCE_CRC_SLICES_MAX]; /* First stage. */
    uint32_t early;                           /* FEROCE_CRC_SEED_EARLY: the value that it adds to
                                               * them. */
    uint32_t sum[FEROCE_CRC_TREE_MAX];        /* Second stage. */
    uint32_t state;                           /* Third stage: S. */
    struct feroce_crc_counters counters;
    struct feroce_crc_formula formula;
};

void feroce_crc_init(struct feroce_crc *unit, const struct feroce_crc_config *config);

/* The word of this cycle; there is always room for it. */
void feroce_crc_take(struct feroce_crc *unit, const struct feroce_crc_word *word);

/* True in the one cycle in which a frame's ICRC stands. */
MUST_USE bool feroce_crc_offer(const struct feroce_crc *unit, uint32_t *icrc);

void feroce_crc_step(struct feroce_crc *unit);

/* From a frame's last word to its ICRC. */
static inline uint32_t feroce_crc_cycles(const struct feroce_crc_config *config)
{
    return 2u + config->tree_cycles;
}

#endif
