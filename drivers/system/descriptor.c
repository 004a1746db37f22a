/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/check.h"
#include "drivers/system/raced.h"

_Atomic uint64_t descriptor_bits[DESCRIPTORS_MAX / 64];
_Atomic uint64_t descriptor_lent_bits[DESCRIPTORS_MAX / 64];
_Atomic int descriptor_highest = -1;
_Atomic pid_t descriptor_owner;

#ifdef __SANITIZE_THREAD__
int __interceptor_close(int fd);
#endif

/* errno stays, because mostly a call has failed before. */
static void close_number(int fd)
{
    const int reason = errno;
#ifdef __SANITIZE_THREAD__
    /* The thread sanitizer keeps a record of each descriptor, and has to see that this one ends. In
     * our library a plain close() would be our own function, behind the sanitizer's. */
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)__interceptor_close(fd);
    pthread_setcancelstate(before, NULL);
#else
    const long closed = syscall(SYS_close, fd);
    INVARIANTS(CHECK(closed == 0 || errno != EBADF)); /* It was closed before. */
#endif
    errno = reason;
}

/* Returns `fd`. */
static int note(_Atomic uint64_t *bits, int fd)
{
    if (fd < 0 || (uint32_t)fd >= DESCRIPTORS_MAX) {
        return fd;
    }
    atomic_store_explicit(&descriptor_owner, getpid(), memory_order_relaxed);
    atomic_fetch_or_explicit(&bits[fd / 64], UINT64_C(1) << fd % 64, memory_order_relaxed);
    int highest = atomic_load(&descriptor_highest);
    while (fd > highest && !atomic_compare_exchange_weak(&descriptor_highest, &highest, fd)) {
    }
    return fd;
}

/* Moves a descriptor above the standard streams, which a program may have closed. */
static int above_streams(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_number(fd);
    return moved;
}

int descriptor_own(int fd)
{
    return note(descriptor_bits, above_streams(fd));
}

void descriptor_close(int fd)
{
    if (fd >= 0) {
        /* This comes first: once `fd` is closed, another thread may get the number. */
        descriptor_clear_bit(descriptor_bits, fd);
        descriptor_give_up(fd);
        close_number(fd);
    }
}

int descriptor_lend(int fd)
{
    return note(descriptor_lent_bits, fd);
}

void descriptor_take_back(int fd)
{
    if (descriptor_is_lent(fd)) {
        race_forget(fd);
        descriptor_close(fd);
    }
}

bool descriptor_may_grow_to(uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
        errno = EFBIG;
        return false;
    }
    return true;
}

void descriptors_close_all(void)
{
    static _Atomic pid_t closed_by;
    const int highest = atomic_load(&descriptor_highest);
    if (atomic_exchange(&closed_by, getpid()) == getpid()) {
        return; /* They are closed, and what was noted since is the child's own. */
    }
    /* The child's program may close descriptors that were lent to the parent's program. */
    atomic_store(&descriptor_owner, getpid());
    for (int word = 0; word <= highest / 64 && highest >= 0; word++) {
        uint64_t bits = atomic_exchange(&descriptor_bits[word], 0);
        while (bits != 0) {
            close_number(word * 64 + __builtin_ctzll(bits));
            bits &= bits - 1;
        }
    }
}
