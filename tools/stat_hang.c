/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_hang - which queue pairs of running programs stand still, and what for.
 *
 * A queue pair stands still if nothing of it changed in a second: neither what it has to do nor its
 * packet sequence numbers. Rules below say what it waits for: each is a row.
 */
#include "tools/stat_hang.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

#define PAUSE_S      1
#define SENTENCE_MAX 512
#define FINDINGS_MAX 32 /* A program's, that are printed. */
#define NUMBERS_MAX  8  /* Queue pairs of one sentence that are named. */

static bool is(const json_t *object, const char *name, const char *value)
{
    return strcmp(stat_word(object, name), value) == 0;
}

/* -- Rules --------------------------------------------------------------------------------------*/

/* A queue pair that stands still, and its peer's, if a program that answered has it. */
struct still {
    const struct stat_seen *peer_program,
        *silent; /* One that did not answer; NULL: there is none. */
    const json_t *own, *peer;
    bool polls; /* The program looked for completions or packets meanwhile. */
    char *sentence;
};

static bool say(const struct still *still, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool say(const struct still *still, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(still->sentence, SENTENCE_MAX, format, values);
    va_end(values);
    return true;
}

static const char *plural(long long count)
{
    return count == 1 ? "" : "s";
}

/* The ending of what it does. */
static const char *verb(long long count)
{
    return count == 1 ? "s" : "";
}

/* An IPv4 address as people write it; others as they are. */
static const char *plain(const char *address)
{
    return strncmp(address, "::ffff:", 7) == 0 ? address + 7 : address;
}

/* Completions that nobody took, in the queue for receives or in that for sends. */
static long long untaken(const struct still *still, const char **armed)
{
    const bool received = stat_number(still->own, "received") > 0;
    *armed = stat_word(still->own, received ? "received_armed" : "sent_armed");
    return stat_number(still->own, received ? "received" : "sent");
}

static bool judge_wakeup(const struct still *still)
{
    const char *armed;
    const long long count = untaken(still, &armed);
    return count > 0 && !still->polls && strcmp(armed, "next") == 0 &&
           say(still,
               "%lld completion%s came before the program asked for an event (ibv_req_notify_cq), "
               "so they bring none, and it did not poll for a second: if it waits for an event, it "
               "waits for ever. Poll once more after asking, until the queue is empty, and wait "
               "only then",
               count, plural(count));
}

static bool judge_solicited(const struct still *still)
{
    const char *armed;
    const long long count = untaken(still, &armed);
    return count > 0 && !still->polls && strcmp(armed, "solicited") == 0 &&
           say(still,
               "%lld completion%s lie%s in the queue, which asks for an event at solicited ones "
               "only: the sender sets IBV_SEND_SOLICITED, or the program asks for any "
               "(ibv_req_notify_cq with 0)",
               count, plural(count), verb(count));
}

static bool judge_unpolled(const struct still *still)
{
    const char *armed;
    const long long count = untaken(still, &armed);
    return count > 0 && strcmp(armed, "no") == 0 &&
           say(still, "%lld completion%s lie%s in the queue, which %s", count, plural(count),
               verb(count),
               still->polls ? "the program does not poll, while it polls another one"
                            : "the program did not poll for a second");
}

static bool judge_error(const struct still *still)
{
    return (is(still->own, "state", "error") || is(still->own, "state", "SQE")) &&
           say(still, "it is in the error state: nothing that is posted is carried out. The status "
                      "of its first failed completion says why");
}

static bool judge_receive(const struct still *still)
{
    const long long sends = stat_number(still->own, "sends");
    const char *ending = verb(sends);
    if (sends == 0 || stat_number(still->own, "rnr") == 0) {
        return false;
    }
    if (still->peer == NULL) {
        return say(still, "%lld send%s wait%s for a receive: the peer has none posted (RNR)", sends,
                   plural(sends), ending);
    }
    return say(still,
               "%lld send%s wait%s for a receive: queue pair %lld of process %d (%s) has %lld "
               "posted",
               sends, plural(sends), ending, stat_number(still->peer, "qpn"),
               still->peer_program->pid, still->peer_program->command,
               stat_number(still->peer, "receives"));
}

static bool judge_peer_state(const struct still *still)
{
    return stat_number(still->own, "sends") > 0 && still->peer != NULL &&
           !is(still->peer, "state", "RTR") && !is(still->peer, "state", "RTS") &&
           !is(still->peer, "state", "SQD") &&
           say(still,
               "it waits for queue pair %lld of process %d (%s), which takes no packets: its state "
               "is %s",
               stat_number(still->peer, "qpn"), still->peer_program->pid,
               still->peer_program->command, stat_word(still->peer, "state"));
}

static bool has_nothing(const json_t *queue_pair)
{
    return stat_number(queue_pair, "sends") == 0 && stat_number(queue_pair, "sent") == 0 &&
           stat_number(queue_pair, "received") == 0 && stat_number(queue_pair, "receives") > 0;
}

/* A peer that does not answer us cannot say which queue pairs it has. */
static bool judge_silent(const struct still *still)
{
    return (stat_number(still->own, "sends") > 0 || has_nothing(still->own)) &&
           still->peer == NULL && still->silent != NULL &&
           json_object_get(still->own, "peer_qpn") != NULL &&
           say(still, "it waits for its peer. That may be process %d (%s), which %s",
               still->silent->pid, still->silent->command,
               still->silent->is_stopped ? "is stopped" : "does not answer");
}

static bool judge_unanswered(const struct still *still)
{
    const long long sends = stat_number(still->own, "sends");
    if (sends == 0 || json_object_get(still->own, "peer_qpn") == NULL) {
        return false;
    }
    if (still->peer != NULL) {
        return say(still, "%lld request%s got no answer from queue pair %lld of process %d (%s)",
                   sends, plural(sends), stat_number(still->peer, "qpn"), still->peer_program->pid,
                   still->peer_program->command);
    }
    return say(still,
               "%lld request%s got no answer: no program of yours here has queue pair %lld at %s. "
               "It is on another machine, of another user, or gone",
               sends, plural(sends), stat_number(still->own, "peer_qpn"),
               plain(stat_word(still->own, "peer")));
}

static bool judge_both(const struct still *still)
{
    return still->peer != NULL && has_nothing(still->own) && has_nothing(still->peer) &&
           say(still,
               "it and queue pair %lld of process %d (%s) wait for each other: "
               "both have receives posted, and neither has anything to send",
               stat_number(still->peer, "qpn"), still->peer_program->pid,
               still->peer_program->command);
}

/* The first that fits is said. */
static const struct {
    const char *name;
    bool (*judge)(const struct still *still);
} rules[] = {
    {"lost-wakeup", judge_wakeup},  {"not-solicited", judge_solicited},
    {"not-polled", judge_unpolled}, {"error-state", judge_error},
    {"no-receive", judge_receive},  {"peer-state", judge_peer_state},
    {"silent-peer", judge_silent},  {"no-answer", judge_unanswered},
    {"both-wait", judge_both},
};

/* -- Judging ------------------------------------------------------------------------------------*/

static void find_peer(struct still *still, const struct stat_view *view)
{
    still->peer_program = stat_view_peer(view, still->own, &still->peer);
    for (size_t i = 0; i < view->count; i++) {
        /* A stopped one is it rather than one that is slow to answer. */
        if (view->programs[i].is_silent &&
            (still->silent == NULL || view->programs[i].is_stopped)) {
            still->silent = &view->programs[i];
        }
    }
}

/* Puts the queue pair among those of its sentence: {sentence: {rule, queue_pairs}}. */
static void note(json_t *findings, const char *sentence, const char *rule, long long qpn)
{
    json_t *finding = json_object_get(findings, sentence);
    if (finding == NULL) {
        finding = json_pack("{s:s, s:s, s:[]}", "rule", rule, "sentence", sentence, "queue_pairs");
        json_object_set_new(findings, sentence, finding);
    }
    json_array_append_new(json_object_get(finding, "queue_pairs"), json_integer(qpn));
}

/* A message that is tried again and again stands still, whether or not it pauses just now. */
static bool moved(json_t *before, const json_t *now)
{
    json_object_set(before, "rnr", json_object_get(now, "rnr"));
    return !json_equal(before, now);
}

json_t *stat_hang_judge(const struct stat_seen *before, const struct stat_seen *now,
                        const struct stat_view *view)
{
    json_t *findings = json_object();
    const char *key;
    json_t *own;
    json_object_foreach(now->queue_pairs, key, own)
    {
        char sentence[SENTENCE_MAX];
        struct still still = {.own = own,
                              .polls = stat_number(before->facts, "rounds") !=
                                       stat_number(now->facts, "rounds"),
                              .sentence = sentence};
        bool is_said = moved(json_object_get(before->queue_pairs, key), own);
        find_peer(&still, view);
        for (size_t i = 0; i < COUNT_OF(rules) && !is_said; i++) {
            is_said = rules[i].judge(&still);
            if (is_said) {
                note(findings, sentence, rules[i].name, stat_number(own, "qpn"));
            }
        }
    }
    return findings;
}

/* -- Showing ------------------------------------------------------------------------------------*/

static void print_finding(const json_t *finding)
{
    const json_t *numbers = json_object_get(finding, "queue_pairs");
    const size_t count = json_array_size(numbers);
    printf("  queue pair%s ", count == 1 ? "" : "s");
    for (size_t i = 0; i < count && i < NUMBERS_MAX; i++) {
        printf("%s%" JSON_INTEGER_FORMAT, i == 0 ? "" : ", ",
               json_integer_value(json_array_get(numbers, i)));
    }
    if (count > NUMBERS_MAX) {
        printf(" and %zu more", count - NUMBERS_MAX);
    }
    printf(": %s (%s)\n", stat_word(finding, "sentence"), stat_word(finding, "rule"));
}

static void print(const struct stat_seen *program, json_t *findings)
{
    const char *sentence;
    json_t *finding;
    const size_t count = json_object_size(program->queue_pairs);
    printf("%d %s%s\n", program->pid, program->command, program->is_stopped ? " (stopped)" : "");
    if (program->is_silent) {
        printf("  it did not answer\n");
    } else if (json_object_size(findings) == 0) {
        printf(
            "  nothing hangs: its %zu queue pair%s moved in the last second, or %s nothing to do\n",
            count, plural((long long)count), count == 1 ? "has" : "have");
    }
    size_t told = 0;
    json_object_foreach(findings, sentence, finding)
    {
        if (told++ < FINDINGS_MAX) {
            print_finding(finding);
        }
    }
    if (told > FINDINGS_MAX) {
        printf("  and %zu more: --json has all\n", told - FINDINGS_MAX);
    }
}

static void add(json_t *list, const struct stat_seen *program, json_t *findings)
{
    json_t *all = json_array();
    const char *sentence;
    json_t *finding;
    json_object_foreach(findings, sentence, finding)
    {
        json_array_append(all, finding);
    }
    json_array_append_new(list, json_pack("{s:i, s:I, s:o}", "pid", program->pid, "uid",
                                          (long long)program->user, "hangs", all));
}

static bool is_wanted(const struct stat_named *named, int pid)
{
    bool is = named->count == 0;
    for (size_t i = 0; i < named->count; i++) {
        is |= named->pids[i] == pid;
    }
    return is;
}

json_t *stat_hang_find(const struct stat_named *named)
{
    struct stat_view before = stat_view_look();
    sleep(PAUSE_S);
    struct stat_view now = stat_view_look();
    json_t *list = json_array();
    for (size_t i = 0; i < now.count; i++) {
        const struct stat_seen *earlier = stat_view_same(&before, &now.programs[i]);
        if (earlier != NULL && is_wanted(named, now.programs[i].pid)) {
            json_t *findings = stat_hang_judge(earlier, &now.programs[i], &now);
            add(list, &now.programs[i], findings);
            json_decref(findings);
        }
    }
    stat_view_forget(&before);
    stat_view_forget(&now);
    return list;
}

int stat_hang(const struct stat_named *named, bool json)
{
    struct stat_view before = stat_view_look();
    sleep(PAUSE_S);
    struct stat_view now = stat_view_look();
    size_t answered = 0;
    struct left_out said = {0};
    json_t *list = json_array();
    for (size_t i = 0; i < now.count; i++) {
        const struct stat_seen *earlier = stat_view_same(&before, &now.programs[i]);
        if (earlier == NULL || !is_wanted(named, now.programs[i].pid)) {
            continue;
        }
        answered++;
        json_t *findings = stat_hang_judge(earlier, &now.programs[i], &now);
        if (json) {
            add(list, &now.programs[i], findings);
        } else {
            print(&now.programs[i], findings);
        }
        json_decref(findings);
    }
    if (json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(list);
    stat_say_left_out(&said, &now.left_out);
    if (answered == 0 && !json) {
        fprintf(stderr, named->count > 0
                            ? "nonic: no such program runs on nonic, or it does not answer\n"
                            : "nonic: no program of yours runs on nonic\n");
    }
    stat_view_forget(&before);
    stat_view_forget(&now);
    return answered > 0 ? 0 : 1;
}
