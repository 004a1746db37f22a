/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each message changes only the addresses that it is about, and tells each event of a NIC
 *         once; a new reading tells changes that were missed.
 * Method  Two addresses of one interface and one of another, and messages one after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "drivers/system/interfaces.h"

enum {
    A,
    A_TOO,
    B,
    NOBODY
}; /* Addresses; the first two are on interface 2, the third on 3. */

static struct gid gid_of(int address)
{
    return (struct gid){{[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(address + 1)}};
}

static void setup(struct interfaces *interfaces)
{
    *interfaces = (struct interfaces){.count = 3};
    for (int i = 0; i < 3; i++) {
        interfaces->addresses[i] = (struct interface_address){.gid = gid_of(i),
                                                              .interface_index = i < B ? 2 : 3,
                                                              .present = true,
                                                              .up = true,
                                                              .carrier = true};
    }
}

static uint32_t link_is(struct interfaces *interfaces, uint32_t index, bool up, bool carrier)
{
    const struct rtnetlink_message message = {
        .kind = RTNETLINK_LINK, .interface_index = index, .up = up, .carrier = carrier};
    return interfaces_apply(interfaces, &message);
}

static struct rtnetlink_message about(enum rtnetlink_kind kind, uint32_t index, int address)
{
    struct rtnetlink_message message = {.kind = kind, .interface_index = index};
    const struct gid gid = gid_of(address);
    memcpy(message.address, gid.bytes, 16);
    return message;
}

static uint32_t apply(struct interfaces *interfaces, enum rtnetlink_kind kind, uint32_t index,
                      int address)
{
    const struct rtnetlink_message message = about(kind, index, address);
    return interfaces_apply(interfaces, &message);
}

/* One interface is enough for a port that is up; if both are down, the port is down, for the better
 * of the two reasons. */
static void test_port(void **state)
{
    (void)state;
    struct interfaces interfaces;
    setup(&interfaces);
    assert_int_equal(interfaces_port(&interfaces), LIVE_PORT_ACTIVE);
    assert_int_equal(link_is(&interfaces, 7, false, false), 0); /* It is nobody's interface. */
    assert_int_equal(link_is(&interfaces, 2, false, true), 0);
    assert_int_equal(interfaces_port(&interfaces), LIVE_PORT_ACTIVE);
    assert_int_equal(link_is(&interfaces, 3, true, false), LIVE_CHANGE_PORT_DOWN);
    assert_int_equal(interfaces_port(&interfaces), LIVE_PORT_POLLING);
    assert_int_equal(link_is(&interfaces, 3, false, false), 0);
    assert_int_equal(interfaces_port(&interfaces), LIVE_PORT_DISABLED);
    assert_int_equal(link_is(&interfaces, 2, true, true), LIVE_CHANGE_PORT_UP);
    assert_int_equal(link_is(&interfaces, 2, true, true), 0); /* The same is said again. */
}

static void test_addresses(void **state)
{
    (void)state;
    struct interfaces interfaces;
    setup(&interfaces);
    const uint32_t gone = LIVE_CHANGE_GIDS | INTERFACES_DOUBT;
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS, 2, A), 0);
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS_GONE, 3, A),
                     0); /* It is another interface's. */
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS_GONE, 2, NOBODY), 0);
    assert_true(interfaces.addresses[A].present);
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS_GONE, 2, A), gone);
    assert_false(interfaces.addresses[A].present);
    assert_true(interfaces.addresses[A_TOO].present && interfaces.addresses[B].present);
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS_GONE, 2, A), 0);
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS, 2, A), LIVE_CHANGE_GIDS);
    assert_true(interfaces.addresses[A].present);
}

/* The interface of an address went, and another one has the address: its state is not known yet. */
static void test_address_that_moves(void **state)
{
    (void)state;
    struct interfaces interfaces;
    setup(&interfaces);
    assert_int_equal(apply(&interfaces, RTNETLINK_LINK_GONE, 7, NOBODY), 0);
    assert_int_equal(apply(&interfaces, RTNETLINK_LINK_GONE, 2, NOBODY), LIVE_CHANGE_GIDS);
    assert_false(interfaces.addresses[A].present || interfaces.addresses[A_TOO].present);
    assert_true(interfaces.addresses[B].present);
    assert_int_equal(link_is(&interfaces, 3, false, false), LIVE_CHANGE_PORT_DOWN);
    assert_int_equal(link_is(&interfaces, 2, true, true), 0); /* The next owner of number 2. */
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS, 8, A),
                     LIVE_CHANGE_GIDS | INTERFACES_DOUBT);
    assert_int_equal(interfaces.addresses[A].interface_index, 8);
    assert_int_equal(link_is(&interfaces, 8, true, true), LIVE_CHANGE_PORT_UP);
}

/* Another interface may have the same link-local address, but it counts as another address. */
static void test_link_local(void **state)
{
    (void)state;
    struct interfaces interfaces;
    setup(&interfaces);
    struct rtnetlink_message there = {
        .kind = RTNETLINK_ADDRESS, .interface_index = 3, .address = {0xfe, 0x80, [15] = 1}};
    struct rtnetlink_message gone = there;
    gone.kind = RTNETLINK_ADDRESS_GONE;
    memcpy(interfaces.addresses[A].gid.bytes, there.address, 16);
    assert_false(interfaces_concern(&interfaces, &there));
    gone.interface_index = 2;
    assert_int_equal(interfaces_apply(&interfaces, &gone), LIVE_CHANGE_GIDS | INTERFACES_DOUBT);
    assert_int_equal(interfaces_apply(&interfaces, &there), 0);
    assert_false(interfaces.addresses[A].present);
    there.interface_index = 2;
    assert_true(interfaces_concern(&interfaces, &there));
    assert_int_equal(interfaces_apply(&interfaces, &there), LIVE_CHANGE_GIDS);
    assert_true(interfaces.addresses[A].present);
}

/* An address of 127.0.0.0/8 is there as long as its interface is, whatever messages say of it. */
static void test_loopback(void **state)
{
    (void)state;
    struct interfaces interfaces;
    setup(&interfaces);
    interfaces.addresses[A].unlisted = true;
    assert_int_equal(apply(&interfaces, RTNETLINK_ADDRESS_GONE, 2, A), 0);
    struct interfaces fresh;
    interfaces_begin(&fresh, &interfaces);
    assert_true(fresh.addresses[A].present);
    assert_false(fresh.addresses[A_TOO].present);
    assert_int_equal(apply(&interfaces, RTNETLINK_LINK_GONE, 2, NOBODY), LIVE_CHANGE_GIDS);
    assert_true(interfaces.addresses[A].present && !interfaces.addresses[A_TOO].present);
    assert_int_equal(interfaces.addresses[A].interface_index, 2);
}

static void test_concern(void **state)
{
    (void)state;
    static const struct {
        enum rtnetlink_kind kind;
        uint32_t index;
        int address;
        bool concern;
    } cases[] = {
        {RTNETLINK_LINK, 3, NOBODY, true},      {RTNETLINK_LINK, 4, NOBODY, false},
        {RTNETLINK_LINK_GONE, 2, NOBODY, true}, {RTNETLINK_ADDRESS, 9, B, true},
        {RTNETLINK_ADDRESS, 2, NOBODY, false},  {RTNETLINK_ADDRESS_GONE, 9, A_TOO, true},
        {RTNETLINK_OTHER, 2, A, false},
    };
    struct interfaces interfaces;
    setup(&interfaces);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct rtnetlink_message message =
            about(cases[i].kind, cases[i].index, cases[i].address);
        assert_int_equal(interfaces_concern(&interfaces, &message), cases[i].concern);
    }
}

static void read_address(struct interfaces *fresh, uint32_t index, int address)
{
    const struct rtnetlink_message message = about(RTNETLINK_ADDRESS, index, address);
    interfaces_read(fresh, &message);
}

static void read_link(struct interfaces *fresh, uint32_t index, bool up)
{
    const struct rtnetlink_message message = {
        .kind = RTNETLINK_LINK, .interface_index = index, .up = up, .carrier = up};
    interfaces_read(fresh, &message);
}

/* Addresses and interfaces that a reading does not mention are not there. */
static void test_reading(void **state)
{
    (void)state;
    struct interfaces interfaces, fresh;
    setup(&interfaces);
    interfaces_begin(&fresh, &interfaces);
    read_address(&fresh, 2, A);
    read_address(&fresh, 2, A_TOO);
    read_address(&fresh, 3, B);
    read_link(&fresh, 3, true);
    assert_int_equal(interfaces_replace(&interfaces, &fresh), 0); /* Interface 3 is enough. */
    assert_false(interfaces.addresses[A].up);
    interfaces_begin(&fresh, &interfaces);
    read_address(&fresh, 2, A);
    read_address(&fresh, 4, B); /* B has moved. */
    read_address(&fresh, 3, NOBODY);
    read_link(&fresh, 2, false);
    read_link(&fresh, 3, true);
    assert_int_equal(interfaces_replace(&interfaces, &fresh),
                     LIVE_CHANGE_PORT_DOWN | LIVE_CHANGE_GIDS);
    assert_int_equal(interfaces.addresses[B].interface_index, 4);
    interfaces_begin(&fresh, &interfaces);
    read_address(&fresh, 2, A);
    read_address(&fresh, 4, B);
    read_link(&fresh, 4, true);
    assert_int_equal(interfaces_replace(&interfaces, &fresh), LIVE_CHANGE_PORT_UP);
    assert_false(interfaces.addresses[A_TOO].present);
}

static void test_overrun(void **state)
{
    (void)state;
    struct interfaces interfaces;
    setup(&interfaces);
    assert_int_equal(apply(&interfaces, RTNETLINK_OVERRUN, 0, NOBODY), INTERFACES_DOUBT);
    assert_int_equal(apply(&interfaces, RTNETLINK_DONE, 0, NOBODY), 0);
    assert_int_equal(apply(&interfaces, RTNETLINK_REFUSED, 0, NOBODY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_port),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_address_that_moves),
        cmocka_unit_test(test_link_local),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_concern),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
