/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Round trips are smoothed as RFC 6298 says, the minimum forgets what is old, and the
 *         timers keep their floors, ceilings and doublings.
 * Method  The RFC's formulas by hand; the minimum against a list of all samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/common/rtt.h"

#define MS UINT64_C(1000000)

static void test_smoothing(void **state)
{
    (void)state;
    const struct rtt_policy policy = rtt_policy_default();
    struct rtt rtt;
    rtt_init(&rtt);
    assert_false(rtt_known(&rtt));
    assert_int_equal(rtt_least_ns(&rtt), 0);
    rtt_sample(&rtt, &policy, 8000, (struct instant){1});
    assert_int_equal(rtt.smoothed_ns, 8000);
    assert_int_equal(rtt.variation_ns, 4000);
    rtt_sample(&rtt, &policy, 16000, (struct instant){2});
    assert_int_equal(rtt.variation_ns, (3 * 4000 + 8000) / 4);
    assert_int_equal(rtt.smoothed_ns, (7 * 8000 + 16000) / 8);
    assert_int_equal(rtt.newest_ns, 16000);
    assert_int_equal(rtt_least_ns(&rtt), 8000);
    /* A peer can claim to have held its answer as long as it likes. */
    rtt_sample(&rtt, &policy, 0, (struct instant){3});
    assert_true(rtt_known(&rtt));
    rtt_sample(&rtt, &policy, UINT64_MAX, (struct instant){4});
    assert_int_equal(rtt.newest_ns, UINT32_MAX);
}

/* Nothing of more than a window ago counts; everything of three quarters of it does. */
static void test_minimum(void **state)
{
    (void)state;
    enum {
        SAMPLES = 4000
    };
    static struct {
        uint64_t at;
        uint32_t sample;
    } all[SAMPLES];
    struct rtt_policy policy = rtt_policy_default();
    policy.window_ns = 4000;
    struct prng prng;
    prng_init(&prng, 3);
    struct rtt rtt;
    rtt_init(&rtt);
    uint64_t now = UINT64_MAX / 2;
    for (int n = 0; n < SAMPLES; n++) {
        now += prng_chance(&prng, 10000) ? prng_below(&prng, 9000) : prng_below(&prng, 100);
        all[n].at = now;
        all[n].sample = 1000 + (uint32_t)prng_below(&prng, 100000);
        rtt_sample(&rtt, &policy, all[n].sample, (struct instant){now});
        uint32_t of_window = UINT32_MAX, of_most = UINT32_MAX;
        for (int m = n; m >= 0 && now - all[m].at <= policy.window_ns; m--) {
            of_window = all[m].sample < of_window ? all[m].sample : of_window;
            if (now - all[m].at <= policy.window_ns / 4 * 3) {
                of_most = all[m].sample < of_most ? all[m].sample : of_most;
            }
        }
        assert_true(rtt_least_ns(&rtt) >= of_window && rtt_least_ns(&rtt) <= of_most);
    }
}

static void test_timers(void **state)
{
    (void)state;
    struct rtt_policy policy = rtt_policy_default();
    struct rtt rtt;
    rtt_init(&rtt);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 0), 1000 * MS);
    assert_int_equal(rtt_rto_ns(&rtt, &policy, 0), 1000 * MS);
    assert_int_equal(rtt_tlp_ns(&rtt, &policy), 1000 * MS);
    /* A short trip: the floors. */
    for (uint64_t n = 0; n < 100; n++) {
        rtt_sample(&rtt, &policy, 100000, (struct instant){n});
    }
    assert_in_range(rtt_tlp_ns(&rtt, &policy), 200000, 201000);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 0), 2 * MS);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 1), 4 * MS);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 6), 128 * MS);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 7), 128 * MS);
    assert_int_equal(rtt_rto_ns(&rtt, &policy, 0), 10 * MS);
    assert_int_equal(rtt_rto_ns(&rtt, &policy, 3), 80 * MS);
    assert_int_equal(rtt_rto_ns(&rtt, &policy, UINT32_MAX), 1000 * MS);
    policy.allowance_ns = 3 * MS;
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 0), 5 * MS);
    assert_in_range(rtt_tlp_ns(&rtt, &policy), 200000 + 3 * MS, 201000 + 3 * MS);
    /* A short one that varies, and one that is shorter than the floor. */
    policy.allowance_ns = 0;
    rtt_sample(&rtt, &policy, 300000, (struct instant){100});
    assert_in_range(rtt_tlp_ns(&rtt, &policy), 325000, 326000);
    rtt_init(&rtt);
    rtt_sample(&rtt, &policy, 10000, (struct instant){0});
    assert_int_equal(rtt_tlp_ns(&rtt, &policy), 100000);
    /* A long one: twice the trip, but not later than the timeout. */
    rtt_init(&rtt);
    rtt_sample(&rtt, &policy, 40 * MS, (struct instant){0});
    assert_int_equal(rtt_rto_ns(&rtt, &policy, 0), 120 * MS);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 0), 80 * MS);
    assert_int_equal(rtt_tlp_ns(&rtt, &policy), 80 * MS);
    for (uint64_t n = 0; n < 100; n++) {
        rtt_sample(&rtt, &policy, 40 * MS, (struct instant){n});
    }
    assert_true(rtt_rto_ns(&rtt, &policy, 0) < 42 * MS);
    assert_int_equal(rtt_pto_ns(&rtt, &policy, 0), rtt_rto_ns(&rtt, &policy, 0));
    assert_int_equal(rtt_tlp_ns(&rtt, &policy), rtt_rto_ns(&rtt, &policy, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smoothing),
        cmocka_unit_test(test_minimum),
        cmocka_unit_test(test_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
