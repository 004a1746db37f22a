/* SPDX-License-Identifier: BSD-2-Clause
 *
 * errors - a fault element: bits that are flipped, and packets that are lost whole.
 *
 * The distance to the next flipped bit is drawn once, so a stretch without errors costs a
 * subtraction, however many bits it has.
 */
#ifndef SIM_ERRORS_H
#define SIM_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"

struct sim_errors {
    double bit_error_rate;
    uint64_t good_bits;       /* Until the next flipped one. */
    uint32_t loss_millionths; /* How many of a million whole units (credits, packets) are lost. */
    struct prng prng;
    uint64_t flipped, lost;
};

/* `bit_error_rate` in [0, 1), `loss_millionths` up to 1,000,000. Zeroed memory makes no errors. */
void sim_errors_init(struct sim_errors *errors, uint64_t seed, double bit_error_rate,
                     uint32_t loss_millionths);

/* Do `bits` bits pass unharmed? If so they have passed. If not, ask sim_errors_next. */
static inline bool sim_errors_pass(struct sim_errors *errors, uint64_t bits)
{
    if (errors->bit_error_rate <= 0) {
        return true;
    }
    if (errors->good_bits < bits) {
        return false;
    }
    errors->good_bits -= bits;
    return true;
}

/* The next flipped bit of `bits`, at or behind `from`. The answer `bits` means that there is none,
 * and that all have passed. Start with `from` 0 and go on with one more than the answer. */
uint64_t sim_errors_next(struct sim_errors *errors, uint64_t from, uint64_t bits);

/* Is this unit lost? */
bool sim_errors_loses(struct sim_errors *errors);

#endif
