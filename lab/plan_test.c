/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A plan is what its parameters say, the same with one seed, and a node's part of it does
 *         not depend on how much others send. A tally and lengths are sums.
 * Method  Plans of forth/one, message by message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "lab/plan.h"
#include "lab/reading.h"
#include "lab/test_one.h"

#define NODES 8u

static struct lab_plan plan_of(const char *settings)
{
    static const struct lab_plan_limits limits = {.nodes = NODES, .bytes_most = 2000, .unit = 8};
    struct lab_run *run = one_prepare("forth/one", settings);
    struct lab_plan plan;
    assert_true(lab_plan_open(&plan, run, &limits));
    free(run);
    return plan;
}

static void test_senders(void **state)
{
    (void)state;
    struct lab_plan plan = plan_of("senders=3 sends=5 bytes=24");
    assert_int_equal(lab_plan_count(&plan), 15);
    assert_false(plan.timed);
    for (uint32_t node = 0; node < NODES; node++) {
        assert_int_equal(plan.first[node + 1] - plan.first[node], node < 3 ? 5 : 0);
        for (uint32_t i = plan.first[node]; i < plan.first[node + 1]; i++) {
            assert_int_equal(plan.messages[i].to, (node + 1) % NODES);
            assert_int_equal(plan.messages[i].bytes, 24);
            assert_int_equal(plan.messages[i].at_ps, 0);
        }
    }
    lab_plan_close(&plan);
}

static void test_incast(void **state)
{
    (void)state;
    struct lab_plan plan = plan_of("senders=0 pattern=incast sends=4");
    assert_int_equal(lab_plan_count(&plan), 4 * (NODES - 1));
    for (uint32_t i = 0; i < lab_plan_count(&plan); i++) {
        assert_int_equal(plan.messages[i].to, NODES - 1);
    }
    lab_plan_close(&plan);
}

/* Half of what others send goes to node 0, and of the rest what uniform gives it: 4/7. */
static void test_hotspot(void **state)
{
    (void)state;
    struct lab_plan plan = plan_of("senders=0 pattern=hotspot hot=0.5 sends=4000");
    uint32_t hot = 0;
    for (uint32_t i = plan.first[1]; i < lab_plan_count(&plan); i++) {
        hot += plan.messages[i].to == 0;
    }
    const double share = (double)hot / (lab_plan_count(&plan) - plan.first[1]);
    assert_true(share > 4.0 / 7 - 0.01 && share < 4.0 / 7 + 0.01);
    lab_plan_close(&plan);
}

/* Lengths are whole units between the two; times rise, by their interval on average. */
static void test_sizes_and_times(void **state)
{
    (void)state;
    struct lab_plan plan = plan_of("bytes=10 bytes_most=1000 sends=4000 interval=2");
    uint64_t bytes = 0;
    assert_true(plan.timed);
    for (uint32_t i = 0; i < lab_plan_count(&plan); i++) {
        bytes += plan.messages[i].bytes;
        assert_true(plan.messages[i].bytes % 8 == 0 && plan.messages[i].bytes >= 16);
        assert_true(plan.messages[i].bytes <= plan.longest && plan.longest <= 1000);
        assert_true(i == 0 || plan.messages[i].at_ps >= plan.messages[i - 1].at_ps);
    }
    assert_in_range(bytes / 4000, 495, 525);
    assert_in_range(plan.messages[3999].at_ps / 3999, 1900000, 2100000);
    lab_plan_close(&plan);
    plan = plan_of("sends=10 interval=2 arrivals=regular");
    assert_int_equal(plan.messages[9].at_ps, 18000000);
    lab_plan_close(&plan);
}

static void test_repeatable(void **state)
{
    (void)state;
    struct lab_plan one = plan_of("senders=2 pattern=uniform bytes=8 bytes_most=800 sends=50");
    struct lab_plan all = plan_of("senders=0 pattern=uniform bytes=8 bytes_most=800 sends=50");
    assert_int_equal(lab_plan_count(&one), 100);
    assert_int_equal(lab_plan_count(&all), 50 * NODES);
    assert_memory_equal(one.messages, all.messages, 100 * sizeof(one.messages[0]));
    assert_true(memcmp(&all.messages[0], &all.messages[50], 50 * sizeof(all.messages[0])) != 0);
    lab_plan_close(&one);
    lab_plan_close(&all);
}

static void test_tally(void **state)
{
    struct lab_tally tally = {.bytes = 0};
    struct lab_lengths lengths = {.sum = 0};
    (void)state;
    assert_true(lab_tally_gbps(&tally) == 0 && lab_tally_rate(&tally) == 0);
    lab_tally_count(&tally, 2000000, 4000000, 1000);
    lab_tally_count(&tally, 1000000, 3000000, 250);
    /* 1,250 bytes and two messages in 3 us. */
    assert_true(lab_tally_gbps(&tally) > 3.3333 && lab_tally_gbps(&tally) < 3.3334);
    assert_true(lab_tally_rate(&tally) > 0.66666 && lab_tally_rate(&tally) < 0.66667);
    assert_int_equal(tally.latency.most, 2000000);
    lab_lengths_count(&lengths, 3);
    lab_lengths_count(&lengths, 1);
    assert_int_equal(lengths.sum, 4);
    assert_int_equal(lengths.looks, 2);
    assert_int_equal(lengths.most, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senders),    cmocka_unit_test(test_incast),
        cmocka_unit_test(test_hotspot),    cmocka_unit_test(test_sizes_and_times),
        cmocka_unit_test(test_repeatable), cmocka_unit_test(test_tally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
