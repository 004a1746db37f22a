/* SPDX-License-Identifier: BSD-2-Clause
 *
 * freeing - hears of memory that a program which is checked frees (freed.c).
 */
#ifndef VERBS_FREEING_H
#define VERBS_FREEING_H

#include <stdbool.h>
#include <stddef.h>

/* Some bytes are about to be given back, by a call that returns to `caller`. */
typedef void freeing_hook(const void *memory, size_t bytes, const void *caller);

/* The hook is called from now on, by any thread and with any lock. Again: no change. */
void freeing_begin(freeing_hook *hook);
/* Something that is a part of the library which tells of it; NULL: it is not loaded. */
const void *freeing_library(void);
/* Is the caller a part of the program, or of a library that knows nothing of nonic's locks? */
bool freeing_is_the_programs(const void *caller);

#endif
