/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A cached entry is found, the cache never holds more than it has room for, and entries
 *         that are looked up in turn are found as often as arithmetic says of random victims.
 * Method  Random looks beside a list; rounds over all entries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "hardware/csrna/translation_cache.h"

enum {
    ROOM = 20,
    ALL = 50
};

/* The entries that may be cached: those that were, but for one victim of each look that missed. */
static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    struct translation_cache cache;
    bool here[ALL] = {false};
    uint32_t count = 0;
    prng_init(&prng, 1);
    void *memory = malloc(translation_cache_bytes(ROOM, ALL));
    translation_cache_init(&cache, ROOM, ALL, 2, memory);
    for (int step = 0; step < 20000; step++) {
        const uint32_t entry = (uint32_t)prng_below(&prng, ALL);
        assert_int_equal(translation_cache_look(&cache, entry), here[entry]);
        here[entry] = true;
        count = 0;
        for (uint32_t i = 0; i < ALL; i++) {
            assert_true(cache.place_of[i] == 0 || here[i]);
            here[i] = cache.place_of[i] != 0;
            count += here[i];
        }
        assert_true(here[entry] && count <= ROOM && count == cache.used);
    }
    assert_int_equal(count, ROOM);
    assert_int_equal(cache.hits + cache.misses, 20000);
    free(memory);
}

/* pow is another library's. */
static double power(double base, double exponent)
{
    double result = 1;
    for (; exponent >= 1; exponent--) {
        result *= base;
    }
    return result;
}

/* An entry that was found in one round is still there in the next one, unless a miss in between put
 * it out: the share h that is found satisfies h = (1 - 1/room) ^ ((1 - h) all). */
static void test_rounds(void **state)
{
    (void)state;
    static const uint32_t rooms[] = {100, 400, 900, 1000};
    const uint32_t all = 1000, rounds = 200;
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        struct translation_cache cache;
        void *memory = malloc(translation_cache_bytes(rooms[i], all));
        translation_cache_init(&cache, rooms[i], all, 3, memory);
        for (uint32_t look = 0; look < rounds * all; look++) {
            (void)translation_cache_look(&cache, look % all);
            if (look == rounds / 2 * all) {
                cache.hits = cache.misses = 0;
            }
        }
        double share = 0.5;
        for (int step = 0; step < 1000; step++) {
            share = power(1 - 1.0 / rooms[i], (1 - share) * all);
        }
        const double found = (double)cache.hits / (double)(cache.hits + cache.misses);
        assert_true(rooms[i] == all ? cache.misses == 0
                                    : found - share < 0.02 && share - found < 0.02);
        free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
