/* SPDX-License-Identifier: BSD-2-Clause
 *
 * flow - what a carrier sends, and when: answers, data of READs, and its sender's packets.
 */
#include "nic/srd/srd.h"

#define WAKE_LEAST_NS 10000

static struct srd_part *part_of(struct srd_instance *instance)
{
    return CONTAINER_OF(instance, struct srd_part, instance);
}

/* -- Turns and time -----------------------------------------------------------------------------*/

bool srd_flow_ready(const struct qp *qp)
{
    const struct srd_shared *shared = qp->nic->srd;
    if (srd_is_port(qp)) {
        return shared->challenge_head != shared->challenge_tail;
    }
    const struct srd_peer *peer = CONTAINER_OF_CONST(qp, struct srd_peer, qp);
    return peer->receiver.reply.due || !list_empty(&peer->reads) ||
           (UNLIKELY(peer->ways != NULL) && peer->ways->responses.due != 0) ||
           srd_sender_ready(&peer->sender, qp->nic->now);
}

struct instant srd_flow_deadline(const struct qp *qp)
{
    return srd_is_port(qp) ? INSTANT_NEVER : CONTAINER_OF_CONST(qp, struct srd_peer, qp)->deadline;
}

/* Pauses for the sake of a pace are not shorter than this: a sender oversleeps them anyway. A
 * program that polls does not, and may wait for the answer to a probe. */
static void set_deadline(struct srd_peer *peer, struct instant now)
{
    const struct instant least = instant_after(now, WAKE_LEAST_NS);
    const struct instant at = instant_earlier(
        instant_earlier(srd_receiver_deadline(&peer->receiver), srd_ask_deadline(peer)),
        instant_earlier(srd_sender_deadline(&peer->sender, now), srd_rest_at(peer)));
    peer->deadline =
        instant_earlier(instant_before(at, least) ? least : at, srd_sender_asks_at(&peer->sender));
    nic_arm_timer(&peer->qp, peer->deadline);
}

static bool is_silence(const struct srd_peer *peer, enum srd_status status, struct instant now)
{
    return status == SRD_STATUS_UNREACHABLE ||
           (status == SRD_STATUS_UNRESPONSIVE && srd_sender_is_silent(&peer->sender, now));
}

/* Instances that ended: a READ that was taken waits for its data. */
static void collect(struct srd_peer *peer, struct instant now)
{
    struct srd_instance *instance;
    while ((instance = srd_sender_ended(&peer->sender)) != NULL) {
        struct srd_part *part = part_of(instance);
        const enum srd_status status = (enum srd_status)instance->status;
        if (status == SRD_STATUS_OK && part->request->kind == WORK_READ) {
            srd_read_taken(peer, part, now);
        } else {
            srd_end_part(peer, part, status);
        }
        if (is_silence(peer, status, now)) {
            srd_give_up_waiting(peer, status, now);
        }
    }
}

void srd_update(struct srd_peer *peer, struct instant now)
{
    collect(peer, now);
    srd_cut(peer, now);
    srd_file_flow(peer);
    if (srd_flow_ready(&peer->qp)) {
        nic_schedule(&peer->qp);
    }
    set_deadline(peer, now);
    if (UNLIKELY(peer->qp.nic->srd->starved) && srd_rest_at(peer).ns != UINT64_MAX) {
        srd_feed(peer->qp.nic); /* It yields to a process that waits. */
    }
}

/* The time to rest has come. False: it goes on, since its carrier waits for its turn. */
static bool rests(struct srd_peer *peer, struct instant now)
{
    if (!instant_reached(now, srd_rest_at(peer))) {
        return false;
    }
    if (peer->qp.listing != QP_LISTED_NOWHERE) {
        srd_touch_peer(peer);
        return false;
    }
    srd_rest(peer);
    srd_feed(peer->qp.nic);
    return true;
}

void srd_flow_on_deadline(struct qp *qp, struct instant now)
{
    struct srd_peer *peer = srd_peer_of(qp);
    if (rests(peer, now)) {
        return;
    }
    srd_leave_outdated(peer, now);
    const bool impaired = srd_sender_is_impaired(&peer->sender);
    if (srd_sender_on_time(&peer->sender, now)) {
        nic_count(qp->nic, COUNTER_timeouts);
    }
    if (!impaired && srd_sender_is_impaired(&peer->sender)) {
        nic_count(qp->nic, COUNTER_srd_impaired_remote_conn);
    }
    srd_ask_again(peer, now);
    srd_update(peer, now);
}

/* -- Departure ----------------------------------------------------------------------------------*/

static void start(struct nic_departure *departure, const struct qp *qp)
{
    departure->av = &qp->attributes.av;
    departure->payload_bytes = 0;
    departure->pad_bytes = 0;
    departure->route = 0;
    departure->ecn = NIC_ECN_CAPABLE;
    departure->segment_count = 0;
    departure->alone = false;
    departure->direct.kind = NIC_DIRECT_NONE;
    departure->more_sends = false;
    departure->reply = false;
    departure->psn = 0;
}

static void seal(struct nic_departure *departure, struct srd_packet *packet, uint8_t slot)
{
    packet->destination_qpn = SRD_PORT_OF(slot);
    packet->payload_bytes = departure->payload_bytes;
    departure->pad_bytes = roce_pad_bytes(departure->payload_bytes);
    departure->headers_bytes = (uint32_t)srd_encode(packet, departure->headers);
    departure->destination_qpn = packet->destination_qpn;
}

/* The fields of a request that its sender does not know. */
static void describe(const struct srd_part *part, struct srd_packet *packet, uint32_t payload)
{
    const struct srd_request *request = part->request;
    const uint32_t before = (uint32_t)packet->index * packet->chunk_bytes;
    const bool last_part = part->offset + part->bytes == request->bytes;
    packet->source_qpn = srd_qpn_of(request->qp->number);
    packet->target_qpn = request->target_qpn;
    packet->qkey = request->qkey;
    packet->message_bytes = request->bytes;
    packet->address = request->remote_address + part->offset + before;
    packet->key = request->remote_key;
    packet->payload_bytes = payload;
    packet->has_immediate = request->kind == WORK_SEND_IMMEDIATE ||
                            (request->kind == WORK_WRITE_IMMEDIATE && last_part);
    packet->immediate = packet->has_immediate ? request->immediate : 0;
    packet->unsolicited = packet->has_immediate && request->unsolicited;
    switch (request->kind) {
    case WORK_READ:
        packet->opcode = SRD_READ;
        packet->message_bytes = part->bytes;
        packet->wanted = part->wanted;
        break;
    case WORK_SEND:
    case WORK_SEND_IMMEDIATE: packet->opcode = SRD_SEND; break;
    default: packet->opcode = SRD_WRITE; break;
    }
}

/* A packet of a part. False: the program's memory is not there any more, and the part ends. */
static bool fill_request(struct srd_peer *peer, struct srd_part *part,
                         struct nic_departure *departure, struct srd_packet *packet)
{
    const uint32_t before = (uint32_t)packet->index * packet->chunk_bytes;
    const uint32_t rest = part->instance.bytes - before;
    const uint32_t bytes = rest < packet->chunk_bytes ? rest : packet->chunk_bytes;
    if (!srd_gather(part->request, part->offset + before, bytes, 0, departure->segments,
                    &departure->segment_count)) {
        srd_sender_withdraw(&peer->sender, &part->instance);
        srd_end_part(peer, part, SRD_STATUS_LOCAL_BAD_LKEY);
        return false;
    }
    departure->payload_bytes = bytes;
    describe(part, packet, bytes);
    if (packet->resent) {
        nic_count(peer->qp.nic, COUNTER_retransmitted_pkts);
        peer->qp.nic->counters.values[COUNTER_srd_retrans_bytes] += bytes;
    } else {
        nic_count(peer->qp.nic, COUNTER_srd_requests);
    }
    return true;
}

/* False: there was nothing, or what there was ended. */
static bool next_of_sender(struct srd_peer *peer, struct instant now,
                           struct nic_departure *departure, struct srd_packet *packet)
{
    const struct srd_departure leaving =
        srd_sender_next(&peer->sender, &peer->qp.nic->prng, now, packet);
    switch (leaving.kind) {
    case SRD_LEAVES_NOTHING: return false;
    case SRD_LEAVES_HELLO:
        nic_count(peer->qp.nic, COUNTER_hello_sent);
        packet->source_qpn = (uint16_t)(peer->qp.nic->srd->slot << 8);
        return true;
    case SRD_LEAVES_PROBE:
        packet->source_qpn = (uint16_t)(peer->qp.nic->srd->slot << 8);
        return true;
    case SRD_LEAVES_PACKET: return fill_request(peer, part_of(leaving.instance), departure, packet);
    }
    UNREACHABLE("a kind outside its enum");
}

/* Answers and data take turns: a peer that asks faster than we can answer gets its data, too. */
static bool next(struct srd_peer *peer, struct instant now, struct nic_departure *departure,
                 struct srd_packet *packet)
{
    if (UNLIKELY(peer->ways != NULL) && srd_next_of_ways(peer, now, departure, packet)) {
        return true;
    }
    peer->answered = peer->receiver.reply.due && !(peer->answered && !list_empty(&peer->reads));
    if (peer->answered) {
        srd_receiver_answer(&peer->receiver, SRD_WAIT_CODE, now, packet);
        departure->reply = true;
        return true;
    }
    if (srd_next_data(peer, departure, packet)) {
        departure->reply = true;
        return true;
    }
    return next_of_sender(peer, now, departure, packet);
}

bool srd_flow_next(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct srd_packet packet;
    start(departure, qp);
    if (srd_is_port(qp)) {
        return srd_next_challenge(qp, now, departure);
    }
    struct srd_peer *peer = srd_peer_of(qp);
    bool found;
    do {
        srd_cut(peer, now);
        found = next(peer, now, departure, &packet);
    } while (!found && srd_flow_ready(qp));
    if (UNLIKELY(found && peer->ways != NULL)) {
        srd_lead(peer, &packet, departure);
    }
    if (found) {
        seal(departure, &packet, peer->source.slot);
    }
    srd_update(peer, now);
    return found;
}

/* The part whose memory is not there ends; which one it is, the headers say. */
void srd_flow_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    struct srd_packet packet;
    struct srd_peer *peer = srd_peer_of(qp);
    const struct srd_shared *shared = qp->nic->srd;
    if (srd_decode(departure->headers, departure->headers_bytes, departure->headers,
                   departure->payload_bytes + departure->pad_bytes, &packet) != SRD_GOOD ||
        departure->reply) {
        return;
    }
    for (uint32_t i = 0; i < qp->nic->limits.srd.parts; i++) {
        struct srd_part *part = &shared->parts[i];
        if (part->request != NULL && part->peer == peer && part->instance.begun != 0 &&
            part->instance.first == packet.psn - packet.index && part->request->parts != 0) {
            srd_sender_withdraw(&peer->sender, &part->instance);
            srd_end_part(peer, part, SRD_STATUS_LOCAL_BAD_LKEY);
            break;
        }
    }
    srd_update(peer, qp->nic->now);
}

void srd_flow_check(const struct qp *qp)
{
    if (srd_is_port(qp)) {
        return;
    }
    const struct srd_peer *peer = CONTAINER_OF_CONST(qp, struct srd_peer, qp);
    if (peer->there) {
        srd_receiver_check(&peer->receiver);
        srd_ways_check(peer);
        srd_sender_check(&peer->sender);
    }
}
