/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_flush - FLUSH requests of a reliable connection's peer.
 *
 * A FLUSH moves no bytes, but the world gets it as a move behind all earlier ones. When that move
 * is done, the bytes of the earlier ones are where the peer wants them, and the peer is answered. A
 * duplicate is answered again and not executed (oA19-14), as an atomic is.
 *
 * Source: IBTA Vol. 1 Annex A19.4.1.
 */
#include "nic/ibta/ibta.h"

static uint32_t rights_for(uint8_t placement)
{
    return (placement & ROCE_PLACEMENT_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0u) |
           (placement & ROCE_PLACEMENT_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0u);
}

/* Does the FLUSH ask for something, and for nothing that is reserved? A peer that asks for a
 * guarantee that we do not know would take our answer for this guarantee. Other reserved bits are
 * ignored, as everywhere. */
static bool is_known(const struct roce_packet *packet)
{
    const uint8_t placement = packet->feth.placement;
    return placement != 0 && (placement & ~ROCE_PLACEMENT_KNOWN) == 0 &&
           packet->feth.selectivity <= ROCE_SELECT_REGION;
}

bool rc_on_flush(struct qp *qp, const struct roce_packet *packet, struct nic_move *move)
{
    const struct region_flush asked = {
        .address = packet->reth.address,
        .bytes = packet->reth.bytes,
        .access = rights_for(packet->feth.placement),
        .whole = packet->feth.selectivity == ROCE_SELECT_REGION,
    };
    if (!is_known(packet)) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_unknown_flush);
    }
    if (!reach_grants(qp->attributes.access, asked.access)) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_opcode);
    }
    if (!asked.whole && asked.bytes > ROCE_FLUSH_BYTES_MAX) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_length);
    }
    const enum reach_verdict verdict = region_judge_flush(&qp->nic->regions, packet->reth.key,
                                                          qp->pd, qp, &asked, &move->flush.range);
    if (verdict != REACH_ALLOWED) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_REMOTE_ACCESS, rc_access_counter(verdict));
    }
    ibta_begin_move(qp, packet, MOVE_ATOMIC, move);
    move->kind = NIC_MOVE_FLUSH;
    move->flush.persistent = packet->feth.placement & ROCE_PLACEMENT_PERSISTENT;
    move->original = 0;
    rc_responder_accept_atomic(&qp->in.rc, packet);
    return true;
}
