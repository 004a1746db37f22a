/* SPDX-License-Identifier: BSD-2-Clause
 *
 * number - the few functions of real numbers a world needs, the same to the last bit everywhere.
 *
 * They use + - * / alone, which IEEE 754 defines exactly; a library's log does not promise that.
 */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#include "base/prng.h"

/* Natural logarithm of a value in (0, 1]. */
double sim_log(double value);
/* ln(1 + x) for x in (-1, 1), precise near 0. */
double sim_log_of_1_plus(double x);
/* Uniform in (0, 1], in steps of 2^-53. */
double sim_uniform(struct prng *prng);

#endif
