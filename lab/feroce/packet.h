/* SPDX-License-Identifier: BSD-2-Clause
 *
 * packet - a packet under way between boards and receiver: a whole frame, and notes about it.
 */
#ifndef LAB_FEROCE_PACKET_H
#define LAB_FEROCE_PACKET_H

#include "nic/nic.h"
#include "sim/parts/ethernet.h"
#include "wire/feroce.h"
#include "wire/roce.h"

#define FEROCE_PACKET_BYTES_MAX                                                                    \
    (FEROCE_FRAME_HEADERS_BYTES + NIC_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX + ROCE_ICRC_BYTES)

/* From the Ethernet header on, without FCS: 42 bytes before the UDP payload. */
struct feroce_packet_on_line {
    struct sim_frame frame;
    struct feroce_machine *machine;
    struct feroce_frame addresses;
    uint32_t from, to; /* Nodes. */
    uint32_t header_bytes, payload_bytes;
    uint32_t icrc;
    bool has_icrc; /* Messages of the connection manager have none. */
    /* A board's notes about a packet that it sends. */
    bool is_data, resent, is_last;
    uint32_t index; /* The queue pair's. */
    struct psn psn;
    uint32_t wave; /* The number by which a design's waves name it; 0: none do. */
    bool from_design;
    uint8_t headers[NIC_HEADERS_BYTES_MAX]; /* From the BTH on. */
    uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
};

#endif
