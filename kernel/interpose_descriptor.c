/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_descriptor - write and close, for the connection manager's device; write, for netlink;
 * close, for the NIC's own descriptors, which to the program are not open.
 *
 * A child of fork or vfork has the descriptor but not the NIC behind it: there the device's are
 * ordinary descriptors, and closing them is no business of its parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "kernel/cm_device.h"
#include "kernel/interpose.h"

static atomic_int cm_highest = -1; /* No descriptor above was ever the device's. */

int interpose_open_cm(int flags)
{
    const int fd = cm_device_open(flags);
    if (fd >= 0) {
        int highest = atomic_load(&cm_highest);
        while (fd > highest && !atomic_compare_exchange_weak(&cm_highest, &highest, fd)) {
        }
    }
    return fd;
}

bool interpose_is_cm(int fd)
{
    return UNLIKELY(fd <= atomic_load_explicit(&cm_highest, memory_order_relaxed)) &&
           cm_device_is(fd);
}

static bool is_parents_cm(int fd)
{
    return UNLIKELY(fd <= atomic_load_explicit(&cm_highest, memory_order_relaxed)) &&
           cm_device_was(fd);
}

/* `fd` becomes the number of another file, if of any. */
static void forget(int fd)
{
    descriptor_give_up(fd);
    if (UNLIKELY(interpose_is_cm(fd) || is_parents_cm(fd))) {
        cm_device_close(fd);
    }
}

NEXT(write)
EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
    if (UNLIKELY(interpose_is_cm(fd))) {
        return cm_device_write(fd, bytes, count);
    }
    if (UNLIKELY(is_parents_cm(fd))) {
        errno = EBADF; /* A command is no event of its parent's. */
        return -1;
    }
    return interpose_is_netlink(fd) ? interpose_send(fd, bytes, count, NULL, 0)
                                    : next_write()(fd, bytes, count);
}

NEXT(close)
EXPORT int close(int fd)
{
    if (UNLIKELY(descriptor_is_owned(fd))) {
        errno = EBADF;
        return -1;
    }
    forget(fd);
    return next_close()(fd);
}

/* -- Descriptors that are closed by the way -----------------------------------------------------*/

/* Else the call is refused, and nothing is closed. */
static bool is_open(int fd)
{
    const int before = errno;
    const bool open = fcntl(fd, F_GETFD) >= 0;
    errno = before;
    return open;
}

NEXT(dup2)
EXPORT int dup2(int from, int to)
{
    if (UNLIKELY(descriptor_is_owned(to))) {
        errno = EBADF; /* As for a number above the limit. */
        return -1;
    }
    if (from != to && is_open(from)) {
        forget(to);
    }
    return next_dup2()(from, to);
}

NEXT(dup3)
EXPORT int dup3(int from, int to, int flags)
{
    if (UNLIKELY(descriptor_is_owned(to))) {
        errno = EBADF;
        return -1;
    }
    if (from != to && is_open(from) && (flags & ~O_CLOEXEC) == 0) {
        forget(to);
    }
    return next_dup3()(from, to, flags);
}

static void forget_range(unsigned int first, unsigned int last)
{
    const int cm = atomic_load(&cm_highest), others = atomic_load(&descriptor_highest);
    const int highest = cm > others ? cm : others;
    for (unsigned int fd = first; highest >= 0 && fd <= last && fd <= (unsigned int)highest; fd++) {
        forget((int)fd);
    }
}

/* glibc has the two since 2.34. We have them in front of an older one as well, whose headers do not
 * know them: a program that looks for them by dlsym finds ours. */
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

/* As a kernel without that call. */
static int no_close_range(unsigned int first, unsigned int last, int flags)
{
    (void)first;
    (void)last;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

NEXT_OR(close_range, no_close_range)

static void close_each(int first)
{
    struct rlimit limit;
    const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT32_MAX;
    for (int fd = first, last = known ? (int)limit.rlim_cur : INT32_MAX; fd < last; fd++) {
        next_close()(fd);
    }
}

NEXT_OR(closefrom, close_each)

/* All but the NIC's own. 0; or -1 with errno. */
static int close_others(unsigned int first, unsigned int last, int flags)
{
    int own, result = 0;
    while (result == 0 && first <= last && (own = descriptor_next_owned(first, last)) >= 0) {
        CHECK((unsigned int)own >= first && (unsigned int)own <= last);
        result =
            first < (unsigned int)own ? next_close_range()(first, (unsigned int)own - 1, flags) : 0;
        first = (unsigned int)own + 1;
    }
    return result == 0 && first <= last ? next_close_range()(first, last, flags) : result;
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
    if (first > last || ((unsigned int)flags & ~CLOSE_RANGE_UNSHARE) != 0) {
        return next_close_range()(first, last, flags); /* Which closes nothing. */
    }
    forget_range(first, last);
    return close_others(first, last, flags);
}

EXPORT void closefrom(int first)
{
    unsigned int from = first < 0 ? 0 : (unsigned int)first;
    int own;
    forget_range(from, UINT32_MAX);
    while ((own = descriptor_next_owned(from, INT32_MAX)) >= 0) {
        for (; from < (unsigned int)own; from++) {
            next_close()((int)from);
        }
        from++;
    }
    next_closefrom()((int)from);
}
