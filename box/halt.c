/* SPDX-License-Identifier: BSD-2-Clause
 *
 * halt - the run stops at a time, and one process is left to a debugger: each of its threads is let
 * go where it stands, and stopped by the system.
 */
#include <signal.h>
#include <sys/ptrace.h>

#include "box/internal.h"

/* A call in which the thread waits was begun for the program, and not for the kernel. */
static bool stands_in_call(const struct thread *thread)
{
    return thread->state == THREAD_AT_CALL ||
           (thread->state == THREAD_WAITS && thread->wait.kind != WAIT_LOOP &&
            thread->wait.kind != WAIT_POLLS && thread->wait.kind != WAIT_VFORK);
}

bool halt_is_due(const struct box *box, const struct thread *next, uint64_t at_ns)
{
    const struct box_options *options = &box->options;
    return options->on_halt != NULL && at_ns >= options->halt_ns &&
           next->process->is_running_program &&
           (options->halt_thread < 0 || options->halt_thread == next->number);
}

void halt(struct box *box, const struct thread *next)
{
    const struct process *process = next->process;
    kill(process->pid, SIGSTOP);
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        if (thread->process != process || thread->state == THREAD_GONE ||
            thread->state == THREAD_ASLEEP) {
            continue;
        }
        if (stands_in_call(thread)) {
            turn_again(thread); /* It stands before the call. */
        }
        descriptor_return(thread);
        ptrace(PTRACE_DETACH, thread->id, NULL, NULL);
    }
    box->options.on_halt(box->options.context, process->pid, next->id, next->number, box->now_ns);
}
