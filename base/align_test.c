/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Rounding up gives the nearest multiple that is not less than the number.
 * Method  Counting up unit by unit, for all units up to a page and all sizes up to three of them;
 *         and the largest sizes there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/align.h"

static void test_round_up(void **state)
{
    (void)state;
    for (uint64_t unit = 1; unit <= 4096; unit *= 2) {
        uint64_t expected = 0;
        for (uint64_t bytes = 0; bytes <= 3 * unit; bytes++) {
            expected += bytes > expected ? unit : 0;
            assert_int_equal(round_up(bytes, unit), expected);
        }
        assert_true(round_up(UINT64_MAX - unit + 1, unit) == UINT64_MAX - unit + 1);
    }
    assert_true(round_up(1, UINT64_C(1) << 63) == UINT64_C(1) << 63);
}

static void test_line_aligned(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes <= 1000; bytes++) {
        assert_int_equal(line_aligned(bytes), bytes / 64 * 64 + (bytes % 64 == 0 ? 0 : 64));
    }
    assert_true(line_aligned((size_t)UINT32_MAX) == (size_t)UINT32_MAX + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_up),
        cmocka_unit_test(test_line_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
