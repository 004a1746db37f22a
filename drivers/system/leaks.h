/* SPDX-License-Identifier: BSD-2-Clause
 *
 * leaks - programs whose leaks LeakSanitizer looks for.
 *
 * Purpose    A program may keep its only pointer to a piece of memory in a request (wr_id) or in an
 *            object (qp_context). LeakSanitizer looks for pointers in allocated memory, and not in
 *            memory that is mapped, so it is told where nonic has objects there.
 * Threads    Any.
 * Source     <sanitizer/lsan_interface.h>.
 */
#ifndef DRIVERS_LEAKS_H
#define DRIVERS_LEAKS_H

#include <stddef.h>

/* The sanitizer's runtime, a part of the program, has these; NULL: the program has none. */
extern void __lsan_register_root_region(const void *memory, size_t bytes) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *memory, size_t bytes) __attribute__((weak));

static inline void leaks_look_here(const void *memory, size_t bytes)
{
    if (__lsan_register_root_region != NULL) {
        __lsan_register_root_region(memory, bytes);
    }
}

/* The memory is about to be unmapped. */
static inline void leaks_look_no_more(const void *memory, size_t bytes)
{
    if (__lsan_unregister_root_region != NULL) {
        __lsan_unregister_root_region(memory, bytes);
    }
}

#endif
