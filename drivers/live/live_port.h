/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_port - the port and the GID table, as the network interfaces are.
 */
#ifndef DRIVERS_LIVE_PORT_H
#define DRIVERS_LIVE_PORT_H

#include <stdatomic.h>

#include "drivers/address.h"
#include "drivers/system/interface_watch.h"
#include "drivers/system/interfaces.h"

struct live;

struct live_interfaces {
    uint8_t named[ADDRESS_MAX]; /* Which addresses have a link-local name, in the order of these, */
    uint32_t name_count;        /* and how many there are. */
    struct interfaces interfaces;  /* As last told or read. */
    struct interface_watch *watch; /* NULL: nothing is told, as for a loopback of our own. */
    struct instant due;            /* When live_port_on_time is wanted. */
    /* The parts of `interfaces` that are read without the lock: */
    atomic_bool told;      /* `watch` keeps them up to date. */
    _Atomic uint32_t gids; /* A bit for each address that is there. */
    _Atomic uint32_t interface_indices[ADDRESS_MAX];
    _Atomic uint8_t state; /* enum live_port. */
};

/* live_port_begin: the addresses are known, and all of them are there. live_port_watch: the thread
 * begins, which watches them while it sleeps. live_port_serve (locked): the kernel has told
 * something about them. */
void live_port_begin(struct live *live);
MUST_USE bool live_port_watch(struct live *live);
void live_port_unwatch(struct live *live);
void live_port_serve(struct live *live);
void live_port_on_time(struct live *live);

#endif
