/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic stat - the counters of running programs.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/stat_server.h"
#include "tools/nonic.h"

#define PROGRAMS_MAX      1024
#define TEXT_BYTES        8192
#define WATCH_SECONDS_MAX 86400

static void print_help(void)
{
    printf("usage: nonic stat [--json] [--all] [--watch SECONDS] [PID...]\n\n"
           "Shows the counters of the programs that run on nonic: all of yours, or those named.\n\n"
           "  --all            also counters that are 0\n"
           "  --watch SECONDS  again and again, with the change per second\n"
           "  --json           for machines\n");
}

/* -- Asking -------------------------------------------------------------------------------------*/

/* Programs listen on abstract sockets, which the kernel lists. */
static int find_programs(int *pids)
{
    FILE *sockets = fopen("/proc/net/unix", "re");
    char line[512];
    int count = 0;
    while (sockets != NULL && count < PROGRAMS_MAX && fgets(line, sizeof(line), sockets) != NULL) {
        const char *name = strstr(line, "@" STAT_SOCKET_PREFIX);
        if (name == NULL) {
            continue;
        }
        const int pid = atoi(name + strlen("@" STAT_SOCKET_PREFIX));
        bool known = false;
        for (int i = 0; i < count; i++) {
            known |= pids[i] == pid;
        }
        if (!known && pid > 0) {
            pids[count++] = pid;
        }
    }
    if (sockets != NULL) {
        fclose(sockets);
    }
    return count;
}

/* The text a program answers with; false: it is not there, or does not want to. */
static bool ask(int pid, char *text, size_t bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count =
        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, STAT_SOCKET_PREFIX "%d", pid);
    const socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* A stopped program does not answer: do not wait for it for ever. */
    const struct timeval patience = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t received = -1;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, length) == 0) {
        received = recv(fd, text, bytes - 1, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    text[received > 0 ? received : 0] = '\0';
    return received > 0;
}

static void command_of(int pid, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (file != NULL) {
        if (fgets(text, (int)bytes, file) != NULL) {
            text[strcspn(text, "\n")] = '\0';
        }
        fclose(file);
    }
}

/* -- Showing ------------------------------------------------------------------------------------*/

static json_t *parse(const char *text)
{
    json_t *counters = json_object();
    char copy[TEXT_BYTES];
    snprintf(copy, sizeof(copy), "%s", text);
    char *rest = copy;
    char *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *value = strchr(line, ' ');
        if (value == NULL) {
            continue;
        }
        *value++ = '\0';
        json_object_set_new(counters, line,
                            strcmp(line, "device") == 0
                                ? json_string(value)
                                : json_integer((json_int_t)strtoull(value, NULL, 10)));
    }
    return counters;
}

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

static void show(int pid, const json_t *now, const json_t *before, unsigned seconds, bool all)
{
    char command[64];
    command_of(pid, command, sizeof(command));
    printf("%d %s on %s\n", pid, command, json_string_value(json_object_get(now, "device")));
    print_counters(now, before, seconds, all);
}

struct request {
    bool json, all;
    unsigned watch;
    int pids[PROGRAMS_MAX];
    int count;
    bool named;
};

/* One look at all programs; `memory` keeps what the last look saw. Returns how many answered. */
static int look(struct request *request, json_t *memory)
{
    if (!request->named) {
        request->count = find_programs(request->pids);
    }
    int answered = 0;
    json_t *list = json_array();
    for (int i = 0; i < request->count; i++) {
        char text[TEXT_BYTES], key[32];
        if (!ask(request->pids[i], text, sizeof(text))) {
            continue;
        }
        answered++;
        snprintf(key, sizeof(key), "%d", request->pids[i]);
        json_t *now = parse(text);
        if (request->json) {
            json_array_append_new(
                list, json_pack("{s:i, s:O}", "pid", request->pids[i], "counters", now));
        } else {
            show(request->pids[i], now, json_object_get(memory, key), request->watch, request->all);
        }
        json_object_set_new(memory, key, now);
    }
    if (request->json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(list);
    fflush(stdout);
    return answered;
}

static bool parse_pids(struct request *request, int argc, char **argv)
{
    for (int i = 0; i < argc && i < PROGRAMS_MAX; i++) {
        char *end;
        const long pid = strtol(argv[i], &end, 10);
        if (*end != '\0' || pid <= 0) {
            fprintf(stderr, "nonic: '%s' is not a process number\n", argv[i]);
            return false;
        }
        request->pids[request->count++] = (int)pid;
        request->named = true;
    }
    return true;
}

static bool parse_seconds(const char *text, unsigned *seconds)
{
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > WATCH_SECONDS_MAX) {
        fprintf(stderr, "nonic: --watch is '%s'; valid are 1 to %d seconds\n", text,
                WATCH_SECONDS_MAX);
        return false;
    }
    *seconds = (unsigned)value;
    return true;
}

int command_stat(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"all", no_argument, NULL, 'a'},
                                            {"watch", required_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct request request = {0};
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j': request.json = true; break;
        case 'a': request.all = true; break;
        case 'w':
            if (!parse_seconds(optarg, &request.watch)) {
                return EXIT_USAGE;
            }
            break;
        case 'h': print_help(); return 0;
        default:
            fprintf(stderr, "nonic: valid options of 'stat' are --json, --all, --watch, --help\n");
            return EXIT_USAGE;
        }
    }
    if (!parse_pids(&request, argc - optind, argv + optind)) {
        return EXIT_USAGE;
    }
    json_t *memory = json_object();
    int answered = look(&request, memory);
    while (request.watch > 0 && answered > 0) {
        sleep(request.watch);
        answered = look(&request, memory);
    }
    json_decref(memory);
    if (answered == 0 && !request.json) {
        fprintf(stderr, request.named ? "nonic: no such program runs on nonic, or it does not "
                                        "answer\n"
                                      : "nonic: no program of yours runs on nonic\n");
    }
    return answered > 0 ? 0 : 1;
}
