/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet leaves each FPGA by the port that the three rules give, and the map decides
 *         which block an address belongs to. Behaviours EXA-04, EXA-60, EXA-61.
 * Method  Every FPGA, input and kind of destination by hand; walks of random packets through the
 *         crossbars of two QFDBs; maps that are not valid.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/routing.h"

static struct exanest_place place(uint8_t x, uint8_t fpga)
{
    return (struct exanest_place){.x = x, .y = 2, .z = 1, .fpga = fpga};
}

static struct exanest_header to(struct exanest_place destination, uint64_t va)
{
    return (struct exanest_header){
        .target = {exanest_coordinate(destination), va},
        .type = EXANEST_WRITE,
        .bytes = 16,
        .has_footer = true,
    };
}

static struct exanest_routing routing_at(struct exanest_place own)
{
    const struct exanest_routing_config config = exanest_routing_default(own);
    struct exanest_routing routing;
    exanest_routing_init(&routing, &config);
    return routing;
}

static void expect(const struct exanest_routing *routing, uint32_t input,
                   struct exanest_place destination, uint64_t va, uint32_t port)
{
    const struct exanest_header header = to(destination, va);
    const struct exanest_route route = exanest_route(routing, input, &header);
    assert_int_equal(route.port, port);
    assert_int_equal(route.verdict,
                     port == EXANEST_NO_PORT ? EXANEST_ROUTE_SECOND_HOP : EXANEST_ROUTE_GOOD);
}

/* EXA-60: the first two rules, for each FPGA and input. */
static void test_rules(void **state)
{
    (void)state;
    for (uint8_t own = 0; own < EXANEST_FPGAS; own++) {
        const struct exanest_routing routing = routing_at(place(3, own));
        for (uint8_t fpga = 0; fpga < EXANEST_FPGAS; fpga++) {
            for (uint32_t local = 8; local < 16; local++) {
                expect(&routing, local, place(4, fpga), 0, own == 0 ? 4 : 0);
                expect(&routing, local, place(3, fpga), 0, fpga == own ? 8 : fpga);
            }
            /* From the dead port as from a block. */
            expect(&routing, own, place(4, fpga), 0, own == 0 ? 4 : 0);
            expect(&routing, own, place(3, fpga), 0, fpga == own ? 8 : fpga);
            for (uint32_t link = 0; link < EXANEST_FPGAS; link++) {
                if (link != own) {
                    expect(&routing, link, place(4, fpga), 0,
                           own == 0 ? 4 + link : EXANEST_NO_PORT);
                    expect(&routing, link, place(3, fpga), 0, fpga == own ? 8 : EXANEST_NO_PORT);
                }
            }
            for (uint32_t router = 4; router < 8 && own == 0; router++) {
                expect(&routing, router, place(4, fpga), 0, EXANEST_NO_PORT);
                expect(&routing, router, place(3, fpga), 0, fpga == own ? 8 : fpga);
            }
        }
    }
}

/* EXA-60: y and z count as x does. */
static void test_other_dimensions(void **state)
{
    (void)state;
    const struct exanest_routing routing = routing_at(place(3, 0));
    struct exanest_place other = place(3, 0);
    other.y++;
    expect(&routing, 8, other, 0, 4);
    other = place(3, 0);
    other.z = 63;
    expect(&routing, 2, other, 0, 6);
}

/* EXA-60: the comparison of EXA-A13. */
static void test_one_router_port(void **state)
{
    (void)state;
    struct exanest_routing_config config = exanest_routing_default(place(3, 0));
    struct exanest_routing routing;
    config.one_router_port = true;
    exanest_routing_init(&routing, &config);
    for (uint32_t input = 0; input < 4; input++) {
        expect(&routing, input, place(4, 1), 0, 4);
    }
    expect(&routing, 8, place(4, 1), 0, 4);
}

/* EXA-04, EXA-60: the third rule. Peripherals by their index, all else is memory. */
static void test_home(void **state)
{
    (void)state;
    static const uint8_t ports[16] = {9, 9, 11, 10, 8, 12, 13, 13, 13, 13, 13, 14, 14, 14, 14, 14};
    const struct exanest_place own = place(9, 2);
    const struct exanest_routing routing = routing_at(own);
    for (uint32_t index = 0; index < 128; index++) {
        for (uint32_t end = 0; end < 2; end++) {
            const uint32_t low = end == 0 ? 0 : UINT32_MAX;
            const struct exanest_header header =
                to(own, exanest_peripheral_va((enum exanest_peripheral)index, low));
            const struct exanest_route route = exanest_route(&routing, 8, &header);
            assert_int_equal(route.port, index < 16 ? ports[index] : EXANEST_NO_PORT);
            assert_int_equal(route.verdict, index < 16 ? EXANEST_ROUTE_GOOD : EXANEST_ROUTE_NOBODY);
        }
    }
    expect(&routing, 8, own, 0, 8);
    expect(&routing, 8, own, (UINT64_C(7) << 39) - 1, 8);
}

/* EXA-61: other ports, ranges and strays by another map; the dead port loops back once. */
static void test_other_map(void **state)
{
    (void)state;
    const struct exanest_place own = place(0, 1);
    struct exanest_routing_config config = {
        .own = own,
        .fpga_ports = {12, 11, 10, 9},
        .router_ports = {0, 1, 2, 3},
        .bad_header_port = EXANEST_NO_PORT,
        .nobody_port = 7,
        .range_count = 3,
        .ranges = {{0x1000, 0x1fff, 5}, {0x1800, 0x2fff, 6}, {0x8000, 0x8000, 11}},
    };
    struct exanest_routing routing;
    assert_true(exanest_routing_is_valid(&config));
    exanest_routing_init(&routing, &config);
    assert_int_equal(routing.dead_port, 11);
    expect(&routing, 7, own, 0x1000, 5);
    expect(&routing, 7, own, 0x1fff, 5); /* The first that fits. */
    expect(&routing, 7, own, 0x2000, 6);
    expect(&routing, 7, place(0, 0), 0x2000, 12);
    expect(&routing, 7, place(0, 3), 0x2000, 9);
    expect(&routing, 7, place(1, 3), 0x2000, 12);
    expect(&routing, 7, own, 0x8000, 11);
    struct exanest_header header = to(own, 0x8000);
    assert_int_equal(exanest_route(&routing, 11, &header).verdict, EXANEST_ROUTE_LOOP);
    header = to(own, 0x8001);
    assert_int_equal(exanest_route(&routing, 4, &header).verdict, EXANEST_ROUTE_NOBODY);
    assert_int_equal(exanest_route(&routing, 4, &header).port, 7);
    const struct exanest_word corrupt = {1, 2};
    assert_int_equal(exanest_route_word(&routing, 4, corrupt).verdict, EXANEST_ROUTE_BAD_HEADER);
    assert_int_equal(exanest_route_word(&routing, 4, corrupt).port, EXANEST_NO_PORT);
}

/* EXA-61: two links for each pair, by another map. Only packets of the second path take them; the
 * other rules are as before. */
static void test_two_links(void **state)
{
    (void)state;
    for (uint8_t own = 0; own < EXANEST_FPGAS; own++) {
        const struct exanest_routing_config config = exanest_routing_two_links(place(3, own));
        struct exanest_routing routing;
        assert_true(exanest_routing_is_valid(&config));
        exanest_routing_init(&routing, &config);
        const uint32_t second = 16u + own;
        for (uint8_t fpga = 0; fpga < EXANEST_FPGAS; fpga++) {
            expect(&routing, 8, place(3, fpga), 0, fpga == own ? 8 : fpga);
            expect(&routing, 15, place(3, fpga), 0, fpga == own ? 8 : fpga);
            expect(&routing, second, place(3, fpga), 0, fpga == own ? 8 : 16u + fpga);
            expect(&routing, second, place(4, fpga), 0, own == 0 ? 4 : 16);
            if (fpga == own) {
                continue;
            }
            for (uint32_t link = fpga; link < EXANEST_PORTS_MAX; link += 16) {
                expect(&routing, link, place(3, own), 0, 8);
                expect(&routing, link, place(3, (uint8_t)((own + 1) % 4)), 0, EXANEST_NO_PORT);
                expect(&routing, link, place(4, 0), 0, own == 0 ? 4u + fpga : EXANEST_NO_PORT);
            }
        }
    }
    struct exanest_routing_config bad = exanest_routing_two_links(place(3, 1));
    bad.second_ports[2] = 2;
    assert_false(exanest_routing_is_valid(&bad));
    bad.second_ports[2] = EXANEST_PORTS_MAX;
    assert_false(exanest_routing_is_valid(&bad));
}

static void expect_refused(const struct exanest_routing *routing, uint32_t input,
                           struct exanest_word word, enum exanest_route_verdict verdict)
{
    const struct exanest_route route = exanest_route_word(routing, input, word);
    assert_int_equal(route.verdict, verdict);
    assert_int_equal(route.port, EXANEST_NO_PORT);
}

/* A map may send corrupt packets, those without an owner, or those for its own addresses to a link,
 * a router's port or the dead port: once. Two FPGAs whose maps name each other would pass it on for
 * ever. */
static void test_maps_without_circles(void **state)
{
    (void)state;
    const struct exanest_place own = place(0, 0);
    struct exanest_routing_config config = exanest_routing_default(own);
    config.bad_header_port = 2;
    config.nobody_port = 0;
    config.range_count = 2;
    config.ranges[0] = (struct exanest_range){0, 0xfff, 5};
    config.ranges[1] = (struct exanest_range){0x1000, 0x1fff, 3};
    assert_true(exanest_routing_is_valid(&config));
    struct exanest_routing routing;
    exanest_routing_init(&routing, &config);
    const struct exanest_word corrupt = {1, 2};
    assert_int_equal(exanest_route_word(&routing, 8, corrupt).port, 2);
    assert_int_equal(exanest_route_word(&routing, 0, corrupt).port, 2);
    expect_refused(&routing, 2, corrupt, EXANEST_ROUTE_SECOND_HOP);
    expect_refused(&routing, 5, corrupt, EXANEST_ROUTE_SECOND_HOP);
    struct exanest_header header = to(own, 0x2000);
    assert_int_equal(exanest_route(&routing, 8, &header).port, 0);
    expect_refused(&routing, 0, exanest_header_encode(&header), EXANEST_ROUTE_LOOP);
    expect(&routing, 8, own, 0x10, 5);
    expect(&routing, 8, own, 0x1010, 3);
    header = to(own, 0x10);
    expect_refused(&routing, 4, exanest_header_encode(&header), EXANEST_ROUTE_SECOND_HOP);
    header = to(own, 0x1010);
    expect_refused(&routing, 1, exanest_header_encode(&header), EXANEST_ROUTE_SECOND_HOP);
    config.bad_header_port = 0;
    exanest_routing_init(&routing, &config);
    expect_refused(&routing, 0, corrupt, EXANEST_ROUTE_LOOP);
}

static void test_header_words(void **state)
{
    (void)state;
    const struct exanest_routing routing = routing_at(place(3, 1));
    const struct exanest_header header = to(place(3, 2), 0x1000);
    struct exanest_word word = exanest_header_encode(&header);
    assert_int_equal(exanest_route_word(&routing, 8, word).port, 2);
    word.low ^= 1;
    const struct exanest_route route = exanest_route_word(&routing, 8, word);
    assert_int_equal(route.verdict, EXANEST_ROUTE_BAD_HEADER);
    assert_int_equal(route.port, EXANEST_PORT_RDMA); /* The receiver answers with a NACK. */
}

static void test_maps_that_are_refused(void **state)
{
    (void)state;
    const struct exanest_routing_config good = exanest_routing_default(place(3, 1));
    assert_true(exanest_routing_is_valid(&good));
    struct exanest_routing_config bad = good;
    bad.fpga_ports[2] = 1; /* Twice. */
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.router_ports[3] = 16;
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.router_ports[3] = 2; /* A link's. */
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.range_count = EXANEST_RANGES_MAX + 1;
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.ranges[1].last = bad.ranges[1].first - 1;
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.ranges[7].last = UINT64_C(1) << EXANEST_VA_BITS;
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.ranges[0].port = 16;
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.own.fpga = 4;
    assert_false(exanest_routing_is_valid(&bad));
    bad = good;
    bad.nobody_port = 16;
    assert_false(exanest_routing_is_valid(&bad));
}

/* EXA-60: from any block to any place of two QFDBs, by the rules of each FPGA on the way. */
static void test_walks(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t n = 0; n < 20000; n++) {
        const struct exanest_place end =
            place((uint8_t)prng_below(&prng, 2), (uint8_t)prng_below(&prng, 4));
        const struct exanest_header header = to(end, prng_next(&prng) >> 25);
        struct exanest_place at =
            place((uint8_t)prng_below(&prng, 2), (uint8_t)prng_below(&prng, 4));
        const struct exanest_place from = at;
        uint32_t input = 8 + (uint32_t)prng_below(&prng, 8), links = 0, routers = 0;
        for (;;) {
            const struct exanest_routing routing = routing_at(at);
            const struct exanest_route route = exanest_route(&routing, input, &header);
            assert_int_equal(route.verdict, EXANEST_ROUTE_GOOD);
            if (route.port == EXANEST_PORT_RDMA) {
                break;
            }
            if (route.port < 4) {
                assert_int_not_equal(route.port, at.fpga);
                input = at.fpga;
                at.fpga = route.port;
                links++;
            } else {
                assert_int_equal(route.port, 4 + from.fpga); /* Reserved for the sender's FPGA. */
                assert_int_equal(at.fpga, 0);
                at.x = end.x;
                input = 4u + end.fpga;
                routers++;
            }
        }
        assert_true(at.x == end.x && at.fpga == end.fpga);
        assert_int_equal(routers, from.x != end.x);
        assert_int_equal(links, from.x != end.x ? (from.fpga != 0) + (end.fpga != 0)
                                                : from.fpga != end.fpga);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),           cmocka_unit_test(test_other_dimensions),
        cmocka_unit_test(test_one_router_port), cmocka_unit_test(test_home),
        cmocka_unit_test(test_other_map),       cmocka_unit_test(test_header_words),
        cmocka_unit_test(test_two_links),       cmocka_unit_test(test_maps_without_circles),
        cmocka_unit_test(test_walks),           cmocka_unit_test(test_maps_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
