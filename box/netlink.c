/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink - what the kernel tells of its interfaces, without times and counters of this machine.
 *
 * Source: rtnetlink(7). The kernel's TCP sends an acknowledgement more or less, and an address has
 * the time at which it was made.
 */
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "box/internal.h"

enum {
    ANSWER_MAX = 65536,
};

/* The values of these attributes become 0, behind the first `kept` bytes. */
static size_t kept_bytes(uint16_t message, uint16_t attribute)
{
    if (message == RTM_NEWADDR && attribute == IFA_CACHEINFO) {
        return 8; /* the lifetimes stay */
    }
    const bool counts = attribute == IFLA_STATS || attribute == IFLA_STATS64;
    return message == RTM_NEWLINK && counts ? 0 : SIZE_MAX;
}

static void clear_attributes(struct nlmsghdr *message, size_t header)
{
    uint8_t *at = (uint8_t *)message + NLMSG_HDRLEN + NLMSG_ALIGN(header);
    size_t left = message->nlmsg_len - NLMSG_HDRLEN - NLMSG_ALIGN(header);
    struct rtattr attribute;
    while (left >= sizeof(attribute)) {
        memcpy(&attribute, at, sizeof(attribute));
        if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > left) {
            return;
        }
        const size_t kept = kept_bytes(message->nlmsg_type, attribute.rta_type);
        const size_t bytes = attribute.rta_len - sizeof(attribute);
        if (kept < bytes) {
            memset(at + sizeof(attribute) + kept, 0, bytes - kept);
        }
        const size_t step = RTA_ALIGN(attribute.rta_len);
        if (step > left) {
            return;
        }
        at += step;
        left -= step;
    }
}

static void clear(uint8_t *answer, size_t bytes)
{
    for (size_t at = 0; at + NLMSG_HDRLEN <= bytes;) {
        struct nlmsghdr *message = (struct nlmsghdr *)(void *)(answer + at);
        const size_t header = message->nlmsg_type == RTM_NEWADDR   ? sizeof(struct ifaddrmsg)
                              : message->nlmsg_type == RTM_NEWLINK ? sizeof(struct ifinfomsg)
                                                                   : 0;
        if (message->nlmsg_len < NLMSG_HDRLEN || message->nlmsg_len > bytes - at) {
            return;
        }
        if (header != 0 && message->nlmsg_len >= NLMSG_HDRLEN + NLMSG_ALIGN(header)) {
            clear_attributes(message, header);
        }
        at += NLMSG_ALIGN(message->nlmsg_len);
    }
}

void netlink_clear(struct thread *thread, int64_t bytes)
{
    static _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_MAX];
    struct msghdr message;
    struct iovec vector;
    uint64_t to = thread->call.argument[1];
    if (thread->call.number == SYS_recvmsg) {
        if (!tracee_read(thread->id, to, &message, sizeof(message)) || message.msg_iovlen != 1 ||
            !tracee_read(thread->id, (uint64_t)(uintptr_t)message.msg_iov, &vector,
                         sizeof(vector))) {
            return;
        }
        to = (uint64_t)(uintptr_t)vector.iov_base;
        bytes = bytes < (int64_t)vector.iov_len ? bytes : (int64_t)vector.iov_len;
    }
    if (bytes > 0 && bytes <= ANSWER_MAX && tracee_read(thread->id, to, answer, (size_t)bytes)) {
        clear(answer, (size_t)bytes);
        tracee_write(thread->id, to, answer, (size_t)bytes);
    }
}
