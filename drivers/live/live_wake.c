/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_wake - the length of the thread's sleep, and the wake-up that ends it early.
 */
#include "drivers/live/live_wake.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_port.h"
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
