/* SPDX-License-Identifier: BSD-2-Clause
 *
 * idle - finds runs in which nobody will ever go on, although threads still wake and look.
 *
 * A run stands still if for long nobody did a deed (moved bytes between processes, began or ended
 * something; a NIC counted a packet), and each thread waits without a deadline or went on several
 * times only because a time was over: it looks, finds nothing, and sleeps again. A thread that
 * computes does not stand still.
 */
#include "box/internal.h"

enum {
    IDLES_MIN = 3, /* of each thread */
    IDLE_S = 20,   /* longer than the timers of RDMA programs, of 4 s and 17 s at most */
};

static bool is_idle(const struct box *box, const struct thread *thread)
{
    if (thread->state == THREAD_GONE || thread->process->is_stopped) {
        return true;
    }
    if (thread->state != THREAD_WAITS) {
        return barren_is_idle(box, thread);
    }
    return thread->wait.deadline_ns == NEVER ||
           (thread->idle_at == box->deeds && thread->idles >= IDLES_MIN);
}

bool idle_for_ever(struct box *box, struct thread *next)
{
    if (box->idle_deeds != box->deeds) {
        box->idle_deeds = box->deeds;
        box->idle_ns = box->now_ns;
    }
    /* A sleep ends by itself, and the program counts sleeps, perhaps: it gets on. */
    const bool sleeps = next->state == THREAD_WAITS &&
                        (next->wait.kind == WAIT_SLEEP ||
                         (next->wait.kind == WAIT_DESCRIPTORS && next->wait.descriptors == 0));
    if (sleeps) {
        box->deeds++;
        return false;
    }
    next->idles = next->idle_at == box->deeds ? next->idles + 1 : 1;
    next->idle_at = box->deeds;
    if (box->now_ns - box->idle_ns < IDLE_S * UINT64_C(1000000000)) {
        return false;
    }
    for (int i = 0; i < box->threads; i++) {
        if (!is_idle(box, box->thread[i])) {
            return false;
        }
    }
    return true;
}
