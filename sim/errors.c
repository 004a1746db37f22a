/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/errors.h"

#include "base/check.h"
#include "sim/number.h"

/* How many bits pass before one is flipped: geometric. */
static uint64_t draw(struct sim_errors *errors)
{
    const double gap =
        sim_log(sim_uniform(&errors->prng)) / sim_log_of_1_plus(-errors->bit_error_rate);
    return gap >= 9e18 ? UINT64_C(9000000000000000000) : (uint64_t)gap;
}

void sim_errors_init(struct sim_errors *errors, uint64_t seed, double bit_error_rate,
                     uint32_t loss_millionths)
{
    CHECK(bit_error_rate >= 0 && bit_error_rate < 1);
    CHECK(loss_millionths <= 1000000);
    *errors =
        (struct sim_errors){.bit_error_rate = bit_error_rate, .loss_millionths = loss_millionths};
    prng_init(&errors->prng, seed);
    if (bit_error_rate > 0) {
        errors->good_bits = draw(errors);
    }
}

uint64_t sim_errors_next(struct sim_errors *errors, uint64_t from, uint64_t bits)
{
    CHECK(from <= bits);
    if (errors->bit_error_rate <= 0 || errors->good_bits >= bits - from) {
        errors->good_bits -= errors->bit_error_rate <= 0 ? 0 : bits - from;
        return bits;
    }
    const uint64_t at = from + errors->good_bits;
    errors->good_bits = draw(errors);
    errors->flipped++;
    return at;
}

bool sim_errors_loses(struct sim_errors *errors)
{
    if (errors->loss_millionths == 0 || !prng_chance(&errors->prng, errors->loss_millionths)) {
        return false;
    }
    errors->lost++;
    return true;
}
