/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A link-local name leads where its address does, for connections and for datagrams, and is
 *         told to nobody; addresses come before names in the GID table; no route of UDP leads from
 *         one version of IP to the other; a ring is for connections from the first address; a link
 *         goes soon after the last address vector that it was found for.
 * Method  A live NIC without its thread at two shared loopback addresses, over UDP; others, over
 *         shared memory, are their own peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_resolve.h"

#define FIRST_HOST 1
#define RING_HOST  11

static struct live *live;

/* 127.61.N.host, where N belongs to this process. */
static struct gid address(uint8_t host)
{
    return (struct gid){{[10] = 0xff, 0xff, 127, 61, (uint8_t)getpid(), host}};
}

static struct gid name_of(struct gid of)
{
    struct gid name;
    assert_true(inet_loopback_alias(of.bytes, name.bytes));
    return name;
}

static void assert_gid(const struct gid *gid, struct gid expected)
{
    assert_memory_equal(gid->bytes, expected.bytes, sizeof(expected.bytes));
}

/* Makes a live NIC at the addresses of `host` and the next one. */
static struct live *claim_for(enum live_wire wire, enum nic_transport transport, unsigned host)
{
    char device[64], error[256];
    const unsigned number = (uint8_t)getpid();
    snprintf(device, sizeof(device), "127.61.%u.%u,127.61.%u.%u", number, host, number, host + 1);
    const struct live_config config = {
        .wire = wire, .transport = transport, .device = device, .batch = 1};
    struct live *claimed = live_claim(&config, error, sizeof(error));
    if (claimed == NULL) {
        fail_msg("%s", error);
    }
    live_lock(claimed); /* As of every call of these functions. */
    live_now(claimed);
    return claimed;
}

static void unclaim(struct live *claimed)
{
    live_unlock(claimed);
    live_close(claimed);
}

static struct live *claim(enum live_wire wire, unsigned host)
{
    return claim_for(wire, NIC_TRANSPORT_RC, host);
}

static int open_live(void **state)
{
    (void)state;
    live = claim(LIVE_WIRE_UDP, FIRST_HOST);
    return 0;
}

static int close_live(void **state)
{
    (void)state;
    unclaim(live);
    return 0;
}

static void test_table(void **state)
{
    (void)state;
    assert_int_equal(live_gid_count(live), 4);
    for (uint8_t i = 0; i < 2; i++) {
        const struct gid own = address((uint8_t)(FIRST_HOST + i));
        struct live_gid first, name;
        assert_true(live_gid(live, i, &first) && live_gid(live, 2u + i, &name));
        assert_gid(&first.gid, own);
        assert_gid(&first.address, own);
        assert_gid(&name.gid, name_of(own));
        assert_gid(&name.address, own);
        assert_int_equal(name.interface_index, first.interface_index);
    }
}

static void test_a_name_leads_to_its_address(void **state)
{
    (void)state;
    const struct gid peer = address(77);
    for (int datagrams = 0; datagrams < 2; datagrams++) {
        struct nic_av plain = {.source = address(FIRST_HOST), .destination = peer};
        struct nic_av named = {.source = address(FIRST_HOST), .destination = name_of(peer)};
        struct nic_av *const paths[] = {&plain, &named};
        for (int j = 0; j < 2; j++) {
            assert_int_equal(datagrams ? live_resolve_datagrams(live, paths[j])
                                       : live_resolve(live, paths[j], 0x10001),
                             STATUS_OK);
            assert_gid(&paths[j]->destination, peer);
            assert_int_equal(paths[j]->destination_by_alias, j);
            assert_gid(&((const struct link *)paths[j]->link)->peer, peer);
        }
        assert_ptr_equal(named.link, plain.link);
    }
}

static void test_managers_know_addresses_only(void **state)
{
    (void)state;
    struct gid found;
    for (uint8_t i = 0; i < 2; i++) {
        const struct gid own = address((uint8_t)(FIRST_HOST + i));
        live_cm_gid_for(live, own.bytes, found.bytes);
        assert_gid(&found, own);
        live_cm_gid_for(live, name_of(own).bytes, found.bytes);
        assert_gid(&found, address(FIRST_HOST));
    }
}

static void test_versions_of_ip_do_not_mix(void **state)
{
    (void)state;
    const struct gid others[] = {
        {{[15] = 1}}, {{0xfe, 0x80, [15] = 1}}, {{0xfe, 0x80, [10] = 0x5e, 0xfe, 10, 0, 0, 1}}};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct nic_av av = {.source = address(FIRST_HOST), .destination = others[i]};
        assert_int_equal(live_resolve(live, &av, 0x10001), STATUS_INVALID);
        assert_int_equal(live_resolve_datagrams(live, &av), STATUS_INVALID);
        assert_gid(&av.destination, others[i]);
        assert_false(av.destination_by_alias);
        assert_true(live_is_out_of_reach(live, &others[i], 0));
    }
    const struct gid peer = address(77);
    assert_false(live_is_out_of_reach(live, &peer, 0));
}

/* The peer knows the sender of packets by a ring as the first address of its process. */
static void test_rings_are_for_the_first_address(void **state)
{
    (void)state;
    static const enum live_wire wires[] = {LIVE_WIRE_AUTO, LIVE_WIRE_SHM};
    for (size_t i = 0; i < COUNT_OF(wires); i++) {
        const uint8_t host = (uint8_t)(RING_HOST + 2 * i);
        const struct gid first = address(host), second = address((uint8_t)(host + 1));
        struct live *own = claim(wires[i], host);
        const uint32_t qpn = own->addresses.slot * SHARE_QPN_SPAN + 2;
        struct nic_av plain = {.source = first, .destination = first};
        struct nic_av named = {.source = first, .destination = name_of(first)};
        struct nic_av other = {.source = second, .destination = first};
        assert_int_equal(live_resolve(own, &plain, qpn), STATUS_OK);
        assert_int_equal(((const struct link *)plain.link)->kind, LINK_SHM);
        assert_int_equal(live_resolve(own, &named, qpn), STATUS_OK);
        assert_ptr_equal(named.link, plain.link);
        const bool by_udp = wires[i] == LIVE_WIRE_AUTO;
        assert_int_equal(live_resolve(own, &other, qpn), by_udp ? STATUS_OK : STATUS_INVALID);
        if (by_udp) {
            assert_int_equal(((const struct link *)other.link)->kind, LINK_UDP);
            assert_gid(&((const struct link *)other.link)->self, second);
        }
        unclaim(own);
    }
}

/* -- Links that go ------------------------------------------------------------------------------*/

/* More than there are numbers for links that blocks may go over. */
#define PEERS (LIVE_NUMBERS_MAX + 200)

/* An address for each number, which nobody has. */
static struct gid stranger(uint8_t network, uint32_t number)
{
    return (struct gid){{[10] = 0xff, 0xff, network, 200, (uint8_t)(number >> 8), (uint8_t)number}};
}

static struct nic_av connect_to(struct live *own, struct gid peer)
{
    struct nic_av av = {.source = own->addresses.entries[0].gid, .destination = peer};
    assert_int_equal(live_resolve(own, &av, 0x10001), STATUS_OK);
    return av;
}

static void test_connections_that_go(void **state)
{
    (void)state;
    struct live *own = claim_for(LIVE_WIRE_UDP, NIC_TRANSPORT_AUTO, RING_HOST);
    const struct nic_av kept = connect_to(own, stranger(10, 0));
    for (uint32_t i = 1; i < PEERS; i++) {
        const struct nic_av av = connect_to(own, stranger(10, i));
        assert_true(av.peer != 0 && av.peer != kept.peer);
        live_release(own, &av);
        assert_in_range(own->udp.links.count, 1, 1 + 2 * LINKS_IDLE);
        assert_int_equal(own->udp.links.count, own->udp.peers);
    }
    const struct nic_av again = connect_to(own, stranger(10, 0));
    assert_ptr_equal(again.link, kept.link);
    assert_int_equal(again.peer, kept.peer);
    live_release(own, &again);
    live_release(own, &kept);
    unclaim(own);
}

/* Datagrams to an address that several processes may share choose a link each. */
static void test_address_handles_that_go(void **state)
{
    (void)state;
    struct nic_av kept = {.source = address(FIRST_HOST), .destination = stranger(10, 0)};
    assert_int_equal(live_resolve_datagrams(live, &kept), STATUS_OK);
    const struct link *way = live_slot_link(live, kept.link, 0x30001);
    for (uint32_t i = 1; i < 2000; i++) {
        struct nic_av av = {.source = address(FIRST_HOST),
                            .destination = stranger(i % 2 ? 10 : 127, i)};
        assert_int_equal(live_resolve_datagrams(live, &av), STATUS_OK);
        struct link *link = av.link;
        if (link->kind == LINK_SHARED) {
            assert_non_null(live_slot_link(live, link, (i & 0xff) << 16));
        }
        live_release(live, &av);
        assert_in_range(live->links.shared.count, 1, 1 + 2 * LINKS_IDLE);
        assert_in_range(live->udp.links.count, 1, 1 + 5 * LINKS_IDLE);
    }
    assert_ptr_equal(live_slot_link(live, kept.link, 0x30001), way);
    live_release(live, &kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_a_name_leads_to_its_address),
        cmocka_unit_test(test_managers_know_addresses_only),
        cmocka_unit_test(test_versions_of_ip_do_not_mix),
        cmocka_unit_test(test_rings_are_for_the_first_address),
        cmocka_unit_test(test_connections_that_go),
        cmocka_unit_test(test_address_handles_that_go),
    };
    return cmocka_run_group_tests(tests, open_live, close_live);
}
