/* SPDX-License-Identifier: BSD-2-Clause
 *
 * roce_frame - a RoCEv2 packet as one piece of bytes: headers, payload, pad, ICRC.
 *
 * Purpose    For captures, faults and management datagrams, which need a packet whole. A packet
 *            that goes to a socket by the fast way stays in pieces.
 * Inputs     Headers and payload, or their bytes already in one place; the flow they belong to.
 * Outputs    Bytes in the caller's buffer, as the UDP payload of the packet.
 * Ownership  Nothing is kept.
 * Units      Bytes. The IPv4 identification, which the ICRC covers, is 0.
 * Limits     BLOCK_PACKET_BYTES_MAX.
 * Source     IBTA Vol. 1, 5.2.13 (ICRC); Annex A17.3.3.
 */
#ifndef WIRE_ROCE_FRAME_H
#define WIRE_ROCE_FRAME_H

#include "wire/block.h"
#include "wire/inet.h"
#include "wire/roce.h"

/* From a RoCE port to a RoCE port; a GID is the address. */
struct inet_flow roce_flow(const uint8_t source[16], const uint8_t destination[16]);

/* Appends pad and ICRC to the `count` bytes from the BTH on, which are at least the BTH. Returns
 * how many there are then; `bytes` has room for them. */
size_t roce_frame_seal(const struct inet_flow *flow, uint8_t *bytes, size_t count,
                       size_t pad_bytes);

/* Headers, payload (with pad, if it has any) and ICRC into one piece. Returns how many bytes; 0:
 * too few or too many for a packet. `payload` may be NULL if there is none. */
size_t roce_frame_join(const struct inet_flow *flow, const uint8_t *headers, size_t headers_bytes,
                       const uint8_t *payload, size_t payload_bytes,
                       uint8_t bytes[BLOCK_PACKET_BYTES_MAX]);

/* Are `count` bytes at least a BTH, with an ICRC that fits the bytes before it? */
MUST_USE bool roce_frame_is_whole(const struct inet_flow *flow, const uint8_t *bytes, size_t count);

#endif
