/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One end takes apart the frames of the other. An error in between is named, costs no other
 *         frame, and is over at the next SOP.
 * Method  Streams of random frames, credits and idle words, at every byte alignment; then one error
 *         at a time. Behaviours FNX-18 to FNX-21, FNX-23, FNX-29.
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
#include "hardware/forth/link.h"

#define PAYLOAD_MAX (8 * FORTH_WORDS_MAX)
#define STREAM_MAX  200000

struct stream {
    struct forth_word words[STREAM_MAX];
    uint32_t count;
};

static void put_frame(struct stream *stream, const uint16_t *credits, uint32_t credit_count,
                      const struct forth_frame *frame)
{
    assert_true(stream->count + credit_count + 2 * FORTH_WORDS_MAX + 5 < STREAM_MAX);
    stream->count += forth_link_encode(credits, credit_count, frame, &stream->words[stream->count]);
}

static void put_idle(struct stream *stream, uint64_t words)
{
    while (words-- > 0) {
        stream->words[stream->count++] = FORTH_IDLE_WORD;
    }
}

static struct forth_frame make_frame(struct prng *prng, uint8_t *payload, uint32_t qwords)
{
    const struct forth_header header = {.node = (uint8_t)prng_below(prng, 128),
                                        .words = (uint16_t)qwords,
                                        .destination = (uint32_t)prng_next(prng)};
    for (uint32_t i = 0; i < 8 * qwords; i++) {
        payload[i] = (uint8_t)prng_next(prng);
    }
    const uint64_t word = forth_header_encode(&header);
    return (struct forth_frame){
        .header = word,
        .header_crc = forth_header_crc(word),
        .body_crc = forth_body_crc(FORTH_BODY_CRC_BEGIN, payload, 8 * (size_t)qwords),
        .payload = payload,
        .qwords = qwords,
    };
}

/* The events and words that came out, counted. */
struct outcome {
    uint64_t events[FORTH_RX_ALIGNMENT + 1]; /* As wide as the rest: compared as bytes. */
    uint64_t headers, payload;               /* Sums that depend on order. */
};

static void receive(struct forth_receiver *receiver, struct outcome *outcome,
                    struct forth_word word)
{
    const enum forth_rx_event event = forth_receive(receiver, word);
    outcome->events[event]++;
    if (event == FORTH_RX_HEADER) {
        outcome->headers = outcome->headers * 31 + receiver->header_word;
    } else if (event == FORTH_RX_QWORD) {
        outcome->payload = outcome->payload * 31 + receiver->qword;
    }
}

static struct outcome receive_all(const struct stream *stream)
{
    struct forth_receiver receiver = {0};
    struct outcome outcome = {0};
    for (uint32_t i = 0; i < stream->count; i++) {
        receive(&receiver, &outcome, stream->words[i]);
    }
    return outcome;
}

/* FNX-18: SOP, header, CRC, data, CRC; the next SOP follows at once. */
static void test_words_of_a_frame(void **state)
{
    (void)state;
    uint8_t payload[16];
    struct prng prng;
    struct forth_word words[64];
    prng_init(&prng, 1);
    const struct forth_frame frame = make_frame(&prng, payload, 2);
    uint32_t count = forth_link_encode(NULL, 0, &frame, words);
    assert_int_equal(count, forth_frame_words(2));
    count += forth_link_encode(NULL, 0, &frame, words + count);
    assert_int_equal(count, 18);
    static const int is_control[18] = {[0] = 1, [9] = 1};
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(words[i].control != 0, is_control[i]);
    }
    assert_int_equal(words[0].data >> 24, FORTH_SOP);
    assert_int_equal(words[1].data, frame.header >> 32);
    assert_int_equal(words[2].data, (uint32_t)frame.header);
    assert_int_equal(words[3].data, (uint32_t)frame.header_crc << 16);
    assert_int_equal(words[4].data, load_be32(payload));
    assert_int_equal(words[7].data, load_be32(payload + 12));
    assert_int_equal(words[8].data, frame.body_crc);
}

/* FNX-29: no credits, one, many, with a packet behind them or without. At all four alignments. */
static void test_stream(void **state)
{
    (void)state;
    struct stream *stream = calloc(1, sizeof(*stream));
    struct prng prng;
    struct outcome expected = {0};
    static uint8_t payload[PAYLOAD_MAX];
    prng_init(&prng, 2);
    for (int n = 0; n < 500; n++) {
        uint16_t credits[128];
        const uint32_t credit_count =
            (uint32_t)prng_below(&prng, 3) == 0 ? (uint32_t)prng_below(&prng, 9) : 0;
        for (uint32_t i = 0; i < credit_count; i++) {
            credits[i] = forth_credit_encode((struct forth_credit){
                (uint8_t)prng_below(&prng, 128), (uint8_t)prng_below(&prng, 128)});
        }
        expected.events[FORTH_RX_CREDIT] += credit_count;
        if (prng_below(&prng, 5) == 0) {
            put_frame(stream, credits, credit_count, NULL);
        } else {
            const uint32_t qwords = 1 + (uint32_t)prng_below(&prng, n % 50 ? 62 : 512);
            const struct forth_frame frame = make_frame(&prng, payload, qwords);
            put_frame(stream, credits, credit_count, &frame);
            expected.events[FORTH_RX_HEADER]++;
            expected.events[FORTH_RX_END]++;
            expected.events[FORTH_RX_QWORD] += qwords;
            expected.headers = expected.headers * 31 + frame.header;
            for (uint32_t i = 0; i < qwords; i++) {
                expected.payload = expected.payload * 31 + load_be64(payload + (size_t)8 * i);
            }
        }
        put_idle(stream, prng_below(&prng, 2) ? 0 : prng_below(&prng, 5));
    }
    put_idle(stream, 2);
    struct outcome got = receive_all(stream);
    got.events[FORTH_RX_NOTHING] = 0;
    assert_memory_equal(&got, &expected, sizeof(got));

    for (uint32_t late = 0; late < 4; late++) {
        struct forth_aligner aligner = {.previous = FORTH_IDLE_WORD};
        struct forth_receiver receiver = {0};
        struct outcome aligned = {0};
        struct forth_word before = FORTH_IDLE_WORD;
        for (uint32_t i = 0; i < stream->count; i++) {
            const struct forth_word word = stream->words[i];
            const uint64_t both = (uint64_t)before.data << 32 | word.data;
            const struct forth_word raw = {
                (uint32_t)(both >> (8 * late)),
                (uint8_t)(((uint32_t)before.control << 4 | word.control) >> late & 0xf)};
            before = word;
            receive(&receiver, &aligned, forth_align(&aligner, raw));
        }
        aligned.events[FORTH_RX_NOTHING] = 0;
        assert_memory_equal(&aligned, &expected, sizeof(aligned));
    }
    free(stream);
}

/* A frame that `spoil` has changed, between two good ones, which must come through. */
static struct outcome between_good_ones(void (*spoil)(struct stream *, struct forth_frame *))
{
    struct stream *stream = calloc(1, sizeof(*stream));
    static uint8_t payload[3][8 * 62];
    struct prng prng;
    prng_init(&prng, 3);
    for (int i = 0; i < 3; i++) {
        struct forth_frame frame = make_frame(&prng, payload[i], 20);
        if (i == 1) {
            spoil(stream, &frame);
        } else {
            put_frame(stream, NULL, 0, &frame);
        }
    }
    put_idle(stream, 1);
    const struct outcome outcome = receive_all(stream);
    free(stream);
    return outcome;
}

static void wrong_header(struct stream *stream, struct forth_frame *frame)
{
    frame->header ^= 0x1000;
    put_frame(stream, NULL, 0, frame);
}

/* FNX-20 */
static void test_header_crc(void **state)
{
    (void)state;
    const struct outcome outcome = between_good_ones(wrong_header);
    assert_int_equal(outcome.events[FORTH_RX_HEADER_CRC], 1);
    assert_int_equal(outcome.events[FORTH_RX_HEADER], 2);
    assert_int_equal(outcome.events[FORTH_RX_QWORD], 40);
    assert_int_equal(outcome.events[FORTH_RX_END], 2);
    assert_int_equal(outcome.events[FORTH_RX_ALIGNMENT], 0);
}

static void wrong_body(struct stream *stream, struct forth_frame *frame)
{
    frame->body_crc ^= 1;
    put_frame(stream, NULL, 0, frame);
}

/* FNX-21 */
static void test_body_crc(void **state)
{
    (void)state;
    const struct outcome outcome = between_good_ones(wrong_body);
    assert_int_equal(outcome.events[FORTH_RX_BODY_CRC], 1);
    assert_int_equal(outcome.events[FORTH_RX_QWORD], 60);
    assert_int_equal(outcome.events[FORTH_RX_END], 2);
}

static void shorter(struct stream *stream, struct forth_frame *frame)
{
    frame->qwords -= 3;
    put_frame(stream, NULL, 0, frame);
}

static void longer(struct stream *stream, struct forth_frame *frame)
{
    put_frame(stream, NULL, 0, frame);
    for (int i = 0; i < 6; i++) {
        stream->words[stream->count++] = (struct forth_word){0x12345678, 0};
    }
}

/* FNX-19: a packet that ends before or after its size: one error, then the next packet. */
static void test_alignment_error(void **state)
{
    (void)state;
    struct outcome outcome = between_good_ones(shorter);
    assert_int_equal(outcome.events[FORTH_RX_ALIGNMENT], 1);
    assert_int_equal(outcome.events[FORTH_RX_END], 2);
    outcome = between_good_ones(longer);
    assert_int_equal(outcome.events[FORTH_RX_ALIGNMENT], 1);
    assert_int_equal(outcome.events[FORTH_RX_END], 3);
}

/* Any words at all: no more data than headers announced, and a good frame behind them is taken. */
static void test_garbage(void **state)
{
    (void)state;
    struct prng prng;
    uint8_t payload[8 * 62];
    prng_init(&prng, 4);
    for (int round = 0; round < 2000; round++) {
        struct forth_receiver receiver = {0};
        struct outcome outcome = {0};
        for (uint64_t i = prng_below(&prng, 200); i > 0; i--) {
            const bool control = prng_below(&prng, 6) == 0;
            const struct forth_word word = {(uint32_t)prng_next(&prng),
                                            control ? (uint8_t)prng_below(&prng, 16) : 0};
            receive(&receiver, &outcome, prng_below(&prng, 10) == 0 ? FORTH_SOP_WORD : word);
        }
        struct forth_word words[128];
        const struct forth_frame frame = make_frame(&prng, payload, 40);
        const uint32_t count = forth_link_encode(NULL, 0, &frame, words);
        const uint64_t ends = outcome.events[FORTH_RX_END];
        for (uint32_t i = 0; i < count; i++) {
            receive(&receiver, &outcome, words[i]);
        }
        assert_int_equal(outcome.events[FORTH_RX_END], ends + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_a_frame), cmocka_unit_test(test_stream),
        cmocka_unit_test(test_header_crc),       cmocka_unit_test(test_body_crc),
        cmocka_unit_test(test_alignment_error),  cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
