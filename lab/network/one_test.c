/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    network/random measures what its parameters make: wires carry what is offered and no
 *         more, latency and queues grow with the load, all that is lost is counted.
 * Method  Readings of runs with few nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "lab/network/experiments.h"
#include "lab/test_one.h"

#define ONE  "network/random"
#define FEW  "nodes=100 duration=100 warm=20 "
#define STAR "topology=star nodes=8 duration=100 warm=20 "

static double reading(const char *settings, const char *name)
{
    return one_reading(ONE, settings, name);
}

/* A node's wire is in use for the share that is offered; no wire for more than all of the time. */
static void test_load(void **state)
{
    double before_us = 0, before_bytes = 0;
    (void)state;
    for (uint32_t tenths = 2; tenths <= 8; tenths += 3) {
        char settings[96];
        (void)snprintf(settings, sizeof(settings), FEW "load=0.%u", tenths);
        struct lab_run *run = one_run(ONE, settings);
        const double load = tenths / 10.0, nodes = 128;
        assert_true(fabs(one_value(run, "carried") / load - 1) < 0.03);
        assert_true(one_value(run, "link_share") >= load * 0.98);
        assert_true(one_value(run, "link_share") <= 1);
        assert_true(one_value(run, "rate") <= nodes * lab_value(run, "rate") * load);
        assert_true(one_value(run, "latency_mean") > before_us);
        assert_true(one_value(run, "queue_mean") > before_bytes);
        before_us = one_value(run, "latency_mean");
        before_bytes = one_value(run, "queue_mean");
        free(run);
    }
}

/* A packet alone in a star: two wires, a switch, its own length once. */
static void test_sum(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, STAR "load=0.001 duration=2000 link=700 switch=300");
    const double bytes = lab_value(run, "most") + lab_value(run, "frame");
    const double sum_us = (2 * 700 + 300 + bytes * 8 / lab_value(run, "rate")) / 1e3;
    assert_true(fabs(one_value(run, "latency_p50") / sum_us - 1) < 1.0 / 32);
    assert_true(one_value(run, "latency_mean") >= sum_us * 0.9999);
    assert_true(one_value(run, "latency_mean") < sum_us * 1.01);
    assert_true(one_value(run, "wires") == 2);
    free(run);
}

static void test_losses(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, STAR "load=0.9 buffer=8000 bit_errors=1e-6");
    assert_true(one_value(run, "lost") > 0);
    assert_true(run->rows[1].measured > 0 && run->rows[1].measured <= one_value(run, "lost"));
    free(run);
    assert_true(reading(STAR "load=0.2", "lost") == 0);
}

static void test_list(void **state)
{
    (void)state;
    one_has_all(ONE, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
