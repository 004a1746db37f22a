/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Words of users become the addresses that they mean, in each way of writing; a word that
 *         is no address is refused, and the reason is said.
 * Method  Loopback addresses, which every machine has; ::1 where it is to be had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/address.h"
#include "drivers/system/socket_address.h"

static const uint8_t ipv6_loopback[16] = {[15] = 1};

static void expect_one(const char *device, const uint8_t ip[16])
{
    struct address_set set = {0};
    char error[256] = "";
    if (!address_find(&set, device, error, sizeof(error))) {
        fail_msg("%s: %s", device, error);
    }
    assert_int_equal(set.count, 1);
    assert_int_equal(set.words, 1);
    assert_memory_equal(set.entries[0].gid.bytes, ip, 16);
    assert_int_equal(set.entries[0].interface_index, if_nametoindex("lo"));
    assert_true(set.entries[0].loopback);
    assert_true(set.entries[0].fd >= 0);
    assert_true(set.shared);
    address_release(&set);
}

static void expect_refused(const char *device, const char *reason)
{
    struct address_set set = {0};
    char error[256] = "";
    assert_false(address_find(&set, device, error, sizeof(error)));
    if (strstr(error, reason) == NULL) {
        fail_msg("%s: %s", device, error);
    }
    assert_int_equal(set.count, 0);
}

/* An address of this process's own. */
static void test_ipv4(void **state)
{
    (void)state;
    const uint8_t number = (uint8_t)getpid();
    const uint8_t ip[16] = {[10] = 0xff, 0xff, 127, 60, number, 9};
    char plain[32], mapped[48], twice[80];
    snprintf(plain, sizeof(plain), "127.60.%u.9", number);
    snprintf(mapped, sizeof(mapped), "::ffff:%s", plain);
    snprintf(twice, sizeof(twice), "%s,%s", plain, mapped);
    expect_one(plain, ip);
    expect_one(mapped, ip);
    expect_refused(twice, "twice");
}

static void test_ipv6(void **state)
{
    (void)state;
    if (!address_is_local(ipv6_loopback)) {
        skip();
    }
    expect_one("::1", ipv6_loopback);
    expect_one("0:0:0:0:0:0:0:1", ipv6_loopback);
    expect_one("0::0001", ipv6_loopback);
    expect_refused("::1,0::1", "twice");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const link_local[] = {"fe80::1", "fe80::1%lo", "FE80:0::5efe:127.0.0.1",
                                             "febf::1%nowhere0"};
    static const char *const nobody[] = {
        "2001:db8::1", "::2", "192.0.2.1", "fec0::1", "::1%lo", "nowhere0", "127.0.0.1.", "::", ""};
    for (size_t i = 0; i < COUNT_OF(link_local); i++) {
        expect_refused(link_local[i], "link-local");
    }
    for (size_t i = 0; i < COUNT_OF(nobody); i++) {
        expect_refused(nobody[i], "neither an interface");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
