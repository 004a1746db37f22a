/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lock - a mutex that favours a thread (lock.h). Invariants: `bias_owner` changes under the mutex
 * only. The bias owner holds the lock by bias if its seat says that it is inside and it saw itself
 * as the bias owner afterwards. Any other thread holds the lock if it has the mutex, has set
 * `bias_owner` to NULL, and after a membarrier has seen the seat empty: from then on the thread of
 * that seat sees that it is not the bias owner.
 */
#include "drivers/system/lock.h"

#include <linux/membarrier.h>

#include "drivers/system/clock.h"
#include "drivers/system/initialised.h"
#include "drivers/system/processor.h"
#include "drivers/system/system.h"

/* A bias owner that is inside is seldom there for longer than this many looks, unless the processor
 * was taken from it. */
#define LOOKS    1000
#define PAUSE_NS 20000
/* Longer than any store of a processor takes to be seen by the others. */
#define STORE_NS 1000000

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

/* The runtime of a program's ThreadSanitizer; NULL: the program has none. */
extern void __tsan_init(void) __attribute__((weak));

/* ThreadSanitizer sees calls of the C library, and not that a thread holds the lock by bias: it
 * would call a right program's use of our memory a race. If it has compiled us, it sees all. */
static bool races_are_noted(void)
{
#ifdef __SANITIZE_THREAD__
    return false;
#else
    return __tsan_init != NULL;
#endif
}

void lock_init(struct lock *lock)
{
    *lock = (struct lock){.seat = NULL};
    /* The fast way does not look whether MemorySanitizer is there, either. */
    lock->may_be_biased = !initialised_is_noted() && !races_are_noted() &&
                          membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    /* The lock is held for a short time only: to spin a little costs less than to sleep. */
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&lock->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void lock_destroy(struct lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static void wait_until_outside(const struct lock_seat *seat)
{
    for (uint32_t looks = 0; atomic_load_explicit(&seat->inside, memory_order_acquire) != 0;
         looks++) {
        if (looks < LOOKS) {
            processor_pause();
        } else {
            system_sleep(PAUSE_NS);
        }
    }
}

/* The caller holds the mutex. */
static void revoke_bias(struct lock *lock, const struct lock_seat *seat)
{
    atomic_store_explicit(&lock->bias_owner, NULL, memory_order_relaxed);
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        /* A filter was installed later, or a fork has lost the registration. */
        lock->may_be_biased = false;
        system_sleep(STORE_NS);
    }
    wait_until_outside(seat);
}

/* The seat of a thread, perhaps a new one; NULL: all seats belong to other threads. */
static struct lock_seat *seat_of(struct lock *lock, uintptr_t thread)
{
    for (uint32_t i = 0; i < LOCK_SEATS; i++) {
        struct lock_seat *seat = &lock->seats[i];
        if (seat->thread == 0) {
            seat->thread = thread;
        }
        if (seat->thread == thread) {
            return seat;
        }
    }
    return NULL;
}

/* The caller holds the mutex, and no thread holds the lock by bias. */
static void consider_bias(struct lock *lock, uintptr_t self)
{
    INVARIANTS(CHECK(atomic_load_explicit(&lock->bias_owner, memory_order_relaxed) == NULL));
    if (lock->latest != self) {
        lock->latest = self;
        lock->in_a_row = 0;
    } else if (lock->may_be_biased && ++lock->in_a_row >= LOCK_TO_BELIEVE) {
        lock->in_a_row = 0;
        atomic_store_explicit(&lock->bias_owner, seat_of(lock, self), memory_order_release);
    }
}

/* The mutex was not free. */
static void wait_for_mutex(struct lock *lock)
{
    const long before = clock_sleeps();
    pthread_mutex_lock(&lock->mutex);
    lock->sleeps += (uint64_t)(clock_sleeps() - before);
}

static void take(struct lock *lock, bool counted)
{
    unchecked_begin(); /* Most of our calls of the C library are made with the lock held. */
    /* It would wait for itself. */
    INVARIANTS(CHECK(atomic_load_explicit(&lock->holder, memory_order_relaxed) != lock_self()));
    if (!counted) {
        pthread_mutex_lock(&lock->mutex);
    } else if (pthread_mutex_trylock(&lock->mutex) != 0) {
        wait_for_mutex(lock);
    }
    INVARIANTS(CHECK(atomic_load_explicit(&lock->holder, memory_order_relaxed) == 0));
    atomic_store_explicit(&lock->holder, lock_self(), memory_order_relaxed);
    /* This is another thread's seat: a bias owner comes here only when it has ceased to be one. */
    const struct lock_seat *seat = atomic_load_explicit(&lock->bias_owner, memory_order_relaxed);
    if (seat != NULL) {
        revoke_bias(lock, seat);
    }
    INVARIANTS(CHECK(lock->seat == NULL)); /* No thread holds it by a seat any more. */
}

void lock_take_mutex(struct lock *lock)
{
    take(lock, true);
    consider_bias(lock, lock_self());
}

void lock_take_unbiased(struct lock *lock)
{
    take(lock, false);
    lock->latest = 0;
}

void lock_release_mutex(struct lock *lock)
{
    INVARIANTS(CHECK(lock_is_held_here(lock)));
    atomic_store_explicit(&lock->holder, 0, memory_order_relaxed);
    pthread_mutex_unlock(&lock->mutex);
    unchecked_end();
}

bool lock_is_held_here(const struct lock *lock)
{
    const uintptr_t self = lock_self();
    for (uint32_t i = 0; i < LOCK_SEATS; i++) {
        const struct lock_seat *seat = &lock->seats[i];
        if (seat->thread == self &&
            atomic_load_explicit(&seat->inside, memory_order_relaxed) != 0) {
            return true;
        }
    }
    return atomic_load_explicit(&lock->holder, memory_order_relaxed) == self;
}
