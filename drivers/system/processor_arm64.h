/* SPDX-License-Identifier: BSD-2-Clause
 *
 * processor_arm64 - processor.h for arm64, which it includes.
 */
#ifndef DRIVERS_PROCESSOR_ARM64_H
#define DRIVERS_PROCESSOR_ARM64_H

static inline void processor_pause(void)
{
    __asm__ volatile("yield");
}

static inline uintptr_t processor_next_instruction(const ucontext_t *thread)
{
    return (uintptr_t)thread->uc_mcontext.pc;
}

static inline void processor_go_on_at(ucontext_t *thread, uintptr_t instruction)
{
    thread->uc_mcontext.pc = instruction;
}

/* There is none (FEAT_MOPS has some, and no processor of today has that). */
static inline bool processor_has_fast_strings(void)
{
    return false;
}

static inline uint64_t processor_ask_valgrind(const volatile uint64_t words[6])
{
    uint64_t result;
    __asm__ volatile("mov x3, #0\n\t"
                     "mov x4, %1\n\t"
                     "ror x12, x12, #3\n\t"
                     "ror x12, x12, #13\n\t"
                     "ror x12, x12, #51\n\t"
                     "ror x12, x12, #61\n\t"
                     "orr x10, x10, x10\n\t"
                     "mov %0, x3"
                     : "=r"(result)
                     : "r"(words)
                     : "cc", "memory", "x3", "x4");
    return result;
}

#endif
