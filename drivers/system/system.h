/* SPDX-License-Identifier: BSD-2-Clause
 *
 * system - system calls past the C library.
 *
 * Purpose    Some of the C library's functions are no way for us to call the system:
 *            - Functions that kernel/ interposes (close, open, socket, sendmsg ...) are kernel's
 *              own in our library: a call would end in the room above.
 *            - write, poll and others end a thread that was cancelled (pthread_cancel). If that
 *              thread held a lock of ours, nobody would give the lock back, and the whole program
 *              would stop. Switching cancellation off and on would cost more than the lock.
 *            - accept4, bind, epoll_ctl and others are ThreadSanitizer's in a program that it
 *              watches. It has a record for each descriptor's number, and reports two threads if
 *              one makes a descriptor and the other one uses it: it sees none of our locks. If it
 *              saw some of our calls and not others, the record would be that of an earlier file.
 *              So it sees no call about our descriptors (docs/decisions/0058; tests/abi/unseen).
 *            Only descriptor_close (descriptor.h) closes descriptors.
 * Inputs     As the calls they are named after.
 * Outputs    Likewise; errno.
 * Ownership  A descriptor that is opened belongs to the caller, who gives it to descriptor_own
 *            first.
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

#include "drivers/system/initialised.h"

/* -- Descriptors --------------------------------------------------------------------------------*/

static inline int system_socket(int family, int type, int protocol)
{
    return (int)syscall(SYS_socket, family, type, protocol);
}

/* Functions and not inline, so that tests can let them fail, and fuzzers answer them. */
int system_bind(int socket, const struct sockaddr *name, socklen_t name_bytes);
int system_connect(int socket, const struct sockaddr *name, socklen_t name_bytes);
int system_listen(int socket, int backlog);
/* The descriptor does not wait, and is closed by exec. */
int system_accept(int listener);
int system_eventfd(int flags);
int system_epoll_create(int flags);
int system_epoll_change(int epoll, int operation, int fd, struct epoll_event *event);
/* Maps a file from its begin on, shared with others; MAP_FAILED with errno. munmap ends it. */
void *system_map(int fd, size_t bytes, int protection);

/* Advice about memory, 0 or -1 with errno. */
static inline int system_advise(void *start, size_t bytes, int advice)
{
    return (int)syscall(SYS_madvise, start, bytes, advice);
}

/* pthread_create as the program's own calls find it, since a sanitizer in the program has to know
 * of each thread. Returns the errno. */
int system_start_thread(pthread_t *thread, void *(*start)(void *), void *argument);

/* `path` begins at the directory `at`, which may be AT_FDCWD. */
static inline int system_open(int at, const char *path, int flags)
{
    return (int)syscall(SYS_openat, at, path, flags, 0);
}

/* Opens a file to write it. A file that is new has the permissions `mode`. */
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

/* Returns the length of `target`, which has no '\0' behind it; -1 with errno. */
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

/* Reads the bytes that are there now. Does not wait, even if the descriptor's flags say so. */
static inline ssize_t system_read_now(int fd, void *bytes, size_t count)
{
    const struct iovec part = {bytes, count};
    return syscall(SYS_preadv2, fd, &part, 1L, -1L, -1L, (long)RWF_NOWAIT);
}

/* Adds `count`, which is not 0, to an eventfd. */
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

static inline int system_recv_messages(int socket, struct mmsghdr *messages, uint32_t count,
                                       int flags)
{
    return (int)syscall(SYS_recvmmsg, socket, messages, count, flags, NULL);
}

/* -- Waiting ------------------------------------------------------------------------------------*/

/* arm64 has but the newer calls, which do the same if they are given no mask of signals. */
#ifdef SYS_epoll_wait
#define SYSTEM_EPOLL_WAIT SYS_epoll_wait
#else
#define SYSTEM_EPOLL_WAIT SYS_epoll_pwait
#endif
#ifdef SYS_poll
#define SYSTEM_POLL SYS_poll
#else
#define SYSTEM_POLL SYS_ppoll
#endif

static inline int system_poll(struct pollfd *fds, uint32_t count, int timeout_ms)
{
#ifdef SYS_poll
    return (int)syscall(SYSTEM_POLL, fds, (unsigned long)count, timeout_ms);
#else
    const struct timespec limit = {.tv_sec = timeout_ms / 1000,
                                   .tv_nsec = timeout_ms % 1000 * 1000000L};
    return (int)syscall(SYSTEM_POLL, fds, (unsigned long)count, timeout_ms < 0 ? NULL : &limit,
                        NULL, 0L);
#endif
}

/* Writes pages to their device and waits for it; a signal does not end that. */
static inline int system_msync(void *pages, size_t bytes)
{
    long result;
    do {
        result = syscall(SYS_msync, pages, bytes, MS_SYNC);
    } while (result < 0 && errno == EINTR);
    return (int)result;
}

/* Reports the events that are ready now. */
static inline int system_epoll(int fd, struct epoll_event *events, int room)
{
    return (int)syscall(SYSTEM_EPOLL_WAIT, fd, events, room, 0, NULL, 0L);
}

/* 4096 on x86-64; on arm64 the kernel chooses 4, 16 or 64 KB. */
static inline uint64_t system_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline void system_sleep(long ns)
{
    const struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)syscall(SYS_nanosleep, &pause, NULL);
}

/* -- Cancellation -------------------------------------------------------------------------------*/

/* For longer stretches of code that call the C library in many places, and that do not run often.
 * Arguments that they give to the C library are unchecked, too. */
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
