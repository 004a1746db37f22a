/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bridge - Ethernet frames of a design on one side, the datagrams of UDP sockets on the other.
 *
 * Purpose    A process without privileges has neither frames nor IP headers of its own, so it takes
 *            a design's frames apart and makes frames of the datagrams that come for it. It answers
 *            what only a neighbour on the line could answer: ARP and ICMP echo.
 * Inputs     Frames of a design, which may be anything at all; datagrams of peers, likewise.
 * Outputs    A verdict with a counter for each; a datagram to send, or a frame for the design.
 * Units      Bytes. IPv4 addresses and ports in host order.
 * Limits     IPv4 and UDP; a frame of HDL_FRAME_BYTES_MAX, which is without FCS.
 * Source     RFC 826 (ARP), 791, 792, 768, 1071; IEEE 802.3, 3.2 (frame), 802.1Q; IBTA Annex
 *            A17.3.3 (ICRC). An address is part of the ICRC and of connection messages: none is
 *            translated.
 */
#ifndef HDL_BRIDGE_H
#define HDL_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hdl/port.h"
#include "wire/inet.h"

#define BRIDGE_HEADERS_BYTES     (14 + INET_IPV4_BYTES + INET_UDP_BYTES)
#define BRIDGE_PAYLOAD_BYTES_MAX (HDL_FRAME_BYTES_MAX - BRIDGE_HEADERS_BYTES)

/* X(name, says). Up to BRIDGE_HEARD a frame of the design was good; from there up to BRIDGE_CAME
 * it was dropped. */
#define BRIDGE_VERDICTS(X)                                                                         \
    X(LEFT, "datagrams of the design")                                                             \
    X(ANSWERED, "answered by the bridge: ARP, ICMP echo")                                          \
    X(HEARD, "ARP that asks for nothing")                                                          \
    X(CUT_OFF, "shorter than their headers say")                                                   \
    X(GROUP_SOURCE, "from a group's MAC address")                                                  \
    X(VLAN, "VLAN tags")                                                                           \
    X(IPV6, "IPv6")                                                                                \
    X(PAUSE, "flow control, which no peer would hear")                                             \
    X(ETHERTYPE, "other EtherTypes")                                                               \
    X(ARP, "wrong ARP")                                                                            \
    X(IPV4, "wrong IPv4 headers")                                                                  \
    X(IPV4_CHECKSUM, "wrong IPv4 checksums")                                                       \
    X(OPTIONS, "IPv4 options")                                                                     \
    X(FRAGMENT, "IPv4 fragments")                                                                  \
    X(TTL, "TTL 0")                                                                                \
    X(SOURCE, "from another IPv4 address than the design's")                                       \
    X(PROTOCOL, "neither UDP nor ICMP")                                                            \
    X(ICMP, "ICMP, but for echo requests")                                                         \
    X(UDP_LENGTH, "UDP lengths other than IPv4's")                                                 \
    X(UDP_CHECKSUM, "wrong UDP checksums")                                                         \
    X(UDP_PORT, "from or to UDP port 0")                                                           \
    X(NO_ROCE, "to port 4791, shorter than BTH and ICRC")                                          \
    X(ICRC, "wrong ICRCs")                                                                         \
    X(CAME, "datagrams of peers")                                                                  \
    X(CAME_LONG, "datagrams of peers, longer than a frame")                                        \
    X(CAME_NO_ROCE, "datagrams of peers to port 4791, shorter than BTH and ICRC")                  \
    X(CAME_ICRC, "datagrams of peers with wrong ICRCs")

#define BRIDGE_NAME(name, says) BRIDGE_##name,
enum bridge_verdict {
    BRIDGE_VERDICTS(BRIDGE_NAME) BRIDGE_VERDICT_COUNT
};

const char *bridge_verdict_text(enum bridge_verdict verdict);

static inline bool bridge_is_dropped(enum bridge_verdict verdict)
{
    return verdict > BRIDGE_HEARD && verdict != BRIDGE_CAME;
}

struct bridge {
    uint32_t ip; /* The design's; 0: any. */
    uint8_t mac[6];
    bool has_spoken; /* The MAC address is the design's own; else it is one that we made up. */
    /* The frame for the design, if a verdict says that there is one; a datagram that leaves lies in
     * it, too. */
    uint8_t frame[HDL_FRAME_BYTES_MAX];
    uint32_t frame_bytes;
    uint64_t counts[BRIDGE_VERDICT_COUNT];
    uint64_t roce_left, roce_came; /* Packets with a right ICRC. */
    uint64_t trailing;             /* Frames with bytes behind IPv4's that are no padding. */
    struct {
        uint32_t found, expected; /* As they stand in the packet, the first byte first. */
    } icrc;                       /* The last frame with a wrong one. */
};

void bridge_init(struct bridge *bridge, uint32_t ip);

/* A frame of the design. BRIDGE_LEFT: `datagram` is to be sent, with the ICRC for identification 0,
 * which is what a socket sends; it stays there until the next call. BRIDGE_ANSWERED: bridge->frame
 * is for the design. Anything else: nothing is to be done. */
MUST_USE enum bridge_verdict bridge_leave(struct bridge *bridge, const uint8_t *frame,
                                          uint32_t bytes, struct inet_datagram *datagram);

/* A datagram of a peer. BRIDGE_CAME: bridge->frame is for the design; its identification is the one
 * that the ICRC covers, and its UDP checksum 0. Anything else: it is dropped. */
MUST_USE enum bridge_verdict bridge_come(struct bridge *bridge,
                                         const struct inet_datagram *datagram);

/* The same for frames that pass as they are, whatever they are, because the design has a network
 * and not only sockets; bridge->ip is 0. ICRCs of RoCEv2 over IPv4 without VLAN tags are judged as
 * they stand, and counted. BRIDGE_LEFT, BRIDGE_ICRC: it may leave. */
MUST_USE enum bridge_verdict bridge_leave_whole(struct bridge *bridge, const uint8_t *frame,
                                                uint32_t bytes);
/* BRIDGE_CAME: bridge->frame is for the design. BRIDGE_CAME_LONG: it is dropped. */
MUST_USE enum bridge_verdict bridge_come_whole(struct bridge *bridge, const uint8_t *frame,
                                               uint32_t bytes);

/* Makes bridge->frame a question of `peer_ip` for the design's MAC address. */
void bridge_ask(struct bridge *bridge, uint32_t peer_ip);

#endif
