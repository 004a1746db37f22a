/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_receive - coalesced datagrams in, judged by their ICRC, handed out one by one.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/system/clock.h"
#include "drivers/system/system.h"
#include "drivers/udp/udp_port.h"

/* A single datagram, or a small answer with its acknowledgement, mostly emptied the socket: a
 * program that polls looks again soon anyway, and the datagram is served without another system
 * call. */
#define STREAM_BYTES 1024
/* Calls on the socket of one address, for one look. */
#define CALLS_MAX 8
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

/* -- Calls --------------------------------------------------------------------------------------*/

/* A look at a socket needs a buffer and addresses; the handover of an earlier look has left. */
static void udp_receive_check(const struct udp_port *port)
{
    CHECK(port->receive_buffer != NULL && port->addresses != NULL);
    CHECK(port->addresses->count <= ADDRESS_MAX && port->group_count <= UDP_GROUPS_MAX);
    CHECK(port->handover.count == 0);
    CHECK(port->look.next == port->look.end); /* All that came before was handed out. */
    CHECK(port->inbox == NULL || port->inbox->next == port->inbox->count);
}

/* The message is to be handed out. Returns how many datagrams it has. */
static uint32_t begin_message(struct udp_port *port, const struct address *address,
                              const struct sockaddr_storage *from, uint8_t *bytes, size_t received,
                              const struct told *told)
{
    struct udp_look *look = &port->look;
    INVARIANTS(CHECK(received > 0 && received <= UDP_RECEIVE_BYTES));
    look->inet.destination_port = ROCE_UDP_PORT;
    source_of(from, &look->inet);
    memcpy(look->inet.destination, address->gid.bytes, 16);
    look->flow = flow_of(port, &look->inet);
    memcpy(look->datagram.source.bytes, look->inet.source, 16);
    look->datagram.destination = address->gid;
    look->datagram.arrived = told->arrived;
    look->datagram.variant = told->variant;
    look->address = address;
    look->handed_over = false;
    look->next = bytes;
    look->end = bytes + received;
    look->step = told->segment == 0 ? received : told->segment;
    look->segment = 0;
    const size_t count = told->segment == 0 ? 1 : (received + look->step - 1) / look->step;
    port->counters.datagrams_received += count;
    return (uint32_t)count;
}

/* Packets of the call before that are another process's leave. */
static void flush_handover(struct udp_port *port)
{
    if (UNLIKELY(port->handover.count != 0)) {
        udp_share_flush(port, port->look.address);
    }
}

/* Past the C library, whose recvmsg is a point where a program's thread may be cancelled: not while
 * it holds our lock. */
uint32_t udp_receive_once(struct udp_port *port, const struct address *address, int fd)
{
    struct sockaddr_storage from;
    struct iovec vector = {.iov_base = port->receive_buffer, .iov_len = UDP_RECEIVE_BYTES};
    struct msghdr message = {
        .msg_name = &from,
        .msg_namelen = sizeof(from),
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = port->told,
        .msg_controllen = sizeof(port->told),
    };
    flush_handover(port);
    INVARIANTS(udp_receive_check(port));
    port->counters.receive_calls++;
    const ssize_t received = system_recv_message(fd, &message, MSG_DONTWAIT);
    /* ECONNREFUSED and the like are about datagrams that we sent: then we look again. */
    port->look.more = received >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    if (received <= 0 || (message.msg_flags & MSG_TRUNC)) {
        return 0;
    }
    const struct told told = told_of(&message);
    port->alone = told.segment == 0;
    port->look.more =
        (told.segment != 0 && received >= STREAM_BYTES) || port->fruitful_looks >= LOOKS_OF_BACKLOG;
    return begin_message(port, address, &from, port->receive_buffer, (size_t)received, &told);
}

/* The kernel writes over lengths and flags. */
static void lay_messages(struct udp_port *port, uint32_t count)
{
    struct udp_inbox *inbox = port->inbox;
    for (uint32_t i = 0; i < count; i++) {
        inbox->vectors[i] = (struct iovec){port->receive_buffer + (size_t)i * UDP_RECEIVE_STRIDE,
                                           UDP_RECEIVE_BYTES};
        inbox->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &inbox->from[i],
            .msg_namelen = sizeof(inbox->from[i]),
            .msg_iov = &inbox->vectors[i],
            .msg_iovlen = 1,
            .msg_control = inbox->told[i],
            .msg_controllen = sizeof(inbox->told[i]),
        };
    }
}

/* Fills the inbox. A call that brings fewer messages than it may has emptied the socket. */
static void receive_many(struct udp_port *port, int fd, uint32_t count)
{
    struct udp_inbox *inbox = port->inbox;
    flush_handover(port);
    INVARIANTS(udp_receive_check(port));
    lay_messages(port, count);
    port->counters.receive_calls++;
    const int received = system_recv_messages(fd, inbox->messages, count, MSG_DONTWAIT);
    port->look.more =
        received < 0 ? errno != EAGAIN && errno != EWOULDBLOCK : (uint32_t)received == count;
    inbox->next = 0;
    inbox->count = received < 0 ? 0 : (uint32_t)received;
}

static uint32_t next_message(struct udp_port *port, const struct address *address)
{
    struct udp_inbox *inbox = port->inbox;
    while (inbox->next < inbox->count) {
        const uint32_t i = inbox->next++;
        struct msghdr *message = &inbox->messages[i].msg_hdr;
        const uint32_t received = inbox->messages[i].msg_len;
        if (received > 0 && !(message->msg_flags & MSG_TRUNC)) {
            flush_handover(port);
            const struct told told = told_of(message);
            port->alone = told.segment == 0;
            return begin_message(port, address, &inbox->from[i], inbox->vectors[i].iov_base,
                                 received, &told);
        }
    }
    return 0;
}

/* -- Looks: which calls there are ---------------------------------------------------------------*/

void udp_end_look(struct udp_port *port)
{
    INVARIANTS(CHECK(port->look.next == port->look.end));
    flush_handover(port);
    port->look.index = port->look.calls = port->look.arrived = port->look.group_count = 0;
    if (port->answering) {
        udp_port_flush(port);
    }
}

/* The next message of this address. One that is a single datagram, while each look finds some, has
 * others behind it. */
static uint32_t receive_next(struct udp_port *port, const struct address *address)
{
    struct udp_look *look = &port->look;
    if (port->inbox->next == port->inbox->count) {
        look->calls++;
        if (!port->alone || port->fruitful_looks < LOOKS_OF_BACKLOG) {
            return udp_receive_once(port, address, address->fd);
        }
        const uint32_t wanted = look->full - look->arrived;
        receive_many(port, address->fd, wanted < UDP_MESSAGES_MAX ? wanted : UDP_MESSAGES_MAX);
    }
    return next_message(port, address);
}

/* Each address has its turn: until its socket is empty, or as many have come as are wanted. */
uint32_t udp_port_look(struct udp_port *port, uint32_t quantum, const struct nic *nic)
{
    struct udp_look *look = &port->look;
    look->nic = nic;
    while (look->index < port->addresses->count) {
        const struct address *address = &port->addresses->entries[look->index];
        if (look->calls == 0) {
            look->more = address->fd >= 0;
            look->full = look->arrived + quantum;
        }
        if (port->inbox->next < port->inbox->count ||
            (look->more && look->calls < CALLS_MAX && look->arrived < look->full)) {
            const uint32_t count = receive_next(port, address);
            if (count > 0) {
                look->arrived += count;
                return count;
            }
        } else {
            look->index++;
            look->calls = 0;
        }
    }
    port->fruitful_looks = look->arrived > 0 ? port->fruitful_looks + 1 : 0;
    udp_end_look(port);
    return 0;
}

/* There are many groups, mostly silent: one call tells which sockets have datagrams. */
static void find_groups(struct udp_port *port)
{
    struct epoll_event events[UDP_GROUPS_AT_ONCE];
    const int ready = system_epoll(port->groups_fd, events, COUNT_OF(events));
    for (int i = 0; i < ready; i++) {
        CHECK(events[i].data.u32 < port->group_count);
        CHECK(port->look.group_count < UDP_GROUPS_AT_ONCE);
        port->look.groups[port->look.group_count++] = events[i].data.u32;
    }
}

uint32_t udp_port_look_at_groups(struct udp_port *port, uint32_t quantum)
{
    struct udp_look *look = &port->look;
    look->nic = NULL;
    if (look->group_count == 0) {
        find_groups(port);
    }
    for (; look->index < look->group_count; look->index++, look->calls = 0) {
        const struct address *group = &port->groups[look->groups[look->index]];
        const uint32_t count = look->calls++ == 0 || look->arrived < quantum
                                   ? udp_receive_once(port, group, group->fd)
                                   : 0;
        if (count > 0) {
            look->arrived += count;
            return count;
        }
    }
    udp_end_look(port);
    return 0;
}

/* -- The datagrams of a call --------------------------------------------------------------------*/

/* Is the next datagram right by its ICRC, and no other process's? */
static bool judge_next(struct udp_port *port)
{
    struct udp_look *look = &port->look;
    const uint8_t *bytes = look->next;
    INVARIANTS(CHECK(look->next < look->end && look->step > 0));
    const size_t left = (size_t)(look->end - bytes);
    const size_t total = left < look->step ? left : look->step;
    const uint16_t index = look->segment++;
    if (look->nic != NULL && (PACKETS_AHEAD + 1) * look->step <= left) {
        nic_prefetch_packet(look->nic, bytes + PACKETS_AHEAD * look->step);
    }
    look->next = bytes + total;
    if (total < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
        port->counters.too_short++;
        return false;
    }
    if (!icrc_good(port, look->flow, &look->inet, bytes, total, index)) {
        return false;
    }
    look->datagram.bytes = bytes;
    look->datagram.count = total - ROCE_ICRC_BYTES;
    return LIKELY(look->address->share == NULL) ||
           !udp_share_hands_on(port, look->address, &look->datagram);
}

const struct udp_datagram *udp_next_datagram(struct udp_port *port)
{
    const struct udp_look *look = &port->look;
    const struct udp_datagram *datagram = &look->datagram;
    do {
        if ((UNLIKELY(look->handed_over) ? udp_share_judge_next(port) : judge_next(port)) &&
            !udp_flow_on_datagram(port, &datagram->source, &datagram->destination, datagram->bytes,
                                  datagram->count)) {
            return datagram;
        }
    } while (look->next < look->end);
    return NULL;
}
