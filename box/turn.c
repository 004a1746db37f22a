/* SPDX-License-Identifier: BSD-2-Clause
 *
 * turn - one thread runs, until it has to wait or another one is due.
 *
 * A turn is over at the beginning of a call only, so both engines give it over at the same places:
 * the one that stops every call, and the one in which programs read clocks by themselves.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/await.h"
#include "box/calls.h"
#include "box/machine.h"

enum turn_next {
    GO_ON,
    TURN_IS_OVER
};

enum {
    CALL_STOP = SIGTRAP | 0x80, /* PTRACE_O_TRACESYSGOOD */
    SITE_TIMES = 32,    /* that a thread gives way at one place before it is stepped away from it */
    FAIR_STEPS_LOG = 8, /* steps away from a call's end, where only a lock may have to be left */
    INSIDE_STEPS = 1000000, /* more than any verb takes inside an engine */
    NAP_NS = 2000, /* the first nap of a thread that finds nothing; each is twice as long, up to */
    NAP_NS_MAX = 1000000,
    CLOCK_SLACK_NS =
        10000, /* that a thread which only reads clocks runs on when another one is due */
};

static void charge(struct box *box, const struct thread *thread)
{
    const struct call_row *row = thread->row;
    box->page->clock_ns += page_cost(
        box->page, row->flags & CALL_POLLS ? barren_cost(thread, row->cost_ns) : row->cost_ns);
}

/* Lets the thread, whose call has ended, go on in its own code for this way: as if a clock had
 * interrupted it there, but at the same place in each run. */
static enum turn_next stray(struct box *box, struct thread *thread, struct way way)
{
    int status;
    enum loop_verdict verdict = loop_step(thread->id, way.steps, way.returns,
                                          thread->process->program, &status, &box->result->steps);
    /* The machine finds no engine half changed. A program that says for ever that it is inside one
     * has written where it must not. */
    for (int left = INSIDE_STEPS; verdict == LOOP_WAITS && machine_is_inside(box, thread); left--) {
        if (left == 0) {
            box_doubt(box, "a thread does not leave its NIC's engine");
            break;
        }
        verdict = loop_step(thread->id, 1, INT32_MAX, thread->process->program, &status,
                            &box->result->steps);
    }
    if (verdict == LOOP_STOPPED) {
        thread->has_status = true;
        thread->status = status;
    }
    registers at;
    if (box->calls != NULL && tracee_registers(thread->id, &at)) {
        fprintf(box->calls, "# thread %d is held at 0x%llx\n", thread->number,
                (unsigned long long)at.rip);
    }
    thread->state = THREAD_RUNS;
    return TURN_IS_OVER;
}

/* Seeds hold each thread back now and then. */
static enum turn_next go_on_or_stray(struct box *box, struct thread *thread)
{
    struct hold hold;
    if (!holds_draw(box, thread, &hold)) {
        return GO_ON;
    }
    box->page->clock_ns += hold.held_ns;
    timeline_hold(box, thread, hold.held_ns);
    const enum turn_next next = stray(box, thread, hold.way);
    if (box->options.tell_holds && !thread->has_status) {
        report_hold(box, thread, box->result->held, sizeof(box->result->held));
    }
    return next;
}

/* Programs that calibrate their clock read it ten thousands of times; two of them would take turns
 * for each time. A thread that is due may run later, so the slack is a run that may be. */
static uint64_t clock_grant(const struct thread *thread)
{
    return thread->grant_ns > NEVER - CLOCK_SLACK_NS ? NEVER : thread->grant_ns + CLOCK_SLACK_NS;
}

/* Others may have become due meanwhile. */
static void renew_grant(struct box *box, struct thread *thread)
{
    thread->grant_ns = schedule_grant(box, thread);
    box->page->grant_ns = box->options.reference ? 0 : clock_grant(thread);
    box->page->due_ns = thread->grant_ns;
    holds_give_verbs(box, thread);
}

/* The page is the running thread's. */
static void begin_turn(struct box *box, struct thread *thread)
{
    box->running = thread;
    box->page->clock_ns = thread->clock_ns;
    box->page->thread = (uint32_t)thread->number;
    box->page->verbs_left = thread->verbs_given;
    renew_grant(box, thread);
    box->result->switches++;
    barren_begin(box, thread);
}

static void end_turn(struct box *box, struct thread *thread)
{
    barren_end(box, thread);
    const uint64_t from_ns = thread->clock_ns;
    thread->clock_ns = box->page->clock_ns;
    holds_count_verbs(box, thread);
    timeline_turn(box, thread, from_ns);
    box->running = NULL;
}

static bool reads_clock(long number)
{
    return number == SYS_clock_gettime || number == SYS_gettimeofday || number == SYS_time;
}

static enum turn_next after(struct box *box, struct thread *thread, enum call_next next,
                            int64_t result)
{
    switch (next) {
    case CALL_WAITS:
        /* A connection that is under way may be there already, by the kernel's own doing. */
        thread->wait.seen = thread->wait.kind == WAIT_DESCRIPTORS ? NEVER : box->progress;
        thread->state = THREAD_WAITS;
        thread->has_waited = true;
        return TURN_IS_OVER;
    case CALL_KERNEL: thread->in_kernel = true; return GO_ON;
    case CALL_LEAVES: return GO_ON;
    case CALL_PASSES:
    case CALL_ANSWERED:
        /* A clock that was read changes nothing for others: the engine that stops no such read
         * would not renew, either. */
        if (!reads_clock(thread->call.number)) {
            turn_called(box, thread, result);
            renew_grant(box, thread);
            return go_on_or_stray(box, thread);
        }
        return GO_ON;
    }
    return GO_ON;
}

static enum turn_next begin_call(struct box *box, struct thread *thread)
{
    registers at;
    if (!thread->again) {
        thread->has_waited = false;
    }
    if (!thread->again && !reads_clock(thread->call.number)) {
        charge(box, thread);
    }
    const enum call_next next = thread->row->enter(box, thread);
    int64_t result = 0;
    if (next == CALL_ANSWERED && tracee_registers(thread->id, &at)) {
        result = (int64_t)at.rax;
    }
    return after(box, thread, next, result);
}

/* Whether the thread gives way at the same place again and again. Such a place may lie behind a
 * lock that others wait for, and they would never get it. */
static bool is_at_same_site(struct thread *thread)
{
    const registers *at = &thread->call.at;
    const bool is_same = at->rip == thread->site_rip && at->rsp == thread->site_rsp;
    thread->site_rip = at->rip;
    thread->site_rsp = at->rsp;
    thread->at_site = is_same ? thread->at_site + 1 : 0;
    return thread->at_site % SITE_TIMES == SITE_TIMES - 1;
}

static enum turn_next on_call(struct box *box, struct thread *thread)
{
    registers at;
    if (!tracee_registers(thread->id, &at)) {
        return GO_ON;
    }
    if (!thread->process->is_running_program) {
        return GO_ON;
    }
    const bool is_again =
        thread->again && at.rip == thread->call.at.rip && (long)at.orig_rax == thread->call.number;
    thread->again = is_again;
    thread->call =
        (struct call){(long)at.orig_rax, {at.rdi, at.rsi, at.rdx, at.r10, at.r8, at.r9}, at};
    thread->row = call_row(thread->call.number);
    CHECK(thread->row != NULL);
    const uint64_t grant_ns =
        reads_clock(thread->call.number) ? clock_grant(thread) : thread->grant_ns;
    if (box->page->clock_ns >= grant_ns && !thread->again && !holds_is_asked(box, thread)) {
        if (reads_clock(thread->call.number) && is_at_same_site(thread)) {
            (void)begin_call(box, thread);
            return stray(box, thread, draw_way(&box->strays, FAIR_STEPS_LOG));
        }
        thread->state = THREAD_AT_CALL;
        return TURN_IS_OVER;
    }
    return begin_call(box, thread);
}

/* Registers that a call does not name may differ. */
static bool is_same_place(const registers *one, const registers *other)
{
    return one->rip == other->rip && one->rsp == other->rsp && one->rdi == other->rdi &&
           one->rsi == other->rsi;
}

/* A call that found nothing, made twice in a row from the same place, by a thread that read no
 * clock between: the thread waits until something happens. That is a run that may be: a call may
 * take long. */
static enum turn_next on_nothing(struct box *box, struct thread *thread)
{
    struct empty_poll *empty = &thread->empty;
    const struct empty_poll now = {thread->call.at, box->page->clock_reads, thread->calls};
    const bool is_same = now.clock_reads == empty->clock_reads && now.calls == empty->calls + 1 &&
                         is_same_place(&now.at, &empty->at);
    *empty = now;
    if (!is_same) {
        thread->nap_ns = NAP_NS;
        return GO_ON;
    }
    if (is_at_same_site(thread)) {
        (void)stray(box, thread, draw_way(&box->strays, FAIR_STEPS_LOG));
    }
    thread->wait = (struct wait){.kind = WAIT_POLLS,
                                 .deadline_ns = box->page->clock_ns + thread->nap_ns,
                                 .seen = box->progress};
    thread->nap_ns = thread->nap_ns < NAP_NS_MAX ? thread->nap_ns * 2 : NAP_NS_MAX;
    thread->state = THREAD_WAITS;
    return TURN_IS_OVER;
}

static enum turn_next on_call_end(struct box *box, struct thread *thread)
{
    registers at;
    thread->in_kernel = false;
    if (!tracee_registers(thread->id, &at)) {
        return GO_ON;
    }
    int64_t result = (int64_t)at.rax;
    const uint64_t progress = box->progress;
    const enum call_next next =
        thread->row->leave == NULL ? CALL_ANSWERED : thread->row->leave(box, thread, &result);
    turn_restore(thread, &at);
    at.rax = (unsigned long)result;
    tracee_set_registers(thread->id, &at);
    if (next == CALL_WAITS) {
        return after(box, thread, next, result);
    }
    if (next == CALL_KERNEL) {
        turn_again(thread);
        return GO_ON;
    }
    const bool nothing = turn_found_nothing(thread, result);
    turn_called(box, thread, result);
    if (nothing) {
        box->progress = progress;
        renew_grant(box, thread);
        return on_nothing(box, thread);
    }
    if (box->has_signals) {
        signals_judge(box);
    }
    renew_grant(box, thread);
    return go_on_or_stray(box, thread);
}

/* How the thread's new one was made: its flags, and the word that is cleared when it ends. */
static void clone_flags(const struct thread *thread, uint64_t *flags, uint64_t *clear)
{
    registers at;
    uint64_t arguments[3] = {0};
    *flags = 0;
    *clear = 0;
    if (!tracee_registers(thread->id, &at)) {
        return;
    }
    if ((long)at.orig_rax == SYS_clone) {
        *flags = at.rdi;
        *clear = at.r10;
    } else if ((long)at.orig_rax == SYS_clone3 &&
               tracee_read(thread->id, at.rdi, arguments, sizeof(arguments))) {
        *flags = arguments[0];
        *clear = arguments[2];
    }
}

static void await_first_stop(struct box *box, pid_t id)
{
    int status;
    for (int i = 0; i < box->earlies; i++) {
        if (box->early[i].id == id) {
            box->early[i] = box->early[--box->earlies];
            return;
        }
    }
    tracee_wait(id, &status);
}

static enum turn_next on_clone(struct box *box, struct thread *thread, int event)
{
    unsigned long message = 0;
    uint64_t flags, clear;
    ptrace(PTRACE_GETEVENTMSG, thread->id, NULL, &message);
    const pid_t id = (pid_t)message;
    clone_flags(thread, &flags, &clear);
    await_first_stop(box, id);
    struct process *process = thread->process;
    if (!(flags & CLONE_THREAD)) {
        process = process_new(id, thread->process->pid);
        process_inherit(process, thread->process);
        box->result->processes++;
    }
    struct thread *child = thread_new(box, id, process, box->page->clock_ns);
    child->clear_address = flags & CLONE_CHILD_CLEARTID ? clear : 0;
    box->page->digest = page_mixed(box->page->digest, (uint64_t)child->number);
    box->progress++;
    if (event == PTRACE_EVENT_VFORK) {
        thread->wait = (struct wait){.kind = WAIT_VFORK, .deadline_ns = NEVER, .child = id};
        thread->state = THREAD_WAITS;
        return TURN_IS_OVER;
    }
    renew_grant(box, thread);
    return GO_ON;
}

static enum turn_next on_exec(struct box *box, struct thread *thread)
{
    struct process *process = thread->process;
    for (int i = 0; i < box->threads; i++) {
        struct thread *other = box->thread[i];
        if (other->process == process && other != thread && other->state != THREAD_GONE) {
            thread_ended(box, other, 0);
        }
    }
    thread->id = process->pid;
    thread->clear_address = 0;
    thread->is_named = false;
    process->restarts = 0;
    if (!box->has_begun) {
        box->has_begun = true;
        box->page->clock_ns = 0;
    }
    process->is_running_program = true;
    exec_prepare(box, thread);
    for (int i = 0; i < box->threads; i++) {
        struct thread *parent = box->thread[i];
        if (parent->state == THREAD_WAITS && parent->wait.kind == WAIT_VFORK &&
            parent->wait.child == process->pid) {
            schedule_wake(box, parent, box->page->clock_ns);
        }
    }
    renew_grant(box, thread);
    return GO_ON;
}

static enum turn_next on_signal(struct box *box, struct thread *thread, int signal)
{
    if ((signal == SIGSEGV || signal == SIGILL) &&
        processor_clock_answer(box, thread, signal == SIGILL)) {
        return box->page->clock_ns < clock_grant(thread) ? GO_ON : TURN_IS_OVER;
    }
    siginfo_t info;
    if (signal == SIGCHLD && ptrace(PTRACE_GETSIGINFO, thread->id, NULL, &info) == 0) {
        signal_clear_usage(&info);
        ptrace(PTRACE_SETSIGINFO, thread->id, NULL, &info);
    }
    box->page->digest = page_mixed(box->page->digest, (uint64_t)signal);
    thread->signal = signal;
    return GO_ON;
}

static enum turn_next on_end(struct box *box, struct thread *thread, int status)
{
    struct process *process = thread->process;
    const bool all = WIFSIGNALED(status) || thread->id == process->pid || process->is_ending;
    thread_ended(box, thread, status);
    if (all && process->threads > 0) {
        process_await_end(box, process);
    }
    return TURN_IS_OVER;
}

static enum turn_next on_status(struct box *box, struct thread *thread, int status)
{
    if (!WIFSTOPPED(status)) {
        return on_end(box, thread, status);
    }
    const int event = status >> 16;
    switch (event) {
    case 0: break;
    case PTRACE_EVENT_SECCOMP: return on_call(box, thread);
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK: return on_clone(box, thread, event);
    case PTRACE_EVENT_EXEC: return on_exec(box, thread);
    default: return GO_ON;
    }
    if (WSTOPSIG(status) == CALL_STOP) {
        return thread->in_kernel ? on_call_end(box, thread) : GO_ON;
    }
    return on_signal(box, thread, WSTOPSIG(status));
}

static bool resume(struct thread *thread)
{
    int signal = thread->signal;
    thread->signal = 0;
    if (signal != 0 && !thread->has_status && !thread->in_kernel &&
        signal_hand_on(thread, signal)) {
        signal = 0;
    }
    if (thread->has_status) {
        return true;
    }
    const enum __ptrace_request how = thread->in_kernel ? PTRACE_SYSCALL : PTRACE_CONT;
    /* A thread that is killed cannot be resumed; its end is waited for. */
    return ptrace(how, thread->id, NULL, (void *)(long)signal) == 0 || errno == ESRCH;
}

void turn(struct box *box, struct thread *thread)
{
    int status;
    struct look look = {.patience = FIRST_LOOK};
    enum turn_next next = GO_ON;
    begin_turn(box, thread);
    if (thread->is_answered) {
        thread->is_answered = false;
        turn_answer(thread, thread->answer);
        turn_called(box, thread, thread->answer);
    }
    if (thread->state == THREAD_AT_CALL) {
        thread->state = THREAD_RUNS;
        next = begin_call(box, thread);
    }
    while (next == GO_ON) {
        CHECK(resume(thread));
        if (!await_stop(box, thread, &look, &status)) {
            break;
        }
        look.ticks = 0;
        if (status != EVENT_STOP) {
            look.patience = FIRST_LOOK;
            look.seldom = 0;
        }
        next = on_status(box, thread, status);
    }
    end_turn(box, thread);
}
