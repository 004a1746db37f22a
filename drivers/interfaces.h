/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interfaces - the addresses of a device, and the network interfaces that they are on: which of
 *              them are there, and what a change means to the device's port and GID table.
 *
 * Purpose    Follows what the kernel tells (wire/rtnetlink.h), one message after the other, and
 *            names what a NIC would raise an event for.
 * Inputs     interfaces_apply; a whole new reading, by interfaces_begin and interfaces_replace.
 * Outputs    Changes; the state of the port.
 * Ownership  Values only.
 * Threads    One caller at a time.
 * Time       Not used.
 * Units      None.
 * Limits     INTERFACES_ADDRESSES_MAX addresses, which are known when the device is opened: one
 *            that an interface gets later is none of the device's.
 * Source     IBTA 11.6.3; Linux's RoCE drivers, of which state belongs to which flags.
 */
#ifndef DRIVERS_INTERFACES_H
#define DRIVERS_INTERFACES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/rtnetlink.h"
#include "world/world.h"

#define INTERFACES_ADDRESSES_MAX 16

struct interface_address {
    struct gid gid;
    uint32_t interface_index; /* That it is, or was last, on; 0: that one is gone. */
    /* One of 127.0.0.0/8: its interface has all of those, whichever are listed. */
    bool unlisted;
    bool present;
    bool up, carrier; /* Its interface is switched on; its cable leads to somebody. */
};

struct interfaces {
    struct interface_address addresses[INTERFACES_ADDRESSES_MAX];
    uint32_t count;
};

/* Beside enum live_change: the message does not tell all, everything is to be read. */
#define INTERFACES_DOUBT (1u << 3)

/* Takes one message of what the kernel tells by itself. Returns enum live_change, or'ed, and
 * INTERFACES_DOUBT. */
uint32_t interfaces_apply(struct interfaces *interfaces, const struct rtnetlink_message *message);

/* Is it about an address of these, or an interface that one is on? */
bool interfaces_concern(const struct interfaces *interfaces,
                        const struct rtnetlink_message *message);

/* A reading of everything begins: the same addresses, of which nothing is known yet. */
void interfaces_begin(struct interfaces *fresh, const struct interfaces *known);
/* Takes one message of it: addresses come first, then links. */
void interfaces_read(struct interfaces *fresh, const struct rtnetlink_message *message);
/* It has ended. Returns as interfaces_apply. */
uint32_t interfaces_replace(struct interfaces *known, const struct interfaces *fresh);

enum live_port interfaces_port(const struct interfaces *interfaces);

#endif
