/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/memory.h"

#include <stdlib.h>

void sim_memory_open(struct sim_memory *memory, size_t bytes)
{
    const size_t pages = (bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    *memory = (struct sim_memory){.size = pages * SIM_PAGE_BYTES};
    memory->bytes = calloc(pages, SIM_PAGE_BYTES);
    CHECK(memory->bytes != NULL);
}

void sim_memory_close(struct sim_memory *memory)
{
    free(memory->bytes);
    *memory = (struct sim_memory){.bytes = NULL};
}

enum sim_memory_verdict sim_memory_at(const struct sim_memory *memory, uint64_t address,
                                      size_t length, uint8_t **at)
{
    CHECK(length > 0);
    if (address >= memory->size || length > memory->size - address) {
        return SIM_MEMORY_OUTSIDE;
    }
    *at = memory->bytes + address;
    return SIM_MEMORY_GOOD;
}
