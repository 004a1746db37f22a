/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/number.h"

#include "base/check.h"

#define LN_2          0.69314718055994530942
#define FRACTION_BITS 53
#define TERMS_MAX     400

/* The series in x / (2 + x), until a term changes nothing. */
double sim_log_of_1_plus(double x)
{
    CHECK(x > -1 && x < 1);
    const double ratio = x / (2 + x);
    double power = ratio;
    double sum = 0;
    for (int k = 1; k < TERMS_MAX; k += 2) {
        const double more = sum + power / k;
        if (k > 1 && more == sum) {
            break;
        }
        sum = more;
        power *= ratio * ratio;
    }
    return 2 * sum;
}

double sim_log(double value)
{
    CHECK(value > 0 && value <= 1);
    double halvings = 0;
    while (value < 0.5) {
        value *= 2;
        halvings++;
    }
    return (value == 1 ? 0 : sim_log_of_1_plus(value - 1)) - halvings * LN_2;
}

double sim_uniform(struct prng *prng)
{
    const uint64_t steps = prng_below(prng, UINT64_C(1) << FRACTION_BITS) + 1;
    return (double)steps / (double)(UINT64_C(1) << FRACTION_BITS);
}
