/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    However many processes of other users connect, one turn of accepting ends soon, and
 *         processes of our user are let in all the same. A process that listened as our user, and
 *         then became another user, is not believed. A descriptor that came, but cannot be kept, is
 *         not counted among those that were.
 * Method  A child that becomes another user, which needs root; a limit of descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"

#define NOBODY    65534 /* A user without any rights. */
#define STRANGERS 500
#define IN_A_TURN 100

static struct local_name own_name(void)
{
    struct gid gid = {{0}};
    const pid_t pid = getpid();
    memcpy(gid.bytes, &pid, sizeof(pid));
    return local_name("test/", &gid, LOCAL_NO_SLOT);
}

static void connect_as_another_user(const struct local_name *name)
{
    const pid_t pid = fork();
    if (pid == 0) {
        int connected = 0;
        for (int i = 0; setuid(NOBODY) == 0 && i < STRANGERS; i++) {
            const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
            connected += connect(fd, (const struct sockaddr *)&name->address, name->bytes) == 0;
        }
        _exit(connected == STRANGERS ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_strangers_before_one_of_ours(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    const struct local_name name = own_name();
    const int listener = local_listen(&name, 2 * STRANGERS);
    assert_true(listener >= 0);
    connect_as_another_user(&name);
    pid_t pid;
    const int ours = local_dial(&name, &pid);
    assert_true(ours >= 0);
    assert_int_equal(pid, getpid());
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    int turns = 1, accepted;
    while ((accepted = local_accept(listener)) < 0) {
        assert_int_equal(poll(&waiting, 1, 0), 1);
        turns++;
    }
    assert_in_range(turns, STRANGERS / IN_A_TURN, STRANGERS);
    assert_int_equal(local_accept(listener), -1);
    assert_int_equal(poll(&waiting, 1, 0), 0);
    descriptor_close(accepted);
    descriptor_close(ours);
    descriptor_close(listener);
}

/* A child that listens as root, becomes another user when it was called, and answers. */
static pid_t listen_and_become_another_user(const struct local_name *name)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int listener = local_listen(name, 1);
        struct pollfd waiting = {.fd = listener, .events = POLLIN};
        const bool called = write(ready[1], &byte, 1) == 1 && poll(&waiting, 1, 10000) == 1;
        const int caller = called && setuid(NOBODY) == 0 ? local_accept_anybody(listener) : -1;
        _exit(caller >= 0 && local_send(caller, "word", 4, &listener, 1) ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void test_one_that_became_a_stranger(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    const struct local_name name = own_name();
    const pid_t child = listen_and_become_another_user(&name);
    char word[4];
    int given = -1, status;
    uint32_t count = 1;
    pid_t pid;
    const int fd = local_dial(&name, &pid);
    assert_true(fd >= 0 && pid == child);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* The kernel goes on saying that the listener is root's. */
    assert_int_equal(local_user(fd), 0);
    assert_int_equal(local_receive(fd, word, sizeof(word), &given, &count), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(count, 0);
    descriptor_close(fd);
}

/* A process that another user started, but that runs as our user because its file says so
 * (set-user-ID), is of our user. */
static void test_set_user_id(void **state)
{
    (void)state;
    int pair[2], status;
    const int wanted = 1;
    char word[4];
    uint32_t count = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &wanted, sizeof(wanted)), 0);
    const pid_t child = fork();
    if (child == 0) {
        const bool set = geteuid() != 0 || setresuid(NOBODY, 0, 0) == 0;
        _exit(set && local_send(pair[1], "word", 4, NULL, 0) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(local_receive(pair[0], word, sizeof(word), NULL, &count), sizeof(word));
    descriptor_close(pair[0]);
    descriptor_close(pair[1]);
}

/* Without standard input, the descriptor gets its number, and no number above is left. */
static bool keeps_none(const int pair[2])
{
    const struct rlimit limit = {.rlim_cur = STDERR_FILENO + 1, .rlim_max = STDERR_FILENO + 1};
    int fd;
    char word[4];
    uint32_t count = 1;
    return close(STDIN_FILENO) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           local_receive(pair[0], word, sizeof(word), &fd, &count) == sizeof(word) && count == 0;
}

static void test_descriptor_that_cannot_be_kept(void **state)
{
    (void)state;
    int pair[2], status;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_true(local_send(pair[1], "word", 4, &pair[1], 1));
    const pid_t child = fork();
    if (child == 0) {
        _exit(keeps_none(pair) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    descriptor_close(pair[0]);
    descriptor_close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_became_a_stranger),
        cmocka_unit_test(test_set_user_id),
        cmocka_unit_test(test_descriptor_that_cannot_be_kept),
        cmocka_unit_test(test_strangers_before_one_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
