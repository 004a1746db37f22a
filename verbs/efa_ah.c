/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_ah - a table that grows: entry N is number N. Those of one bucket, and those that are free,
 * are lists by number.
 */
#include "verbs/efa_ah.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct entry {
    struct gid gid;
    uint32_t holders; /* 0: it is free. */
    uint16_t next;
};

static struct {
    pthread_mutex_t mutex;
    struct entry *entries;
    uint32_t room, used; /* Entries from `used` on never had a GID. */
    uint16_t free;
    uint16_t buckets[BUCKETS]; /* One more than a number; 0: empty, so that zeroes are a table. */
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER, .free = EFA_AH_NONE};

void efa_ah_in_child(void)
{
    pthread_mutex_init(&table.mutex, NULL);
}

static uint16_t *bucket_of(const struct gid *gid)
{
    uint64_t halves[2];
    memcpy(halves, gid->bytes, sizeof(halves));
    const uint64_t mixed = (halves[0] ^ halves[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &table.buckets[mixed >> 54];
}

_Static_assert(BUCKETS == 1 << (64 - 54), "the upper bits of a product choose the bucket");

/* (mutex) EFA_AH_NONE: it is not there. */
static uint16_t find(const struct gid *gid)
{
    for (uint32_t at = *bucket_of(gid); at != 0; at = table.entries[at - 1].next) {
        CHECK(at <= table.used && table.entries[at - 1].holders > 0);
        if (gid_equal(&table.entries[at - 1].gid, gid)) {
            return (uint16_t)(at - 1);
        }
    }
    return EFA_AH_NONE;
}

/* (mutex) Makes room for one more. */
static bool grow(void)
{
    if (table.used < table.room) {
        return true;
    }
    const uint32_t room = table.room == 0 ? 64 : 2 * table.room;
    struct entry *entries = realloc(table.entries, room * sizeof(*entries));
    if (entries == NULL) {
        return false;
    }
    table.entries = entries;
    table.room = room;
    return true;
}

/* (mutex) A number that nobody has; EFA_AH_NONE: there is none. */
static uint16_t draw(void)
{
    if (table.free != EFA_AH_NONE) {
        const uint16_t number = table.free;
        CHECK(number < table.used && table.entries[number].holders == 0);
        table.free = table.entries[number].next;
        return number;
    }
    return table.used == EFA_AH_NONE || !grow() ? EFA_AH_NONE : (uint16_t)table.used++;
}

/* (mutex) */
static uint16_t add(const struct gid *gid)
{
    const uint16_t number = draw();
    if (number != EFA_AH_NONE) {
        uint16_t *bucket = bucket_of(gid);
        table.entries[number] = (struct entry){.gid = *gid, .next = *bucket};
        *bucket = (uint16_t)(number + 1);
    }
    return number;
}

bool efa_ah_hold(const struct gid *gid, uint16_t *number)
{
    pthread_mutex_lock(&table.mutex);
    *number = find(gid);
    if (*number == EFA_AH_NONE) {
        *number = add(gid);
    }
    const bool held = *number != EFA_AH_NONE;
    if (held) {
        table.entries[*number].holders++;
    }
    pthread_mutex_unlock(&table.mutex);
    return held;
}

/* (mutex) */
static void drop(uint16_t number)
{
    struct entry *entry = &table.entries[number];
    uint16_t *link = bucket_of(&entry->gid);
    while (*link != number + 1) {
        CHECK(*link != 0);
        link = &table.entries[*link - 1].next;
    }
    *link = entry->next;
    entry->next = table.free;
    table.free = number;
}

void efa_ah_let_go(uint16_t number)
{
    pthread_mutex_lock(&table.mutex);
    CHECK(number < table.used && table.entries[number].holders > 0);
    if (--table.entries[number].holders == 0) {
        drop(number);
    }
    pthread_mutex_unlock(&table.mutex);
}

uint16_t efa_ah_number(const struct gid *gid)
{
    pthread_mutex_lock(&table.mutex);
    const uint16_t number = find(gid);
    pthread_mutex_unlock(&table.mutex);
    return number;
}
