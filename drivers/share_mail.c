/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_mail - packets from the member that read them to the member they are for.
 *
 * Two slots may share a socket, QPN 1 belongs to everybody, and a packet may be late. A member that
 * reads packets of another one connects to the owner's slot, where both sides see the other's user,
 * and sends these packets as one handover. A member that is stopped has handovers waiting up to the
 * size of a socket's buffer; more are dropped, like packets that find a full receive buffer.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/bytes.h"
#include "drivers/share.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"

#define LETTERS_BYTES (1 << 20)

/* -- Out ----------------------------------------------------------------------------------------*/

static struct share_connection *connection_to(struct share *share, uint32_t slot)
{
    for (uint32_t i = 0; i < SHARE_CONNECTIONS; i++) {
        if (share->connections[i].fd >= 0 && share->connections[i].slot == slot) {
            return &share->connections[i];
        }
    }
    return NULL;
}

static void dismiss(struct share_connection *connection)
{
    descriptor_close(connection->fd);
    connection->fd = -1;
}

/* A new connection takes the place of the oldest one. */
static struct share_connection *connect_to(struct share *share, uint32_t slot,
                                           enum share_fate *fate)
{
    INVARIANTS(CHECK(connection_to(share, slot) == NULL));
    const struct local_name name = local_name("slot/", &share->gid, (int)slot);
    pid_t pid;
    const int fd = local_dial(&name, &pid);
    if (fd < 0) {
        *fate = shortage_is(errno) ? SHARE_CROWDED : SHARE_NOBODY;
        return NULL;
    }
    const int wanted = LETTERS_BYTES;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
    struct share_connection *connection = &share->connections[share->next_connection];
    share->next_connection = (share->next_connection + 1) % SHARE_CONNECTIONS;
    dismiss(connection);
    *connection = (struct share_connection){.fd = fd, .slot = slot};
    INVARIANTS(share_check(share));
    return connection;
}

enum share_fate share_hand_on(struct share *share, uint32_t slot, const void *handover,
                              size_t bytes)
{
    enum share_fate fate = SHARE_NOBODY;
    INVARIANTS(share_check(share));
    INVARIANTS(CHECK(slot < SHARE_SLOTS && bytes >= sizeof(struct share_handover)));
    struct share_connection *connection = connection_to(share, slot);
    /* A connection that was kept may lead to a process that is gone: then we try once more. */
    for (int tries = 0; tries < 2; tries++) {
        if (connection == NULL && (connection = connect_to(share, slot, &fate)) == NULL) {
            return fate;
        }
        INVARIANTS(CHECK(connection->fd >= 0 && connection->slot == slot));
        if (local_send(connection->fd, handover, bytes, NULL, 0)) {
            return SHARE_HANDED_ON;
        }
        if (shortage_is(errno)) {
            return SHARE_CROWDED;
        }
        dismiss(connection);
        connection = NULL;
    }
    return SHARE_NOBODY;
}

/* -- In -----------------------------------------------------------------------------------------*/

/* False: no caller could be let in; with no descriptor left, callers keep waiting. */
static bool accept_connections(struct share *share)
{
    bool any = false;
    int fd;
    for (int i = 0; i < SHARE_CONNECTIONS && (fd = local_accept(share->slot_listener)) >= 0; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
        if (system_epoll_change(share->mail, EPOLL_CTL_ADD, fd, &event) != 0) {
            descriptor_close(fd);
        }
        any = true;
    }
    return any;
}

bool share_handover_is_whole(const uint8_t *bytes, size_t count)
{
    uint64_t magic;
    if (count < sizeof(struct share_handover)) {
        return false;
    }
    memcpy(&magic, bytes, sizeof(magic));
    size_t at = sizeof(struct share_handover);
    while (at + 2 <= count) {
        at += 2u + load_be16(bytes + at);
    }
    return magic == SHARE_MAGIC_HANDOVER && at == count;
}

size_t share_collect(struct share *share, void *handover, size_t bytes_max)
{
    struct epoll_event event;
    INVARIANTS(CHECK(share->mail >= 0 && share->slot_listener >= 0));
    while (system_epoll(share->mail, &event, 1) == 1) {
        if (event.data.fd == share->slot_listener) {
            if (!accept_connections(share)) {
                return 0;
            }
            continue;
        }
        uint32_t fds = 0;
        const ssize_t received = local_receive(event.data.fd, handover, bytes_max, NULL, &fds);
        if (received > 0 && share_handover_is_whole(handover, (size_t)received)) {
            return (size_t)received;
        }
        if (received >= 0 || (errno != EAGAIN && errno != EINTR)) {
            /* The sender is gone, or its message makes no sense. */
            descriptor_close(event.data.fd);
        }
    }
    return 0;
}
