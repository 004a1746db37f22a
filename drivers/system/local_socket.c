/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/local_socket.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"

#define NAME_PREFIX "nonic/"

/* Connections of other users that are sent away in one turn: a flood of them takes only a part of
 * our time under the NIC's lock. */
#define STRANGERS_MAX 64

struct local_name local_name(const char *purpose, const struct gid *gid, int slot)
{
    struct local_name name = {.address = {.sun_family = AF_UNIX}};
    char *to = name.address.sun_path + 1;
    to += sprintf(to, NAME_PREFIX "%s", purpose);
    for (size_t i = 0; i < sizeof(gid->bytes); i++) {
        to += sprintf(to, "%02x", gid->bytes[i]);
    }
    if (slot != LOCAL_NO_SLOT) {
        to += sprintf(to, "/%d", slot);
    }
    CHECK(slot >= LOCAL_NO_SLOT && to < (char *)&name.address + sizeof(name.address));
    name.bytes = (socklen_t)(to - (char *)&name.address);
    return name;
}

static int open_socket(void)
{
    return descriptor_own(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int local_listen(const struct local_name *name, int backlog)
{
    const int fd = open_socket();
    if (fd < 0) {
        return -1;
    }
    if (system_bind(fd, (const struct sockaddr *)&name->address, name->bytes) != 0 ||
        system_listen(fd, backlog) != 0) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

/* The kernel remembers which process called listen or connect on the other end. If the kernel was
 * short of memory it is asked again, so that a process of our user is not taken for a stranger. */
static struct ucred peer_of(int socket)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    if (!known && shortage_is(errno)) {
        known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    }
    return known ? peer : (struct ucred){.uid = USER_UNKNOWN};
}

pid_t local_peer(int socket)
{
    return peer_of(socket).pid;
}

uid_t local_user(int socket)
{
    const uid_t user = peer_of(socket).uid;
    return user_is_named(user) ? user : USER_UNKNOWN;
}

/* Strangers, who may be many, cost no look at files. errno is EPERM for them; if the kernel could
 * not tell the user for want of something, errno stays. */
static bool is_ours(uid_t user)
{
    errno = user == USER_UNKNOWN && shortage_is(errno) ? errno : EPERM;
    return user == geteuid() && user_is_named(user);
}

int local_dial(const struct local_name *name, pid_t *pid)
{
    const int fd = open_socket();
    if (fd < 0) {
        return -1;
    }
    /* The process that answers later has to be of our user as well. The kernel tells that, unless a
     * filter of system calls forbids it. */
    const int wanted = 1;
    (void)!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &wanted, sizeof(wanted));
    const bool good =
        system_connect(fd, (const struct sockaddr *)&name->address, name->bytes) == 0 &&
        is_ours(peer_of(fd).uid);
    if (!good) {
        descriptor_close(fd);
        return -1;
    }
    *pid = local_peer(fd);
    return fd;
}

/* The flag belongs to the process, as descriptors do. */
static atomic_bool starved;

bool local_starved(void)
{
    return atomic_exchange_explicit(&starved, false, memory_order_relaxed);
}

static void note_shortage(int reason)
{
    if (reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM) {
        atomic_store_explicit(&starved, true, memory_order_relaxed);
    }
}

int local_accept_anybody(int listener)
{
    const int fd = descriptor_own(system_accept(listener));
    if (fd < 0) {
        note_shortage(errno);
    }
    return fd;
}

int local_accept(int listener)
{
    for (int i = 0; i < STRANGERS_MAX; i++) {
        const int fd = local_accept_anybody(listener);
        if (fd < 0 || is_ours(peer_of(fd).uid)) {
            return fd;
        }
        descriptor_close(fd);
    }
    errno = EAGAIN;
    return -1;
}

union control {
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(LOCAL_FDS_MAX * sizeof(int))];
    struct cmsghdr align;
};

/* Adds control data of `bytes` bytes behind that of `message`. */
static void put_control(struct msghdr *message, int type, const void *from, size_t bytes)
{
    CHECK(message->msg_controllen + CMSG_SPACE(bytes) <= sizeof(union control));
    struct cmsghdr *header = (void *)((char *)message->msg_control + message->msg_controllen);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), from, bytes);
    message->msg_controllen += CMSG_SPACE(bytes);
}

bool local_send(int socket, const void *bytes, size_t count, const int *fds, uint32_t fd_count)
{
    union control control;
    struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes};
    const struct ucred self = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
    CHECK(fd_count <= LOCAL_FDS_MAX);
    memset(&control, 0, sizeof(control));
    if (getuid() != self.uid) {
        /* By itself the kernel would tell the user who started this set-user-ID program. */
        put_control(&message, SCM_CREDENTIALS, &self, sizeof(self));
    }
    if (fd_count > 0) {
        put_control(&message, SCM_RIGHTS, fds, fd_count * sizeof(int));
    }
    return system_send_message(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)count;
}

/* Keeps up to `wanted` of the descriptors that came along; descriptor_own may fail for one. */
static void take_descriptors(const struct cmsghdr *header, int *fds, uint32_t wanted,
                             uint32_t *fd_count)
{
    CHECK(header->cmsg_len >= CMSG_LEN(0) && *fd_count <= wanted);
    const uint32_t came = (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (uint32_t i = 0; i < came; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
        if (*fd_count == wanted) {
            descriptor_close(fd);
        } else if ((fds[*fd_count] = descriptor_own(fd)) >= 0) {
            (*fd_count)++;
        }
    }
}

/* False: the message is of another user's process. */
static bool take_control(struct msghdr *message, int *fds, uint32_t wanted, uint32_t *fd_count)
{
    bool ours = true;
    struct ucred sender;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET) {
            continue;
        }
        if (header->cmsg_type == SCM_RIGHTS) {
            take_descriptors(header, fds, wanted, fd_count);
        } else if (header->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&sender, CMSG_DATA(header), sizeof(sender));
            ours = is_ours(sender.uid);
        }
    }
    while (!ours && *fd_count > 0) {
        descriptor_close(fds[--*fd_count]);
    }
    return ours;
}

ssize_t local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count)
{
    union control control;
    struct iovec vector = {.iov_base = bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    const uint32_t wanted = *fd_count;
    CHECK(wanted == 0 || fds != NULL);
    *fd_count = 0;
    const ssize_t received = system_recv_message(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) {
        note_shortage(errno);
    }
    return received < 0 || take_control(&message, fds, wanted, fd_count) ? received : -1;
}
