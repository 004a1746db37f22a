/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/memcheck.h"

#include <stdint.h>

#include "drivers/system/processor.h"

#define TOOL(first, second) ((uint64_t)(first) << 24 | (uint64_t)(second) << 16)

enum request {
    MAKE_DEFINED = 2,
    CHECK_ADDRESSABLE = 4,
    CHECK_DEFINED = 5,
};

static uint64_t ask(enum request request, const void *memory, size_t bytes)
{
    volatile const uint64_t words[6] = {TOOL('M', 'C') + request, (uintptr_t)memory, bytes};
    return processor_ask_valgrind(words);
}

/* memcheck says of a range that it is made defined -1, and other tools say 0. */
bool memcheck_is_noted(void)
{
    const char byte = 0;
    return ask(MAKE_DEFINED, &byte, sizeof(byte)) != 0;
}

void memcheck_addressable(const void *memory, size_t bytes)
{
    (void)ask(CHECK_ADDRESSABLE, memory, bytes);
}

void memcheck_defined(const void *memory, size_t bytes)
{
    (void)ask(CHECK_DEFINED, memory, bytes);
}
