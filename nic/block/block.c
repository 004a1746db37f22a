/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block.c - the seam's verbs for a connection whose streams are RC or blocks, each on its own.
 */
#include "nic/block/block.h"

#include "nic/ibta/ecn.h"

static bool may_send(const struct qp *qp)
{
    return qp->state == QP_RTS || qp->state == QP_SQD;
}

/* In the error state, only the refusal of a request still leaves. */
static bool may_reply(const struct qp *qp)
{
    return may_send(qp) || qp->state == QP_RTR || (qp->state == QP_ERR && qp->last_words);
}

/* -- Turns and time -----------------------------------------------------------------------------*/

static bool requests_ready(const struct qp *qp)
{
    switch ((enum hello_asking)qp->block->ask.state) {
    case HELLO_NOT_ASKED: return qp_has_sends(qp);
    case HELLO_ASKED: return qp->block->ask.due;
    case HELLO_AGREED: return qp->block->ask.due || block_send_ready(qp);
    }
    UNREACHABLE("a question outside its enum");
}

bool block_ready(const struct qp *qp)
{
    return (may_send(qp) && requests_ready(qp)) ||
           (may_reply(qp) &&
            (rc_responder_ready(&qp->in.rc) || hello_answer_due(&qp->block->answer) ||
             (block_receives(qp) && block_receive_ready(qp))));
}

static struct instant earlier(struct instant a, struct instant b)
{
    return instant_before(a, b) ? a : b;
}

struct instant block_deadline(const struct qp *qp)
{
    if (!may_send(qp)) {
        return INSTANT_NEVER;
    }
    const struct hello_ask *ask = &qp->block->ask;
    switch ((enum hello_asking)ask->state) {
    case HELLO_NOT_ASKED: return rc_deadline(qp);
    case HELLO_ASKED: return hello_ask_deadline(ask);
    case HELLO_AGREED: return earlier(hello_ask_deadline(ask), block_send_deadline(qp));
    }
    UNREACHABLE("a question outside its enum");
}

static void arm_timer(struct qp *qp)
{
    nic_arm_timer(qp, ibta_deadline(qp, block_deadline(qp)));
}

static void schedule_if_due(struct qp *qp)
{
    if (qp->cnp_due || block_ready(qp)) {
        nic_schedule(qp);
    }
}

/* Something has happened: sets the queue pair's timer, and lists it if it has something to send.
 * After a deadline that has passed there is nothing to wait for, so it is listed at once. */
void block_went_on(struct qp *qp, struct instant now)
{
    INVARIANTS(block_streams_check(qp));
    if (qp->state == QP_ERR) {
        schedule_if_due(qp);
        return;
    }
    if (instant_reached(now, block_deadline(qp))) {
        nic_schedule(qp);
    } else {
        arm_timer(qp);
        schedule_if_due(qp);
    }
}

/* -- RC's part of a stream ----------------------------------------------------------------------*/

/* To be called after each call of RC, whose code calls nothing of blocks. If RC has put the queue
 * pair into the error state, its streams of blocks give back what they hold. If RC has asked for a
 * turn, the queue pair is listed, provided that it has something to send. */
static void after_rc(struct qp *qp, enum qp_state before)
{
    if (UNLIKELY(qp->state == QP_ERR && before != QP_ERR)) {
        block_withdraw(qp);
    }
    INVARIANTS(block_streams_check(qp));
    if (qp->asks_turn) {
        qp->asks_turn = false;
        schedule_if_due(qp);
    }
}

static bool rc_takes_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                            struct nic_move *move)
{
    const enum qp_state before = (enum qp_state)qp->state;
    const bool moves = rc_on_packet(qp, arrival, now, move);
    after_rc(qp, before);
    return moves;
}

void block_on_fetched(struct qp *qp, struct instant now)
{
    const enum qp_state before = (enum qp_state)qp->state;
    rc_on_fetched(qp, now);
    after_rc(qp, before);
}

void block_on_placed(struct qp *qp, struct instant now)
{
    const enum qp_state before = (enum qp_state)qp->state;
    rc_on_placed(qp, now);
    after_rc(qp, before);
}

/* -- Life ---------------------------------------------------------------------------------------*/

void block_start_watching(struct qp *qp)
{
    if (block_is_spoken(&qp->nic->limits) && qp->attributes.av.peer != 0) {
        block_watch_begin(qp);
        if (qp->nic->limits.block.transport == NIC_TRANSPORT_BLOCK) {
            (void)block_join(qp);
        }
    }
}

void block_retune(struct qp *qp, struct instant now)
{
    block_hello_rethink(qp);
    if (block_sends(qp)) {
        block_send_retune(qp, now);
        arm_timer(qp);
    } else {
        rc_retune(qp, now);
    }
    INVARIANTS(block_streams_check(qp));
}

/* RC gets the new limit as well, because the peer's requests may come by RC again. */
bool block_may_limit(const struct qp *qp, uint32_t reads)
{
    return rc_may_limit(qp, reads) && (!block_receives(qp) || block_receive_may_limit(qp, reads));
}

void block_limit(struct qp *qp, uint32_t reads)
{
    rc_limit(qp, reads);
    if (block_receives(qp)) {
        block_receive_limit_results(qp, reads);
    }
}

void block_drain(struct qp *qp)
{
    INVARIANTS(block_streams_check(qp));
    if (!block_sends(qp)) {
        rc_drain(qp);
        after_rc(qp, QP_SQD);
    } else if (block_send_drained(qp)) {
        qp_note_drained(qp);
    }
}

/* -- Arrival ------------------------------------------------------------------------------------*/

/* A request came by RC, though there is a session. True: RC executes it, because no block was
 * executed yet: the peer has not received our WELCOME, and goes on by RC. */
static bool is_for_rc(struct qp *qp, const struct nic_arrival *arrival, uint32_t traits)
{
    if (!ibta_admits(qp, arrival, traits)) {
        return false;
    }
    if (!block_receive_untouched(qp)) {
        return nic_drop(qp->nic, COUNTER_drop_rc_beside_blocks);
    }
    if (rc_responder_is_next(&qp->in.rc, &arrival->packet)) {
        block_hello_drop_session(qp);
    }
    return true;
}

bool block_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                     struct nic_move *move)
{
    const uint32_t traits = roce_opcode(arrival->packet.opcode)->traits;
    INVARIANTS(block_streams_check(qp));
    if ((traits & ROCE_IS_RESPONSE) == 0) {
        return (!block_receives(qp) || is_for_rc(qp, arrival, traits)) &&
               rc_takes_packet(qp, arrival, now, move);
    }
    if (block_sends(qp)) {
        /* All requests by RC were answered before the first block left. */
        return nic_drop(qp->nic, COUNTER_drop_rc_beside_blocks);
    }
    const bool moves = rc_takes_packet(qp, arrival, now, move);
    block_watch(qp, now);
    return moves;
}

/* The answers to blocks report congestion marks, so a stream of blocks ignores CNPs. The other
 * direction may still be RC, and its READ responses obey CNPs. */
void block_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now)
{
    if (block_sends(qp) && block_receives(qp)) {
        nic_count(qp->nic, COUNTER_rp_cnp_ignored);
    } else {
        ecn_on_cnp(qp, arrival, now);
    }
}

void block_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                    struct instant now)
{
    const enum qp_state before = (enum qp_state)qp->state;
    switch ((enum move_action)move->action) {
    case MOVE_BLOCK_PLACE:
    case MOVE_BLOCK_ATOMIC:
        block_receive_on_moved(qp, move, result, now);
        qp->nic->holder = qp;
        block_went_on(qp, now);
        return;
    case MOVE_BLOCK_DATA:
        if (move->epoch == qp->send_epoch) {
            INVARIANTS(CHECK(block_sends(qp))); /* There is no way back from blocks. */
            block_send_on_data_moved(qp, move, result);
            block_went_on(qp, now);
        }
        return;
    case MOVE_REQUEST:
    case MOVE_ATOMIC:
    case MOVE_RESPONSE:
    case MOVE_UNRELIABLE:
        rc_on_moved(qp, move, result);
        after_rc(qp, before);
        return;
    }
    UNREACHABLE("a move action outside its enum");
}

bool block_next_held(struct qp *qp, struct nic_move *move)
{
    return qp->state != QP_ERR && block_receives(qp) && block_receive_next_held(qp, move);
}

/* -- Departure ----------------------------------------------------------------------------------*/

static bool next_reply(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    if (block_hello_next_welcome(qp, departure)) {
        return true;
    }
    if (rc_next_reply(qp, now, departure)) {
        departure_seal(qp, departure);
        return true;
    }
    return block_receives(qp) && block_receive_next(qp, now, departure);
}

/* Before a HELLO asks for blocks, no new request begins, and those that have begun are finished (as
 * in SQD). */
static bool next_of_rc(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    const bool asks = block_hello_wants(qp, now);
    if (asks && rc_requester_drained(&qp->out.rc, &qp->sends)) {
        block_hello_begin(qp, now);
        return block_hello_next(qp, now, departure);
    }
    if (!rc_next_request(qp, asks || qp->state == QP_SQD, now, departure)) {
        return false;
    }
    departure_seal(qp, departure);
    if (qp->watching == WATCH_ROUND_TRIPS) {
        block_watch_departure(qp, departure, now);
    }
    return true;
}

static bool next_request(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    switch ((enum hello_asking)qp->block->ask.state) {
    case HELLO_NOT_ASKED: return next_of_rc(qp, now, departure);
    case HELLO_ASKED: return block_hello_next(qp, now, departure);
    case HELLO_AGREED: break;
    }
    return block_hello_next(qp, now, departure) || block_send_next(qp, now, departure);
}

/* Replies and requests take turns, so that neither starves the other. */
static bool next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    for (uint32_t turn = 0; turn < 2; turn++) {
        qp->reply_turn = !qp->reply_turn;
        if (qp->reply_turn ? may_reply(qp) && next_reply(qp, now, departure)
                           : may_send(qp) && next_request(qp, now, departure)) {
            return true;
        }
    }
    return false;
}

/* The queue pair may be listed because its deadline had passed. It may leave the list now, so its
 * timer is set. */
bool block_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    INVARIANTS(block_streams_check(qp));
    const enum qp_state before = (enum qp_state)qp->state;
    const bool found = (may_reply(qp) && block_challenge_next(qp, now, departure)) ||
                       next_packet(qp, now, departure);
    after_rc(qp, before);
    if (qp->state != QP_ERR && qp->block->ask.state != HELLO_NOT_ASKED) {
        arm_timer(qp);
    }
    INVARIANTS(CHECK(!found || departure->av == &qp->attributes.av));
    return found;
}

void block_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    INVARIANTS(CHECK(departure->payload_bytes > 0)); /* An empty payload cannot be missing. */
    const enum qp_state before = (enum qp_state)qp->state;
    const uint8_t opcode = departure->headers[0];
    if (!block_is(opcode)) {
        rc_on_gather_failed(qp, departure);
        after_rc(qp, before);
    } else if (opcode == BLOCK_DATA) {
        block_receive_on_gather_failed(qp, departure);
    } else {
        block_send_on_gather_failed(qp, departure);
    }
}

void block_on_blocked(struct qp *qp, struct instant now)
{
    struct hello_ask *ask = &qp->block->ask;
    INVARIANTS(block_streams_check(qp));
    if (!may_send(qp)) {
        return;
    }
    if (ask->state == HELLO_NOT_ASKED && block_hello_wants(qp, now) &&
        rc_requester_drained(&qp->out.rc, &qp->sends)) {
        block_hello_begin(qp, now);
    }
    switch ((enum hello_asking)ask->state) {
    case HELLO_NOT_ASKED: rc_on_blocked(qp, now); return;
    case HELLO_ASKED: hello_ask_blocked(ask, now); break;
    case HELLO_AGREED: block_send_on_blocked(qp, now); break;
    }
    arm_timer(qp);
}

/* -- Time ---------------------------------------------------------------------------------------*/

bool block_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue)
{
    INVARIANTS(block_streams_check(qp));
    switch ((enum hello_asking)qp->block->ask.state) {
    case HELLO_NOT_ASKED: return rc_on_deadline(qp, overdue);
    case HELLO_ASKED:
        if (hello_ask_is_overdue(&qp->block->ask, now)) {
            *overdue = (struct nic_overdue){.since = qp->block->ask.left, .last = true};
            return true;
        }
        block_hello_on_deadline(qp, now);
        break;
    case HELLO_AGREED:
        block_hello_on_deadline(qp, now);
        if (instant_reached(now, block_send_deadline(qp)) &&
            block_send_on_deadline(qp, now, overdue)) {
            return true;
        }
        break;
    }
    block_went_on(qp, now);
    return false;
}

void block_on_timeout(struct qp *qp, struct instant now)
{
    INVARIANTS(block_streams_check(qp));
    if (block_sends(qp)) {
        block_send_on_timeout(qp, now);
        block_went_on(qp, now);
    } else if (qp->block->ask.state == HELLO_ASKED) {
        block_hello_on_deadline(qp, now);
        block_went_on(qp, now);
    } else {
        const enum qp_state before = (enum qp_state)qp->state;
        rc_on_timeout(qp, now);
        after_rc(qp, before);
        block_watch(qp, now);
    }
}

void block_on_unread(struct qp *qp, struct instant now)
{
    INVARIANTS(block_streams_check(qp));
    if (block_sends(qp)) {
        block_send_on_unread(qp, now);
        block_went_on(qp, now);
    } else if (qp->block->ask.state == HELLO_ASKED) {
        hello_ask_wait_on(&qp->block->ask, now);
        block_went_on(qp, now);
    } else {
        rc_on_unread(qp, now);
    }
}

/* -- Reports and checks -------------------------------------------------------------------------*/

void block_report(const struct qp *qp, struct qp_report *report)
{
    report->sends_blocks = block_sends(qp);
    report->receives_blocks = block_receives(qp);
    if (report->sends_blocks) {
        block_send_report(qp, report);
        return;
    }
    rc_report(qp, report);
    block_watch_report(qp, report);
}

/* A queue pair that could go on is listed. One that waits for time to pass is listed, or has a
 * timer that fires no later than its deadline. */
static void check_blocks_duties(const struct qp *qp)
{
    const struct instant deadline = block_deadline(qp);
    const bool listed = qp->listing != QP_LISTED_NOWHERE || qp->nic->turns_taken;
    CHECK(listed || qp->paused || !may_reply(qp) || !rc_responder_ready(&qp->in.rc));
    CHECK(listed || !may_send(qp) || qp->block->ask.state != HELLO_ASKED || !qp->block->ask.due);
    if (deadline.ns != UINT64_MAX) {
        CHECK(timer_is_set(&qp->timer) || listed);
        CHECK(listed || !instant_before(deadline, qp->timer.at));
    }
}

static void check_replies(const struct qp *qp)
{
    const bool listed = qp->listing != QP_LISTED_NOWHERE || qp->nic->turns_taken;
    CHECK(listed || !may_reply(qp) || !hello_answer_due(&qp->block->answer));
    CHECK(listed || !may_reply(qp) || !block_receives(qp) || !block_receive_ready(qp));
}

void block_check_duties(const struct qp *qp)
{
    if (qp->state < QP_RTR) {
        return;
    }
    check_replies(qp);
    if (qp->block->ask.state == HELLO_NOT_ASKED &&
        qp->nic->limits.block.transport != NIC_TRANSPORT_AUTO) {
        rc_check_duties(qp);
    } else {
        check_blocks_duties(qp);
    }
}

void block_check(const struct qp *qp)
{
    if (qp->state < QP_RTR || qp->state == QP_ERR) {
        return;
    }
    block_streams_check(qp);
    if (block_sends(qp)) {
        block_send_check(qp);
    } else {
        rc_check(qp);
    }
    if (block_receives(qp)) {
        block_receive_check(qp);
    }
}
