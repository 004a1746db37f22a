/* SPDX-License-Identifier: BSD-2-Clause
 *
 * frames - variables of functions as memory of requests: has the function returned?
 *
 * Purpose    A request that names a local variable has to be over before its function returns:
 *            then the bytes are another function's. A call is known by the place of its frame and
 *            by its function, which unwinding finds, and only for memory that is on a stack.
 * Threads    Each asks about its own stack; another thread's is not judged.
 * Limits     A function without a table for unwinding: not judged.
 */
#ifndef VERBS_FRAMES_H
#define VERBS_FRAMES_H

#include <stdbool.h>

#include "checker/checker.h"

/* Is it a variable of a function that this thread is in? */
bool frame_find(const struct segment *segment, struct checker_frame *frame);
/* False: this thread was in it, and is not any more. */
bool frame_may_be_live(const struct checker_frame *frame);

#endif
