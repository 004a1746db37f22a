/* SPDX-License-Identifier: BSD-2-Clause
 *
 * wrap - for programs: the calls that fail under them (wrap.c).
 */
#ifndef TESTS_FAILS_WRAP_H
#define TESTS_FAILS_WRAP_H

#include <stdbool.h>

#define FAILS_EXPORT __attribute__((visibility("default")))

/* The number of calls that have failed so far, in this process, its children and its parent. */
FAILS_EXPORT unsigned fails_struck(void);
/* Is this the errno of a call that fails? EIO, if it does less than was asked for. */
FAILS_EXPORT bool fails_tells(int reason);
/* Writes the sites that were met, as the end of a process does: for one that ends by _exit. */
FAILS_EXPORT void fails_record(void);

#endif
