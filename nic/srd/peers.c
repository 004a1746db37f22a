/* SPDX-License-Identifier: BSD-2-Clause
 *
 * peers - the memory of SRD: peers and their carriers, hosts, and what is under way.
 */
#include <string.h>

#include "base/align.h"
#include "base/bits.h"
#include "nic/srd/srd.h"

/* Peers that are looked at for one that may go. */
#define LOOKS 16

/* -- Memory -------------------------------------------------------------------------------------*/

static uint32_t bucket_count(const struct nic_limits *limits)
{
    return (uint32_t)power_of_two(limits->srd.peers);
}

size_t srd_nic_bytes(const struct nic_limits *limits)
{
    const struct srd_limits *srd = &limits->srd;
    if (srd->peers == 0) {
        return 0;
    }
    return line_aligned(sizeof(struct srd_shared)) +
           line_aligned(srd->hosts * sizeof(struct srd_host)) +
           line_aligned(srd->peers * line_aligned(sizeof(struct srd_peer))) +
           line_aligned(bucket_count(limits) * sizeof(struct srd_peer *)) +
           line_aligned(srd->requests * sizeof(struct srd_request)) +
           line_aligned(srd->parts * sizeof(struct srd_part)) +
           line_aligned(srd->assemblies * sizeof(struct srd_incoming)) +
           line_aligned(srd->reads * sizeof(struct srd_read)) +
           line_aligned(srd->packets * sizeof(struct srd_transmission));
}

static void check_limits(const struct nic_limits *limits)
{
    const struct srd_limits *srd = &limits->srd;
    CHECK(srd->peers <= SRD_PEERS_MAX && limits->qps <= SRD_QPS_MAX);
    CHECK(srd->hosts >= 1 && srd->hosts <= SRD_HOSTS_MAX && srd->requests >= 1 && srd->parts >= 1);
    CHECK(srd->assemblies >= 1 && srd->reads >= 1 && srd->packets >= 1);
    CHECK(srd->chunk_bytes >= SRD_CHUNK_LEAST && srd->chunk_bytes <= SRD_CHUNK_MOST);
    CHECK(srd->chunk_bytes % SRD_CHUNK_STEP == 0);
    CHECK(srd->send_bytes <= SRD_PACKETS * srd->chunk_bytes);
    CHECK((limits->qpn_base & 0xffff) == 0 && limits->qpn_span == 256);
}

static void *take(uint8_t **at, size_t bytes)
{
    void *taken = *at;
    *at += line_aligned(bytes);
    return taken;
}

static struct srd_peer *peer_at(const struct srd_shared *shared, uint32_t number)
{
    return (struct srd_peer *)(void *)((uint8_t *)shared->peers +
                                       number * line_aligned(sizeof(struct srd_peer)));
}

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

/* Carriers have entries of the table behind those of programs, which have the first 252. */
static void make_peers(struct nic *nic, struct srd_shared *shared)
{
    uint32_t number = SRD_CARRIER_FIRST;
    make_carrier(nic, &shared->port, SRD_PORT);
    for (uint32_t i = 0; i < nic->limits.srd.peers; i++, number++) {
        struct srd_peer *peer = peer_at(shared, i);
        number += (number & nic->qp_mask) == (SRD_PORT & nic->qp_mask);
        make_carrier(nic, &peer->qp, number);
        list_init(&peer->by_use);
        list_init(&peer->to_cut);
        list_init(&peer->asking);
        list_init(&peer->reads);
        list_append(&shared->peers_free, &peer->by_use);
    }
}

static void make_lists(struct srd_shared *shared, const struct srd_limits *limits)
{
    struct list *const lists[] = {
        &shared->peers_by_use,  &shared->peers_free, &shared->requests_free, &shared->parts_free,
        &shared->incoming_free, &shared->reads_free, &shared->packets_free};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        list_init(lists[i]);
    }
    for (uint32_t i = 0; i < limits->requests; i++) {
        list_init(&shared->requests[i].to_cut);
        list_append(&shared->requests_free, &shared->requests[i].node);
    }
    for (uint32_t i = 0; i < limits->parts; i++) {
        list_append(&shared->parts_free, &shared->parts[i].node);
    }
    for (uint32_t i = 0; i < limits->assemblies; i++) {
        list_append(&shared->incoming_free, &shared->incoming[i].node);
    }
    for (uint32_t i = 0; i < limits->reads; i++) {
        list_append(&shared->reads_free, &shared->reads[i].node);
    }
    for (uint32_t i = 0; i < limits->packets; i++) {
        list_append(&shared->packets_free, &shared->packets[i].node);
    }
}

void srd_nic_init(struct nic *nic, void *memory)
{
    const struct srd_limits *limits = &nic->limits.srd;
    if (limits->peers == 0) {
        return;
    }
    check_limits(&nic->limits);
    uint8_t *at = memory;
    struct srd_shared *shared = take(&at, sizeof(*shared));
    nic->srd = shared;
    shared->hosts = take(&at, limits->hosts * sizeof(struct srd_host));
    shared->peers = take(&at, limits->peers * line_aligned(sizeof(struct srd_peer)));
    shared->buckets = take(&at, bucket_count(&nic->limits) * sizeof(struct srd_peer *));
    shared->requests = take(&at, limits->requests * sizeof(struct srd_request));
    shared->parts = take(&at, limits->parts * sizeof(struct srd_part));
    shared->incoming = take(&at, limits->assemblies * sizeof(struct srd_incoming));
    shared->reads = take(&at, limits->reads * sizeof(struct srd_read));
    shared->packets = take(&at, limits->packets * sizeof(struct srd_transmission));
    shared->bucket_mask = bucket_count(&nic->limits) - 1;
    shared->slot = (uint8_t)(nic->limits.qpn_base >> 16);
    shared->boot = (uint32_t)prng_next(&nic->prng);
    shared->key = (struct siphash_key){{prng_next(&nic->prng), prng_next(&nic->prng)}};
    shared->policy = path_policy_default();
    shared->ring_policy = path_policy_of_ring();
    make_lists(shared, limits);
    make_peers(nic, shared);
}

/* -- Hosts --------------------------------------------------------------------------------------*/

/* The host of that GID, or a free one that becomes it; UINT32_MAX: there is none. */
static uint32_t find_host(const struct nic *nic, const struct gid *gid)
{
    uint32_t free = UINT32_MAX;
    for (uint32_t i = 0; i < nic->limits.srd.hosts; i++) {
        const struct srd_host *host = &nic->srd->hosts[i];
        if (host->handles + host->peers == 0) {
            free = free == UINT32_MAX ? i : free;
        } else if (gid_equal(&host->gid, gid)) {
            return i;
        }
    }
    return free;
}

enum status srd_hold_host(struct nic *nic, const struct gid *gid, uint16_t *host)
{
    const uint32_t found = find_host(nic, gid);
    if (found == UINT32_MAX) {
        return STATUS_FULL;
    }
    nic->srd->hosts[found].gid = *gid;
    nic->srd->hosts[found].handles++;
    *host = (uint16_t)found;
    return STATUS_OK;
}

void srd_let_host_go(struct nic *nic, uint16_t host)
{
    CHECK(nic->srd->hosts[host].handles != 0);
    nic->srd->hosts[host].handles--;
}

bool srd_host_is_held(const struct nic *nic, uint16_t host)
{
    return nic->srd->hosts[host].handles != 0;
}

const struct gid *srd_host_gid(const struct nic *nic, uint16_t host)
{
    return &nic->srd->hosts[host].gid;
}

/* -- Peers --------------------------------------------------------------------------------------*/

struct srd_source srd_source_of(const struct gid *gid, uint8_t slot)
{
    struct srd_source source = {.slot = slot};
    memcpy(source.gid, gid->bytes, sizeof(source.gid));
    return source;
}

static struct srd_peer **bucket_of(const struct nic *nic, const uint8_t *gid)
{
    const struct srd_shared *shared = nic->srd;
    return &shared->buckets[siphash(&shared->key, gid, 16) & shared->bucket_mask];
}

struct srd_peer *srd_find_peer(const struct nic *nic, const struct srd_source *source)
{
    struct srd_peer *peer = *bucket_of(nic, source->gid);
    while (peer != NULL &&
           (memcmp(peer->source.gid, source->gid, 16) != 0 || peer->source.slot != source->slot)) {
        peer = peer->next_of_bucket;
    }
    return peer;
}

struct srd_peer *srd_find_flow(const struct nic *nic, const struct gid *gid, uint32_t flow)
{
    struct srd_peer *peer = *bucket_of(nic, gid->bytes);
    while (peer != NULL && (memcmp(peer->source.gid, gid->bytes, 16) != 0 ||
                            peer->sender.state == SRD_FLOW_NONE || peer->sender.flow != flow)) {
        peer = peer->next_of_bucket;
    }
    return peer;
}

void srd_touch_peer(struct srd_peer *peer)
{
    list_remove(&peer->by_use);
    list_append(&peer->qp.nic->srd->peers_by_use, &peer->by_use);
}

/* Is nothing under way, and would all tags of its flows be too old? */
static bool may_go(const struct srd_peer *peer, struct instant now)
{
    return srd_sender_is_idle(&peer->sender) && list_empty(&peer->to_cut) &&
           list_empty(&peer->asking) && list_empty(&peer->reads) &&
           list_empty(&peer->receiver.assemblies) && peer->receiver.moving == 0 &&
           peer->qp.listing == QP_LISTED_NOWHERE &&
           (!peer->entry.opened ||
            instant_reached(now, instant_after(peer->heard_at, SRD_FORGET_NS)));
}

static void forget(struct nic *nic, struct srd_peer *peer)
{
    struct srd_peer **at = bucket_of(nic, peer->source.gid);
    while (*at != peer) {
        at = &(*at)->next_of_bucket;
    }
    *at = peer->next_of_bucket;
    nic->srd->hosts[peer->host].peers--;
    timer_wheel_remove(&nic->timers, qp_timer_id(&peer->qp), &peer->qp.timer);
    peer->there = false;
    list_remove(&peer->by_use);
    list_append(&nic->srd->peers_free, &peer->by_use);
}

/* Forgets one of those that were not used for longest, if one may go. */
static void make_room(struct nic *nic)
{
    struct srd_shared *shared = nic->srd;
    uint32_t looks = LOOKS;
    for (struct list *node = shared->peers_by_use.next; node != &shared->peers_by_use && looks != 0;
         node = node->next, looks--) {
        struct srd_peer *peer = CONTAINER_OF(node, struct srd_peer, by_use);
        if (may_go(peer, nic->now)) {
            forget(nic, peer);
            return;
        }
    }
}

void srd_set_av(struct srd_peer *peer, const struct nic_av *av)
{
    void *link = peer->qp.attributes.av.link;
    peer->qp.attributes.av = *av;
    peer->qp.attributes.av.link = link;
}

static void start(struct nic *nic, struct srd_peer *peer, const struct srd_source *source,
                  const struct nic_av *av)
{
    struct srd_peer **bucket = bucket_of(nic, source->gid);
    peer->source = *source;
    peer->there = true;
    peer->entry = (struct srd_entry){.known = false};
    peer->data_sent = 0;
    peer->deadline = INSTANT_NEVER;
    peer->qp.attributes.av.link = NULL;
    srd_set_av(peer, av);
    peer->next_of_bucket = *bucket;
    *bucket = peer;
    srd_receiver_init(&peer->receiver, 0, 0, 0);
    srd_sender_init(&peer->sender,
                    &(struct srd_sender_config){.chunk_bytes = nic->limits.srd.chunk_bytes,
                                                .records = &nic->srd->packets_free,
                                                .policy = &nic->srd->policy,
                                                .path_records = peer->path_records});
    srd_touch_peer(peer);
}

struct srd_peer *srd_meet_peer(struct nic *nic, const struct srd_source *source,
                               const struct nic_av *av)
{
    struct srd_peer *peer = srd_find_peer(nic, source);
    if (peer != NULL) {
        srd_touch_peer(peer);
        return peer;
    }
    struct srd_shared *shared = nic->srd;
    if (list_empty(&shared->peers_free)) {
        make_room(nic);
    }
    struct gid gid;
    memcpy(gid.bytes, source->gid, sizeof(gid.bytes));
    const uint32_t host = find_host(nic, &gid);
    if (list_empty(&shared->peers_free) || host == UINT32_MAX) {
        return NULL;
    }
    peer = CONTAINER_OF(list_pop(&shared->peers_free), struct srd_peer, by_use);
    shared->hosts[host].gid = gid;
    shared->hosts[host].peers++;
    peer->host = (uint16_t)host;
    start(nic, peer, source, av);
    return peer;
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
