/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pending_table - queue pairs with requests that wait: the pending record table, a memory of 3 *
 * oocap entries that is also found by its contents.
 *
 * The source writes an entry at the address (channel * oocap + index) of the request that missed.
 * If that request is answered while later ones of its queue pair wait, its index is free again, and
 * the next miss with it would overwrite the entry. So an entry moves: it always stands at the
 * address of its queue pair's newest waiting request, which is answered last.
 *
 * Source: csRNA 4.3.2; CSR-06 .. CSR-08.
 */
#ifndef HARDWARE_CSRNA_PENDING_TABLE_H
#define HARDWARE_CSRNA_PENDING_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/csrna/pending_fifo.h"

struct pending_record {
    uint32_t qpn;
    uint8_t count; /* The source's pnd_cnt: elements in the pending FIFO; 0: not valid. */
    bool returned; /* dma_rtn: the context has come since it was last asked for. */
    uint8_t next;  /* The next record of the same hash; the NIC compares all at once. */
};

struct pending_table {
    uint32_t oocap;
    uint32_t count; /* Valid records. */
    struct pending_record records[PENDING_MAX];
    uint8_t buckets[256];
};

/* Where the record of a request stands (the source's formula 1). */
static inline uint32_t pending_address(uint32_t oocap, uint32_t channel, uint32_t index)
{
    return channel * oocap + index;
}

void pending_table_init(struct pending_table *table, uint32_t oocap);

/* The record of `qpn`; NULL: it has none. Valid until the table is next changed. */
struct pending_record *pending_table_find(struct pending_table *table, uint32_t qpn);

/* A request of `qpn`, which has no record, waits: writes {count 1, not returned} at `address`,
 * which is free. */
void pending_table_write(struct pending_table *table, uint32_t address, uint32_t qpn);

/* Another request waits: counts it, and moves the record to its `address`, which is free. */
void pending_table_add(struct pending_table *table, struct pending_record *record,
                       uint32_t address);

/* A request is answered: counts it off. The record vanishes with the last one: false. */
bool pending_table_answered(struct pending_table *table, struct pending_record *record);

#endif
