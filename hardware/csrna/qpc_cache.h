/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qpc_cache - the contexts of queue pairs that are on the chip.
 *
 * Purpose    Finds a context by QPN, and makes room for another one.
 * Inputs     qpc_cache_install when one has come from memory.
 * Outputs    qpc_cache_use; what a new context puts out (struct qpc_victim).
 * Ownership  The caller owns the memory. A context stays in place until it is put out.
 * Time       Not used: recency is the order of calls.
 * Limits     QPC_CACHE_ENTRIES_MAX.
 * Source     csRNA 4.3, 5.1. Our choice: changed contexts are written back when they are put out.
 */
#ifndef HARDWARE_CSRNA_QPC_CACHE_H
#define HARDWARE_CSRNA_QPC_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "hardware/csrna/qpc.h"

#define QPC_CACHE_ENTRIES_MAX 32768

/* Which context has to go. */
enum qpc_victim_policy {
    QPC_VICTIM_LRU,    /* The least recently used one: the source's. */
    QPC_VICTIM_FIFO,   /* The one that came first: what the public model's search amounts to. */
    QPC_VICTIM_RANDOM, /* Any, by chance: connections in turn do not all miss. */
};

struct qpc_cache {
    struct qpc *contexts;
    struct qpc_cache_entry *entries; /* The cache's knowledge of contexts[i]. */
    uint16_t *buckets;               /* The first entry of each. */
    uint32_t capacity;
    uint32_t count;
    uint32_t bucket_mask;
    /* The ends of the order of use, or of arrival with QPC_VICTIM_FIFO. */
    uint16_t newest, oldest;
    uint8_t policy;   /* enum qpc_victim_policy. */
    struct prng prng; /* For QPC_VICTIM_RANDOM; each cache draws the same numbers. */
};

/* The context that a new one evicted. `qpn` and `context` are valid only if it is dirty. */
struct qpc_victim {
    bool evicted;
    bool dirty; /* Changed since it was installed: must be written back. */
    uint32_t qpn;
    struct qpc context;
};

/* Bytes of memory for `capacity` entries. */
size_t qpc_cache_bytes(uint32_t capacity);
/* `capacity` is 1 .. QPC_CACHE_ENTRIES_MAX; `memory` is 64-byte aligned. */
void qpc_cache_init(struct qpc_cache *cache, uint32_t capacity, enum qpc_victim_policy policy,
                    void *memory);

/* Is the context there? The question does not count as a use. */
bool qpc_cache_holds(const struct qpc_cache *cache, uint32_t qpn);
/* The context of `qpn`, from now on the most recently used; NULL if it is not there. O(1). */
struct qpc *qpc_cache_use(struct qpc_cache *cache, uint32_t qpn);
/* Says that `context`, which qpc_cache_use or qpc_cache_install gave, is being changed. */
void qpc_cache_changed(struct qpc_cache *cache, const struct qpc *context);
/* Copies in a context that is not there. Says in `victim` which one had to go, and returns the
 * place of the new one. */
struct qpc *qpc_cache_install(struct qpc_cache *cache, uint32_t qpn, const struct qpc *context,
                              struct qpc_victim *victim);

#endif
