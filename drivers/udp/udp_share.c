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
#include "drivers/system/system.h"
#include "drivers/udp/udp_port.h"

/* The most looks at the common socket, and the most handovers, for one event. */
#define LOOKS_MAX 16

/* -- Another process's packets ------------------------------------------------------------------*/

static bool send_handover(struct udp_port *port, const struct address *address, uint32_t slot,
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
static void handover_check(const struct udp_port *port, const struct address *address)
{
    CHECK(address->share != NULL && port->handover.bytes != NULL);
    CHECK((port->handover.count == 0) == (port->handover.packets == 0));
    CHECK(port->handover.count <= SHARE_HANDOVER_BYTES_MAX);
    CHECK(port->handover.count == 0 ||
          (port->handover.slot < SHARE_SLOTS && port->handover.slot != address->share->slot));
}

void udp_share_flush(struct udp_port *port, const struct address *address)
{
    INVARIANTS(handover_check(port, address));
    if (!send_handover(port, address, port->handover.slot, port->handover.bytes,
                       port->handover.count, port->handover.packets)) {
        port->counters.no_process += port->handover.packets;
    }
    port->handover.count = 0;
    port->handover.packets = 0;
}

/* Writes the head of a handover. Returns its length. */
static size_t begin_handover(uint8_t *bytes, const struct udp_datagram *datagram)
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
    INVARIANTS(CHECK(datagram->count <= UINT16_MAX && at >= sizeof(struct share_handover)));
    memcpy(bytes + at + 2, datagram->bytes, datagram->count);
    return at + 2 + datagram->count;
}

/* All packets of a handover come from one look at a socket, so from one source. */
static void add_to_handover(struct udp_port *port, const struct address *address, uint32_t slot,
                            const struct udp_datagram *datagram)
{
    if (port->handover.count != 0 &&
        (port->handover.slot != slot ||
         port->handover.count + 2 + datagram->count > SHARE_HANDOVER_BYTES_MAX)) {
        udp_share_flush(port, address);
    }
    if (port->handover.count == 0) {
        port->handover.count = begin_handover(port->handover.bytes, datagram);
        port->handover.slot = slot;
    }
    port->handover.count = append_packet(port->handover.bytes, port->handover.count, datagram);
    port->handover.packets++;
    INVARIANTS(handover_check(port, address));
}

/* Hands on a single packet; the handover under way, out or in, is left alone. */
bool udp_port_hand_on(struct udp_port *port, const struct gid *destination, uint32_t slot,
                      const struct udp_datagram *datagram)
{
    CHECK(slot < SHARE_SLOTS && datagram->count <= BLOCK_PACKET_BYTES_MAX);
    uint8_t handover[sizeof(struct share_handover) + 2 + BLOCK_PACKET_BYTES_MAX];
    const struct address_set *set = port->addresses;
    for (uint32_t i = 0; i < set->count && set->shared; i++) {
        const struct address *address = &set->entries[i];
        if (gid_equal(&address->gid, destination)) {
            const size_t begun = begin_handover(handover, datagram);
            const size_t bytes = append_packet(handover, begun, datagram);
            return send_handover(port, address, slot, handover, bytes, 1);
        }
    }
    return false;
}

bool udp_share_hands_on(struct udp_port *port, const struct address *address,
                        const struct udp_datagram *datagram)
{
    INVARIANTS(handover_check(port, address));
    const struct share_route route =
        share_route(address->share->slot, datagram->bytes, datagram->count);
    if (route.mine) {
        return false;
    }
    if (route.nobody) {
        port->counters.no_process++;
    } else {
        add_to_handover(port, address, route.slot, datagram);
    }
    return true;
}

/* -- Handovers that came ------------------------------------------------------------------------*/

static bool collect(struct udp_port *port, const struct address *address)
{
    struct udp_look *look = &port->look;
    struct share_handover handover;
    CHECK(port->handover.count == 0); /* The handover under way has left, so its room is free. */
    const size_t bytes =
        share_collect(address->share, port->handover.bytes, SHARE_HANDOVER_BYTES_MAX);
    if (bytes == 0) {
        return false;
    }
    CHECK(bytes >= sizeof(handover)); /* share_collect has judged it. */
    memcpy(&handover, port->handover.bytes, sizeof(handover));
    look->datagram = (struct udp_datagram){
        .source = handover.source,
        .destination = address->gid,
        .variant = {.flow_label = handover.flow_label,
                    .traffic_class = handover.traffic_class,
                    .hop_limit = handover.hop_limit},
    };
    look->address = address;
    look->handed_over = true;
    look->next = port->handover.bytes + sizeof(handover);
    look->end = port->handover.bytes + bytes;
    return true;
}

/* A packet that is not ours after all goes nowhere else, so that handovers do not travel in
 * circles. (A process that gets a request was asked before, and names itself when it is asked
 * again.) */
bool udp_share_judge_next(struct udp_port *port)
{
    struct udp_look *look = &port->look;
    struct udp_datagram *datagram = &look->datagram;
    INVARIANTS(CHECK(look->handed_over && look->end - look->next >= 2));
    datagram->count = load_be16(look->next);
    datagram->bytes = look->next + 2;
    look->next = datagram->bytes + datagram->count;
    INVARIANTS(CHECK(look->next <= look->end)); /* share_collect has judged it. */
    if (datagram->count < ROCE_BTH_BYTES ||
        !share_route(look->address->share->slot, datagram->bytes, datagram->count).mine) {
        port->counters.no_process++;
        return false;
    }
    port->counters.handed_to_us++;
    return true;
}

/* -- Events -------------------------------------------------------------------------------------*/

const struct address *udp_port_shared(const struct udp_port *port, int fd)
{
    for (uint32_t i = 0; i < port->addresses->count && port->addresses->shared; i++) {
        const struct address *address = &port->addresses->entries[i];
        const struct share *share = address->share;
        if (fd == share->listener || fd == share->mail || fd == share_common_socket(share)) {
            return address;
        }
    }
    return NULL;
}

static bool call(struct udp_port *port, const struct address *address, int fd)
{
    if (fd == address->share->listener) {
        share_admit(address->share);
        return false;
    }
    return fd == address->share->mail ? collect(port, address)
                                      : udp_receive_once(port, address, fd) > 0;
}

bool udp_port_look_at_shared(struct udp_port *port, const struct address *address, int fd)
{
    struct udp_look *look = &port->look;
    look->nic = NULL;
    if (look->calls++ < LOOKS_MAX && call(port, address, fd)) {
        return true;
    }
    udp_end_look(port);
    return false;
}

static bool watch(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    return system_epoll_change(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
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
