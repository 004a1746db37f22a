/* SPDX-License-Identifier: BSD-2-Clause
 *
 * top - what moves between running programs, for `nonic top`. Internal.
 *
 * A picture is a list of JSON objects, one for each program, made of two looks (top_compare):
 * pid, uid, command, device, state, and per second: sent_bytes, received_bytes, messages, receives,
 * sent_again, not_ready, dropped; queue_pairs: qpn, type, state, peer, peer_qpn, peer_pid,
 * peer_command, messages, receives, sent_packets, received_packets, losses, round_trip_ns,
 * flight_bytes; waits and sentence if it stands still.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/stat_view.h"

struct top_look {
    struct stat_view view;
    json_t *counters; /* By the text of the process number: {counters, connections by QPN}. */
    struct left_out left_out;
    int64_t counted_ns, viewed_ns; /* When the two were asked for. */
};

/* May take seconds, if programs do not answer. */
void top_look(struct top_look *look);
void top_forget(struct top_look *look);
/* The picture, which is the caller's. `before` is changed. */
json_t *top_compare(struct top_look *before, const struct top_look *now,
                    const struct stat_named *named);

/* -- Lines --------------------------------------------------------------------------------------*/

enum top_column {
    TOP_PID,
    TOP_WAITS,
    TOP_SENT,
    TOP_RECEIVED,
    TOP_MESSAGES,
    TOP_AGAIN,
    TOP_NOT_READY,
    TOP_RECEIVES,
    TOP_DROPPED,
    TOP_COLUMNS,
};

/* How a picture is shown. */
struct top_order {
    enum top_column column;
    bool is_reverse, hides_queue_pairs;
    char filter[64]; /* A part of the command, or a process number; empty: all. */
};

/* A line: a program, or one of its queue pairs. Both belong to the picture. */
struct top_row {
    const json_t *program, *queue_pair; /* queue_pair: NULL: the line is the program's. */
};

#define TOP_NAME_LEAST 24 /* Characters of the first column. */

/* The rows of a picture, in order; the caller frees them. Returns how many there are. */
size_t top_rows(const json_t *picture, const struct top_order *order, struct top_row **rows);
/* Lines as text; `name_characters` is the room for names. */
void top_write_head(char *line, size_t bytes, const struct top_order *order, int name_characters);
void top_write_row(char *line, size_t bytes, const struct top_row *row, int name_characters);
/* Why it stands still, or what else is known of it. */
void top_write_detail(char *line, size_t bytes, const struct top_row *row);
int top_name_characters(const struct top_row *rows, size_t count);
/* The sum of all programs. */
void top_write_sum(char *line, size_t bytes, const json_t *picture);

/* Until the user leaves. Returns the exit status. */
int top_screen(const struct stat_named *named, unsigned seconds);

#endif
