/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prng - a small, fast, seeded generator (xoshiro256**, seeded through splitmix64).
 *
 * The world owns the seed: the lab passes a number so that a run repeats, the live NIC passes
 * kernel randomness so that keys cannot be guessed. Not a cryptographic generator.
 */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
    uint64_t state[4];
};

void prng_init(struct prng *prng, uint64_t seed);
uint64_t prng_next(struct prng *prng);

/* Uniform in [0, bound); `bound` is not 0. */
uint64_t prng_below(struct prng *prng, uint64_t bound);

/* True with probability `millionths` / 1,000,000. */
bool prng_chance(struct prng *prng, uint32_t millionths);

#endif
