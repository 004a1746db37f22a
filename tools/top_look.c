/* SPDX-License-Identifier: BSD-2-Clause
 *
 * top_look - two looks at running programs, and what changed between them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "drivers/stat_ask.h"
#include "tools/stat_hang.h"
#include "tools/top.h"

/* -- Looking ------------------------------------------------------------------------------------*/

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void set_key(char key[32], long long number)
{
    snprintf(key, 32, "%lld", number);
}

/* A list of connections as an object, by their queue pairs' numbers. */
static json_t *by_number(const json_t *connections)
{
    json_t *object = json_object(), *connection;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)connections, i, connection)
    {
        char key[32];
        set_key(key, stat_number(connection, "qpn"));
        json_object_set(object, key, connection);
    }
    return object;
}

/* False: the program is of a later version. */
static bool take_counters(struct top_look *look, const struct stat_program *program)
{
    char key[32];
    json_t *connections = json_array();
    json_t *counters = stat_parse_counters(program->text, connections);
    if (counters != NULL) {
        set_key(key, program->pid);
        json_object_set_new(
            look->counters, key,
            json_pack("{s:o, s:o}", "counters", counters, "connections", by_number(connections)));
    }
    json_decref(connections);
    return counters != NULL;
}

void top_look(struct top_look *look)
{
    struct stat_program *programs;
    *look = (struct top_look){.counters = json_object(), .counted_ns = now_ns()};
    const size_t count = stat_find(&programs);
    stat_ask(programs, count, true, NULL);
    for (size_t i = 0; i < count; i++) {
        look->left_out.foreign += programs[i].outcome == STAT_FOREIGN;
        look->left_out.newer +=
            programs[i].outcome == STAT_ANSWERED && !take_counters(look, &programs[i]);
    }
    stat_forget(programs, count);
    look->viewed_ns = now_ns();
    look->view = stat_view_look();
}

void top_forget(struct top_look *look)
{
    json_decref(look->counters);
    stat_view_forget(&look->view);
}

/* -- Comparing ----------------------------------------------------------------------------------*/

/* One program, before and now. */
struct change {
    const struct stat_seen *before, *now;
    const json_t *counters[2], *connections[2];
    const struct stat_view *view;
    double seconds, view_seconds; /* Between the counters, and between the queue pairs. */
};

static const json_t *part_of(const struct top_look *look, int pid, const char *part)
{
    char key[32];
    set_key(key, pid);
    return json_object_get(json_object_get(look->counters, key), part);
}

/* A counter that became smaller is another program's; one of a program that did not answer is not
 * known. */
static double rate(const struct change *change, long long before, long long now)
{
    return change->counters[0] == NULL || now < before ? 0
                                                       : (double)(now - before) / change->seconds;
}

/* The growth of some counters together, per second: those in the list, which ends with NULL. */
static double rate_of(const struct change *change, const char *const names[])
{
    double sum = 0;
    for (size_t i = 0; names[i] != NULL; i++) {
        sum += rate(change, stat_number(change->counters[0], names[i]),
                    stat_number(change->counters[1], names[i]));
    }
    return sum;
}

static double rate_of_dropped(const struct change *change)
{
    const char *name;
    json_t *value;
    double sum = 0;
    json_object_foreach((json_t *)(uintptr_t)change->counters[1], name, value)
    {
        if (strncmp(name, "drop_", strlen("drop_")) == 0) {
            sum += rate(change, stat_number(change->counters[0], name), json_integer_value(value));
        }
    }
    return sum;
}

static void add_rates(json_t *object, const struct change *change)
{
    static const struct {
        const char *name;
        const char *counters[10];
    } rates[] = {
        {"sent_bytes", {"sent_bytes"}},
        {"received_bytes", {"rcvd_bytes"}},
        {"messages",
         {"rdma_sends", "rdma_writes", "rdma_reads", "rdma_atomics", "rdma_flushes", "srd_send_wrs",
          "srd_rdma_read_wrs", "srd_rdma_write_wrs"}},
        {"receives", {"rdma_recvs", "srd_recv_wrs"}},
        {"sent_again", {"retransmitted_pkts"}},
        {"not_ready", {"rcvd_rnr_err", "send_rnr_err"}},
    };
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        json_object_set_new(object, rates[i].name, json_real(rate_of(change, rates[i].counters)));
    }
    json_object_set_new(object, "dropped", json_real(rate_of_dropped(change)));
}

/* Counts of 32 bits go on from 0. */
static double wrapped(const struct change *change, const json_t *before, const json_t *now,
                      const char *name, uint32_t mask)
{
    const uint32_t more = (uint32_t)(stat_number(now, name) - stat_number(before, name)) & mask;
    return before == NULL || more > mask / 2 ? 0 : more / change->view_seconds;
}

static void add_peer(json_t *object, const struct change *change, const json_t *queue_pair)
{
    const json_t *peer;
    const struct stat_seen *program = stat_view_peer(change->view, queue_pair, &peer);
    if (stat_word(queue_pair, "peer")[0] != '\0') {
        json_object_set(object, "peer", json_object_get(queue_pair, "peer"));
        json_object_set(object, "peer_qpn", json_object_get(queue_pair, "peer_qpn"));
    }
    if (program != NULL) {
        json_object_set_new(object, "peer_pid", json_integer(program->pid));
        json_object_set_new(object, "peer_command", json_string(program->command));
    }
}

static json_t *queue_pair_of(const struct change *change, const char *key, const json_t *now)
{
    static const uint32_t all = UINT32_MAX, psns = 0xffffff;
    const json_t *before = json_object_get(change->before->queue_pairs, key);
    const json_t *old = json_object_get(change->connections[0], key);
    const json_t *connection = json_object_get(change->connections[1], key);
    json_t *object =
        json_pack("{s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:I, s:I}", "qpn", stat_number(now, "qpn"),
                  "type", stat_word(now, "type"), "state", stat_word(now, "state"), "messages",
                  wrapped(change, before, now, "sends_done", all), "receives",
                  wrapped(change, before, now, "receives_used", all), "sent_packets",
                  wrapped(change, before, now, "unacked", psns), "received_packets",
                  wrapped(change, before, now, "expected", psns), "round_trip_ns",
                  stat_number(connection, "round_trip_ns"), "flight_bytes",
                  stat_number(connection, "flight_bytes"));
    /* RC counts losses only while it may change to blocks: 0 says nothing. */
    if (old != NULL && (stat_number(connection, "losses") > 0 ||
                        strcmp(stat_word(connection, "sends"), "block") == 0)) {
        json_object_set_new(
            object, "losses",
            json_real(rate(change, stat_number(old, "losses"), stat_number(connection, "losses"))));
    }
    add_peer(object, change, now);
    return object;
}

static void add_wait(json_t *queue_pair, const json_t *findings)
{
    const char *sentence;
    json_t *finding, *number;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)findings, sentence, finding)
    {
        json_array_foreach(json_object_get(finding, "queue_pairs"), i, number)
        {
            if (json_integer_value(number) == stat_number(queue_pair, "qpn")) {
                json_object_set(queue_pair, "waits", json_object_get(finding, "rule"));
                json_object_set(queue_pair, "sentence", json_object_get(finding, "sentence"));
            }
        }
    }
}

static json_t *queue_pairs_of(const struct change *change)
{
    json_t *list = json_array(), *now;
    json_t *findings = stat_hang_judge(change->before, change->now, change->view);
    const char *key;
    json_object_foreach(change->now->queue_pairs, key, now)
    {
        json_t *queue_pair = queue_pair_of(change, key, now);
        add_wait(queue_pair, findings);
        json_array_append_new(list, queue_pair);
    }
    json_decref(findings);
    return list;
}

static json_t *program_of(const struct change *change)
{
    const struct stat_seen *now = change->now;
    const char *state = now->is_stopped ? "stopped" : now->is_silent ? "silent" : "runs";
    json_t *object = json_pack("{s:i, s:I, s:s, s:s, s:s}", "pid", now->pid, "uid",
                               (json_int_t)now->user, "command", now->command, "device",
                               stat_word(change->counters[1], "device"), "state", state);
    add_rates(object, change);
    json_object_set_new(object, "queue_pairs", queue_pairs_of(change));
    return object;
}

static bool is_wanted(const struct stat_named *named, int pid)
{
    bool is = named->count == 0;
    for (size_t i = 0; i < named->count; i++) {
        is |= named->pids[i] == pid;
    }
    return is;
}

static double seconds_between(int64_t before_ns, int64_t now_ns)
{
    return now_ns > before_ns ? (double)(now_ns - before_ns) / 1e9 : 1;
}

json_t *top_compare(struct top_look *before, const struct top_look *now,
                    const struct stat_named *named)
{
    json_t *picture = json_array();
    const double seconds = seconds_between(before->counted_ns, now->counted_ns);
    const double view_seconds = seconds_between(before->viewed_ns, now->viewed_ns);
    for (size_t i = 0; i < now->view.count; i++) {
        const int pid = now->view.programs[i].pid;
        const struct stat_seen *program = &now->view.programs[i];
        const struct change change = {
            .before = stat_view_same(&before->view, program),
            .now = program,
            .counters = {part_of(before, pid, "counters"), part_of(now, pid, "counters")},
            .connections = {part_of(before, pid, "connections"), part_of(now, pid, "connections")},
            .view = &now->view,
            .seconds = seconds,
            .view_seconds = view_seconds,
        };
        if (change.before != NULL && is_wanted(named, pid)) {
            json_array_append_new(picture, program_of(&change));
        }
    }
    return picture;
}
