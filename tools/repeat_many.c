/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_many - the runs of --seeds: several at a time, each kind of end told once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/repeat.h"

enum {
    KINDS_MAX = 64,
    END_BYTES = 500,
    COMMAND_BYTES = 4000,
};

struct kind {
    char end[END_BYTES];
    bool is_failure;
    uint64_t seed, count;
};

struct job {
    pid_t pid; /* 0: none */
    uint64_t seed;
    struct repeat_run *run;
};

struct many {
    const struct repeat *repeat;
    struct job *jobs;
    struct kind kind[KINDS_MAX];
    int kinds;
    uint64_t next, done, failed, first_failure;
    time_t began;
    bool is_terminal, stops;
};

static void start_job(struct many *many, struct job *job)
{
    char error[1000];
    job->seed = many->next++;
    fflush(NULL);
    job->pid = fork();
    CHECK(job->pid >= 0);
    if (job->pid == 0) {
        struct repeat mine = *many->repeat;
        mine.box.processor = (unsigned)(job - many->jobs);
        const bool is_run = repeat_run(&mine, job->seed, true, job->run, error, sizeof(error));
        if (!is_run) {
            job->run->result.end = BOX_FAILED;
            snprintf(job->run->result.error, sizeof(job->run->result.error), "%.390s", error);
        }
        _exit(0);
    }
}

static void show_failure(const struct many *many, const struct job *job, const struct kind *kind)
{
    char command[COMMAND_BYTES];
    const struct repeat_run *run = job->run;
    repeat_say_command(many->repeat, job->seed, command, sizeof(command));
    printf("seed %llu: %s\n", (unsigned long long)job->seed, kind->end);
    const unsigned first = run->lines > LAST_LINES ? run->lines - LAST_LINES : 0;
    for (unsigned i = first; i < run->lines; i++) {
        printf("  | %s\n", run->last[i % LAST_LINES]);
    }
    fputs(run->result.report, stdout);
    printf("  again: %s\n", command);
    fflush(stdout);
}

static void note_end(struct many *many, const struct job *job)
{
    char end[END_BYTES];
    const bool is_failure = repeat_has_failed(job->run);
    int i = 0;
    repeat_kind(job->run, end, sizeof(end));
    while (i < many->kinds && !repeat_is_same_kind(many->kind[i].end, end)) {
        i++;
    }
    /* All further kinds count for the last one. */
    i = i < KINDS_MAX ? i : KINDS_MAX - 1;
    struct kind *kind = &many->kind[i];
    if (i == many->kinds) {
        many->kinds++;
        snprintf(kind->end, sizeof(kind->end), "%s", end);
        kind->is_failure = is_failure;
        kind->seed = job->seed;
        if (is_failure) {
            show_failure(many, job, kind);
        }
    }
    kind->count++;
    many->done++;
    many->failed += is_failure;
    many->stops = many->stops || (is_failure && many->repeat->until_failure) ||
                  job->run->result.end == BOX_FAILED;
    if (is_failure && many->failed == 1) {
        many->first_failure = job->seed;
    }
}

static void show_progress(const struct many *many)
{
    if (many->is_terminal) {
        fprintf(stderr, "\r%llu of %llu runs, %llu failed, %lld s ", (unsigned long long)many->done,
                (unsigned long long)(many->repeat->last - many->repeat->first + 1),
                (unsigned long long)many->failed, (long long)(time(NULL) - many->began));
    }
}

static void await_job(struct many *many)
{
    int status;
    const pid_t pid = wait(&status);
    for (unsigned i = 0; pid > 0 && i < many->repeat->jobs; i++) {
        if (many->jobs[i].pid == pid) {
            note_end(many, &many->jobs[i]);
            many->jobs[i].pid = 0;
        }
    }
    show_progress(many);
}

static bool has_jobs(const struct many *many)
{
    for (unsigned i = 0; i < many->repeat->jobs; i++) {
        if (many->jobs[i].pid != 0) {
            return true;
        }
    }
    return false;
}

int repeat_many(const struct repeat *repeat)
{
    struct many *many = calloc(1, sizeof(*many));
    CHECK(many != NULL);
    many->repeat = repeat;
    many->next = repeat->first;
    many->began = time(NULL);
    many->is_terminal = isatty(STDERR_FILENO);
    many->jobs = calloc(repeat->jobs, sizeof(*many->jobs));
    struct repeat_run *runs = repeat_runs(repeat->jobs);
    CHECK(many->jobs != NULL);
    do {
        for (unsigned i = 0; i < repeat->jobs && !many->stops && many->next <= repeat->last; i++) {
            if (many->jobs[i].pid == 0) {
                many->jobs[i].run = &runs[i];
                start_job(many, &many->jobs[i]);
            }
        }
        await_job(many);
    } while (has_jobs(many) || (!many->stops && many->next <= repeat->last));
    fprintf(stderr, many->is_terminal ? "\r%60s\r" : "%s", "");
    printf("%llu runs, %llu failed\n", (unsigned long long)many->done,
           (unsigned long long)many->failed);
    for (int i = 0; i < many->kinds; i++) {
        printf("%8llu  %s (the first: seed %llu)\n", (unsigned long long)many->kind[i].count,
               many->kind[i].end, (unsigned long long)many->kind[i].seed);
    }
    if (many->failed != 0 && repeat->shrinks) {
        return repeat_shrink(repeat, many->first_failure);
    }
    return many->failed != 0;
}
