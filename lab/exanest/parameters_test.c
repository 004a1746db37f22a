/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A run's parameters of cables hold for every cable, with any clock.
 * Method  Machines' configurations are made of a few settings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/exanest/experiments.h"

static uint32_t router_wire(const char *settings)
{
    const struct lab_experiment *experiment = lab_find("exanest/latency");
    struct lab_run *run = calloc(1, sizeof(*run));
    char error[300] = "";
    assert_non_null(run);
    lab_prepare(run, experiment, 1);
    assert_true(lab_set_all(run, settings, error, sizeof(error)));
    const struct exanest_machine_config config = exanest_config_of(run, 2, 1, 1);
    free(run);
    return config.fabric.router_wire_cycles;
}

/* 460 ns from router to router are more cycles of a faster clock. */
static void test_router_wire(void **state)
{
    (void)state;
    assert_int_equal(router_wire(""), EXANEST_ROUTER_WIRE_CYCLES);
    assert_int_equal(router_wire("datapath=200"), 92);
    assert_int_equal(router_wire("datapath=300"), 138);
    assert_int_equal(router_wire("wire=5"), 756);
    assert_int_equal(router_wire("wire=0"), 6);
    assert_int_equal(router_wire("wire=0 datapath=10"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_router_wire)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
