/* SPDX-License-Identifier: BSD-2-Clause
 *
 * system - system calls that are no cancellation points.
 *
 * Purpose    The C library's write, close, poll and others end a thread that was cancelled
 *            (pthread_cancel). One that held a lock of ours would take it along, and the whole
 *            program with it. Switching cancellation off and on would cost more than the lock, so
 *            what is called with a lock held goes past the C library.
 * Inputs     As the calls they are named after.
 * Outputs    Likewise; errno.
 * Ownership  None.
 * Threads    Any; also signal handlers and children of fork.
 * Time       Nanoseconds, milliseconds where the call has them.
 */
#ifndef DRIVERS_SYSTEM_H
#define DRIVERS_SYSTEM_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "drivers/initialised.h"

static inline ssize_t system_write(int fd, const void *bytes, size_t count)
{
    return syscall(SYS_write, fd, bytes, count);
}

static inline ssize_t system_read(int fd, void *bytes, size_t count)
{
    return syscall(SYS_read, fd, bytes, count);
}

/* What is there now: does not wait, though the descriptor's flags may say so. */
static inline ssize_t system_read_now(int fd, void *bytes, size_t count)
{
    const struct iovec part = {bytes, count};
    return syscall(SYS_preadv2, fd, &part, 1L, -1L, -1L, (long)RWF_NOWAIT);
}

#ifdef __SANITIZE_THREAD__
int __interceptor_close(int fd);
#endif

/* errno stays: mostly something failed before. */
static inline void system_close(int fd)
{
    const int reason = errno;
#ifdef __SANITIZE_THREAD__
    /* The thread sanitizer keeps a record of each descriptor, and has to see that this one ends.
     * In verbs a plain close() is our own, behind the sanitizer's. */
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)__interceptor_close(fd);
    pthread_setcancelstate(before, NULL);
#else
    (void)syscall(SYS_close, fd);
#endif
    errno = reason;
}

static inline ssize_t system_send(int socket, const void *bytes, size_t count, int flags)
{
    return syscall(SYS_sendto, socket, bytes, count, flags, NULL, 0);
}

static inline ssize_t system_recv(int socket, void *bytes, size_t count, int flags)
{
    return syscall(SYS_recvfrom, socket, bytes, count, flags, NULL, NULL);
}

static inline int system_poll(struct pollfd *fds, uint32_t count, int timeout_ms)
{
    return (int)syscall(SYS_poll, fds, (unsigned long)count, timeout_ms);
}

/* Waits for the device; a signal does not end that. */
static inline int system_msync(void *pages, size_t bytes)
{
    long result;
    do {
        result = syscall(SYS_msync, pages, bytes, MS_SYNC);
    } while (result < 0 && errno == EINTR);
    return (int)result;
}

/* What is ready now. */
static inline int system_epoll(int fd, struct epoll_event *events, int room)
{
    return (int)syscall(SYS_epoll_wait, fd, events, room, 0);
}

static inline void system_sleep(long ns)
{
    const struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)syscall(SYS_nanosleep, &pause, NULL);
}

/* For longer stretches, of calls that cannot be told apart, and that nobody makes often. What they
 * give to the C library is unchecked, too. */
static inline int uncancelled_begin(void)
{
    int before;
    unchecked_begin();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

/* errno stays. */
static inline void uncancelled_end(int before)
{
    const int reason = errno;
    pthread_setcancelstate(before, NULL);
    unchecked_end();
    errno = reason;
}

/* An eventfd that counts; `count` is not 0. */
static inline void system_count_up(int fd, uint64_t count)
{
    while (system_write(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

#endif
