/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_short - the short way of the packets that a reliable connection has most: a SEND or WRITE of
 * one packet, and an acknowledgement that stands alone.
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
    SEND = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY),
    SEND_IMMEDIATE = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY_IMMEDIATE),
    WRITE = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_WRITE_ONLY),
    WRITE_IMMEDIATE = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_WRITE_ONLY_IMMEDIATE),
    ACKNOWLEDGE = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
};

/* -- Arrival ------------------------------------------------------------------------------------*/

/* A frame that may take the short way. */
struct plain_frame {
    struct roce_plain bth;
    const uint8_t *behind; /* The BTH: the RETH, the immediate, or the AETH. */
    const uint8_t *payload;
    uint32_t payload_bytes;
};

/* Bytes of their headers; 0: not one of the above. */
static const uint8_t headers[32] = {
    [SEND] = ROCE_BTH_BYTES,
    [SEND_IMMEDIATE] = ROCE_BTH_BYTES + ROCE_IMMDT_BYTES,
    [WRITE] = ROCE_BTH_BYTES + ROCE_RETH_BYTES,
    [WRITE_IMMEDIATE] = ROCE_BTH_BYTES + ROCE_RETH_BYTES + ROCE_IMMDT_BYTES,
    [ACKNOWLEDGE] = ROCE_BTH_BYTES + ROCE_AETH_BYTES,
};

static uint32_t headers_of(uint8_t opcode)
{
    return opcode < sizeof(headers) ? headers[opcode] : 0;
}

static ALWAYS_INLINE bool parse(const struct nic_frame *frame, uint32_t headers_bytes,
                                struct plain_frame *plain)
{
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

static const struct receive *first_receive(const struct qp *qp)
{
    return receive_queue_first(qp_receives(qp));
}

/* The first receive, if the message fits its first SGE; NULL: it does not, or there is none. */
static const struct receive *fitting_receive(const struct qp *qp, uint32_t bytes,
                                             struct segment *segment)
{
    const struct receive *receive = first_receive(qp);
    if (receive == NULL || receive->sge_count == 0 || receive->sges[0].bytes < bytes) {
        return NULL;
    }
    const struct sge *sge = &receive->sges[0];
    const struct pd *pd = qp->shares ? qp->shared.srq->pd : qp->pd;
    return region_judge(&qp->nic->regions, sge->key, pd, NULL, sge->address, bytes,
                        ACCESS_LOCAL_WRITE, segment) == REACH_ALLOWED
               ? receive
               : NULL;
}

static void begin_move(struct qp *qp, const struct plain_frame *plain, struct nic_move *move)
{
    move->kind = NIC_MOVE_SCATTER;
    move->in_order = true;
    move->segment_count = 1;
    move->payload = plain->payload;
    move->prefix_bytes = 0;
    move->qp = qp;
    move->psn = plain->bth.psn;
    move->epoch = qp->epoch;
    move->action = MOVE_REQUEST;
    move->ack_request = plain->bth.ack_request;
}

/* The message ends a receive. `immediate`: where that is in the frame; NULL: there is none. */
static void end_receive(struct qp *qp, const struct plain_frame *plain, enum completion_kind kind,
                        const uint8_t *immediate, struct nic_move *move)
{
    (void)qp_take_receive(qp);
    move->completes = true;
    move->completion = (struct completion){
        .wr_id = qp->current->wr_id,
        .bytes = plain->payload_bytes,
        .qpn = qp->number,
        .status = COMPLETION_SUCCESS,
        .kind = (uint8_t)kind,
        .solicited = plain->bth.solicited,
    };
    if (immediate != NULL) {
        move->completion.flags = COMPLETION_HAS_IMMEDIATE;
        memcpy(&move->completion.immediate, immediate, sizeof(move->completion.immediate));
    }
    qp_release_receive(qp);
    nic_count(qp->nic, COUNTER_rdma_recvs);
}

static bool on_send(struct qp *qp, const struct nic_frame *frame, const struct plain_frame *plain,
                    struct instant now, struct nic_move *move)
{
    const uint32_t bytes = plain->payload_bytes;
    if (bytes == 0 || !rc_responder_takes_plain(&qp->in.rc, psn_of(plain->bth.psn), bytes) ||
        fitting_receive(qp, bytes, &move->segments[0]) == NULL) {
        return false;
    }
    INVARIANTS(check_arrival(frame, plain));
    count_arrival(qp->nic, bytes, now);
    begin_move(qp, plain, move);
    move->purpose = NIC_FOR_RECEIVE;
    end_receive(qp, plain, COMPLETION_RECEIVE,
                plain->bth.opcode == SEND_IMMEDIATE ? plain->behind : NULL, move);
    rc_responder_accept_plain(&qp->in.rc, plain->bth.opcode);
    return true;
}

/* The memory that a WRITE names, if the peer may write there. */
static bool grants_write(const struct qp *qp, const uint8_t *reth, uint32_t bytes,
                         struct segment *segment)
{
    return reach_grants(qp->attributes.access, ACCESS_REMOTE_WRITE) &&
           region_judge(&qp->nic->regions, load_be32(reth + 8), qp->pd, qp, load_be64(reth), bytes,
                        ACCESS_REMOTE_WRITE, segment) == REACH_ALLOWED;
}

/* A WRITE that was placed is not judged any more (rc_request.c). A function of its own, so that
 * SENDs save no registers for it. */
static __attribute__((noinline)) bool on_write(struct qp *qp, const struct nic_frame *frame,
                                               const struct plain_frame *plain, struct instant now,
                                               struct nic_move *move)
{
    const uint32_t bytes = plain->payload_bytes;
    const bool immediate = plain->bth.opcode == WRITE_IMMEDIATE;
    const bool placed = frame->placed && !immediate;
    if (bytes == 0 || load_be32(plain->behind + 12) != bytes ||
        !rc_responder_takes_plain(&qp->in.rc, psn_of(plain->bth.psn), bytes) ||
        (!placed && !grants_write(qp, plain->behind, bytes, &move->segments[0])) ||
        (immediate && first_receive(qp) == NULL)) {
        return false;
    }
    INVARIANTS(check_arrival(frame, plain));
    count_arrival(qp->nic, bytes, now);
    begin_move(qp, plain, move);
    move->purpose = NIC_FOR_PEER;
    move->completes = false;
    if (placed) {
        move->kind = NIC_MOVE_NOTHING;
        move->segment_count = 0;
    }
    if (immediate) {
        end_receive(qp, plain, COMPLETION_RECEIVE_WRITE_IMMEDIATE, plain->behind + ROCE_RETH_BYTES,
                    move);
    }
    rc_responder_accept_plain(&qp->in.rc, plain->bth.opcode);
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

static bool on_plain(struct nic *nic, const struct nic_frame *frame, uint32_t headers_bytes,
                     struct instant now, struct nic_move *move, bool *moves)
{
    struct plain_frame plain;
    if (!parse(frame, headers_bytes, &plain)) {
        return false;
    }
    struct qp *qp = admitted(nic, frame, plain.bth.destination_qpn);
    if (qp == NULL) {
        return false;
    }
    *moves = plain.bth.opcode != ACKNOWLEDGE;
    if (!*moves) {
        return on_ack(qp, frame, &plain, now);
    }
    const bool sends = plain.bth.opcode == SEND || plain.bth.opcode == SEND_IMMEDIATE;
    return sends ? on_send(qp, frame, &plain, now, move) : on_write(qp, frame, &plain, now, move);
}

bool rc_short_on_packet(struct nic *nic, const struct nic_frame *frame, struct instant now,
                        struct nic_move *move, bool *moves)
{
    const uint32_t headers_bytes =
        frame->headers_bytes >= ROCE_BTH_BYTES ? headers_of(frame->headers[0]) : 0;
    return headers_bytes != 0 && on_plain(nic, frame, headers_bytes, now, move, moves);
}

/* -- Departure ----------------------------------------------------------------------------------*/

/* The long way encodes the same, of a request or of an acknowledgement. */
static void check_headers(const struct roce_plain *bth, const struct work *work, uint32_t aeth,
                          const struct nic_departure *departure)
{
    uint8_t encoded[NIC_HEADERS_BYTES_MAX];
    struct roce_packet packet = {
        .opcode = bth->opcode,
        .solicited = bth->solicited,
        .migration_request = true,
        .pad_bytes = bth->pad_bytes,
        .ack_request = bth->ack_request,
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = bth->destination_qpn,
        .psn = bth->psn,
        .aeth = {.syndrome = (uint8_t)(aeth >> 24), .msn = aeth & ROCE_24_BITS},
    };
    if (work != NULL) {
        packet.immediate = work->immediate;
        packet.reth.address = work->remote_address;
        packet.reth.key = work->remote_key;
        packet.reth.bytes = work->bytes;
    }
    CHECK(roce_encode_headers(&packet, encoded) == departure->headers_bytes);
    CHECK(memcmp(encoded, departure->headers, departure->headers_bytes) == 0);
}

/* Returns where the headers behind the BTH go. */
static uint8_t *leave(struct qp *qp, const struct roce_plain *bth, struct nic_departure *departure)
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
    return departure->headers + ROCE_BTH_BYTES;
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
    const uint32_t aeth = aeth_of(qp);
    store_be32(leave(qp, &bth, departure), aeth);
    INVARIANTS(check_headers(&bth, NULL, aeth, departure));
}

/* The acknowledgement that is owed travels with the request, whose payload is in the queue: a
 * request that cannot be sent in the end would take it along, and so would a WRITE that the world
 * places itself. */
static bool may_piggyback(const struct qp *qp)
{
    const struct work *work = send_queue_at(&qp->sends, qp->sends.next);
    const uint32_t behind =
        work->kind == WORK_WRITE_IMMEDIATE ? ROCE_RETH_BYTES + ROCE_IMMDT_BYTES : ROCE_IMMDT_BYTES;
    return (work->flags & WORK_INLINE) != 0 && work->kind != WORK_WRITE &&
           work->bytes + behind <= qp->attributes.av.piggyback_bytes;
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

static const uint8_t opcodes[] = {
    [WORK_SEND] = SEND,
    [WORK_SEND_IMMEDIATE] = SEND_IMMEDIATE,
    [WORK_WRITE] = WRITE,
    [WORK_WRITE_IMMEDIATE] = WRITE_IMMEDIATE,
};

/* Returns where the immediate goes. Without one the world may do the WRITE itself. */
static __attribute__((noinline)) uint8_t *put_reth(const struct work *work, uint8_t *reth,
                                                   struct nic_departure *departure)
{
    store_be64(reth, work->remote_address);
    store_be32(reth + 8, work->remote_key);
    store_be32(reth + 12, work->bytes);
    if (work->kind == WORK_WRITE) {
        departure->direct = (struct nic_direct){
            .kind = NIC_DIRECT_WRITE,
            .message_bytes = work->bytes,
            .address = work->remote_address,
            .key = work->remote_key,
            .bytes = work->bytes,
        };
    }
    return reth + ROCE_RETH_BYTES;
}

static bool next_request(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct work *work = rc_requester_plain(&qp->out.rc, &qp->sends);
    if (work == NULL || !gather(qp, work, departure)) {
        return false;
    }
    const bool writes = work->kind == WORK_WRITE || work->kind == WORK_WRITE_IMMEDIATE;
    departure->alone = rc_requester_is_alone(&qp->out.rc);
    departure->reply = false;
    departure->payload_bytes = work->bytes;
    const bool asks = rc_requester_next_plain(&qp->out.rc, &qp->sends, work, now);
    const struct roce_plain bth = {
        .opcode = opcodes[work->kind],
        .solicited = (work->flags & WORK_SOLICITED) != 0 && work->kind != WORK_WRITE,
        .pad_bytes = roce_pad_bytes(work->bytes),
        .destination_qpn = qp->attributes.destination_qpn,
        .psn = work->first.value,
        .ack_request = asks,
    };
    uint8_t *behind = leave(qp, &bth, departure);
    if (writes) {
        behind = put_reth(work, behind, departure);
    }
    memcpy(behind, &work->immediate, sizeof(work->immediate)); /* If it has none, for nothing. */
    INVARIANTS(check_headers(&bth, work, 0, departure));
    nic_count(qp->nic, writes ? COUNTER_rdma_writes : COUNTER_rdma_sends);
    rc_arm_timer(qp);
    return true;
}

/* Replies and requests take turns here, too. */
static bool next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    const bool sends = qp_has_sends(qp), owes = rc_responder_owes_ack(&qp->in.rc);
    if (owes && sends && may_piggyback(qp) && next_request(qp, now, departure)) {
        piggyback(qp, departure); /* Both have had their turn. */
        return true;
    }
    if (owes && (!qp->reply_turn || !sends)) {
        next_ack(qp, departure);
    } else if (!sends || !next_request(qp, now, departure)) {
        return false;
    }
    qp->reply_turn = !qp->reply_turn;
    return true;
}

/* Behind a failure requests in flight may have to be asked for, which has a turn like any other. */
bool rc_short_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    return qp->type == QP_RC && qp->state == QP_RTS && !qp->limited &&
           !departure_is_behind_failure(qp) &&
           (!qp_has_sends(qp) || work_is_plain(send_queue_at(&qp->sends, qp->sends.next))) &&
           !rc_responder_owes_other(&qp->in.rc) && next_packet(qp, now, departure);
}
