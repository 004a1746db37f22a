/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink_socket - a netlink socket that is connected to itself.
 *
 * The kernel may not know the protocol. It knows NETLINK_USERSOCK, by which processes talk: the
 * kernel names, binds, polls, reads and closes such a socket like one of any protocol. This file
 * takes the messages that a program sends, and sends the replies from the socket to itself. From
 * the first reply on the socket is connected to itself, so that nobody else's messages come in.
 */
#include "kernel/netlink_socket.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "kernel/nldev.h"
#include "kernel/nldev_device.h"

#define FILES_MAX         65536
#define REQUEST_BYTES_MAX 16384
/* Bytes that the queue of a socket takes, as a kernel counts them, when it is asked for more. */
#define REPLY_BYTES_MAX (192 * 1024)
#define QUEUE_BYTES     (1 << 20)

/* By descriptor: the kernel's cookie of the socket that we made. Another socket of this number has
 * another cookie, so it does not matter who closed ours, and how. Untouched pages take no
 * memory. */
static _Atomic uint64_t cookies[FILES_MAX];

static bool find_cookie(int fd, uint64_t *cookie)
{
    socklen_t bytes = sizeof(*cookie);
    unchecked_begin();
    const bool found = getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &bytes) == 0;
    unchecked_end();
    return found && bytes == sizeof(*cookie);
}

int netlink_socket_open(int type)
{
    uint64_t cookie;
    errno = 0;
    const int fd = system_socket(AF_NETLINK, type, NETLINK_USERSOCK);
    if (fd >= 0 && fd < FILES_MAX && find_cookie(fd, &cookie) && cookie != 0) {
        atomic_store(&cookies[fd], cookie);
        return fd;
    }
    descriptor_close(fd);
    if (shortage_is(errno)) {
        return -1; /* The kernel would fail in the same way for its own socket. */
    }
    /* As without us: the kernel decides about the protocol. */
    return system_socket(AF_NETLINK, type, NETLINK_RDMA);
}

bool netlink_socket_is(int fd)
{
    if (fd < 0 || fd >= FILES_MAX) {
        return false;
    }
    uint64_t noted = atomic_load_explicit(&cookies[fd], memory_order_relaxed), cookie;
    if (noted == 0) {
        return false;
    }
    const int before = errno;
    const bool same = find_cookie(fd, &cookie) && cookie == noted;
    errno = before;
    if (!same) {
        atomic_compare_exchange_strong(&cookies[fd], &noted, 0); /* It is not asked for again. */
    }
    return same;
}

/* -- Addresses ----------------------------------------------------------------------------------*/

static bool own_address(int fd, struct sockaddr_nl *address)
{
    socklen_t bytes = sizeof(*address);
    return getsockname(fd, (struct sockaddr *)(void *)address, &bytes) == 0;
}

static bool connect_to(int fd, const struct sockaddr_nl *address)
{
    return system_connect(fd, (const struct sockaddr *)(const void *)address, sizeof(*address)) ==
           0;
}

/* A socket that was not bound is given a name when it sends, or connects. */
static bool connect_to_itself(int fd, struct sockaddr_nl *own)
{
    const struct sockaddr_nl nobody = {.nl_family = AF_NETLINK};
    if (!own_address(fd, own)) {
        return false;
    }
    if (own->nl_pid == 0 && (!connect_to(fd, &nobody) || !own_address(fd, own))) {
        return false;
    }
    own->nl_groups = 0;
    return connect_to(fd, own);
}

void netlink_socket_correct(int fd, void *name, socklen_t bytes)
{
    struct sockaddr_nl sender, own;
    if (name == NULL || bytes < sizeof(sender)) {
        return;
    }
    const int before = errno;
    memcpy(&sender, name, sizeof(sender));
    if (own_address(fd, &own) && own.nl_pid == sender.nl_pid) {
        sender.nl_pid = 0;
        memcpy(name, &sender, sizeof(sender));
    }
    errno = before;
}

/* The kernel alone: nobody else speaks this protocol. 0 or an errno. */
static int judge_destination(const struct msghdr *message)
{
    struct sockaddr_nl to;
    if (message->msg_name == NULL || message->msg_namelen == 0) {
        return 0;
    }
    if (message->msg_namelen < sizeof(to)) {
        return EINVAL;
    }
    memcpy(&to, message->msg_name, sizeof(to));
    if (to.nl_family != AF_NETLINK) {
        return EINVAL;
    }
    return to.nl_pid != 0 || to.nl_groups != 0 ? EPERM : 0;
}

/* -- Requests and replies -----------------------------------------------------------------------*/

/* Returns how many bytes; more than there is room for: it is too long. */
static size_t gather(const struct msghdr *message, uint8_t bytes[REQUEST_BYTES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *part = &message->msg_iov[i];
        if (part->iov_len > REQUEST_BYTES_MAX - count) {
            return REQUEST_BYTES_MAX + 1;
        }
        if (part->iov_len > 0) {
            memcpy(bytes + count, part->iov_base, part->iov_len);
        }
        count += part->iov_len;
    }
    return count;
}

static bool deliver_one(int fd, const struct sockaddr_nl *own, const uint8_t *bytes, size_t count)
{
    const struct iovec part = {(void *)(uintptr_t)bytes, count};
    const struct msghdr message = {.msg_name = (void *)(uintptr_t)own,
                                   .msg_namelen = sizeof(*own),
                                   .msg_iov = (struct iovec *)(uintptr_t)&part,
                                   .msg_iovlen = 1};
    const ssize_t sent = system_send_message(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == (ssize_t)count;
}

/* Half of an answer is none: a program would wait for its end for ever. */
static void drain(int fd)
{
    uint8_t byte;
    while (system_recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) >= 0) {
    }
}

static int deliver(int fd, const struct nldev_out *out)
{
    struct sockaddr_nl own;
    const int queue = QUEUE_BYTES;
    if (!connect_to_itself(fd, &own)) {
        return errno;
    }
    for (size_t at = 0; at < out->used;) {
        const size_t count = nldev_datagram(out->bytes + at, out->used - at);
        CHECK(count > 0 && count <= out->used - at && count <= NLDEV_DATAGRAM_BYTES);
        if (!deliver_one(fd, &own, out->bytes + at, count)) {
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
            if (!deliver_one(fd, &own, out->bytes + at, count)) {
                drain(fd);
                return ENOBUFS;
            }
        }
        at += count;
    }
    return 0;
}

static int answer(const uint8_t *bytes, size_t count, struct nldev_out *out)
{
    struct nldev_request request;
    for (size_t at = 0; nldev_next(bytes, count, &at, &request);) {
        if (!nldev_device_answer(&request, out)) {
            return ENOBUFS;
        }
    }
    return 0;
}

static int take(int fd, const struct msghdr *message, size_t *count)
{
    int error = judge_destination(message);
    uint8_t *request = error == 0 ? malloc(REQUEST_BYTES_MAX) : NULL;
    uint8_t *reply = error == 0 ? malloc(REPLY_BYTES_MAX) : NULL;
    struct sockaddr_nl own;
    if (error == 0 && (request == NULL || reply == NULL)) {
        error = ENOBUFS;
    }
    if (error == 0 && (*count = gather(message, request)) > REQUEST_BYTES_MAX) {
        error = EMSGSIZE;
    }
    if (error == 0 && !connect_to_itself(fd, &own)) {
        error = errno;
    }
    if (error == 0) {
        struct nldev_out out = {.bytes = reply, .room = REPLY_BYTES_MAX, .port_id = own.nl_pid};
        error = answer(request, *count, &out);
        CHECK(out.used <= out.room);
        error = error != 0 ? error : deliver(fd, &out);
    }
    free(request);
    free(reply);
    return error;
}

ssize_t netlink_socket_send(int fd, const struct msghdr *message)
{
    size_t count = 0;
    const int before = errno;
    const int cancellation = uncancelled_begin();
    const int error = take(fd, message, &count);
    uncancelled_end(cancellation);
    errno = error != 0 ? error : before;
    return error != 0 ? -1 : (ssize_t)count;
}
