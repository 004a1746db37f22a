/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtual/arena.h"

#include <string.h>

#include "base/check.h"

/* The line in front of a block. */
struct arena_block {
    uint64_t lines; /* The block's, this one left out. */
    uint32_t size_class;
    uint32_t taken;
    struct arena_block *next; /* The next one of its size that was given back. */
    uint8_t rest[ARENA_LINE - 24];
};
_Static_assert(sizeof(struct arena_block) == ARENA_LINE, "a block begins with a line");

/* The least class whose blocks have at least `lines` lines, and the lines that they have: 1, 2, 3,
 * 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 and so on. */
static uint32_t class_of(uint64_t lines, uint64_t *granted)
{
    if (lines <= 4) {
        *granted = lines;
        return (uint32_t)lines - 1;
    }
    const uint32_t doublings = 63 - (uint32_t)__builtin_clzll(lines - 1); /* At least 2. */
    const uint64_t step = UINT64_C(1) << (doublings - 2);
    const uint64_t steps = (lines - (UINT64_C(1) << doublings) + step - 1) / step;
    *granted = (UINT64_C(1) << doublings) + steps * step;
    return 4 * (doublings - 1) - 1 + (uint32_t)steps;
}

struct arena *arena_begin(void *memory, uint64_t bytes)
{
    struct arena *arena = memory;
    CHECK(bytes > sizeof(*arena) && (uintptr_t)memory % ARENA_LINE == 0);
    arena->bytes = bytes;
    arena->used = (sizeof(*arena) + ARENA_LINE - 1) / ARENA_LINE * ARENA_LINE;
    return arena;
}

static struct arena_block *take_new(struct arena *arena, uint32_t size_class, uint64_t lines)
{
    const uint64_t bytes = (lines + 1) * ARENA_LINE;
    if (bytes > arena->bytes - arena->used) {
        return NULL;
    }
    struct arena_block *block = (struct arena_block *)(void *)((uint8_t *)arena + arena->used);
    arena->used += bytes;
    block->lines = lines;
    block->size_class = size_class;
    return block;
}

void *arena_take(struct arena *arena, size_t bytes)
{
    uint64_t lines;
    if (bytes == 0 || bytes > arena->bytes) {
        return NULL;
    }
    const uint32_t size_class = class_of((bytes + ARENA_LINE - 1) / ARENA_LINE, &lines);
    CHECK(size_class < ARENA_CLASSES);
    struct arena_block *block = arena->free[size_class];
    if (block == NULL) {
        block = take_new(arena, size_class, lines);
    } else {
        arena->free[size_class] = block->next;
        memset(block + 1, 0, block->lines * ARENA_LINE);
    }
    if (block == NULL) {
        return NULL;
    }
    block->next = NULL;
    block->taken = 1;
    return block + 1;
}

void arena_give(struct arena *arena, void *memory)
{
    if (memory == NULL) {
        return;
    }
    struct arena_block *block = (struct arena_block *)memory - 1;
    CHECK((uint8_t *)block > (uint8_t *)arena && (uint8_t *)block < (uint8_t *)arena + arena->used);
    CHECK(block->taken == 1 && block->size_class < ARENA_CLASSES);
    block->taken = 0;
    block->next = arena->free[block->size_class];
    arena->free[block->size_class] = block;
}
