/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/block/hold.h"

#include <string.h>

#include "base/align.h"

static size_t slots_bytes(uint32_t slots)
{
    return line_aligned(slots * sizeof(struct block_hold_slot));
}

size_t block_hold_bytes(uint32_t slots, uint32_t mtu_bytes)
{
    return slots_bytes(slots) + line_aligned((size_t)slots * mtu_bytes);
}

void block_hold_init(struct block_hold *hold, uint32_t slots, uint32_t mtu_bytes, void *memory)
{
    *hold = (struct block_hold){
        .slots = memory,
        .payloads = (uint8_t *)memory + slots_bytes(slots),
        .slot_bytes = mtu_bytes,
        .count = slots,
        .free = BLOCK_HOLD_NONE,
    };
}

static struct block_hold_slot *slot_at(const struct block_hold *hold, uint32_t slot)
{
    CHECK(slot < hold->count && hold->slots[slot].taken);
    return &hold->slots[slot];
}

/* The slot behind which `position` belongs: mostly the last, since packets mostly come in order. */
static uint32_t place_in_ring(const struct block_hold *hold, uint32_t ring, uint8_t position)
{
    uint32_t at = ring;
    if (slot_at(hold, ring)->position < position) {
        return at;
    }
    while (slot_at(hold, slot_at(hold, at)->next)->position < position) {
        at = slot_at(hold, at)->next;
    }
    return at;
}

/* BLOCK_HOLD_NONE: all are taken. */
static uint32_t take_slot(struct block_hold *hold)
{
    const uint32_t slot = hold->free;
    if (slot != BLOCK_HOLD_NONE) {
        hold->free = hold->slots[slot].next;
        return slot;
    }
    return hold->fresh == hold->count ? BLOCK_HOLD_NONE : hold->fresh++;
}

bool block_hold_add(struct block_hold *hold, uint32_t *ring, uint8_t position,
                    const uint8_t *payload, uint32_t bytes)
{
    CHECK(bytes <= hold->slot_bytes);
    const uint32_t slot = take_slot(hold);
    if (slot == BLOCK_HOLD_NONE) {
        return false;
    }
    struct block_hold_slot *taken = &hold->slots[slot];
    hold->used++;
    *taken = (struct block_hold_slot){
        .next = slot, .bytes = (uint16_t)bytes, .position = position, .taken = true};
    if (bytes != 0) {
        memcpy(hold->payloads + (size_t)slot * hold->slot_bytes, payload, bytes);
    }
    if (*ring == BLOCK_HOLD_NONE) {
        *ring = slot;
        return true;
    }
    const uint32_t before = place_in_ring(hold, *ring, position);
    taken->next = slot_at(hold, before)->next;
    slot_at(hold, before)->next = slot;
    if (slot_at(hold, *ring)->position < position) {
        *ring = slot;
    }
    return true;
}

uint32_t block_hold_first(const struct block_hold *hold, uint32_t ring)
{
    return slot_at(hold, ring)->next;
}

uint8_t block_hold_position(const struct block_hold *hold, uint32_t slot)
{
    return slot_at(hold, slot)->position;
}

uint32_t block_hold_length(const struct block_hold *hold, uint32_t slot)
{
    return slot_at(hold, slot)->bytes;
}

const uint8_t *block_hold_payload(const struct block_hold *hold, uint32_t slot)
{
    CHECK(slot < hold->count && hold->slots[slot].taken);
    return hold->payloads + (size_t)slot * hold->slot_bytes;
}

uint32_t block_hold_detach(struct block_hold *hold, uint32_t *ring)
{
    const uint32_t first = block_hold_first(hold, *ring);
    if (first == *ring) {
        *ring = BLOCK_HOLD_NONE;
    } else {
        slot_at(hold, *ring)->next = slot_at(hold, first)->next;
    }
    return first;
}

void block_hold_release(struct block_hold *hold, uint32_t slot)
{
    struct block_hold_slot *taken = slot_at(hold, slot);
    *taken = (struct block_hold_slot){.next = hold->free};
    hold->free = slot;
    hold->used--;
}

void block_hold_drop(struct block_hold *hold, uint32_t *ring)
{
    while (*ring != BLOCK_HOLD_NONE) {
        block_hold_release(hold, block_hold_detach(hold, ring));
    }
}

void block_hold_check(const struct block_hold *hold)
{
    uint32_t free = 0;
    for (uint32_t at = hold->free; at != BLOCK_HOLD_NONE; at = hold->slots[at].next) {
        CHECK(at < hold->fresh && !hold->slots[at].taken);
        CHECK(++free <= hold->fresh);
    }
    CHECK(hold->fresh <= hold->count && free + hold->used == hold->fresh);
}
