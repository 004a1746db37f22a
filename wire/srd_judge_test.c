/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet of SRD that contradicts itself is refused with the right name, and no other is
 *         (SRD-20).
 * Method  Places of packets in messages are compared with a plain model that cuts the message into
 *         all its packets. Records of an answer are compared with sets of PSNs, one bit each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/prng.h"
#include "wire/srd.h"

static struct srd_packet request(enum srd_opcode opcode)
{
    return (struct srd_packet){.opcode = (uint8_t)opcode,
                               .destination_qpn = SRD_PORT_OF(3),
                               .target_qpn = 0x302,
                               .chunk_bytes = 512};
}

/* A message of `bytes`, cut into all its packets: is `payload` the length of packet `index`,
 * and `last` the number of the last packet? */
static bool model_fits(uint32_t bytes, uint32_t chunk, uint32_t index, uint32_t last,
                       uint32_t payload)
{
    uint32_t left = bytes, count = 0, carried_at_index = UINT32_MAX;
    do {
        const uint32_t carried = left < chunk ? left : chunk;
        if (count == index) {
            carried_at_index = carried;
        }
        left -= carried;
        count++;
    } while (left != 0);
    return count == last + 1 && carried_at_index == payload;
}

static void try_send(uint32_t bytes, uint32_t chunk, uint32_t *fits)
{
    static const uint32_t payloads[] = {0, 1, 2, 511, 512, 513, 575, 576, 4095, 4096};
    static const uint8_t places[] = {0, 1, 2, 62, 63};
    for (size_t code = 0; code < COUNT_OF(payloads) * 25; code++) {
        struct srd_packet packet = request(SRD_SEND);
        packet.chunk_bytes = (uint16_t)chunk;
        packet.message_bytes = bytes;
        packet.payload_bytes = payloads[code / 25];
        packet.index = places[code / 5 % 5];
        packet.last = places[code % 5];
        const bool expected =
            model_fits(bytes, chunk, packet.index, packet.last, packet.payload_bytes);
        assert_int_equal(srd_judge(&packet) == SRD_GOOD, expected);
        *fits += expected;

        /* A WRITE of one instance has all the places that a SEND has, but says more about none
         * beyond it: it may go on in others. */
        packet.opcode = SRD_WRITE;
        if (expected && (bytes != 0 || packet.payload_bytes == 0)) {
            assert_int_equal(srd_judge(&packet), SRD_GOOD);
        }
    }
}

static void test_places_against_model(void **state)
{
    (void)state;
    static const uint32_t chunks[] = {512, 576, 4096};
    uint32_t fits = 0;
    for (size_t c = 0; c < COUNT_OF(chunks); c++) {
        const uint32_t chunk = chunks[c];
        const uint32_t lengths[] = {
            0,         1,         2,          chunk - 1,      chunk,      chunk + 1,
            2 * chunk, 3 * chunk, 63 * chunk, 63 * chunk + 1, 64 * chunk, 64 * chunk + 1,
            UINT32_MAX};
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            try_send(lengths[i], chunk, &fits);
        }
    }
    assert_in_range(fits, 60, 200);
}

/* An instance of a longer WRITE, and one that claims to be of a shorter one. */
static void test_write_parts(void **state)
{
    (void)state;
    struct srd_packet packet = request(SRD_WRITE);
    packet.last = 63;
    packet.payload_bytes = 512;
    packet.message_bytes = UINT32_MAX;
    assert_int_equal(srd_judge(&packet), SRD_GOOD);
    packet.message_bytes = 63 * 512;
    assert_int_equal(srd_judge(&packet), SRD_WRONG_PAYLOAD);
    packet.message_bytes++;
    assert_int_equal(srd_judge(&packet), SRD_GOOD);
    packet.index = 63;
    assert_int_equal(srd_judge(&packet), SRD_WRONG_PAYLOAD);
    packet.payload_bytes = 1;
    assert_int_equal(srd_judge(&packet), SRD_GOOD);
    packet = request(SRD_WRITE);
    assert_int_equal(srd_judge(&packet), SRD_GOOD);
    packet.message_bytes = 1;
    assert_int_equal(srd_judge(&packet), SRD_WRONG_PAYLOAD);
}

/* A READ names packets of its segment, one by one, and at least one. */
static void test_wanted(void **state)
{
    (void)state;
    for (uint32_t packets = 0; packets <= 65; packets++) {
        for (uint32_t bit = 0; bit < 64; bit++) {
            struct srd_packet packet = request(SRD_READ);
            packet.message_bytes = packets == 0 ? 0 : packets * 512 - 511;
            packet.wanted = UINT64_C(1) << bit;
            const enum srd_verdict expected = packets > 64    ? SRD_WRONG_INDEX
                                              : bit < packets ? SRD_GOOD
                                                              : SRD_WRONG_WANTED;
            assert_int_equal(srd_judge(&packet), expected);
            packet.wanted = 0;
            const enum srd_verdict none = packets > 64 ? SRD_WRONG_INDEX : SRD_WRONG_WANTED;
            assert_int_equal(srd_judge(&packet), packets == 0 ? SRD_GOOD : none);
        }
    }
}

static void test_chunks(void **state)
{
    (void)state;
    for (uint32_t chunk = 0; chunk <= UINT16_MAX; chunk++) {
        const bool allowed = chunk >= 512 && chunk <= 4096 && chunk % 64 == 0;
        struct srd_packet packet = request(SRD_SEND), data = request(SRD_DATA);
        packet.chunk_bytes = data.chunk_bytes = (uint16_t)chunk;
        packet.message_bytes = packet.payload_bytes = data.payload_bytes = 7;
        assert_int_equal(srd_judge(&packet), allowed ? SRD_GOOD : SRD_WRONG_CHUNK);
        assert_int_equal(srd_judge(&data), allowed ? SRD_GOOD : SRD_WRONG_CHUNK);
    }
}

/* Do the records, as sets of PSNs, lie in the window and apart? */
static bool model_apart(const struct srd_answer *answer)
{
    static uint8_t seen[4096];
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < answer->record_count; i++) {
        for (uint32_t bit = 0; bit < 64; bit++) {
            if ((answer->records[i].bitmap >> bit & 1) != 0 &&
                ++seen[(answer->records[i].psn + bit) % 4096] > 1) {
                return false;
            }
        }
    }
    return true;
}

static void test_records_against_model(void **state)
{
    (void)state;
    struct prng prng;
    uint32_t good = 0;
    prng_init(&prng, 7);
    for (int round = 0; round < 100000; round++) {
        struct srd_packet packet = {.opcode = SRD_ANSWER, .destination_qpn = SRD_PORT_OF(0)};
        struct srd_answer *answer = &packet.answer;
        answer->taken_before = (uint32_t)prng_next(&prng);
        answer->record_count = (uint8_t)prng_below(&prng, 4);
        bool inside = true;
        for (uint32_t i = 0; i < answer->record_count; i++) {
            const uint32_t ahead = (uint32_t)prng_below(&prng, prng_below(&prng, 8) ? 200 : 1100);
            answer->records[i].psn = answer->taken_before + ahead;
            answer->records[i].bitmap =
                prng_next(&prng) & prng_next(&prng) & prng_next(&prng) & prng_next(&prng);
            answer->records[i].bitmap |= prng_below(&prng, 20) != 0;
            inside &= ahead < 1024 && (answer->records[i].bitmap & 1) != 0;
        }
        const bool expected = inside && model_apart(answer);
        assert_int_equal(srd_judge(&packet), expected ? SRD_GOOD : SRD_WRONG_RECORD);
        good += expected;
    }
    assert_in_range(good, 20000, 90000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_against_model),
        cmocka_unit_test(test_write_parts),
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_records_against_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
