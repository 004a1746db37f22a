/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_hang - which queue pairs of running programs stand still, and what for.
 */
#ifndef TOOLS_STAT_HANG_H
#define TOOLS_STAT_HANG_H

#include <stdbool.h>

#include "tools/stat_text.h"
#include "tools/stat_view.h"

/* Judges the queue pairs of a program that did not change between two views. Returns an object of
 * findings, by their sentences, which is the caller's. */
json_t *stat_hang_judge(const struct stat_seen *before, const struct stat_seen *now,
                        const struct stat_view *view);

/* Looks twice, a second apart. Returns a list of objects: pid, uid, and `hangs`, a list of rule,
 * sentence and queue_pairs. It is the caller's. */
json_t *stat_hang_find(const struct stat_named *named);

/* Looks twice, a second apart, and prints what it found. Returns the exit status of the command. */
int stat_hang(const struct stat_named *named, bool json);

#endif
