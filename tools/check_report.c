/* SPDX-License-Identifier: BSD-2-Clause
 *
 * check_report - the findings of a run: read from the lines that its programs write, and shown.
 */
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"
#include "tools/stat_text.h"

enum {
    CALLS_SHOWN = 6,
};

static const char *const levels[] = {"error", "luck", "advice"};

static const char *word(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "" : value;
}

/* -- Reading ------------------------------------------------------------------------------------*/

/* NAME=VALUE, with tabs between them. It is the caller's. */
static json_t *read_pairs(char *rest)
{
    json_t *pairs = json_object();
    char *pair;
    while ((pair = strsep(&rest, "\t")) != NULL) {
        char *value = strchr(pair, '=');
        if (value != NULL) {
            *value++ = '\0';
            stat_clean(value);
            json_object_set_new(pairs, pair, json_string(value));
        }
    }
    return pairs;
}

/* -1: no rule has this name. */
static int rule_named(const char *name)
{
    for (int i = 0; i < CHECKER_RULE_COUNT; i++) {
        if (strcmp(checker_rules[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static json_t *read_calls(const char *text)
{
    char *copy = strdup(text), *rest = copy, *one;
    json_t *calls = json_array();
    while ((one = strsep(&rest, ";")) != NULL) {
        check_place(one, calls);
    }
    free(copy);
    return calls;
}

/* -- Exceptions ---------------------------------------------------------------------------------*/

static bool matches(const char *pattern, const json_t *calls)
{
    size_t i;
    json_t *place;
    json_array_foreach(calls, i, place)
    {
        if (fnmatch(pattern, word(place, "function"), 0) == 0 ||
            fnmatch(pattern, word(place, "module"), 0) == 0 ||
            fnmatch(pattern, word(place, "source"), 0) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_excepted(const struct check_wishes *wishes, const char *rule, const json_t *finding)
{
    const size_t length = strlen(rule);
    for (size_t i = 0; i < wishes->exception_count; i++) {
        const char *exception = wishes->exceptions[i];
        if (strncmp(exception, rule, length) == 0 && exception[length] == ':' &&
            (matches(exception + length + 1, json_object_get(finding, "at")) ||
             matches(exception + length + 1, json_object_get(finding, "posted")) ||
             matches(exception + length + 1, json_object_get(finding, "freed")))) {
            return true;
        }
    }
    return false;
}

/* -- Showing ------------------------------------------------------------------------------------*/

static void print_call(const char *title, const json_t *place)
{
    const char *function = word(place, "function"), *source = word(place, "source");
    const char *slash = strrchr(source, '/');
    fprintf(stderr, "    %-10s ", title);
    if (source[0] != '\0') {
        fprintf(stderr, "%s (%s:%" JSON_INTEGER_FORMAT ")\n", function,
                slash == NULL ? source : slash + 1,
                json_integer_value(json_object_get(place, "line")));
    } else if (function[0] != '\0') {
        fprintf(stderr, "%s (%s+%s)\n", function, word(place, "module"), word(place, "offset"));
    } else {
        fprintf(stderr, "%s+%s\n", word(place, "module"), word(place, "offset"));
    }
}

static bool is_of_c_library(const json_t *place)
{
    return strncmp(word(place, "module"), "libc.so", 7) == 0 ||
           strcmp(word(place, "function"), "_start") == 0;
}

static void print_calls(const char *title, const json_t *calls, size_t most)
{
    size_t i;
    json_t *place;
    json_array_foreach(calls, i, place)
    {
        if (i < most && (i == 0 || !is_of_c_library(place))) {
            print_call(i == 0 ? title : "", place);
        }
    }
}

static void print(const json_t *finding, const struct checker_rule_text *rule)
{
    const json_t *at = json_object_get(finding, "at"), *posted = json_object_get(finding, "posted");
    const bool is_same = json_equal(json_array_get(at, 0), json_array_get(posted, 0));
    const char *qp = word(finding, "qp");
    static const char *const titles[] = {"error", "works by luck", "advice"};
    fprintf(stderr, "\nnonic check: %s (%s): %s\n", titles[rule->level], rule->name,
            word(finding, "sentence"));
    if (!is_same) {
        print_calls("posted at", posted, CALLS_SHOWN);
    }
    print_calls("freed at", json_object_get(finding, "freed"), CALLS_SHOWN);
    print_calls(is_same ? "posted at" : "found at", at, CALLS_SHOWN);
    fprintf(stderr, "    %-10s %s\n    %-10s %s\n    %-10s process %s", "cure", rule->cure,
            "source", rule->source, "in", word(finding, "pid"));
    if (strcmp(qp, "0") != 0 && qp[0] != '\0') {
        fprintf(stderr, ", queue pair %s", qp);
    }
    if (word(finding, "seconds")[0] != '\0') {
        fprintf(stderr, ", after %s s", word(finding, "seconds"));
    }
    fprintf(stderr, "\n");
}

static void print_json(const json_t *finding, const struct checker_rule_text *rule)
{
    json_t *all = json_copy((json_t *)(uintptr_t)finding);
    json_object_set_new(all, "level", json_string(levels[rule->level]));
    json_object_set_new(all, "cure", json_string(rule->cure));
    json_object_set_new(all, "source", json_string(rule->source));
    json_dumpf(all, stderr, JSON_COMPACT);
    fputc('\n', stderr);
    json_decref(all);
}

/* -- Lines --------------------------------------------------------------------------------------*/

void check_begin(struct check_report *report, const struct check_wishes *wishes)
{
    *report = (struct check_report){.wishes = wishes, .places = json_object()};
}

static void name_place(const json_t *pairs, char *name, size_t bytes)
{
    snprintf(name, bytes, "%s %s", word(pairs, "pid"), word(pairs, "place"));
}

/* A process is told once what is found at a place of its program; several processes of a program
 * find the same. */
static void on_found(struct check_report *report, const json_t *pairs)
{
    char name[128];
    const int rule = rule_named(word(pairs, "rule"));
    if (rule < 0 || report->wishes->left_out[rule]) {
        return;
    }
    const struct checker_rule_text *text = &checker_rules[rule];
    if (text->level == CHECKER_ADVICE && !report->wishes->advice) {
        report->silent++;
        return;
    }
    json_t *finding =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "rule", text->name, "pid",
                  word(pairs, "pid"), "qp", word(pairs, "qp"), "seconds", word(pairs, "seconds"),
                  "sentence", word(pairs, "text"), "posted", read_calls(word(pairs, "posted")),
                  "freed", read_calls(word(pairs, "freed")), "at", read_calls(word(pairs, "at")));
    if (!is_excepted(report->wishes, text->name, finding)) {
        report->levels[text->level]++;
        name_place(pairs, name, sizeof(name));
        json_object_set_new(report->places, name,
                            json_pack("{s:s, s:s, s:i}", "rule", text->name, "sentence",
                                      word(pairs, "text"), "count", 1));
        (report->wishes->json ? print_json : print)(finding, text);
    }
    json_decref(finding);
}

static void on_counted(struct check_report *report, const json_t *pairs)
{
    char name[128];
    name_place(pairs, name, sizeof(name));
    json_t *place = json_object_get(report->places, name);
    if (place != NULL) {
        json_object_set_new(place, "count", json_integer(atoll(word(pairs, "count"))));
    }
}

static void on_process(struct check_report *report, const json_t *pairs)
{
    int *more = realloc(report->processes, (report->process_count + 1) * sizeof(*more));
    if (more != NULL) {
        report->processes = more;
        more[report->process_count++] = atoi(word(pairs, "pid"));
    }
}

void check_line(struct check_report *report, char *line)
{
    char *rest = strchr(line, '\t');
    if (rest == NULL) {
        return;
    }
    *rest++ = '\0';
    json_t *pairs = read_pairs(rest);
    if (strcmp(line, "found") == 0) {
        on_found(report, pairs);
    } else if (strcmp(line, "counted") == 0) {
        on_counted(report, pairs);
    } else if (strcmp(line, "process") == 0) {
        on_process(report, pairs);
    }
    json_decref(pairs);
}

/* Numbers with commas between them, as many as there is room for. */
static void list_numbers(const json_t *numbers, char *text, size_t bytes)
{
    size_t i, used = 0;
    json_t *number;
    text[0] = '\0';
    json_array_foreach(numbers, i, number)
    {
        if (used + 16 < bytes) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%" JSON_INTEGER_FORMAT,
                                     i == 0 ? "" : ", ", json_integer_value(number));
        }
    }
}

void check_hang(struct check_report *report, int pid, bool certain, const json_t *hang)
{
    const enum checker_rule rule = certain ? CHECKER_HANG : CHECKER_STANDS;
    const char *sentence = word(hang, "sentence");
    char number[16], name[1024], queue_pairs[256];
    snprintf(number, sizeof(number), "%d", pid);
    snprintf(name, sizeof(name), "%d %s", pid, sentence);
    if (json_object_get(report->places, name) != NULL || report->wishes->left_out[rule]) {
        return;
    }
    list_numbers(json_object_get(hang, "queue_pairs"), queue_pairs, sizeof(queue_pairs));
    json_t *finding = json_pack("{s:s, s:s, s:s, s:s}", "rule", checker_rules[rule].name, "pid",
                                number, "qp", queue_pairs, "sentence", sentence);
    report->levels[checker_rules[rule].level]++;
    json_object_set(report->places, name, finding);
    (report->wishes->json ? print_json : print)(finding, &checker_rules[rule]);
    json_decref(finding);
}

/* -- The end ------------------------------------------------------------------------------------*/

static void print_counts(const struct check_report *report)
{
    const char *name;
    json_t *place;
    json_object_foreach(report->places, name, place)
    {
        const json_int_t count = json_integer_value(json_object_get(place, "count"));
        if (count > 1) {
            fprintf(stderr,
                    "nonic check: %s was found %" JSON_INTEGER_FORMAT " times there: %.60s...\n",
                    word(place, "rule"), count, word(place, "sentence"));
        }
    }
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void print_summary(const struct check_report *report)
{
    const size_t *count = report->levels;
    if (report->process_count == 0) {
        fprintf(stderr, "\nnonic check: no program of the run opened an RDMA device\n");
        return;
    }
    fprintf(stderr, "\n");
    print_counts(report);
    fprintf(stderr, "nonic check: %zu error%s, %zu place%s that work%s by luck",
            count[CHECKER_ERROR], plural(count[CHECKER_ERROR]), count[CHECKER_LUCK],
            plural(count[CHECKER_LUCK]), count[CHECKER_LUCK] == 1 ? "s" : "");
    const size_t advice = report->silent + count[CHECKER_ADVICE];
    if (advice > 0) {
        fprintf(stderr, ", %zu piece%s of advice%s", advice, plural(advice),
                report->silent > 0 ? " (--check=all tells)" : "");
    }
    fprintf(stderr, ", in %zu process%s\n", report->process_count,
            report->process_count == 1 ? "" : "es");
}

int check_end(struct check_report *report, int status)
{
    if (report->wishes->json) {
        json_t *summary = json_pack("{s:{s:I, s:I, s:I, s:I}}", "summary", "errors",
                                    (json_int_t)report->levels[CHECKER_ERROR], "luck",
                                    (json_int_t)report->levels[CHECKER_LUCK], "advice",
                                    (json_int_t)report->levels[CHECKER_ADVICE], "processes",
                                    (json_int_t)report->process_count);
        json_dumpf(summary, stderr, JSON_COMPACT);
        fputc('\n', stderr);
        json_decref(summary);
    } else {
        print_summary(report);
    }
    json_decref(report->places);
    free(report->processes);
    return report->levels[CHECKER_ERROR] > 0 ? CHECK_STATUS : status;
}
