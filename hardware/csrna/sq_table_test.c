/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The table says where a queue pair's next WQE lies, without its context; follows when the
 *         send queue moves; and refuses one queue pair too many. Behaviours CSR-28 (the table's
 *         part), CSR-32, CSR-33.
 * Method  Random adding, moving, advancing and removing beside an array; the table of 131,072.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/csrna/sq_table.h"

enum {
    CAPACITY = 50,
    WQES = 128
};

struct model {
    bool used[CAPACITY];
    uint64_t address[CAPACITY], read[CAPACITY];
    uint32_t count;
};

static uint64_t some_address(struct prng *prng)
{
    return prng_next(prng) / SQ_ALIGN_BYTES * SQ_ALIGN_BYTES;
}

static void add(struct sq_table *table, struct model *model, struct prng *prng)
{
    uint32_t slot = UINT32_MAX;
    const uint64_t address = some_address(prng);
    const enum status status = sq_table_add(table, address, &slot);
    assert_int_equal(status, model->count == CAPACITY ? STATUS_FULL : STATUS_OK);
    if (status == STATUS_OK) {
        assert_true(slot < CAPACITY && !model->used[slot]);
        model->used[slot] = true;
        model->address[slot] = address;
        model->read[slot] = 0;
        model->count++;
    }
}

static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    struct sq_table table;
    struct model model = {.count = 0};
    prng_init(&prng, 1);
    void *memory = malloc(sq_table_bytes(CAPACITY));
    sq_table_init(&table, CAPACITY, WQES, memory);
    for (int step = 0; step < 200000; step++) {
        const uint32_t slot = (uint32_t)prng_below(&prng, CAPACITY);
        const uint64_t draw = prng_below(&prng, 16);
        if (draw < 2) {
            add(&table, &model, &prng);
        } else if (!model.used[slot]) {
            continue;
        } else if (draw == 2) {
            sq_table_remove(&table, slot);
            model.used[slot] = false;
            model.count--;
        } else if (draw == 3) { /* CSR-32 */
            model.address[slot] = some_address(&prng);
            assert_int_equal(sq_table_move(&table, slot, model.address[slot]), STATUS_OK);
        } else {
            const uint64_t offset = model.read[slot] % WQES;
            assert_true(sq_table_next_address(&table, slot) ==
                        model.address[slot] + offset * SQ_WQE_BYTES);
            assert_int_equal(sq_table_contiguous(&table, slot), WQES - offset);
            const uint32_t wqes = 1 + (uint32_t)prng_below(&prng, 10);
            sq_table_advance(&table, slot, wqes);
            model.read[slot] += wqes;
        }
    }
    free(memory);
}

/* CSR-28: all that a read of WQEs needs: the table, a slot and a count. */
static void test_wqe_read(void **state)
{
    (void)state;
    struct sq_table table;
    uint8_t memory[2 * sizeof(struct sq_entry)];
    uint32_t slot;
    sq_table_init(&table, 2, 65536, memory);
    assert_int_equal(sq_table_add(&table, 0x10000040, &slot), STATUS_OK);
    assert_true(sq_table_next_address(&table, slot) == 0x10000040);
    sq_table_advance(&table, slot, 65535);
    assert_true(sq_table_next_address(&table, slot) == 0x10000040 + 65535 * 32);
    assert_int_equal(sq_table_contiguous(&table, slot), 1);
    sq_table_advance(&table, slot, 1);
    assert_true(sq_table_next_address(&table, slot) == 0x10000040);
}

/* CSR-33: 131,072 queue pairs and not one more; and one more when one has gone. */
static void test_full(void **state)
{
    (void)state;
    struct sq_table table;
    uint32_t slot;
    assert_int_equal(sq_table_bytes(SQ_TABLE_MAX), 131072 * 10);
    void *memory = malloc(sq_table_bytes(SQ_TABLE_MAX));
    sq_table_init(&table, SQ_TABLE_MAX, 64, memory);
    for (uint64_t i = 0; i < 131072; i++) {
        assert_int_equal(sq_table_add(&table, i * 4096, &slot), STATUS_OK);
        assert_int_equal(slot, i);
    }
    assert_int_equal(sq_table_add(&table, 0, &slot), STATUS_FULL);
    sq_table_remove(&table, 4711);
    assert_int_equal(sq_table_add(&table, 1, &slot), STATUS_INVALID);
    assert_int_equal(sq_table_move(&table, 0, 32), STATUS_INVALID);
    assert_int_equal(sq_table_add(&table, 64, &slot), STATUS_OK);
    assert_int_equal(slot, 4711);
    assert_int_equal(sq_table_add(&table, 0, &slot), STATUS_FULL);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_wqe_read),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
