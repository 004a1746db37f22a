/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/live_lend.h"

#include <sys/auxv.h>

#include "base/box_page.h"
#include "drivers/live/live_internal.h"
#include "drivers/system/backing.h"

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

static void take_back(struct live *live, uint64_t start, uint64_t bytes, bool idle)
{
    if (live->shm == NULL || !shm_port_has_lent(live->shm) || !is_alone(live)) {
        return;
    }
    /* Memory that a peer does not come out of stays as it is, and works as before. */
    (void)!shm_port_take_back(live->shm, start, bytes, idle);
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
