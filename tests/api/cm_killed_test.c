/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The end of a process of this machine, however it came about, is heard of at once by all
 *         that it was connected with, or was about to be.
 * Method  The peer is this program again, as another process that stops at a named point of its
 *         connection and is killed there. Retries alone would tell after a minute: longer than
 *         the test's patience.
 */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONSUMER 28

struct peer {
    pid_t pid;
    int words; /* What the peer says: its port, or that it has come to the point. */
};

/* -- The peer -----------------------------------------------------------------------------------*/

static void say(int words, uint16_t word)
{
    assert_int_equal(write(words, &word, sizeof(word)), sizeof(word));
}

/* Asks, and goes on until it is at the point. */
static void be_client(const char *point, uint16_t port, int words)
{
    const int fd = open_device(0);
    const uint32_t id = routed(fd, RDMA_PS_TCP, port);
    assert_int_equal(connect_id(fd, id, 0), 0);
    if (strcmp(point, "asked") != 0) {
        expect(fd, RDMA_EVENT_CONNECT_RESPONSE);
    }
    if (strcmp(point, "established") == 0) {
        assert_int_equal(accept_id(fd, id, 0x22, false), 0);
    }
    say(words, 1);
}

static void be_server(const char *point, int words)
{
    uint32_t listener;
    const int fd = open_device(0);
    say(words, listen_somewhere(fd, &listener, RDMA_PS_TCP));
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    if (strcmp(point, "asked") != 0) {
        const uint32_t id = expect(fd, RDMA_EVENT_CONNECT_REQUEST).id;
        assert_int_equal(accept_id(fd, id, 0x33, true), 0);
    }
    if (strcmp(point, "established") == 0) {
        expect(fd, RDMA_EVENT_ESTABLISHED);
    }
    say(words, 1);
}

static int be_peer(char **arguments)
{
    const int words = atoi(arguments[4]);
    if (strcmp(arguments[1], "client") == 0) {
        be_client(arguments[2], (uint16_t)atoi(arguments[3]), words);
    } else {
        be_server(arguments[2], words);
    }
    char order = 0;
    if (read(STDIN_FILENO, &order, 1) == 1) {
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    }
    return 1;
}

/* -- Its life -----------------------------------------------------------------------------------*/

static int order_pipe[2];

static struct peer start(const char *role, const char *point, uint16_t port)
{
    int ends[2];
    char number[16], fd[16];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(order_pipe), 0);
    snprintf(number, sizeof(number), "%u", port);
    snprintf(fd, sizeof(fd), "%d", ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(order_pipe[0], STDIN_FILENO);
        close(order_pipe[0]);
        close(order_pipe[1]);
        execl("/proc/self/exe", "cm_killed_test", role, point, number, fd, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    close(order_pipe[0]);
    return (struct peer){.pid = pid, .words = ends[0]};
}

static uint16_t hear(const struct peer *peer)
{
    uint16_t word = 0;
    assert_int_equal(read(peer->words, &word, sizeof(word)), sizeof(word));
    return word;
}

static void bury(const struct peer *peer)
{
    kill(peer->pid, SIGKILL);
    assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
    close(peer->words);
    close(order_pipe[1]);
}

/* -- Clients that are killed --------------------------------------------------------------------*/

/* The id that came with the request of a client that is at `point`. */
static uint32_t serve(int fd, const char *point, struct peer *peer)
{
    uint32_t listener;
    *peer = start("client", point, listen_somewhere(fd, &listener, RDMA_PS_TCP));
    const uint32_t id = expect(fd, RDMA_EVENT_CONNECT_REQUEST).id;
    if (strcmp(point, "asked") != 0) {
        assert_int_equal(accept_id(fd, id, 0x33, true), 0);
    }
    if (strcmp(point, "established") == 0) {
        expect(fd, RDMA_EVENT_ESTABLISHED);
    }
    assert_int_equal(hear(peer), 1);
    return id;
}

static void test_client_is_killed(void **state)
{
    (void)state;
    static const char *const points[] = {"replied", "established"};
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        struct peer peer;
        const int fd = open_device(0);
        const uint32_t id = serve(fd, points[i], &peer);
        bury(&peer);
        assert_int_equal(expect(fd, RDMA_EVENT_DISCONNECTED).id, id);
        assert_int_equal(disconnect_id(fd, id), 0);
        close(fd);
    }
}

/* The program has not accepted, and is not told: it finds nobody to accept. */
static void test_client_that_asked_is_killed(void **state)
{
    (void)state;
    struct peer peer;
    const int fd = open_device(0);
    const uint32_t id = serve(fd, "asked", &peer);
    bury(&peer);
    usleep(200000);
    assert_int_equal(accept_id(fd, id, 0x33, true), EINVAL);
    close(fd);
}

/* -- Servers that are killed --------------------------------------------------------------------*/

static uint32_t ask(int fd, const char *point, struct peer *peer)
{
    *peer = start("server", point, 0);
    const uint32_t id = routed(fd, RDMA_PS_TCP, hear(peer));
    assert_int_equal(connect_id(fd, id, 0), 0);
    if (strcmp(point, "asked") != 0) {
        expect(fd, RDMA_EVENT_CONNECT_RESPONSE);
    }
    if (strcmp(point, "established") == 0) {
        assert_int_equal(accept_id(fd, id, 0x22, false), 0);
    }
    assert_int_equal(hear(peer), 1);
    return id;
}

static void test_server_is_killed(void **state)
{
    (void)state;
    static const struct {
        const char *point;
        enum rdma_event_kind event;
        int status;
    } cases[] = {{"asked", RDMA_EVENT_REJECTED, CONSUMER},
                 {"replied", RDMA_EVENT_REJECTED, CONSUMER},
                 {"established", RDMA_EVENT_DISCONNECTED, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct peer peer;
        const int fd = open_device(0);
        const uint32_t id = ask(fd, cases[i].point, &peer);
        bury(&peer);
        const struct rdma_ucm_event_resp event = expect(fd, cases[i].event);
        assert_int_equal(event.id, id);
        assert_int_equal(event.status, cases[i].status);
        close(fd);
    }
}

/* A process that is stopped lives, and may die of it. */
static void test_stopped(void **state)
{
    (void)state;
    struct peer peer;
    const int fd = open_device(0);
    ask(fd, "established", &peer);
    assert_int_equal(kill(peer.pid, SIGSTOP), 0);
    usleep(300000);
    assert_false(readable(fd));
    bury(&peer);
    expect(fd, RDMA_EVENT_DISCONNECTED);
    close(fd);
}

/* Another program in its place knows of no connection. */
static void test_another_program(void **state)
{
    (void)state;
    struct peer peer;
    const int fd = open_device(0);
    ask(fd, "established", &peer);
    assert_int_equal(write(order_pipe[1], "x", 1), 1);
    expect(fd, RDMA_EVENT_DISCONNECTED);
    bury(&peer);
    close(fd);
}

int main(int count, char **arguments)
{
    if (count == 5) {
        return be_peer(arguments);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_is_killed), cmocka_unit_test(test_client_that_asked_is_killed),
        cmocka_unit_test(test_server_is_killed), cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_another_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
