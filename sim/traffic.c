/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/traffic.h"

#include <string.h>

#include "base/check.h"
#include "sim/number.h"

#define FLOW_BITS   24
#define NUMBER_BITS 40
#define STRIDE      UINT64_C(0x9e3779b97f4a7c15)

/* Two words at once, which every 64-bit machine can do. */
struct pair {
    uint64_t words __attribute__((vector_size(16)));
};

static uint64_t name_of(uint32_t flow, uint64_t number)
{
    return (uint64_t)flow << NUMBER_BITS | (number & ((UINT64_C(1) << NUMBER_BITS) - 1));
}

static uint64_t key_of(uint64_t name)
{
    name ^= name >> 32;
    name *= UINT64_C(0xd6e8feb86659fd93);
    return name ^ name >> 32;
}

void sim_payload_fill(uint64_t *payload, size_t words, uint32_t flow, uint64_t number)
{
    CHECK(flow >> FLOW_BITS == 0);
    const uint64_t name = name_of(flow, number);
    const uint64_t key = key_of(name);
    struct pair next = {{key, key + STRIDE}};
    size_t i = 0;
    for (; i + 2 <= words; i += 2) {
        memcpy(payload + i, &next, sizeof(next));
        next.words += 2 * STRIDE;
    }
    if (i < words) {
        payload[i] = next.words[0];
    }
    payload[0] = name;
}

static bool bytes_right(const uint64_t *payload, size_t words)
{
    const uint64_t key = key_of(payload[0]);
    struct pair differences = {{0, 0}};
    struct pair expected = {{key + STRIDE, key + 2 * STRIDE}};
    size_t i = 1;
    for (; i + 2 <= words; i += 2) {
        struct pair there;
        memcpy(&there, payload + i, sizeof(there));
        differences.words |= there.words ^ expected.words;
        expected.words += 2 * STRIDE;
    }
    const uint64_t last = i < words ? payload[i] ^ expected.words[0] : 0;
    return (differences.words[0] | differences.words[1] | last) == 0;
}

enum sim_payload_verdict sim_sink_judge(struct sim_sink *sink, const uint64_t *payload,
                                        size_t words, uint32_t flow)
{
    CHECK(words > 0);
    if (payload[0] >> NUMBER_BITS != flow || !bytes_right(payload, words)) {
        sink->wrong_bytes++;
        return SIM_PAYLOAD_WRONG_BYTES;
    }
    const uint64_t number = payload[0] & ((UINT64_C(1) << NUMBER_BITS) - 1);
    if (number < sink->expected) {
        sink->earlier++;
        return SIM_PAYLOAD_EARLIER;
    }
    sink->good++;
    sink->missing += number - sink->expected;
    const bool later = number > sink->expected;
    sink->expected = number + 1;
    return later ? SIM_PAYLOAD_LATER : SIM_PAYLOAD_GOOD;
}

uint64_t sim_poisson_gap(struct prng *prng, uint64_t mean_ps)
{
    return (uint64_t)(-sim_log(sim_uniform(prng)) * (double)mean_ps);
}

uint32_t sim_destination(struct prng *prng, uint32_t self, uint32_t nodes, double unbalance)
{
    CHECK(nodes >= 2 && self < nodes);
    if (unbalance > 0 && sim_uniform(prng) <= unbalance) {
        return (self + nodes / 2) % nodes;
    }
    const uint32_t other = (uint32_t)prng_below(prng, nodes - 1);
    return other + (other >= self);
}
