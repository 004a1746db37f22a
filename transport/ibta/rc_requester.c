/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/rc_requester.h"

#include "transport/ibta/rc_window.h"
#include "transport/ibta/segmentation.h"
#include "transport/ibta/timing.h"

/* An acknowledgement is asked for at least every so many PSNs, so that a long message does not
 * stall at the end of its window. */
#define ACK_REQUEST_PSNS 32

void rc_requester_init(struct rc_requester *requester, const struct rc_requester_config *config)
{
    *requester = (struct rc_requester){
        .next = config->first_psn,
        .send = config->first_psn,
        .unacked = config->first_psn,
        .mode = RC_REQUESTER_SENDING,
        .retry_limit = config->retry_limit,
        .retries_left = config->retry_limit,
        .rnr_limit = config->rnr_limit,
        .rnr_left = config->rnr_limit,
        .reads_max = config->reads_max,
        .timeout_code = config->timeout_code,
        .mtu_bytes = config->mtu_bytes,
        .window_max = config->window_bytes,
        .window = config->window_bytes,
        .retry_at = INSTANT_NEVER,
        .resume_at = INSTANT_NEVER,
    };
}

void rc_requester_check(const struct rc_requester *requester, const struct send_queue *queue)
{
    CHECK(psn_distance(requester->unacked, requester->send) >= 0);
    CHECK(psn_distance(requester->send, requester->next) >= 0);
    CHECK(queue->next - queue->head <= queue->tail - queue->head);
    CHECK(queue->tail - queue->head <= queue->mask + 1);
    CHECK(requester->reads_out <= requester->reads_max);
}

static bool needs_receive(const struct work *work)
{
    return work->kind == WORK_SEND || work->kind == WORK_SEND_IMMEDIATE ||
           work->kind == WORK_SEND_INVALIDATE || work->kind == WORK_WRITE_IMMEDIATE;
}

/* A READ that is fetched (rc_requester_on_fetched) takes one copy; one that is answered takes two,
 * and so does every READ behind it until nothing is in flight. Waiting for that is shorter. */
static bool waits_until_alone(const struct rc_requester *requester, const struct work *work)
{
    return requester->reads_wait && work->kind == WORK_READ && work->bytes >= RC_READ_WAITS_BYTES;
}

/* May the message at the cursor begin? Fence, initiator depth, fetching and end-to-end credits. */
static bool may_begin(const struct rc_requester *requester, const struct work *work, bool idle)
{
    if ((work->flags & WORK_FENCE) && requester->reads_out > 0) {
        return false;
    }
    if (!idle && waits_until_alone(requester, work)) {
        return false;
    }
    if (requester->credits_known && needs_receive(work) && !idle) {
        /* Without a credit one message may still go out on its own, to learn of new ones. */
        const uint32_t serial = work->started ? work->serial : requester->serial + 1;
        return (int32_t)(requester->credit_serial - serial) >= 0;
    }
    return true;
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
    if (beginning && !may_begin(requester, work, idle)) {
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
    if (work_is_atomic(work)) {
        work->packets = 1;
    }
    if (work->packets != 0) {
        requester->serial++;
        work->serial = requester->serial;
    }
}

static uint32_t read_chunk(const struct rc_requester *requester)
{
    return requester->window_max == 0 ? RC_READ_PACKETS_MAX : RC_READ_CHUNK_PACKETS;
}

/* Fills what is asked for and returns how many PSNs that takes. */
static uint32_t take_read(struct rc_requester *requester, const struct work *work, uint32_t index,
                          struct rc_outgoing *out)
{
    const uint32_t chunk = read_chunk(requester);
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
    /* Each chunk is a message of its own to the responder, which counts it in its MSN. */
    if (index != 0 && index % chunk == 0 && psn_equal(requester->send, requester->next)) {
        requester->serial++;
    }
    return packets;
}

static enum roce_operation atomic_operation(const struct work *work)
{
    if (work->kind == WORK_ATOMIC_WRITE) {
        return ROCE_ATOMIC_WRITE;
    }
    return work->kind == WORK_COMPARE_SWAP ? ROCE_COMPARE_SWAP : ROCE_FETCH_ADD;
}

static uint32_t take_packet(struct rc_requester *requester, const struct work *work,
                            struct rc_outgoing *out)
{
    const uint32_t index = (uint32_t)psn_distance(work->first, requester->send);
    if (work->kind == WORK_READ) {
        return take_read(requester, work, index, out);
    }
    if (work_is_atomic(work)) {
        out->operation = atomic_operation(work);
        out->bytes = 8;
        out->last = true;
        requester->reads_out++;
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
    return requester->credits_known && needs_receive(work) &&
           (int32_t)(requester->credit_serial - work->serial) <= 0;
}

/* What follows on the wire; NULL: nothing does. */
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

static bool wants_ack(const struct rc_requester *requester, const struct send_queue *queue,
                      const struct work *work, const struct rc_outgoing *out)
{
    if (out->last) {
        const struct work *next = next_on_wire(queue);
        if ((work->flags & WORK_SIGNALED) || next == NULL || waits_until_alone(requester, next) ||
            spends_last_credit(requester, work)) {
            return true;
        }
    }
    if ((out->psn.value & (ACK_REQUEST_PSNS - 1)) == ACK_REQUEST_PSNS - 1) {
        return true;
    }
    if (requester->window == 0) {
        return false;
    }
    /* A window's quarter keeps acknowledgements coming before it closes. */
    const uint32_t packets = requester->window / (4 * (requester->mtu_bytes + RC_PACKET_COST));
    return packets == 0 || out->psn.value % packets == 0 || requester->window_shut;
}

bool rc_requester_next(struct rc_requester *requester, struct send_queue *queue, bool draining,
                       struct instant now, struct rc_outgoing *out)
{
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
    if (work->packets == 0) {
        queue->next++;
        return true;
    }
    const uint32_t packets = take_packet(requester, work, out);
    requester->send = psn_after(requester->send, packets);
    if (psn_distance(requester->next, requester->send) > 0) {
        requester->next = requester->send;
        requester->cost =
            work->cost +
            rc_cost_of(requester, work, (uint32_t)psn_distance(work->first, requester->send));
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
    out->ack_request = !work_wants_response(work) && wants_ack(requester, queue, work, out);
    if (out->alone || requester->retry_at.ns == UINT64_MAX) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
    return true;
}

/* Resend from the oldest unacknowledged PSN. */
static void go_back(struct rc_requester *requester, struct send_queue *queue)
{
    uint32_t position = queue->next;
    if (rc_oldest_in_flight(requester, queue, &position) != NULL) {
        queue->next = position;
    }
    requester->send = requester->unacked;
    requester->reads_out = 0;
    requester->window_shut = false;
}

/* `unacked` moves up to `upto`: retries start afresh and the timer runs for what is left. */
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
        if (!work->started) {
            return;
        }
        if (work->packets != 0 && psn_distance(requester->send, work_end(work)) > 0) {
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
        requester->mode = RC_REQUESTER_STOPPED;
        requester->retry_at = INSTANT_NEVER;
        return (struct rc_progress){RC_FAILED, oldest, 0, COMPLETION_RETRY_EXCEEDED};
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
 * stands in between and has not got it. */
static bool acknowledge(struct rc_requester *requester, struct send_queue *queue, struct psn upto,
                        struct instant now)
{
    bool missing = false;
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        const struct work *work = send_queue_at(queue, at);
        if (!work->started || psn_distance(work->first, upto) <= 0) {
            break;
        }
        if (work_wants_response(work) && psn_distance(requester->unacked, work_end(work)) > 0) {
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

static void learn_credits(struct rc_requester *requester, uint8_t code, uint32_t msn)
{
    requester->credits_known = code != ROCE_AETH_CREDITS_UNLIMITED;
    if (!requester->credits_known) {
        return;
    }
    /* The MSN is 24 bits of our serial number, and never ahead of it. */
    const uint32_t behind = (requester->serial - msn) & ROCE_24_BITS;
    requester->credit_serial = requester->serial - behind + credits_decode(code);
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
            requester->mode = RC_REQUESTER_STOPPED;
            requester->retry_at = INSTANT_NEVER;
            return (struct rc_progress){RC_FAILED, oldest, 0, COMPLETION_RNR_RETRY_EXCEEDED};
        }
        requester->rnr_left--;
    }
    go_back(requester, queue);
    requester->mode = RC_REQUESTER_WAITING_RNR;
    requester->resume_at = instant_after(now, rnr_timer_ns(code));
    requester->retry_at = INSTANT_NEVER;
    return (struct rc_progress){RC_RNR_NAK, NULL, 0, COMPLETION_SUCCESS};
}

static struct rc_progress refused(struct rc_requester *requester, struct send_queue *queue,
                                  uint8_t syndrome)
{
    uint32_t position = queue->head;
    struct work *oldest = rc_oldest_in_flight(requester, queue, &position);
    if (oldest == NULL) {
        return (struct rc_progress){RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    }
    enum completion_status status = COMPLETION_REMOTE_OPERATION;
    if (syndrome == ROCE_NAK_INVALID_REQUEST) {
        status = COMPLETION_REMOTE_INVALID_REQUEST;
    } else if (syndrome == ROCE_NAK_REMOTE_ACCESS) {
        status = COMPLETION_REMOTE_ACCESS;
    }
    requester->mode = RC_REQUESTER_STOPPED;
    requester->retry_at = INSTANT_NEVER;
    return (struct rc_progress){RC_FAILED, oldest, 0, status};
}

struct rc_progress rc_requester_on_ack(struct rc_requester *requester, struct send_queue *queue,
                                       struct psn psn, uint8_t syndrome, uint32_t msn,
                                       struct instant now)
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
        if (acknowledge(requester, queue, psn_after(psn, 1), now)) {
            return missing_response(requester, queue);
        }
        return (struct rc_progress){RC_PROGRESS, NULL, 0, COMPLETION_SUCCESS};
    case ROCE_AETH_RNR_NAK:
        if (acknowledge(requester, queue, psn, now)) {
            return missing_response(requester, queue);
        }
        return wait_for_receiver(requester, queue, value, now);
    case ROCE_AETH_NAK:
        if (acknowledge(requester, queue, psn, now) && syndrome == ROCE_NAK_PSN_SEQUENCE) {
            return missing_response(requester, queue);
        }
        if (syndrome == ROCE_NAK_PSN_SEQUENCE) {
            return retry(requester, queue, RC_SEQUENCE_NAK);
        }
        return refused(requester, queue, syndrome);
    default: return stale; /* Reserved by IBTA table 47: ignored. */
    }
}

/* The request that PSN belongs to; NULL if none that is in flight. */
static struct work *work_of(const struct send_queue *queue, struct psn psn)
{
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        struct work *work = send_queue_at(queue, at);
        if (!work->started) {
            return NULL;
        }
        if (work->packets != 0 && psn_distance(work->first, psn) >= 0 &&
            psn_distance(psn, work_end(work)) > 0) {
            return work;
        }
    }
    return NULL;
}

/* READs, and ATOMIC WRITEs, which bring nothing home, are answered by READ responses. */
static bool answered_by_atomic(const struct work *work)
{
    return work->kind == WORK_COMPARE_SWAP || work->kind == WORK_FETCH_ADD;
}

struct rc_progress rc_requester_on_response(struct rc_requester *requester,
                                            struct send_queue *queue, struct psn psn, bool atomic,
                                            uint32_t bytes, struct instant now)
{
    const struct rc_progress stale = {RC_STALE, NULL, 0, COMPLETION_SUCCESS};
    const bool inside =
        psn_distance(requester->unacked, psn) >= 0 && psn_distance(psn, requester->next) > 0;
    struct work *work = inside ? work_of(queue, psn) : NULL;
    if (work == NULL || requester->mode == RC_REQUESTER_STOPPED || !work_wants_response(work) ||
        atomic != answered_by_atomic(work)) {
        return stale;
    }
    /* A response acknowledges every earlier request that needs none of its own (9.7.5.1.2). */
    if (acknowledge(requester, queue, work->first, now) ||
        psn_distance(requester->unacked, psn) != 0) {
        return missing_response(requester, queue);
    }
    const uint32_t index = (uint32_t)psn_distance(work->first, psn);
    const uint32_t offset = index * requester->mtu_bytes;
    const uint32_t left = work->kind == WORK_READ ? work->bytes - offset : 0;
    if (!atomic && bytes != (left < requester->mtu_bytes ? left : requester->mtu_bytes)) {
        requester->mode = RC_REQUESTER_STOPPED;
        requester->retry_at = INSTANT_NEVER;
        return (struct rc_progress){RC_FAILED, work, 0, COMPLETION_BAD_RESPONSE};
    }
    const uint32_t chunk = read_chunk(requester);
    const bool last_of_request = index + 1 == work->packets || (index + 1) % chunk == 0;
    if (last_of_request && requester->reads_out > 0) {
        requester->reads_out--;
    }
    work->moves_pending++;
    advance(requester, psn_after(psn, 1), now);
    skip_acknowledged(requester, queue);
    rc_window_reopen(requester, queue);
    return (struct rc_progress){RC_RESPONSE, work, offset, COMPLETION_SUCCESS};
}

void rc_requester_on_fetched(struct rc_requester *requester, struct send_queue *queue,
                             struct instant now)
{
    CHECK(requester->reads_out == 1);
    requester->reads_out = 0;
    requester->reads_wait = true;
    advance(requester, requester->send, now);
    skip_acknowledged(requester, queue);
    rc_window_reopen(requester, queue);
}

struct work *rc_requester_oldest(const struct rc_requester *requester,
                                 const struct send_queue *queue)
{
    uint32_t position;
    return rc_oldest_in_flight(requester, queue, &position);
}

struct rc_progress rc_requester_on_time(struct rc_requester *requester, struct send_queue *queue,
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

void rc_requester_blocked(struct rc_requester *requester, struct instant now)
{
    if (requester->retry_at.ns == UINT64_MAX && requester->mode == RC_REQUESTER_SENDING) {
        requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
    }
}

struct work *rc_requester_completed(const struct rc_requester *requester,
                                    const struct send_queue *queue)
{
    if (queue->head == queue->next) {
        return NULL;
    }
    struct work *work = send_queue_at(queue, queue->head);
    CHECK(work->started);
    const bool acknowledged = psn_distance(requester->unacked, work_end(work)) <= 0;
    return acknowledged && work->moves_pending == 0 ? work : NULL;
}

bool rc_requester_drained(const struct rc_requester *requester, const struct send_queue *queue)
{
    return psn_equal(requester->unacked, requester->next) &&
           (queue->head == queue->tail || !send_queue_at(queue, queue->head)->started);
}
