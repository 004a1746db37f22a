/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/link_table.h"

#include <stdlib.h>

#define BUCKETS_MIN 64

/* Each link is in a bucket, and in the list of held or of idle links. */
static void table_check(const struct link_table *table)
{
    CHECK((table->buckets == NULL) == (table->bucket_count == 0));
    CHECK((table->bucket_count & (table->bucket_count - 1)) == 0);
    CHECK(table->idle_count <= table->count);
    list_check(&table->held);
    list_check(&table->idle);
    CHECK(list_empty(&table->idle) == (table->idle_count == 0));
    CHECK(list_empty(&table->held) == (table->idle_count == table->count));
}

void link_table_init(struct link_table *table)
{
    *table = (struct link_table){.idle_max = 2 * LINKS_IDLE};
    list_init(&table->held);
    list_init(&table->idle);
}

void link_table_close(struct link_table *table)
{
    CHECK(table->count == 0);
    free(table->buckets);
    table->buckets = NULL;
    table->bucket_count = 0;
}

void link_init(struct link *link, enum link_kind kind, const struct link_name *name)
{
    *link = (struct link){.kind = kind,
                          .peer = *name->peer,
                          .self = *name->self,
                          .slot = name->slot,
                          .hop_limit = name->hop_limit,
                          .first = link};
    list_init(&link->parked);
    list_init(&link->waiting);
    list_init(&link->member);
}

static uint32_t hash_of(const struct gid *peer, int slot)
{
    uint32_t hash = 2166136261u ^ (uint32_t)slot;
    for (size_t i = 0; i < sizeof(peer->bytes); i++) {
        hash = (hash ^ peer->bytes[i]) * 16777619u;
    }
    return hash;
}

static struct link **bucket_of(const struct link_table *table, const struct gid *peer, int slot)
{
    return &table->buckets[hash_of(peer, slot) & (table->bucket_count - 1)];
}

static void put(struct link_table *table, struct link *link)
{
    struct link **bucket = bucket_of(table, &link->peer, link->slot);
    link->next = *bucket;
    *bucket = link;
}

/* Doubles the buckets. False: no memory. */
static bool grow(struct link_table *table)
{
    struct link **before = table->buckets;
    const uint32_t before_count = table->bucket_count;
    const uint32_t count = before_count == 0 ? BUCKETS_MIN : 2 * before_count;
    struct link **grown = calloc(count, sizeof(struct link *));
    if (grown == NULL) {
        return false;
    }
    table->buckets = grown;
    table->bucket_count = count;
    for (uint32_t i = 0; i < before_count; i++) {
        while (before[i] != NULL) {
            struct link *link = before[i];
            before[i] = link->next;
            put(table, link);
        }
    }
    free(before);
    return true;
}

struct link *link_table_find(const struct link_table *table, const struct link_name *name)
{
    struct link *link = table->bucket_count == 0 ? NULL : *bucket_of(table, name->peer, name->slot);
    while (link != NULL && !link_has_name(link, name)) {
        link = link->next;
    }
    return link;
}

bool link_table_add(struct link_table *table, struct link *link)
{
    CHECK(link->holders == 0 && link->routes == 0 && list_empty(&link->member));
    /* Without memory for more buckets there are more links in each. */
    if (table->count == table->bucket_count && !grow(table) && table->bucket_count == 0) {
        return false;
    }
    put(table, link);
    table->count++;
    list_append(&table->idle, &link->member);
    table->idle_count++;
    INVARIANTS(table_check(table));
    return true;
}

void link_table_remove(struct link_table *table, struct link *link)
{
    struct link **at = bucket_of(table, &link->peer, link->slot);
    while (*at != link) {
        at = &(*at)->next;
        CHECK(*at != NULL); /* It is in this table. */
    }
    *at = link->next;
    table->count--;
    table->idle_count -= link->holders == 0;
    list_remove(&link->member);
    INVARIANTS(table_check(table));
}

void link_table_hold(struct link_table *table, struct link *link)
{
    INVARIANTS(table_check(table));
    INVARIANTS(CHECK(!list_empty(&link->member))); /* It is in a table. */
    if (link->holders++ == 0) {
        list_remove(&link->member);
        list_append(&table->held, &link->member);
        table->idle_count--;
    }
}

void link_table_release(struct link_table *table, struct link *link)
{
    CHECK(link->holders > 0);
    INVARIANTS(table_check(table));
    if (--link->holders == 0) {
        link->connected = false;
        list_remove(&link->member);
        list_append(&table->idle, &link->member);
        table->idle_count++;
    }
}

static struct link *link_at(struct list *node)
{
    return CONTAINER_OF(node, struct link, member);
}

struct link *link_table_next(const struct link_table *table, const struct link *link)
{
    const bool idle = link != NULL && link->holders == 0;
    struct list *node = link == NULL ? table->held.next : link->member.next;
    if (!idle && node == &table->held) {
        node = table->idle.next;
    }
    return node == &table->idle ? NULL : link_at(node);
}

struct link *link_table_first_idle(const struct link_table *table)
{
    return list_empty(&table->idle) ? NULL : link_at(table->idle.next);
}

void link_table_note_swept(struct link_table *table)
{
    const uint32_t more = table->idle_count > LINKS_IDLE ? table->idle_count : LINKS_IDLE;
    table->idle_max = table->idle_count + more;
    INVARIANTS(table_check(table));
}
