/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call_poll - poll, select and epoll: the kernel is asked with a time-out of zero, and the thread
 * waits here.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

#include "box/calls.h"

enum {
    POLL_MAX = 4096, /* descriptors of a call */
};

static const uint64_t zero_address = BOX_PAGE_ADDRESS + offsetof(struct box_page, zero);

/* The deadline of a call that begins; one that is made again keeps its own. */
static void set_deadline(const struct box *box, struct thread *thread, bool has_limit, uint64_t ns)
{
    if (!thread->again) {
        thread->first_deadline_ns = !has_limit ? NEVER : box->page->clock_ns + ns;
    }
}

static void set_deadline_timespec(const struct box *box, struct thread *thread, uint64_t address)
{
    struct timespec time = {0};
    const bool has_limit = address != 0 && tracee_read(thread->id, address, &time, sizeof(time));
    set_deadline(box, thread, has_limit,
                 (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec);
}

static enum call_next with_register(struct thread *thread, int argument, uint64_t value)
{
    registers at;
    if (tracee_registers(thread->id, &at)) {
        if (argument == 2) {
            at.rdx = value;
        } else if (argument == 3) {
            at.r10 = value;
        } else {
            at.r8 = value;
        }
        tracee_set_registers(thread->id, &at);
    }
    return CALL_KERNEL;
}

/* The kernel gets a time-out of zero in the place of the program's, which is this argument. */
static enum call_next with_ms(const struct box *box, struct thread *thread, int argument)
{
    const int ms = (int)thread->call.argument[argument];
    set_deadline(box, thread, ms >= 0, (uint64_t)(ms < 0 ? 0 : ms) * 1000000);
    return with_register(thread, argument, 0);
}

static enum call_next with_timespec(const struct box *box, struct thread *thread, int argument)
{
    set_deadline_timespec(box, thread, thread->call.argument[argument]);
    return with_register(thread, argument, zero_address);
}

ENTER(enter_poll)
{
    return with_ms(box, thread, 2);
}

ENTER(enter_ppoll)
{
    return with_timespec(box, thread, 2);
}

ENTER(enter_epoll_wait)
{
    return with_ms(box, thread, 3);
}

ENTER(enter_epoll_pwait2)
{
    return with_timespec(box, thread, 3);
}

static size_t set_bytes(const struct thread *thread)
{
    const size_t bytes = ((size_t)thread->call.argument[0] + 63) / 64 * 8;
    return bytes < sizeof(thread->sets[0]) ? bytes : sizeof(thread->sets[0]);
}

/* The kernel clears the sets of a call that finds nothing: they are kept for the next time. */
static enum call_next begin_select(struct thread *thread)
{
    for (int i = 0; i < 3; i++) {
        const uint64_t address = thread->call.argument[1 + i];
        if (address == 0) {
            memset(thread->sets[i], 0, sizeof(thread->sets[i]));
        } else if (thread->again) {
            tracee_write(thread->id, address, thread->sets[i], set_bytes(thread));
        } else {
            tracee_read(thread->id, address, thread->sets[i], set_bytes(thread));
        }
    }
    return with_register(thread, 4, zero_address);
}

ENTER(enter_select)
{
    struct timeval time = {0};
    const uint64_t address = thread->call.argument[4];
    const bool has_limit = address != 0 && tracee_read(thread->id, address, &time, sizeof(time));
    set_deadline(box, thread, has_limit,
                 (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000);
    return begin_select(thread);
}

ENTER(enter_pselect6)
{
    set_deadline_timespec(box, thread, thread->call.argument[4]);
    return begin_select(thread);
}

/* The signals that are blocked while the call waits, if it says so: an argument points to them. */
static void note_mask(struct thread *thread)
{
    uint64_t at = 0, indirect[2] = {0};
    switch (thread->call.number) {
    case SYS_ppoll: at = thread->call.argument[3]; break;
    case SYS_epoll_pwait:
    case __NR_epoll_pwait2: at = thread->call.argument[4]; break;
    case SYS_pselect6:
        if (thread->call.argument[5] != 0 &&
            tracee_read(thread->id, thread->call.argument[5], indirect, sizeof(indirect))) {
            at = indirect[0];
        }
        break;
    default: break;
    }
    thread->wait.has_blocked =
        at != 0 && tracee_read(thread->id, at, &thread->wait.blocked, sizeof(uint64_t));
}

static enum call_next wait_for(struct box *box, struct thread *thread, const struct pollfd *wanted,
                               int count)
{
    thread->wait = (struct wait){.kind = WAIT_DESCRIPTORS,
                                 .deadline_ns = thread->first_deadline_ns,
                                 .late = 0,
                                 .seen = box->progress};
    note_mask(thread);
    descriptors_watch(thread, wanted, count);
    return CALL_WAITS;
}

static bool is_over(const struct box *box, const struct thread *thread)
{
    return thread->first_deadline_ns <= box->page->clock_ns;
}

LEAVE(leave_poll)
{
    const uint64_t *argument = thread->call.argument;
    if (*result != 0 || is_over(box, thread)) {
        return CALL_ANSWERED;
    }
    const size_t count = argument[1] < POLL_MAX ? (size_t)argument[1] : POLL_MAX;
    struct pollfd *wanted = calloc(count + 1, sizeof(*wanted));
    CHECK(wanted != NULL);
    tracee_read(thread->id, argument[0], wanted, count * sizeof(*wanted));
    const enum call_next next = wait_for(box, thread, wanted, (int)count);
    free(wanted);
    return next;
}

LEAVE(leave_epoll)
{
    if (*result != 0 || is_over(box, thread)) {
        return CALL_ANSWERED;
    }
    return wait_for(box, thread, &(struct pollfd){(int)thread->call.argument[0], POLLIN, 0}, 1);
}

LEAVE(leave_select)
{
    struct pollfd wanted[1024];
    int count = 0;
    if (*result != 0 || is_over(box, thread)) {
        return CALL_ANSWERED;
    }
    for (int i = 0; i < (int)set_bytes(thread) * 8; i++) {
        short events = 0;
        for (int set = 0; set < 3; set++) {
            static const short event[3] = {POLLIN, POLLOUT, POLLPRI};
            if (thread->sets[set][i / 8] >> (i % 8) & 1) {
                events = (short)(events | event[set]);
            }
        }
        if (events != 0) {
            wanted[count++] = (struct pollfd){i, events, 0};
        }
    }
    return wait_for(box, thread, wanted, count);
}
