/* SPDX-License-Identifier: BSD-2-Clause
 *
 * top_text - a picture as lines, in an order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/top.h"

static const struct {
    const char *title, *name;
    int width;
} columns[TOP_COLUMNS] = {
    [TOP_PID] = {"PID", "pid", 8},
    [TOP_WAITS] = {"WAITS", "waits", 14},
    [TOP_SENT] = {"SENT/s", "sent_bytes", 8},
    [TOP_RECEIVED] = {"RECVD/s", "received_bytes", 8},
    [TOP_MESSAGES] = {"MSGS/s", "messages", 8},
    [TOP_AGAIN] = {"AGAIN/s", "sent_again", 8},
    [TOP_NOT_READY] = {"RNR/s", "not_ready", 7},
    [TOP_RECEIVES] = {"RECVS/s", "receives", 8},
    [TOP_DROPPED] = {"DROP/s", "dropped", 7},
};

static double real(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static size_t count_waiting(const json_t *program)
{
    size_t waiting = 0, i;
    json_t *queue_pair;
    json_array_foreach(json_object_get(program, "queue_pairs"), i, queue_pair)
    {
        waiting += stat_word(queue_pair, "waits")[0] != '\0';
    }
    return waiting;
}

/* -- Order --------------------------------------------------------------------------------------*/

/* Row `a` stands in front of row `b` if its value is larger; a process number, if it is smaller. */
static double value_of(const struct top_row *row, enum top_column column)
{
    if (row->queue_pair != NULL) {
        const bool waits = stat_word(row->queue_pair, "waits")[0] != '\0';
        return column == TOP_PID ? -(double)stat_number(row->queue_pair, "qpn")
               : column == TOP_WAITS
                   ? waits
                   : real(row->queue_pair, "messages") + real(row->queue_pair, "receives");
    }
    return column == TOP_PID     ? -(double)stat_number(row->program, "pid")
           : column == TOP_WAITS ? (double)count_waiting(row->program)
                                 : real(row->program, columns[column].name);
}

struct sorted {
    struct top_row row;
    double value, number;
};

static int by_value(const void *a, const void *b)
{
    const struct sorted *one = a, *other = b;
    const int order = (one->value < other->value) - (one->value > other->value);
    return order != 0 ? order : (one->number > other->number) - (one->number < other->number);
}

/* Puts `count` rows in order. */
static void sort(struct top_row *rows, size_t count, const struct top_order *order)
{
    struct sorted *sorted = calloc(count + 1, sizeof(*sorted));
    for (size_t i = 0; i < count && sorted != NULL; i++) {
        sorted[i] = (struct sorted){rows[i], value_of(&rows[i], order->column),
                                    -value_of(&rows[i], TOP_PID)};
        sorted[i].value = order->is_reverse ? -sorted[i].value : sorted[i].value;
    }
    if (sorted != NULL) {
        qsort(sorted, count, sizeof(*sorted), by_value);
        for (size_t i = 0; i < count; i++) {
            rows[i] = sorted[i].row;
        }
    }
    free(sorted);
}

static bool passes(const json_t *program, const char *filter)
{
    char pid[32];
    snprintf(pid, sizeof(pid), "%lld", stat_number(program, "pid"));
    return filter[0] == '\0' || strcasestr(stat_word(program, "command"), filter) != NULL ||
           strcmp(pid, filter) == 0;
}

static size_t count_rows(const json_t *picture)
{
    size_t count = json_array_size(picture), i;
    json_t *program;
    json_array_foreach((json_t *)(uintptr_t)picture, i, program)
    {
        count += json_array_size(json_object_get(program, "queue_pairs"));
    }
    return count;
}

static size_t add_queue_pairs(struct top_row *rows, const json_t *program,
                              const struct top_order *order)
{
    size_t i;
    json_t *queue_pair, *list = json_object_get(program, "queue_pairs");
    json_array_foreach(list, i, queue_pair)
    {
        rows[i] = (struct top_row){program, queue_pair};
    }
    sort(rows, json_array_size(list), order);
    return json_array_size(list);
}

size_t top_rows(const json_t *picture, const struct top_order *order, struct top_row **rows)
{
    size_t programs = 0, count = 0, i;
    json_t *program;
    struct top_row *heads = calloc(json_array_size(picture) + 1, sizeof(*heads));
    *rows = calloc(count_rows(picture) + 1, sizeof(**rows));
    if (heads == NULL || *rows == NULL) {
        free(heads);
        return 0;
    }
    json_array_foreach((json_t *)(uintptr_t)picture, i, program)
    {
        heads[programs].program = program;
        programs += passes(program, order->filter);
    }
    sort(heads, programs, order);
    for (i = 0; i < programs; i++) {
        (*rows)[count++] = heads[i];
        if (!order->hides_queue_pairs) {
            count += add_queue_pairs(*rows + count, heads[i].program, order);
        }
    }
    free(heads);
    return count;
}

/* -- Text ---------------------------------------------------------------------------------------*/

/* "0", "950", "1.2k", "34M": at most 5 characters. */
static void write_short(char text[16], double value)
{
    static const char units[] = " kMGTPE";
    size_t unit = 0;
    while (value >= 999.5 && unit + 2 < sizeof(units)) {
        value /= 1000;
        unit++;
    }
    if (value == 0) {
        snprintf(text, 16, "0");
    } else if (unit == 0) {
        snprintf(text, 16, value < 9.95 ? "%.1f" : "%.0f", value);
    } else {
        snprintf(text, 16, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
    }
}

struct line {
    char *text;
    size_t bytes, used;
};

static void add(struct line *line, const char *text, int width)
{
    const int said =
        snprintf(line->text + line->used, line->bytes - line->used, "%*s", width, text);
    const size_t room = line->bytes - line->used;
    line->used += said < 0 ? 0 : (size_t)said < room ? (size_t)said : room - 1;
}

static void add_value(struct line *line, const json_t *object, const char *name,
                      enum top_column column)
{
    char text[16] = "-";
    if (json_object_get(object, name) != NULL) {
        write_short(text, real(object, name));
    }
    add(line, text, columns[column].width);
}

/* An IPv4 address as people write it; others as they are. */
static const char *plain(const char *address)
{
    return strncmp(address, "::ffff:", 7) == 0 ? address + 7 : address;
}

static void name_of(char *name, size_t bytes, const struct top_row *row)
{
    if (row->queue_pair == NULL) {
        const char *state = stat_word(row->program, "state");
        snprintf(name, bytes, "%s%s%s%s", stat_word(row->program, "command"),
                 strcmp(state, "runs") == 0 ? "" : " (", strcmp(state, "runs") == 0 ? "" : state,
                 strcmp(state, "runs") == 0 ? "" : ")");
    } else if (json_object_get(row->queue_pair, "peer_pid") != NULL) {
        snprintf(name, bytes, "  to %s %lld", stat_word(row->queue_pair, "peer_command"),
                 stat_number(row->queue_pair, "peer_pid"));
    } else if (stat_word(row->queue_pair, "peer")[0] != '\0') {
        snprintf(name, bytes, "  to %s", plain(stat_word(row->queue_pair, "peer")));
    } else {
        snprintf(name, bytes, "  %s", stat_word(row->queue_pair, "type"));
    }
}

int top_name_characters(const struct top_row *rows, size_t count)
{
    int most = TOP_NAME_LEAST;
    for (size_t i = 0; i < count; i++) {
        char name[128];
        name_of(name, sizeof(name), &rows[i]);
        most = (int)strlen(name) > most ? (int)strlen(name) : most;
    }
    return most;
}

void top_write_head(char *text, size_t bytes, const struct top_order *order, int name_characters)
{
    struct line line = {text, bytes, 0};
    for (enum top_column i = 0; i < TOP_COLUMNS; i++) {
        char title[16];
        snprintf(title, sizeof(title), "%s%s", i == order->column ? "*" : "", columns[i].title);
        add(&line, title, i == TOP_WAITS ? -columns[i].width : columns[i].width);
        if (i == TOP_PID) {
            add(&line, " ", 1);
            add(&line, "PROGRAM, queue pair", -name_characters);
            add(&line, " ", 1);
        }
    }
}

void top_write_row(char *text, size_t bytes, const struct top_row *row, int name_characters)
{
    struct line line = {text, bytes, 0};
    const json_t *own = row->queue_pair;
    char name[128], number[32], waits[32] = "";
    name_of(name, sizeof(name), row);
    name[name_characters < (int)sizeof(name) ? name_characters : (int)sizeof(name) - 1] = '\0';
    snprintf(number, sizeof(number), "%lld",
             own == NULL ? stat_number(row->program, "pid") : stat_number(own, "qpn"));
    if (own != NULL) {
        snprintf(waits, sizeof(waits), "%s", stat_word(own, "waits"));
    } else if (count_waiting(row->program) > 0) {
        snprintf(waits, sizeof(waits), "%zu of %zu", count_waiting(row->program),
                 json_array_size(json_object_get(row->program, "queue_pairs")));
    }
    add(&line, number, columns[TOP_PID].width);
    add(&line, " ", 1);
    add(&line, name, -name_characters);
    add(&line, " ", 1);
    add(&line, waits, -columns[TOP_WAITS].width);
    for (enum top_column i = TOP_SENT; i < TOP_COLUMNS; i++) {
        const bool is_losses = own != NULL && i == TOP_AGAIN;
        add_value(&line, own == NULL ? row->program : own, is_losses ? "losses" : columns[i].name,
                  i);
    }
}

void top_write_detail(char *text, size_t bytes, const struct top_row *row)
{
    const json_t *own = row->queue_pair;
    if (own == NULL) {
        snprintf(text, bytes, "%s on %s", stat_word(row->program, "command"),
                 stat_word(row->program, "device"));
    } else if (stat_word(own, "sentence")[0] != '\0') {
        snprintf(text, bytes, "%s", stat_word(own, "sentence"));
    } else if (stat_word(own, "peer")[0] != '\0') {
        char sent[16], received[16];
        write_short(sent, real(own, "sent_packets"));
        write_short(received, real(own, "received_packets"));
        snprintf(text, bytes,
                 "%s, %s, to queue pair %lld at %s: %s packets/s out, %s in, round trip %lld us, "
                 "%lld bytes in flight",
                 stat_word(own, "type"), stat_word(own, "state"), stat_number(own, "peer_qpn"),
                 plain(stat_word(own, "peer")), sent, received,
                 stat_number(own, "round_trip_ns") / 1000, stat_number(own, "flight_bytes"));
    } else {
        snprintf(text, bytes, "%s, %s", stat_word(own, "type"), stat_word(own, "state"));
    }
}

void top_write_sum(char *text, size_t bytes, const json_t *picture)
{
    double sums[TOP_COLUMNS] = {0};
    char words[TOP_COLUMNS][16];
    size_t waiting = 0, queue_pairs = 0, i;
    json_t *program;
    json_array_foreach((json_t *)(uintptr_t)picture, i, program)
    {
        waiting += count_waiting(program);
        queue_pairs += json_array_size(json_object_get(program, "queue_pairs"));
        for (enum top_column k = TOP_SENT; k < TOP_COLUMNS; k++) {
            sums[k] += real(program, columns[k].name);
        }
    }
    for (enum top_column k = TOP_SENT; k < TOP_COLUMNS; k++) {
        write_short(words[k], sums[k]);
    }
    snprintf(text, bytes,
             "%zu programs, %zu queue pairs, %zu wait; per second: %s bytes sent, %s messages, %s "
             "packets sent again, %s dropped",
             json_array_size(picture), queue_pairs, waiting, words[TOP_SENT], words[TOP_MESSAGES],
             words[TOP_AGAIN], words[TOP_DROPPED]);
}
