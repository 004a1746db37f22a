/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/rtnetlink.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"

/* Messages and attributes begin at multiples of four octets. */
static size_t padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* -- Attributes ---------------------------------------------------------------------------------*/

/* The attributes of an address. */
struct address_attributes {
    const uint8_t *own, *either; /* NULL: not given. */
    size_t own_bytes, either_bytes;
    uint32_t flags;
};

static bool take_attribute(struct address_attributes *found, uint16_t type, const uint8_t *value,
                           size_t bytes)
{
    switch (type & NLA_TYPE_MASK) {
    case IFA_LOCAL:
        found->own = value;
        found->own_bytes = bytes;
        return true;
    case IFA_ADDRESS:
        found->either = value;
        found->either_bytes = bytes;
        return true;
    case IFA_FLAGS:
        if (bytes != sizeof(found->flags)) {
            return false;
        }
        memcpy(&found->flags, value, sizeof(found->flags));
        return true;
    default: return true;
    }
}

/* False: the attributes do not fill `count` octets, or one does not fit its type. */
static bool take_attributes(struct address_attributes *found, const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at < count;) {
        struct nlattr attribute;
        if (count - at < sizeof(attribute)) {
            return false;
        }
        memcpy(&attribute, bytes + at, sizeof(attribute));
        if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > count - at) {
            return false;
        }
        if (!take_attribute(found, attribute.nla_type, bytes + at + sizeof(attribute),
                            attribute.nla_len - sizeof(attribute))) {
            return false;
        }
        /* The last one's padding may be missing. */
        at += padded(attribute.nla_len);
    }
    return true;
}

/* -- Messages -----------------------------------------------------------------------------------*/

static bool take_link(struct rtnetlink_message *message, bool gone, const uint8_t *bytes,
                      size_t count)
{
    struct ifinfomsg link;
    if (count < sizeof(link)) {
        return false;
    }
    memcpy(&link, bytes, sizeof(link));
    /* A bridge says of an interface that leaves it that the link is gone: from the bridge. */
    if (link.ifi_family != AF_UNSPEC || link.ifi_index <= 0) {
        return link.ifi_index > 0;
    }
    message->kind = gone ? RTNETLINK_LINK_GONE : RTNETLINK_LINK;
    message->interface_index = (uint32_t)link.ifi_index;
    message->up = (link.ifi_flags & IFF_UP) != 0;
    message->carrier = (link.ifi_flags & IFF_LOWER_UP) != 0;
    return true;
}

/* While an address may turn out to be somebody else's (RFC 4862), and if it did, no packet has it
 * for its source. */
static bool is_usable(uint32_t flags)
{
    return !(flags & IFA_F_DADFAILED) && (!(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC);
}

static bool take_address(struct rtnetlink_message *message, bool gone, const uint8_t *bytes,
                         size_t count)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    struct ifaddrmsg header;
    if (count < sizeof(header)) {
        return false;
    }
    memcpy(&header, bytes, sizeof(header));
    struct address_attributes found = {.flags = header.ifa_flags};
    if (!take_attributes(&found, bytes + sizeof(header), count - sizeof(header))) {
        return false;
    }
    if (header.ifa_family != AF_INET && header.ifa_family != AF_INET6) {
        return true;
    }
    /* With a peer at the other end of the line, IFA_ADDRESS is the peer's. */
    const uint8_t *address = found.own != NULL ? found.own : found.either;
    const size_t bytes_of = found.own != NULL ? found.own_bytes : found.either_bytes;
    const size_t expected = header.ifa_family == AF_INET ? 4 : 16;
    if (address == NULL || bytes_of != expected || header.ifa_index == 0) {
        return false;
    }
    message->kind = gone || !is_usable(found.flags) ? RTNETLINK_ADDRESS_GONE : RTNETLINK_ADDRESS;
    message->interface_index = header.ifa_index;
    memcpy(message->address, mapped, sizeof(mapped));
    memcpy(message->address + 16 - expected, address, expected);
    return true;
}

/* NLMSG_ERROR has the number of an error; 0 confirms a request, which nobody asks for here. */
static bool take_error(struct rtnetlink_message *message, size_t count)
{
    message->kind = RTNETLINK_REFUSED;
    return count >= sizeof(int);
}

/* A list that the kernel could not finish ends with the number of an error; without one, or with
 * none, it is whole. */
static bool take_done(struct rtnetlink_message *message, const uint8_t *bytes, size_t count)
{
    int error = 0;
    if (count >= sizeof(error)) {
        memcpy(&error, bytes, sizeof(error));
    }
    message->kind = error < 0 ? RTNETLINK_REFUSED : RTNETLINK_DONE;
    return true;
}

static bool take(struct rtnetlink_message *message, uint16_t type, const uint8_t *bytes,
                 size_t count)
{
    switch (type) {
    case RTM_NEWLINK: return take_link(message, false, bytes, count);
    case RTM_DELLINK: return take_link(message, true, bytes, count);
    case RTM_NEWADDR: return take_address(message, false, bytes, count);
    case RTM_DELADDR: return take_address(message, true, bytes, count);
    case NLMSG_DONE: return take_done(message, bytes, count);
    case NLMSG_ERROR: return take_error(message, count);
    case NLMSG_OVERRUN: message->kind = RTNETLINK_OVERRUN; return true;
    default: return true;
    }
}

enum rtnetlink_verdict rtnetlink_next(const uint8_t *bytes, size_t count, size_t *at,
                                      struct rtnetlink_message *message)
{
    struct nlmsghdr header;
    CHECK(*at <= count);
    if (*at == count) {
        return RTNETLINK_END;
    }
    const size_t left = count - *at;
    if (left < sizeof(header)) {
        return RTNETLINK_MALFORMED;
    }
    memcpy(&header, bytes + *at, sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > left) {
        return RTNETLINK_MALFORMED;
    }
    *message = (struct rtnetlink_message){
        .kind = RTNETLINK_OTHER,
        .sequence = header.nlmsg_seq,
        .port_id = header.nlmsg_pid,
        .interrupted = (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0,
    };
    if (!take(message, header.nlmsg_type, bytes + *at + sizeof(header),
              header.nlmsg_len - sizeof(header))) {
        return RTNETLINK_MALFORMED;
    }
    const size_t step = padded(header.nlmsg_len);
    *at += step < left ? step : left;
    return RTNETLINK_MESSAGE;
}

/* -- Requests -----------------------------------------------------------------------------------*/

static size_t ask(uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX], uint16_t type, size_t body_bytes,
                  uint32_t sequence)
{
    const struct nlmsghdr header = {
        .nlmsg_len = (uint32_t)(sizeof(header) + body_bytes),
        .nlmsg_type = type,
        .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
        .nlmsg_seq = sequence,
    };
    CHECK(header.nlmsg_len <= RTNETLINK_REQUEST_BYTES_MAX);
    memset(bytes, 0, header.nlmsg_len);
    memcpy(bytes, &header, sizeof(header));
    return header.nlmsg_len;
}

size_t rtnetlink_ask_links(uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX], uint32_t sequence)
{
    /* Counters would be the larger part of each answer. */
    const struct nlattr mask = {.nla_len = sizeof(mask) + sizeof(uint32_t),
                                .nla_type = IFLA_EXT_MASK};
    const uint32_t without = RTEXT_FILTER_SKIP_STATS;
    const size_t count = ask(bytes, RTM_GETLINK, sizeof(struct ifinfomsg) + mask.nla_len, sequence);
    memcpy(bytes + count - mask.nla_len, &mask, sizeof(mask));
    memcpy(bytes + count - sizeof(without), &without, sizeof(without));
    return count;
}

size_t rtnetlink_ask_addresses(uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX], uint32_t sequence)
{
    return ask(bytes, RTM_GETADDR, sizeof(struct ifaddrmsg), sequence);
}
