/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link - the way to one peer address, as nic_path.link names it.
 *
 * Each port embeds a struct link at the head of its own link type. A link lives as long as the live
 * NIC: queue pairs may refer to it at any time, so a peer that goes away only marks it lost.
 */
#ifndef DRIVERS_LINK_H
#define DRIVERS_LINK_H

#include "base/instant.h"
#include "base/list.h"
#include "nic/types.h"

enum link_kind {
    LINK_UDP,
    LINK_SHM,
    LINK_FAN,     /* To several processes: each datagram has a link of its own (live_fan_link). */
    LINK_NOWHERE, /* To nobody: what is sent there vanishes. */
};

struct link {
    enum link_kind kind;
    struct gid peer;
    struct gid self;
    bool lost;              /* The peer process is gone: what is sent here vanishes. */
    struct instant look_at; /* Lost: when to look for it again. */
    uint32_t number;        /* LINK_UDP: nic_path.peer; 0: none. */
    bool connected;         /* A connected queue pair's path has led here (LINK_UDP). */
    struct list parked;     /* Queue pairs waiting for room (their nic_park nodes). */
    /* live_stopped.c: does the peer read what we send? */
    struct link_reading {
        struct instant at; /* When we looked the last time; 0 ns: never. */
        uint32_t mark;     /* Shared memory: how much had been sent by then. */
        bool unread;       /* UDP: something lay in the peer's socket. */
        uint8_t blind;     /* UDP: so many looks in a row failed for want of something. */
    } reading;
};

#endif
