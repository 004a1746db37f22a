/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_unread - a look for unread datagrams in the sockets of another process of this machine.
 *
 * Reads /proc/net/udp or udp6, which take time in proportion to the sockets there are: for moments
 * when a connection would be given up otherwise.
 */
#ifndef DRIVERS_UDP_UNREAD_H
#define DRIVERS_UDP_UNREAD_H

#include <stdbool.h>

#include "base/check.h"
#include "nic/types.h"

/* A socket of this machine and its user, as the kernel numbers both. */
struct udp_owner {
    unsigned uid;
    unsigned long inode; /* 0: none. */
};

/* A socket at the RoCEv2 port of that address, in our network namespace: any of them where several
 * processes share the address. False: there is none; or, with an errno that shortage_is, it cannot
 * be said just now. */
MUST_USE bool udp_find_owner(const struct gid *peer, struct udp_owner *owner);

/* Does the owner's socket there have datagrams that nobody has read? If `shared`, any socket of the
 * user's there, since they are those of all processes that share the address. False with an errno
 * that shortage_is: it cannot be said just now. */
bool udp_unread_at(const struct gid *peer, const struct udp_owner *owner, bool shared);

#endif
