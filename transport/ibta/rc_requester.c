/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/rc_requester.h"

#include <string.h>

#include "transport/common/timing.h"
#include "transport/ibta/rc_window.h"
#include "transport/ibta/segmentation.h"

/* At least one packet of 32 PSNs asks for an acknowledgement, so that a long message does not stall
 * at the end of its window. */
#define ACK_REQUEST_PSNS 32

void rc_requester_init(struct rc_requester *requester, const struct rc_requester_config *config)
{
    *requester = (struct rc_requester){
        .next = config->first_psn,
        .send = config->first_psn,
        .unacked = config->first_psn,
        .resumed = config->first_psn,
        .asked = config->first_psn,
        .mode = RC_REQUESTER_SENDING,
        .retry_limit = config->retry_limit,
        .retries_left = config->retry_limit,
        .rnr_limit = config->rnr_limit,
        .rnr_left = config->rnr_limit,
        .reads_max = config->reads_max,
        .timeout_code = config->timeout_code & 31u,
        .mtu_bytes = config->mtu_bytes,
        .window_max = config->window_bytes,
        .window = config->window_bytes,
        .retry_at = INSTANT_NEVER,
        .resume_at = INSTANT_NEVER,
        .policy = config->policy,
    };
}

/* Changes the timeout, also of packets in flight: it counts from when their timer was set. */
static void change_timeout(struct rc_requester *requester, uint8_t timeout_code)
{
    if (requester->timeout_code != timeout_code && requester->retry_at.ns != UINT64_MAX) {
        requester->retry_at =
            instant_after(rc_requester_waits_since(requester), ack_timeout_ns(timeout_code));
    }
    requester->timeout_code = timeout_code & 31u;
}

void rc_requester_retune(struct rc_requester *requester, const struct rc_requester_config *config)
{
    change_timeout(requester, config->timeout_code);
    requester->reads_max = config->reads_max;
    if (requester->retry_limit != config->retry_limit) {
        requester->retry_limit = requester->retries_left = config->retry_limit;
    }
    if (requester->rnr_limit != config->rnr_limit) {
        requester->rnr_limit = requester->rnr_left = config->rnr_limit;
    }
}

struct rc_standing rc_requester_standing(const struct rc_requester *requester)
{
    return (struct rc_standing){
        .next = requester->next,
        .unacked = requester->unacked,
        .resending = !psn_equal(requester->send, requester->next),
        .pauses = requester->mode == RC_REQUESTER_WAITING_RNR,
    };
}

/* The world fetched the last READ (rc_requester_on_fetched), and can do so again when nothing else
 * is in flight: its policy says from how many bytes on that is worth waiting for. It says itself
 * when it can place WRITEs. */
static bool waits_until_alone(const struct rc_requester *requester, const struct work *work)
{
    return (requester->reads_wait && work->kind == WORK_READ &&
            work->bytes >= requester->policy->read_waits_bytes) ||
           (requester->writes_wait && work->kind == WORK_WRITE &&
            work->bytes > requester->mtu_bytes);
}

void rc_requester_wait_to_place(struct rc_requester *requester)
{
    requester->writes_wait = true;
}

/* Some packet in flight is to be answered. */
static bool awaits_answer(const struct rc_requester *requester)
{
    return requester->reads_out > 0 || !psn_equal(requester->asked, requester->unacked);
}

/* A fence waits until READs and atomics are complete: until their data are in memory. */
static bool waits_at_fence(const struct rc_requester *requester, const struct send_queue *queue)
{
    bool moving = requester->reads_out > 0;
    for (uint32_t at = queue->head; !moving && at != queue->next; at++) {
        moving = send_queue_at(queue, at)->moves_pending > 0;
    }
    return moving;
}

/* End-to-end credits. Without one a message may still go if no answer will tell of new ones: it
 * asks. */
static bool has_credit(const struct rc_requester *requester, const struct work *work)
{
    if (!requester->credits_known || !work_takes_receive(work) || !awaits_answer(requester)) {
        return true;
    }
    const uint32_t serial = work->started ? work->serial : requester->serial + 1;
    return (int32_t)(requester->credit_serial - serial) >= 0;
}

/* May the message at the cursor begin? Fence, fetching and end-to-end credits. */
static bool may_begin(const struct rc_requester *requester, const struct send_queue *queue,
                      const struct work *work, bool idle)
{
    if ((work->flags & WORK_FENCE) && waits_at_fence(requester, queue)) {
        return false;
    }
    return (idle || !waits_until_alone(requester, work)) && has_credit(requester, work);
}

bool rc_requester_ready(const struct rc_requester *requester, const struct send_queue *queue,
                        bool draining, struct instant now)
{
    if (queue->next == queue->tail || requester->mode == RC_REQUESTER_STOPPED) {
        return false;
    }
    if (requester->mode == RC_REQUESTER_WAITING_RNR &&
        !instant_reached(now, requester->resume_at)) {
        return false;
    }
    const struct work *work = send_queue_at(queue, queue->next);
    const bool idle = psn_equal(requester->unacked, requester->send);
    const bool beginning = !work->started || psn_equal(work->first, requester->send);
    if (!work->started && draining) {
        return false;
    }
    if (beginning && !may_begin(requester, queue, work, idle)) {
        return false;
    }
    if (work_is_local(work)) {
        return true;
    }
    if (work_wants_response(work) && requester->reads_out >= requester->reads_max) {
        return false;
    }
    return !requester->window_shut;
}

/* First transmission: the request takes its PSNs, its serial number and its place in the cost. */
static void begin(struct rc_requester *requester, struct work *work)
{
    work->started = true;
    work->first = requester->next;
    work->cost = requester->cost;
    work->packets = work_is_local(work) ? 0 : packets_of(work->bytes, requester->mtu_bytes);
    if (work_is_single(work)) {
        work->packets = 1;
    }
    if (work->packets != 0) {
        requester->serial++;
        work->serial = requester->serial;
    }
}

/* Fills in the READ request and returns the number of PSNs that it takes. */
static uint32_t take_read(struct rc_requester *requester, const struct work *work, uint32_t index,
                          struct rc_outgoing *out)
{
    const uint32_t chunk = rc_read_chunk(requester);
    const uint32_t left = work->packets - index;
    const uint32_t to_boundary = chunk - index % chunk;
    const uint32_t packets = left < to_boundary ? left : to_boundary;
    const uint32_t bytes_left = work->bytes - index * requester->mtu_bytes;
    const uint64_t most = (uint64_t)packets * requester->mtu_bytes;
    out->operation = ROCE_READ_REQUEST;
    out->offset = index * requester->mtu_bytes;
    out->bytes = bytes_left < most ? bytes_left : (uint32_t)most;
    out->last = packets == left;
    requester->reads_out++;
    CHECK(requester->reads_out <= requester->reads_max);
    if (index % chunk != 0) {
        requester->resumed = requester->send;
    }
    /* Each chunk is a message of its own to the responder, which counts it in its MSN. */
    if (index != 0 && index % chunk == 0 && psn_equal(requester->send, requester->next)) {
        requester->serial++;
    }
    return packets;
}

/* The packet at `send` of a request that was begun. */
static uint32_t take_packet(struct rc_requester *requester, const struct work *work,
                            struct rc_outgoing *out)
{
    const uint32_t index = (uint32_t)psn_distance(work->first, requester->send);
    CHECK(index < work->packets);
    if (work->kind == WORK_READ) {
        return take_read(requester, work, index, out);
    }
    if (work_is_single(work)) {
        out->operation = work_request(work);
        out->bytes = work->bytes;
        out->last = true;
        requester->reads_out++;
        CHECK(requester->reads_out <= requester->reads_max);
        return 1;
    }
    const struct piece piece = work_piece(work, index, requester->mtu_bytes);
    out->operation = piece.operation;
    out->offset = piece.offset;
    out->bytes = piece.bytes;
    out->last = piece.last;
    return 1;
}

/* Is this message beyond our credits, or the last one within? */
static bool spends_last_credit(const struct rc_requester *requester, const struct work *work)
{
    return requester->credits_known && work_takes_receive(work) &&
           (int32_t)(requester->credit_serial - work->serial) <= 0;
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

/* A packet with this PSN, the last one of its message or not. */
static bool wants_ack(const struct rc_requester *requester, const struct send_queue *queue,
                      bool draining, const struct work *work, struct psn psn, bool last)
{
    if (requester->asks) {
        return true;
    }
    if (last) {
        const struct work *next = next_on_wire(queue);
        if ((work->flags & WORK_SIGNALED) || draining || next == NULL ||
            waits_until_alone(requester, next) || spends_last_credit(requester, work)) {
            return true;
        }
    }
    if ((psn.value & (ACK_REQUEST_PSNS - 1)) == ACK_REQUEST_PSNS - 1) {
        return true;
    }
    if (requester->window == 0) {
        return false;
    }
    /* A window's quarter keeps acknowledgements coming before it closes. */
    const uint32_t packets =
        requester->window / (4 * (requester->mtu_bytes + requester->policy->packet_cost));
    return packets == 0 || psn.value % packets == 0 || requester->window_shut;
}

bool rc_requester_next(struct rc_requester *requester, struct send_queue *queue, bool draining,
                       struct instant now, struct rc_outgoing *out)
{
    INVARIANTS(rc_requester_check(requester, queue));
    if (!rc_requester_ready(requester, queue, draining, now)) {
        return false;
    }
    requester->mode = RC_REQUESTER_SENDING;
    struct work *work = send_queue_at(queue, queue->next);
    if (!work->started) {
        begin(requester, work);
    }
    *out = (struct rc_outgoing){
        .work = work,
        .psn = requester->send,
        .resent = !psn_equal(requester->send, requester->next),
        .alone = psn_equal(requester->unacked, requester->send),
    };
    if (out->alone && work->kind == WORK_READ) {
        requester->reads_wait = false; /* Unless it is fetched, too. */
    }
    if (out->alone && work->kind == WORK_WRITE && work->bytes > requester->mtu_bytes) {
        requester->writes_wait = false; /* Likewise. */
    }
    if (work->packets == 0) {
        queue->next++;
        INVARIANTS(rc_requester_check(requester, queue));
        return true;
    }
    const uint32_t packets = take_packet(requester, work, out);
    requester->send = psn_after(requester->send, packets);
    if (psn_distance(requester->next, requester->send) > 0) {
        requester->next = requester->send;
        requester->cost =
            work->cost + rc_cost_of(requester, work, psn_count(work->first, requester->send));
    }
    if (psn_equal(requester->send, work_end(work))) {
        queue->next++;
        /* Local work that was executed before a resend is not executed again. */
        while (queue->next != queue->tail && send_queue_at(queue, queue->next)->started &&
               send_queue_at(queue, queue->next)->packets == 0) {
            queue->next++;
        }
    }
    rc_window_update(requester, queue);
    out->ack_request = !work_wants_response(work) &&
                       wants_ack(requester, queue, draining, work, out->psn, out->last);
    if (out->ack_request || work_wants_response(work)) {
        requester->asked = requester->send;
        requester->asks = false;
    }
    if (out->alone || requester->retry_at.ns == UINT64_MAX) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
    INVARIANTS(rc_requester_check(requester, queue));
    return true;
}

/* -- The short way ------------------------------------------------------------------------------*/

struct work *rc_requester_plain(const struct rc_requester *requester,
                                const struct send_queue *queue)
{
    if (queue->next == queue->tail || requester->mode != RC_REQUESTER_SENDING ||
        !psn_equal(requester->send, requester->next) || requester->window_shut) {
        return NULL;
    }
    struct work *work = send_queue_at(queue, queue->next);
    INVARIANTS(CHECK(work_is_plain(work)));
    const bool plain = !(work->flags & WORK_FENCE) && !work->started &&
                       work->status == COMPLETION_SUCCESS && work->bytes <= requester->mtu_bytes;
    return plain && has_credit(requester, work) ? work : NULL;
}

static bool next_plain(struct rc_requester *requester, struct send_queue *queue, struct work *work,
                       struct instant now)
{
    const struct psn psn = requester->send;
    const bool alone = psn_equal(requester->unacked, psn);
    requester->serial++;
    work->started = true;
    work->first = psn;
    work->cost = requester->cost;
    work->packets = 1;
    work->serial = requester->serial;
    requester->send = requester->next = psn_after(psn, 1);
    requester->cost += work->bytes + requester->policy->packet_cost;
    queue->next++;
    rc_window_update(requester, queue);
    const bool asks = wants_ack(requester, queue, false, work, psn, true);
    if (asks) {
        requester->asked = requester->send;
        requester->asks = false;
    }
    if (alone || requester->retry_at.ns == UINT64_MAX) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
    return asks;
}

/* The long way comes to the same. */
static void check_plain(const struct rc_requester *requester, const struct send_queue *queue,
                        struct work *work, struct instant now)
{
    const struct work before = *work;
    struct rc_requester taken = *requester, left = *requester;
    struct send_queue queue_taken = *queue, queue_left = *queue;
    struct rc_outgoing out;
    CHECK(rc_requester_next(&left, &queue_left, false, now, &out));
    const struct work after = *work;
    CHECK(out.work == work && out.last && !out.resent && out.offset == 0);
    CHECK(out.bytes == work->bytes && psn_equal(out.psn, requester->send));
    *work = before;
    CHECK(next_plain(&taken, &queue_taken, work, now) == out.ack_request);
    CHECK(memcmp(&taken, &left, sizeof(left)) == 0 && memcmp(work, &after, sizeof(after)) == 0);
    CHECK(memcmp(&queue_taken, &queue_left, sizeof(queue_left)) == 0);
    *work = before;
}

bool rc_requester_next_plain(struct rc_requester *requester, struct send_queue *queue,
                             struct work *work, struct instant now)
{
    INVARIANTS(check_plain(requester, queue, work, now));
    return next_plain(requester, queue, work, now);
}

/* The request of the newest packet before the cursor that may go once more, with its position in
 * *at and the PSN after that packet in *end; NULL: there is none. A failed request does not go
 * again. */
static const struct work *newest_in_flight(const struct rc_requester *requester,
                                           const struct send_queue *queue, uint32_t *at,
                                           struct psn *end)
{
    *end = requester->send;
    for (*at = queue->next; psn_distance(requester->unacked, *end) > 0; --*at) {
        const struct work *work = *at == queue->tail ? NULL : send_queue_at(queue, *at);
        if (work != NULL && work->started && work_covers(work, psn_before(*end, 1))) {
            if (work->status == COMPLETION_SUCCESS) {
                return work;
            }
            *end = work->first;
        }
        CHECK(*at != queue->head || psn_distance(requester->unacked, *end) <= 0);
    }
    return NULL;
}

void rc_requester_on_asked(struct rc_requester *requester)
{
    requester->asked = requester->send;
}

void rc_requester_on_unsent(struct rc_requester *requester, const struct work *work)
{
    requester->asked = requester->unacked;
    if (work_is_single(work) && requester->reads_out > 0) {
        requester->reads_out--;
    }
}

bool rc_requester_ask(struct rc_requester *requester, struct send_queue *queue)
{
    INVARIANTS(rc_requester_check(requester, queue));
    uint32_t at;
    struct psn end;
    if (requester->mode != RC_REQUESTER_SENDING || awaits_answer(requester)) {
        return false;
    }
    const struct work *work = newest_in_flight(requester, queue, &at, &end);
    if (work == NULL || work_wants_response(work)) {
        return false;
    }
    queue->next = at;
    requester->send = psn_before(end, 1);
    requester->asks = true;
    requester->window_shut = false;
    INVARIANTS(rc_requester_check(requester, queue));
    return true;
}

void rc_requester_blocked(struct rc_requester *requester, struct instant now)
{
    if (requester->retry_at.ns == UINT64_MAX && requester->mode == RC_REQUESTER_SENDING) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
}

void rc_requester_relax(struct rc_requester *requester)
{
    requester->retry_at = INSTANT_NEVER;
    requester->retries_left = requester->retry_limit;
}

void rc_requester_postpone(struct rc_requester *requester, struct instant now)
{
    const bool none_left = psn_equal(requester->send, requester->unacked) &&
                           !psn_equal(requester->next, requester->unacked);
    if (none_left && requester->mode == RC_REQUESTER_SENDING &&
        instant_reached(now, requester->retry_at)) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
}

void rc_requester_wait_on(struct rc_requester *requester, struct instant now)
{
    CHECK(requester->mode == RC_REQUESTER_SENDING);
    /* All retries are there again: the peer needs time to answer when it has read at last. */
    requester->retries_left = requester->retry_limit;
    requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
}

struct work *rc_requester_completed(const struct rc_requester *requester,
                                    const struct send_queue *queue)
{
    if (queue->head == queue->next) {
        return NULL;
    }
    struct work *work = send_queue_at(queue, queue->head);
    CHECK(work->started);
    const bool acknowledged = !work_covers(work, requester->unacked);
    return acknowledged && work->moves_pending == 0 ? work : NULL;
}

bool rc_requester_drained(const struct rc_requester *requester, const struct send_queue *queue)
{
    return psn_equal(requester->unacked, requester->next) &&
           (queue->head == queue->tail || !send_queue_at(queue, queue->head)->started);
}
