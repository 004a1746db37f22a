/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call_process - processes, signals, locks: calls that wait for somebody else's deed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/calls.h"

static enum call_next wait_for_progress(const struct box *box, struct thread *thread)
{
    thread->wait =
        (struct wait){.kind = WAIT_PROGRESS, .deadline_ns = NEVER, .seen = box->progress};
    return CALL_WAITS;
}

ENTER(enter_futex)
{
    bool waits;
    const int64_t result = futex_call(box, thread, &waits);
    if (waits) {
        return CALL_WAITS;
    }
    turn_answer(thread, result);
    return CALL_ANSWERED;
}

/* Argument `index` with these bits, too. */
static enum call_next with_bits(struct thread *thread, int index, uint64_t bits)
{
    registers at;
    if (tracee_registers(thread->id, &at)) {
        unsigned long long *argument[4] = {&at.rdi, &at.rsi, &at.rdx, &at.r10};
        *argument[index] |= bits;
        tracee_set_registers(thread->id, &at);
    }
    return CALL_KERNEL;
}

ENTER(enter_wait4)
{
    (void)box;
    return with_bits(thread, 2, WNOHANG);
}

LEAVE(leave_wait4)
{
    const bool waits = *result == 0 && !(thread->call.argument[2] & WNOHANG);
    if (*result > 0) {
        usage_write(box, thread, thread->call.argument[3]);
    }
    return waits ? wait_for_progress(box, thread) : CALL_ANSWERED;
}

ENTER(enter_waitid)
{
    (void)box;
    return with_bits(thread, 3, WNOHANG);
}

LEAVE(leave_waitid)
{
    siginfo_t info = {0};
    const uint64_t *argument = thread->call.argument;
    const bool is_found = *result == 0 && argument[2] != 0 &&
                          tracee_read(thread->id, argument[2], &info, sizeof(info)) &&
                          info.si_pid != 0;
    if (is_found) {
        usage_write(box, thread, argument[4]);
    }
    return is_found || *result != 0 || (argument[3] & WNOHANG) ? CALL_ANSWERED
                                                               : wait_for_progress(box, thread);
}

ENTER(enter_exit)
{
    struct process *process = thread->process;
    const bool all = thread->call.number == SYS_exit_group || process->threads == 1;
    if (all && box->options.memory) {
        memory_digest(box, process);
    }
    process->is_ending |= thread->call.number == SYS_exit_group;
    turn_called(box, thread, 0);
    return CALL_LEAVES;
}

ENTER(enter_set_tid_address)
{
    (void)box;
    thread->clear_address = thread->call.argument[0];
    return CALL_KERNEL;
}

/* The processes that kill(2) names. */
static bool is_meant(pid_t target, const struct thread *sender, const struct process *process)
{
    if (target > 0) {
        return process->pid == target;
    }
    if (target == -1) {
        return process != sender->process;
    }
    return getpgid(process->pid) == (target == 0 ? getpgid(sender->process->pid) : -target);
}

static int signal_of(const struct call *call)
{
    return (int)
        call->argument[call->number == SYS_tgkill || call->number == SYS_rt_tgsigqueueinfo ? 2 : 1];
}

/* Stopping and continuing is done here: a stopped process gets no turn. */
ENTER(enter_kill)
{
    const int signal = signal_of(&thread->call);
    if (signal != SIGSTOP && signal != SIGCONT) {
        return CALL_KERNEL;
    }
    for (int i = 0; i < box->threads; i++) {
        struct thread *other = box->thread[i];
        if (other->state != THREAD_GONE &&
            is_meant((pid_t)thread->call.argument[0], thread, other->process)) {
            other->process->is_stopped = signal == SIGSTOP;
        }
    }
    turn_answer(thread, 0);
    return CALL_ANSWERED;
}

LEAVE(leave_kill)
{
    if (*result != 0) {
        return CALL_ANSWERED;
    }
    box->has_signals = true;
    if (signal_of(&thread->call) != SIGKILL) {
        return CALL_ANSWERED;
    }
    for (int i = 0; i < box->threads; i++) {
        struct thread *other = box->thread[i];
        if (other->state != THREAD_GONE && other->process != thread->process &&
            is_meant((pid_t)thread->call.argument[0], thread, other->process)) {
            process_await_end(box, other->process);
        }
    }
    return CALL_ANSWERED;
}

LEAVE(leave_sigaction)
{
    uint64_t action[4]; /* handler, flags, restorer, mask: the kernel's form */
    const uint64_t *argument = thread->call.argument;
    (void)box;
    if (*result == 0 && argument[1] != 0 && argument[0] >= 1 && argument[0] <= 64 &&
        tracee_read(thread->id, argument[1], action, sizeof(action))) {
        const uint64_t bit = UINT64_C(1) << (argument[0] - 1);
        thread->process->restarts &= ~bit;
        thread->process->restarts |= action[1] & SA_RESTART ? bit : 0;
    }
    return CALL_ANSWERED;
}

/* The thread sleeps here until a signal is there; then the kernel takes it. */
static enum call_next await_signal(struct box *box, struct thread *thread, bool has_blocked,
                                   uint64_t blocked)
{
    bool restarts;
    if (thread->again || signal_pending(thread, has_blocked, blocked, &restarts) != 0) {
        return CALL_KERNEL;
    }
    thread->wait = (struct wait){.kind = WAIT_SIGNAL,
                                 .deadline_ns = NEVER,
                                 .seen = box->progress,
                                 .has_blocked = has_blocked,
                                 .blocked = blocked};
    return CALL_WAITS;
}

ENTER(enter_sigsuspend)
{
    uint64_t mask = 0;
    const bool has_mask = tracee_read(thread->id, thread->call.argument[0], &mask, sizeof(mask));
    return await_signal(box, thread, has_mask, mask);
}

ENTER(enter_pause)
{
    return await_signal(box, thread, false, 0);
}

ENTER(enter_sigtimedwait)
{
    struct timespec limit = {0};
    const uint64_t address = thread->call.argument[2];
    if (!thread->again) {
        const bool has_limit =
            address != 0 && tracee_read(thread->id, address, &limit, sizeof(limit));
        thread->first_deadline_ns = has_limit ? box->page->clock_ns +
                                                    (uint64_t)limit.tv_sec * 1000000000 +
                                                    (uint64_t)limit.tv_nsec
                                              : NEVER;
    }
    registers at;
    if (tracee_registers(thread->id, &at)) {
        at.rdx = BOX_PAGE_ADDRESS + offsetof(struct box_page, zero);
        tracee_set_registers(thread->id, &at);
    }
    return CALL_KERNEL;
}

LEAVE(leave_sigtimedwait)
{
    uint64_t set = 0;
    siginfo_t info;
    if (*result == SIGCHLD && thread->call.argument[1] != 0 &&
        tracee_read(thread->id, thread->call.argument[1], &info, sizeof(info))) {
        signal_clear_usage(&info);
        tracee_write(thread->id, thread->call.argument[1], &info, sizeof(info));
    }
    if (*result != -EAGAIN || thread->first_deadline_ns <= box->page->clock_ns) {
        return CALL_ANSWERED;
    }
    tracee_read(thread->id, thread->call.argument[0], &set, sizeof(set));
    thread->wait = (struct wait){.kind = WAIT_SIGNAL,
                                 .deadline_ns = thread->first_deadline_ns,
                                 .late = -EAGAIN,
                                 .seen = box->progress,
                                 .mask = set};
    return CALL_WAITS;
}

/* flock, and fcntl's F_SETLKW and F_OFD_SETLKW: the kernel is asked without waiting. */
ENTER(enter_file_lock)
{
    registers at;
    (void)box;
    if (!tracee_registers(thread->id, &at)) {
        return CALL_KERNEL;
    }
    if (thread->call.number == SYS_flock) {
        at.rsi |= LOCK_NB;
    } else {
        at.rsi = at.rsi == F_SETLKW ? F_SETLK : at.rsi == F_OFD_SETLKW ? F_OFD_SETLK : at.rsi;
    }
    tracee_set_registers(thread->id, &at);
    return CALL_KERNEL;
}

LEAVE(leave_file_lock)
{
    const uint64_t how = thread->call.argument[1];
    const bool waits = thread->call.number == SYS_flock ? !(how & LOCK_NB)
                                                        : how == F_SETLKW || how == F_OFD_SETLKW;
    const bool is_taken = *result == -EAGAIN || *result == -EACCES;
    return waits && is_taken ? wait_for_progress(box, thread) : CALL_ANSWERED;
}

/* System V message queues: asked without waiting. */
ENTER(enter_message)
{
    (void)box;
    registers at;
    if (tracee_registers(thread->id, &at)) {
        if (thread->call.number == SYS_msgsnd) {
            at.r10 |= IPC_NOWAIT;
        } else {
            at.r8 |= IPC_NOWAIT;
        }
        tracee_set_registers(thread->id, &at);
    }
    return CALL_KERNEL;
}

LEAVE(leave_message)
{
    const uint64_t flags = thread->call.argument[thread->call.number == SYS_msgsnd ? 3 : 4];
    const bool is_none = *result == -EAGAIN || *result == -ENOMSG;
    return is_none && !(flags & IPC_NOWAIT) ? wait_for_progress(box, thread) : CALL_ANSWERED;
}
