/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A ring leads to processes of our user alone, also if one of them becomes another user,
 *         and also if processes of other users keep its listener busy.
 * Method  Two ports of one process or of two, served by hand, and children that become another
 *         user, which needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"

#define NOBODY 65534 /* A user without any rights. */

/* Addresses that no live NIC draws. */
static struct gid gid_of(uint8_t number)
{
    struct gid gid = {{0xfd, number}};
    const uint32_t salt = (uint32_t)getpid();
    memcpy(gid.bytes + 4, &salt, sizeof(salt));
    return gid;
}

static struct shm_port *open_port(const struct gid *gid)
{
    char error[256];
    struct shm_port *port = shm_port_open(gid, LOCAL_NO_SLOT, error, sizeof(error));
    assert_non_null(port);
    return port;
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
}

/* The child ends when the other end of `end` is closed. */
static pid_t open_and_become_another_user(const struct gid *gid, int ready, const int end[2])
{
    const pid_t child = fork();
    if (child == 0) {
        char error[256], byte = 0;
        close(end[1]);
        const bool open = shm_port_open(gid, LOCAL_NO_SLOT, error, sizeof(error)) != NULL;
        const bool said = open && setuid(NOBODY) == 0 && write(ready, &byte, 1) == 1;
        _exit(said && read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    return child;
}

static void test_peer_that_became_another_user(void **state)
{
    (void)state;
    need_root();
    const struct gid self = gid_of(0), peer = gid_of(1);
    int ready[2], end[2], status;
    char byte;
    assert_int_equal(pipe(ready) | pipe(end), 0);
    const pid_t child = open_and_become_another_user(&peer, ready[1], end);
    close(end[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct shm_port *port = open_port(&self);
    assert_null(shm_port_link(port, &peer, LOCAL_NO_SLOT));
    assert_int_equal(errno, EPERM);
    shm_port_close(port);
    close(end[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ready[0]);
    close(ready[1]);
}

/* A child of the process may still hold its listener. */
static void test_peer_that_ended(void **state)
{
    (void)state;
    const struct gid self = gid_of(0), peer = gid_of(1);
    const struct local_name name = shm_name(SHM_LAYOUT, &peer, LOCAL_NO_SLOT);
    int pair[2], status, listener = -1;
    char word[4];
    uint32_t count = 1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int made = local_listen(&name, 1);
        _exit(local_send(pair[1], word, sizeof(word), &made, 1) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(local_receive(pair[0], word, sizeof(word), &listener, &count), sizeof(word));
    assert_int_equal(count, 1);
    struct shm_port *port = open_port(&self);
    assert_null(shm_port_link(port, &peer, LOCAL_NO_SLOT));
    shm_port_close(port);
    descriptor_close(listener);
    close(pair[0]);
    close(pair[1]);
}

/* Calls until there is no place. Returns the number of calls. */
static int call_as_another_user(const struct gid *gid)
{
    const struct local_name name = shm_name(SHM_LAYOUT, gid, LOCAL_NO_SLOT);
    int status;
    const pid_t child = fork();
    if (child == 0) {
        int calls = setuid(NOBODY) == 0 ? 0 : INT32_MIN;
        bool called = true;
        while (called) {
            const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
            called = connect(fd, (const struct sockaddr *)&name.address, name.bytes) == 0;
            calls += called;
            close(fd);
        }
        _exit(errno == EAGAIN && calls > 100 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* A full queue does not mean that the peer is absent, and it has places again after one turn. */
static void test_queue_that_others_fill(void **state)
{
    (void)state;
    need_root();
    const struct gid self = gid_of(0), other = gid_of(1);
    struct shm_port *port = open_port(&self), *peer = open_port(&other);
    assert_int_equal(call_as_another_user(&other), 0);
    assert_null(shm_port_link(port, &other, LOCAL_NO_SLOT));
    assert_int_equal(errno, EAGAIN);
    shm_port_accept(peer);
    struct link *link = shm_port_link(port, &other, LOCAL_NO_SLOT);
    assert_non_null(link);
    for (int turns = 0; peer->inbound_count == 0; turns++) {
        assert_true(turns < 1000);
        shm_port_serve(peer);
    }
    shm_port_serve(port);
    assert_false(link->lost);
    shm_port_close(port);
    shm_port_close(peer);
}

/* A program that waits for an answer lets in the ring in which it comes, once. */
static void test_greeting(void **state)
{
    (void)state;
    const struct gid gids[2] = {gid_of(2), gid_of(3)};
    struct shm_port *port = open_port(&gids[0]), *peer = open_port(&gids[1]);
    assert_false(shm_port_greet(port));
    struct link *link = shm_port_link(peer, &gids[0], LOCAL_NO_SLOT);
    assert_non_null(link);
    assert_true(shm_port_greet(port));
    assert_int_equal(port->inbound_count, 1);
    assert_false(shm_port_greet(port));
    shm_port_close(peer);
    assert_false(shm_port_greet(port));
    shm_port_close(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greeting),
        cmocka_unit_test(test_queue_that_others_fill),
        cmocka_unit_test(test_peer_that_became_another_user),
        cmocka_unit_test(test_peer_that_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
