/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timers - what a program asked to be told at a time: by a signal (alarm, setitimer) or by a
 * descriptor (timerfd, which is an eventfd of ours).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "box/calls.h"

uint64_t timers_next(const struct box *box)
{
    uint64_t next = NEVER;
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        const struct timer *timer = &box->timer[i];
        next = timer->is_used && timer->next_ns < next ? timer->next_ns : next;
    }
    return next;
}

static void fire(struct box *box, struct timer *timer)
{
    const uint64_t one = 1;
    if (timer->signal == 0) {
        (void)!write(timer->descriptor, &one, sizeof(one));
    } else if (process_find(box, timer->process) != NULL) {
        kill(timer->process, timer->signal);
        box->has_signals = true;
    }
    timer->next_ns = timer->period_ns == 0 ? NEVER : timer->next_ns + timer->period_ns;
    if (timer->signal != 0 && timer->next_ns == NEVER) {
        timer->is_used = false;
    }
    box->progress++;
}

void timers_run(struct box *box)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->is_used && timer->next_ns <= box->now_ns) {
            fire(box, timer);
        }
    }
    if (box->has_signals) {
        signals_judge(box);
    }
}

static struct timer *unused(struct box *box)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        if (!box->timer[i].is_used) {
            box->timer[i] = (struct timer){.is_used = true, .next_ns = NEVER, .descriptor = -1};
            return &box->timer[i];
        }
    }
    return NULL;
}

static struct timer *alarm_of(struct box *box, pid_t process)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->is_used && timer->signal == SIGALRM && timer->process == process) {
            return timer;
        }
    }
    return NULL;
}

static struct timer *timer_of(struct box *box, const struct thread *thread, int descriptor)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->is_used && timer->signal == 0 &&
            syscall(SYS_kcmp, getpid(), thread->process->pid, KCMP_FILE, timer->descriptor,
                    descriptor) == 0) {
            return timer;
        }
    }
    return NULL;
}

ENTER(enter_timerfd_create)
{
    registers at;
    (void)box;
    if (tracee_registers(thread->id, &at)) {
        at.orig_rax = SYS_eventfd2;
        at.rdi = 0;
        at.rsi = thread->call.argument[1]; /* TFD_... are EFD_... */
        tracee_set_registers(thread->id, &at);
    }
    return CALL_KERNEL;
}

LEAVE(leave_timerfd_create)
{
    struct timer *timer = *result >= 0 ? unused(box) : NULL;
    if (timer != NULL) {
        timer->descriptor = descriptor_borrow(thread, (int)*result);
        fcntl(timer->descriptor, F_SETFD, FD_CLOEXEC);
    }
    return CALL_ANSWERED;
}

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static uint64_t left_ns(const struct box *box, const struct timer *timer)
{
    const uint64_t now_ns = box->page->clock_ns;
    if (timer == NULL || timer->next_ns == NEVER) {
        return 0;
    }
    return timer->next_ns > now_ns ? timer->next_ns - now_ns : 1;
}

static void write_setting(const struct box *box, const struct thread *thread,
                          const struct timer *timer, uint64_t to)
{
    const struct itimerspec setting = {timespec_of(timer->period_ns),
                                       timespec_of(left_ns(box, timer))};
    if (to != 0) {
        tracee_write(thread->id, to, &setting, sizeof(setting));
    }
}

/* When a time that a program names for its timer is there. */
static uint64_t due_ns(const struct box *box, uint64_t ns, bool is_absolute)
{
    if (!is_absolute) {
        return box->page->clock_ns + ns;
    }
    const uint64_t begins = ns >= BOX_REALTIME_NS / 2 ? BOX_REALTIME_NS : BOX_MONOTONIC_NS;
    return ns > begins ? ns - begins : 0;
}

ENTER(enter_timerfd_settime)
{
    const uint64_t *argument = thread->call.argument;
    struct itimerspec setting;
    uint64_t old;
    struct timer *timer = timer_of(box, thread, (int)argument[0]);
    if (timer == NULL) {
        return CALL_KERNEL;
    }
    if (!tracee_read(thread->id, argument[2], &setting, sizeof(setting))) {
        turn_answer(thread, -EFAULT);
        return CALL_ANSWERED;
    }
    write_setting(box, thread, timer, argument[3]);
    const int flags = fcntl(timer->descriptor, F_GETFL);
    fcntl(timer->descriptor, F_SETFL, flags | O_NONBLOCK);
    (void)!read(timer->descriptor, &old, sizeof(old));
    fcntl(timer->descriptor, F_SETFL, flags);
    const uint64_t ns = ns_of(&setting.it_value);
    timer->next_ns = ns == 0 ? NEVER : due_ns(box, ns, (argument[1] & TFD_TIMER_ABSTIME) != 0);
    timer->period_ns = ns_of(&setting.it_interval);
    turn_answer(thread, 0);
    return CALL_ANSWERED;
}

ENTER(enter_timerfd_gettime)
{
    const struct timer *timer = timer_of(box, thread, (int)thread->call.argument[0]);
    if (timer == NULL) {
        return CALL_KERNEL;
    }
    write_setting(box, thread, timer, thread->call.argument[1]);
    turn_answer(thread, 0);
    return CALL_ANSWERED;
}

static struct timeval timeval_of(uint64_t ns)
{
    return (struct timeval){(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)};
}

static void set_alarm(struct box *box, const struct thread *thread, uint64_t ns, uint64_t period_ns)
{
    struct timer *timer = alarm_of(box, thread->process->pid);
    if (timer == NULL && ns != 0) {
        timer = unused(box);
    }
    if (timer == NULL) {
        return;
    }
    *timer = (struct timer){.is_used = ns != 0,
                            .process = thread->process->pid,
                            .signal = SIGALRM,
                            .descriptor = -1,
                            .next_ns = box->page->clock_ns + ns,
                            .period_ns = period_ns};
}

ENTER(enter_getitimer)
{
    const struct timer *timer = alarm_of(box, thread->process->pid);
    const struct itimerval setting = {timeval_of(timer == NULL ? 0 : timer->period_ns),
                                      timeval_of(left_ns(box, timer))};
    const bool is_written =
        thread->call.argument[0] != ITIMER_REAL ||
        tracee_write(thread->id, thread->call.argument[1], &setting, sizeof(setting));
    turn_answer(thread, is_written ? 0 : -EFAULT);
    return CALL_ANSWERED;
}

ENTER(enter_setitimer)
{
    const uint64_t *argument = thread->call.argument;
    const struct timer *timer = alarm_of(box, thread->process->pid);
    const struct itimerval old = {timeval_of(timer == NULL ? 0 : timer->period_ns),
                                  timeval_of(left_ns(box, timer))};
    struct itimerval setting = {0};
    if (argument[0] != ITIMER_REAL) {
        box_doubt(box, "setitimer of processor time is not offered: thread %d got ENOSYS",
                  thread->number);
        turn_answer(thread, -ENOSYS);
        return CALL_ANSWERED;
    }
    if ((argument[1] != 0 && !tracee_read(thread->id, argument[1], &setting, sizeof(setting))) ||
        (argument[2] != 0 && !tracee_write(thread->id, argument[2], &old, sizeof(old)))) {
        turn_answer(thread, -EFAULT);
        return CALL_ANSWERED;
    }
    set_alarm(box, thread,
              (uint64_t)setting.it_value.tv_sec * 1000000000 +
                  (uint64_t)setting.it_value.tv_usec * 1000,
              (uint64_t)setting.it_interval.tv_sec * 1000000000 +
                  (uint64_t)setting.it_interval.tv_usec * 1000);
    turn_answer(thread, 0);
    return CALL_ANSWERED;
}

ENTER(enter_alarm)
{
    const uint64_t left = left_ns(box, alarm_of(box, thread->process->pid));
    set_alarm(box, thread, thread->call.argument[0] * 1000000000, 0);
    turn_answer(thread, (int64_t)((left + 999999999) / 1000000000));
    return CALL_ANSWERED;
}
