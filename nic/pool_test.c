/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal: no memory is given to two owners, all of it can be taken, and memory that nobody takes is
 *       not touched.
 * Shape: pieces of all orders are taken and given back at random; each is filled with its owner's
 *        mark.
 */
#include "nic/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define UNIT  40u
#define UNITS 1024u

static uint64_t memory[UNIT * UNITS / sizeof(uint64_t)];

static struct pool begin(size_t units)
{
    struct pool pool;
    memset(memory, 0x11, sizeof(memory));
    pool_init(&pool, UNIT, memory, units * UNIT);
    return pool;
}

static bool is_filled(const void *piece, uint8_t mark, size_t bytes)
{
    const uint8_t *at = piece;
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != mark) {
            return false;
        }
    }
    return true;
}

static void test_all_of_it_is_had(void **state)
{
    (void)state;
    for (uint32_t order = 0; order < POOL_ORDERS; order++) {
        struct pool pool = begin(UNITS);
        for (uint32_t i = 0; i < UNITS >> order; i++) {
            assert_ptr_equal(pool_take(&pool, order), (uint8_t *)memory + i * (UNIT << order));
        }
        assert_null(pool_take(&pool, order));
    }
}

static void test_what_nobody_takes_is_not_touched(void **state)
{
    (void)state;
    struct pool pool = begin(UNITS);
    pool_give(&pool, 2, pool_take(&pool, 2));
    pool_give(&pool, 2, pool_take(&pool, 2));
    assert_true(is_filled((uint8_t *)memory + 4 * UNIT, 0x11, sizeof(memory) - 4 * UNIT));
}

static void test_the_newest_comes_first(void **state)
{
    (void)state;
    struct pool pool = begin(UNITS);
    void *first = pool_take(&pool, 1), *second = pool_take(&pool, 1);
    pool_give(&pool, 1, first);
    pool_give(&pool, 1, second);
    assert_ptr_equal(pool_take(&pool, 1), second);
    assert_ptr_equal(pool_take(&pool, 1), first);
}

struct owner {
    void *piece;
    uint32_t order;
};

static void test_random_owners(void **state)
{
    (void)state;
    struct pool pool = begin(UNITS);
    struct owner owners[200] = {0};
    struct prng prng;
    prng_init(&prng, 7);
    uint32_t refused = 0;
    for (uint32_t step = 0; step < 100000; step++) {
        const uint32_t which = (uint32_t)prng_below(&prng, 200);
        struct owner *owner = &owners[which];
        if (owner->piece != NULL) {
            assert_true(is_filled(owner->piece, (uint8_t)which, UNIT << owner->order));
            pool_give(&pool, owner->order, owner->piece);
            owner->piece = NULL;
            continue;
        }
        owner->order = (uint32_t)prng_below(&prng, POOL_ORDERS);
        owner->piece = pool_take(&pool, owner->order);
        if (owner->piece == NULL) {
            refused++;
        } else {
            memset(owner->piece, (int)which, UNIT << owner->order);
        }
    }
    assert_in_range(refused, 1000, 90000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it_is_had),
        cmocka_unit_test(test_what_nobody_takes_is_not_touched),
        cmocka_unit_test(test_the_newest_comes_first),
        cmocka_unit_test(test_random_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
