/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arrival - the validation of every packet that names a queue pair: service, state, peer.
 *
 * Source: IBTA Vol. 1, 9.6 (packet header validation), in its order.
 */
#include "nic/ibta/ibta.h"

static bool service_matches(enum qp_type type, uint8_t opcode, uint32_t traits)
{
    switch (opcode & 0xe0) {
    case ROCE_SERVICE_RC: return type == QP_RC;
    case ROCE_SERVICE_UC: return type == QP_UC;
    case ROCE_SERVICE_UD: return type == QP_UD;
    case ROCE_SERVICE_XRC:
        return type == (traits & ROCE_IS_REQUEST ? QP_XRC_TARGET : QP_XRC_INITIATOR);
    default: return false;
    }
}

/* Requests are taken from RTR on, responses from RTS on. */
static bool state_admits(const struct qp *qp, uint32_t traits)
{
    const enum qp_state state = (enum qp_state)qp->state;
    return reach_state_serves(state) && (state != QP_RTR || (traits & ROCE_IS_REQUEST));
}

static bool comes_from_peer(const struct qp *qp, const struct nic_arrival *arrival)
{
    return qp->type == QP_UD || reach_is_peer(&qp->attributes.av.destination, &arrival->source);
}

bool ibta_admits(const struct qp *qp, const struct nic_arrival *arrival, uint32_t traits)
{
    if (!service_matches((enum qp_type)qp->type, arrival->packet.opcode, traits)) {
        return nic_drop(qp->nic, COUNTER_drop_wrong_service);
    }
    if (!state_admits(qp, traits)) {
        return nic_drop(qp->nic, COUNTER_drop_wrong_state);
    }
    return LIKELY(comes_from_peer(qp, arrival)) || nic_drop(qp->nic, COUNTER_drop_wrong_peer);
}

void ibta_note_established(struct qp *qp)
{
    if (qp->state == QP_RTR && !qp->established) {
        qp->established = true;
        qp_raise(qp, NIC_EVENT_COMMUNICATION_ESTABLISHED);
    }
}

void ibta_begin_move(struct qp *qp, const struct roce_packet *packet, enum move_action action,
                     struct nic_move *move)
{
    move->kind = packet->payload_bytes == 0 ? NIC_MOVE_NOTHING : NIC_MOVE_SCATTER;
    move->in_order = true; /* Programs poll memory, and completions come in order. */
    move->segment_count = 0;
    move->prefix_bytes = 0;
    move->payload = packet->payload;
    move->qp = qp;
    move->psn = packet->psn;
    move->epoch = action == MOVE_RESPONSE ? qp->send_epoch : qp->epoch;
    move->action = (uint8_t)action;
    move->ack_request = packet->ack_request;
    move->purpose = action == MOVE_RESPONSE ? NIC_FOR_REQUEST : NIC_FOR_PEER;
    move->completes = false;
}
