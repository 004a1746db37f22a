/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whoever uses a mirror sees what it would see at the port itself: the same frames, with
 *         their times, the same violations and counters, and the same frames are refused; and what
 *         cannot have happened there is refused (FER-135).
 * Method  One port, and another one behind a mirror, before the same random design and world.
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
#include "hdl/mirror.h"

enum {
    CYCLE_PS = 6400,
    EDGES = 30000
};

static const struct hdl_port_config config = {.width_bits = 64,
                                              .frame_bytes = 1518,
                                              .frames = 4,
                                              .line_fs_per_byte = 800000,
                                              .paused_by = 1u << HDL_LINK,
                                              .ready_ppm = 700000,
                                              .gap_ppm = 100000,
                                              .seed = 7};

/* A port, and a design that sends back what it gets, and breaks a rule now and then. */
struct end {
    struct hdl_port *port;
    struct prng prng;
    struct hdl_out out;
};

static struct hdl_port *make_port(void)
{
    void *memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(hdl_port_bytes(&config)));
    assert_non_null(memory);
    return hdl_port_init(&config, memory);
}

static void make_end(struct end *end)
{
    *end = (struct end){.port = make_port()};
    prng_init(&end->prng, 3);
}

static void edge(struct end *end, uint64_t now_ps)
{
    const struct hdl_out before = end->out;
    const struct hdl_in in = {.s_data = before.m_data,
                              .s_keep = before.m_keep,
                              .reset = now_ps <= 5 * CYCLE_PS || prng_chance(&end->prng, 300),
                              .s_valid = before.m_valid && !prng_chance(&end->prng, 500),
                              .s_last = before.m_last,
                              .m_ready = before.s_ready};
    hdl_port_edge(end->port, now_ps, &in, &end->out);
}

/* The world does the same to both. */
static bool push(struct hdl_port *port, struct prng *prng, uint64_t now_ps)
{
    uint8_t bytes[1600];
    struct hdl_frame frame = {.at_ps = now_ps + prng_below(prng, 20000), .data = bytes};
    frame.bytes = 14 + (uint32_t)prng_below(prng, 1586);
    for (uint32_t i = 0; i < frame.bytes; i++) {
        bytes[i] = (uint8_t)prng_next(prng);
    }
    if (prng_chance(prng, 300000)) {
        const struct hdl_pause pause = {now_ps + prng_below(prng, 20000), HDL_LINK, 3};
        assert_true(hdl_port_pause(port, &pause));
    }
    return hdl_port_push(port, &frame);
}

static void forward(struct hdl_port *mirror, struct hdl_port *there)
{
    struct hdl_frame frame;
    struct hdl_pause pause;
    while (hdl_mirror_next_frame(mirror, &frame)) {
        assert_true(hdl_port_push(there, &frame));
    }
    while (hdl_mirror_next_pause(mirror, &pause)) {
        assert_true(hdl_port_pause(there, &pause));
    }
}

static void reflect(struct hdl_port *mirror, struct hdl_port *there)
{
    struct hdl_frame frame;
    struct hdl_violation violation;
    while (hdl_port_pull(there, &frame)) {
        assert_true(hdl_mirror_on_frame(mirror, &frame));
    }
    while (hdl_port_violation(there, &violation)) {
        hdl_mirror_on_violation(mirror, &violation);
    }
    assert_true(hdl_mirror_on_counters(mirror, hdl_port_counters(there)));
}

static uint32_t compare(struct hdl_port *port, struct hdl_port *mirror)
{
    struct hdl_frame own, other;
    struct hdl_violation seen, told;
    uint32_t frames = 0;
    while (hdl_port_pull(port, &own)) {
        assert_true(hdl_port_pull(mirror, &other));
        assert_true(own.at_ps == other.at_ps);
        assert_int_equal(own.bytes, other.bytes);
        assert_memory_equal(own.data, other.data, own.bytes);
        frames++;
    }
    assert_false(hdl_port_pull(mirror, &other));
    while (hdl_port_violation(port, &seen)) {
        assert_true(hdl_port_violation(mirror, &told));
        assert_int_equal(seen.rule, told.rule);
        assert_true(seen.edge == told.edge && seen.frame == told.frame);
        assert_true(seen.at_ps == told.at_ps);
    }
    assert_false(hdl_port_violation(mirror, &told));
    assert_memory_equal(hdl_port_counters(port), hdl_port_counters(mirror),
                        sizeof(struct hdl_counters));
    return frames;
}

static void test_same(void **state)
{
    (void)state;
    struct end near, far;
    struct prng dice[2];
    struct hdl_port *mirror = make_port();
    uint32_t frames = 0;
    make_end(&near);
    make_end(&far);
    prng_init(&dice[0], 11);
    prng_init(&dice[1], 11);
    assert_int_equal(hdl_mirror_config(mirror)->seed, config.seed);
    for (uint64_t now_ps = CYCLE_PS; now_ps < EDGES * (uint64_t)CYCLE_PS; now_ps += CYCLE_PS) {
        edge(&near, now_ps);
        edge(&far, now_ps);
        reflect(mirror, far.port);
        frames += compare(near.port, mirror);
        if (now_ps / CYCLE_PS % 97 == 0) {
            assert_int_equal(push(near.port, &dice[0], now_ps), push(mirror, &dice[1], now_ps));
            forward(mirror, far.port);
        }
    }
    const struct hdl_counters *counters = hdl_port_counters(mirror);
    assert_true(frames > 100 && counters->refused > 0 && counters->pauses > 0);
    assert_true(counters->padded > 0 && counters->lost_in_reset[1] > 0);
    assert_true(counters->rules[HDL_WITHDRAWN] > 0);
    free(near.port);
    free(far.port);
    free(mirror);
}

/* A design took frames that it was not given, or gives some back; too long a frame, a bad one; too
 * many. */
static void test_refused(void **state)
{
    (void)state;
    struct hdl_port *mirror = make_port();
    uint8_t bytes[2000] = {0};
    struct hdl_frame frame = {.data = bytes, .bytes = 100};
    struct hdl_counters counters = {.received_frames = 1};
    assert_false(hdl_mirror_on_counters(mirror, &counters));
    assert_true(hdl_port_push(mirror, &frame));
    assert_false(hdl_mirror_on_counters(mirror, &counters));
    assert_true(hdl_mirror_next_frame(mirror, &frame));
    assert_true(hdl_mirror_on_counters(mirror, &counters));
    counters.received_frames = 0;
    assert_false(hdl_mirror_on_counters(mirror, &counters));
    assert_int_equal(hdl_port_counters(mirror)->received_frames, 1);
    frame.bytes = 1519;
    assert_false(hdl_mirror_on_frame(mirror, &frame));
    frame.bytes = 1518;
    frame.bad = true; /* Such a frame of the design stays there. */
    assert_false(hdl_mirror_on_frame(mirror, &frame));
    frame.bad = false;
    for (uint32_t i = 0; i < config.frames; i++) {
        assert_true(hdl_mirror_on_frame(mirror, &frame));
    }
    assert_false(hdl_mirror_on_frame(mirror, &frame));
    free(mirror);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
