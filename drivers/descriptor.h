/* SPDX-License-Identifier: BSD-2-Clause
 *
 * descriptor - the file descriptors that the NIC keeps for itself.
 *
 * Purpose    A child of fork has copies of all of its parent's, which would keep names, ports and
 *            connections alive when the parent is gone, and peers believing in it. So the NIC's
 *            are noted, and a child closes them.
 * Inputs     descriptor_own behind the call that made one, descriptor_close instead of close.
 * Outputs    descriptors_close_all.
 * Ownership  The opener's, as ever.
 * Threads    Any; also signal handlers and children of fork.
 * Time       Not used.
 * Limits     Numbers from DESCRIPTORS_MAX on are not noted.
 * Source     fork(2), signal-safety(7).
 */
#ifndef DRIVERS_DESCRIPTOR_H
#define DRIVERS_DESCRIPTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define DESCRIPTORS_MAX (1u << 20)

/* For the functions below: a bit for each, the highest there ever was, and whose they are. */
extern _Atomic uint64_t descriptor_bits[DESCRIPTORS_MAX / 64];
extern _Atomic int descriptor_highest;
extern _Atomic pid_t descriptor_owner;

/* Returns `fd`, which may be -1. */
int descriptor_own(int fd);

/* `fd` may be -1. No cancellation point (uncancelled.h); errno stays. */
void descriptor_close(int fd);

/* May a file, also one in memory, have so many bytes? Beyond the limit (RLIMIT_FSIZE) its growth
 * would be answered by a signal, SIGXFSZ, which ends the program. False: errno is EFBIG. */
bool descriptor_may_grow_to(uint64_t bytes);

/* In a child of fork. Calls close alone. */
void descriptors_close_all(void);

/* A program closes what it knows nothing of: the numbers become those of other files. A child of
 * vfork, which closes its own alone, changes nothing. Compiled into its caller, because it is
 * called before a sanitizer's runtime is ready. */
static inline void descriptors_disown(uint32_t first, uint32_t last)
{
    const int highest = atomic_load_explicit(&descriptor_highest, memory_order_relaxed);
    for (uint32_t fd = first; highest >= 0 && fd <= last && fd <= (uint32_t)highest; fd++) {
        const uint64_t bit = UINT64_C(1) << fd % 64;
        if ((atomic_load_explicit(&descriptor_bits[fd / 64], memory_order_relaxed) & bit) &&
            atomic_load_explicit(&descriptor_owner, memory_order_relaxed) == getpid()) {
            atomic_fetch_and_explicit(&descriptor_bits[fd / 64], ~bit, memory_order_relaxed);
        }
    }
}

#endif
