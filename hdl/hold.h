/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hold - when the clock of a design waits for the rest of the world.
 *
 * Purpose    Simulated time is not wall time: while a peer is not given a processor for 20 ms, a
 *            design that runs freely sees its timers run out many times, and sends again although
 *            nothing is lost. So its clock stands still while an answer is owed to it.
 * Inputs     hold_left, hold_came and hold_moved when a frame has left or come, and when a beat has
 *            passed; hold_waited when the world had its time.
 * Outputs    hold_waits: the world should have time now, as much as the caller grants, or until
 *            something comes.
 * Time       Simulated, in ps, and never backwards.
 * Limits     A design that works longer than `after_ps` without a beat is held as well: nothing
 *            says that it does not wait.
 */
#ifndef HDL_HOLD_H
#define HDL_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#define HOLD_OFF UINT64_MAX

struct hold {
    uint64_t after_ps; /* HOLD_OFF: never. */
    uint64_t moved_ps; /* When something passed the last time. */
    uint64_t owed_ps;  /* The first frame that left since one came. */
    bool owed;
};

static inline struct hold hold_begin(uint64_t after_ps)
{
    return (struct hold){.after_ps = after_ps};
}

static inline void hold_moved(struct hold *hold, uint64_t now_ps)
{
    hold->moved_ps = now_ps;
}

static inline void hold_left(struct hold *hold, uint64_t now_ps)
{
    hold->moved_ps = now_ps;
    hold->owed_ps = hold->owed ? hold->owed_ps : now_ps;
    hold->owed = true;
}

/* One answer may stand for many frames: nothing more is owed. */
static inline void hold_came(struct hold *hold, uint64_t now_ps)
{
    hold->moved_ps = now_ps;
    hold->owed = false;
}

static inline bool hold_waits(const struct hold *hold, uint64_t now_ps)
{
    return now_ps - hold->moved_ps > hold->after_ps ||
           (hold->owed && now_ps - hold->owed_ps > hold->after_ps);
}

/* The world had its time, whatever came of it: the same time again is due until the next wait. */
static inline void hold_waited(struct hold *hold, uint64_t now_ps)
{
    hold->moved_ps = hold->owed_ps = now_ps;
}

#endif
