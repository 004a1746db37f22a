/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Blocks are zeroed, aligned and nobody else's, whether alone or in a chunk; what is given
 *         back is used again.
 * Method  Random taking and giving of three sizes, each block filled with a pattern of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "verbs/blocks.h"

enum {
    BLOCKS = 4000,
    STEPS = 60000
};

static const size_t sizes[] = {100, 2752, 300000};

static struct {
    uint8_t *block;
    size_t bytes;
    bool shared;
    uint8_t pattern;
} held[BLOCKS];

static bool all_bytes(const uint8_t *block, size_t bytes, uint8_t value)
{
    return block[0] == value && memcmp(block, block + 1, bytes - 1) == 0;
}

static void give(uint64_t i)
{
    assert_true(all_bytes(held[i].block, held[i].bytes, held[i].pattern));
    blocks_give(held[i].block, held[i].bytes, held[i].shared);
    held[i].block = NULL;
}

static void take(struct prng *prng, uint64_t i)
{
    const uint64_t draw = prng_below(prng, 100);
    held[i].bytes = sizes[draw == 0 ? 2 : draw % 2];
    held[i].block = blocks_take(held[i].bytes, &held[i].shared);
    assert_non_null(held[i].block);
    assert_int_equal((uintptr_t)held[i].block % 64, 0);
    assert_true(all_bytes(held[i].block, held[i].bytes, 0));
    held[i].pattern = (uint8_t)(1 + prng_below(prng, 255));
    memset(held[i].block, held[i].pattern, held[i].bytes);
}

static void test_nobody_elses(void **state)
{
    (void)state;
    struct prng prng;
    uint32_t shared = 0, alone = 0;
    prng_init(&prng, 1);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t i = prng_below(&prng, BLOCKS);
        if (held[i].block != NULL) {
            give(i);
        } else {
            take(&prng, i);
            shared += held[i].shared;
            alone += !held[i].shared;
        }
    }
    for (uint64_t i = 0; i < BLOCKS; i++) {
        if (held[i].block != NULL) {
            give(i);
        }
    }
    assert_true(shared > 10000 && alone > 100);
}

/* The first few of a size are alone; a chunk that is empty goes back, and there is another. */
static void test_few_are_alone(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        void *blocks[40];
        bool shared[40];
        for (int i = 0; i < 40; i++) {
            blocks[i] = blocks_take(5000, &shared[i]);
            assert_int_equal(shared[i], i >= 32);
        }
        for (int i = 0; i < 40; i++) {
            blocks_give(blocks[i], 5000, shared[i]);
        }
    }
    blocks_give(NULL, 5000, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_elses),
        cmocka_unit_test(test_few_are_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
