/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interface_watch - a socket by which the kernel tells of changes of network interfaces.
 *
 * Purpose    Reads the state of all interfaces, and hears of every change after that. Where the
 *            kernel had no room for a message, the whole state is read again: only changes are
 *            missed that were undone before we looked.
 * Inputs     interface_watch_open, interface_watch_read, interface_watch_next.
 * Outputs    Changes (interfaces.h).
 * Ownership  A watch owns its socket until interface_watch_close.
 * Threads    One caller at a time. No call is a cancellation point, and none blocks.
 * Limits     The network namespace that the process was in when the watch was opened.
 * Source     netlink(7), rtnetlink(7).
 */
#ifndef DRIVERS_INTERFACE_WATCH_H
#define DRIVERS_INTERFACE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "drivers/system/interfaces.h"

/* The largest datagram that Linux makes up for a reader. */
#define INTERFACE_WATCH_BYTES 32768

enum interface_reading {
    INTERFACE_READS_NOTHING,
    INTERFACE_READS_ADDRESSES,
    INTERFACE_READS_LINKS,
};

struct interface_watch {
    int fd; /* Becomes readable; -1: closed. */
    bool failed;
    bool again;                 /* A message was missed: the state is to be read again. */
    uint8_t reading;            /* enum interface_reading. */
    uint32_t port_id, sequence; /* The socket's number, and that of the request under way. */
    struct interfaces fresh;    /* The part of the state that has been read. */
    size_t at, count;           /* Where messages begin that were not yet looked at. */
    uint8_t bytes[INTERFACE_WATCH_BYTES];
};

/* `events`: from now on changes are told. False: the system gives no such socket, as in some
 * sandboxes; errno says why. Then nothing has to be closed. */
MUST_USE bool interface_watch_open(struct interface_watch *watch, bool events);
void interface_watch_close(struct interface_watch *watch);

/* Reads the whole state into `interfaces`. False: it cannot be read. */
MUST_USE bool interface_watch_read(struct interface_watch *watch, struct interfaces *interfaces);

/* The next change that the kernel has told, which is made in `interfaces`: enum live_change, or'ed.
 * False: there is none now; or the watch has `failed`, and none will be told. */
MUST_USE bool interface_watch_next(struct interface_watch *watch, struct interfaces *interfaces,
                                   uint32_t *changes);

#endif
