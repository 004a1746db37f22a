/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/inbound.h"

#include <stddef.h>
#include <string.h>

#define NOWHERE LANT_INBOUND_ENTRIES_MAX

static uint64_t all_entries(const struct lant_inbound *inbound)
{
    return UINT64_MAX >> (LANT_INBOUND_ENTRIES_MAX - inbound->config.entries);
}

void lant_inbound_init(struct lant_inbound *inbound, const struct lant_inbound_config *config)
{
    CHECK(config->entries >= 1 && config->entries <= LANT_INBOUND_ENTRIES_MAX);
    CHECK(config->records >= config->entries && config->records <= LANT_INBOUND_RECORDS_MAX);
    /* Records are written before they are read: their pages need not be touched. */
    memset(inbound, 0, offsetof(struct lant_inbound, next));
    inbound->config = *config;
    inbound->free_count = config->records;
    inbound->counters = (struct lant_inbound_counters){0};
    for (uint16_t i = 0; i < config->records; i++) {
        inbound->next[i] = (uint16_t)(i + 1u);
    }
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static uint32_t check_queue(const struct lant_inbound *inbound,
                            const struct lant_inbound_entry *entry,
                            const struct lant_inbound_queue *queue)
{
    uint16_t place = queue->first;
    for (uint32_t i = 0; i < queue->count; i++) {
        CHECK(place < inbound->config.records);
        CHECK(inbound->records[place].footer.source == entry->source);
        CHECK(inbound->records[place].footer.bus_id == entry->bus_id);
        CHECK(inbound->records[place].answers > 0);
        CHECK(i + 1 < queue->count || place == queue->last);
        place = inbound->next[place];
    }
    return queue->count;
}

static void lant_inbound_check(const struct lant_inbound *inbound)
{
    uint32_t records = inbound->free_count, entries = 0;
    CHECK((inbound->used & ~all_entries(inbound)) == 0);
    for (uint32_t i = 0; i < inbound->config.entries; i++) {
        const struct lant_inbound_entry *entry = &inbound->entries[i];
        const uint32_t count = check_queue(inbound, entry, &entry->queues[LANT_READS]) +
                               check_queue(inbound, entry, &entry->queues[LANT_WRITES]);
        CHECK((count != 0) == (inbound->used >> i & 1));
        records += count;
        entries += count != 0;
        for (uint32_t j = 0; j < i && count != 0; j++) {
            CHECK(!(inbound->used >> j & 1) || inbound->entries[j].source != entry->source ||
                  inbound->entries[j].bus_id != entry->bus_id);
        }
    }
    CHECK(records == inbound->config.records && entries == inbound->used_count);
}

/* -- Requests -----------------------------------------------------------------------------------*/

static uint32_t find(const struct lant_inbound *inbound, uint32_t source, uint8_t bus_id)
{
    for (uint64_t left = inbound->used; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        if (inbound->entries[i].source == source && inbound->entries[i].bus_id == bus_id) {
            return i;
        }
    }
    return NOWHERE;
}

static enum lant_inbound_verdict lant_inbound_judge(const struct lant_inbound *inbound,
                                                    uint32_t source, uint8_t bus_id)
{
    const bool known = find(inbound, source, bus_id) != NOWHERE;
    if (!known && inbound->used == all_entries(inbound)) {
        return LANT_INBOUND_HELD_ENTRY;
    }
    if (inbound->free_count == 0) {
        return LANT_INBOUND_HELD_RECORD;
    }
    return known ? LANT_INBOUND_SHARES : LANT_INBOUND_OPENS;
}

static uint32_t open_entry(struct lant_inbound *inbound, uint32_t source, uint8_t bus_id)
{
    const uint32_t i = (uint32_t)__builtin_ctzll(~inbound->used);
    inbound->used |= UINT64_C(1) << i;
    inbound->entries[i] = (struct lant_inbound_entry){.source = source, .bus_id = bus_id};
    inbound->used_count++;
    if (inbound->used_count > inbound->counters.entries_peak) {
        inbound->counters.entries_peak = inbound->used_count;
    }
    return i;
}

static void append(struct lant_inbound *inbound, struct lant_inbound_queue *queue,
                   const struct lant_inbound_record *record)
{
    const uint16_t place = inbound->free_first;
    inbound->free_first = inbound->next[place];
    inbound->free_count--;
    inbound->records[place] = *record;
    if (queue->count == 0) {
        queue->first = place;
    } else {
        inbound->next[queue->last] = place;
    }
    queue->last = place;
    queue->count++;
}

enum lant_inbound_verdict lant_inbound_admit(struct lant_inbound *inbound,
                                             enum lant_direction direction,
                                             const struct lant_inbound_record *record,
                                             uint8_t *local_id)
{
    const uint32_t source = record->footer.source;
    const uint8_t bus_id = record->footer.bus_id;
    CHECK(record->answers > 0);
    INVARIANTS(lant_inbound_check(inbound));
    const enum lant_inbound_verdict verdict = lant_inbound_judge(inbound, source, bus_id);
    uint32_t entry = 0;
    switch (verdict) {
    case LANT_INBOUND_HELD_ENTRY: inbound->counters.held_entry++; return verdict;
    case LANT_INBOUND_HELD_RECORD: inbound->counters.held_record++; return verdict;
    case LANT_INBOUND_SHARES:
        inbound->counters.shared++;
        entry = find(inbound, source, bus_id);
        break;
    case LANT_INBOUND_OPENS: entry = open_entry(inbound, source, bus_id); break;
    }
    inbound->counters.admitted++;
    append(inbound, &inbound->entries[entry].queues[direction], record);
    *local_id = (uint8_t)entry;
    INVARIANTS(lant_inbound_check(inbound));
    return verdict;
}

/* -- Answers ------------------------------------------------------------------------------------*/

static bool is_error(uint32_t response)
{
    return response != LANT_OKAY && response != LANT_EXOKAY;
}

bool lant_inbound_on_memory(struct lant_inbound *inbound, enum lant_direction direction,
                            uint8_t local_id, enum lant_response response,
                            struct lant_inbound_record *record)
{
    INVARIANTS(lant_inbound_check(inbound));
    CHECK(local_id < inbound->config.entries && inbound->used >> local_id & 1);
    struct lant_inbound_queue *queue = &inbound->entries[local_id].queues[direction];
    CHECK(queue->count > 0);
    const uint16_t place = queue->first;
    struct lant_inbound_record *first = &inbound->records[place];
    if (is_error(response) && !is_error(first->response)) {
        first->response = (uint8_t)response;
    }
    first->answers--;
    if (first->answers > 0) {
        INVARIANTS(lant_inbound_check(inbound));
        return false;
    }
    *record = *first;
    queue->first = inbound->next[place];
    queue->count--;
    inbound->next[place] = inbound->free_first;
    inbound->free_first = place;
    inbound->free_count++;
    if (lant_inbound_count(inbound, local_id) == 0) {
        inbound->used &= ~(UINT64_C(1) << local_id);
        inbound->used_count--;
    }
    INVARIANTS(lant_inbound_check(inbound));
    return true;
}
