/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/descriptor.h"

#include <errno.h>
#include <sys/resource.h>

#include "drivers/uncancelled.h"

_Atomic uint64_t descriptor_bits[DESCRIPTORS_MAX / 64];
_Atomic int descriptor_highest = -1;
_Atomic pid_t descriptor_owner;

int descriptor_own(int fd)
{
    if (fd < 0 || (uint32_t)fd >= DESCRIPTORS_MAX) {
        return fd;
    }
    atomic_store_explicit(&descriptor_owner, getpid(), memory_order_relaxed);
    atomic_fetch_or_explicit(&descriptor_bits[fd / 64], UINT64_C(1) << fd % 64,
                             memory_order_relaxed);
    int highest = atomic_load(&descriptor_highest);
    while (fd > highest && !atomic_compare_exchange_weak(&descriptor_highest, &highest, fd)) {
    }
    return fd;
}

void descriptor_close(int fd)
{
    if (fd >= 0) {
        /* First: once it is closed, the number may be another thread's. */
        descriptors_disown((uint32_t)fd, (uint32_t)fd);
        uncancelled_close(fd);
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
    const int highest = atomic_load(&descriptor_highest);
    for (int word = 0; word <= highest / 64 && highest >= 0; word++) {
        uint64_t bits = atomic_exchange(&descriptor_bits[word], 0);
        while (bits != 0) {
            uncancelled_close(word * 64 + __builtin_ctzll(bits));
            bits &= bits - 1;
        }
    }
}
