/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_port - the port and the GID table, as the network interfaces are.
 */
#ifndef DRIVERS_LIVE_PORT_H
#define DRIVERS_LIVE_PORT_H

#include <stdatomic.h>

#include "drivers/address.h"
#include "drivers/interface_watch.h"
#include "drivers/interfaces.h"

struct live;

struct live_interfaces {
    uint8_t named[ADDRESS_MAX]; /* Which addresses have a link-local name, in the order of these, */
    uint32_t name_count;        /* and how many there are. */
    struct interfaces interfaces;  /* As last told or read. */
    struct interface_watch *watch; /* NULL: nothing is told, as for a loopback of our own. */
    struct instant due;            /* When live_port_on_time is wanted. */
    /* Seen of `interfaces` without the lock: */
    atomic_bool told;      /* It is kept up to date by `watch`. */
    _Atomic uint32_t gids; /* A bit for each address that is there. */
    _Atomic uint32_t interface_indices[ADDRESS_MAX];
    _Atomic uint8_t state; /* enum live_port. */
};

/* The addresses are known, all of them there. The thread begins, from whose sleep on they are
 * watched, and (_serve, locked) something is told of them. */
void live_port_begin(struct live *live);
MUST_USE bool live_port_watch(struct live *live);
void live_port_unwatch(struct live *live);
void live_port_serve(struct live *live);
void live_port_on_time(struct live *live);

#endif
