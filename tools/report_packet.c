/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/report_packet.h"

#include <pcap/dlt.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/icrc.h"

#ifndef DLT_LINUX_SLL2
#define DLT_LINUX_SLL2 276
#endif

enum {
    ETHERNET_BYTES = 14,
    ETHERNET_TYPE = 12,
    VLAN_BYTES = 4,
    TYPE_VLAN = 0x8100,
    TYPE_SERVICE_VLAN = 0x88a8,
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
    SLL_BYTES = 16,
    SLL_TYPE = 14,
    SLL2_BYTES = 20,
    SLL2_TYPE = 0,
    NULL_BYTES = 4,
    PROTOCOL_UDP = 17,
    IPV4_FRAGMENT = 0x3fff, /* More of them, or an offset. */
    ECN_MARKED = 3,
};

/* Bytes that are left to read. */
struct rest {
    const uint8_t *at;
    uint32_t kept, there; /* kept <= there */
};

static bool skip(struct rest *rest, uint32_t bytes)
{
    if (rest->kept < bytes) {
        return false;
    }
    rest->at += bytes;
    rest->kept -= bytes;
    rest->there -= bytes;
    return true;
}

/* -- The link -----------------------------------------------------------------------------------*/

bool report_reads_link(int link)
{
    return link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6 || link == DLT_EN10MB ||
           link == DLT_LINUX_SLL || link == DLT_LINUX_SLL2 || link == DLT_NULL || link == DLT_LOOP;
}

static bool skip_typed(struct rest *rest, uint32_t type_at, uint32_t bytes)
{
    if (rest->kept < bytes) {
        return false;
    }
    const uint16_t type = load_be16(rest->at + type_at);
    return (type == TYPE_IPV4 || type == TYPE_IPV6) && skip(rest, bytes);
}

static bool skip_ethernet(struct rest *rest)
{
    uint32_t bytes = ETHERNET_BYTES;
    for (int tags = 0; tags < 2 && rest->kept >= bytes; tags++) {
        const uint16_t type = load_be16(rest->at + bytes - 2);
        bytes += type == TYPE_VLAN || type == TYPE_SERVICE_VLAN ? VLAN_BYTES : 0;
    }
    return skip_typed(rest, bytes - 2, bytes);
}

static bool skip_link(int link, struct rest *rest)
{
    switch (link) {
    case DLT_EN10MB: return skip_ethernet(rest);
    case DLT_LINUX_SLL: return skip_typed(rest, SLL_TYPE, SLL_BYTES);
    case DLT_LINUX_SLL2: return skip_typed(rest, SLL2_TYPE, SLL2_BYTES);
    case DLT_NULL:
    case DLT_LOOP: return skip(rest, NULL_BYTES);
    default: return true;
    }
}

/* -- IP and UDP ---------------------------------------------------------------------------------*/

static void map_ipv4(uint8_t address[16], const uint8_t *from)
{
    memset(address, 0, 10);
    memset(address + 10, 0xff, 2);
    memcpy(address + 12, from, 4);
}

/* Ends what is left where the datagram ends. */
static bool end_at(struct rest *rest, uint32_t bytes)
{
    if (bytes > rest->there) {
        return false;
    }
    rest->there = bytes;
    rest->kept = rest->kept < bytes ? rest->kept : bytes;
    return true;
}

static bool read_ipv4(struct rest *rest, struct report_packet *packet, uint16_t *identification)
{
    const uint8_t *ip = rest->at;
    if (rest->kept < INET_IPV4_BYTES) {
        return false;
    }
    const uint32_t header_bytes = (ip[0] & 0x0fu) * 4;
    if (header_bytes < INET_IPV4_BYTES || ip[9] != PROTOCOL_UDP ||
        (load_be16(ip + 6) & IPV4_FRAGMENT) != 0) {
        return false;
    }
    packet->is_marked = (ip[1] & INET_ECN_MASK) == ECN_MARKED;
    *identification = load_be16(ip + 4);
    map_ipv4(packet->flow.source, ip + 12);
    map_ipv4(packet->flow.destination, ip + 16);
    return end_at(rest, load_be16(ip + 2)) && skip(rest, header_bytes);
}

static bool read_ipv6(struct rest *rest, struct report_packet *packet)
{
    const uint8_t *ip = rest->at;
    if (rest->kept < INET_IPV6_BYTES || ip[6] != PROTOCOL_UDP) {
        return false;
    }
    packet->is_marked = ((ip[1] >> 4) & INET_ECN_MASK) == ECN_MARKED;
    memcpy(packet->flow.source, ip + 8, 16);
    memcpy(packet->flow.destination, ip + 24, 16);
    /* A mapped address stands for IPv4's, and is in no packet. */
    return !inet_is_ipv4(packet->flow.source) && !inet_is_ipv4(packet->flow.destination) &&
           end_at(rest, INET_IPV6_BYTES + (uint32_t)load_be16(ip + 4)) &&
           skip(rest, INET_IPV6_BYTES);
}

static bool read_ip(struct rest *rest, struct report_packet *packet, uint16_t *identification)
{
    *identification = 0;
    if (rest->kept == 0) {
        return false;
    }
    switch (rest->at[0] >> 4) {
    case 4: return read_ipv4(rest, packet, identification);
    case 6: return read_ipv6(rest, packet);
    default: return false;
    }
}

/* Leaves what is behind the UDP header. False: it is not a datagram to RoCE's port. */
static bool read_udp(struct rest *rest, struct report_packet *packet)
{
    if (rest->kept < INET_UDP_BYTES) {
        return false;
    }
    packet->flow.source_port = load_be16(rest->at);
    packet->flow.destination_port = load_be16(rest->at + 2);
    return packet->flow.destination_port == ROCE_UDP_PORT &&
           load_be16(rest->at + 4) >= INET_UDP_BYTES && end_at(rest, load_be16(rest->at + 4)) &&
           skip(rest, INET_UDP_BYTES);
}

/* -- RoCE ---------------------------------------------------------------------------------------*/

/* The headers of a packet whose payload was cut away; 0: it is not of a kind that has payload. */
static size_t headers_of_cut(uint8_t opcode)
{
    if (srd_is(opcode)) {
        return srd_has_payload(opcode) ? srd_headers_bytes(opcode) : 0;
    }
    switch (opcode) {
#define BLOCK_HEADERS(name, number, text, bytes)                                                   \
    case BLOCK_##name: return BLOCK_##name <= BLOCK_DATA ? ROCE_BTH_BYTES + (bytes) : 0;
        BLOCK_OPCODES(BLOCK_HEADERS)
#undef BLOCK_HEADERS
    default: break;
    }
    const struct roce_opcode *known = roce_opcode(opcode);
    return (known->traits & ROCE_HAS_PAYLOAD) != 0 ? known->headers_bytes : 0;
}

/* The parts that a decoder wants: all bytes, or headers and a payload that it does not read. */
struct parts {
    const uint8_t *headers, *payload;
    size_t headers_bytes, padded_bytes;
};

static void decode_roce(const struct parts *parts, struct report_packet *packet)
{
    const enum roce_verdict verdict =
        parts->payload == NULL
            ? roce_decode(parts->headers, parts->headers_bytes, &packet->roce)
            : roce_decode_split(parts->headers, parts->headers_bytes, parts->payload,
                                parts->padded_bytes, &packet->roce);
    packet->kind = verdict == ROCE_GOOD ? REPORT_ROCE : REPORT_BROKEN;
    if (verdict == ROCE_GOOD) {
        packet->name = roce_opcode(packet->roce.opcode)->name;
        packet->payload_bytes = packet->roce.payload_bytes;
    } else {
        packet->flaw = roce_verdict_name(verdict);
    }
}

static void decode_block(const struct parts *parts, struct report_packet *packet)
{
    const enum block_verdict verdict = block_decode(
        parts->headers, parts->headers_bytes, parts->payload, parts->padded_bytes, &packet->block);
    packet->kind = verdict == BLOCK_GOOD ? REPORT_BLOCK : REPORT_BROKEN;
    if (verdict == BLOCK_GOOD) {
        packet->name = block_opcode_name(packet->block.opcode);
        packet->payload_bytes = packet->block.payload_bytes;
    } else {
        packet->flaw = block_verdict_name(verdict);
    }
}

static void decode_srd(const struct parts *parts, struct report_packet *packet)
{
    const enum srd_verdict verdict = srd_decode(parts->headers, parts->headers_bytes,
                                                parts->payload, parts->padded_bytes, &packet->srd);
    packet->kind = verdict == SRD_GOOD ? REPORT_SRD : REPORT_BROKEN;
    if (verdict == SRD_GOOD) {
        packet->name = srd_opcode_name(packet->srd.opcode);
        packet->payload_bytes = packet->srd.payload_bytes;
    } else {
        packet->flaw = srd_verdict_name(verdict);
    }
}

static void decode(const struct rest *rest, struct report_packet *packet)
{
    const uint8_t opcode = rest->at[0];
    struct parts parts = {rest->at, NULL, rest->kept, 0};
    packet->is_cut = rest->kept < rest->there;
    if (!packet->is_cut) {
        parts.headers_bytes = rest->there - ROCE_ICRC_BYTES;
    } else if (headers_of_cut(opcode) != 0 && headers_of_cut(opcode) <= rest->kept &&
               headers_of_cut(opcode) + ROCE_ICRC_BYTES <= rest->there) {
        parts.headers_bytes = headers_of_cut(opcode);
        parts.payload = rest->at + parts.headers_bytes;
        parts.padded_bytes = rest->there - ROCE_ICRC_BYTES - parts.headers_bytes;
    } else {
        packet->kind = REPORT_BROKEN;
        packet->flaw = "cut in the capture";
        return;
    }
    if (opcode == ROCE_OPCODE_PROBE || opcode == ROCE_OPCODE_ANSWER) {
        packet->kind = REPORT_PORT;
        packet->name = opcode == ROCE_OPCODE_PROBE ? "flow-control probe" : "its answer";
    } else if (srd_is(opcode)) {
        decode_srd(&parts, packet);
    } else if (block_is(opcode)) {
        decode_block(&parts, packet);
    } else {
        decode_roce(&parts, packet);
    }
}

void report_read_packet(int link, const struct report_frame *frame, struct report_packet *packet)
{
    const uint32_t there =
        frame->bytes_on_wire < frame->kept_bytes ? frame->kept_bytes : frame->bytes_on_wire;
    struct rest rest = {frame->bytes, frame->kept_bytes, there};
    uint16_t identification;
    *packet = (struct report_packet){.number = frame->number, .at_ns = frame->at_ns};
    if (!skip_link(link, &rest) || !read_ip(&rest, packet, &identification) ||
        !read_udp(&rest, packet)) {
        return;
    }
    if (rest.there < ROCE_BTH_BYTES + ROCE_ICRC_BYTES || rest.kept < ROCE_BTH_BYTES) {
        packet->kind = REPORT_BROKEN;
        packet->flaw =
            rest.kept < rest.there ? "cut in the capture" : "shorter than a BTH and ICRC";
        return;
    }
    packet->qpn = load_be32(rest.at + 4) & ROCE_24_BITS;
    decode(&rest, packet);
    if (!packet->is_cut && packet->kind != REPORT_PORT) {
        const uint32_t count = rest.there - ROCE_ICRC_BYTES;
        packet->is_wrong = load_le32(rest.at + count) !=
                           icrc_compute(&packet->flow, identification, rest.at, count, NULL, 0);
    }
}
