/* SPDX-License-Identifier: BSD-2-Clause
 *
 * wrap - our library's calls of the C library and the kernel, one of which fails.
 *
 * The linker sends every call of a function in the list `wrapped` here (--wrap), but only calls
 * that stand in our own objects. Calls of the program, and calls that libc makes inside itself, go
 * where they always go. A place in the code that calls is a site, known by its return address. A
 * run with FAILS_RECORD writes the sites that were met, and a run with FAILS_SITE lets one fail:
 *
 *   FAILS_SITE    its address within the module, in hexadecimal
 *   FAILS_CALL    which of its calls: 0 is the first
 *   FAILS_HOW     an errno, or "short": less is done than was asked for
 *
 * When a call has failed, the library makes other calls, and these may fail as well:
 *
 *   FAILS_THEN_SITE, FAILS_THEN_CALL, FAILS_THEN_HOW    likewise, of a second site
 *
 * Nothing here allocates, and nothing calls a wrapped function.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/fails/wrap.h"

#define SITES_MAX 1024
#define SHORT     (-1)

struct site {
    _Atomic uintptr_t address; /* 0: no site. */
    _Atomic uint32_t calls;    /* Those that may fail. */
    const char *function;
    long number; /* The system call, if it goes past the C library; -1: it does not. */
};

/* The call that fails. */
struct target {
    uintptr_t place; /* 0: nothing. */
    uint32_t call;
    int how;
};

static struct site sites[SITES_MAX];
static atomic_uint *struck; /* A program and its children share it. */
static struct target targets[2];

long __real_syscall(long number, ...);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

unsigned fails_struck(void)
{
    return atomic_load(struck);
}

bool fails_tells(int reason)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        const struct target *target = &targets[i];
        if (target->place != 0 && reason == (target->how == SHORT ? EIO : target->how)) {
            return true;
        }
    }
    return false;
}

/* -- Sites --------------------------------------------------------------------------------------*/

/* Where in its module: the same in every run. */
static uintptr_t place_of(uintptr_t address, const char **module)
{
    Dl_info info;
    *module = "?";
    if (dladdr((void *)address, &info) == 0) {
        return address;
    }
    *module = info.dli_fname;
    return address - (uintptr_t)info.dli_fbase;
}

static struct target read_target(const char *site, const char *call, const char *how)
{
    if (site == NULL || how == NULL) {
        return (struct target){0};
    }
    return (struct target){
        .place = strtoul(site, NULL, 16),
        .call = call == NULL ? 0 : (uint32_t)strtoul(call, NULL, 10),
        .how = strcmp(how, "short") == 0 ? SHORT : (int)strtol(how, NULL, 10),
    };
}

__attribute__((constructor)) static void read_orders(void)
{
    struck = __real_mmap64(NULL, sizeof(*struck), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (struck == MAP_FAILED) {
        abort();
    }
    targets[0] = read_target(getenv("FAILS_SITE"), getenv("FAILS_CALL"), getenv("FAILS_HOW"));
    targets[1] =
        read_target(getenv("FAILS_THEN_SITE"), getenv("FAILS_THEN_CALL"), getenv("FAILS_THEN_HOW"));
}

static struct site *site_at(uintptr_t address, const char *function, long number)
{
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        struct site *site = &sites[(address / 2 + i) % SITES_MAX];
        uintptr_t there = atomic_load(&site->address);
        if (there == 0 && atomic_compare_exchange_strong(&site->address, &there, address)) {
            site->function = function;
            site->number = number;
            return site;
        }
        if (there == address) {
            return site;
        }
    }
    abort();
}

/* Notes a call that cannot fail as it is made here. */
static void note(void *caller, const char *function, long number)
{
    (void)site_at((uintptr_t)caller, function, number);
}

/* Is this the call that fails? Returns how; 0: it does not. */
static int how(void *caller, const char *function, long number)
{
    const char *module;
    struct site *site = site_at((uintptr_t)caller, function, number);
    const uint32_t call = atomic_fetch_add(&site->calls, 1);
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        const struct target *target = &targets[i];
        if (target->place != 0 && call == target->call &&
            place_of((uintptr_t)caller, &module) == target->place) {
            return target->how;
        }
    }
    return 0;
}

static void strike(int reason)
{
    atomic_fetch_add(struck, 1);
    errno = reason;
}

/* The call fails with an errno. */
static bool fails(void *caller, const char *function, long number)
{
    const int failure = how(caller, function, number);
    if (failure <= 0) {
        return false;
    }
    strike(failure);
    return true;
}

void fails_record(void)
{
    const char *path = getenv("FAILS_RECORD");
    if (path == NULL) {
        return;
    }
    const long fd =
        __real_syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    for (uint32_t i = 0; i < SITES_MAX && fd >= 0; i++) {
        const struct site *site = &sites[i];
        const char *module;
        char line[512];
        if (atomic_load(&site->address) != 0) {
            const uintptr_t place = place_of(site->address, &module);
            const int bytes =
                snprintf(line, sizeof(line), "%lx %u %s %ld %s\n", place, atomic_load(&site->calls),
                         site->function, site->number, module);
            (void)!__real_syscall(SYS_write, fd, line, (long)bytes);
        }
    }
    __real_syscall(SYS_close, fd);
}

__attribute__((destructor)) static void record_at_exit(void)
{
    fails_record();
}

/* -- Functions that fail by one value -----------------------------------------------------------*/

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

/* `type name(parameters)` fails with `failed`; `arguments` are passed on. */
#define WRAP(type, failed, name, parameters, arguments)                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails(CALLER, #name, -1) ? (failed) : __real_##name arguments;                      \
    }

WRAP(void *, NULL, aligned_alloc, (size_t align, size_t bytes), (align, bytes))
WRAP(void *, NULL, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
WRAP(int, -1, flock, (int fd, int operation), (fd, operation))
WRAP(int, -1, fstat64, (int fd, void *status), (fd, status))
WRAP(int, -1, ftruncate64, (int fd, off_t bytes), (fd, bytes))
WRAP(int, -1, getifaddrs, (struct ifaddrs * *list), (list))
WRAP(int, -1, getpeername, (int fd, void *name, void *bytes), (fd, name, bytes))
WRAP(int, -1, getsockname, (int fd, void *name, void *bytes), (fd, name, bytes))
WRAP(char *, NULL, if_indextoname, (unsigned int index, char *name), (index, name))
WRAP(unsigned int, 0, if_nametoindex, (const char *name), (name))
WRAP(int, -1, ioctl, (int fd, unsigned long request, void *argument), (fd, request, argument))
WRAP(off_t, -1, lseek64, (int fd, off_t to, int whence), (fd, to, whence))
WRAP(int, -1, madvise, (void *from, size_t bytes, int advice), (from, bytes, advice))
WRAP(void *, NULL, malloc, (size_t bytes), (bytes))
WRAP(int, -1, memfd_create, (const char *name, unsigned int flags), (name, flags))
WRAP(void *, MAP_FAILED, mmap64,
     (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
     (at, bytes, protection, flags, fd, offset))
WRAP(int, -1, mprotect, (void *from, size_t bytes, int protection), (from, bytes, protection))
WRAP(int, -1, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms))
WRAP(int, -1, ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
     (fds, count, timeout, mask))
WRAP(ssize_t, -1, process_vm_readv,
     (pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
      unsigned long remotes, unsigned long flags),
     (pid, local, locals, remote, remotes, flags))
WRAP(ssize_t, -1, process_vm_writev,
     (pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
      unsigned long remotes, unsigned long flags),
     (pid, local, locals, remote, remotes, flags))
WRAP(ssize_t, -1, read, (int fd, void *bytes, size_t count), (fd, bytes, count))
WRAP(void *, NULL, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAP(int, -1, setsockopt, (int fd, int level, int name, const void *value, socklen_t bytes),
     (fd, level, name, value, bytes))
WRAP(int, -1, stat64, (const char *path, void *status), (path, status))
WRAP(int, -1, statfs64, (const char *path, void *status), (path, status))
WRAP(int, -1, fstatfs64, (int fd, void *status), (fd, status))
WRAP(int, -1, fallocate64, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes))
WRAP(char *, NULL, strdup, (const char *text), (text))
WRAP(int, -1, system_accept, (int listener), (listener))
WRAP(int, -1, system_bind, (int fd, const void *name, socklen_t bytes), (fd, name, bytes))
WRAP(int, -1, system_connect, (int fd, const void *name, socklen_t bytes), (fd, name, bytes))
WRAP(int, -1, system_epoll_create, (int flags), (flags))
WRAP(int, -1, system_eventfd, (int flags), (flags))
WRAP(int, -1, system_listen, (int fd, int backlog), (fd, backlog))
WRAP(void *, MAP_FAILED, system_map, (int fd, size_t bytes, int protection),
     (fd, bytes, protection))

int __real_getsockopt(int fd, int level, int name, void *value, void *bytes);
int __wrap_getsockopt(int fd, int level, int name, void *value, void *bytes);

/* The kernel always knows the cookie of a socket: this question does not fail. */
int __wrap_getsockopt(int fd, int level, int name, void *value, void *bytes)
{
    const bool known = level == SOL_SOCKET && name == SO_COOKIE;
    if (known) {
        note(CALLER, "getsockopt", -1);
    }
    return !known && fails(CALLER, "getsockopt", -1)
               ? -1
               : __real_getsockopt(fd, level, name, value, bytes);
}

int __real_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event);

/* Only an addition takes memory: the other commands do not fail. */
int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event)
{
    if (what != EPOLL_CTL_ADD) {
        note(CALLER, "system_epoll_change", -1);
    }
    return what == EPOLL_CTL_ADD && fails(CALLER, "system_epoll_change", -1)
               ? -1
               : __real_system_epoll_change(epoll, what, fd, event);
}

/* They return the errno. */
WRAP(int, errno, pthread_atfork, (void (*before)(void), void (*parent)(void), void (*child)(void)),
     (before, parent, child))
WRAP(int, errno, system_start_thread, (pthread_t * thread, void *(*run)(void *), void *argument),
     (thread, run, argument))

/* -- Functions with a last argument that may be missing -----------------------------------------*/

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, void *argument);

/* Passed in a register, which may hold anything: a call without this argument does not look at
 * it. */
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    return fails(CALLER, "open64", -1) ? -1 : __real_open64(path, flags, mode);
}

int __wrap_fcntl64(int fd, int command, void *argument)
{
    /* Flags of a descriptor that is there are always known. */
    if (command == F_GETFL || command == F_GETFD) {
        note(CALLER, "fcntl64", -1);
        return __real_fcntl64(fd, command, argument);
    }
    return fails(CALLER, "fcntl64", -1) ? -1 : __real_fcntl64(fd, command, argument);
}

/* -- Functions that may do less than was asked for ----------------------------------------------*/

/* The part of `count` that a short call does; a counter (eventfd) is read and written as a
 * whole. */
static size_t part_of(size_t count)
{
    return count <= sizeof(uint64_t) ? count : count / 2;
}

ssize_t __real_getrandom(void *bytes, size_t count, unsigned int flags);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    const int failure = how(CALLER, "getrandom", -1);
    if (failure > 0) {
        strike(failure);
        return -1;
    }
    if (failure == SHORT) {
        atomic_fetch_add(struck, 1);
        count /= 2;
    }
    return __real_getrandom(bytes, count, flags);
}

/* -- Calls that go past the C library -----------------------------------------------------------*/

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

/* Calls of drivers/system/system.c, whose functions fail in their callers' places. (sandbox.c makes
 * connect and accept4 itself.) */
static bool is_function(long number)
{
    return number == SYS_bind || number == SYS_listen || number == SYS_eventfd2 ||
           number == SYS_epoll_create1 || number == SYS_epoll_ctl || number == SYS_mmap;
}

/* System calls that have no reason to fail. */
static bool cannot_fail(long number)
{
    return number == SYS_close || number == SYS_gettid || number == SYS_tgkill ||
           number == SYS_nanosleep || number == SYS_readlinkat || number == SYS_getcwd ||
           number == SYS_unlinkat || is_function(number);
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (cannot_fail(number)) {
        note(CALLER, "syscall", number);
        return __real_syscall(number, a, b, c, d, e, f);
    }
    const bool counted = number == SYS_read || number == SYS_write || number == SYS_sendmmsg;
    size_t count = (size_t)c;
    /* Our counters (eventfd) are far from full, and written as a whole. */
    const bool counter = number == SYS_write && count == sizeof(uint64_t);
    const int failure = how(CALLER, "syscall", number);
    if (failure > 0 && (!counter || failure == EINTR)) {
        strike(failure);
        return -1;
    }
    if (failure == SHORT && counted) {
        /* The first of several messages. */
        count = number == SYS_sendmmsg ? 1 : part_of(count);
        atomic_fetch_add(struck, count < (size_t)c);
    }
    return __real_syscall(number, a, b, counted ? (long)count : c, d, e, f);
}
