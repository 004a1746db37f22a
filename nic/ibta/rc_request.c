/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_request - requests that arrive at a reliable connection.
 *
 * The responder checks in the order of IBTA 9.7.4.1: PSN, opcode, length (transport/ibta), then the
 * queue pair's rights, a receive, memory. Each refusal has its counter, NAK and event.
 */
#include "nic/ibta/ibta.h"

static bool refuse_access(struct qp *qp, uint32_t psn, enum reach_verdict verdict)
{
    return rc_refuse(qp, psn, ROCE_NAK_REMOTE_ACCESS, rc_access_counter(verdict));
}

/* No receive is posted: the requester has to send the request again later. This is no error
 * (9.7.5.2.8). */
static bool refuse_for_now(struct qp *qp, uint32_t psn)
{
    const uint8_t syndrome =
        (uint8_t)(ROCE_AETH_RNR_NAK | (qp->attributes.min_rnr_timer & ROCE_AETH_VALUE_MASK));
    rc_responder_refuse(&qp->in.rc, psn_of(psn), syndrome);
    nic_schedule(qp);
    return false;
}

/* The receive itself is bad: it completes with `status`, the requester gets a NAK. */
static bool spoil_receive(struct qp *qp, uint32_t psn, enum completion_status status,
                          uint8_t syndrome, enum nic_counter counter)
{
    qp_spoil_receive(qp, status);
    return rc_refuse(qp, psn, syndrome, counter);
}

static void note_receive(struct qp *qp, const struct roce_packet *packet, uint32_t traits,
                         uint32_t bytes, struct nic_move *move)
{
    const bool write = traits & ROCE_IS_WRITE;
    move->completes = true;
    if (traits & ROCE_HAS_XRCETH) {
        move->srqn = packet->xrc.srqn;
    }
    move->completion = (struct completion){
        .wr_id = qp->current->wr_id,
        .bytes = bytes,
        .qpn = qp->number,
        .status = COMPLETION_SUCCESS,
        .kind = (uint8_t)(write ? COMPLETION_RECEIVE_WRITE_IMMEDIATE : COMPLETION_RECEIVE),
        .solicited = packet->solicited,
    };
    if (traits & ROCE_HAS_IMMDT) {
        move->completion.flags = COMPLETION_HAS_IMMEDIATE;
        move->completion.immediate = packet->immediate;
    } else if (traits & ROCE_HAS_IETH) {
        move->completion.flags = COMPLETION_HAS_INVALIDATE;
        move->completion.immediate = packet->invalidate_key;
    }
    qp_release_receive(qp);
    nic_count(qp->nic, COUNTER_rdma_recvs);
}

static bool on_send(struct qp *qp, const struct roce_packet *packet, uint32_t traits,
                    struct nic_move *move)
{
    if ((traits & ROCE_IS_FIRST) && qp_take_receive(qp) == NULL) {
        return refuse_for_now(qp, packet->psn);
    }
    const uint32_t offset = incoming_before(&qp->in.rc.incoming, traits);
    ibta_begin_move(qp, packet, MOVE_REQUEST, move);
    move->purpose = NIC_FOR_RECEIVE;
    switch (receive_gather(qp, qp->current, offset, packet->payload_bytes, move->segments,
                           &move->segment_count)) {
    case GATHER_GOOD: break;
    case GATHER_TOO_SHORT:
        return spoil_receive(qp, packet->psn, COMPLETION_LOCAL_LENGTH, ROCE_NAK_INVALID_REQUEST,
                             COUNTER_nak_invalid_length);
    case GATHER_FORBIDDEN:
        return spoil_receive(qp, packet->psn, COMPLETION_LOCAL_PROTECTION,
                             ROCE_NAK_REMOTE_OPERATIONAL, COUNTER_nak_operational);
    }
    if ((traits & ROCE_HAS_IETH) &&
        !window_invalidate(&qp->nic->regions, packet->invalidate_key, qp, NULL)) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_REMOTE_ACCESS, COUNTER_nak_invalidate);
    }
    if (traits & ROCE_IS_LAST) {
        note_receive(qp, packet, traits, offset + packet->payload_bytes, move);
    }
    rc_responder_accept(&qp->in.rc, packet);
    return true;
}

/* The memory of a WRITE packet, in move->segments. */
static enum reach_verdict judge_write(struct qp *qp, const struct roce_packet *packet,
                                      uint32_t traits, struct nic_move *move)
{
    uint64_t address;
    uint32_t key;
    incoming_target(&qp->in.rc.incoming, packet, traits, &address, &key);
    /* The whole range is judged at once, so that no WRITE begins that cannot end. */
    const uint32_t bytes = traits & ROCE_IS_FIRST ? packet->reth.bytes : packet->payload_bytes;
    const enum reach_verdict verdict = region_judge(&qp->nic->regions, key, qp->pd, qp, address,
                                                    bytes, ACCESS_REMOTE_WRITE, &move->segments[0]);
    move->segments[0].bytes = packet->payload_bytes;
    move->segment_count = packet->payload_bytes != 0;
    return verdict;
}

static bool on_write(struct qp *qp, const struct nic_arrival *arrival, uint32_t traits,
                     struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    ibta_begin_move(qp, packet, MOVE_REQUEST, move);
    if (arrival->placed && !(traits & ROCE_HAS_IMMDT)) {
        /* The peer counts this WRITE as acknowledged, and our program may have taken its region or
         * its permission back since. Nothing is written and nothing completes, so there is nothing
         * to judge. */
        move->kind = NIC_MOVE_NOTHING;
    } else {
        if (!reach_grants(qp->attributes.access, ACCESS_REMOTE_WRITE)) {
            return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_opcode);
        }
        const enum reach_verdict verdict = judge_write(qp, packet, traits, move);
        if (verdict != REACH_ALLOWED) {
            return refuse_access(qp, packet->psn, verdict);
        }
    }
    if (traits & ROCE_HAS_IMMDT) {
        if (qp_take_receive(qp) == NULL) {
            return refuse_for_now(qp, packet->psn);
        }
        const uint32_t earlier = incoming_before(&qp->in.rc.incoming, traits);
        note_receive(qp, packet, traits, earlier + packet->payload_bytes, move);
    }
    rc_responder_accept(&qp->in.rc, packet);
    return true;
}

/* The requester has its data already, and our program may have taken its region or its permission
 * back since: nothing is answered, so there is nothing to judge. */
static bool on_fetched(struct qp *qp, const struct roce_packet *packet)
{
    rc_responder_accept_fetched(&qp->in.rc, packet);
    return false;
}

static bool on_read(struct qp *qp, const struct roce_packet *packet, bool replay)
{
    if (!reach_grants(qp->attributes.access, ACCESS_REMOTE_READ)) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_opcode);
    }
    struct segment segment;
    const enum reach_verdict verdict =
        region_judge(&qp->nic->regions, packet->reth.key, qp->pd, qp, packet->reth.address,
                     packet->reth.bytes, ACCESS_REMOTE_READ, &segment);
    if (verdict != REACH_ALLOWED) {
        return refuse_access(qp, packet->psn, verdict);
    }
    if (replay) {
        rc_responder_replay_response(&qp->in.rc, packet);
    } else {
        rc_responder_accept_read(&qp->in.rc, packet);
    }
    nic_schedule(qp);
    return false;
}

/* An atomic at segments[0], which was judged. */
static void begin_atomic(struct nic_move *move, enum nic_atomic atomic, uint64_t compare,
                         uint64_t swap_or_add)
{
    move->kind = NIC_MOVE_ATOMIC;
    move->atomic = atomic;
    move->segment_count = 1;
    move->compare = compare;
    move->swap_or_add = swap_or_add;
}

static bool on_atomic(struct qp *qp, const struct roce_packet *packet, struct nic_move *move)
{
    if (!reach_grants(qp->attributes.access, ACCESS_REMOTE_ATOMIC)) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_opcode);
    }
    if (packet->atomic.address % 8 != 0) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_misaligned_atomic);
    }
    ibta_begin_move(qp, packet, MOVE_ATOMIC, move);
    const enum reach_verdict verdict =
        region_judge(&qp->nic->regions, packet->atomic.key, qp->pd, qp, packet->atomic.address, 8,
                     ACCESS_REMOTE_ATOMIC, &move->segments[0]);
    if (verdict != REACH_ALLOWED) {
        return refuse_access(qp, packet->psn, verdict);
    }
    /* A region may start anywhere, so an aligned address of the peer's may be unaligned memory. */
    if (move->segments[0].address % 8 != 0) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_misaligned_atomic);
    }
    const bool swap = (packet->opcode & 0x1f) == ROCE_COMPARE_SWAP;
    begin_atomic(move, swap ? NIC_COMPARE_SWAP : NIC_FETCH_ADD, packet->atomic.compare,
                 packet->atomic.swap_or_add);
    rc_responder_accept_atomic(&qp->in.rc, packet);
    return true;
}

/* An ATOMIC WRITE needs the right to WRITE, and is executed like an atomic. */
static bool on_atomic_write(struct qp *qp, const struct roce_packet *packet, struct nic_move *move)
{
    if (!reach_grants(qp->attributes.access, ACCESS_REMOTE_WRITE)) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_opcode);
    }
    if (packet->payload_bytes != 8 || packet->reth.bytes != 8) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_length);
    }
    ibta_begin_move(qp, packet, MOVE_ATOMIC, move);
    const enum reach_verdict verdict =
        region_judge(&qp->nic->regions, packet->reth.key, qp->pd, qp, packet->reth.address, 8,
                     ACCESS_REMOTE_WRITE, &move->segments[0]);
    if (verdict != REACH_ALLOWED) {
        return refuse_access(qp, packet->psn, verdict);
    }
    if (packet->reth.address % 8 != 0 || move->segments[0].address % 8 != 0) {
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_misaligned_atomic);
    }
    uint64_t value;
    __builtin_memcpy(&value, packet->payload, sizeof(value));
    begin_atomic(move, NIC_STORE, 0, value);
    rc_responder_accept_atomic(&qp->in.rc, packet);
    return true;
}

static bool execute(struct qp *qp, const struct nic_arrival *arrival, uint32_t traits,
                    struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    if (traits & ROCE_IS_SEND) {
        return on_send(qp, packet, traits, move);
    }
    if (traits & ROCE_IS_WRITE) {
        return on_write(qp, arrival, traits, move);
    }
    if (traits & ROCE_IS_READ) {
        return arrival->placed ? on_fetched(qp, packet) : on_read(qp, packet, false);
    }
    if (traits & ROCE_IS_FLUSH) {
        return rc_on_flush(qp, packet, move);
    }
    return (packet->opcode & 0x1f) == ROCE_ATOMIC_WRITE ? on_atomic_write(qp, packet, move)
                                                        : on_atomic(qp, packet, move);
}

bool rc_on_request(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    struct nic *nic = qp->nic;
    switch (rc_responder_judge(&qp->in.rc, packet)) {
    case RC_VERDICT_EXECUTE: return execute(qp, arrival, traits, move);
    case RC_VERDICT_REPLAY:
        nic_count(nic, COUNTER_duplicate_request);
        rc_responder_replay(&qp->in.rc, psn_of(packet->psn));
        nic_schedule(qp);
        return false;
    case RC_VERDICT_REPLAY_READ:
        nic_count(nic, COUNTER_duplicate_request);
        return on_read(qp, packet, true);
    case RC_VERDICT_REPLAY_ATOMIC:
        nic_count(nic, COUNTER_duplicate_request);
        rc_responder_replay_response(&qp->in.rc, packet);
        nic_schedule(qp);
        return false;
    case RC_VERDICT_REPORT_GAP:
        nic_count(nic, COUNTER_out_of_seq_request);
        nic_count(nic, COUNTER_nak_psn_sequence);
        rc_responder_report_gap(&qp->in.rc, psn_of(packet->psn));
        nic_schedule(qp);
        return false;
    case RC_VERDICT_IN_GAP:
        nic_count(nic, COUNTER_drop_in_gap);
        rc_responder_pass_over(&qp->in.rc, psn_of(packet->psn));
        return false;
    case RC_VERDICT_IGNORE: nic_count(nic, COUNTER_drop_in_gap); return false;
    case RC_VERDICT_WRONG_ORDER:
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_opcode);
    case RC_VERDICT_WRONG_LENGTH:
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_invalid_length);
    case RC_VERDICT_NO_RESOURCES:
        return rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_no_resources);
    }
    UNREACHABLE("a verdict outside its enum");
}
