/* SPDX-License-Identifier: BSD-2-Clause
 *
 * descriptor - the file descriptors of the NIC.
 *
 * Purpose    The NIC notes the numbers of the descriptors that it keeps for itself. A child of fork
 *            has copies of all descriptors of its parent. These would keep names, ports and
 *            connections alive after the parent's end, so that peers believe that it lives: the
 *            child closes them. A program that closes descriptors which it does not know
 *            (closefrom) does not close the NIC's: otherwise the next file that it opens would get
 *            the number of a socket or counter into which the NIC writes. Other descriptors are
 *            lent to the program (those of channels): the program may close them, and then the NIC
 *            leaves them alone.
 * Inputs     descriptor_own after the call that made a descriptor, descriptor_close instead of
 *            close; likewise descriptor_lend and descriptor_take_back. The program's calls, by
 *            kernel/interpose_descriptor.c.
 * Outputs    descriptor_is_owned, descriptor_is_lent, descriptors_close_all.
 * Ownership  A descriptor belongs to the code that opened it.
 * Threads    Any; also signal handlers and children of fork.
 * Limits     Numbers from DESCRIPTORS_MAX on are not noted.
 * Source     fork(2), signal-safety(7), docs/decisions/0040-descriptors.md.
 */
#ifndef DRIVERS_DESCRIPTOR_H
#define DRIVERS_DESCRIPTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define DESCRIPTORS_MAX (1u << 20)

/* For the functions below: a bit for each descriptor, the highest number that ever had a bit, and
 * the process whose descriptors they are. */
extern _Atomic uint64_t descriptor_bits[DESCRIPTORS_MAX / 64];
extern _Atomic uint64_t descriptor_lent_bits[DESCRIPTORS_MAX / 64];
extern _Atomic int descriptor_highest;
extern _Atomic pid_t descriptor_owner;

/* Takes `fd`, which may be -1, and returns the number that it has from now on: never one of the
 * standard streams, which programs, and messages of our own, write to. -1 with errno. */
int descriptor_own(int fd);

/* Closes `fd`, which may be -1. No cancellation point (system.h); errno stays. */
void descriptor_close(int fd);

/* Lends `fd`, which may be -1, to the program, and returns it. */
int descriptor_lend(int fd);

/* Closes `fd`, unless the program has closed it. */
void descriptor_take_back(int fd);

/* May a file, also one in memory, have `bytes` bytes? Beyond the limit (RLIMIT_FSIZE) its growth
 * would be answered by a signal, SIGXFSZ, which ends the program. False: errno is EFBIG. */
bool descriptor_may_grow_to(uint64_t bytes);

/* For a child of fork: closes all descriptors that its parent noted, the first time. */
void descriptors_close_all(void);

/* The functions below are compiled into their callers, because they are called before a sanitizer's
 * runtime is ready. They note nothing of a child of vfork, which has copies of its own. */
static inline bool descriptor_has_bit(const _Atomic uint64_t *bits, int fd)
{
    return fd >= 0 && (uint32_t)fd < DESCRIPTORS_MAX &&
           (atomic_load_explicit(&bits[fd / 64], memory_order_relaxed) >> fd % 64 & 1) &&
           atomic_load_explicit(&descriptor_owner, memory_order_relaxed) == getpid();
}

static inline void descriptor_clear_bit(_Atomic uint64_t *bits, int fd)
{
    if (descriptor_has_bit(bits, fd)) {
        atomic_fetch_and_explicit(&bits[fd / 64], ~(UINT64_C(1) << fd % 64), memory_order_relaxed);
    }
}

static inline bool descriptor_is_owned(int fd)
{
    return descriptor_has_bit(descriptor_bits, fd);
}

/* False: the program has closed `fd`, or `fd` was never lent; the number may be another file's. */
static inline bool descriptor_is_lent(int fd)
{
    return (uint32_t)fd >= DESCRIPTORS_MAX || descriptor_has_bit(descriptor_lent_bits, fd);
}

/* The program closes `fd`, so the NIC does not. */
static inline void descriptor_give_up(int fd)
{
    descriptor_clear_bit(descriptor_lent_bits, fd);
}

/* The lowest owned descriptor from `first` to `last`; -1: there is none. */
static inline int descriptor_next_owned(uint32_t first, uint32_t last)
{
    const int highest = atomic_load_explicit(&descriptor_highest, memory_order_relaxed);
    for (int64_t fd = first; fd <= (int64_t)last && fd <= highest; fd++) {
        if (descriptor_is_owned((int)fd)) {
            return (int)fd;
        }
    }
    return -1;
}

#endif
