/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_text - programs that `nonic stat` asks, and what they said: texts of other processes, of
 * which nothing is believed.
 */
#ifndef TOOLS_STAT_TEXT_H
#define TOOLS_STAT_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The programs that were named; none: all. */
struct stat_named {
    int *pids;
    size_t count;
};
/* Reads process numbers; the caller frees named->pids. False: one is wrong, and that is printed. */
bool stat_parse_pids(struct stat_named *named, int count, char **words);

/* Programs that are not shown: of other users, that did not answer, of a later version of nonic, of
 * another version that does not know the question. */
struct left_out {
    size_t foreign, silent, newer, other;
};
/* Says that on standard error, if it is not what was `said` the last time. */
void stat_say_left_out(struct left_out *said, const struct left_out *now);

/* Each character that could move a terminal's cursor, or is not ASCII, becomes a question mark. */
void stat_clean(char *text);
/* The name of the process' command; empty: it has gone. */
void stat_command_of(pid_t process, char *text, size_t bytes);

/* A list of NAME=VALUE as an object, which is the caller's. Takes the text apart. */
json_t *stat_parse_pairs(char *text);
/* Counters and the device as an object, which is the caller's. Other lines are left out;
 * connections are added to the list. Takes the text apart. NULL: the program speaks a later version
 * than we know. */
json_t *stat_parse_counters(char *text, json_t *connections);

#endif
