/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The picture of two looks has what changed between them, per second; its lines are in the
 *         order that is asked for, and each is as wide as its head.
 * Method  Looks by hand, of two programs with a queue pair each: counters that grow, that wrap,
 *         that became smaller, and names that are too long for their column.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/top.h"

enum {
    PROGRAMS = 2,
    LINE_BYTES = 400,
};

static const struct stat_named everybody;

/* A look at two programs whose queue pairs, 5 and 6, are connected to each other. */
static struct top_look look_of(int64_t at_ns, const char *command, long long counters,
                               uint32_t sends_done, uint32_t unacked)
{
    struct top_look look = {.counters = json_object(), .counted_ns = at_ns, .viewed_ns = at_ns};
    look.view.programs = calloc(PROGRAMS, sizeof(*look.view.programs));
    look.view.count = PROGRAMS;
    assert_non_null(look.view.programs);
    for (int i = 0; i < PROGRAMS; i++) {
        const int pid = 100 + i;
        char key[32], own[32], peer[32], qpn[32];
        struct stat_seen *program = &look.view.programs[i];
        snprintf(key, sizeof(key), "%d", pid);
        snprintf(own, sizeof(own), "::ffff:127.0.0.%d", i + 1);
        snprintf(peer, sizeof(peer), "::ffff:127.0.0.%d", 2 - i);
        snprintf(qpn, sizeof(qpn), "%d", 5 + i);
        program->pid = pid;
        snprintf(program->command, sizeof(program->command), "%s", command);
        program->facts = json_pack("{s:s, s:I}", "own", own, "rounds", (json_int_t)at_ns);
        program->queue_pairs =
            json_pack("{s:{s:i, s:s, s:s, s:I, s:I, s:s, s:s, s:i}}", qpn, "qpn", 5 + i, "type",
                      "RC", "state", "RTS", "sends_done", (json_int_t)sends_done, "unacked",
                      (json_int_t)unacked, "own", own, "peer", peer, "peer_qpn", 6 - i);
        json_object_set_new(look.counters, key,
                            json_pack("{s:{s:s, s:I, s:I, s:I, s:I, s:I}, s:{s:{s:s, s:I, s:I}}}",
                                      "counters", "device", "somewhere", "sent_bytes",
                                      counters * (i + 1), "rdma_sends", counters, "rdma_writes",
                                      counters, "drop_short", counters, "drop_wrong_icrc", counters,
                                      "connections", qpn, "sends", i == 0 ? "rc" : "block",
                                      "losses", (json_int_t)0, "round_trip_ns", (json_int_t)7000));
    }
    return look;
}

static double real(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void assert_real(const json_t *object, const char *name, double expected)
{
    assert_true(fabs(real(object, name) - expected) < 1e-6);
}

static void changes_per_second(void **state)
{
    struct top_look before = look_of(1000000000, "sends", 1000, UINT32_MAX - 9, 0xfffffe);
    struct top_look now = look_of(3000000000, "sends", 3000, 10, 18);
    (void)state;
    json_t *picture = top_compare(&before, &now, &everybody);
    assert_int_equal(json_array_size(picture), PROGRAMS);
    const json_t *first = json_array_get(picture, 0), *second = json_array_get(picture, 1);
    assert_real(first, "sent_bytes", 1000);
    assert_real(second, "sent_bytes", 2000);
    assert_real(first, "messages", 2000); /* The sum of two kinds. */
    assert_real(first, "dropped", 2000);
    assert_real(first, "sent_again", 0);
    const json_t *pair = json_array_get(json_object_get(first, "queue_pairs"), 0);
    assert_real(pair, "messages", 10); /* Over the wrap. */
    assert_real(pair, "sent_packets", 10);
    assert_int_equal(json_integer_value(json_object_get(pair, "peer_pid")), 101);
    assert_null(json_object_get(pair, "losses")); /* RC does not know them. */
    assert_non_null(
        json_object_get(json_array_get(json_object_get(second, "queue_pairs"), 0), "losses"));
    assert_null(json_object_get(pair, "waits"));
    json_decref(picture);
    top_forget(&before);
    top_forget(&now);
}

/* Another program may have the number of one that ended. */
static void smaller_counters(void **state)
{
    struct top_look before = look_of(1000000000, "sends", 1000, 100, 100);
    struct top_look now = look_of(2000000000, "sends", 10, 50, 50);
    (void)state;
    json_t *picture = top_compare(&before, &now, &everybody);
    const json_t *first = json_array_get(picture, 0);
    assert_real(first, "sent_bytes", 0);
    assert_real(json_array_get(json_object_get(first, "queue_pairs"), 0), "messages", 0);
    json_decref(picture);
    top_forget(&before);
    top_forget(&now);
}

/* It was silent at the first look, and all that it counted before is no change. */
static void silent_program(void **state)
{
    struct top_look before = look_of(1000000000, "sends", 1000, 100, 100);
    struct top_look now = look_of(2000000000, "sends", 2000, 200, 200);
    (void)state;
    json_object_del(before.counters, "100");
    json_object_clear(before.view.programs[0].queue_pairs);
    json_t *picture = top_compare(&before, &now, &everybody);
    const json_t *first = json_array_get(picture, 0);
    assert_real(first, "sent_bytes", 0);
    assert_real(first, "dropped", 0);
    assert_real(json_array_get(json_object_get(first, "queue_pairs"), 0), "messages", 0);
    assert_real(json_array_get(picture, 1), "sent_bytes", 2000);
    json_decref(picture);
    top_forget(&before);
    top_forget(&now);
}

static void named_programs(void **state)
{
    int pids[] = {101};
    const struct stat_named named = {pids, 1};
    struct top_look before = look_of(1, "a", 0, 0, 0), now = look_of(2, "a", 0, 0, 0);
    (void)state;
    json_t *picture = top_compare(&before, &now, &named);
    assert_int_equal(json_array_size(picture), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(picture, 0), "pid")), 101);
    json_decref(picture);
    top_forget(&before);
    top_forget(&now);
}

static void assert_order(const json_t *picture, const struct top_order *order, const char *expected)
{
    struct top_row *rows;
    char found[64] = "";
    const size_t count = top_rows(picture, order, &rows);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = rows[i].queue_pair != NULL ? rows[i].queue_pair : rows[i].program;
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%lld ",
                 stat_number(one, rows[i].queue_pair != NULL ? "qpn" : "pid"));
    }
    assert_string_equal(found, expected);
    free(rows);
}

static void orders(void **state)
{
    struct top_look before = look_of(1000000000, "Sends", 0, 0, 0);
    struct top_look now = look_of(2000000000, "Sends", 1000, 1, 1);
    (void)state;
    json_t *picture = top_compare(&before, &now, &everybody);
    assert_order(picture, &(struct top_order){.column = TOP_SENT}, "101 6 100 5 ");
    assert_order(picture, &(struct top_order){.column = TOP_SENT, .is_reverse = true},
                 "100 5 101 6 ");
    assert_order(picture, &(struct top_order){.column = TOP_PID}, "100 5 101 6 ");
    assert_order(picture, &(struct top_order){.column = TOP_MESSAGES}, "100 5 101 6 ");
    assert_order(picture, &(struct top_order){.hides_queue_pairs = true}, "100 101 ");
    assert_order(picture, &(struct top_order){.filter = "send"}, "100 5 101 6 ");
    assert_order(picture, &(struct top_order){.filter = "101"}, "101 6 ");
    assert_order(picture, &(struct top_order){.filter = "other"}, "");
    json_decref(picture);
    top_forget(&before);
    top_forget(&now);
}

static void widths(void **state)
{
    static const long long counts[] = {0, 7, 999, 1000, 99999, 1000000, 999999999999999};
    static const struct top_order order = {.column = TOP_SENT};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct top_look before = look_of(1000000000, "a", 0, 0, 0);
        struct top_look now = look_of(
            2000000000, "a program whose name is longer than its column is wide", counts[i], 3, 3);
        struct top_row *rows;
        char head[LINE_BYTES], line[LINE_BYTES];
        json_t *picture = top_compare(&before, &now, &everybody);
        const size_t count = top_rows(picture, &order, &rows);
        assert_int_equal(count, 2 * PROGRAMS);
        assert_true(top_name_characters(rows, count) > TOP_NAME_LEAST);
        top_write_head(head, sizeof(head), &order, TOP_NAME_LEAST);
        for (size_t k = 0; k < count; k++) {
            top_write_row(line, sizeof(line), &rows[k], TOP_NAME_LEAST);
            assert_int_equal(strlen(line), strlen(head));
            assert_null(strstr(line, "99999")); /* 100k */
            top_write_detail(line, 20, &rows[k]);
            assert_true(strlen(line) < 20);
        }
        free(rows);
        json_decref(picture);
        top_forget(&before);
        top_forget(&now);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_per_second),
        cmocka_unit_test(smaller_counters),
        cmocka_unit_test(silent_program),
        cmocka_unit_test(named_programs),
        cmocka_unit_test(orders),
        cmocka_unit_test(widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
