/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_socket - sockets by which programs ask the kernel for RDMA devices.
 *
 * Such a socket is the kernel's own, but we take the messages that are sent through it. So only
 * calls that send are changed, and the sender's address in calls that receive.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "drivers/system/raced.h"
#include "kernel/interpose.h"
#include "kernel/netlink_socket.h"

static atomic_int highest = -1; /* No descriptor above was ever one of those. */

bool interpose_is_netlink(int fd)
{
    return UNLIKELY(fd <= atomic_load_explicit(&highest, memory_order_relaxed)) &&
           netlink_socket_is(fd);
}

NEXT(socket)
EXPORT int socket(int domain, int type, int protocol)
{
    if (UNLIKELY(domain == AF_NETLINK && protocol == NETLINK_RDMA)) {
        const int fd = netlink_socket_open(type);
        int before = atomic_load(&highest);
        while (fd > before && !atomic_compare_exchange_weak(&highest, &before, fd)) {
        }
        return fd;
    }
    return next_socket()(domain, type, protocol);
}

ssize_t interpose_send(int fd, const void *bytes, size_t count, const void *name, socklen_t length)
{
    struct iovec part = {(void *)(uintptr_t)bytes, count};
    const struct msghdr message = {.msg_name = (void *)(uintptr_t)name,
                                   .msg_namelen = length,
                                   .msg_iov = &part,
                                   .msg_iovlen = 1};
    return netlink_socket_send(fd, &message);
}

NEXT(send)
EXPORT ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    race_tell();
    return interpose_is_netlink(fd) ? interpose_send(fd, bytes, count, NULL, 0)
                                    : next_send()(fd, bytes, count, flags);
}

NEXT(sendto)
EXPORT ssize_t sendto(int fd, const void *bytes, size_t count, int flags, __CONST_SOCKADDR_ARG name,
                      socklen_t length)
{
    race_tell();
    return interpose_is_netlink(fd) ? interpose_send(fd, bytes, count, name.__sockaddr__, length)
                                    : next_sendto()(fd, bytes, count, flags, name, length);
}

NEXT(sendmsg)
EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    race_tell();
    return interpose_is_netlink(fd) ? netlink_socket_send(fd, message)
                                    : next_sendmsg()(fd, message, flags);
}

/* -- Senders: programs believe the kernel alone -------------------------------------------------*/

/* The kernel gives the length of an address even if there was less room for it. */
static socklen_t least(socklen_t room, socklen_t length)
{
    return room < length ? room : length;
}

NEXT(recvmsg)
EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    const socklen_t room = message->msg_namelen;
    const ssize_t received = next_recvmsg()(fd, message, flags);
    if (received >= 0 && interpose_is_netlink(fd)) {
        netlink_socket_correct(fd, message->msg_name, least(room, message->msg_namelen));
    }
    return received;
}

NEXT(recvfrom)
EXPORT ssize_t recvfrom(int fd, void *bytes, size_t count, int flags, __SOCKADDR_ARG name,
                        socklen_t *length)
{
    const socklen_t before = name.__sockaddr__ == NULL ? 0 : *length;
    const ssize_t received = next_recvfrom()(fd, bytes, count, flags, name, length);
    if (received >= 0 && name.__sockaddr__ != NULL && interpose_is_netlink(fd)) {
        netlink_socket_correct(fd, name.__sockaddr__, least(before, *length));
    }
    return received;
}

EXPORT ssize_t __recvfrom_chk(int fd, void *bytes, size_t count, size_t room, int flags,
                              __SOCKADDR_ARG name, socklen_t *length);
NEXT(__recvfrom_chk)
EXPORT ssize_t __recvfrom_chk(int fd, void *bytes, size_t count, size_t room, int flags,
                              __SOCKADDR_ARG name, socklen_t *length)
{
    const socklen_t before = name.__sockaddr__ == NULL ? 0 : *length;
    const ssize_t received = next___recvfrom_chk()(fd, bytes, count, room, flags, name, length);
    if (received >= 0 && name.__sockaddr__ != NULL && interpose_is_netlink(fd)) {
        netlink_socket_correct(fd, name.__sockaddr__, least(before, *length));
    }
    return received;
}
