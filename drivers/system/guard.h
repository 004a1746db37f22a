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
 * Limits     x86-64. A program that installs handlers later takes faults over, ours too.
 * Source     docs/decisions/0016.
 */
#ifndef DRIVERS_GUARD_H
#define DRIVERS_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#if !defined(__x86_64__)
#error "guarded copies are written for x86-64"
#endif

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

/* The processor has fast string instructions (ERMS). Set by guard_install. */
extern bool guard_fast_strings;

/* String instructions are the fastest way from GUARD_STRING_BYTES on. The last GUARD_TAIL_BYTES are
 * copied after them, by ordinary stores. */
#define GUARD_STRING_BYTES 2048u
#define GUARD_TAIL_BYTES   64u

/* Copies the bytes that fit into `register`, by a load and a store. */
#define GUARDED_MOVE(load, store, register)                                                        \
    __asm__ goto(GUARDED(load " (%1), " register "\n\t" store " " register ", (%0)")               \
                 :                                                                                 \
                 : "r"(to), "r"(from)                                                              \
                 : "memory", "rax", "xmm0"                                                         \
                 : gone)

/* Copies in ascending order, the last bytes last: programs poll memory for them, and the processor
 * keeps the order of stores by itself (x86-64 is total store order; a string instruction may
 * reorder its own, but not with those behind it). Nothing is stored twice, as the program may have
 * overwritten it. False: some of the bytes are not there, and some of those in front of them were
 * copied. */
MUST_USE static inline bool guard_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    if (bytes >= GUARD_STRING_BYTES && guard_fast_strings) {
        const uint64_t string_bytes = bytes - GUARD_TAIL_BYTES;
        __asm__ goto("movq %0, %%rdi\n\t"
                     "movq %1, %%rsi\n\t"
                     "movq %2, %%rcx\n\t" GUARDED("rep movsb")
                     :
                     : "r"(to), "r"(from), "r"(string_bytes)
                     : "memory", "rdi", "rsi", "rcx"
                     : gone);
        to += string_bytes;
        from += string_bytes;
        bytes = GUARD_TAIL_BYTES;
    }
    while (bytes > 64) {
        __asm__ goto(GUARDED("movdqu (%1), %%xmm0\n\t"
                             "movdqu 16(%1), %%xmm1\n\t"
                             "movdqu 32(%1), %%xmm2\n\t"
                             "movdqu 48(%1), %%xmm3\n\t"
                             "movdqu %%xmm0, (%0)\n\t"
                             "movdqu %%xmm1, 16(%0)\n\t"
                             "movdqu %%xmm2, 32(%0)\n\t"
                             "movdqu %%xmm3, 48(%0)")
                     :
                     : "r"(to), "r"(from)
                     : "memory", "xmm0", "xmm1", "xmm2", "xmm3"
                     : gone);
        to += 64;
        from += 64;
        bytes -= 64;
    }
    for (; bytes > 16; to += 16, from += 16, bytes -= 16) {
        GUARDED_MOVE("movdqu", "movdqu", "%%xmm0");
    }
    for (; bytes >= 8; to += 8, from += 8, bytes -= 8) {
        GUARDED_MOVE("movq", "movq", "%%rax");
    }
    for (; bytes > 0; to++, from++, bytes--) {
        GUARDED_MOVE("movb", "movb", "%%al");
    }
    return true;
gone:
    return false;
}

/* Can the byte be read? */
MUST_USE static inline bool guard_touch(const uint8_t *at)
{
    __asm__ goto(GUARDED("movb (%0), %%al") : : "r"(at) : "rax" : gone);
    return true;
gone:
    return false;
}

/* Adds the bytes, and how many they are, to a sum; sums of other bytes differ, all but surely.
 * False: they are not there. */
MUST_USE bool guard_sum(const uint8_t *from, uint32_t bytes, uint32_t *sum);

/* If `*at` equals `*expected`, it becomes `wanted`; `*expected` becomes the value that was at `at`
 * before. False: the memory is not there. */
MUST_USE static inline bool guard_compare_swap(uint64_t *at, uint64_t *expected, uint64_t wanted)
{
    __asm__ goto(GUARDED("movq (%1), %%rax\n\t"
                         "lock cmpxchgq %2, (%0)\n\t"
                         "movq %%rax, (%1)")
                 :
                 : "r"(at), "r"(expected), "r"(wanted)
                 : "memory", "rax", "cc"
                 : gone);
    return true;
gone:
    return false;
}

#endif
