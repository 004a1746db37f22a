/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A client of our user or of root is let in, and gets lines in whole messages; a wish is
 *         only the word in the client's name; other users are sent away.
 * Method  Real sockets, by name. A table has names of clients; long texts are random lines,
 *         compared with all of them in one text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "drivers/stat_server.h"
#include "wire/roce.h"

#define NOBODY        65534 /* A user without any rights. */
#define MESSAGE_BYTES 8191  /* The most bytes that are said in one message. */

struct bench {
    int listener;
    int asker;  /* The client's end. */
    int client; /* The server's end of the same. */
};

static struct sockaddr_un address_of(const char *name, socklen_t *bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(name) < sizeof(address.sun_path));
    memcpy(address.sun_path + 1, name, strlen(name));
    *bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    return address;
}

/* Connects a client. False: nobody listens. */
static bool call_server(int asker, int pid)
{
    char name[64];
    socklen_t bytes;
    snprintf(name, sizeof(name), STAT_SOCKET_PREFIX "%d", pid);
    const struct sockaddr_un address = address_of(name, &bytes);
    return connect(asker, (const struct sockaddr *)&address, bytes) == 0;
}

/* Lets a client call whose socket has that name; NULL: it has none. */
static void be_called(struct bench *bench, const char *name)
{
    bench->asker = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_true(bench->asker >= 0);
    if (name != NULL) {
        socklen_t bytes;
        const struct sockaddr_un address = address_of(name, &bytes);
        assert_int_equal(bind(bench->asker, (const struct sockaddr *)&address, bytes), 0);
    }
    assert_true(call_server(bench->asker, getpid()));
    bench->client = stat_server_accept(bench->listener);
    assert_true(bench->client >= 0);
}

static void hang_up(struct bench *bench)
{
    stat_server_close(bench->client);
    close(bench->asker);
}

static int setup(void **state)
{
    static struct bench bench;
    bench.listener = stat_server_open();
    *state = &bench;
    return bench.listener < 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    stat_server_close(bench->listener);
    return 0;
}

/* Reads the next message as text. Returns its length. */
static size_t hear(const struct bench *bench, char *text, size_t room)
{
    const ssize_t bytes = recv(bench->asker, text, room - 1, MSG_DONTWAIT);
    text[bytes < 0 ? 0 : bytes] = '\0';
    return bytes < 0 ? 0 : (size_t)bytes;
}

/* -- Clients ------------------------------------------------------------------------------------*/

static void test_who_is_let_in(void **state)
{
    struct bench *bench = *state;
    const int next = dup(0);
    close(next);
    assert_int_equal(stat_server_accept(bench->listener), -1); /* No client waits. */
    assert_int_equal(stat_server_open(), -1);                  /* The name is taken, */
    const int after = dup(0);
    close(after);
    assert_int_equal(after, next); /* and no descriptor is left open. */
    be_called(bench, NULL);
    assert_int_equal(stat_server_serves_root(bench->client), geteuid() == 0);
    hang_up(bench);
}

static void test_other_users_are_sent_away(void **state)
{
    struct bench *bench = *state;
    int status;
    char byte;
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    const int server = getpid();
    const pid_t child = fork();
    if (child == 0) {
        const int asker = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        const bool called = setuid(NOBODY) == 0 && call_server(asker, server);
        /* The connection was closed without a word. */
        _exit(called && recv(asker, &byte, 1, 0) == 0 ? 0 : 1);
    }
    struct pollfd waiting = {.fd = bench->listener, .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, 10000), 1);
    assert_int_equal(stat_server_accept(bench->listener), -1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(poll(&waiting, 1, 0), 0);
}

/* -- Wishes -------------------------------------------------------------------------------------*/

static void test_a_wish_is_a_word_in_a_name(void **state)
{
    static const struct {
        const char *name, *wish;
    } cases[] = {
        {NULL, ""},
        {"nonic-wish/qp/1/2", "qp"},
        {"nonic-wish/qp/", "qp"},
        {"nonic-wish/qp", ""}, /* It has no end. */
        {"nonic-wish/", ""},
        {"nonic-wish//1", ""},
        {"nonic-wish/a/", "a"},
        {"nonic-wish/123456789012345/", "123456789012345"},
        {"nonic-wish/1234567890123456/", ""}, /* It is longer than any wish. */
        {"nonic-wosh/qp/1", ""},
        {"nonic-wis", ""},
        {"onic-wish/qp/1", ""},
    };
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char wish[STAT_WISH_BYTES] = "before";
        be_called(bench, cases[i].name);
        assert_true(stat_server_wish(bench->client, wish));
        assert_string_equal(wish, cases[i].wish);
        hang_up(bench);
    }
}

static void test_names_of_wishes_differ(void **state)
{
    (void)state;
    struct sockaddr_un names[2] = {{0}, {0}};
    int fds[2];
    for (int i = 0; i < 2; i++) {
        socklen_t bytes = sizeof(names[i]);
        fds[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        assert_true(stat_server_wish_for(fds[i], "mr"));
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&names[i], &bytes), 0);
        assert_memory_equal(names[i].sun_path, "\0nonic-wish/mr/", 15);
    }
    assert_memory_not_equal(names[0].sun_path, names[1].sun_path, sizeof(names[0].sun_path));
    assert_false(stat_server_wish_for(fds[0], "mr")); /* It has a name already. */
    close(fds[0]);
    close(fds[1]);
}

static void test_one_that_is_no_socket_any_more(void **state)
{
    struct bench *bench = *state;
    char wish[STAT_WISH_BYTES] = "before";
    be_called(bench, NULL);
    shutdown(bench->client, SHUT_RDWR);
    close(bench->asker);
    /* The name of a caller that is gone stays known; a number that is no descriptor tells
     * nothing. */
    assert_false(stat_server_wish(-1, wish));
    assert_string_equal(wish, "");
    stat_server_close(bench->client);
}

/* -- Texts --------------------------------------------------------------------------------------*/

static void test_counters(void **state)
{
    struct bench *bench = *state;
    char text[MESSAGE_BYTES + 2];
    const struct stat_line lines[] = {{"one", 1}, {"most", UINT64_MAX}};
    be_called(bench, NULL);
    assert_true(stat_server_answer(bench->client, "127.0.0.1", lines, COUNT_OF(lines)));
    hear(bench, text, sizeof(text));
    assert_string_equal(text, "device 127.0.0.1\nstat_version 1\none 1\n"
                              "most 18446744073709551615\n");
    assert_true(stat_server_answer(bench->client, "none", lines, 0));
    hear(bench, text, sizeof(text));
    assert_string_equal(text, "device none\nstat_version 1\n");
    hang_up(bench);
}

/* A part of a list would be taken for the whole list, so nothing is said. */
static void test_more_than_a_message_holds(void **state)
{
    struct bench *bench = *state;
    char text[MESSAGE_BYTES + 2];
    struct stat_line lines[1200];
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        lines[i] = (struct stat_line){"name", 1};
    }
    be_called(bench, NULL);
    assert_true(stat_server_answer(bench->client, "d", lines, 1000));
    assert_int_equal(hear(bench, text, sizeof(text)), strlen("device d\nstat_version 1\n") + 7000);
    assert_false(stat_server_answer(bench->client, "d", lines, COUNT_OF(lines)));
    assert_int_equal(hear(bench, text, sizeof(text)), 0);
    hang_up(bench);
}

static void test_exactly_a_message(void **state)
{
    struct bench *bench = *state;
    char text[MESSAGE_BYTES + 2];
    struct stat_line lines[1166];
    const size_t bytes = strlen("device \nstat_version 1\n") + 7 * COUNT_OF(lines);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        lines[i] = (struct stat_line){"name", 1};
    }
    be_called(bench, NULL);
    for (size_t more = MESSAGE_BYTES - bytes - 1; more < MESSAGE_BYTES - bytes + 3; more++) {
        const bool fits = bytes + more <= MESSAGE_BYTES;
        char device[16] = "";
        assert_true(more < sizeof(device));
        memset(device, 'd', more);
        assert_int_equal(stat_server_answer(bench->client, device, lines, COUNT_OF(lines)), fits);
        assert_int_equal(hear(bench, text, sizeof(text)), fits ? bytes + more : 0);
    }
    hang_up(bench);
}

static void test_connections(void **state)
{
    struct bench *bench = *state;
    char text[MESSAGE_BYTES + 2];
    const struct stat_connection connections[] = {
        {.qpn = 1,
         .peer_qpn = 2,
         .peer = {{0xfd, [15] = 9}},
         .report = {.sends_blocks = true, .round_trip_ns = 3, .losses = 4, .paths = 5}},
        {.qpn = 6, .report = {.receives_blocks = true, .window_bytes = 7, .flight_bytes = 8}}};
    be_called(bench, NULL);
    assert_true(stat_server_connections(bench->client, connections, 0));
    assert_int_equal(hear(bench, text, sizeof(text)), 0);
    assert_true(stat_server_connections(bench->client, connections, 2));
    hear(bench, text, sizeof(text));
    assert_string_equal(text, "connection qpn=1 peer=fd00::9 peer_qpn=2 sends=block receives=rc "
                              "round_trip_ns=3 losses=4 paths=5 window_bytes=0 flight_bytes=0\n"
                              "connection qpn=6 peer=:: peer_qpn=0 sends=rc receives=block "
                              "round_trip_ns=0 losses=0 paths=0 window_bytes=7 flight_bytes=8\n");
    close(bench->asker); /* The client takes no more. */
    assert_false(stat_server_connections(bench->client, connections, 2));
    stat_server_close(bench->client);
}

/* A message has room for STAT_CONNECTIONS_AT_ONCE connections, whatever their numbers. */
static void test_as_many_connections_as_promised(void **state)
{
    struct bench *bench = *state;
    char text[MESSAGE_BYTES + 2];
    struct stat_connection connections[STAT_CONNECTIONS_AT_ONCE];
    memset(connections, 0xff, sizeof(connections));
    for (size_t i = 0; i < COUNT_OF(connections); i++) {
        connections[i].qpn = connections[i].peer_qpn = ROCE_24_BITS;
        connections[i].report.sends_blocks = connections[i].report.receives_blocks = true;
        connections[i].report.paths = UINT8_MAX;
    }
    be_called(bench, NULL);
    assert_true(stat_server_connections(bench->client, connections, COUNT_OF(connections)));
    assert_true(hear(bench, text, sizeof(text)) > 0);
    assert_int_equal(text[strlen(text) - 1], '\n');
    hang_up(bench);
}

/* Makes random lines; returns the bytes of all of them. */
static size_t fill(struct prng *prng, char *text, size_t bytes, size_t longest)
{
    size_t used = 0;
    for (;;) {
        const size_t line = 1 + prng_below(prng, longest);
        if (used + line > bytes) {
            return used;
        }
        memset(text + used, 'a' + (int)prng_below(prng, 26), line - 1);
        text[used + line - 1] = '\n';
        used += line;
    }
}

static void test_long_texts_are_cut_between_lines(void **state)
{
    static const size_t longest[] = {10, 200, 4000, MESSAGE_BYTES};
    static char said[60000];
    struct bench *bench = *state;
    struct prng prng;
    prng_init(&prng, 1);
    for (size_t i = 0; i < COUNT_OF(longest); i++) {
        const size_t bytes = fill(&prng, said, sizeof(said), longest[i]);
        char text[2 * MESSAGE_BYTES];
        size_t heard = 0, more;
        be_called(bench, NULL);
        stat_server_say(bench->client, said, bytes);
        while ((more = hear(bench, text, sizeof(text))) > 0) {
            assert_true(more <= MESSAGE_BYTES && text[more - 1] == '\n');
            assert_true(heard + more <= bytes);
            assert_memory_equal(text, said + heard, more);
            heard += more;
            /* There would have been no room for another line. */
            const char *end = heard < bytes ? strchr(said + heard, '\n') : NULL;
            assert_true(end == NULL || more + (size_t)(end + 1 - said) - heard > MESSAGE_BYTES);
        }
        assert_int_equal(heard, bytes);
        hang_up(bench);
    }
}

/* A line that does not fit into a message is not said, nor any line behind it. */
static void test_a_line_without_an_end(void **state)
{
    static char said[MESSAGE_BYTES + 4];
    struct bench *bench = *state;
    char text[2 * MESSAGE_BYTES];
    memset(said, 'x', sizeof(said));
    memcpy(said, "a\n", 2);
    said[sizeof(said) - 1] = '\n';
    be_called(bench, NULL);
    stat_server_say(bench->client, said, sizeof(said));
    assert_int_equal(hear(bench, text, sizeof(text)), 2);
    assert_int_equal(hear(bench, text, sizeof(text)), 0);
    hang_up(bench);
}

#define SERVER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(test_who_is_let_in),
        SERVER_TEST(test_other_users_are_sent_away),
        SERVER_TEST(test_a_wish_is_a_word_in_a_name),
        SERVER_TEST(test_names_of_wishes_differ),
        SERVER_TEST(test_one_that_is_no_socket_any_more),
        SERVER_TEST(test_counters),
        SERVER_TEST(test_more_than_a_message_holds),
        SERVER_TEST(test_exactly_a_message),
        SERVER_TEST(test_connections),
        SERVER_TEST(test_as_many_connections_as_promised),
        SERVER_TEST(test_long_texts_are_cut_between_lines),
        SERVER_TEST(test_a_line_without_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
