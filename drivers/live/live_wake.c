/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_wake - the length of the thread's sleep, and the wake-up that ends it early; whether the
 * program spins meanwhile.
 */
#include "drivers/live/live_wake.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_port.h"
#include "drivers/system/clock.h"
#include "drivers/system/system.h"

void live_wake(struct live *live)
{
    system_count_up(live->thread.wake_fd, 1);
}

struct instant live_deadline(const struct live *live)
{
    const struct instant nic = nic_deadline(live->nic);
    const struct instant held = faults_deadline(live->faults);
    const struct instant due =
        instant_earlier(nic, instant_earlier(live->manager.due, live->port.due));
    return instant_earlier(held, due);
}

void live_wake_for_work(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    if (live->thread.sleeps_until.ns == 0) {
        return;
    }
    const bool left = live->links.parked || nic_next_qp(live->nic) != NULL;
    if (left || instant_before(live_deadline(live), live->thread.sleeps_until)) {
        live->thread.sleeps_until = (struct instant){0};
        live_wake(live);
    }
}

/* 0 if no thread of the program has ever driven, or the system does not tell. */
static uint64_t poller_ran_ns(const struct live *live)
{
    uint64_t ran_ns = 0;
    if (live->thread.poller != 0) {
        (void)clock_read_ran(live->thread.poller, &ran_ns);
    }
    return ran_ns;
}

void live_note_sleep(struct live *live)
{
    rival_note_sleep(&live->thread.rival, clock_now(), poller_ran_ns(live));
}

void live_note_wake(struct live *live)
{
    rival_note_wake(&live->thread.rival, clock_now(), poller_ran_ns(live));
}

bool live_gives_way(struct live *live)
{
    struct rival *rival = &live->thread.rival;
    return !rival_is_known(rival) && !live->habit.streaming &&
           rival_waits(rival, clock_now(), poller_ran_ns(live));
}
