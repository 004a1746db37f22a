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

#include "nic/types.h"
#include "wire/rtnetlink.h"

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

/* In the order in which a NIC would tell them. */
enum interfaces_change {
    INTERFACES_PORT_ERR = 1 << 0,    /* The port was active and is not any more. */
    INTERFACES_PORT_ACTIVE = 1 << 1, /* It was not and is now. */
    INTERFACES_GID_CHANGE = 1 << 2,  /* An address came or went. */
    INTERFACES_DOUBT = 1 << 3,       /* The message does not tell all: everything is to be read. */
};

/* One of several interfaces is enough, as where Linux bonds them. */
enum interfaces_port {
    INTERFACES_PORT_IS_ACTIVE,
    INTERFACES_PORT_POLLING,  /* Switched on, without a carrier. */
    INTERFACES_PORT_DISABLED, /* Switched off, or gone. */
};

/* Takes one message of what the kernel tells by itself. Returns enum interfaces_change, or'ed. */
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

enum interfaces_port interfaces_port(const struct interfaces *interfaces);

#endif
