/* SPDX-License-Identifier: BSD-2-Clause
 *
 * inet - see inet.h.
 */
#include "wire/inet.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

enum {
    IPV4_VERSION_AND_WORDS = 0x45, /* Five 32-bit words: no options. */
    IPV4_DONT_FRAGMENT = 0x4000,
    IPV6_VERSION = 0x60,
    PROTOCOL_UDP = 17,
    LENGTH_MAX = 65535,
};

/* Offsets of the fields that the two forms of a header fill differently. */
enum {
    IPV4_TOS_AT = 1,
    IPV4_TTL_AT = 8,
    IPV4_CHECKSUM_AT = 10,
    IPV6_HOP_LIMIT_AT = 7,
    IPV6_ADDRESSES_AT = 8,
    UDP_CHECKSUM_AT = 6,
};

static const uint8_t ipv4_mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool inet_is_ipv4(const uint8_t address[16])
{
    return memcmp(address, ipv4_mapped_prefix, sizeof(ipv4_mapped_prefix)) == 0;
}

bool inet_is_multicast(const uint8_t address[16])
{
    return address[0] == 0xff || (inet_is_ipv4(address) && (address[12] & 0xf0) == 0xe0);
}

bool inet_is_any(const uint8_t address[16])
{
    static const uint8_t any_ipv4[16] = {[10] = 0xff, [11] = 0xff}, any_ipv6[16];
    return memcmp(address, any_ipv4, 16) == 0 || memcmp(address, any_ipv6, 16) == 0;
}

bool inet_is_loopback_ipv4(const uint8_t address[16])
{
    return inet_is_ipv4(address) && address[12] == 127;
}

bool inet_is_link_local(const uint8_t address[16])
{
    return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

void inet_group_stand_in(const uint8_t group[16], uint8_t stand_in[16])
{
    CHECK(group[0] == 0xff);
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < 16; i++) {
        hash = (hash ^ group[i]) * 16777619u;
    }
    memcpy(stand_in, ipv4_mapped_prefix, sizeof(ipv4_mapped_prefix));
    store_be32(stand_in + 12, UINT32_C(239) << 24 | ((hash ^ hash >> 24) & 0xffffff));
}

struct inet_flow inet_flow_ipv4(uint32_t source_ip, uint16_t source_port, uint32_t destination_ip,
                                uint16_t destination_port)
{
    struct inet_flow flow = {.source_port = source_port, .destination_port = destination_port};
    memcpy(flow.source, ipv4_mapped_prefix, sizeof(ipv4_mapped_prefix));
    memcpy(flow.destination, ipv4_mapped_prefix, sizeof(ipv4_mapped_prefix));
    store_be32(flow.source + 12, source_ip);
    store_be32(flow.destination + 12, destination_ip);
    return flow;
}

static const uint8_t alias_prefix[12] = {0xfe, 0x80, [10] = 0x5e, [11] = 0xfe};

/* `to` gets the last four bytes of `from`, which begin with 127, behind `prefix`. */
static bool rename_loopback(const uint8_t from[16], const uint8_t expected[12],
                            const uint8_t prefix[12], uint8_t to[16])
{
    if (memcmp(from, expected, 12) != 0 || from[12] != 127) {
        return false;
    }
    memcpy(to, prefix, 12);
    memcpy(to + 12, from + 12, 4);
    return true;
}

bool inet_loopback_alias(const uint8_t address[16], uint8_t alias[16])
{
    return rename_loopback(address, ipv4_mapped_prefix, alias_prefix, alias);
}

bool inet_of_loopback_alias(const uint8_t alias[16], uint8_t address[16])
{
    return rename_loopback(alias, alias_prefix, ipv4_mapped_prefix, address);
}

static void encode_ipv4(uint8_t *out, const struct inet_flow *flow, uint16_t identification,
                        size_t udp_bytes)
{
    CHECK(udp_bytes <= LENGTH_MAX - INET_IPV4_BYTES);
    out[0] = IPV4_VERSION_AND_WORDS;
    out[IPV4_TOS_AT] = 0xff;
    store_be16(out + 2, (uint16_t)(INET_IPV4_BYTES + udp_bytes));
    store_be16(out + 4, identification);
    store_be16(out + 6, IPV4_DONT_FRAGMENT);
    out[IPV4_TTL_AT] = 0xff;
    out[9] = PROTOCOL_UDP;
    store_be16(out + IPV4_CHECKSUM_AT, 0xffff);
    memcpy(out + 12, flow->source + sizeof(ipv4_mapped_prefix), 4);
    memcpy(out + 16, flow->destination + sizeof(ipv4_mapped_prefix), 4);
}

static void encode_ipv6(uint8_t *out, const struct inet_flow *flow, size_t udp_bytes)
{
    CHECK(udp_bytes <= LENGTH_MAX);
    store_be32(out, (uint32_t)IPV6_VERSION << 24 | 0x0fffffff);
    store_be16(out + 4, (uint16_t)udp_bytes);
    out[6] = PROTOCOL_UDP;
    out[IPV6_HOP_LIMIT_AT] = 0xff;
    memcpy(out + IPV6_ADDRESSES_AT, flow->source, 16);
    memcpy(out + IPV6_ADDRESSES_AT + 16, flow->destination, 16);
}

size_t inet_encode_invariant(uint8_t *out, const struct inet_flow *flow, uint16_t identification,
                             size_t payload_bytes)
{
    const bool ipv4 = inet_is_ipv4(flow->destination);
    const size_t ip_bytes = ipv4 ? INET_IPV4_BYTES : INET_IPV6_BYTES;
    const size_t udp_bytes = INET_UDP_BYTES + payload_bytes;

    if (ipv4) {
        encode_ipv4(out, flow, identification, udp_bytes);
    } else {
        encode_ipv6(out, flow, udp_bytes);
    }
    uint8_t *udp = out + ip_bytes;
    store_be16(udp, flow->source_port);
    store_be16(udp + 2, flow->destination_port);
    store_be16(udp + 4, (uint16_t)udp_bytes);
    store_be16(udp + UDP_CHECKSUM_AT, 0xffff);
    return ip_bytes + INET_UDP_BYTES;
}

uint64_t inet_sum(uint64_t sum, const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    for (; at + 1 < count; at += 2) {
        sum += load_be16(bytes + at);
    }
    return at < count ? sum + ((uint64_t)bytes[at] << 8) : sum;
}

uint16_t inet_checksum(uint64_t sum)
{
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

/* Over a pseudo-header of both addresses, length and protocol, then UDP header and payload (RFC
 * 8200 8.1). A result of 0 is sent as all ones, because 0 says "no checksum". */
static uint16_t udp_ipv6_checksum(const uint8_t *ip, const uint8_t *payload, size_t payload_bytes)
{
    uint64_t sum = PROTOCOL_UDP + INET_UDP_BYTES + payload_bytes;
    sum = inet_sum(sum, ip + IPV6_ADDRESSES_AT, 32);
    sum = inet_sum(sum, ip + INET_IPV6_BYTES, INET_UDP_BYTES);
    sum = inet_sum(sum, payload, payload_bytes);
    const uint16_t value = inet_checksum(sum);
    return value == 0 ? 0xffff : value;
}

static void put_ipv4_checksum(uint8_t *ip)
{
    store_be16(ip + IPV4_CHECKSUM_AT, 0);
    store_be16(ip + IPV4_CHECKSUM_AT, inet_checksum(inet_sum(0, ip, INET_IPV4_BYTES)));
}

size_t inet_encode(uint8_t *out, const struct inet_flow *flow, uint16_t identification,
                   const uint8_t *payload, size_t payload_bytes)
{
    const size_t headers_bytes = inet_encode_invariant(out, flow, identification, payload_bytes);
    uint8_t *udp = out + headers_bytes - INET_UDP_BYTES;

    store_be16(udp + UDP_CHECKSUM_AT, 0);
    if (inet_is_ipv4(flow->destination)) {
        out[IPV4_TOS_AT] = 0;
        out[IPV4_TTL_AT] = INET_HOP_LIMIT;
        put_ipv4_checksum(out);
    } else {
        store_be32(out, (uint32_t)IPV6_VERSION << 24);
        out[IPV6_HOP_LIMIT_AT] = INET_HOP_LIMIT;
        store_be16(udp + UDP_CHECKSUM_AT, udp_ipv6_checksum(out, payload, payload_bytes));
    }
    return headers_bytes;
}

void inet_put_variant(uint8_t *headers, struct inet_variant variant)
{
    if (headers[0] == IPV4_VERSION_AND_WORDS) {
        headers[IPV4_TOS_AT] = variant.traffic_class;
        headers[IPV4_TTL_AT] = variant.hop_limit;
        put_ipv4_checksum(headers);
    } else {
        store_be32(headers, (uint32_t)IPV6_VERSION << 24 | (uint32_t)variant.traffic_class << 20 |
                                (variant.flow_label & INET_LABEL_MASK));
        headers[IPV6_HOP_LIMIT_AT] = variant.hop_limit;
    }
}
