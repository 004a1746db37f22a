/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Frames come through clocks that differ and links of different length, whole and alone.
 * Method  Frames of the largest size and random gaps, with drift both ways for long; every skew.
 *         Behaviours FNX-23, FNX-24.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/forth/lanes.h"

#define FRAMES     400
#define QWORDS_MAX 512
#define GAP_MAX    40
#define WORDS_MAX  (FRAMES * (2 * QWORDS_MAX + 5 + GAP_MAX))

/* Frames with gaps of at least two commas: what the clock correction lives on. */
static uint32_t make_stream(struct prng *prng, struct forth_word *stream, uint64_t *headers)
{
    uint32_t count = 0;
    uint8_t payload[8 * QWORDS_MAX];
    for (uint32_t i = 0; i < FRAMES; i++) {
        const struct forth_header fields = {.node = (uint8_t)(i % 128),
                                            .words = (uint16_t)(1 + prng_below(prng, QWORDS_MAX)),
                                            .destination = (uint32_t)prng_next(prng)};
        for (uint32_t k = 0; k < sizeof(payload); k++) {
            payload[k] = (uint8_t)prng_next(prng);
        }
        headers[i] = forth_header_encode(&fields);
        const struct forth_frame frame = {
            .header = headers[i],
            .header_crc = forth_header_crc(headers[i]),
            .body_crc = forth_body_crc(FORTH_BODY_CRC_BEGIN, payload, 8 * (size_t)fields.words),
            .payload = payload,
            .qwords = fields.words,
        };
        count += forth_link_encode(NULL, 0, &frame, stream + count);
        for (uint64_t gap = 2 + prng_below(prng, GAP_MAX - 2); gap > 0; gap--) {
            stream[count++] = FORTH_IDLE_WORD;
        }
    }
    return count;
}

static void receive(struct forth_receiver *receiver, struct forth_word word,
                    const uint64_t *headers, uint32_t *received)
{
    switch (forth_receive(receiver, word)) {
    case FORTH_RX_HEADER: assert_int_equal(receiver->header_word, headers[*received]); break;
    case FORTH_RX_END: (*received)++; break;
    case FORTH_RX_NOTHING:
    case FORTH_RX_QWORD: break;
    case FORTH_RX_CREDIT:
    case FORTH_RX_CREDIT_PARITY:
    case FORTH_RX_HEADER_CRC:
    case FORTH_RX_BODY_CRC:
    case FORTH_RX_ALIGNMENT: fail_msg("an error on a clean link");
    }
}

/* FNX-24: the receiver's clock is `ppm` slower (or, negative, faster) than the sender's. */
static void check_drift(int64_t ppm)
{
    struct forth_word *stream = calloc(WORDS_MAX, sizeof(*stream));
    uint64_t headers[FRAMES];
    struct prng prng;
    struct forth_elastic elastic;
    struct forth_receiver receiver = {.state = FORTH_RX_START};
    assert_non_null(stream);
    prng_init(&prng, 3);
    forth_elastic_init(&elastic);
    const uint32_t count = make_stream(&prng, stream, headers);
    uint32_t received = 0;
    int64_t ahead = 0; /* Millionths of a word by which the sender is ahead. */
    for (uint32_t i = 0; i < count; i++) {
        forth_elastic_put(&elastic, stream[i]);
        for (ahead += 1000000 - ppm; ahead >= 1000000; ahead -= 1000000) {
            receive(&receiver, forth_elastic_take(&elastic), headers, &received);
        }
    }
    for (uint32_t i = 0; i < FORTH_ELASTIC_WORDS; i++) {
        receive(&receiver, forth_elastic_take(&elastic), headers, &received);
        forth_elastic_put(&elastic, FORTH_IDLE_WORD);
    }
    assert_int_equal(received, FRAMES);
    assert_int_equal(elastic.lost, 0);
    assert_true(ppm <= 0 || elastic.dropped > 0);
    assert_true(ppm >= 0 || elastic.repeated > 0);
    free(stream);
}

static void test_drift(void **state)
{
    (void)state;
    check_drift(0);
    check_drift(100);
    check_drift(-100);
    check_drift(200);
    check_drift(-200);
}

/* FNX-23: the same frames on both lanes, one of them late by up to eight words. */
static void check_skew(uint32_t late, uint32_t by)
{
    struct forth_word *stream = calloc(WORDS_MAX, sizeof(*stream));
    uint64_t headers[FRAMES];
    struct prng prng;
    struct forth_deskew deskew = {.errors = 0};
    struct forth_receiver receivers[FORTH_LANES] = {{.state = FORTH_RX_START}};
    uint32_t received[FORTH_LANES] = {0};
    assert_non_null(stream);
    prng_init(&prng, 4);
    const uint32_t count = make_stream(&prng, stream, headers);
    for (uint32_t i = 0; i < count + by; i++) {
        struct forth_word words[FORTH_LANES];
        for (uint32_t lane = 0; lane < FORTH_LANES; lane++) {
            const uint32_t delay = lane == late ? by : 0;
            words[lane] = i < delay || i - delay >= count ? FORTH_IDLE_WORD : stream[i - delay];
        }
        forth_deskew_put(&deskew, words);
        while (forth_deskew_take(&deskew, words)) {
            assert_int_equal(words[0].data, words[1].data);
            for (uint32_t lane = 0; lane < FORTH_LANES; lane++) {
                receive(&receivers[lane], words[lane], headers, &received[lane]);
            }
        }
    }
    assert_int_equal(received[0], FRAMES);
    assert_int_equal(received[1], FRAMES);
    assert_int_equal(deskew.errors, 0);
    free(stream);
}

static void test_skew(void **state)
{
    (void)state;
    for (uint32_t by = 0; by <= FORTH_SKEW_WORDS_MAX; by++) {
        check_skew(0, by);
        check_skew(1, by);
    }
}

/* A skew beyond what the FIFO absorbs is an error that is counted, not a stall. */
static void test_too_much_skew(void **state)
{
    (void)state;
    struct forth_deskew deskew = {.errors = 0};
    struct forth_word words[FORTH_LANES];
    for (uint32_t i = 0; i < 100; i++) {
        words[0] = i == 10 ? FORTH_SOP_WORD : FORTH_IDLE_WORD;
        words[1] = i == 60 ? FORTH_SOP_WORD : FORTH_IDLE_WORD;
        forth_deskew_put(&deskew, words);
        while (forth_deskew_take(&deskew, words)) {
            assert_false(words[0].data == FORTH_SOP_WORD.data &&
                         words[1].data == FORTH_SOP_WORD.data);
        }
    }
    assert_true(deskew.errors > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_too_much_skew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
