/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vdso - the object that stands in for Linux' vDSO in a program of the box: it shows virtual time.
 *
 * Purpose: a program that asks for the time answers itself, as it does under Linux, as long as no
 * other thread may have its turn first; then it calls the kernel, and so the box.
 * Source: vdso(7); libc and Go look the names up, and call them as the kernel's. The object has no
 * data of its own and calls nothing.
 */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "base/box_page.h"

#define PAGE ((struct box_page *)BOX_PAGE_ADDRESS)

int __vdso_clock_gettime(clockid_t id, struct timespec *time);
int __vdso_gettimeofday(struct timeval *time, void *zone);
time_t __vdso_time(time_t *time);
int __vdso_getcpu(unsigned int *cpu, unsigned int *node, void *unused);
int __vdso_clock_getres(clockid_t id, struct timespec *resolution);

static long system_call(long number, long first, long second)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory");
    return result;
}

static int may_answer(clockid_t id)
{
    return id >= 0 && id <= 11 && PAGE->clock_ns < PAGE->grant_ns;
}

static uint64_t read_clock(clockid_t id)
{
    return page_clock_shows((uint64_t)id, page_read_clock(PAGE, (uint64_t)id));
}

int __vdso_clock_gettime(clockid_t id, struct timespec *time)
{
    if (!may_answer(id)) {
        return (int)system_call(SYS_clock_gettime, id, (long)time);
    }
    const uint64_t ns = read_clock(id);
    time->tv_sec = (time_t)(ns / 1000000000);
    time->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

int __vdso_gettimeofday(struct timeval *time, void *zone)
{
    if (zone != NULL || time == NULL || !may_answer(CLOCK_REALTIME)) {
        return (int)system_call(SYS_gettimeofday, (long)time, (long)zone);
    }
    const uint64_t ns = read_clock(CLOCK_REALTIME);
    time->tv_sec = (time_t)(ns / 1000000000);
    time->tv_usec = (suseconds_t)(ns % 1000000000 / 1000);
    return 0;
}

time_t __vdso_time(time_t *time)
{
    if (!may_answer(CLOCK_REALTIME)) {
        return system_call(SYS_time, (long)time, 0);
    }
    const time_t seconds = (time_t)(read_clock(CLOCK_REALTIME) / 1000000000);
    if (time != NULL) {
        *time = seconds;
    }
    return seconds;
}

/* One processor is shown. */
int __vdso_getcpu(unsigned int *cpu, unsigned int *node, void *unused)
{
    (void)unused;
    if (cpu != NULL) {
        *cpu = 0;
    }
    if (node != NULL) {
        *node = 0;
    }
    return 0;
}

int __vdso_clock_getres(clockid_t id, struct timespec *resolution)
{
    return (int)system_call(SYS_clock_getres, id, (long)resolution);
}
