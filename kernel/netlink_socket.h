/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink_socket - the kernel's NETLINK_RDMA socket, as programs open it and send to it.
 *
 * Purpose    A descriptor on which the requests of nldev.h are answered, about this process's
 *            device.
 * Inputs     socket(), and what a program sends.
 * Outputs    Replies, in the descriptor's own queue.
 * Ownership  The descriptor is the program's, and all there is: it may be inherited, duplicated by
 *            dup2's numbers, and closed by whoever likes. Nothing has to be given back.
 * Threads    Any; also children of fork.
 * Time       Other programs are asked for what they have, for some seconds at most.
 * Limits     Requests of 16 KB. Descriptors below 65536; a duplicate is answered only under the
 *            number that socket() gave. writev and sendmmsg are not looked at.
 * Source     netlink(7), docs/decisions/0032.
 */
#ifndef KERNEL_NETLINK_SOCKET_H
#define KERNEL_NETLINK_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* As socket(AF_NETLINK, type, NETLINK_RDMA). */
int netlink_socket_open(int type);
/* Is this one of those? Asks the kernel, if the number was ever one. errno stays. */
bool netlink_socket_is(int fd);
/* A message of a program to the kernel: all its bytes, or -1 with errno. */
ssize_t netlink_socket_send(int fd, const struct msghdr *message);
/* The sender of the received message is the kernel, if we sent it. */
void netlink_socket_correct(int fd, void *name, socklen_t bytes);

#endif
