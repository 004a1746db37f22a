/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/pending_table.h"

#include <string.h>

#include "base/check.h"

#define NONE UINT8_MAX
_Static_assert(PENDING_MAX <= NONE, "an address has 8 bits, and one value is none");

void pending_table_init(struct pending_table *table, uint32_t oocap)
{
    CHECK(oocap >= 1 && oocap <= QPC_OOCAP_MAX);
    memset(table, 0, sizeof(*table));
    memset(table->buckets, NONE, sizeof(table->buckets));
    table->oocap = oocap;
}

static uint8_t *bucket_of(struct pending_table *table, uint32_t qpn)
{
    return &table->buckets[qpn % 256];
}

struct pending_record *pending_table_find(struct pending_table *table, uint32_t qpn)
{
    for (uint8_t at = *bucket_of(table, qpn); at != NONE; at = table->records[at].next) {
        if (table->records[at].qpn == qpn) {
            return &table->records[at];
        }
    }
    return NULL;
}

static void put(struct pending_table *table, uint32_t address, struct pending_record record)
{
    CHECK(address < QPC_CHANNELS * table->oocap && table->records[address].count == 0);
    uint8_t *bucket = bucket_of(table, record.qpn);
    record.next = *bucket;
    table->records[address] = record;
    *bucket = (uint8_t)address;
}

static void take(struct pending_table *table, struct pending_record *record)
{
    const uint8_t address = (uint8_t)(record - table->records);
    uint8_t *link = bucket_of(table, record->qpn);
    while (*link != address) {
        CHECK(*link != NONE);
        link = &table->records[*link].next;
    }
    *link = record->next;
    record->count = 0;
}

void pending_table_write(struct pending_table *table, uint32_t address, uint32_t qpn)
{
    table->count++;
    put(table, address, (struct pending_record){.qpn = qpn, .count = 1});
}

void pending_table_add(struct pending_table *table, struct pending_record *record, uint32_t address)
{
    struct pending_record moved = *record;
    moved.count++;
    take(table, record);
    put(table, address, moved);
}

bool pending_table_answered(struct pending_table *table, struct pending_record *record)
{
    CHECK(record->count > 0);
    if (record->count > 1) {
        record->count--;
        return true;
    }
    take(table, record);
    table->count--;
    return false;
}
