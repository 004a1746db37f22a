/* SPDX-License-Identifier: BSD-2-Clause
 *
 * unreliable - UC and UD: messages that nobody acknowledges.
 *
 * Source: IBTA Vol. 1, 9.8 (unreliable services): a wrong packet is dropped and counted, never
 * answered; a send completes when its last packet has left.
 */
#include "base/bytes.h"
#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"

/* -- Life ---------------------------------------------------------------------------------------*/

void uc_start_receiving(struct qp *qp)
{
    qp->mtu_bytes = (uint16_t)path_mtu_bytes((enum path_mtu)qp->attributes.path_mtu);
    uc_responder_init(&qp->in.uc, psn_of(qp->attributes.psn.receive), qp->mtu_bytes);
}

void ud_start_receiving(struct qp *qp)
{
    qp->mtu_bytes = (uint16_t)path_mtu_bytes(qp->nic->limits.mtu);
}

void unreliable_start_sending(struct qp *qp)
{
    qp->out.next_psn = psn_of(qp->attributes.psn.send);
}

/* Is no request half sent? Then all that were sent are complete. */
static bool is_drained(const struct qp *qp)
{
    return qp->sends.next == qp->sends.tail || !send_queue_at(&qp->sends, qp->sends.next)->started;
}

void unreliable_drain(struct qp *qp)
{
    if (is_drained(qp)) {
        qp_note_drained(qp);
    }
}

/* A queue pair that could go on is listed, or it would never be pulled from. Exceptions: the world
 * keeps the turns itself (turns_taken), or a rate makes the queue pair pause. */
void unreliable_check_duties(const struct qp *qp)
{
    CHECK(qp->listing != QP_LISTED_NOWHERE || qp->state != QP_RTS || qp->nic->turns_taken ||
          qp->paused || !qp_has_sends(qp));
}

/* -- Sending ------------------------------------------------------------------------------------*/

/* The request at the cursor, once local work in front of it is done; NULL: nothing is to be sent,
 * or a failure stopped the queue. */
static struct work *current_work(struct qp *qp, uint32_t longest)
{
    while (qp->sends.next != qp->sends.tail && (qp->state == QP_RTS || qp->state == QP_SQD)) {
        struct work *work = send_queue_at(&qp->sends, qp->sends.next);
        if (!work->started && qp->state == QP_SQD) {
            return NULL;
        }
        if (work->started) {
            return work;
        }
        if (work->bytes > longest) {
            qp_fail_work(qp, work, COMPLETION_LOCAL_LENGTH);
            return NULL;
        }
        if (!work_memory_allowed(qp, work)) {
            qp_fail_work(qp, work, COMPLETION_LOCAL_PROTECTION);
            return NULL;
        }
        work->started = true;
        work->first = qp->out.next_psn;
        work->packets = 0;
        if (!work_is_local(work)) {
            work->packets = packets_of(work->bytes, qp->mtu_bytes);
            return work;
        }
        qp->sends.next++;
        if (!qp_execute_local(qp, work)) {
            qp_fail_work(qp, work, COMPLETION_WINDOW_BIND);
            return NULL;
        }
        qp_complete_work(qp, work, COMPLETION_SUCCESS);
    }
    return NULL;
}

/* The packet left: the cursor moves on, and the last packet of a request completes it. */
static void sent(struct qp *qp, struct work *work, bool last)
{
    qp->out.next_psn = psn_after(qp->out.next_psn, 1);
    if (last) {
        departure_count_request(qp, work);
        qp->sends.next++;
        qp_complete_work(qp, work, COMPLETION_SUCCESS);
    }
    if (qp->state == QP_SQD && !qp->drained && is_drained(qp)) {
        qp_note_drained(qp);
    }
}

/* The request of a message's last packet completed when the packet was pulled. Nobody has polled
 * since, so its completion is taken back. */
void unreliable_on_gather_failed(struct qp *qp)
{
    struct send_queue *queue = &qp->sends;
    if (is_drained(qp)) {
        const struct work *work = send_queue_at(queue, --queue->head);
        queue->next--;
        if (qp->signal_all || (work->flags & WORK_SIGNALED)) {
            cq_take_back(qp->send_cq, qp->number, work->wr_id);
        }
    }
    qp_fail_work(qp, send_queue_at(queue, queue->next), COMPLETION_LOCAL_PROTECTION);
}

bool uc_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    if (UNLIKELY(qp->limited) && qp_has_sends(qp) && ecn_holds_back(qp, now)) {
        return false;
    }
    struct work *work = current_work(qp, MESSAGE_BYTES_MAX);
    if (work == NULL) {
        return false;
    }
    const uint32_t index = (uint32_t)psn_distance(work->first, qp->out.next_psn);
    const struct piece piece = work_piece(work, index, qp->mtu_bytes);
    struct roce_packet *packet = &qp->nic->departing;
    departure_start(qp, departure, ROCE_OPCODE(ROCE_SERVICE_UC, piece.operation), qp->out.next_psn);
    packet->destination_qpn = qp->attributes.destination_qpn;
    departure->av = &qp->attributes.av;
    if (!departure_gather(qp, work, piece.offset, piece.bytes, departure)) {
        qp_fail_work(qp, work, COMPLETION_LOCAL_PROTECTION);
        return false;
    }
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    packet->solicited = piece.last && (work->flags & WORK_SOLICITED) &&
                        ((traits & ROCE_IS_SEND) || (traits & ROCE_HAS_IMMDT));
    packet->reth.address = work->remote_address;
    packet->reth.key = work->remote_key;
    packet->reth.bytes = work->bytes;
    packet->immediate = work->immediate;
    departure_seal(qp, departure);
    if (UNLIKELY(qp->limited)) {
        (void)ecn_on_sent(qp, piece.bytes, now);
    }
    sent(qp, work, piece.last);
    departure->more_sends = qp->sends.next != qp->sends.tail;
    return true;
}

/* Bit 31 of a request's Q_Key asks for the queue pair's own (IBTA 10.2.5). */
static uint32_t qkey_of(const struct qp *qp, const struct work *work)
{
    return work->datagram.qkey & 0x80000000u ? qp->attributes.qkey : work->datagram.qkey;
}

bool ud_next_packet(struct qp *qp, struct nic_departure *departure)
{
    struct work *work = current_work(qp, qp->mtu_bytes);
    if (work == NULL) {
        return false;
    }
    struct roce_packet *packet = &qp->nic->departing;
    const bool immediate = work->kind == WORK_SEND_IMMEDIATE;
    departure_start(
        qp, departure,
        ROCE_OPCODE(ROCE_SERVICE_UD, immediate ? ROCE_SEND_ONLY_IMMEDIATE : ROCE_SEND_ONLY),
        qp->out.next_psn);
    if (!departure_gather(qp, work, 0, work->bytes, departure)) {
        qp_fail_work(qp, work, COMPLETION_LOCAL_PROTECTION);
        return false;
    }
    departure->av = work->datagram.av;
    departure->ecn = NIC_ECN_NOT; /* UD queue pairs take no CNPs. */
    packet->destination_qpn = work->datagram.qpn;
    packet->solicited = work->flags & WORK_SOLICITED;
    packet->immediate = work->immediate;
    packet->deth.qkey = qkey_of(qp, work);
    packet->deth.source_qpn = qp->number;
    packet->deth.reserved = 0;
    departure_seal(qp, departure);
    sent(qp, work, true);
    departure->more_sends = qp->sends.next != qp->sends.tail;
    return true;
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static void note_receive(struct qp *qp, const struct roce_packet *packet, uint32_t traits,
                         uint32_t bytes, struct nic_move *move)
{
    const bool write = traits & ROCE_IS_WRITE;
    const bool immediate = traits & ROCE_HAS_IMMDT;
    move->completes = true;
    move->completion = (struct completion){
        .wr_id = qp->current->wr_id,
        .bytes = bytes,
        .immediate = immediate ? packet->immediate : 0,
        .qpn = qp->number,
        .status = COMPLETION_SUCCESS,
        .kind = (uint8_t)(write ? COMPLETION_RECEIVE_WRITE_IMMEDIATE : COMPLETION_RECEIVE),
        .flags = immediate ? COMPLETION_HAS_IMMEDIATE : 0,
        .solicited = packet->solicited,
    };
    qp_release_receive(qp);
    nic_count(qp->nic, COUNTER_rdma_recvs);
}

/* The message is lost; a receive that it had begun to fill serves the next one. */
static bool abandon(struct qp *qp, const struct roce_packet *packet, enum nic_counter reason)
{
    uc_responder_abandon(&qp->in.uc, packet);
    return nic_drop(qp->nic, reason);
}

/* The receive's own memory is bad: an error of this end, which ends the queue pair (9.9.3, class
 * A). The packet is dropped. */
static bool spoil(struct qp *qp)
{
    qp_spoil_receive(qp, COMPLETION_LOCAL_PROTECTION);
    qp_enter_error(qp);
    return nic_drop(qp->nic, COUNTER_drop_wrong_key);
}

static bool uc_on_send(struct qp *qp, const struct roce_packet *packet, uint32_t traits,
                       struct nic_move *move)
{
    if (qp->current == NULL && qp_take_receive(qp) == NULL) {
        return abandon(qp, packet, COUNTER_drop_no_receive);
    }
    const uint32_t offset = incoming_before(&qp->in.uc.incoming, traits);
    ibta_begin_move(qp, packet, MOVE_UNRELIABLE, move);
    move->purpose = NIC_FOR_RECEIVE;
    switch (receive_gather(qp, qp->current, offset, packet->payload_bytes, move->segments,
                           &move->segment_count)) {
    case GATHER_GOOD: break;
    case GATHER_TOO_SHORT: return abandon(qp, packet, COUNTER_drop_wrong_length);
    case GATHER_FORBIDDEN: return spoil(qp);
    }
    if (traits & ROCE_IS_LAST) {
        note_receive(qp, packet, traits, offset + packet->payload_bytes, move);
    }
    uc_responder_accept(&qp->in.uc, packet);
    return true;
}

static bool uc_on_write(struct qp *qp, const struct roce_packet *packet, uint32_t traits,
                        struct nic_move *move)
{
    uint64_t address;
    uint32_t key;
    incoming_target(&qp->in.uc.incoming, packet, traits, &address, &key);
    ibta_begin_move(qp, packet, MOVE_UNRELIABLE, move);
    if (!reach_grants(qp->attributes.access, ACCESS_REMOTE_WRITE) ||
        region_judge(&qp->nic->regions, key, qp->pd, qp, address, packet->payload_bytes,
                     ACCESS_REMOTE_WRITE, &move->segments[0]) != REACH_ALLOWED) {
        return abandon(qp, packet, COUNTER_drop_wrong_key);
    }
    move->segment_count = packet->payload_bytes != 0;
    if (traits & ROCE_HAS_IMMDT) {
        if (qp->current == NULL && qp_take_receive(qp) == NULL) {
            return abandon(qp, packet, COUNTER_drop_no_receive);
        }
        const uint32_t earlier = incoming_before(&qp->in.uc.incoming, traits);
        note_receive(qp, packet, traits, earlier + packet->payload_bytes, move);
    }
    uc_responder_accept(&qp->in.uc, packet);
    return true;
}

static bool uc_on_request(struct qp *qp, const struct roce_packet *packet, uint32_t traits,
                          struct nic_move *move)
{
    switch (uc_responder_judge(&qp->in.uc, packet)) {
    case UC_VERDICT_EXECUTE:
    case UC_VERDICT_EXECUTE_ANEW:
        return traits & ROCE_IS_SEND ? uc_on_send(qp, packet, traits, move)
                                     : uc_on_write(qp, packet, traits, move);
    case UC_VERDICT_GAP: return abandon(qp, packet, COUNTER_drop_in_gap);
    case UC_VERDICT_WRONG_ORDER: return abandon(qp, packet, COUNTER_drop_wrong_order);
    case UC_VERDICT_WRONG_LENGTH: return abandon(qp, packet, COUNTER_drop_wrong_length);
    }
    UNREACHABLE("a verdict outside its enum");
}

bool uc_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                  struct nic_move *move)
{
    const uint32_t traits = roce_opcode(arrival->packet.opcode)->traits;
    if (!ibta_admits(qp, arrival, traits)) {
        return false;
    }
    if (ecn_is_marked(arrival)) {
        ecn_on_marked(qp, arrival, now);
    }
    if (!uc_on_request(qp, &arrival->packet, traits, move)) {
        return false;
    }
    ibta_note_established(qp);
    return true;
}

/* The IPv4 header as the sender's host made it, but for the identification, which a plain socket
 * does not tell. */
static void encode_ipv4(const struct nic_arrival *arrival, uint32_t payload_bytes,
                        uint8_t ip[INET_IPV4_BYTES])
{
    struct inet_flow flow = {.source_port = ROCE_UDP_PORT, .destination_port = ROCE_UDP_PORT};
    uint8_t headers[INET_HEADERS_BYTES_MAX];
    __builtin_memcpy(flow.source, arrival->source.bytes, sizeof(flow.source));
    __builtin_memcpy(flow.destination, arrival->destination.bytes, sizeof(flow.destination));
    (void)inet_encode_invariant(headers, &flow, 0, payload_bytes);
    inet_put_variant(headers, (struct inet_variant){.traffic_class = arrival->traffic_class,
                                                    .hop_limit = arrival->hop_limit});
    __builtin_memcpy(ip, headers, INET_IPV4_BYTES);
}

/* The 40 bytes in front of a UD message: the IPv6 header, or 20 bytes of nothing and the IPv4
 * header (IBTA A17.4.5.2). In shared memory an address of either kind reaches the other; an IPv6
 * header has room for both. */
static void encode_grh(const struct nic_arrival *arrival, uint8_t grh[NIC_GRH_BYTES],
                       uint8_t *service_level)
{
    const struct roce_packet *packet = &arrival->packet;
    const uint32_t bytes = roce_opcode(packet->opcode)->headers_bytes + packet->payload_bytes +
                           packet->pad_bytes + ROCE_ICRC_BYTES;
    __builtin_memset(grh, 0, NIC_GRH_BYTES);
    if (inet_is_ipv4(arrival->destination.bytes) && inet_is_ipv4(arrival->source.bytes)) {
        encode_ipv4(arrival, bytes, grh + NIC_GRH_BYTES - INET_IPV4_BYTES);
        *service_level = UD_SERVICE_LEVEL_IPV4;
        return;
    }
    store_be32(grh, 0x60000000u | (uint32_t)arrival->traffic_class << 20 |
                        (arrival->flow_label & INET_LABEL_MASK));
    store_be16(grh + 4, (uint16_t)(INET_UDP_BYTES + bytes));
    grh[6] = 17;
    grh[7] = arrival->hop_limit;
    __builtin_memcpy(grh + 8, arrival->source.bytes, 16);
    __builtin_memcpy(grh + 24, arrival->destination.bytes, 16);
    *service_level = UD_SERVICE_LEVEL_IPV6;
}

bool ud_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    if (!ibta_admits(qp, arrival, traits)) {
        return false;
    }
    if (packet->deth.qkey != qp->attributes.qkey) {
        return nic_drop(qp->nic, COUNTER_drop_wrong_qkey);
    }
    if (!(traits & ROCE_IS_FIRST) || !(traits & ROCE_IS_LAST)) {
        return nic_drop(qp->nic, COUNTER_drop_wrong_order);
    }
    if (qp->current == NULL && qp_take_receive(qp) == NULL) {
        return nic_drop(qp->nic, COUNTER_drop_no_receive);
    }
    ibta_begin_move(qp, packet, MOVE_UNRELIABLE, move);
    move->purpose = NIC_FOR_RECEIVE;
    const uint32_t bytes = NIC_GRH_BYTES + packet->payload_bytes;
    switch (receive_gather(qp, qp->current, 0, bytes, move->segments, &move->segment_count)) {
    case GATHER_GOOD: break;
    case GATHER_TOO_SHORT: /* The receive is there for the next message. */
        return nic_drop(qp->nic, COUNTER_drop_wrong_length);
    case GATHER_FORBIDDEN: return spoil(qp);
    }
    move->kind = NIC_MOVE_SCATTER;
    move->prefix_bytes = NIC_GRH_BYTES;
    note_receive(qp, packet, traits, bytes, move);
    encode_grh(arrival, move->prefix, &move->completion.service_level);
    move->completion.flags |= COMPLETION_HAS_GRH;
    move->completion.source_qpn = packet->deth.source_qpn;
    move->source = arrival->source;
    return true;
}

void unreliable_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result)
{
    if (move->epoch != qp->epoch) {
        return;
    }
    if (result == NIC_MOVE_FAULTED) {
        qp_finish_receive(qp, move, false);
        qp_enter_error(qp);
    } else if (move->completes) {
        if (qp->type == QP_UD) {
            cq_note_source(qp->receive_cq, &move->source);
        }
        qp_finish_receive(qp, move, true);
    }
}
