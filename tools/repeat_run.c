/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_run - one run of `nonic repeat`: its walls, its box, its files.
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
    /* It stops the program as a debugger does, which is not to be had twice. The user's own options
     * count. */
    put_before("ASAN_OPTIONS", "detect_leaks=0");
    put_before("LSAN_OPTIONS", "detect_leaks=0");
    optind = 0;
    run_seed = inside->options.seed + 1;
    run_world = inside->options.machine == NULL ? "" : "virtual/";
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
    if (walls_run(keep, repeat->box.machine != NULL, within_walls, &inside, error, error_bytes) <
        0) {
        return false;
    }
    snprintf(error, error_bytes, "%s", result->error);
    return result->end != BOX_FAILED;
}

struct repeat_run *repeat_or_say(const struct repeat *repeat, uint64_t seed, bool quiet)
{
    char error[1000];
    struct repeat_run *run = repeat_runs(1);
    if (repeat_run(repeat, seed, quiet, run, error, sizeof(error))) {
        return run;
    }
    fprintf(stderr, "nonic: %s\n", error);
    return NULL;
}
