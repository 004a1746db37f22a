/* SPDX-License-Identifier: BSD-2-Clause
 *
 * clocks - every source of time that a program has, read in turn: they agree, and none goes back.
 *
 * Exits with 0 and prints how far time went; with 1 and a line at the first disagreement.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define MS UINT64_C(1000000)

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void agree(const char *what, uint64_t one, uint64_t other, uint64_t within)
{
    const uint64_t apart = one > other ? one - other : other - one;
    if (apart > within) {
        printf("%s: %lu ns and %lu ns\n", what, (unsigned long)one, (unsigned long)other);
        exit(1);
    }
}

static uint64_t today_ns(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_usec * 1000;
}

static void read_all(void)
{
    static const clockid_t monotonic[] = {CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE,
                                          CLOCK_BOOTTIME};
    struct timespec by_call;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC), day = clock_ns(CLOCK_REALTIME);
    for (size_t i = 0; i < sizeof(monotonic) / sizeof(monotonic[0]); i++) {
        agree("monotonic clocks", clock_ns(monotonic[i]), now, MS);
    }
    agree("gettimeofday", today_ns(), day, MS);
    agree("time", (uint64_t)time(NULL) * 1000000000, day, 1000 * MS);
    agree("CLOCK_REALTIME_COARSE", clock_ns(CLOCK_REALTIME_COARSE), day, MS);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &by_call);
    agree("a call past libc", (uint64_t)by_call.tv_sec * 1000000000 + (uint64_t)by_call.tv_nsec,
          now, MS);
    agree("the processor's clock", __rdtsc(), now, MS);
    agree("times", (uint64_t)clock() * 1000, clock_ns(CLOCK_PROCESS_CPUTIME_ID), 2 * MS);
}

static void expect(bool is_so, const char *what)
{
    if (!is_so) {
        puts(what);
        exit(1);
    }
}

static void post(union sigval value)
{
    sem_post(value.sival_ptr);
}

/* A POSIX timer is over three times, and says whose it is: by a signal, or in a thread. */
static void wait_by_posix_timer(bool by_thread)
{
    const struct itimerspec rest = {{0, 2000000}, {0, 1000000}};
    struct itimerspec left;
    siginfo_t info;
    timer_t timer;
    sem_t over;
    sigset_t set;
    struct sigevent event = {.sigev_notify = by_thread ? SIGEV_THREAD : SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR1,
                             .sigev_value = {.sival_ptr = &over}};
    if (by_thread) {
        event.sigev_notify_function = post;
    }
    sem_init(&over, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "no POSIX timer");
    expect(timer_settime(timer, 0, &rest, NULL) == 0 && timer_gettime(timer, &left) == 0 &&
               left.it_value.tv_nsec > 900000 && left.it_interval.tv_nsec == 2000000,
           "a POSIX timer is not set");
    for (int i = 0; i < 3; i++) {
        expect(by_thread ? sem_wait(&over) == 0
                         : sigwaitinfo(&set, &info) == SIGUSR1 && info.si_code == SI_TIMER &&
                               info.si_value.sival_ptr == &over,
               "a POSIX timer is not over, or is another one");
    }
    expect(timer_getoverrun(timer) == 0 && timer_delete(timer) == 0, "a POSIX timer is late");
    expect(syscall(SYS_timer_delete, 77) == -1 && errno == EINVAL, "a timer that nobody made");
    expect(timer_create(99, NULL, &timer) == -1 && errno == EINVAL, "a clock that there is not");
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = getppid();
    expect(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == -1 && errno == EINVAL,
           "a thread of another process");
}

/* Each lets 5 ms go by. */
static void wait_by(int way)
{
    struct timespec span = {0, 5000000};
    struct timeval value = {0, 5000};
    struct itimerspec in = {{0, 0}, {0, 5000000}};
    uint64_t times;
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0), list = epoll_create1(0);
    switch (way) {
    case 0: nanosleep(&span, NULL); break;
    case 1: poll(NULL, 0, 5); break;
    case 2: ppoll(NULL, 0, &span, NULL); break;
    case 3: select(0, NULL, NULL, NULL, &value); break;
    case 4: epoll_wait(list, &(struct epoll_event){0}, 1, 5); break;
    case 5:
        timerfd_settime(timer, 0, &in, NULL);
        if (read(timer, &times, sizeof(times)) != sizeof(times) || times != 1) {
            puts("a timer was not over once");
            exit(1);
        }
        break;
    case 6: wait_by_posix_timer(false); break;
    case 7: wait_by_posix_timer(true); break;
    default: usleep(5000); break;
    }
    close(timer);
    close(list);
}

int main(void)
{
    const uint64_t began = clock_ns(CLOCK_MONOTONIC), ticks = __rdtsc();
    uint64_t last = began;
    for (int way = 0; way < 9; way++) {
        read_all();
        wait_by(way);
        const uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now < last + 5 * MS || now > last + 8 * MS) {
            printf("way %d of waiting took %lu ns\n", way, (unsigned long)(now - last));
            return 1;
        }
        last = now;
    }
    agree("the processor's clock, all in all", __rdtsc() - ticks, last - began, MS);
    printf("time went on for %lu ns\n", (unsigned long)(last - began));
    return 0;
}
