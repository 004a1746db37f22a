/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic lab - experiments under a virtual clock.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/lab.h"
#include "tools/nonic.h"

static void print_help(FILE *to)
{
    fprintf(to,
            "usage: nonic lab list [--json]\n"
            "       nonic lab run NAME [--seed N] [--set PARAMETER=VALUE]... "
            "[--sweep PARAMETER=VALUES]...\n"
            "                     [--json] [--trace FILE.json|FILE.vcd] [--pcap FILE.pcapng]\n"
            "       nonic lab show NAME\n"
            "       nonic lab report [-o DIRECTORY] [--seed N]\n\n"
            "Runs models of published NICs and switches under a virtual clock and compares them "
            "with what\ntheir documents measured. A run with the same seed and values gives the "
            "same digest anywhere.\n\n"
            "  list      the experiments\n"
            "  show      an experiment's parameters: values, ranges, sources\n"
            "  run       one experiment; exit status 1 if a row is out of its tolerance\n"
            "  report    all of them, as one HTML page with plots\n\n"
            "  --seed N         of everything random (default 1)\n"
            "  --set K=V        a parameter's value, with or without its unit: link_latency=30, "
            "refresh=20us\n"
            "  --sweep K=...    a run for each of a,b,c or LOW..HIGH:xFACTOR or LOW..HIGH:+STEP;\n"
            "                   several sweep all combinations, on all cores (and MPI ranks)\n"
            "  --json           for machines: one object, or an array of them for a sweep\n"
            "  --trace FILE     a timeline of the first world: .json for Perfetto, .vcd for "
            "GTKWave\n"
            "  --pcap FILE      its packets; formats without a number are USER0 (147)\n\n"
            "Try: nonic lab run forth/one-way\n");
}

static int usage_error(const char *text)
{
    fprintf(stderr, "nonic: %s\n", text);
    return EXIT_USAGE;
}

static const struct lab_experiment *find_or_say(const char *name)
{
    const struct lab_experiment *experiment = lab_find(name);
    if (experiment == NULL) {
        fprintf(stderr,
                "nonic: there is no experiment '%s'; the nearest is '%s' ('nonic lab list' shows "
                "all)\n",
                name, lab_nearest_experiment(name));
    }
    return experiment;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-') {
        fprintf(stderr, "nonic: --seed takes a whole number from 0 on, not '%s'\n", text);
        return false;
    }
    return true;
}

/* -- run ----------------------------------------------------------------------------------------*/

/* Every point is judged before any of them runs. */
static bool judge(const struct lab_job *job, char *error, size_t error_bytes)
{
    static struct lab_run run;
    for (uint32_t i = 0; i < lab_job_points(job); i++) {
        if (!lab_job_prepare(job, i, &run, error, error_bytes)) {
            return false;
        }
    }
    return true;
}

/* This is said before a long run, not after it. */
static bool can_write(const struct lab_job *job, char *error, size_t error_bytes)
{
    struct sim_trace *trace = NULL;
    struct sim_capture *capture = NULL;
    if (job->trace_path != NULL) {
        trace = sim_trace_open(job->trace_path, error, error_bytes);
        if (trace == NULL || !sim_trace_close(trace, error, error_bytes)) {
            return false;
        }
    }
    if (job->capture_path != NULL) {
        capture = sim_capture_open(job->capture_path, PCAPNG_LINK_USER0, error, error_bytes);
        if (capture == NULL || !sim_capture_close(capture, error, error_bytes)) {
            return false;
        }
    }
    return true;
}

/* A value that changes nothing is likely to be a mistake. */
static void say_unused(const struct lab_run *run)
{
    for (uint32_t i = 0; i < run->experiment->parameter_count; i++) {
        if (run->set[i] && !run->used[i]) {
            fprintf(stderr, "nonic: %s does not depend on %s: its value changes nothing\n",
                    run->experiment->name, run->experiment->parameters[i].name);
        }
    }
}

static int execute(const struct lab_job *job)
{
    char error[2 * LAB_TEXT_BYTES] = "";
    if (!judge(job, error, sizeof(error)) || !can_write(job, error, sizeof(error))) {
        return usage_error(error);
    }
    struct lab_run *runs = lab_job_execute(job, error, sizeof(error));
    if (runs == NULL) {
        if (error[0] != '\0') {
            fprintf(stderr, "nonic: %s\n", error);
        }
        return error[0] != '\0';
    }
    const uint32_t count = lab_job_points(job);
    bool good = true;
    say_unused(&runs[0]);
    if (job->json) {
        lab_print_json(stdout, job, runs, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!job->json) {
            if (i > 0) {
                printf("\n");
            }
            lab_print_run(stdout, job, &runs[i]);
        }
        good &= lab_run_good(&runs[i]);
    }
    free(runs);
    return good ? 0 : 1;
}

static int parse_and_run(struct lab_job *job, int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},  {"set", required_argument, NULL, 'k'},
        {"sweep", required_argument, NULL, 'w'}, {"json", no_argument, NULL, 'j'},
        {"trace", required_argument, NULL, 't'}, {"pcap", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    const char *sweeps[LAB_SWEEPS_MAX];
    uint32_t sweep_count = 0;
    char error[LAB_TEXT_BYTES];
    int option;
    job->seed = 1;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!parse_seed(optarg, &job->seed)) {
                return EXIT_USAGE;
            }
            break;
        case 'k':
            if (job->set_count == LAB_SETS_MAX) {
                return usage_error("too many --set");
            }
            job->sets[job->set_count++] = optarg;
            break;
        case 'w':
            if (sweep_count == LAB_SWEEPS_MAX) {
                return usage_error("too many --sweep");
            }
            sweeps[sweep_count++] = optarg;
            break;
        case 'j': job->json = true; break;
        case 't': job->trace_path = optarg; break;
        case 'p': job->capture_path = optarg; break;
        case 'h': print_help(stdout); return 0;
        default:
            return usage_error("valid options of 'lab run' are --seed, --set, --sweep, --json, "
                               "--trace, --pcap, --help");
        }
    }
    if (optind + 1 != argc) {
        return usage_error("'lab run' takes the name of one experiment; 'nonic lab list' shows "
                           "them");
    }
    job->experiment = find_or_say(argv[optind]);
    if (job->experiment == NULL) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < sweep_count; i++) {
        if (!lab_sweep_parse(job, sweeps[i], error, sizeof(error))) {
            return usage_error(error);
        }
    }
    return execute(job);
}

static int lab_run_command(int argc, char **argv)
{
    struct lab_job job = {.experiment = NULL};
    const int status = parse_and_run(&job, argc, argv);
    lab_job_free(&job);
    return status;
}

/* -- list, show, report -------------------------------------------------------------------------*/

static int lab_list_command(int argc, char **argv)
{
    const bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 2 || (argc == 2 && !json)) {
        return usage_error("valid options of 'lab list' are --json");
    }
    lab_print_list(stdout, json);
    return 0;
}

static int lab_show_command(int argc, char **argv)
{
    if (argc != 2) {
        return usage_error("'lab show' takes the name of one experiment");
    }
    const struct lab_experiment *experiment = find_or_say(argv[1]);
    if (experiment == NULL) {
        return EXIT_USAGE;
    }
    lab_print_parameters(stdout, experiment);
    return 0;
}

static uint32_t experiment_count(void)
{
    uint32_t count = 0;
    while (lab_experiments[count] != NULL) {
        count++;
    }
    return count;
}

/* Runs everything, telling how far it is. */
static struct lab_run *run_all(uint64_t seed)
{
    const uint32_t count = experiment_count();
    struct lab_run *runs = calloc(count, sizeof(*runs));
    CHECK(runs != NULL);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(stderr, "[%u/%u] %s ", i + 1, count, lab_experiments[i]->name);
        lab_prepare(&runs[i], lab_experiments[i], seed);
        (void)lab_execute(&runs[i]);
        fprintf(stderr, "%s, %.1f s\n", lab_run_good(&runs[i]) ? "ok" : "OUT OF TOLERANCE",
                runs[i].wall_s);
    }
    return runs;
}

static int lab_report_command(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *directory = ".";
    uint64_t seed = 1;
    int option;
    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        switch (option) {
        case 'o': directory = optarg; break;
        case 's':
            if (!parse_seed(optarg, &seed)) {
                return EXIT_USAGE;
            }
            break;
        case 'h': print_help(stdout); return 0;
        default: return usage_error("valid options of 'lab report' are -o, --seed, --help");
        }
    }
    if (optind != argc) {
        return usage_error("'lab report' takes options only");
    }
    char error[LAB_TEXT_BYTES];
    struct lab_run *runs = run_all(seed);
    const uint32_t count = experiment_count();
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        good &= lab_run_good(&runs[i]);
    }
    if (!lab_write_report(directory, runs, count, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        good = false;
    } else {
        printf("%s/report.html\n", directory);
    }
    free(runs);
    return good ? 0 : 1;
}

int command_lab(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"list", lab_list_command},
                    {"run", lab_run_command},
                    {"show", lab_show_command},
                    {"report", lab_report_command}};
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "nonic: there is no 'lab %s'; valid are list, show, run and report\n", argv[1]);
    return EXIT_USAGE;
}
