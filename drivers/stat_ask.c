/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/stat_ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "drivers/stat_server.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"

#define TEXT_BYTES     8192
#define SAID_BYTES_MAX (1u << 20)
#define PATIENCE_NS    INT64_C(1000000000)
#define TOTAL_NS       INT64_C(5000000000)
#define ROUND_MS       10
#define ASKED_AT_ONCE  128

/* -- Finding ------------------------------------------------------------------------------------*/

static int by_pid(const void *a, const void *b)
{
    const struct stat_program *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

/* The list has several sockets of one name: the listener and the connections that it accepted. */
static size_t drop_copies(struct stat_program *programs, size_t count)
{
    size_t kept = 0;
    if (count > 0) {
        qsort(programs, count, sizeof(*programs), by_pid);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || programs[kept - 1].pid != programs[i].pid) {
            programs[kept++] = programs[i];
        }
    }
    return kept;
}

/* The process number in a line of /proc/net/unix; 0: it is about another socket. */
static int pid_in(const char *line)
{
    const char *name = strstr(line, "@" STAT_SOCKET_PREFIX);
    if (name == NULL) {
        return 0;
    }
    char *end;
    const char *number = name + strlen("@" STAT_SOCKET_PREFIX);
    const long pid = strtol(number, &end, 10);
    /* No program listens by a name with a sign, a space or a zero before its number. */
    const bool good = number[0] >= '1' && number[0] <= '9' && *end == '\n';
    return good && pid <= INT32_MAX ? (int)pid : 0;
}

size_t stat_find(struct stat_program **programs)
{
    struct lines sockets;
    char line[512];
    size_t count = 0, room = 0;
    *programs = NULL;
    lines_open(&sockets, AT_FDCWD, "/proc/net/unix");
    while (lines_next(&sockets, line, sizeof(line))) {
        const int pid = pid_in(line);
        if (pid == 0) {
            continue;
        }
        if (count == room) {
            room = 2 * room + 64;
            struct stat_program *more = realloc(*programs, room * sizeof(*more));
            if (more == NULL) {
                break;
            }
            *programs = more;
        }
        (*programs)[count++] = (struct stat_program){.pid = pid};
    }
    (void)lines_close(&sockets);
    return drop_copies(*programs, count);
}

/* -- Asking -------------------------------------------------------------------------------------*/

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void settle(struct stat_program *program, enum stat_outcome outcome)
{
    CHECK(program->outcome == STAT_ASKING && outcome != STAT_ASKING);
    CHECK(outcome != STAT_ANSWERED || program->text != NULL);
    program->outcome = outcome;
    descriptor_close(program->socket);
    program->socket = -1;
}

/* The program has said all that we wait for. */
static void settle_with_text(struct stat_program *program)
{
    settle(program, program->text != NULL ? STAT_ANSWERED : STAT_SILENT);
}

/* The kernel says who called listen on the other end. A process of root that did so may have given
 * up its rights since. */
static bool may_believe(struct stat_program *program)
{
    const uid_t user = local_user(program->socket);
    program->process = local_peer(program->socket);
    const uid_t now = program->process == 0 ? user : user_of_process(program->process, NULL);
    program->user = user == 0 ? now : user;
    const bool known = user != USER_UNKNOWN && now != USER_UNKNOWN;
    return known && (geteuid() == 0 || (user == geteuid() && now == geteuid()));
}

/* Never waits: where the listener's queue is full, the next round tries again. */
static void dial(struct stat_program *program)
{
    CHECK(program->socket < 0 && program->pid > 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                               STAT_SOCKET_PREFIX "%d", program->pid);
    const socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
    const int fd =
        descriptor_own(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0) {
        return;
    }
    if (program->wish != NULL && !stat_server_wish_for(fd, program->wish)) {
        descriptor_close(fd);
        return;
    }
    if (system_connect(fd, (const struct sockaddr *)&address, length) != 0) {
        const bool busy = errno == EAGAIN || errno == EINTR;
        descriptor_close(fd);
        if (!busy) {
            settle(program, STAT_GONE);
        }
        return;
    }
    program->socket = fd;
    if (!may_believe(program)) {
        settle(program, STAT_FOREIGN);
    }
}

/* Puts another message behind the text that was heard. False: there is no memory, or the text is
 * too long. */
static bool append(struct stat_program *program, const char *message)
{
    const size_t before = program->text == NULL ? 0 : strlen(program->text);
    const size_t more = strlen(message);
    if (before + more > SAID_BYTES_MAX) {
        return false;
    }
    char *text = realloc(program->text, before + more + 1);
    if (text == NULL) {
        return false;
    }
    memcpy(text + before, message, more + 1);
    program->text = text;
    return true;
}

static void listen_to(struct stat_program *program, bool all)
{
    char text[TEXT_BYTES];
    CHECK(program->socket >= 0 && program->outcome == STAT_ASKING);
    const ssize_t received = system_recv(program->socket, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (received > 0) {
        text[received] = '\0';
        if (append(program, text) && all) {
            return; /* Until the program closes its end. */
        }
    }
    settle_with_text(program);
}

/* Reads from the programs that have answered, in one round. */
static void hear(struct stat_program *const *asked, nfds_t count, bool all)
{
    struct pollfd polls[ASKED_AT_ONCE];
    CHECK(count <= ASKED_AT_ONCE);
    for (nfds_t i = 0; i < count; i++) {
        polls[i] = (struct pollfd){.fd = asked[i]->socket, .events = POLLIN};
    }
    if (poll(polls, count, ROUND_MS) <= 0) {
        return;
    }
    for (nfds_t i = 0; i < count; i++) {
        if (polls[i].revents != 0) {
            listen_to(asked[i], all);
        }
    }
}

void stat_ask(struct stat_program *programs, size_t count, bool all, const char *wish)
{
    const int64_t end = now_ns() + TOTAL_NS;
    size_t asking = count;
    for (size_t i = 0; i < count; i++) {
        CHECK(programs[i].outcome == STAT_ASKING && programs[i].text == NULL);
        programs[i].socket = -1;
        programs[i].wish = wish;
    }
    while (asking > 0) {
        const int64_t now = now_ns();
        struct stat_program *asked[ASKED_AT_ONCE];
        nfds_t open = 0;
        asking = 0;
        for (size_t i = 0; i < count && open < ASKED_AT_ONCE; i++) {
            struct stat_program *program = &programs[i];
            if (program->outcome != STAT_ASKING) {
                continue;
            }
            asking++;
            program->asked_at = program->asked_at == 0 ? now : program->asked_at;
            if (now >= end || now - program->asked_at >= PATIENCE_NS) {
                settle_with_text(program);
            } else if (program->socket < 0) {
                dial(program);
            }
            if (program->socket >= 0) {
                asked[open++] = program;
            }
        }
        if (asking > 0) {
            hear(asked, open, all);
        }
    }
}

void stat_forget(struct stat_program *programs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(programs[i].text);
    }
    free(programs);
}
