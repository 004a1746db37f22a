/* SPDX-License-Identifier: BSD-2-Clause
 *
 * processor_x86_64 - processor.h for x86-64, which it includes.
 */
#ifndef DRIVERS_PROCESSOR_X86_64_H
#define DRIVERS_PROCESSOR_X86_64_H

#include <cpuid.h>

static inline void processor_pause(void)
{
    __builtin_ia32_pause();
}

static inline uintptr_t processor_next_instruction(const ucontext_t *thread)
{
    return (uintptr_t)thread->uc_mcontext.gregs[REG_RIP];
}

static inline void processor_go_on_at(ucontext_t *thread, uintptr_t instruction)
{
    thread->uc_mcontext.gregs[REG_RIP] = (greg_t)instruction;
}

/* Enhanced REP MOVSB: bit 9 of EBX in leaf 7 of CPUID. */
static inline bool processor_has_fast_strings(void)
{
    unsigned a, b = 0, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 9 & 1) != 0;
}

static inline uint64_t processor_ask_valgrind(const volatile uint64_t words[6])
{
    uint64_t result = 0;
    __asm__ volatile("rolq $3, %%rdi\n\t"
                     "rolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\t"
                     "rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(words)
                     : "cc", "memory");
    return result;
}

#endif
