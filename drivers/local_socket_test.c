/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    However many processes of other users connect, one turn of accepting ends soon, and
 *         processes of our user are let in all the same.
 * Method  A child that becomes another user, which needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/local_socket.h"

#define NOBODY    65534 /* A user without any rights. */
#define STRANGERS 500
#define IN_A_TURN 50

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
    local_close(accepted);
    local_close(ours);
    local_close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strangers_before_one_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
