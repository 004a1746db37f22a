/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"

#include "base/check.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t mixed = (*state += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

static uint64_t rotated(uint64_t value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

void prng_init(struct prng *prng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        prng->state[i] = splitmix(&seed);
    }
}

uint64_t prng_next(struct prng *prng)
{
    uint64_t *s = prng->state;
    const uint64_t result = rotated(s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotated(s[3], 45);
    return result;
}

uint64_t prng_below(struct prng *prng, uint64_t bound)
{
    CHECK(bound != 0);
    /* Values under 2^64 mod bound are drawn again, so every remainder is equally likely. */
    const uint64_t unfair = (0 - bound) % bound;
    uint64_t drawn = prng_next(prng);
    while (drawn < unfair) {
        drawn = prng_next(prng);
    }
    return drawn % bound;
}

bool prng_chance(struct prng *prng, uint32_t millionths)
{
    return millionths != 0 && prng_below(prng, 1000000) < millionths;
}
