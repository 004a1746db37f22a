/* SPDX-License-Identifier: BSD-2-Clause
 *
 * translation_cache - which entries of a table of regions (MPT) or pages (MTT) are on the chip.
 *
 * Purpose    Says whether an entry has to be read from the host's memory. A miss takes the entry
 *            in, and if the cache is full, a random one goes: so does the public model's.
 * Inputs     Entries by number, below the number of all of them.
 * Limits     It has no time: the caller reads what it misses.
 * Source     csRNA 4.1: the address translation module has tables and a cache of them. The victims:
 *            csRNA-gem5.
 */
#ifndef HARDWARE_CSRNA_TRANSLATION_CACHE_H
#define HARDWARE_CSRNA_TRANSLATION_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"

struct translation_cache {
    uint32_t room, used, all;
    uint32_t *place_of; /* of each entry: where it is, and 1 more; 0: it is not here */
    uint32_t *held;     /* the entries that are here */
    struct prng victims;
    uint64_t hits, misses;
};

size_t translation_cache_bytes(uint32_t room, uint32_t all);
/* `memory` belongs to the caller, and is aligned to 4 bytes. `room` is not 0. */
void translation_cache_init(struct translation_cache *cache, uint32_t room, uint32_t all,
                            uint64_t seed, void *memory);
/* True: the entry is here. False: it is from now on. */
bool translation_cache_look(struct translation_cache *cache, uint32_t entry);

#endif
