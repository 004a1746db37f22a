/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each rule of the stream is noticed, by its name, with its time; the line takes the time
 *         that it takes; pauses, resets and bad frames do what they say.
 * Method  A bench drives the design's signals cycle by cycle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/check.h"
#include "hdl/port.h"

#define CYCLE_PS  6400
#define LINE_10G  800000 /* fs a byte. */
#define ALL_BYTES 0xffu

/* A port of 64 bits, and the signals of a design that a test sets by hand. */
static struct bench {
    struct hdl_port *port;
    void *memory;
    uint64_t now_ps;
    uint64_t data;
    uint32_t words[2], keep;
    struct hdl_in in;
    struct hdl_out out;
} bench;

static const struct hdl_port_config plain = {
    .width_bits = 64, .frame_bytes = 1518, .frames = 8, .ready_ppm = 1000000, .seed = 1};

static void set_up(const struct hdl_port_config *config)
{
    const size_t bytes = hdl_port_bytes(config);
    free(bench.memory);
    bench = (struct bench){.memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(bytes))};
    assert_non_null(bench.memory);
    bench.port = hdl_port_init(config, bench.memory);
    bench.in.s_data = bench.words;
    bench.in.s_keep = &bench.keep;
}

static void edge(void)
{
    bench.now_ps += CYCLE_PS;
    memcpy(bench.words, &bench.data, sizeof(bench.words));
    hdl_port_edge(bench.port, bench.now_ps, &bench.in, &bench.out);
}

/* The signals, for one cycle. */
static void drive(bool valid, uint64_t data, uint32_t keep, bool last)
{
    bench.in.s_valid = valid;
    bench.data = data;
    bench.keep = keep;
    bench.in.s_last = last;
    edge();
}

static void rest(void)
{
    drive(false, 0, 0, false);
}

/* A beat is held until it is taken. */
static void send_beat(uint64_t data, uint32_t keep, bool last)
{
    bool taken;
    do {
        taken = bench.out.s_ready;
        drive(true, data, keep, last);
    } while (!taken);
}

/* A frame of `bytes` bytes, 0, 1, 2 .. */
static void send_frame(uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 8) {
        uint8_t beat[8];
        uint64_t data;
        for (uint32_t i = 0; i < 8; i++) {
            beat[i] = (uint8_t)(at + i);
        }
        memcpy(&data, beat, 8);
        const uint32_t left = bytes - at;
        send_beat(data, left >= 8 ? ALL_BYTES : (1u << left) - 1, left <= 8);
    }
}

static void expect_frame(uint32_t bytes)
{
    struct hdl_frame frame;
    assert_true(hdl_port_pull(bench.port, &frame));
    assert_int_equal(frame.bytes, bytes < 60 ? 60 : bytes);
    for (uint32_t i = 0; i < frame.bytes; i++) {
        assert_int_equal(frame.data[i], i < bytes ? (uint8_t)i : 0);
    }
}

static void expect_no_frame(void)
{
    struct hdl_frame frame;
    assert_false(hdl_port_pull(bench.port, &frame));
}

/* The rule, and no other, was broken once, at this time. */
static void expect_broken(enum hdl_rule rule, uint64_t at_ps)
{
    const struct hdl_counters *counters = hdl_port_counters(bench.port);
    struct hdl_violation violation;
    for (uint32_t i = 0; i < HDL_RULES; i++) {
        assert_int_equal(counters->rules[i], i == rule);
    }
    assert_true(hdl_port_violation(bench.port, &violation));
    assert_int_equal(violation.rule, rule);
    assert_int_equal(violation.at_ps, at_ps);
    assert_int_equal(violation.edge, at_ps / CYCLE_PS);
    assert_false(hdl_port_violation(bench.port, &violation));
}

/* -- Rules --------------------------------------------------------------------------------------*/

/* FER-118, FER-119: every length of the last beat, and longer frames. FER-123: the padding. */
static void test_frames(void **state)
{
    (void)state;
    set_up(&plain);
    for (uint32_t bytes = 1; bytes <= 1518; bytes += bytes < 300 ? 1 : 37) {
        send_frame(bytes);
        rest();
        expect_frame(bytes);
    }
    for (uint32_t i = 0; i < HDL_RULES; i++) {
        assert_int_equal(hdl_port_counters(bench.port)->rules[i], 0);
    }
}

/* A last beat that leaves bytes out, one without bytes, a part of another beat. The frame is
 * not delivered, the next one is. */
static void test_keep(void **state)
{
    (void)state;
    static const struct {
        uint32_t keep;
        bool last;
        enum hdl_rule rule;
    } cases[] = {{0x7f, false, HDL_KEEP_PART}, {0xfe, false, HDL_KEEP_PART},
                 {0, false, HDL_KEEP_PART},    {0x05, true, HDL_KEEP_HOLE},
                 {0xfe, true, HDL_KEEP_HOLE},  {0, true, HDL_KEEP_NONE}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set_up(&plain);
        send_beat(1, ALL_BYTES, false);
        send_beat(2, cases[i].keep, cases[i].last);
        const uint64_t at_ps = bench.now_ps;
        if (!cases[i].last) {
            send_beat(3, ALL_BYTES, true);
        }
        rest();
        expect_no_frame();
        expect_broken(cases[i].rule, at_ps);
        assert_int_equal(hdl_port_counters(bench.port)->bad, 1);
        send_frame(100);
        expect_frame(100);
    }
}

/* FER-121: while ready is low, a beat is withdrawn, and changes in each of its signals. */
static void test_waiting(void **state)
{
    (void)state;
    const struct hdl_port_config seldom = {
        .width_bits = 64, .frame_bytes = 1518, .frames = 8, .ready_ppm = 250000, .seed = 1};
    static const struct {
        bool valid;
        uint64_t data;
        uint32_t keep;
        bool last;
        enum hdl_rule rule;
    } cases[] = {{false, 1, ALL_BYTES, false, HDL_WITHDRAWN},
                 {true, 2, ALL_BYTES, false, HDL_UNSTABLE},
                 {true, 1, 0x7f, false, HDL_UNSTABLE},
                 {true, 1, ALL_BYTES, true, HDL_UNSTABLE}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set_up(&seldom);
        do {
            rest();
        } while (bench.out.s_ready);
        drive(true, 1, ALL_BYTES, false);
        drive(cases[i].valid, cases[i].data, cases[i].keep, cases[i].last);
        expect_broken(cases[i].rule, bench.now_ps);
    }
    set_up(&seldom);
    send_frame(200);
    rest();
    expect_frame(200);
    assert_int_equal(hdl_port_counters(bench.port)->rules[HDL_UNSTABLE], 0);
}

/* Valid in reset, from its second edge on. FER-125: the frame in progress is lost and
 * counted, in both directions. */
static void test_reset(void **state)
{
    (void)state;
    static const uint8_t bytes[100] = {1};
    set_up(&plain);
    assert_true(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 100}));
    assert_true(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 100}));
    send_beat(1, ALL_BYTES, false);
    assert_true(bench.out.m_valid);
    bench.in.reset = true;
    drive(true, 2, ALL_BYTES, false);
    assert_false(bench.out.s_ready || bench.out.m_valid);
    assert_int_equal(hdl_port_counters(bench.port)->rules[HDL_VALID_RESET], 0);
    drive(true, 2, ALL_BYTES, false);
    expect_broken(HDL_VALID_RESET, bench.now_ps);
    bench.in.reset = false;
    rest();
    assert_int_equal(hdl_port_counters(bench.port)->lost_in_reset[0], 1);
    assert_int_equal(hdl_port_counters(bench.port)->lost_in_reset[1], 1);
    assert_true(bench.out.m_valid && bench.out.m_data[0] == 1);
    send_frame(64);
    expect_frame(64);
    expect_no_frame();
}

static void test_late(void **state)
{
    (void)state;
    set_up(&plain);
    send_beat(1, ALL_BYTES, false);
    for (uint32_t i = 0; i < HDL_LATE_CYCLES - 1; i++) {
        rest();
    }
    assert_int_equal(hdl_port_counters(bench.port)->rules[HDL_LATE], 0);
    rest();
    expect_broken(HDL_LATE, bench.now_ps);
    rest();
    assert_int_equal(hdl_port_counters(bench.port)->rules[HDL_LATE], 1);
    send_beat(2, ALL_BYTES, true);
    struct hdl_frame frame;
    assert_true(hdl_port_pull(bench.port, &frame)); /* It was a warning. */
}

/* FER-122, FER-124: frames that are too long or that the design calls bad: each is counted
 * and not delivered, and the good ones between them are. */
static void test_bad_frames(void **state)
{
    (void)state;
    set_up(&plain);
    send_frame(1519);
    send_frame(70);
    bench.in.s_user = true;
    send_frame(80);
    bench.in.s_user = false;
    send_frame(90);
    send_frame(1518);
    rest();
    expect_frame(70);
    expect_frame(90);
    expect_frame(1518);
    expect_no_frame();
    const struct hdl_counters *counters = hdl_port_counters(bench.port);
    assert_int_equal(counters->bad, 2);
    assert_int_equal(counters->sent_frames, 3);
    assert_int_equal(counters->rules[HDL_OVERSIZE], 1);
}

/* Every rule has words; the numbers of violations that are kept are bounded. */
static void test_texts(void **state)
{
    (void)state;
    struct hdl_violation violation;
    for (uint32_t i = 0; i < HDL_RULES; i++) {
        const struct hdl_rule_text *text = hdl_rule_text(i);
        assert_true(strlen(text->name) > 0 && strlen(text->says) > 0 && strlen(text->clause) > 0);
    }
    set_up(&plain);
    for (uint32_t i = 0; i < 100; i++) {
        send_beat(1, 0x7f, false);
    }
    uint32_t told = 0;
    while (hdl_port_violation(bench.port, &violation)) {
        told++;
    }
    assert_int_equal(told, HDL_VIOLATIONS_KEPT);
    assert_int_equal(hdl_port_counters(bench.port)->rules[HDL_KEEP_PART], 100);
}

/* -- Time ---------------------------------------------------------------------------------------*/

/* The mean rate of the stream's bytes in Gb/s, when frames of `bytes` follow one another. */
static double rate_of(const struct hdl_port_config *config, uint32_t bytes)
{
    enum {
        FRAMES = 400
    };
    struct hdl_frame frame;
    uint64_t first_ps = 0;
    set_up(config);
    for (uint32_t i = 0; i <= FRAMES; i++) {
        send_frame(bytes);
        assert_true(hdl_port_pull(bench.port, &frame));
        first_ps = i == 0 ? frame.at_ps : first_ps;
    }
    return 8e3 * FRAMES * bytes / (double)(frame.at_ps - first_ps);
}

/* FER-128: 1,514 bytes of stream take 1,538 on the line; 60 take 84; a line that is twice as
 * slow. */
static void test_line(void **state)
{
    (void)state;
    struct hdl_port_config line = plain;
    line.line_fs_per_byte = LINE_10G;
    assert_float_equal(rate_of(&line, 1514), 10.0 * 1514 / 1538, 0.0098);
    assert_float_equal(rate_of(&line, 60), 10.0 * 60 / 84, 0.0071);
    assert_float_equal(rate_of(&line, 20), 10.0 * 20 / 84, 0.0024);
    line.line_fs_per_byte = 2 * LINE_10G;
    assert_float_equal(rate_of(&line, 1514), 5.0 * 1514 / 1538, 0.0049);
}

/* The last byte of the first frame leaves the line with its preamble, padding and FCS. */
static void test_leaving(void **state)
{
    (void)state;
    struct hdl_port_config line = plain;
    struct hdl_frame frame;
    line.line_fs_per_byte = LINE_10G;
    set_up(&line);
    rest();
    const uint64_t begin_ps = bench.now_ps + CYCLE_PS;
    send_frame(24);
    assert_true(hdl_port_pull(bench.port, &frame));
    assert_int_equal(frame.at_ps, begin_ps + (8 + 64) * 800);
}

/* FER-153, FER-132: what comes at t is seen at the first edge after t. */
static void test_strictly_after(void **state)
{
    (void)state;
    static const uint8_t bytes[64];
    for (uint32_t early = 0; early < 2; early++) {
        set_up(&plain);
        const struct hdl_frame frame = {
            .at_ps = 2 * CYCLE_PS - early, .data = bytes, .bytes = sizeof(bytes)};
        assert_true(hdl_port_push(bench.port, &frame));
        rest();
        assert_false(bench.out.m_valid);
        rest();
        assert_int_equal(bench.out.m_valid, early);
        rest();
        assert_true(bench.out.m_valid);
        assert_int_equal(bench.out.m_keep[0], ALL_BYTES);
    }
}

/* Frames to the design: the queue is bounded, and beats come one a cycle. */
static void test_towards(void **state)
{
    (void)state;
    static const uint8_t bytes[2000];
    set_up(&plain);
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 80}));
    }
    assert_false(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 80}));
    assert_int_equal(hdl_port_counters(bench.port)->refused, 1);
    bench.in.m_ready = true;
    for (uint32_t i = 0; i < 41; i++) {
        rest();
    }
    assert_int_equal(hdl_port_counters(bench.port)->beats_received, 40);
    assert_int_equal(hdl_port_counters(bench.port)->received_frames, 4);
    set_up(&plain);
    assert_false(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 1519}));
    const struct hdl_frame bad = {.data = bytes, .bytes = 60, .bad = true};
    assert_true(hdl_port_push(bench.port, &bad));
    for (uint32_t i = 0; i < 8; i++) {
        rest();
        assert_false(bench.out.m_user); /* Nobody takes the first beat. */
    }
    bench.in.m_ready = true;
    for (uint32_t i = 0; i < 7; i++) {
        rest();
    }
    assert_true(bench.out.m_last && bench.out.m_user);
    assert_int_equal(bench.out.m_keep[0], 0x0f);
}

/* FER-123: nobody pads a frame that was cut on its way, unless it has no byte at all. */
static void test_cut(void **state)
{
    (void)state;
    static const uint8_t bytes[60] = {1, 2, 3};
    const struct hdl_frame cut = {.data = bytes, .bytes = 9, .bad = true};
    const struct hdl_frame empty = {.data = bytes, .bad = true};
    set_up(&plain);
    assert_true(hdl_port_push(bench.port, &cut) && hdl_port_push(bench.port, &empty));
    bench.in.m_ready = true;
    rest();
    assert_true(bench.out.m_valid && !bench.out.m_last);
    rest();
    assert_true(bench.out.m_valid && bench.out.m_last && bench.out.m_user);
    assert_int_equal(bench.out.m_keep[0], 1);
    for (uint32_t i = 0; i < 9; i++) {
        rest();
    }
    assert_false(bench.out.m_valid);
    assert_int_equal(hdl_port_counters(bench.port)->received_bytes, 9 + 60);
    assert_int_equal(hdl_port_counters(bench.port)->padded, 1);
}

/* The edges at which beats of frames of 100 bytes appear, pushed together as of `at_ps`. */
static void towards(const struct hdl_port_config *config, uint64_t at_ps, uint64_t *seen_ps,
                    uint32_t beats)
{
    static const uint8_t bytes[100];
    const struct hdl_frame frame = {.at_ps = at_ps, .data = bytes, .bytes = 100, .bad = true};
    set_up(config);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(hdl_port_push(bench.port, &frame));
    }
    bench.in.m_ready = true;
    for (uint32_t beat = 0; beat < beats;) {
        rest();
        if (bench.out.m_valid) {
            assert_int_equal(bench.out.m_last, beat % 13 == 12);
            assert_true(bench.out.m_user || !bench.out.m_last);
            seen_ps[beat++] = bench.now_ps;
        }
    }
}

/* FER-129: a frame that has come whole appears in one beat after the other. With cut-through, each
 * beat appears at the first edge after its last byte has come, and the last one, which is good or
 * bad, after the FCS; frames follow one another as on the line. */
static void test_cut_through(void **state)
{
    (void)state;
    struct hdl_port_config config = plain;
    uint64_t seen_ps[39];
    config.line_fs_per_byte = LINE_10G;
    towards(&config, 10000, seen_ps, COUNT_OF(seen_ps));
    for (uint64_t beat = 0; beat < COUNT_OF(seen_ps); beat++) {
        assert_int_equal(seen_ps[beat], (2 + beat) * CYCLE_PS);
    }
    config.cut_through = true;
    for (uint64_t fs_per_byte = LINE_10G; fs_per_byte <= 3 * LINE_10G;
         fs_per_byte += LINE_10G / 2) {
        config.line_fs_per_byte = fs_per_byte;
        towards(&config, 10000, seen_ps, COUNT_OF(seen_ps));
        for (uint64_t beat = 0; beat < COUNT_OF(seen_ps); beat++) {
            const uint64_t in_frame = beat % 13, begin = beat / 13 * (8 + 100 + 4 + 12);
            const uint64_t bytes = begin + 8 + (in_frame == 12 ? 104 : 8 * in_frame + 8);
            const uint64_t come_ps = 10000 + bytes * fs_per_byte / 1000;
            assert_int_equal(seen_ps[beat], (come_ps / CYCLE_PS + 1) * CYCLE_PS);
        }
    }
}

/* The gaps in a frame to the design, one bit for each cycle; a frame of the design's own may be
 * sent meanwhile. */
static uint64_t gaps_of(const struct hdl_port_config *config, bool sends)
{
    static const uint8_t bytes[400];
    uint64_t valid = 0;
    set_up(config);
    assert_true(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 400}));
    bench.in.m_ready = true;
    for (uint32_t i = 0; i < 64; i++) {
        drive(sends, 0, ALL_BYTES, false);
        valid |= (uint64_t)bench.out.m_valid << i;
    }
    return valid;
}

/* FER-127, FER-154: what one direction draws does not depend on the other one; a seed does. */
static void test_streams(void **state)
{
    (void)state;
    struct hdl_port_config config = plain;
    config.gap_ppm = config.ready_ppm = 500000;
    const uint64_t alone = gaps_of(&config, false);
    assert_true(gaps_of(&config, true) == alone);
    config.ready_ppm = 1000000;
    assert_true(gaps_of(&config, true) == alone);
    config.seed++;
    assert_true(gaps_of(&config, false) != alone);
}

/* Frames that began between two times. */
static uint64_t begun_until(uint64_t until_ps)
{
    const uint64_t before = hdl_port_counters(bench.port)->sent_frames;
    while (bench.now_ps < until_ps) {
        if (bench.out.s_ready) {
            send_frame(60);
        } else {
            rest();
        }
    }
    return hdl_port_counters(bench.port)->sent_frames - before;
}

/* The wave shows the numbers that frames have in captures. */
static void test_numbers(void **state)
{
    (void)state;
    static const uint8_t bytes[64];
    set_up(&plain);
    bench.in.m_ready = true;
    for (uint32_t i = 1; i <= 3; i++) {
        send_beat(1, 0x7f, false); /* It breaks a rule, and is not delivered. */
        send_beat(1, ALL_BYTES, true);
        assert_int_equal(bench.out.sent_frame, 0);
        send_beat(1, ALL_BYTES, false);
        assert_int_equal(bench.out.sent_frame, i);
        send_beat(2, ALL_BYTES, true);
        assert_true(hdl_port_push(bench.port, &(struct hdl_frame){.data = bytes, .bytes = 64}));
        rest();
        assert_int_equal(bench.out.received_frame, i);
        for (uint32_t beat = 0; beat < 8; beat++) {
            rest();
        }
        assert_int_equal(bench.out.received_frame, 0);
    }
}

/* X or Z is told where it counts: at a handshake after reset began, and with a beat taken. */
static void test_unknown(void **state)
{
    (void)state;
    set_up(&plain);
    const uint64_t *told = &hdl_port_counters(bench.port)->rules[HDL_UNKNOWN];
    bench.in.unknown_handshake = true;
    bench.in.reset = true;
    edge();
    assert_int_equal(*told, 0);
    edge();
    assert_int_equal(*told, 1);
    bench.in.reset = false;
    edge();
    assert_int_equal(*told, 2);
    bench.in.unknown_handshake = false;
    bench.in.unknown_beat = true; /* Nobody looks at it without valid, nor before ready. */
    rest();
    assert_int_equal(*told, 2);
    drive(true, 7, ALL_BYTES, false);
    assert_int_equal(*told, 3);
    bench.in.unknown_beat = false;
    drive(true, 7, ALL_BYTES, true);
    rest();
    assert_int_equal(*told, 3);
    assert_int_equal(hdl_port_counters(bench.port)->sent_frames, 0);
    assert_int_equal(hdl_port_counters(bench.port)->bad, 1);
}

static void pause(uint32_t class, uint32_t quanta, uint64_t at_ps)
{
    const struct hdl_pause asked = {.at_ps = at_ps, .priority = class, .quanta = quanta};
    assert_true(hdl_port_pause(bench.port, &asked));
}

/* FER-126: a pause of 100 quanta at 10 Gb/s holds frames back for 5.12 us, and no longer; a
 * class that the port does not heed holds nothing back, but its wire tells. */
static void test_pause(void **state)
{
    (void)state;
    struct hdl_port_config line = plain;
    line.line_fs_per_byte = LINE_10G;
    line.frames = 256;
    line.paused_by = 1u << HDL_LINK | 1u << 3;
    for (uint32_t class = 0; class < HDL_CLASSES; class ++) {
        const bool heeds = (line.paused_by >> class & 1) != 0;
        set_up(&line);
        assert_in_range(begun_until(1000000), 10, 20);
        const uint64_t begin_ps = bench.now_ps;
        pause(class, 100, begin_ps);
        uint64_t during = begun_until(begin_ps + 2560000);
        assert_int_equal(bench.out.pause, 1u << class);
        during += begun_until(begin_ps + 5120000);
        if (heeds) {
            assert_in_range(during, 0, 1);
        } else {
            assert_in_range(during, 70, 78);
        }
        assert_in_range(begun_until(begin_ps + 5120000 + 2 * 84 * 800), 1, 3);
        assert_int_equal(bench.out.pause, 0);
        pause(class, 65535, bench.now_ps);
        rest();
        pause(class, 0, bench.now_ps);
        rest();
        assert_int_equal(bench.out.pause, 0);
    }
}

/* FER-153: pauses that are known ahead begin at their own times, each after the one before it. */
static void test_pause_ahead(void **state)
{
    (void)state;
    struct hdl_port_config line = plain;
    line.line_fs_per_byte = LINE_10G;
    set_up(&line);
    pause(3, 100, 0);
    pause(3, 100, 4000000);
    pause(3, 0, 6000000);
    uint64_t paused = 0;
    while (bench.now_ps < 8000000) {
        edge();
        const bool expected = bench.now_ps <= 6000000;
        assert_int_equal(bench.out.pause, expected ? 1u << 3 : 0);
        paused += expected;
    }
    assert_int_equal(paused, 6000000 / CYCLE_PS);
    assert_int_equal(hdl_port_counters(bench.port)->pauses, 2);
    for (uint32_t i = 0; i < HDL_PAUSES_AHEAD; i++) {
        pause(1, 1, bench.now_ps + i);
    }
    const struct hdl_pause more = {.at_ps = bench.now_ps + 100, .priority = 1, .quanta = 1};
    assert_false(hdl_port_pause(bench.port, &more));
    assert_int_equal(hdl_port_counters(bench.port)->refused, 1);
    edge();
    assert_true(hdl_port_pause(bench.port, &more));
}

static void test_configuration(void **state)
{
    (void)state;
    static const struct hdl_port_config wrong[] = {
        {.width_bits = 4, .frame_bytes = 1518, .frames = 8},
        {.width_bits = 96, .frame_bytes = 1518, .frames = 8},
        {.width_bits = 2048, .frame_bytes = 1518, .frames = 8},
        {.width_bits = 64, .frame_bytes = 59, .frames = 8},
        {.width_bits = 64, .frame_bytes = 16385, .frames = 8},
        {.width_bits = 64, .frame_bytes = 1518, .frames = 1},
        {.width_bits = 64, .frame_bytes = 1518, .frames = 8},
        {.width_bits = 64, .frame_bytes = 1518, .frames = 8, .ready_ppm = 1000001},
        {.width_bits = 64, .frame_bytes = 1518, .frames = 8, .gap_ppm = 1000000}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_non_null(hdl_port_config_error(&wrong[i]));
    }
    assert_null(hdl_port_config_error(&plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_waiting),       cmocka_unit_test(test_reset),
        cmocka_unit_test(test_late),          cmocka_unit_test(test_bad_frames),
        cmocka_unit_test(test_texts),         cmocka_unit_test(test_line),
        cmocka_unit_test(test_leaving),       cmocka_unit_test(test_strictly_after),
        cmocka_unit_test(test_towards),       cmocka_unit_test(test_cut),
        cmocka_unit_test(test_streams),       cmocka_unit_test(test_cut_through),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_ahead),   cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_configuration),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(bench.memory);
    return failed;
}
