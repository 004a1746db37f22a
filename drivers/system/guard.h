/* SPDX-License-Identifier: BSD-2-Clause
 *
 * guard - copies to and from memory of the program that may be gone.
 *
 * Purpose    A program may unmap pages of a registered region without ibv_dereg_mr. A guarded copy
 *            to or from such pages fails, where a plain copy would end the program. (Hardware pins
 *            the pages, and notices nothing.)
 * Inputs     guard_install, once a device is opened; guard_copy, guard_sum, guard_touch and the
 *            atomics.
 * Outputs    False: the memory is not there.
 * Ownership  The program's handlers of SIGSEGV and SIGBUS stay its own: a fault that is not ours
 *            goes to the handler that was there before.
 * Threads    Any. The signals must not be blocked in a thread that copies.
 * Time       Not used. Nothing is added to a copy that does not fault: as the kernel does for its
 *            own copies from user memory, each instruction that may fault is in a table of the
 *            linker, with the place to go on at.
 * Limits     x86-64 and arm64. A program that installs handlers later takes faults over, ours too.
 * Source     docs/decisions/0016.
 */
#ifndef DRIVERS_GUARD_H
#define DRIVERS_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* Puts our handlers in front of the program's, unless they are there. */
void guard_install(void);

/* The instructions `code` may fault; if one does, control goes on at the label `gone`. */
#define GUARDED(code) GUARD_BEGIN code GUARD_END
#define GUARD_BEGIN   "661:\n\t"
#define GUARD_END                                                                                  \
    "\n662:\n\t"                                                                                   \
    ".pushsection nonic_guard, \"a\"\n\t"                                                          \
    ".balign 4\n\t"                                                                                \
    ".long 661b - ., 662b - ., %l[gone] - .\n\t"                                                   \
    ".popsection\n"

/* The processor has fast string instructions (x86-64: ERMS). Set by guard_install. */
extern bool guard_fast_strings;

/* The last bytes appear last, 8 of them at most: programs poll memory for them. All others appear
 * in ascending order if GUARD_COPIES_IN_ORDER. Nothing is stored twice, as the program may have
 * overwritten it. False: some of the bytes are not there, and some of the others were copied. */
MUST_USE static inline bool guard_copy(uint8_t *to, const uint8_t *from, uint32_t bytes);

/* Can the byte be read? */
MUST_USE static inline bool guard_touch(const uint8_t *at);

/* Adds the bytes, and how many they are, to a sum; sums of other bytes differ, all but surely.
 * False: they are not there. */
MUST_USE bool guard_sum(const uint8_t *from, uint32_t bytes, uint32_t *sum);

/* If `*at` equals `*expected`, it becomes `wanted`; `*expected` becomes the value that was at `at`
 * before. No access moves from one side of it to the other. False: the memory is not there. */
MUST_USE static inline bool guard_compare_swap(uint64_t *at, uint64_t *expected, uint64_t wanted);

#if defined(__x86_64__)
#include "drivers/system/guard_x86_64.h"
#elif defined(__aarch64__)
#include "drivers/system/guard_arm64.h"
#else
#error "guarded copies are written for x86-64 and arm64"
#endif

#endif
