/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/sq_table.h"

void sq_table_init(struct sq_table *table, uint32_t capacity, uint32_t sq_wqes, void *memory)
{
    CHECK(capacity >= 1 && capacity <= SQ_TABLE_MAX);
    CHECK(sq_wqes >= 1 && sq_wqes <= 65536 && (sq_wqes & (sq_wqes - 1)) == 0);
    *table = (struct sq_table){
        .entries = memory, .capacity = capacity, .sq_wqes = sq_wqes, .first_free = SQ_TABLE_MAX};
}

enum status sq_table_add(struct sq_table *table, uint64_t address, uint32_t *slot)
{
    if (address % SQ_ALIGN_BYTES != 0) {
        return STATUS_INVALID;
    }
    if (table->count == table->capacity) {
        return STATUS_FULL;
    }
    if (table->first_free != SQ_TABLE_MAX) {
        *slot = table->first_free;
        table->first_free = (uint32_t)(table->entries[*slot].address >> 1);
    } else {
        *slot = table->touched++;
    }
    table->entries[*slot] = (struct sq_entry){.address = address};
    table->count++;
    return STATUS_OK;
}

enum status sq_table_move(struct sq_table *table, uint32_t slot, uint64_t address)
{
    if (address % SQ_ALIGN_BYTES != 0) {
        return STATUS_INVALID;
    }
    sq_table_entry(table, slot)->address = address;
    return STATUS_OK;
}

void sq_table_remove(struct sq_table *table, uint32_t slot)
{
    sq_table_entry(table, slot)->address = (uint64_t)table->first_free << 1 | 1;
    table->first_free = slot;
    table->count--;
}
