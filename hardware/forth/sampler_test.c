/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The sampler takes its number of samples, at its interval, from the first DMA on, and
 *         gives them back.
 * Method  A script, cycle by cycle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "hardware/forth/sampler.h"

static void test_script(void **state)
{
    (void)state;
    struct forth_sampler *sampler = calloc(1, sizeof(*sampler));
    forth_sampler_set_interval(sampler, 100);
    forth_sampler_dma(sampler, 5); /* Not armed yet. */
    assert_true(forth_sampler_due(sampler) == UINT64_MAX);
    forth_sampler_set_count(sampler, 3);
    assert_true(forth_sampler_due(sampler) == UINT64_MAX); /* Waits for a DMA. */
    forth_sampler_dma(sampler, 1000);
    forth_sampler_dma(sampler, 1050); /* Only the first counts. */
    for (uint32_t i = 1; i <= 3; i++) {
        assert_true(forth_sampler_due(sampler) == 1000 + 100 * i);
        forth_sampler_take(sampler, (struct forth_sample){62 * i, 7 * i});
    }
    assert_true(forth_sampler_due(sampler) == UINT64_MAX);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(forth_sampler_read(sampler), 62 * i);
        assert_int_equal(forth_sampler_read(sampler), 7 * i);
    }
    assert_int_equal(forth_sampler_read(sampler), 0);
    forth_sampler_set_count(sampler, 1); /* Reading starts anew. */
    assert_int_equal(forth_sampler_read(sampler), 0);
    forth_sampler_dma(sampler, 5000);
    forth_sampler_take(sampler, (struct forth_sample){9, 8});
    assert_int_equal(forth_sampler_read(sampler), 9);
    free(sampler);
}

static void test_limits(void **state)
{
    (void)state;
    struct forth_sampler *sampler = calloc(1, sizeof(*sampler));
    forth_sampler_set_interval(sampler, 0);
    forth_sampler_set_count(sampler, 1000000);
    forth_sampler_dma(sampler, 0);
    uint32_t taken = 0;
    while (forth_sampler_due(sampler) != UINT64_MAX) {
        forth_sampler_take(sampler, (struct forth_sample){taken++, 0});
    }
    assert_int_equal(taken, FORTH_SAMPLES_MAX);
    forth_sampler_set_count(sampler, 0);
    forth_sampler_dma(sampler, 0);
    assert_true(forth_sampler_due(sampler) == UINT64_MAX);
    free(sampler);
}

/* 64 bits at 100 MHz are 762.9 MB/s. */
static void test_rate(void **state)
{
    (void)state;
    const double full = forth_sample_rate(1000, 1000);
    assert_true(full > 762.9 && full < 763.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
