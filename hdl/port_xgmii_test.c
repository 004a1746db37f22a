/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A port of XGMII gives and takes frames at the line's rate, in every lane; each rule that
 *         is broken is noticed by its name, once, and its frame alone is not delivered.
 * Method  A design that sends back each word as it came; and words that a test makes by hand.
 *         FER-136, FER-137.
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
#include "base/prng.h"
#include "hdl/port.h"
#include "hdl/xgmii.h"
#include "wire/icrc.h"

#define CYCLE_PS 6400
#define BYTE_PS  800
#define LONGEST  HDL_FRAME_BYTES_MAX

static struct bench {
    struct hdl_port *port;
    void *memory;
    uint64_t now_ps;
    uint32_t data[2], control; /* The words that `in` points to. */
    struct hdl_in in;
    struct hdl_out out;
    struct prng prng;
    struct xgmii_word word; /* Lanes below `lane` are filled. */
    uint32_t lane;
} bench;

static const struct hdl_port_config plain = {.width_bits = 64,
                                             .frame_bytes = LONGEST,
                                             .frames = 16,
                                             .line_fs_per_byte = BYTE_PS * 1000,
                                             .ready_ppm = 1000000,
                                             .seed = 1,
                                             .xgmii = true};

static uint8_t contents[LONGEST + 256];

static void set_up(void)
{
    const size_t bytes = hdl_port_bytes(&plain);
    free(bench.memory);
    bench = (struct bench){.memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(bytes))};
    assert_non_null(bench.memory);
    bench.port = hdl_port_init(&plain, bench.memory);
    prng_init(&bench.prng, 1);
    for (uint32_t i = 0; i < sizeof(contents); i++) {
        contents[i] = (uint8_t)prng_next(&bench.prng);
    }
}

static const struct hdl_counters *counters(void)
{
    return hdl_port_counters(bench.port);
}

static void edge(const struct xgmii_word *word)
{
    bench.control = word->control;
    memcpy(bench.data, word->data, sizeof(bench.data));
    bench.in.s_data = bench.data;
    bench.in.s_keep = &bench.control;
    bench.now_ps += CYCLE_PS;
    hdl_port_edge(bench.port, bench.now_ps, &bench.in, &bench.out);
}

/* The word that the port drives. */
static struct xgmii_word driven(void)
{
    struct xgmii_word word = {.control = (uint8_t)bench.out.m_keep[0]};
    memcpy(word.data, bench.out.m_data, sizeof(word.data));
    return word;
}

static void rest(uint32_t words)
{
    static const struct xgmii_word idle = {{7, 7, 7, 7, 7, 7, 7, 7}, 0xff};
    for (uint32_t i = 0; i < words; i++) {
        edge(&idle);
    }
}

static bool push(const uint8_t *data, uint32_t bytes, bool bad)
{
    return hdl_port_push(
        bench.port,
        &(struct hdl_frame){.at_ps = bench.now_ps, .data = data, .bytes = bytes, .bad = bad});
}

static void expect_frame(const uint8_t *data, uint32_t bytes)
{
    struct hdl_frame frame;
    assert_true(hdl_port_pull(bench.port, &frame));
    assert_int_equal(frame.bytes, bytes < 60 ? 60 : bytes);
    assert_memory_equal(frame.data, data, bytes);
    for (uint32_t i = bytes; i < frame.bytes; i++) {
        assert_int_equal(frame.data[i], 0);
    }
}

static void expect_no_frame(void)
{
    struct hdl_frame frame;
    assert_false(hdl_port_pull(bench.port, &frame));
}

static void expect_rules(enum hdl_rule broken)
{
    for (uint32_t i = 0; i < HDL_RULES; i++) {
        assert_int_equal(counters()->rules[i], i == broken);
    }
}

/* -- There and back -----------------------------------------------------------------------------*/

/* Each word comes back with the next edge. Frames of these lengths, one right behind the other. */
static uint64_t go_round(const uint32_t *bytes, uint32_t count)
{
    uint32_t pushed = 0, pulled = 0;
    uint64_t first_ps = 0, last_ps = 0;
    struct hdl_frame frame;
    rest(4);
    while (pulled < count) {
        while (pushed < count && hdl_port_room(bench.port) > 0) {
            assert_true(push(contents + pushed % 256, bytes[pushed], false));
            pushed++;
        }
        const struct xgmii_word word = driven();
        edge(&word);
        while (hdl_port_pull(bench.port, &frame)) {
            assert_int_equal(frame.bytes, bytes[pulled] < 60 ? 60 : bytes[pulled]);
            assert_memory_equal(frame.data, contents + pulled % 256, bytes[pulled]);
            first_ps = pulled == 0 ? frame.at_ps : first_ps;
            last_ps = frame.at_ps;
            pulled++;
        }
    }
    expect_rules(HDL_RULES);
    assert_int_equal(counters()->received_frames, count);
    assert_int_equal(counters()->sent_frames, count);
    assert_int_equal(counters()->bad + counters()->refused, 0);
    return last_ps - first_ps;
}

/* Frames of all lengths. */
static void test_lengths(void **state)
{
    (void)state;
    static uint32_t bytes[2000];
    set_up();
    for (uint32_t i = 0; i < COUNT_OF(bytes); i++) {
        bytes[i] = i < 1600 ? 1 + i : 1 + (uint32_t)prng_below(&bench.prng, LONGEST);
    }
    (void)go_round(bytes, COUNT_OF(bytes));
}

/* Preamble, FCS, and twelve octets of gap on average: a line of 10 Gb/s is full. */
static void test_rate(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {60, 61, 62, 63, 64, 65, 66, 67, 1514, 9000};
    for (uint32_t i = 0; i < COUNT_OF(lengths); i++) {
        uint32_t bytes[401];
        set_up();
        for (uint32_t k = 0; k < COUNT_OF(bytes); k++) {
            bytes[k] = lengths[i];
        }
        const uint64_t took_ps = go_round(bytes, COUNT_OF(bytes));
        const uint64_t exact_ps = UINT64_C(400) * (lengths[i] + 24) * BYTE_PS;
        assert_in_range(took_ps, exact_ps - 3 * BYTE_PS, exact_ps + 3 * BYTE_PS);
    }
}

/* A frame begins at the first edge after its time, and its last octet leaves the line where it
 * stands in its word. */
static void test_times(void **state)
{
    (void)state;
    struct hdl_frame frame;
    for (uint32_t bytes = 60; bytes < 76; bytes++) {
        set_up();
        rest(3);
        assert_true(push(contents, bytes, false));
        assert_int_equal(bench.out.m_data[0], 0x07070707);
        rest(1);
        assert_int_equal(bench.out.m_data[0], 0x555555fb);
        assert_int_equal(bench.out.received_frame, 1);
        const uint64_t start_ps = bench.now_ps + CYCLE_PS; /* It comes back at the next edge. */
        while (!hdl_port_pull(bench.port, &frame)) {
            const struct xgmii_word word = driven();
            edge(&word);
        }
        assert_int_equal(frame.at_ps, start_ps + (8 + bytes + 4) * BYTE_PS);
        assert_int_equal(bench.out.received_frame, 0);
    }
}

/* A frame that comes as a bad one has a wrong FCS, and comes back as one. */
static void test_bad(void **state)
{
    (void)state;
    set_up();
    rest(1);
    assert_true(push(contents, 100, false));
    assert_true(push(contents, 200, true));
    assert_true(push(contents, 300, false));
    for (uint32_t i = 0; i < 200; i++) {
        const struct xgmii_word word = driven();
        edge(&word);
    }
    expect_frame(contents, 100);
    expect_frame(contents, 300);
    expect_no_frame();
    expect_rules(HDL_FCS);
    assert_int_equal(counters()->bad, 1);
}

/* FER-137: one that was cut on its way goes over the line as short as it is, and is told. */
static void test_cut(void **state)
{
    (void)state;
    for (uint32_t bytes = 1; bytes < 70; bytes++) {
        set_up();
        rest(1);
        assert_true(push(contents, bytes, true));
        assert_true(push(contents, 300, false));
        for (uint32_t i = 0; i < 100; i++) {
            const struct xgmii_word word = driven();
            edge(&word);
        }
        expect_frame(contents, 300);
        expect_no_frame();
        expect_rules(bytes < 60 ? HDL_RUNT : HDL_FCS);
    }
}

/* -- Rules --------------------------------------------------------------------------------------*/

static void put(uint8_t octet, bool control)
{
    const uint32_t lane = bench.lane;
    struct xgmii_word *word = &bench.word;
    word->data[lane] = octet;
    word->control = (uint8_t)((word->control & ~(1u << lane)) | (uint32_t)control << lane);
    bench.lane = (lane + 1) % 8;
    if (bench.lane == 0) {
        edge(word);
    }
}

static void put_idles(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put(XGMII_IDLE, true);
    }
}

/* An octet of a frame becomes this one. Octet 0 is start. */
struct injury {
    uint32_t at;
    uint8_t octet;
    bool control;
    enum hdl_rule rule;
};

static void put_frame(const struct injury *injury, uint32_t bytes)
{
    const uint32_t fcs = icrc_extend(0, contents, bytes);
    for (uint32_t i = 0; i <= 8 + bytes + 4; i++) {
        const bool control = i == 0 || i == 8 + bytes + 4;
        const int octet = i == 0           ? XGMII_START
                          : i < 7          ? 0x55
                          : i == 7         ? 0xd5
                          : i < 8 + bytes  ? contents[i - 8]
                          : i < 12 + bytes ? (int)(fcs >> 8 * (i - 8 - bytes) & 0xff)
                                           : XGMII_TERMINATE;
        const bool injured = injury != NULL && injury->at == i;
        put(injured ? injury->octet : (uint8_t)octet, injured ? injury->control : control);
    }
}

/* To the beginning of a word, and a gap. */
static void settle(void)
{
    put_idles((8 - bench.lane) % 8 + 16);
}

/* Each frame that breaks a rule lies between two good ones. Terminate is octet 92, in lane 4. */
static void test_rules(void **state)
{
    (void)state;
    static const struct injury injuries[] = {{3, 0x54, false, HDL_PREAMBLE},
                                             {7, 0x55, false, HDL_PREAMBLE},
                                             {7, XGMII_TERMINATE, true, HDL_PREAMBLE},
                                             {7, XGMII_ERROR, true, HDL_ERROR},
                                             {42, XGMII_ERROR, true, HDL_ERROR},
                                             {42, XGMII_TERMINATE, true, HDL_RUNT},
                                             {80, XGMII_TERMINATE, true, HDL_FCS},
                                             {92, XGMII_IDLE, true, HDL_TERMINATE},
                                             {91, 0xaa, false, HDL_FCS},
                                             {36, 0xaa, false, HDL_FCS}};
    for (uint32_t i = 0; i < COUNT_OF(injuries); i++) {
        const struct injury *injury = &injuries[i];
        struct hdl_violation violation;
        set_up();
        contents[36 - 8] = 0x55; /* The injury changes it. */
        put_frame(NULL, 80);
        settle();
        const uint64_t begun = counters()->edges;
        put_frame(injury, 80);
        settle();
        put_frame(NULL, 80);
        settle();
        expect_frame(contents, 80);
        expect_frame(contents, 80);
        expect_no_frame();
        assert_int_equal(counters()->rules[injury->rule], 1);
        assert_int_equal(counters()->bad, 1);
        assert_true(hdl_port_violation(bench.port, &violation));
        assert_int_equal(violation.rule, injury->rule);
        assert_int_equal(violation.frame, 2);
        const uint32_t told_at = injury->rule == HDL_FCS && injury->octet == 0xaa ? 92 : injury->at;
        assert_int_equal(violation.edge, begun + told_at / 8 + 1);
        assert_int_equal(violation.at_ps, violation.edge * CYCLE_PS);
        /* Behind a terminate that comes too early the rest of the frame is no idle. */
        const bool strays = injury->octet == XGMII_TERMINATE;
        assert_int_equal(hdl_port_violation(bench.port, &violation), strays);
        assert_true(!strays || violation.rule == HDL_STRAY);
    }
}

/* Gaps, lanes and lengths on both sides of what is allowed. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        uint32_t first, gap, second; /* Octets of frames, and idles between them. */
        enum hdl_rule rule;
    } cases[] = {{60, 4, 80, HDL_START_LANE}, {62, 4, 80, HDL_START_LANE},
                 {63, 4, 80, HDL_RULES},      {67, 4, 80, HDL_RULES},
                 {60, 3, 80, HDL_GAP},        {64, 3, 80, HDL_GAP},
                 {60, 7, 59, HDL_RUNT},       {60, 7, 60, HDL_RULES},
                 {60, 7, LONGEST, HDL_RULES}, {60, 7, LONGEST + 1, HDL_OVERSIZE}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        set_up();
        put_frame(NULL, cases[i].first);
        put_idles(cases[i].gap);
        put_frame(NULL, cases[i].second);
        settle();
        put_frame(NULL, 61);
        settle();
        expect_frame(contents, cases[i].first);
        if (cases[i].rule == HDL_RULES) {
            expect_frame(contents, cases[i].second);
        }
        expect_frame(contents, 61);
        expect_no_frame();
        expect_rules(cases[i].rule);
        assert_int_equal(counters()->bad, cases[i].rule != HDL_RULES);
    }
}

/* Octets between frames that are none of what is allowed there: the frames are good. */
static void test_stray(void **state)
{
    (void)state;
    static const struct {
        uint8_t octet;
        bool control;
    } strays[] = {{XGMII_IDLE, false}, {XGMII_TERMINATE, true}, {XGMII_ERROR, true}, {0x1c, true}};
    for (uint32_t i = 0; i < COUNT_OF(strays); i++) {
        set_up();
        put_frame(NULL, 80);
        put_idles(2);
        put(strays[i].octet, strays[i].control);
        put(strays[i].octet, strays[i].control);
        settle();
        put_frame(NULL, 80);
        settle();
        expect_frame(contents, 80);
        expect_frame(contents, 80);
        expect_rules(HDL_STRAY);
        assert_int_equal(counters()->rules[HDL_STRAY], 1);
        assert_int_equal(counters()->bad, 0);
    }
}

/* Words of the design that are not XGMII: nothing is delivered. */
static void test_noise(void **state)
{
    (void)state;
    set_up();
    for (uint32_t i = 0; i < 200000; i++) {
        struct xgmii_word word = {.control = (uint8_t)prng_next(&bench.prng)};
        for (uint32_t k = 0; k < 8; k++) {
            static const uint8_t likely[] = {0x07, 0xfb, 0xfd, 0xfe, 0x55, 0xd5, 0x9c, 0};
            word.data[k] = likely[prng_below(&bench.prng, COUNT_OF(likely))];
        }
        edge(&word);
    }
    expect_no_frame();
    assert_true(counters()->bad > 1000);
    assert_true(counters()->rules[HDL_STRAY] > 1000);
}

/* -- Reset, room, link --------------------------------------------------------------------------*/

/* FER-125: the frame in progress is lost and counted, in both directions; the next one waits. */
static void test_reset(void **state)
{
    (void)state;
    static const struct xgmii_word start = {{0xfb, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5}, 1};
    set_up();
    assert_true(push(contents, 100, false));
    assert_true(push(contents, 110, false));
    edge(&start);
    assert_int_equal(bench.out.sent_frame, 1);
    assert_int_equal(bench.out.received_frame, 1);
    bench.in.reset = true;
    edge(&start);
    assert_int_equal(bench.out.m_keep[0], 0xff);
    assert_int_equal(bench.out.sent_frame + bench.out.received_frame, 0);
    edge(&start);
    bench.in.reset = false;
    assert_int_equal(counters()->lost_in_reset[0], 1);
    assert_int_equal(counters()->lost_in_reset[1], 1);
    rest(1);
    for (uint32_t i = 0; i < 50; i++) {
        const struct xgmii_word word = driven();
        edge(&word);
    }
    expect_rules(HDL_RULES);
    assert_int_equal(counters()->received_frames, 1);
}

/* Nobody pulls: what finds no room is refused and counted, and nothing else is lost. */
static void test_room(void **state)
{
    (void)state;
    set_up();
    for (uint32_t i = 0; i < 20; i++) {
        put_frame(NULL, 60 + i);
        settle();
    }
    assert_int_equal(counters()->refused, 4);
    assert_int_equal(counters()->bad, 0);
    for (uint32_t i = 0; i < 16; i++) {
        expect_frame(contents, 60 + i);
    }
    put_frame(NULL, 99);
    settle();
    expect_frame(contents, 99);
    expect_rules(HDL_RULES);
}

/* While the design tells of a local fault, frames wait for it, and it is answered. */
static void test_link(void **state)
{
    (void)state;
    static const struct xgmii_word fault = {{0x9c, 0, 0, 1, 0x9c, 0, 0, 1}, 0x11};
    set_up();
    rest(1);
    assert_true(bench.out.link_up);
    edge(&fault);
    assert_true(bench.out.link_up);
    edge(&fault);
    assert_false(bench.out.link_up);
    assert_true(push(contents, 70, false));
    for (uint32_t i = 0; i < 30; i++) {
        edge(&fault);
        assert_int_equal(bench.out.m_data[0], 0x0200009c);
    }
    rest(63);
    assert_false(bench.out.link_up);
    rest(1);
    assert_true(bench.out.link_up);
    assert_int_equal(bench.out.m_data[0], 0x555555fb);
    expect_rules(HDL_RULES);
}

static void test_configuration(void **state)
{
    (void)state;
    struct hdl_port_config wide = plain;
    wide.width_bits = 128;
    assert_non_null(hdl_port_config_error(&wide));
    assert_null(hdl_port_config_error(&plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_rate),
        cmocka_unit_test(test_times),   cmocka_unit_test(test_bad),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_cut),
        cmocka_unit_test(test_rules),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_stray),   cmocka_unit_test(test_noise),
        cmocka_unit_test(test_reset),   cmocka_unit_test(test_room),
        cmocka_unit_test(test_link),    cmocka_unit_test(test_configuration),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(bench.memory);
    return failed;
}
