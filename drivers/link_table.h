/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link_table - the links of one kind, found by their destinations, and the order of the idle ones.
 *
 * Purpose    One look-up, one count of holders and one order of removal for the links of all ports.
 * Inputs     link_table_add; link_table_hold and link_table_release, in pairs.
 * Outputs    The link that leads somewhere; the idle link that was let go of first.
 * Ownership  A link belongs to its port, which frees it after link_table_remove. The table's own
 *            memory grows with the number of links, and is freed by link_table_close.
 * Units      Links.
 * Limits     LINKS_IDLE idle links are kept, so that a program that makes and destroys an address
 *            handle for each message finds the same link again.
 * Source     docs/decisions/0038.
 */
#ifndef DRIVERS_LINK_TABLE_H
#define DRIVERS_LINK_TABLE_H

#include "drivers/link.h"

#define LINKS_IDLE 64

struct link_table {
    struct link **buckets; /* NULL: none yet. */
    uint32_t bucket_count; /* A power of two. */
    uint32_t count;
    struct list held, idle; /* All links. In `idle`, the one that became idle first is first. */
    uint32_t idle_count, idle_max;
};

/* The destination of a link, and its source. */
struct link_name {
    const struct gid *self, *peer;
    int slot;
    uint8_t hop_limit;
};

void link_table_init(struct link_table *table);
/* Frees the table, in which there are no links any more. */
void link_table_close(struct link_table *table);

static inline bool link_has_name(const struct link *link, const struct link_name *name)
{
    return link->slot == name->slot && link->hop_limit == name->hop_limit &&
           gid_equal(&link->peer, name->peer) && gid_equal(&link->self, name->self);
}

/* Makes a link of which nothing is known yet: it is idle, and in no table. */
void link_init(struct link *link, enum link_kind kind, const struct link_name *name);

struct link *link_table_find(const struct link_table *table, const struct link_name *name);
/* False: no memory. The link is idle until it is held. */
MUST_USE bool link_table_add(struct link_table *table, struct link *link);
/* Nobody holds the link, or all links are removed. */
void link_table_remove(struct link_table *table, struct link *link);

void link_table_hold(struct link_table *table, struct link *link);
void link_table_release(struct link_table *table, struct link *link);

/* All links, in any order, those that are idle last: the one behind `link`, NULL for the first.
 * NULL: there are no more. */
struct link *link_table_next(const struct link_table *table, const struct link *link);
struct link *link_table_first_idle(const struct link_table *table);

/* So many are idle that it is time to let some go. */
static inline bool link_table_is_crowded(const struct link_table *table)
{
    return table->idle_count > table->idle_max;
}

/* May this idle link be removed? A link whose peer is gone is of no use, and is not kept. */
static inline bool link_table_spares(const struct link_table *table, const struct link *link)
{
    return !link->wanted && link->routes == 0 && (link->lost || table->idle_count > LINKS_IDLE);
}

/* All idle links were looked at. Those that stay are not looked at again before as many more have
 * become idle. */
void link_table_note_swept(struct link_table *table);

#endif
