/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Programs are found by the names of their sockets, each once, and each answer, or its
 *         absence, has an outcome of its own; a program that never answers does not delay the
 *         others.
 * Method  Children that serve by drivers/stat_server.h, or do not; names that belong to no program;
 *         a clock of the test. stat_ask_fuzz has strangers, who may say anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/stat_ask.h"
#include "drivers/stat_server.h"

/* How a child serves. */
enum manner {
    ANSWERS,   /* Sends two messages, then closes. */
    STAYS,     /* Sends the same, but keeps the connection open. */
    HANGS_UP,  /* Closes without a word. */
    NO_ANSWER, /* Never accepts. */
};

/* -- Time ---------------------------------------------------------------------------------------*/

/* Each look at the clock lets time pass, so that a child is not given up because the machine is
 * busy: a second of patience is 200 rounds. */
#define LOOK_NS INT64_C(5000000)

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    static int64_t now_ns = 1000000000;
    assert_int_equal(clock, CLOCK_MONOTONIC);
    now_ns += LOOK_NS;
    *time = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

/* -- Children -----------------------------------------------------------------------------------*/

static void serve(int client, enum manner manner)
{
    char wish[STAT_WISH_BYTES], first[64];
    if (manner == HANGS_UP || !stat_server_wish(client, wish)) {
        return;
    }
    const int bytes = snprintf(first, sizeof(first), "wish '%s'\n", wish);
    stat_server_say(client, first, (size_t)bytes);
    stat_server_say(client, "second\n", strlen("second\n"));
}

_Noreturn static void live(enum manner manner, int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* A test that fails leaves no process behind. */
    const int listener = stat_server_open();
    if (listener < 0 || write(ready, "", 1) != 1) {
        _exit(1);
    }
    for (;;) {
        struct pollfd waiting = {.fd = listener, .events = POLLIN};
        const int client =
            manner == NO_ANSWER || poll(&waiting, 1, -1) != 1 ? -1 : stat_server_accept(listener);
        if (client < 0) {
            pause();
        }
        serve(client, manner);
        if (manner != STAYS) {
            stat_server_close(client);
        }
    }
}

static pid_t begin(enum manner manner)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        live(manner, ready[1]);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* -- Asking -------------------------------------------------------------------------------------*/

static struct stat_program *programs_of(const pid_t *pids, size_t count)
{
    struct stat_program *programs = calloc(count, sizeof(*programs));
    for (size_t i = 0; i < count; i++) {
        programs[i].pid = pids[i];
    }
    return programs;
}

static void expect(const struct stat_program *program, enum stat_outcome outcome, const char *text)
{
    assert_int_equal(program->outcome, outcome);
    if (text == NULL) {
        assert_null(program->text);
    } else {
        assert_string_equal(program->text, text);
    }
    assert_int_equal(program->socket, -1);
}

/* The program that never answers is first, and several that answer stand behind it. */
static void test_outcomes(void **state)
{
    (void)state;
    static const enum manner manners[] = {NO_ANSWER, ANSWERS, HANGS_UP, STAYS};
    pid_t pids[COUNT_OF(manners) + 1];
    for (size_t i = 0; i < COUNT_OF(manners); i++) {
        pids[i] = begin(manners[i]);
    }
    pids[COUNT_OF(manners)] = begin(ANSWERS);
    end(pids[COUNT_OF(manners)]); /* No program has this name any more. */
    struct stat_program *programs = programs_of(pids, COUNT_OF(pids));
    stat_ask(programs, COUNT_OF(pids), false, NULL);
    expect(&programs[0], STAT_SILENT, NULL);
    expect(&programs[1], STAT_ANSWERED, "wish ''\n");
    expect(&programs[2], STAT_SILENT, NULL);
    expect(&programs[3], STAT_ANSWERED, "wish ''\n");
    expect(&programs[4], STAT_GONE, NULL);
    for (size_t i = 0; i < COUNT_OF(manners); i++) {
        assert_true(programs[i].process == pids[i] && programs[i].user == geteuid());
        end(pids[i]);
    }
    stat_forget(programs, COUNT_OF(pids));
}

/* `all`: the answer is read until the program closes, or a second is over. */
static void test_all_that_is_said(void **state)
{
    (void)state;
    const pid_t pids[] = {begin(ANSWERS), begin(STAYS)};
    struct stat_program *programs = programs_of(pids, COUNT_OF(pids));
    stat_ask(programs, COUNT_OF(pids), true, "mr");
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        expect(&programs[i], STAT_ANSWERED, "wish 'mr'\nsecond\n");
        end(pids[i]);
    }
    stat_forget(programs, COUNT_OF(pids));
}

/* There is one program more than are asked at once, and it has a turn as well. */
static void test_many(void **state)
{
    (void)state;
    const pid_t pid = begin(ANSWERS);
    pid_t pids[300];
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        pids[i] = pid;
    }
    struct stat_program *programs = programs_of(pids, COUNT_OF(pids));
    stat_ask(programs, COUNT_OF(pids), false, NULL);
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        expect(&programs[i], STAT_ANSWERED, "wish ''\n");
    }
    stat_forget(programs, COUNT_OF(pids));
    end(pid);
}

static void test_nobody_is_asked(void **state)
{
    (void)state;
    stat_ask(NULL, 0, true, NULL);
    stat_forget(NULL, 0);
}

/* -- Finding ------------------------------------------------------------------------------------*/

static size_t times_found(int pid)
{
    struct stat_program *programs;
    const size_t count = stat_find(&programs);
    size_t times = 0;
    for (size_t i = 0; i < count; i++) {
        times += programs[i].pid == pid;
        assert_true(i == 0 || programs[i - 1].pid < programs[i].pid);
        assert_int_equal(programs[i].outcome, STAT_ASKING);
    }
    stat_forget(programs, count);
    return times;
}

static int listen_as(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    memcpy(address.sun_path + 1, name, strlen(name));
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* A number that no process has (the kernel's stop at 2^22), and no other run of this test. */
static int own_number(void)
{
    return 1000000000 + getpid();
}

static void test_names_of_programs(void **state)
{
    (void)state;
    static const struct {
        const char *before, *behind; /* The text before and behind the number. */
        size_t times;
    } cases[] = {
        {STAT_SOCKET_PREFIX, "", 1},     {STAT_SOCKET_PREFIX, "x", 0},
        {STAT_SOCKET_PREFIX "-", "", 0}, {STAT_SOCKET_PREFIX "+", "", 0},
        {STAT_SOCKET_PREFIX " ", "", 0}, {STAT_SOCKET_PREFIX, "/1", 0},
        {STAT_SOCKET_PREFIX "0", "", 0}, {"nonic-start/", "", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%d%s", cases[i].before, own_number(), cases[i].behind);
        const int fd = listen_as(name);
        if (times_found(own_number()) != cases[i].times) {
            fail_msg("'%s'", name);
        }
        close(fd);
    }
    assert_int_equal(times_found(own_number()), 0);
}

static void test_numbers_out_of_range(void **state)
{
    (void)state;
    char name[64];
    /* The number is 2^32 more than a process number, and must not be cut to that. */
    snprintf(name, sizeof(name), STAT_SOCKET_PREFIX "%" PRId64, (INT64_C(1) << 32) + own_number());
    const int fds[] = {listen_as(name), listen_as(STAT_SOCKET_PREFIX "0")};
    assert_int_equal(times_found(own_number()), 0);
    assert_int_equal(times_found(0), 0);
    close(fds[0]);
    close(fds[1]);
}

/* The connections that a program has accepted have the name of its listener. */
static void test_a_program_with_clients_is_one(void **state)
{
    (void)state;
    const pid_t pids[] = {begin(STAYS), begin(NO_ANSWER)};
    struct stat_program *programs = programs_of(pids, 1);
    stat_ask(programs, 1, false, NULL);
    expect(&programs[0], STAT_ANSWERED, "wish ''\n");
    stat_forget(programs, 1);
    assert_int_equal(times_found(pids[0]), 1);
    assert_int_equal(times_found(pids[1]), 1);
    end(pids[0]);
    end(pids[1]);
    assert_int_equal(times_found(pids[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_all_that_is_said),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_nobody_is_asked),
        cmocka_unit_test(test_names_of_programs),
        cmocka_unit_test(test_numbers_out_of_range),
        cmocka_unit_test(test_a_program_with_clients_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
