/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lock - a mutex that favours a thread which takes it again and again.
 *
 * Purpose    A program that posts and polls from one thread takes the lock several times a message,
 *            and other threads seldom want it. Then the lock is biased to that thread, which takes
 *            it with plain stores, without an atomic operation or a call. Another thread that comes
 *            revokes the bias, which costs a system call. From then on the lock is a mutex, until a
 *            thread has taken it LOCK_TO_BELIEVE times in a row (docs/decisions/0014).
 * Threads    Any. Not recursive. The thread that took it gives it back.
 * Limits     Without membarrier(2) (Linux 4.14, or a filter that forbids it) it is always a mutex,
 *            and LOCK_SEATS threads at most can become bias owners.
 */
#ifndef DRIVERS_LOCK_H
#define DRIVERS_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define LOCK_TO_BELIEVE 4096
#define LOCK_SEATS      8

/* Belongs to one thread for life: a thread that was the bias owner, and has not noticed yet that it
 * no longer is, may write here at any time. A thread that ends leaves its seat to the thread that
 * inherits its lock_self. */
struct lock_seat {
    uintptr_t thread;
    _Atomic uint32_t inside; /* Its thread holds the lock, or is about to look if it may. */
};

struct lock {
    _Atomic(struct lock_seat *) bias_owner; /* Its seat; NULL: there is none. */
    /* The next members belong to the holder of the lock. */
    struct lock_seat *seat; /* The seat by which the lock was taken; NULL: by the mutex. */
    bool may_be_biased;     /* The system has membarrier. */
    uint32_t in_a_row;      /* Times that `latest` took the mutex with nobody in between. */
    uintptr_t latest;
    uint64_t
        sleeps; /* How often threads slept until they had it, but for those that are unbiased. */
    _Atomic uintptr_t holder; /* The thread that holds the mutex; 0: none. */
    struct lock_seat seats[LOCK_SEATS];
    pthread_mutex_t mutex;
};

void lock_init(struct lock *lock);
void lock_destroy(struct lock *lock);

/* A number that no two threads have which live at the same time. */
static inline uintptr_t lock_self(void)
{
    return (uintptr_t)pthread_self();
}

/* Does the calling thread hold the lock? Only a signal handler does not know: it may have
 * interrupted its thread at any place. True is never wrong; false may be wrong if the thread was
 * just about to take the lock or to give it back. */
bool lock_is_held_here(const struct lock *lock);

/* For a thread that is never to be the bias owner. */
void lock_take_unbiased(struct lock *lock);

/* The ways that are not fast: lock.c. */
void lock_take_mutex(struct lock *lock);
void lock_release_mutex(struct lock *lock);

static inline void lock_take(struct lock *lock)
{
    struct lock_seat *seat = atomic_load_explicit(&lock->bias_owner, memory_order_acquire);
    if (LIKELY(seat != NULL && seat->thread == lock_self())) {
        atomic_store_explicit(&seat->inside, 1, memory_order_relaxed);
        /* The thread that revokes the bias makes the processor's part of this fence
         * (membarrier). */
        atomic_signal_fence(memory_order_seq_cst);
        if (LIKELY(atomic_load_explicit(&lock->bias_owner, memory_order_acquire) == seat)) {
            lock->seat = seat;
            return;
        }
        atomic_store_explicit(&seat->inside, 0, memory_order_release);
    }
    lock_take_mutex(lock);
}

static inline void lock_release(struct lock *lock)
{
    struct lock_seat *seat = lock->seat;
    if (LIKELY(seat != NULL)) {
        lock->seat = NULL;
        atomic_store_explicit(&seat->inside, 0, memory_order_release);
        return;
    }
    lock_release_mutex(lock);
}

#endif
