/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_execute - the execution of blocks whose turn has come: held payloads are placed, READs and
 * atomics are executed, receives complete.
 */
#include "nic/block/block_receiver.h"

static bool refuse_access(struct qp *qp, enum reach_verdict verdict)
{
    const struct block_refusal refusal = block_access_refusal(verdict);
    return block_refuse(qp, &refusal);
}

/* All of block base is in memory. If it ends a message, the message takes effect: its window is
 * invalidated, its receive completes. False: the invalidation is refused. */
bool block_finish(struct qp *qp, const struct block_message *message)
{
    if (!(message->flags & BLOCK_CONTEXT_LAST)) {
        return true;
    }
    const uint32_t key = load_be32(&message->tag);
    const bool invalidates = message->flags & BLOCK_CONTEXT_INVALIDATE;
    if (invalidates && !window_invalidate(&qp->nic->regions, key, qp, NULL)) {
        const struct block_refusal refusal = {BLOCK_STATUS_ACCESS, COUNTER_nak_invalidate,
                                              COMPLETION_SUCCESS};
        return block_refuse(qp, &refusal);
    }
    if (!block_message_consumes(message)) {
        return true;
    }
    if (UNLIKELY(qp->state == QP_RTR)) {
        ibta_note_established(qp);
    }
    const bool send = message->opcode == BLOCK_SEND;
    struct completion completion = {
        .wr_id = block_use_receive(qp, message),
        .bytes = message->bytes,
        .qpn = qp->number,
        .status = COMPLETION_SUCCESS,
        .kind = (uint8_t)(send ? COMPLETION_RECEIVE : COMPLETION_RECEIVE_WRITE_IMMEDIATE),
        .solicited = (message->flags & BLOCK_CONTEXT_SOLICITED) != 0,
    };
    if (message->flags & BLOCK_CONTEXT_IMMEDIATE) {
        completion.flags = COMPLETION_HAS_IMMEDIATE;
        completion.immediate = message->tag;
    } else if (invalidates) {
        completion.flags = COMPLETION_HAS_INVALIDATE;
        completion.immediate = key;
    }
    nic_count(qp->nic, COUNTER_rdma_recvs);
    qp_complete_receive(qp, 0, &completion);
    return true;
}

/* A READ that was executed lies before base, so the refusal has to name it. */
static bool refuse_read(struct qp *qp, const struct block_read *read,
                        const struct block_refusal *refusal)
{
    return read->repeated ? block_refuse_data(qp, read->number, refusal->counter)
                          : block_refuse(qp, refusal);
}

/* One READ asks for all packets of a block (up to 64), and its source address is easy to forge. A
 * peer that has not answered a probe at this address gets no data, as if the network had lost it,
 * and asks again. */
static bool withholds_data(struct qp *qp, const struct block_read *read)
{
    struct nic_peer *peer = nic_peer_of(qp);
    if (LIKELY(peer == NULL || peer->answers) ||
        nic_routes_is_named(&peer->routes, block_route_back(qp, read->path))) {
        return false;
    }
    INVARIANTS(block_peer_check(peer));
    peer->routes.doubts = true;
    nic_count(qp->nic, COUNTER_block_reads_withheld);
    nic_schedule(qp);
    return true;
}

/* The READ of a block, for the first time or again. False: it is refused. */
bool block_answer_read(struct qp *qp, const struct block_read *read)
{
    struct block_receiver *receiver = receiver_of(qp);
    const uint64_t block = (uint64_t)BLOCK_POSITIONS * receiver->stream.mtu_bytes;
    const uint64_t skipped = read->index * block;
    const uint64_t rest = read->message_bytes - skipped;
    const uint64_t bytes = read->index == 0 || rest < block ? rest : block;
    INVARIANTS(CHECK(skipped <= read->message_bytes)); /* Its packet was judged. */
    if (read->message_bytes > MESSAGE_BYTES_MAX) {
        const struct block_refusal refusal = {BLOCK_STATUS_INVALID_REQUEST,
                                              COUNTER_nak_invalid_length, COMPLETION_SUCCESS};
        return refuse_read(qp, read, &refusal);
    }
    if (receiver->results_limit == 0 || !block_read_fits(receiver, read)) {
        /* Without room, a READ that is repeated is dropped, since the peer will ask again. */
        return read->repeated || block_refuse_request(qp, COUNTER_nak_no_resources);
    }
    struct segment segment;
    const enum reach_verdict verdict =
        !reach_grants(qp->attributes.access, ACCESS_REMOTE_READ)
            ? REACH_NO_RIGHT
            : region_judge(&qp->nic->regions, read->key, qp->pd, qp, read->address + skipped,
                           (uint32_t)bytes, ACCESS_REMOTE_READ, &segment);
    if (verdict != REACH_ALLOWED) {
        const struct block_refusal refusal = block_access_refusal(verdict);
        return refuse_read(qp, read, &refusal);
    }
    if (LIKELY(!withholds_data(qp, read))) {
        block_add_read(qp, read);
    }
    ibta_note_established(qp);
    return true;
}

static bool execute_read(struct qp *qp, struct block_context *context)
{
    const struct block_read read = {
        .wanted = context->wanted,
        .address = context->address,
        .key = context->key,
        .message_bytes = context->message_bytes,
        .number = context->number,
        .index = context->index,
        .last_position = context->last_position,
        .last_block = (context->flags & BLOCK_CONTEXT_LAST) != 0,
        .path = (uint8_t)context->tag,
        .round = context->round,
    };
    if (!block_answer_read(qp, &read)) {
        return false;
    }
    block_responder_executed(&receiver_of(qp)->stream, context);
    return true;
}

static enum nic_atomic atomic_of(uint32_t kind)
{
    switch ((enum block_atomic_kind)kind) {
    case BLOCK_COMPARE_SWAP: return NIC_COMPARE_SWAP;
    case BLOCK_FETCH_ADD: return NIC_FETCH_ADD;
    case BLOCK_ATOMIC_WRITE: return NIC_STORE;
    case BLOCK_ATOMIC_KIND_COUNT: break;
    }
    UNREACHABLE("an atomic that was not judged");
}

static bool begin_atomic(struct qp *qp, struct block_context *context, struct nic_move *move)
{
    const uint32_t kind = context->message_bytes;
    const uint32_t right = kind == BLOCK_ATOMIC_WRITE ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_ATOMIC;
    if (block_result_room(receiver_of(qp)) == NULL) {
        return block_refuse_request(qp, COUNTER_nak_no_resources);
    }
    if (!reach_grants(qp->attributes.access, right)) {
        return block_refuse_request(qp, COUNTER_nak_invalid_opcode);
    }
    if (kind != BLOCK_ATOMIC_WRITE && context->address % 8 != 0) {
        return block_refuse_request(qp, COUNTER_nak_misaligned_atomic);
    }
    const enum reach_verdict verdict = region_judge(&qp->nic->regions, context->key, qp->pd, qp,
                                                    context->address, 8, right, &move->segments[0]);
    if (verdict != REACH_ALLOWED) {
        return refuse_access(qp, verdict);
    }
    /* A region may start anywhere, so an aligned address of the peer's may be unaligned memory. */
    if (context->address % 8 != 0 || move->segments[0].address % 8 != 0) {
        return block_refuse_request(qp, COUNTER_nak_misaligned_atomic);
    }
    block_begin_move(qp, context->number, MOVE_BLOCK_ATOMIC, move);
    move->kind = NIC_MOVE_ATOMIC;
    move->atomic = atomic_of(kind);
    move->segment_count = 1;
    move->compare = context->compare;
    move->swap_or_add = context->swap_or_add;
    move->birth = context->birth;
    /* It is executed once: no packet, and no second turn, begins it again. */
    INVARIANTS(CHECK((context->flags & BLOCK_CONTEXT_BEGUN) == 0));
    context->flags |= BLOCK_CONTEXT_BEGUN;
    ibta_note_established(qp);
    return true;
}

/* The next held payload of block base. */
static bool place_held(struct qp *qp, struct block_context *context, struct nic_move *move)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    INVARIANTS(CHECK(context->held != BLOCK_HOLD_NONE));
    const uint32_t slot = block_hold_first(stream->hold, context->held);
    const uint8_t position = block_hold_position(stream->hold, slot);
    INVARIANTS(CHECK(position <= context->last_position && context->arrived >> position & 1));
    const bool ends =
        (context->flags & BLOCK_CONTEXT_LAST) != 0 && position == context->last_position;
    const struct block_piece piece = {
        .message = block_message_of_context(context),
        .offset = ((uint64_t)context->index * BLOCK_POSITIONS + position) * stream->mtu_bytes,
        .payload = block_hold_payload(stream->hold, slot),
        .bytes = block_hold_length(stream->hold, slot),
        .number = context->number,
        .position = position,
        .first = context->index == 0 && position == 0,
        .last = ends,
        .in_order = true,
        .turn = true,
    };
    struct block_refusal refusal;
    switch (block_admit(qp, &piece, move, &refusal)) {
    case BLOCK_ADMITTED: break;
    case BLOCK_DECLINED: UNREACHABLE("a turn that has come");
    case BLOCK_LATER:
        block_responder_drop_held(stream, context);
        block_refuse_for_now(qp);
        return false;
    case BLOCK_REFUSED: return block_refuse_piece(qp, &piece, &refusal);
    }
    block_begin_place(qp, &piece, context->birth, move);
    move->held = block_responder_detach(stream, context);
    return true;
}

/* Executes what is complete, block by block. */
void block_progress(struct qp *qp)
{
    struct block_receiver *receiver = receiver_of(qp);
    struct block_context *context;
    INVARIANTS(block_receiver_check(qp));
    for (;;) {
        switch (block_responder_step(&receiver->stream, &context)) {
        case BLOCK_STEP_WAIT:
        case BLOCK_STEP_ATOMIC:
        case BLOCK_STEP_HELD: return;
        case BLOCK_STEP_READ:
            if (!execute_read(qp, context)) {
                return;
            }
            break;
        case BLOCK_STEP_DONE: {
            const struct block_message message = block_message_of_context(context);
            if (!block_finish(qp, &message)) {
                return;
            }
            block_responder_executed(&receiver->stream, context);
            break;
        }
        case BLOCK_STEP_INVALID: (void)block_refuse_request(qp, COUNTER_nak_invalid_opcode); return;
        }
    }
}

bool block_receive_next_held(struct qp *qp, struct nic_move *move)
{
    if (!reach_state_serves((enum qp_state)qp->state)) {
        return false;
    }
    block_progress(qp);
    struct block_context *context;
    switch (block_responder_step(&receiver_of(qp)->stream, &context)) {
    case BLOCK_STEP_ATOMIC: return begin_atomic(qp, context, move);
    case BLOCK_STEP_HELD: return place_held(qp, context, move);
    case BLOCK_STEP_WAIT:
    case BLOCK_STEP_READ:
    case BLOCK_STEP_DONE:
    case BLOCK_STEP_INVALID: return false;
    }
    UNREACHABLE("a step outside its enum");
}
