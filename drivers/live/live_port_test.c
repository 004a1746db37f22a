/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An address that goes with its interface and comes back on another one is used there:
 *         groups are joined on that interface, and packets to them, or from sockets of the
 *         address's own, leave by it.
 * Method  A live NIC without its thread at two addresses on interfaces of a network namespace of
 *         our own, which are removed and made again, so that the kernel numbers them anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/check.h"
#include "drivers/live/live_internal.h"
#include "tests/own_network.h"

#define PORT 50000

static bool make_interfaces(void)
{
    return system("ip link add nonic8 type veth peer name nonic9 && "
                  "ip link set nonic8 up && ip link set nonic9 up && "
                  "ip addr add 10.1.2.3/24 dev nonic8 && ip addr add 10.1.3.3/24 dev nonic9") == 0;
}

static void expect_interfaces(const struct live *live)
{
    assert_int_equal(live->addresses.entries[0].interface_index, if_nametoindex("nonic8"));
    assert_int_equal(live->addresses.entries[1].interface_index, if_nametoindex("nonic9"));
}

static const struct gid group = {{[10] = 0xff, 0xff, 239, 1, 2, 3}};

/* The packet leaves by an interface that is there: the kernel refuses one that is to leave by
 * another. */
static void expect_sent_to_group(const struct link *base)
{
    const struct udp_link *link = CONTAINER_OF_CONST(base, struct udp_link, link);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(ROCE_UDP_PORT),
                                   .sin_addr.s_addr = htonl(0xef010203)};
    assert_int_equal(sendto(link->fd, "", 1, 0, (const struct sockaddr *)&to, sizeof(to)), 1);
}

static void expect_group(struct live *live)
{
    assert_int_equal(udp_port_join(&live->udp, &group), STATUS_OK);
    udp_port_leave(&live->udp, &group);
}

static void test_addresses_come_back_elsewhere(void **state)
{
    (void)state;
    char error[256];
    const struct live_config config = {
        .wire = LIVE_WIRE_UDP, .device = "10.1.2.3,10.1.3.3", .batch = 1};
    struct live *live = live_claim(&config, error, sizeof(error));
    if (live == NULL) {
        fail_msg("%s", error);
    }
    const uint32_t before = live->addresses.entries[0].interface_index;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    live->udp.senders[0][1] = (struct udp_sender){.fd = fd, .port = PORT, .open = true};
    expect_interfaces(live);
    expect_group(live);
    const struct link *to_group[2];
    for (uint32_t i = 0; i < 2; i++) {
        const struct gid self = live->addresses.entries[i].gid;
        to_group[i] = udp_port_group_link(&live->udp, &self, &group, 1);
        assert_non_null(to_group[i]);
        expect_sent_to_group(to_group[i]);
    }
    assert_int_equal(system("ip link del nonic8"), 0);
    live_port_refresh(live);
    assert_true(make_interfaces());
    live_port_refresh(live);
    assert_int_not_equal(if_nametoindex("nonic8"), before);
    expect_interfaces(live);
    expect_group(live);
    expect_sent_to_group(to_group[0]);
    expect_sent_to_group(to_group[1]);
    uint32_t by = 0;
    socklen_t bytes = sizeof(by);
    assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &by, &bytes), 0);
    assert_int_equal(ntohl(by), if_nametoindex("nonic8"));
    live_close(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_come_back_elsewhere),
    };
    if (!own_network_enter() || !own_network_set_up(true) || !make_interfaces()) {
        return OWN_NETWORK_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
