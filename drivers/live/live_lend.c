/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/live_lend.h"

#include <sys/auxv.h>

#include "base/box_page.h"
#include "drivers/live/live_internal.h"
#include "drivers/system/backing.h"
#include "drivers/system/clock.h"
#include "drivers/system/system.h"

/* The time that we wait, with the lock held, for a peer that is within memory which has to become
 * private: it copies there, or its process does not run. */
#define TAKE_BACK_NS 3000000000u
/* The time between two looks. */
#define LOOK_NS 20000

atomic_bool live_has_lent;

/* Programs in virtual time are not told from outside that somebody reaches into their memory. */
void live_begin_lending(struct live *live)
{
    if (live->shm != NULL) {
        shm_port_set_lending(live->shm, live->config.map_memory != LIVE_MAP_NEVER &&
                                            !live->is_watched &&
                                            getauxval(AT_SYSINFO_EHDR) != BOX_VDSO_ADDRESS);
    }
}

/* Our own thread waits for the lock, or does nothing with the program's memory. */
static bool is_alone(const struct live *live)
{
    return backing_is_alone(live->thread.started ? 1 : 0);
}

static void lend(struct live *live, uint32_t key)
{
    shm_port_lend(live->shm, key, is_alone(live));
    atomic_store_explicit(&live_has_lent, shm_port_has_lent(live->shm), memory_order_relaxed);
}

void live_lend_new(struct live *live, const struct region *region)
{
    if (live->config.map_memory == LIVE_MAP_NOW) {
        lend(live, region->key);
    }
}

void live_lend_wanted(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    const uint32_t key = live->shm == NULL ? 0 : shm_port_wanted(live->shm);
    if (UNLIKELY(key != 0)) {
        lend(live, key);
    }
}

/* A peer is within the memory: true as soon as it is worth another try. One that was waited for in
 * vain is not waited for again until it has come out. */
static bool wait_for_peers(struct live *live, struct instant end)
{
    const uint64_t withdrawal = shm_port_withdrawals(live->shm);
    const enum shm_wait wait = shm_port_look_closely(live->shm, withdrawal);
    if (wait == SHM_WAIT_ON && instant_reached(clock_now(), end)) {
        (void)shm_port_give_up(live->shm, withdrawal);
        return false;
    }
    if (wait == SHM_WAIT_ON) {
        system_sleep(LOOK_NS);
    }
    return wait != SHM_WAIT_IN_VAIN;
}

static void take_back(struct live *live, uint64_t start, uint64_t bytes, bool idle)
{
    if (live->shm == NULL || !shm_port_has_lent(live->shm) || !is_alone(live)) {
        return;
    }
    /* Memory that a peer does not come out of stays as it is, and works as before. */
    const struct instant end = instant_after(clock_now(), TAKE_BACK_NS);
    while (!shm_port_take_back(live->shm, start, bytes, idle) && wait_for_peers(live, end)) {
    }
    atomic_store_explicit(&live_has_lent, shm_port_has_lent(live->shm), memory_order_relaxed);
}

void live_take_back(struct live *live, uint64_t start, uint64_t bytes)
{
    INVARIANTS(live_check_locked(live));
    take_back(live, start, bytes, false);
}

void live_take_back_unused(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    take_back(live, 0, UINT64_MAX, true);
}
