/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    PSN arithmetic is right everywhere, above all over the wrap at 2^24.
 * Method  Against 64-bit numbers that do not wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/common/psn.h"

static void test_against_unwrapped_numbers(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 100000; round++) {
        const uint64_t from = (1ull << 30) + prng_below(&prng, 1u << 26);
        const int64_t step = (int64_t)prng_below(&prng, 1u << 24) - (1 << 23);
        const struct psn a = psn_of((uint32_t)from), b = psn_of((uint32_t)((int64_t)from + step));
        assert_int_equal(psn_distance(a, b), step);
        if (step >= 0) {
            assert_true(psn_equal(psn_after(a, (uint32_t)step), b));
            assert_true(psn_equal(psn_before(b, (uint32_t)step), a));
        }
    }
}

static void test_edges(void **state)
{
    (void)state;
    assert_int_equal(psn_after(psn_of(0xffffff), 1).value, 0);
    assert_int_equal(psn_before(psn_of(0), 1).value, 0xffffff);
    assert_int_equal(psn_of(0x1234567).value, 0x234567);
    /* The halves of the number space: 2^23 - 1 ahead, 2^23 behind (IBTA 9.7.2). */
    assert_int_equal(psn_distance(psn_of(5), psn_of(5 + 0x7fffff)), 0x7fffff);
    assert_int_equal(psn_distance(psn_of(5), psn_of(5 + 0x800000)), -0x800000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_unwrapped_numbers),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
