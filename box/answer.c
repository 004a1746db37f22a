/* SPDX-License-Identifier: BSD-2-Clause
 *
 * answer - the end of a call: what the program finds in its registers, the digest, the log.
 */
#include <errno.h>
#include <stdio.h>

#include "box/calls.h"

void turn_answer(struct thread *thread, int64_t result)
{
    registers at;
    if (tracee_registers(thread->id, &at)) {
        at.rax = (unsigned long)result;
        at.orig_rax = (unsigned long)-1;
        tracee_set_registers(thread->id, &at);
    }
}

/* The program sees the registers that it had, whatever the kernel was asked instead. */
void turn_restore(const struct thread *thread, registers *at)
{
    const uint64_t *argument = thread->call.argument;
    at->rdi = argument[0];
    at->rsi = argument[1];
    at->rdx = argument[2];
    at->r10 = argument[3];
    at->r8 = argument[4];
    at->r9 = argument[5];
}

void turn_again(struct thread *thread)
{
    registers at;
    if (tracee_registers(thread->id, &at)) {
        turn_restore(thread, &at);
        at.rip = thread->call.at.rip - 2;
        at.rax = (unsigned long)thread->call.number;
        at.orig_rax = (unsigned long)-1;
        tracee_set_registers(thread->id, &at);
    }
    thread->again = true;
}

static void log_call(struct box *box, const struct thread *thread, int64_t result)
{
    if (box->calls == NULL) {
        return;
    }
    fprintf(
        box->calls, "%llu.%09llu %d %s(", (unsigned long long)(box->page->clock_ns / 1000000000),
        (unsigned long long)(box->page->clock_ns % 1000000000), thread->number, thread->row->name);
    for (int i = 0; i < thread->row->arguments; i++) {
        fprintf(box->calls, "%s0x%llx", i == 0 ? "" : ", ",
                (unsigned long long)thread->call.argument[i]);
    }
    fprintf(box->calls, ") = %lld\n", (long long)result);
}

bool turn_found_nothing(const struct thread *thread, int64_t result)
{
    return (thread->row->flags & CALL_POLLS) && !thread->has_waited &&
           (result == -EAGAIN || (result == 0 && !(thread->row->flags & CALL_ENDS_WITH_0)));
}

void turn_called(struct box *box, struct thread *thread, int64_t result)
{
    struct box_page *page = box->page;
    uint64_t digest =
        page_mixed(page->digest, (uint64_t)thread->number << 32 ^ (uint64_t)thread->call.number);
    for (int i = 0; i < thread->row->arguments; i++) {
        digest = page_mixed(digest, thread->call.argument[i]);
    }
    page->digest = page_mixed(page_mixed(digest, (uint64_t)result), page->clock_ns);
    box->result->calls++;
    thread->calls++;
    thread->again = false;
    thread->done = 0;
    thread->first_deadline_ns = NEVER;
    descriptor_return(thread);
    const bool is_quiet = (thread->row->flags & CALL_IS_QUIET) != 0;
    if (turn_found_nothing(thread, result)) {
        barren_found_nothing(thread);
    } else if (!is_quiet && !thread->is_within) {
        barren_over(box, thread);
        box->deeds++;
    }
    box->progress += !is_quiet;
    thread->is_within = false;
    log_call(box, thread, result);
}
