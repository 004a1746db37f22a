/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Ways lead between addresses that belong together; what a peer names is judged, and not
 *         taken before it is proven.
 * Method  Tables by hand; random ones against the rules that the header states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "nic/ways.h"

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

static void expect_way(const struct nic_ways *ways, const struct nic_av *av, uint32_t number,
                       struct gid source, struct gid destination, uint8_t port)
{
    const struct nic_way way = nic_ways_at(ways, av, number);
    assert_true(gid_equal(&way.source, &source));
    assert_true(gid_equal(&way.destination, &destination));
    assert_int_equal(way.port, port);
}

static void test_ports_alone(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2));
    const struct nic_ways ways = {.ports = 4};
    assert_int_equal(nic_ways_pairs(&ways), 1);
    assert_int_equal(nic_ways_count(&ways), 4);
    for (uint32_t i = 0; i < 4; i++) {
        expect_way(&ways, &av, i, av.source, av.destination, (uint8_t)i);
    }
}

/* Two interfaces in two subnets, whose order differs between the two ends. */
static void test_subnets_find_each_other(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_ways ways = {
        .ports = 2, .own_count = 2, .own = {ipv4(10, 2, 0, 1), ipv4(10, 3, 0, 1)}};
    const struct gid peer[] = {ipv4(10, 3, 0, 2), ipv4(10, 2, 0, 2)};
    assert_true(nic_ways_learn(&ways, &av, peer, 2));
    assert_int_equal(nic_ways_count(&ways), 6);
    for (uint8_t port = 0; port < 2; port++) {
        expect_way(&ways, &av, 3u * port, av.source, av.destination, port);
        expect_way(&ways, &av, 3u * port + 1, ipv4(10, 2, 0, 1), ipv4(10, 2, 0, 2), port);
        expect_way(&ways, &av, 3u * port + 2, ipv4(10, 3, 0, 1), ipv4(10, 3, 0, 2), port);
    }
}

/* A path that leaves its way again and again comes to all of them, and at once to one that no other
 * path has from the start, if there is any. */
static void test_turns(void **state)
{
    (void)state;
    for (uint8_t ports = 1; ports <= 16; ports++) {
        const struct nic_ways ways = {.ports = ports};
        for (uint32_t paths = 1; paths <= ports; paths++) {
            for (uint32_t av = 0; av < paths; av++) {
                uint32_t seen = 0;
                for (uint32_t turns = 256 - ports; turns < 256; turns++) {
                    seen |= 1u << nic_ways_turned(&ways, av, paths, turns);
                }
                assert_int_equal(seen, (1u << ports) - 1);
                assert_int_equal(nic_ways_turned(&ways, av, paths, 0), av);
            }
        }
    }
    const struct nic_ways sixteen = {.ports = 16};
    for (uint32_t av = 0; av < 4; av++) {
        assert_int_equal(nic_ways_turned(&sixteen, av, 4, 1), av + 5);
    }
    /* Nothing is known of the link yet. */
    const struct nic_ways none = {.ports = 0};
    assert_int_equal(nic_ways_turned(&none, 3, 4, 7), 0);
}

static void test_addresses_left_over(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_ways ours = {.ports = 1, .own_count = 1, .own = {ipv4(10, 2, 0, 1)}};
    assert_int_equal(nic_ways_count(&ours), 2);
    expect_way(&ours, &av, 1, ipv4(10, 2, 0, 1), av.destination, 0);
    struct nic_ways theirs = {.ports = 1};
    const struct gid peer = ipv4(10, 2, 0, 2);
    assert_true(nic_ways_learn(&theirs, &av, &peer, 1));
    assert_int_equal(nic_ways_count(&theirs), 2);
    expect_way(&theirs, &av, 1, av.source, peer, 0);
    expect_way(&theirs, &av, 3, av.source, peer, 0); /* Modulo what there are. */
}

static void test_never_more_than_16(void **state)
{
    (void)state;
    struct nic_ways ways = {.ports = 16, .own_count = 3};
    assert_int_equal(nic_ways_count(&ways), NIC_WAYS_MAX);
    ways.own_count = 0;
    assert_int_equal(nic_ways_count(&ways), NIC_WAYS_MAX);
}

/* Whatever the numbers are: all ways differ, and way 0 has the address vector's own addresses. */
static void test_all_ways_differ(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 26);
    for (int round = 0; round < 2000; round++) {
        const struct nic_av av = av_between(ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2));
        struct nic_ways ways = {.ports = (uint8_t)(1 + prng_below(&prng, 16)),
                                .own_count = (uint8_t)prng_below(&prng, 4)};
        struct gid peer[NIC_WAY_GIDS_MAX];
        for (uint8_t i = 0; i < NIC_WAY_GIDS_MAX; i++) {
            ways.own[i] = ipv4((uint8_t)(20 + i), (uint8_t)prng_next(&prng), 0, 1);
            peer[i] = ipv4((uint8_t)(30 + i), (uint8_t)prng_next(&prng), 0, 2);
        }
        assert_true(nic_ways_learn(&ways, &av, peer, (uint32_t)prng_below(&prng, 4)));
        expect_way(&ways, &av, 0, av.source, av.destination, 0);
        for (uint32_t i = 0; i < nic_ways_count(&ways); i++) {
            const struct nic_way a = nic_ways_at(&ways, &av, i);
            assert_true(nic_ways_connect(&ways, &av, &a.destination, &a.source));
            assert_in_range(a.port, 0, ways.ports - 1);
            for (uint32_t j = 0; j < i; j++) {
                const struct nic_way b = nic_ways_at(&ways, &av, j);
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
    struct nic_ways ways = {.ports = 1}, before = ways;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const struct gid gids[] = {ipv4(10, 2, 0, 2), bad[i]};
        assert_false(nic_ways_learn(&ways, &av, gids, 2));
    }
    const struct gid twice[] = {ipv4(10, 2, 0, 2), ipv4(10, 2, 0, 2)};
    assert_false(nic_ways_learn(&ways, &av, twice, 2));
    const struct gid many[4] = {ipv4(9, 0, 0, 1), ipv4(9, 0, 0, 2), ipv4(9, 0, 0, 3),
                                ipv4(9, 0, 0, 4)};
    assert_false(nic_ways_learn(&ways, &av, many, 4));
    assert_memory_equal(&ways, &before, sizeof(ways));

    const struct nic_av six = av_between(ipv6(0x20, 1), ipv6(0x20, 2));
    const struct gid scoped = {{[0] = 0xfe, [1] = 0x80, [15] = 1}}, one = {{[15] = 1}};
    assert_false(nic_ways_learn(&ways, &six, &scoped, 1));
    assert_false(nic_ways_learn(&ways, &six, &one, 1));
    assert_true(nic_ways_learn(&ways, &six, (struct gid[]){ipv6(0x20, 3)}, 1));

    const struct nic_av local = av_between(ipv4(127, 1, 0, 1), ipv4(127, 1, 0, 2));
    assert_true(nic_ways_learn(&ways, &local, (struct gid[]){ipv4(127, 1, 0, 3)}, 1));
}

/* The same again is no change, in whichever order; what changes for ever is refused. */
static void test_changes_are_counted(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_ways ways = {.ports = 1};
    const struct gid there[] = {ipv4(10, 2, 0, 2), ipv4(10, 3, 0, 2)};
    const struct gid back[] = {there[1], there[0]};
    assert_true(nic_ways_learn(&ways, &av, there, 2));
    assert_true(nic_ways_learn(&ways, &av, back, 2));
    assert_int_equal(ways.taught, 1);
    for (uint8_t i = 1; i < NIC_WAYS_TAUGHT_MAX; i++) {
        assert_true(nic_ways_learn(&ways, &av, (struct gid[]){ipv4(10, 9, 0, i)}, 1));
    }
    const struct nic_ways before = ways;
    assert_false(nic_ways_learn(&ways, &av, (struct gid[]){ipv4(10, 8, 0, 1)}, 1));
    assert_memory_equal(&ways, &before, sizeof(ways));
    assert_true(nic_ways_learn(&ways, &av, ways.peer, ways.peer_count));
}

static void test_who_may_have_sent(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_ways ways = {.ports = 1, .own_count = 1, .own = {ipv4(10, 2, 0, 1)}};
    const struct gid other = ipv4(10, 2, 0, 2), stranger = ipv4(10, 2, 0, 3);
    assert_true(nic_ways_connect(&ways, &av, &av.destination, &av.source));
    assert_true(nic_ways_connect(&ways, &av, &av.destination, &ways.own[0]));
    assert_false(nic_ways_connect(&ways, &av, &other, &av.source));
    assert_true(nic_ways_learn(&ways, &av, &other, 1));
    assert_true(nic_ways_connect(&ways, &av, &other, &av.source));
    assert_true(nic_ways_connect(&ways, &av, &other, &ways.own[0]));
    assert_false(nic_ways_connect(&ways, &av, &stranger, &av.source));
    assert_false(nic_ways_connect(&ways, &av, &other, &stranger));
}

static void test_largest_packet(void **state)
{
    (void)state;
    const struct nic_ways ipv4_jumbo = {.ports = 1, .datagram_bytes = 4180 - 28};
    const struct nic_ways ipv6_jumbo = {.ports = 1, .datagram_bytes = 4199 - 48};
    assert_true(nic_ways_fit(&ipv4_jumbo, 4096));
    assert_false(nic_ways_fit(&ipv6_jumbo, 4096));
    assert_true(nic_ways_fit(&ipv6_jumbo, 2048));
    assert_false(nic_ways_fit(&(struct nic_ways){.ports = 1}, 256));
}

/* -- Proofs -------------------------------------------------------------------------------------*/

/* The challenge that is due at once; the world's next number is `random`. */
static struct nic_way_challenge challenge(struct nic_ways *ways, uint64_t random)
{
    struct nic_way_challenge challenge;
    ways->random = random;
    assert_true(nic_ways_may_challenge(ways, (struct instant){1}));
    assert_true(nic_ways_challenge(ways, (struct instant){1}, &challenge));
    assert_int_equal(ways->random, 0);
    assert_int_equal(challenge.number, random);
    return challenge;
}

/* Which ways paths may take, a bit for each. */
static uint32_t ways_taken(const struct nic_ways *ways)
{
    uint32_t taken = 0;
    for (uint32_t av = 0; av < 4; av++) {
        for (uint32_t turns = 0; turns < 64; turns++) {
            taken |= 1u << nic_ways_turned(ways, av, 4, turns);
        }
    }
    return taken;
}

static void test_no_path_takes_what_is_not_proven(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_ways ways = {
        .ports = 4, .own_count = 2, .own = {ipv4(10, 2, 0, 1), ipv4(10, 3, 0, 1)}};
    assert_int_equal(ways_taken(&ways), 0xfff); /* From three addresses of ours to the vector's. */
    assert_true(nic_ways_learn(&ways, &av, (struct gid[]){ipv4(10, 2, 0, 2)}, 1));
    assert_int_equal(ways_taken(&ways), 0xb6d); /* Not 1, 4, 7 and 10. */
    const struct nic_way_challenge asked = challenge(&ways, 99);
    assert_int_equal(asked.way, 1);
    assert_false(nic_ways_on_response(&ways, 98));
    assert_int_equal(ways_taken(&ways) & 1u << asked.way, 0);
    assert_true(nic_ways_on_response(&ways, 99));
    assert_int_equal(ways_taken(&ways), 0xfff);
    assert_true(nic_ways_is_named(&ways, 4) && !nic_ways_is_named(&ways, 3) &&
                !nic_ways_is_named(&ways, 5));
}

/* Whatever is said of others, and in whichever order. */
static void test_a_proof_is_of_its_address(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    const struct gid a = ipv4(10, 2, 0, 2), b = ipv4(10, 3, 0, 2), c = ipv4(10, 4, 0, 2);
    struct nic_ways ways = {.ports = 1};
    assert_true(nic_ways_learn(&ways, &av, (struct gid[]){a, b}, 2));
    const struct nic_way_challenge first = challenge(&ways, 1), second = challenge(&ways, 2);
    assert_int_equal(first.way + second.way, 3);
    assert_true(nic_ways_on_response(&ways, second.way == 2 ? 2 : 1));
    assert_true(nic_ways_learn(&ways, &av, (struct gid[]){c, a, b}, 3));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(ways.proofs[i].given, gid_equal(&ways.peer[i], &b));
    }
    assert_int_equal(ways.unproven, 2);
    assert_true(nic_ways_learn(&ways, &av, (struct gid[]){a}, 1));
    assert_false(ways.proofs[0].given);
    assert_true(nic_ways_learn(&ways, &av, (struct gid[]){a, b}, 2)); /* It was not named. */
    assert_int_equal(ways.unproven, 2);
}

/* To be named pays for one challenge, and two packets for another one. */
static void test_challenges_are_paid_for(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    struct nic_ways ways = {.ports = 1};
    struct nic_way_challenge none;
    assert_false(nic_ways_may_challenge(&ways, (struct instant){1}));
    assert_true(nic_ways_learn(&ways, &av, (struct gid[]){ipv4(10, 2, 0, 2)}, 1));
    assert_false(nic_ways_challenge(&ways, (struct instant){1}, &none)); /* No number. */
    (void)challenge(&ways, 7);
    struct instant now = {1};
    for (uint32_t heard = 0; heard < 40; heard++) {
        now.ns += 10 * UINT64_C(1000000000);
        ways.random = 8;
        assert_int_equal(nic_ways_challenge(&ways, now, &none), heard > 0 && heard % 2 == 0);
        assert_int_equal(ways.random, 8); /* The number stays the same. */
        nic_ways_heard(&ways);
    }
    uint32_t saved = 0;
    for (uint32_t heard = 0; heard < 1000; heard++) {
        nic_ways_heard(&ways);
    }
    while (now.ns += 11 * UINT64_C(1000000000), nic_ways_challenge(&ways, now, &none)) {
        saved++;
    }
    assert_int_equal(saved, 8);
}

static void test_the_way_back(void **state)
{
    (void)state;
    const struct nic_av av = av_between(ipv4(10, 1, 0, 1), ipv4(10, 1, 0, 2));
    const struct gid there = ipv4(10, 2, 0, 2), stranger = ipv4(10, 9, 0, 2);
    struct nic_ways ways = {.ports = 2, .own_count = 1, .own = {ipv4(10, 2, 0, 1)}};
    assert_true(nic_ways_learn(&ways, &av, &there, 1));
    assert_int_equal(nic_ways_back(&ways, &av, &there, &ways.own[0]), 1);
    assert_int_equal(nic_ways_back(&ways, &av, &av.destination, &av.source), 0);
    assert_int_equal(nic_ways_back(&ways, &av, &there, &av.source), 0);
    assert_int_equal(nic_ways_back(&ways, &av, &stranger, &ways.own[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports_alone),
        cmocka_unit_test(test_subnets_find_each_other),
        cmocka_unit_test(test_addresses_left_over),
        cmocka_unit_test(test_never_more_than_16),
        cmocka_unit_test(test_all_ways_differ),
        cmocka_unit_test(test_what_a_peer_may_not_name),
        cmocka_unit_test(test_changes_are_counted),
        cmocka_unit_test(test_who_may_have_sent),
        cmocka_unit_test(test_largest_packet),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_no_path_takes_what_is_not_proven),
        cmocka_unit_test(test_a_proof_is_of_its_address),
        cmocka_unit_test(test_challenges_are_paid_for),
        cmocka_unit_test(test_the_way_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
