/* SPDX-License-Identifier: BSD-2-Clause
 *
 * contacts - processes that are known, most of which rest.
 */
#include <string.h>

#include "nic/srd/srd.h"

/* Contacts that are looked at for the one to be forgotten: that of them which rests for longest. */
#define LOOKS 16

/* -- Finding ------------------------------------------------------------------------------------*/

/* An address has its slots in other buckets each, and nobody can choose which. */
static uint32_t *bucket_of(const struct nic *nic, uint64_t hash, uint8_t slot)
{
    const uint32_t place = (uint32_t)hash + slot * UINT32_C(0x9e3779b1);
    return &nic->srd->contact_buckets[place & nic->srd->contact_mask];
}

static bool is_of(const struct srd_shared *shared, const struct srd_contact *contact,
                  const struct srd_source *source)
{
    return contact->slot == source->slot && contact->host != SRD_NO_HOST &&
           memcmp(shared->hosts[contact->host].gid.bytes, source->gid, 16) == 0;
}

/* Most packets are of the process that the one before was of. */
struct srd_contact *srd_find_contact(const struct nic *nic, const struct srd_source *source)
{
    struct srd_shared *shared = nic->srd;
    if (shared->contact_found < shared->contacts_made &&
        is_of(shared, &shared->contacts[shared->contact_found], source)) {
        return &shared->contacts[shared->contact_found];
    }
    uint32_t at = *bucket_of(nic, srd_hash(nic, source->gid), source->slot);
    while (at != 0) {
        struct srd_contact *contact = &shared->contacts[at - 1];
        if (is_of(shared, contact, source)) {
            shared->contact_found = at - 1;
            return contact;
        }
        at = contact->next;
    }
    return NULL;
}

/* -- Forgetting ---------------------------------------------------------------------------------*/

static void forget(struct nic *nic, struct srd_contact *contact)
{
    struct srd_shared *shared = nic->srd;
    const uint32_t number = (uint32_t)(contact - shared->contacts) + 1, host = contact->host;
    const uint64_t hash = srd_hash(nic, shared->hosts[host].gid.bytes);
    uint32_t *const bucket = bucket_of(nic, hash, (uint8_t)contact->slot);
    struct srd_contact *before = NULL;
    for (uint32_t at = *bucket; at != number; at = before->next) {
        before = &shared->contacts[at - 1];
    }
    if (before == NULL) {
        *bucket = contact->next;
    } else {
        before->next = contact->next;
    }
    contact->host = SRD_NO_HOST;
    contact->next = shared->contacts_free & SRD_CONTACTS_MAX;
    shared->contacts_free = number;
    shared->hosts[host].contacts--;
    srd_free_host(nic, host);
}

/* Among some in turn, the one that rests for longest. False: none of them may be forgotten. */
static bool forget_one(struct nic *nic)
{
    struct srd_shared *shared = nic->srd;
    struct srd_contact *oldest = NULL;
    for (uint32_t i = 0; i < LOOKS && i < shared->contacts_made; i++) {
        struct srd_contact *contact = &shared->contacts[shared->contact_hand];
        shared->contact_hand = (shared->contact_hand + 1) % shared->contacts_made;
        if (contact->host != SRD_NO_HOST && contact->peer == 0 &&
            srd_rest_may_go(&contact->rest, nic->now) &&
            (oldest == NULL ||
             srd_rest_age(&contact->rest, nic->now) > srd_rest_age(&oldest->rest, nic->now))) {
            oldest = contact;
        }
    }
    if (oldest != NULL) {
        forget(nic, oldest);
    }
    return oldest != NULL;
}

/* -- Making -------------------------------------------------------------------------------------*/

/* A free contact; its number + 1, or 0. */
static uint32_t take(struct nic *nic)
{
    struct srd_shared *shared = nic->srd;
    if (shared->contacts_free == 0 && shared->contacts_made < nic->limits.srd.contacts) {
        return ++shared->contacts_made;
    }
    if (shared->contacts_free == 0 && !forget_one(nic)) {
        return 0;
    }
    const uint32_t number = shared->contacts_free;
    shared->contacts_free = shared->contacts[number - 1].next;
    return number;
}

/* A host is free when its last contact is forgotten, so a few are. */
static uint32_t make_host(struct nic *nic, const uint8_t *gid, uint64_t hash)
{
    uint32_t host = srd_make_host(nic, gid, hash);
    for (uint32_t i = 0; host == UINT32_MAX && i < LOOKS && forget_one(nic); i++) {
        host = srd_make_host(nic, gid, hash);
    }
    return host;
}

struct srd_contact *srd_make_contact(struct nic *nic, const struct srd_source *source)
{
    struct srd_shared *shared = nic->srd;
    const uint64_t hash = srd_hash(nic, source->gid);
    const uint32_t number = take(nic);
    if (number == 0) {
        return NULL;
    }
    struct srd_contact *contact = &shared->contacts[number - 1];
    contact->host = SRD_NO_HOST;
    const uint32_t host = make_host(nic, source->gid, hash);
    if (host == UINT32_MAX) {
        contact->next = shared->contacts_free & SRD_CONTACTS_MAX;
        shared->contacts_free = number;
        return NULL;
    }
    uint32_t *bucket = bucket_of(nic, hash, source->slot);
    *contact = (struct srd_contact){
        .next = *bucket & SRD_CONTACTS_MAX, .slot = source->slot, .host = (uint16_t)host};
    *bucket = number;
    shared->hosts[host].contacts++;
    return contact;
}

enum status srd_hold_host(struct nic *nic, const struct gid *gid, uint16_t *host)
{
    const uint32_t found = make_host(nic, gid->bytes, srd_hash(nic, gid->bytes));
    if (found == UINT32_MAX || nic->srd->hosts[found].handles == SRD_HANDLES_MAX) {
        return STATUS_FULL;
    }
    nic->srd->hosts[found].handles++;
    *host = (uint16_t)found;
    return STATUS_OK;
}

uint32_t srd_contact_count(const struct nic *nic)
{
    const struct srd_shared *shared = nic->srd;
    uint32_t count = shared->contacts_made;
    for (uint32_t at = shared->contacts_free; at != 0; at = shared->contacts[at - 1].next) {
        count--;
    }
    return count;
}
