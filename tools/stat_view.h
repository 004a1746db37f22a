/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_view - what the queue pairs of running programs have to do: one look at all of them.
 *
 * Ownership  A view has what it was told: stat_view_forget frees it.
 */
#ifndef TOOLS_STAT_VIEW_H
#define TOOLS_STAT_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/stat_text.h"

struct stat_seen {
    int pid;
    uid_t user;
    char command[64];
    bool is_stopped, is_silent; /* It does not run; it did not answer. */
    json_t *facts;              /* Those of the program itself. */
    json_t *queue_pairs;        /* Objects, by the text of their number. */
};

struct stat_view {
    struct stat_seen *programs;
    size_t count;
    struct left_out left_out;
};

/* Looks at all programs, whatever was named: peers say what a program waits for. */
struct stat_view stat_view_look(void);
void stat_view_forget(struct stat_view *view);
/* The program in another view; NULL: it is not there. */
const struct stat_seen *stat_view_same(const struct stat_view *view,
                                       const struct stat_seen *program);

/* The program that has the peer of a queue pair, which is then *peer; NULL, both: none that
 * answered. */
const struct stat_seen *stat_view_peer(const struct stat_view *view, const json_t *queue_pair,
                                       const json_t **peer);

/* A value that a program said; "" and 0: it said none. */
const char *stat_word(const json_t *object, const char *name);
long long stat_number(const json_t *object, const char *name);

#endif
