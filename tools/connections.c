/* SPDX-License-Identifier: BSD-2-Clause
 *
 * connections - the command line, and the output.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/connections.h"

#define EXIT_USAGE 2
#define POINTS_MAX 32

struct wishes {
    struct plan plan;
    uint32_t points[POINTS_MAX], point_count;
    const char *wire;
    bool baseline, json;
};

#define WIRE "shm" /* if not given */

static void print_help(void)
{
    printf("usage: nonic bench connections [OPTIONS]\n\n"
           "One process with many connections to passive peers on this machine: message rate, "
           "latency\n"
           "and memory over their number.\n\n"
           "  --qps LIST        connections, such as 16,1024,51200 (at most 131072)\n"
           "  --wire shm|udp    how packets travel; default: shm\n"
           "  --op write|read   RDMA WRITE or RDMA READ; default: write\n"
           "  --size BYTES      of a message, 1 to 65536; default: 64\n"
           "  --depth COUNT     messages under way in all; default: 512\n"
           "  --ring COUNT      send requests a queue pair has room for, 1 to 255; default: 16\n"
           "  --peers COUNT     processes the connections lead to, 1 to 64; default: 2\n"
           "  --random          connections in random order instead of round robin\n"
           "  --seconds TIME    of each measurement; default: 1\n"
           "  --baseline        a second series without batches and prefetching\n"
           "  --json            for machines\n\n"
           "  --system-verbs    a device of the system's libibverbs instead of nonic's\n"
           "  --device NAME     its name; default: the first one\n"
           "  --gid-index N     its GID; default: 0\n\n"
           "bytes/QP is what the initiator's memory grew by, without nonic's send rings.\n");
}

static bool parse_points(struct wishes *wishes, const char *text)
{
    wishes->point_count = 0;
    while (*text != '\0') {
        char *end;
        const unsigned long value = strtoul(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || value == 0 || value > CONNECTIONS_MAX ||
            (*end != ',' && *end != '\0') || wishes->point_count == POINTS_MAX) {
            return false;
        }
        wishes->points[wishes->point_count++] = (uint32_t)value;
        text = *end == ',' ? end + 1 : end;
    }
    return wishes->point_count > 0;
}

static bool parse_count(uint32_t *to, const char *text, uint32_t most)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    *to = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= 1 && value <= most;
}

static bool parse_word(bool *is_second, const char *text, const char *first, const char *second)
{
    *is_second = strcmp(text, second) == 0;
    return *is_second || strcmp(text, first) == 0;
}

static bool parse_seconds(double *to, const char *text)
{
    char *end;
    *to = strtod(text, &end);
    return end != text && *end == '\0' && *to > 0 && *to <= 3600;
}

static int refuse(const char *option, const char *text, const char *valid)
{
    fprintf(stderr, "nonic: --%s is '%s'; valid is %s\n", option, text, valid);
    return EXIT_USAGE;
}

static const struct option options[] = {
    {"qps", required_argument, NULL, 'q'},     {"wire", required_argument, NULL, 'w'},
    {"op", required_argument, NULL, 'o'},      {"size", required_argument, NULL, 's'},
    {"depth", required_argument, NULL, 'd'},   {"ring", required_argument, NULL, 'r'},
    {"peers", required_argument, NULL, 'p'},   {"random", no_argument, NULL, 'R'},
    {"seconds", required_argument, NULL, 't'}, {"baseline", no_argument, NULL, 'b'},
    {"json", no_argument, NULL, 'j'},          {"system-verbs", no_argument, NULL, 'S'},
    {"device", required_argument, NULL, 'D'},  {"gid-index", required_argument, NULL, 'g'},
    {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};

/* Takes the value of an option. Returns NULL, or what the option accepts. */
static const char *take_option(struct wishes *wishes, int option, const char *text)
{
    struct plan *plan = &wishes->plan;
    bool good = true, udp = false;
    const char *valid = NULL;
    switch (option) {
    case 'q':
        good = parse_points(wishes, text);
        valid = "numbers from 1 to 131072, such as 16,51200";
        break;
    case 'w':
        good = parse_word(&udp, text, "shm", "udp");
        wishes->wire = udp ? "udp" : "shm";
        valid = "shm or udp";
        break;
    case 'o':
        good = parse_word(&plan->reads, text, "write", "read");
        valid = "write or read";
        break;
    case 's':
        good = parse_count(&plan->bytes, text, 65536);
        valid = "1 to 65536 bytes";
        break;
    case 'd':
        good = parse_count(&plan->depth, text, 65536);
        valid = "1 to 65536 messages";
        break;
    case 'r':
        good = parse_count(&plan->ring, text, 255);
        valid = "1 to 255 requests";
        break;
    case 'p':
        good = parse_count(&plan->peers, text, PEERS_MAX);
        valid = "1 to 64 processes";
        break;
    case 't':
        good = parse_seconds(&plan->seconds, text);
        valid = "a time in seconds, up to 3600";
        break;
    case 'R': plan->shuffled = true; break;
    case 'b': wishes->baseline = true; break;
    case 'j': wishes->json = true; break;
    case 'S': plan->foreign = true; break;
    case 'D': plan->device = text; break;
    case 'g':
        good = strcmp(text, "0") == 0 || parse_count(&plan->gid_index, text, 255);
        valid = "0 to 255";
        break;
    default: break;
    }
    return good ? NULL : valid;
}

/* Does each option speak of the device that is measured? */
static bool judge(const struct wishes *wishes)
{
    if (wishes->plan.foreign && (wishes->wire != NULL || wishes->baseline)) {
        fprintf(stderr, "nonic: --wire and --baseline are of nonic's device, and --system-verbs "
                        "measures another one\n");
        return false;
    }
    if (!wishes->plan.foreign && (wishes->plan.device != NULL || wishes->plan.gid_index != 0)) {
        fprintf(stderr, "nonic: --device and --gid-index need --system-verbs: nonic has one "
                        "device\n");
        return false;
    }
    return true;
}

/* 0: go on. -1: help was printed. */
static int parse(struct wishes *wishes, int argc, char **argv)
{
    int option, index = 0;
    while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
        if (option == 'h') {
            print_help();
            return -1;
        }
        if (option == '?') {
            fprintf(stderr, "nonic: the options are in nonic bench connections --help\n");
            return EXIT_USAGE;
        }
        const char *valid = take_option(wishes, option, optarg);
        if (valid != NULL) {
            return refuse(options[index].name, optarg, valid);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nonic: what is '%s'? The options are in nonic bench connections --help\n",
                argv[optind]);
        return EXIT_USAGE;
    }
    return judge(wishes) ? 0 : EXIT_USAGE;
}

static json_t *point_json(const struct plan *plan, const struct outcome *outcome)
{
    json_t *point = json_pack("{s:i}", "qps", (int)plan->qps);
    if (outcome->error[0] != '\0') {
        json_object_set_new(point, "error", json_string(outcome->error));
        return point;
    }
    json_object_set_new(point, "rate", json_real(outcome->rate));
    json_object_set_new(point, "latency_us", json_real(outcome->latency_us));
    json_object_set_new(point, "bytes_per_qp", json_real(outcome->bytes_per_qp));
    if (!plan->foreign) {
        json_object_set_new(point, "ring_bytes_per_qp", json_real(outcome->ring_bytes));
    }
    json_object_set_new(point, "setup_s", json_real(outcome->setup_s));
    return point;
}

static void print_point(const struct series *series, const struct plan *plan,
                        const struct outcome *outcome)
{
    if (outcome->error[0] != '\0') {
        printf("%-28s %8u  %s\n", series->name, plan->qps, outcome->error);
    } else {
        printf("%-28s %8u %12.3f %11.2f %10.0f %10.2f\n", series->name, plan->qps,
               outcome->rate / 1e6, outcome->latency_us, outcome->bytes_per_qp, outcome->setup_s);
    }
    fflush(stdout);
}

/* Runs a series; returns its JSON. */
static json_t *run_series(const struct wishes *wishes, const struct series *series, bool *good)
{
    json_t *points = json_array();
    for (uint32_t i = 0; i < wishes->point_count; i++) {
        struct plan plan = wishes->plan;
        struct outcome outcome;
        plan.qps = wishes->points[i];
        plan.peers = plan.peers < plan.qps ? plan.peers : plan.qps;
        run_point(series, &plan, &outcome);
        *good &= outcome.error[0] == '\0';
        json_array_append_new(points, point_json(&plan, &outcome));
        if (!wishes->json) {
            print_point(series, &plan, &outcome);
        }
    }
    return json_pack("{s:s, s:o}", "name", series->name, "points", points);
}

int main(int argc, char **argv)
{
    struct wishes wishes = {
        .plan = {.peers = 2, .bytes = 64, .depth = 512, .ring = 16, .seconds = 1},
        .points = {16, 1024, 16384, 51200},
        .point_count = 4,
    };
    const int status = parse(&wishes, argc, argv);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    const char *device = wishes.plan.device == NULL ? "first device" : wishes.plan.device;
    const char *wire = wishes.wire == NULL ? WIRE : wishes.wire;
    if (!wishes.plan.foreign) {
        setenv("NONIC_WIRE", wire, 1);
    }
    const struct series all[] = {{wishes.plan.foreign ? device : "nonic", NULL},
                                 {"one by one, no prefetch", "1"}};
    if (!wishes.json) {
        printf("%s over %s, %u bytes, %u under way, %u peers\n\n%-28s %8s %12s %11s %10s %10s\n",
               wishes.plan.reads ? "RDMA READ" : "RDMA WRITE",
               wishes.plan.foreign ? "the system's verbs" : wire, wishes.plan.bytes,
               wishes.plan.depth, wishes.plan.peers, "", "QPs", "rate (M/s)", "latency us",
               "bytes/QP", "set-up s");
    }
    json_t *series = json_array();
    bool good = true;
    for (uint32_t i = 0; i < (wishes.baseline ? COUNT_OF(all) : 1u); i++) {
        json_array_append_new(series, run_series(&wishes, &all[i], &good));
    }
    if (wishes.json) {
        json_t *object = json_pack("{s:o}", "series", series);
        json_dumpf(object, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(object);
    } else {
        json_decref(series);
    }
    return !good;
}
