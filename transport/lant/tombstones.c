/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/tombstones.h"

#include "base/bits.h"

#define NOWHERE UINT32_MAX

size_t lant_tombstones_bytes(uint32_t capacity)
{
    return capacity * sizeof(struct lant_tombstone) +
           (size_t)power_of_two(capacity < 2 ? 2 : capacity) * sizeof(uint32_t);
}

void lant_tombstones_init(struct lant_tombstones *tombstones, uint32_t capacity, uint64_t lifetime,
                          void *memory)
{
    CHECK(capacity >= 1 && capacity <= LANT_TOMBSTONES_MAX);
    *tombstones = (struct lant_tombstones){
        .capacity = capacity,
        .bits = (uint32_t)__builtin_ctzll(power_of_two(capacity < 2 ? 2 : capacity)),
        .lifetime = lifetime,
        .stones = memory,
        .chains = (uint32_t *)(void *)((struct lant_tombstone *)memory + capacity),
    };
    for (uint32_t i = 0; i < 1u << tombstones->bits; i++) {
        tombstones->chains[i] = NOWHERE;
    }
}

static uint32_t *chain_of(const struct lant_tombstones *tombstones, uint64_t key)
{
    return &tombstones->chains[lant_operation_hash(key, tombstones->bits)];
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static uint32_t place_of(const struct lant_tombstones *tombstones, uint32_t nth)
{
    const uint32_t place = tombstones->oldest + nth;
    return place < tombstones->capacity ? place : place - tombstones->capacity;
}

/* Looks at the ends of the ring only: it may have 65,536 stones. */
static void check_ends(const struct lant_tombstones *tombstones)
{
    CHECK(tombstones->count <= tombstones->capacity);
    CHECK(tombstones->oldest < tombstones->capacity);
    if (tombstones->count > 0) {
        const uint32_t newest = place_of(tombstones, tombstones->count - 1);
        CHECK(tombstones->stones[tombstones->oldest].expires <= tombstones->stones[newest].expires);
        CHECK(*chain_of(tombstones, tombstones->stones[newest].key) == newest);
    }
}

void lant_tombstones_check(const struct lant_tombstones *tombstones)
{
    uint32_t chained = 0;
    check_ends(tombstones);
    for (uint32_t i = 1; i < tombstones->count; i++) {
        CHECK(tombstones->stones[place_of(tombstones, i - 1)].expires <=
              tombstones->stones[place_of(tombstones, i)].expires);
    }
    for (uint32_t i = 0; i < 1u << tombstones->bits; i++) {
        for (uint32_t at = tombstones->chains[i]; at != NOWHERE; at = tombstones->stones[at].next) {
            CHECK(chain_of(tombstones, tombstones->stones[at].key) == &tombstones->chains[i]);
            chained++;
            CHECK(chained <= tombstones->count);
        }
    }
    CHECK(chained == tombstones->count);
}

/* -- Looking ------------------------------------------------------------------------------------*/

/* A tombstone whose time is over does not count, though it is still there: the source may use the
 * number again. */
static const struct lant_tombstone *next_match(const struct lant_tombstones *tombstones,
                                               uint32_t place, uint64_t now, uint64_t key)
{
    for (; place != NOWHERE; place = tombstones->stones[place].next) {
        const struct lant_tombstone *stone = &tombstones->stones[place];
        if (stone->key == key && stone->expires > now) {
            return stone;
        }
    }
    return NULL;
}

bool lant_tombstones_has_register(const struct lant_tombstones *tombstones, uint64_t now,
                                  const struct lant_buried *operation)
{
    const uint64_t key = lant_operation_key(operation->source, operation->operation);
    uint32_t place = *chain_of(tombstones, key);
    const struct lant_tombstone *stone;
    CHECK(operation->packets != 0);
    while ((stone = next_match(tombstones, place, now, key)) != NULL) {
        if (stone->packets == operation->packets && stone->base == operation->base) {
            return true;
        }
        place = stone->next;
    }
    return false;
}

bool lant_tombstones_has_packet(const struct lant_tombstones *tombstones, uint64_t now,
                                uint32_t source, uint32_t operation, uint64_t address)
{
    const uint64_t key = lant_operation_key(source, operation);
    uint32_t place = *chain_of(tombstones, key);
    const struct lant_tombstone *stone;
    while ((stone = next_match(tombstones, place, now, key)) != NULL) {
        const uint64_t behind = address - stone->base;
        if (behind < (uint64_t)stone->packets * LANT_PAYLOAD_BYTES_MAX &&
            behind % LANT_PAYLOAD_BYTES_MAX == 0) {
            return true;
        }
        place = stone->next;
    }
    return false;
}

bool lant_tombstones_has_notification(const struct lant_tombstones *tombstones, uint64_t now,
                                      uint32_t source, uint32_t operation)
{
    const uint64_t key = lant_operation_key(source, operation);
    uint32_t place = *chain_of(tombstones, key);
    const struct lant_tombstone *stone;
    while ((stone = next_match(tombstones, place, now, key)) != NULL) {
        if (stone->packets == 0) {
            return true;
        }
        place = stone->next;
    }
    return false;
}

/* -- Changing -----------------------------------------------------------------------------------*/

/* The oldest of all is the last of its chain: new ones are put in front. */
static void remove_oldest(struct lant_tombstones *tombstones)
{
    const uint32_t oldest = tombstones->oldest;
    uint32_t *link = chain_of(tombstones, tombstones->stones[oldest].key);
    while (*link != oldest) {
        link = &tombstones->stones[*link].next;
    }
    CHECK(tombstones->stones[oldest].next == NOWHERE);
    *link = NOWHERE;
    tombstones->oldest = place_of(tombstones, 1);
    tombstones->count--;
}

void lant_tombstones_plant(struct lant_tombstones *tombstones, uint64_t now,
                           const struct lant_buried *buried)
{
    INVARIANTS(check_ends(tombstones));
    if (tombstones->count == tombstones->capacity) {
        tombstones->evicted += tombstones->stones[tombstones->oldest].expires > now;
        remove_oldest(tombstones);
    }
    const uint64_t key = lant_operation_key(buried->source, buried->operation);
    const uint32_t place = place_of(tombstones, tombstones->count);
    uint32_t *chain = chain_of(tombstones, key);
    tombstones->stones[place] = (struct lant_tombstone){
        .key = key,
        .base = buried->base,
        .packets = buried->packets,
        .expires = lant_time_after(now, tombstones->lifetime),
        .next = *chain,
    };
    *chain = place;
    tombstones->count++;
    INVARIANTS(check_ends(tombstones));
}

void lant_tombstones_on_time(struct lant_tombstones *tombstones, uint64_t now)
{
    INVARIANTS(check_ends(tombstones));
    while (tombstones->count > 0 && tombstones->stones[tombstones->oldest].expires <= now) {
        remove_oldest(tombstones);
    }
    INVARIANTS(check_ends(tombstones));
}
