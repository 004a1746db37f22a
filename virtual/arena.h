/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arena - memory for the objects of a NIC, handed out in the same way in each run.
 *
 * Purpose    The allocator and all its notes lie in the memory that it hands out, so that whoever
 *            maps it at the same address finds everything.
 * Ownership  The caller gives the memory, zeroed; the arena keeps it.
 * Limits     A block takes up to a quarter more than was asked for, and a line for a note.
 */
#ifndef VIRTUAL_ARENA_H
#define VIRTUAL_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/box_ask.h"

enum {
    ARENA_LINE = 64,
    ARENA_CLASSES = 160, /* Sizes that blocks have: four to a doubling. */
};

struct arena_block;

struct arena {
    struct box_arena head;
    uint64_t bytes; /* Its head included. */
    uint64_t used;  /* Those before have been handed out, or are the arena's own. */
    struct arena_block *free[ARENA_CLASSES];
};

/* Begins an arena in zeroed memory of `bytes`, whose head is filled in. */
struct arena *arena_begin(void *memory, uint64_t bytes);

/* Zeroed, aligned to a line. NULL: no room. A block that was given back is taken again, the newest
 * first. */
void *arena_take(struct arena *arena, size_t bytes);
/* NULL: nothing is done. */
void arena_give(struct arena *arena, void *memory);

#endif
