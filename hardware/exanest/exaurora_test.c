/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One crossbar output fills a link as the two idle cycles let it; flow control goes before
 *         data; whatever the line brings, packets come out. Behaviours EXA-62, EXA-68 (EXA-A20).
 * Method  A crossbar and a serializer in thirds of a picosecond (a 150 MHz cycle is 20,000 of
 *         them); garbage from the line; a packet whose end finds no room. exaurora_link_test.c
 *         joins the two ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/crossbar.h"
#include "hardware/exanest/exaurora.h"
#include "hardware/exanest/test_packet.h"

#define CYCLE UINT64_C(20000)
#define PS    UINT64_C(3)

/* Hundredths of the line's time that packets of one shape fill, from one crossbar output. */
static uint32_t utilisation(uint8_t idle, uint32_t words)
{
    struct exanest_crossbar crossbar;
    struct exanest_crossbar_config crossbar_config = exanest_crossbar_default();
    struct exanest_serializer_config config = exanest_serializer_default();
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    struct exanest_serializer serializer;
    const struct test_packet packet = test_packet((struct exanest_target){0}, words, 1);
    uint64_t line_free = 0, busy = 0;
    uint32_t at = 0;
    crossbar_config.idle = idle;
    exanest_crossbar_init(&crossbar, &crossbar_config);
    config.line = exanest_line_gap(0, 150, 10000);
    exanest_serializer_init(&serializer, &config);
    const uint64_t cycles = 100000;
    for (uint64_t now = 0; now < cycles * CYCLE; now += CYCLE) {
        uint16_t ready = 0;
        exanest_serializer_step(&serializer);
        if (exanest_crossbar_shown(&crossbar) != 0) {
            const struct exanest_beat *beat = exanest_crossbar_beat(&crossbar, 1);
            if (exanest_serializer_ready(&serializer, beat)) {
                exanest_serializer_take(&serializer, beat);
                ready = 1 << 1;
            }
        }
        offers[8] = (struct exanest_offer){packet.beats[at], 1};
        if (exanest_crossbar_step(&crossbar, 1 << 8, offers, ready) != 0) {
            at = (at + 1) % words;
        }
        struct exanest_piece piece;
        line_free = line_free > now ? line_free : now;
        while (line_free < now + CYCLE && exanest_serializer_next(&serializer, 2, &piece)) {
            line_free += piece.free_ps * PS;
            busy += piece.free_ps * PS;
        }
    }
    return (uint32_t)((busy * 100 + cycles * CYCLE / 2) / (cycles * CYCLE));
}

/* EXA-68 (EXA-A20) */
static void test_utilisation(void **state)
{
    (void)state;
    static const uint32_t expected[3][3] = {{64, 96, 100}, {100, 100, 100}, {38, 64, 82}};
    static const uint8_t idles[3] = {2, 0, 4};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t words = 1; words <= 3; words++) {
            const uint32_t found = utilisation(idles[i], words);
            assert_in_range(found, expected[i][words - 1] - 1, expected[i][words - 1] + 1);
        }
    }
    assert_int_equal(utilisation(2, 10), 100);
    assert_int_equal(utilisation(2, 18), 100);
}

/* Words of any kind from the line, more than the FIFO holds: packets come out, 18 words at most. */
static void test_garbage(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_deserializer deserializer;
    const struct exanest_deserializer_config config = exanest_deserializer_default();
    exanest_deserializer_init(&deserializer, &config);
    prng_init(&prng, 3);
    uint32_t in_packet = 0;
    uint64_t words = 0;
    for (uint32_t n = 0; n < 200000; n++) {
        struct exanest_piece piece = {
            .halves = 2,
            .last = prng_below(&prng, 10) == 0,
            .words = {prng_next(&prng), prng_next(&prng)},
        };
        if (prng_below(&prng, 10) == 0) {
            const struct test_packet packet =
                test_packet((struct exanest_target){0}, 1 + (uint32_t)prng_below(&prng, 18), n);
            piece.words[0] = packet.beats[0].word.low;
            piece.words[1] = packet.beats[0].word.high;
        }
        exanest_deserializer_on_piece(&deserializer, &piece);
        exanest_deserializer_step(&deserializer);
        struct exanest_beat beat;
        const bool slow = n / 1000 % 2 == 0;
        if (!slow || prng_below(&prng, 4) == 0) {
            for (uint32_t i = 0; i < 2 && exanest_deserializer_offer(&deserializer, &beat); i++) {
                exanest_deserializer_taken(&deserializer);
                assert_int_equal(beat.part == EXANEST_HEADER, in_packet == 0);
                in_packet = beat.last ? 0 : in_packet + 1;
                assert_true(in_packet < EXANEST_PACKET_WORDS_MAX);
                words++;
            }
        }
    }
    const struct exanest_deserializer_counters *counters = &deserializer.counters;
    assert_true(counters->lost > 0 && counters->cut > 0 && counters->misframed > 0);
    assert_true(counters->bad_headers > 0);
    assert_int_equal(words + deserializer.fifo.used, counters->words + counters->cut);
}

/* The end of a packet finds no room: what closes it is no footer; the next one is whole again. */
static void test_cut(void **state)
{
    (void)state;
    struct exanest_deserializer deserializer;
    const struct exanest_deserializer_config config = exanest_deserializer_default();
    exanest_deserializer_init(&deserializer, &config);
    for (uint32_t n = 0; n < 16; n++) { /* 16 of 18 words, where there is room for 14.2. */
        const struct test_packet packet = test_packet((struct exanest_target){0}, 18, n);
        for (uint32_t i = 0; i < 18; i++) {
            const struct exanest_word word = packet.beats[i].word;
            const struct exanest_piece piece = {
                .halves = 2, .last = i == 17, .words = {word.low, word.high}};
            exanest_deserializer_on_piece(&deserializer, &piece);
            exanest_deserializer_step(&deserializer);
        }
    }
    assert_int_equal(deserializer.counters.cut, 1);
    assert_int_equal(deserializer.counters.packets, 14);
    assert_int_equal(deserializer.counters.lost, 32);
    struct exanest_beat beat = {.last = false};
    for (uint32_t i = 0; i < 10; i++) {
        exanest_deserializer_step(&deserializer);
    }
    while (exanest_deserializer_offer(&deserializer, &beat)) {
        exanest_deserializer_taken(&deserializer);
    }
    struct exanest_footer footer;
    assert_true(beat.last && beat.part == EXANEST_FOOTER);
    assert_int_not_equal(exanest_footer_decode(beat.word, &footer), EXANEST_GOOD);
}

/* Flow-control words go before data; those that nobody knows change nothing. */
static void test_flow_words(void **state)
{
    (void)state;
    struct exanest_serializer serializer;
    const struct exanest_serializer_config config = exanest_serializer_default();
    const struct test_packet packet = test_packet((struct exanest_target){0}, 1, 0);
    struct exanest_piece piece;
    exanest_serializer_init(&serializer, &config);
    exanest_serializer_take(&serializer, &packet.beats[0]);
    for (uint32_t i = 0; i < EXANEST_FIFO_FALL_THROUGH; i++) {
        assert_false(exanest_serializer_next(&serializer, 2, &piece));
        exanest_serializer_step(&serializer);
    }
    exanest_serializer_on_flow(&serializer, 0x85);
    assert_int_equal(serializer.wrong_flows, 1);
    assert_true(exanest_serializer_next(&serializer, 1, &piece));
    assert_int_equal(piece.sent_ps, 6600); /* A block of 66 bits at 10 Gb/s, */
    exanest_serializer_on_flow(&serializer, EXANEST_FLOW_XOFF);
    assert_false(exanest_serializer_next(&serializer, 1, &piece)); /* Inside a word. */
    exanest_serializer_send_flow(&serializer, EXANEST_FLOW_XOFF);
    assert_true(exanest_serializer_next(&serializer, 1, &piece)); /* XOFF does not stop it. */
    assert_true(piece.is_flow && piece.flow == EXANEST_FLOW_XOFF);
    assert_int_equal(piece.free_ps, 12800);
    exanest_serializer_on_flow(&serializer, EXANEST_FLOW_XON);
    assert_true(exanest_serializer_next(&serializer, 1, &piece));
    assert_true(!piece.is_flow && piece.last && piece.halves == 1);
    assert_int_equal(piece.words[0], packet.beats[0].word.high);
    assert_int_equal(piece.free_ps, 2 * 6600); /* and a separator behind the packet. */
    assert_false(exanest_serializer_due(&serializer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utilisation),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flow_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
