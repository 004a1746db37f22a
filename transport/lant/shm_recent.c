/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm_recent.h"

#define NOWHERE UINT32_MAX

size_t lant_shm_recent_bytes(uint32_t capacity)
{
    return capacity * (sizeof(struct lant_shm_recent_entry) + sizeof(uint32_t));
}

void lant_shm_recent_init(struct lant_shm_recent *recent, uint32_t capacity, uint64_t lifetime,
                          void *memory)
{
    CHECK(capacity >= 1 && capacity <= LANT_SHM_RECENT_MAX && (capacity & (capacity - 1)) == 0);
    CHECK(lifetime < LANT_NEVER / 2);
    *recent = (struct lant_shm_recent){.capacity = capacity, .lifetime = lifetime};
    recent->entries = memory;
    recent->chains = (uint32_t *)(void *)(recent->entries + capacity);
    for (uint32_t i = 0; i < capacity; i++) {
        recent->chains[i] = NOWHERE;
    }
}

static uint32_t chain_of(const struct lant_shm_recent *recent, uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (recent->capacity - 1);
}

/* -- Invariants ---------------------------------------------------------------------------------*/

/* The oldest and the newest: looking at all 65,536 would take longer than all else. */
void lant_shm_recent_check(const struct lant_shm_recent *recent)
{
    CHECK(recent->count <= recent->capacity);
    for (uint32_t i = 0; i<recent->count; i += recent->count> 1 ? recent->count - 1 : 1) {
        const uint32_t place = (recent->births - 1 - i) & (recent->capacity - 1);
        uint32_t other = recent->chains[chain_of(recent, recent->entries[place].key)];
        while (other != place) {
            CHECK(other < recent->capacity);
            CHECK(recent->entries[other].key != recent->entries[place].key);
            other = recent->entries[other].next;
        }
    }
}

/* -- Finding ------------------------------------------------------------------------------------*/

const struct lant_shm_recent_entry *lant_shm_recent_find(const struct lant_shm_recent *recent,
                                                         uint64_t now, uint64_t key)
{
    uint32_t place = recent->chains[chain_of(recent, key)];
    while (place != NOWHERE && recent->entries[place].key != key) {
        place = recent->entries[place].next;
    }
    return place == NOWHERE || now >= recent->entries[place].expires ? NULL
                                                                     : &recent->entries[place];
}

static uint32_t oldest(const struct lant_shm_recent *recent)
{
    return (recent->births - recent->count) & (recent->capacity - 1);
}

uint64_t lant_shm_recent_deadline(const struct lant_shm_recent *recent)
{
    return recent->count == 0 ? LANT_NEVER : recent->entries[oldest(recent)].expires;
}

/* -- Changing -----------------------------------------------------------------------------------*/

static void forget_oldest(struct lant_shm_recent *recent)
{
    const uint32_t place = oldest(recent);
    uint32_t *link = &recent->chains[chain_of(recent, recent->entries[place].key)];
    while (*link != place) {
        CHECK(*link != NOWHERE);
        link = &recent->entries[*link].next;
    }
    *link = recent->entries[place].next;
    recent->count--;
}

void lant_shm_recent_on_time(struct lant_shm_recent *recent, uint64_t now)
{
    INVARIANTS(lant_shm_recent_check(recent));
    while (lant_shm_recent_deadline(recent) <= now) {
        forget_oldest(recent);
    }
    INVARIANTS(lant_shm_recent_check(recent));
}

uint32_t lant_shm_recent_add(struct lant_shm_recent *recent, uint64_t now, uint64_t key)
{
    CHECK(lant_shm_recent_find(recent, now, key) == NULL);
    /* The same key may still stand there with its time over: it goes with all of these. */
    lant_shm_recent_on_time(recent, now);
    if (recent->count == recent->capacity) {
        forget_oldest(recent);
        recent->evicted++;
    }
    const uint32_t tag = recent->births++;
    const uint32_t place = tag & (recent->capacity - 1);
    uint32_t *chain = &recent->chains[chain_of(recent, key)];
    recent->entries[place] = (struct lant_shm_recent_entry){
        .key = key, .expires = now + recent->lifetime, .next = *chain};
    *chain = place;
    recent->count++;
    INVARIANTS(lant_shm_recent_check(recent));
    return tag;
}

void lant_shm_recent_finish(struct lant_shm_recent *recent, uint32_t tag,
                            enum lant_response response)
{
    lant_shm_recent_finish_with(recent, tag, response, 0);
}

void lant_shm_recent_finish_with(struct lant_shm_recent *recent, uint32_t tag,
                                 enum lant_response response, uint64_t data)
{
    const uint32_t age = recent->births - tag;
    CHECK(age >= 1);
    if (age <= recent->count) {
        struct lant_shm_recent_entry *entry = &recent->entries[tag & (recent->capacity - 1)];
        CHECK(!entry->done);
        entry->response = (uint8_t)response;
        entry->data = data;
        entry->done = true;
    }
}
