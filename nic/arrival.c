/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arrival - frames that came in: their decoding, and the queue pair that each one names.
 */
#include "nic/arrival.h"

#include "base/bytes.h"
#include "nic/engine.h"
#include "nic/internal.h"
#include "wire/cm.h"
#include "wire/roce_plain.h"

static enum nic_counter counter_of(enum roce_verdict verdict)
{
    switch (verdict) {
    case ROCE_SHORT: return COUNTER_drop_short;
    case ROCE_UNKNOWN_OPCODE: return COUNTER_drop_unknown_opcode;
    case ROCE_WRONG_VERSION: return COUNTER_drop_wrong_version;
    case ROCE_WRONG_PAD: return COUNTER_drop_wrong_pad;
    case ROCE_TOO_LONG: return COUNTER_drop_too_long;
    case ROCE_GOOD:
    case ROCE_VERDICT_COUNT: break;
    }
    UNREACHABLE("no counter for a good packet");
}

static enum roce_verdict decode(struct nic *nic, const struct nic_frame *frame,
                                struct nic_arrival *arrival)
{
    const enum roce_verdict verdict =
        frame->payload == NULL
            ? roce_decode(frame->headers, frame->headers_bytes, &arrival->packet)
            : roce_decode_split(frame->headers, frame->headers_bytes, frame->payload,
                                frame->payload_bytes, &arrival->packet);
    if (UNLIKELY(verdict != ROCE_GOOD)) {
        return verdict;
    }
    arrival->source = frame->source;
    arrival->destination = frame->destination;
    arrival->traffic_class = frame->traffic_class;
    arrival->hop_limit = frame->hop_limit;
    arrival->flow_label = frame->flow_label;
    arrival->placed = frame->placed;
    nic_count(nic, COUNTER_rcvd_pkts);
    nic->counters.values[COUNTER_rcvd_bytes] += arrival->packet.payload_bytes;
    return ROCE_GOOD;
}

bool nic_decode(struct nic *nic, const struct nic_frame *frame, struct nic_arrival *arrival)
{
    const enum roce_verdict verdict = decode(nic, frame, arrival);
    return LIKELY(verdict == ROCE_GOOD) || nic_drop(nic, counter_of(verdict));
}

/* The queue pair that the frame's BTH names, before the frame is judged; NULL: there is none. */
static struct qp *named(const struct nic *nic, const struct nic_frame *frame)
{
    return frame->headers_bytes < ROCE_BTH_BYTES
               ? NULL
               : nic_find_qp(nic, load_be32(frame->headers + 4) & ROCE_24_BITS);
}

static void check_named(const struct nic *nic, const struct nic_frame *frame)
{
    const struct qp *qp = named(nic, frame);
    if (qp != NULL) {
        qp_check_duties(qp);
    }
}

/* A frame that is no packet of RoCE: one of the block transport, or none at all. */
static enum nic_arrived on_other(struct nic *nic, const struct nic_frame *frame,
                                 enum roce_verdict verdict, struct instant now,
                                 struct nic_move *move)
{
    if (verdict == ROCE_UNKNOWN_OPCODE && block_is(frame->headers[0])) {
        INVARIANTS(check_named(nic, frame));
        const enum nic_arrived arrived = engine_on_frame(nic, frame, now, move);
        INVARIANTS(check_named(nic, frame));
        return arrived;
    }
    if (verdict == ROCE_UNKNOWN_OPCODE && srd_is(frame->headers[0]) && nic->srd != NULL) {
        return engine_on_srd_frame(nic, frame, now, move);
    }
    nic_count(nic, counter_of(verdict));
    return NIC_DONE;
}

/* Judges the one field that is the same for all queue pairs: the partition key. */
static bool judge_any(struct nic *nic, const struct roce_packet *packet)
{
    return nic_pkey_matches(packet) || nic_drop(nic, COUNTER_drop_wrong_pkey);
}

static bool judge_management(struct nic *nic, const struct roce_packet *packet)
{
    if (packet->opcode != ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY)) {
        return nic_drop(nic, COUNTER_drop_wrong_service);
    }
    return packet->deth.qkey == CM_QKEY || nic_drop(nic, COUNTER_drop_wrong_qkey);
}

static enum nic_arrived on_packet(struct nic *nic, const struct nic_frame *frame,
                                  struct instant now, struct nic_move *move)
{
    struct nic_arrival arrival;
    const struct roce_packet *packet = &arrival.packet;
    const enum roce_verdict verdict = decode(nic, frame, &arrival);
    nic->now = now;
    if (UNLIKELY(verdict != ROCE_GOOD)) {
        return on_other(nic, frame, verdict, now, move);
    }
    if (!judge_any(nic, packet)) {
        return NIC_DONE;
    }
    if (UNLIKELY(packet->destination_qpn == CM_QPN)) {
        move->payload = packet->payload;
        move->payload_bytes = packet->payload_bytes;
        return judge_management(nic, packet) ? NIC_MANAGEMENT : NIC_DONE;
    }
    struct qp *qp = nic_find_qp(nic, packet->destination_qpn);
    if (UNLIKELY(qp == NULL)) {
        nic_count(nic, COUNTER_drop_unknown_qp);
        return NIC_DONE;
    }
    INVARIANTS(qp_check_duties(qp));
    if (UNLIKELY(packet->opcode == ROCE_OPCODE_CNP)) {
        engine_on_cnp(qp, &arrival, now);
        INVARIANTS(qp_check_duties(qp));
        return NIC_DONE;
    }
    const bool moves = engine_on_packet(qp, &arrival, now, move);
    INVARIANTS(qp_check_duties(qp));
    return moves ? NIC_MOVES : NIC_DONE;
}

struct nic_frame nic_piggyback_frame(const struct nic_frame *frame,
                                     uint8_t headers[NIC_ACK_HEADERS_BYTES])
{
    struct nic_frame ack = *frame;
    const struct roce_plain bth = {.opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
                                   .destination_qpn = load_be32(frame->headers + 4) & ROCE_24_BITS,
                                   .psn = frame->piggyback.psn & ROCE_24_BITS};
    CHECK(frame->piggyback.there && frame->headers_bytes >= ROCE_BTH_BYTES);
    roce_plain_put(&bth, headers);
    store_be32(headers + ROCE_BTH_BYTES, frame->piggyback.aeth);
    ack.headers = headers;
    ack.headers_bytes = NIC_ACK_HEADERS_BYTES;
    ack.payload = headers + NIC_ACK_HEADERS_BYTES;
    ack.payload_bytes = 0;
    ack.piggyback.there = false;
    ack.placed = false;
    return ack;
}

/* It comes before the request that it travels with. */
static void on_piggyback(struct nic *nic, const struct nic_frame *frame, struct instant now)
{
    uint8_t headers[NIC_ACK_HEADERS_BYTES];
    struct nic_move move;
    if (frame->headers_bytes >= ROCE_BTH_BYTES && !engine_on_piggyback(nic, frame, now)) {
        const struct nic_frame ack = nic_piggyback_frame(frame, headers);
        (void)on_packet(nic, &ack, now, &move); /* It moves nothing. */
    }
}

enum nic_arrived nic_on_packet(struct nic *nic, const struct nic_frame *frame, struct instant now,
                               struct nic_move *move)
{
    bool moves;
    if (frame->piggyback.there) {
        on_piggyback(nic, frame, now);
    }
    INVARIANTS(check_named(nic, frame));
    if (UNLIKELY(nic->limits.long_way) || !engine_on_plain_frame(nic, frame, now, move, &moves)) {
        return on_packet(nic, frame, now, move);
    }
    INVARIANTS(check_named(nic, frame));
    return moves ? NIC_MOVES : NIC_DONE;
}

void *nic_frame_link(const struct nic *nic, const struct nic_frame *frame)
{
    const struct qp *qp = named(nic, frame);
    return qp == NULL || qp->type == QP_UD ? NULL : qp->attributes.av.link;
}

void nic_on_moved(struct nic *nic, struct nic_move *move, enum nic_move_result result,
                  struct instant now)
{
    INVARIANTS(qp_check_duties(move->qp));
    nic->now = now;
    engine_on_moved(move->qp, move, result, now);
    INVARIANTS(qp_check_duties(move->qp));
}

bool nic_next_held(struct nic *nic, struct nic_move *move)
{
    if (nic->holder == NULL) {
        return false;
    }
    if (engine_next_held(nic->holder, move)) {
        return true;
    }
    nic->holder = NULL;
    return false;
}
