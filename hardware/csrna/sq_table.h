/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sq_table - the place of the next work request of every queue pair, kept on the chip, so that the
 * request can be read without the queue pair's context.
 *
 * Purpose    Keeps address and offset of every send queue: 10 bytes each.
 * Limits     The capacity, SQ_TABLE_MAX at most. All send queues are equally long: 10 bytes have no
 *            room for a length (our choice).
 * Source     csRNA 4.5, 4.7.
 *
 * Slots are dense: the caller makes QPNs of them, or keeps an index.
 */
#ifndef HARDWARE_CSRNA_SQ_TABLE_H
#define HARDWARE_CSRNA_SQ_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/status.h"

#define SQ_TABLE_MAX   131072
#define SQ_WQE_BYTES   32
#define SQ_ALIGN_BYTES 64

struct sq_entry {
    uint64_t address; /* Odd: free; the rest says which free slot comes next. */
    uint16_t offset;  /* The offset of the next WQE; wraps with the send queue. */
} __attribute__((packed));
_Static_assert(sizeof(struct sq_entry) == 10, "10 bytes for a queue pair");

struct sq_table {
    struct sq_entry *entries;
    uint32_t capacity;
    uint32_t sq_wqes;
    uint32_t count;
    uint32_t touched;    /* Slots from here on have never been used. */
    uint32_t first_free; /* The first free slot before `touched`; SQ_TABLE_MAX: none. */
};

static inline size_t sq_table_bytes(uint32_t capacity)
{
    return (size_t)capacity * sizeof(struct sq_entry);
}

/* `capacity` is 1 .. SQ_TABLE_MAX. `sq_wqes`: a send queue's length, a power of two, 65,536 at
 * most. */
void sq_table_init(struct sq_table *table, uint32_t capacity, uint32_t sq_wqes, void *memory);

/* A new send queue at `address`. STATUS_INVALID: it isn't a multiple of SQ_ALIGN_BYTES;
 * STATUS_FULL: there are `capacity` of them already. */
MUST_USE enum status sq_table_add(struct sq_table *table, uint64_t address, uint32_t *slot);

/* The send queue lies somewhere else from now on; its offset stays. STATUS_INVALID as above. */
MUST_USE enum status sq_table_move(struct sq_table *table, uint32_t slot, uint64_t address);

/* Frees the slot. */
void sq_table_remove(struct sq_table *table, uint32_t slot);

/* The entry of `slot`, which is in use. */
static inline struct sq_entry *sq_table_entry(const struct sq_table *table, uint32_t slot)
{
    CHECK(slot < table->touched && (table->entries[slot].address & 1) == 0);
    return &table->entries[slot];
}

/* Where the next WQE lies. */
static inline uint64_t sq_table_next_address(const struct sq_table *table, uint32_t slot)
{
    const struct sq_entry *entry = sq_table_entry(table, slot);
    return entry->address + (uint64_t)entry->offset * SQ_WQE_BYTES;
}

/* How many WQEs lie there one behind the other, before the send queue begins anew. */
static inline uint32_t sq_table_contiguous(const struct sq_table *table, uint32_t slot)
{
    return table->sq_wqes - sq_table_entry(table, slot)->offset;
}

/* `wqes` WQEs have been read. */
static inline void sq_table_advance(struct sq_table *table, uint32_t slot, uint32_t wqes)
{
    struct sq_entry *entry = sq_table_entry(table, slot);
    entry->offset = (uint16_t)((entry->offset + wqes) & (table->sq_wqes - 1));
}

#endif
