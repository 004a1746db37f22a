/* SPDX-License-Identifier: BSD-2-Clause
 *
 * processor - what C has no words for, and each processor does in its own way.
 *
 * Purpose    One place for each such fact. guard.h has the instructions that may fault, and
 *            tools/program.c what the files of programs say of their processor.
 * Threads    Any.
 * Limits     x86-64 and arm64.
 */
#ifndef DRIVERS_PROCESSOR_H
#define DRIVERS_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* The thread waits in a loop for a store of another processor. */
static inline void processor_pause(void);

/* The instruction at which a signal has interrupted the thread, and another one to go on at. */
static inline uintptr_t processor_next_instruction(const ucontext_t *thread);
static inline void processor_go_on_at(ucontext_t *thread, uintptr_t instruction);

/* Is a string instruction the fastest way to copy some thousand bytes? */
static inline bool processor_has_fast_strings(void);

/* A request to valgrind, whose six words are named by valgrind.h; 0 if the program does not run
 * under it. */
static inline uint64_t processor_ask_valgrind(const volatile uint64_t words[6]);

#if defined(__x86_64__)
#include "drivers/system/processor_x86_64.h"
#elif defined(__aarch64__)
#include "drivers/system/processor_arm64.h"
#else
#error "nonic knows x86-64 and arm64"
#endif

#endif
