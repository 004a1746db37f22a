/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_departure - the common part of all packets of blocks that leave.
 */
#include "nic/block/block.h"

uint8_t block_route_of(const struct qp *qp, uint32_t path, uint32_t paths, uint32_t turns)
{
    const struct nic_peer *peer = nic_peer_of(qp);
    INVARIANTS(CHECK(path < paths));
    return peer == NULL ? 0 : nic_routes_turned(&peer->routes, path, paths, turns);
}

void block_seal(struct qp *qp, const struct block_packet *packet, struct nic_departure *departure)
{
    departure->av = &qp->attributes.av;
    departure->destination_qpn = packet->destination_qpn;
    departure->headers_bytes = (uint32_t)block_encode(packet, departure->headers);
    departure->payload_bytes = packet->payload_bytes;
    departure->pad_bytes = roce_pad_bytes(packet->payload_bytes);
    if (packet->payload_bytes == 0) {
        departure->segment_count = 0;
    }
    departure->route = 0;
    /* If a router marks one of these, the congestion controller sends fewer of them. */
    const bool heeded = packet->opcode == BLOCK_SEND || packet->opcode == BLOCK_WRITE;
    departure->ecn = heeded ? NIC_ECN_CAPABLE : NIC_ECN_NOT;
    departure->alone = false;
    departure->direct.kind = NIC_DIRECT_NONE;
    departure->more_sends = qp_has_sends(qp);
    departure->reply = packet->opcode == BLOCK_DATA || packet->opcode == BLOCK_ANSWER ||
                       packet->opcode == BLOCK_WELCOME;
    departure->psn = packet->tsn;
    INVARIANTS(block_departure_check(departure));
}
