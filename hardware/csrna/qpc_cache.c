/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/qpc_cache.h"

#include <string.h>

#include "base/align.h"
#include "base/bits.h"
#include "base/check.h"
#include "transport/ibta/rc_requester.h"
#include "transport/ibta/rc_responder.h"

#define NONE UINT16_MAX

_Static_assert(sizeof(struct rc_requester) + sizeof(struct rc_responder) <=
                   sizeof(((struct qpc *)NULL)->reserved),
               "the RC engine's state fits into a context");

struct qpc_cache_entry {
    uint32_t qpn;
    uint16_t next;         /* The next entry in its bucket. */
    uint16_t older, newer; /* Neighbours in the order of use, or of arrival. */
    bool dirty;
};

/* Two buckets for an entry, so that most entries are alone. */
static uint32_t bucket_count(uint32_t capacity)
{
    return (uint32_t)power_of_two(2 * capacity);
}

size_t qpc_cache_bytes(uint32_t capacity)
{
    const uint32_t buckets = bucket_count(capacity);
    return line_aligned(capacity * sizeof(struct qpc)) +
           line_aligned(capacity * sizeof(struct qpc_cache_entry)) +
           line_aligned(buckets * sizeof(uint16_t));
}

void qpc_cache_init(struct qpc_cache *cache, uint32_t capacity, enum qpc_victim_policy policy,
                    void *memory)
{
    CHECK(capacity >= 1 && capacity <= QPC_CACHE_ENTRIES_MAX);
    const uint32_t buckets = bucket_count(capacity);
    uint8_t *at = memory;
    *cache = (struct qpc_cache){.capacity = capacity,
                                .bucket_mask = buckets - 1,
                                .newest = NONE,
                                .oldest = NONE,
                                .policy = (uint8_t)policy};
    cache->contexts = (struct qpc *)(void *)at;
    at += line_aligned(capacity * sizeof(struct qpc));
    cache->entries = (struct qpc_cache_entry *)(void *)at;
    at += line_aligned(capacity * sizeof(struct qpc_cache_entry));
    cache->buckets = (uint16_t *)(void *)at;
    memset(cache->buckets, 0xff, buckets * sizeof(uint16_t));
    prng_init(&cache->prng, capacity);
}

/* -- Buckets ------------------------------------------------------------------------------------*/

/* QPNs are given out one after the other, so the number itself spreads them best. */
static uint32_t bucket_of(const struct qpc_cache *cache, uint32_t qpn)
{
    return qpn & cache->bucket_mask;
}

static uint16_t find(const struct qpc_cache *cache, uint32_t qpn)
{
    uint16_t place = cache->buckets[bucket_of(cache, qpn)];
    while (place != NONE && cache->entries[place].qpn != qpn) {
        place = cache->entries[place].next;
    }
    return place;
}

static void add_to_bucket(struct qpc_cache *cache, uint16_t place)
{
    struct qpc_cache_entry *entry = &cache->entries[place];
    const uint32_t bucket = bucket_of(cache, entry->qpn);
    entry->next = cache->buckets[bucket];
    cache->buckets[bucket] = place;
}

static void remove_from_bucket(struct qpc_cache *cache, uint16_t place)
{
    const uint32_t bucket = bucket_of(cache, cache->entries[place].qpn);
    uint16_t *link = &cache->buckets[bucket];
    while (*link != place) {
        CHECK(*link != NONE);
        link = &cache->entries[*link].next;
    }
    *link = cache->entries[place].next;
}

/* -- Order --------------------------------------------------------------------------------------*/

static void leave_order(struct qpc_cache *cache, uint16_t place)
{
    const struct qpc_cache_entry *entry = &cache->entries[place];
    if (entry->older == NONE) {
        cache->oldest = entry->newer;
    } else {
        cache->entries[entry->older].newer = entry->newer;
    }
    if (entry->newer == NONE) {
        cache->newest = entry->older;
    } else {
        cache->entries[entry->newer].older = entry->older;
    }
}

static void join_order(struct qpc_cache *cache, uint16_t place)
{
    cache->entries[place].older = cache->newest;
    cache->entries[place].newer = NONE;
    if (cache->newest == NONE) {
        cache->oldest = place;
    } else {
        cache->entries[cache->newest].newer = place;
    }
    cache->newest = place;
}

/* -- Contexts -----------------------------------------------------------------------------------*/

bool qpc_cache_holds(const struct qpc_cache *cache, uint32_t qpn)
{
    return find(cache, qpn) != NONE;
}

struct qpc *qpc_cache_use(struct qpc_cache *cache, uint32_t qpn)
{
    const uint16_t place = find(cache, qpn);
    if (place == NONE) {
        return NULL;
    }
    if (cache->policy == QPC_VICTIM_LRU && cache->newest != place) {
        leave_order(cache, place);
        join_order(cache, place);
    }
    return &cache->contexts[place];
}

void qpc_cache_changed(struct qpc_cache *cache, const struct qpc *context)
{
    const size_t place = (size_t)(context - cache->contexts);
    CHECK(place < cache->count);
    cache->entries[place].dirty = true;
}

/* Frees the victim's place. */
static uint16_t evict(struct qpc_cache *cache, struct qpc_victim *victim)
{
    const uint16_t place = cache->policy == QPC_VICTIM_RANDOM
                               ? (uint16_t)prng_below(&cache->prng, cache->count)
                               : cache->oldest;
    const struct qpc_cache_entry *entry = &cache->entries[place];
    victim->evicted = true;
    victim->dirty = entry->dirty;
    if (entry->dirty) {
        victim->qpn = entry->qpn;
        victim->context = cache->contexts[place];
    }
    remove_from_bucket(cache, place);
    leave_order(cache, place);
    return place;
}

struct qpc *qpc_cache_install(struct qpc_cache *cache, uint32_t qpn, const struct qpc *context,
                              struct qpc_victim *victim)
{
    CHECK(!qpc_cache_holds(cache, qpn));
    victim->evicted = false;
    victim->dirty = false;
    const uint16_t place =
        cache->count < cache->capacity ? (uint16_t)cache->count++ : evict(cache, victim);
    cache->entries[place] = (struct qpc_cache_entry){.qpn = qpn};
    cache->contexts[place] = *context;
    add_to_bucket(cache, place);
    join_order(cache, place);
    return &cache->contexts[place];
}
