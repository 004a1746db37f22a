/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal: a port has one owner at an address of a host, as on Linux, and a peer finds it by the
 *       addresses that lead there, and by no other.
 */
#include "box/ports.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/box_address.h"

static struct ports ports;

static const struct box_port any4 = {.address = {[10] = 0xff, 0xff}, .space = 0x106, .port = 7471};
static const struct box_port any6 = {.space = 0x106, .port = 7471};

static struct box_port at_address(const char bytes[4])
{
    struct box_port port = any4;
    memcpy(port.address + 12, bytes, 4);
    return port;
}

static struct box_port at_node(uint32_t node, uint32_t function)
{
    struct box_port port = any4;
    box_address(node, function, port.address);
    return port;
}

static int64_t claim(uint32_t nic, uint32_t host, uint32_t node, struct box_port port)
{
    const int64_t claimed = ports_claim(&ports, nic, &(struct ports_place){host, node}, &port);
    if (claimed >= 0) {
        assert_true(ports_offer(&ports, nic, (uint64_t)claimed));
    }
    return claimed;
}

static int64_t find(uint32_t host, struct box_port port)
{
    return ports_find(&ports, host, &port);
}

static int begin(void **state)
{
    (void)state;
    memset(&ports, 0, sizeof(ports));
    return 0;
}

static void test_one_owner(void **state)
{
    (void)state;
    const struct box_port one = at_address("\12\115\0\1"), other = at_address("\12\115\0\2");
    struct box_port only6 = any6, space = any4, port = any4;
    only6.ipv6_only = 1;
    space.space = 0x111;
    port.port++;
    const int64_t first = claim(1, 0, 0, any4);
    assert_true(first >= 0);
    assert_int_equal(claim(2, 0, 1, any4), -EADDRNOTAVAIL);
    assert_int_equal(claim(2, 0, 1, any6), -EADDRNOTAVAIL);
    assert_int_equal(claim(2, 0, 1, one), -EADDRNOTAVAIL);
    assert_true(claim(2, 0, 1, only6) >= 0);
    assert_true(claim(2, 0, 1, space) >= 0);
    assert_true(claim(2, 0, 1, port) >= 0);
    assert_true(claim(2, 5, 1, any4) >= 0); /* Another host. */
    assert_false(ports_release(&ports, 2, (uint64_t)first));
    assert_true(ports_release(&ports, 1, (uint64_t)first));
    assert_true(claim(1, 0, 0, one) >= 0);
    assert_int_equal(claim(2, 0, 1, one), -EADDRINUSE);
    assert_true(claim(2, 0, 1, other) >= 0);
    assert_int_equal(claim(3, 0, 2, any4), -EADDRNOTAVAIL);
}

static void test_a_port_of_its_own(void **state)
{
    (void)state;
    struct box_port chosen[3];
    const struct ports_place at = {0};
    for (uint32_t i = 0; i < 3; i++) {
        chosen[i] = any4;
        chosen[i].port = 0;
        assert_true(ports_claim(&ports, i, &at, &chosen[i]) >= 0);
        assert_true(chosen[i].port >= 49152);
        for (uint32_t before = 0; before < i; before++) {
            assert_int_not_equal(chosen[i].port, chosen[before].port);
        }
    }
}

static void test_who_is_found(void **state)
{
    (void)state;
    const struct box_port loopback = at_address("\177\0\0\1");
    struct box_port loopback6 = any6;
    loopback6.address[15] = 1;
    assert_int_equal(find(0, loopback), -ENOENT);
    assert_true(claim(3, 0, 4, any4) >= 0);
    assert_true(claim(5, 7, 6, any6) >= 0);
    assert_int_equal(find(0, loopback), 3);
    assert_int_equal(find(7, loopback), 5);
    assert_int_equal(find(8, loopback), -ENOENT);
    assert_int_equal(find(0, loopback6), -ENOENT); /* A claim of IPv4's addresses. */
    assert_int_equal(find(7, loopback6), 5);
    assert_int_equal(find(0, at_node(4, 0)), 3);
    assert_int_equal(find(0, at_node(4, 2)), 3);
    assert_int_equal(find(0, at_node(6, 0)), 5);
    assert_int_equal(find(0, at_node(5, 0)), -ENOENT);
    assert_int_equal(find(0, at_address("\12\1\0\5")), -ENOENT);
    ports_forget(&ports, 5);
    assert_int_equal(find(7, loopback), -ENOENT);
    assert_int_equal(find(0, loopback), 3);
}

static void test_an_address_of_its_own(void **state)
{
    (void)state;
    const struct box_port loopback = at_address("\177\0\0\1");
    assert_true(claim(3, 0, 4, at_node(4, 1)) >= 0);
    assert_true(claim(4, 0, 4, at_node(4, 2)) >= 0);
    assert_int_equal(find(0, loopback), -ENOENT);
    assert_int_equal(find(0, at_node(4, 1)), 3);
    assert_int_equal(find(0, at_node(4, 2)), 4);
    assert_int_equal(find(0, at_node(4, 0)), -ENOENT);
}

static void test_not_before_it_listens(void **state)
{
    (void)state;
    struct box_port port = any4;
    const int64_t claimed = ports_claim(&ports, 1, &(struct ports_place){0, 0}, &port);
    assert_int_equal(find(0, at_node(0, 0)), -ENOENT);
    assert_false(ports_offer(&ports, 2, (uint64_t)claimed));
    assert_true(ports_offer(&ports, 1, (uint64_t)claimed));
    assert_int_equal(find(0, at_node(0, 0)), 1);
    assert_false(ports_offer(&ports, 1, PORTS_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_owner, begin),
        cmocka_unit_test_setup(test_a_port_of_its_own, begin),
        cmocka_unit_test_setup(test_who_is_found, begin),
        cmocka_unit_test_setup(test_an_address_of_its_own, begin),
        cmocka_unit_test_setup(test_not_before_it_listens, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
