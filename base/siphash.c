/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/siphash.h"

#include "base/bytes.h"

struct state {
    uint64_t v[4];
};

static uint64_t rotated(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void half_round(uint64_t *a, uint64_t *b, unsigned bits)
{
    *a += *b;
    *b = rotated(*b, bits) ^ *a;
}

static void round_once(struct state *state)
{
    uint64_t *v = state->v;
    half_round(&v[0], &v[1], 13);
    v[0] = rotated(v[0], 32);
    half_round(&v[2], &v[3], 16);
    half_round(&v[0], &v[3], 21);
    half_round(&v[2], &v[1], 17);
    v[2] = rotated(v[2], 32);
}

static void take_word(struct state *state, uint64_t word)
{
    state->v[3] ^= word;
    round_once(state);
    round_once(state);
    state->v[0] ^= word;
}

uint64_t siphash(const struct siphash_key *key, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    struct state state = {{key->halves[0] ^ 0x736f6d6570736575, key->halves[1] ^ 0x646f72616e646f6d,
                           key->halves[0] ^ 0x6c7967656e657261,
                           key->halves[1] ^ 0x7465646279746573}};
    uint64_t last = (uint64_t)count << 56;
    for (size_t words = count / 8; words != 0; words--, at += 8) {
        take_word(&state, load_le64(at));
    }
    for (size_t i = 0; i < count % 8; i++) {
        last |= (uint64_t)at[i] << 8 * i;
    }
    take_word(&state, last);
    state.v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        round_once(&state);
    }
    return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}
