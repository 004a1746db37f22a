/* SPDX-License-Identifier: BSD-2-Clause
 *
 * check - `nonic run --check`: its wishes, and the parts that make findings readable.
 */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "checker/rules.h"

#define CHECK_STATUS 66 /* The exit status of a run with an error. */

struct check_wishes {
    bool advice, json;
    bool left_out[CHECKER_RULE_COUNT];
    char **exceptions; /* RULE:PATTERN, of functions and files. */
    size_t exception_count;
};
/* Reads a list of words with commas. False: standard error says what is wrong. */
bool check_read_wishes(const char *words, struct check_wishes *wishes);

/* -- Findings (check_report.c) ------------------------------------------------------------------*/

struct check_report {
    const struct check_wishes *wishes;
    json_t *places; /* Findings that were told, by process and place. */
    int *processes; /* That ran on nonic. */
    size_t process_count;
    size_t levels[CHECKER_ADVICE + 1]; /* Places, by level. */
    size_t silent;                     /* Advices that were not told. */
};
void check_begin(struct check_report *report, const struct check_wishes *wishes);
/* A line that a program of the run wrote, which it takes apart. */
void check_line(struct check_report *report, char *line);
/* A finding of the command itself: a program hangs. `hang` has a sentence and queue_pairs. */
void check_hang(struct check_report *report, int pid, bool certain, const json_t *hang);
/* Says what there was in all. Returns the exit status, if the programs ended with `status`. */
int check_end(struct check_report *report, int status);

/* -- Places in the source (check_places.c) ------------------------------------------------------*/

/* Appends FILE+OFFSET, an address behind a call, to a list of objects: function, source, line,
 * module and offset, as far as they are known; several, if functions were compiled into others. */
void check_place(const char *text, json_t *calls);

#endif
