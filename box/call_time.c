/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call_time - clocks, and calls that only let time go by.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "box/calls.h"

enum {
    SLEEP_NS = 50000, /* Linux' timer slack, by which a sleep is longer than asked for */
};

static enum call_next answer(struct thread *thread, int64_t result)
{
    turn_answer(thread, result);
    return CALL_ANSWERED;
}

ENTER(enter_clock_gettime)
{
    const uint64_t *argument = thread->call.argument;
    const uint64_t ns = page_clock_shows(argument[0], page_read_clock(box->page, argument[0]));
    const struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return answer(thread, tracee_write(thread->id, argument[1], &time, sizeof(time)) ? 0 : -EFAULT);
}

ENTER(enter_gettimeofday)
{
    const uint64_t *argument = thread->call.argument;
    const uint64_t ns =
        page_clock_shows(CLOCK_REALTIME, page_read_clock(box->page, CLOCK_REALTIME));
    const struct timeval time = {(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)};
    const struct timezone zone = {0};
    const bool is_written =
        (argument[0] == 0 || tracee_write(thread->id, argument[0], &time, sizeof(time))) &&
        (argument[1] == 0 || tracee_write(thread->id, argument[1], &zone, sizeof(zone)));
    return answer(thread, is_written ? 0 : -EFAULT);
}

ENTER(enter_time)
{
    const uint64_t to = thread->call.argument[0];
    const time_t seconds =
        (time_t)(page_clock_shows(CLOCK_REALTIME, page_read_clock(box->page, CLOCK_REALTIME)) /
                 1000000000);
    return answer(thread, to == 0 || tracee_write(thread->id, to, &seconds, sizeof(seconds))
                              ? seconds
                              : -EFAULT);
}

static enum call_next sleep_until(struct thread *thread, uint64_t deadline_ns)
{
    turn_answer(thread, 0);
    thread->wait = (struct wait){.kind = WAIT_SLEEP, .deadline_ns = deadline_ns};
    return CALL_WAITS;
}

static bool read_time(const struct thread *thread, uint64_t from, uint64_t *ns)
{
    struct timespec time;
    if (!tracee_read(thread->id, from, &time, sizeof(time)) || time.tv_sec < 0 ||
        time.tv_nsec < 0 || time.tv_nsec >= 1000000000) {
        return false;
    }
    *ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    return true;
}

ENTER(enter_nanosleep)
{
    uint64_t ns;
    if (!read_time(thread, thread->call.argument[0], &ns)) {
        return answer(thread, -EINVAL);
    }
    return sleep_until(thread, box->page->clock_ns + ns + SLEEP_NS);
}

ENTER(enter_clock_nanosleep)
{
    const uint64_t *argument = thread->call.argument;
    uint64_t ns;
    if (!read_time(thread, argument[2], &ns)) {
        return answer(thread, -EINVAL);
    }
    if (!(argument[1] & TIMER_ABSTIME)) {
        return sleep_until(thread, box->page->clock_ns + ns + SLEEP_NS);
    }
    const uint64_t begins = page_clock_shows(argument[0], 0);
    return sleep_until(thread, (ns > begins ? ns - begins : 0) + SLEEP_NS);
}

ENTER(enter_sched_yield)
{
    (void)box;
    return answer(thread, 0);
}

/* The rest tells how much of this machine was used. */
void usage_write(const struct box *box, const struct thread *thread, uint64_t to)
{
    struct rusage usage = {.ru_maxrss = 65536};
    const uint64_t ns = box->page->clock_ns;
    usage.ru_utime =
        (struct timeval){(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)};
    if (to != 0) {
        tracee_write(thread->id, to, &usage, sizeof(usage));
    }
}

LEAVE(leave_getrusage)
{
    if (*result == 0) {
        usage_write(box, thread, thread->call.argument[1]);
    }
    return CALL_ANSWERED;
}

LEAVE(leave_times)
{
    const clock_t ticks = (clock_t)(box->page->clock_ns / 10000000);
    const struct tms times = {.tms_utime = ticks};
    if (thread->call.argument[0] != 0) {
        tracee_write(thread->id, thread->call.argument[0], &times, sizeof(times));
    }
    *result = (int64_t)((BOX_MONOTONIC_NS + box->page->clock_ns) / 10000000);
    return CALL_ANSWERED;
}

LEAVE(leave_sysinfo)
{
    const struct sysinfo info = {.uptime =
                                     (long)((BOX_MONOTONIC_NS + box->page->clock_ns) / 1000000000),
                                 .totalram = 16ul << 30,
                                 .freeram = 8ul << 30,
                                 .procs = 100,
                                 .mem_unit = 1};
    if (*result == 0) {
        tracee_write(thread->id, thread->call.argument[0], &info, sizeof(info));
    }
    return CALL_ANSWERED;
}
