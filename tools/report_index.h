/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_index - tables by which `nonic report` finds halves, and packets that it saw. Internal.
 *
 * A packet's place is taken by the next one that falls on it, so that memory does not grow with the
 * capture: what is not found is not told.
 */
#ifndef TOOLS_REPORT_INDEX_H
#define TOOLS_REPORT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/report.h"

/* The number that a request had between two addresses, in the first look. */
struct report_token {
    uint64_t hash;
    uint32_t half;
    bool is_ambiguous; /* Another half had the same one. */
};

/* A packet of a request, in the second look. */
struct report_sent {
    uint64_t key, number, at_ns; /* number: 0: none. */
    uint32_t half;
    bool is_repeated;
};

struct report_index {
    uint32_t halves[2 * REPORT_HALVES_MAX]; /* Their numbers, plus 1. */
    struct report_token tokens[1 << 17];
    struct report_sent sent[1 << 17];
};

static inline uint64_t report_mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return value ^ value >> 32;
}

static inline uint64_t report_hash(uint64_t hash, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hash = report_mix(hash + bytes[i] + 1);
    }
    return hash;
}

#endif
