/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_receive - coalesced datagrams that come in, are judged by their ICRC, and go to the sink one
 * by one.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/clock.h"
#include "drivers/system.h"
#include "drivers/udp_port.h"

#define RECEIVE_BUFFER_BYTES (1 << 16)

/* A single datagram, or a small answer with its acknowledgement, mostly emptied the socket: a
 * program that polls looks again soon anyway, and the datagram is served without another system
 * call. */
#define STREAM_BYTES 1024
/* But if this number of looks in a row each found a datagram, more of them wait behind it. */
#define LOOKS_OF_BACKLOG 3

/* No datagram lies in a socket longer than this; if one seems to, the clock was set after it
 * came. */
#define AGE_NS_MAX 1000000000u

/* How far ahead of the datagram that is served we look at others. */
#define PACKETS_AHEAD 4

/* A kernel peer counts its identifications up, other traffic of that host in between. */
#define IDENTIFICATION_STEP_MAX 4096
/* A segmented call of a nonic whose segments came one by one. */
#define IDENTIFICATION_SMALL 128

/* -- The sender's identification ----------------------------------------------------------------*/

static struct udp_flow *flow_of(struct udp_port *port, const struct inet_flow *inet)
{
    uint32_t hash = inet->source_port;
    for (size_t i = 0; i < sizeof(inet->source); i += 4) {
        hash = (hash ^ load_be32(inet->source + i)) * 0x9e3779b1u;
    }
    struct udp_flow *flow = &port->flows[(hash >> 16) % UDP_FLOWS];
    if (memcmp(flow->source.bytes, inet->source, sizeof(inet->source)) != 0 ||
        memcmp(flow->destination.bytes, inet->destination, sizeof(inet->destination)) != 0 ||
        flow->port != inet->source_port) {
        *flow = (struct udp_flow){.port = inet->source_port};
        memcpy(flow->source.bytes, inet->source, sizeof(inet->source));
        memcpy(flow->destination.bytes, inet->destination, sizeof(inet->destination));
    }
    return flow;
}

static bool follows(uint16_t earlier, uint16_t later)
{
    return (uint16_t)(later - earlier) <= IDENTIFICATION_STEP_MAX;
}

/* Half of the ICRC's strength went into finding the identification. If it continues those that this
 * peer sent before, some of that strength is regained. */
static bool plausible(struct udp_flow *flow, uint16_t identification)
{
    const bool accepted = !flow->known || identification < IDENTIFICATION_SMALL ||
                          follows(flow->last, identification) ||
                          follows(flow->candidate, identification);
    if (accepted) {
        flow->known = true;
        flow->last = identification;
    }
    flow->candidate = identification;
    return accepted;
}

/* -- The ICRC -----------------------------------------------------------------------------------*/

static bool icrc_good(struct udp_port *port, struct udp_flow *flow, const struct inet_flow *inet,
                      const uint8_t *bytes, size_t total, uint16_t index)
{
    const uint32_t prefix = icrc_remembered_prefix(&flow->icrcs, inet, index, total);
    const uint32_t computed = icrc_finish(icrc_packet(prefix, bytes, total - ROCE_ICRC_BYTES));
    const uint32_t difference = load_le32(bytes + total - ROCE_ICRC_BYTES) ^ computed;
    if (LIKELY(difference == 0)) {
        return true;
    }
    uint16_t identification;
    if (!inet_is_ipv4(inet->source) ||
        !icrc_solve_identification(difference, total, index, &identification)) {
        port->counters.bad_icrc++;
        return false;
    }
    if (!plausible(flow, identification)) {
        port->counters.implausible_identification++;
        return false;
    }
    return true;
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static void source_of(const struct sockaddr_storage *from, struct inet_flow *flow)
{
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
        memset(flow->source, 0, 10);
        flow->source[10] = flow->source[11] = 0xff;
        memcpy(flow->source + 12, &v4->sin_addr, 4);
        flow->source_port = ntohs(v4->sin_port);
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
        memcpy(flow->source, &v6->sin6_addr, 16);
        flow->source_port = ntohs(v6->sin6_port);
    }
}

/* The control data that the kernel tells beside the bytes. */
struct told {
    size_t segment; /* The size of the datagrams that were coalesced; 0: it is a single one. */
    struct inet_variant variant;
    struct instant arrived; /* 0 ns: not known. */
};

/* The kernel's stamps are of the clock that people set: we can only use how long ago it was, and
 * not if the clock was set meanwhile. */
static struct instant arrival_of(const struct cmsghdr *control)
{
    struct timespec stamp;
    memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
    const uint64_t at = (uint64_t)stamp.tv_sec * 1000000000u + (uint64_t)stamp.tv_nsec;
    const uint64_t age = clock_unix_ns() - at;
    return age > AGE_NS_MAX ? (struct instant){0} : (struct instant){clock_now().ns - age};
}

/* The types of the two levels have different numbers. */
static void listen_to_variant(struct inet_variant *variant, const struct cmsghdr *control)
{
    const bool ipv4 = control->cmsg_level == IPPROTO_IP;
    const int type = control->cmsg_type;
    uint32_t value = 0; /* IPv4's traffic class is a byte; the flow label is in network order. */
    memcpy(&value, CMSG_DATA(control), ipv4 && type == IP_TOS ? 1 : sizeof(value));
    if (type == (ipv4 ? IP_TOS : IPV6_TCLASS)) {
        variant->traffic_class = (uint8_t)value;
    } else if (type == (ipv4 ? IP_TTL : IPV6_HOPLIMIT)) {
        variant->hop_limit = (uint8_t)value;
    } else if (!ipv4 && type == IPV6_FLOWINFO) {
        variant->flow_label = ntohl(value) & INET_LABEL_MASK;
    }
}

static void listen_to(struct told *told, const struct cmsghdr *control)
{
    const int level = control->cmsg_level, type = control->cmsg_type;
    if (level == IPPROTO_UDP && type == UDP_GRO) {
        int bytes;
        memcpy(&bytes, CMSG_DATA(control), sizeof(bytes));
        told->segment = bytes > 0 ? (size_t)bytes : 0;
    } else if (level == SOL_SOCKET && type == SCM_TIMESTAMPNS) {
        told->arrived = arrival_of(control);
    } else if (level == IPPROTO_IP || level == IPPROTO_IPV6) {
        listen_to_variant(&told->variant, control);
    }
}

static struct told told_of(struct msghdr *message)
{
    struct told told = {.variant = INET_VARIANT_PLAIN};
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control != NULL;
         control = CMSG_NXTHDR(message, control)) {
        listen_to(&told, control);
    }
    return told;
}

static void deliver_one(struct udp_port *port, const struct address *address,
                        const struct udp_datagram *datagram, udp_sink sink, void *context)
{
    if (UNLIKELY(address->share != NULL) && udp_share_hands_on(port, address, datagram)) {
        return;
    }
    if (!udp_flow_on_datagram(port, &datagram->source, &datagram->destination, datagram->bytes,
                              datagram->count)) {
        sink(context, datagram);
    }
}

static uint32_t deliver(struct udp_port *port, const struct address *address,
                        const struct sockaddr_storage *from, size_t received,
                        const struct told *told, udp_sink sink, void *context,
                        const struct nic *nic)
{
    struct inet_flow inet = {.destination_port = ROCE_UDP_PORT};
    source_of(from, &inet);
    memcpy(inet.destination, address->gid.bytes, 16);
    struct udp_flow *flow = flow_of(port, &inet);
    struct udp_datagram datagram = {
        .destination = address->gid, .arrived = told->arrived, .variant = told->variant};
    memcpy(datagram.source.bytes, inet.source, 16);
    const size_t step = told->segment == 0 ? received : told->segment;
    uint16_t index = 0;
    for (size_t offset = 0; offset < received; offset += step, index++) {
        const size_t left = received - offset;
        const size_t total = left < step ? left : step;
        const uint8_t *bytes = port->receive_buffer + offset;
        if (nic != NULL && offset + (PACKETS_AHEAD + 1) * step <= received) {
            nic_prefetch_packet(nic, bytes + PACKETS_AHEAD * step);
        }
        port->counters.datagrams_received++;
        if (total < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
            port->counters.too_short++;
            continue;
        }
        if (icrc_good(port, flow, &inet, bytes, total, index)) {
            datagram.bytes = bytes;
            datagram.count = total - ROCE_ICRC_BYTES;
            deliver_one(port, address, &datagram, sink, context);
        }
    }
    if (UNLIKELY(port->handover.count != 0)) {
        udp_share_flush(port, address);
    }
    return index;
}

/* A look at a socket needs a buffer and addresses; the handover of an earlier look has left. */
static void udp_receive_check(const struct udp_port *port)
{
    CHECK(port->receive_buffer != NULL && port->addresses != NULL);
    CHECK(port->addresses->count <= ADDRESS_MAX && port->group_count <= UDP_GROUPS_MAX);
    CHECK(port->handover.count == 0);
}

/* One call on one socket, past the C library, whose recvmsg is a point where a program's thread may
 * be cancelled, which must not happen while it holds our lock. Returns the datagrams it brought;
 * *more: another call may bring more. */
uint32_t udp_receive_once(struct udp_port *port, const struct address *address, udp_sink sink,
                          void *context, const struct nic *nic, bool *more)
{
    INVARIANTS(udp_receive_check(port));
    struct sockaddr_storage from;
    struct iovec vector = {.iov_base = port->receive_buffer, .iov_len = RECEIVE_BUFFER_BYTES};
    struct msghdr message = {
        .msg_name = &from,
        .msg_namelen = sizeof(from),
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = port->told,
        .msg_controllen = sizeof(port->told),
    };
    port->counters.receive_calls++;
    const ssize_t received = system_recv_message(address->fd, &message, MSG_DONTWAIT);
    /* ECONNREFUSED and the like are about datagrams that we sent: then we look again. */
    *more = received >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    if (received <= 0 || (message.msg_flags & MSG_TRUNC)) {
        return 0;
    }
    const struct told told = told_of(&message);
    *more =
        (told.segment != 0 && received >= STREAM_BYTES) || port->fruitful_looks >= LOOKS_OF_BACKLOG;
    return deliver(port, address, &from, (size_t)received, &told, sink, context, nic);
}

uint32_t udp_port_receive(struct udp_port *port, uint32_t quantum, udp_sink sink, void *context,
                          const struct nic *nic)
{
    uint32_t count = 0;
    INVARIANTS(udp_receive_check(port));
    for (uint32_t i = 0; i < port->addresses->count; i++) {
        const struct address *address = &port->addresses->entries[i];
        bool more = address->fd >= 0;
        uint32_t arrived = 0;
        for (uint32_t calls = 0; more && calls < 8 && arrived < quantum; calls++) {
            arrived += udp_receive_once(port, address, sink, context, nic, &more);
        }
        count += arrived;
    }
    port->fruitful_looks = count > 0 ? port->fruitful_looks + 1 : 0;
    if (port->answering) {
        udp_port_flush(port);
    }
    return count;
}

/* There are many groups, mostly silent: one call tells which sockets have datagrams. */
uint32_t udp_port_receive_groups(struct udp_port *port, uint32_t quantum, udp_sink sink,
                                 void *context)
{
    struct epoll_event events[8];
    const int ready = system_epoll(port->groups_fd, events, COUNT_OF(events));
    uint32_t count = 0;
    for (int i = 0; i < ready; i++) {
        CHECK(events[i].data.u32 < port->group_count);
        const struct address *group = &port->groups[events[i].data.u32];
        uint32_t arrived;
        do {
            bool more;
            arrived = udp_receive_once(port, group, sink, context, NULL, &more);
            count += arrived;
        } while (arrived > 0 && count < quantum);
    }
    return count;
}
