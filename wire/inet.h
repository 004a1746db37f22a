/* SPDX-License-Identifier: BSD-2-Clause
 *
 * inet - the IP and UDP headers in front of a RoCEv2 packet.
 *
 * Purpose    Encodes them for code that needs them though a UDP socket hides them: the ICRC and
 *            captures.
 * Inputs     Addresses and ports, IPv4 identification, the UDP payload or its length.
 * Outputs    Header bytes in the caller's buffer, and their number.
 * Ownership  Nothing is kept.
 * Units      Bytes. Ports and identification in host order.
 * Limits     IP total length (IPv4) or payload length (IPv6) 65,535; no options, no fragments.
 * Source     RFC 791, RFC 8200, RFC 768, RFC 1071 (checksum); IBTA Annex A17.
 */
#ifndef WIRE_INET_H
#define WIRE_INET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INET_IPV4_BYTES        20
#define INET_IPV6_BYTES        40
#define INET_UDP_BYTES         8
#define INET_HEADERS_BYTES_MAX (INET_IPV6_BYTES + INET_UDP_BYTES)

/* One direction of a UDP conversation, both addresses of one family. IPv4 addresses are in the
 * IPv4-mapped form ::ffff:a.b.c.d. */
struct inet_flow {
    uint8_t source[16];
    uint8_t destination[16];
    uint16_t source_port;
    uint16_t destination_port;
};

/* The fields of the IP header that a path chooses, and that the ICRC does not cover (IBTA A17.3.3).
 * IPv4 has no flow label. */
struct inet_variant {
    uint32_t flow_label; /* 20 bits. */
    uint8_t traffic_class;
    uint8_t hop_limit;
};

#define INET_HOP_LIMIT     64
#define INET_VARIANT_PLAIN ((struct inet_variant){.hop_limit = INET_HOP_LIMIT})
#define INET_LABEL_MASK    0xfffffu
/* Congestion notification, which is the sender's and the routers', not the path's. */
#define INET_ECN_MASK 3u

static inline bool inet_variant_equal(struct inet_variant a, struct inet_variant b)
{
    return a.flow_label == b.flow_label && a.traffic_class == b.traffic_class &&
           a.hop_limit == b.hop_limit;
}

static inline bool inet_variant_is_plain(struct inet_variant variant)
{
    return inet_variant_equal(variant, INET_VARIANT_PLAIN);
}

/* A datagram over IPv4, as a socket knows it: the other end, our end, and the fields that a path
 * chooses. The address is in host order. */
struct inet_datagram {
    uint32_t peer_ip;
    uint16_t peer_port, own_port;
    struct inet_variant variant;
    const uint8_t *payload;
    uint32_t payload_bytes;
};

/* True if `address` is of the IPv4-mapped form. */
bool inet_is_ipv4(const uint8_t address[16]);

/* True for an IPv6 multicast address (ff00::/8), and for an IPv4 one (224.0.0.0/4) in mapped form.
 */
bool inet_is_multicast(const uint8_t address[16]);

/* True for 0.0.0.0 in mapped form, and for ::. */
bool inet_is_any(const uint8_t address[16]);

/* True for fe80::/10, which is an address only together with an interface. */
bool inet_is_link_local(const uint8_t address[16]);

/* True for 127.0.0.0/8 in mapped form. */
bool inet_is_loopback_ipv4(const uint8_t address[16]);

/* An IPv6 group has a stand-in among those of IPv4, where only that leads: 239.0.0.0/8 with 24 bits
 * of a hash (FNV-1a) of the group, in mapped form. `group` is one. */
void inet_group_stand_in(const uint8_t group[16], uint8_t stand_in[16]);

/* Every address of 127.0.0.0/8 has a link-local name, fe80::5efe:127.b.c.d, for programs that want
 * an IPv6 address: fe80::/64 and the interface identifier that stands for a private IPv4 address
 * (RFC 5214, 6.1). One that is made of an Ethernet address has ff:fe where this one has fe:7f. */

/* False: `address` is none of 127.0.0.0/8 in mapped form, or `alias` not the name of one. The other
 * argument is then untouched. */
bool inet_loopback_alias(const uint8_t address[16], uint8_t alias[16]);
bool inet_of_loopback_alias(const uint8_t alias[16], uint8_t address[16]);

/* IP and UDP header as the ICRC sees them: ones in every field that may change on the way (TOS or
 * traffic class, flow label, TTL or hop limit, both checksums). Don't Fragment is set, fragment
 * offset 0; `identification` is ignored for IPv6. Returns the bytes written, at most
 * INET_HEADERS_BYTES_MAX. */
size_t inet_encode_invariant(uint8_t *out, const struct inet_flow *flow, uint16_t identification,
                             size_t payload_bytes);

/* IP and UDP header as they leave a host: TOS, traffic class and flow label 0, TTL or hop limit 64,
 * right IPv4 header checksum. The UDP checksum is 0 over IPv4, as RoCEv2 asks, and the right one
 * over IPv6, which has no other checksum. Returns as above. */
size_t inet_encode(uint8_t *out, const struct inet_flow *flow, uint16_t identification,
                   const uint8_t *payload, size_t payload_bytes);

/* The flow of two IPv4 addresses, in host order. */
struct inet_flow inet_flow_ipv4(uint32_t source_ip, uint16_t source_port, uint32_t destination_ip,
                                uint16_t destination_port);

/* Sum of big-endian 16-bit words, an odd last byte counted as the upper half of one, added to
 * `sum`. 64 bits hold the carries of far more than 65,535 bytes. */
uint64_t inet_sum(uint64_t sum, const uint8_t *bytes, size_t count);

/* The Internet checksum: the complement of the one's complement sum. It is 0 over bytes with a
 * right checksum among them. */
uint16_t inet_checksum(uint64_t sum);

/* Writes `variant` into headers as inet_encode made them, IPv4 checksum included. */
void inet_put_variant(uint8_t *headers, struct inet_variant variant);

#endif
