/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Cumulative credits never grant more than there is, and never stop granting what there is.
 * Method  An example worked out by hand; random traffic through a bounded buffer, with credits
 *         lost, late and repeated, against counts that do not wrap. Behaviours FNX-30, FNX-31.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/forth/credit.h"

/* By hand: a buffer of 256, packets of 64. */
static void test_example(void **state)
{
    (void)state;
    struct forth_window window;
    forth_window_init(&window, 256);
    for (int i = 0; i < 4; i++) {
        assert_true(forth_window_admits(&window, 64));
        forth_window_sent(&window, 64);
    }
    assert_false(forth_window_admits(&window, 64));
    forth_window_credit(&window, 1);
    assert_false(forth_window_admits(&window, 64));
    forth_window_credit(&window, 2);
    assert_true(forth_window_admits(&window, 64));
}

/* FNX-31: a new credit exactly every 32 words. */
static void test_granularity(void **state)
{
    (void)state;
    struct forth_ledger ledger = {0};
    for (uint32_t word = 1; word < 20000; word++) {
        forth_ledger_forwarded(&ledger, 1);
        assert_int_equal(ledger.modified, word % 32 == 0);
        if (ledger.modified) {
            assert_int_equal(forth_ledger_take(&ledger), word / 32 % 128);
        }
    }
}

/* FNX-30: over many wraps the buffer never overflows, and a credit now and then,
 * however many are lost, keeps the words coming. */
static void test_random_traffic(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct prng prng;
        struct forth_window window;
        struct forth_ledger ledger = {0};
        const uint16_t buffer = seed % 2 ? 256 : 1023;
        uint64_t sent = 0, forwarded = 0, stuck = 0;
        uint8_t late = 0;
        prng_init(&prng, seed);
        forth_window_init(&window, buffer);
        while (sent < 12 * 4096) {
            const uint32_t words = FORTH_OVERHEAD_WORDS + 1 + (uint32_t)prng_below(&prng, 62);
            if (forth_window_admits(&window, words)) {
                forth_window_sent(&window, words);
                sent += words;
                stuck = 0;
            }
            assert_true(sent - forwarded <= buffer);
            const uint64_t out = prng_below(&prng, sent - forwarded + 1);
            forwarded += out;
            forth_ledger_forwarded(&ledger, (uint32_t)out);
            const uint8_t value = forth_ledger_take(&ledger);
            if (prng_below(&prng, 3) == 0) {
                forth_window_credit(&window, value);
            } else if (prng_below(&prng, 3) == 0) {
                forth_window_credit(&window, late); /* One that was overtaken. */
                late = value;
            }
            assert_true(++stuck < 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_granularity),
        cmocka_unit_test(test_random_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
