/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arrival - the first judgement of every packet: is it for one of ours, from whom it should be?
 *
 * Source: IBTA Vol. 1, 9.6 (packet header validation), in its order.
 */
#include <string.h>

#include "nic/internal.h"
#include "wire/cm.h"

static bool drop(struct nic *nic, enum nic_counter reason)
{
    nic_count(nic, reason);
    return false;
}

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

static bool gid_equal(const struct gid *a, const struct gid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Requests are welcome from RTR on, responses from RTS on. */
bool qp_admits(const struct qp *qp, uint32_t traits)
{
    switch ((enum qp_state)qp->state) {
    case QP_RTR: return traits & ROCE_IS_REQUEST;
    case QP_RTS:
    case QP_SQD:
    case QP_SQE: return true;
    case QP_RESET:
    case QP_INIT:
    case QP_ERR: return false;
    }
    UNREACHABLE("a state outside its enum");
}

/* A congestion notification names its queue pair; only its count is kept. */
static bool on_congestion(struct nic *nic)
{
    nic_count(nic, COUNTER_cnp_received);
    return false;
}

/* What does not depend on whose packet it is. False: that was all. */
static bool on_any(struct nic *nic, const struct roce_packet *packet)
{
    nic_count(nic, COUNTER_rcvd_pkts);
    nic->counters.values[COUNTER_rcvd_bytes] += packet->payload_bytes;
    if (packet->opcode == ROCE_OPCODE_CNP) {
        return on_congestion(nic);
    }
    if (!nic_pkey_matches(packet)) {
        return drop(nic, COUNTER_drop_wrong_pkey);
    }
    return true;
}

bool nic_on_management(struct nic *nic, const struct nic_arrival *arrival)
{
    const struct roce_packet *packet = &arrival->packet;
    if (!on_any(nic, packet)) {
        return false;
    }
    if (packet->opcode != ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY)) {
        return drop(nic, COUNTER_drop_wrong_service);
    }
    if (packet->deth.qkey != CM_QKEY) {
        return drop(nic, COUNTER_drop_wrong_qkey);
    }
    return true;
}

/* Handles a packet from the peer that the queue pair is connected to. */
static bool on_connected(struct qp *qp, const struct nic_arrival *arrival, uint32_t traits,
                         struct nic_move *move, struct instant now)
{
    if (qp->type == QP_UC) {
        return uc_on_request(qp, arrival, move, now);
    }
    if (traits & ROCE_IS_RESPONSE) {
        return rc_on_response(qp, arrival, move, now);
    }
    return LIKELY(qp->type == QP_RC) ? rc_on_request(qp, arrival, move, now)
                                     : xrc_on_request(qp, arrival, move, now);
}

/* Did the responder find the packet valid: in order, well-formed, permitted? A SEND is that, too,
 * when there is no receive yet. */
static bool was_valid(const struct rc_responder *responder, struct psn expected_before)
{
    return !psn_equal(responder->expected, expected_before) ||
           (responder->pending == RC_REPLY_NAK &&
            (responder->syndrome & ROCE_AETH_KIND_MASK) == ROCE_AETH_RNR_NAK);
}

/* Communication is established by the first valid packet in RTR (IBTA 11.6.3.1): what anybody can
 * send who knows the QPN and writes the peer's address as its source says nothing. */
static bool on_first(struct qp *qp, const struct nic_arrival *arrival, uint32_t traits,
                     struct nic_move *move, struct instant now)
{
    const bool reliable = qp_is_reliable(qp);
    const struct psn expected = reliable ? qp->in.rc.expected : psn_of(0);
    const bool moves = on_connected(qp, arrival, traits, move, now);
    if (reliable ? was_valid(&qp->in.rc, expected) : moves) {
        qp->established = true;
        qp_raise(qp, NIC_EVENT_COMMUNICATION_ESTABLISHED);
    }
    return moves;
}

bool nic_on_packet(struct nic *nic, const struct nic_arrival *arrival, struct instant now,
                   struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    if (!on_any(nic, packet)) {
        return false;
    }
    struct qp *qp = nic_find_qp(nic, packet->destination_qpn);
    if (qp == NULL) {
        return drop(nic, COUNTER_drop_unknown_qp);
    }
    if (!service_matches((enum qp_type)qp->type, packet->opcode, traits)) {
        return drop(nic, COUNTER_drop_wrong_service);
    }
    if (!qp_admits(qp, traits)) {
        return drop(nic, COUNTER_drop_wrong_state);
    }
    if (qp->type == QP_UD) {
        return ud_on_request(qp, arrival, move, now);
    }
    if (!gid_equal(&arrival->source, &qp->attributes.path.destination)) {
        return drop(nic, COUNTER_drop_wrong_peer);
    }
    return UNLIKELY(qp->state == QP_RTR && !qp->established)
               ? on_first(qp, arrival, traits, move, now)
               : on_connected(qp, arrival, traits, move, now);
}

/* -- Moves that are done ------------------------------------------------------------------------*/

static void request_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    if (result == NIC_MOVE_FAULTED) {
        nic_count(qp->nic, COUNTER_nak_operational);
        rc_responder_refuse(&qp->in.rc, psn_of(move->psn), ROCE_NAK_REMOTE_OPERATIONAL);
        qp->last_words = true;
        qp_enter_error(qp);
        nic_schedule(qp);
        return;
    }
    rc_responder_on_moved(&qp->in.rc, psn_of(move->psn), move->ack_request);
    if (move->completes) {
        qp_complete_receive(qp, move->srqn, &move->completion);
    }
    nic_schedule_if_due(qp);
}

static void atomic_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    if (result == NIC_MOVE_FAULTED) {
        request_moved(qp, move, result);
        return;
    }
    rc_responder_on_atomic(&qp->in.rc, psn_of(move->psn), move->original);
    nic_schedule(qp);
}

static void response_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                           struct instant now)
{
    CHECK(move->work->moves_pending > 0);
    move->work->moves_pending--;
    if (result == NIC_MOVE_FAULTED) {
        qp_fail_work(qp, move->work, COMPLETION_LOCAL_PROTECTION);
        return;
    }
    qp_collect(qp, now);
    nic_schedule_if_due(qp);
}

static void unreliable_moved(struct qp *qp, const struct nic_move *move,
                             enum nic_move_result result)
{
    if (move->completes) {
        struct completion completion = move->completion;
        if (result == NIC_MOVE_FAULTED) {
            completion.status = COMPLETION_LOCAL_PROTECTION;
        }
        qp_complete_receive(qp, 0, &completion);
    }
}

void nic_on_moved(struct nic *nic, struct nic_move *move, enum nic_move_result result,
                  struct instant now)
{
    (void)nic;
    struct qp *qp = move->qp;
    if (move->epoch != (move->action == MOVE_RESPONSE ? qp->send_epoch : qp->epoch)) {
        return;
    }
    move->completion.at_ns = now.ns;
    switch ((enum move_action)move->action) {
    case MOVE_REQUEST: request_moved(qp, move, result); break;
    case MOVE_ATOMIC: atomic_moved(qp, move, result); break;
    case MOVE_RESPONSE: response_moved(qp, move, result, now); break;
    case MOVE_UNRELIABLE: unreliable_moved(qp, move, result); break;
    }
}

void nic_on_gather_failed(struct nic *nic, const struct nic_departure *departure,
                          struct instant now)
{
    (void)nic;
    (void)now;
    struct qp *qp = departure->qp;
    const uint32_t traits = roce_opcode(departure->packet->opcode)->traits;
    if (traits & ROCE_IS_RESPONSE) {
        nic_count(qp->nic, COUNTER_nak_operational);
        rc_responder_refuse(&qp->in.rc, psn_of(departure->packet->psn), ROCE_NAK_REMOTE_ACCESS);
        qp->last_words = true;
        qp_raise(qp, NIC_EVENT_QP_ACCESS_ERROR);
        qp_enter_error(qp);
        nic_schedule(qp);
        return;
    }
    if (qp->sends.head != qp->sends.tail) {
        /* The packet belongs to the request at the cursor, or to the one before it. */
        uint32_t at = qp->sends.next;
        if (at == qp->sends.tail || !send_queue_at(&qp->sends, at)->started) {
            at--;
        }
        qp_fail_work(qp, send_queue_at(&qp->sends, at), COMPLETION_LOCAL_PROTECTION);
    }
}
