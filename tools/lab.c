/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic-lab - experiments under a virtual clock: the program that `nonic lab` becomes.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/lab.h"
#include "tools/nonic.h"

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: nonic lab list [NAME|DOCUMENT]... [--json]\n"
        "       nonic lab show NAME [--json]\n"
        "       nonic lab run NAME [--seed N] [--repeat N] [--set PARAMETER=VALUE]... "
        "[--sweep PARAMETER=VALUES]...\n"
        "                     [--topology FILE|WORDS] [--pattern FILE|WORDS] "
        "[--traffic FILE]\n"
        "                     [--judge] [--stats] [--json|--csv] "
        "[--trace FILE.json|FILE.vcd]\n"
        "                     [--pcap FILE.pcapng]\n"
        "       nonic lab falsify [NAME|DOCUMENT]... [--quick] [--seed N] [--json]\n"
        "       nonic lab report [NAME|DOCUMENT]... [-o DIRECTORY] [--seed N]\n\n"
        "Runs models of published NICs and switches under a virtual clock and compares them "
        "with what\ntheir documents measured. A run with the same seed and values gives the "
        "same digest anywhere.\n\n"
        "  list      the experiments\n"
        "  show      an experiment's parameters (values, ranges, sources) and claims (what each "
        "row is\n"
        "            compared with, what it rests on, and what must break it)\n"
        "  run       one experiment; exit status 1 if a row is not as its claim says\n"
        "  falsify   each row with and without what it rests on; exit status 1 if one survives\n"
        "  report    one HTML page of their figures and rows; figures beside it as SVG and CSV\n"
        "            list, falsify, report: all experiments, those named, or those of a document\n"
        "            (forth, csrna, exanest, lant, feroce, network, roce)\n\n"
        "  --seed N         of everything random (default 1)\n"
        "  --repeat N       N runs, with seeds from --seed on: means and the half of "
        "their 95 %%\n"
        "                   intervals\n"
        "  --set K=V        a parameter's value, a word or a number with or without its unit:\n"
        "                   link_latency=30, refresh=20us\n"
        "  --sweep K=...    a run for each of a,b,c or LOW..HIGH:xFACTOR or LOW..HIGH:+STEP;\n"
        "                   several sweep all combinations, on all cores (and MPI ranks)\n"
        "  --topology T     network/..., lant/one, roce/one: the network, as a file of nodes,\n"
        "                   switches and links, or in words: torus:4x4x4:2, fat-tree:16@100,20\n"
        "  --pattern P      network/..., forth/one, exanest/one, lant/one: who sends to whom: a "
        "file\n"
        "                   of flows, or in words: tornado, hotspot:0.2\n"
        "  --traffic FILE   or the messages of a trace (docs/topologies.md has the three "
        "grammars)\n"
        "  --judge          compares rows with the document although --set or --sweep changes "
        "the model\n"
        "  --stats          what events, links, nodes and other parts take of memory\n"
        "  --quick          only experiments that take a second or two\n"
        "  --json           for machines: one object, or an array of them for a sweep\n"
        "  --csv            a table for pandas or gnuplot: a line for each point\n"
        "  --trace FILE     a timeline of the first world: .json for Perfetto, .vcd for "
        "GTKWave\n"
        "  --pcap FILE      its packets; tshark shows them with nonic_lab.lua\n\n"
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

static bool parse_repeats(const char *text, uint32_t *repeats)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > LAB_REPEATS_MAX) {
        fprintf(stderr, "nonic: --repeat takes a whole number of 1 to %u, not '%s'\n",
                LAB_REPEATS_MAX, text);
        return false;
    }
    *repeats = (uint32_t)value;
    return true;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0') {
        fprintf(stderr, "nonic: --seed takes a whole number from 0 on, not '%s'\n", text);
        return false;
    }
    return true;
}

/* -- run ----------------------------------------------------------------------------------------*/

/* On a terminal, prints a line that says how far a longer run is. */
static void show_progress(const struct lab_run *run, double share)
{
    static double shown;
    if (share < shown) {
        shown = 0;
    }
    if (isatty(STDERR_FILENO) && share - shown >= 0.01) {
        shown = share;
        fprintf(stderr, "\r%s: %3.0f %%%s", run->experiment->name, share * 100,
                share >= 1 ? "\r\033[K" : "");
    }
}

/* All runs, ready to execute; every value is judged before any of them begins. NULL, and why. */
static struct lab_run *prepare(const struct lab_job *job, uint32_t count, char *error,
                               size_t error_bytes)
{
    struct lab_run *runs = lab_runs_open(count);
    for (uint32_t i = 0; i < count; i++) {
        if (!lab_job_prepare(job, i, &runs[i], error, error_bytes)) {
            lab_runs_close(runs, count);
            return NULL;
        }
    }
    runs[0].trace_path = job->trace_path;
    runs[0].capture_path = job->capture_path;
    if (count == 1) {
        runs[0].progress = show_progress;
    }
    return runs;
}

/* The message comes before a long run, not after it. */
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
        capture = sim_capture_open(job->capture_path, PCAPNG_LINK_BYTES, error, error_bytes);
        if (capture == NULL || !sim_capture_close(capture, error, error_bytes)) {
            return false;
        }
    }
    return true;
}

static bool print(const struct lab_job *job, const struct lab_run *runs, char *error,
                  size_t error_bytes)
{
    const uint32_t points = lab_job_points(job);
    bool good = true;
    for (uint32_t i = 0; i < points * job->repeats; i++) {
        good &= lab_run_good(&runs[i]);
    }
    for (uint32_t i = 0; i < points; i++) {
        if (!lab_repeats_match(&runs[(size_t)i * job->repeats], job->repeats, error, error_bytes)) {
            return false;
        }
    }
    if (job->json) {
        lab_print_json(stdout, job, runs, points);
        return good;
    }
    if (job->csv) {
        lab_print_csv(stdout, job, runs, points);
        return good;
    }
    for (uint32_t i = 0; i < points; i++) {
        if (i > 0) {
            printf("\n");
        }
        lab_print_runs(stdout, job, &runs[(size_t)i * job->repeats]);
    }
    return good;
}

static int execute(const struct lab_job *job)
{
    char error[PATH_MAX + LAB_FAILURE_BYTES] = "";
    const uint32_t count = lab_job_points(job) * job->repeats;
    if (!can_write(job, error, sizeof(error))) {
        return usage_error(error);
    }
    struct lab_run *runs = prepare(job, count, error, sizeof(error));
    if (runs == NULL) {
        return usage_error(error);
    }
    int status = 0; /* Also of an MPI rank whose results another one prints. */
    if (lab_runs_execute(runs, count, NULL, error, sizeof(error))) {
        status = print(job, runs, error, sizeof(error)) ? 0 : 1;
    }
    if (error[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", error);
        status = 1;
    }
    lab_runs_close(runs, count);
    return status;
}

static bool take_text(struct lab_job *job, enum lab_text_kind kind, const char *name)
{
    char error[PATH_MAX + LAB_FAILURE_BYTES];
    if (lab_text_read(&job->texts[kind], kind, name, error, sizeof(error))) {
        return true;
    }
    (void)usage_error(error);
    return false;
}

/* An option that takes a text, in front of enum lab_text_kind. */
#define TEXT_OPTION 0x100

/* The options of `lab run`. */
static const struct option run_options[] = {
    {"seed", required_argument, NULL, 's'},
    {"set", required_argument, NULL, 'k'},
    {"sweep", required_argument, NULL, 'w'},
    {"json", no_argument, NULL, 'j'},
    {"csv", no_argument, NULL, 'c'},
    {"trace", required_argument, NULL, 't'},
    {"pcap", required_argument, NULL, 'p'},
    {"repeat", required_argument, NULL, 'r'},
    {"topology", required_argument, NULL, TEXT_OPTION + LAB_TOPOLOGY},
    {"pattern", required_argument, NULL, TEXT_OPTION + LAB_PATTERN},
    {"traffic", required_argument, NULL, TEXT_OPTION + LAB_TRAFFIC},
    {"judge", no_argument, NULL, 'J'},
    {"stats", no_argument, NULL, 'm'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

/* The experiment stands behind the options, and it defines the sweeps. */
static int run_named(struct lab_job *job, char **words, int count, const char *const *sweeps,
                     uint32_t sweep_count)
{
    char error[LAB_TEXT_BYTES];
    if (count != 1) {
        return usage_error("'lab run' takes the name of one experiment; 'nonic lab list' shows "
                           "them");
    }
    job->experiment = find_or_say(words[0]);
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

static int parse_and_run(struct lab_job *job, int argc, char **argv)
{
    const char *sweeps[LAB_SWEEPS_MAX];
    uint32_t sweep_count = 0;
    int option;
    job->seed = 1;
    job->repeats = 1;
    while ((option = getopt_long(argc, argv, "h", run_options, NULL)) != -1) {
        if (option >= TEXT_OPTION) {
            if (!take_text(job, (enum lab_text_kind)(option - TEXT_OPTION), optarg)) {
                return EXIT_USAGE;
            }
            continue;
        }
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
        case 'r':
            if (!parse_repeats(optarg, &job->repeats)) {
                return EXIT_USAGE;
            }
            break;
        case 'J': job->judge = true; break;
        case 'm': job->stats = true; break;
        case 'j': job->json = true; break;
        case 'c': job->csv = true; break;
        case 't': job->trace_path = optarg; break;
        case 'p': job->capture_path = optarg; break;
        case 'h': print_help(stdout); return 0;
        default:
            return usage_error("valid options of 'lab run' are --seed, --repeat, --set, --sweep, "
                               "--topology, --pattern, --traffic, --judge, --stats, --json, "
                               "--csv, --trace, --pcap, --help");
        }
    }
    if (job->json && job->csv) {
        return usage_error("--json and --csv are two forms of one output: give one of them");
    }
    return run_named(job, argv + optind, argc - optind, sweeps, sweep_count);
}

static int lab_run_command(int argc, char **argv)
{
    struct lab_job job = {.experiment = NULL};
    const int status = parse_and_run(&job, argc, argv);
    lab_job_free(&job);
    return status;
}

/* -- Which experiments --------------------------------------------------------------------------*/

static uint32_t experiment_count(void)
{
    uint32_t count = 0;
    while (lab_experiments[count] != NULL) {
        count++;
    }
    return count;
}

/* Whether a word of the command line means this experiment: by name, or by the part of the name
 * before the '/', which is the document's. */
static bool means(const char *word, const struct lab_experiment *experiment)
{
    const size_t length = strlen(word);
    return strcmp(word, experiment->name) == 0 ||
           (strncmp(word, experiment->name, length) == 0 && experiment->name[length] == '/');
}

struct choice {
    const struct lab_experiment **experiments; /* To be freed. */
    uint32_t count;
};

/* Which experiments the words mean; all without words. False, with a message: a word names none. */
static bool choose(char **words, int count, bool quick, struct choice *choice)
{
    *choice = (struct choice){.count = 0};
    for (int k = 0; k < count; k++) {
        bool any = false;
        for (size_t i = 0; lab_experiments[i] != NULL; i++) {
            any |= means(words[k], lab_experiments[i]);
        }
        if (!any) {
            (void)find_or_say(words[k]);
            return false;
        }
    }
    choice->experiments = calloc(experiment_count(), sizeof(choice->experiments[0]));
    CHECK(choice->experiments != NULL);
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        bool wanted = count == 0;
        for (int k = 0; k < count; k++) {
            wanted |= means(words[k], lab_experiments[i]);
        }
        if (wanted && (lab_experiments[i]->quick || !quick)) {
            choice->experiments[choice->count++] = lab_experiments[i];
        }
    }
    return true;
}

/* -- list, show ---------------------------------------------------------------------------------*/

/* Their options. */
static const struct option show_options[] = {
    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

static int lab_list_command(int argc, char **argv)
{
    bool json = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", show_options, NULL)) != -1) {
        switch (option) {
        case 'j': json = true; break;
        case 'h': print_help(stdout); return 0;
        default: return usage_error("valid options of 'lab list' are --json, --help");
        }
    }
    struct choice choice;
    if (!choose(argv + optind, argc - optind, false, &choice)) {
        return EXIT_USAGE;
    }
    lab_print_list(stdout, choice.experiments, choice.count, json);
    free(choice.experiments);
    return 0;
}

static int lab_show_command(int argc, char **argv)
{
    bool json = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", show_options, NULL)) != -1) {
        switch (option) {
        case 'j': json = true; break;
        case 'h': print_help(stdout); return 0;
        default: return usage_error("valid options of 'lab show' are --json, --help");
        }
    }
    if (optind + 1 != argc) {
        return usage_error("'lab show' takes the name of one experiment");
    }
    const struct lab_experiment *experiment = find_or_say(argv[optind]);
    if (experiment == NULL) {
        return EXIT_USAGE;
    }
    if (!json) {
        lab_print_experiment(stdout, experiment);
        return 0;
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o}", "name", experiment->name, "document",
        experiment->document->title, "what", experiment->what, "explains", experiment->explains,
        "parameters", lab_json_parameters(experiment), "claims", lab_json_claims(experiment));
    json_dumpf(object, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(object);
    return 0;
}

/* -- falsify ------------------------------------------------------------------------------------*/

static int lab_falsify_command(int argc, char **argv)
{
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    uint64_t seed = 1;
    bool quick = false, json = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'q': quick = true; break;
        case 's':
            if (!parse_seed(optarg, &seed)) {
                return EXIT_USAGE;
            }
            break;
        case 'j': json = true; break;
        case 'h': print_help(stdout); return 0;
        default:
            return usage_error("valid options of 'lab falsify' are --quick, --seed, --json, "
                               "--help");
        }
    }
    struct choice choice;
    if (!choose(argv + optind, argc - optind, quick, &choice)) {
        return EXIT_USAGE;
    }
    const int status = choice.count == 0
                           ? usage_error("none of these experiments is quick")
                           : lab_falsify(choice.experiments, choice.count, seed, json);
    free(choice.experiments);
    return status;
}

/* -- report -------------------------------------------------------------------------------------*/

/* The report that is being written: each process that ends a run writes the page anew. */
static struct {
    const char *directory;
    struct lab_run *runs;
    uint32_t count;
} page;

static bool add_to_page(const struct lab_run *run, char *error, size_t error_bytes)
{
    return lab_draw_figures(page.directory, run, error, error_bytes) &&
           lab_write_report(page.directory, page.runs, page.count, error, error_bytes);
}

static void say_finished(const struct lab_run *run, uint32_t number, uint32_t count)
{
    char error[2 * LAB_TEXT_BYTES];
    if (!add_to_page(run, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
    }
    fprintf(stderr, "[%u/%u] %s: %s, %.1f s\n", number, count, run->experiment->name,
            lab_run_good(run) ? "ok" : "NOT AS ITS CLAIMS SAY", run->wall_s);
}

/* Runs experiments and writes it down. */
static bool report(const struct choice *choice, const char *directory, uint64_t seed, char *error,
                   size_t error_bytes)
{
    const uint32_t count = choice->count;
    struct lab_run *runs = lab_runs_open(count);
    for (uint32_t i = 0; i < count; i++) {
        lab_prepare(&runs[i], choice->experiments[i], seed);
    }
    page.directory = directory;
    page.runs = runs;
    page.count = count;
    /* Other ranks' figures may have been drawn on other machines. */
    bool good = lab_runs_execute(runs, count, say_finished, error, error_bytes);
    for (uint32_t i = 0; i < count && good; i++) {
        good = lab_draw_figures(directory, &runs[i], error, error_bytes);
    }
    good = good && lab_write_report(directory, runs, count, error, error_bytes);
    for (uint32_t i = 0; i < count; i++) {
        good &= lab_run_good(&runs[i]);
    }
    lab_runs_close(runs, count);
    return good;
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
    struct choice choice;
    if (!choose(argv + optind, argc - optind, false, &choice)) {
        return EXIT_USAGE;
    }
    char error[2 * LAB_TEXT_BYTES] = "";
    const bool good = report(&choice, directory, seed, error, sizeof(error));
    free(choice.experiments);
    if (error[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", error);
    } else {
        printf("%s/report.html\n", directory);
    }
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"list", lab_list_command},
                    {"run", lab_run_command},
                    {"show", lab_show_command},
                    {"falsify", lab_falsify_command},
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
    fprintf(stderr, "nonic: there is no 'lab %s'; valid are list, show, run, falsify and report\n",
            argv[1]);
    return EXIT_USAGE;
}
