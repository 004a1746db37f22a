/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The code is SipHash-2-4, at every length around a word.
 * Method  The vectors of its authors: the key is the bytes 0 to 15, the message the bytes 0 to n-1.
 *         Their paper has that of n = 15; the others are those of their reference program. Every
 *         bit of key and message changes the code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/siphash.h"

static const struct siphash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

static void test_vectors(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
        0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
        0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
        0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
    };
    uint8_t message[16];
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        message[i] = (uint8_t)i;
        assert_true(siphash(&key, message, i) == expected[i]);
    }
}

static void test_every_bit_counts(void **state)
{
    (void)state;
    uint8_t message[29] = {1, 2, 3};
    const uint64_t code = siphash(&key, message, sizeof(message));
    for (size_t bit = 0; bit < 8 * sizeof(message); bit++) {
        message[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_true(siphash(&key, message, sizeof(message)) != code);
        message[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (unsigned bit = 0; bit < 128; bit++) {
        struct siphash_key other = key;
        other.halves[bit / 64] ^= UINT64_C(1) << bit % 64;
        assert_true(siphash(&other, message, sizeof(message)) != code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_every_bit_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
