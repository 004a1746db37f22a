/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_csrna - csRNA's parameters, and what they make of the machine that programs' NICs are.
 */
#ifndef TOOLS_REPEAT_CSRNA_H
#define TOOLS_REPEAT_CSRNA_H

#include "lab/roce/roce.h"

/* A configuration but for its topology. `settings` are NAME=VALUE of `csrna/one`. False: `error`
 * says what is wrong with them. */
bool repeat_csrna(struct roce_config *config, const char *const *settings, int count, char *error,
                  size_t error_bytes);

#endif
