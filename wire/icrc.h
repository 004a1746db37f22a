/* SPDX-License-Identifier: BSD-2-Clause
 *
 * icrc - the invariant CRC of RoCEv2 over IPv4 and IPv6.
 *
 * Purpose    CRC-32 over the packet with the fields that routers change replaced by ones.
 * Inputs     icrc_prefix with the addresses, icrc_packet with the BTH, then icrc_extend over the
 *            rest; or icrc_compute.
 * Outputs    icrc_finish: the four bytes as they stand on the wire when stored little-endian.
 * Ownership  Nothing is kept.
 * Limits     None beyond the IP total length of 65,535.
 * Source     IBTA Annex A17.3.3 (masked: TOS/traffic class, TTL/hop limit, flow label, IPv4 header
 *            checksum, UDP checksum, BTH byte 4; eight bytes of ones in front).
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/inet.h"

/* The CRC behind the pseudo-prefix and the masked IP and UDP headers. `udp_payload_bytes` counts
 * from the BTH to the ICRC, both included. `identification` is the IPv4 identification (ignored for
 * IPv6); Don't Fragment is set, fragment offset 0. */
uint32_t icrc_prefix(const struct inet_flow *flow, uint16_t identification,
                     size_t udp_payload_bytes);

/* ... and behind the first `count` bytes of the packet, of which the BTH is masked. `count` is at
 * least the BTH's 12. */
uint32_t icrc_packet(uint32_t prefix, const uint8_t *packet, size_t count);

/* The prefixes of one flow, remembered: they depend on nothing but identification and size. Zeroed
 * memory is an empty memo; it belongs to one flow for as long as it lives. */
#define ICRC_MEMO_ENTRIES 64
struct icrc_memo {
    struct {
        uint32_t key; /* Size and identification; 0: nothing yet. */
        uint32_t prefix;
    } entries[ICRC_MEMO_ENTRIES];
};

/* Like icrc_prefix; takes the value from the memo if the memo has it. */
uint32_t icrc_remembered_prefix(struct icrc_memo *memo, const struct inet_flow *flow,
                                uint16_t identification, size_t udp_payload_bytes);

/* Continues over `count` bytes as they stand on the wire: extended headers, payload, pad. */
uint32_t icrc_extend(uint32_t crc, const void *bytes, size_t count);

/* The value to store with store_le32. */
uint32_t icrc_finish(uint32_t crc);

/* The whole ICRC, to be stored with store_le32, of a packet from its BTH on that does not have it
 * yet. The payload is apart: it may stay where it is. */
uint32_t icrc_compute(const struct inet_flow *flow, uint16_t identification, const uint8_t *headers,
                      size_t header_bytes, const uint8_t *payload, size_t payload_bytes);

/* A UDP socket hides the IPv4 identification of a received packet, yet the ICRC covers it. CRC-32
 * is linear: given `difference`, the XOR of the received ICRC with the one computed for
 * identification `assumed`, and the packet's udp_payload_bytes, this recovers the identification
 * that explains the difference. Returns false if none of the 2^16 does: the packet is corrupt. One
 * corrupt packet in 2^16 passes by chance; one with a single flipped bit never does.
 * `udp_payload_bytes` is at least 16: BTH and ICRC. */
MUST_USE bool icrc_solve_identification(uint32_t difference, size_t udp_payload_bytes,
                                        uint16_t assumed, uint16_t *identification);

/* Is there an identification for which the ICRC at the end of a packet is right? It is 0 if 0 is
 * one. `bytes` is the length from the BTH on; a packet without room for BTH and ICRC has none. */
MUST_USE bool icrc_explain(const struct inet_flow *flow, const uint8_t *packet, size_t bytes,
                           uint16_t *identification);

#endif
