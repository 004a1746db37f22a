/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_send - packets that leave a reliable connection: requests, acknowledgements, responses.
 */
#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"

static void start_packet(struct qp *qp, struct nic_departure *departure, uint8_t operation,
                         struct psn psn)
{
    const uint8_t service = LIKELY(qp->type == QP_RC) ? ROCE_SERVICE_RC : ROCE_SERVICE_XRC;
    departure_start(qp, departure, ROCE_OPCODE(service, operation), psn);
    qp->nic->departing.destination_qpn = qp->attributes.destination_qpn;
    departure->av = &qp->attributes.av;
}

/* -- Replies ------------------------------------------------------------------------------------*/

static void encode_aeth(struct qp *qp, const struct rc_reply *reply)
{
    qp->nic->departing.aeth.syndrome = reply->syndrome;
    qp->nic->departing.aeth.msn = reply->msn;
}

static void count_nak(struct qp *qp, uint8_t syndrome)
{
    if ((syndrome & ROCE_AETH_KIND_MASK) == ROCE_AETH_RNR_NAK) {
        nic_count(qp->nic, COUNTER_send_rnr_err);
    }
}

/* The responses of a READ leave long after its request was judged: the key is judged again, since
 * the program may have taken the region away. */
static bool gather_response(struct qp *qp, const struct rc_reply *reply,
                            struct nic_departure *departure)
{
    const struct rc_resource *resource = reply->resource;
    if (reply->bytes == 0) {
        return true;
    }
    departure->segment_count = 1;
    const struct pd *pd = LIKELY(qp->pd != NULL) ? qp->pd : xrc_domain_of(qp->nic, resource->srqn);
    return region_judge(&qp->nic->regions, resource->key, pd, qp, resource->address + reply->offset,
                        reply->bytes, ACCESS_REMOTE_READ, &departure->segments[0]) == REACH_ALLOWED;
}

/* Responses of a READ are data that the responder sends, so its rate limits them. */
static bool reply_waits(struct qp *qp, struct instant now)
{
    return UNLIKELY(qp->limited) && rc_responder_next_is_data(&qp->in.rc) &&
           ecn_holds_back(qp, now);
}

bool rc_next_reply(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    if (!rc_responder_ready(&qp->in.rc) || reply_waits(qp, now)) {
        return false;
    }
    const struct rc_reply reply = rc_responder_next_reply(&qp->in.rc, qp_credits(qp));
    switch (reply.kind) {
    case RC_REPLY_NONE: return false;
    case RC_REPLY_ACK:
    case RC_REPLY_NAK:
        start_packet(qp, departure, ROCE_ACKNOWLEDGE, reply.psn);
        encode_aeth(qp, &reply);
        count_nak(qp, reply.syndrome);
        return true;
    case RC_REPLY_ATOMIC:
        start_packet(qp, departure, (uint8_t)single_answer(reply.resource->operation), reply.psn);
        encode_aeth(qp, &reply);
        qp->nic->departing.atomic_original = reply.resource->original;
        return true;
    case RC_REPLY_READ_RESPONSE:
        start_packet(qp, departure, (uint8_t)reply.operation, reply.psn);
        encode_aeth(qp, &reply);
        if (!gather_response(qp, &reply, departure)) {
            start_packet(qp, departure, ROCE_ACKNOWLEDGE, reply.psn);
            qp->nic->departing.aeth.syndrome = ROCE_NAK_REMOTE_ACCESS;
            qp->nic->departing.aeth.msn = reply.msn;
            nic_count(qp->nic, COUNTER_nak_unknown_key);
            qp->last_words = false;
            qp_raise(qp, NIC_EVENT_QP_ACCESS_ERROR);
            qp_enter_error(qp);
            return true;
        }
        departure_set_payload(qp, departure, reply.bytes);
        if (UNLIKELY(qp->limited)) {
            (void)ecn_on_sent(qp, reply.bytes, now);
        }
        return true;
    }
    UNREACHABLE("a reply outside its enum");
}

/* -- Requests -----------------------------------------------------------------------------------*/

static void encode_request(struct qp *qp, const struct rc_outgoing *out)
{
    struct roce_packet *packet = &qp->nic->departing;
    const struct work *work = out->work;
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    packet->ack_request = out->ack_request;
    packet->solicited = out->last && (work->flags & WORK_SOLICITED) &&
                        ((traits & ROCE_IS_SEND) || (traits & ROCE_HAS_IMMDT));
    if (traits & ROCE_HAS_RETH) {
        packet->reth.address = work->remote_address + out->offset;
        packet->reth.key = work->remote_key;
        packet->reth.bytes = (traits & ROCE_IS_READ) ? out->bytes : work->bytes;
    }
    if (traits & ROCE_HAS_FETH) {
        packet->reth.bytes = work->flush.bytes;
        packet->feth.placement = work->flush.placement;
        packet->feth.selectivity = work->flush.selectivity;
        packet->feth.reserved = 0;
    }
    if (traits & ROCE_HAS_ATOMIC_ETH) {
        const bool swap = work->kind == WORK_COMPARE_SWAP;
        packet->atomic.address = work->remote_address;
        packet->atomic.key = work->remote_key;
        packet->atomic.swap_or_add = swap ? work->atomic.swap : work->atomic.compare_or_add;
        packet->atomic.compare = swap ? work->atomic.compare_or_add : 0;
    }
    if (traits & ROCE_HAS_IMMDT) {
        packet->immediate = work->immediate;
    }
    if (traits & ROCE_HAS_IETH) {
        packet->invalidate_key = work->immediate;
    }
    if (traits & ROCE_HAS_XRCETH) {
        packet->xrc.srqn = work->srqn;
        packet->xrc.reserved = 0;
    }
}

/* Describes a READ, or a WRITE without immediate data: the world may execute these itself, without
 * the NIC of a local peer. */
static void note_direct(const struct rc_outgoing *out, struct nic_departure *departure)
{
    const struct work *work = out->work;
    if (work->kind != WORK_READ && work->kind != WORK_WRITE) {
        return;
    }
    const bool begins = work->kind == WORK_WRITE && out->offset == 0;
    departure->direct = (struct nic_direct){
        .kind = work->kind == WORK_READ ? NIC_DIRECT_READ : NIC_DIRECT_WRITE,
        .message_bytes = work->bytes,
        .address = work->remote_address + out->offset,
        .key = work->remote_key,
        .bytes = begins ? work->bytes : out->bytes,
    };
}

static void count_request(struct qp *qp, const struct rc_outgoing *out)
{
    if (out->resent) {
        nic_count(qp->nic, COUNTER_retransmitted_pkts);
    } else if (out->last) {
        departure_count_request(qp, out->work);
    }
}

/* While a failed request waits for its turn to complete, nothing behind it leaves. The requests
 * before it complete as usual, so an acknowledgement has to be asked for. */
static bool held_by_failure(struct qp *qp)
{
    if ((!departure_is_behind_failure(qp) && departure_may_begin(qp, true)) ||
        rc_requester_ask(&qp->out.rc, &qp->sends)) {
        return false;
    }
    rc_collect(qp);
    return true;
}

/* While the queue drains, a request that has not begun waits for RTS, and is not judged before. */
static bool is_drained(const struct qp *qp)
{
    return qp_has_sends(qp) && !send_queue_at(&qp->sends, qp->sends.next)->started;
}

/* The payload of a request is not there. The requests before it complete as usual. */
static void fail_sent(struct qp *qp, struct work *work)
{
    rc_fail_in_turn(qp, work, COMPLETION_LOCAL_PROTECTION);
    rc_requester_on_unsent(&qp->out.rc, work);
}

/* False: the request was local work, or its payload is not there; then the next one may leave. */
static bool begin_packet(struct qp *qp, const struct rc_outgoing *out,
                         struct nic_departure *departure)
{
    if (work_is_local(out->work)) {
        if (!qp_execute_local(qp, out->work)) {
            out->work->status = COMPLETION_WINDOW_BIND;
        }
        rc_collect(qp);
        return false;
    }
    start_packet(qp, departure, (uint8_t)out->operation, out->psn);
    if (work_wants_data(out->work) ||
        departure_gather(qp, out->work, out->offset, out->bytes, departure)) {
        return true;
    }
    fail_sent(qp, out->work);
    return false;
}

bool rc_next_request(struct qp *qp, bool draining, struct instant now,
                     struct nic_departure *departure)
{
    struct rc_outgoing out;
    if (UNLIKELY(qp->limited) && qp_has_sends(qp) && ecn_holds_back(qp, now)) {
        return false;
    }
    do {
        /* Requests in flight may have left it to one that has not begun to ask for an ACK. */
        const bool held = draining && is_drained(qp) ? !rc_requester_ask(&qp->out.rc, &qp->sends)
                                                     : held_by_failure(qp);
        if (held || !rc_requester_next(&qp->out.rc, &qp->sends, draining, now, &out)) {
            return false;
        }
    } while (!begin_packet(qp, &out, departure) && qp->state != QP_ERR);
    if (qp->state == QP_ERR) {
        return false;
    }
    encode_request(qp, &out);
    if (UNLIKELY(qp->limited) && ecn_on_sent(qp, departure->payload_bytes, now) &&
        !work_wants_response(out.work)) {
        qp->nic->departing.ack_request = true;
        rc_requester_on_asked(&qp->out.rc);
    }
    count_request(qp, &out);
    departure->alone = out.alone;
    note_direct(&out, departure);
    departure->more_sends = qp->sends.next != qp->sends.tail;
    rc_arm_timer(qp);
    return true;
}

/* Replies and requests take turns, so that neither starves the other. */
static bool next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    const bool sending = qp->state == QP_RTS || qp->state == QP_SQD;
    const bool replying = sending || qp->state == QP_RTR || qp->last_words;
    qp->reply_turn = !qp->reply_turn;
    if (replying && qp->reply_turn && rc_next_reply(qp, now, departure)) {
        return true;
    }
    if (sending && rc_next_request(qp, qp->state == QP_SQD, now, departure)) {
        return true;
    }
    if (qp->state == QP_ERR && !qp->last_words) {
        return false;
    }
    return replying && rc_next_reply(qp, now, departure);
}

bool rc_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    if (LIKELY(!qp->nic->limits.long_way) && rc_short_next_packet(qp, now, departure)) {
        return true;
    }
    if (!next_packet(qp, now, departure)) {
        return false;
    }
    departure_seal(qp, departure);
    return true;
}

void rc_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    if (!departure->reply) {
        struct work *work = send_queue_at(&qp->sends, qp->sends.head);
        for (uint32_t at = qp->sends.head; !work_covers(work, psn_of(departure->psn));) {
            work = send_queue_at(&qp->sends, ++at);
        }
        fail_sent(qp, work);
        if (qp->state != QP_ERR) {
            nic_schedule(qp);
        }
        return;
    }
    nic_count(qp->nic, COUNTER_nak_operational);
    rc_responder_refuse(&qp->in.rc, psn_of(departure->psn), ROCE_NAK_REMOTE_ACCESS);
    qp->last_words = true;
    qp_raise(qp, NIC_EVENT_QP_ACCESS_ERROR);
    qp_enter_error(qp);
    nic_schedule(qp);
}

/* -- Direct access by the world -----------------------------------------------------------------*/

bool rc_read_target(const struct nic_departure *departure, struct segment *segments,
                    uint32_t *count)
{
    const struct qp *qp = departure->qp;
    struct work *work = rc_requester_oldest(&qp->out.rc, &qp->sends);
    CHECK(departure->alone && work != NULL && work->kind == WORK_READ);
    const uint32_t index = psn_count(work->first, psn_of(departure->psn));
    return sges_gather(qp, work_sges(work), work->sge_count, index * qp->mtu_bytes,
                       departure->direct.bytes, ACCESS_LOCAL_WRITE, segments, count) == GATHER_GOOD;
}

void rc_on_fetched(struct qp *qp, struct instant now)
{
    rc_requester_on_fetched(&qp->out.rc, &qp->sends, now);
    rc_go_on(qp);
}

void rc_wait_to_place(struct qp *qp)
{
    rc_requester_wait_to_place(&qp->out.rc);
}

void rc_on_placed(struct qp *qp, struct instant now)
{
    rc_requester_on_placed(&qp->out.rc, &qp->sends, now);
    rc_go_on(qp);
}
