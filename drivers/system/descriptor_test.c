/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each descriptor of the NIC is noted as long as it is open, also one that is open for a
 *         look alone: a program cannot close it, and so the NIC never closes a file of the program
 *         that got its number. A descriptor that is lent is closed once. Numbers are above those of
 *         the standard streams, and a child of fork keeps none.
 * Method  Real descriptors; the linker shows each that is closed (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/check.h"
#include "drivers/shm/shm_internal.h"
#include "drivers/stat_ask.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/user.h"
#include "drivers/taken.h"
#include "drivers/udp/udp_unread.h"

static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
static uint32_t closed, closed_unnoted;

void __real_descriptor_close(int fd);
void __wrap_descriptor_close(int fd);

void __wrap_descriptor_close(int fd)
{
    closed += fd >= 0;
    closed_unnoted += fd >= 0 && !descriptor_is_owned(fd);
    __real_descriptor_close(fd);
}

static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int open_something(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* -- Looks --------------------------------------------------------------------------------------*/

static void look_at_addresses(void)
{
    uint8_t from[16];
    (void)!address_is_local(loopback);
    (void)!address_leads(loopback, loopback);
    (void)!address_towards(loopback, 0, from);
}

static void look_at_users(void)
{
    (void)user_of_process(getpid(), NULL);
    (void)!user_is_named(65534);
}

static void look_at_lists(void)
{
    struct gid gid;
    struct udp_owner owner;
    struct stat_program *programs;
    char text[256];
    memcpy(gid.bytes, loopback, sizeof(gid.bytes));
    (void)!udp_find_owner(&gid, &owner);
    (void)!taken_everywhere(text, sizeof(text));
    (void)shm_find_any_other_layout();
    const size_t count = stat_find(&programs);
    stat_forget(programs, count);
}

/* Memory that others may only read has two descriptors for a moment. */
static void make_memory(void)
{
    void *map;
    const int fd = shm_memory_make("descriptor_test", 4096, true, &map);
    assert_true(fd >= 0);
    descriptor_close(fd);
    munmap(map, 4096);
}

static void looks_are_with_noted_descriptors(void **state)
{
    (void)state;
    static void (*const looks[])(void) = {look_at_addresses, look_at_users, look_at_lists,
                                          make_memory};
    static const uint32_t least[] = {3, 2, 3, 2};
    const int before = count_open();
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        closed = closed_unnoted = 0;
        looks[i]();
        assert_true(closed >= least[i]);
        assert_int_equal(closed_unnoted, 0);
        assert_int_equal(count_open(), before);
    }
}

/* -- Numbers ------------------------------------------------------------------------------------*/

static void an_owned_number_is_above_the_streams(void **state)
{
    (void)state;
    const int stream = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    const int fd = descriptor_own(open_something());
    assert_true(fd > STDERR_FILENO && descriptor_is_owned(fd));
    assert_false(is_open(STDIN_FILENO));
    errno = EDOM;
    descriptor_close(fd);
    descriptor_close(-1);
    assert_int_equal(errno, EDOM);
    assert_false(descriptor_is_owned(fd) || is_open(fd));
    assert_int_equal(dup2(stream, STDIN_FILENO), STDIN_FILENO);
    close(stream);
}

/* The program may have closed it, and the number may be another file's. */
static void a_lent_number_is_closed_once(void **state)
{
    (void)state;
    const int kept = descriptor_lend(open_something());
    descriptor_take_back(kept);
    assert_false(is_open(kept));
    const int given_up = descriptor_lend(open_something());
    descriptor_give_up(given_up);
    descriptor_take_back(given_up);
    assert_true(is_open(given_up));
    descriptor_close(given_up);
    /* It is not lent any more either if it is closed by descriptor_close. */
    const int failed = descriptor_lend(open_something());
    descriptor_close(failed);
    assert_false(descriptor_is_lent(failed));
}

static void a_child_closes_what_is_owned(void **state)
{
    (void)state;
    const int owned = descriptor_own(open_something()), theirs = open_something();
    int status;
    const pid_t child = fork();
    if (child == 0) {
        descriptors_close_all();
        _exit(is_open(owned) ? 1 : is_open(theirs) ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_open(owned) && descriptor_is_owned(owned));
    descriptor_close(owned);
    close(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_are_with_noted_descriptors),
        cmocka_unit_test(an_owned_number_is_above_the_streams),
        cmocka_unit_test(a_lent_number_is_closed_once),
        cmocka_unit_test(a_child_closes_what_is_owned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
