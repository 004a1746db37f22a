/* SPDX-License-Identifier: BSD-2-Clause
 *
 * read - READs: a target answers each once, and a requester that misses some data asks for these in
 * a READ of its own.
 */
#include "nic/srd/srd.h"

/* Doublings of the time until READs are asked for again, if no data come: a slow target answers
 * each request, and would come to nothing else. */
#define BARREN_MAX 12

static struct srd_part *part_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_part, node);
}

/* -- The target ---------------------------------------------------------------------------------*/

static enum srd_status judge(struct srd_peer *peer, struct qp *qp, uint64_t address, uint32_t bytes,
                             uint32_t key)
{
    struct segment segment;
    if (!srd_may_reach(peer)) {
        return SRD_STATUS_UNKNOWN_PEER;
    }
    return bytes == 0 || region_judge(&qp->nic->regions, key, qp->pd, qp, address, bytes,
                                      ACCESS_REMOTE_READ, &segment) == REACH_ALLOWED
               ? SRD_STATUS_OK
               : SRD_STATUS_BAD_ADDRESS;
}

static void free_read(struct srd_peer *peer, struct srd_read *read)
{
    peer->guest->reading--;
    list_remove(&read->node);
    list_append(&peer->qp.nic->srd->reads_free, &read->node);
}

uint8_t srd_take_read(struct srd_peer *peer, const struct srd_packet *packet)
{
    struct nic *nic = peer->qp.nic;
    struct qp *qp = srd_target_of(peer, packet);
    if (qp == NULL) {
        return srd_refused(SRD_STATUS_BAD_QPN);
    }
    const enum srd_status status =
        judge(peer, qp, packet->address, packet->message_bytes, packet->key);
    if (status != SRD_STATUS_OK) {
        return srd_refused(status);
    }
    if (packet->wanted == 0) {
        return SRD_JUDGED_TAKEN;
    }
    if (list_empty(&nic->srd->reads_free) ||
        !srd_may_hold(peer->guest->reading, nic->limits.srd.reads)) {
        nic_count(nic, COUNTER_drop_srd_full);
        return SRD_JUDGED_NOT;
    }
    struct srd_read *read = CONTAINER_OF(list_pop(&nic->srd->reads_free), struct srd_read, node);
    *read = (struct srd_read){.target = qp,
                              .address = packet->address,
                              .wanted = packet->wanted,
                              .key = packet->key,
                              .bytes = packet->message_bytes,
                              .psn = packet->psn,
                              .chunk_bytes = packet->chunk_bytes,
                              .path = packet->path};
    list_init(&read->node);
    list_append(&peer->reads, &read->node);
    peer->guest->reading++;
    return SRD_JUDGED_TAKEN;
}

void srd_forget_reads_of(struct qp *qp)
{
    struct srd_shared *shared = qp->nic->srd;
    for (struct list *at = shared->peers_by_use.next; at != &shared->peers_by_use; at = at->next) {
        struct srd_peer *peer = CONTAINER_OF(at, struct srd_peer, by_use);
        struct list *next;
        for (struct list *node = peer->reads.next; node != &peer->reads; node = next) {
            struct srd_read *read = CONTAINER_OF(node, struct srd_read, node);
            next = node->next;
            if (read->target == qp) {
                free_read(peer, read);
            }
        }
    }
}

/* The region may be gone meanwhile: then nothing more leaves, and the requester asks again, and
 * hears why not. */
static bool gather(struct srd_peer *peer, const struct srd_read *read, uint32_t index,
                   struct nic_departure *departure)
{
    const struct qp *qp = read->target;
    const uint32_t before = index * read->chunk_bytes, rest = read->bytes - before;
    const uint32_t bytes = rest < read->chunk_bytes ? rest : read->chunk_bytes;
    departure->segment_count = 1;
    departure->payload_bytes = bytes;
    return region_judge(&peer->qp.nic->regions, read->key, qp->pd, qp, read->address + before,
                        bytes, ACCESS_REMOTE_READ, &departure->segments[0]) == REACH_ALLOWED;
}

bool srd_next_data(struct srd_peer *peer, struct nic_departure *departure,
                   struct srd_packet *packet)
{
    while (!list_empty(&peer->reads)) {
        struct srd_read *read = CONTAINER_OF(peer->reads.next, struct srd_read, node);
        const uint32_t index = (uint32_t)__builtin_ctzll(read->wanted);
        const struct srd_read one = *read;
        read->wanted &= read->wanted - 1;
        if (read->wanted == 0) {
            free_read(peer, read);
        }
        if (gather(peer, &one, index, departure)) {
            peer->qp.nic->counters.values[COUNTER_srd_rdma_read_resp_bytes] +=
                departure->payload_bytes;
            *packet = (struct srd_packet){.opcode = SRD_DATA,
                                          .tsn = peer->data_sent++ & ROCE_24_BITS,
                                          .flow = peer->receiver.flow,
                                          .tag = peer->receiver.tag,
                                          .path = one.path,
                                          .psn = one.psn,
                                          .index = (uint8_t)index,
                                          .chunk_bytes = one.chunk_bytes};
            return true;
        }
        departure->payload_bytes = 0;
        departure->segment_count = 0;
    }
    return false;
}

/* -- The requester ------------------------------------------------------------------------------*/

/* The part that asked by that PSN; NULL: none does, or not by that one any more. */
static struct srd_part *find(const struct srd_peer *peer, uint32_t psn)
{
    for (struct list *node = peer->asking.next; node != &peer->asking; node = node->next) {
        struct srd_part *part = part_of(node);
        if (part->instance.begun != 0 && part->instance.first == psn) {
            return part;
        }
    }
    return NULL;
}

/* Data that come twice, late, or otherwise than they were asked for are dropped. */
static bool is_wanted(const struct srd_peer *peer, const struct srd_part *part,
                      const struct srd_packet *packet)
{
    const uint32_t chunk = peer->sender.chunk_bytes, before = packet->index * chunk;
    if (part == NULL || packet->chunk_bytes != chunk || before >= part->bytes) {
        return false;
    }
    const uint32_t rest = part->bytes - before;
    return (part->wanted & ~part->moving) >> packet->index & 1 &&
           packet->payload_bytes == (rest < chunk ? rest : chunk);
}

/* All data are there, or will not be; the instance may still be under way. */
static void finish(struct srd_peer *peer, struct srd_part *part, enum srd_status status)
{
    if (!part->answered) {
        srd_sender_withdraw(&peer->sender, &part->instance);
    }
    srd_end_part(peer, part, status);
}

bool srd_on_data(struct srd_peer *peer, const struct srd_packet *packet, struct nic_move *move)
{
    struct nic *nic = peer->qp.nic;
    struct srd_part *part = packet->tag == peer->sender.tag ? find(peer, packet->psn) : NULL;
    if (!is_wanted(peer, part, packet)) {
        return nic_drop(nic, COUNTER_drop_stale_response);
    }
    *move = (struct nic_move){.kind = NIC_MOVE_SCATTER,
                              .purpose = NIC_FOR_REQUEST,
                              .payload = packet->payload,
                              .payload_bytes = packet->payload_bytes,
                              .qp = &peer->qp,
                              .psn = packet->psn,
                              .epoch = peer->qp.epoch,
                              .birth = (uint32_t)(part - nic->srd->parts) + 1,
                              .position = packet->index,
                              .action = SRD_DATA};
    if (!srd_gather(part->request, part->offset + packet->index * packet->chunk_bytes,
                    packet->payload_bytes, ACCESS_LOCAL_WRITE, move->segments,
                    &move->segment_count)) {
        if (part->moving == 0) { /* Else it is asked for again, and is found out then. */
            finish(peer, part, SRD_STATUS_LOCAL_BAD_LKEY);
        }
        return nic_drop(nic, COUNTER_drop_wrong_key);
    }
    part->moving |= UINT64_C(1) << packet->index;
    return true;
}

static struct instant next_ask(const struct srd_peer *peer, struct instant now)
{
    return instant_after(now, srd_sender_patience_ns(&peer->sender, 1u + peer->barren));
}

static void note_data(struct srd_peer *peer, const struct srd_part *part, struct instant now)
{
    const uint32_t psn = part->instance.first;
    peer->data_at = now;
    peer->barren = 0;
    peer->ask_at = instant_earlier(peer->ask_at, next_ask(peer, now));
    if (peer->data_flow != peer->sender.flow || srd_distance(peer->data_psn, psn) > 0) {
        peer->data_flow = peer->sender.flow;
        peer->data_psn = psn;
    }
}

void srd_on_data_moved(struct srd_peer *peer, struct srd_part *part, uint32_t index,
                       enum nic_move_result result, struct instant now)
{
    part->moving &= ~(UINT64_C(1) << index);
    if (part->request == NULL) { /* It was flushed meanwhile. */
        if (part->moving == 0) {
            srd_free_part(peer, part);
        }
        return;
    }
    part->news_at = now;
    note_data(peer, part, now);
    if (result == NIC_MOVED) {
        part->wanted &= ~(UINT64_C(1) << index);
    }
    if (result != NIC_MOVED && part->moving == 0) {
        finish(peer, part, SRD_STATUS_LOCAL_BAD_LKEY);
    } else if (part->wanted == 0) {
        finish(peer, part, SRD_STATUS_OK);
    }
}

void srd_read_taken(struct srd_peer *peer, struct srd_part *part, struct instant now)
{
    part->answered = true;
    part->taken_at = now;
    peer->ask_at = instant_earlier(peer->ask_at, next_ask(peer, now));
    if (part->wanted == 0) {
        srd_end_part(peer, part, SRD_STATUS_OK);
    }
}

/* The target answers READs in their order. So any data are news for those that have not had their
 * turn, but not for one that was passed over. */
static struct instant news_of(const struct srd_peer *peer, const struct srd_part *part)
{
    const bool passed = peer->data_flow == peer->sender.flow &&
                        srd_distance(part->instance.first, peer->data_psn) > 0;
    return passed || instant_before(peer->data_at, part->news_at) ? part->news_at : peer->data_at;
}

/* Asks again, gives up, or says when to look again. */
static struct instant look_after(struct srd_peer *peer, struct srd_part *part, struct instant now)
{
    const struct instant news = part->moving != 0 ? now : news_of(peer, part);
    const struct instant since = instant_before(news, part->taken_at) ? part->taken_at : news;
    const struct instant end = instant_after(news, SRD_GIVE_UP_NS), due = next_ask(peer, since);
    if (instant_reached(now, end)) {
        srd_end_part(peer, part, SRD_STATUS_UNRESPONSIVE);
        return INSTANT_NEVER;
    }
    if (instant_before(now, due)) {
        return instant_earlier(due, end);
    }
    part->answered = false;
    srd_sender_post(&peer->sender, &part->instance, now);
    return INSTANT_NEVER;
}

void srd_ask_again(struct srd_peer *peer, struct instant now)
{
    struct list *next;
    bool asks = false;
    if (!instant_reached(now, peer->ask_at)) {
        return;
    }
    peer->ask_at = INSTANT_NEVER;
    for (struct list *node = peer->asking.next; node != &peer->asking; node = next) {
        struct srd_part *part = part_of(node);
        next = node->next;
        if (part->request != NULL && part->answered) {
            const struct instant at = look_after(peer, part, now);
            peer->ask_at = instant_earlier(peer->ask_at, at);
            asks |= at.ns == UINT64_MAX;
        }
    }
    peer->barren = (uint8_t)(peer->barren + (asks && peer->barren < BARREN_MAX));
}

struct instant srd_ask_deadline(const struct srd_peer *peer)
{
    return peer->ask_at;
}
