/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal: no memory is given to two owners; blocks are zeroed and begin a line; the same takes and
 *       gives have the same places, and what was given back is taken again.
 * Shape: blocks of random sizes are taken and given back; each is filled with its owner's mark.
 */
#include "virtual/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define BYTES  (1u << 20)
#define BLOCKS 200

static _Alignas(ARENA_LINE) uint8_t memory[BYTES];

static struct arena *begin(void)
{
    memset(memory, 0, sizeof(memory));
    return arena_begin(memory, sizeof(memory));
}

static bool is_filled(const uint8_t *at, uint8_t mark, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != mark) {
            return false;
        }
    }
    return true;
}

/* Sums up where the blocks of a run with this seed lay. */
static uint64_t run(uint64_t seed, uint32_t steps)
{
    struct arena *arena = begin();
    struct {
        uint8_t *at;
        size_t bytes;
    } block[BLOCKS] = {0};
    struct prng prng;
    uint64_t digest = 0;
    prng_init(&prng, seed);
    for (uint32_t i = 0; i < steps; i++) {
        const uint32_t which = (uint32_t)prng_below(&prng, BLOCKS);
        if (block[which].at != NULL) {
            assert_true(is_filled(block[which].at, (uint8_t)(which + 1), block[which].bytes));
            arena_give(arena, block[which].at);
            block[which].at = NULL;
            continue;
        }
        const size_t bytes = 1 + prng_below(&prng, UINT64_C(1) << prng_below(&prng, 13));
        block[which].bytes = bytes;
        block[which].at = arena_take(arena, bytes);
        if (block[which].at != NULL) {
            assert_true(is_filled(block[which].at, 0, bytes));
            assert_int_equal((uintptr_t)block[which].at % ARENA_LINE, 0);
            memset(block[which].at, (int)(which + 1), bytes);
        }
        digest = digest * 31 + (uint64_t)(block[which].at - memory);
    }
    return digest;
}

static void test_no_block_has_two_owners(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run(seed, 5000);
    }
}

static void test_places_are_the_same_each_time(void **state)
{
    (void)state;
    assert_int_equal(run(7, 3000), run(7, 3000));
    assert_int_not_equal(run(7, 3000), run(8, 3000));
}

/* Two blocks of each size up to some lines. */
static void test_what_is_given_back_is_taken_again(void **state)
{
    (void)state;
    for (size_t lines = 1; lines < 100; lines++) {
        struct arena *arena = begin();
        uint8_t *first = arena_take(arena, lines * ARENA_LINE);
        uint8_t *second = arena_take(arena, lines * ARENA_LINE);
        const uint64_t used = arena->used;
        assert_true(second >= first + lines * ARENA_LINE);
        /* A quarter more at most, and a line. */
        assert_true(second <= first + (lines + lines / 4 + 1) * ARENA_LINE);
        arena_give(arena, first);
        arena_give(arena, second);
        assert_ptr_equal(arena_take(arena, lines * ARENA_LINE - 1), second);
        assert_ptr_equal(arena_take(arena, lines * ARENA_LINE), first);
        assert_int_equal(arena->used, used);
    }
}

static void test_there_is_an_end(void **state)
{
    (void)state;
    struct arena *arena = begin();
    assert_null(arena_take(arena, BYTES));
    assert_null(arena_take(arena, 0));
    assert_null(arena_take(arena, SIZE_MAX));
    size_t count = 0;
    while (arena_take(arena, 1000) != NULL) {
        count++;
    }
    assert_in_range(count, BYTES / (1024 + ARENA_LINE) - 4, BYTES / (1024 + ARENA_LINE));
    assert_non_null(arena_take(arena, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_block_has_two_owners),
        cmocka_unit_test(test_places_are_the_same_each_time),
        cmocka_unit_test(test_what_is_given_back_is_taken_again),
        cmocka_unit_test(test_there_is_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
