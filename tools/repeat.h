/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat - programs in virtual time: what the parts of `nonic repeat` and `nonic replay` share.
 */
#ifndef TOOLS_REPEAT_H
#define TOOLS_REPEAT_H

#include "box/box.h"

enum {
    LINE_BYTES = 400,
    LAST_LINES = 8, /* that a run wrote, to be shown if it fails */
};

/* A run, in memory that its processes share with the command. */
struct repeat_run {
    struct box_result result;
    char matched[LINE_BYTES]; /* the first line that --fails-if matches; empty: none */
    char last[LAST_LINES][LINE_BYTES];
    unsigned lines;
};

/* Exit statuses that are not the program's. */
enum {
    EXIT_UNREPEATABLE = 3,
    EXIT_DEADLOCK = 4,
    EXIT_LATE = 5,
};

/* The wishes of a command line. `argv` is what `nonic run` gets: its options, and the program. */
struct repeat {
    struct box_options box;
    uint64_t first, last; /* --seeds; both 0: one run, with box.seed */
    unsigned jobs;
    bool until_failure, shrinks;
    const char *fails_if;  /* an extended regular expression, or NULL */
    const char *directory; /* -o, or NULL */
    const char *machine;   /* --machine, or NULL: NICs are live ones */
    const char *topology;  /* of its network: --topology, or NULL */
    const char **settings; /* of the machine: --set */
    int setting_count;
    int argc;
    char **argv;
};

/* Makes `count` of them. */
struct repeat_run *repeat_runs(size_t count);

/* One run with this seed; its files go to `repeat->directory`. False: `error` says why there was
 * none. */
bool repeat_run(const struct repeat *repeat, uint64_t seed, bool quiet, struct repeat_run *run,
                char *error, size_t error_bytes);

/* Likewise; NULL: standard error says why there was none. */
struct repeat_run *repeat_or_say(const struct repeat *repeat, uint64_t seed, bool quiet);

/* The runs of --seeds. Returns the exit status. */
int repeat_many(const struct repeat *repeat);

/* The exit status of a run that ended so. */
int repeat_status(const struct box_result *result);

/* How a run ended, in a few words. */
void repeat_say_end(const struct box_result *result, char *into, size_t bytes);

bool repeat_has_failed(const struct repeat_run *run);
/* The kind of its end, as --seeds tells them; ends whose lines differ in numbers alone are of one
 * kind. */
void repeat_kind(const struct repeat_run *run, char *into, size_t bytes);
bool repeat_is_same_kind(const char *one, const char *other);

/* box_options.on_halt: gdb, until the person leaves it. */
void repeat_gdb(void *context, pid_t process, pid_t thread, int number, uint64_t at_ns);

/* Leaves out what the failure of this seed does not need, and tells what it needs. Returns the exit
 * status. */
int repeat_shrink(const struct repeat *repeat, uint64_t seed);

/* `nonic repeat` with the options that make the same run. */
void repeat_say_command(const struct repeat *repeat, uint64_t seed, char *into, size_t bytes);

/* Values of options (repeat_words.c); false: `text` is none. A time such as 1.5ms; a number; two of
 * them such as 1..1000; words for --without; names of holds, such as 2.0,2.7. */
bool parse_time(const char *text, uint64_t *ns);
bool parse_number(const char *text, uint64_t *number);
bool parse_range(const char *text, uint64_t *first, uint64_t *last);
bool parse_without(struct repeat *repeat, const char *words);
bool parse_holds(struct repeat *repeat, const char *text);

/* The machine of --machine (repeat_machine.c); false: there is none of this name. */
bool repeat_choose_machine(struct repeat *repeat, const char *name);
/* A word of --set, which stays the caller's; it is judged later. */
void repeat_note_setting(struct repeat *repeat, const char *setting);
/* All options are known: the machine is as its settings say. False: standard error says what is
 * wrong. */
bool repeat_judge_machine(struct repeat *repeat);

int command_replay(int argc, char **argv);

/* run.json in a run's folder: what was run, and what came of it (repeat_record.c). */
bool record_write(const struct repeat *repeat, const char *directory, uint64_t seed,
                  const struct box_result *result);
/* index.html there (repeat_page.c). */
bool repeat_page(const struct repeat *repeat, uint64_t seed, const struct repeat_run *run,
                 const char *directory);
/* Fills in what is to be run again, and the digest of that time; false: standard error says why
 * not. The environment and the folder are those of then. */
bool record_read(const char *directory, struct repeat *repeat, uint64_t *digest);

#endif
