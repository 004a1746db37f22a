/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timer - the deadline of an engine as an event of the world.
 *
 * The kernel counts picoseconds, engines nanoseconds: sim_instant is the time that they are told.
 */
#ifndef TESTS_WORLD_TIMER_H
#define TESTS_WORLD_TIMER_H

#include "sim/kernel.h"

/* Moves the event to the engine's deadline: now, if that has passed; off, if there is none. */
static inline void timer_set(struct sim *sim, struct sim_event *timer, struct instant deadline)
{
    if (deadline.ns > UINT64_MAX / SIM_NS) {
        sim_cancel(timer);
        return;
    }
    const uint64_t due_ps = deadline.ns * SIM_NS;
    const uint64_t at_ps = due_ps > sim->now_ps ? due_ps : sim->now_ps;
    if (!sim_event_scheduled(timer) || timer->at_ps != at_ps) {
        sim_reschedule(sim, timer, at_ps);
    }
}

#endif
