/* SPDX-License-Identifier: BSD-2-Clause
 *
 * input - the bytes that a fuzzer gives, taken one after the other. Behind their end there are
 *         zeros.
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

struct input {
    const uint8_t *bytes;
    size_t count;
};

static inline uint8_t take(struct input *input)
{
    if (input->count == 0) {
        return 0;
    }
    input->count--;
    return *input->bytes++;
}

static inline uint32_t take_number(struct input *input, uint32_t bytes)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        number |= (uint32_t)take(input) << 8 * i;
    }
    return number;
}

/* Up to `wanted` bytes, as many as there are. */
static inline size_t take_bytes(struct input *input, uint8_t *to, size_t wanted)
{
    const size_t count = wanted < input->count ? wanted : input->count;
    if (count > 0) {
        memcpy(to, input->bytes, count);
    }
    input->bytes += count;
    input->count -= count;
    return count;
}

#endif
