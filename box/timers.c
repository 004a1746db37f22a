/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timers - what a program asked to be told at a time: by a signal (alarm, setitimer, POSIX timers)
 * or by a descriptor (timerfd, which is an eventfd of ours). The machine's events are due beside
 * them.
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
#include "box/machine.h"

uint64_t timers_next(const struct box *box)
{
    uint64_t next = NEVER;
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        const struct timer *timer = &box->timer[i];
        next = timer->kind != TIMER_NONE && timer->next_ns < next ? timer->next_ns : next;
    }
    const uint64_t machine_ns = machine_next_ns(box);
    return machine_ns < next ? machine_ns : next;
}

/* As the kernel says it: with the program's own word. */
static void send_signal(const struct timer *timer)
{
    siginfo_t info = {.si_signo = timer->signal, .si_code = SI_TIMER};
    info.si_value.sival_ptr = (void *)(uintptr_t)timer->value;
    if (timer->thread != 0) {
        syscall(SYS_rt_tgsigqueueinfo, timer->process, timer->thread, timer->signal, &info);
    } else if (timer->signal != 0) {
        syscall(SYS_rt_sigqueueinfo, timer->process, timer->signal, &info);
    }
}

static void fire(struct box *box, struct timer *timer)
{
    const uint64_t one = 1;
    timer->next_ns = timer->period_ns == 0 ? NEVER : timer->next_ns + timer->period_ns;
    switch (timer->kind) {
    case TIMER_NONE: return;
    case TIMER_DESCRIPTOR: (void)!write(timer->descriptor, &one, sizeof(one)); break;
    case TIMER_POSIX: send_signal(timer); break;
    case TIMER_ALARM:
        kill(timer->process, SIGALRM);
        timer->kind = timer->next_ns == NEVER ? TIMER_NONE : TIMER_ALARM;
        break;
    }
    box->has_signals |= timer->descriptor < 0;
    box->progress++;
}

void timers_run(struct box *box)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->kind != TIMER_NONE && timer->next_ns <= box->now_ns) {
            fire(box, timer);
        }
    }
    if (box->has_signals) {
        signals_judge(box);
    }
}

void timers_forget(struct box *box, pid_t process, bool with_alarm)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->process == process &&
            (timer->kind == TIMER_POSIX || (timer->kind == TIMER_ALARM && with_alarm))) {
            timer->kind = TIMER_NONE;
        }
    }
}

static struct timer *new_timer(struct box *box, enum timer_kind kind, pid_t process)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        if (box->timer[i].kind == TIMER_NONE) {
            box->timer[i] = (struct timer){
                .kind = kind, .process = process, .next_ns = NEVER, .descriptor = -1};
            return &box->timer[i];
        }
    }
    return NULL;
}

static struct timer *find(struct box *box, enum timer_kind kind, pid_t process, int number)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->kind == kind && timer->process == process && timer->number == number) {
            return timer;
        }
    }
    return NULL;
}

static struct timer *alarm_of(struct box *box, pid_t process)
{
    return find(box, TIMER_ALARM, process, 0);
}

static struct timer *timer_of(struct box *box, const struct thread *thread, int descriptor)
{
    for (int i = 0; i < BOX_TIMERS_MAX; i++) {
        struct timer *timer = &box->timer[i];
        if (timer->kind == TIMER_DESCRIPTOR &&
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
    struct timer *timer =
        *result >= 0 ? new_timer(box, TIMER_DESCRIPTOR, thread->process->pid) : NULL;
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

/* timerfd_settime and timer_settime: their arguments are the same. */
static int64_t set_timer(struct box *box, const struct thread *thread, struct timer *timer)
{
    const uint64_t *argument = thread->call.argument;
    struct itimerspec setting;
    if (!tracee_read(thread->id, argument[2], &setting, sizeof(setting))) {
        return -EFAULT;
    }
    if ((uint64_t)setting.it_value.tv_nsec >= 1000000000 || setting.it_value.tv_sec < 0 ||
        (uint64_t)setting.it_interval.tv_nsec >= 1000000000 || setting.it_interval.tv_sec < 0) {
        return -EINVAL;
    }
    write_setting(box, thread, timer, argument[3]);
    const uint64_t ns = ns_of(&setting.it_value);
    timer->next_ns = ns == 0 ? NEVER : due_ns(box, ns, (argument[1] & TFD_TIMER_ABSTIME) != 0);
    timer->period_ns = ns_of(&setting.it_interval);
    return 0;
}

static void drain(int descriptor)
{
    uint64_t old;
    const int flags = fcntl(descriptor, F_GETFL);
    fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
    (void)!read(descriptor, &old, sizeof(old));
    fcntl(descriptor, F_SETFL, flags);
}

ENTER(enter_timerfd_settime)
{
    struct timer *timer = timer_of(box, thread, (int)thread->call.argument[0]);
    if (timer == NULL) {
        return CALL_KERNEL;
    }
    const int64_t result = set_timer(box, thread, timer);
    if (result == 0) {
        drain(timer->descriptor);
    }
    turn_answer(thread, result);
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
        timer = new_timer(box, TIMER_ALARM, thread->process->pid);
    }
    if (timer == NULL) {
        return;
    }
    timer->kind = ns != 0 ? TIMER_ALARM : TIMER_NONE;
    timer->next_ns = box->page->clock_ns + ns;
    timer->period_ns = period_ns;
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

static struct timer *posix_timer(struct box *box, const struct thread *thread)
{
    return find(box, TIMER_POSIX, thread->process->pid, (int)thread->call.argument[0]);
}

/* glibc's SIGEV_THREAD is a thread of its own that awaits the signal: SIGEV_THREAD_ID. */
static int64_t create(struct box *box, const struct thread *thread)
{
    const uint64_t *argument = thread->call.argument;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    int number = 0;
    if (argument[1] != 0 && !tracee_read(thread->id, argument[1], &event, sizeof(event))) {
        return -EFAULT;
    }
    const pid_t target = event.sigev_notify == SIGEV_THREAD_ID ? event._sigev_un._tid : 0;
    if (argument[0] > CLOCK_TAI ||
        (target != 0 && syscall(SYS_tgkill, thread->process->pid, target, 0) != 0) ||
        (event.sigev_notify != SIGEV_NONE && (event.sigev_signo < 1 || event.sigev_signo > 64))) {
        return -EINVAL;
    }
    while (find(box, TIMER_POSIX, thread->process->pid, number) != NULL) {
        number++;
    }
    struct timer *timer = new_timer(box, TIMER_POSIX, thread->process->pid);
    if (timer == NULL) {
        return -EAGAIN;
    }
    timer->number = number;
    timer->signal = event.sigev_notify == SIGEV_NONE ? 0 : event.sigev_signo;
    timer->thread = target;
    timer->value = argument[1] == 0 ? (uint64_t)number : (uintptr_t)event.sigev_value.sival_ptr;
    if (!tracee_write(thread->id, argument[2], &number, sizeof(number))) {
        timer->kind = TIMER_NONE;
        return -EFAULT;
    }
    return 0;
}

ENTER(enter_timer_create)
{
    const clockid_t clock = (clockid_t)thread->call.argument[0]; /* below 0: another process's */
    if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0) {
        box_doubt(box, "timer_create of processor time is not offered: thread %d got ENOSYS",
                  thread->number);
        turn_answer(thread, -ENOSYS);
    } else {
        turn_answer(thread, create(box, thread));
    }
    return CALL_ANSWERED;
}

ENTER(enter_timer_settime)
{
    struct timer *timer = posix_timer(box, thread);
    turn_answer(thread, timer == NULL ? -EINVAL : set_timer(box, thread, timer));
    return CALL_ANSWERED;
}

ENTER(enter_timer_gettime)
{
    const struct timer *timer = posix_timer(box, thread);
    if (timer != NULL) {
        write_setting(box, thread, timer, thread->call.argument[1]);
    }
    turn_answer(thread, timer == NULL ? -EINVAL : 0);
    return CALL_ANSWERED;
}

/* Signals that come while one is pending are not counted. */
ENTER(enter_timer_getoverrun)
{
    turn_answer(thread, posix_timer(box, thread) == NULL ? -EINVAL : 0);
    return CALL_ANSWERED;
}

ENTER(enter_timer_delete)
{
    struct timer *timer = posix_timer(box, thread);
    if (timer != NULL) {
        timer->kind = TIMER_NONE;
    }
    turn_answer(thread, timer == NULL ? -EINVAL : 0);
    return CALL_ANSWERED;
}
