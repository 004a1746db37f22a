/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_send - few system calls for a batch of departures.
 *
 * Packets of one link and one size go into one segmented call; the last may be shorter. Several
 * such messages go into one sendmmsg. The ICRC covers a number that depends on the packet's place
 * in its call, so it is computed when the batch is laid out.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/system/memory.h"
#include "drivers/udp/udp_port.h"

/* UDP's length has 16 bits, and the IP header counts too. */
#define CALL_BYTES_MAX  65000
#define CALL_PIECES_MAX 1000 /* The kernel's UIO_MAXIOV is 1,024. */

static struct udp_link *udp_link_of(struct link *link)
{
    return CONTAINER_OF(link, struct udp_link, link);
}

/* A packet of the batch: headers, pieces, pads and the ICRC are all of it. */
static void packet_check(const struct udp_port *port, const struct udp_packet *packet)
{
    size_t bytes = packet->headers_bytes + packet->pad_bytes + ROCE_ICRC_BYTES;
    CHECK(packet->first_piece + packet->piece_count <= port->piece_count);
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        bytes += port->pieces[packet->first_piece + i].iov_len;
    }
    CHECK(packet->whole ? packet->piece_count == 1 : bytes == packet->total_bytes);
    CHECK(!packet->link->in_flush);
    INVARIANTS(udp_link_check(packet->link));
}

static void batch_check(const struct udp_port *port)
{
    CHECK(port->batch_count <= UDP_BATCH_MAX && port->piece_count <= UDP_PIECES_MAX);
    for (uint32_t i = 0; i < port->batch_count; i++) {
        packet_check(port, &port->batch[i]);
    }
}

static bool is_acknowledge(const struct udp_packet *packet)
{
    const uint8_t opcode = packet->headers[0];
    return !packet->whole &&
           (opcode == ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE) || opcode == BLOCK_ANSWER);
}

/* The place of a new packet: behind the last one, but in front of shorter acknowledgements (or
 * answers of blocks) of the same link. These answer the other direction, and as the shorter last
 * segment of a call they cost no call of their own. */
static struct udp_packet *make_place(struct udp_port *port, const struct udp_link *link,
                                     uint32_t total_bytes)
{
    INVARIANTS(CHECK(port->batch_count < UDP_BATCH_MAX));
    uint32_t at = port->batch_count++;
    while (at > 0 && port->batch[at - 1].link == link && is_acknowledge(&port->batch[at - 1]) &&
           port->batch[at - 1].total_bytes < total_bytes) {
        port->batch[at] = port->batch[at - 1];
        at--;
    }
    return &port->batch[at];
}

static void add_piece(struct udp_port *port, struct udp_packet *packet, uint64_t address,
                      uint32_t bytes)
{
    INVARIANTS(CHECK(port->piece_count < UDP_PIECES_MAX));
    port->pieces[port->piece_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    packet->piece_count++;
}

/* RoCE's headers lie in the packet, which takes few cache lines that way. */
static void put_headers(struct udp_port *port, struct udp_packet *packet,
                        const struct nic_departure *departure)
{
    memcpy(packet->headers, departure->headers, sizeof(packet->headers));
    packet->headers_bytes = departure->headers_bytes;
    if (UNLIKELY(departure->headers_bytes > sizeof(packet->headers))) {
        CHECK(departure->headers_bytes <= NIC_HEADERS_BYTES_MAX);
        uint8_t *tail = port->tails + (size_t)(port->batch_count - 1) * UDP_TAIL_BYTES;
        const uint32_t bytes = departure->headers_bytes - (uint32_t)sizeof(packet->headers);
        memcpy(tail, departure->headers + sizeof(packet->headers), bytes);
        packet->headers_bytes = sizeof(packet->headers);
        add_piece(port, packet, (uintptr_t)tail, bytes);
    }
}

static bool needs_bounce(const struct nic_departure *departure)
{
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        if (departure->segments[i].may_fault) {
            return true;
        }
    }
    return false;
}

bool udp_port_transmit(struct udp_port *port, struct link *link,
                       const struct nic_departure *departure)
{
    if (port->batch_count == UDP_BATCH_MAX ||
        port->piece_count + NIC_SEGMENT_MAX >= UDP_PIECES_MAX) {
        udp_port_flush(port);
    }
    const bool bounced = needs_bounce(departure);
    if (bounced) {
        udp_port_flush(port);
        if (!memory_gather(departure->segments, departure->segment_count, port->bounce)) {
            return false;
        }
    } else if (!memory_is_there(departure->segments, departure->segment_count)) {
        return false; /* The payload was unmapped: at the flush we and the kernel would read it. */
    }
    const uint32_t total = departure->headers_bytes + departure->payload_bytes +
                           departure->pad_bytes + ROCE_ICRC_BYTES;
    struct udp_packet *packet = make_place(port, udp_link_of(link), total);
    packet->link = udp_link_of(link);
    packet->pad_bytes = departure->pad_bytes;
    packet->total_bytes = total;
    packet->first_piece = port->piece_count;
    packet->piece_count = 0;
    packet->whole = false;
    packet->variant = nic_av_variant(departure->av);
    put_headers(port, packet, departure);
    if (bounced) {
        add_piece(port, packet, (uintptr_t)port->bounce, departure->payload_bytes);
        udp_flow_sent(port, udp_link_of(link), total);
        udp_port_flush(port);
        return true;
    }
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        add_piece(port, packet, departure->segments[i].address, departure->segments[i].bytes);
    }
    udp_flow_sent(port, udp_link_of(link), total);
    return true;
}

void udp_port_transmit_headers(struct udp_port *port, struct udp_link *link, const uint8_t *headers,
                               uint32_t headers_bytes)
{
    CHECK(headers_bytes <= ROCE_HEADERS_BYTES_MAX);
    if (port->batch_count == UDP_BATCH_MAX) {
        udp_port_flush(port);
    }
    struct udp_packet *packet = make_place(port, link, headers_bytes + ROCE_ICRC_BYTES);
    *packet = (struct udp_packet){.link = link,
                                  .headers_bytes = headers_bytes,
                                  .total_bytes = headers_bytes + ROCE_ICRC_BYTES,
                                  .variant = INET_VARIANT_PLAIN,
                                  .first_piece = port->piece_count};
    memcpy(packet->headers, headers, headers_bytes);
}

void udp_port_transmit_raw(struct udp_port *port, struct link *link, struct inet_variant variant,
                           const uint8_t *bytes, size_t count)
{
    udp_port_flush(port);
    struct udp_packet *packet = make_place(port, udp_link_of(link), (uint32_t)count);
    packet->link = udp_link_of(link);
    packet->total_bytes = (uint32_t)count;
    packet->first_piece = port->piece_count;
    packet->piece_count = 0;
    packet->whole = true;
    packet->variant = variant;
    add_piece(port, packet, (uintptr_t)bytes, (uint32_t)count);
    udp_flow_sent(port, udp_link_of(link), (uint32_t)count);
    udp_port_flush(port);
}

/* -- Laying out ---------------------------------------------------------------------------------*/

struct udp_layout {
    struct mmsghdr messages[UDP_BATCH_MAX];
    struct {
        _Alignas(struct cmsghdr) char bytes[UDP_CONTROL_BYTES];
    } control[UDP_BATCH_MAX];
    struct iovec vectors[UDP_PIECES_MAX + 2 * UDP_BATCH_MAX];
    /* The place of each message's first packet; the last entry is where the next one begins. */
    uint32_t places[UDP_BATCH_MAX + 1];
    uint32_t message_count, vector_count;
    uint8_t *arena; /* Next free byte. */
};

/* The bytes between two pieces of control data have a value, too: valgrind looks at them. */
struct udp_layout *udp_layout_make(void)
{
    return calloc(1, sizeof(struct udp_layout));
}

/* Neighbours in memory become one vector. */
static void add_vector(struct udp_layout *layout, struct msghdr *message, const void *at,
                       size_t bytes)
{
    if (bytes == 0) {
        return;
    }
    if (message->msg_iovlen > 0) {
        struct iovec *last = &message->msg_iov[message->msg_iovlen - 1];
        if ((uint8_t *)last->iov_base + last->iov_len == at) {
            last->iov_len += bytes;
            return;
        }
    }
    INVARIANTS(CHECK(layout->vector_count < COUNT_OF(layout->vectors)));
    layout->vectors[layout->vector_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
    message->msg_iovlen++;
}

static uint8_t *put_bytes(struct udp_layout *layout, const void *from, size_t bytes)
{
    uint8_t *at = layout->arena;
    memcpy(at, from, bytes);
    layout->arena += bytes;
    return at;
}

static void put_pad(struct udp_layout *layout, const struct udp_packet *packet)
{
    memset(layout->arena, 0, packet->pad_bytes);
    layout->arena += packet->pad_bytes;
}

static void put_icrc(struct udp_layout *layout, uint32_t crc)
{
    store_le32(layout->arena, icrc_finish(crc));
    layout->arena += ROCE_ICRC_BYTES;
}

/* Copies a small packet together, into one vector. */
static void lay_small(struct udp_port *port, struct udp_layout *layout, struct msghdr *message,
                      const struct udp_packet *packet, uint32_t prefix)
{
    const struct iovec *pieces = &port->pieces[packet->first_piece];
    uint8_t *start = put_bytes(layout, packet->headers, packet->headers_bytes);
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        put_bytes(layout, pieces[i].iov_base, pieces[i].iov_len);
    }
    put_pad(layout, packet);
    put_icrc(layout, icrc_packet(prefix, start, packet->total_bytes - ROCE_ICRC_BYTES));
    INVARIANTS(CHECK(layout->arena == start + packet->total_bytes));
    add_vector(layout, message, start, packet->total_bytes);
}

/* The payload of a large packet is sent from where it is. */
static void lay_large(struct udp_port *port, struct udp_layout *layout, struct msghdr *message,
                      const struct udp_packet *packet, uint32_t prefix)
{
    const struct iovec *pieces = &port->pieces[packet->first_piece];
    const uint8_t *headers = put_bytes(layout, packet->headers, packet->headers_bytes);
    uint32_t crc = icrc_packet(prefix, headers, packet->headers_bytes);
    add_vector(layout, message, headers, packet->headers_bytes);
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        crc = icrc_extend(crc, pieces[i].iov_base, pieces[i].iov_len);
        add_vector(layout, message, pieces[i].iov_base, pieces[i].iov_len);
    }
    const uint8_t *trailer = layout->arena;
    put_pad(layout, packet);
    if (packet->pad_bytes > 0) {
        crc = icrc_extend(crc, trailer, packet->pad_bytes);
    }
    put_icrc(layout, crc);
    add_vector(layout, message, trailer, packet->pad_bytes + ROCE_ICRC_BYTES);
}

static void lay_packet(struct udp_port *port, struct udp_layout *layout, struct msghdr *message,
                       const struct udp_packet *packet, uint16_t identification)
{
    if (packet->whole) {
        const struct iovec *piece = &port->pieces[packet->first_piece];
        add_vector(layout, message, piece->iov_base, piece->iov_len);
        return;
    }
    struct udp_link *link = packet->link;
    const uint32_t prefix =
        icrc_remembered_prefix(&link->icrcs, &link->flow, identification, packet->total_bytes);
    if (packet->total_bytes <= UDP_COPIED_BYTES_MAX) {
        lay_small(port, layout, message, packet, prefix);
    } else {
        lay_large(port, layout, message, packet, prefix);
    }
}

/* Connections that are served in turn lead to different peers, but a call leads to one: packets are
 * put in order by link, those of a link staying as they are. */
static void order_by_link(struct udp_port *port)
{
    struct udp_link *links[UDP_BATCH_MAX];
    uint32_t link_count = 0, placed = 0;
    for (uint32_t i = 0; i < port->batch_count; i++) {
        struct udp_link *link = port->batch[i].link;
        if (link->in_flush) {
            port->batch[link->last_packet].next = i;
        } else {
            link->in_flush = true;
            link->first_packet = i;
            links[link_count++] = link;
        }
        link->last_packet = i;
    }
    for (uint32_t l = 0; l < link_count; l++) {
        uint32_t i = links[l]->first_packet;
        links[l]->in_flush = false;
        for (; i != links[l]->last_packet; i = port->batch[i].next) {
            port->order[placed++] = i;
        }
        port->order[placed++] = i;
    }
    INVARIANTS(CHECK(placed == port->batch_count)); /* Each packet leaves once. */
}

static const struct udp_packet *packet_at(const struct udp_port *port, uint32_t place)
{
    return &port->batch[port->order[place]];
}

/* How many packets from `at` on fit one segmented call. */
static uint32_t run_length(const struct udp_port *port, uint32_t at)
{
    const struct udp_packet *first = packet_at(port, at);
    uint32_t bytes = first->total_bytes, pieces = first->piece_count + 2, count = 1;
    if (!port->segmenting || first->whole) {
        return 1;
    }
    while (at + count < port->batch_count && count < UDP_SEGMENTS_MAX) {
        const struct udp_packet *next = packet_at(port, at + count);
        bytes += next->total_bytes;
        pieces += next->piece_count + 2;
        if (next->link != first->link || next->whole || next->total_bytes > first->total_bytes ||
            bytes > CALL_BYTES_MAX || pieces > CALL_PIECES_MAX ||
            !inet_variant_equal(next->variant, first->variant)) {
            break;
        }
        count++;
        if (next->total_bytes < first->total_bytes) {
            break;
        }
    }
    return count;
}

/* Tells the kernel one more thing about a message. */
static void add_control(struct udp_layout *layout, struct msghdr *message, int level, int type,
                        const void *value, size_t bytes)
{
    char *room = layout->control[layout->message_count].bytes;
    INVARIANTS(CHECK(message->msg_controllen + CMSG_SPACE(bytes) <= UDP_CONTROL_BYTES));
    struct cmsghdr *control = (struct cmsghdr *)(void *)(room + message->msg_controllen);
    message->msg_control = room;
    message->msg_controllen += CMSG_SPACE(bytes);
    control->cmsg_level = level;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(control), value, bytes);
}

static void ask_for_segments(struct udp_layout *layout, struct msghdr *message, uint32_t bytes)
{
    const uint16_t size = (uint16_t)bytes;
    add_control(layout, message, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
}

/* Tells the kernel the fields of a message's IP header that are not the socket's own; a group's
 * socket has no hop limit of its own. Most messages need no control data, and cost nothing. */
static void put_variant(const struct udp_port *port, struct udp_layout *layout,
                        struct msghdr *message, const struct udp_link *link,
                        struct inet_variant variant)
{
    const bool ipv4 = link->to.ss_family == AF_INET;
    const int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
    const int traffic_class = variant.traffic_class | link->ecn;
    const int hops = link->to_group ? link->link.hop_limit : variant.hop_limit;
    const uint32_t flow = htonl(variant.flow_label);
    if (traffic_class != link->socket_ecn) {
        add_control(layout, message, level, ipv4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
                    sizeof(traffic_class));
    }
    if (hops != (link->to_group ? 0 : INET_HOP_LIMIT)) {
        add_control(layout, message, level, ipv4 ? IP_TTL : IPV6_HOPLIMIT, &hops, sizeof(hops));
    }
    if (flow != 0 && !ipv4 && !port->labels_refused) {
        add_control(layout, message, level, IPV6_FLOWINFO, &flow, sizeof(flow));
    }
}

static void lay_message(struct udp_port *port, struct udp_layout *layout, uint32_t at,
                        uint32_t count)
{
    const struct udp_packet *first = packet_at(port, at);
    struct msghdr *message = &layout->messages[layout->message_count].msg_hdr;
    *message = (struct msghdr){
        .msg_name = (void *)(uintptr_t)&first->link->to,
        .msg_namelen = first->link->to_bytes,
        .msg_iov = &layout->vectors[layout->vector_count],
    };
    for (uint32_t i = 0; i < count; i++) {
        lay_packet(port, layout, message, packet_at(port, at + i), (uint16_t)i);
    }
    if (count > 1) {
        ask_for_segments(layout, message, first->total_bytes);
    }
    if (UNLIKELY((first->link->link.hop_limit | (first->link->ecn ^ first->link->socket_ecn)) !=
                     0 ||
                 !inet_variant_is_plain(first->variant))) {
        put_variant(port, layout, message, first->link, first->variant);
    }
    layout->message_count++;
}

/* Lays out all messages in a row for one socket, from the packet at `at` on. Returns the socket. */
static int lay_out(struct udp_port *port, struct udp_layout *layout, uint32_t at)
{
    const int fd = packet_at(port, at)->link->fd;
    layout->message_count = layout->vector_count = 0;
    layout->arena = port->arena;
    while (at < port->batch_count && packet_at(port, at)->link->fd == fd) {
        const uint32_t count = run_length(port, at);
        layout->places[layout->message_count] = at;
        lay_message(port, layout, at, count);
        at += count;
    }
    layout->places[layout->message_count] = at;
    INVARIANTS(CHECK(layout->message_count > 0));
    INVARIANTS(CHECK(layout->arena <= port->arena + (size_t)UDP_BATCH_MAX * UDP_COPIED_BYTES_MAX));
    return fd;
}

/* -- Sending ------------------------------------------------------------------------------------*/

static uint32_t message_packets(const struct udp_layout *layout, uint32_t message)
{
    return layout->places[message + 1] - layout->places[message];
}

/* Before Linux 6.11 devices that compute no checksums (tunnels, some virtual ones) refuse segmented
 * calls, though the socket has the option: the packets of this one go one by one, and so do all
 * later ones. EINVAL also means that segments do not fit the interface, or that the source address
 * of any packet is gone. */
static bool segments_refused(struct udp_port *port, const struct udp_layout *layout, uint32_t at,
                             int reason)
{
    const bool segmented = message_packets(layout, at) > 1;
    if (!segmented || (reason != EIO && reason != EINVAL)) {
        return false;
    }
    port->segmenting = false;
    port->doubtful = reason == EINVAL;
    return true;
}

/* While a program of this network holds a flow label for itself alone, Linux refuses all labels
 * that were not leased: from then on the kernel chooses them, as for a label of 0. */
static bool label_refused(struct udp_port *port, const struct udp_layout *layout, uint32_t at,
                          int reason)
{
    const struct udp_packet *first = packet_at(port, layout->places[at]);
    if (reason != EINVAL || first->variant.flow_label == 0 ||
        first->link->to.ss_family != AF_INET6 || port->labels_refused) {
        return false;
    }
    port->labels_refused = true;
    return true;
}

/* Tells the user, because the transport's retries would end in an error that does not name the
 * reason. It does not write by the C library, for the reason given in udp_receive.c. */
static void explain_size(struct udp_port *port)
{
    static const char text[] =
        "nonic: packets are larger than the interface's MTU, which was lowered after this program "
        "began, and are lost (udp_send_failed in `nonic stat`)\n";
    if (!port->explained) {
        port->explained = true;
        (void)!syscall(SYS_write, STDERR_FILENO, text, sizeof(text) - 1);
    }
}

/* A message that the kernel refuses is lost like any packet may be. */
static void lose(struct udp_port *port, uint32_t packets, int reason)
{
    port->counters.send_failed += packets;
    if (reason == EMSGSIZE) {
        explain_size(port);
    }
    /* A packet alone is refused as well: it is too large, or its source is no address of this
     * machine just now. So the segmented call was not the reason. */
    if ((reason == EMSGSIZE || reason == EINVAL) && port->doubtful) {
        port->segmenting = true;
        port->doubtful = false;
    }
}

/* Sends all messages that are laid out, in as few calls as the kernel takes. It does not wait for a
 * full send buffer, because we hold the lock. The call goes past the C library for the reason given
 * in udp_receive.c. Returns the place of the next packet to be laid out. */
static uint32_t send_messages(struct udp_port *port, struct udp_layout *layout, int fd)
{
    uint32_t sent = 0;
    while (sent < layout->message_count && !port->blocked) {
        port->counters.send_calls++;
        const long count = syscall(SYS_sendmmsg, fd, layout->messages + sent,
                                   layout->message_count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (LIKELY(count > 0)) {
            sent += (uint32_t)count;
            port->doubtful = false;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (label_refused(port, layout, sent, errno) ||
                   segments_refused(port, layout, sent, errno)) {
            return layout->places[sent];
        } else if (errno != EINTR) {
            lose(port, message_packets(layout, sent), errno);
            sent++;
        }
    }
    if (UNLIKELY(sent < layout->message_count)) {
        udp_wait(port, fd, layout->messages + sent, layout->places + sent,
                 layout->message_count - sent);
    }
    return layout->places[layout->message_count];
}

void udp_port_flush(struct udp_port *port)
{
    if (UNLIKELY(port->blocked)) {
        udp_send_waiting(port);
    }
    if (port->batch_count == 0) {
        return;
    }
    INVARIANTS(batch_check(port));
    order_by_link(port);
    for (uint32_t at = 0; at < port->batch_count;) {
        const int fd = lay_out(port, port->layout, at);
        at = send_messages(port, port->layout, fd);
    }
    port->counters.datagrams_sent += port->batch_count;
    port->batch_count = 0;
    port->piece_count = 0;
    port->answering = false;
}
