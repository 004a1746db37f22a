/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic stat - the counters of running programs.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/stat_ask.h"
#include "drivers/stat_server.h"
#include "tools/feroce_text.h"
#include "tools/nonic.h"
#include "tools/stat_hang.h"
#include "tools/stat_text.h"

#define WATCH_SECONDS_MAX 86400

static void print_help(void)
{
    printf("usage: nonic stat [--json] [--all] [--connections] [--watch SECONDS] [PID...]\n"
           "       nonic stat --hang [--json] [PID...]\n\n"
           "Shows the counters of the programs that run on nonic: all of yours (as root: of all\n"
           "users), or those named. Says how many it left out, and why.\n\n"
           "  --all            also counters that are 0\n"
           "  --connections    instead: round trip, losses, paths and window of each connection\n"
           "  --hang           instead: which queue pairs stood still for a second, and what for\n"
           "  --watch SECONDS  again and again, with the change per second\n"
           "  --json           for machines\n");
}

struct request {
    bool json, all, connections, hang;
    unsigned watch;
    struct stat_named named;
    struct left_out left_out; /* The last message about it. */
};

/* -- Showing ------------------------------------------------------------------------------------*/

static void print_counters(const json_t *now, const json_t *before, unsigned seconds, bool all)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)now, name, value)
    {
        const json_int_t count = json_integer_value(value);
        if (!json_is_integer(value) || (count == 0 && !all)) {
            continue;
        }
        printf("  %-26s %20" JSON_INTEGER_FORMAT, name, count);
        if (before != NULL) {
            const json_int_t change = count - json_integer_value(json_object_get(before, name));
            printf("  %14" JSON_INTEGER_FORMAT "/s", change / (json_int_t)seconds);
        }
        printf("\n");
    }
}

static json_int_t count_in(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *word_in(const json_t *object, const char *name)
{
    const char *word = json_string_value(json_object_get(object, name));
    return word == NULL ? "?" : word;
}

/* "-": the program does not know, or there is no limit. */
static void print_known(int width, json_int_t count)
{
    if (count == 0) {
        printf(" %*s", width, "-");
    } else {
        printf(" %*" JSON_INTEGER_FORMAT, width, count);
    }
}

static void print_connections(const json_t *connections)
{
    size_t i;
    json_t *connection;
    if (json_array_size(connections) > 0) {
        printf("  %-8s %-6s %-8s %10s %8s %5s %10s %10s  %s\n", "QPN", "sends", "receives",
               "trip [us]", "losses", "paths", "window", "in flight", "peer");
    }
    json_array_foreach((json_t *)(uintptr_t)connections, i, connection)
    {
        printf("  %-8" JSON_INTEGER_FORMAT " %-6s %-8s", count_in(connection, "qpn"),
               word_in(connection, "sends"), word_in(connection, "receives"));
        print_known(10, (count_in(connection, "round_trip_ns") + 500) / 1000);
        printf(" %8" JSON_INTEGER_FORMAT " %5" JSON_INTEGER_FORMAT, count_in(connection, "losses"),
               count_in(connection, "paths"));
        print_known(10, count_in(connection, "window_bytes"));
        printf(" %10" JSON_INTEGER_FORMAT "  %s %" JSON_INTEGER_FORMAT "\n",
               count_in(connection, "flight_bytes"), word_in(connection, "peer"),
               count_in(connection, "peer_qpn"));
    }
}

static void show(const struct stat_program *program, const json_t *now, const json_t *before,
                 const json_t *connections, const struct request *request)
{
    char command[64];
    stat_command_of(program->process, command, sizeof(command));
    const char *device = json_string_value(json_object_get(now, "device"));
    printf("%d %s on %s", program->pid, command, device == NULL ? "?" : device);
    if (program->user != geteuid()) {
        const struct passwd *entry = getpwuid(program->user);
        printf(" of user %u %s", program->user, entry == NULL ? "" : entry->pw_name);
    }
    printf("\n");
    if (request->connections) {
        print_connections(connections);
    } else {
        print_counters(now, before, request->watch, request->all);
    }
}

/* False: it cannot be read. */
static bool take(struct request *request, const struct stat_program *program, json_t *memory,
                 json_t *list)
{
    char key[32];
    snprintf(key, sizeof(key), "%d", program->pid);
    json_t *connections = json_array();
    json_t *now = stat_parse_counters(program->text, connections);
    if (now == NULL) {
        json_decref(connections);
        return false;
    }
    if (request->json) {
        const char *what = request->connections ? "connections" : "counters";
        json_array_append_new(list, json_pack("{s:i, s:I, s:O}", "pid", program->pid, "uid",
                                              (json_int_t)program->user, what,
                                              request->connections ? connections : now));
    } else {
        show(program, now, json_object_get(memory, key), connections, request);
    }
    json_decref(connections);
    json_object_set_new(memory, key, now);
    return true;
}

/* Returns the programs that were named, or all that there are; they have not been asked yet. */
static size_t choose(const struct stat_named *named, struct stat_program **programs)
{
    if (named->count == 0) {
        return stat_find(programs);
    }
    *programs = calloc(named->count, sizeof(**programs));
    for (size_t i = 0; *programs != NULL && i < named->count; i++) {
        (*programs)[i].pid = named->pids[i];
    }
    return *programs == NULL ? 0 : named->count;
}

/* One look at all programs; `memory` keeps what the last look saw. Returns how many answered. */
static size_t look(struct request *request, json_t *memory)
{
    struct stat_program *programs;
    const size_t count = choose(&request->named, &programs);
    size_t seen[STAT_SILENT + 1] = {0}, newer = 0;
    json_t *list = json_array();
    stat_ask(programs, count, request->connections, NULL);
    for (size_t i = 0; i < count; i++) {
        seen[programs[i].outcome]++;
        if (programs[i].outcome == STAT_ANSWERED) {
            newer += !take(request, &programs[i], memory, list);
        }
    }
    stat_forget(programs, count);
    if (request->json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(list);
    fflush(stdout);
    const struct left_out left_out = {
        .foreign = seen[STAT_FOREIGN], .silent = seen[STAT_SILENT], .newer = newer};
    stat_say_left_out(&request->left_out, &left_out);
    return seen[STAT_ANSWERED] - newer;
}

/* -- The command line ---------------------------------------------------------------------------*/

static bool parse_seconds(const char *text, unsigned *seconds)
{
    uint64_t value;
    if (!text_number(text, 1, WATCH_SECONDS_MAX, &value)) {
        fprintf(stderr, "nonic: --watch is '%s'; valid are 1 to %d seconds\n", text,
                WATCH_SECONDS_MAX);
        return false;
    }
    *seconds = (unsigned)value;
    return true;
}

static int hang(struct request *request)
{
    int status = EXIT_USAGE;
    if (request->all || request->connections || request->watch > 0) {
        fprintf(stderr, "nonic: --hang goes with --json only\n");
    } else {
        status = stat_hang(&request->named, request->json);
    }
    free(request->named.pids);
    return status;
}

int command_stat(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"all", no_argument, NULL, 'a'},
                                            {"connections", no_argument, NULL, 'c'},
                                            {"watch", required_argument, NULL, 'w'},
                                            {"hang", no_argument, NULL, 'H'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct request request = {0};
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j': request.json = true; break;
        case 'a': request.all = true; break;
        case 'c': request.connections = true; break;
        case 'H': request.hang = true; break;
        case 'w':
            if (!parse_seconds(optarg, &request.watch)) {
                return EXIT_USAGE;
            }
            break;
        case 'h': print_help(); return 0;
        default:
            fprintf(stderr, "nonic: valid options of 'stat' are --json, --all, --connections, "
                            "--hang, --watch, --help\n");
            return EXIT_USAGE;
        }
    }
    if (!stat_parse_pids(&request.named, argc - optind, argv + optind)) {
        return EXIT_USAGE;
    }
    if (request.hang) {
        return hang(&request);
    }
    json_t *memory = json_object();
    size_t answered = look(&request, memory);
    while (request.watch > 0 && answered > 0) {
        sleep(request.watch);
        answered = look(&request, memory);
    }
    json_decref(memory);
    free(request.named.pids);
    if (answered == 0 && !request.json) {
        fprintf(stderr, request.named.count > 0
                            ? "nonic: no such program runs on nonic, or it does not "
                              "answer\n"
                            : "nonic: no program of yours runs on nonic\n");
    }
    return answered > 0 ? 0 : 1;
}
