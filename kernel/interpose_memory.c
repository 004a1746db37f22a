/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_memory - calls before which memory that peers map becomes private again: those that
 * start a thread, and advice, by which pages may lose their contents.
 */
#include <linux/mman.h>
#include <pthread.h>
#include <sys/mman.h>
#include <threads.h>

#include "kernel/interpose.h"
#include "kernel/process.h"

static void take_back(uint64_t start, uint64_t bytes)
{
    if (UNLIKELY(atomic_load_explicit(&live_has_lent, memory_order_relaxed))) {
        process_take_back(start, bytes);
    }
}

NEXT(pthread_create)
EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    take_back(0, UINT64_MAX);
    return next_pthread_create()(thread, attributes, start, argument);
}

NEXT(thrd_create)
EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    take_back(0, UINT64_MAX);
    return next_thrd_create()(thread, start, argument);
}

/* Advice that changes nothing that a program could find: ibv_reg_mr gives it, too. */
static bool is_harmless(int advice)
{
    return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE || advice == MADV_WILLNEED;
}

NEXT(madvise)
EXPORT int madvise(void *start, size_t bytes, int advice)
{
    if (!is_harmless(advice)) {
        take_back((uintptr_t)start, bytes);
    }
    return next_madvise()(start, bytes, advice);
}
