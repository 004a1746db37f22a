/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Routes lead between addresses that belong together; addresses that a peer names are
 *         judged, and not used before they are proven.
 * Method  Tables by hand; random ones against the rules that the header states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "nic/routes.h"

static struct gid ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (struct gid){{[10] = 0xff, [11] = 0xff, a, b, c, d}};
}

static struct gid ipv6(uint8_t first, uint8_t last)
{
    return (struct gid){{[0] = first, [15] = last}};
}

static struct nic_av av_between(struct gid source, struct gid destination)
{
    return (struct nic_av){.source = source, .destination = destination};
}

static void expect_route(const struct nic_routes *routes, const struct nic_av *av, uint32_t number,
                         struct gid source, struct gid destination, uint8_t port)
{
    const struct nic_route route = nic_routes_at(routes, av, number);
    assert_true(gid_equal(&route.source, &source));
    assert_true(gid_equal(&route.destination, &destination));
    assert_int_equal(route.port, port);
}

static void test_ports_alone(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2));
    const struct nic_routes routes = {.ports = 4};
    assert_int_equal(nic_routes_pairs(&routes), 1);
    assert_int_equal(nic_routes_count(&routes), 4);
    for (uint32_t i = 0; i < 4; i++) {
        expect_route(&routes, &av, i, av.source, av.destination, (uint8_t)i);
    }
}

/* Two interfaces in two subnets, whose order differs between the two ends. */
static void test_subnets_find_each_other(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {
        .ports = 2, .own_count = 2, .own = {ipv4(10, 2, 0, 1), ipv4(10, 3, 0, 1)}};
    const struct gid peer[] = {ipv4(10, 3, 0, 2), ipv4(10, 2, 0, 2)};
    assert_true(nic_routes_learn(&routes, &av, peer, 2));
    assert_int_equal(nic_routes_count(&routes), 6);
    for (uint8_t port = 0; port < 2; port++) {
        expect_route(&routes, &av, 3u * port, av.source, av.destination, port);
        expect_route(&routes, &av, 3u * port + 1, ipv4(10, 2, 0, 1), ipv4(10, 2, 0, 2), port);
        expect_route(&routes, &av, 3u * port + 2, ipv4(10, 3, 0, 1), ipv4(10, 3, 0, 2), port);
    }
}

/* An address that both ends have, as on one host, goes with itself, and not with a neighbour. */
static void test_nearest_is_the_same(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {.ports = 1, .own_count = 1, .own = {ipv4(10, 2, 0, 3)}};
    const struct gid peer[] = {ipv4(10, 2, 0, 2), ipv4(10, 2, 0, 3)};
    assert_true(nic_routes_learn(&routes, &av, peer, 2));
    expect_route(&routes, &av, 1, peer[1], peer[1], 0);
    expect_route(&routes, &av, 2, av.source, peer[0], 0);
}

/* A path that leaves its route again and again comes to all of them, and at once to one that no
 * other path has from the start, if there is any. */
static void test_turns(void **state)
{
    (void)state;
    for (uint8_t ports = 1; ports <= 16; ports++) {
        const struct nic_routes routes = {.ports = ports};
        for (uint32_t paths = 1; paths <= ports; paths++) {
            for (uint32_t av = 0; av < paths; av++) {
                uint32_t seen = 0;
                for (uint32_t turns = 256 - ports; turns < 256; turns++) {
                    seen |= 1u << nic_routes_turned(&routes, av, paths, turns);
                }
                assert_int_equal(seen, (1u << ports) - 1);
                assert_int_equal(nic_routes_turned(&routes, av, paths, 0), av);
            }
        }
    }
    const struct nic_routes sixteen = {.ports = 16};
    for (uint32_t av = 0; av < 4; av++) {
        assert_int_equal(nic_routes_turned(&sixteen, av, 4, 1), av + 5);
    }
    /* Nothing is known of the link yet. */
    const struct nic_routes none = {.ports = 0};
    assert_int_equal(nic_routes_turned(&none, 3, 4, 7), 0);
}

static void test_addresses_left_over(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes ours = {.ports = 1, .own_count = 1, .own = {ipv4(10, 2, 0, 1)}};
    assert_int_equal(nic_routes_count(&ours), 2);
    expect_route(&ours, &av, 1, ipv4(10, 2, 0, 1), av.destination, 0);
    struct nic_routes theirs = {.ports = 1};
    const struct gid peer = ipv4(10, 2, 0, 2);
    assert_true(nic_routes_learn(&theirs, &av, &peer, 1));
    assert_int_equal(nic_routes_count(&theirs), 2);
    expect_route(&theirs, &av, 1, av.source, peer, 0);
    expect_route(&theirs, &av, 3, av.source, peer, 0); /* Modulo the number of routes. */
}

static void test_never_more_than_16(void **state)
{
    (void)state;
    struct nic_routes routes = {.ports = 16, .own_count = 3};
    assert_int_equal(nic_routes_count(&routes), NIC_ROUTES_MAX);
    routes.own_count = 0;
    assert_int_equal(nic_routes_count(&routes), NIC_ROUTES_MAX);
}

/* For all numbers: the routes differ, and route 0 has the address vector's own addresses. */
static void test_all_routes_differ(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 26);
    for (int round = 0; round < 2000; round++) {
        const struct nic_av av = av_between(ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2));
        struct nic_routes routes = {.ports = (uint8_t)(1 + prng_below(&prng, 16)),
                                    .own_count = (uint8_t)prng_below(&prng, 4)};
        struct gid peer[NIC_ROUTE_GIDS_MAX];
        for (uint8_t i = 0; i < NIC_ROUTE_GIDS_MAX; i++) {
            routes.own[i] = ipv4((uint8_t)(20 + i), (uint8_t)prng_next(&prng), 0, 1);
            peer[i] = ipv4((uint8_t)(30 + i), (uint8_t)prng_next(&prng), 0, 2);
        }
        assert_true(nic_routes_learn(&routes, &av, peer, (uint32_t)prng_below(&prng, 4)));
        expect_route(&routes, &av, 0, av.source, av.destination, 0);
        for (uint32_t i = 0; i < nic_routes_count(&routes); i++) {
            const struct nic_route a = nic_routes_at(&routes, &av, i);
            assert_true(nic_routes_connect(&routes, &av, &a.destination, &a.source));
            assert_in_range(a.port, 0, routes.ports - 1);
            for (uint32_t j = 0; j < i; j++) {
                const struct nic_route b = nic_routes_at(&routes, &av, j);
                assert_false(a.port == b.port && gid_equal(&a.source, &b.source) &&
                             gid_equal(&a.destination, &b.destination));
            }
        }
    }
}

static void test_what_a_peer_may_not_name(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    const struct gid bad[] = {ipv6(0x20, 1),      ipv4(224, 0, 0, 1), ipv4(0, 0, 0, 0),
                              ipv4(127, 0, 0, 1), av.destination,     ipv6(0xfe, 1)};
    struct nic_routes routes = {.ports = 1}, before = routes;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const struct gid gids[] = {ipv4(10, 2, 0, 2), bad[i]};
        assert_false(nic_routes_learn(&routes, &av, gids, 2));
    }
    const struct gid twice[] = {ipv4(10, 2, 0, 2), ipv4(10, 2, 0, 2)};
    assert_false(nic_routes_learn(&routes, &av, twice, 2));
    const struct gid many[4] = {ipv4(9, 0, 0, 1), ipv4(9, 0, 0, 2), ipv4(9, 0, 0, 3),
                                ipv4(9, 0, 0, 4)};
    assert_false(nic_routes_learn(&routes, &av, many, 4));
    assert_memory_equal(&routes, &before, sizeof(routes));

    const struct nic_av six = av_between(ipv6(0x20, 1), ipv6(0x20, 2));
    const struct gid scoped = {{[0] = 0xfe, [1] = 0x80, [15] = 1}}, one = {{[15] = 1}};
    assert_false(nic_routes_learn(&routes, &six, &scoped, 1));
    assert_false(nic_routes_learn(&routes, &six, &one, 1));
    assert_true(nic_routes_learn(&routes, &six, (struct gid[]){ipv6(0x20, 3)}, 1));

    const struct nic_av local = av_between(ipv4(127, 1, 0, 1), ipv4(127, 1, 0, 2));
    assert_true(nic_routes_learn(&routes, &local, (struct gid[]){ipv4(127, 1, 0, 3)}, 1));
}

/* The same addresses in another order are no change; changes without an end are refused. */
static void test_changes_are_counted(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {.ports = 1};
    const struct gid there[] = {ipv4(10, 2, 0, 2), ipv4(10, 3, 0, 2)};
    const struct gid back[] = {there[1], there[0]};
    assert_true(nic_routes_learn(&routes, &av, there, 2));
    assert_true(nic_routes_learn(&routes, &av, back, 2));
    assert_int_equal(routes.taught, 1);
    for (uint8_t i = 1; i < NIC_ROUTES_TAUGHT_MAX; i++) {
        assert_true(nic_routes_learn(&routes, &av, (struct gid[]){ipv4(10, 9, 0, i)}, 1));
    }
    const struct nic_routes before = routes;
    assert_false(nic_routes_learn(&routes, &av, (struct gid[]){ipv4(10, 8, 0, 1)}, 1));
    assert_memory_equal(&routes, &before, sizeof(routes));
    assert_true(nic_routes_learn(&routes, &av, routes.peer, routes.peer_count));
}

static void test_who_may_have_sent(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {.ports = 1, .own_count = 1, .own = {ipv4(10, 2, 0, 1)}};
    const struct gid other = ipv4(10, 2, 0, 2), stranger = ipv4(10, 2, 0, 3);
    assert_true(nic_routes_connect(&routes, &av, &av.destination, &av.source));
    assert_true(nic_routes_connect(&routes, &av, &av.destination, &routes.own[0]));
    assert_false(nic_routes_connect(&routes, &av, &other, &av.source));
    assert_true(nic_routes_learn(&routes, &av, &other, 1));
    assert_true(nic_routes_connect(&routes, &av, &other, &av.source));
    assert_true(nic_routes_connect(&routes, &av, &other, &routes.own[0]));
    assert_false(nic_routes_connect(&routes, &av, &stranger, &av.source));
    assert_false(nic_routes_connect(&routes, &av, &other, &stranger));
}

static void test_largest_packet(void **state)
{
    (void)state;
    const struct nic_routes ipv4_jumbo = {.ports = 1, .datagram_bytes = 4180 - 28};
    const struct nic_routes ipv6_jumbo = {.ports = 1, .datagram_bytes = 4199 - 48};
    assert_true(nic_routes_fit(&ipv4_jumbo, 4096));
    assert_false(nic_routes_fit(&ipv6_jumbo, 4096));
    assert_true(nic_routes_fit(&ipv6_jumbo, 2048));
    assert_false(nic_routes_fit(&(struct nic_routes){.ports = 1}, 256));
}

/* -- Proofs -------------------------------------------------------------------------------------*/

/* The challenge that is due at once; the world's next number is `random`. */
static struct nic_route_challenge challenge(struct nic_routes *routes, uint64_t random)
{
    struct nic_route_challenge challenge;
    routes->random = random;
    assert_true(nic_routes_may_challenge(routes, (struct instant){1}));
    assert_true(nic_routes_challenge(routes, (struct instant){1}, &challenge));
    assert_int_equal(routes->random, 0);
    assert_int_equal(challenge.number, random);
    return challenge;
}

/* Which routes paths may take, a bit for each. */
static uint32_t ways_taken(const struct nic_routes *routes)
{
    uint32_t taken = 0;
    for (uint32_t av = 0; av < 4; av++) {
        for (uint32_t turns = 0; turns < 64; turns++) {
            taken |= 1u << nic_routes_turned(routes, av, 4, turns);
        }
    }
    return taken;
}

static void test_no_path_takes_what_is_not_proven(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {
        .ports = 4, .own_count = 2, .own = {ipv4(10, 2, 0, 1), ipv4(10, 3, 0, 1)}};
    assert_int_equal(ways_taken(&routes),
                     0xfff); /* From three addresses of ours to the vector's. */
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){ipv4(10, 2, 0, 2)}, 1));
    assert_int_equal(ways_taken(&routes), 0xb6d); /* Not 1, 4, 7 and 10. */
    const struct nic_route_challenge asked = challenge(&routes, 99);
    assert_int_equal(asked.route, 1);
    assert_false(nic_routes_on_response(&routes, 98));
    assert_int_equal(ways_taken(&routes) & 1u << asked.route, 0);
    assert_true(nic_routes_on_response(&routes, 99));
    assert_int_equal(ways_taken(&routes), 0xfff);
    assert_true(nic_routes_is_named(&routes, 4) && !nic_routes_is_named(&routes, 3) &&
                !nic_routes_is_named(&routes, 5));
}

/* A proof stays with its address when others are named, in any order. */
static void test_a_proof_is_of_its_address(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    const struct gid a = ipv4(10, 2, 0, 2), b = ipv4(10, 3, 0, 2), c = ipv4(10, 4, 0, 2);
    struct nic_routes routes = {.ports = 1};
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){a, b}, 2));
    const struct nic_route_challenge first = challenge(&routes, 1), second = challenge(&routes, 2);
    assert_int_equal(first.route + second.route, 3);
    assert_true(nic_routes_on_response(&routes, second.route == 2 ? 2 : 1));
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){c, a, b}, 3));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(routes.proofs[i].given, gid_equal(&routes.peer[i], &b));
    }
    assert_int_equal(routes.unproven, 2);
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){a}, 1));
    assert_false(routes.proofs[0].given);
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){a, b}, 2)); /* It was not named. */
    assert_int_equal(routes.unproven, 2);
}

/* To be named pays for one challenge, and two packets for another one. */
static void test_challenges_are_paid_for(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {.ports = 1};
    struct nic_route_challenge none;
    assert_false(nic_routes_may_challenge(&routes, (struct instant){1}));
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){ipv4(10, 2, 0, 2)}, 1));
    assert_false(nic_routes_challenge(&routes, (struct instant){1}, &none)); /* No number. */
    (void)challenge(&routes, 7);
    struct instant now = {1};
    for (uint32_t heard = 0; heard < 40; heard++) {
        now.ns += 10 * UINT64_C(1000000000);
        routes.random = 8;
        assert_int_equal(nic_routes_challenge(&routes, now, &none), heard > 0 && heard % 2 == 0);
        assert_int_equal(routes.random, 8); /* The number stays the same. */
        nic_routes_heard(&routes);
    }
    uint32_t saved = 0;
    for (uint32_t heard = 0; heard < 1000; heard++) {
        nic_routes_heard(&routes);
    }
    while (now.ns += 11 * UINT64_C(1000000000), nic_routes_challenge(&routes, now, &none)) {
        saved++;
    }
    assert_int_equal(saved, 8);
}

/* An address that responded once takes none of what the peer has paid for others. */
static void test_later_challenges_are_free(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_routes routes = {.ports = 1};
    struct nic_route_challenge again;
    struct instant now = {1};
    assert_true(nic_routes_learn(&routes, &av, (struct gid[]){ipv4(10, 2, 0, 2)}, 1));
    (void)challenge(&routes, 7);
    assert_int_equal(routes.credit, 0);
    assert_true(nic_routes_on_response(&routes, 7));
    for (uint8_t credit = 0; credit < 4; credit++) {
        routes.random = 8;
        routes.credit = credit;
        now.ns += 11 * UINT64_C(1000000000);
        assert_true(nic_routes_challenge(&routes, now, &again));
        assert_int_equal(routes.credit, credit);
    }
}

static void test_the_route_back(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    const struct gid there = ipv4(10, 2, 0, 2), stranger = ipv4(10, 9, 0, 2);
    struct nic_routes routes = {.ports = 2, .own_count = 1, .own = {ipv4(10, 2, 0, 1)}};
    assert_true(nic_routes_learn(&routes, &av, &there, 1));
    assert_int_equal(nic_routes_back(&routes, &av, &there, &routes.own[0]), 1);
    assert_int_equal(nic_routes_back(&routes, &av, &av.destination, &av.source), 0);
    assert_int_equal(nic_routes_back(&routes, &av, &there, &av.source), 0);
    assert_int_equal(nic_routes_back(&routes, &av, &stranger, &routes.own[0]), 0);
}

/* To each pair of addresses, the newest challenge that came by it, once. */
static void test_responses(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    const struct gid there[] = {ipv4(10, 2, 0, 2), ipv4(10, 3, 0, 2)};
    struct nic_routes routes = {
        .ports = 2, .own_count = 2, .own = {ipv4(10, 2, 0, 1), ipv4(10, 3, 0, 1)}};
    struct nic_responses responses = {.due = 0};
    assert_true(nic_routes_learn(&routes, &av, there, 2));
    nic_routes_owe(&routes, &responses, &av, &there[1], &routes.own[1], 7);
    nic_routes_owe(&routes, &responses, &av, &av.destination, &av.source, 8);
    nic_routes_owe(&routes, &responses, &av, &there[1], &routes.own[1], 9);
    nic_routes_check(&routes, &responses);
    struct nic_route_challenge response = nic_responses_next(&responses);
    assert_true(response.route == 0 && response.number == 8);
    response = nic_responses_next(&responses);
    assert_true(response.route == 2 && response.number == 9);
    assert_int_equal(responses.due, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports_alone),
        cmocka_unit_test(test_subnets_find_each_other),
        cmocka_unit_test(test_nearest_is_the_same),
        cmocka_unit_test(test_addresses_left_over),
        cmocka_unit_test(test_never_more_than_16),
        cmocka_unit_test(test_all_routes_differ),
        cmocka_unit_test(test_what_a_peer_may_not_name),
        cmocka_unit_test(test_changes_are_counted),
        cmocka_unit_test(test_who_may_have_sent),
        cmocka_unit_test(test_largest_packet),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_no_path_takes_what_is_not_proven),
        cmocka_unit_test(test_a_proof_is_of_its_address),
        cmocka_unit_test(test_challenges_are_paid_for),
        cmocka_unit_test(test_later_challenges_are_free),
        cmocka_unit_test(test_the_route_back),
        cmocka_unit_test(test_responses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
