/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Addresses come out of the form of sockets as they went in; questions to the system get
 *         the right answers.
 * Method  Both families, with a socket's bytes written out; loopback, which every machine
 *         has, and addresses of documentation (RFC 5737), which none has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "drivers/system/socket_address.h"

static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
static const uint8_t nobody[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1};

static void test_ipv4(void **state)
{
    (void)state;
    uint8_t ip[16];
    const union socket_address address = socket_address_of(nobody, 0x1234, 7);
    assert_int_equal(address.any.sa_family, AF_INET);
    assert_int_equal(socket_address_bytes(&address), sizeof(struct sockaddr_in));
    assert_memory_equal(&address.v4.sin_port, "\x12\x34", 2);
    assert_memory_equal(&address.v4.sin_addr, "\xc0\x00\x02\x01", 4);
    memset(ip, 0x5a, sizeof(ip));
    socket_address_ip(&address, ip);
    assert_memory_equal(ip, nobody, 16);
}

static void test_ipv6(void **state)
{
    (void)state;
    uint8_t ip[16], back[16];
    for (uint8_t i = 0; i < 16; i++) {
        ip[i] = (uint8_t)(0x20 + i);
    }
    const union socket_address address = socket_address_of(ip, 0x1234, 7);
    assert_int_equal(address.any.sa_family, AF_INET6);
    assert_int_equal(socket_address_bytes(&address), sizeof(struct sockaddr_in6));
    assert_memory_equal(&address.v6.sin6_port, "\x12\x34", 2);
    assert_memory_equal(&address.v6.sin6_addr, ip, 16);
    assert_int_equal(address.v6.sin6_scope_id, 0);
    socket_address_ip(&address, back);
    assert_memory_equal(back, ip, 16);
    memcpy(ip, "\xfe\xbf", 2);
    assert_int_equal(socket_address_of(ip, 0x1234, 7).v6.sin6_scope_id, 7);
}

static void test_what_the_system_says(void **state)
{
    (void)state;
    uint8_t from[16] = {0};
    assert_true(address_is_local(loopback));
    assert_false(address_is_local(nobody));
    assert_true(address_towards(loopback, 0, from));
    assert_memory_equal(from, loopback, 16);
    if (address_towards(nobody, 0, from)) { /* A machine may have no network at all. */
        assert_true(address_is_local(from));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_what_the_system_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
