/* SPDX-License-Identifier: BSD-2-Clause
 *
 * local_socket - connections between processes of one machine and user, by abstract names.
 *
 * Purpose    Names that vanish with their owner, made of a purpose, a GID and perhaps a slot; the
 *            user and the process on the other side; descriptors along with a message.
 * Inputs     local_listen, local_dial, local_accept, local_send, local_receive.
 * Outputs    Sockets that keep message boundaries (SOCK_SEQPACKET) and never block.
 * Ownership  A descriptor that is returned belongs to the caller, who gives it to descriptor_close;
 *            it is noted as the NIC's (descriptor.h).
 * Threads    Any. No call is a point where a program's thread may be cancelled: callers hold locks.
 * Limits     LOCAL_FDS_MAX descriptors with a message.
 * Source     unix(7). Names have no permissions, so both sides look at the other's user
 *            (SO_PEERCRED), and the side that dials looks at the sender's user in each answer
 *            (SCM_CREDENTIALS).
 */
#ifndef DRIVERS_LOCAL_SOCKET_H
#define DRIVERS_LOCAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/check.h"
#include "nic/types.h"

#define LOCAL_FDS_MAX 128

/* A name without a slot: of an address that one process has to itself, or of all that share one. */
#define LOCAL_NO_SLOT (-1)

struct local_name {
    struct sockaddr_un address;
    socklen_t bytes;
};

/* "nonic/PURPOSE" + the GID in hex + "/SLOT". */
struct local_name local_name(const char *purpose, const struct gid *gid, int slot);

/* A listening socket of that name; -1 with errno. */
MUST_USE int local_listen(const struct local_name *name, int backlog);

/* Connects to the process of our user that listens there; -1 with errno, EPERM if another user's
 * listens there. The kernel tells the user at the time of listen(): a process that has changed its
 * user since keeps its listeners. Its answers are refused then (local_receive), also with EPERM. */
MUST_USE int local_dial(const struct local_name *name, pid_t *pid);

/* The next process of our user that dialled; -1: none waits; or this process may have no more
 * descriptors, and the other one goes on waiting. Processes of other users are sent away, a limited
 * number in one call: -1 with EAGAIN may also mean that more of them wait, and the listener stays
 * readable. */
MUST_USE int local_accept(int listener);
/* The same for processes of any user. */
MUST_USE int local_accept_anybody(int listener);
/* Since the last call of this function, a process had to go on waiting for us, for want of
 * descriptors or of memory. Its listener or socket stays readable, so a sleep until it is readable
 * would end at once. */
bool local_starved(void);

/* The user on the other side of a connection, at the time of connect() or listen(); USER_UNKNOWN
 * (user.h), which equals no user: it is not known. */
uid_t local_user(int socket);
/* The process that dialled or listened, as this process sees it; 0: it does not see it. */
pid_t local_peer(int socket);

/* Sends one message, with descriptors or without. */
MUST_USE bool local_send(int socket, const void *bytes, size_t count, const int *fds,
                         uint32_t fd_count);

/* Returns the bytes received; 0: the other side is gone; -1 with errno, EPERM if we dialled and the
 * sender was of another user when it sent. Up to *fd_count of the descriptors that came along are
 * kept, and *fd_count becomes their number. */
MUST_USE ssize_t local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count);

#endif
