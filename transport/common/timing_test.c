/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Time and credit codes mean what IBTA's tables say.
 * Method  Formulas and printed entries of the tables; credits against a linear search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/common/timing.h"

static void test_transport_timer(void **state)
{
    (void)state;
    assert_true(ack_timeout_ns(0) == UINT64_MAX); /* Off. */
    assert_true(ack_timeout_ns(1) == 8192);
    assert_true(ack_timeout_ns(14) == 67108864); /* 67 ms, what most programs ask for. */
    assert_true(ack_timeout_ns(31) == 4096ull << 31);
}

/* IBTA table 45. */
static void test_rnr_timer(void **state)
{
    (void)state;
    assert_true(rnr_timer_ns(0) == 655360000);
    assert_true(rnr_timer_ns(1) == 10000);
    assert_true(rnr_timer_ns(12) == 640000);
    assert_true(rnr_timer_ns(31) == 491520000);
    for (uint8_t code = 2; code < 32; code++) {
        assert_true(rnr_timer_ns(code) > rnr_timer_ns((uint8_t)(code - 1)));
    }
}

/* IBTA table 46: the largest code that promises no more than there is. */
static void test_credits(void **state)
{
    (void)state;
    assert_int_equal(credits_decode(0), 0);
    assert_int_equal(credits_decode(5), 6);
    assert_int_equal(credits_decode(30), 32768);
    for (uint32_t receives = 0; receives < 70000; receives++) {
        uint8_t code = 30;
        while (credits_decode(code) > receives) {
            code--;
        }
        assert_int_equal(credits_encode(receives), code);
    }
    assert_int_equal(credits_encode(UINT32_MAX), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transport_timer),
        cmocka_unit_test(test_rnr_timer),
        cmocka_unit_test(test_credits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
