/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/registration.h"

#include "base/bits.h"

#define NONE LANT_ROW_NONE

void lant_registrations_init(struct lant_registrations *registrations, uint32_t entries,
                             uint32_t mask_bits)
{
    CHECK(entries >= 1 && entries <= LANT_REGISTRATIONS_MAX);
    CHECK(mask_bits >= 1 && mask_bits <= LANT_MASK_BITS_MAX);
    registrations->entries = (uint16_t)entries;
    registrations->mask_bits = (uint16_t)mask_bits;
    registrations->mask_words = (uint16_t)((mask_bits + 63) / 64);
    registrations->used = registrations->used_max = 0;
    registrations->births = 0;
    registrations->oldest = registrations->newest = NONE;
    registrations->free = 0;
    registrations->bits = (uint32_t)__builtin_ctzll(power_of_two(2 * entries));
    for (uint32_t i = 0; i < 1u << registrations->bits; i++) {
        registrations->chains[i] = NONE;
    }
    for (uint32_t i = 0; i < entries; i++) {
        registrations->rows[i] =
            (struct lant_row){.next = (uint16_t)(i + 1 < entries ? i + 1 : NONE)};
    }
}

/* -- Masks --------------------------------------------------------------------------------------*/

static const uint64_t *taken_of(const struct lant_registrations *registrations, uint32_t row)
{
    return &registrations->masks[row * 2 * registrations->mask_words];
}

static const uint64_t *written_of(const struct lant_registrations *registrations, uint32_t row)
{
    return taken_of(registrations, row) + registrations->mask_words;
}

static uint64_t *masks_of(struct lant_registrations *registrations, uint32_t row)
{
    return &registrations->masks[row * 2 * registrations->mask_words];
}

/* Ones from bit `packets` on: ~0 << packets, over all words. Bits of the last word beyond the
 * mask's width are ones, too. */
static uint64_t beyond(uint32_t packets, uint32_t word)
{
    if (packets <= word * 64) {
        return UINT64_MAX;
    }
    return packets >= (word + 1) * 64 ? 0 : UINT64_MAX << packets % 64;
}

static bool has(const uint64_t *mask, uint32_t bit)
{
    return mask[bit / 64] >> bit % 64 & 1;
}

static bool all_ones(const uint64_t *mask, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) {
        if (mask[i] != UINT64_MAX) {
            return false;
        }
    }
    return true;
}

enum lant_mark lant_registrations_mark(const struct lant_registrations *registrations, uint32_t row,
                                       uint32_t packet)
{
    CHECK(packet < lant_registrations_row(registrations, row)->packets);
    if (!has(taken_of(registrations, row), packet)) {
        return LANT_MARK_NEW;
    }
    return has(written_of(registrations, row), packet) ? LANT_MARK_WRITTEN : LANT_MARK_TAKEN;
}

uint64_t lant_registrations_taken(const struct lant_registrations *registrations, uint32_t row,
                                  uint32_t word)
{
    CHECK(word < registrations->mask_words);
    return taken_of(registrations, row)[word];
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static void lant_registrations_check_row(const struct lant_registrations *registrations,
                                         uint32_t row)
{
    const struct lant_row *at = lant_registrations_row(registrations, row);
    const uint64_t *taken = taken_of(registrations, row);
    const uint64_t *written = written_of(registrations, row);
    uint32_t writing = 0;
    CHECK(at->packets >= 1 && at->packets <= registrations->mask_bits);
    for (uint32_t i = 0; i < registrations->mask_words; i++) {
        CHECK((written[i] & ~taken[i]) == 0);
        CHECK((written[i] & beyond(at->packets, i)) == beyond(at->packets, i));
        for (uint64_t bits = taken[i] & ~written[i]; bits != 0; bits &= bits - 1) {
            writing++;
        }
    }
    CHECK(writing == at->writing);
    CHECK((at->state == LANT_ROW_COMPLETE) == all_ones(written, registrations->mask_words));
    CHECK(!has(taken, at->packets - 1u) ||
          (at->last_bytes >= 1 && at->last_bytes <= LANT_PAYLOAD_BYTES_MAX));
}

/* The active rows, from the oldest on. */
static uint32_t check_order(const struct lant_registrations *registrations)
{
    uint32_t active = 0;
    uint32_t before = NONE;
    for (uint32_t row = registrations->oldest; row != NONE; row = registrations->rows[row].newer) {
        CHECK(registrations->rows[row].state == LANT_ROW_ACTIVE);
        CHECK(registrations->rows[row].older == before);
        CHECK(before == NONE ||
              registrations->rows[before].used_at <= registrations->rows[row].used_at);
        before = row;
        active++;
    }
    CHECK(registrations->newest == before);
    return active;
}

void lant_registrations_check(const struct lant_registrations *registrations)
{
    uint32_t used = 0, active = 0, chained = 0, free = 0;
    for (uint32_t i = 0; i < registrations->entries; i++) {
        const uint8_t state = registrations->rows[i].state;
        used += state != LANT_ROW_FREE;
        active += state == LANT_ROW_ACTIVE;
        if (state != LANT_ROW_FREE) {
            lant_registrations_check_row(registrations, i);
        }
    }
    for (uint32_t i = 0; i < 1u << registrations->bits; i++) {
        for (uint32_t row = registrations->chains[i]; row != NONE;
             row = registrations->rows[row].next) {
            const uint64_t key = lant_registrations_row(registrations, row)->key;
            CHECK(registrations->rows[row].state == LANT_ROW_ACTIVE);
            CHECK(lant_operation_hash(key, registrations->bits) == i);
            chained++;
        }
    }
    for (uint32_t row = registrations->free; row != NONE; row = registrations->rows[row].next) {
        CHECK(registrations->rows[row].state == LANT_ROW_FREE);
        free++;
    }
    CHECK(used == registrations->used && used <= registrations->used_max);
    CHECK(chained == active && free == registrations->entries - used);
    CHECK(check_order(registrations) == active);
}

/* -- Asking -------------------------------------------------------------------------------------*/

uint32_t lant_registrations_find_base(const struct lant_registrations *registrations,
                                      uint32_t source, uint32_t operation, uint64_t base)
{
    const uint64_t key = lant_operation_key(source, operation);
    uint32_t row = registrations->chains[lant_operation_hash(key, registrations->bits)];
    while (row != NONE &&
           (registrations->rows[row].key != key || registrations->rows[row].base != base)) {
        row = registrations->rows[row].next;
    }
    return row;
}

uint32_t lant_registrations_find(const struct lant_registrations *registrations, uint32_t source,
                                 uint32_t operation, uint64_t address)
{
    const uint64_t key = lant_operation_key(source, operation);
    uint32_t row = registrations->chains[lant_operation_hash(key, registrations->bits)];
    for (; row != NONE; row = registrations->rows[row].next) {
        const struct lant_row *at = &registrations->rows[row];
        if (at->key == key && address - at->base < (uint64_t)at->packets * LANT_PAYLOAD_BYTES_MAX) {
            break;
        }
    }
    return row;
}

uint32_t lant_row_bytes(const struct lant_row *row)
{
    CHECK(row->state == LANT_ROW_COMPLETE);
    return (row->packets - 1u) * LANT_PAYLOAD_BYTES_MAX + row->last_bytes;
}

/* -- Telling ------------------------------------------------------------------------------------*/

static void link_newest(struct lant_registrations *registrations, uint32_t row)
{
    struct lant_row *at = &registrations->rows[row];
    at->older = registrations->newest;
    at->newer = NONE;
    if (at->older == NONE) {
        registrations->oldest = (uint16_t)row;
    } else {
        registrations->rows[at->older].newer = (uint16_t)row;
    }
    registrations->newest = (uint16_t)row;
}

static void unlink_active(struct lant_registrations *registrations, uint32_t row)
{
    const struct lant_row *at = &registrations->rows[row];
    if (at->older == NONE) {
        registrations->oldest = at->newer;
    } else {
        registrations->rows[at->older].newer = at->newer;
    }
    if (at->newer == NONE) {
        registrations->newest = at->older;
    } else {
        registrations->rows[at->newer].older = at->older;
    }
}

/* Nobody finds it any more, and it does not age. */
static void retire(struct lant_registrations *registrations, uint32_t row)
{
    const struct lant_row *at = &registrations->rows[row];
    uint16_t *link = &registrations->chains[lant_operation_hash(at->key, registrations->bits)];
    while (*link != row) {
        link = &registrations->rows[*link].next;
    }
    *link = at->next;
    unlink_active(registrations, row);
}

uint32_t lant_registrations_add(struct lant_registrations *registrations, uint64_t now,
                                const struct lant_registering *registering)
{
    const uint64_t key = lant_operation_key(registering->source, registering->operation);
    uint16_t *chain = &registrations->chains[lant_operation_hash(key, registrations->bits)];
    const uint16_t row = registrations->free;
    CHECK(row != NONE);
    CHECK(registering->packets >= 1 && registering->packets <= registrations->mask_bits);
    struct lant_row *at = &registrations->rows[row];
    registrations->free = at->next;
    *at = (struct lant_row){
        .state = LANT_ROW_ACTIVE,
        .key = key,
        .base = registering->base,
        .packets = registering->packets,
        .birth = ++registrations->births,
        .used_at = now,
        .next = *chain,
    };
    *chain = row;
    uint64_t *masks = masks_of(registrations, row);
    for (uint32_t i = 0; i < registrations->mask_words; i++) {
        masks[i] = masks[registrations->mask_words + i] = beyond(registering->packets, i);
    }
    link_newest(registrations, row);
    registrations->used++;
    if (registrations->used > registrations->used_max) {
        registrations->used_max = registrations->used;
    }
    INVARIANTS(lant_registrations_check_row(registrations, row));
    return row;
}

void lant_registrations_take(struct lant_registrations *registrations, uint32_t row,
                             uint32_t packet, uint32_t bytes)
{
    struct lant_row *at = &registrations->rows[row];
    CHECK(lant_registrations_mark(registrations, row, packet) == LANT_MARK_NEW);
    masks_of(registrations, row)[packet / 64] |= UINT64_C(1) << packet % 64;
    at->writing++;
    if (packet == at->packets - 1u) {
        at->last_bytes = (uint16_t)bytes;
    } else {
        CHECK(bytes == LANT_PAYLOAD_BYTES_MAX);
    }
    INVARIANTS(lant_registrations_check_row(registrations, row));
}

bool lant_registrations_written(struct lant_registrations *registrations, uint32_t row,
                                uint32_t packet)
{
    struct lant_row *at = &registrations->rows[row];
    uint64_t *written = masks_of(registrations, row) + registrations->mask_words;
    CHECK(lant_registrations_mark(registrations, row, packet) == LANT_MARK_TAKEN);
    written[packet / 64] |= UINT64_C(1) << packet % 64;
    at->writing--;
    const bool complete = all_ones(written, registrations->mask_words);
    if (complete) {
        at->state = LANT_ROW_COMPLETE;
        retire(registrations, row);
    }
    INVARIANTS(lant_registrations_check_row(registrations, row));
    return complete;
}

void lant_registrations_give_back(struct lant_registrations *registrations, uint32_t row,
                                  uint32_t packet)
{
    CHECK(lant_registrations_mark(registrations, row, packet) == LANT_MARK_TAKEN);
    masks_of(registrations, row)[packet / 64] &= ~(UINT64_C(1) << packet % 64);
    registrations->rows[row].writing--;
    INVARIANTS(lant_registrations_check_row(registrations, row));
}

void lant_registrations_touch(struct lant_registrations *registrations, uint64_t now, uint32_t row)
{
    struct lant_row *at = &registrations->rows[row];
    CHECK(at->state == LANT_ROW_ACTIVE && now >= at->used_at);
    unlink_active(registrations, row);
    at->used_at = now;
    link_newest(registrations, row);
}

void lant_registrations_remove(struct lant_registrations *registrations, uint32_t row)
{
    struct lant_row *at = &registrations->rows[row];
    CHECK(at->state != LANT_ROW_FREE && at->writing == 0);
    if (at->state == LANT_ROW_ACTIVE) {
        retire(registrations, row);
    }
    at->state = LANT_ROW_FREE;
    at->next = registrations->free;
    registrations->free = (uint16_t)row;
    registrations->used--;
}
