/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/feroce/crc.h"

#include <string.h>

#include "base/bytes.h"

#define POLYNOMIAL 0xedb88320u /* 0x04c11db7, reflected; x^32 left out. */

/* -- Matrices -----------------------------------------------------------------------------------*/

static struct feroce_matrix feroce_matrix_identity(void)
{
    struct feroce_matrix matrix;
    for (uint32_t j = 0; j < 32; j++) {
        matrix.column[j] = UINT32_C(1) << j;
    }
    return matrix;
}

/* M: 32 shifts of the register. */
static struct feroce_matrix feroce_matrix_step(void)
{
    struct feroce_matrix matrix = feroce_matrix_identity();
    for (uint32_t j = 0; j < 32; j++) {
        for (uint32_t shift = 0; shift < 32; shift++) {
            const uint32_t column = matrix.column[j];
            matrix.column[j] = column >> 1 ^ (POLYNOMIAL & -(column & 1));
        }
    }
    return matrix;
}

struct feroce_matrix feroce_matrix_product(const struct feroce_matrix *first,
                                           const struct feroce_matrix *second)
{
    struct feroce_matrix product;
    for (uint32_t j = 0; j < 32; j++) {
        product.column[j] = feroce_matrix_apply(first, second->column[j]);
    }
    return product;
}

/* -- Formulas -----------------------------------------------------------------------------------*/

void feroce_crc_formula_init(struct feroce_crc_formula *formula, enum feroce_crc_fault fault)
{
    const struct feroce_matrix step = feroce_matrix_step();
    formula->fault = fault;
    formula->power[0] = feroce_matrix_identity();
    for (uint32_t i = 1; i < COUNT_OF(formula->power); i++) {
        formula->power[i] = feroce_matrix_product(&step, &formula->power[i - 1]);
    }
}

struct feroce_crc_word feroce_crc_word_of(const uint8_t *bytes, size_t count, bool last)
{
    CHECK(count > 0 && count % 4 == 0 && count <= 4 * FEROCE_CRC_SLICES_MAX);
    struct feroce_crc_word word = {.slices = (uint8_t)(count / 4), .last = last};
    for (uint32_t i = 0; i < word.slices; i++) {
        word.slice[i] = load_le32(bytes + 4 * i);
    }
    return word;
}

/* M^(n-i) Ii. */
static uint32_t slice_product(const struct feroce_crc_formula *formula,
                              const struct feroce_crc_word *word, uint32_t i)
{
    const uint32_t wrong = i == 0 && formula->fault == FEROCE_CRC_SLICE_POWER ? 1 : 0;
    return feroce_matrix_apply(&formula->power[word->slices - i + wrong], word->slice[i]);
}

/* M^n S. */
static uint32_t seed_product(const struct feroce_crc_formula *formula, uint32_t slices,
                             uint32_t seed)
{
    const uint32_t wrong = formula->fault == FEROCE_CRC_SEED_POWER ? 1 : 0;
    return feroce_matrix_apply(&formula->power[slices + wrong], seed);
}

uint32_t feroce_crc_after(const struct feroce_crc_formula *formula, uint32_t seed,
                          const struct feroce_crc_word *word)
{
    uint32_t sum = seed_product(formula, word->slices, seed);
    for (uint32_t i = 0; i < word->slices; i++) {
        sum ^= slice_product(formula, word, i);
    }
    return sum;
}

void feroce_crc_mask(uint8_t *packet, size_t count)
{
    for (size_t octet = 0; octet < count; octet++) {
        if (feroce_crc_is_masked(octet)) {
            packet[octet] = 0xff;
        }
    }
}

/* -- The unit -----------------------------------------------------------------------------------*/

void feroce_crc_init(struct feroce_crc *unit, const struct feroce_crc_config *config)
{
    CHECK(config->width_bytes > 0 && config->width_bytes % 4 == 0 &&
          config->width_bytes <= 4 * FEROCE_CRC_SLICES_MAX);
    CHECK(config->tree_cycles >= 1 && config->tree_cycles <= FEROCE_CRC_TREE_MAX);
    memset(unit, 0, sizeof(*unit));
    unit->config = *config;
    unit->begins = true;
    feroce_crc_formula_init(&unit->formula, config->fault);
}

static void check_mark(const struct feroce_crc *unit, const struct feroce_crc_mark *mark)
{
    CHECK(!mark->there || (mark->slices >= 1 && mark->slices <= unit->config.width_bytes / 4));
}

static void feroce_crc_check(const struct feroce_crc *unit)
{
    check_mark(unit, &unit->products_of);
    for (uint32_t i = 0; i < FEROCE_CRC_TREE_MAX; i++) {
        check_mark(unit, &unit->sum_of[i]);
        CHECK(i < unit->config.tree_cycles || !unit->sum_of[i].there);
    }
    CHECK(!unit->taken || unit->word.slices >= 1);
    CHECK(unit->counters.frames <= unit->counters.words);
}

void feroce_crc_take(struct feroce_crc *unit, const struct feroce_crc_word *word)
{
    CHECK(!unit->taken);
    CHECK(word->slices >= 1 && word->slices <= unit->config.width_bytes / 4);
    unit->taken = true;
    unit->word = *word;
}

bool feroce_crc_offer(const struct feroce_crc *unit, uint32_t *icrc)
{
    if (unit->ended) {
        *icrc = feroce_crc_finish(unit->state);
    }
    return unit->ended;
}

/* First stage: the products of the slices. `state` is the register before this edge. */
static void make_products(struct feroce_crc *unit, uint32_t state)
{
    const struct feroce_crc_word *word = &unit->word;
    unit->products_of = (struct feroce_crc_mark){.there = false};
    if (!unit->taken) {
        return;
    }
    unit->products_of = (struct feroce_crc_mark){
        .there = true, .first = unit->begins, .last = word->last, .slices = word->slices};
    for (uint32_t i = 0; i < word->slices; i++) {
        unit->products[i] = slice_product(&unit->formula, word, i);
    }
    unit->early = 0;
    if (unit->config.fault == FEROCE_CRC_SEED_EARLY) {
        const uint32_t seed = unit->begins ? FEROCE_CRC_START : state;
        unit->early = seed_product(&unit->formula, word->slices, seed);
    }
    unit->begins = word->last;
    unit->taken = false;
}

/* Second stage: their sum. With more registers than one it is spread over as many cycles, which is
 * the same as to make it at once and to hand it on. */
static void make_sum(struct feroce_crc *unit)
{
    for (uint32_t i = unit->config.tree_cycles - 1u; i > 0; i--) {
        unit->sum[i] = unit->sum[i - 1];
        unit->sum_of[i] = unit->sum_of[i - 1];
    }
    unit->sum_of[0] = unit->products_of;
    unit->sum[0] = unit->early;
    for (uint32_t i = 0; i < unit->products_of.slices; i++) {
        unit->sum[0] ^= unit->products[i];
    }
}

/* Third stage: the product of the seed, which is the register itself unless a frame begins. */
static void close_word(struct feroce_crc *unit)
{
    const uint32_t at = unit->config.tree_cycles - 1u;
    const struct feroce_crc_mark *mark = &unit->sum_of[at];
    unit->ended = mark->there && mark->last;
    if (!mark->there) {
        return;
    }
    const uint32_t seed = mark->first ? FEROCE_CRC_START : unit->state;
    unit->state = unit->sum[at];
    if (unit->config.fault != FEROCE_CRC_SEED_EARLY) {
        unit->state ^= seed_product(&unit->formula, mark->slices, seed);
    }
    unit->counters.words++;
    unit->counters.frames += mark->last;
}

void feroce_crc_step(struct feroce_crc *unit)
{
    INVARIANTS(feroce_crc_check(unit));
    const uint32_t state = unit->state;
    close_word(unit);
    make_sum(unit);
    make_products(unit, state);
    INVARIANTS(feroce_crc_check(unit));
}
