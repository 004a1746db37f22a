/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exclusive - addresses of this node that initiators hold for an exclusive access.
 *
 * Purpose    An exclusive load locks its address for one initiator; others are told LOCKED until
 *            that initiator's exclusive store has been written, or the lock is too old.
 * Inputs     Exclusive loads and stores that came from the network.
 * Outputs    A verdict for each. lant_exclusive_judge asks, lant_exclusive_apply does it.
 * Time       Ticks of the caller's choice: a lock expires.
 * Units      Local addresses; a lock is for 8 bytes.
 * Limits     LANT_EXCLUSIVES_MAX locks. When all are taken, a load is answered with LOCKED too.
 * Source     Our choice: the thesis, 4.1.4.2, leaves the design open. LNI-36, LNI-37, LNI-40.
 *
 * Plain stores and loads do not look here: programs that lock an address agree to lock it.
 */
#ifndef TRANSPORT_LANT_EXCLUSIVE_H
#define TRANSPORT_LANT_EXCLUSIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/lant/ticks.h"
#include "wire/lant.h"

#define LANT_EXCLUSIVES_MAX 16u

struct lant_exclusive_lock {
    uint64_t address; /* A multiple of 8. */
    uint64_t expires;
    uint32_t node; /* The holder: two nodes may have the same bus ID (LNI-37). */
    uint8_t bus_id;
    bool valid;
    bool writing; /* Its store is on its way to memory; the lock does not expire meanwhile. */
};

struct lant_exclusive_counters {
    uint64_t locked, renewed, written;
    uint64_t refused_loads, refused_stores; /* Somebody else has the lock, or nobody. */
    uint64_t full;                          /* Refused loads for which there was no entry. */
    uint64_t expired;
};

struct lant_exclusive {
    uint64_t lifetime;
    struct lant_exclusive_lock locks[LANT_EXCLUSIVES_MAX];
    struct lant_exclusive_counters counters;
};

struct lant_exclusive_access {
    uint64_t address; /* That of any byte. */
    uint32_t node;
    uint8_t bus_id;
    bool store;
};

enum lant_exclusive_verdict {
    LANT_EXCLUSIVE_LOCKS,  /* A load: it gets the lock. */
    LANT_EXCLUSIVE_RENEWS, /* A load of the holder. */
    LANT_EXCLUSIVE_WRITES, /* The holder's store. */
    LANT_EXCLUSIVE_HELD,   /* Somebody else has the lock: LOCKED. */
    LANT_EXCLUSIVE_FULL,   /* No entry is free: LOCKED. */
    LANT_EXCLUSIVE_NONE,   /* A store of an initiator without the lock: LOCKED. */
};

static inline bool lant_exclusive_may(enum lant_exclusive_verdict verdict)
{
    return verdict == LANT_EXCLUSIVE_LOCKS || verdict == LANT_EXCLUSIVE_RENEWS ||
           verdict == LANT_EXCLUSIVE_WRITES;
}

void lant_exclusive_init(struct lant_exclusive *exclusive, uint64_t lifetime);

enum lant_exclusive_verdict lant_exclusive_judge(const struct lant_exclusive *exclusive,
                                                 const struct lant_exclusive_access *access,
                                                 uint64_t now);
/* Judges again, and does it. */
enum lant_exclusive_verdict lant_exclusive_apply(struct lant_exclusive *exclusive,
                                                 const struct lant_exclusive_access *access,
                                                 uint64_t now);

/* Memory has answered the store that LANT_EXCLUSIVE_WRITES allowed: the lock is free. */
void lant_exclusive_written(struct lant_exclusive *exclusive,
                            const struct lant_exclusive_access *access);
/* The load that got the lock was refused by memory. */
void lant_exclusive_cancel(struct lant_exclusive *exclusive,
                           const struct lant_exclusive_access *access);

uint64_t lant_exclusive_deadline(const struct lant_exclusive *exclusive);
void lant_exclusive_on_time(struct lant_exclusive *exclusive, uint64_t now);

uint32_t lant_exclusive_count(const struct lant_exclusive *exclusive);

void lant_exclusive_check(const struct lant_exclusive *exclusive);

#endif
