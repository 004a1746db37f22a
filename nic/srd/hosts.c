/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hosts - addresses at which processes are known, or of which programs have handles.
 */
#include <string.h>

#include "nic/srd/srd.h"

void srd_make_hosts(struct nic *nic)
{
    struct srd_shared *shared = nic->srd;
    for (uint32_t i = nic->limits.srd.peers; i != 0; i--) {
        shared->guests[i - 1].next = shared->guests_free;
        shared->guests_free = (uint16_t)i;
    }
}

uint64_t srd_hash(const struct nic *nic, const uint8_t *gid)
{
    return siphash(&nic->srd->key, gid, 16);
}

static uint16_t *bucket_of(const struct nic *nic, uint64_t hash)
{
    return &nic->srd->host_buckets[hash >> 32 & nic->srd->host_mask];
}

/* UINT32_MAX: there is none. */
static uint32_t find(const struct nic *nic, const uint8_t *gid, uint64_t hash)
{
    uint32_t at = *bucket_of(nic, hash);
    while (at != 0 && memcmp(nic->srd->hosts[at - 1].gid.bytes, gid, 16) != 0) {
        at = nic->srd->hosts[at - 1].next;
    }
    return at - 1;
}

uint32_t srd_make_host(struct nic *nic, const uint8_t *gid, uint64_t hash)
{
    struct srd_shared *shared = nic->srd;
    uint32_t number = find(nic, gid, hash);
    if (number != UINT32_MAX) {
        return number;
    }
    if (shared->hosts_free != 0) {
        number = shared->hosts_free - 1u;
        shared->hosts_free = shared->hosts[number].next;
    } else if (shared->hosts_made < nic->limits.srd.hosts) {
        number = shared->hosts_made++;
    } else {
        return UINT32_MAX;
    }
    uint16_t *bucket = bucket_of(nic, hash);
    shared->hosts[number] = (struct srd_host){.next = *bucket};
    memcpy(shared->hosts[number].gid.bytes, gid, 16);
    *bucket = (uint16_t)(number + 1);
    return number;
}

void srd_free_host(struct nic *nic, uint32_t number)
{
    struct srd_shared *shared = nic->srd;
    struct srd_host *host = &shared->hosts[number];
    if (host->handles + host->contacts != 0) {
        return;
    }
    uint16_t *at = bucket_of(nic, srd_hash(nic, host->gid.bytes));
    while (*at != number + 1) {
        at = &shared->hosts[*at - 1].next;
    }
    *at = host->next;
    host->next = shared->hosts_free;
    shared->hosts_free = (uint16_t)(number + 1);
}

/* -- Handles ------------------------------------------------------------------------------------*/

void srd_let_host_go(struct nic *nic, uint16_t host)
{
    CHECK(nic->srd->hosts[host].handles != 0);
    nic->srd->hosts[host].handles--;
    srd_free_host(nic, host);
}

bool srd_host_is_held(const struct nic *nic, uint16_t host)
{
    return nic->srd->hosts[host].handles != 0;
}

const struct gid *srd_host_gid(const struct nic *nic, uint16_t host)
{
    return &nic->srd->hosts[host].gid;
}

/* -- Guests -------------------------------------------------------------------------------------*/

struct srd_guest *srd_host_gets_peer(struct nic *nic, uint32_t number)
{
    struct srd_shared *shared = nic->srd;
    struct srd_host *host = &shared->hosts[number];
    if (host->guest == 0) {
        host->guest = shared->guests_free;
        CHECK(host->guest != 0);
        shared->guests_free = shared->guests[host->guest - 1].next;
        shared->guests[host->guest - 1] = (struct srd_guest){.peers = 0};
    }
    struct srd_guest *guest = &shared->guests[host->guest - 1];
    guest->peers++;
    return guest;
}

void srd_host_loses_peer(struct nic *nic, uint32_t number)
{
    struct srd_shared *shared = nic->srd;
    struct srd_host *host = &shared->hosts[number];
    struct srd_guest *guest = &shared->guests[host->guest - 1];
    if (--guest->peers == 0) {
        CHECK(guest->incoming == 0 && guest->reading == 0);
        guest->next = shared->guests_free;
        shared->guests_free = host->guest;
        host->guest = 0;
    }
}

bool srd_host_is_full(const struct nic *nic, const uint8_t *gid)
{
    const struct srd_shared *shared = nic->srd;
    const uint32_t number = find(nic, gid, srd_hash(nic, gid));
    const uint32_t guest = number == UINT32_MAX ? 0 : shared->hosts[number].guest;
    return guest != 0 && !srd_may_hold(shared->guests[guest - 1].peers, nic->limits.srd.peers);
}
