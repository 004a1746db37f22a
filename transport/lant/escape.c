/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/escape.h"

#include <string.h>

#define NONE UINT16_MAX

void lant_escape_init(struct lant_escape *escape, uint32_t slots, uint64_t patience)
{
    CHECK(slots >= 1 && slots <= LANT_ESCAPES_MAX);
    escape->count = (uint16_t)slots;
    escape->used = escape->used_max = escape->released_count = 0;
    escape->oldest = escape->newest = NONE;
    escape->patience = patience;
    for (uint32_t i = 0; i < LANT_ESCAPE_WORDS; i++) {
        const uint32_t left = slots > i * 64 ? slots - i * 64 : 0;
        escape->free[i] = left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
        escape->released[i] = 0;
    }
}

static bool has(const uint64_t *bits, uint32_t slot)
{
    return bits[slot / 64] >> slot % 64 & 1;
}

static void set(uint64_t *bits, uint32_t slot)
{
    bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

static void clear(uint64_t *bits, uint32_t slot)
{
    bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

void lant_escape_check(const struct lant_escape *escape)
{
    uint32_t used = 0, released = 0, free = 0;
    uint32_t before = NONE;
    for (uint32_t slot = escape->oldest; slot != NONE; slot = escape->slots[slot].newer) {
        CHECK(slot < escape->count && !has(escape->free, slot));
        CHECK(escape->slots[slot].older == before);
        CHECK(before == NONE || escape->slots[before].expires <= escape->slots[slot].expires);
        released += has(escape->released, slot);
        before = slot;
        used++;
    }
    for (uint32_t i = 0; i < LANT_ESCAPE_WORDS; i++) {
        CHECK((escape->free[i] & escape->released[i]) == 0);
    }
    for (uint32_t slot = 0; slot < LANT_ESCAPES_MAX; slot++) {
        free += has(escape->free, slot);
    }
    CHECK(escape->newest == before && escape->used == used && used + free == escape->count);
    CHECK(escape->released_count == released && escape->used <= escape->used_max);
}

static uint32_t lowest_free(const struct lant_escape *escape)
{
    for (uint32_t i = 0; i < LANT_ESCAPE_WORDS; i++) {
        if (escape->free[i] != 0) {
            return i * 64 + (uint32_t)__builtin_ctzll(escape->free[i]);
        }
    }
    UNREACHABLE("no free slot");
}

/* Only the payload's flits that are there. */
static void copy_packet(struct lant_packet *to, const struct lant_packet *from)
{
    to->header = from->header;
    to->footer = from->footer;
    memcpy(to->payload, from->payload, (size_t)from->header.payload * LANT_FLIT_BYTES);
}

void lant_escape_put(struct lant_escape *escape, uint64_t now, const struct lant_packet *packet)
{
    INVARIANTS(lant_escape_check(escape));
    const uint32_t slot = lowest_free(escape);
    CHECK(packet->header.payload <= LANT_PAYLOAD_FLITS_MAX);
    clear(escape->free, slot);
    escape->slots[slot] = (struct lant_escape_slot){
        .key = lant_operation_key(packet->footer.source, lant_operation_of(&packet->footer)),
        .address = packet->header.address,
        .expires = lant_time_after(now, escape->patience),
        .older = escape->newest,
        .newer = NONE,
    };
    if (escape->newest == NONE) {
        escape->oldest = (uint16_t)slot;
    } else {
        escape->slots[escape->newest].newer = (uint16_t)slot;
    }
    escape->newest = (uint16_t)slot;
    escape->used++;
    if (escape->used > escape->used_max) {
        escape->used_max = escape->used;
    }
    copy_packet(&escape->packets[slot], packet);
    INVARIANTS(lant_escape_check(escape));
}

static void free_slot(struct lant_escape *escape, uint32_t slot)
{
    const struct lant_escape_slot *at = &escape->slots[slot];
    if (at->older == NONE) {
        escape->oldest = at->newer;
    } else {
        escape->slots[at->older].newer = at->newer;
    }
    if (at->newer == NONE) {
        escape->newest = at->older;
    } else {
        escape->slots[at->newer].older = at->older;
    }
    if (has(escape->released, slot)) {
        escape->released_count--;
        clear(escape->released, slot);
    }
    set(escape->free, slot);
    escape->used--;
}

uint32_t lant_escape_release(struct lant_escape *escape, uint64_t key, uint64_t base,
                             uint32_t packets)
{
    uint32_t count = 0;
    for (uint32_t slot = escape->oldest; slot != NONE; slot = escape->slots[slot].newer) {
        const struct lant_escape_slot *at = &escape->slots[slot];
        if (at->key == key && !has(escape->released, slot) &&
            at->address - base < (uint64_t)packets * LANT_PAYLOAD_BYTES_MAX) {
            set(escape->released, slot);
            count++;
        }
    }
    escape->released_count = (uint16_t)(escape->released_count + count);
    INVARIANTS(lant_escape_check(escape));
    return count;
}

bool lant_escape_next_released(struct lant_escape *escape, struct lant_packet *packet)
{
    if (escape->released_count == 0) {
        return false;
    }
    uint32_t slot = escape->oldest;
    while (!has(escape->released, slot)) {
        slot = escape->slots[slot].newer;
    }
    copy_packet(packet, &escape->packets[slot]);
    free_slot(escape, slot);
    INVARIANTS(lant_escape_check(escape));
    return true;
}

uint32_t lant_escape_on_time(struct lant_escape *escape, uint64_t now)
{
    uint32_t dropped = 0;
    while (escape->used > 0 && escape->slots[escape->oldest].expires <= now) {
        free_slot(escape, escape->oldest);
        dropped++;
    }
    INVARIANTS(lant_escape_check(escape));
    return dropped;
}
