/* SPDX-License-Identifier: BSD-2-Clause
 *
 * system - system calls past the C library.
 *
 * Purpose    Some of the C library's functions are no way for us to call the system:
 *            - What kernel/ interposes (close, open, socket, sendmsg ...) is kernel's own in our
 *              library: a call would come out in the room above.
 *            - write, poll and others end a thread that was cancelled (pthread_cancel). One that
 *              held a lock of ours would take it along, and the whole program with it. Switching
 *              cancellation off and on would cost more than the lock.
 *            To close there is descriptor_close (descriptor.h) alone.
 * Inputs     As the calls they are named after.
 * Outputs    Likewise; errno.
 * Ownership  Of what they open: the caller's, who gives it to descriptor_own first.
 * Threads    Any; also signal handlers and children of fork. No cancellation point.
 * Time       Nanoseconds, milliseconds where the call has them.
 */
#ifndef DRIVERS_SYSTEM_H
#define DRIVERS_SYSTEM_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "drivers/initialised.h"

/* -- Descriptors --------------------------------------------------------------------------------*/

static inline int system_socket(int family, int type, int protocol)
{
    return (int)syscall(SYS_socket, family, type, protocol);
}

/* `path` begins at the directory `at`, which may be AT_FDCWD. */
static inline int system_open(int at, const char *path, int flags)
{
    return (int)syscall(SYS_openat, at, path, flags, 0);
}

/* To write there. A file that is new has the permissions `mode`. */
static inline int system_create(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode);
}

static inline int system_status(int fd, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
}

static inline int system_status_of(int at, const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, at, path, status, 0);
}

/* Returns the bytes of `target`, which has no end; -1 with errno. */
static inline ssize_t system_read_link(int at, const char *path, char *target, size_t bytes)
{
    return syscall(SYS_readlinkat, at, path, target, bytes);
}

static inline bool system_has(const char *path)
{
    return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

/* -- Reading and writing ------------------------------------------------------------------------*/

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

/* An eventfd that counts; `count` is not 0. */
static inline void system_count_up(int fd, uint64_t count)
{
    while (system_write(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

static inline ssize_t system_send(int socket, const void *bytes, size_t count, int flags)
{
    return syscall(SYS_sendto, socket, bytes, count, flags, NULL, 0);
}

static inline ssize_t system_send_to(int socket, const void *bytes, size_t count,
                                     const struct sockaddr *name, socklen_t name_bytes)
{
    return syscall(SYS_sendto, socket, bytes, count, 0, name, name_bytes);
}

static inline ssize_t system_send_message(int socket, const struct msghdr *message, int flags)
{
    return syscall(SYS_sendmsg, socket, message, flags);
}

static inline ssize_t system_recv(int socket, void *bytes, size_t count, int flags)
{
    return syscall(SYS_recvfrom, socket, bytes, count, flags, NULL, NULL);
}

static inline ssize_t system_recv_message(int socket, struct msghdr *message, int flags)
{
    return syscall(SYS_recvmsg, socket, message, flags);
}

/* -- Waiting ------------------------------------------------------------------------------------*/

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

/* -- Cancellation -------------------------------------------------------------------------------*/

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

#endif
