/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_run - one run of `nonic repeat`: its walls, its box, its end in words.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "box/walls.h"
#include "tools/nonic.h"
#include "tools/repeat.h"

#define WROTE "it wrote: "

enum {
    KEEP_MAX = 256, /* paths of a command line that may be in /tmp */
};

struct repeat_run *repeat_runs(size_t count)
{
    void *memory = mmap(NULL, count * sizeof(struct repeat_run), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

struct inside {
    const struct repeat *repeat;
    struct box_options options;
    struct repeat_run *run;
    regex_t failure;
    bool has_failure;
};

static void on_line(void *context, int which, const char *line)
{
    struct inside *inside = context;
    struct repeat_run *run = inside->run;
    (void)which;
    snprintf(run->last[run->lines++ % LAST_LINES], LINE_BYTES, "%s", line);
    if (inside->has_failure && run->matched[0] == '\0' &&
        regexec(&inside->failure, line, 0, NULL, 0) == 0) {
        snprintf(run->matched, LINE_BYTES, "%s", line);
    }
}

/* The first process of the run becomes `nonic run`. */
static int start(void *context)
{
    const struct inside *inside = context;
    /* A function that is bound when it is first called leaves the processor's vector state, and
     * which of it was in use, on the stack: that differs with each change of threads. */
    if (inside->options.memory) {
        setenv("LD_BIND_NOW", "1", 1);
    }
    optind = 0;
    return command_run(inside->repeat->argc, inside->repeat->argv);
}

static int within_walls(void *context)
{
    struct inside *inside = context;
    box_run(&inside->options, start, inside, &inside->run->result);
    if (inside->options.directory != NULL) {
        record_write(inside->repeat, inside->options.directory, inside->options.seed,
                     &inside->run->result);
        repeat_page(inside->repeat, inside->options.seed, inside->run, inside->options.directory);
    }
    return 0;
}

static bool make_directory(const char *name, char *path, size_t bytes, char *error,
                           size_t error_bytes)
{
    char real[PATH_MAX];
    if ((mkdir(name, 0777) != 0 && errno != EEXIST) || realpath(name, real) == NULL) {
        snprintf(error, error_bytes, "cannot make the folder %s: %s", name, strerror(errno));
        return false;
    }
    snprintf(path, bytes, "%s/", real);
    return true;
}

/* Paths that the run may need although they lie in /tmp. */
static void collect_kept(const struct repeat *repeat, const char *const *more, const char **keep)
{
    int count = 0;
    for (; more[count] != NULL; count++) {
        keep[count] = more[count];
    }
    for (int i = 0; i < repeat->argc && count < KEEP_MAX; i++) {
        keep[count++] = repeat->argv[i];
    }
    keep[count] = NULL;
}

bool repeat_run(const struct repeat *repeat, uint64_t seed, bool quiet, struct repeat_run *run,
                char *error, size_t error_bytes)
{
    struct box_result *result = &run->result;
    static char vdso[PATH_MAX], directory[PATH_MAX + 2], here[PATH_MAX];
    const char *keep[KEEP_MAX + 1];
    struct inside inside = {.repeat = repeat, .options = repeat->box, .run = run};
    inside.options.seed = seed;
    inside.options.quiet = quiet;
    inside.options.vdso = vdso;
    inside.options.on_line = on_line;
    inside.options.context = &inside;
    inside.has_failure = repeat->fails_if != NULL &&
                         regcomp(&inside.failure, repeat->fails_if, REG_EXTENDED | REG_NOSUB) == 0;
    if (!find_part("nonic-vdso.so", vdso, sizeof(vdso), error, error_bytes)) {
        return false;
    }
    if (repeat->directory != NULL) {
        if (!make_directory(repeat->directory, directory, sizeof(directory), error, error_bytes)) {
            return false;
        }
        inside.options.directory = directory;
    }
    if (getcwd(here, sizeof(here)) == NULL) {
        here[0] = '\0';
    }
    collect_kept(repeat, (const char *[]){vdso, here, directory, NULL}, keep);
    memset(run, 0, sizeof(*run));
    result->end = BOX_FAILED;
    snprintf(result->error, sizeof(result->error), "the process that runs it was killed");
    if (walls_run(keep, within_walls, &inside, error, error_bytes) < 0) {
        return false;
    }
    snprintf(error, error_bytes, "%s", result->error);
    return result->end != BOX_FAILED;
}

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
    case BOX_LATE: snprintf(into, bytes, "not over at the time of --until"); break;
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
    for (int i = 1; i < repeat->argc; i++) {
        say_word(into, bytes, repeat->argv[i]);
    }
}
