/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/exclusive.h"

#define NOWHERE LANT_EXCLUSIVES_MAX

static uint64_t granule_of(uint64_t address)
{
    return address & ~UINT64_C(7);
}

void lant_exclusive_init(struct lant_exclusive *exclusive, uint64_t lifetime)
{
    CHECK(lifetime > 0 && lifetime < LANT_NEVER / 2);
    *exclusive = (struct lant_exclusive){.lifetime = lifetime};
}

void lant_exclusive_check(const struct lant_exclusive *exclusive)
{
    for (uint32_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        const struct lant_exclusive_lock *lock = &exclusive->locks[i];
        if (!lock->valid) {
            continue;
        }
        CHECK(lock->address == granule_of(lock->address));
        for (uint32_t j = 0; j < i; j++) {
            CHECK(!exclusive->locks[j].valid || exclusive->locks[j].address != lock->address);
        }
    }
}

/* -- Judging ------------------------------------------------------------------------------------*/

static bool has_expired(const struct lant_exclusive_lock *lock, uint64_t now)
{
    return !lock->writing && now >= lock->expires;
}

/* A lock that has expired is found as well: the next initiator may have its entry. */
static uint32_t find(const struct lant_exclusive *exclusive, uint64_t address)
{
    for (uint32_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        const struct lant_exclusive_lock *lock = &exclusive->locks[i];
        if (lock->valid && lock->address == granule_of(address)) {
            return i;
        }
    }
    return NOWHERE;
}

static uint32_t find_free(const struct lant_exclusive *exclusive, uint64_t now)
{
    for (uint32_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        if (!exclusive->locks[i].valid || has_expired(&exclusive->locks[i], now)) {
            return i;
        }
    }
    return NOWHERE;
}

static bool is_holder(const struct lant_exclusive_lock *lock,
                      const struct lant_exclusive_access *access)
{
    return lock->node == access->node && lock->bus_id == access->bus_id;
}

enum lant_exclusive_verdict lant_exclusive_judge(const struct lant_exclusive *exclusive,
                                                 const struct lant_exclusive_access *access,
                                                 uint64_t now)
{
    const uint32_t place = find(exclusive, access->address);
    if (place == NOWHERE || has_expired(&exclusive->locks[place], now)) {
        if (access->store) {
            return LANT_EXCLUSIVE_NONE;
        }
        return place == NOWHERE && find_free(exclusive, now) == NOWHERE ? LANT_EXCLUSIVE_FULL
                                                                        : LANT_EXCLUSIVE_LOCKS;
    }
    const struct lant_exclusive_lock *lock = &exclusive->locks[place];
    /* Not even the holder, while its store is being written: its next access comes too early. */
    if (!is_holder(lock, access) || lock->writing) {
        return LANT_EXCLUSIVE_HELD;
    }
    return access->store ? LANT_EXCLUSIVE_WRITES : LANT_EXCLUSIVE_RENEWS;
}

/* -- Applying -----------------------------------------------------------------------------------*/

static void take_lock(struct lant_exclusive *exclusive, const struct lant_exclusive_access *access,
                      uint64_t now)
{
    uint32_t place = find(exclusive, access->address);
    place = place == NOWHERE ? find_free(exclusive, now) : place;
    CHECK(place != NOWHERE);
    exclusive->counters.locked++;
    exclusive->counters.expired += exclusive->locks[place].valid;
    exclusive->locks[place] = (struct lant_exclusive_lock){.address = granule_of(access->address),
                                                           .expires = now + exclusive->lifetime,
                                                           .node = access->node,
                                                           .bus_id = access->bus_id,
                                                           .valid = true};
}

enum lant_exclusive_verdict lant_exclusive_apply(struct lant_exclusive *exclusive,
                                                 const struct lant_exclusive_access *access,
                                                 uint64_t now)
{
    INVARIANTS(lant_exclusive_check(exclusive));
    const enum lant_exclusive_verdict verdict = lant_exclusive_judge(exclusive, access, now);
    switch (verdict) {
    case LANT_EXCLUSIVE_LOCKS: take_lock(exclusive, access, now); break;
    case LANT_EXCLUSIVE_RENEWS:
        exclusive->locks[find(exclusive, access->address)].expires = now + exclusive->lifetime;
        exclusive->counters.renewed++;
        break;
    case LANT_EXCLUSIVE_WRITES:
        exclusive->locks[find(exclusive, access->address)].writing = true;
        break;
    case LANT_EXCLUSIVE_FULL:
    case LANT_EXCLUSIVE_HELD:
    case LANT_EXCLUSIVE_NONE:
        exclusive->counters.full += verdict == LANT_EXCLUSIVE_FULL;
        exclusive->counters.refused_stores += access->store;
        exclusive->counters.refused_loads += !access->store;
        break;
    }
    INVARIANTS(lant_exclusive_check(exclusive));
    return verdict;
}

void lant_exclusive_written(struct lant_exclusive *exclusive,
                            const struct lant_exclusive_access *access)
{
    INVARIANTS(lant_exclusive_check(exclusive));
    const uint32_t place = find(exclusive, access->address);
    CHECK(place != NOWHERE && exclusive->locks[place].writing);
    CHECK(is_holder(&exclusive->locks[place], access));
    exclusive->locks[place].valid = false;
    exclusive->counters.written++;
    INVARIANTS(lant_exclusive_check(exclusive));
}

void lant_exclusive_cancel(struct lant_exclusive *exclusive,
                           const struct lant_exclusive_access *access)
{
    INVARIANTS(lant_exclusive_check(exclusive));
    const uint32_t place = find(exclusive, access->address);
    /* It may have expired meanwhile, and be somebody else's. */
    if (place != NOWHERE && is_holder(&exclusive->locks[place], access) &&
        !exclusive->locks[place].writing) {
        exclusive->locks[place].valid = false;
    }
    INVARIANTS(lant_exclusive_check(exclusive));
}

/* -- Time ---------------------------------------------------------------------------------------*/

uint64_t lant_exclusive_deadline(const struct lant_exclusive *exclusive)
{
    uint64_t deadline = LANT_NEVER;
    for (uint32_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        const struct lant_exclusive_lock *lock = &exclusive->locks[i];
        if (lock->valid && !lock->writing && lock->expires < deadline) {
            deadline = lock->expires;
        }
    }
    return deadline;
}

void lant_exclusive_on_time(struct lant_exclusive *exclusive, uint64_t now)
{
    INVARIANTS(lant_exclusive_check(exclusive));
    for (uint32_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        if (exclusive->locks[i].valid && has_expired(&exclusive->locks[i], now)) {
            exclusive->locks[i].valid = false;
            exclusive->counters.expired++;
        }
    }
    INVARIANTS(lant_exclusive_check(exclusive));
}

uint32_t lant_exclusive_count(const struct lant_exclusive *exclusive)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        count += exclusive->locks[i].valid;
    }
    return count;
}
