/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A WRITE may be placed early only if no WRITE or atomic before it that is not executed
 *         could touch the same memory, over the wraps of addresses and block numbers.
 * Method  Random WRITEs beside a list of all of them, each byte compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/block/ranges.h"
#include "wire/block.h"

#define WRITES 64
#define MEMORY 64

struct list {
    struct block_range ranges[WRITES];
    uint32_t ends[WRITES];
    bool atomic[WRITES];
    uint32_t count;
};

static bool share_a_byte(const struct block_range *a, const struct block_range *b)
{
    for (uint32_t i = 0; i < a->bytes; i++) {
        for (uint32_t k = 0; k < b->bytes; k++) {
            if (a->address + i == b->address + k) {
                return true;
            }
        }
    }
    return false;
}

/* The facts that a "yes" requires. `few`: the ranges have to say "yes" if these hold. */
static bool is_clear(const struct list *list, uint32_t base, const struct block_range *range,
                     bool *few)
{
    uint32_t alive = 0;
    bool clear = true;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!block_number_before(base, list->ends[i])) {
            continue;
        }
        alive++;
        clear = clear && !list->atomic[i] && list->ranges[i].key == range->key &&
                !share_a_byte(&list->ranges[i], range);
    }
    *few = alive < BLOCK_RANGES;
    return clear;
}

/* EXA-78 */
static void test_against_all(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t round = 0; round < 2000; round++) {
        struct block_ranges ranges;
        struct list list = {.count = 0};
        uint32_t base = 0xfffffff0, next = base;
        bool few_so_far = true;
        block_ranges_init(&ranges);
        while (list.count < WRITES) {
            const struct block_range range = {
                .address = (uint64_t)0 - MEMORY / 2 + prng_below(&prng, MEMORY),
                .bytes = (uint32_t)prng_below(&prng, round % 2 == 0 ? 4 : 12),
                .key = prng_chance(&prng, 20000),
            };
            bool few;
            const bool expected = is_clear(&list, base, &range, &few);
            few_so_far = few_so_far && few;
            const bool clear = block_ranges_clear_of(&ranges, &range);
            assert_true(!clear || expected);
            assert_true(clear || !expected || !few_so_far);
            next += 1 + (uint32_t)prng_below(&prng, 3);
            list.atomic[list.count] = prng_chance(&prng, 30000);
            list.ranges[list.count] = range;
            list.ends[list.count] = next;
            if (list.atomic[list.count++]) {
                block_ranges_add_atomic(&ranges, next);
            } else {
                block_ranges_add(&ranges, &range, next);
            }
            if (prng_chance(&prng, 500000)) {
                base += (uint32_t)prng_below(&prng, next - base + 1);
                block_ranges_on_base(&ranges, base);
            }
        }
    }
}

/* A long run of WRITEs, one behind the other in memory, needs no more places than there are. */
static void test_one_behind_the_other(void **state)
{
    (void)state;
    struct block_ranges ranges;
    block_ranges_init(&ranges);
    struct block_range range = {.address = 0x1000, .bytes = 0x100, .key = 1};
    for (uint32_t end = 1; end <= 100; end++, range.address += 0x100) {
        assert_true(block_ranges_clear_of(&ranges, &range));
        block_ranges_add(&ranges, &range, end);
    }
    for (uint64_t address = 0x1000; address < range.address; address += 0x80) {
        const struct block_range again = {.address = address, .bytes = 1, .key = 1};
        assert_false(block_ranges_clear_of(&ranges, &again));
    }
    /* As long as it is not executed. */
    const struct block_range newest = {.address = range.address - 1, .bytes = 1, .key = 1};
    block_ranges_on_base(&ranges, 99);
    assert_false(block_ranges_clear_of(&ranges, &newest));
    block_ranges_on_base(&ranges, 100);
    assert_true(block_ranges_clear_of(&ranges, &newest));
    /* A range that lies elsewhere, or makes too long a range with the newest, needs a place of its
     * own. */
    for (uint32_t end = 101; end <= 100 + BLOCK_RANGES; end++) {
        range.address += 0x100000000;
        range.bytes = 0x80000000;
        block_ranges_add(&ranges, &range, end);
        assert_true(block_ranges_clear_of(&ranges, &newest));
    }
    range.address += range.bytes;
    block_ranges_add(&ranges, &range, 101 + BLOCK_RANGES);
    assert_false(block_ranges_clear_of(&ranges, &newest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all),
                                       cmocka_unit_test(test_one_behind_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
