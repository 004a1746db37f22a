/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic repeat, nonic replay - runs programs in virtual time, so that a seed gives one run.
 */
#include "tools/repeat.h"

#include <getopt.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/nonic.h"

enum {
    JITTER_DEFAULT = 300, /* thousandths */
    HOLD_NS_DEFAULT = 1000000,
    FIRST_RUN_OPTION = 1000, /* options of `nonic run` */
};

static void print_help(void)
{
    printf(
        "usage: nonic repeat [OPTIONS] [--] PROGRAM [ARGS...]\n"
        "       nonic replay [--gdb [THREAD@]TIME] DIR\n\n"
        "Runs an unmodified program, and all that it starts, on nonic in virtual time: one thread "
        "of\n"
        "all of them at a time, with clocks, random numbers, process numbers and ports of the "
        "run's\n"
        "own. One seed gives one run, bit for bit; other seeds give other runs that may happen. "
        "If\n"
        "nobody can go on, a report says which thread waits for what. The run has a network of "
        "its\n"
        "own (127.0.0.1 alone), an empty /tmp, and no standard input; it ends when PROGRAM "
        "does.\n\n"
        "  --seed N               this run (default: 0, in which nothing is drawn)\n"
        "  --seeds A..B           one run for each of these seeds; each kind of end is told once\n"
        "  --until-failure        of --seeds: stop at the first run that fails\n"
        "  --fails-if REGEX       a run fails, too, if a line that it writes matches\n"
        "  --jobs N               of --seeds: runs at a time (default: the processors)\n"
        "  --until TIME           end a run after this virtual time, with the report: 10s, 5ms\n"
        "  --without WORDS        of what seeds draw, leave out: jitter (calls cost up to 30 %% "
        "more),\n"
        "                         hold (a thread is held back for up to 1 ms, anywhere), ties (of\n"
        "                         two threads that are due at one time, which is the first)\n"
        "  --shrink               leave out of a seed that fails (of --seeds: the first) what its\n"
        "                         failure does not need, and tell where threads have to be held\n"
        "                         back for it\n"
        "  --holds NAMES          hold threads back these times only, named by --shrink: 2.0,2.7\n"
        "  -o, --output DIR       files of the run: a page (index.html), what was written when, "
        "calls,\n"
        "                         a timeline\n"
        "  --memory               the digest has all memory that processes leave behind\n"
        "  --every-call           stop every call, also those for the time: the same run, slower\n"
        "  --tick MICROSECONDS    how often to look at a thread that makes no calls, in time of "
        "the\n"
        "                         machine: the same run (default: 1000)\n"
        "  --machine roce|csrna   the programs' NICs and their network are the laboratory's, which "
        "give\n"
        "                         each step its time (docs/replay.md); csrna: with few contexts on "
        "the chip\n"
        "  --set NAME=VALUE       change a parameter of the machine\n"
        "  --topology FILE|WORDS  its network, as for 'nonic lab run', such as fat-tree:8: each "
        "process\n"
        "                         with a NIC is its next node, or where 'nonic at' puts it\n"
        "                         (default: star:32)\n"
        "  --nic, --wire, --transport, --device, --paths, --capture, --fault, --strict, --check,\n"
        "  --odd, --stats         as for 'nonic run'\n"
        "  --help                 print this\n\n"
        "Exit status: the program's; 3: what may differ next time was met; 4: nobody could go on;\n"
        "5: the time of --until was over. With --seeds: 1 if a run failed.\n\n"
        "examples: nonic repeat -- sh -c 'ib_write_lat & sleep 1; ib_write_lat 127.0.0.1'\n"
        "          nonic repeat --seeds 1..1000 --until-failure -- ./my-test\n");
}

static void say_nics(const char *lines)
{
    for (size_t bytes; (bytes = strcspn(lines, "\n")) > 0; lines += bytes + 1) {
        fprintf(stderr, "nonic: %.*s\n", (int)bytes, lines);
    }
}

static int repeat_once(const struct repeat *repeat)
{
    const struct repeat_run *run = repeat_or_say(repeat, repeat->box.seed, false);
    if (run == NULL) {
        return 1;
    }
    const struct box_result *result = &run->result;
    const double seconds = (double)result->virtual_ns / 1e9;
    if (result->end != BOX_ENDED) {
        char end[500];
        repeat_say_end(result, end, sizeof(end));
        fprintf(stderr, "nonic: %s, at %.9f s\n%s", end, seconds, result->report);
    }
    say_nics(result->nics);
    if (result->held[0] != '\0') {
        fprintf(stderr, "nonic: these were held back:\n%s", result->held);
    }
    fprintf(
        stderr,
        "nonic: virtual %.9f s, seed %llu, %d process%s, %llu calls, digest %016llx, %s%s\n",
        seconds, (unsigned long long)repeat->box.seed, result->processes,
        result->processes == 1 ? "" : "es", (unsigned long long)result->calls,
        (unsigned long long)result->digest,
        result->unrepeatable[0] == '\0' ? "repeatable" : "NOT REPEATABLE: ", result->unrepeatable);
    if (repeat->directory != NULL) {
        fprintf(stderr, "nonic: %s/index.html tells what happened\n", repeat->directory);
    }
    if (run->matched[0] != '\0') {
        fprintf(stderr, "nonic: the run failed, for it wrote: %s\n", run->matched);
        return 1;
    }
    return repeat_status(result);
}

/* False: the value is none of this option; standard error says so. */
static bool take_option(struct repeat *repeat, int option, const char *value)
{
    uint64_t number;
    bool is_right = true;
    regex_t failure;
    const char *valid = "";
    switch (option) {
    case 's': is_right = parse_number(value, &repeat->box.seed), valid = "a number"; break;
    case 'S':
        is_right = parse_range(value, &repeat->first, &repeat->last),
        valid = "two numbers such as 1..1000";
        break;
    case 'u': repeat->until_failure = true; break;
    case 'f':
        is_right = regcomp(&failure, value, REG_EXTENDED | REG_NOSUB) == 0;
        repeat->fails_if = value;
        valid = "an extended regular expression";
        break;
    case 'j':
        is_right = parse_number(value, &number) && number >= 1 && number <= 1024;
        repeat->jobs = is_right ? (unsigned)number : 1;
        valid = "a number from 1 to 1024";
        break;
    case 't':
        is_right = parse_time(value, &repeat->box.until_ns), valid = "a time such as 10s or 5ms";
        break;
    case 'w': is_right = parse_without(repeat, value), valid = "jitter, hold, ties"; break;
    case 'H': is_right = parse_holds(repeat, value), valid = "names such as 2.0,2.7"; break;
    case 'k': repeat->shrinks = true; break;
    case 'M': is_right = repeat_choose_machine(repeat, value), valid = "roce, csrna"; break;
    case 'P': repeat_note_setting(repeat, value); break;
    case 'y': repeat->topology = value; break;
    case 'o': repeat->directory = value; break;
    case 'm': repeat->box.memory = true; break;
    case 'e': repeat->box.reference = true; break;
    case 'T':
        is_right = parse_number(value, &number) && number >= 50 && number <= 100000;
        repeat->box.tick_us = is_right ? (unsigned)number : 0;
        valid = "50 to 100000 microseconds";
        break;
    default: UNREACHABLE("an option without a case");
    }
    if (!is_right) {
        fprintf(stderr, "nonic: '%s' is not valid here; valid is %s\n", value, valid);
    }
    return is_right;
}

/* An option of `nonic run` goes there as it was written. */
static void pass_on(struct repeat *repeat, const char *name, const char *value)
{
    char *option;
    if (asprintf(&option, value == NULL ? "--%s" : "--%s=%s", name, value) > 0) {
        repeat->argv[repeat->argc++] = option;
    }
}

static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                        {"seeds", required_argument, NULL, 'S'},
                                        {"until-failure", no_argument, NULL, 'u'},
                                        {"fails-if", required_argument, NULL, 'f'},
                                        {"jobs", required_argument, NULL, 'j'},
                                        {"until", required_argument, NULL, 't'},
                                        {"without", required_argument, NULL, 'w'},
                                        {"holds", required_argument, NULL, 'H'},
                                        {"shrink", no_argument, NULL, 'k'},
                                        {"output", required_argument, NULL, 'o'},
                                        {"memory", no_argument, NULL, 'm'},
                                        {"every-call", no_argument, NULL, 'e'},
                                        {"tick", required_argument, NULL, 'T'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"machine", required_argument, NULL, 'M'},
                                        {"set", required_argument, NULL, 'P'},
                                        {"topology", required_argument, NULL, 'y'},
                                        {"nic", required_argument, NULL, 1000},
                                        {"wire", required_argument, NULL, 1000},
                                        {"device", required_argument, NULL, 1000},
                                        {"transport", required_argument, NULL, 1000},
                                        {"paths", required_argument, NULL, 1000},
                                        {"capture", required_argument, NULL, 1000},
                                        {"fault", required_argument, NULL, 1000},
                                        {"strict", no_argument, NULL, 1000},
                                        {"check", optional_argument, NULL, 1000},
                                        {"odd", optional_argument, NULL, 1000},
                                        {"stats", no_argument, NULL, 1000},
                                        {NULL, 0, NULL, 0}};

static int parse_options(int argc, char **argv, struct repeat *repeat)
{
    int option, index;
    while ((option = getopt_long(argc, argv, "+ho:", options, &index)) != -1) {
        if (option == 'h') {
            print_help();
            return -1;
        }
        if (option == '?') {
            fprintf(stderr, "nonic: 'nonic repeat --help' shows the options\n");
            return EXIT_USAGE;
        }
        if (option == FIRST_RUN_OPTION) {
            pass_on(repeat, options[index].name, optarg);
        } else if (!take_option(repeat, option, optarg)) {
            return EXIT_USAGE;
        }
    }
    if (!repeat_judge_machine(repeat)) {
        return EXIT_USAGE;
    }
    if (optind == argc) {
        fprintf(stderr,
                "nonic: which program? usage: nonic repeat [OPTIONS] [--] PROGRAM [ARGS...]\n");
        return EXIT_USAGE;
    }
    static char end_of_options[] = "--";
    repeat->argv[repeat->argc++] = end_of_options;
    for (int i = optind; i < argc; i++) {
        repeat->argv[repeat->argc++] = argv[i];
    }
    repeat->argv[repeat->argc] = NULL;
    return 0;
}

static int command_repeat(int argc, char **argv)
{
    struct repeat repeat = {.box = {.jitter = JITTER_DEFAULT, .hold_ns = HOLD_NS_DEFAULT}};
    repeat.jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    repeat.box.processor = (unsigned)sched_getcpu();
    repeat.argv = calloc((size_t)argc + 3, sizeof(char *));
    CHECK(repeat.argv != NULL);
    repeat.argv[repeat.argc++] = argv[0];
    const int status = parse_options(argc, argv, &repeat);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    if (repeat.last != 0) {
        return repeat_many(&repeat);
    }
    return repeat.shrinks ? repeat_shrink(&repeat, repeat.box.seed) : repeat_once(&repeat);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 1);
    return strcmp(argv[0], "replay") == 0 ? command_replay(argc, argv) : command_repeat(argc, argv);
}
