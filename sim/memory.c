/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/memory.h"

#include <stdlib.h>

void sim_memory_open(struct sim_memory *memory, size_t bytes, uint64_t latency_ps)
{
    const size_t pages = (bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    *memory = (struct sim_memory){.size = pages * SIM_PAGE_BYTES, .latency_ps = latency_ps};
    memory->bytes = calloc(pages, SIM_PAGE_BYTES);
    CHECK(memory->bytes != NULL);
}

void sim_memory_close(struct sim_memory *memory)
{
    free(memory->frames);
    free(memory->bytes);
    *memory = (struct sim_memory){.bytes = NULL};
}

void sim_memory_translate(struct sim_memory *memory, uint32_t pages, uint64_t fault_ps)
{
    CHECK(memory->frames == NULL && pages > 0);
    memory->frames = calloc(pages, sizeof(memory->frames[0]));
    CHECK(memory->frames != NULL);
    memory->pages = pages;
    memory->fault_ps = fault_ps;
}

void sim_memory_map(struct sim_memory *memory, uint32_t page, uint32_t frame)
{
    CHECK(page < memory->pages && frame < memory->size / SIM_PAGE_BYTES);
    memory->frames[page] = frame + 1;
}

void sim_memory_unmap(struct sim_memory *memory, uint32_t page)
{
    CHECK(page < memory->pages);
    memory->frames[page] = 0;
}

static enum sim_memory_verdict translate(struct sim_memory *memory, uint64_t address, size_t length,
                                         uint8_t **at)
{
    const uint64_t first = address / SIM_PAGE_BYTES;
    const uint64_t last = (address + length - 1) / SIM_PAGE_BYTES;
    if (address + length < address || last >= memory->pages) {
        return SIM_MEMORY_OUTSIDE;
    }
    for (uint64_t page = first; page <= last; page++) {
        if (memory->frames[page] == 0) {
            memory->faults++;
            return SIM_MEMORY_ABSENT;
        }
        if (memory->frames[page] != memory->frames[first] + (page - first)) {
            return SIM_MEMORY_CROSSES;
        }
    }
    const size_t frame = memory->frames[first] - 1;
    *at = memory->bytes + frame * SIM_PAGE_BYTES + address % SIM_PAGE_BYTES;
    return SIM_MEMORY_GOOD;
}

enum sim_memory_verdict sim_memory_at(struct sim_memory *memory, uint64_t address, size_t length,
                                      uint8_t **at)
{
    CHECK(length > 0);
    if (memory->frames != NULL) {
        return translate(memory, address, length, at);
    }
    if (address >= memory->size || length > memory->size - address) {
        return SIM_MEMORY_OUTSIDE;
    }
    *at = memory->bytes + address;
    return SIM_MEMORY_GOOD;
}
