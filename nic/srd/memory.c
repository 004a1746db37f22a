/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - the memory of SRD: contacts, hosts, peers, and what is under way.
 */
#include "base/align.h"
#include "base/bits.h"
#include "nic/srd/srd.h"

/* Buckets for as many objects, or half as many. */
static uint32_t bucket_count(uint32_t objects)
{
    return (uint32_t)(power_of_two(objects + 1) / 2);
}

size_t srd_nic_bytes(const struct nic_limits *limits)
{
    const struct srd_limits *srd = &limits->srd;
    if (srd->peers == 0) {
        return 0;
    }
    return line_aligned(sizeof(struct srd_shared)) +
           line_aligned(srd->hosts * sizeof(struct srd_host)) +
           line_aligned(bucket_count(srd->hosts) * sizeof(uint16_t)) +
           line_aligned(srd->contacts * sizeof(struct srd_contact)) +
           line_aligned(bucket_count(srd->contacts) * sizeof(uint32_t)) +
           line_aligned(srd->peers * sizeof(struct srd_guest)) +
           line_aligned(srd->peers * sizeof(struct srd_peer)) +
           line_aligned(srd->peers * sizeof(struct srd_ways)) +
           2 * line_aligned(bucket_count(srd->peers) * sizeof(struct srd_peer *)) +
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
    CHECK(srd->contacts >= 1 && srd->contacts <= SRD_CONTACTS_MAX);
    CHECK(srd->hosts >= 1 && srd->hosts <= SRD_HOSTS_MAX && srd->requests >= 1 && srd->parts >= 1);
    CHECK(srd->assemblies >= 1 && srd->reads >= 1 && srd->packets >= 1);
    CHECK(srd->chunk_bytes >= SRD_CHUNK_LEAST && srd->chunk_bytes <= SRD_CHUNK_MOST);
    CHECK(srd->chunk_bytes % SRD_CHUNK_STEP == 0);
    CHECK(srd->paths <= SRD_FLOW_PATHS);
    CHECK(srd->send_bytes <= SRD_PACKETS * srd->chunk_bytes);
    CHECK((limits->qpn_base & 0xffff) == 0 && limits->qpn_span == 256);
}

static void *take(uint8_t **at, size_t bytes)
{
    void *taken = *at;
    *at += line_aligned(bytes);
    return taken;
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
    shared->host_buckets = take(&at, bucket_count(limits->hosts) * sizeof(uint16_t));
    shared->contacts = take(&at, limits->contacts * sizeof(struct srd_contact));
    shared->contact_buckets = take(&at, bucket_count(limits->contacts) * sizeof(uint32_t));
    shared->guests = take(&at, limits->peers * sizeof(struct srd_guest));
    shared->peers = take(&at, limits->peers * sizeof(struct srd_peer));
    shared->ways = take(&at, limits->peers * sizeof(struct srd_ways));
    shared->way_buckets = take(&at, bucket_count(limits->peers) * sizeof(struct srd_peer *));
    shared->flow_buckets = take(&at, bucket_count(limits->peers) * sizeof(struct srd_peer *));
    shared->requests = take(&at, limits->requests * sizeof(struct srd_request));
    shared->parts = take(&at, limits->parts * sizeof(struct srd_part));
    shared->incoming = take(&at, limits->assemblies * sizeof(struct srd_incoming));
    shared->reads = take(&at, limits->reads * sizeof(struct srd_read));
    shared->packets = take(&at, limits->packets * sizeof(struct srd_transmission));
    shared->host_mask = bucket_count(limits->hosts) - 1;
    shared->contact_mask = bucket_count(limits->contacts) - 1;
    shared->flow_mask = bucket_count(limits->peers) - 1;
    shared->slot = (uint8_t)(nic->limits.qpn_base >> 16);
    shared->boot = (uint32_t)prng_next(&nic->prng);
    shared->key = (struct siphash_key){{prng_next(&nic->prng), prng_next(&nic->prng)}};
    shared->routes.ports = 1; /* Until the world says how many. */
    shared->policy = path_policy_default();
    shared->ring_policy = path_policy_of_ring();
    make_lists(shared, limits);
    srd_make_hosts(nic);
    srd_make_port(nic);
}
