/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/common/timing.h"

#include "base/check.h"

uint64_t ack_timeout_ns(uint8_t code)
{
    return code == 0 ? UINT64_MAX : 4096ull << (code & 31);
}

/* Units of 10 us. */
static const uint32_t rnr_times[32] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t rnr_timer_ns(uint8_t code)
{
    return (uint64_t)rnr_times[code & 31] * 10000;
}

static const uint16_t credit_counts[31] = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

/* From 2 on, the counts of the table are 2^n and 1.5 * 2^n in turn. */
uint8_t credits_encode(uint32_t receives)
{
    if (receives < 2) {
        return (uint8_t)receives;
    }
    const uint32_t power = 31 - (uint32_t)__builtin_clz(receives);
    const uint32_t code = 2 * power + (receives >> (power - 1) & 1);
    return code < COUNT_OF(credit_counts) ? (uint8_t)code : COUNT_OF(credit_counts) - 1;
}

uint32_t credits_decode(uint8_t code)
{
    CHECK(code < COUNT_OF(credit_counts));
    return credit_counts[code];
}
