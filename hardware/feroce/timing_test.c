/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The sums of timing.h give the figures that follow by arithmetic from the board's clock
 *         and widths, and those that have a stepped unit agree with it.
 * Method  Each figure is computed from a packet or a message as the rows FER-A3, A4, A7, A8, A15,
 *         A18, A20, A21 describe it; the ICRC's unit is stepped beside its sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/feroce/crc.h"
#include "hardware/feroce/timing.h"

#define MESSAGE_BYTES 262144u
#define PMTU          4096u
#define PACKETS       (MESSAGE_BYTES / PMTU)

enum { /* ps; 5. */
    BYTE_10G = 800,
    BYTE_25G = 320,
    BYTE_100G = 80,
    CLOCK_10G = 6400,
    CLOCK_25G = 2560,
    CLOCK_100G = 3103,
};

static const struct feroce_visit_cycles visits = {.empty = 3, .packet = 8};

static void assert_near(double value, double expected, double tolerance)
{
    if (value < expected * (1 - tolerance) || value > expected * (1 + tolerance)) {
        fail_msg("%.4f instead of %.4f", value, expected);
    }
}

/* -- Lengths and lines --------------------------------------------------------------------------*/

/* 5: a MIDDLE packet has 82 bytes beside its payload, RETH 16 more, immediate data 4; frames are
 * padded to 64. */
static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(feroce_frame_bytes(PMTU, false, false), PMTU + 58);
    assert_int_equal(feroce_line_ps(feroce_frame_bytes(PMTU, false, false), 0, 1), PMTU + 82);
    assert_int_equal(feroce_line_ps(feroce_frame_bytes(PMTU, true, false), 0, 1), PMTU + 98);
    assert_int_equal(feroce_line_ps(feroce_frame_bytes(PMTU, true, true), 0, 1), PMTU + 102);
    /* The datagrams of the golden vectors (wire/feroce_test.c) have 0x3c, 0x4c and 0x50 bytes. */
    assert_int_equal(feroce_frame_bytes(16, false, false), 14 + 0x3c);
    assert_int_equal(feroce_frame_bytes(16, true, false), 14 + 0x4c);
    assert_int_equal(feroce_frame_bytes(16, true, true), 14 + 0x50);
    assert_int_equal(feroce_line_ps(60, 0, 1), 84);
    assert_int_equal(feroce_line_ps(61, 0, 1), 85);
    assert_int_equal(feroce_line_ps(10, 5, 800), 89 * 800);
    /* 62 bytes, which the document means: 98.5 and 97.1 %. */
    assert_near(4096.0 / (4096 + 58 + FEROCE_FCS_BYTES), 0.9851, 1e-4);
    assert_near(2048.0 / (2048 + 58 + FEROCE_FCS_BYTES), 0.9706, 1e-4);
}

/* A message of 64 packets on the line, RETH in the first one, `bubble_ps` behind each. */
static double message_gbps(uint32_t byte_ps, uint32_t extra_bytes, uint64_t bubble_ps)
{
    uint64_t ps = 0;
    for (uint32_t i = 0; i < PACKETS; i++) {
        ps += feroce_line_ps(feroce_frame_bytes(PMTU, i == 0, false), extra_bytes, byte_ps) +
              bubble_ps;
    }
    return 8000.0 * MESSAGE_BYTES / (double)ps;
}

/* FER-A3, A4, A7, A8, A15, and what must put them out, as far as the line alone says it. */
static void test_line(void **state)
{
    (void)state;
    assert_near(message_gbps(BYTE_10G, 71, 0), 9.639, 1e-4);
    assert_near(message_gbps(BYTE_10G, 60, 0), 9.66, 1e-3);
    assert_near(message_gbps(BYTE_25G, 71, 0), 24.098, 1e-4);
    assert_near(message_gbps(BYTE_25G, 0, 56800), 23.5, 2e-3); /* The gap as a time. */
    assert_near(message_gbps(BYTE_10G, 0, 0), 9.803, 1e-4);
    assert_near(message_gbps(BYTE_10G, 0, CLOCK_10G), 9.803 * (1 - 0.0019), 1e-4);
    assert_near(message_gbps(BYTE_10G, 0, 9 * CLOCK_10G), 9.638, 2e-4);
    assert_near(message_gbps(BYTE_25G, 0, 9 * CLOCK_25G), 24.09, 4e-4);
    assert_near(message_gbps(BYTE_100G, 0, 0), 98.0, 5e-4);
    assert_near(message_gbps(BYTE_100G, 71, 0), 96.4, 5e-4);
}

/* -- Servers ------------------------------------------------------------------------------------*/

/* FER-A18: a channel of 128 bits carries 41.2 Gb/s, one of 256 bits 82. */
static void test_channel(void **state)
{
    (void)state;
    for (uint32_t width = 16; width <= 32; width *= 2) {
        uint64_t cycles = 0;
        for (uint32_t i = 0; i < PACKETS; i++) {
            cycles += feroce_queue_cycles(PMTU, width, i == 0, 6);
        }
        assert_int_equal(cycles, MESSAGE_BYTES / width + 6);
        assert_near(8000.0 * MESSAGE_BYTES / (double)(cycles * CLOCK_100G),
                    width == 16 ? 41.2 : 82.4, 1e-3);
    }
    assert_int_equal(feroce_queue_cycles(4, 16, false, 6), 1);
    assert_int_equal(feroce_queue_cycles(20, 16, true, 6), 8);
}

/* Small messages in millions a second, with `cycles` from packet to packet. */
static double millions(uint32_t cycles)
{
    return 1e6 / (double)((uint64_t)cycles * CLOCK_100G);
}

/* FER-A20, A21: SENDs of 64 bytes are bound by the reader's visits, and by nothing else. */
static void test_visits(void **state)
{
    (void)state;
    const struct feroce_visit_cycles slow = {.empty = 3, .packet = 12};
    assert_int_equal(feroce_visit_cycles(&visits, false, false), 3);
    assert_int_equal(feroce_visit_cycles(&visits, true, false), 8);
    assert_int_equal(feroce_visit_cycles(&visits, true, true), 10);
    assert_int_equal(feroce_visit_cycles(&visits, false, true), 5);
    assert_near(8 * millions(feroce_round_cycles(&visits, 8, 8)), 40.3, 1e-3);
    assert_near(8 * millions(feroce_round_cycles(&slow, 8, 8)), 26.9, 2e-3);
    assert_int_equal(feroce_round_cycles(&visits, 8, 1), 29);
    assert_near(millions(feroce_round_cycles(&visits, 8, 1)), 11.1, 2e-3);
    assert_near(millions(feroce_round_cycles(&visits, 2, 1)), 29.3, 1e-3);
    const uint32_t frame = feroce_frame_bytes(64, false, false);
    assert_true(feroce_store_cycles(64, 64) < visits.packet);
    assert_true(feroce_send_cycles(frame, 64) < visits.packet);
    assert_true(feroce_line_ps(frame, 0, BYTE_100G) < (uint64_t)visits.packet * CLOCK_100G);
    /* 8 queue pairs, 64 words each: the reader keeps up with the line of FER-A15, not if a visit
     * takes 120 cycles: 88 Gb/s. */
    const uint64_t line = feroce_line_ps(feroce_frame_bytes(PMTU, false, false), 0, BYTE_100G);
    assert_true((uint64_t)visits.packet * CLOCK_100G < line);
    assert_near(8000.0 * PMTU / (120.0 * CLOCK_100G), 88, 1e-3);
}

static void test_memory(void **state)
{
    (void)state;
    assert_int_equal(feroce_store_cycles(PMTU, 64), 66);
    assert_int_equal(feroce_store_cycles(4, 64), 3);
    assert_int_equal(feroce_store_cycles(68, 64), 4);
    /* 100G: 4,154 bytes are 65 words; the ICRC has room in the last one. */
    assert_int_equal(feroce_send_cycles(feroce_frame_bytes(PMTU, false, false), 64), 65);
    /* 20 + 8 + 12 and 24 of payload fill a word. */
    assert_true(feroce_icrc_is_alone(feroce_frame_bytes(24, false, false), 64));
    assert_int_equal(feroce_send_cycles(feroce_frame_bytes(24, false, false), 64), 2 + 1);
    assert_int_equal(feroce_send_cycles(feroce_frame_bytes(20, false, false), 64), 2);
    assert_int_equal(feroce_send_cycles(feroce_frame_bytes(28, false, false), 64), 2);
}

/* The ICRC is alone in a word as often as lengths say: one in sixteen at 512 bits, every other at
 * 64. */
static void test_icrc_alone(void **state)
{
    (void)state;
    uint32_t alone_512 = 0, alone_64 = 0;
    for (uint32_t payload = 4; payload <= PMTU; payload += 4) {
        const uint32_t frame = feroce_frame_bytes(payload, true, false);
        alone_512 += feroce_icrc_is_alone(frame, 64);
        alone_64 += feroce_icrc_is_alone(frame, 8);
        /* Words of the datagram without and with its ICRC. */
        const uint32_t words = feroce_words(frame - 14 - 4, 64);
        assert_int_equal(feroce_words(frame - 14, 64) - words, feroce_icrc_is_alone(frame, 64));
    }
    assert_int_equal(alone_512, 1024 / 16);
    assert_int_equal(alone_64, 1024 / 2);
}

/* 8 cycles at 64 bits, 11 at 512. */
static void test_icrc_latency(void **state)
{
    (void)state;
    assert_int_equal(feroce_icrc_cycles(8), 8);
    assert_int_equal(feroce_icrc_cycles(64), 11);
    const struct feroce_crc_config document = {.width_bytes = 64, .tree_cycles = 1};
    assert_int_equal(feroce_crc_cycles(&document), 3);
}

/* Frequency + 1, or what the queue takes. */
static void test_generator(void **state)
{
    (void)state;
    assert_int_equal(feroce_generator_cycles(0, 4, 8), 3);
    assert_int_equal(feroce_generator_cycles(0, 64, 8), 10);
    assert_int_equal(feroce_generator_cycles(9, 64, 8), 10);
    assert_int_equal(feroce_generator_cycles(10, 64, 8), 11);
    assert_int_equal(feroce_generator_cycles(322, 16384, 128), 323);
    assert_true(feroce_generator_cycles(UINT32_MAX, 4, 8) == UINT64_C(1) << 32);
}

/* FER-A13: at 10G each server hides behind the line's 522.25 cycles for a packet, a request of 6
 * cycles too; one of 60 does not. */
static void test_servers_hide(void **state)
{
    (void)state;
    const uint32_t frame = feroce_frame_bytes(PMTU, false, false);
    const uint64_t line = feroce_line_ps(frame, 0, BYTE_10G);
    assert_near((double)line / CLOCK_10G, 522.25, 1e-9);
    assert_true(feroce_generator_cycles(0, PMTU, 8) * CLOCK_10G < line);
    assert_true((uint64_t)feroce_queue_cycles(PMTU, 8, true, 6) * CLOCK_10G < line);
    assert_true((uint64_t)feroce_queue_cycles(PMTU, 8, true, 60) * CLOCK_10G > line);
    assert_true((uint64_t)feroce_store_cycles(PMTU, 8) * CLOCK_10G < line);
    assert_int_equal(feroce_send_cycles(frame, 8), 520 + 1);
    assert_true((uint64_t)feroce_send_cycles(frame, 8) * CLOCK_10G < line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_line),
        cmocka_unit_test(test_channel),      cmocka_unit_test(test_visits),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_icrc_alone),
        cmocka_unit_test(test_icrc_latency), cmocka_unit_test(test_generator),
        cmocka_unit_test(test_servers_hide),
    };
    return cmocka_run_group_tests_name("feroce_timing", tests, NULL, NULL);
}
