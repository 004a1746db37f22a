/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_unread - does a process of this machine leave its datagrams unread?
 *
 * Reads /proc/net/udp or udp6, which take time in proportion to the sockets there are: for moments
 * when a connection would be given up otherwise.
 */
#ifndef DRIVERS_UDP_UNREAD_H
#define DRIVERS_UDP_UNREAD_H

#include <stdbool.h>

#include "nic/types.h"

/* Is there a socket at the RoCEv2 port of that address, in our network namespace, with datagrams
 * nobody has read? Where several processes share the address: of any of theirs. False with an errno
 * that shortage_is: it cannot be said just now. */
bool udp_unread_at(const struct gid *peer);

#endif
