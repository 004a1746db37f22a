/* SPDX-License-Identifier: BSD-2-Clause
 *
 * target - requests of peers for a program's queue pair: what they may do, and their receives.
 */
#include <string.h>

#include "nic/srd/srd.h"

static struct srd_incoming *incoming_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_incoming, node);
}

static bool receives(const struct qp *qp)
{
    return qp->state == QP_RTR || qp->state == QP_RTS || qp->state == QP_SQD;
}

/* -- Receives that messages hold ----------------------------------------------------------------*/

/* The message that held the receive did not come whole. */
static void give_receive_back(struct srd_incoming *incoming)
{
    struct qp *qp = incoming->target;
    if (!incoming->lent) {
        return;
    }
    incoming->lent = false;
    qp->in.srd.lent--;
    if (qp->state == QP_ERR) {
        struct completion completion = incoming->completion;
        completion.status = COMPLETION_FLUSHED;
        qp_complete_receive(qp, 0, &completion);
    } else {
        receive_queue_put_back(&qp->receives, srd_receive_of(incoming));
    }
}

/* The target leaves before the message is complete, or with it. */
static void detach(struct srd_incoming *incoming)
{
    list_remove(&incoming->node);
    incoming->target = NULL;
}

static void to_free_list(struct srd_incoming *incoming)
{
    incoming->peer->guest->incoming--;
    list_append(&incoming->peer->qp.nic->srd->incoming_free, &incoming->node);
}

void srd_free_incoming(struct srd_incoming *incoming)
{
    if (incoming->target != NULL) {
        give_receive_back(incoming);
        detach(incoming);
    }
    to_free_list(incoming);
}

void srd_complete_incoming(struct srd_incoming *incoming)
{
    struct qp *qp = incoming->target;
    const struct completion completion = incoming->completion;
    qp->in.srd.lent -= incoming->lent;
    detach(incoming);
    to_free_list(incoming);
    nic_count(qp->nic, COUNTER_rdma_recvs);
    nic_count(qp->nic, COUNTER_srd_recv_wrs);
    qp->nic->counters.values[COUNTER_srd_recv_bytes] += completion.bytes;
    qp_complete_receive(qp, 0, &completion);
}

void srd_leave(struct srd_incoming *incoming)
{
    if (!incoming->assembly.left && srd_receiver_leave(&incoming->assembly)) {
        srd_free_incoming(incoming);
    }
}

void srd_leave_outdated(struct srd_peer *peer, struct instant now)
{
    struct srd_assembly *assembly;
    while ((assembly = srd_receiver_outdated(&peer->receiver, now)) != NULL) {
        srd_leave(CONTAINER_OF(assembly, struct srd_incoming, assembly));
    }
}

/* The newest first, so that receives are in the order of posting again. */
void srd_leave_target(struct qp *qp)
{
    while (!list_empty(&qp->in.srd.incoming)) {
        struct srd_incoming *incoming = incoming_of(qp->in.srd.incoming.previous);
        if (!incoming->assembly.left && srd_receiver_leave(&incoming->assembly)) {
            srd_free_incoming(incoming);
        } else {
            give_receive_back(incoming);
            detach(incoming);
        }
    }
}

/* -- Judging ------------------------------------------------------------------------------------*/

static struct srd_target refuse(enum srd_status status)
{
    return (struct srd_target){.allowed = SRD_REFUSED, .judged = srd_refused(status)};
}

static bool reaches(const struct qp *qp, const struct srd_packet *packet, struct segment *segment)
{
    return packet->payload_bytes == 0 ||
           region_judge(&qp->nic->regions, packet->key, qp->pd, qp, packet->address,
                        packet->payload_bytes, ACCESS_REMOTE_WRITE, segment) == REACH_ALLOWED;
}

struct qp *srd_target_of(struct srd_peer *peer, const struct srd_packet *packet)
{
    struct qp *qp = nic_find_qp(peer->qp.nic, srd_number_of(packet->target_qpn));
    const bool there = qp != NULL && qp->engine == ENGINE_SRD && receives(qp) &&
                       packet->qkey == qp->attributes.qkey;
    return there ? qp : NULL;
}

bool srd_may_reach(const struct srd_peer *peer)
{
    const struct nic *nic = peer->qp.nic;
    return nic->limits.srd.lenient || srd_host_is_held(nic, peer->host);
}

static struct completion completion_of(const struct qp *qp, const struct srd_peer *peer,
                                       const struct srd_packet *packet)
{
    const bool write = packet->opcode == SRD_WRITE;
    return (struct completion){
        .bytes = packet->message_bytes,
        .immediate = packet->immediate,
        .qpn = qp->number,
        .source_qpn = srd_number_of(packet->source_qpn),
        .status = COMPLETION_SUCCESS,
        .kind = (uint8_t)(write ? COMPLETION_RECEIVE_WRITE_IMMEDIATE : COMPLETION_RECEIVE),
        .flags = (uint8_t)((packet->has_immediate ? COMPLETION_HAS_IMMEDIATE : 0) |
                           (packet->unsolicited ? COMPLETION_UNSOLICITED : 0)),
        .host = peer->host,
    };
}

/* The message gets a place, and the receive that it will complete. */
static struct srd_target collect(struct srd_peer *peer, struct qp *qp,
                                 const struct srd_packet *packet)
{
    struct srd_shared *shared = qp->nic->srd;
    struct srd_incoming *incoming = incoming_of(list_pop(&shared->incoming_free));
    const struct receive *receive = receive_queue_first(&qp->receives);
    incoming->peer = peer;
    incoming->target = qp;
    incoming->completion = completion_of(qp, peer, packet);
    incoming->chunk_bytes = packet->chunk_bytes;
    incoming->lent = !packet->unsolicited;
    if (incoming->lent) {
        memcpy(incoming->room, receive, sizeof(*receive) + receive->sge_count * sizeof(struct sge));
        incoming->completion.wr_id = receive->wr_id;
        receive_queue_drop(&qp->receives);
        qp->in.srd.lent++;
    }
    peer->guest->incoming++;
    list_append(&qp->in.srd.incoming, &incoming->node);
    return (struct srd_target){.allowed = SRD_ALLOWED, .qp = qp, .incoming = incoming};
}

/* Does everything before the message have a verdict? */
static bool is_oldest(const struct srd_peer *peer, const struct srd_packet *packet)
{
    return peer->receiver.window.taken_before - (packet->psn - packet->index) <= packet->last;
}

/* Is there a place for the message? The last one, of all and of those of an address, is for the
 * oldest message of a flow, and for one of a single packet, which leaves it at once. Otherwise
 * messages could hold all places for ever: an answer describes the window up to its third record,
 * and what they miss behind it does not come again before the oldest message is there. */
static bool has_place(const struct srd_peer *peer, const struct srd_packet *packet)
{
    const struct nic *nic = peer->qp.nic;
    const struct list *places = &nic->srd->incoming_free;
    const bool spares = packet->last != 0 && !is_oldest(peer, packet);
    const bool free = spares ? places->next != places->previous : !list_empty(places);
    return free && srd_may_hold(peer->guest->incoming + spares, nic->limits.srd.assemblies);
}

static struct srd_target judge_collected(struct srd_peer *peer, struct qp *qp,
                                         const struct srd_packet *packet)
{
    const struct receive *receive = receive_queue_first(&qp->receives);
    if (packet->unsolicited && !qp->unsolicited) {
        return refuse(SRD_STATUS_FEATURE_MISMATCH);
    }
    if (!packet->unsolicited && receive == NULL) {
        nic_count(qp->nic, COUNTER_send_rnr_err);
        return (struct srd_target){.allowed = SRD_REFUSED, .judged = SRD_JUDGED_NO_RECEIVE};
    }
    if (packet->opcode == SRD_SEND && packet->message_bytes > receive->bytes) {
        return refuse(SRD_STATUS_BAD_LENGTH);
    }
    if (!has_place(peer, packet)) {
        return (struct srd_target){.allowed = SRD_NOT_JUDGED};
    }
    return collect(peer, qp, packet);
}

struct srd_target srd_judge_target(struct srd_peer *peer, const struct srd_packet *packet)
{
    struct segment segment;
    struct qp *qp = srd_target_of(peer, packet);
    if (qp == NULL) {
        return refuse(SRD_STATUS_BAD_QPN);
    }
    if (packet->opcode == SRD_WRITE) {
        if (!srd_may_reach(peer)) {
            return refuse(SRD_STATUS_UNKNOWN_PEER);
        }
        if (!reaches(qp, packet, &segment)) {
            return refuse(SRD_STATUS_BAD_ADDRESS);
        }
    }
    return srd_is_collected(packet) ? judge_collected(peer, qp, packet)
                                    : (struct srd_target){.allowed = SRD_ALLOWED, .qp = qp};
}

/* -- Memory -------------------------------------------------------------------------------------*/

/* A packet of a SEND fills the receive. One of another length than the first one said has no place
 * there; nor has one of other chunks, which would leave a hole. */
static uint8_t place_send(struct srd_target *target, const struct srd_packet *packet,
                          struct nic_move *move)
{
    struct srd_incoming *incoming = target->incoming;
    const uint32_t offset = (uint32_t)packet->index * packet->chunk_bytes;
    if (packet->message_bytes != incoming->completion.bytes ||
        packet->chunk_bytes != incoming->chunk_bytes) {
        return srd_refused(SRD_STATUS_BAD_LENGTH);
    }
    switch (receive_gather(target->qp, srd_receive_of(incoming), offset, packet->payload_bytes,
                           move->segments, &move->segment_count)) {
    case GATHER_GOOD: return SRD_JUDGED_NOT;
    case GATHER_TOO_SHORT: return srd_refused(SRD_STATUS_BAD_LENGTH);
    case GATHER_FORBIDDEN: break;
    }
    target->spoilt = true;
    return srd_refused(SRD_STATUS_BAD_QPN);
}

uint8_t srd_place(struct srd_target *target, const struct srd_packet *packet, struct nic_move *move)
{
    if (packet->opcode == SRD_SEND) {
        return place_send(target, packet, move);
    }
    if (!reaches(target->qp, packet, &move->segments[0])) {
        if (target->incoming != NULL) {
            srd_leave(target->incoming);
        }
        return srd_refused(SRD_STATUS_BAD_ADDRESS);
    }
    move->segment_count = packet->payload_bytes != 0;
    return SRD_JUDGED_NOT;
}
