/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    CRC-32C is what RFC 3720 says, whether the processor computes it or the library.
 * Method  Known values; random bytes in two parts against a code that goes bit by bit; words
 *         against their bytes. The build has this test twice (wire/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "wire/crc32c.h"

#define ROUNDS    20000
#define BYTES_MAX 600

/* EXA-02, LNI-06: the check value; and the examples of RFC 3720, B.4. */
static void test_known_values(void **state)
{
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
}

static uint32_t bit_by_bit(const uint8_t *bytes, size_t count)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < 8 * count; i++) {
        const uint32_t bit = (crc ^ (uint32_t)bytes[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void test_parts(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[BYTES_MAX];
        const size_t limit = round % 20 == 0 ? BYTES_MAX : 40;
        const size_t count = prng_below(&prng, limit + 1), cut = prng_below(&prng, count + 1);
        for (size_t i = 0; i < count; i++) {
            bytes[i] = (uint8_t)prng_next(&prng);
        }
        const uint32_t first = crc32c(0, bytes, cut);
        assert_int_equal(crc32c(first, bytes + cut, count - cut), bit_by_bit(bytes, count));
    }
}

static void test_words(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t words[8];
        uint8_t bytes[sizeof(words)];
        const size_t count = prng_below(&prng, 9);
        const uint32_t before = (uint32_t)prng_next(&prng);
        for (size_t i = 0; i < count; i++) {
            words[i] = prng_next(&prng);
            for (size_t k = 0; k < 8; k++) {
                bytes[8 * i + k] = (uint8_t)(words[i] >> (56 - 8 * k));
            }
        }
        assert_int_equal(crc32c_words(before, words, count), crc32c(before, bytes, 8 * count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
