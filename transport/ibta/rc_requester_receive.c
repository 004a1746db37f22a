/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_requester_receive - acknowledgements, responses and timeouts of a requester.
 */
#include <string.h>

#include "transport/common/timing.h"
#include "transport/ibta/rc_requester.h"
#include "transport/ibta/rc_window.h"
#include "transport/ibta/segmentation.h"

static void stop(struct rc_requester *requester)
{
    requester->mode = RC_REQUESTER_STOPPED;
    requester->retry_at = INSTANT_NEVER;
}

static struct rc_progress failed(struct rc_requester *requester, enum rc_requester_verdict verdict,
                                 struct work *work, enum completion_status status)
{
    stop(requester);
    return (struct rc_progress){verdict, work, 0, status};
}

/* Resend from the oldest unacknowledged PSN. */
static void go_back(struct rc_requester *requester, struct send_queue *queue)
{
    uint32_t position = queue->next;
    if (rc_oldest_in_flight(requester, queue, &position) != NULL) {
        queue->next = position;
    }
    requester->send = requester->unacked;
    requester->asked = requester->unacked; /* The request for an answer may be lost. */
    requester->asks = false;
    requester->reads_out = 0;
    requester->window_shut = false;
}

/* `unacked` moves up to `upto`: retries start afresh, and the timer runs for the packets that are
 * left. */
static void advance(struct rc_requester *requester, struct psn upto, struct instant now)
{
    const int32_t ahead = psn_distance(requester->unacked, upto);
    if (ahead <= 0) {
        return;
    }
    const uint32_t packets = (uint32_t)ahead;
    requester->unacked = upto;
    if (psn_distance(requester->send, upto) > 0) {
        requester->send = upto;
    }
    if (psn_distance(requester->asked, upto) > 0) {
        requester->asked = upto;
    }
    requester->gap_known = false;
    requester->retries_left = requester->retry_limit;
    requester->rnr_left = requester->rnr_limit;
    const bool idle = psn_equal(upto, requester->next);
    requester->retry_at =
        idle ? INSTANT_NEVER : instant_after(now, ack_timeout_ns(requester->timeout_code));
    rc_window_grow(requester, packets);
}

/* While resending, the cursor may stand on requests that an acknowledgement has now covered. */
static void skip_acknowledged(const struct rc_requester *requester, struct send_queue *queue)
{
    while (queue->next != queue->tail) {
        const struct work *work = send_queue_at(queue, queue->next);
        if (!work->started || work_covers(work, requester->send)) {
            return;
        }
        queue->next++;
    }
}

/* Spends one retry and begins to resend; fails the oldest request when none is left. */
static struct rc_progress retry(struct rc_requester *requester, struct send_queue *queue,
                                enum rc_requester_verdict verdict)
{
    uint32_t position = queue->head;
    struct work *oldest = rc_oldest_in_flight(requester, queue, &position);
    if (requester->retries_left == 0) {
        return failed(requester, RC_FAILED, oldest, COMPLETION_RETRY_EXCEEDED);
    }
    requester->retries_left--;
    rc_window_shrink(requester, queue);
    go_back(requester, queue);
    return (struct rc_progress){verdict, NULL, 0, COMPLETION_SUCCESS};
}

/* A response is missing at `unacked`. Responses that were already on their way tell of the same
 * gap again and again; only the first one counts, the timer covers the rest. */
static struct rc_progress missing_response(struct rc_requester *requester, struct send_queue *queue)
{
    if (requester->gap_known && psn_equal(requester->gap, requester->unacked)) {
        return (struct rc_progress){RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    }
    requester->gap_known = true;
    requester->gap = requester->unacked;
    return retry(requester, queue, RC_IMPLIED_NAK);
}

/* Moves over everything before `upto` that needs no response; true if a request that wants one
 * stands in between and has not got it. Counts from the oldest request in flight: behind one of
 * PSN_HALF packets `upto` lies more than half of all PSNs ahead of where that began. */
static bool acknowledge(struct rc_requester *requester, struct send_queue *queue, struct psn upto,
                        struct instant now)
{
    bool missing = false;
    uint32_t at;
    const struct work *oldest = rc_oldest_in_flight(requester, queue, &at);
    CHECK(oldest != NULL);
    for (const struct psn from = oldest->first; at != queue->tail; at++) {
        const struct work *work = send_queue_at(queue, at);
        if (!work->started || psn_count(from, work->first) >= psn_count(from, upto)) {
            break;
        }
        if (work_wants_response(work)) {
            missing = true;
            upto = work->first;
            break;
        }
    }
    advance(requester, upto, now);
    skip_acknowledged(requester, queue);
    rc_window_reopen(requester, queue);
    return missing;
}

/* Does the acknowledgement cover the oldest request alone, one of one packet that wants no
 * response, while nothing is sent again? Then `unacked` moves on, and that is all: the short
 * way. */
static bool covers_plain(const struct rc_requester *requester, const struct send_queue *queue,
                         struct psn psn)
{
    if (queue->head == queue->next || requester->window_shut ||
        !psn_equal(requester->send, requester->next)) {
        return false;
    }
    const struct work *work = send_queue_at(queue, queue->head);
    return psn_equal(work->first, psn) && psn_equal(requester->unacked, psn) &&
           work->packets == 1 && !work_wants_response(work);
}

/* The long way comes to the same. */
static void check_plain(const struct rc_requester *requester, const struct send_queue *queue,
                        struct psn upto, struct instant now)
{
    struct rc_requester by_long = *requester, by_short = *requester;
    struct send_queue passed = *queue;
    CHECK(!acknowledge(&by_long, &passed, upto, now));
    advance(&by_short, upto, now);
    CHECK(memcmp(&by_long, &by_short, sizeof(by_long)) == 0);
    CHECK(memcmp(&passed, queue, sizeof(passed)) == 0);
}

static void learn_credits(struct rc_requester *requester, uint8_t code, uint32_t msn)
{
    const bool known = requester->credits_known;
    requester->credits_known = code != ROCE_AETH_CREDITS_UNLIMITED;
    if (!requester->credits_known) {
        return;
    }
    /* The MSN is 24 bits of our serial number, and never ahead of it. */
    const uint32_t behind = (requester->serial - msn) & ROCE_24_BITS;
    const uint32_t limit = requester->serial - behind + credits_decode(code);
    /* Receives that were posted stay: if it seems to fall, the code was rounded down (table 46). */
    if (!known || (int32_t)(limit - requester->credit_serial) > 0) {
        requester->credit_serial = limit;
    }
}

static struct rc_progress wait_for_receiver(struct rc_requester *requester,
                                            struct send_queue *queue, uint8_t code,
                                            struct instant now)
{
    uint32_t position = queue->head;
    struct work *oldest = rc_oldest_in_flight(requester, queue, &position);
    if (oldest == NULL) {
        return (struct rc_progress){RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    }
    if (requester->rnr_limit != RNR_RETRY_FOREVER) {
        if (requester->rnr_left == 0) {
            return failed(requester, RC_FAILED, oldest, COMPLETION_RNR_RETRY_EXCEEDED);
        }
        requester->rnr_left--;
    }
    go_back(requester, queue);
    requester->mode = RC_REQUESTER_WAITING_RNR;
    requester->resume_at = instant_after(now, rnr_timer_ns(code));
    requester->retry_at = INSTANT_NEVER;
    return (struct rc_progress){RC_RNR_NAK, NULL, 0, COMPLETION_SUCCESS};
}

/* The request that PSN belongs to; NULL if none that is in flight. */
static struct work *work_of(const struct send_queue *queue, struct psn psn)
{
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        struct work *work = send_queue_at(queue, at);
        if (!work->started) {
            return NULL;
        }
        if (work_covers(work, psn)) {
            return work;
        }
    }
    return NULL;
}

static enum completion_status status_of(uint8_t syndrome)
{
    switch (syndrome) {
    case ROCE_NAK_INVALID_REQUEST: return COMPLETION_REMOTE_INVALID_REQUEST;
    case ROCE_NAK_REMOTE_ACCESS: return COMPLETION_REMOTE_ACCESS;
    default: return COMPLETION_REMOTE_OPERATION;
    }
}

/* A fatal NAK says that everything before `psn` was executed, but READs and atomics before it whose
 * responses are missing have to be asked for again, as behind any acknowledgement (9.7.5.1.2). */
static struct rc_progress refused(struct rc_requester *requester, struct send_queue *queue,
                                  struct psn psn, uint8_t syndrome, struct instant now)
{
    struct work *work = work_of(queue, psn);
    uint32_t position;
    const bool missing = acknowledge(requester, queue, psn, now) &&
                         rc_oldest_in_flight(requester, queue, &position) != work;
    if (!missing) {
        return failed(requester, RC_FAILED, work, status_of(syndrome));
    }
    if (!requester->refusal) {
        requester->refusal = true;
        work->status = (uint8_t)status_of(syndrome);
    }
    return missing_response(requester, queue);
}

/* A response has come: if none is missing any more before a request that was refused, that one's
 * turn has come. */
static void settle_refusal(struct rc_requester *requester, struct send_queue *queue,
                           struct instant now)
{
    if (LIKELY(!requester->refusal)) {
        return;
    }
    uint32_t at = queue->head;
    while (send_queue_at(queue, at)->status == COMPLETION_SUCCESS) {
        at++;
        CHECK(at != queue->tail);
    }
    if (!acknowledge(requester, queue, send_queue_at(queue, at)->first, now)) {
        stop(requester);
    }
}

static struct rc_progress on_ack(struct rc_requester *requester, struct send_queue *queue,
                                 struct psn psn, uint8_t syndrome, uint32_t msn, struct instant now)
{
    const struct rc_progress stale = {RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    const bool inside =
        psn_distance(requester->unacked, psn) >= 0 && psn_distance(psn, requester->next) > 0;
    if (!inside || requester->mode == RC_REQUESTER_STOPPED) {
        return stale;
    }
    const uint8_t value = syndrome & ROCE_AETH_VALUE_MASK;
    switch (syndrome & ROCE_AETH_KIND_MASK) {
    case ROCE_AETH_ACK:
        learn_credits(requester, value, msn);
        if (covers_plain(requester, queue, psn)) {
            INVARIANTS(check_plain(requester, queue, psn_after(psn, 1), now));
            advance(requester, psn_after(psn, 1), now);
        } else if (acknowledge(requester, queue, psn_after(psn, 1), now)) {
            return missing_response(requester, queue);
        }
        return (struct rc_progress){RC_PROGRESS, NULL, 0, COMPLETION_SUCCESS};
    case ROCE_AETH_RNR_NAK:
        if (acknowledge(requester, queue, psn, now)) {
            return missing_response(requester, queue);
        }
        return wait_for_receiver(requester, queue, value, now);
    case ROCE_AETH_NAK:
        if (syndrome != ROCE_NAK_PSN_SEQUENCE) {
            return refused(requester, queue, psn, syndrome, now);
        }
        if (acknowledge(requester, queue, psn, now)) {
            return missing_response(requester, queue);
        }
        return retry(requester, queue, RC_SEQUENCE_NAK);
    default: return stale; /* Reserved by IBTA table 47: ignored. */
    }
}

struct rc_progress rc_requester_on_ack(struct rc_requester *requester, struct send_queue *queue,
                                       struct psn psn, uint8_t syndrome, uint32_t msn,
                                       struct instant now)
{
    INVARIANTS(rc_requester_check(requester, queue));
    const struct rc_progress progress = on_ack(requester, queue, psn, syndrome, msn, now);
    INVARIANTS(rc_requester_check(requester, queue));
    return progress;
}

/* Does the opcode answer the request, at this place? A READ that was asked to go on in the middle
 * is answered from FIRST on. Linux' Soft-RoCE goes on with MIDDLE, as do late responses to an
 * earlier request. */
static bool opcode_fits(const struct rc_requester *requester, const struct work *work,
                        const struct rc_response *response, bool begins, bool ends)
{
    if (work_is_single(work)) {
        return response->operation == single_answer(work_request(work));
    }
    const bool may_begin = begins || psn_equal(response->psn, requester->resumed);
    switch (response->operation) {
    case ROCE_READ_RESPONSE_FIRST: return may_begin && !ends;
    case ROCE_READ_RESPONSE_MIDDLE: return !begins && !ends;
    case ROCE_READ_RESPONSE_LAST: return !begins && ends;
    case ROCE_READ_RESPONSE_ONLY: return may_begin && ends;
    default: return false;
    }
}

/* Has the response the payload that a READ response carries here? Responses to an atomic or a FLUSH
 * have none. */
static bool length_fits(const struct rc_requester *requester, const struct work *work,
                        const struct rc_response *response, uint32_t offset)
{
    const uint32_t left = work_is_single(work) ? 0 : work->bytes - offset;
    return response->bytes == (left < requester->mtu_bytes ? left : requester->mtu_bytes);
}

static struct rc_progress on_response(struct rc_requester *requester, struct send_queue *queue,
                                      const struct rc_response *response, struct instant now)
{
    const struct rc_progress stale = {RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    const struct psn psn = response->psn;
    const bool inside =
        psn_distance(requester->unacked, psn) >= 0 && psn_distance(psn, requester->next) > 0;
    struct work *work = inside ? work_of(queue, psn) : NULL;
    if (work == NULL || requester->mode == RC_REQUESTER_STOPPED || !work_wants_response(work)) {
        return stale;
    }
    /* A response acknowledges every earlier request that needs none of its own (9.7.5.1.2). */
    if (acknowledge(requester, queue, work->first, now) ||
        psn_distance(requester->unacked, psn) != 0) {
        return missing_response(requester, queue);
    }
    const uint32_t index = (uint32_t)psn_distance(work->first, psn);
    const uint32_t offset = index * requester->mtu_bytes;
    const uint32_t chunk = rc_read_chunk(requester);
    const bool begins = index % chunk == 0;
    const bool ends = index + 1 == work->packets || (index + 1) % chunk == 0;
    if (!opcode_fits(requester, work, response, begins, ends)) {
        return failed(requester, RC_BAD_ORDER, work, COMPLETION_BAD_RESPONSE);
    }
    if (!length_fits(requester, work, response, offset)) {
        return failed(requester, RC_BAD_LENGTH, work, COMPLETION_BAD_RESPONSE);
    }
    if (response->operation != ROCE_READ_RESPONSE_MIDDLE) {
        if ((response->syndrome & ROCE_AETH_KIND_MASK) != ROCE_AETH_ACK) {
            return failed(requester, RC_BAD_SYNDROME, work, COMPLETION_BAD_RESPONSE);
        }
        learn_credits(requester, response->syndrome & ROCE_AETH_VALUE_MASK, response->msn);
    }
    if (ends && requester->reads_out > 0) {
        requester->reads_out--;
    }
    work->moves_pending++;
    advance(requester, psn_after(psn, 1), now);
    skip_acknowledged(requester, queue);
    rc_window_reopen(requester, queue);
    settle_refusal(requester, queue, now);
    return (struct rc_progress){RC_RESPONSE, work, offset, COMPLETION_SUCCESS};
}

struct rc_progress rc_requester_on_response(struct rc_requester *requester,
                                            struct send_queue *queue,
                                            const struct rc_response *response, struct instant now)
{
    INVARIANTS(rc_requester_check(requester, queue));
    const struct rc_progress progress = on_response(requester, queue, response, now);
    INVARIANTS(rc_requester_check(requester, queue));
    return progress;
}

/* Everything that was sent is done. */
static void settle(struct rc_requester *requester, struct send_queue *queue, struct instant now)
{
    advance(requester, requester->send, now);
    skip_acknowledged(requester, queue);
    rc_window_reopen(requester, queue);
}

void rc_requester_on_fetched(struct rc_requester *requester, struct send_queue *queue,
                             struct instant now)
{
    INVARIANTS(rc_requester_check(requester, queue));
    CHECK(requester->reads_out == 1);
    requester->reads_out = 0;
    requester->reads_wait = requester->policy->read_waits_bytes != 0;
    settle(requester, queue, now);
    settle_refusal(requester, queue, now);
    INVARIANTS(rc_requester_check(requester, queue));
}

void rc_requester_on_placed(struct rc_requester *requester, struct send_queue *queue,
                            struct instant now)
{
    INVARIANTS(rc_requester_check(requester, queue));
    CHECK(psn_distance(requester->unacked, requester->send) == 1);
    settle(requester, queue, now);
    INVARIANTS(rc_requester_check(requester, queue));
}

struct work *rc_requester_oldest(const struct rc_requester *requester,
                                 const struct send_queue *queue)
{
    uint32_t position;
    return rc_oldest_in_flight(requester, queue, &position);
}

bool rc_requester_pauses(const struct rc_requester *requester)
{
    return requester->mode == RC_REQUESTER_WAITING_RNR;
}

struct instant rc_requester_deadline(const struct rc_requester *requester)
{
    return rc_requester_pauses(requester) ? requester->resume_at : requester->retry_at;
}

struct instant rc_requester_waits_since(const struct rc_requester *requester)
{
    const uint64_t timeout_ns = ack_timeout_ns(requester->timeout_code);
    const uint64_t at_ns = requester->retry_at.ns;
    return (struct instant){at_ns > timeout_ns ? at_ns - timeout_ns : 0};
}

bool rc_requester_last_try(const struct rc_requester *requester)
{
    return requester->retries_left == 0;
}

static struct rc_progress on_time(struct rc_requester *requester, struct send_queue *queue,
                                  struct instant now)
{
    if (requester->mode != RC_REQUESTER_SENDING || !instant_reached(now, requester->retry_at)) {
        return (struct rc_progress){RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    }
    requester->gap_known = false;
    const struct rc_progress progress = retry(requester, queue, RC_SEQUENCE_NAK);
    if (progress.verdict != RC_FAILED) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
        return progress;
    }
    if (progress.work == NULL && queue->next != queue->tail) {
        /* Nothing ever went out: the request at the cursor is the one that could not be sent. */
        return (struct rc_progress){RC_FAILED, send_queue_at(queue, queue->next), 0,
                                    progress.status};
    }
    return progress;
}

struct rc_progress rc_requester_on_time(struct rc_requester *requester, struct send_queue *queue,
                                        struct instant now)
{
    INVARIANTS(rc_requester_check(requester, queue));
    const struct rc_progress progress = on_time(requester, queue, now);
    INVARIANTS(rc_requester_check(requester, queue));
    return progress;
}
