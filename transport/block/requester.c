/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester - packets that leave: re-sent ones first, then new ones in posting order.
 */
#include "transport/block/requester_blocks.h"

#include "transport/common/timing.h"

static void describe(const struct block_requester *requester, const struct send_queue *queue,
                     uint32_t bn, struct block_outgoing *out)
{
    const struct block_sending *block = block_at(requester, bn);
    struct work *work = block_work(queue, block);
    const uint8_t opcode = work_is(work, WORK_IS_SEND)    ? BLOCK_SEND
                           : work_is(work, WORK_IS_WRITE) ? BLOCK_WRITE
                           : work->kind == WORK_READ      ? BLOCK_READ
                                                          : BLOCK_ATOMIC;
    *out = (struct block_outgoing){
        .work = work,
        .opcode = opcode,
        .last_position = block->last,
        .path = block->path,
        .round = block->round,
        .last_block = bn + 1 == work_blocks_end(work),
        .early = block->early,
        .number = bn,
        .index = bn - work->first_block,
    };
}

/* Its payload. */
static void describe_payload(const struct block_requester *requester, uint8_t position,
                             struct block_outgoing *out)
{
    const uint32_t packet = out->index * BLOCK_POSITIONS + position;
    out->position = position;
    out->offset = packet * requester->mtu_bytes;
    out->last = packet + 1 == out->work->packets;
    out->bytes = out->last ? out->work->bytes - out->offset : requester->mtu_bytes;
}

/* The packet leaves: TSN, timers. */
static void depart(struct block_requester *requester, struct block_outgoing *out,
                   struct instant now)
{
    const uint32_t cost = out->bytes + requester->packet_cost;
    out->tsn =
        path_sent(block_path_of(requester, out->path), cost == 0 ? 1 : cost, out->ack_request, now);
    /* Nobody gives up for a probe of a path that is idle. */
    if (requester->retry_at.ns == UINT64_MAX && requester->oldest != requester->next) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
    if (requester->probe_at.ns == UINT64_MAX) {
        block_arm_probe(requester, now);
    }
}

static bool next_probe(struct block_requester *requester, const struct send_queue *queue,
                       struct instant now, struct block_outgoing *out)
{
    const bool in_use = requester->oldest != requester->next || queue->next != queue->tail;
    struct paths_probe probe;
    if (LIKELY((requester->paths.probes | requester->paths.away) == 0) ||
        !paths_next_probe(&requester->paths, in_use, now, &probe)) {
        return false;
    }
    *out = (struct block_outgoing){
        .opcode = BLOCK_PROBE,
        .path = probe.path,
        .round = probe.round,
        .own_route = probe.own_route,
        .number = requester->next - 1,
        .ack_request = true,
    };
    depart(requester, out, now);
    return true;
}

/* Positions that the next request of a block of a READ asks for. */
static uint64_t next_wanted(const struct block_requester *requester, uint64_t sent, uint8_t last)
{
    const uint32_t before = (uint32_t)__builtin_popcountll(sent);
    const uint32_t left = last + 1u - before;
    const uint32_t most = block_read_positions(requester);
    const uint32_t count = left < most ? left : most;
    return block_positions((uint8_t)(count - 1)) << before;
}

/* A block that is half sent on a path that was left goes on elsewhere. */
static bool reopen(struct block_requester *requester, uint8_t path, uint8_t *elsewhere,
                   struct instant now)
{
    *elsewhere = path;
    if (!block_path_of(requester, path)->suspect) {
        return block_path_has_room(requester, path, now);
    }
    const uint8_t other = paths_choose(&requester->paths, false, now);
    const uint32_t bn = requester->open_block[path];
    const bool taken = other != PATH_NONE && (requester->open >> other & 1) != 0;
    if (other == PATH_NONE || (taken && !block_number_before(bn, requester->open_block[other]))) {
        block_wake_at(requester, paths_room_at(&requester->paths, now), now);
        return false;
    }
    if (taken) {
        /* The two blocks change places: a READ may have to wait for the block that is half sent
         * before it. */
        requester->open_block[path] = requester->open_block[other];
        block_at(requester, requester->open_block[path])->path = path;
    } else {
        requester->open &= (uint16_t) ~(1u << path);
    }
    requester->open |= (uint16_t)(1u << other);
    requester->open_block[other] = bn;
    block_at(requester, bn)->path = other;
    *elsewhere = other;
    return true;
}

/* Is there room for the block that goes again? A block that is half sent stays on its path, unless
 * that path was left. */
static bool resend_goes(struct block_requester *requester, struct instant now)
{
    struct block_sending *block = block_at(requester, requester->resending);
    if (!block_is_sent(block)) {
        uint8_t path;
        return reopen(requester, block->path, &path, now);
    }
    return block_path_has_room(requester, block->path, now) ||
           block_resend_path(requester, block, now);
}

/* Is something to go again now? It is chosen then. */
static bool has_resent(struct block_requester *requester, const struct send_queue *queue,
                       struct instant now)
{
    if (requester->resend_left == 0 && instant_reached(now, requester->resend_at)) {
        block_resend_begin(requester, queue, now);
    }
    if (requester->resend_left == 0) {
        block_wake_at(requester, requester->resend_at, now);
        return false;
    }
    return true;
}

static bool next_resent(struct block_requester *requester, const struct send_queue *queue,
                        struct instant now, struct block_outgoing *out)
{
    if (!resend_goes(requester, now)) {
        block_resend_give_way(requester, queue, now);
        if (requester->resend_left == 0 || !resend_goes(requester, now)) {
            return false;
        }
    }
    const uint32_t bn = requester->resending;
    struct block_sending *block = block_at(requester, bn);
    describe(requester, queue, bn, out);
    out->resent = true;
    if (block->wants_data) {
        out->wanted = requester->resend_left;
        requester->resend_left = 0;
        out->ack_request = !block_is_executed(requester, bn);
        block->due = instant_after(now, block_data_patience_ns(requester));
        block_note_missing(requester, bn);
    } else {
        describe_payload(requester, (uint8_t)__builtin_ctzll(requester->resend_left), out);
        requester->resend_left &= requester->resend_left - 1;
        out->ack_request = requester->resend_left == 0;
    }
    depart(requester, out, now);
    block->newest = out->tsn;
    block->echoed = false;
    return true;
}

/* -- New packets --------------------------------------------------------------------------------*/

static void begin_message(struct block_requester *requester, struct work *work)
{
    work->started = true;
    work->first_block = requester->next;
    work->packets = work_is_local(work) ? 0
                    : work_is_atomic(work)
                        ? 1
                        : block_message_packets(work->bytes, requester->mtu_bytes);
    if (work_is_local(work)) {
        return;
    }
    const uint32_t end = work_blocks_end(work);
    if (work_takes_receive(work)) {
        work->receive_number = requester->receive_number++;
        requester->receive_end = end;
        requester->receive_taken = true;
    } else {
        work->receive_number = requester->receive_number;
    }
    if (work_wants_response(work)) {
        work->awaited = work->packets;
        requester->reads_out++;
    } else {
        requester->plain_end = end;
    }
    if (work_is_atomic(work)) {
        requester->atomics_open++;
        block_ranges_add_atomic(&requester->ranges, end);
    } else if (work_is(work, WORK_IS_WRITE)) {
        const struct block_range range = block_range_of(work);
        block_ranges_add(&requester->ranges, &range, end);
    }
}

static struct block_sending *begin_block(struct block_requester *requester,
                                         const struct send_queue *queue, const struct work *work,
                                         uint8_t path, bool early)
{
    const uint32_t bn = requester->next++;
    struct block_sending *block = block_at(requester, bn);
    *block = (struct block_sending){
        .due = INSTANT_NEVER,
        .work = queue->next,
        .last = block_last_position(work->packets, bn - work->first_block),
        .path = path,
        .again_from = requester->base,
        .early = early,
        .wants_data = work_wants_response(work),
        .atomic = work_is_atomic(work),
    };
    if (work->kind == WORK_READ) {
        requester->blocks_read++;
    }
    block_note_found(requester, bn);
    if (block->wants_data) {
        block_note_missing(requester, bn);
    }
    return block;
}

/* The next request that goes on the wire; NULL: none. */
static const struct work *next_on_wire(const struct send_queue *queue)
{
    for (uint32_t at = queue->next; at != queue->tail; at++) {
        const struct work *work = send_queue_at(queue, at);
        if (!work_is_local(work)) {
            return work;
        }
    }
    return NULL;
}

static bool wants_answer(const struct block_requester *requester, const struct send_queue *queue,
                         bool draining, const struct block_outgoing *out)
{
    if (path_wants_answer(block_path_of(requester, out->path))) {
        return true;
    }
    const bool data = work_wants_response(out->work);
    if (!data && out->position == BLOCK_POSITIONS - 1) {
        return true;
    }
    const bool block_ends = data || out->position == out->last_position;
    if (block_ends && out->number % ((requester->window + 3) / 4) == 0) {
        return true;
    }
    if (!out->last || (data && !block_number_before(requester->base, requester->plain_end))) {
        return false;
    }
    const struct work *next = next_on_wire(queue);
    return next == NULL || draining || !block_may_begin(requester, next) ||
           (requester->receives_limited && work_takes_receive(out->work) &&
            out->work->receive_number + 1 == requester->receive_limit);
}

/* The next piece of a block leaves. */
static void send_new(struct block_requester *requester, const struct send_queue *queue, uint32_t bn,
                     bool draining, struct instant now, struct block_outgoing *out)
{
    struct block_sending *block = block_at(requester, bn);
    describe(requester, queue, bn, out);
    uint64_t positions;
    if (out->opcode == BLOCK_READ) {
        positions = next_wanted(requester, block->sent, block->last);
        out->wanted = positions;
        out->last = out->last_block && (block->sent | positions) == block_positions(block->last);
        requester->read_flight += block_cost_of(requester, out->work, out->index, positions);
    } else if (out->opcode == BLOCK_ATOMIC) {
        positions = 1;
        out->last = true;
        requester->read_flight += block_cost_of(requester, out->work, 0, positions);
    } else {
        const uint8_t position = (uint8_t)__builtin_popcountll(block->sent);
        positions = UINT64_C(1) << position;
        describe_payload(requester, position, out);
    }
    block->sent |= positions;
    if (block->wants_data) {
        block->due = instant_after(now, block_data_patience_ns(requester));
        requester->resend_at = (struct instant){0};
    }
    const uint16_t bit = (uint16_t)(1u << block->path);
    requester->current = block->path;
    requester->open_block[block->path] = bn;
    requester->open =
        (uint16_t)(block_is_sent(block) ? requester->open & ~bit : requester->open | bit);
    out->ack_request = wants_answer(requester, queue, draining, out);
    depart(requester, out, now);
    block->newest = out->tsn;
    block->echoed = false;
    if (out->last && next_on_wire(queue) == NULL && block_was_lossy(requester, out->path, now)) {
        paths_want_probe(&requester->paths, out->path);
    }
}

/* The bytes that a READ's next request asks for; 0: it is no READ. */
static uint32_t asks_for(const struct block_requester *requester, const struct work *work,
                         uint64_t sent, uint8_t last)
{
    const uint32_t packet = requester->mtu_bytes + requester->packet_cost;
    return work->kind != WORK_READ
               ? 0
               : (uint32_t)__builtin_popcountll(next_wanted(requester, sent, last)) * packet;
}

/* The block that is half sent on this path goes on, if there is room. */
static bool continue_on(struct block_requester *requester, const struct send_queue *queue,
                        uint8_t path, bool draining, struct instant now, struct block_outgoing *out)
{
    const uint32_t bn = requester->open_block[path];
    const struct block_sending *block = block_at(requester, bn);
    const uint32_t asked = asks_for(requester, block_work(queue, block), block->sent, block->last);
    if (!block_link_has_room(requester, asked) || !reopen(requester, path, &path, now)) {
        return false;
    }
    send_new(requester, queue, bn, draining, now, out);
    return true;
}

/* Block base goes on before a block behind it goes again: that block may find no room at the peer
 * until base is executed, and would go again for ever. */
static bool continue_base(struct block_requester *requester, const struct send_queue *queue,
                          bool draining, struct instant now, struct block_outgoing *out)
{
    if (requester->open == 0 || requester->base == requester->next ||
        requester->mode != BLOCK_REQUESTER_SENDING || requester->resending == requester->base) {
        return false;
    }
    const uint8_t path = block_at(requester, requester->base)->path;
    return (requester->open >> path & 1) != 0 && requester->open_block[path] == requester->base &&
           continue_on(requester, queue, path, draining, now, out);
}

/* A block that is half sent goes on: that of the newest packet first, so that packets of one
 * message leave in a row. */
static bool continue_block(struct block_requester *requester, const struct send_queue *queue,
                           bool draining, struct instant now, struct block_outgoing *out)
{
    if (requester->open == 0) {
        return false;
    }
    for (uint32_t i = 0; i < requester->paths.count; i++) {
        const uint8_t path = (uint8_t)((requester->current + i) % requester->paths.count);
        if ((requester->open >> path & 1) != 0 &&
            continue_on(requester, queue, path, draining, now, out)) {
            return true;
        }
    }
    return false;
}

static bool next_new(struct block_requester *requester, struct send_queue *queue, bool draining,
                     struct instant now, struct block_outgoing *out)
{
    if (continue_block(requester, queue, draining, now, out)) {
        return true;
    }
    if (queue->next == queue->tail) {
        return false;
    }
    struct work *work = send_queue_at(queue, queue->next);
    if (!work->started && (draining || !block_may_begin(requester, work))) {
        return false;
    }
    if (work_is_local(work)) {
        begin_message(requester, work);
        *out = (struct block_outgoing){.work = work};
        queue->next++;
        return true;
    }
    const bool early = work->started ? block_at(requester, requester->next - 1)->early
                                     : block_is_early(requester, work);
    if (!block_window_has_room(requester, work) ||
        !block_link_has_room(requester, asks_for(requester, work, 0, BLOCK_POSITIONS - 1))) {
        return false;
    }
    const bool alone = requester->oldest == requester->next;
    const bool lone = work->bytes <= requester->mtu_bytes && queue->next + 1 == queue->tail;
    const uint8_t path = paths_choose(&requester->paths, lone, now);
    if (path == PATH_NONE || (requester->open >> path & 1) != 0) {
        block_wake_at(requester, paths_room_at(&requester->paths, now), now);
        return false;
    }
    if (!work->started) {
        begin_message(requester, work);
    }
    begin_block(requester, queue, work, path, early);
    if (requester->next == work_blocks_end(work)) {
        queue->next++;
    }
    send_new(requester, queue, requester->next - 1, draining, now, out);
    out->alone = alone;
    return true;
}

static void resume(struct block_requester *requester, struct instant now)
{
    requester->mode = BLOCK_REQUESTER_SENDING;
    requester->resume_at = INSTANT_NEVER;
    requester->paused = true;
    for (uint32_t i = 0; i < requester->paths.count; i++) {
        requester->resumed[i] = block_path_of(requester, (uint8_t)i)->next;
    }
    if (requester->base != requester->next) {
        block_at(requester, requester->base)->state = BLOCK_SENDING_DUE;
        block_note_missing(requester, requester->base);
        block_arm_probe(requester, now);
    }
    if (requester->oldest != requester->next) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
}

static bool next_packet(struct block_requester *requester, struct send_queue *queue, bool draining,
                        struct instant now, struct block_outgoing *out)
{
    requester->wake_at = INSTANT_NEVER;
    if (requester->mode == BLOCK_REQUESTER_STOPPED) {
        return false;
    }
    if (requester->mode == BLOCK_REQUESTER_PAUSING) {
        if (!instant_reached(now, requester->resume_at)) {
            return false;
        }
        resume(requester, now);
    }
    return next_probe(requester, queue, now, out) ||
           (has_resent(requester, queue, now) &&
            (continue_base(requester, queue, draining, now, out) ||
             next_resent(requester, queue, now, out))) ||
           (requester->mode == BLOCK_REQUESTER_SENDING &&
            next_new(requester, queue, draining, now, out));
}

bool block_requester_next(struct block_requester *requester, struct send_queue *queue,
                          bool draining, struct instant now, struct block_outgoing *out)
{
    INVARIANTS(block_requester_check(requester, queue));
    const bool some = next_packet(requester, queue, draining, now, out);
    INVARIANTS(block_requester_check(requester, queue));
    return some;
}

bool block_requester_ready(const struct block_requester *requester, const struct send_queue *queue)
{
    switch ((enum block_requester_mode)requester->mode) {
    case BLOCK_REQUESTER_STOPPED:
    case BLOCK_REQUESTER_PAUSING: return false;
    case BLOCK_REQUESTER_SENDING:
        if (queue->next != queue->tail || requester->open != 0) {
            return true;
        }
        break;
    case BLOCK_REQUESTER_REFUSED: break;
    }
    return requester->paths.probes != 0 || requester->resend_left != 0 ||
           block_next_missing(requester, requester->oldest) != requester->next;
}
