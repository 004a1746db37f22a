/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The ICRC covers exactly what Annex A17.3.3 says it covers, and the identification that a
 *         socket hides is recovered if, and only if, it explains the difference.
 * Method  A model lays out the whole masked datagram byte by byte and divides it bit by bit. The
 *         solver is compared with brute force: all 2^16 differences of one length, and whether
 *         random differences are among them. (Real packets: tests/golden.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "wire/icrc.h"

enum {
    REST_BYTES_MAX = 300,               /* Bytes that follow the BTH in a random packet. */
    UDP_PAYLOAD_BYTES_MAX = 65535 - 28, /* Over IPv4. */
    MODEL_BYTES_MAX = 8 + 40 + 8 + 12 + REST_BYTES_MAX,
};

struct sample {
    struct inet_flow flow;
    uint16_t identification;
    uint8_t bth[12];
    uint8_t rest[REST_BYTES_MAX];
    size_t rest_bytes;
};

static size_t payload_bytes_of(const struct sample *sample)
{
    return sizeof(sample->bth) + sample->rest_bytes + 4;
}

static uint32_t icrc_of(const struct sample *sample)
{
    const uint32_t crc =
        icrc_packet(icrc_prefix(&sample->flow, sample->identification, payload_bytes_of(sample)),
                    sample->bth, 12);
    return icrc_finish(icrc_extend(crc, sample->rest, sample->rest_bytes));
}

/* -- The model --------------------------------------------------------------------------------- */

struct model {
    uint8_t bytes[MODEL_BYTES_MAX];
    size_t count;
};

static void put8(struct model *model, unsigned value)
{
    model->bytes[model->count++] = (uint8_t)value;
}

static void put16(struct model *model, size_t value)
{
    put8(model, (unsigned)(value >> 8 & 0xff));
    put8(model, (unsigned)(value & 0xff));
}

static void put_many(struct model *model, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put8(model, bytes[i]);
    }
}

static void put_ones(struct model *model, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put8(model, 0xff);
    }
}

static void put_ipv4(struct model *model, const struct sample *sample, size_t udp_bytes)
{
    put8(model, 0x45);
    put_ones(model, 1); /* TOS */
    put16(model, 20 + udp_bytes);
    put16(model, sample->identification);
    put16(model, 0x4000);
    put_ones(model, 1); /* TTL */
    put8(model, 17);
    put_ones(model, 2); /* Header checksum. */
    put_many(model, sample->flow.source + 12, 4);
    put_many(model, sample->flow.destination + 12, 4);
}

static void put_ipv6(struct model *model, const struct sample *sample, size_t udp_bytes)
{
    put8(model, 0x6f);
    put_ones(model, 3); /* Traffic class, flow label. */
    put16(model, udp_bytes);
    put8(model, 17);
    put_ones(model, 1); /* Hop limit. */
    put_many(model, sample->flow.source, 16);
    put_many(model, sample->flow.destination, 16);
}

static uint32_t model_icrc(const struct sample *sample)
{
    struct model model = {.count = 0};
    const size_t udp_bytes = 8 + payload_bytes_of(sample);

    put_ones(&model, 8);
    if (sample->flow.source[0] == 0) {
        put_ipv4(&model, sample, udp_bytes);
    } else {
        put_ipv6(&model, sample, udp_bytes);
    }
    put16(&model, sample->flow.source_port);
    put16(&model, sample->flow.destination_port);
    put16(&model, udp_bytes);
    put_ones(&model, 2); /* UDP checksum. */
    put_many(&model, sample->bth, 4);
    put_ones(&model, 1); /* FECN, BECN, reserved. */
    put_many(&model, sample->bth + 5, 7);
    put_many(&model, sample->rest, sample->rest_bytes);

    uint32_t crc = 0xffffffff;
    for (size_t bit = 0; bit < 8 * model.count; bit++) {
        const uint32_t in = model.bytes[bit / 8] >> bit % 8 & 1;
        crc = ((crc ^ in) & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

/* -- Tests ------------------------------------------------------------------------------------- */

static void randomize(struct sample *sample, struct prng *prng, bool ipv4)
{
    uint8_t *bytes = (uint8_t *)sample;
    for (size_t i = 0; i < sizeof(*sample); i++) {
        bytes[i] = (uint8_t)prng_next(prng);
    }
    sample->rest_bytes = prng_below(prng, REST_BYTES_MAX + 1);
    sample->flow.source[0] = sample->flow.destination[0] = 0xfd;
    if (ipv4) {
        static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
        memcpy(sample->flow.source, mapped, sizeof(mapped));
        memcpy(sample->flow.destination, mapped, sizeof(mapped));
    }
}

static void test_against_model(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);

    for (int round = 0; round < 20000; round++) {
        struct sample sample;
        randomize(&sample, &prng, round % 2 == 0);
        assert_int_equal(icrc_of(&sample), model_icrc(&sample));
    }
}

/* However the bytes after the BTH are cut, also into empty pieces, the result is the same. */
static void test_pieces(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);

    for (int round = 0; round < 20000; round++) {
        struct sample sample;
        randomize(&sample, &prng, round % 2 == 0);
        uint32_t crc =
            icrc_packet(icrc_prefix(&sample.flow, sample.identification, payload_bytes_of(&sample)),
                        sample.bth, 12);
        for (size_t at = 0; at < sample.rest_bytes;) {
            const size_t piece = prng_below(&prng, sample.rest_bytes - at + 1);
            crc = icrc_extend(crc, sample.rest + at, piece);
            at += piece;
        }
        assert_int_equal(icrc_finish(crc), icrc_of(&sample));
    }
}

/* A memo changes nothing, however often its entries are taken over, and one call over the packet is
 * the same as piece by piece. */
static void test_memo(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 6);

    for (int flow = 0; flow < 20; flow++) {
        struct icrc_memo memo = {0};
        struct sample sample;
        randomize(&sample, &prng, flow % 2 == 0);
        for (int round = 0; round < 1000; round++) {
            uint8_t packet[sizeof(sample.bth) + REST_BYTES_MAX];
            sample.identification = (uint16_t)prng_below(&prng, 20);
            sample.rest_bytes = prng_below(&prng, 2) * 200 + prng_below(&prng, 40);
            memcpy(packet, sample.bth, sizeof(sample.bth));
            memcpy(packet + sizeof(sample.bth), sample.rest, sample.rest_bytes);
            const uint32_t prefix = icrc_remembered_prefix(
                &memo, &sample.flow, sample.identification, payload_bytes_of(&sample));
            const uint32_t crc =
                icrc_packet(prefix, packet, sizeof(sample.bth) + sample.rest_bytes);
            assert_int_equal(icrc_finish(crc), model_icrc(&sample));
        }
    }
}

/* Sizes and identifications of one entry that differ in any bit have their own prefixes, and what
 * stands behind the memo stays as it is. */
static void test_memo_tells_apart(void **state)
{
    (void)state;
    static struct {
        struct icrc_memo memo;
        uint8_t behind[UDP_PAYLOAD_BYTES_MAX];
    } all;
    static const uint8_t zeros[sizeof(all.behind)];
    struct sample sample;
    struct prng prng;
    prng_init(&prng, 7);
    randomize(&sample, &prng, true);

    for (unsigned round = 0; round < 16 * 16 * 16; round++) {
        const uint16_t turn = (uint16_t)(1u << round % 16);
        const uint16_t identification = (uint16_t)prng_next(&prng), other = identification ^ turn;
        /* The entry is one of 64, by the sum. */
        const size_t bytes = 1000 + prng_below(&prng, 1000);
        const size_t bytes_of_other = bytes + (uint16_t)(identification - other) % 64;
        assert_int_equal(icrc_remembered_prefix(&all.memo, &sample.flow, identification, bytes),
                         icrc_prefix(&sample.flow, identification, bytes));
        assert_int_equal(icrc_remembered_prefix(&all.memo, &sample.flow, other, bytes_of_other),
                         icrc_prefix(&sample.flow, other, bytes_of_other));
    }
    assert_memory_equal(all.behind, zeros, sizeof(zeros));
}

static void test_masked_and_covered_bits_of_the_bth(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    struct sample sample;
    randomize(&sample, &prng, true);
    const uint32_t icrc = icrc_of(&sample);

    for (unsigned bit = 0; bit < 8 * sizeof(sample.bth); bit++) {
        sample.bth[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(icrc_of(&sample) == icrc, bit / 8 == 4);
        sample.bth[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* The difference of the ICRCs of two packets that differ in the identification only; `bytes` is the
 * UDP payload with the ICRC. */
static uint32_t difference_of(uint16_t one, uint16_t other, const uint8_t *payload, size_t bytes)
{
    const struct inet_flow flow = {.destination = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
    const size_t rest_bytes = bytes - 16;
    const uint32_t a =
        icrc_extend(icrc_packet(icrc_prefix(&flow, one, bytes), payload, 12), payload, rest_bytes);
    const uint32_t b = icrc_extend(icrc_packet(icrc_prefix(&flow, other, bytes), payload, 12),
                                   payload, rest_bytes);
    return icrc_finish(a) ^ icrc_finish(b);
}

static void test_solves_every_length(void **state)
{
    (void)state;
    static uint8_t payload[UDP_PAYLOAD_BYTES_MAX];
    struct prng prng;
    prng_init(&prng, 4);

    for (size_t bytes = 16; bytes <= UDP_PAYLOAD_BYTES_MAX; bytes += bytes < 4200 ? 1 : 97) {
        const uint16_t sent = (uint16_t)prng_next(&prng), assumed = (uint16_t)prng_next(&prng);
        uint16_t solved;
        const uint32_t difference = difference_of(sent, assumed, payload, bytes);
        assert_true(icrc_solve_identification(difference, bytes, assumed, &solved));
        assert_int_equal(solved, sent);
    }
}

static int compare_words(const void *one, const void *other)
{
    const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

/* The solver accepts exactly the 2^16 differences that some identification explains. */
static void test_accepts_nothing_else(void **state)
{
    (void)state;
    const uint16_t assumed = 0x1234;
    static uint32_t differences[1 << 16];
    const uint8_t payload[1040] = {0};
    struct prng prng;
    uint32_t accepted = 0;
    prng_init(&prng, 5);

    for (uint32_t id = 0; id < 1 << 16; id++) {
        uint16_t solved;
        differences[id] = difference_of((uint16_t)id, assumed, payload, sizeof(payload));
        assert_true(icrc_solve_identification(differences[id], sizeof(payload), assumed, &solved));
        assert_int_equal(solved, id);
    }
    qsort(differences, 1 << 16, sizeof(differences[0]), compare_words);
    for (int round = 0; round < 1000000; round++) {
        const uint32_t difference = (uint32_t)prng_next(&prng);
        uint16_t solved = 0xabcd;
        const bool known = bsearch(&difference, differences, 1 << 16, sizeof(differences[0]),
                                   compare_words) != NULL;
        assert_int_equal(icrc_solve_identification(difference, sizeof(payload), assumed, &solved),
                         known);
        if (!known) {
            assert_int_equal(solved, 0xabcd);
        }
        accepted += known;
    }
    /* About 1,000,000 / 2^16 = 15: the test did see both answers. */
    assert_in_range(accepted, 5, 35);
}

/* A whole packet: its identification is found; none if a bit is flipped, or if it is too short. */
static void test_explain(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 6);

    for (uint32_t round = 0; round < 20000; round++) {
        struct sample sample;
        randomize(&sample, &prng, true);
        uint8_t packet[sizeof(sample.bth) + REST_BYTES_MAX + 4];
        const size_t covered = sizeof(sample.bth) + sample.rest_bytes;
        memcpy(packet, sample.bth, sizeof(sample.bth));
        memcpy(packet + sizeof(sample.bth), sample.rest, sample.rest_bytes);
        store_le32(packet + covered, icrc_of(&sample));
        assert_int_equal(icrc_compute(&sample.flow, sample.identification, packet, 12, packet + 12,
                                      covered - 12),
                         icrc_of(&sample));
        uint16_t found = 0;
        assert_true(icrc_explain(&sample.flow, packet, covered + 4, &found));
        assert_int_equal(found, sample.identification);
        const uint32_t bit = (uint32_t)prng_below(&prng, 8 * (covered + 4));
        if (bit / 8 != 4) { /* Masked. */
            packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(icrc_explain(&sample.flow, packet, covered + 4, &found));
        }
        assert_false(icrc_explain(&sample.flow, packet, prng_below(&prng, 16), &found));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_memo),
        cmocka_unit_test(test_memo_tells_apart),
        cmocka_unit_test(test_masked_and_covered_bits_of_the_bth),
        cmocka_unit_test(test_solves_every_length),
        cmocka_unit_test(test_accepts_nothing_else),
        cmocka_unit_test(test_explain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
