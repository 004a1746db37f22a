/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/calls.h"
#include "box/files.h"
#include "box/machine.h"

enum {
    PTRACE_OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                     PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP |
                     PTRACE_O_EXITKILL,
    NO_FILTER = 126,
};

static void fail(struct box *box, const char *what)
{
    box->result->end = BOX_FAILED;
    snprintf(box->result->error, sizeof(box->result->error), "%s: %s", what, strerror(errno));
}

static bool make_page(struct box *box)
{
    box->page_file = open(FILES_FOLDER "page", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (box->page_file < 0 || ftruncate(box->page_file, BOX_PAGE_BYTES) != 0) {
        return false;
    }
    box->page = mmap(NULL, BOX_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, box->page_file, 0);
    return box->page != MAP_FAILED;
}

static bool copy_vdso(const char *path)
{
    static char bytes[BOX_VDSO_BYTES];
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = from < 0 ? -1 : read(from, bytes, sizeof(bytes));
    const int to = open(FILES_FOLDER "vdso", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    const bool done =
        got > 0 && got < BOX_VDSO_BYTES && to >= 0 && write(to, bytes, (size_t)got) == got;
    if (from >= 0) {
        close(from);
    }
    if (to >= 0) {
        close(to);
    }
    return done;
}

/* The next tick of the clock that gives files their times. A file that was made or changed before,
 * if only a moment ago, has an earlier time. */
static struct timespec next_file_time(void)
{
    const struct timespec pause = {.tv_nsec = 200000};
    struct timespec begin, now;
    clock_gettime(CLOCK_REALTIME_COARSE, &begin);
    do {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec == begin.tv_sec && now.tv_nsec == begin.tv_nsec);
    return now;
}

static void draw_seeds(struct box *box)
{
    const uint64_t seed = box->options.seed;
    prng_init(&box->entropy, seed ^ 0x1000000000000001);
    prng_init(&box->ties, seed ^ 0x2000000000000002);
    prng_init(&box->strays, seed ^ 0x4000000000000004);
    box->draws_holds = seed != 0 && box->options.hold_ns != 0;
    box->draws_ties = seed != 0 && !box->options.no_ties;
    box->page->clock_cost_ns = BOX_CLOCK_COST_NS;
    box->page->draws = seed;
    box->page->jitter = seed == 0 ? 0 : box->options.jitter;
    box->page->digest = UINT64_C(0xcbf29ce484222325);
}

/* One processor for all: giving a turn to another thread is cheapest so. libc keeps the processor's
 * number, which cpuid tells, in its memory: with a digest of that it is always the first one. */
static void use_one_processor(const struct box *box)
{
    cpu_set_t allowed, one;
    unsigned left = box->options.memory ? 0 : box->options.processor;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return;
    }
    left %= (unsigned)CPU_COUNT(&allowed);
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &allowed) && left-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

/* A program inherits what its caller ignores and blocks, such as a shell's SIGINT behind `&`. */
static void forget_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void become_first(const int ends[2], int (*start)(void *), void *context)
{
    const int nothing = open("/dev/null", O_RDONLY);
    forget_signals();
    setsid();
    dup2(nothing, STDIN_FILENO);
    dup2(ends[0], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    syscall(__NR_close_range, 3, UINT32_MAX, 0);
    personality(ADDR_NO_RANDOMIZE);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    raise(SIGSTOP);
    _exit(filter_install() ? start(context) : NO_FILTER);
}

static bool start_first(struct box *box, int (*start)(void *), void *context)
{
    int ends[2], status;
    if (!output_open(box, ends)) {
        return false;
    }
    const pid_t first = fork();
    if (first == 0) {
        become_first(ends, start, context);
    }
    close(ends[0]);
    close(ends[1]);
    if (first < 0 || waitpid(first, &status, WUNTRACED) != first ||
        ptrace(PTRACE_SEIZE, first, NULL, (void *)(long)PTRACE_OPTIONS) != 0) {
        return false;
    }
    kill(first, SIGCONT);
    ptrace(PTRACE_INTERRUPT, first, NULL, NULL);
    if (!tracee_wait(first, &status)) {
        return false;
    }
    box->first = first;
    thread_new(box, first, process_new(first, 0), 0);
    box->result->processes = 1;
    return true;
}

/* A thread sleeps in the kernel: it is waited for, as nobody knows what ends its sleep. */
static bool await_asleep(struct box *box)
{
    int status;
    bool any = false;
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        if (thread->state != THREAD_ASLEEP) {
            continue;
        }
        any = true;
        if (waitpid(thread->id, &status, __WALL | WNOHANG) == thread->id) {
            thread->has_status = true;
            thread->status = status;
            schedule_wake(box, thread, box->now_ns);
        }
    }
    return any;
}

static void end_badly(struct box *box, enum box_end end)
{
    box->result->end = end;
    report_write(box, box->result->report, sizeof(box->result->report));
}

/* One step of the run. False: it is over. */
static bool go_on(struct box *box)
{
    uint64_t at_ns;
    output_drain(box);
    const bool sleeps = await_asleep(box);
    if (box->alive == 0 || box->has_first_ended) {
        box->result->end = BOX_ENDED;
        return false;
    }
    if (ticks_are_over()) {
        end_badly(box, BOX_STOPPED);
        return false;
    }
    if (box->has_signals) {
        signals_judge(box);
    }
    struct thread *next = schedule_next(box, &at_ns);
    if (at_ns == NEVER && next == NULL && sleeps) {
        usleep(1000);
        return true;
    }
    if (at_ns == NEVER && next == NULL) {
        end_badly(box, BOX_DEADLOCK);
        return false;
    }
    if (box->options.until_ns != 0 && at_ns > box->options.until_ns) {
        end_badly(box, BOX_LATE);
        return false;
    }
    box->now_ns = at_ns > box->now_ns ? at_ns : box->now_ns;
    if (next == NULL) {
        machine_reach(box, at_ns);
        timers_run(box);
        return true;
    }
    if (idle_for_ever(box, next)) {
        box->result->still_ns = box->now_ns - box->idle_ns;
        end_badly(box, BOX_DEADLOCK);
        return false;
    }
    if (halt_is_due(box, next, at_ns)) {
        box->result->end = BOX_HALTED;
        halt(box, next);
        return false;
    }
    if (next->state == THREAD_WAITS && next->wait.kind == WAIT_POLLS) {
        schedule_wake(box, next, at_ns);
    } else if (next->state == THREAD_WAITS) {
        schedule_finish(box, next, at_ns, next->wait.late);
    }
    turn(box, next);
    return true;
}

static void finish(struct box *box)
{
    struct box_result *result = box->result;
    for (int i = 0; i < box->threads; i++) {
        if (box->thread[i]->state != THREAD_GONE) {
            kill(box->thread[i]->process->pid, SIGKILL);
        }
    }
    ticks_end();
    output_end(box);
    timeline_close(box);
    code_files_close(box);
    machine_close(box);
    result->digest = box->page->digest;
    result->virtual_ns = box->now_ns > box->page->clock_ns ? box->now_ns : box->page->clock_ns;
    result->answered = box->page->clock_reads;
    if (box->calls != NULL) {
        fclose(box->calls);
    }
}

void box_run(const struct box_options *options, int (*start)(void *), void *context,
             struct box_result *result)
{
    static struct box box;
    memset(&box, 0, sizeof(box));
    *result = (struct box_result){0};
    box.options = *options;
    box.result = result;
    box.started = next_file_time();
    if (!make_page(&box) || !copy_vdso(options->vdso)) {
        fail(&box, "the page that programs share with the box");
        return;
    }
    draw_seeds(&box);
    if (!machine_open(&box)) {
        result->end = BOX_FAILED;
        return;
    }
    use_one_processor(&box);
    if (options->directory != NULL) {
        char path[4096];
        snprintf(path, sizeof(path), "%scalls", options->directory);
        box.calls = fopen(path, "we");
        timeline_open(&box, options->directory);
        code_files_open(&box, options->directory);
    }
    if (!start_first(&box, start, context)) {
        fail(&box, "the first process");
        return;
    }
    ticks_begin(&box);
    while (go_on(&box)) {
    }
    finish(&box);
}
