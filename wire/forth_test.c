/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The words of FORTH's NIC are as wire/forth.h says, bit by bit.
 * Method  Examples worked out by hand, and check values of the codes; random fields there and back;
 *         every reserved bit and every single-bit error. Behaviours FNX-01, 17, 22, 28.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "wire/forth.h"

static struct forth_flags random_flags(struct prng *prng)
{
    const uint64_t bits = prng_next(prng);
    return (struct forth_flags){bits & 1, bits >> 1 & 1, bits >> 2 & 1};
}

/* FNX-01: fields there and back; 1 and 512 words are the ends. */
static void test_request(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 100000; round++) {
        const uint16_t ends[] = {1, 512, (uint16_t)(1 + prng_below(&prng, 512))};
        const struct forth_request sent = {.source = prng_next(&prng),
                                           .destination = (uint32_t)prng_next(&prng),
                                           .words = ends[round % 3],
                                           .node = (uint8_t)prng_below(&prng, 128),
                                           .start = prng_below(&prng, 2),
                                           .flags = random_flags(&prng)};
        struct forth_request got = {0};
        uint64_t words[2];
        forth_request_encode(&sent, words);
        assert_int_equal(forth_request_decode(words, &got), FORTH_GOOD);
        assert_true(got.source == sent.source);
        assert_int_equal(got.destination, sent.destination);
        assert_int_equal(got.words, sent.words);
        assert_int_equal(got.node, sent.node);
        assert_int_equal(got.start, sent.start);
        assert_memory_equal(&got.flags, &sent.flags, sizeof(got.flags));
    }
    /* Bit by bit, where each field stands. */
    const struct forth_request all = {.source = 0x1122334455667788,
                                      .destination = 0x12345678,
                                      .words = 0x1a5,
                                      .node = 5,
                                      .start = true,
                                      .flags = {.remote_notification = true}};
    uint64_t words[2];
    forth_request_encode(&all, words);
    assert_true(words[0] == 0x1122334455667788);
    assert_true(words[1] == (UINT64_C(1) << 62 | UINT64_C(1) << 59 | UINT64_C(5) << 50 |
                             UINT64_C(0x1a5) << 32 | 0x12345678));
}

static void test_request_refused(void **state)
{
    (void)state;
    const struct forth_request good = {.words = 8};
    struct forth_request untouched = {.words = 99};
    uint64_t words[2];
    static const uint8_t zeros[] = {42, 43, 44, 45, 46, 47, 48, 49, 57, 58, 63};
    for (size_t i = 0; i < sizeof(zeros); i++) {
        forth_request_encode(&good, words);
        words[1] |= UINT64_C(1) << zeros[i];
        assert_int_equal(forth_request_decode(words, &untouched), FORTH_RESERVED_BITS);
    }
    forth_request_encode(&good, words);
    words[1] &= ~(UINT64_C(0x3ff) << 32);
    assert_int_equal(forth_request_decode(words, &untouched), FORTH_WRONG_LENGTH);
    words[1] |= UINT64_C(513) << 32;
    assert_int_equal(forth_request_decode(words, &untouched), FORTH_WRONG_LENGTH);
    assert_int_equal(untouched.words, 99);
}

/* FNX-17: a header worked out by hand, and its CRC. */
static void test_header(void **state)
{
    (void)state;
    const struct forth_header example = {
        .node = 5, .words = 62, .destination = 0x12345678, .flags = {.remote_notification = true}};
    assert_true(forth_header_encode(&example) == 0x0548003e12345678);
    assert_int_equal(forth_header_crc(0x0548003e12345678), 0x40ab);
    assert_int_equal(forth_header_crc(0), 0x313e);

    struct prng prng;
    prng_init(&prng, 2);
    for (int round = 0; round < 100000; round++) {
        const struct forth_header sent = {.node = (uint8_t)prng_below(&prng, 128),
                                          .words = (uint16_t)(1 + prng_below(&prng, 512)),
                                          .destination = (uint32_t)prng_next(&prng),
                                          .flags = random_flags(&prng)};
        struct forth_header got = {0};
        assert_int_equal(forth_header_decode(forth_header_encode(&sent), &got), FORTH_GOOD);
        assert_int_equal(got.node, sent.node);
        assert_int_equal(got.words, sent.words);
        assert_int_equal(got.destination, sent.destination);
        assert_memory_equal(&got.flags, &sent.flags, sizeof(got.flags));
    }
    struct forth_header got;
    const uint64_t word = forth_header_encode(&example);
    assert_int_equal(forth_header_decode(word | UINT64_C(1) << 63, &got), FORTH_NOT_A_HEADER);
    assert_int_equal(forth_header_decode(word ^ UINT64_C(1) << 51, &got), FORTH_RESERVED_BITS);
    assert_int_equal(forth_header_decode(word | UINT64_C(1) << 55, &got), FORTH_RESERVED_BITS);
    assert_int_equal(forth_header_decode(word | UINT64_C(1) << 50, &got), FORTH_RESERVED_BITS);
    assert_int_equal(forth_header_decode(word & ~(UINT64_C(0x3ff) << 32), &got),
                     FORTH_WRONG_LENGTH);
}

/* FNX-17: the check values of the codes. */
static void test_body_crc(void **state)
{
    (void)state;
    const uint8_t digits[] = "123456789", zeros[8] = {0};
    uint8_t words[16];
    store_be64(words, 0x0123456789abcdef);
    store_be64(words + 8, 0xfedcba9876543210);
    assert_int_equal(forth_body_crc(FORTH_BODY_CRC_BEGIN, digits, 9), 0x0376e6e7);
    assert_int_equal(forth_body_crc(FORTH_BODY_CRC_BEGIN, zeros, 8), 0x6904bb59);
    const uint32_t first = forth_body_crc(FORTH_BODY_CRC_BEGIN, words, 8);
    assert_int_equal(first, 0x09eede06);
    assert_int_equal(forth_body_crc(first, words + 8, 8), 0x16e11a02);
    assert_int_equal(forth_body_crc(FORTH_BODY_CRC_BEGIN, words, 16), 0x16e11a02);
}

/* FNX-22: no single-bit error gets past either CRC. */
static void test_single_bit_errors(void **state)
{
    (void)state;
    struct prng prng;
    uint8_t payload[496];
    prng_init(&prng, 3);
    for (size_t i = 0; i < sizeof(payload); i++) {
        payload[i] = (uint8_t)prng_next(&prng);
    }
    const uint32_t body = forth_body_crc(FORTH_BODY_CRC_BEGIN, payload, sizeof(payload));
    for (size_t bit = 0; bit < 8 * sizeof(payload); bit++) {
        payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(forth_body_crc(FORTH_BODY_CRC_BEGIN, payload, sizeof(payload)), body);
        payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    const uint64_t header = 0x0548003e12345678;
    for (int bit = 0; bit < 64; bit++) {
        assert_int_not_equal(forth_header_crc(header ^ UINT64_C(1) << bit), 0x40ab);
    }
}

/* FNX-28: credits worked out by hand, all credits there and back, parity and kind. */
static void test_credit(void **state)
{
    (void)state;
    assert_int_equal(forth_credit_encode((struct forth_credit){5, 0x41}), 0x82c1);
    assert_int_equal(forth_credit_encode((struct forth_credit){0, 1}), 0xc001);
    assert_int_equal(forth_credit_encode((struct forth_credit){127, 127}), 0xbfff);
    assert_int_equal(forth_credit_encode((struct forth_credit){0, 0}), 0x8000);
    for (uint32_t word = 0; word < 0x10000; word++) {
        struct forth_credit credit;
        const enum forth_verdict verdict = forth_credit_decode((uint16_t)word, &credit);
        if (!(word & 0x8000)) {
            assert_int_equal(verdict, FORTH_NOT_A_CREDIT);
        } else if (verdict == FORTH_GOOD) {
            assert_int_equal(forth_credit_encode(credit), word);
        } else {
            assert_int_equal(verdict, FORTH_WRONG_PARITY);
            assert_int_equal(forth_credit_decode((uint16_t)(word ^ 0x4000), &credit), FORTH_GOOD);
        }
    }
}

/* One flipped bit of header or CRC is told from the rest; two are told from one. */
static void test_header_repair(void **state)
{
    (void)state;
    const uint64_t sent = 0x0548003E12345678;
    const uint16_t crc = forth_header_crc(sent);
    for (uint32_t first = 0; first < 80; first++) {
        for (uint32_t second = first; second < 80; second++) {
            uint64_t header = sent;
            uint16_t code = crc;
            const uint32_t bits[2] = {first, second};
            for (uint32_t i = 0; i < (first == second ? 1 : 2); i++) {
                header ^= bits[i] < 64 ? UINT64_C(1) << bits[i] : 0;
                code = (uint16_t)(code ^ (bits[i] < 64 ? 0 : 1u << (bits[i] - 64)));
            }
            const bool repaired = forth_header_repair(&header, code);
            assert_int_equal(repaired, first == second);
            assert_true(!repaired || header == sent);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_request_refused),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_body_crc),
        cmocka_unit_test(test_single_bit_errors),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_header_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
