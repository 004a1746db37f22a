/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One wrong bit of a header or of the first footer flit is mended, two are noticed; a wrong
 *         payload is noticed; ageing changes nothing that the CRC covers.
 * Method  Every single and every double error of each coded flit, alone and in packets; check bits
 *         against a slow code that follows the definition place by place; every single-bit error of
 *         the longest payload, and bursts by chance. Behaviours LNI-05 to LNI-08.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wire/lant_test_packet.h"

#define ROUNDS 20000

/* -- SECDED -------------------------------------------------------------------------------------*/

/* Extended Hamming, place by place. */
static uint64_t slow_secded(uint64_t flit)
{
    uint64_t sound = flit & ~UINT64_C(0x7f);
    uint32_t bit = 7, ones = 0;
    for (uint64_t place = 1; place < 64; place++) {
        if (place == 1 || place == 2 || place == 4 || place == 8 || place == 16 || place == 32) {
            continue;
        }
        sound ^= (flit >> bit & 1) ? place : 0; /* Bit k of the place: it counts in c_k. */
        bit++;
    }
    assert_int_equal(bit, 64);
    for (bit = 0; bit < 64; bit++) {
        ones += (uint32_t)(sound >> bit & 1);
    }
    return sound | (uint64_t)(ones & 1) << 6;
}

static void test_check_bits(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t bit = 0; bit < 64; bit++) {
        const uint64_t flit = UINT64_C(1) << bit;
        assert_true(lant_secded(flit) == slow_secded(flit));
    }
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t flit = prng_next(&prng);
        uint64_t sound = lant_secded(flit);
        assert_true(sound == slow_secded(flit));
        assert_int_equal(lant_secded_check(&sound), LANT_CLEAN);
        assert_true(sound == slow_secded(flit));
    }
}

/* LNI-05, for words. */
static void test_all_flips_of_a_word(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    for (int round = 0; round < 100; round++) {
        const uint64_t sound =
            round < 2 ? lant_secded(-(uint64_t)(unsigned)round) : lant_secded(prng_next(&prng));
        for (uint32_t one = 0; one < 64; one++) {
            uint64_t flit = sound ^ UINT64_C(1) << one;
            assert_int_equal(lant_secded_check(&flit), LANT_REPAIRED);
            assert_true(flit == sound);
            for (uint32_t other = 0; other < one; other++) {
                const uint64_t wrong = sound ^ UINT64_C(1) << one ^ UINT64_C(1) << other;
                flit = wrong;
                assert_int_equal(lant_secded_check(&flit), LANT_DAMAGED);
                assert_true(flit == wrong);
            }
        }
    }
}

/* Decodes a packet of whose coded flits one has a wrong bit, or two. */
static void check_flips(const struct lant_packet *sent, uint32_t at, enum lant_verdict twice)
{
    struct lant_packet got;
    struct lant_header head;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    uint32_t repaired = 99;
    const uint32_t count = lant_encode(sent, flits);

    for (uint32_t one = 0; one < 64; one++) {
        flits[at] ^= UINT64_C(1) << one;
        assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_WHOLE);
        assert_int_equal(repaired, 1);
        assert_true(packets_equal(&got, sent));
        assert_int_equal(lant_head_decode(flits[0], &head), at == 0 ? LANT_REPAIRED : LANT_CLEAN);
        assert_true(heads_equal(&head, &sent->header));
        for (uint32_t other = 0; other < one; other++) {
            flits[at] ^= UINT64_C(1) << other;
            assert_int_equal(lant_decode(flits, count, &got, &repaired), twice);
            if (twice == LANT_CRC_WRONG) {
                assert_true(footers_equal(&got.footer, &sent->footer));
                assert_true(heads_equal(&got.header, &sent->header));
            }
            flits[at] ^= UINT64_C(1) << other;
        }
        flits[at] ^= UINT64_C(1) << one;
    }
}

/* LNI-05, for H1, H2, H3 and F1 of a packet of each type; LNI-08, for one flit. */
static void test_all_flips_of_packets(void **state)
{
    (void)state;
    struct prng prng;
    uint32_t extended = 0;
    prng_init(&prng, 3);
    for (uint32_t type = 1; extended < 2 || type < LANT_TYPE_COUNT; type++) {
        const struct lant_packet sent =
            any_packet(&prng, type < LANT_TYPE_COUNT ? type : LANT_RDMA_WRITE);
        check_flips(&sent, 0, LANT_HEAD_DAMAGED);
        check_flips(&sent, 1, LANT_CRC_WRONG);
        if (sent.header.extended) {
            check_flips(&sent, 2, LANT_CRC_WRONG);
            extended++;
        }
        check_flips(&sent, lant_packet_flits(&sent.header) - 2, LANT_FOOT_DAMAGED);
    }
}

/* LNI-08: one wrong bit in each of the coded flits, and the packet is as it was. */
static void test_repair_of_all(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);
    for (int round = 0; round < ROUNDS; round++) {
        const struct lant_packet sent = any_packet(&prng, 1 + (uint32_t)round % 10);
        struct lant_packet got;
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        uint32_t repaired;
        const uint32_t count = lant_encode(&sent, flits), heads = 2 + sent.header.extended;

        for (uint32_t i = 0; i < heads; i++) {
            flits[i] ^= UINT64_C(1) << prng_below(&prng, 64);
        }
        flits[count - 2] ^= UINT64_C(1) << prng_below(&prng, 64);
        assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_WHOLE);
        assert_int_equal(repaired, heads + 1);
        assert_true(packets_equal(&got, &sent));
    }
}

/* A damaged H1 leaves the header as it was. */
static void test_head_damaged(void **state)
{
    (void)state;
    const struct lant_header before = {.destination = 77, .address = 88, .payload = 9};
    struct lant_header header = before;
    assert_int_equal(lant_head_decode(lant_secded(UINT64_MAX) ^ 3, &header), LANT_DAMAGED);
    assert_memory_equal(&header, &before, sizeof(header));
}

/* -- CRC ----------------------------------------------------------------------------------------*/

static struct lant_packet longest_packet(struct prng *prng)
{
    struct lant_packet packet = any_packet(prng, LANT_RDMA_WRITE);
    packet.header.payload = LANT_PAYLOAD_FLITS_MAX;
    packet.header.extended = false;
    for (uint32_t i = 0; i < LANT_PAYLOAD_FLITS_MAX; i++) {
        packet.payload[i] = prng_next(prng);
    }
    return packet;
}

/* The packet's bit that is sent as number `number`: bit 63 of a flit is the first. */
static void flip_sent(uint64_t *flits, uint32_t number)
{
    flits[number / 64] ^= UINT64_C(1) << (63 - number % 64);
}

#define PAYLOAD_AT   (2u * 64)
#define PAYLOAD_BITS (64u * LANT_PAYLOAD_FLITS_MAX)

/* LNI-06: each bit of the payload and of F2. The fields of F1 can be relied on. */
static void test_single_errors(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);
    const struct lant_packet sent = longest_packet(&prng);
    struct lant_packet got;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    uint32_t repaired;
    const uint32_t count = lant_encode(&sent, flits);

    for (uint32_t bit = PAYLOAD_AT; bit < 64 * count; bit++) {
        if (bit / 64 == count - 2) {
            continue; /* F1 is repaired. */
        }
        flip_sent(flits, bit);
        assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_CRC_WRONG);
        assert_int_equal(repaired, 0);
        assert_int_equal(got.footer.source, sent.footer.source);
        assert_int_equal(got.footer.row, sent.footer.row);
        assert_int_equal(got.footer.generation, sent.footer.generation);
        assert_true(bit / 64 == count - 1 || footers_equal(&got.footer, &sent.footer));
        flip_sent(flits, bit);
    }
}

/* LNI-06: bursts, in the order in which bits are sent. A CRC notices each burst that is no longer
 * than itself, but this one takes the bits of a byte from the lowest on, and they are sent from the
 * highest on: what is 32 bits long on the wire can span 40 of the code. So up to 31 bits are always
 * noticed (computed: all multiples of the polynomial that fit), and of 32 all but two patterns. */
static void test_bursts(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 6);
    const struct lant_packet sent = longest_packet(&prng);
    struct lant_packet got;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    uint32_t repaired;
    const uint32_t count = lant_encode(&sent, flits);

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t burst[LANT_PACKET_FLITS_MAX];
        memcpy(burst, flits, sizeof(burst[0]) * count);
        const uint32_t bits = 2 + (uint32_t)prng_below(&prng, 31);
        const uint32_t at = PAYLOAD_AT + (uint32_t)prng_below(&prng, PAYLOAD_BITS - bits + 1);
        flip_sent(burst, at);
        for (uint32_t i = 1; i + 1 < bits; i++) {
            if (prng_below(&prng, 2)) {
                flip_sent(burst, at + i);
            }
        }
        flip_sent(burst, at + bits - 1);
        assert_int_equal(lant_decode(burst, count, &got, &repaired), LANT_CRC_WRONG);
    }

    /* The two: five bytes, the first and last of them in part. */
    flits[10] ^= UINT64_C(0x6295e3fd80) << 8;
    assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_WHOLE);
    flits[10] ^= UINT64_C(0x6295e3fd80) << 8;
    flits[20] ^= UINT64_C(0x0103836bf2) << 16;
    assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_WHOLE);
}

/* LNI-07: hop by hop, until it is too old; the last flit, with the CRC, stays as it is. */
static void test_ageing(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 7);
    for (int round = 0; round < 1000; round++) {
        struct lant_packet sent = any_packet(&prng, 1 + (uint32_t)round % 10), got;
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        uint32_t repaired;
        sent.header.age = 0;
        const uint32_t count = lant_encode(&sent, flits);
        for (uint32_t age = 1; age <= LANT_AGE_MAX; age++) {
            flits[0] = lant_head_aged(flits[0]);
            sent.header.age = (uint8_t)age;
            assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_WHOLE);
            assert_int_equal(repaired, 0);
            assert_true(packets_equal(&got, &sent));
        }
        uint64_t fresh[LANT_PACKET_FLITS_MAX];
        assert_int_equal(lant_encode(&sent, fresh), count);
        assert_memory_equal(fresh, flits, count * sizeof(flits[0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_bits),
        cmocka_unit_test(test_all_flips_of_a_word),
        cmocka_unit_test(test_all_flips_of_packets),
        cmocka_unit_test(test_repair_of_all),
        cmocka_unit_test(test_head_damaged),
        cmocka_unit_test(test_single_errors),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_ageing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
