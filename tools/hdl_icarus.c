/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_icarus.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "hdl/message.h"
#include "hdl/mirror.h"

#define PATIENCE_MS      60000
#define EXIT_NO_VVP      127
#define WINDOW_BYTES_MAX (64u << 20) /* The most that is said about one grant. */

struct icarus {
    struct hdl_model_ops ops;
    char path[PATH_MAX], module[PATH_MAX];
};

struct hdl_model {
    const struct hdl_host *host;
    struct hdl_port *ports[HDL_PORTS_MAX]; /* Mirrors. */
    pid_t process;
    int socket;
    bool reset;  /* Asserted. */
    bool failed; /* There is no simulator any more. */
    uint64_t now_ps, granted_ps, finished_ps;
    uint64_t said_ps;      /* The simulator's last message was of this time. */
    uint64_t deadline_ms;  /* When an answer is due. */
    uint8_t *in;           /* Messages about the last grant. */
    size_t in_bytes, room; /* Bytes that have come. */
    size_t judged, played; /* Bytes of messages that are known to be right, and that took effect. */
    uint8_t out[HDL_MESSAGE_BYTES_MAX];
};

/* -- Failures -----------------------------------------------------------------------------------*/

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Ends the process, if it has not ended within a second. Returns its status. */
static int reap(struct hdl_model *model)
{
    int status = 0;
    close(model->socket);
    for (uint32_t i = 0; waitpid(model->process, &status, WNOHANG) == 0; i++) {
        if (i == 100) {
            kill(model->process, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    model->failed = true;
    return status;
}

static void fail(struct hdl_model *model, const char *why)
{
    char text[160];
    snprintf(text, sizeof(text), "the simulator %s", why);
    (void)reap(model);
    model->host->fail(model->host->owner, text);
}

/* The process has closed its end. */
static void fail_ended(struct hdl_model *model)
{
    char text[160];
    const int status = reap(model);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_VVP) {
        snprintf(text, sizeof(text), "vvp is not installed (Debian: apt install iverilog)");
    } else if (WIFSIGNALED(status)) {
        snprintf(text, sizeof(text), "the simulator was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(text, sizeof(text), "the simulator ended before the run, with status %d",
                 WEXITSTATUS(status));
    }
    model->host->fail(model->host->owner, text);
}

/* -- The socket ---------------------------------------------------------------------------------*/

/* False: it has failed. */
static bool wait_for(struct hdl_model *model, short event)
{
    for (;;) {
        const uint64_t now_ms = clock_ms();
        struct pollfd one = {.fd = model->socket, .events = event};
        const int left_ms = now_ms < model->deadline_ms ? (int)(model->deadline_ms - now_ms) : 0;
        const int found = poll(&one, 1, left_ms);
        if (found > 0) {
            return true;
        }
        if (found == 0) {
            fail(model, "has not answered for 60 seconds");
            return false;
        }
        CHECK(errno == EINTR);
    }
}

static void say(struct hdl_model *model, const struct hdl_message *message)
{
    const uint32_t bytes = hdl_message_encode(message, model->out);
    uint32_t sent = 0;
    while (sent < bytes && !model->failed && wait_for(model, POLLOUT)) {
        const ssize_t count =
            send(model->socket, model->out + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            fail_ended(model);
        }
        sent += count > 0 ? (uint32_t)count : 0;
    }
}

/* More bytes come. False: it has failed. */
static bool hear_more(struct hdl_model *model)
{
    if (model->in_bytes == model->room) {
        if (model->room == WINDOW_BYTES_MAX) {
            fail(model, "says more about one grant than can be");
            return false;
        }
        model->room = model->room == 0 ? 1u << 16 : 2 * model->room;
        model->in = realloc(model->in, model->room);
        CHECK(model->in != NULL);
    }
    while (wait_for(model, POLLIN)) {
        const ssize_t count = recv(model->socket, model->in + model->in_bytes,
                                   model->room - model->in_bytes, MSG_DONTWAIT);
        if (count > 0) {
            model->in_bytes += (size_t)count;
            return true;
        }
        if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            fail_ended(model);
            return false;
        }
    }
    return false;
}

/* The message at `at`, and how long it is. False: it has failed. */
static bool hear(struct hdl_model *model, size_t at, struct hdl_message *message, uint32_t *used)
{
    do {
        const char *wrong =
            hdl_message_decode(model->in + at, model->in_bytes - at, HDL_FROM_MODEL, message, used);
        if (wrong != NULL) {
            char text[120];
            snprintf(text, sizeof(text), "sent %s", wrong);
            fail(model, text);
            return false;
        }
        if (*used > 0) {
            return true;
        }
    } while (hear_more(model));
    return false;
}

/* -- A grant ------------------------------------------------------------------------------------*/

/* Time does not run back, and nothing is told before it was granted. */
static bool in_time(const struct hdl_model *model, const struct hdl_message *message)
{
    const bool at_end = message->type == HDL_DONE;
    return message->type != HDL_HELLO && message->time_ps >= model->said_ps &&
           message->time_ps <= model->granted_ps &&
           (!at_end || message->time_ps == model->granted_ps) &&
           (message->type != HDL_FRAME || message->frame.at_ps >= message->time_ps);
}

/* Reads all that happens up to the time that is granted. */
static void collect(struct hdl_model *model)
{
    struct hdl_message message;
    uint32_t used;
    model->in_bytes = model->judged = model->played = 0;
    model->deadline_ms = clock_ms() + PATIENCE_MS;
    while (hear(model, model->judged, &message, &used)) {
        if (!in_time(model, &message)) {
            fail(model, "told something of a time at which it is not");
            return;
        }
        model->said_ps = message.time_ps;
        model->judged += used;
        if (message.type == HDL_FINISH) {
            model->finished_ps = message.time_ps;
        }
        if (message.type == HDL_FINISH || message.type == HDL_DONE) {
            if (model->judged != model->in_bytes) {
                fail(model, "says more than it was asked");
            }
            return;
        }
    }
}

static void forward(struct hdl_model *model, uint32_t number)
{
    struct hdl_port *port = model->ports[number];
    struct hdl_message message = {.port = number};
    message.type = HDL_FRAME;
    while (!model->failed && hdl_mirror_next_frame(port, &message.frame)) {
        say(model, &message);
    }
    message.type = HDL_PAUSE;
    while (!model->failed && hdl_mirror_next_pause(port, &message.pause)) {
        message.time_ps = message.pause.at_ps;
        say(model, &message);
    }
}

/* Up to and including this time. */
static void grant(struct hdl_model *model, uint64_t to_ps)
{
    model->deadline_ms = clock_ms() + PATIENCE_MS;
    for (uint32_t i = 0; i < HDL_PORTS_MAX; i++) {
        if (model->ports[i] != NULL) {
            forward(model, i);
        }
    }
    model->granted_ps = to_ps;
    if (!model->failed) {
        say(model, &(struct hdl_message){.type = HDL_GRANT,
                                         .time_ps = to_ps,
                                         .period_fs = model->host->period_fs[0]});
    }
    if (!model->failed) {
        collect(model);
    }
}

static bool apply(struct hdl_model *model, const struct hdl_message *message)
{
    struct hdl_port *port = model->ports[message->port];
    if (port == NULL) {
        return false;
    }
    if (message->type == HDL_FRAME) {
        return hdl_mirror_on_frame(port, &message->frame);
    }
    if (message->type == HDL_COUNTERS) {
        return hdl_mirror_on_counters(port, &message->counters);
    }
    hdl_mirror_on_violation(port, &message->violation);
    return true;
}

/* Messages up to now take effect. */
static void play(struct hdl_model *model)
{
    while (!model->failed && model->played < model->judged) {
        struct hdl_message message;
        uint32_t used;
        const bool whole = hear(model, model->played, &message, &used);
        CHECK(whole);
        if (message.time_ps > model->now_ps) {
            return;
        }
        if (message.type != HDL_DONE && message.type != HDL_FINISH && !apply(model, &message)) {
            fail(model, "told what cannot have happened at a port");
        }
        model->played += used;
    }
}

/* While reset is asserted edges are granted one by one: when it ends is not known ahead. */
static void step(struct hdl_model *model, uint64_t now_ps, uint32_t clocks)
{
    (void)clocks;
    model->now_ps = now_ps;
    if (!model->failed && now_ps > model->granted_ps && model->finished_ps == UINT64_MAX) {
        grant(model, now_ps + (model->reset ? 0 : model->host->lookahead_ps));
    }
    play(model);
}

static void reset(struct hdl_model *model, bool asserted)
{
    model->reset = asserted;
    if (!model->failed) {
        model->deadline_ms = clock_ms() + PATIENCE_MS;
        say(model, &(struct hdl_message){.type = HDL_RESET, .reset = asserted});
    }
}

static bool trace(struct hdl_model *model, const char *path, uint64_t from_ps, uint64_t to_ps)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || strlen(path) > HDL_PATH_BYTES_MAX) {
        return false;
    }
    fclose(file);
    model->deadline_ms = clock_ms() + PATIENCE_MS;
    say(model, &(struct hdl_message){
                   .type = HDL_TRACE,
                   .time_ps = from_ps,
                   .trace = {.path = path, .bytes = (uint32_t)strlen(path), .to_ps = to_ps}});
    return true;
}

static bool finished(const struct hdl_model *model)
{
    return model->now_ps >= model->finished_ps;
}

/* -- The process --------------------------------------------------------------------------------*/

static void become_simulator(const struct icarus *icarus, int socket)
{
    char descriptor[16];
    const int own = dup(socket); /* The other one is closed by exec. */
    snprintf(descriptor, sizeof(descriptor), "%d", own);
    setenv("NONIC_HDL_FD", descriptor, 1);
    /* -n: $stop ends it, and asks nobody. Only FST has a name for each signal's type. */
    execlp("vvp", "vvp", "-n", "-m", icarus->module, icarus->path, "-fst", (char *)NULL);
    _exit(EXIT_NO_VVP);
}

static bool start(struct hdl_model *model, const struct icarus *icarus)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    fflush(NULL);
    model->process = fork();
    if (model->process == 0) {
        become_simulator(icarus, ends[1]);
    }
    close(ends[1]);
    model->socket = ends[0];
    if (model->process < 0) {
        close(ends[0]);
        return false;
    }
    return true;
}

/* The design's ports get their mirrors, and the ports there the same configuration. */
static bool greet(struct hdl_model *model)
{
    struct hdl_message message;
    uint32_t used;
    model->deadline_ms = clock_ms() + PATIENCE_MS;
    if (!hear(model, 0, &message, &used)) {
        return false;
    }
    if (message.type != HDL_HELLO) {
        fail(model, "does not begin with a greeting");
        return false;
    }
    const struct hdl_hello *hello = &message.hello;
    if (hello->abi != HDL_ABI) {
        (void)reap(model);
        model->host->fail(model->host->owner,
                          "the design was compiled by another nonic: build it again");
        return false;
    }
    if (hello->ports == 0) {
        (void)reap(model);
    }
    for (uint32_t i = 0; i < hello->ports; i++) {
        const uint32_t number = hello->port[i].number;
        struct hdl_port *port = model->host->attach(
            model->host->owner, number, hello->port[i].width_bits, false, hello->port[i].scope);
        if (port == NULL) {
            (void)reap(model);
            return false;
        }
        model->ports[number] = port;
        say(model, &(struct hdl_message){
                       .type = HDL_PORT, .port = number, .config = *hdl_mirror_config(port)});
    }
    return !model->failed;
}

static void close_model(struct hdl_model *model)
{
    if (!model->failed) {
        model->deadline_ms = clock_ms() + PATIENCE_MS;
        say(model, &(struct hdl_message){.type = HDL_FINISH});
        /* It writes its trace to the end. */
        while (!model->failed && wait_for(model, POLLIN) &&
               recv(model->socket, model->out, sizeof(model->out), MSG_DONTWAIT) != 0) {
        }
        if (!model->failed) {
            (void)reap(model);
        }
    }
    free(model->in);
    free(model);
}

static struct hdl_model *open_model(const struct hdl_model_ops *ops, const struct hdl_host *host,
                                    uint64_t seed)
{
    (void)seed; /* Registers without a value are X. */
    const struct icarus *icarus = CONTAINER_OF_CONST(ops, struct icarus, ops);
    struct hdl_model *model = malloc(sizeof(*model));
    CHECK(model != NULL);
    *model = (struct hdl_model){.host = host, .reset = true, .finished_ps = UINT64_MAX};
    if (!start(model, icarus)) {
        host->fail(host->owner, "no process for the simulator");
        free(model);
        return NULL;
    }
    if (!greet(model)) {
        close_model(model);
        return NULL;
    }
    return model;
}

/* -- Files --------------------------------------------------------------------------------------*/

bool hdl_is_icarus(const char *path)
{
    char begin[256] = "";
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        begin[fread(begin, 1, sizeof(begin) - 1, file)] = '\0';
        fclose(file);
    }
    return strncmp(begin, "#!", 2) == 0 && strstr(begin, ":ivl_version") != NULL;
}

void hdl_icarus_module(const char *path, char module[PATH_MAX])
{
    const size_t length = strlen(path);
    const bool ends = length > 4 && strcmp(path + length - 4, ".vvp") == 0;
    snprintf(module, PATH_MAX, "%.*s.vpi", (int)(ends ? length - 4 : length), path);
}

const struct hdl_model_ops *hdl_load_icarus(const char *path)
{
    struct icarus *icarus = malloc(sizeof(*icarus));
    CHECK(icarus != NULL);
    *icarus = (struct icarus){.ops = {.abi = HDL_ABI,
                                      .in_bytes = sizeof(struct hdl_in),
                                      .out_bytes = sizeof(struct hdl_out),
                                      .name = path,
                                      .open = open_model,
                                      .reset = reset,
                                      .step = step,
                                      .trace = trace,
                                      .finished = finished,
                                      .close = close_model}};
    if (realpath(path, icarus->path) == NULL) {
        fprintf(stderr, "nonic: %s: %s\n", path, strerror(errno));
        free(icarus);
        return NULL;
    }
    hdl_icarus_module(icarus->path, icarus->module);
    if (access(icarus->module, R_OK) != 0) {
        fprintf(stderr, "nonic: %s is not there: `nonic hdl build` makes both\n", icarus->module);
        free(icarus);
        return NULL;
    }
    return &icarus->ops;
}
