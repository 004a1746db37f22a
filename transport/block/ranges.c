/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/block/ranges.h"

#include "wire/block.h"

void block_ranges_init(struct block_ranges *ranges)
{
    *ranges = (struct block_ranges){.head = 0};
}

void block_ranges_on_base(struct block_ranges *ranges, uint32_t base)
{
    while (ranges->count != 0 && block_number_distance(ranges->ends[ranges->head], base) >= 0) {
        ranges->head = (uint8_t)((ranges->head + 1) % BLOCK_RANGES);
        ranges->count--;
    }
    if (ranges->blocked && block_number_distance(ranges->blocked_end, base) >= 0) {
        ranges->blocked = false;
    }
}

/* Addresses wrap: a range may go over the last one. */
static bool overlap(const struct block_range *a, const struct block_range *b)
{
    return a->bytes != 0 && b->bytes != 0 &&
           (b->address - a->address < a->bytes || a->address - b->address < b->bytes);
}

bool block_ranges_clear_of(const struct block_ranges *ranges, const struct block_range *range)
{
    if (ranges->blocked) {
        return false;
    }
    for (uint32_t i = 0; i < ranges->count; i++) {
        const struct block_range *other = &ranges->ranges[(ranges->head + i) % BLOCK_RANGES];
        /* Two keys may name the same memory. */
        if (other->key != range->key || overlap(other, range)) {
            return false;
        }
    }
    return true;
}

/* A range that begins where the newest one ends becomes a part of it, if both together stay
 * countable. */
static bool continues(const struct block_range *newest, const struct block_range *range)
{
    return newest->key == range->key && newest->address + newest->bytes == range->address &&
           range->bytes <= UINT32_MAX - newest->bytes;
}

void block_ranges_add(struct block_ranges *ranges, const struct block_range *range, uint32_t end)
{
    if (ranges->count == BLOCK_RANGES) {
        const uint32_t last = (ranges->head + BLOCK_RANGES - 1u) % BLOCK_RANGES;
        if (continues(&ranges->ranges[last], range)) {
            ranges->ranges[last].bytes += range->bytes;
            ranges->ends[last] = end;
            return;
        }
        /* All later WRITEs wait for the newest one. */
        ranges->blocked = true;
        ranges->blocked_end = end;
        return;
    }
    const uint32_t at = (ranges->head + ranges->count) % BLOCK_RANGES;
    ranges->ranges[at] = *range;
    ranges->ends[at] = end;
    ranges->count++;
}

void block_ranges_add_atomic(struct block_ranges *ranges, uint32_t end)
{
    ranges->blocked = true;
    ranges->blocked_end = end;
}
