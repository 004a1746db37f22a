/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_receive - packets of the peer's blocks that come to a queue pair.
 *
 * Packets may come in any order, but a request is refused only when all requests before it are on
 * their way into memory. So the refusal is the one that RC would give; it is judged in RC's order
 * (rc_request.c).
 */
#include "base/align.h"
#include "nic/block/block_receiver.h"

/* -- Life ---------------------------------------------------------------------------------------*/

size_t block_receive_bytes(const struct nic_limits *limits)
{
    return line_aligned(sizeof(struct block_receiver)) +
           line_aligned(limits->block.reads * sizeof(struct block_read)) +
           line_aligned(limits->reads_per_qp * sizeof(struct block_result));
}

void block_receive_init(struct block_receiver *receiver)
{
    *receiver = (struct block_receiver){0};
}

size_t block_shared_bytes(const struct nic_limits *limits)
{
    return line_aligned(sizeof(struct block_shared)) +
           block_contexts_bytes(limits->block.contexts) +
           block_hold_bytes(limits->block.held, block_payload_most(limits));
}

void block_shared_init(struct nic *nic, void *memory)
{
    const struct nic_limits *limits = &nic->limits;
    uint8_t *at = memory;
    nic->block_shared = memory;
    at += line_aligned(sizeof(struct block_shared));
    block_contexts_init(&nic->block_shared->contexts, limits->block.contexts, at);
    at += block_contexts_bytes(limits->block.contexts);
    block_hold_init(&nic->block_shared->hold, limits->block.held, block_payload_most(limits), at);
}

void block_receive_begin(struct qp *qp, const struct block_terms *terms)
{
    struct block_receiver *receiver = receiver_of(qp);
    const struct nic_limits *limits = &qp->nic->limits;
    const struct block_responder_config config = {
        .owner = qp->number,
        .session = terms->session,
        .window = terms->window,
        .mtu_bytes = terms->payload_bytes,
        /* The numbers of answers go on: a requester whose session comes back takes lower ones for
         * old. */
        .answers = receiver->stream.answers,
        .hold_all = limits->block.place == BLOCK_PLACE_HOLD,
    };
    CHECK(receiver->stream.chain.count == 0 && receiver->open_count == 0 && !receiver->current);
    const uint32_t results = qp->attributes.max_reads_in;
    /* Results of an earlier session are not asked for in this one. */
    __builtin_memset(receiver, 0, block_receive_bytes(limits));
    uint8_t *at = (uint8_t *)receiver + line_aligned(sizeof(*receiver));
    receiver->reads = (struct block_read *)(void *)at;
    at += line_aligned(limits->block.reads * sizeof(struct block_read));
    receiver->results = (struct block_result *)(void *)at;
    receiver->open_limit = BLOCK_OPEN_MAX;
    receiver->path_count = terms->path_count;
    receiver->results_limit = results < limits->reads_per_qp ? results : limits->reads_per_qp;
    receiver->reads_room = limits->block.reads;
    receiver->reads_limit = terms->reads;
    CHECK(receiver->reads_limit <= receiver->reads_room);
    block_responder_init(&receiver->stream, &config, &qp->nic->block_shared->contexts,
                         &qp->nic->block_shared->hold);
    INVARIANTS(block_receiver_check(qp));
}

bool block_receive_untouched(const struct qp *qp)
{
    const struct block_receiver *receiver = receiver_of(qp);
    const struct block_responder *stream = &receiver->stream;
    return block_responder_base(stream) == stream->first_number && !stream->moving &&
           !receiver->current && receiver->open_count == 0;
}

void block_receive_check(const struct qp *qp)
{
    const struct block_receiver *receiver = receiver_of(qp);
    block_receiver_check(qp);
    block_responder_check(&receiver->stream);
    block_hold_check(receiver->stream.hold);
}

/* -- Packets ------------------------------------------------------------------------------------*/

static bool no_context(struct qp *qp)
{
    nic_count(qp->nic, COUNTER_blocks_no_context);
    return false;
}

static bool decline(struct qp *qp, const struct block_arrival *arrival, struct instant now)
{
    if (block_responder_decline(&receiver_of(qp)->stream, &arrival->packet, now)) {
        nic_count(qp->nic, COUNTER_blocks_declined);
    }
    return false;
}

/* Was any packet of the block judged to be good? A held packet was not judged yet; before the
 * block's turn, only its last packet is held. */
static bool any_placed(const struct block_context *context)
{
    if (context == NULL || context->arrived == 0) {
        return false;
    }
    const bool one = (context->arrived & (context->arrived - 1)) == 0;
    return !(one && context->held != BLOCK_HOLD_NONE);
}

static struct block_piece piece_of(const struct qp *qp, const struct block_packet *packet,
                                   const struct block_case *it)
{
    return (struct block_piece){
        .message = block_message_of_packet(packet),
        .offset = block_payload_offset(packet, receiver_of(qp)->stream.mtu_bytes),
        .payload = packet->payload,
        .bytes = packet->payload_bytes,
        .number = packet->number,
        .position = packet->position,
        .first = packet->index == 0 && packet->position == 0,
        .last = block_is_last(packet),
        .opens = !any_placed(it->context),
        .in_order = it->in_order,
        .turn = it->turn,
    };
}

/* The payload of a SEND or WRITE packet that may be placed now. */
static bool place(struct qp *qp, const struct block_arrival *arrival, const struct block_case *it,
                  struct instant now, struct nic_move *move)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    const struct block_packet *packet = &arrival->packet;
    const struct block_piece piece = piece_of(qp, packet, it);
    const bool alone = it->turn && block_responder_is_alone(stream, packet, it);
    struct block_context *context = NULL;
    if (!alone) {
        context = block_responder_context(stream, packet, now);
        if (context == NULL) {
            return no_context(qp);
        }
    }
    struct block_refusal refusal;
    switch (block_admit(qp, &piece, move, &refusal)) {
    case BLOCK_ADMITTED: break;
    case BLOCK_DECLINED: return decline(qp, arrival, now);
    case BLOCK_LATER: block_refuse_for_now(qp); return false;
    case BLOCK_REFUSED: return block_refuse_piece(qp, &piece, &refusal);
    }
    if (context != NULL && qp->shares && packet->opcode == BLOCK_SEND) {
        context->flags |= BLOCK_CONTEXT_RECEIVE;
    }
    INVARIANTS(CHECK(alone || context->birth != 0)); /* 0 says that there is no context. */
    block_begin_place(qp, &piece, alone ? 0 : context->birth, move);
    block_responder_begin(stream, context, packet);
    return true;
}

static bool hold(struct qp *qp, const struct block_arrival *arrival, struct instant now)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    struct block_context *context = block_responder_context(stream, &arrival->packet, now);
    if (context == NULL) {
        return no_context(qp);
    }
    const bool held = block_responder_hold(stream, context, &arrival->packet);
    nic_count(qp->nic, held ? COUNTER_blocks_held : COUNTER_hold_full);
    return false;
}

static bool on_new(struct qp *qp, const struct block_arrival *arrival, const struct block_case *it,
                   struct instant now, struct nic_move *move)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    const struct block_packet *packet = &arrival->packet;
    if (packet->opcode == BLOCK_READ || packet->opcode == BLOCK_ATOMIC) {
        struct block_context *context = block_responder_context(stream, packet, now);
        if (context == NULL) {
            return no_context(qp);
        }
        block_responder_keep(stream, context, packet);
        return block_receive_next_held(qp, move);
    }
    switch (block_responder_where(stream, packet, it)) {
    case BLOCK_INTO_MEMORY: return place(qp, arrival, it, now, move);
    case BLOCK_INTO_HOLD: return hold(qp, arrival, now);
    case BLOCK_NOWHERE: return decline(qp, arrival, now);
    }
    UNREACHABLE("a place outside its enum");
}

/* A request that was executed is answered again, as far as possible. A READ that is not marked as
 * sent again asks for another piece of its block. */
static bool on_repeated(struct qp *qp, const struct block_packet *packet)
{
    if (packet->opcode != BLOCK_READ || packet->resent) {
        nic_count(qp->nic, COUNTER_duplicate_request);
        block_responder_duplicate(&receiver_of(qp)->stream, packet);
    }
    if (packet->opcode == BLOCK_ATOMIC) {
        block_repeat_result(qp, packet);
        return false;
    }
    const struct block_read read = {
        .wanted = packet->wanted,
        .address = packet->address,
        .key = packet->key,
        .message_bytes = packet->message_bytes,
        .number = packet->number,
        .index = packet->index,
        .last_position = packet->last_position,
        .last_block = packet->last_block,
        .path = packet->path,
        .round = packet->round,
        .repeated = true,
    };
    (void)block_answer_read(qp, &read);
    return false;
}

static bool on_contradiction(struct qp *qp, const struct block_arrival *arrival,
                             const struct block_case *it)
{
    const struct block_responder *stream = &receiver_of(qp)->stream;
    if (arrival->packet.number == block_responder_base(stream) && it->in_order) {
        return block_refuse_request(qp, it->length ? COUNTER_nak_invalid_length
                                                   : COUNTER_nak_invalid_opcode);
    }
    nic_count(qp->nic, COUNTER_blocks_declined);
    return false;
}

static bool on_request(struct qp *qp, const struct block_arrival *arrival, struct instant now,
                       struct nic_move *move)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    const struct block_packet *packet = &arrival->packet;
    const struct block_case it = block_responder_judge(stream, packet);
    switch (it.arrived) {
    case BLOCK_ARRIVED_STRANGE: return nic_drop(qp->nic, COUNTER_drop_wrong_session);
    case BLOCK_ARRIVED_BEYOND: return nic_drop(qp->nic, COUNTER_drop_beyond_window);
    case BLOCK_ARRIVED_BEFORE: return nic_drop(qp->nic, COUNTER_drop_before_window);
    case BLOCK_ARRIVED_PROBE:
    case BLOCK_ARRIVED_DUPLICATE:
    case BLOCK_ARRIVED_REPEATED:
    case BLOCK_ARRIVED_CONTRADICTION:
    case BLOCK_ARRIVED_NEW: break;
    }
    block_responder_arrived(stream, packet, arrival->marked, arrival->at, now);
    if (packet->opcode == BLOCK_PROBE) {
        receiver_of(qp)->turns[packet->path % BLOCK_PATHS_MAX] = packet->round;
    }
    if (!reach_state_serves((enum qp_state)qp->state)) {
        return false; /* A request was refused: every packet is answered with that. */
    }
    switch (it.arrived) {
    case BLOCK_ARRIVED_NEW: return on_new(qp, arrival, &it, now, move);
    case BLOCK_ARRIVED_DUPLICATE:
        nic_count(qp->nic, COUNTER_duplicate_request);
        block_responder_duplicate(stream, packet);
        return false;
    case BLOCK_ARRIVED_REPEATED: return on_repeated(qp, packet);
    case BLOCK_ARRIVED_CONTRADICTION: return on_contradiction(qp, arrival, &it);
    case BLOCK_ARRIVED_PROBE: nic_count(qp->nic, COUNTER_block_probes_received); return false;
    case BLOCK_ARRIVED_STRANGE:
    case BLOCK_ARRIVED_BEYOND:
    case BLOCK_ARRIVED_BEFORE: break;
    }
    UNREACHABLE("a packet that was dropped");
}

/* Blocks that were forgotten to make room for other streams are counted when the next packet of
 * their own stream comes. */
static void count_forgotten(struct qp *qp)
{
    struct block_receiver *receiver = receiver_of(qp);
    for (; receiver->forgotten != receiver->stream.chain.forgotten; receiver->forgotten++) {
        nic_count(qp->nic, COUNTER_blocks_reneged);
    }
}

bool block_receive_on_packet(struct qp *qp, const struct block_arrival *arrival, struct instant now,
                             struct nic_move *move)
{
    const bool moves = on_request(qp, arrival, now, move);
    INVARIANTS(block_receiver_check(qp));
    if (UNLIKELY(receiver_of(qp)->forgotten != receiver_of(qp)->stream.chain.forgotten)) {
        count_forgotten(qp);
    }
    if (block_receive_ready(qp)) {
        nic_schedule(qp);
    }
    return moves;
}

/* -- Moves that are done ------------------------------------------------------------------------*/

/* The memory of a move was not there. That of a SEND was the memory of its receive, which completes
 * with an error, as by RC. But if the message does not directly follow those before it (`follows`),
 * one of them may have used that receive. */
static void refuse_moved(struct qp *qp, const struct block_message *message, bool follows)
{
    const bool receives = message->opcode == BLOCK_SEND && follows;
    const struct block_piece piece = {.message = *message};
    const struct block_refusal refusal = {BLOCK_STATUS_OPERATIONAL, COUNTER_nak_operational,
                                          receives ? COMPLETION_LOCAL_PROTECTION
                                                   : COMPLETION_SUCCESS};
    (void)block_refuse_piece(qp, &piece, &refusal);
}

static void alone_moved(struct qp *qp, enum nic_move_result result)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    if (!stream->moving) {
        return;
    }
    if (result == NIC_MOVE_FAULTED) {
        refuse_moved(qp, &stream->message, true);
    } else if (block_finish(qp, &stream->message)) {
        block_responder_executed_alone(stream);
        block_progress(qp);
    }
}

static void place_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    if (move->birth == 0) {
        alone_moved(qp, result);
        return;
    }
    struct block_context *context = block_responder_moved(stream, move->psn, move->birth);
    if (context == NULL) {
        return;
    }
    if (result == NIC_MOVED) {
        block_responder_placed(stream, context, move->position);
        block_progress(qp);
        return;
    }
    /* Before its turn, the packet has to come again: a request may be refused only in order. */
    const uint64_t below = ((uint64_t)1 << move->position) - 1;
    if (context->number == block_responder_base(stream) && (context->placed & below) == below) {
        const struct block_message message = block_message_of_context(context);
        refuse_moved(qp, &message, block_responder_follows(stream, &message));
    } else {
        block_responder_unplaced(stream, context, move->position);
    }
}

static void atomic_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    struct block_receiver *receiver = receiver_of(qp);
    struct block_context *context =
        block_responder_moved(&receiver->stream, move->psn, move->birth);
    if (context == NULL) {
        return;
    }
    if (result == NIC_MOVE_FAULTED) {
        const struct block_message message = block_message_of_context(context);
        refuse_moved(qp, &message, true);
        return;
    }
    struct block_result *result_kept = block_result_room(receiver);
    CHECK(result_kept != NULL);
    *result_kept = (struct block_result){
        .number = context->number,
        .kind = (uint8_t)context->message_bytes,
        .path = (uint8_t)context->tag,
        .round = context->round,
        .kept = true,
        .due = true,
    };
    store_be64(result_kept->original, move->original);
    receiver->results_next = (receiver->results_next + 1) % receiver->results_limit;
    receiver->results_due++;
    INVARIANTS(block_receiver_check(qp));
    block_responder_executed(&receiver->stream, context);
    block_progress(qp);
}

void block_void_move(struct nic *nic, const struct nic_move *move)
{
    const bool may_hold = move->action == MOVE_BLOCK_PLACE || move->action == MOVE_BLOCK_ATOMIC;
    INVARIANTS(CHECK(!may_hold || move->held == BLOCK_HOLD_NONE ||
                     move->held < nic->block_shared->hold.count));
    if (may_hold && move->held != BLOCK_HOLD_NONE) {
        block_hold_release(&nic->block_shared->hold, move->held);
    }
}

void block_receive_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                            struct instant now)
{
    (void)now;
    block_void_move(qp->nic, move);
    if (move->epoch != qp->epoch || !reach_state_serves((enum qp_state)qp->state)) {
        return;
    }
    INVARIANTS(block_receiver_check(qp));
    if (move->action == MOVE_BLOCK_ATOMIC) {
        atomic_moved(qp, move, result);
    } else {
        place_moved(qp, move, result);
    }
    if (block_receive_ready(qp)) {
        nic_schedule(qp);
    }
}
