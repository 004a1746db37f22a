/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ucx_endpoints - UCX with many endpoints, beside `nonic bench connections`.
 *
 * One initiator puts to (or gets from) 64 bytes of its own for every endpoint, round robin, in the
 * memory of a few peers that poll. Every number of endpoints is measured in fresh processes. If a
 * number cannot be reached, its point says why.
 *
 * Every endpoint is created from the initiator's one worker to the one worker of a peer. Over tcp
 * each has a connection of its own (files/qp: one socket at each end). Over posix and sysv each has
 * its own mappings of the peer's one queue and of its buffers, and the peer has the same for the
 * way back; the queue itself is shared.
 *
 * --memory own   the peers register memory, as a program for verbs does; without hardware UCX then
 *                carries out an operation by messages to the peer's worker
 * --memory ucx   UCX allocates it: over posix and sysv an operation is a load or store, and a peer
 *                has no part in it
 * --done here    an operation is done when its buffer is free, as UCX says it; at the end of the
 *                measured time all are flushed
 * --done there   an operation is done when its endpoint is flushed, as a signaled write is
 *
 * The latency is that of one operation and its flush. bytes_per_qp is the growth of the resident
 * memory of all processes by set-up and a first operation, shared pages counted once; resident/qp
 * counts them every time they are mapped, and tables/qp are page tables, in neither. Other memory
 * of the kernel, such as buffers of sockets, is not counted.
 */
#include "bench/ucx_endpoints.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options options = {.qps = {16, 256, 4096, 51200},
                          .points = 4,
                          .peers = 2,
                          .depth = 512,
                          .seconds = 1,
                          .limit_s = 20};
struct outcome *outcome;

static int sockets[PEERS_MAX];
static pid_t children[PEERS_MAX + 1];
static volatile sig_atomic_t children_count;

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The first reason is the one that is reported. */
void set_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (outcome->error[0] == '\0') {
        vsnprintf(outcome->error, sizeof(outcome->error), format, arguments);
    }
    va_end(arguments);
}

/* -- The parent: forks, waits, kills ------------------------------------------------------------*/

static void kill_children(void)
{
    for (int i = 0; i < children_count; i++) {
        kill(children[i], SIGKILL);
    }
}

static void on_signal(int number)
{
    kill_children();
    _exit(128 + number);
}

/* Returns 0 in the child, like fork. */
static pid_t fork_child(void)
{
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    if (pid == 0) {
        children_count = 0;
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
    } else {
        children[children_count] = pid;
        children_count = children_count + 1;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return pid;
}

/* Returns the reason if nothing more can be expected. */
static void look_after(double end, uint32_t qps)
{
    siginfo_t child = {0};
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid != 0 &&
        !outcome->finished) {
        set_error("a process ended (%s %d) with %u of %u endpoints",
                  child.si_code == CLD_EXITED ? "status" : "signal", child.si_status,
                  outcome->connected, qps);
    } else if (now() > end && outcome->set_up) {
        set_error("measuring takes too long");
    } else if (now() > end) {
        set_error("set-up takes more than %g s: %u of %u endpoints", options.limit_s,
                  outcome->connected, qps);
    }
}

/* Waits for the doorbell: a byte when the initiator is set up, end of file when it is gone. */
static void supervise(int doorbell, uint32_t qps)
{
    double end = now() + options.limit_s;
    struct pollfd wait = {.fd = doorbell, .events = POLLIN};
    while (outcome->error[0] == '\0' && !outcome->finished) {
        char byte;
        const bool rung = poll(&wait, 1, 50) > 0;
        if (rung && read(doorbell, &byte, 1) == 1) {
            end = now() + options.limit_s + 4 * options.seconds;
        } else if (rung) {
            /* The process is gone, and a moment later its status is there. */
            usleep(10000);
        }
        look_after(end, qps);
    }
}

static void start_peer(uint32_t peer, uint32_t qps)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        perror("socketpair");
        exit(1);
    }
    sockets[peer] = pair[0];
    if (fork_child() == 0) {
        close(pair[0]);
        run_peer(pair[1], peer, qps);
    }
    close(pair[1]);
}

static void run_point(uint32_t qps)
{
    int pair[2];
    memset(outcome, 0, sizeof(*outcome));
    for (uint32_t i = 0; i < options.peers; i++) {
        start_peer(i, qps);
    }
    if (pipe(pair) != 0) {
        perror("pipe");
        exit(1);
    }
    if (fork_child() == 0) {
        close(pair[0]);
        run_initiator(sockets, qps, pair[1]);
    }
    close(pair[1]);
    supervise(pair[0], qps);
    close(pair[0]);
    kill_children();
    while (children_count > 0) {
        children_count = children_count - 1;
        waitpid(children[children_count], NULL, 0);
    }
    for (uint32_t i = 0; i < options.peers; i++) {
        close(sockets[i]);
    }
}

/* -- Options and output -------------------------------------------------------------------------*/

static double per_qp(uint64_t before, uint64_t after, uint32_t qps)
{
    return ((double)after - (double)before) / qps;
}

static void print_point(uint32_t qps, bool first)
{
    const struct outcome *o = outcome;
    const double bytes = per_qp(o->before.bytes, o->after.bytes, qps),
                 resident = per_qp(o->before.resident, o->after.resident, qps),
                 tables = per_qp(o->before.tables, o->after.tables, qps),
                 files = per_qp(o->before.files, o->after.files, qps),
                 mappings = per_qp(o->before.mappings, o->after.mappings, qps);
    if (options.json && o->error[0] != '\0') {
        printf("%s{\"qps\":%u,\"error\":\"%s\"}", first ? "" : ",", qps, o->error);
    } else if (options.json) {
        printf("%s{\"qps\":%u,\"rate\":%.0f,\"latency_us\":%.3f,\"bytes_per_qp\":%.0f,"
               "\"setup_s\":%.4f,\"resident_per_qp\":%.0f,\"tables_per_qp\":%.0f,"
               "\"files_per_qp\":%.2f,\"mappings_per_qp\":%.2f}",
               first ? "" : ",", qps, o->rate, o->latency_us, bytes, o->setup_s, resident, tables,
               files, mappings);
    } else if (o->error[0] != '\0') {
        printf("%8u  %s\n", qps, o->error);
    } else {
        printf("%8u%12.0f%12.2f%14.0f%9.3f%13.0f%10.0f%9.2f%12.2f\n", qps, o->rate, o->latency_us,
               bytes, o->setup_s, resident, tables, files, mappings);
    }
    fflush(stdout);
}

static _Noreturn void usage(void)
{
    fputs("usage: ucx_endpoints [--qps N,N...] [--tls LIST] [--op write|read] [--peers P]\n"
          "    [--depth N] [--seconds S] [--limit S] [--memory own|ucx] [--done here|there]\n"
          "    [--json]\n",
          stderr);
    exit(2);
}

static bool parse_choice(const char *text, const char *no, const char *yes)
{
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0) {
        usage();
    }
    return strcmp(text, yes) == 0;
}

static uint32_t parse_number(char **text, uint32_t most)
{
    char *end;
    const unsigned long number = strtoul(*text, &end, 10);
    if (end == *text || number == 0 || number > most) {
        usage();
    }
    *text = end;
    return (uint32_t)number;
}

static void parse_points(char *text)
{
    options.points = 0;
    do {
        if (options.points == POINTS_MAX) {
            usage();
        }
        options.qps[options.points] = parse_number(&text, QPS_MAX);
        options.points++;
    } while (*text++ == ',');
}

static void parse_option(const char *name, char *value)
{
    if (strcmp(name, "qps") == 0) {
        parse_points(value);
    } else if (strcmp(name, "tls") == 0) {
        setenv("UCX_TLS", value, 1);
    } else if (strcmp(name, "op") == 0) {
        options.read = parse_choice(value, "write", "read");
    } else if (strcmp(name, "peers") == 0) {
        options.peers = parse_number(&value, PEERS_MAX);
    } else if (strcmp(name, "depth") == 0) {
        options.depth = parse_number(&value, DEPTH_MAX);
    } else if (strcmp(name, "seconds") == 0) {
        options.seconds = atof(value);
    } else if (strcmp(name, "limit") == 0) {
        options.limit_s = atof(value);
    } else if (strcmp(name, "memory") == 0) {
        options.allocated = parse_choice(value, "own", "ucx");
    } else if (strcmp(name, "done") == 0) {
        options.acknowledged = parse_choice(value, "here", "there");
    } else {
        options.json = true;
    }
}

static void parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"qps", 1, NULL, 0},    {"tls", 1, NULL, 0},   {"op", 1, NULL, 0},
        {"peers", 1, NULL, 0},  {"depth", 1, NULL, 0}, {"limit", 1, NULL, 0},
        {"memory", 1, NULL, 0}, {"done", 1, NULL, 0},  {"seconds", 1, NULL, 0},
        {"json", 0, NULL, 0},   {NULL, 0, NULL, 0}};
    int index, c;
    while ((c = getopt_long(argc, argv, "", known, &index)) == 0) {
        parse_option(known[index].name, optarg);
    }
    bool wrong = c != -1 || optind != argc || !(options.seconds > 0) || !(options.limit_s > 0);
    for (uint32_t i = 0; i < options.points; i++) {
        wrong |= options.qps[i] < options.peers;
    }
    if (wrong) {
        usage();
    }
}

/* UCX reads these variables when it is loaded, so the program starts again with them. Its log would
 * be on standard output. */
static void set_environment(char **argv)
{
    if (getenv("UCX_LOG_FILE") == NULL) {
        setenv("UCX_LOG_FILE", "stderr", 1);
        setenv("UCX_LOG_LEVEL", "fatal", 0);
        setenv("UCX_HANDLE_ERRORS", "none", 0);
        execv("/proc/self/exe", argv);
        perror("/proc/self/exe");
        exit(1);
    }
}

static void prepare(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    outcome =
        mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    atexit(kill_children);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_signal);
}

int main(int argc, char **argv)
{
    set_environment(argv);
    parse_options(argc, argv);
    prepare();
    const char *transports = getenv("UCX_TLS") != NULL ? getenv("UCX_TLS") : "all";
    const int name = (int)strcspn(transports, ",");
    bool wrong = false;
    if (options.json) {
        printf("{\"series\":[{\"name\":\"UCX %.*s\",\"points\":[", name, transports);
    } else {
        printf("UCX %.*s\n     qps        rate  latency_us  bytes_per_qp  setup_s  resident/qp"
               " tables/qp files/qp mappings/qp\n",
               name, transports);
    }
    fflush(stdout);
    for (uint32_t i = 0; i < options.points; i++) {
        run_point(options.qps[i]);
        print_point(options.qps[i], i == 0);
        wrong |= outcome->wrong_data;
    }
    if (options.json) {
        printf("]}]}\n");
    }
    return wrong;
}
