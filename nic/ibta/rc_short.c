/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_short - the short way of the packets that a reliable connection has most: a SEND of one packet
 * into a posted receive, and an acknowledgement that stands alone.
 *
 * It judges what the long way judges (rc_receive.c, rc_send.c), and does what that does, without
 * the general forms of packets. Where anything is not as usual, it says so before it has changed
 * anything, and the packet takes the long way. Builds for tests compare the two step by step;
 * tests/scenarios/rc_scenario_test.c compares whole runs.
 */
#include <string.h>

#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"
#include "wire/roce_plain.h"

enum {
    SEND_BYTES = ROCE_BTH_BYTES,                              /* Headers. */
    SEND_IMMEDIATE_BYTES = ROCE_BTH_BYTES + ROCE_IMMDT_BYTES, /* And of an acknowledgement. */

    SEND = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY),
    SEND_IMMEDIATE = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY_IMMEDIATE),
    ACKNOWLEDGE = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
};

/* -- Arrival ------------------------------------------------------------------------------------*/

/* A frame that may take the short way. */
struct plain_frame {
    struct roce_plain bth;
    const uint8_t *behind; /* The BTH: the immediate, or the AETH. */
    const uint8_t *payload;
    uint32_t payload_bytes;
};

static bool is_plain(uint8_t opcode)
{
    return opcode == SEND || opcode == SEND_IMMEDIATE || opcode == ACKNOWLEDGE;
}

static uint32_t headers_of(uint8_t opcode)
{
    return opcode == SEND ? SEND_BYTES : SEND_IMMEDIATE_BYTES;
}

static ALWAYS_INLINE bool parse(const struct nic_frame *frame, struct plain_frame *plain)
{
    const uint32_t headers_bytes = headers_of(frame->headers[0]);
    uint32_t padded = frame->payload_bytes;
    plain->payload = frame->payload;
    if (frame->headers_bytes < headers_bytes) {
        return false;
    }
    if (frame->payload == NULL) {
        plain->payload = frame->headers + headers_bytes;
        padded = frame->headers_bytes - headers_bytes;
    } else if (frame->headers_bytes != headers_bytes) {
        return false;
    }
    plain->behind = frame->headers + ROCE_BTH_BYTES;
    const bool usual = roce_plain_get(frame->headers, &plain->bth);
    plain->payload_bytes = padded - plain->bth.pad_bytes;
    return usual && padded % 4 == 0 && padded <= ROCE_PAYLOAD_BYTES_MAX &&
           plain->bth.pad_bytes <= padded;
}

/* The queue pair that it is for, in RTS; NULL: it is to be judged further. */
static struct qp *admitted(const struct nic *nic, const struct nic_frame *frame, uint32_t qpn)
{
    struct qp *qp = nic_find_qp(nic, qpn);
    const bool marked = (frame->traffic_class & INET_ECN_MASK) == INET_ECN_MASK;
    return qp != NULL && qp->engine == ENGINE_RC && qp->type == QP_RC && qp->state == QP_RTS &&
                   qp->watching == WATCH_NOTHING && !marked &&
                   reach_is_peer(&qp->attributes.av.destination, &frame->source)
               ? qp
               : NULL;
}

static void count_arrival(struct nic *nic, uint32_t bytes, struct instant now)
{
    nic->now = now;
    nic_count(nic, COUNTER_rcvd_pkts);
    nic->counters.values[COUNTER_rcvd_bytes] += bytes;
}

/* The long way judges the same. */
static void check_arrival(const struct nic_frame *frame, const struct plain_frame *plain)
{
    struct roce_packet packet;
    const enum roce_verdict verdict =
        frame->payload == NULL ? roce_decode(frame->headers, frame->headers_bytes, &packet)
                               : roce_decode_split(frame->headers, frame->headers_bytes,
                                                   frame->payload, frame->payload_bytes, &packet);
    CHECK(verdict == ROCE_GOOD && nic_pkey_matches(&packet));
    CHECK(packet.opcode == plain->bth.opcode && packet.psn == plain->bth.psn);
    CHECK(packet.destination_qpn == plain->bth.destination_qpn);
    CHECK(packet.solicited == plain->bth.solicited);
    CHECK(packet.ack_request == plain->bth.ack_request);
    CHECK(packet.payload_bytes == plain->payload_bytes);
    CHECK(packet.payload == NULL || packet.payload == plain->payload);
}

static bool on_ack(struct qp *qp, const struct nic_frame *frame, const struct plain_frame *plain,
                   struct instant now)
{
    const uint32_t aeth = load_be32(plain->behind);
    if (plain->payload_bytes + plain->bth.pad_bytes != 0) {
        return false;
    }
    INVARIANTS(check_arrival(frame, plain));
    count_arrival(qp->nic, 0, now);
    rc_on_acknowledge(qp, psn_of(plain->bth.psn), (uint8_t)(aeth >> 24), aeth & ROCE_24_BITS, now);
    return true;
}

/* The first receive, if the message fits its first SGE; NULL: it does not, or there is none. */
static const struct receive *fitting_receive(const struct qp *qp, uint32_t bytes,
                                             struct segment *segment)
{
    const struct receive *receive =
        receive_queue_first(qp->srq == NULL ? &qp->receives : &qp->srq->queue);
    if (receive == NULL || receive->sge_count == 0 || receive->sges[0].bytes < bytes) {
        return NULL;
    }
    const struct sge *sge = &receive->sges[0];
    const struct pd *pd = qp->srq == NULL ? qp->pd : qp->srq->pd;
    return region_judge(&qp->nic->regions, sge->key, pd, NULL, sge->address, bytes,
                        ACCESS_LOCAL_WRITE, segment) == REACH_ALLOWED
               ? receive
               : NULL;
}

static void begin_move(struct qp *qp, const struct plain_frame *plain, struct nic_move *move)
{
    move->kind = NIC_MOVE_SCATTER;
    move->purpose = NIC_FOR_RECEIVE;
    move->in_order = true;
    move->segment_count = 1;
    move->payload = plain->payload;
    move->prefix_bytes = 0;
    move->qp = qp;
    move->psn = plain->bth.psn;
    move->epoch = qp->epoch;
    move->action = MOVE_REQUEST;
    move->ack_request = plain->bth.ack_request;
    move->completes = true;
    move->completion = (struct completion){
        .wr_id = qp->current->wr_id,
        .bytes = plain->payload_bytes,
        .qpn = qp->number,
        .status = COMPLETION_SUCCESS,
        .kind = COMPLETION_RECEIVE,
        .solicited = plain->bth.solicited,
    };
    if (plain->bth.opcode == SEND_IMMEDIATE) {
        move->completion.flags = COMPLETION_HAS_IMMEDIATE;
        memcpy(&move->completion.immediate, plain->behind, sizeof(move->completion.immediate));
    }
}

static bool on_send(struct qp *qp, const struct nic_frame *frame, const struct plain_frame *plain,
                    struct instant now, struct nic_move *move)
{
    const uint32_t bytes = plain->payload_bytes;
    if (bytes == 0 || !rc_responder_takes_send(&qp->in.rc, psn_of(plain->bth.psn), bytes) ||
        fitting_receive(qp, bytes, &move->segments[0]) == NULL) {
        return false;
    }
    INVARIANTS(check_arrival(frame, plain));
    count_arrival(qp->nic, bytes, now);
    (void)qp_take_receive(qp);
    begin_move(qp, plain, move);
    qp_release_receive(qp);
    nic_count(qp->nic, COUNTER_rdma_recvs);
    rc_responder_accept_send(&qp->in.rc);
    return true;
}

bool rc_short_on_piggyback(struct nic *nic, const struct nic_frame *frame, struct instant now)
{
    struct roce_plain bth;
    const struct nic_piggyback *ack = &frame->piggyback;
    if (!roce_plain_get(frame->headers, &bth)) {
        return false;
    }
    struct qp *qp = admitted(nic, frame, bth.destination_qpn);
    if (qp == NULL) {
        return false;
    }
    count_arrival(nic, 0, now);
    rc_on_acknowledge(qp, psn_of(ack->psn), (uint8_t)(ack->aeth >> 24), ack->aeth & ROCE_24_BITS,
                      now);
    return true;
}

static bool on_plain(struct nic *nic, const struct nic_frame *frame, struct instant now,
                     struct nic_move *move, bool *moves)
{
    struct plain_frame plain;
    if (!parse(frame, &plain)) {
        return false;
    }
    struct qp *qp = admitted(nic, frame, plain.bth.destination_qpn);
    if (qp == NULL) {
        return false;
    }
    *moves = plain.bth.opcode != ACKNOWLEDGE;
    return *moves ? on_send(qp, frame, &plain, now, move) : on_ack(qp, frame, &plain, now);
}

bool rc_short_on_packet(struct nic *nic, const struct nic_frame *frame, struct instant now,
                        struct nic_move *move, bool *moves)
{
    return frame->headers_bytes >= ROCE_BTH_BYTES && is_plain(frame->headers[0]) &&
           on_plain(nic, frame, now, move, moves);
}

/* -- Departure ----------------------------------------------------------------------------------*/

/* The long way encodes the same. */
static void check_headers(const struct roce_plain *bth, const struct nic_departure *departure,
                          uint32_t behind)
{
    uint8_t headers[NIC_HEADERS_BYTES_MAX];
    struct roce_packet packet = {
        .opcode = bth->opcode,
        .solicited = bth->solicited,
        .migration_request = true,
        .pad_bytes = bth->pad_bytes,
        .ack_request = bth->ack_request,
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = bth->destination_qpn,
        .psn = bth->psn,
        .aeth = {.syndrome = (uint8_t)(behind >> 24), .msn = behind & ROCE_24_BITS},
    };
    if (bth->opcode == SEND_IMMEDIATE) {
        store_be32(&packet.immediate, behind);
    }
    CHECK(roce_encode_headers(&packet, headers) == departure->headers_bytes);
    CHECK(memcmp(headers, departure->headers, departure->headers_bytes) == 0);
}

/* `behind` are the four bytes behind the BTH, if there are any. */
static void leave(struct qp *qp, const struct roce_plain *bth, uint32_t behind,
                  struct nic_departure *departure)
{
    departure->av = &qp->attributes.av;
    departure->destination_qpn = bth->destination_qpn;
    departure->psn = bth->psn;
    departure->route = 0;
    departure->ecn = NIC_ECN_OF_PATH;
    departure->direct.kind = NIC_DIRECT_NONE;
    departure->pad_bytes = bth->pad_bytes;
    departure->more_sends = qp_has_sends(qp);
    departure->headers_bytes = headers_of(bth->opcode);
    roce_plain_put(bth, departure->headers);
    store_be32(departure->headers + ROCE_BTH_BYTES, behind);
    INVARIANTS(check_headers(bth, departure, behind));
}

static uint32_t aeth_of(const struct qp *qp)
{
    const uint32_t syndrome = ROCE_AETH_ACK | (uint32_t)qp_credits(qp);
    return syndrome << 24 | qp->in.rc.msn;
}

static void next_ack(struct qp *qp, struct nic_departure *departure)
{
    const struct roce_plain bth = {
        .opcode = ACKNOWLEDGE,
        .destination_qpn = qp->attributes.destination_qpn,
        .psn = rc_responder_next_ack(&qp->in.rc).value,
    };
    departure->payload_bytes = 0;
    departure->segment_count = 0;
    departure->alone = false;
    departure->reply = true;
    leave(qp, &bth, aeth_of(qp), departure);
}

/* The acknowledgement that is owed travels with the request, whose payload is in the queue: a
 * request that cannot be sent in the end would take it along. */
static bool may_piggyback(const struct qp *qp)
{
    const struct work *work = send_queue_at(&qp->sends, qp->sends.next);
    return (work->flags & WORK_INLINE) != 0 &&
           work->bytes + ROCE_IMMDT_BYTES <= qp->attributes.av.piggyback_bytes;
}

static void piggyback(struct qp *qp, struct nic_departure *departure)
{
    departure->piggyback = (struct nic_piggyback){
        .there = true, .psn = rc_responder_next_ack(&qp->in.rc).value, .aeth = aeth_of(qp)};
    nic_count(qp->nic, COUNTER_sent_pkts);
}

/* Its payload: bytes of the queue, or of one SGE. */
static bool gather(const struct qp *qp, struct work *work, struct nic_departure *departure)
{
    departure->segment_count = work->bytes != 0;
    if (work->bytes == 0 || (work->flags & WORK_INLINE)) {
        departure->segments[0] =
            (struct segment){.address = (uintptr_t)work_inline(work), .bytes = work->bytes};
        return true;
    }
    const struct sge *sge = &work_sges(work)[0];
    return work->sge_count == 1 &&
           region_judge(&qp->nic->regions, sge->key, qp->pd, NULL, sge->address, work->bytes, 0,
                        &departure->segments[0]) == REACH_ALLOWED;
}

static bool next_send(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct work *work = rc_requester_plain_send(&qp->out.rc, &qp->sends);
    if (work == NULL || departure_is_behind_failure(qp) || !gather(qp, work, departure)) {
        return false;
    }
    const bool immediate = work->kind == WORK_SEND_IMMEDIATE;
    departure->alone = rc_requester_is_alone(&qp->out.rc);
    departure->reply = false;
    departure->payload_bytes = work->bytes;
    const bool asks = rc_requester_next_send(&qp->out.rc, &qp->sends, work, now);
    const struct roce_plain bth = {
        .opcode = immediate ? SEND_IMMEDIATE : SEND,
        .solicited = (work->flags & WORK_SOLICITED) != 0,
        .pad_bytes = roce_pad_bytes(work->bytes),
        .destination_qpn = qp->attributes.destination_qpn,
        .psn = work->first.value,
        .ack_request = asks,
    };
    leave(qp, &bth, load_be32(&work->immediate), departure);
    nic_count(qp->nic, COUNTER_rdma_sends);
    rc_arm_timer(qp);
    return true;
}

/* Replies and requests take turns here, too. */
static bool next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    const bool sends = qp_has_sends(qp), owes = rc_responder_owes_ack(&qp->in.rc);
    if (owes && sends && may_piggyback(qp) && next_send(qp, now, departure)) {
        piggyback(qp, departure); /* Both have had their turn. */
        return true;
    }
    if (owes && (!qp->reply_turn || !sends)) {
        next_ack(qp, departure);
    } else if (!sends || !next_send(qp, now, departure)) {
        return false;
    }
    qp->reply_turn = !qp->reply_turn;
    return true;
}

static bool is_plain_request(const struct qp *qp)
{
    const struct work *work = send_queue_at(&qp->sends, qp->sends.next);
    return work->kind == WORK_SEND || work->kind == WORK_SEND_IMMEDIATE;
}

bool rc_short_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    return qp->type == QP_RC && qp->state == QP_RTS && !qp->limited &&
           (!qp_has_sends(qp) || is_plain_request(qp)) && !rc_responder_owes_other(&qp->in.rc) &&
           next_packet(qp, now, departure);
}
