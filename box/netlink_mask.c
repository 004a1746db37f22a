/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink_mask - what the kernel tells of its interfaces, without times and counters of this
 * machine.
 *
 * Source: rtnetlink(7). The kernel's TCP sends an acknowledgement more or less, and an address has
 * the time at which it was made.
 */
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "box/netlink_mask.h"

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

void netlink_mask(uint8_t *answer, size_t bytes)
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
