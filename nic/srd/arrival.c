/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arrival - packets of SRD that came in: whose they are, and what they move.
 */
#include "nic/srd/srd.h"

/* -- Requests -----------------------------------------------------------------------------------*/

static void begin_move(struct srd_peer *peer, const struct srd_packet *packet,
                       struct nic_move *move)
{
    move->kind = packet->payload_bytes == 0 ? NIC_MOVE_NOTHING : NIC_MOVE_SCATTER;
    move->purpose = packet->opcode == SRD_WRITE  ? NIC_FOR_PEER
                    : packet->opcode == SRD_SEND ? NIC_FOR_RECEIVE
                                                 : NIC_FOR_REQUEST;
    move->in_order = false;
    move->payload = packet->payload;
    move->payload_bytes = packet->payload_bytes;
    move->prefix_bytes = 0;
    move->segment_count = 0;
    move->qp = &peer->qp;
    move->work = NULL;
    move->psn = packet->psn;
    move->epoch = peer->qp.epoch;
    move->birth = 0;
    move->position = packet->index;
    move->action = packet->opcode;
    move->ack_request = packet->ack_request;
    move->completes = false;
}

/* The receive's own memory is bad: an error of this end, which ends the queue pair. */
static void spoil(struct srd_incoming *incoming)
{
    struct qp *target = incoming->target;
    struct completion completion = incoming->completion;
    completion.status = COMPLETION_LOCAL_PROTECTION;
    incoming->lent = false;
    target->in.srd.lent--;
    qp_complete_receive(target, 0, &completion);
    srd_enter_error(target);
}

/* The packet begins its way into memory. False: it is refused, as its memory is not there. */
static bool move_request(struct srd_peer *peer, struct srd_target *target,
                         const struct srd_packet *packet, struct nic_move *move)
{
    struct srd_receiver *receiver = &peer->receiver;
    struct srd_assembly *assembly = target->incoming == NULL ? NULL : &target->incoming->assembly;
    begin_move(peer, packet, move);
    const uint8_t judged = srd_place(target, packet, move);
    if (judged != SRD_JUDGED_NOT) {
        srd_receiver_settle(receiver, packet->psn, judged);
        receiver->reply.due = true;
        if (target->spoilt) {
            spoil(target->incoming);
        }
        return false;
    }
    srd_receiver_move(receiver, assembly, packet->psn);
    if (packet->opcode == SRD_WRITE) {
        peer->qp.nic->counters.values[COUNTER_srd_rdma_write_recv_bytes] += packet->payload_bytes;
    }
    const struct srd_shared *shared = peer->qp.nic->srd;
    move->birth =
        target->incoming == NULL ? 0 : (uint32_t)(target->incoming - shared->incoming) + 1;
    return true;
}

static void settle(struct srd_peer *peer, const struct srd_packet *packet, uint8_t judged)
{
    if (judged != SRD_JUDGED_NOT) {
        srd_receiver_settle(&peer->receiver, packet->psn, judged);
        peer->receiver.reply.due |= judged != SRD_JUDGED_TAKEN || packet->ack_request;
    }
}

static bool open_request(struct srd_peer *peer, const struct srd_packet *packet,
                         struct nic_move *move, struct instant now)
{
    if (packet->opcode == SRD_READ) {
        settle(peer, packet, srd_take_read(peer, packet));
        return false;
    }
    struct srd_target target = srd_judge_target(peer, packet);
    switch (target.allowed) {
    case SRD_NOT_JUDGED: nic_count(peer->qp.nic, COUNTER_drop_srd_full); return false;
    case SRD_REFUSED: settle(peer, packet, target.judged); return false;
    case SRD_ALLOWED: break;
    }
    if (target.incoming != NULL) {
        srd_receiver_open(&peer->receiver, &target.incoming->assembly, packet, now);
    }
    return move_request(peer, &target, packet, move);
}

static bool on_request(struct srd_peer *peer, const struct srd_packet *packet,
                       struct nic_move *move, struct instant now)
{
    struct srd_receiver *receiver = &peer->receiver;
    const struct srd_judgement judgement = srd_receiver_judge(receiver, packet);
    switch (judgement.step) {
    case SRD_STEP_ANSWER:
        nic_count(peer->qp.nic, COUNTER_duplicate_request);
        srd_receiver_on_duplicate(receiver);
        receiver->reply.due = true;
        return false;
    case SRD_STEP_SAME: settle(peer, packet, judgement.judged); return false;
    case SRD_STEP_OPEN: return open_request(peer, packet, move, now);
    case SRD_STEP_CONTINUE: {
        struct srd_target target = {
            .incoming = CONTAINER_OF(judgement.assembly, struct srd_incoming, assembly)};
        target.qp = target.incoming->target;
        return move_request(peer, &target, packet, move);
    }
    case SRD_STEP_MOVING:
        nic_count(peer->qp.nic, COUNTER_duplicate_request);
        srd_receiver_on_duplicate(receiver);
        return false;
    case SRD_STEP_BEYOND: return nic_drop(peer->qp.nic, COUNTER_drop_beyond_window);
    case SRD_STEP_CONTRADICT: return nic_drop(peer->qp.nic, COUNTER_drop_srd_contradiction);
    }
    UNREACHABLE("a step outside its enum");
}

/* A new flow of the peer: what the one before left is void. False: bytes of that one still move. */
static bool open_flow(struct srd_peer *peer, const struct srd_packet *packet, struct instant now)
{
    if (peer->receiver.moving != 0) {
        return false;
    }
    while (!list_empty(&peer->receiver.assemblies)) {
        srd_leave(CONTAINER_OF(peer->receiver.assemblies.next, struct srd_incoming, assembly.node));
    }
    srd_entry_open(&peer->entry, packet->flow, packet->tag, now);
    srd_receiver_init(&peer->receiver, packet->flow, packet->tag, packet->psn - packet->back);
    srd_file_way(peer);
    return true;
}

/* The verdict on a packet's flow, whether its source rests or not. *peer: NULL if it does. */
static enum srd_entry_verdict judge_flow(const struct nic *nic, const struct srd_source *source,
                                         const struct srd_packet *packet, struct instant now,
                                         struct srd_peer **peer)
{
    const struct siphash_key *key = &nic->srd->key;
    const struct srd_contact *contact = srd_find_contact(nic, source);
    struct srd_entry rested = {.known = false};
    *peer = srd_peer_of_contact(nic, contact);
    if (contact != NULL && *peer == NULL) {
        rested = srd_rest_entry(&contact->rest, key, source, now);
    }
    return srd_entry_judge(*peer != NULL ? &(*peer)->entry : &rested, key, source, packet->flow,
                           packet->tag, now);
}

/* The peer whose flow the packet is of, or opens; NULL: the packet is dropped. */
static struct srd_peer *admit(struct nic *nic, const struct nic_frame *frame,
                              const struct srd_packet *packet, struct instant now)
{
    struct srd_peer *peer;
    const struct srd_source source =
        srd_source_of(&frame->source, (uint8_t)(packet->source_qpn >> 8));
    const struct nic_av av = {
        .source = frame->destination, .destination = frame->source, .hop_limit = 64};
    const enum srd_entry_verdict verdict = judge_flow(nic, &source, packet, now, &peer);
    if (verdict == SRD_ENTRY_WRONG_TAG) {
        nic_count(nic, COUNTER_drop_srd_tag);
        return NULL;
    }
    if (verdict == SRD_ENTRY_STALE) {
        peer = srd_find_way(nic, frame, packet);
        if (peer == NULL) {
            srd_challenge(nic, frame, packet, SRD_REASON_STALE, now);
            return NULL;
        }
    }
    if (peer != NULL) {
        srd_touch_peer(peer);
    } else if (srd_meet_peer(nic, &source, &av, SRD_THEY, &peer) != SRD_MET) {
        nic_count(nic, COUNTER_drop_srd_full);
        return NULL;
    }
    if (verdict == SRD_ENTRY_OPENS && !open_flow(peer, packet, now)) {
        nic_count(nic, COUNTER_drop_srd_full);
        return NULL;
    }
    return peer;
}

static bool on_flow(struct nic *nic, const struct nic_frame *frame, const struct srd_packet *packet,
                    struct instant now, struct nic_move *move)
{
    struct srd_peer *peer = admit(nic, frame, packet, now);
    if (peer == NULL) {
        return false;
    }
    peer->heard_at = now;
    if (UNLIKELY(peer->ways != NULL)) {
        srd_ways_heard(peer, packet);
    }
    srd_receiver_on_packet(&peer->receiver, packet,
                           (frame->traffic_class & INET_ECN_MASK) == INET_ECN_MASK, now);
    srd_leave_outdated(peer, now);
    const bool moves = packet->opcode != SRD_PROBE && on_request(peer, packet, move, now);
    /* If the packet moves, srd_on_moved does this when its bytes are there. */
    if (!moves) {
        peer->receiver.reply.due |= packet->ack_request;
        srd_update(peer, now);
    }
    return moves;
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* A process that says that it does not know a flow may only not know that an address is ours, too:
 * it may know the flow at the first one. So what it says to the others is not believed. */
static bool is_of_first_way(const struct srd_peer *peer, const struct nic_frame *frame)
{
    const struct nic_av *av = &peer->qp.attributes.av;
    return gid_equal(&av->destination, &frame->source) &&
           gid_equal(&av->source, &frame->destination);
}

static enum srd_heard on_challenge(struct srd_peer *peer, const struct nic_frame *frame,
                                   const struct srd_packet *packet, struct instant now)
{
    if (is_of_first_way(peer, frame)) {
        return srd_sender_on_challenge(&peer->sender, packet, now);
    }
    if (peer->ways != NULL) {
        srd_ways_missed(peer);
    }
    return SRD_HEARD_STALE;
}

static bool on_answer(struct nic *nic, const struct nic_frame *frame,
                      const struct srd_packet *packet, struct instant now, struct nic_move *move)
{
    struct srd_peer *peer = srd_find_flow(nic, frame, packet->flow);
    if (peer == NULL) {
        return nic_drop(nic, COUNTER_drop_stale_response);
    }
    if (UNLIKELY(peer->ways != NULL)) {
        srd_ways_heard(peer, packet);
    }
    enum srd_heard heard = SRD_HEARD;
    bool moves = false;
    if (packet->opcode == SRD_DATA) {
        moves = srd_on_data(peer, packet, move);
    } else if (packet->opcode == SRD_ANSWER) {
        heard = srd_sender_on_answer(&peer->sender, packet, now);
        srd_consider_ways(peer);
    } else {
        heard = on_challenge(peer, frame, packet, now);
    }
    if (heard == SRD_HEARD_STALE) {
        nic_count(nic, COUNTER_drop_stale_response);
    } else if (heard == SRD_HEARD_IMPOSSIBLE) {
        nic_count(nic, COUNTER_drop_srd_contradiction);
    }
    srd_touch_peer(peer);
    if (!moves) {
        srd_update(peer, now);
    }
    return moves;
}

/* -- Paths --------------------------------------------------------------------------------------*/

/* The peer of whose flow a PATH CHALLENGE or PATH RESPONSE is; NULL: there is none, or it rests. */
static struct srd_peer *peer_of_path(struct nic *nic, const struct nic_frame *frame,
                                     const struct srd_packet *packet, struct instant now)
{
    struct srd_peer *peer;
    if (packet->path_challenge.of_target) {
        peer = srd_find_flow(nic, frame, packet->flow);
        return peer != NULL && peer->sender.state == SRD_FLOW_OPEN &&
                       peer->sender.tag == packet->tag
                   ? peer
                   : NULL;
    }
    const struct srd_source source =
        srd_source_of(&frame->source, (uint8_t)(packet->source_qpn >> 8));
    return judge_flow(nic, &source, packet, now, &peer) == SRD_ENTRY_KNOWN
               ? peer
               : srd_find_way(nic, frame, packet);
}

static void on_path(struct nic *nic, const struct nic_frame *frame, const struct srd_packet *packet,
                    struct instant now)
{
    struct srd_peer *peer = peer_of_path(nic, frame, packet, now);
    if (peer == NULL) {
        nic_count(nic, COUNTER_drop_stale_response);
        return;
    }
    if (packet->opcode == SRD_PATH_CHALLENGE) {
        srd_on_path_challenge(peer, frame, packet);
    } else {
        srd_on_path_response(peer, packet, now);
    }
    srd_touch_peer(peer);
    srd_update(peer, now);
}

/* -- Frames -------------------------------------------------------------------------------------*/

static enum nic_counter counter_of(enum srd_verdict verdict)
{
    switch (verdict) {
    case SRD_SHORT: return COUNTER_drop_short;
    case SRD_UNKNOWN_OPCODE: return COUNTER_drop_unknown_opcode;
    case SRD_WRONG_VERSION: return COUNTER_drop_wrong_version;
    case SRD_WRONG_PKEY: return COUNTER_drop_wrong_pkey;
    case SRD_WRONG_PAD: return COUNTER_drop_wrong_pad;
    case SRD_TOO_LONG: return COUNTER_drop_too_long;
    case SRD_RESERVED_BITS: return COUNTER_drop_srd_reserved;
    case SRD_OTHER_VERSION: return COUNTER_drop_srd_version;
    case SRD_UNKNOWN_VALUE: return COUNTER_drop_srd_value;
    case SRD_WRONG_COUNT:
    case SRD_WRONG_PORT:
    case SRD_WRONG_BACK:
    case SRD_WRONG_INDEX:
    case SRD_WRONG_CHUNK:
    case SRD_WRONG_PAYLOAD:
    case SRD_WRONG_FLAGS:
    case SRD_WRONG_WANTED:
    case SRD_WRONG_RECORD: return COUNTER_drop_srd_contradiction;
    case SRD_GOOD:
    case SRD_VERDICT_COUNT: break;
    }
    UNREACHABLE("no counter for a good packet");
}

static bool decode(struct nic *nic, const struct nic_frame *frame, struct srd_packet *packet)
{
    const uint8_t *payload = frame->payload;
    const enum srd_verdict verdict =
        srd_decode(frame->headers, frame->headers_bytes, payload, frame->payload_bytes, packet);
    if (verdict != SRD_GOOD) {
        return nic_drop(nic, counter_of(verdict));
    }
    nic_count(nic, COUNTER_rcvd_pkts);
    nic->counters.values[COUNTER_rcvd_bytes] += packet->payload_bytes;
    return SRD_SLOT_OF_PORT(packet->destination_qpn) == nic->srd->slot ||
           nic_drop(nic, COUNTER_drop_unknown_qp);
}

enum nic_arrived srd_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                              struct nic_move *move)
{
    struct srd_packet packet;
    bool moves = false;
    if (!decode(nic, frame, &packet)) {
        return NIC_DONE;
    }
    switch ((enum srd_opcode)packet.opcode) {
    case SRD_SEND:
    case SRD_WRITE:
    case SRD_READ:
    case SRD_PROBE: moves = on_flow(nic, frame, &packet, now, move); break;
    case SRD_DATA:
    case SRD_ANSWER:
    case SRD_CHALLENGE: moves = on_answer(nic, frame, &packet, now, move); break;
    case SRD_HELLO: srd_challenge(nic, frame, &packet, SRD_REASON_HELLO, now); break;
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: on_path(nic, frame, &packet, now); break;
    }
    return moves ? NIC_MOVES : NIC_DONE;
}

/* -- Moves --------------------------------------------------------------------------------------*/

static enum srd_moved moved_collected(struct srd_peer *peer, struct srd_incoming *incoming,
                                      const struct nic_move *move, enum nic_move_result result)
{
    if (result == NIC_MOVED) {
        return srd_receiver_moved(&peer->receiver, &incoming->assembly, move->psn);
    }
    if (move->purpose == NIC_FOR_RECEIVE && incoming->target != NULL) {
        spoil(incoming);
    }
    if (!incoming->assembly.left) {
        (void)!srd_receiver_leave(&incoming->assembly);
    }
    return srd_receiver_move_failed(&peer->receiver, &incoming->assembly, move->psn,
                                    move->purpose == NIC_FOR_RECEIVE ? SRD_STATUS_BAD_QPN
                                                                     : SRD_STATUS_BAD_ADDRESS);
}

void srd_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                  struct instant now)
{
    struct srd_peer *peer = srd_peer_of(qp);
    struct srd_shared *shared = qp->nic->srd;
    if (move->action == SRD_DATA) {
        srd_on_data_moved(peer, &shared->parts[move->birth - 1], move->position, result, now);
        srd_update(peer, now);
        return;
    }
    if (move->birth != 0) {
        struct srd_incoming *incoming = &shared->incoming[move->birth - 1];
        switch (moved_collected(peer, incoming, move, result)) {
        case SRD_MOVED_MORE: break;
        case SRD_MOVED_COMPLETE: srd_complete_incoming(incoming); break;
        case SRD_MOVED_LEFT: srd_free_incoming(incoming); break;
        }
    } else if (result == NIC_MOVED) {
        (void)srd_receiver_moved(&peer->receiver, NULL, move->psn);
    } else {
        (void)srd_receiver_move_failed(&peer->receiver, NULL, move->psn, SRD_STATUS_BAD_ADDRESS);
    }
    peer->receiver.reply.due |= move->ack_request || result != NIC_MOVED;
    srd_update(peer, now);
}
