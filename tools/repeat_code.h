/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_code - the files whose code a run ran.
 */
#ifndef TOOLS_REPEAT_CODE_H
#define TOOLS_REPEAT_CODE_H

#include <jansson.h>

#include "box/box.h"

/* An object of paths and digests, the caller's, made of the box's note in the run's folder, which
 * goes. */
json_t *repeat_code_files(const char *directory);
/* Tells on standard error which of them are other files by now, or gone. NULL: none is known. */
void repeat_tell_other_code(const json_t *recorded);

#endif
