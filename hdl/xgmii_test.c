/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever stands on a line of XGMII, the decoder says what a plain reading of clause 46
 *         says, octet by octet; the encoder's frames come back whole, in every lane, twelve octets
 *         of gap apart on average. FER-136, FER-137.
 * Method  A line is a list of octets. The model looks for frames in it from their starts to their
 *         ends, and has its FCS from the library for ICRCs. Lines are the encoder's, and such with
 *         octets changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "hdl/xgmii.h"
#include "wire/icrc.h"

enum {
    LONGEST = 16384,
    ROOM = LONGEST + XGMII_FCS_OCTETS,
    LINE_MAX = 1 << 18,
    NEWS_MAX = 1 << 17,
    FRAMES_MAX = 4096,
    GAP_BEFORE = 200 /* In front of the first frame. */
};

/* Octets of a line, and whether each is one of control. */
static struct line {
    uint8_t octets[LINE_MAX];
    bool control[LINE_MAX];
    uint32_t count;
} line;

struct news {
    uint32_t at;
    enum xgmii_event what;
};

static struct list {
    struct news news[NEWS_MAX];
    uint32_t count;
} said, expected;

/* The frames of the model's reading, by the places of their starts and ends. */
static struct {
    uint32_t start, end;
} frames[FRAMES_MAX];
static uint32_t frame_count;

static struct prng prng;

static void note(struct list *list, uint32_t at, enum xgmii_event what)
{
    assert_true(list->count < NEWS_MAX);
    list->news[list->count++] = (struct news){at, what};
}

/* -- The model ----------------------------------------------------------------------------------*/

static bool is_control(uint32_t at, uint8_t octet)
{
    return line.control[at] && line.octets[at] == octet;
}

static bool is_set(uint32_t at)
{
    return at % 4 == 0 && is_control(at, XGMII_SEQUENCE) && !line.control[at + 1] &&
           !line.control[at + 2] && !line.control[at + 3];
}

/* The fault of the octet at place `at` of a frame that starts at `start`. */
static enum xgmii_event fault_of(uint32_t start, uint32_t at)
{
    const uint32_t place = at - start;
    if (line.control[at]) {
        return XGMII_BAD_OCTET;
    }
    if (place < 8 && line.octets[at] != (place == 7 ? 0xd5 : 0x55)) {
        return XGMII_BAD_PREAMBLE;
    }
    return place >= 8 + ROOM ? XGMII_BAD_LONG : XGMII_WHOLE;
}

static enum xgmii_event fault_at_end(uint32_t start, uint32_t end)
{
    if (!is_control(end, XGMII_TERMINATE)) {
        return XGMII_BAD_END;
    }
    if (end - start < 8) {
        return XGMII_BAD_PREAMBLE;
    }
    if (end - start < 8 + 64) {
        return XGMII_BAD_SHORT;
    }
    const uint32_t crc = icrc_extend(0, line.octets + start + 8, end - start - 12);
    return load_le32(line.octets + end - 4) == crc ? XGMII_WHOLE : XGMII_BAD_FCS;
}

/* Returns the place behind the frame that starts here. */
static uint32_t read_frame(uint32_t start, uint32_t gap)
{
    enum xgmii_event fault = start % 4 != 0 ? XGMII_BAD_LANE
                             : gap < 5      ? XGMII_BAD_GAP
                                            : XGMII_WHOLE;
    uint32_t told = start, end = start + 1;
    note(&expected, start, XGMII_BEGUN);
    for (; end < line.count && (!line.control[end] || line.octets[end] == XGMII_ERROR); end++) {
        if (fault == XGMII_WHOLE) {
            fault = fault_of(start, end);
            told = end;
        }
    }
    if (end == line.count) {
        if (fault != XGMII_WHOLE) {
            note(&expected, told, fault);
        }
        return end;
    }
    if (fault == XGMII_WHOLE) {
        fault = fault_at_end(start, end);
        told = end;
    }
    if (fault != XGMII_WHOLE) {
        note(&expected, told, fault);
    } else {
        frames[frame_count].start = start;
        frames[frame_count++].end = end;
    }
    note(&expected, end, fault == XGMII_WHOLE ? XGMII_WHOLE : XGMII_DROPPED);
    return is_control(end, XGMII_TERMINATE) ? end + 1 : end;
}

static void read_line(void)
{
    uint32_t gap = GAP_BEFORE, at = 0;
    bool strayed = false;
    expected.count = frame_count = 0;
    while (at < line.count) {
        if (is_control(at, XGMII_START)) {
            at = read_frame(at, gap);
            gap = at > 0 && is_control(at - 1, XGMII_TERMINATE) ? 1 : GAP_BEFORE;
            strayed = false;
        } else if (is_set(at)) {
            gap += 4;
            at += 4;
        } else {
            if (!is_control(at, XGMII_IDLE) && !strayed) {
                strayed = true;
                note(&expected, at, XGMII_BAD_STRAY);
            }
            gap++;
            at++;
        }
    }
}

/* -- The decoder --------------------------------------------------------------------------------*/

static struct xgmii_word word_at(uint32_t at)
{
    struct xgmii_word word = {.control = 0};
    for (uint32_t lane = 0; lane < 8; lane++) {
        word.data[lane] = line.octets[at + lane];
        word.control |= (uint8_t)(line.control[at + lane] << lane);
    }
    return word;
}

/* Whole frames have the octets that stand on the line. Returns how many there are. */
static uint32_t decode_line(void)
{
    static uint8_t memory[ROOM];
    struct xgmii_decoder decoder;
    struct xgmii_events events;
    uint32_t whole = 0;
    said.count = 0;
    xgmii_decoder_init(&decoder, ROOM);
    decoder.frame = memory;
    for (uint32_t at = 0; at < line.count; at += 8) {
        const struct xgmii_word word = word_at(at);
        xgmii_decode(&decoder, &word, &events);
        for (uint32_t i = 0; i < events.count; i++) {
            note(&said, at + events.lane[i], (enum xgmii_event)events.what[i]);
            if (events.what[i] == XGMII_WHOLE && whole < frame_count) {
                const uint32_t start = frames[whole].start + 8, end = frames[whole].end;
                assert_int_equal(decoder.whole_octets, end - start);
                assert_memory_equal(memory, line.octets + start, end - start);
                whole++;
            }
        }
    }
    return whole;
}

static void compare_readings(void)
{
    read_line();
    const uint32_t whole = decode_line();
    for (uint32_t i = 0; i < expected.count && i < said.count; i++) {
        if (said.news[i].at != expected.news[i].at || said.news[i].what != expected.news[i].what) {
            fail_msg("octet %u: event %d, expected at %u: %d", said.news[i].at, said.news[i].what,
                     expected.news[i].at, expected.news[i].what);
        }
    }
    assert_int_equal(said.count, expected.count);
    assert_int_equal(whole, frame_count);
}

/* -- The encoder --------------------------------------------------------------------------------*/

static void append(const struct xgmii_word *word)
{
    assert_true(line.count + 8 <= LINE_MAX);
    for (uint32_t lane = 0; lane < 8; lane++) {
        line.octets[line.count] = word->data[lane];
        line.control[line.count++] = word->control >> lane & 1;
    }
}

static uint32_t random_length(void)
{
    const uint32_t most = prng_chance(&prng, 50000)    ? LONGEST
                          : prng_chance(&prng, 300000) ? 1518
                                                       : 130;
    const uint32_t octets = 1 + (uint32_t)prng_below(&prng, most);
    return octets < 60 ? 60 : octets; /* Padded by who sends them. */
}

static uint8_t contents[LONGEST + 64];

/* Frames, up to half of the line, and idle words between some of them. Returns how many. */
static uint32_t encode_line(uint32_t wait_ppm, uint32_t bad_ppm)
{
    struct xgmii_encoder encoder;
    struct xgmii_word word;
    uint32_t count = 0;
    line.count = 0;
    xgmii_encoder_init(&encoder);
    while (line.count < LINE_MAX / 2) {
        const struct xgmii_frame frame = {.data = contents + prng_below(&prng, 64),
                                          .octets = random_length(),
                                          .bad = prng_chance(&prng, bad_ppm)};
        for (bool ended = false; !ended;) {
            ended = xgmii_encode(&encoder, XGMII_LINK_GOOD, &frame, &word);
            append(&word);
        }
        while (prng_chance(&prng, wait_ppm)) {
            assert_false(xgmii_encode(&encoder, XGMII_LINK_GOOD, NULL, &word));
            append(&word);
        }
        count++;
    }
    return count;
}

static void prepare(uint64_t seed)
{
    prng_init(&prng, seed);
    for (uint32_t i = 0; i < sizeof(contents); i++) {
        contents[i] = (uint8_t)prng_next(&prng);
    }
}

/* -- Tests --------------------------------------------------------------------------------------*/

/* Frames that follow one another: both lanes of start, all of terminate, twelve octets apart. */
static void test_lanes(void **state)
{
    (void)state;
    uint32_t starts[8] = {0}, ends[8] = {0};
    prepare(1);
    for (uint32_t round = 0; round < 20; round++) {
        const uint32_t count = encode_line(0, 0);
        uint32_t gaps = 0;
        compare_readings();
        assert_int_equal(frame_count, count);
        for (uint32_t i = 0; i < count; i++) {
            starts[frames[i].start % 8]++;
            ends[frames[i].end % 8]++;
            if (i > 0) {
                const uint32_t gap = frames[i].start - frames[i - 1].end;
                assert_in_range(gap, 9, 15);
                gaps += gap;
            }
        }
        assert_in_range(gaps, 12 * (count - 1) - 3, 12 * (count - 1));
    }
    for (uint32_t lane = 0; lane < 8; lane++) {
        assert_true((starts[lane] > 0) == (lane % 4 == 0));
        assert_true(ends[lane] > 0);
    }
}

/* Every length, and frames with waits between them; some have a wrong FCS. */
static void test_frames(void **state)
{
    (void)state;
    prepare(2);
    for (uint32_t round = 0; round < 20; round++) {
        const uint32_t count = encode_line(500000, 0);
        compare_readings();
        assert_int_equal(frame_count, count);
    }
    const uint32_t count = encode_line(300000, 200000);
    uint32_t wrong = 0;
    compare_readings();
    for (uint32_t i = 0; i < said.count; i++) {
        wrong += said.news[i].what == XGMII_BAD_FCS;
    }
    assert_true(wrong > 0 && wrong + frame_count == count);
}

/* An octet, or whether it is one of control, becomes another one. */
static void change(uint32_t at)
{
    static const uint8_t likely[] = {XGMII_IDLE,  XGMII_SEQUENCE, XGMII_START, XGMII_TERMINATE,
                                     XGMII_ERROR, 0x55,           0xd5,        0};
    line.octets[at] = prng_chance(&prng, 700000) ? likely[prng_below(&prng, COUNT_OF(likely))]
                                                 : (uint8_t)prng_next(&prng);
    line.control[at] = prng_chance(&prng, 500000);
}

static void change_some(uint32_t ppm)
{
    for (uint32_t at = 0; at < line.count; at++) {
        if (prng_chance(&prng, ppm)) {
            change(at);
        }
    }
}

/* Lines with octets changed, from a few to all: every fault is told, and told where it is. */
static void test_changed(void **state)
{
    (void)state;
    static const uint32_t ppms[] = {200, 2000, 20000, 200000, 1000000};
    uint64_t seen[XGMII_EVENTS] = {0};
    prepare(3);
    for (uint32_t round = 0; round < 60; round++) {
        encode_line(300000, 0);
        change_some(ppms[round % COUNT_OF(ppms)]);
        compare_readings();
        for (uint32_t i = 0; i < said.count; i++) {
            seen[said.news[i].what]++;
        }
    }
    for (uint32_t i = 0; i < XGMII_EVENTS; i++) {
        assert_true(seen[i] > 0 || i == XGMII_BAD_LONG);
    }
}

static void put(uint8_t octet, bool control)
{
    line.octets[line.count] = octet;
    line.control[line.count++] = control;
}

static void put_idles(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put(XGMII_IDLE, true);
    }
}

/* A frame of `octets` octets without its FCS, from the next place on. */
static void put_frame(uint32_t octets)
{
    static const uint8_t preamble[] = {0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5};
    uint8_t fcs[4];
    store_le32(fcs, icrc_extend(0, contents, octets));
    put(XGMII_START, true);
    for (uint32_t i = 0; i < sizeof(preamble); i++) {
        put(preamble[i], false);
    }
    for (uint32_t i = 0; i < octets; i++) {
        put(contents[i], false);
    }
    for (uint32_t i = 0; i < sizeof(fcs); i++) {
        put(fcs[i], false);
    }
    put(XGMII_TERMINATE, true);
}

/* The rest of the last word is idle. */
static void expect(uint32_t whole, enum xgmii_event fault)
{
    uint32_t faults = 0;
    put_idles(-line.count % 8);
    compare_readings();
    assert_int_equal(frame_count, whole);
    for (uint32_t i = 0; i < said.count; i++) {
        faults += said.news[i].what > XGMII_DROPPED;
        assert_true(said.news[i].what <= XGMII_DROPPED || said.news[i].what == fault);
    }
    assert_int_equal(faults, fault != XGMII_WHOLE);
}

/* Five octets from terminate to start are enough, four are not. A frame of 64 octets and one of 63;
 * one of the greatest length, and of one octet more; one in a lane that is none of both. */
static void test_limits(void **state)
{
    (void)state;
    prepare(4);
    for (uint32_t gap = 1; gap < 20; gap++) {
        line.count = 0;
        put_frame(60 + -gap % 4);
        put_idles(gap - 1);
        put_frame(100);
        expect(gap < 5 ? 1 : 2, gap < 5 ? XGMII_BAD_GAP : XGMII_WHOLE);
    }
    for (uint32_t lane = 0; lane < 8; lane++) {
        line.count = 0;
        put_idles(lane);
        put_frame(60);
        expect(lane % 4 == 0, lane % 4 == 0 ? XGMII_WHOLE : XGMII_BAD_LANE);
    }
    static const struct {
        uint32_t octets;
        enum xgmii_event fault;
    } lengths[] = {{59, XGMII_BAD_SHORT},
                   {60, XGMII_WHOLE},
                   {LONGEST, XGMII_WHOLE},
                   {LONGEST + 1, XGMII_BAD_LONG}};
    for (uint32_t i = 0; i < COUNT_OF(lengths); i++) {
        line.count = 0;
        put_frame(lengths[i].octets);
        expect(lengths[i].fault == XGMII_WHOLE, lengths[i].fault);
    }
}

/* -- Link faults --------------------------------------------------------------------------------*/

static struct xgmii_decoder heard;

static void hear(uint8_t low, uint8_t high)
{
    struct xgmii_word word = {.data = {XGMII_IDLE, XGMII_IDLE, XGMII_IDLE, XGMII_IDLE, XGMII_IDLE,
                                       XGMII_IDLE, XGMII_IDLE, XGMII_IDLE},
                              .control = 0xff};
    struct xgmii_events events;
    const uint8_t kinds[] = {low, high};
    for (uint32_t i = 0; i < 2; i++) {
        if (kinds[i] > 0) {
            const uint8_t set[] = {XGMII_SEQUENCE, 0, 0, kinds[i]};
            memcpy(word.data + 4 * i, set, 4);
            word.control ^= (uint8_t)(0xe << 4 * i);
        }
    }
    xgmii_decode(&heard, &word, &events);
    assert_int_equal(events.count, 0);
}

/* Four ordered sets of one kind, with fewer than 128 columns between two of them, bring the link
 * down; 128 columns without any bring it up again. */
static void test_link_faults(void **state)
{
    (void)state;
    xgmii_decoder_init(&heard, ROOM);
    hear(1, 1);
    hear(0, 1);
    hear(2, 1); /* Another kind begins to count anew. */
    hear(1, 1);
    hear(3, 0); /* Reserved. */
    assert_int_equal(heard.link, XGMII_LINK_GOOD);
    hear(0, 1);
    assert_int_equal(heard.link, XGMII_LOCAL_FAULT);
    for (uint32_t i = 0; i < 63; i++) {
        hear(0, 0);
    }
    assert_int_equal(heard.link, XGMII_LOCAL_FAULT);
    hear(0, 0);
    assert_int_equal(heard.link, XGMII_LINK_GOOD);
    for (uint32_t i = 0; i < 10 * 64; i++) {
        hear(i % 64 == 0 ? 2 : 0, 0);
        assert_int_equal(heard.link, i < 3 * 64 ? XGMII_LINK_GOOD : XGMII_REMOTE_FAULT);
    }
    for (uint32_t i = 0; i < 10 * 65; i++) {
        hear(i % 65 == 0 ? 1 : 0, 0); /* Too seldom. */
    }
    assert_int_equal(heard.link, XGMII_LINK_GOOD);
}

/* A local fault is answered, and no frame begins; the one in progress goes on. */
static void test_answers(void **state)
{
    (void)state;
    static const uint8_t answer[] = {XGMII_SEQUENCE, 0, 0, 2, XGMII_SEQUENCE, 0, 0, 2};
    struct xgmii_encoder encoder;
    struct xgmii_word word;
    const struct xgmii_frame frame = {.data = contents, .octets = 60};
    xgmii_encoder_init(&encoder);
    assert_false(xgmii_encode(&encoder, XGMII_LOCAL_FAULT, &frame, &word));
    assert_memory_equal(word.data, answer, 8);
    assert_int_equal(word.control, 0x11);
    assert_false(xgmii_encode(&encoder, XGMII_REMOTE_FAULT, &frame, &word));
    assert_true(word.control == 0xff && word.data[0] == XGMII_IDLE && word.data[7] == XGMII_IDLE);
    assert_false(xgmii_encode(&encoder, XGMII_LINK_GOOD, &frame, &word));
    assert_int_equal(word.data[0], XGMII_START);
    uint32_t words = 1;
    while (!xgmii_encode(&encoder, XGMII_REMOTE_FAULT, &frame, &word)) {
        words++;
    }
    assert_int_equal(words, 9);
    assert_int_equal(word.data[0], XGMII_TERMINATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),       cmocka_unit_test(test_frames),
        cmocka_unit_test(test_changed),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_link_faults), cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
