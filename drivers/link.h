/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link - the state that a port keeps for one peer address, as nic_av.link names it.
 *
 * Each port embeds a struct link at the head of its own link type, and has a link_table of them. A
 * link is there as long as anybody holds it: a queue pair's address vector, an address handle, a
 * shared link, or a link of the same peer by another route. After that it is idle, and is removed
 * soon (live_links.c). When only the peer ends, the link is marked as lost.
 */
#ifndef DRIVERS_LINK_H
#define DRIVERS_LINK_H

#include "base/instant.h"
#include "base/list.h"
#include "drivers/udp/udp_unread.h"
#include "nic/types.h"

enum link_kind {
    LINK_UDP,
    LINK_SHM,
    LINK_SHARED,  /* To several processes: each datagram has a link of its own (live_slot_link). */
    LINK_NOWHERE, /* To nobody: packets that are sent there vanish. */
};

struct link {
    enum link_kind kind;
    struct gid peer;
    struct gid self;
    int slot;               /* The peer's process; LOCAL_NO_SLOT: it has only one. */
    uint8_t hop_limit;      /* LINK_UDP, to a multicast group: the most hops; 0: not beyond this
                               machine, or unicast. */
    bool lost;              /* The peer process is gone: packets that are sent here vanish. */
    bool wanted;            /* While idle links go: this one is named by a packet that waits. */
    bool connected;         /* Packets of a connected queue pair were sent here (LINK_UDP). */
    uint32_t holders;       /* 0: idle. */
    uint32_t routes;        /* Links of other routes that hold this one (udp_routes.c). */
    struct link *first;     /* The peer's link of route 0, with which it goes; or itself. */
    struct instant look_at; /* Lost: when to look for it again. */
    uint32_t number;        /* LINK_UDP: nic_av.peer; 0: none. */
    struct list parked;     /* Queue pairs waiting for room (their nic_park nodes). */
    struct list waiting;    /* In live.links.waiting: there may be such queue pairs. */
    struct list member;     /* In its table: in the list of held or of idle links. */
    struct link *next;      /* In its bucket. */
    /* live_stopped.c: does the peer read what we send? */
    struct link_reading {
        struct instant at;      /* When we looked the last time; 0 ns: never. */
        uint32_t mark;          /* Shared memory: how much had been sent by then. */
        bool unread;            /* UDP: datagrams lay unread in the peer's socket. */
        uint8_t blind;          /* UDP: looks in a row that failed for want of something. */
        bool unmet;             /* UDP: the look for its owner failed likewise. */
        struct instant met_at;  /* UDP, on this machine: when we looked for the owner of the */
        struct udp_owner owner; /* peer's socket, and that owner. */
    } reading;
};

#endif
