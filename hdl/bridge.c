/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdl/bridge.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/roce.h"

enum {
    MAC_BYTES = 6,
    ETHERNET_BYTES = 14,
    TYPE_IPV4 = 0x0800,
    TYPE_ARP = 0x0806,
    TYPE_VLAN = 0x8100,
    TYPE_IPV6 = 0x86dd,
    TYPE_PAUSE = 0x8808,
    TYPE_SERVICE_VLAN = 0x88a8,
    /* ARP, from its first byte on. */
    ARP_BYTES = 28,
    ARP_SENDER_MAC = 8,
    ARP_SENDER_IP = 14,
    ARP_TARGET_MAC = 18,
    ARP_TARGET_IP = 24,
    ARP_REQUEST = 1,
    ARP_REPLY = 2,
    /* IPv4. */
    IPV4_RESERVED = 0x8000,
    IPV4_DONT_FRAGMENT = 0x4000,
    IPV4_FRAGMENT = 0x3fff, /* More of them, or an offset. */
    IPV4_SOURCE = 12,
    IPV4_DESTINATION = 16,
    PROTOCOL_ICMP = 1,
    PROTOCOL_UDP = 17,
    ICMP_BYTES = 8,
    ICMP_ECHO_REQUEST = 8,
};

/* A frame as it was judged. */
struct view {
    const uint8_t *ip, *payload; /* The payload is UDP's. */
    uint32_t ip_bytes, payload_bytes;
    uint32_t icrc; /* To port 4791: the right one. */
};

const char *bridge_verdict_text(enum bridge_verdict verdict)
{
#define BRIDGE_TEXT(name, says) [BRIDGE_##name] = (says),
    static const char *const texts[] = {BRIDGE_VERDICTS(BRIDGE_TEXT)};
    CHECK(verdict < BRIDGE_VERDICT_COUNT);
    return texts[verdict];
}

/* The MAC address of whoever has an IPv4 address. */
static void put_mac(uint8_t mac[MAC_BYTES], uint32_t ip)
{
    mac[0] = 2; /* Locally administered. */
    mac[1] = 0;
    store_be32(mac + 2, ip);
}

void bridge_init(struct bridge *bridge, uint32_t ip)
{
    memset(bridge, 0, sizeof(*bridge));
    bridge->ip = ip;
    put_mac(bridge->mac, ip);
}

/* -- Judging ------------------------------------------------------------------------------------*/

/* The ICRC of an IPv4 packet as it stands, whatever its identification and flags are. */
static uint32_t icrc_as_it_stands(const uint8_t *ip, const uint8_t *payload, uint32_t bytes)
{
    uint8_t masked[8 + INET_IPV4_BYTES + INET_UDP_BYTES];
    static const uint8_t varies[] = {8 + 1, 8 + 8, 8 + 10, 8 + 11, 8 + 26, 8 + 27};
    memset(masked, 0xff, 8);
    memcpy(masked + 8, ip, INET_IPV4_BYTES + INET_UDP_BYTES);
    for (size_t i = 0; i < COUNT_OF(varies); i++) {
        masked[varies[i]] = 0xff;
    }
    return icrc_finish(
        icrc_packet(icrc_extend(0, masked, sizeof(masked)), payload, bytes - ROCE_ICRC_BYTES));
}

static bool udp_checksum_is_right(const struct view *view)
{
    const uint32_t udp_bytes = INET_UDP_BYTES + view->payload_bytes;
    const uint64_t pseudo = inet_sum(PROTOCOL_UDP + udp_bytes, view->ip + IPV4_SOURCE, 8);
    return load_be16(view->payload - 2) == 0 ||
           inet_checksum(inet_sum(pseudo, view->payload - INET_UDP_BYTES, udp_bytes)) == 0;
}

static enum bridge_verdict judge_udp(struct view *view)
{
    const uint8_t *udp = view->ip + INET_IPV4_BYTES;
    const uint32_t bytes = view->ip_bytes - INET_IPV4_BYTES;
    if (bytes < INET_UDP_BYTES || load_be16(udp + 4) != bytes) {
        return BRIDGE_UDP_LENGTH;
    }
    view->payload = udp + INET_UDP_BYTES;
    view->payload_bytes = bytes - INET_UDP_BYTES;
    if (!udp_checksum_is_right(view)) {
        return BRIDGE_UDP_CHECKSUM;
    }
    if (load_be16(udp) == 0 || load_be16(udp + 2) == 0) {
        return BRIDGE_UDP_PORT;
    }
    if (load_be16(udp + 2) != ROCE_UDP_PORT) {
        return BRIDGE_LEFT;
    }
    if (view->payload_bytes < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
        return BRIDGE_NO_ROCE;
    }
    view->icrc = icrc_as_it_stands(view->ip, view->payload, view->payload_bytes);
    return load_le32(view->payload + view->payload_bytes - ROCE_ICRC_BYTES) == view->icrc
               ? BRIDGE_LEFT
               : BRIDGE_ICRC;
}

static enum bridge_verdict judge_icmp(const struct view *view)
{
    const uint8_t *icmp = view->ip + INET_IPV4_BYTES;
    const uint32_t bytes = view->ip_bytes - INET_IPV4_BYTES;
    return bytes >= ICMP_BYTES && icmp[0] == ICMP_ECHO_REQUEST && icmp[1] == 0 &&
                   inet_checksum(inet_sum(0, icmp, bytes)) == 0
               ? BRIDGE_ANSWERED
               : BRIDGE_ICMP;
}

static enum bridge_verdict judge_ipv4(const struct bridge *bridge, const uint8_t *ip, uint32_t room,
                                      struct view *view)
{
    if (room < INET_IPV4_BYTES) {
        return BRIDGE_CUT_OFF;
    }
    const uint16_t bytes = load_be16(ip + 2), flags = load_be16(ip + 6);
    if (ip[0] > 0x45 && ip[0] <= 0x4f) {
        return BRIDGE_OPTIONS;
    }
    if (ip[0] != 0x45) {
        return BRIDGE_IPV4;
    }
    if (inet_checksum(inet_sum(0, ip, INET_IPV4_BYTES)) != 0) {
        return BRIDGE_IPV4_CHECKSUM;
    }
    if (bytes < INET_IPV4_BYTES || (flags & IPV4_RESERVED) != 0) {
        return BRIDGE_IPV4;
    }
    if (bytes > room) {
        return BRIDGE_CUT_OFF;
    }
    if ((flags & IPV4_FRAGMENT) != 0) {
        return BRIDGE_FRAGMENT;
    }
    if (ip[8] == 0) {
        return BRIDGE_TTL;
    }
    if (bridge->ip != 0 && load_be32(ip + IPV4_SOURCE) != bridge->ip) {
        return BRIDGE_SOURCE;
    }
    view->ip = ip;
    view->ip_bytes = bytes;
    return ip[9] == PROTOCOL_UDP    ? judge_udp(view)
           : ip[9] == PROTOCOL_ICMP ? judge_icmp(view)
                                    : BRIDGE_PROTOCOL;
}

/* A question for the design's own address is asked to find a second one who has it: no answer. */
static enum bridge_verdict judge_arp(const struct bridge *bridge, const uint8_t *frame,
                                     uint32_t room)
{
    static const uint8_t ethernet_ipv4[] = {0, 1, 8, 0, 6, 4};
    const uint8_t *arp = frame + ETHERNET_BYTES;
    if (room < ARP_BYTES) {
        return BRIDGE_CUT_OFF;
    }
    const uint16_t operation = load_be16(arp + 6);
    if (memcmp(arp, ethernet_ipv4, sizeof(ethernet_ipv4)) != 0 ||
        (operation != ARP_REQUEST && operation != ARP_REPLY) ||
        memcmp(arp + ARP_SENDER_MAC, frame + MAC_BYTES, MAC_BYTES) != 0) {
        return BRIDGE_ARP;
    }
    const uint32_t sender = load_be32(arp + ARP_SENDER_IP);
    if (sender != bridge->ip && !(sender == 0 && operation == ARP_REQUEST)) {
        return BRIDGE_SOURCE;
    }
    return operation == ARP_REQUEST && load_be32(arp + ARP_TARGET_IP) != bridge->ip
               ? BRIDGE_ANSWERED
               : BRIDGE_HEARD;
}

static enum bridge_verdict judge(const struct bridge *bridge, const uint8_t *frame, uint32_t bytes,
                                 struct view *view)
{
    if (bytes < ETHERNET_BYTES) {
        return BRIDGE_CUT_OFF;
    }
    if ((frame[MAC_BYTES] & 1) != 0) {
        return BRIDGE_GROUP_SOURCE;
    }
    switch (load_be16(frame + 2 * MAC_BYTES)) {
    case TYPE_IPV4: return judge_ipv4(bridge, frame + ETHERNET_BYTES, bytes - ETHERNET_BYTES, view);
    case TYPE_ARP: return judge_arp(bridge, frame, bytes - ETHERNET_BYTES);
    case TYPE_VLAN:
    case TYPE_SERVICE_VLAN: return BRIDGE_VLAN;
    case TYPE_IPV6: return BRIDGE_IPV6;
    case TYPE_PAUSE: return BRIDGE_PAUSE;
    default: return BRIDGE_ETHERTYPE;
    }
}

/* -- Frames of the design -----------------------------------------------------------------------*/

static void put_ethernet(struct bridge *bridge, uint32_t peer_ip, uint16_t type)
{
    memcpy(bridge->frame, bridge->mac, MAC_BYTES);
    put_mac(bridge->frame + MAC_BYTES, peer_ip);
    store_be16(bridge->frame + 2 * MAC_BYTES, type);
}

static void put_arp(struct bridge *bridge, uint16_t operation, uint32_t peer_ip)
{
    static const uint8_t ethernet_ipv4[] = {0, 1, 8, 0, 6, 4};
    uint8_t *arp = bridge->frame + ETHERNET_BYTES;
    put_ethernet(bridge, peer_ip, TYPE_ARP);
    memcpy(arp, ethernet_ipv4, sizeof(ethernet_ipv4));
    store_be16(arp + 6, operation);
    put_mac(arp + ARP_SENDER_MAC, peer_ip);
    store_be32(arp + ARP_SENDER_IP, peer_ip);
    bridge->frame_bytes = ETHERNET_BYTES + ARP_BYTES;
}

void bridge_ask(struct bridge *bridge, uint32_t peer_ip)
{
    put_arp(bridge, ARP_REQUEST, peer_ip);
    memset(bridge->frame, 0xff, MAC_BYTES);
    memset(bridge->frame + ETHERNET_BYTES + ARP_TARGET_MAC, 0, MAC_BYTES);
    store_be32(bridge->frame + ETHERNET_BYTES + ARP_TARGET_IP, bridge->ip);
}

/* To a probe, whose sender has no address yet, too. */
static void answer_arp(struct bridge *bridge, const uint8_t *question)
{
    put_arp(bridge, ARP_REPLY, load_be32(question + ARP_TARGET_IP));
    memcpy(bridge->frame + ETHERNET_BYTES + ARP_TARGET_MAC, question + ARP_SENDER_MAC,
           MAC_BYTES + 4);
}

static void answer_echo(struct bridge *bridge, const struct view *view)
{
    uint8_t *ip = bridge->frame + ETHERNET_BYTES, *icmp = ip + INET_IPV4_BYTES;
    memcpy(ip, view->ip, view->ip_bytes);
    memcpy(ip + IPV4_SOURCE, view->ip + IPV4_DESTINATION, 4);
    memcpy(ip + IPV4_DESTINATION, view->ip + IPV4_SOURCE, 4);
    store_be16(ip + 4, 0);
    store_be16(ip + 6, IPV4_DONT_FRAGMENT);
    inet_put_variant(ip, (struct inet_variant){.traffic_class = ip[1], .hop_limit = 64});
    icmp[0] = 0;
    store_be16(icmp + 2, 0);
    store_be16(icmp + 2, inet_checksum(inet_sum(0, icmp, view->ip_bytes - INET_IPV4_BYTES)));
    put_ethernet(bridge, load_be32(ip + IPV4_SOURCE), TYPE_IPV4);
    bridge->frame_bytes = ETHERNET_BYTES + view->ip_bytes;
}

/* Reads the headers again, and makes the ICRC anew: a socket sends identification 0. */
static void take_datagram(struct bridge *bridge, const struct view *view,
                          struct inet_datagram *datagram)
{
    const uint8_t *ip = view->ip, *udp = ip + INET_IPV4_BYTES;
    memcpy(bridge->frame, view->payload, view->payload_bytes);
    *datagram = (struct inet_datagram){.peer_ip = load_be32(ip + IPV4_DESTINATION),
                                       .peer_port = load_be16(udp + 2),
                                       .own_port = load_be16(udp),
                                       .variant = {.traffic_class = ip[1], .hop_limit = ip[8]},
                                       .payload = bridge->frame,
                                       .payload_bytes = view->payload_bytes};
    if (datagram->peer_port == ROCE_UDP_PORT) {
        const struct inet_flow flow =
            inet_flow_ipv4(bridge->ip, datagram->own_port, datagram->peer_ip, datagram->peer_port);
        const uint32_t covered = view->payload_bytes - ROCE_ICRC_BYTES;
        store_le32(bridge->frame + covered,
                   icrc_compute(&flow, 0, bridge->frame, covered, NULL, 0));
        bridge->roce_left++;
    }
}

static void note_icrc(struct bridge *bridge, const struct view *view)
{
    bridge->icrc.found = load_be32(view->payload + view->payload_bytes - ROCE_ICRC_BYTES);
    bridge->icrc.expected = __builtin_bswap32(view->icrc);
}

enum bridge_verdict bridge_leave(struct bridge *bridge, const uint8_t *frame, uint32_t bytes,
                                 struct inet_datagram *datagram)
{
    struct view view = {0};
    CHECK(bytes <= HDL_FRAME_BYTES_MAX);
    const enum bridge_verdict verdict = judge(bridge, frame, bytes, &view);
    bridge->counts[verdict]++;
    if (verdict == BRIDGE_ICRC) {
        note_icrc(bridge, &view);
    }
    if (bridge_is_dropped(verdict)) {
        return verdict;
    }
    memcpy(bridge->mac, frame + MAC_BYTES, MAC_BYTES);
    bridge->has_spoken = true;
    bridge->trailing +=
        view.ip != NULL && bytes > HDL_FRAME_BYTES_MIN && bytes > ETHERNET_BYTES + view.ip_bytes;
    if (verdict == BRIDGE_LEFT) {
        take_datagram(bridge, &view, datagram);
    } else if (verdict == BRIDGE_ANSWERED && view.ip != NULL) {
        answer_echo(bridge, &view);
    } else if (verdict == BRIDGE_ANSWERED) {
        answer_arp(bridge, frame + ETHERNET_BYTES);
    }
    return verdict;
}

/* -- Datagrams of peers -------------------------------------------------------------------------*/

static enum bridge_verdict judge_datagram(const struct inet_datagram *datagram,
                                          const struct inet_flow *flow, uint16_t *identification)
{
    *identification = 0;
    if (datagram->payload_bytes > BRIDGE_PAYLOAD_BYTES_MAX) {
        return BRIDGE_CAME_LONG;
    }
    if (datagram->own_port != ROCE_UDP_PORT) {
        return BRIDGE_CAME;
    }
    if (datagram->payload_bytes < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
        return BRIDGE_CAME_NO_ROCE;
    }
    return icrc_explain(flow, datagram->payload, datagram->payload_bytes, identification)
               ? BRIDGE_CAME
               : BRIDGE_CAME_ICRC;
}

enum bridge_verdict bridge_come(struct bridge *bridge, const struct inet_datagram *datagram)
{
    const struct inet_flow flow =
        inet_flow_ipv4(datagram->peer_ip, datagram->peer_port, bridge->ip, datagram->own_port);
    uint16_t identification;
    const enum bridge_verdict verdict = judge_datagram(datagram, &flow, &identification);
    bridge->counts[verdict]++;
    if (verdict == BRIDGE_CAME) {
        uint8_t *ip = bridge->frame + ETHERNET_BYTES;
        put_ethernet(bridge, datagram->peer_ip, TYPE_IPV4);
        inet_encode(ip, &flow, identification, datagram->payload, datagram->payload_bytes);
        inet_put_variant(ip, datagram->variant);
        if (datagram->payload_bytes > 0) {
            memcpy(bridge->frame + BRIDGE_HEADERS_BYTES, datagram->payload,
                   datagram->payload_bytes);
        }
        bridge->frame_bytes = BRIDGE_HEADERS_BYTES + datagram->payload_bytes;
        bridge->roce_came += datagram->own_port == ROCE_UDP_PORT;
    }
    return verdict;
}

/* -- Frames that pass as they are ---------------------------------------------------------------*/

/* Counts a packet of RoCEv2 as right or wrong. False: it is wrong. */
static bool judge_whole(struct bridge *bridge, const uint8_t *frame, uint32_t bytes,
                        struct view *view, uint64_t *right, uint64_t *wrong)
{
    const enum bridge_verdict verdict = judge(bridge, frame, bytes, view);
    *right +=
        verdict == BRIDGE_LEFT && load_be16(view->payload - INET_UDP_BYTES + 2) == ROCE_UDP_PORT;
    *wrong += verdict == BRIDGE_ICRC;
    return verdict != BRIDGE_ICRC;
}

enum bridge_verdict bridge_leave_whole(struct bridge *bridge, const uint8_t *frame, uint32_t bytes)
{
    struct view view = {0};
    if (judge_whole(bridge, frame, bytes, &view, &bridge->roce_left,
                    &bridge->counts[BRIDGE_ICRC])) {
        bridge->counts[BRIDGE_LEFT]++;
        return BRIDGE_LEFT;
    }
    note_icrc(bridge, &view);
    return BRIDGE_ICRC;
}

enum bridge_verdict bridge_come_whole(struct bridge *bridge, const uint8_t *frame, uint32_t bytes)
{
    struct view view = {0};
    const enum bridge_verdict verdict =
        bytes > HDL_FRAME_BYTES_MAX ? BRIDGE_CAME_LONG : BRIDGE_CAME;
    bridge->counts[verdict]++;
    if (verdict == BRIDGE_CAME) {
        memcpy(bridge->frame, frame, bytes);
        bridge->frame_bytes = bytes;
        (void)judge_whole(bridge, frame, bytes, &view, &bridge->roce_came,
                          &bridge->counts[BRIDGE_CAME_ICRC]);
    }
    return verdict;
}
