/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_ask_fuzz - programs that are asked for their counters, and say anything or nothing.
 *
 * Goal    Whatever /proc/net/unix lists, and whatever listeners say: each program is listed once
 *         and settled in time, nothing is read from another user's program, the text that is kept
 *         has a bound, and each descriptor is closed once.
 * Method  Sockets, the list and the clock are fakes that answer from the input.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/stat_ask.h"
#include "drivers/stat_server.h"
#include "drivers/system/user.h"
#include "tests/fuzz/fake_sockets.h"
#include "tests/fuzz/input.h"

#define LIST_BYTES    4096
#define SAID_BYTES    (1u << 20) /* The most that one program says. */
#define TOTAL_SECONDS 5
#define MS            UINT64_C(1000000)
#define SELF          1000u

static struct {
    struct input *input;
    char list[LIST_BYTES];
    size_t list_bytes, list_read;
    uid_t users[FAKE_COUNT]; /* The user that listens on the other end. */
    uint64_t now_ns;
    bool running; /* False: the clock and the calls are the fuzzer's own. */
} world;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_system_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_system_connect(int fd, const struct sockaddr *address, socklen_t bytes);
uid_t __wrap_local_user(int fd);
pid_t __wrap_local_peer(int fd);
uid_t __wrap_user_of_process(pid_t process, struct user_process *held);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_descriptor_own(int fd);
void __wrap_descriptor_close(int fd);
uid_t __wrap_geteuid(void);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static struct fake_socket *ours(int fd)
{
    struct fake_socket *socket = fake_socket_of(fd);
    CHECK(socket != NULL && socket->open);
    return socket;
}

static long open_list(void)
{
    errno = ENOENT;
    return world.list_bytes == 0 ? -1 : fake_open();
}

static long read_list(int fd, void *bytes, size_t count)
{
    const size_t left = world.list_bytes - world.list_read;
    const size_t read = count < left ? count : left;
    ours(fd);
    memcpy(bytes, world.list + world.list_read, read);
    world.list_read += read;
    return (long)read;
}

static long open_socket(long type)
{
    CHECK(type & SOCK_NONBLOCK);
    errno = EMFILE;
    return take(world.input) % 16 == 15 ? -1 : fake_open();
}

static ssize_t receive(int fd, void *bytes, size_t count, int flags)
{
    static const int errors[] = {EAGAIN, EINTR, ECONNRESET, ENOMEM};
    const uint8_t choice = take(world.input);
    ours(fd);
    CHECK((flags & MSG_DONTWAIT) && world.users[fd - FAKE_FIRST] == SELF);
    if (choice % 4 == 0) {
        errno = errors[choice >> 2 & 3];
        return choice >> 4 == 15 ? 0 : -1;
    }
    const size_t said = choice % 4 == 3 ? count : choice;
    memset(bytes, choice, said);
    take_bytes(world.input, bytes, said < choice ? said : choice);
    return (ssize_t)said;
}

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const long a = va_arg(arguments, long), b = va_arg(arguments, long),
               c = va_arg(arguments, long), d = va_arg(arguments, long);
    va_end(arguments);
    if (!world.running) {
        return __real_syscall(number, a, b, c, d);
    }
    switch (number) {
    case SYS_socket: return open_socket(b);
    case SYS_openat: return open_list();
    case SYS_read: return read_list((int)a, (void *)b, (size_t)c);
    case SYS_recvfrom: return receive((int)a, (void *)b, (size_t)c, (int)d);
    default: break;
    }
    UNREACHABLE("a system call without a fake");
}

int __wrap_system_bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    (void)address;
    CHECK(bytes <= sizeof(struct sockaddr_storage));
    ours(fd);
    errno = EADDRINUSE;
    return take(world.input) % 4 == 3 ? -1 : 0;
}

int __wrap_system_connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    static const int errors[] = {ECONNREFUSED, EAGAIN, EINTR, EPROTOTYPE};
    const uint8_t choice = take(world.input);
    (void)address;
    (void)bytes;
    ours(fd);
    world.users[fd - FAKE_FIRST] = SELF + (choice >> 2) % 3;
    errno = errors[choice >> 4 & 3];
    return (choice & 3) == 3 ? -1 : 0;
}

uid_t __wrap_local_user(int fd)
{
    ours(fd);
    return take(world.input) % 16 == 15 ? USER_UNKNOWN : world.users[fd - FAKE_FIRST];
}

pid_t __wrap_local_peer(int fd)
{
    ours(fd);
    return take(world.input) % 16 == 15 ? 0 : 77;
}

/* A program may have changed its user since it listened; its answers count for nothing then. */
uid_t __wrap_user_of_process(pid_t process, struct user_process *held)
{
    CHECK(process == 77 && held == NULL);
    return take(world.input) % 8 == 7 ? SELF + 1 : SELF;
}

/* Nothing is read from another user's socket. */
/* Time passes while somebody waits. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const uint8_t choice = take(world.input);
    int ready = 0;
    CHECK(timeout >= 0);
    world.now_ns += (uint64_t)timeout * MS;
    for (nfds_t i = 0; i < count; i++) {
        ours(fds[i].fd);
        fds[i].revents = choice >> i % 8 & 1 ? POLLIN : 0;
        ready += fds[i].revents != 0;
    }
    return ready;
}

int __wrap_descriptor_own(int fd)
{
    return fd;
}

void __wrap_descriptor_close(int fd)
{
    fake_close(fd);
}

uid_t __wrap_geteuid(void)
{
    return SELF;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!world.running) {
        return __real_clock_gettime(clock, time);
    }
    *time = (struct timespec){.tv_sec = (time_t)(world.now_ns / (1000 * MS)),
                              .tv_nsec = (long)(world.now_ns % (1000 * MS))};
    return 0;
}

/* -- The list of sockets ------------------------------------------------------------------------*/

/* A line as the kernel writes it, or another one. Returns its length. */
static size_t write_line(struct input *input, char line[128])
{
    const uint8_t kind = take(input);
    if (kind % 4 == 0) {
        return take_bytes(input, (uint8_t *)line, kind >> 4);
    }
    return (size_t)snprintf(
        line, 128, "0000000000000000: 00000002 00000000 00010000 0005 01 123 @%s%d%s\n",
        STAT_SOCKET_PREFIX, (int)take_number(input, kind >> 6), kind & 16 ? "x" : "");
}

static void write_list(struct input *input)
{
    const uint8_t lines = take(input) % 40;
    for (uint8_t i = 0; i < lines; i++) {
        char line[128];
        const size_t bytes = write_line(input, line);
        CHECK(bytes < sizeof(line) && world.list_bytes + bytes <= LIST_BYTES);
        memcpy(world.list + world.list_bytes, line, bytes);
        world.list_bytes += bytes;
    }
}

static void check_one(const struct stat_program *program)
{
    CHECK(program->pid > 0 && program->outcome != STAT_ASKING && program->socket == -1);
    CHECK((program->text != NULL) == (program->outcome == STAT_ANSWERED));
    CHECK(program->text == NULL || (strlen(program->text) <= SAID_BYTES && program->user == SELF));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    struct stat_program *programs;
    memset(&world, 0, sizeof(world));
    world.input = &input;
    fake_begin();
    write_list(&input);
    const uint8_t choice = take(&input);
    world.now_ns = 1000 * MS;
    world.running = true;
    const size_t found = stat_find(&programs);
    for (size_t i = 1; i < found; i++) {
        CHECK(programs[i].pid > programs[i - 1].pid);
    }
    stat_ask(programs, found, choice & 1, choice & 2 ? "objects" : NULL);
    CHECK(world.now_ns <= (1000 + 1100 * TOTAL_SECONDS) * MS && fake_open_count() == 0);
    for (size_t i = 0; i < found; i++) {
        check_one(&programs[i]);
    }
    stat_forget(programs, found);
    world.running = false;
    return 0;
}
