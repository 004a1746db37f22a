/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_recent - the stores and exclusive accesses that have come lately, and their answers.
 *
 * Purpose    A request that comes once more, because its answer was lost or late, is known again:
 *            it is not done twice, and its second answer is the first one.
 * Inputs     lant_shm_recent_add: a request is being done; lant_shm_recent_finish: its answer.
 * Outputs    lant_shm_recent_find.
 * Ownership  The caller gives the memory (lant_shm_recent_bytes).
 * Time       Ticks of the caller's choice. All are remembered equally long.
 * Units      Sequences of 29 bits, by source.
 * Limits     LANT_SHM_RECENT_MAX. The oldest makes room: only protection is lost, and counted.
 * Source     Our choice: the thesis has none. LNI-39.
 */
#ifndef TRANSPORT_LANT_SHM_RECENT_H
#define TRANSPORT_LANT_SHM_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "transport/lant/ticks.h"
#include "wire/lant.h"

#define LANT_SHM_RECENT     256u
#define LANT_SHM_RECENT_MAX 65536u

struct lant_shm_recent_entry {
    uint64_t key, expires;
    uint64_t data; /* The answer's, if it brought any that must be the same again. */
    uint32_t next; /* In its chain of the hash table. */
    uint8_t response;
    bool done; /* It has a response. */
};

struct lant_shm_recent {
    uint32_t capacity; /* A power of two. */
    uint32_t count;
    uint32_t births; /* Entries so far, modulo 2^32: a request's tag, and its place in the ring. */
    uint64_t lifetime;
    uint64_t evicted; /* Made room before their time was over. */
    uint32_t *chains;
    struct lant_shm_recent_entry *entries;
};

/* A request: its sender, its number and its kind. 53 bits. Atomic requests have a table for
 * themselves. */
static inline uint64_t lant_shm_recent_key(const struct lant_packet *request)
{
    return (uint64_t)request->footer.source << 31 |
           (uint64_t)lant_sequence_of(&request->footer) << 2 |
           (request->header.type == LANT_AW ? 2u : 0u) | (request->header.lock ? 1u : 0u);
}

size_t lant_shm_recent_bytes(uint32_t capacity);
/* `memory` is aligned for uint64_t; its contents do not matter. */
void lant_shm_recent_init(struct lant_shm_recent *recent, uint32_t capacity, uint64_t lifetime,
                          void *memory);

/* NULL: it has not come lately. */
const struct lant_shm_recent_entry *lant_shm_recent_find(const struct lant_shm_recent *recent,
                                                         uint64_t now, uint64_t key);

/* A request that is not found; its tag. */
uint32_t lant_shm_recent_add(struct lant_shm_recent *recent, uint64_t now, uint64_t key);
/* The request that got this tag is answered. */
void lant_shm_recent_finish(struct lant_shm_recent *recent, uint32_t tag,
                            enum lant_response response);
void lant_shm_recent_finish_with(struct lant_shm_recent *recent, uint32_t tag,
                                 enum lant_response response, uint64_t data);

/* When the oldest may be forgotten. Nobody has to do it then: an entry that is too old is not
 * found. */
uint64_t lant_shm_recent_deadline(const struct lant_shm_recent *recent);
void lant_shm_recent_on_time(struct lant_shm_recent *recent, uint64_t now);

void lant_shm_recent_check(const struct lant_shm_recent *recent);

#endif
