/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_wake - how long the thread may sleep, and what ends its sleep before that.
 */
#include "drivers/live_internal.h"
#include "drivers/system.h"

void live_wake(struct live *live)
{
    system_count_up(live->wake_fd, 1);
}

struct instant live_deadline(const struct live *live)
{
    const struct instant nic = nic_deadline(live->nic);
    const struct instant held = faults_deadline(live->faults);
    const struct instant due = instant_earlier(nic, instant_earlier(live->cm_due, live->port_due));
    return instant_earlier(held, due);
}

void live_wake_for_work(struct live *live)
{
    if (live->sleeps_until.ns == 0) {
        return;
    }
    const bool left = live->parked || nic_next_qp(live->nic) != NULL;
    if (left || instant_before(live_deadline(live), live->sleeps_until)) {
        live->sleeps_until = (struct instant){0};
        live_wake(live);
    }
}
