/* SPDX-License-Identifier: BSD-2-Clause
 *
 * findings - the report of a program that is checked: lines in a file, each written by one call.
 *
 *     process  pid=
 *     found    rule= pid= place= qp= seconds= text= posted= at=
 *     counted  pid= place= count=
 *
 * There is a tab before each NAME=VALUE. `place` names the rule and the calls; `posted` and `at`
 * are calls, innermost first, each FILE+OFFSET and an address behind a call, with semicolons
 * between them.
 *
 * Threads    One at a time.
 * Limits     Places, and rules at them, up to a number; others are not told.
 */
#ifndef VERBS_FINDINGS_H
#define VERBS_FINDINGS_H

#include "checker/checker.h"

/* The report is this file; empty: there is none, and lines are written nowhere. */
void findings_begin(const char *path);
/* In a child of fork: nothing was told yet. */
void findings_in_child(void);
bool findings_are_wanted(void);

void findings_write(const struct checker_finding *finding);
/* How often each place was come by, if more than once. */
void findings_write_counts(void);

/* A word for the calls that lead to an instruction of the program with this stack; 0: no more are
 * kept. findings_calls: those calls without this library's. */
uint32_t findings_place(const void *code, const void *stack);
int findings_calls(uint32_t place, void *const **calls);

#endif
