/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The overflow ID names nobody where the user namespace leaves users without a name; where
 *         each user has a name, it is a user like any other.
 * Method  Children in user namespaces of their own, whose maps the parent writes, which needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/system/user.h"

#define OVERFLOW_ID 65534
#define ALL         "0 0 4294967295\n"

static void write_map(pid_t child, const char *map)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, map, strlen(map)), strlen(map));
    close(fd);
}

/* Does the overflow ID name somebody in a user namespace with that map? User 7 has to have a name
 * there if `seven`. */
static bool is_named_under(const char *map, bool seven)
{
    int ready[2], go[2], status;
    char byte = 0;
    assert_int_equal(pipe(ready) | pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        const bool apart = unshare(CLONE_NEWUSER) == 0 && write(ready[1], &byte, 1) == 1;
        const bool mapped = apart && read(go[0], &byte, 1) == 1;
        _exit(!mapped ? 2 : user_is_named(7) != seven ? 3 : user_is_named(OVERFLOW_ID));
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        write_map(child, map);
        assert_int_equal(write(go[1], &byte, 1), 1);
    }
    close(go[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(go[0]);
    close(ready[0]);
    if (status == 2 << 8) {
        skip(); /* User namespaces are forbidden here. */
    }
    assert_in_range(status, 0, 1 << 8);
    return status != 0;
}

static void need_all_users(void)
{
    if (geteuid() != 0 || !user_is_named(OVERFLOW_ID)) {
        print_message("skipped: only root of the first user namespace can write these maps\n");
        skip();
    }
}

static void test_map_of_all(void **state)
{
    (void)state;
    need_all_users();
    assert_true(is_named_under(ALL, true));
    assert_true(is_named_under("0 0 65534\n65534 65534 4294901761\n", true));
}

/* The map may even have the overflow ID: it still stands for other users besides. */
static void test_map_of_some(void **state)
{
    (void)state;
    need_all_users();
    assert_false(is_named_under("0 0 1\n", true));
    assert_false(is_named_under("0 100000 65536\n", true));
    assert_false(is_named_under("0 0 4294967294\n", true));
}

static void test_nobody(void **state)
{
    (void)state;
    assert_false(user_is_named(USER_UNKNOWN));
}

static void test_processes(void **state)
{
    int status;
    (void)state;
    assert_int_equal(user_of_process(getpid(), NULL), geteuid());
    assert_int_equal(user_of_process(0, NULL), USER_UNKNOWN);
    assert_int_equal(user_of_process(-1, NULL), USER_UNKNOWN);
    assert_int_equal(user_of_process(INT32_MAX, NULL), USER_UNKNOWN);
    const pid_t child = geteuid() == 0 ? fork() : -1;
    if (child == 0) {
        const bool changed = seteuid(7) == 0;
        _exit(changed && user_of_process(getpid(), NULL) == 7 &&
                      user_of_process(getppid(), NULL) == 0
                  ? 0
                  : 1);
    }
    if (child > 0) {
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_of_all),
        cmocka_unit_test(test_map_of_some),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
