/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The estimates are those of 7.3 and of the specification's Annex A.2, to the last digit
 *         that is printed; where the document's own do not agree, the test says so.
 * Method  The numbers that the document puts in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "lab/lant/estimate.h"

/* `printed` is `value` rounded to `digits` behind the point. */
static void expect(double value, double printed, int digits)
{
    const double unit = pow(10, -digits);
    if (!(fabs(value - printed) <= 0.5 * unit * (1 + 1e-9))) {
        fail_msg("%.9g is not %.*f", value, digits, printed);
    }
}

static const struct lant_estimate_input matrix = {.block_bytes = 1024,
                                                  .block_flops = 1024,
                                                  .hls_cycles = 288,
                                                  .path_cycles = 1407,
                                                  .path_bps = 1.1e9,
                                                  .link_bps = 8.56e9,
                                                  .logic = 548160,
                                                  .stack_share = 0.107,
                                                  .block_logic = 30194,
                                                  .accelerators = 9};

/* LNI-85: A48 to A51, 7.3's multiplication of matrices. */
static void test_matrix(void **state)
{
    (void)state;
    const struct lant_estimate estimate = lant_estimate(&matrix);
    expect(estimate.ratio, 0.205, 3);
    /* The document cuts off what is behind the point, here and at 137 MFLOPS. */
    assert_int_equal((uint32_t)estimate.blocks_per_s, 134277);
    expect(estimate.block_flops / 1e6, 137.5, 1);
    expect(9 * floor(estimate.block_flops / 1e6) / 1e3, 1.233, 3);
    expect(estimate.flops / 1e9, 1.2375, 4);
    expect(estimate.logic_fits, 16.2, 1);
    expect(lant_estimate_compute_cycles(2, matrix.path_cycles), 2814, 0);
}

/* LNI-85: 9.M, A49: nine of them need more than the link carries; seven do not. */
static void test_link(void **state)
{
    (void)state;
    struct lant_estimate_input input = matrix;
    struct lant_estimate estimate = lant_estimate(&input);
    expect(estimate.needed_bps / 1e9, 9.9, 1);
    assert_true(estimate.exceeds_link);
    assert_int_equal(estimate.link_fits, 7);
    expect(estimate.link_flops / 1e9, 0.96, 2);
    input.accelerators = estimate.link_fits;
    estimate = lant_estimate(&input);
    assert_false(estimate.exceeds_link);
    expect(estimate.flops / 1e9, 0.96, 2);
    input.accelerators++;
    assert_true(lant_estimate(&input).exceeds_link);
}

/* LNI-85: A4, A5, A13, A14, A22. */
static void test_quotients(void **state)
{
    (void)state;
    expect(100 * lant_estimate_gain(232, 172), 25.9, 1);
    expect(100 * lant_estimate_share(118, 172), 68.6, 1);
    expect(100 * lant_estimate_share(118, 232), 50.9, 1);
    expect(100 * lant_estimate_mac_share(68, 4, 24), 9.1, 1);
    expect(100 * lant_estimate_mac_share(68, 4, 0), 5.6, 1);
    expect(100 * lant_estimate_gain(10, 8.56), 14.4, 1);
    expect(100 * lant_estimate_gain(5.23, 4.21), 19.5, 1);
}

/* LNI-09, LNI-85: headers and footers. */
static void test_overheads(void **state)
{
    (void)state;
    expect(100 * lant_estimate_overhead(64), 5.88, 2);
    expect(100 * lant_estimate_overhead(16), 20, 2);
    expect(100 * lant_estimate_overhead(512), 0.78, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_overheads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
