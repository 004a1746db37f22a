/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic run --check - runs a program whose calls are judged, and tells what is found.
 *
 * The programs of the run append lines to a file (verbs/findings.h); this process reads them, and
 * finds the places in the source. Every few seconds it asks whether a program hangs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/check.h"
#include "tools/nonic.h"
#include "tools/stat_hang.h"

enum {
    PAUSE_MS = 50,
    HANG_PAUSE_S = 5,
};

static volatile sig_atomic_t asked_to_end; /* The signal; 0: none. */

static void on_signal(int number)
{
    asked_to_end = number;
}

static const int numbers[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
static struct sigaction before[COUNT_OF(numbers)]; /* As the command had them. */

/* Those of a terminal reach the program by themselves, and it decides what becomes of the run;
 * others are passed on. One that the command ignores (nohup) is ignored further. */
static void watch_signals(void)
{
    const struct sigaction note = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        const bool is_of_terminal = numbers[i] == SIGINT || numbers[i] == SIGQUIT;
        sigaction(numbers[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            sigaction(numbers[i], is_of_terminal ? &ignore : &note, NULL);
        }
    }
}

/* The program has the signals as the command had them. */
static void forget_signals(void)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        sigaction(numbers[i], &before[i], NULL);
    }
}

/* -- The report's file --------------------------------------------------------------------------*/

struct tail {
    char path[PATH_MAX];
    FILE *file;
    char *line;
    size_t room, used;
};

static bool open_report(struct tail *tail)
{
    const char *directory = getenv("TMPDIR");
    snprintf(tail->path, sizeof(tail->path), "%s/nonic-check-XXXXXX",
             directory == NULL || directory[0] == '\0' ? "/tmp" : directory);
    const int file = mkostemp(tail->path, O_CLOEXEC);
    tail->file = file < 0 ? NULL : fdopen(file, "re");
    if (tail->file == NULL) {
        fprintf(stderr, "nonic: cannot make a file for findings in %s: %s\n", tail->path,
                strerror(errno));
        return false;
    }
    return true;
}

/* Lines that are there, whole ones only. */
static void read_lines(struct tail *tail, struct check_report *report)
{
    int letter;
    clearerr(tail->file);
    while ((letter = getc(tail->file)) != EOF) {
        if (tail->used + 1 >= tail->room) {
            tail->room = 2 * tail->room + 1024;
            tail->line = realloc(tail->line, tail->room);
            CHECK(tail->line != NULL);
        }
        tail->line[tail->used++] = (char)letter;
        if (letter == '\n') {
            tail->line[tail->used - 1] = '\0';
            check_line(report, tail->line);
            tail->used = 0;
        }
    }
}

static void close_report(struct tail *tail)
{
    fclose(tail->file);
    unlink(tail->path);
    free(tail->line);
}

/* -- Programs that hang -------------------------------------------------------------------------*/

/* Findings of the last look, by process and sentence. */
struct stillness {
    json_t *before;
    time_t next;
};

/* Tells what stands still at two looks in a row. One that is asked to end is told of all. */
static void look_for_hangs(struct stillness *still, struct check_report *report, bool all)
{
    const struct stat_named named = {report->processes, report->process_count};
    json_t *now = json_object(), *programs = stat_hang_find(&named), *program;
    size_t i;
    json_array_foreach(programs, i, program)
    {
        size_t j;
        json_t *finding;
        const int pid = (int)json_integer_value(json_object_get(program, "pid"));
        json_array_foreach(json_object_get(program, "hangs"), j, finding)
        {
            char name[1024];
            const char *rule = json_string_value(json_object_get(finding, "rule"));
            const char *sentence = json_string_value(json_object_get(finding, "sentence"));
            const bool idle = strcmp(rule, "both-wait") == 0;
            snprintf(name, sizeof(name), "%d %s", pid, sentence);
            json_object_set_new(now, name, json_true());
            if (all || (!idle && json_object_get(still->before, name) != NULL)) {
                check_hang(report, pid, strcmp(rule, "lost-wakeup") == 0, finding);
            }
        }
    }
    json_decref(programs);
    json_decref(still->before);
    still->before = now;
    still->next = time(NULL) + HANG_PAUSE_S;
}

/* -- The run ------------------------------------------------------------------------------------*/

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void pause_for(int milliseconds)
{
    const struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

static int watch(pid_t child, struct tail *tail, struct check_report *report)
{
    struct stillness still = {.before = json_object(), .next = time(NULL) + HANG_PAUSE_S};
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        read_lines(tail, report);
        if (asked_to_end != 0) {
            const int number = asked_to_end;
            asked_to_end = 0;
            look_for_hangs(&still, report, true);
            kill(child, number);
        } else if (report->process_count > 0 && time(NULL) >= still.next) {
            look_for_hangs(&still, report, false);
        }
        pause_for(PAUSE_MS);
    }
    read_lines(tail, report);
    json_decref(still.before);
    return status_of(status);
}

/* Usage: nonic-check WORDS PROGRAM [ARGUMENTS...]; `nonic run` has told the library of its other
 * options by the environment. */
int main(int argc, char **argv)
{
    struct check_wishes wishes = {.advice = false};
    struct check_report report;
    struct tail tail = {.file = NULL};
    if (argc < 3) {
        fprintf(stderr, "nonic: this is a part of 'nonic run --check'\n");
        return EXIT_USAGE;
    }
    if (!check_read_wishes(argv[1], &wishes) || !open_report(&tail)) {
        return EXIT_USAGE;
    }
    setenv("NONIC_CHECK", tail.path, 1);
    check_begin(&report, &wishes);
    watch_signals();
    const pid_t child = fork();
    if (child == 0) {
        forget_signals();
        /* If this process is ended by force, so is the program. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)preload_part("nonic-freed.so"); /* It says so if it cannot: rule "freed" is lost. */
        exit(run_program(argv + 2));
    }
    const int status = child < 0 ? 1 : watch(child, &tail, &report);
    close_report(&tail);
    return check_end(&report, status);
}
