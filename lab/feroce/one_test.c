/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    feroce/one measures what its parameters make: a message's ACK takes the sum of their
 *         times, nothing is faster than its line, more of a cost is never better.
 * Method  Readings of runs, and differences between two of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "lab/feroce/experiments.h"
#include "lab/test_one.h"

#define ONE "feroce/one"

static double latency(const char *settings)
{
    return one_reading(ONE, settings, "latency_mean");
}

static double rate(const char *settings)
{
    return one_reading(ONE, settings, "rate");
}

/* From the last bit to the ACK: two lines and a switch there and back, the receiver's time. */
static void test_slopes(void **state)
{
    static const struct {
        const char *others, *name;
        double times;
    } slopes[] = {{"", "cable", 4},
                  {"", "switch", 2},
                  {"", "ack_ns", 1},
                  {"speed=25G", "fec_ns", 4},
                  {"", "fec_ns", 0}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(slopes); i++) {
        char less[128], more[128];
        (void)snprintf(less, sizeof(less), "messages=30 %s %s=100", slopes[i].others,
                       slopes[i].name);
        (void)snprintf(more, sizeof(more), "messages=30 %s %s=1100", slopes[i].others,
                       slopes[i].name);
        const double found = latency(more) - latency(less);
        if (fabs(found - slopes[i].times) > 0.02) {
            fail_msg("%s %s: %g times", slopes[i].others, slopes[i].name, found);
        }
    }
}

/* Frames of 4,096 bytes in a message of 64 of them take 4,096 + 62 + 20 + the extra bytes, and a
 * RETH once. */
static double bound_of(double gbps, double extra)
{
    return gbps * 262144 / (64 * (4096 + 62 + 20 + extra) + 16);
}

static void test_bounds(void **state)
{
    (void)state;
    const double at_10 = rate("extra_bytes=0"), at_25 = rate("speed=25G extra_bytes=0");
    assert_true(at_10 <= bound_of(10, 0) * 1.0001 && at_10 > 0.999 * bound_of(10, 0));
    assert_true(at_25 <= bound_of(25, 0) * 1.0001 && at_25 > 0.999 * bound_of(25, 0));
    assert_true(rate("senders=4 extra_bytes=0") <= bound_of(10, 0) * 1.0001);
    assert_true(rate("speed=100G stack=2026 extra_bytes=0") <= bound_of(100, 0));
    assert_true(one_reading(ONE, "senders=4", "link_share") <= 1);
}

/* Each setting must be slower than the one before it. */
static void test_directions(void **state)
{
    static const char *const falling[][3] = {
        {"extra_bytes=0", "extra_bytes=71", "extra_bytes=500"},
        {"pmtu=4096", "pmtu=1024", "pmtu=256"},
        {"frequency=0", "frequency=40000", "frequency=80000"},
        {"bytes=4096 request_cycles=100", "bytes=4096 request_cycles=1000",
         "bytes=4096 request_cycles=10000"},
        {"stack=2026 loss=0", "stack=2026 loss=0.001", "stack=2026 loss=0.01"},
        {"stack=2026 loss=0.001 receiver=keeps resend=alone", "stack=2026 loss=0.004",
         "stack=2026 loss=0.01"},
        {"speed=100G stack=2026 qp_width=512", "speed=100G stack=2026 qp_width=128",
         "speed=100G stack=2026 qp_width=64"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(falling); i++) {
        const double first = rate(falling[i][0]), second = rate(falling[i][1]);
        if (!(first > second && second > rate(falling[i][2]))) {
            fail_msg("%s: %g, %s: %g", falling[i][0], first, falling[i][1], second);
        }
    }
}

/* With more boards than one the switch holds what the receiver's line cannot take, up to its
 * thresholds and what is on its way when it asks for a pause. */
static void test_congestion(void **state)
{
    (void)state;
    struct lab_run *alone = one_run(ONE, "senders=1"), *four = one_run(ONE, "senders=4");
    assert_true(one_value(alone, "queue_max") == 0 && one_value(alone, "pauses") == 0);
    assert_true(one_value(four, "pauses") > 0 && one_value(four, "input_max") > 4200);
    assert_true(one_value(four, "queue_max") <= 4 * one_value(four, "input_max"));
    assert_true(one_value(four, "fairness") > 0.999);
    assert_true(one_value(four, "latency_mean") > one_value(alone, "latency_mean"));
    free(alone);
    free(four);
    assert_true(latency("senders=2 xoff_10G=20000") > latency("senders=2 xoff_10G=4200"));
    /* Without pauses, an output with little room loses, and the slides' boards are stuck. */
    struct lab_run *lost = one_run(ONE, "senders=4 pfc=off buffer_bytes=20000");
    assert_true(one_value(lost, "lost") > 0 && lost->rows[0].measured > 0);
    assert_true(isnan(one_value(lost, "rate")));
    free(lost);
    struct lab_run *again = one_run(ONE, "senders=4 pfc=off buffer_bytes=100000 stack=2026");
    assert_true(one_value(again, "lost") > 0 && one_value(again, "resent") > 0);
    free(again);
}

static void test_list(void **state)
{
    (void)state;
    one_has_all(ONE, "");
}

static void test_refused(void **state)
{
    (void)state;
    one_fails(ONE, "pairs=2", "has 1 queue pairs");
    one_fails(ONE, "bytes=1001", "multiple of 4");
    one_fails(ONE, "warm=120", "none is left");
    one_fails(ONE, "pmtu=1000", "no such board");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),     cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_directions), cmocka_unit_test(test_congestion),
        cmocka_unit_test(test_list),       cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
