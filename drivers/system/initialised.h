/* SPDX-License-Identifier: BSD-2-Clause
 *
 * initialised - programs that MemorySanitizer watches.
 *
 * Purpose    clang's -fsanitize=memory notes which bytes of a program are initialised, by code that
 *            it adds to each load and store of the program, and reports code that decides by other
 *            bytes. It adds no code to our library, nor to a peer, so it has to be told which bytes
 *            these write. And it puts functions of its own in front of the C library's, which check
 *            the memory that they are given. They must not check while our library calls them, with
 *            memory of its own.
 * Inputs     Memory that was filled for the program, or that its NIC may fill from now on.
 * Ownership  None: the memory is the program's.
 * Threads    Any. Between unchecked_begin and unchecked_end, which may be nested, nothing is
 *            checked in the calling thread.
 * Time       Not used. In other programs each of these is a test of a pointer that never changes.
 * Source     <sanitizer/msan_interface.h> of clang.
 */
#ifndef DRIVERS_INITIALISED_H
#define DRIVERS_INITIALISED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

/* The sanitizer's runtime, a part of the program, has these; NULL: the program has none. */
extern void __msan_unpoison(const volatile void *memory, size_t bytes) __attribute__((weak));
extern void __msan_unpoison_param(size_t count) __attribute__((weak));
extern void __msan_scoped_disable_interceptor_checks(void) __attribute__((weak));
extern void __msan_scoped_enable_interceptor_checks(void) __attribute__((weak));

/* Does MemorySanitizer watch the program? */
static ALWAYS_INLINE bool initialised_is_noted(void)
{
    return UNLIKELY(__msan_unpoison != NULL);
}

static ALWAYS_INLINE void initialised(const void *memory, size_t bytes)
{
    if (initialised_is_noted()) {
        __msan_unpoison(memory, bytes);
    }
}

/* The arguments of the next call, which is one of the program's functions. */
static ALWAYS_INLINE void initialised_arguments(size_t count)
{
    if (initialised_is_noted()) {
        __msan_unpoison_param(count);
    }
}

static ALWAYS_INLINE void unchecked_begin(void)
{
    if (initialised_is_noted()) {
        __msan_scoped_disable_interceptor_checks();
    }
}

static ALWAYS_INLINE void unchecked_end(void)
{
    if (initialised_is_noted()) {
        __msan_scoped_enable_interceptor_checks();
    }
}

#endif
