/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/await.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/calls.h"

enum {
    LOOKS_APART_MAX = 256,
    SELDOM_MAX = 80, /* 20 s with ticks of a millisecond */
};

/* Something happened to a thread that is not the one that runs: it is kept for its turn, but for an
 * end, which is told at once. */
static void on_other(struct box *box, pid_t id, int status)
{
    struct thread *other = thread_find(box, id);
    if (other == NULL) {
        if (WIFSTOPPED(status) && box->earlies < (int)COUNT_OF(box->early)) {
            box->early[box->earlies].id = id;
            box->early[box->earlies++].status = status;
        }
    } else if (!WIFSTOPPED(status)) {
        thread_ended(box, other, status);
    } else {
        other->has_status = true;
        other->status = status;
    }
}

/* It waits for somebody (S), and not for a disk (D), which nobody of the run could hold up. */
static bool is_asleep(const struct thread *thread)
{
    char name[48], text[256] = {0};
    snprintf(name, sizeof(name), "/proc/%d/stat", (int)thread->id);
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    const ssize_t got = read(file, text, sizeof(text) - 1);
    close(file);
    const char *end = got > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && end[1] == ' ' && end[2] == 'S';
}

/* A tick is over, and the thread runs. True: it sleeps in the kernel, and its turn is over. */
static bool on_tick(struct box *box, struct thread *thread, struct look *look)
{
    const bool reads_clocks = look->clock_reads != box->page->clock_reads;
    look->clock_reads = box->page->clock_reads;
    if (++look->ticks < look->patience || reads_clocks || look->is_asked) {
        return false;
    }
    look->ticks = 0;
    if (!thread->in_kernel && !is_asleep(thread)) {
        look->is_asked = ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL) == 0;
        return false;
    }
    if (look->patience * tick_us(box) < ASLEEP_US || thread->row == NULL ||
        thread->row->enter == enter_exit || !is_asleep(thread)) {
        look->patience *= 2;
        return false;
    }
    box_doubt(box, "a call slept in the kernel: %s, of thread %d", thread->row->name,
              thread->number);
    thread->state = THREAD_ASLEEP;
    return true;
}

/* It computes, or it counts until memory changes, which nobody can tell apart. */
static void warn_of_counter(const struct box *box, const struct thread *thread, struct look *look)
{
    char name[64];
    look->seldom += look->patience == LOOKS_APART_MAX;
    if (look->seldom == SELDOM_MAX) {
        process_name(thread->process->pid, name, sizeof(name));
        fprintf(stderr,
                "nonic: thread %d (%s, process %d) has made no call for %u s. If it counts until "
                "memory changes, nobody else gets a turn: SIGINT ends the run, and shows where it "
                "is\n",
                thread->number, name, thread->process->pid,
                SELDOM_MAX * LOOKS_APART_MAX * tick_us(box) / 1000000);
    }
}

/* The thread stopped because it was asked to. True: it waits for memory; else it goes on, or
 * *status is another one. */
static bool waits_for_memory(struct box *box, struct thread *thread, struct look *look, int *status)
{
    look->patience = look->patience < LOOKS_APART_MAX ? look->patience * 2 : look->patience;
    const enum loop_verdict verdict =
        loop_prove(thread->id, &thread->loop, status, &box->result->steps);
    if (verdict != LOOP_WAITS) {
        if (verdict == LOOP_UNKNOWN) {
            *status = EVENT_STOP;
            warn_of_counter(box, thread, look);
        }
        return false;
    }
    box->result->loops++;
    box->page->digest =
        page_mixed(box->page->digest, thread->loop.at.rip ^ (uint64_t)thread->number << 56);
    thread->wait = (struct wait){.kind = WAIT_LOOP, .deadline_ns = NEVER, .seen = box->progress};
    thread->state = THREAD_WAITS;
    return true;
}

bool await_stop(struct box *box, struct thread *thread, struct look *look, int *status)
{
    while (!thread->has_status) {
        const pid_t got = waitpid(-1, status, __WALL);
        /* A thread that becomes a program takes the number of its process. */
        if (got == thread->id ||
            (got == thread->process->pid && *status >> 16 == PTRACE_EVENT_EXEC)) {
            const bool is_asked = look->is_asked && *status == EVENT_STOP;
            /* Any stop takes the wish for one away (Linux' ptrace_stop). */
            look->is_asked = false;
            return !is_asked || !waits_for_memory(box, thread, look, status);
        }
        if (got > 0) {
            on_other(box, got, *status);
            if (thread->state == THREAD_GONE) {
                return false;
            }
        } else if (errno == ECHILD) {
            thread_ended(box, thread, 0);
            return false;
        } else if (errno == EINTR && ticks_are_over()) {
            ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL);
            (void)tracee_wait(thread->id, status);
            return false;
        } else if (errno == EINTR && on_tick(box, thread, look)) {
            return false;
        }
    }
    thread->has_status = false;
    *status = thread->status;
    return true;
}
