/* SPDX-License-Identifier: BSD-2-Clause
 *
 * context_table - the receiver's record of the transactions that are under way to it.
 *
 * Purpose    Marks arrived packets in a bitmap of their transaction, tells duplicates, older and
 *            newer instances apart, and says when a transaction is complete.
 * Inputs     The fields of a packet's header, footer and write response (struct exanest_mark).
 * Outputs    exanest_context_judge: what the packet means; exanest_context_apply does it.
 * Ownership  A value. `sets` x `ways` of its places are used.
 * Time       The caller has the clock, and calls exanest_context_age by it.
 * Units      A bit is a 256-byte line of the destination, of the 64 in a 16 KB line.
 * Limits     EXANEST_CONTEXTS_MAX contexts. Nothing is put out to make room: our choice.
 * Source     Xirouchakis 6.1. Our choice: how sequences compare, that an error is reported once for
 *            each of them, and that a block waits for its control packet.
 *
 * A duplicate changes nothing. A transaction whose first packet stands behind its last one is never
 * complete: no honest sender makes one.
 */
#ifndef HARDWARE_EXANEST_CONTEXT_TABLE_H
#define HARDWARE_EXANEST_CONTEXT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/exanest.h"

#define EXANEST_CONTEXTS_MAX 256u
#define EXANEST_CONTEXT_SETS 16u /* Derived: 256 contexts in 16 ways (6.1). */
#define EXANEST_CONTEXT_WAYS 16u

enum exanest_set_index {
    EXANEST_SET_FOLD,   /* TID[3:0] ^ TID[7:4] ^ the source, folded: our choice. */
    EXANEST_SET_MODULO, /* TID modulo the sets: EXA-A23's comparison. */
};

/* `sets` is a power of two. One set is full associativity. */
struct exanest_context_parameters {
    uint16_t sets, ways;
    enum exanest_set_index index;
};

#define EXANEST_CONTEXT_DEFAULTS                                                                   \
    ((struct exanest_context_parameters){                                                          \
        .sets = EXANEST_CONTEXT_SETS, .ways = EXANEST_CONTEXT_WAYS, .index = EXANEST_SET_FOLD})

struct exanest_context {
    bool valid, nacked, notify, control_seen, first_seen, last_seen;
    bool aged;           /* Nothing has come since the last exanest_context_age. */
    uint8_t first, last; /* Bits of the bitmap, if seen. */
    uint16_t tid, sequence;
    uint16_t pdid;   /* The control packet's. */
    uint32_t source; /* The sender's coordinate. */
    uint64_t bitmap;
    struct exanest_control control; /* If control_seen. */
};

struct exanest_context_table {
    struct exanest_context_parameters parameters;
    uint16_t used, used_max;
    uint16_t in_set[EXANEST_CONTEXTS_MAX]; /* Contexts in use, by set. */
    uint32_t keys[EXANEST_CONTEXTS_MAX];   /* Source and TID: 22 and 10 bits. */
    struct exanest_context contexts[EXANEST_CONTEXTS_MAX];
};

/* One packet of a transaction whose footer is good. */
struct exanest_mark {
    uint32_t source;
    uint16_t tid, sequence;
    uint16_t pdid;
    uint8_t error; /* enum exanest_status; EXANEST_ACK: it arrived whole, and is in memory. */
    uint8_t line;  /* Its bit: bits 13..8 of the address. */
    bool first, last, notify;
    bool is_control;
    struct exanest_control control;
};

enum exanest_meaning {
    EXANEST_MARKED,
    EXANEST_COMPLETE,       /* Send a response, and a notification if the context has `notify`. */
    EXANEST_DUPLICATE,      /* Count only. */
    EXANEST_OLDER,          /* An instance that was given up. Count only. */
    EXANEST_NO_CONTEXT,     /* No way of the set is free: NACK. */
    EXANEST_REFUSED,        /* NACK with the error. */
    EXANEST_REFUSED_BEFORE, /* The error was reported already for this sequence. */
    EXANEST_MEANING_COUNT,
};

struct exanest_judgement {
    uint8_t meaning;              /* enum exanest_meaning. */
    bool flushes;                 /* A newer instance: earlier marks are forgotten. */
    bool allocates;               /* The packet is the first of its transaction. */
    uint16_t place;               /* The context's, unless it has none. */
    struct exanest_context after; /* The context after the packet. */
};

void exanest_context_init(struct exanest_context_table *table,
                          const struct exanest_context_parameters *parameters);

uint32_t exanest_context_set(const struct exanest_context_table *table, uint32_t source,
                             uint32_t tid);

void exanest_context_judge(const struct exanest_context_table *table,
                           const struct exanest_mark *mark, struct exanest_judgement *judgement);
/* Does what exanest_context_judge just said. A complete context is free afterwards. */
void exanest_context_apply(struct exanest_context_table *table,
                           const struct exanest_judgement *judgement);

/* Some time has passed: what nothing has come for since the last call is forgotten. Returns how
 * many contexts that are. The late duplicate of a block that is complete begins a context that
 * nothing will ever end. The source has no remedy that works; ageing is our choice. */
uint32_t exanest_context_age(struct exanest_context_table *table);

/* Is `sequence` above `than`? Modulo 2^14: up to half of the numbers are above. */
static inline bool exanest_sequence_newer(uint32_t sequence, uint32_t than)
{
    const uint32_t ahead = (sequence - than) & (EXANEST_SEQUENCES - 1);
    return ahead != 0 && ahead < EXANEST_SEQUENCES / 2;
}

/* The debug port: any context, at any time. Those that are not in use have `valid` 0. */
static inline const struct exanest_context *exanest_context_at(
    const struct exanest_context_table *table, uint32_t place)
{
    CHECK(place < EXANEST_CONTEXTS_MAX);
    return &table->contexts[place];
}

/* The one of a transaction; NULL: it has none. */
const struct exanest_context *exanest_context_find(const struct exanest_context_table *table,
                                                   uint32_t source, uint32_t tid);

/* Walks through all contexts: slow. */
void exanest_context_check(const struct exanest_context_table *table);

#endif
