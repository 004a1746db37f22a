/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet is taken apart rightly, and each way to be wrong has its own outcome, costs one
 *         packet alone, and is over at the next header.
 * Method  Packets of every length and lane; then one thing spoilt at a time between two good ones;
 *         then beats by chance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/intake.h"
#include "hardware/exanest/test_beats.h"

static uint8_t bytes_of_payload[EXANEST_PAYLOAD_BYTES_MAX];

static struct test_packet data_packet(uint64_t va, uint32_t bytes)
{
    const struct exanest_header header = {.target = {.coordinate = 5, .va = va},
                                          .pdid = 3,
                                          .type = EXANEST_WRITE,
                                          .bytes = (uint16_t)bytes,
                                          .has_footer = true};
    const struct exanest_footer footer = {.tid = 7, .source = 9, .sequence = 11, .first = true};
    for (uint32_t i = 0; i < bytes; i++) {
        bytes_of_payload[i] = (uint8_t)(i * 7 + bytes);
    }
    return test_packet(&header, &footer, bytes_of_payload);
}

static struct exanest_intake_step feed(struct exanest_intake *intake,
                                       const struct test_packet *packet)
{
    struct exanest_intake_step step = {0};
    for (uint32_t i = 0; i < packet->count; i++) {
        step = exanest_intake_take(intake, &packet->beats[i]);
    }
    return step;
}

/* EXA-71: shapes of packets, counted by type. */
static void test_whole(void **state)
{
    (void)state;
    struct exanest_intake intake = {0};
    uint64_t packets = 0, bytes = 0;
    for (uint32_t lane = 0; lane < 16; lane++) {
        for (uint32_t count = 0; count <= EXANEST_PAYLOAD_BYTES_MAX - lane; count++) {
            const struct test_packet packet = data_packet(0x1000 + lane, count);
            struct exanest_intake_step step = exanest_intake_take(&intake, &packet.beats[0]);
            assert_true(step.begins && !step.ends && !step.interrupted && !step.payload);
            for (uint32_t i = 1; i < packet.count - 1; i++) {
                step = exanest_intake_take(&intake, &packet.beats[i]);
                assert_true(step.payload && !step.begins && !step.ends);
                assert_int_equal(intake.words, i);
            }
            step = exanest_intake_take(&intake, &packet.beats[packet.count - 1]);
            assert_true(step.ends && !step.payload);
            assert_int_equal(step.outcome, EXANEST_WHOLE);
            assert_int_equal(intake.footer.sequence, 11);
            packets++;
            bytes += count;
        }
    }
    assert_int_equal(intake.counters.packets[EXANEST_WRITE], packets);
    assert_int_equal(intake.counters.bytes[EXANEST_WRITE], bytes);
    assert_int_equal(intake.counters.outcomes[EXANEST_WHOLE], packets);
}

static void test_header_alone(void **state)
{
    (void)state;
    struct exanest_intake intake = {0};
    const struct exanest_header header = {.type = EXANEST_ACKNOWLEDGEMENT,
                                          .aux = exanest_aux(EXANEST_NACK_FULL, 9)};
    const struct test_packet packet = test_packet(&header, NULL, NULL);
    assert_int_equal(packet.count, 1);
    const struct exanest_intake_step step = feed(&intake, &packet);
    assert_true(step.begins && step.ends);
    assert_int_equal(step.outcome, EXANEST_WHOLE);
    assert_int_equal(intake.header.aux, EXANEST_NACK_FULL << 10 | 9);
}

/* A damaged packet between two good ones. If it says that it's over, it is. */
static void between_good_ones(const struct test_packet *damaged, enum exanest_outcome outcome)
{
    struct exanest_intake intake = {0};
    const struct test_packet good = data_packet(0x40, 100);
    assert_int_equal(feed(&intake, &good).outcome, EXANEST_WHOLE);
    (void)feed(&intake, damaged);
    assert_true(!intake.open || !damaged->beats[damaged->count - 1].last);
    assert_int_equal(feed(&intake, &good).outcome, EXANEST_WHOLE);
    assert_int_equal(intake.counters.outcomes[EXANEST_WHOLE], 2);
    assert_int_equal(intake.counters.outcomes[outcome], 1);
}

/* EXA-03: each single bit, in each word. */
static void test_flips(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 128; bit++) {
        struct test_packet packet = data_packet(0x203, 60);
        test_flip(&packet, 0, bit);
        between_good_ones(&packet, EXANEST_BAD_HEADER);
        packet = data_packet(0x203, 60);
        test_flip(&packet, 1 + bit % 4, bit);
        between_good_ones(&packet, EXANEST_BAD_PAYLOAD);
        packet = data_packet(0x203, 60);
        test_flip(&packet, packet.count - 1, bit);
        between_good_ones(&packet, bit < 32 ? EXANEST_BAD_PAYLOAD : EXANEST_BAD_FOOTER);
        packet = data_packet(0x203, 0);
        test_flip(&packet, packet.count - 1, bit % 32);
        between_good_ones(&packet, EXANEST_BAD_PAYLOAD);
    }
}

/* Words too many and too few, and ends without a footer. */
static void test_wrong_words(void **state)
{
    (void)state;
    struct test_packet packet = data_packet(0x200, 64);
    test_remove(&packet, 2);
    between_good_ones(&packet, EXANEST_TOO_SHORT);
    packet = data_packet(0x200, 64);
    test_insert(&packet, 2, packet.beats[2]);
    between_good_ones(&packet, EXANEST_TOO_LONG);
    packet = data_packet(0x200, 64);
    packet.count -= 1; /* The next header ends it. */
    between_good_ones(&packet, EXANEST_CUT_OFF);
    packet = data_packet(0x200, 64);
    packet.count -= 2;
    packet.beats[packet.count - 1].last = true;
    between_good_ones(&packet, EXANEST_CUT_OFF);
    packet = data_packet(0x200, 64);
    packet.count = 1;
    packet.beats[0].last = true;
    between_good_ones(&packet, EXANEST_CUT_OFF);
    packet = data_packet(0x200, 64);
    test_remove(&packet, 0); /* Without its header it's words that belong to nothing. */
    struct exanest_intake intake = {0};
    (void)feed(&intake, &packet);
    assert_int_equal(intake.counters.strays, 5);
    assert_false(intake.open);
}

/* The bytes that a word may write are those of the payload. */
static void test_lanes(void **state)
{
    (void)state;
    for (uint32_t lane = 0; lane < 16; lane++) {
        for (uint32_t bytes = 1; bytes <= EXANEST_PAYLOAD_BYTES_MAX - lane; bytes++) {
            for (uint32_t i = 0; i < exanest_payload_words(lane, bytes); i++) {
                uint32_t mask = 0;
                for (uint32_t byte = 0; byte < 16; byte++) {
                    const uint32_t at = 16 * i + byte;
                    mask |= at >= lane && at < lane + bytes ? 1u << byte : 0;
                }
                assert_int_equal(exanest_lanes(0x7770 + lane, bytes, i), mask);
            }
        }
    }
}

/* For any input, there is no more payload than the header announced, and one end. */
static void test_garbage(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_intake intake = {0};
    uint64_t begun = 0, ended = 0;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < 200000; i++) {
        const struct test_packet packet =
            data_packet(prng_below(&prng, 256) / 4, (uint32_t)prng_below(&prng, 128));
        struct exanest_beat beat = packet.beats[prng_below(&prng, packet.count)];
        beat.last = prng_below(&prng, 8) == 0;
        if (prng_below(&prng, 3) == 0) {
            beat.part = (enum exanest_part)prng_below(&prng, 3);
            beat.word.high ^= prng_below(&prng, 2) << prng_below(&prng, 64);
        }
        const struct exanest_intake_step step = exanest_intake_take(&intake, &beat);
        begun += step.begins;
        ended += (uint64_t)step.ends + step.interrupted;
        assert_int_equal(begun - ended, intake.open);
        assert_true(!step.payload || intake.header_verdict == EXANEST_GOOD);
        assert_in_range(intake.words, 0, intake.expected);
    }
    uint64_t outcomes = 0;
    for (uint32_t i = 0; i < EXANEST_OUTCOME_COUNT; i++) {
        assert_true(intake.counters.outcomes[i] > 0);
        outcomes += intake.counters.outcomes[i];
    }
    assert_int_equal(outcomes, ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole), cmocka_unit_test(test_header_alone),
        cmocka_unit_test(test_flips), cmocka_unit_test(test_wrong_words),
        cmocka_unit_test(test_lanes), cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
