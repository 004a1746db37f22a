/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interfaces - the addresses of a device, and the network interfaces that they are on: their state,
 * and the effect of its changes on the device's port and GID table.
 *
 * Purpose    Follows the messages of the kernel (wire/rtnetlink.h), one after the other, and names
 *            the changes for which a NIC raises an event.
 * Inputs     interfaces_apply; a whole new reading, by interfaces_begin and interfaces_replace.
 * Outputs    Changes; the state of the port.
 * Limits     INTERFACES_ADDRESSES_MAX addresses, which are known when the device is opened: one
 *            that an interface gets later is none of the device's.
 * Source     IBTA 11.6.3; Linux's RoCE drivers, for the port's state by an interface's flags.
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
    uint32_t interface_index; /* The interface that it is on, or was last; 0: that one is gone. */
    /* An address of 127.0.0.0/8: its interface has all of these, though it lists only some. */
    bool unlisted;
    bool present;
    bool up, carrier; /* Its interface is switched on; its cable leads to somebody. */
};

struct interfaces {
    struct interface_address addresses[INTERFACES_ADDRESSES_MAX];
    uint32_t count;
};

/* Beside enum live_change: the message does not tell all, so the whole state is to be read. */
#define INTERFACES_DOUBT (1u << 3)

/* Takes one message that the kernel sent without a question. Returns enum live_change, or'ed, and
 * INTERFACES_DOUBT. */
uint32_t interfaces_apply(struct interfaces *interfaces, const struct rtnetlink_message *message);

/* Is the message about one of the addresses, or about an interface that one of them is on? */
bool interfaces_concern(const struct interfaces *interfaces,
                        const struct rtnetlink_message *message);

/* A reading of the whole state begins, with the same addresses, of which nothing is known yet. */
void interfaces_begin(struct interfaces *fresh, const struct interfaces *known);
/* Takes one message of the reading: addresses come first, then links. */
void interfaces_read(struct interfaces *fresh, const struct rtnetlink_message *message);
/* The reading has ended. Returns the same as interfaces_apply. */
uint32_t interfaces_replace(struct interfaces *known, const struct interfaces *fresh);

enum live_port interfaces_port(const struct interfaces *interfaces);

#endif
