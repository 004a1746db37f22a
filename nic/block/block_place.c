/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_place - may a piece of a message be placed, and where? Judges the queue pair's rights, keys
 * and receives in the order of RC (rc_request.c).
 */
#include "nic/block/block_receiver.h"

static enum reach_verdict judge_write(const struct qp *qp, const struct block_piece *piece,
                                      struct segment *segment)
{
    const struct region_table *regions = &qp->nic->regions;
    const struct block_message *message = &piece->message;
    if (!reach_grants(qp->attributes.access, ACCESS_REMOTE_WRITE)) {
        return REACH_NO_RIGHT;
    }
    if (piece->first || piece->opens) {
        /* The whole range is judged at once, so that no WRITE begins that cannot end. */
        const enum reach_verdict whole =
            region_judge(regions, message->key, qp->pd, qp, message->address, message->bytes,
                         ACCESS_REMOTE_WRITE, segment);
        if (whole != REACH_ALLOWED) {
            return whole;
        }
    }
    return region_judge(regions, message->key, qp->pd, qp, message->address + piece->offset,
                        piece->bytes, ACCESS_REMOTE_WRITE, segment);
}

static enum block_admission admit_write(struct qp *qp, const struct block_piece *piece,
                                        struct nic_move *move, struct block_refusal *refusal)
{
    const enum reach_verdict verdict = judge_write(qp, piece, &move->segments[0]);
    if (verdict != REACH_ALLOWED) {
        *refusal = block_access_refusal(verdict);
        return BLOCK_REFUSED;
    }
    move->segment_count = piece->bytes != 0;
    const bool consumes = piece->last && block_message_consumes(&piece->message);
    return consumes && !block_have_receive(qp, piece) ? BLOCK_LATER : BLOCK_ADMITTED;
}

static enum block_admission admit_send(struct qp *qp, const struct block_piece *piece,
                                       struct nic_move *move, struct block_refusal *refusal)
{
    const struct receive *receive;
    const enum block_admission found = block_find_receive(qp, piece, &receive);
    if (found != BLOCK_ADMITTED) {
        return found;
    }
    switch (receive_gather(qp, receive, (uint32_t)piece->offset, piece->bytes, move->segments,
                           &move->segment_count)) {
    case GATHER_GOOD: return BLOCK_ADMITTED;
    case GATHER_TOO_SHORT:
        *refusal = (struct block_refusal){BLOCK_STATUS_INVALID_REQUEST, COUNTER_nak_invalid_length,
                                          COMPLETION_LOCAL_LENGTH};
        return BLOCK_REFUSED;
    case GATHER_FORBIDDEN:
        *refusal = (struct block_refusal){BLOCK_STATUS_OPERATIONAL, COUNTER_nak_operational,
                                          COMPLETION_LOCAL_PROTECTION};
        return BLOCK_REFUSED;
    }
    UNREACHABLE("a verdict outside its enum");
}

/* RC judges the length of the message before all else, so this does, too. */
enum block_admission block_admit(struct qp *qp, const struct block_piece *piece,
                                 struct nic_move *move, struct block_refusal *refusal)
{
    INVARIANTS(block_piece_check(qp, piece));
    if (piece->message.bytes > MESSAGE_BYTES_MAX) {
        *refusal = (struct block_refusal){BLOCK_STATUS_INVALID_REQUEST, COUNTER_nak_invalid_length,
                                          COMPLETION_SUCCESS};
        return BLOCK_REFUSED;
    }
    const enum block_admission admission = piece->message.opcode == BLOCK_SEND
                                               ? admit_send(qp, piece, move, refusal)
                                               : admit_write(qp, piece, move, refusal);
    if (admission == BLOCK_REFUSED && !piece->turn) {
        return BLOCK_DECLINED;
    }
    /* As with RC, a SEND that waits for a receive is valid; invalidations are not judged yet. */
    if (UNLIKELY(qp->state == QP_RTR) &&
        (admission == BLOCK_LATER || (admission == BLOCK_ADMITTED && piece->turn)) &&
        !(piece->message.flags & BLOCK_CONTEXT_INVALIDATE)) {
        ibta_note_established(qp);
    }
    return admission;
}

void block_begin_move(struct qp *qp, uint32_t number, enum move_action action,
                      struct nic_move *move)
{
    move->in_order = true; /* Else a second copy might be written behind a completion. */
    move->prefix_bytes = 0;
    move->purpose = NIC_FOR_PEER;
    move->qp = qp;
    move->psn = number;
    move->epoch = qp->epoch;
    move->action = (uint8_t)action;
    move->completes = false;
    move->held = BLOCK_HOLD_NONE;
    move->birth = 0;
    move->position = 0;
}

static void place_check(const struct nic_move *move, uint32_t bytes)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        room += move->segments[i].bytes;
    }
    CHECK(move->segment_count <= NIC_SEGMENT_MAX && room == bytes);
    CHECK(move->held == BLOCK_HOLD_NONE && move->epoch == move->qp->epoch);
}

void block_begin_place(struct qp *qp, const struct block_piece *piece, uint32_t birth,
                       struct nic_move *move)
{
    block_begin_move(qp, piece->number, MOVE_BLOCK_PLACE, move);
    move->kind = piece->bytes == 0 ? NIC_MOVE_NOTHING : NIC_MOVE_SCATTER;
    if (piece->message.opcode == BLOCK_SEND) {
        move->purpose = NIC_FOR_RECEIVE;
    }
    move->payload = piece->payload;
    move->birth = birth;
    move->position = piece->position;
    /* A world writes the payload, and all of it has its place. */
    INVARIANTS(place_check(move, piece->bytes));
}

/* If the receive itself is bad, it completes with an error. The requester is told in any case. */
bool block_refuse_piece(struct qp *qp, const struct block_piece *piece,
                        const struct block_refusal *refusal)
{
    if (refusal->receive != COMPLETION_SUCCESS) {
        CHECK(block_message_consumes(&piece->message));
        const struct completion completion = {
            .wr_id = block_use_receive(qp, &piece->message),
            .qpn = qp->number,
            .status = (uint8_t)refusal->receive,
            .kind = COMPLETION_RECEIVE,
        };
        qp_complete_receive(qp, 0, &completion);
    }
    return block_refuse(qp, refusal);
}
