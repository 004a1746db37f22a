/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A run's parameters of cables hold for every cable, with any clock; words are what they
 *         say.
 * Method  Machines' configurations are made of a few settings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/exanest/experiments.h"

static struct exanest_machine_config config_of(const char *settings)
{
    const struct lab_experiment *experiment = lab_find("exanest/latency");
    struct lab_run *run = calloc(1, sizeof(*run));
    char error[300] = "";
    assert_non_null(run);
    lab_prepare(run, experiment, 1);
    assert_true(lab_set_all(run, settings, error, sizeof(error)));
    const struct exanest_machine_config config = exanest_config_of(run, 2, 1, 1);
    free(run);
    return config;
}

static uint32_t router_wire(const char *settings)
{
    return config_of(settings).fabric.router_wire_cycles;
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

/* Two choices that are words: how a link codes, and when a read's last block leaves. */
static void test_words(void **state)
{
    (void)state;
    const struct exanest_machine_config usual = config_of("");
    const struct exanest_machine_config other = config_of("line=gap notification=early");
    assert_int_equal(usual.fabric.link.serializer.line.half_ps, 6600);
    assert_int_equal(other.fabric.link.serializer.line.half_ps, 6400);
    assert_int_equal(other.fabric.link.serializer.line.packet_ps, 20000);
    assert_false(usual.firmware.notifies_early);
    assert_true(other.firmware.notifies_early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_router_wire),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
