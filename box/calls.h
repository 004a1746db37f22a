/* SPDX-License-Identifier: BSD-2-Clause
 *
 * calls - the kernel's calls that the box answers, or looks at: a row for each.
 */
#ifndef BOX_CALLS_H
#define BOX_CALLS_H

#include "box/internal.h"

enum call_next {
    CALL_ANSWERED, /* `turn_answer` was told the result; the kernel is not asked. */
    CALL_KERNEL,   /* The kernel answers, and its answer is judged. */
    CALL_PASSES,   /* The kernel answers, and the thread runs on. */
    CALL_WAITS,    /* thread->wait says for what. */
    CALL_LEAVES,   /* The thread ends. */
};

enum call_flags {
    CALL_IS_QUIET = 1,    /* Nobody else can see that it was made. */
    CALL_RESTARTS = 2,    /* It is made again after a signal whose handler wants so (signal(7)). */
    CALL_POLLS = 4,       /* Made without waiting, it may find nothing. */
    CALL_ENDS_WITH_0 = 8, /* A result of 0 says that there will never be anything. */
};

struct call_row {
    long number;
    const char *name;
    int arguments; /* Registers behind these are no part of the call. */
    uint32_t cost_ns;
    uint32_t flags;
    enum call_next (*enter)(struct box *box, struct thread *thread);
    /* The kernel's answer, which may be changed; CALL_WAITS: it is to be made again. NULL: it
     * stays. */
    enum call_next (*leave)(struct box *box, struct thread *thread, int64_t *result);
};

/* NULL: the kernel answers the call, and the box does not see it. */
const struct call_row *call_row(long number);
extern const struct call_row call_rows[];
extern const size_t call_row_count;

/* filter.c: from now on the calls of the caller, and of all that it starts, come to its tracer if
 * they have a row. False: errno says why not. */
bool filter_install(void);

#define ENTER(name) enum call_next name(struct box *box, struct thread *thread)
#define LEAVE(name) enum call_next name(struct box *box, struct thread *thread, int64_t *result)

/* call_time.c */
ENTER(enter_clock_gettime);
ENTER(enter_gettimeofday);
ENTER(enter_time);
ENTER(enter_nanosleep);
ENTER(enter_clock_nanosleep);
ENTER(enter_sched_yield);
LEAVE(leave_getrusage);
/* A struct rusage at this address of the program; 0: none. */
void usage_write(const struct box *box, const struct thread *thread, uint64_t to);
LEAVE(leave_times);
LEAVE(leave_sysinfo);
ENTER(enter_timerfd_create);
LEAVE(leave_timerfd_create);
ENTER(enter_timerfd_settime);
ENTER(enter_timerfd_gettime);
ENTER(enter_timer_create);
ENTER(enter_timer_settime);
ENTER(enter_timer_gettime);
ENTER(enter_timer_getoverrun);
ENTER(enter_timer_delete);
ENTER(enter_setitimer);
ENTER(enter_getitimer);
ENTER(enter_alarm);

/* call_io.c: descriptors that may have to wait */
ENTER(enter_transfer);
LEAVE(leave_transfer);
ENTER(enter_connect);
ENTER(enter_bind);
ENTER(enter_listen);
ENTER(enter_kernel);
LEAVE(leave_seen);

/* processor_clock.c */
ENTER(enter_mmap);
LEAVE(leave_mmap);

/* call_poll.c */
ENTER(enter_poll);
ENTER(enter_ppoll);
ENTER(enter_select);
ENTER(enter_pselect6);
ENTER(enter_epoll_wait);
ENTER(enter_epoll_pwait2);
LEAVE(leave_poll);
LEAVE(leave_select);
LEAVE(leave_epoll);

/* call_process.c */
ENTER(enter_futex);
ENTER(enter_wait4);
LEAVE(leave_wait4);
ENTER(enter_waitid);
LEAVE(leave_waitid);
ENTER(enter_exit);
ENTER(enter_set_tid_address);
LEAVE(leave_kill);
ENTER(enter_kill);
LEAVE(leave_sigaction);
ENTER(enter_sigsuspend);
ENTER(enter_pause);
ENTER(enter_sigtimedwait);
LEAVE(leave_sigtimedwait);
ENTER(enter_file_lock);
LEAVE(leave_file_lock);
ENTER(enter_message);
LEAVE(leave_message);

/* call_nic.c */
ENTER(enter_ask);

/* call_identity.c: what tells of this machine and this moment */
ENTER(enter_getrandom);
LEAVE(leave_uname);
LEAVE(leave_stat);
LEAVE(leave_statx);
LEAVE(leave_statfs);
LEAVE(leave_getsockopt);
ENTER(enter_getcpu);
ENTER(enter_sched_getaffinity);
ENTER(enter_sched_setaffinity);
ENTER(enter_open);
ENTER(enter_openat);
ENTER(enter_refused);
ENTER(enter_without);

#endif
