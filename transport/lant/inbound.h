/* SPDX-License-Identifier: BSD-2-Clause
 *
 * inbound - destinations of the answers of local memory: the inbound message CAM.
 *
 * Purpose    The bus to memory answers by a small local ID only. This table gives each pair of
 *            source node and bus ID a local ID. For each request it keeps the fields that its
 *            answer repeats.
 * Inputs     Requests that are about to go to memory (lant_inbound_admit); memory's answers.
 * Outputs    A local ID, or that the request must wait; the record of the request that was
 *            answered.
 * Ownership  A value. SHM requests and RDMA data packets share it.
 * Units      A local ID is the number of an entry.
 * Limits     LANT_INBOUND_ENTRIES_MAX entries and LANT_INBOUND_RECORDS_MAX records, within which
 *            both are configured. A request that finds no place is held, not dropped.
 * Source     Lant 3.3.3; LNI-15..18. The document keeps a count for an entry. That a record is kept
 *            for each request, and that the ID of an entry is the bus's, is our choice.
 *
 * A bus answers the reads of one ID in order, and its writes, but not a read and a write with
 * regard to each other: so an entry has a queue for each (AMBA AXI, chapter A5).
 */
#ifndef TRANSPORT_LANT_INBOUND_H
#define TRANSPORT_LANT_INBOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/lant.h"

#define LANT_INBOUND_ENTRIES_MAX 64u
#define LANT_INBOUND_RECORDS_MAX 1024u

enum lant_direction {
    LANT_READS,
    LANT_WRITES,
};

/* A request that is on its way to memory. */
struct lant_inbound_record {
    struct lant_footer footer; /* The request's, which its answer repeats. `source` and `bus_id`
                                  are the entry's key. */
    uint64_t address;
    uint8_t type; /* enum lant_type. */
    bool lock;    /* An exclusive access, */
    bool again;   /* which was answered before. */
    uint8_t strobe;
    uint8_t answers;  /* Bus answers to come: a packet that crosses a 4 KB line is two writes. */
    uint8_t response; /* The answer's, unless memory says worse; from memory's first error on,
                         that. */
    uint32_t tag;     /* The owner's. */
};

struct lant_inbound_config {
    uint16_t entries; /* 8 in the thesis. */
    uint16_t records; /* For all entries together. */
};

#define LANT_INBOUND_DEFAULTS ((struct lant_inbound_config){.entries = 8, .records = 256})

struct lant_inbound_queue {
    uint16_t first, last; /* If the count is not 0. */
    uint16_t count;
};

struct lant_inbound_entry {
    uint32_t source;
    uint8_t bus_id;
    struct lant_inbound_queue queues[2]; /* By direction. Both empty: the entry is free. */
};

struct lant_inbound_counters {
    uint64_t admitted;
    uint64_t shared;       /* By an entry that was in use. */
    uint64_t held_entry;   /* Asked while no entry was free; each time it is asked counts. */
    uint64_t held_record;  /* Asked while no record was free. */
    uint64_t entries_peak; /* Most entries in use. */
};

struct lant_inbound {
    struct lant_inbound_config config;
    uint64_t used;       /* A bit for each entry, */
    uint16_t used_count; /* and how many these are. */
    uint16_t free_first; /* Records that are free, in a list of `free_count`. */
    uint16_t free_count;
    struct lant_inbound_entry entries[LANT_INBOUND_ENTRIES_MAX];
    uint16_t next[LANT_INBOUND_RECORDS_MAX];
    struct lant_inbound_record records[LANT_INBOUND_RECORDS_MAX];
    struct lant_inbound_counters counters;
};

void lant_inbound_init(struct lant_inbound *inbound, const struct lant_inbound_config *config);

enum lant_inbound_verdict {
    LANT_INBOUND_SHARES, /* An entry in use has this source and bus ID. */
    LANT_INBOUND_OPENS,  /* An entry is free. */
    LANT_INBOUND_HELD_ENTRY,
    LANT_INBOUND_HELD_RECORD,
};

static inline bool lant_inbound_holds(enum lant_inbound_verdict verdict)
{
    return verdict == LANT_INBOUND_HELD_ENTRY || verdict == LANT_INBOUND_HELD_RECORD;
}

/* Judges, and if the request need not wait, keeps `record` and says by which local ID the request
 * goes to memory. */
enum lant_inbound_verdict lant_inbound_admit(struct lant_inbound *inbound,
                                             enum lant_direction direction,
                                             const struct lant_inbound_record *record,
                                             uint8_t *local_id);

/* The bus has answered one access of the local ID: OKAY, SLVERR or DECERR. True: that was the last
 * one of its request, which `record` is. False: more is to come. */
bool lant_inbound_on_memory(struct lant_inbound *inbound, enum lant_direction direction,
                            uint8_t local_id, enum lant_response response,
                            struct lant_inbound_record *record);

/* How many requests of this local ID are on their way to memory. */
static inline uint32_t lant_inbound_count(const struct lant_inbound *inbound, uint8_t local_id)
{
    CHECK(local_id < inbound->config.entries);
    const struct lant_inbound_entry *entry = &inbound->entries[local_id];
    return (uint32_t)entry->queues[LANT_READS].count + entry->queues[LANT_WRITES].count;
}

static inline bool lant_inbound_idle(const struct lant_inbound *inbound)
{
    return inbound->used == 0;
}

#endif
