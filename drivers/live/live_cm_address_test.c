/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The connection manager finds a route to a peer: an address of ours to send from, also one
 *         that the kernel does not prefer; a path MTU that both ports have; a source port that no
 *         other connection has.
 * Method  Live NICs without their threads, in a network namespace of our own with interfaces and
 *         addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "drivers/live/live_internal.h"
#include "tests/own_network.h"
#include "world/manager.h"

static bool make_interfaces(void)
{
    return system("ip link add nonic8 type veth peer name nonic9 && "
                  "ip link set nonic8 up && ip link set nonic9 up && "
                  "ip addr add 10.1.2.3/24 dev nonic8 && ip addr add 10.1.2.4/24 dev nonic8") == 0;
}

/* Makes an id for a request, which never comes. */
static struct rdma_id *make_id(void)
{
    static struct rdma_id ids[8];
    static size_t made;
    assert_true(made < COUNT_OF(ids));
    return &ids[made++];
}

static void ignore_released(struct rdma_id *id)
{
    (void)id;
}

static void ignore_changed(struct rdma_channel *channel)
{
    (void)channel;
}

static struct rdma_channel channel;

static struct live *open_live(const char *device)
{
    static const struct live_cm_listener listener = {
        .make_id = make_id, .on_released = ignore_released, .on_changed = ignore_changed};
    char error[256];
    const struct live_config config = {.wire = LIVE_WIRE_UDP, .device = device, .batch = 1};
    struct live *live = live_claim(&config, error, sizeof(error));
    if (live == NULL) {
        fail_msg("%s", error);
    }
    live_lock(live);
    live_cm_listen(live, &listener);
    rdma_channel_init(&channel);
    return live;
}

static void shut(struct live *live)
{
    live_unlock(live);
    live_close(live);
}

/* Asks for the route to 10.1.2.`last`. Returns the event that followed. */
static enum rdma_event_kind resolve(struct live *live, struct rdma_id *id, uint8_t last)
{
    const struct rdma_address any = {
        .ip = {[10] = 0xff, 0xff}, .port = live_cm_source_port(live), .known = true};
    const struct rdma_address to = {
        .ip = {[10] = 0xff, 0xff, 10, 1, 2, last}, .port = 7, .known = true};
    memset(id, 0, sizeof(*id));
    rdma_id_init(id, &channel, RDMA_PORT_SPACE_TCP, 1);
    assert_true(live_cm_prepare(live));
    assert_int_equal(rdma_id_bind(id, &any, any.ip), STATUS_OK);
    assert_int_equal(rdma_id_resolve_address(live_cm(live), id, &to), STATUS_OK);
    live_cm_settle(live);
    struct rdma_event *event = rdma_channel_take(live_cm(live), &channel);
    assert_non_null(event);
    const enum rdma_event_kind kind = event->kind;
    live_cm_give_back(live, event);
    live_cm_settle(live);
    return kind;
}

/* By itself, the kernel would send from 10.1.2.3. */
static void test_address_that_is_not_preferred(void **state)
{
    (void)state;
    struct live *live = open_live("10.1.2.4");
    struct rdma_id id;
    assert_int_equal(resolve(live, &id, 99), RDMA_EVENT_ADDR_RESOLVED);
    assert_int_equal(id.source.ip[15], 4);
    shut(live);
}

/* Packets on lo may be long, but the peer's port is on Ethernet. */
static void test_path_mtu_of_both(void **state)
{
    (void)state;
    struct live *live = open_live(NULL);
    struct rdma_id id;
    assert_int_equal(live_active_mtu(live), PATH_MTU_4096);
    assert_int_equal(resolve(live, &id, 3), RDMA_EVENT_ADDR_RESOLVED);
    assert_int_equal(id.path_mtu, PATH_MTU_1024);
    shut(live);
}

static void test_ports_differ(void **state)
{
    (void)state;
    static bool seen[1 << 16];
    static struct rdma_id ids[1000];
    struct live *live = open_live("10.1.2.3");
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(resolve(live, &ids[i], 99), RDMA_EVENT_ADDR_RESOLVED);
        assert_false(seen[ids[i].source.port]);
        seen[ids[i].source.port] = true;
    }
    shut(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_that_is_not_preferred),
        cmocka_unit_test(test_path_mtu_of_both),
        cmocka_unit_test(test_ports_differ),
    };
    if (!own_network_enter() || !own_network_set_up(true) || !make_interfaces()) {
        return OWN_NETWORK_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
