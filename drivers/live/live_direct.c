/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_direct - the memory that local peers may reach by themselves, and the end of that.
 */
#include <sched.h>
#include <stdio.h>

#include "drivers/live/live_direct.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_lend.h"
#include "drivers/system/clock.h"
#include "drivers/system/system.h"

/* The time that we wait for a peer whose window stays open. */
#define SETTLE_NS 3000000000u
/* The same with the lock held, where nobody can wait outside of it. */
#define SETTLE_LOCKED_NS 5000000u
/* The time between two looks. */
#define LOOK_NS 1000000

void live_publish_region(struct live *live, const struct region *region)
{
    INVARIANTS(live_check_locked(live));
    if (live->shm != NULL) {
        shm_port_publish_region(live->shm, region);
        live_lend_new(live, region);
    }
}

void live_withdraw_region(struct live *live, const struct region *region)
{
    INVARIANTS(live_check_locked(live));
    if (live->shm != NULL) {
        shm_port_withdraw_region(live->shm, region);
    }
}

void live_publish_qp(struct live *live, const struct qp *qp)
{
    INVARIANTS(live_check_locked(live));
    if (live->shm != NULL) {
        shm_port_publish_qp(live->shm, qp);
    }
}

void live_withdraw_qp(struct live *live, const struct qp *qp)
{
    INVARIANTS(live_check_locked(live));
    if (live->shm != NULL) {
        shm_port_withdraw_qp(live->shm, qp);
    }
}

void live_end_qp(struct live *live, const struct qp *qp)
{
    live_withdraw_qp(live, qp);
}

bool live_settled(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    return live->shm == NULL || shm_port_settled(live->shm, shm_port_withdrawals(live->shm));
}

void live_settle_locked(struct live *live)
{
    if (live_settled(live)) {
        return;
    }
    const uint64_t withdrawal = shm_port_withdrawals(live->shm);
    const struct instant end = instant_after(clock_now(), SETTLE_LOCKED_NS);
    while (!instant_reached(clock_now(), end) && !shm_port_settled(live->shm, withdrawal)) {
        sched_yield();
    }
}

static void complain(pid_t pid)
{
    fprintf(stderr,
            "nonic: process %d is stopped while it reaches into this process's memory: "
            "ibv_dereg_mr answers EBUSY until that process goes on or ends\n",
            pid);
}

/* The caller does not hold the lock. */
static bool wait_until_settled(struct live *live, uint64_t withdrawal)
{
    const struct instant end = instant_after(clock_now(), SETTLE_NS);
    for (;;) {
        live_lock(live);
        const enum shm_wait wait = shm_port_look_closely(live->shm, withdrawal);
        const bool late = wait == SHM_WAIT_ON && instant_reached(clock_now(), end);
        const pid_t pid = late ? shm_port_give_up(live->shm, withdrawal) : 0;
        live_unlock(live);
        if (pid != 0) {
            complain(pid);
        }
        if (wait != SHM_WAIT_ON || late) {
            return wait == SHM_WAIT_OVER;
        }
        system_sleep(LOOK_NS);
    }
}

bool live_settle(struct live *live)
{
    if (live->shm == NULL) {
        return true;
    }
    live_lock(live);
    const uint64_t withdrawal = shm_port_withdrawals(live->shm);
    bool settled = shm_port_settled(live->shm, withdrawal);
    live_unlock(live);
    if (!settled) {
        const int cancellation = uncancelled_begin();
        settled = wait_until_settled(live, withdrawal);
        uncancelled_end(cancellation);
    }
    return settled;
}
