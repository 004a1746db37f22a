/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_shrink - what of a seed a failure needs: all else is left out, one thing after the other,
 * as long as the run fails alike (delta debugging: Zeller and Hildebrandt, 2002).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/repeat.h"

#define LONG_NS UINT64_C(200000000)

enum {
    KIND_BYTES = 500,
    COMMAND_BYTES = 8000,
};

struct shrink {
    struct repeat repeat; /* The least that is known to fail. */
    uint64_t seed;
    char kind[KIND_BYTES];
    struct repeat_run *run;
    unsigned runs;
    bool is_terminal, stands_still;
};

/* Standstills are alike, whoever tells of them: the box, or the time of --until. */
static bool is_alike(const struct shrink *shrink)
{
    char kind[KIND_BYTES];
    const enum box_end end = shrink->run->result.end;
    repeat_kind(shrink->run, kind, sizeof(kind));
    return shrink->stands_still ? end == BOX_DEADLOCK || end == BOX_LATE
                                : repeat_is_same_kind(kind, shrink->kind);
}

/* Runs it; true: it fails as the first run did. */
static bool fails(struct shrink *shrink, const struct repeat *repeat)
{
    char error[1000];
    shrink->runs++;
    if (shrink->is_terminal) {
        fprintf(stderr, "\rrun %u, threads are held back %zu times ", shrink->runs,
                repeat->box.hold_count);
    }
    return repeat_run(repeat, shrink->seed, true, shrink->run, error, sizeof(error)) &&
           repeat_has_failed(shrink->run) && is_alike(shrink);
}

static bool try(struct shrink *shrink, struct repeat smaller)
{
    const bool is_enough = fails(shrink, &smaller);
    if (is_enough) {
        shrink->repeat = smaller;
    }
    return is_enough;
}

/* A run that has not ended long after the first one got on for the last time stands still, too, so
 * that nobody has to wait for the proof each time. The last run has all the time again. */
static uint64_t time_enough(const struct repeat_run *run, uint64_t until_ns)
{
    const struct box_result *result = &run->result;
    const uint64_t enough_ns = 2 * (result->virtual_ns - result->still_ns) + LONG_NS;
    const bool is_shorter = until_ns == 0 || enough_ns < until_ns;
    return result->end == BOX_DEADLOCK && is_shorter ? enough_ns : until_ns;
}

static void leave_out_streams(struct shrink *shrink)
{
    struct repeat without = shrink->repeat;
    without.box.no_ties = true;
    (void)try(shrink, without);
    without = shrink->repeat;
    without.box.jitter = 0;
    (void)try(shrink, without);
    without = shrink->repeat;
    without.box.hold_ns = 0;
    (void)try(shrink, without);
}

/* Leaves out the holds from `from` to `to`. True: the rest is enough. */
static bool leave_out(struct shrink *shrink, size_t from, size_t to)
{
    struct repeat without = shrink->repeat;
    const size_t count = without.box.hold_count;
    uint64_t *rest = malloc((count + 1) * sizeof(*rest));
    CHECK(rest != NULL && from < to && to <= count);
    memcpy(rest, without.box.holds, from * sizeof(*rest));
    memcpy(rest + from, without.box.holds + to, (count - to) * sizeof(*rest));
    without.box.holds = rest;
    without.box.hold_count = count - (to - from);
    const uint64_t *before = shrink->repeat.box.holds;
    const bool is_enough = try(shrink, without);
    free((void *)(uintptr_t)(is_enough ? before : rest));
    return is_enough;
}

/* Ever smaller parts, until no single hold can be left out. */
static void leave_out_holds(struct shrink *shrink)
{
    size_t part = shrink->repeat.box.hold_count;
    while (part > 0) {
        bool any = false;
        for (size_t from = 0; from < shrink->repeat.box.hold_count;) {
            const size_t left = shrink->repeat.box.hold_count - from;
            if (leave_out(shrink, from, from + (left < part ? left : part))) {
                any = true;
            } else {
                from += part;
            }
        }
        part = part == 1 && any ? 1 : part / 2;
    }
}

/* All holds of the run that failed, by name. */
static void name_holds(struct shrink *shrink)
{
    const struct box_result *result = &shrink->run->result;
    struct box_options *box = &shrink->repeat.box;
    if (box->holds != NULL || result->holds > BOX_HOLDS_MAX) {
        return;
    }
    uint64_t *all = malloc((result->holds + 1) * sizeof(*all));
    CHECK(all != NULL);
    memcpy(all, result->hold, result->holds * sizeof(*all));
    box->holds = all;
    box->hold_count = result->holds;
}

static void show(struct shrink *shrink)
{
    char command[COMMAND_BYTES];
    const struct box_result *result = &shrink->run->result;
    repeat_say_command(&shrink->repeat, shrink->seed, command, sizeof(command));
    printf("%s\n%s", shrink->kind, result->report);
    if (result->held[0] != '\0') {
        printf("  it happens if these are held back:\n%s", result->held);
    }
    printf("  again: %s\n", command);
}

int repeat_shrink(const struct repeat *repeat, uint64_t seed)
{
    struct shrink shrink = {.repeat = *repeat, .seed = seed};
    shrink.is_terminal = isatty(STDERR_FILENO);
    shrink.repeat.directory = NULL;
    shrink.run = repeat_or_say(&shrink.repeat, seed, true);
    if (shrink.run == NULL) {
        return 1;
    }
    if (!repeat_has_failed(shrink.run)) {
        fprintf(stderr, "nonic: seed %llu does not fail\n", (unsigned long long)seed);
        return 0;
    }
    repeat_kind(shrink.run, shrink.kind, sizeof(shrink.kind));
    shrink.stands_still = shrink.run->result.end == BOX_DEADLOCK;
    shrink.repeat.box.until_ns = time_enough(shrink.run, repeat->box.until_ns);
    leave_out_streams(&shrink);
    if (shrink.repeat.box.hold_ns != 0 && fails(&shrink, &shrink.repeat)) {
        name_holds(&shrink);
        leave_out_holds(&shrink);
    }
    shrink.repeat.box.until_ns = repeat->box.until_ns;
    shrink.repeat.box.tell_holds = true;
    const bool is_same = fails(&shrink, &shrink.repeat);
    fprintf(stderr, shrink.is_terminal ? "\r%60s\r" : "%s", "");
    printf("seed %llu, after %u runs: ", (unsigned long long)seed, shrink.runs);
    show(&shrink);
    return is_same ? 1 : EXIT_UNREPEATABLE;
}
