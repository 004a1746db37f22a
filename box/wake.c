/* SPDX-License-Identifier: BSD-2-Clause
 *
 * wake - a thread that waits goes on.
 */
#include "box/internal.h"

static uint64_t later(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

void schedule_wake(struct box *box, struct thread *thread, uint64_t at_ns)
{
    descriptors_forget(thread);
    thread->state = THREAD_RUNS;
    thread->clock_ns = later(thread->clock_ns, later(at_ns, box->now_ns));
}

void schedule_finish(struct box *box, struct thread *thread, uint64_t at_ns, int64_t result)
{
    schedule_wake(box, thread, at_ns);
    thread->is_answered = true;
    thread->answer = result;
}
