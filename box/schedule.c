/* SPDX-License-Identifier: BSD-2-Clause
 *
 * schedule - the thread with the least clock runs; what waits goes on when its reason is there.
 */
#include "box/machine.h"

enum {
    WAKE_NS = 1500,         /* from what wakes a thread until it runs */
    MEMORY_LOOK_NS = 20000, /* how long a thread may run on when others wait for memory */
    LOOP_ROUND_NS = 5,      /* a loop that only waits looks as often as this */
    DESCRIPTOR_NS = 2000,   /* from the write of one process to the read of another one */
};

static uint64_t later(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

static bool is_held(const struct thread *thread)
{
    return thread->state == THREAD_GONE || thread->state == THREAD_ASLEEP ||
           thread->process->is_stopped;
}

/* Whether what it waits for is there; it runs then. */
static void judge(struct box *box, struct thread *thread)
{
    struct wait *wait = &thread->wait;
    const bool is_new = wait->seen != box->progress;
    switch (wait->kind) {
    case WAIT_DESCRIPTORS:
        if (is_new && descriptors_ready(thread)) {
            schedule_wake(box, thread, box->now_ns + DESCRIPTOR_NS);
            turn_again(thread);
        }
        break;
    case WAIT_PROGRESS:
        if (is_new) {
            schedule_wake(box, thread, box->now_ns + WAKE_NS);
            turn_again(thread);
        }
        break;
    case WAIT_POLLS:
        if (is_new) {
            schedule_wake(box, thread, box->now_ns);
        }
        break;
    case WAIT_NEWS:
        if (is_new && machine_has_news(box, thread->process)) {
            schedule_wake(box, thread, box->now_ns + WAKE_NS);
        }
        break;
    case WAIT_LOOP:
        if (loop_is_over(thread->id, &thread->loop)) {
            schedule_wake(box, thread, box->now_ns + LOOP_ROUND_NS);
        }
        break;
    case WAIT_SLEEP:
    case WAIT_FUTEX:
    case WAIT_VFORK:
    case WAIT_SIGNAL: break;
    }
    wait->seen = box->progress;
}

/* When the thread is due: its clock, or its deadline. */
static uint64_t due(const struct thread *thread)
{
    if (is_held(thread)) {
        return NEVER;
    }
    return thread->state == THREAD_WAITS ? later(thread->wait.deadline_ns, thread->clock_ns)
                                         : thread->clock_ns;
}

static struct thread *least(struct box *box, uint64_t *at_ns)
{
    struct thread *best = NULL;
    uint64_t equals = 0;
    *at_ns = NEVER;
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        const uint64_t at = due(thread);
        if (at > *at_ns || at == NEVER) {
            continue;
        }
        equals = at < *at_ns ? 1 : equals + 1;
        /* With a seed each of the threads that are due at one time may be the first. */
        if (equals == 1 || (box->draws_ties && prng_below(&box->ties, equals) == 0)) {
            best = thread;
        }
        *at_ns = at;
    }
    return best;
}

static void judge_all(struct box *box)
{
    for (int i = 0; i < box->threads; i++) {
        if (box->thread[i]->state == THREAD_WAITS && !is_held(box->thread[i])) {
            judge(box, box->thread[i]);
        }
    }
    box->judged = box->progress;
}

struct thread *schedule_next(struct box *box, uint64_t *at_ns)
{
    judge_all(box);
    struct thread *next = least(box, at_ns);
    const uint64_t timer_ns = timers_next(box);
    if (timer_ns < *at_ns) {
        *at_ns = timer_ns;
        return NULL;
    }
    return next;
}

uint64_t schedule_grant(struct box *box, const struct thread *thread)
{
    /* Its call may have been what another one waits for. */
    if (box->judged != box->progress) {
        box->now_ns = later(box->now_ns, box->page->clock_ns);
        judge_all(box);
    }
    const uint64_t own_ns = box->page->clock_ns + barren_grant_ns(thread);
    uint64_t grant = timers_next(box);
    grant = own_ns < grant ? own_ns : grant;
    for (int i = 0; i < box->threads; i++) {
        const struct thread *other = box->thread[i];
        const uint64_t at = other == thread ? NEVER : due(other);
        grant = at < grant ? at : grant;
        /* It may write into memory that others wait for, which nobody is told. */
        if (other->state == THREAD_WAITS && other->wait.kind == WAIT_LOOP && !is_held(other)) {
            const uint64_t look_ns = box->page->clock_ns + MEMORY_LOOK_NS;
            grant = look_ns < grant ? look_ns : grant;
        }
    }
    return grant < box->options.until_ns || box->options.until_ns == 0 ? grant
                                                                       : box->options.until_ns;
}
