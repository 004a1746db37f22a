/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A row knows which packets of its operation are taken and which are in memory; it is
 *         complete when all are; rows of different operations are never mixed up.
 * Method  Masks by hand, for every number of packets; then calls by chance, held against a plain
 *         list of operations with a byte for each packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/registration.h"

static struct lant_registrations table;

static uint32_t add(uint64_t now, uint32_t source, uint32_t operation, uint64_t base,
                    uint32_t packets)
{
    const struct lant_registering registering = {
        .source = source, .operation = operation, .base = base, .packets = (uint16_t)packets};
    const uint32_t row = lant_registrations_add(&table, now, &registering);
    lant_registrations_check(&table);
    return row;
}

/* LNI-55: W = 32 and 8 packets, and 1, and W. */
static void test_masks_of_the_text(void **state)
{
    (void)state;
    lant_registrations_init(&table, 4, 32);
    uint32_t row = add(0, 1, 1, 0, 8);
    lant_registrations_take(&table, row, 0, 512);
    assert_int_equal(lant_registrations_taken(&table, row, 0) & 0xffffffff, 0xffffff01);
    row = add(0, 1, 2, 0, 1);
    lant_registrations_take(&table, row, 0, 17);
    assert_true(lant_registrations_taken(&table, row, 0) == UINT64_MAX);
    assert_true(lant_registrations_written(&table, row, 0));
    assert_int_equal(lant_row_bytes(lant_registrations_row(&table, row)), 17);
    row = add(0, 1, 3, 0, 32);
    lant_registrations_take(&table, row, 0, 512);
    assert_int_equal(lant_registrations_taken(&table, row, 0) & 0xffffffff, 1);
}

/* LNI-55: mask = n >= W ? 0 : ~0 << n, then | 1, bit by bit for every W and n. */
static void test_masks(void **state)
{
    (void)state;
    static const uint32_t widths[] = {1, 5, 32, 63, 64, 65, 128, 200, 256, 512, 1024};
    for (uint32_t i = 0; i < COUNT_OF(widths); i++) {
        for (uint32_t n = 1; n <= widths[i]; n++) {
            lant_registrations_init(&table, 1, widths[i]);
            const uint32_t row = add(0, 1, 1, 0, n);
            lant_registrations_take(&table, row, 0, 512);
            for (uint32_t bit = 0; bit < widths[i]; bit++) {
                const bool one = lant_registrations_taken(&table, row, bit / 64) >> bit % 64 & 1;
                assert_int_equal(one, bit == 0 || bit >= n);
            }
            for (uint32_t packet = 1; packet < n; packet++) {
                lant_registrations_take(&table, row, packet, 512);
            }
            for (uint32_t packet = n; packet > 0; packet--) {
                assert_int_equal(lant_registrations_written(&table, row, packet - 1), packet == 1);
            }
            assert_int_equal(lant_row_bytes(lant_registrations_row(&table, row)), 512 * n);
        }
    }
}

/* LNI-63: one range, two sources; and one source, two operations, or one with two bases. */
static void test_who_is_who(void **state)
{
    (void)state;
    lant_registrations_init(&table, 8, 128);
    const uint32_t a = add(0, 1, 5, 0x1000, 4), b = add(0, 2, 5, 0x1000, 4);
    const uint32_t c = add(0, 1, 6, 0x1000, 4), d = add(0, 1, 5, 0x8000, 1);
    assert_int_equal(lant_registrations_find(&table, 1, 5, 0x1000), a);
    assert_int_equal(lant_registrations_find(&table, 2, 5, 0x17ff), b);
    assert_int_equal(lant_registrations_find(&table, 1, 6, 0x1008), c);
    assert_int_equal(lant_registrations_find(&table, 1, 5, 0x8000), d);
    assert_int_equal(lant_registrations_find(&table, 1, 5, 0x1800), LANT_ROW_NONE);
    assert_int_equal(lant_registrations_find(&table, 1, 5, 0xff8), LANT_ROW_NONE);
    assert_int_equal(lant_registrations_find(&table, 3, 5, 0x1000), LANT_ROW_NONE);
    assert_int_equal(lant_registrations_find_base(&table, 1, 5, 0x1000), a);
    assert_int_equal(lant_registrations_find_base(&table, 1, 5, 0x1200), LANT_ROW_NONE);
    lant_registrations_remove(&table, a);
    assert_int_equal(lant_registrations_find(&table, 1, 5, 0x1000), LANT_ROW_NONE);
    assert_int_equal(lant_registrations_find(&table, 1, 5, 0x8000), d);
    lant_registrations_check(&table);
}

/* A packet that memory refused has not come. */
static void test_give_back(void **state)
{
    (void)state;
    lant_registrations_init(&table, 1, 64);
    const uint32_t row = add(0, 1, 5, 0, 2);
    lant_registrations_take(&table, row, 1, 8);
    assert_int_equal(lant_registrations_mark(&table, row, 1), LANT_MARK_TAKEN);
    lant_registrations_give_back(&table, row, 1);
    assert_int_equal(lant_registrations_mark(&table, row, 1), LANT_MARK_NEW);
    lant_registrations_take(&table, row, 1, 16);
    lant_registrations_take(&table, row, 0, 512);
    assert_false(lant_registrations_written(&table, row, 1));
    assert_int_equal(lant_registrations_mark(&table, row, 1), LANT_MARK_WRITTEN);
    assert_true(lant_registrations_written(&table, row, 0));
    assert_int_equal(lant_row_bytes(lant_registrations_row(&table, row)), 528);
}

/* The largest table: 1,024 rows of 1,024 bits, all in use. */
static void test_largest(void **state)
{
    (void)state;
    lant_registrations_init(&table, LANT_REGISTRATIONS_MAX, LANT_MASK_BITS_MAX);
    for (uint32_t i = 0; i < LANT_REGISTRATIONS_MAX; i++) {
        const struct lant_registering registering = {
            .source = i % 7, .operation = i, .base = i * 8, .packets = (uint16_t)(i + 1)};
        assert_false(lant_registrations_full(&table));
        const uint32_t row = lant_registrations_add(&table, i, &registering);
        lant_registrations_take(&table, row, i, 512);
    }
    assert_true(lant_registrations_full(&table));
    for (uint32_t i = 0; i < LANT_REGISTRATIONS_MAX; i++) {
        const uint32_t row = lant_registrations_find(&table, i % 7, i, i * 8);
        assert_int_not_equal(row, LANT_ROW_NONE);
        for (uint32_t packet = 0; packet <= i; packet++) {
            assert_int_equal(lant_registrations_mark(&table, row, packet),
                             packet == i ? LANT_MARK_TAKEN : LANT_MARK_NEW);
        }
    }
    lant_registrations_check(&table);
}

/* -- By chance ----------------------------------------------------------------------------------*/

#define MODEL_MAX 24u

struct model_row {
    bool used;
    uint32_t row, source, operation, packets;
    uint64_t base, used_at;
    uint8_t marks[200]; /* enum lant_mark. */
};

static struct model_row model[MODEL_MAX];
static uint64_t now;

static bool model_complete(const struct model_row *at)
{
    for (uint32_t i = 0; i < at->packets; i++) {
        if (at->marks[i] != LANT_MARK_WRITTEN) {
            return false;
        }
    }
    return true;
}

static bool model_writing(const struct model_row *at)
{
    for (uint32_t i = 0; i < at->packets; i++) {
        if (at->marks[i] == LANT_MARK_TAKEN) {
            return true;
        }
    }
    return false;
}

static uint32_t model_find(uint32_t source, uint32_t operation, uint64_t address)
{
    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        const struct model_row *at = &model[i];
        if (at->used && !model_complete(at) && at->source == source && at->operation == operation &&
            address >= at->base && address < at->base + at->packets * 512) {
            return at->row;
        }
    }
    return LANT_ROW_NONE;
}

static void add_one(struct prng *prng, struct model_row *at)
{
    *at = (struct model_row){.source = (uint32_t)prng_below(prng, 3),
                             .operation = (uint32_t)prng_below(prng, 4),
                             .base = prng_below(prng, 3) * 200 * 512,
                             .packets = 1 + (uint32_t)prng_below(prng, table.mask_bits),
                             .used_at = now};
    if (lant_registrations_full(&table) ||
        model_find(at->source, at->operation, at->base) != LANT_ROW_NONE) {
        return;
    }
    at->row = add(now, at->source, at->operation, at->base, at->packets);
    at->used = true;
}

/* One packet of a row, by chance: taken, written, or given back. */
static void mark_one(struct prng *prng, struct model_row *at)
{
    const uint32_t packet = (uint32_t)prng_below(prng, at->packets);
    assert_int_equal(lant_registrations_mark(&table, at->row, packet), at->marks[packet]);
    if (at->marks[packet] == LANT_MARK_NEW) {
        lant_registrations_take(&table, at->row, packet, 512);
        at->marks[packet] = LANT_MARK_TAKEN;
    } else if (at->marks[packet] == LANT_MARK_TAKEN) {
        if (prng_chance(prng, 200000)) {
            lant_registrations_give_back(&table, at->row, packet);
            at->marks[packet] = LANT_MARK_NEW;
        } else {
            at->marks[packet] = LANT_MARK_WRITTEN;
            assert_int_equal(lant_registrations_written(&table, at->row, packet),
                             model_complete(at));
        }
    }
}

static void check_oldest(void)
{
    const struct model_row *oldest = NULL;
    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        if (model[i].used && !model_complete(&model[i]) &&
            (oldest == NULL || model[i].used_at < oldest->used_at)) {
            oldest = &model[i];
        }
    }
    assert_int_equal(lant_registrations_oldest(&table),
                     oldest == NULL ? LANT_ROW_NONE : oldest->row);
}

static void step_one(struct prng *prng, uint32_t *complete)
{
    struct model_row *at = &model[prng_below(prng, MODEL_MAX)];
    now++;
    if (!at->used) {
        add_one(prng, at);
    } else if (prng_chance(prng, 20000) || (model_complete(at) && prng_chance(prng, 500000))) {
        if (!model_writing(at)) {
            *complete += model_complete(at);
            lant_registrations_remove(&table, at->row);
            at->used = false;
        }
    } else if (prng_chance(prng, 200000) && !model_complete(at)) {
        lant_registrations_touch(&table, now, at->row);
        at->used_at = now;
    } else {
        mark_one(prng, at);
    }
}

static void test_random(void **state)
{
    (void)state;
    uint32_t complete = 0, full = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        now = 0;
        for (uint32_t i = 0; i < MODEL_MAX; i++) {
            model[i].used = false;
        }
        lant_registrations_init(&table, 1 + (uint32_t)prng_below(&prng, MODEL_MAX + 8),
                                seed % 3 == 0 ? 200 : 1 + (uint32_t)prng_below(&prng, 12));
        for (uint32_t step = 0; step < 4000; step++) {
            step_one(&prng, &complete);
            full += lant_registrations_full(&table);
            check_oldest();
            const uint32_t source = (uint32_t)prng_below(&prng, 3);
            const uint32_t operation = (uint32_t)prng_below(&prng, 4);
            const uint64_t address = prng_below(&prng, 700 * 512);
            assert_int_equal(lant_registrations_find(&table, source, operation, address),
                             model_find(source, operation, address));
            lant_registrations_check(&table);
        }
    }
    assert_true(complete > 500 && full > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_of_the_text), cmocka_unit_test(test_masks),
        cmocka_unit_test(test_who_is_who),        cmocka_unit_test(test_give_back),
        cmocka_unit_test(test_largest),           cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
