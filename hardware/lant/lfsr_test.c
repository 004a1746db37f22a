/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The shift register is the one of the polynomial, passes all states but 0, and repeats
 *         from its seed.
 * Method  Its bits against the recurrence that the polynomial is; the order of x modulo the
 *         polynomial; words written down once, and against single shifts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/lant/lfsr.h"

#define POLYNOMIAL UINT64_C(0x100400007) /* x^32 + x^22 + x^2 + x + 1. */

/* LNI-81: the bit that comes in is the sum of the bits that came in 1, 2, 22 and 32 shifts ago. */
static void test_recurrence(void **state)
{
    (void)state;
    uint8_t bits[4000];
    uint32_t lfsr = 0xdeadbeef;
    for (uint32_t i = 0; i < 32; i++) {
        bits[i] = lfsr >> (31 - i) & 1;
    }
    for (uint32_t i = 32; i < COUNT_OF(bits); i++) {
        lfsr = lant_lfsr_shift(lfsr);
        bits[i] = lfsr & 1;
        assert_int_equal(bits[i], bits[i - 1] ^ bits[i - 2] ^ bits[i - 22] ^ bits[i - 32]);
    }
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    for (uint32_t bit = 0; bit < 32; bit++) {
        sum ^= b >> bit & 1 ? a : 0;
        a <<= 1;
        a ^= a >> 32 & 1 ? POLYNOMIAL : 0;
    }
    return sum;
}

static uint64_t power_of_x(uint64_t exponent)
{
    uint64_t result = 1, square = 2;
    for (; exponent != 0; exponent >>= 1) {
        result = exponent & 1 ? product(result, square) : result;
        square = product(square, square);
    }
    return result;
}

/* The order of x divides 2^32 - 1, and no proper divisor of it. */
static void test_period(void **state)
{
    (void)state;
    static const uint64_t PRIMES[] = {3, 5, 17, 257, 65537};
    assert_int_equal(power_of_x(UINT32_MAX), 1);
    for (uint32_t i = 0; i < COUNT_OF(PRIMES); i++) {
        assert_int_not_equal(power_of_x(UINT32_MAX / PRIMES[i]), 1);
    }
}

/* LNI-81: the same words from the same seed, on every machine. */
static void test_words(void **state)
{
    (void)state;
    static const uint32_t WORDS[] = {0xb6db68a3, 0xcf213212, 0xb93a9645, 0xc28201d2};
    uint32_t lfsr = 1;
    for (uint32_t i = 0; i < COUNT_OF(WORDS); i++) {
        assert_int_equal(lant_lfsr_word(&lfsr), WORDS[i]);
    }
}

/* LNI-81: a word is 32 shifts, from any state. */
static void test_word_is_shifts(void **state)
{
    (void)state;
    uint32_t from = 1;
    for (uint32_t i = 0; i < 100000; i++) {
        /* Single bits first, as the register is linear; then whatever comes. */
        from = i < 32 ? UINT32_C(1) << i : from * 1664525u + 1013904223u;
        uint32_t expected = from == 0 ? 1 : from;
        uint32_t lfsr = expected;
        for (uint32_t shift = 0; shift < 32; shift++) {
            expected = lant_lfsr_shift(expected);
        }
        assert_int_equal(lant_lfsr_word(&lfsr), expected);
        assert_int_equal(lfsr, expected);
    }
}

static void test_below(void **state)
{
    (void)state;
    assert_int_equal(lant_random_below(0, 15), 0);
    assert_int_equal(lant_random_below(UINT32_MAX, 15), 14);
    assert_int_equal(lant_random_below(UINT32_MAX / 2, 2), 0);
    assert_int_equal(lant_random_below(UINT32_MAX / 2 + 1, 2), 1);
    assert_int_equal(lant_random_below(UINT32_MAX, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recurrence), cmocka_unit_test(test_period),
        cmocka_unit_test(test_words),      cmocka_unit_test(test_word_is_shifts),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
