/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_share - packets that arrive at an address that several processes share.
 *
 * Each process reads the socket of its slot like a process that has its address alone. Besides, the
 * process that wakes up first reads the common socket and admits newcomers. And each takes
 * handovers from processes that read packets of its own.
 */
#include <string.h>
#include <sys/epoll.h>

#include "base/bytes.h"
#include "drivers/share_route.h"
#include "drivers/udp_port.h"

/* The most looks at the common socket, and the most handovers, for one event. */
#define LOOKS_MAX 16

/* -- Another process's packets ------------------------------------------------------------------*/

static bool send_letter(struct udp_port *port, const struct address *address, uint32_t slot,
                        const void *handover, size_t bytes, uint32_t packets)
{
    switch (share_hand_on(address->share, slot, handover, bytes)) {
    case SHARE_HANDED_ON: port->counters.handed_on += packets; return true;
    case SHARE_NOBODY: return false;
    case SHARE_CROWDED: port->counters.process_full += packets; return true;
    }
    UNREACHABLE("a fate outside its enum");
}

/* The handover under way is empty, or it has its head and packets for another process. */
static void letter_check(const struct udp_port *port, const struct address *address)
{
    CHECK(address->share != NULL && port->handover.bytes != NULL);
    CHECK((port->handover.count == 0) == (port->handover.packets == 0));
    CHECK(port->handover.count <= SHARE_HANDOVER_BYTES_MAX);
    CHECK(port->handover.count == 0 ||
          (port->handover.slot < SHARE_SLOTS && port->handover.slot != address->share->slot));
}

void udp_share_flush(struct udp_port *port, const struct address *address)
{
    INVARIANTS(letter_check(port, address));
    if (!send_letter(port, address, port->handover.slot, port->handover.bytes, port->handover.count,
                     port->handover.packets)) {
        port->counters.no_process += port->handover.packets;
    }
    port->handover.count = 0;
    port->handover.packets = 0;
}

/* Writes the head of a handover. Returns its length. */
static size_t begin_letter(uint8_t *bytes, const struct udp_datagram *datagram)
{
    const struct share_handover handover = {
        .magic = SHARE_MAGIC_HANDOVER,
        .source = datagram->source,
        .hop_limit = datagram->variant.hop_limit,
        .traffic_class = datagram->variant.traffic_class,
        .flow_label = datagram->variant.flow_label,
    };
    memcpy(bytes, &handover, sizeof(handover));
    return sizeof(handover);
}

static size_t append_packet(uint8_t *bytes, size_t at, const struct udp_datagram *datagram)
{
    store_be16(bytes + at, (uint16_t)datagram->count);
    memcpy(bytes + at + 2, datagram->bytes, datagram->count);
    return at + 2 + datagram->count;
}

/* All packets of a handover come from one look at a socket, so from one source. */
static void add_to_letter(struct udp_port *port, const struct address *address, uint32_t slot,
                          const struct udp_datagram *datagram)
{
    if (port->handover.count != 0 &&
        (port->handover.slot != slot ||
         port->handover.count + 2 + datagram->count > SHARE_HANDOVER_BYTES_MAX)) {
        udp_share_flush(port, address);
    }
    if (port->handover.count == 0) {
        port->handover.count = begin_letter(port->handover.bytes, datagram);
        port->handover.slot = slot;
    }
    port->handover.count = append_packet(port->handover.bytes, port->handover.count, datagram);
    port->handover.packets++;
    INVARIANTS(letter_check(port, address));
}

/* Hands on a single packet; the handover under way, out or in, is left alone. */
bool udp_port_hand_on(struct udp_port *port, const struct gid *destination, uint32_t slot,
                      const struct udp_datagram *datagram)
{
    uint8_t handover[sizeof(struct share_handover) + 2 + BLOCK_PACKET_BYTES_MAX];
    const struct address_set *set = port->addresses;
    for (uint32_t i = 0; i < set->count && set->shared; i++) {
        const struct address *address = &set->entries[i];
        if (gid_equal(&address->gid, destination)) {
            const size_t begun = begin_letter(handover, datagram);
            const size_t bytes = append_packet(handover, begun, datagram);
            return send_letter(port, address, slot, handover, bytes, 1);
        }
    }
    return false;
}

bool udp_share_hands_on(struct udp_port *port, const struct address *address,
                        const struct udp_datagram *datagram)
{
    INVARIANTS(letter_check(port, address));
    const struct share_route route =
        share_route(address->share->slot, datagram->bytes, datagram->count);
    if (route.mine) {
        return false;
    }
    if (route.nobody) {
        port->counters.no_process++;
    } else {
        add_to_letter(port, address, route.slot, datagram);
    }
    return true;
}

/* -- Handovers that came ------------------------------------------------------------------------*/

/* A packet that is not ours after all goes nowhere else, so that handovers do not travel in
 * circles. (A process that gets a request was asked before, and names itself when it is asked
 * again.) */
static void take_packet(struct udp_port *port, const struct address *address,
                        const struct udp_datagram *datagram, udp_sink sink, void *context)
{
    if (datagram->count < ROCE_BTH_BYTES ||
        !share_route(address->share->slot, datagram->bytes, datagram->count).mine) {
        port->counters.no_process++;
        return;
    }
    port->counters.handed_to_us++;
    if (!udp_flow_on_datagram(port, &datagram->source, &datagram->destination, datagram->bytes,
                              datagram->count)) {
        sink(context, datagram);
    }
}

static void open_letter(struct udp_port *port, const struct address *address, size_t bytes,
                        udp_sink sink, void *context)
{
    struct share_handover handover;
    CHECK(bytes >= sizeof(handover)); /* share_collect has judged it. */
    memcpy(&handover, port->handover.bytes, sizeof(handover));
    struct udp_datagram datagram = {
        .source = handover.source,
        .destination = address->gid,
        .variant = {.flow_label = handover.flow_label,
                    .traffic_class = handover.traffic_class,
                    .hop_limit = handover.hop_limit},
    };
    for (size_t at = sizeof(handover); at < bytes; at += 2 + datagram.count) {
        datagram.count = load_be16(port->handover.bytes + at);
        datagram.bytes = port->handover.bytes + at + 2;
        take_packet(port, address, &datagram, sink, context);
    }
}

static void collect(struct udp_port *port, const struct address *address, udp_sink sink,
                    void *context)
{
    size_t bytes;
    CHECK(port->handover.count == 0); /* The handover under way has left, so its room is free. */
    for (uint32_t looks = 0;
         looks < LOOKS_MAX && (bytes = share_collect(address->share, port->handover.bytes,
                                                     SHARE_HANDOVER_BYTES_MAX)) > 0;
         looks++) {
        open_letter(port, address, bytes, sink, context);
    }
}

/* -- Events -------------------------------------------------------------------------------------*/

static void read_common(struct udp_port *port, const struct address *address, udp_sink sink,
                        void *context)
{
    struct address common = *address;
    common.fd = share_common_socket(address->share);
    bool more = true;
    for (uint32_t looks = 0; looks < LOOKS_MAX && more; looks++) {
        more = udp_receive_once(port, &common, sink, context, NULL, &more) > 0;
    }
}

bool udp_port_serve_shared(struct udp_port *port, int fd, udp_sink sink, void *context)
{
    for (uint32_t i = 0; i < port->addresses->count && port->addresses->shared; i++) {
        const struct address *address = &port->addresses->entries[i];
        if (fd == address->share->listener) {
            share_admit(address->share);
        } else if (fd == address->share->mail) {
            collect(port, address, sink, context);
        } else if (fd == share_common_socket(address->share)) {
            read_common(port, address, sink, context);
        } else {
            continue;
        }
        if (port->answering) {
            udp_port_flush(port);
        }
        return true;
    }
    return false;
}

static bool watch(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* EPOLLEXCLUSIVE wakes one sleeping member per event, and never one that is stopped (SIGSTOP). */
bool udp_port_watch_shared(const struct udp_port *port, int epoll)
{
    bool good = true;
    for (uint32_t i = 0; i < port->addresses->count && port->addresses->shared; i++) {
        const struct share *share = port->addresses->entries[i].share;
        good = good && watch(epoll, share->listener, EPOLLIN | EPOLLEXCLUSIVE) &&
               watch(epoll, share_common_socket(share), EPOLLIN | EPOLLEXCLUSIVE) &&
               watch(epoll, share->mail, EPOLLIN);
    }
    return good;
}
