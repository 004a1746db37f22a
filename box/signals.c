/* SPDX-License-Identifier: BSD-2-Clause
 *
 * signals - the kernel keeps and delivers signals; the box ends the waits that they interrupt.
 *
 * Source: signal(7), "Interruption of system calls and library functions by signal handlers".
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <time.h>

#include "base/check.h"
#include "box/calls.h"

struct masks {
    uint64_t own, shared, blocked, ignored, caught;
};

static bool masks_of(pid_t id, struct masks *masks)
{
    char line[200];
    snprintf(line, sizeof(line), "/proc/%d/status", (int)id);
    FILE *file = fopen(line, "re");
    int found = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        found += sscanf(line, "SigPnd: %" SCNx64, &masks->own) +
                 sscanf(line, "ShdPnd: %" SCNx64, &masks->shared) +
                 sscanf(line, "SigBlk: %" SCNx64, &masks->blocked) +
                 sscanf(line, "SigIgn: %" SCNx64, &masks->ignored) +
                 sscanf(line, "SigCgt: %" SCNx64, &masks->caught);
    }
    if (file != NULL) {
        fclose(file);
    }
    return found == 5;
}

static uint64_t bit(int signal)
{
    return UINT64_C(1) << (signal - 1);
}

int signal_pending(const struct thread *thread, bool with_mask, uint64_t mask, bool *restarts)
{
    /* Without a handler these do nothing. */
    const uint64_t idle = bit(SIGCHLD) | bit(SIGURG) | bit(SIGWINCH) | bit(SIGCONT);
    struct masks masks = {0};
    if (!masks_of(thread->id, &masks)) {
        return 0;
    }
    const uint64_t here = (masks.own | masks.shared) & ~(with_mask ? mask : masks.blocked);
    const uint64_t taken = here & (masks.caught | ~(masks.ignored | idle));
    if (taken == 0) {
        return 0;
    }
    const int signal = __builtin_ctzll(taken) + 1;
    *restarts = (thread->process->restarts & bit(signal)) != 0;
    return signal;
}

/* The frame that the kernel makes for a handler: a return address, and a struct ucontext, whose
 * first 40 bytes are flags, a link and the other stack. */
enum {
    FRAME_OF_REGISTERS = 8 + 40
};

/* The kernel writes into the frame which fault of the thread was the last, and where. That may have
 * been the box's own: a step, or an instruction that it replaced. */
static void hide_fault(const struct thread *thread)
{
    static const int of_fault[] = {REG_ERR, REG_TRAPNO, REG_CR2};
    const uint64_t nothing = 0;
    registers at;
    for (size_t i = 0; i < COUNT_OF(of_fault) && tracee_registers(thread->id, &at); i++) {
        const uint64_t place = at.rsp + FRAME_OF_REGISTERS + 8 * (uint64_t)of_fault[i];
        tracee_write(thread->id, place, &nothing, sizeof(nothing));
    }
}

bool signal_hand_on(struct thread *thread, int signal)
{
    siginfo_t info;
    struct masks masks = {0};
    const uint64_t faults = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP);
    if (signal > 64 || !masks_of(thread->id, &masks) || (masks.caught & bit(signal)) == 0 ||
        ptrace(PTRACE_GETSIGINFO, thread->id, NULL, &info) != 0 ||
        ((faults & bit(signal)) != 0 && info.si_code > 0)) {
        return false;
    }
    if (ptrace(PTRACE_SINGLESTEP, thread->id, NULL, (void *)(long)signal) != 0) {
        return false;
    }
    int status;
    if (tracee_wait(thread->id, &status)) {
        if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && status >> 16 == 0) {
            hide_fault(thread);
        } else {
            thread->has_status = true;
            thread->status = status;
        }
    }
    return true;
}

void signal_clear_usage(siginfo_t *info)
{
    if (info->si_code > 0) {
        info->si_utime = 0;
        info->si_stime = 0;
    }
}

static bool pending_of_set(const struct thread *thread)
{
    struct masks masks = {0};
    return masks_of(thread->id, &masks) && ((masks.own | masks.shared) & thread->wait.mask) != 0;
}

/* A sleep that a signal ends tells how long it would have gone on. */
static void tell_rest(const struct box *box, const struct thread *thread)
{
    const struct call *call = &thread->call;
    const uint64_t left =
        thread->wait.deadline_ns > box->now_ns ? thread->wait.deadline_ns - box->now_ns : 0;
    const struct timespec rest = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
    const bool is_absolute =
        call->number == SYS_clock_nanosleep && (call->argument[1] & TIMER_ABSTIME);
    const uint64_t to = call->argument[call->number == SYS_nanosleep ? 1 : 3];
    if (thread->wait.kind == WAIT_SLEEP && to != 0 && !is_absolute) {
        tracee_write(thread->id, to, &rest, sizeof(rest));
    }
}

static void interrupt(struct box *box, struct thread *thread)
{
    bool restarts = false;
    const enum wait_kind kind = thread->wait.kind;
    if (kind == WAIT_SIGNAL && thread->wait.mask != 0) {
        if (pending_of_set(thread)) {
            schedule_wake(box, thread, box->now_ns);
            turn_again(thread);
        }
        return;
    }
    const bool has_mask = thread->wait.has_blocked;
    if (kind == WAIT_VFORK ||
        signal_pending(thread, has_mask, thread->wait.blocked, &restarts) == 0) {
        return;
    }
    if (kind == WAIT_LOOP || kind == WAIT_POLLS) {
        schedule_wake(box, thread, box->now_ns);
    } else if (has_mask || kind == WAIT_SIGNAL ||
               (restarts && (thread->row->flags & CALL_RESTARTS))) {
        /* The kernel, asked again with the call's own mask, delivers the signal. */
        schedule_wake(box, thread, box->now_ns);
        turn_again(thread);
    } else {
        tell_rest(box, thread);
        schedule_finish(box, thread, box->now_ns, -EINTR);
    }
}

void signals_judge(struct box *box)
{
    box->has_signals = false;
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        if (thread->state == THREAD_WAITS && !thread->process->is_stopped) {
            interrupt(box, thread);
        }
    }
}
