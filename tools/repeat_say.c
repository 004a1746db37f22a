/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_say - a run in words: how it ended, and the command that makes it again.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/repeat.h"

#define WROTE "it wrote: "

int repeat_status(const struct box_result *result)
{
    switch (result->end) {
    case BOX_DEADLOCK: return EXIT_DEADLOCK;
    case BOX_LATE: return EXIT_LATE;
    case BOX_HALTED: return 0;
    case BOX_STOPPED: return 130;
    case BOX_FAILED: return 1;
    case BOX_ENDED: break;
    }
    return result->unrepeatable[0] != '\0' && result->status == 0 ? EXIT_UNREPEATABLE
                                                                  : result->status;
}

void repeat_say_end(const struct box_result *result, char *into, size_t bytes)
{
    switch (result->end) {
    case BOX_DEADLOCK:
        if (result->still_ns == 0) {
            snprintf(into, bytes, "DEADLOCK: nobody can go on");
        } else {
            snprintf(into, bytes, "DEADLOCK: nobody got on for %.0f s of virtual time",
                     (double)result->still_ns / 1e9);
        }
        break;
    case BOX_LATE:
        snprintf(into, bytes, "not over at the time of --until, or on a machine after 200 days");
        break;
    case BOX_HALTED: snprintf(into, bytes, "halted"); break;
    case BOX_STOPPED: snprintf(into, bytes, "ended by hand"); break;
    case BOX_FAILED: snprintf(into, bytes, "%s", result->error); break;
    case BOX_ENDED:
        if (result->status > 128) {
            snprintf(into, bytes, "killed by signal %d (%s)", result->status - 128,
                     strsignal(result->status - 128));
        } else {
            snprintf(into, bytes, "exit status %d", result->status);
        }
        break;
    }
}

bool repeat_has_failed(const struct repeat_run *run)
{
    return repeat_status(&run->result) != 0 || run->matched[0] != '\0';
}

void repeat_kind(const struct repeat_run *run, char *into, size_t bytes)
{
    const struct box_result *result = &run->result;
    if (run->matched[0] != '\0') {
        snprintf(into, bytes, WROTE "%s", run->matched);
    } else if (result->end == BOX_ENDED && result->unrepeatable[0] != '\0') {
        snprintf(into, bytes, "not repeatable: %s", result->unrepeatable);
    } else {
        repeat_say_end(result, into, bytes);
    }
}

bool repeat_is_same_kind(const char *one, const char *other)
{
    static const char digits[] = "0123456789";
    if (strncmp(one, WROTE, strlen(WROTE)) != 0) {
        return strcmp(one, other) == 0;
    }
    while (*one != '\0' && *other != '\0') {
        const size_t of_one = strspn(one, digits), of_other = strspn(other, digits);
        if ((of_one == 0) != (of_other == 0) || (of_one == 0 && *one != *other)) {
            return false;
        }
        one += of_one == 0 ? 1 : of_one;
        other += of_other == 0 ? 1 : of_other;
    }
    return *one == *other;
}

static void append(char *into, size_t bytes, const char *first, const char *second)
{
    const size_t used = strlen(into);
    snprintf(into + used, bytes - used, "%s%s", first, second);
}

static void say_word(char *into, size_t bytes, const char *word)
{
    const bool is_plain =
        word[0] != '\0' &&
        word[strspn(word,
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,%+@")] ==
            '\0';
    append(into, bytes, is_plain ? " " : " '", word);
    append(into, bytes, is_plain ? "" : "'", "");
}

/* The options by which a seed draws less than all. */
static void say_drawn(const struct box_options *box, char *into, size_t bytes)
{
    const struct {
        bool is_left_out;
        const char *word;
    } streams[] = {
        {box->jitter == 0, "jitter"}, {box->hold_ns == 0, "hold"}, {box->no_ties, "ties"}};
    const char *before = " --without ";
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        if (streams[i].is_left_out) {
            append(into, bytes, before, streams[i].word);
            before = ",";
        }
    }
    for (size_t i = 0; box->holds != NULL && i < box->hold_count; i++) {
        char hold[40];
        snprintf(hold, sizeof(hold), "%llu.%llu", (unsigned long long)(box->holds[i] >> 32),
                 (unsigned long long)(box->holds[i] & UINT32_MAX));
        append(into, bytes, i == 0 ? " --holds " : ",", hold);
    }
}

static void say_until(uint64_t ns, char *into, size_t bytes)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    char time[40];
    size_t unit = 0;
    for (; ns % 1000 == 0 && unit + 1 < COUNT_OF(units); ns /= 1000) {
        unit++;
    }
    snprintf(time, sizeof(time), "%llu%s", (unsigned long long)ns, units[unit]);
    append(into, bytes, " --until ", time);
}

void repeat_say_command(const struct repeat *repeat, uint64_t seed, char *into, size_t bytes)
{
    snprintf(into, bytes, "nonic repeat --seed %llu", (unsigned long long)seed);
    say_drawn(&repeat->box, into, bytes);
    if (repeat->box.until_ns != 0) {
        say_until(repeat->box.until_ns, into, bytes);
    }
    if (repeat->machine != NULL) {
        say_word(into, bytes, "--machine");
        say_word(into, bytes, repeat->machine);
    }
    if (repeat->topology != NULL) {
        say_word(into, bytes, "--topology");
        say_word(into, bytes, repeat->topology);
    }
    for (int i = 0; i < repeat->setting_count; i++) {
        say_word(into, bytes, "--set");
        say_word(into, bytes, repeat->settings[i]);
    }
    for (int i = 1; i < repeat->argc; i++) {
        say_word(into, bytes, repeat->argv[i]);
    }
}
