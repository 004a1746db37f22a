/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    IP and UDP headers are what hosts send, checksums included, and the invariant form
 *         differs from them exactly in the fields that may change on the way.
 * Method  Literal headers whose checksums were worked out elsewhere; then random packets, checked
 *         as a receiver does: the one's complement sum over what a checksum covers, with the
 *         checksum, is all ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "wire/inet.h"

static const struct inet_flow ipv4_flow = {
    .source = {[10] = 0xff, 0xff, 10, 77, 0, 2},
    .destination = {[10] = 0xff, 0xff, 10, 77, 0, 3},
    .source_port = 50308,
    .destination_port = 4791,
};

static const struct inet_flow ipv6_flow = {
    .source = {0xfd, 0x77, [15] = 2},
    .destination = {0xfd, 0x77, [15] = 3},
    .source_port = 50308,
    .destination_port = 4791,
};

/* The receiver's side of RFC 1071, one addition at a time with the carry brought round at once. */
static uint16_t ones_sum(uint16_t sum, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t wide = sum + ((uint32_t)bytes[i] << (i % 2 == 0 ? 8 : 0));
        sum = (uint16_t)(wide > 0xffff ? wide - 0xffff : wide);
    }
    return sum;
}

static void test_mapped_addresses(void **state)
{
    (void)state;
    uint8_t address[16];

    assert_true(inet_is_ipv4(ipv4_flow.source));
    assert_false(inet_is_ipv4(ipv6_flow.source));
    memcpy(address, ipv4_flow.source, sizeof(address));
    for (unsigned bit = 0; bit < 128; bit++) {
        address[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(inet_is_ipv4(address), bit / 8 >= 12);
        address[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_multicast_addresses(void **state)
{
    (void)state;
    uint8_t address[16];
    for (unsigned first = 0; first < 256; first++) {
        memcpy(address, ipv4_flow.source, sizeof(address));
        address[12] = (uint8_t)first;
        assert_int_equal(inet_is_multicast(address), first >= 224 && first < 240);
        address[9] = 1; /* No longer of the mapped form. */
        assert_false(inet_is_multicast(address));
        memcpy(address, ipv6_flow.source, sizeof(address));
        address[0] = (uint8_t)first;
        assert_int_equal(inet_is_multicast(address), first == 0xff);
    }
}

/* No bit may differ: neither ::1 nor 0.0.0.1 is any address. */
static void test_any_address(void **state)
{
    (void)state;
    uint8_t addresses[2][16] = {{[10] = 0xff, [11] = 0xff}, {0}};
    for (int i = 0; i < 2; i++) {
        assert_true(inet_is_any(addresses[i]));
        for (unsigned bit = 0; bit < 128; bit++) {
            addresses[i][bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(inet_is_any(addresses[i]));
            addresses[i][bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

/* The first ten bits decide. */
static void test_link_local_addresses(void **state)
{
    (void)state;
    uint8_t address[16] = {0xfe, 0x80, [15] = 1};
    assert_true(inet_is_link_local(address));
    for (unsigned bit = 0; bit < 128; bit++) {
        address[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(inet_is_link_local(address), bit >= 8 && bit != 14 && bit != 15);
        address[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_false(inet_is_link_local(ipv4_flow.source));
}

/* A name and its address make each other; no other bit may differ. Other addresses have no name. */
static void test_loopback_aliases(void **state)
{
    (void)state;
    static const uint8_t expected[16] = {0xfe, 0x80, [10] = 0x5e, 0xfe, 127, 84, 3, 9};
    const uint8_t address[16] = {[10] = 0xff, 0xff, 127, 84, 3, 9};
    uint8_t alias[16], back[16];
    assert_true(inet_loopback_alias(address, alias));
    assert_memory_equal(alias, expected, sizeof(alias));
    assert_true(inet_of_loopback_alias(alias, back));
    assert_memory_equal(back, address, sizeof(back));
    assert_false(inet_loopback_alias(alias, back));
    assert_false(inet_of_loopback_alias(address, back));
    for (unsigned bit = 0; bit < 128; bit++) {
        const bool name = bit / 8 > 12; /* It belongs to another such address. */
        uint8_t odd_address[16], odd_alias[16];
        memcpy(odd_address, address, sizeof(odd_address));
        memcpy(odd_alias, expected, sizeof(odd_alias));
        odd_address[bit / 8] ^= (uint8_t)(1u << bit % 8);
        odd_alias[bit / 8] ^= (uint8_t)(1u << bit % 8);
        memcpy(back, address, sizeof(back));
        assert_int_equal(inet_loopback_alias(odd_address, back), name);
        assert_memory_equal(back, name ? odd_alias : address, sizeof(back));
        memcpy(back, address, sizeof(back));
        assert_int_equal(inet_of_loopback_alias(odd_alias, back), name);
        assert_memory_equal(back, name ? odd_address : address, sizeof(back));
    }
}

/* perftest's group, worked out by hand; and groups that differ in a bit have others. */
static void test_group_stand_ins(void **state)
{
    (void)state;
    static const uint8_t expected[16] = {[10] = 0xff, 0xff, 239, 172, 194, 215};
    uint8_t group[16] = {0xff, 0x01, [7] = 2, 0xc9, 0x85}, stand_in[16], other[16];
    inet_group_stand_in(group, stand_in);
    assert_memory_equal(stand_in, expected, sizeof(stand_in));
    assert_true(inet_is_multicast(stand_in));
    for (unsigned bit = 8; bit < 128; bit++) {
        group[bit / 8] ^= (uint8_t)(1u << bit % 8);
        inet_group_stand_in(group, other);
        assert_memory_not_equal(other, stand_in, sizeof(other));
        group[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_literal_ipv4(void **state)
{
    (void)state;
    static const uint8_t expected[] = {
        0x45, 0x00, 0x00, 0x30, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x13, 0xeb, 10,   77,
        0,    2,    10,   77,   0,    3,    0xc4, 0x84, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00,
    };
    const uint8_t payload[20] = {0};
    uint8_t out[INET_HEADERS_BYTES_MAX];

    assert_int_equal(inet_encode(out, &ipv4_flow, 0x1234, payload, sizeof(payload)), 28);
    assert_memory_equal(out, expected, sizeof(expected));
}

static void test_literal_ipv6(void **state)
{
    (void)state;
    static const uint8_t expected[] = {
        0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x11, 0x40, 0xfd, 0x77, 0,    0,    0,    0,    0, 0, 0,
        0,    0,    0,    0,    0,    0,    2,    0xfd, 0x77, 0,    0,    0,    0,    0,    0, 0, 0,
        0,    0,    0,    0,    0,    3,    0xc4, 0x84, 0x12, 0xb7, 0x00, 0x1c, 0x2d, 0x86,
    };
    const uint8_t payload[20] = {0};
    uint8_t out[INET_HEADERS_BYTES_MAX];

    assert_int_equal(inet_encode(out, &ipv6_flow, 0x1234, payload, sizeof(payload)), 48);
    assert_memory_equal(out, expected, sizeof(expected));
}

static void randomize(struct inet_flow *flow, struct prng *prng, bool ipv4)
{
    *flow = ipv4 ? ipv4_flow : ipv6_flow;
    for (size_t i = ipv4 ? 12 : 0; i < 16; i++) {
        flow->source[i] = (uint8_t)prng_next(prng);
        flow->destination[i] = (uint8_t)prng_next(prng);
    }
    flow->source_port = (uint16_t)prng_next(prng);
    flow->destination_port = (uint16_t)prng_next(prng);
}

static void test_ipv4_checksum(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);

    for (int round = 0; round < 100000; round++) {
        struct inet_flow flow;
        uint8_t out[INET_HEADERS_BYTES_MAX];
        const uint8_t payload[64] = {0};

        randomize(&flow, &prng, true);
        inet_encode(out, &flow, (uint16_t)prng_next(&prng), payload, prng_below(&prng, 65));
        assert_int_equal(ones_sum(0, out, INET_IPV4_BYTES), 0xffff);
        assert_int_equal(load_be16(out + 26), 0);
    }
}

/* Also with payloads chosen so that the checksum comes out as 0 and must be sent as ones. */
static void test_ipv6_checksum(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);

    for (int round = 0; round < 100000; round++) {
        struct inet_flow flow;
        uint8_t out[INET_HEADERS_BYTES_MAX], payload[65];
        const size_t count = 2 + prng_below(&prng, sizeof(payload) - 1);

        randomize(&flow, &prng, false);
        for (size_t i = 0; i < count; i++) {
            payload[i] = (uint8_t)prng_next(&prng);
        }
        if (round % 2 == 0) {
            store_be16(payload, 0);
            inet_encode(out, &flow, 0, payload, count);
            store_be16(payload, load_be16(out + 46));
        }
        inet_encode(out, &flow, 0, payload, count);
        if (round % 2 == 0) {
            assert_int_equal(load_be16(out + 46), 0xffff);
        }
        uint16_t sum = (uint16_t)(17 + 8 + count);
        sum = ones_sum(sum, out + 8, 32);
        sum = ones_sum(sum, out + 40, 8);
        assert_int_equal(ones_sum(sum, payload, count), 0xffff);
    }
}

/* The invariant form is the plain form with ones in these bits and no others. */
static void test_invariant(void **state)
{
    (void)state;
    static const uint8_t ipv4_mask[28] = {[1] = 0xff, [8] = 0xff,  [10] = 0xff,
                                          0xff,       [26] = 0xff, 0xff};
    static const uint8_t ipv6_mask[48] = {0x0f, 0xff, 0xff, 0xff, [7] = 0xff, [46] = 0xff, 0xff};
    struct prng prng;
    prng_init(&prng, 3);

    for (int round = 0; round < 10000; round++) {
        const bool ipv4 = round % 2 == 0;
        const uint8_t *mask = ipv4 ? ipv4_mask : ipv6_mask;
        const uint16_t identification = (uint16_t)prng_next(&prng);
        const uint8_t payload[64] = {0};
        const size_t payload_bytes = prng_below(&prng, 65);
        struct inet_flow flow;
        uint8_t plain[INET_HEADERS_BYTES_MAX], invariant[INET_HEADERS_BYTES_MAX];

        randomize(&flow, &prng, ipv4);
        const size_t count = inet_encode(plain, &flow, identification, payload, payload_bytes);
        assert_int_equal(inet_encode_invariant(invariant, &flow, identification, payload_bytes),
                         count);
        assert_int_equal(count, ipv4 ? 28 : 48);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(invariant[i], plain[i] | mask[i]);
        }
    }
}

/* The fields that vary stand in their places, the checksum is right, and the invariant form is the
 * same. */
static void test_variant(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);

    for (int round = 0; round < 10000; round++) {
        const bool ipv4 = round % 2 == 0;
        const struct inet_variant variant = {.flow_label = (uint32_t)prng_below(&prng, 1 << 20),
                                             .traffic_class = (uint8_t)prng_next(&prng),
                                             .hop_limit = (uint8_t)prng_next(&prng)};
        const uint8_t payload[64] = {0};
        struct inet_flow flow;
        uint8_t plain[INET_HEADERS_BYTES_MAX], varied[INET_HEADERS_BYTES_MAX];

        randomize(&flow, &prng, ipv4);
        const size_t count = inet_encode(plain, &flow, 7, payload, sizeof(payload));
        memcpy(varied, plain, count);
        inet_put_variant(varied, INET_VARIANT_PLAIN);
        assert_memory_equal(varied, plain, count);
        inet_put_variant(varied, variant);
        if (ipv4) {
            assert_int_equal(varied[1], variant.traffic_class);
            assert_int_equal(varied[8], variant.hop_limit);
            assert_int_equal(ones_sum(0, varied, INET_IPV4_BYTES), 0xffff);
            plain[1] = varied[1];
            plain[8] = varied[8];
            memcpy(plain + 10, varied + 10, 2);
        } else {
            assert_int_equal(load_be32(varied),
                             6u << 28 | (uint32_t)variant.traffic_class << 20 | variant.flow_label);
            assert_int_equal(varied[7], variant.hop_limit);
            memcpy(plain, varied, 4);
            plain[7] = varied[7];
        }
        assert_memory_equal(varied, plain, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped_addresses),
        cmocka_unit_test(test_multicast_addresses),
        cmocka_unit_test(test_any_address),
        cmocka_unit_test(test_loopback_aliases),
        cmocka_unit_test(test_link_local_addresses),
        cmocka_unit_test(test_group_stand_ins),
        cmocka_unit_test(test_literal_ipv4),
        cmocka_unit_test(test_literal_ipv6),
        cmocka_unit_test(test_ipv4_checksum),
        cmocka_unit_test(test_ipv6_checksum),
        cmocka_unit_test(test_invariant),
        cmocka_unit_test(test_variant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
