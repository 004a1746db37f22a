/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thread - processes and threads of a run: they are numbered as they come.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/machine.h"

struct process *process_new(pid_t pid, pid_t parent)
{
    struct process *process = calloc(1, sizeof(*process));
    CHECK(process != NULL);
    process->pid = pid;
    process->parent = parent;
    process->node = -1;
    process->descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    return process;
}

void process_inherit(struct process *child, const struct process *parent)
{
    const size_t bytes = (size_t)parent->clock_codes * sizeof(*parent->clock_code);
    child->is_running_program = parent->is_running_program;
    child->restarts = parent->restarts;
    child->node = parent->node;
    memcpy(child->program, parent->program, sizeof(child->program));
    memcpy(child->loader, parent->loader, sizeof(child->loader));
    child->clock_code = malloc(bytes + 1);
    CHECK(child->clock_code != NULL);
    memcpy(child->clock_code,
           parent->clock_code == NULL ? (const uint64_t *)&bytes : parent->clock_code, bytes);
    child->clock_codes = parent->clock_codes;
}

struct thread *thread_new(struct box *box, pid_t id, struct process *process, uint64_t clock_ns)
{
    CHECK(box->threads < BOX_THREADS_MAX);
    struct thread *thread = calloc(1, sizeof(*thread));
    CHECK(thread != NULL);
    thread->id = id;
    thread->number = box->threads;
    thread->process = process;
    thread->clock_ns = clock_ns;
    thread->borrowed = -1;
    thread->wait.deadline_ns = NEVER;
    thread->first_deadline_ns = NEVER;
    thread->ran_until_ns = clock_ns;
    holds_begin(box, thread);
    process->threads++;
    box->thread[box->threads++] = thread;
    box->alive++;
    box->result->threads++;
    return thread;
}

struct thread *thread_find(struct box *box, pid_t id)
{
    for (int i = box->threads; i-- > 0;) {
        if (box->thread[i]->id == id && box->thread[i]->state != THREAD_GONE) {
            return box->thread[i];
        }
    }
    return NULL;
}

static void process_ended(struct box *box, struct process *process, int status)
{
    box->page->digest = page_mixed(box->page->digest, (uint64_t)status);
    if (process->pid == box->first) {
        box->has_first_ended = true;
        box->result->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    timers_forget(box, process->pid, true);
    machine_leave(box, process);
    close(process->descriptor);
    process->descriptor = -1;
    for (int i = 0; i < box->threads; i++) {
        struct thread *parent = box->thread[i];
        if (parent->state == THREAD_WAITS && parent->wait.kind == WAIT_VFORK &&
            parent->wait.child == process->pid) {
            schedule_wake(box, parent, box->now_ns);
        }
    }
}

void thread_ended(struct box *box, struct thread *thread, int status)
{
    struct process *process = thread->process;
    if (thread->state == THREAD_GONE) {
        return;
    }
    descriptors_forget(thread);
    descriptor_return(thread);
    thread->state = THREAD_GONE;
    box->alive--;
    box->progress++;
    box->deeds++;
    process->threads--;
    futex_thread_ended(box, thread);
    if (process->threads == 0) {
        process_ended(box, process, status);
        box->has_signals = true;
    }
}

/* The leader's end is told last: then its status is the process's. */
void process_await_end(struct box *box, struct process *process)
{
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        int status = 0;
        if (thread->process != process || thread->state == THREAD_GONE ||
            thread->id == process->pid) {
            continue;
        }
        while (tracee_wait(thread->id, &status) && WIFSTOPPED(status)) {
        }
        thread_ended(box, thread, status);
    }
    struct thread *leader = thread_find(box, process->pid);
    int status = 0;
    if (leader != NULL) {
        while (tracee_wait(leader->id, &status) && WIFSTOPPED(status)) {
        }
        thread_ended(box, leader, status);
    }
}
