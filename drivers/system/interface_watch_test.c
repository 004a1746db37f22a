/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Changes of interfaces are told in order; changes for which the kernel had no room are
 *         found out; without a request none is told.
 * Method  The loopback interface of a network namespace of our own, with the kernel's own messages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "drivers/system/interface_watch.h"
#include "tests/own_network.h"

#define ADDRESS 0x0a010203u

struct bench {
    struct interface_watch watch;
    struct interfaces interfaces;
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->interfaces = (struct interfaces){
        .count = 1,
        .addresses[0] = {.gid = {{[10] = 0xff, 0xff, 10, 1, 2, 3}},
                         .interface_index = if_nametoindex("lo")},
    };
    assert_true(own_network_set_up(true));
    assert_true(own_network_set_address(ADDRESS, true));
    assert_true(interface_watch_open(&bench->watch, true));
    assert_true(interface_watch_read(&bench->watch, &bench->interfaces));
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    interface_watch_close(&bench->watch);
    free(bench);
    return 0;
}

static uint32_t next_change(struct bench *bench)
{
    uint32_t changes = 0;
    const bool told = interface_watch_next(&bench->watch, &bench->interfaces, &changes);
    assert_false(bench->watch.failed);
    assert_int_equal(told, changes != 0);
    return changes;
}

static void test_first_reading(void **state)
{
    struct bench *bench = *state;
    assert_true(bench->interfaces.addresses[0].present);
    assert_int_equal(interfaces_port(&bench->interfaces), LIVE_PORT_ACTIVE);
    assert_int_equal(next_change(bench), 0);
    assert_true(own_network_set_address(ADDRESS, false));
    assert_true(own_network_set_up(false));
    assert_true(interface_watch_read(&bench->watch, &bench->interfaces));
    assert_false(bench->interfaces.addresses[0].present);
    assert_int_equal(interfaces_port(&bench->interfaces), LIVE_PORT_DISABLED);
}

/* Each change is told, although all of them happened before we look. */
static void test_changes_in_order(void **state)
{
    struct bench *bench = *state;
    assert_true(own_network_set_up(false));
    assert_true(own_network_set_up(true));
    assert_true(own_network_set_address(ADDRESS, false));
    assert_true(own_network_set_address(ADDRESS, true));
    assert_int_equal(next_change(bench), LIVE_CHANGE_PORT_DOWN);
    assert_int_equal(next_change(bench), LIVE_CHANGE_PORT_UP);
    assert_int_equal(next_change(bench), LIVE_CHANGE_GIDS);
    assert_false(bench->interfaces.addresses[0].present);
    assert_int_equal(next_change(bench), LIVE_CHANGE_GIDS);
    assert_true(bench->interfaces.addresses[0].present);
    assert_int_equal(next_change(bench), 0);
}

/* The queue is full long before the last change, but that change is found out. */
static void test_overrun(void **state)
{
    struct bench *bench = *state;
    const int bytes = 1;
    assert_int_equal(setsockopt(bench->watch.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
    for (int i = 0; i < 100; i++) {
        assert_true(own_network_set_up(false));
        assert_true(own_network_set_up(true));
    }
    assert_true(own_network_set_address(ADDRESS, false));
    assert_true(own_network_set_up(false));
    uint32_t changes, all = 0, count = 0;
    while ((changes = next_change(bench)) != 0) {
        all |= changes;
        count++;
    }
    assert_true(count < 100);
    assert_true((all & LIVE_CHANGE_GIDS) != 0 && (all & LIVE_CHANGE_PORT_DOWN) != 0);
    assert_false(bench->interfaces.addresses[0].present);
    assert_int_equal(interfaces_port(&bench->interfaces), LIVE_PORT_DISABLED);
    assert_true(own_network_set_up(true)); /* Later changes are told as before. */
    assert_int_equal(next_change(bench), LIVE_CHANGE_PORT_UP);
}

/* An interface has an address with two prefixes, and one of these goes. */
static void test_address_that_stays(void **state)
{
    struct bench *bench = *state;
    struct ifreq wide = {.ifr_name = "lo:2"};
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ADDRESS)};
    const struct sockaddr_in mask = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(~0xffffu)};
    struct ifreq first = {.ifr_name = "lo:1"};
    memcpy(&first.ifr_netmask, &mask, sizeof(mask));
    assert_true(own_network_ask(SIOCSIFNETMASK, &first));
    memcpy(&wide.ifr_addr, &in, sizeof(in));
    assert_true(own_network_ask(SIOCSIFADDR, &wide));
    while (next_change(bench) != 0) {
    }
    assert_true(bench->interfaces.addresses[0].present);
    assert_true(own_network_set_address(ADDRESS, false));
    while (next_change(bench) != 0) {
    }
    assert_true(bench->interfaces.addresses[0].present);
    wide.ifr_flags = 0;
    assert_true(own_network_ask(SIOCSIFFLAGS, &wide));
    while (next_change(bench) != 0) {
    }
    assert_false(bench->interfaces.addresses[0].present);
}

static void test_without_events(void **state)
{
    struct bench *bench = *state;
    interface_watch_close(&bench->watch);
    assert_true(interface_watch_open(&bench->watch, false));
    assert_true(interface_watch_read(&bench->watch, &bench->interfaces));
    assert_true(own_network_set_up(false));
    assert_int_equal(next_change(bench), 0);
    assert_int_equal(interfaces_port(&bench->interfaces), LIVE_PORT_ACTIVE);
    assert_true(interface_watch_read(&bench->watch, &bench->interfaces));
    assert_int_equal(interfaces_port(&bench->interfaces), LIVE_PORT_DISABLED);
}

#define WATCH_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCH_TEST(test_first_reading),  WATCH_TEST(test_changes_in_order),
        WATCH_TEST(test_overrun),        WATCH_TEST(test_address_that_stays),
        WATCH_TEST(test_without_events),
    };
    return own_network_enter() ? cmocka_run_group_tests(tests, NULL, NULL) : OWN_NETWORK_SKIPPED;
}
