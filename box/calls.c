/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/calls.h"

#include <sys/syscall.h>

enum {
    COST_NS = 150, /* a call that does little */
    COPY_NS = 250, /* one that moves bytes */
    WAKE_COST_NS = 700,
    NEW_NS = 20000, /* a process */
};

#define TRANSFER CALL_RESTARTS | CALL_POLLS | CALL_ENDS_WITH_0

const struct call_row call_rows[] = {
    /* clocks */
    {SYS_clock_gettime, "clock_gettime", 2, 0, CALL_IS_QUIET, enter_clock_gettime, NULL},
    {SYS_gettimeofday, "gettimeofday", 2, 0, CALL_IS_QUIET, enter_gettimeofday, NULL},
    {SYS_time, "time", 1, 0, CALL_IS_QUIET, enter_time, NULL},
    {SYS_nanosleep, "nanosleep", 2, COST_NS, CALL_IS_QUIET, enter_nanosleep, NULL},
    {SYS_clock_nanosleep, "clock_nanosleep", 4, COST_NS, CALL_IS_QUIET, enter_clock_nanosleep,
     NULL},
    {SYS_sched_yield, "sched_yield", 0, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_sched_yield,
     NULL},
    {SYS_getrusage, "getrusage", 2, COST_NS, CALL_IS_QUIET, enter_kernel, leave_getrusage},
    {SYS_times, "times", 1, COST_NS, CALL_IS_QUIET, enter_kernel, leave_times},
    {SYS_sysinfo, "sysinfo", 1, COST_NS, CALL_IS_QUIET, enter_kernel, leave_sysinfo},
    {SYS_timerfd_create, "timerfd_create", 2, COST_NS, 0, enter_timerfd_create,
     leave_timerfd_create},
    {SYS_timerfd_settime, "timerfd_settime", 4, COST_NS, 0, enter_timerfd_settime, NULL},
    {SYS_timerfd_gettime, "timerfd_gettime", 2, COST_NS, CALL_IS_QUIET, enter_timerfd_gettime,
     NULL},
    {SYS_timer_create, "timer_create", 3, COST_NS, 0, enter_timer_create, NULL},
    {SYS_timer_settime, "timer_settime", 4, COST_NS, 0, enter_timer_settime, NULL},
    {SYS_timer_gettime, "timer_gettime", 2, COST_NS, CALL_IS_QUIET, enter_timer_gettime, NULL},
    {SYS_timer_getoverrun, "timer_getoverrun", 1, COST_NS, CALL_IS_QUIET, enter_timer_getoverrun,
     NULL},
    {SYS_timer_delete, "timer_delete", 1, COST_NS, 0, enter_timer_delete, NULL},
    {SYS_setitimer, "setitimer", 3, COST_NS, 0, enter_setitimer, NULL},
    {SYS_getitimer, "getitimer", 2, COST_NS, CALL_IS_QUIET, enter_getitimer, NULL},
    {SYS_alarm, "alarm", 1, COST_NS, 0, enter_alarm, NULL},
    /* descriptors */
    {SYS_read, "read", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_readv, "readv", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_recvfrom, "recvfrom", 6, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_recvmsg, "recvmsg", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_recvmmsg, "recvmmsg", 5, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_accept, "accept", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_accept4, "accept4", 4, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_write, "write", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_writev, "writev", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_sendto, "sendto", 6, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_sendmsg, "sendmsg", 3, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_sendmmsg, "sendmmsg", 4, COPY_NS, TRANSFER, enter_transfer, leave_transfer},
    {SYS_connect, "connect", 3, COPY_NS, CALL_RESTARTS, enter_connect, leave_transfer},
    {SYS_bind, "bind", 3, COST_NS, 0, enter_bind, leave_seen},
    {SYS_listen, "listen", 2, COST_NS, 0, enter_listen, leave_seen},
    {SYS_shutdown, "shutdown", 2, COST_NS, 0, enter_kernel, leave_seen},
    {SYS_close, "close", 1, COST_NS, 0, enter_kernel, leave_seen},
    {__NR_close_range, "close_range", 3, COST_NS, 0, enter_kernel, leave_seen},
    {SYS_dup2, "dup2", 2, COST_NS, 0, enter_kernel, leave_seen},
    {SYS_dup3, "dup3", 3, COST_NS, 0, enter_kernel, leave_seen},
    {SYS_sendfile, "sendfile", 4, COPY_NS, 0, enter_kernel, leave_seen},
    {SYS_splice, "splice", 6, COPY_NS, 0, enter_kernel, leave_seen},
    {SYS_epoll_ctl, "epoll_ctl", 4, COST_NS, 0, enter_kernel, leave_seen},
    {SYS_poll, "poll", 3, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_poll, leave_poll},
    {SYS_ppoll, "ppoll", 4, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_ppoll, leave_poll},
    {SYS_select, "select", 5, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_select, leave_select},
    {SYS_pselect6, "pselect6", 6, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_pselect6,
     leave_select},
    {SYS_epoll_wait, "epoll_wait", 4, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_epoll_wait,
     leave_epoll},
    {SYS_epoll_pwait, "epoll_pwait", 5, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_epoll_wait,
     leave_epoll},
    {__NR_epoll_pwait2, "epoll_pwait2", 5, COST_NS, CALL_IS_QUIET | CALL_POLLS, enter_epoll_pwait2,
     leave_epoll},
    /* processes */
    {SYS_futex, "futex", 3, WAKE_COST_NS, CALL_RESTARTS | CALL_IS_QUIET, enter_futex, NULL},
    {SYS_wait4, "wait4", 4, COST_NS, CALL_RESTARTS, enter_wait4, leave_wait4},
    {SYS_waitid, "waitid", 5, COST_NS, CALL_RESTARTS, enter_waitid, leave_waitid},
    {SYS_execve, "execve", 3, NEW_NS, 0, enter_kernel, leave_seen},
    {SYS_exit, "exit", 1, COST_NS, 0, enter_exit, NULL},
    {SYS_exit_group, "exit_group", 1, COST_NS, 0, enter_exit, NULL},
    {SYS_set_tid_address, "set_tid_address", 1, COST_NS, CALL_IS_QUIET, enter_set_tid_address,
     leave_seen},
    {SYS_kill, "kill", 2, COST_NS, 0, enter_kill, leave_kill},
    {SYS_tkill, "tkill", 2, COST_NS, 0, enter_kill, leave_kill},
    {SYS_tgkill, "tgkill", 3, COST_NS, 0, enter_kill, leave_kill},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo", 3, COST_NS, 0, enter_kill, leave_kill},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", 4, COST_NS, 0, enter_kill, leave_kill},
    {SYS_rt_sigaction, "rt_sigaction", 4, COST_NS, CALL_IS_QUIET, enter_kernel, leave_sigaction},
    {SYS_rt_sigsuspend, "rt_sigsuspend", 2, COST_NS, 0, enter_sigsuspend, leave_seen},
    {SYS_pause, "pause", 0, COST_NS, 0, enter_pause, leave_seen},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", 4, COST_NS, 0, enter_sigtimedwait, leave_sigtimedwait},
    {SYS_flock, "flock", 2, COST_NS, CALL_RESTARTS, enter_file_lock, leave_file_lock},
    {SYS_fcntl, "fcntl", 3, COST_NS, CALL_RESTARTS, enter_file_lock, leave_file_lock},
    {SYS_msgsnd, "msgsnd", 4, COPY_NS, 0, enter_message, leave_message},
    {SYS_msgrcv, "msgrcv", 5, COPY_NS, 0, enter_message, leave_message},
    /* this machine, this moment */
    {SYS_getrandom, "getrandom", 3, COST_NS, CALL_IS_QUIET, enter_getrandom, NULL},
    {SYS_uname, "uname", 1, COST_NS, CALL_IS_QUIET, enter_kernel, leave_uname},
    {SYS_stat, "stat", 2, COST_NS, CALL_IS_QUIET, enter_kernel, leave_stat},
    {SYS_lstat, "lstat", 2, COST_NS, CALL_IS_QUIET, enter_kernel, leave_stat},
    {SYS_fstat, "fstat", 2, COST_NS, CALL_IS_QUIET, enter_kernel, leave_stat},
    {SYS_newfstatat, "newfstatat", 4, COST_NS, CALL_IS_QUIET, enter_kernel, leave_stat},
    {SYS_statx, "statx", 5, COST_NS, CALL_IS_QUIET, enter_kernel, leave_statx},
    {SYS_statfs, "statfs", 2, COST_NS, CALL_IS_QUIET, enter_kernel, leave_statfs},
    {SYS_fstatfs, "fstatfs", 2, COST_NS, CALL_IS_QUIET, enter_kernel, leave_statfs},
    {SYS_getsockopt, "getsockopt", 5, COST_NS, CALL_IS_QUIET, enter_kernel, leave_getsockopt},
    {SYS_getcpu, "getcpu", 2, COST_NS, CALL_IS_QUIET, enter_getcpu, NULL},
    {SYS_sched_getaffinity, "sched_getaffinity", 3, COST_NS, CALL_IS_QUIET, enter_sched_getaffinity,
     NULL},
    {SYS_sched_setaffinity, "sched_setaffinity", 3, COST_NS, CALL_IS_QUIET, enter_sched_setaffinity,
     NULL},
    {SYS_open, "open", 3, COST_NS, CALL_IS_QUIET, enter_open, leave_seen},
    {SYS_openat, "openat", 3, COST_NS, CALL_IS_QUIET, enter_openat, leave_seen},
    {SYS_mmap, "mmap", 6, COST_NS, CALL_IS_QUIET, enter_mmap, leave_mmap},
    /* The NICs of a machine: what others can see of them they note by themselves. */
    {BOX_ASK, "nic", 3, 0, CALL_IS_QUIET, enter_ask, NULL},
    /* glibc does without these. */
    {SYS_rseq, "rseq", 4, 0, CALL_IS_QUIET, enter_without, NULL},
    /* not offered: what happens behind a call's back */
    {SYS_io_uring_setup, "io_uring_setup", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_ptrace, "ptrace", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_userfaultfd, "userfaultfd", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_perf_event_open, "perf_event_open", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_bpf, "bpf", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_keyctl, "keyctl", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_fanotify_init, "fanotify_init", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_unshare, "unshare", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_setns, "setns", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_signalfd, "signalfd", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_signalfd4, "signalfd4", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_semop, "semop", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {SYS_semtimedop, "semtimedop", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
    {449 /* futex_waitv */, "futex_waitv", 0, 0, CALL_IS_QUIET, enter_refused, NULL},
};
const size_t call_row_count = COUNT_OF(call_rows);

const struct call_row *call_row(long number)
{
    for (size_t i = 0; i < call_row_count; i++) {
        if (call_rows[i].number == number) {
            return &call_rows[i];
        }
    }
    return NULL;
}
