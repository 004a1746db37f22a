/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ranges - may a WRITE be placed before what was posted before it has been executed?
 *
 * Purpose    Remembers the memory that WRITEs under way are for, so that a later WRITE is placed
 *            early only where that cannot be seen (the D bit, and the rule for it).
 * Inputs     block_ranges_add for each WRITE and atomic that is begun, in posting order.
 * Outputs    block_ranges_clear_of.
 * Ownership  Caller owns the struct.
 * Units      Bytes; block numbers (BN) wrap.
 * Limits     BLOCK_RANGES WRITEs are compared; while there are more, nothing is placed early.
 * Source     docs/block-transport.md, "What the requester sends, and when" (D).
 */
#ifndef TRANSPORT_BLOCK_RANGES_H
#define TRANSPORT_BLOCK_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_RANGES 64

struct block_range {
    uint64_t address;
    uint32_t bytes; /* 0 never overlaps. */
    uint32_t key;
};

struct block_ranges {
    struct block_range ranges[BLOCK_RANGES]; /* The newest WRITEs; the oldest at `head`. */
    uint32_t ends[BLOCK_RANGES];             /* BN behind the last block of each. */
    uint8_t head, count;
    bool blocked;         /* An atomic, or a WRITE that found no place, ... */
    uint32_t blocked_end; /* ... which is executed when base has come here. */
};

void block_ranges_init(struct block_ranges *ranges);

/* Everything before `base` has been executed. */
void block_ranges_on_base(struct block_ranges *ranges, uint32_t base);

/* Are all WRITEs that are not executed by the same key and elsewhere, and no atomic among them? */
bool block_ranges_clear_of(const struct block_ranges *ranges, const struct block_range *range);

void block_ranges_add(struct block_ranges *ranges, const struct block_range *range, uint32_t end);

/* An atomic: nothing is placed before it is executed. */
void block_ranges_add_atomic(struct block_ranges *ranges, uint32_t end);

#endif
