/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The octets of LFC and PFC frames are those of the standard, both ways; whatever a peer
 *         sends gets a verdict, and only what is good is taken.
 * Method  Frames written down by hand, octet by octet; random fields there and back; every octet of
 *         a good frame changed, and random octets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "wire/pause.h"

#define ROUNDS 20000

static const uint8_t golden_link[PAUSE_FRAME_BYTES] = {
    0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00,
    0x16, 0xd4, 0x0a, 0x88, 0x08, 0x00, 0x01, 0xff, 0xff, /* The rest is padding. */
};

static const uint8_t golden_classes[PAUSE_FRAME_BYTES] = {
    0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x16,
    0xd4, 0x0a, 0x88, 0x08, 0x01, 0x01, 0x00, 0x89,             /* Classes 0, 3 and 7. */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x34,             /* Quanta of 0 to 3, */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00, 0x00, /* of 4 to 7; padding. */
};

static const uint8_t port[6] = {0x02, 0x00, 0x00, 0x16, 0xd4, 0x0a};

static void expect_equal(const struct pause_frame *a, const struct pause_frame *b)
{
    assert_memory_equal(a->source, b->source, 6);
    assert_int_equal(a->pause.kind, b->pause.kind);
    assert_int_equal(a->pause.classes, b->pause.classes);
    assert_memory_equal(a->pause.quanta, b->pause.quanta, sizeof(a->pause.quanta));
}

static void expect_golden(const struct pause_frame *frame, const uint8_t golden[PAUSE_FRAME_BYTES])
{
    uint8_t bytes[PAUSE_FRAME_BYTES];
    struct pause_frame decoded;
    memset(bytes, 0xaa, sizeof(bytes));
    pause_encode(bytes, frame);
    assert_memory_equal(bytes, golden, PAUSE_FRAME_BYTES);
    assert_int_equal(pause_decode(golden, PAUSE_FRAME_BYTES, &decoded), PAUSE_GOOD);
    expect_equal(&decoded, frame);
}

static void test_golden(void **state)
{
    (void)state;
    struct pause_frame frame = {.pause = pause_link(PAUSE_QUANTA_MAX)};
    memcpy(frame.source, port, 6);
    expect_golden(&frame, golden_link);
    frame.pause = (struct pause){
        .kind = PAUSE_CLASS, .classes = 0x89, .quanta = {[3] = 0x1234, [7] = PAUSE_QUANTA_MAX}};
    expect_golden(&frame, golden_classes);
}

static void test_classes(void **state)
{
    (void)state;
    const struct pause pause = pause_classes(0x21, 7);
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        assert_int_equal(pause.quanta[i], i == 0 || i == 5 ? 7 : 0);
    }
    assert_int_equal(pause.classes, 0x21);
    assert_int_equal(pause.kind, PAUSE_CLASS);
}

/* Quanta of classes that are not named are not sent. */
static void test_there_and_back(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct pause_frame frame = {.pause = pause_link((uint16_t)prng_next(&prng))}, decoded;
        uint8_t bytes[PAUSE_FRAME_BYTES];
        if (prng_chance(&prng, 500000)) {
            frame.pause = pause_classes((uint8_t)prng_next(&prng), 0);
            for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
                frame.pause.quanta[i] = (uint16_t)prng_next(&prng);
            }
        }
        for (uint32_t i = 0; i < 6; i++) {
            frame.source[i] = (uint8_t)prng_next(&prng);
        }
        pause_encode(bytes, &frame);
        assert_int_equal(pause_decode(bytes, sizeof(bytes), &decoded), PAUSE_GOOD);
        for (uint32_t i = 0; i < PAUSE_CLASSES && frame.pause.kind == PAUSE_CLASS; i++) {
            frame.pause.quanta[i] = frame.pause.classes >> i & 1 ? frame.pause.quanta[i] : 0;
        }
        expect_equal(&decoded, &frame);
    }
}

/* The source is any; so are vector, quanta and padding. */
static enum pause_verdict verdict_of_octet(uint32_t at)
{
    if (at < 6) {
        return PAUSE_WRONG_ADDRESS;
    }
    if (at >= 12 && at < 14) {
        return PAUSE_WRONG_TYPE;
    }
    return at >= 14 && at < 16 ? PAUSE_UNKNOWN_OPCODE : PAUSE_GOOD;
}

static void test_bad_octets(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < PAUSE_FRAME_BYTES; at++) {
        uint8_t bytes[PAUSE_FRAME_BYTES];
        struct pause_frame decoded;
        memset(&decoded, 0x5a, sizeof(decoded));
        const struct pause_frame untouched = decoded;
        memcpy(bytes, golden_classes, sizeof(bytes));
        bytes[at] ^= 0x40;
        const enum pause_verdict verdict = pause_decode(bytes, sizeof(bytes), &decoded);
        assert_int_equal(verdict, verdict_of_octet(at));
        if (verdict != PAUSE_GOOD) {
            assert_memory_equal(&decoded, &untouched, sizeof(decoded));
        }
        assert_true(strlen(pause_verdict_text(verdict)) > 0);
    }
}

/* What is reserved does not matter: the vector's upper octet, quanta without a class, padding. */
static void test_reserved(void **state)
{
    (void)state;
    static const uint32_t reserved[] = {16, 20, 21, 30, 34, 59};
    struct pause_frame expected, decoded;
    assert_int_equal(pause_decode(golden_classes, PAUSE_FRAME_BYTES, &expected), PAUSE_GOOD);
    for (uint32_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        uint8_t bytes[PAUSE_FRAME_BYTES];
        memcpy(bytes, golden_classes, sizeof(bytes));
        bytes[reserved[i]] ^= 0xff;
        assert_int_equal(pause_decode(bytes, sizeof(bytes), &decoded), PAUSE_GOOD);
        expect_equal(&decoded, &expected);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    uint8_t bytes[2 * PAUSE_FRAME_BYTES] = {0};
    struct pause_frame decoded;
    memcpy(bytes, golden_link, PAUSE_FRAME_BYTES);
    for (size_t count = 0; count <= sizeof(bytes); count++) {
        assert_int_equal(pause_decode(bytes, count, &decoded),
                         count == PAUSE_FRAME_BYTES ? PAUSE_GOOD : PAUSE_WRONG_LENGTH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),         cmocka_unit_test(test_classes),
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_bad_octets),
        cmocka_unit_test(test_reserved),       cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
