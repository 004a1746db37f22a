/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interface_watch - a socket by which the kernel tells of changes of network interfaces.
 *
 * Answers to our questions, and messages about changes, come in one queue. An answer may be older
 * than a message that came before it; then the question is asked again. That costs no more than the
 * change did, so it comes to an end.
 */
#include "drivers/system/interface_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"

/* -- Opening ------------------------------------------------------------------------------------*/

static bool bind_socket(struct interface_watch *watch, bool events)
{
    struct sockaddr_nl name = {
        .nl_family = AF_NETLINK,
        .nl_groups = events ? RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR : 0,
    };
    socklen_t bytes = sizeof(name);
    if (system_bind(watch->fd, (const struct sockaddr *)(const void *)&name, bytes) != 0 ||
        getsockname(watch->fd, (struct sockaddr *)(void *)&name, &bytes) != 0) {
        return false;
    }
    watch->port_id = name.nl_pid;
    return true;
}

bool interface_watch_open(struct interface_watch *watch, bool events)
{
    watch->failed = watch->again = false;
    watch->reading = INTERFACE_READS_NOTHING;
    watch->sequence = 0;
    watch->at = watch->count = 0;
    watch->fd = descriptor_own(
        system_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    if (watch->fd < 0) {
        return false;
    }
    if (!bind_socket(watch, events)) {
        interface_watch_close(watch);
        return false;
    }
    return true;
}

void interface_watch_close(struct interface_watch *watch)
{
    descriptor_close(watch->fd);
    watch->fd = -1;
}

/* Bytes that were received and not taken yet lie between `at` and `count`. */
static void watch_check(const struct interface_watch *watch)
{
    CHECK(watch->fd >= 0 && watch->reading <= INTERFACE_READS_LINKS);
    CHECK(watch->at <= watch->count && watch->count <= sizeof(watch->bytes));
    CHECK(watch->reading == INTERFACE_READS_NOTHING || watch->sequence != 0);
}

/* -- Asking -------------------------------------------------------------------------------------*/

static void ask(struct interface_watch *watch, enum interface_reading what)
{
    uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX];
    watch->sequence++;
    const size_t count = what == INTERFACE_READS_ADDRESSES
                             ? rtnetlink_ask_addresses(bytes, watch->sequence)
                             : rtnetlink_ask_links(bytes, watch->sequence);
    watch->reading = (uint8_t)what;
    watch->failed = system_send(watch->fd, bytes, count, MSG_DONTWAIT) != (ssize_t)count;
}

static void begin(struct interface_watch *watch, const struct interfaces *known)
{
    CHECK(watch->reading == INTERFACE_READS_NOTHING); /* One answer at a time. */
    watch->again = false;
    interfaces_begin(&watch->fresh, known);
    ask(watch, INTERFACE_READS_ADDRESSES);
}

/* -- Taking -------------------------------------------------------------------------------------*/

/* One of two questions has been answered. */
static uint32_t take_end(struct interface_watch *watch, struct interfaces *interfaces)
{
    if (watch->reading == INTERFACE_READS_ADDRESSES) {
        ask(watch, INTERFACE_READS_LINKS);
        return 0;
    }
    watch->reading = INTERFACE_READS_NOTHING;
    return watch->again ? 0 : interfaces_replace(interfaces, &watch->fresh);
}

static uint32_t take_answer(struct interface_watch *watch, struct interfaces *interfaces,
                            const struct rtnetlink_message *message)
{
    watch->again |= message->interrupted || message->kind == RTNETLINK_OVERRUN;
    if (message->kind == RTNETLINK_DONE) {
        return take_end(watch, interfaces);
    }
    watch->failed = message->kind == RTNETLINK_REFUSED;
    interfaces_read(&watch->fresh, message);
    return 0;
}

static uint32_t take(struct interface_watch *watch, struct interfaces *interfaces,
                     const struct rtnetlink_message *message)
{
    /* An answer to another program has that program's port, also where the kernel sends it to
     * all. */
    if (watch->reading != INTERFACE_READS_NOTHING && message->port_id == watch->port_id &&
        message->sequence == watch->sequence) {
        return take_answer(watch, interfaces, message);
    }
    watch->again |=
        watch->reading != INTERFACE_READS_NOTHING &&
        (interfaces_concern(interfaces, message) || interfaces_concern(&watch->fresh, message));
    const uint32_t changes = interfaces_apply(interfaces, message);
    watch->again |= (changes & INTERFACES_DOUBT) != 0;
    return changes & ~(uint32_t)INTERFACES_DOUBT;
}

/* Receives messages; those that do not come from the kernel are dropped. False: there are no more,
 * or the watch has `failed`. */
static bool receive(struct interface_watch *watch)
{
    struct sockaddr_nl from = {0};
    struct iovec part = {watch->bytes, sizeof(watch->bytes)};
    struct msghdr message = {
        .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1};
    const ssize_t count = system_recv_message(watch->fd, &message, MSG_DONTWAIT);
    watch->at = watch->count = 0;
    if (count > 0) {
        watch->count = from.nl_pid == 0 ? (size_t)count : 0;
        watch->again |= (message.msg_flags & MSG_TRUNC) != 0;
        return true;
    }
    if (count < 0 && errno == ENOBUFS) {
        watch->again = true; /* The queue was full, and messages are missing. */
        return true;
    }
    watch->failed = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    return count < 0 && errno == EINTR;
}

/* Asks once the queue is empty: before that, the kernel could find no room for the answer. An
 * answer that has begun always goes on, unless memory is short. */
static bool ask_again(struct interface_watch *watch, const struct interfaces *known)
{
    watch->failed |= watch->reading != INTERFACE_READS_NOTHING;
    if (watch->failed || !watch->again) {
        return false;
    }
    begin(watch, known);
    return true;
}

bool interface_watch_next(struct interface_watch *watch, struct interfaces *interfaces,
                          uint32_t *changes)
{
    struct rtnetlink_message message;
    while (!watch->failed) {
        INVARIANTS(watch_check(watch));
        switch (rtnetlink_next(watch->bytes, watch->count, &watch->at, &message)) {
        case RTNETLINK_MESSAGE:
            *changes = take(watch, interfaces, &message);
            if (*changes != 0) {
                return true;
            }
            break;
        case RTNETLINK_MALFORMED:
            /* The kernel would answer a question in the same way again. */
            watch->failed = watch->reading != INTERFACE_READS_NOTHING;
            watch->again = true;
            watch->at = watch->count;
            break;
        case RTNETLINK_END:
            if (receive(watch)) {
                break;
            }
            if (!ask_again(watch, interfaces)) {
                return false;
            }
            break;
        }
    }
    return false;
}

bool interface_watch_read(struct interface_watch *watch, struct interfaces *interfaces)
{
    uint32_t changes;
    CHECK(!watch->failed);
    watch->again = true;
    while (interface_watch_next(watch, interfaces, &changes)) {
    }
    return !watch->failed && watch->reading == INTERFACE_READS_NOTHING && !watch->again;
}
