/* SPDX-License-Identifier: BSD-2-Clause
 *
 * peers - processes with which something goes on: from rest, and back to it.
 */
#include <string.h>

#include "nic/srd/srd.h"

/* Peers that are looked at for one that may rest at once. */
#define LOOKS 16

/* -- Carriers -----------------------------------------------------------------------------------*/

/* A queue pair of the NIC's own. */
static void make_carrier(struct nic *nic, struct qp *qp, uint32_t number)
{
    qp->nic = nic;
    qp->type = QP_SRD;
    qp->engine = ENGINE_FLOW;
    qp->state = QP_RTS;
    qp->number = nic->limits.qpn_base | number;
    list_init(&qp->node);
    list_init(&qp->event_link);
    CHECK(nic->qps[qp->number & nic->qp_mask] == NULL);
    nic->qps[qp->number & nic->qp_mask] = qp;
}

void srd_make_port(struct nic *nic)
{
    nic->srd->next_carrier = SRD_CARRIER_FIRST;
    make_carrier(nic, &nic->srd->port, SRD_PORT);
}

/* Carriers have entries of the table behind those of programs, which have the first 252. */
static struct srd_peer *make_peer(struct nic *nic)
{
    struct srd_shared *shared = nic->srd;
    struct srd_peer *peer = &shared->peers[shared->peers_made++];
    shared->next_carrier += (shared->next_carrier & nic->qp_mask) == (SRD_PORT & nic->qp_mask);
    make_carrier(nic, &peer->qp, shared->next_carrier++);
    list_init(&peer->by_use);
    list_init(&peer->to_cut);
    list_init(&peer->asking);
    list_init(&peer->reads);
    return peer;
}

/* A free one, or one that was never used: whose memory nobody has touched. */
static struct srd_peer *take(struct nic *nic)
{
    struct list *node = list_pop(&nic->srd->peers_free);
    return node == NULL ? make_peer(nic) : CONTAINER_OF(node, struct srd_peer, by_use);
}

/* -- Finding ------------------------------------------------------------------------------------*/

struct srd_source srd_source_of(const struct gid *gid, uint8_t slot)
{
    struct srd_source source = {.slot = slot};
    memcpy(source.gid, gid->bytes, sizeof(source.gid));
    return source;
}

struct srd_peer *srd_peer_of_contact(const struct nic *nic, const struct srd_contact *contact)
{
    return contact == NULL || contact->peer == 0 ? NULL : &nic->srd->peers[contact->peer - 1];
}

static struct srd_peer **flow_bucket(const struct srd_shared *shared, uint32_t flow)
{
    return &shared->flow_buckets[flow & shared->flow_mask];
}

struct srd_peer *srd_find_flow(const struct nic *nic, const struct nic_frame *frame, uint32_t flow)
{
    const uint8_t *gid = frame->source.bytes;
    struct srd_peer *peer = *flow_bucket(nic->srd, flow);
    while (peer != NULL &&
           (peer->filed != flow || peer->sender.state == SRD_FLOW_NONE ||
            (memcmp(peer->source.gid, gid, 16) != 0 && !srd_is_of_way(peer, frame)))) {
        peer = peer->next_of_flow;
    }
    return peer;
}

static void file(struct srd_peer *peer)
{
    struct srd_peer **bucket = flow_bucket(peer->qp.nic->srd, peer->sender.flow);
    peer->filed = peer->sender.flow;
    peer->next_of_flow = *bucket;
    *bucket = peer;
}

static void unfile(struct srd_peer *peer)
{
    struct srd_peer **at = flow_bucket(peer->qp.nic->srd, peer->filed);
    while (*at != peer) {
        at = &(*at)->next_of_flow;
    }
    *at = peer->next_of_flow;
}

void srd_file_flow(struct srd_peer *peer)
{
    if (peer->filed != peer->sender.flow) {
        unfile(peer);
        file(peer);
    }
}

void srd_touch_peer(struct srd_peer *peer)
{
    peer->used_at = peer->qp.nic->now;
    list_remove(&peer->by_use);
    list_append(&peer->qp.nic->srd->peers_by_use, &peer->by_use);
}

/* -- Rest ---------------------------------------------------------------------------------------*/

/* Is nothing under way, in either direction? */
static bool is_quiet(const struct srd_peer *peer)
{
    return srd_sender_is_idle(&peer->sender) && list_empty(&peer->to_cut) &&
           list_empty(&peer->asking) && list_empty(&peer->reads) &&
           list_empty(&peer->receiver.assemblies) && peer->receiver.moving == 0 &&
           !peer->receiver.reply.due;
}

/* A verdict other than "taken" is kept until the sender knows it, or all its tags are too old. */
struct instant srd_rest_at(const struct srd_peer *peer)
{
    if (!is_quiet(peer)) {
        return INSTANT_NEVER;
    }
    const struct instant at = instant_after(peer->used_at, SRD_REST_NS);
    const struct instant forgotten = instant_after(peer->heard_at, SRD_FORGET_NS);
    const bool kept = peer->entry.opened && !srd_receiver_may_rest(&peer->receiver);
    return kept && instant_before(at, forgotten) ? forgotten : at;
}

void srd_rest(struct srd_peer *peer)
{
    struct nic *nic = peer->qp.nic;
    CHECK(is_quiet(peer) && peer->qp.listing == QP_LISTED_NOWHERE);
    srd_rest_sender(&peer->contact->rest, &peer->sender);
    srd_rest_receiver(&peer->contact->rest, &peer->entry, &peer->receiver, peer->heard_at,
                      nic->now);
    peer->contact->peer = 0;
    peer->contact = NULL;
    srd_host_loses_peer(nic, peer->host);
    srd_forget_ways(peer);
    unfile(peer);
    timer_wheel_remove(&nic->timers, qp_timer_id(&peer->qp), &peer->qp.timer);
    peer->there = false;
    nic->srd->peers_there--;
    nic->srd->peers_called -= peer->caller == SRD_THEY;
    list_remove(&peer->by_use);
    list_append(&nic->srd->peers_free, &peer->by_use);
}

/* May it rest before its time, since another process needs a peer? A way that has no room keeps
 * it. */
static bool may_yield(const struct srd_peer *peer)
{
    return is_quiet(peer) && peer->qp.listing == QP_LISTED_NOWHERE &&
           (!peer->entry.opened || srd_receiver_may_rest(&peer->receiver));
}

/* Programs here leave a quarter to those who call: otherwise processes that send to each other
 * could all wait for one another. Those who call leave a quarter to the programs here. */
static bool is_at_limit(const struct nic *nic, enum srd_caller caller)
{
    const struct srd_shared *shared = nic->srd;
    const uint32_t all = nic->limits.srd.peers;
    const uint32_t left = all > 1 ? (all + SRD_SHARES - 1) / SRD_SHARES : 0;
    const uint32_t held =
        caller == SRD_THEY ? shared->peers_called : shared->peers_there - shared->peers_called;
    return held >= all - left;
}

static bool has_room(const struct nic *nic, enum srd_caller caller)
{
    return nic->srd->peers_there < nic->limits.srd.peers && !is_at_limit(nic, caller);
}

/* One of those that were not used for longest rests, for the sake of a caller: if he has as many as
 * he may have, one of these. False: none may. */
static bool make_room(struct nic *nic, enum srd_caller caller)
{
    struct srd_shared *shared = nic->srd;
    const bool own = is_at_limit(nic, caller);
    uint32_t looks = LOOKS;
    for (struct list *node = shared->peers_by_use.next; node != &shared->peers_by_use && looks != 0;
         node = node->next, looks--) {
        struct srd_peer *peer = CONTAINER_OF(node, struct srd_peer, by_use);
        if (may_yield(peer) && (!own || peer->caller == caller)) {
            srd_rest(peer);
            return true;
        }
    }
    return false;
}

static bool may_wake(struct nic *nic, const struct srd_source *source, enum srd_caller caller)
{
    if (caller == SRD_THEY && srd_host_is_full(nic, source->gid)) {
        return false;
    }
    while (!has_room(nic, caller)) {
        if (!make_room(nic, caller)) {
            return false;
        }
    }
    return true;
}

void srd_set_av(struct srd_peer *peer, const struct nic_av *av)
{
    void *link = peer->qp.attributes.av.link;
    peer->qp.attributes.av = *av;
    peer->qp.attributes.av.link = link;
}

static struct srd_peer *wake(struct nic *nic, struct srd_contact *contact,
                             const struct srd_source *source, const struct nic_av *av,
                             enum srd_caller caller)
{
    struct srd_shared *shared = nic->srd;
    struct srd_peer *peer = take(nic);
    peer->caller = caller;
    shared->peers_there++;
    shared->peers_called += caller == SRD_THEY;
    contact->peer = (uint16_t)(peer - shared->peers + 1);
    peer->contact = contact;
    peer->source = *source;
    peer->host = contact->host;
    peer->guest = srd_host_gets_peer(nic, contact->host);
    peer->there = true;
    peer->data_sent = 0;
    peer->deadline = INSTANT_NEVER;
    peer->qp.attributes.av.link = NULL;
    srd_set_av(peer, av);
    srd_sender_init(&peer->sender,
                    &(struct srd_sender_config){.chunk_bytes = nic->limits.srd.chunk_bytes,
                                                .records = &shared->packets_free,
                                                .policy = &shared->policy,
                                                .path_records = peer->path_records});
    srd_resume_sender(&contact->rest, &peer->sender, nic->now);
    peer->ask_at = INSTANT_NEVER;
    peer->barren = 0;
    peer->data_at = (struct instant){0};
    peer->data_flow = peer->sender.flow - 1; /* None came. */
    srd_resume_receiver(&contact->rest, &shared->key, source, &peer->entry, &peer->receiver,
                        &peer->heard_at, nic->now);
    file(peer);
    srd_touch_peer(peer);
    return peer;
}

enum srd_met srd_meet_peer(struct nic *nic, const struct srd_source *source,
                           const struct nic_av *av, enum srd_caller caller, struct srd_peer **peer)
{
    struct srd_contact *contact = srd_find_contact(nic, source);
    *peer = srd_peer_of_contact(nic, contact);
    if (*peer != NULL) {
        srd_touch_peer(*peer);
        return SRD_MET;
    }
    if (!may_wake(nic, source, caller)) {
        return SRD_MET_LATER;
    }
    contact = contact != NULL ? contact : srd_make_contact(nic, source);
    if (contact == NULL) {
        return SRD_MET_NEVER;
    }
    *peer = wake(nic, contact, source, av, caller);
    return SRD_MET;
}

/* -- For tests ----------------------------------------------------------------------------------*/

static uint32_t count(const struct list *head)
{
    uint32_t found = 0;
    for (const struct list *node = head->next; node != head; node = node->next) {
        found++;
    }
    return found;
}

bool srd_is_quiet(const struct nic *nic)
{
    const struct srd_shared *shared = nic->srd;
    const struct srd_limits *limits = &nic->limits.srd;
    return count(&shared->requests_free) == limits->requests &&
           count(&shared->parts_free) == limits->parts &&
           count(&shared->incoming_free) == limits->assemblies &&
           count(&shared->reads_free) == limits->reads &&
           count(&shared->packets_free) == limits->packets &&
           shared->challenge_head == shared->challenge_tail;
}

uint32_t srd_peer_count(const struct nic *nic)
{
    return nic->srd->peers_there;
}
