/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/translation_cache.h"

#include <string.h>

#include "base/check.h"

size_t translation_cache_bytes(uint32_t room, uint32_t all)
{
    return ((size_t)room + all) * sizeof(uint32_t);
}

void translation_cache_init(struct translation_cache *cache, uint32_t room, uint32_t all,
                            uint64_t seed, void *memory)
{
    CHECK(room > 0);
    *cache = (struct translation_cache){.room = room, .all = all, .place_of = memory};
    cache->held = cache->place_of + all;
    memset(cache->place_of, 0, all * sizeof(uint32_t));
    prng_init(&cache->victims, seed);
}

bool translation_cache_look(struct translation_cache *cache, uint32_t entry)
{
    CHECK(entry < cache->all);
    if (cache->place_of[entry] != 0) {
        cache->hits++;
        return true;
    }
    cache->misses++;
    uint32_t place = cache->used;
    if (cache->used == cache->room) {
        place = (uint32_t)prng_below(&cache->victims, cache->room);
        cache->place_of[cache->held[place]] = 0;
    } else {
        cache->used++;
    }
    cache->held[place] = entry;
    cache->place_of[entry] = place + 1;
    return false;
}
