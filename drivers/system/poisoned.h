/* SPDX-License-Identifier: BSD-2-Clause
 *
 * poisoned - programs that AddressSanitizer, MemorySanitizer or memcheck watches: memory that is
 * not theirs, and bytes that were never written.
 *
 * Purpose    They check the program's own code, and see nothing of what a NIC does. So its NIC asks
 *            them for each range that it reads or writes for the program, or that the program gives
 *            it: freed memory and bytes behind an allocation are reported as any other access is,
 *            with the stacks of the allocation and of the free; and bytes that are to be sent and
 *            have no value.
 * Inputs     A range of the program's memory.
 * Outputs    Their report, which ends the process unless their options say otherwise.
 * Threads    Any.
 * Time       In other programs each of these is a test of a flag that never changes.
 * Source     <sanitizer/asan_interface.h>, <sanitizer/msan_interface.h>, memcheck.h.
 */
#ifndef DRIVERS_POISONED_H
#define DRIVERS_POISONED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/types.h"

/* A sanitizer wants to know of the program's memory (this one, or that of initialised.h). */
extern bool memory_watched;

static ALWAYS_INLINE bool memory_is_watched(void)
{
    return UNLIKELY(memory_watched);
}

/* Finds out whether one does, before the program can post anything. */
void memory_begin_watch(void);

/* Does AddressSanitizer or memcheck watch the program? */
bool poison_is_noted(void);

/* The NIC reads, or writes, these segments now or later: `why` says for whom, as words before the
 * number of the queue pair. */
void poison_judge(const struct segment *segments, uint32_t count, bool writes, const char *why,
                  uint32_t qpn);

/* The program wants these bytes to be sent. */
void undefined_judge(const struct segment *segment);

#endif
