/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_receive - packets that arrive at a reliable connection: requests (rc_request.c, xrc.c),
 * responses, and the moves of both when they are done.
 */
#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"

/* -- Responses ----------------------------------------------------------------------------------*/

static void count_progress(struct nic *nic, const struct rc_progress *progress)
{
    switch (progress->verdict) {
    case RC_STALE: nic_count(nic, COUNTER_stale_acks); return;
    case RC_PROGRESS:
    case RC_RESPONSE: return;
    case RC_IMPLIED_NAK: nic_count(nic, COUNTER_implied_naks); return;
    case RC_SEQUENCE_NAK: nic_count(nic, COUNTER_rcvd_seq_err); return;
    case RC_RNR_NAK: nic_count(nic, COUNTER_rcvd_rnr_err); return;
    case RC_BAD_ORDER: nic_count(nic, COUNTER_bad_response_order); return;
    case RC_BAD_LENGTH: nic_count(nic, COUNTER_bad_response_length); return;
    case RC_BAD_SYNDROME: nic_count(nic, COUNTER_bad_response_syndrome); return;
    case RC_FAILED:
        if (progress->status == COMPLETION_RNR_RETRY_EXCEEDED) {
            nic_count(nic, COUNTER_retry_rnr_exceeded_err);
        } else if (progress->status == COMPLETION_RETRY_EXCEEDED) {
            nic_count(nic, COUNTER_retry_exceeded_err);
        }
        return;
    }
}

static void apply_progress(struct qp *qp, const struct rc_progress *progress)
{
    count_progress(qp->nic, progress);
    if (progress->status != COMPLETION_SUCCESS) {
        rc_fail_in_turn(qp, progress->work, progress->status);
    } else {
        rc_go_on(qp);
    }
}

/* The response's payload belongs at `offset` of the request's SGEs. */
static bool place_response(struct qp *qp, const struct roce_packet *packet,
                           const struct rc_progress *progress, bool atomic, struct nic_move *move)
{
    struct work *work = progress->work;
    const uint32_t bytes = atomic ? 8 : packet->payload_bytes;
    ibta_begin_move(qp, packet, MOVE_RESPONSE, move);
    move->work = work;
    if (sges_gather(qp, work_sges(work), work->sge_count, progress->offset, bytes,
                    ACCESS_LOCAL_WRITE, move->segments, &move->segment_count) != GATHER_GOOD) {
        work->moves_pending--;
        rc_fail_in_turn(qp, work, COMPLETION_LOCAL_PROTECTION);
        return false;
    }
    if (atomic) {
        /* Programs read the original value in host order. */
        move->kind = NIC_MOVE_SCATTER;
        move->prefix_bytes = sizeof(packet->atomic_original);
        __builtin_memcpy(move->prefix, &packet->atomic_original, sizeof(packet->atomic_original));
    }
    return true;
}

void rc_on_acknowledge(struct qp *qp, struct psn psn, uint8_t syndrome, uint32_t msn,
                       struct instant now)
{
    const struct rc_progress progress =
        rc_requester_on_ack(&qp->out.rc, &qp->sends, psn, syndrome, msn, now);
    apply_progress(qp, &progress);
}

static bool on_response(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                        struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    const uint8_t operation = packet->opcode & 0x1f;
    struct rc_requester *requester = &qp->out.rc;
    const struct psn psn = psn_of(packet->psn);
    if (operation == ROCE_ACKNOWLEDGE) {
        rc_on_acknowledge(qp, psn, packet->aeth.syndrome, packet->aeth.msn, now);
        return false;
    }
    const struct rc_response response = {.psn = psn,
                                         .operation = operation,
                                         .syndrome = packet->aeth.syndrome,
                                         .msn = packet->aeth.msn,
                                         .bytes = packet->payload_bytes};
    const struct rc_progress progress =
        rc_requester_on_response(requester, &qp->sends, &response, now);
    if (progress.verdict != RC_RESPONSE) {
        apply_progress(qp, &progress);
        return false;
    }
    if (!place_response(qp, packet, &progress, operation == ROCE_ATOMIC_ACKNOWLEDGE, move)) {
        return false;
    }
    rc_arm_timer(qp);
    return true;
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* The first valid packet in RTR establishes communication (IBTA 11.6.3.1). A packet that is not
 * valid does not: anybody can send one who knows the QPN and writes the peer's address as its
 * source. */
static bool on_first(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move)
{
    const struct psn before = rc_responder_expected(&qp->in.rc);
    const bool moves =
        qp->type == QP_RC ? rc_on_request(qp, arrival, move) : xrc_on_request(qp, arrival, move);
    if (rc_responder_found_valid(&qp->in.rc, before)) {
        ibta_note_established(qp);
    }
    return moves;
}

bool rc_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                  struct nic_move *move)
{
    const uint32_t traits = roce_opcode(arrival->packet.opcode)->traits;
    if (UNLIKELY(!ibta_admits(qp, arrival, traits))) {
        return false;
    }
    if (ecn_is_marked(arrival)) {
        ecn_on_marked(qp, arrival, now);
    }
    if (traits & ROCE_IS_RESPONSE) {
        return on_response(qp, arrival, now, move);
    }
    if (UNLIKELY(qp->state == QP_RTR && !qp->established)) {
        return on_first(qp, arrival, move);
    }
    return LIKELY(qp->type == QP_RC) ? rc_on_request(qp, arrival, move)
                                     : xrc_on_request(qp, arrival, move);
}

/* -- Moves that are done ------------------------------------------------------------------------*/

static void refuse_moved(struct qp *qp, const struct nic_move *move)
{
    nic_count(qp->nic, COUNTER_nak_operational);
    rc_responder_refuse(&qp->in.rc, psn_of(move->psn), ROCE_NAK_REMOTE_OPERATIONAL);
    qp->last_words = true;
    qp->spoilt = true; /* Moves behind this one do not count, even if they finish later. */
    qp_enter_error(qp);
    nic_schedule(qp);
}

static void request_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    if (result == NIC_MOVE_FAULTED) {
        qp_finish_receive(qp, move, false);
        refuse_moved(qp, move);
        return;
    }
    rc_responder_on_moved(&qp->in.rc, psn_of(move->psn), move->ack_request);
    if (move->completes) {
        qp_finish_receive(qp, move, true);
    }
    rc_schedule_if_due(qp);
}

static void atomic_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    if (result == NIC_MOVE_FAULTED) {
        refuse_moved(qp, move);
        return;
    }
    rc_responder_on_atomic(&qp->in.rc, psn_of(move->psn), move->original);
    nic_schedule(qp);
}

static void response_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    CHECK(move->work->moves_pending > 0);
    move->work->moves_pending--;
    if (result == NIC_MOVE_FAULTED) {
        rc_fail_in_turn(qp, move->work, COMPLETION_LOCAL_PROTECTION);
        return;
    }
    rc_collect(qp);
    if (UNLIKELY(departure_is_behind_failure(qp))) {
        nic_schedule(qp); /* Requests in flight may have left it to the failed one to ask for an
                             ACK. */
    } else {
        rc_schedule_if_due(qp);
    }
}

void rc_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    if (move->epoch != (move->action == MOVE_RESPONSE ? qp->send_epoch : qp->epoch)) {
        return;
    }
    switch ((enum move_action)move->action) {
    case MOVE_REQUEST: request_moved(qp, move, result); return;
    case MOVE_ATOMIC: atomic_moved(qp, move, result); return;
    case MOVE_RESPONSE: response_moved(qp, move, result); return;
    case MOVE_UNRELIABLE:
    case MOVE_BLOCK_PLACE:
    case MOVE_BLOCK_ATOMIC:
    case MOVE_BLOCK_DATA: break;
    }
    UNREACHABLE("a move that is not a reliable connection's");
}
