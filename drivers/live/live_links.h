/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_links - the links of a live NIC that lead to others, wait, or have a number.
 */
#ifndef DRIVERS_LIVE_LINKS_H
#define DRIVERS_LIVE_LINKS_H

#include "drivers/link_table.h"
#include "drivers/share.h"
#include "nic/nic.h"

struct live;

/* The most links that blocks may go over. */
#define LIVE_NUMBERS_MAX 1024

/* A link to an address that several processes share. It holds the links to them. */
struct live_shared {
    struct link link;
    struct live_slot {
        struct link *link;      /* NULL: not looked for yet. */
        struct instant look_at; /* When to look for a better link. */
    } slots[SHARE_SLOTS];
};

struct live_links {
    struct link_table shared;
    struct link nowhere;                         /* Datagrams to a slot that no process has. */
    struct list waiting;                         /* Links that queue pairs may be parked on. */
    bool parked;                                 /* Queue pairs may be waiting for room there. */
    uint64_t numbers[LIVE_NUMBERS_MAX / 64 + 1]; /* Bits: numbers of links (nic_av.peer). */
};

/* live_begin_links: there are no links yet. live_forget_links: frees the last links that belong to
 * no port. */
void live_begin_links(struct live *live);
void live_forget_links(struct live *live);
/* The shared link to the address vector's destination, held; NULL: no memory. */
struct link *live_hold_fan(struct live *live, const struct nic_av *av);
/* One holder less. The link stays until links are swept, which live_release does as
 * well; never while a packet is on its way from an engine to a port. */
void live_let_go(struct live *live, struct link *link);
void live_sweep_links(struct live *live);
/* A number for a link that blocks may go over; 0: all are taken. */
uint32_t live_free_number(const struct live *live);
void live_take_number(struct live *live, struct link *link, uint32_t number);

#endif
