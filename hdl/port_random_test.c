/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever the width, the pattern of ready and of valid, and the lengths of frames: every
 *         frame arrives on the other side, once, in order, with every byte; the port breaks no
 *         rule. FER-118, FER-120, FER-121.
 * Method  Random frames both ways, through a design that is a second, plain reading of the rules:
 *         it sends what it has and keeps what it gets. A cut of one byte's keep must be found.
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

enum {
    LONGEST = 9600,
    FRAMES = 400, /* A world's, each way. */
    CYCLE_PS = 3200
};

static const uint32_t widths[] = {8, 16, 32, 64, 128, 256, 512, 1024};

struct world {
    struct prng prng;
    struct hdl_port_config config;
    struct hdl_port *port;
    uint64_t now_ps;
    uint32_t bytes[2 * FRAMES]; /* Lengths: of frames of the design, and of those to it. */
    uint64_t seed;

    /* The design. */
    uint32_t valid_ppm, ready_ppm;
    uint32_t sending, sent_bytes; /* The frame that it sends, and how much of it was taken. */
    bool offers;
    uint32_t data[HDL_WIDTH_BITS_MAX / 32], keep[HDL_WIDTH_BITS_MAX / 256];
    bool last;
    uint32_t got, got_bytes;
    struct hdl_out before; /* The port's outputs before the edge. */

    uint32_t pushed, pulled;
    bool cuts; /* The design leaves out the last byte of its first frame's last beat. */
};

/* Byte `at` of a frame, known to both ends. */
static uint8_t byte_of(const struct world *world, uint32_t frame, uint32_t at)
{
    return (uint8_t)((world->seed + frame * 131 + at) * 2654435761u >> 13);
}

static void make_world(struct world *world, uint64_t seed)
{
    *world = (struct world){.seed = seed};
    prng_init(&world->prng, seed);
    struct prng *prng = &world->prng;
    world->config = (struct hdl_port_config){
        .width_bits = widths[prng_below(prng, COUNT_OF(widths))],
        .frame_bytes = LONGEST,
        .frames = 2 + (uint32_t)prng_below(prng, 6),
        .line_fs_per_byte = prng_below(prng, 3) * 400000,
        .ready_ppm =
            prng_chance(prng, 300000) ? 1000000 : 200000 + (uint32_t)prng_below(prng, 800000),
        .gap_ppm = prng_chance(prng, 500000) ? (uint32_t)prng_below(prng, 700000) : 0,
        .seed = seed};
    world->valid_ppm = 300000 + (uint32_t)prng_below(prng, 700001);
    world->ready_ppm = 300000 + (uint32_t)prng_below(prng, 700001);
    const uint32_t most = prng_chance(prng, 200000) ? LONGEST : 300;
    for (uint32_t i = 0; i < 2 * FRAMES; i++) {
        world->bytes[i] = 1 + (uint32_t)prng_below(prng, most);
    }
    const size_t bytes = hdl_port_bytes(&world->config);
    void *memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(bytes));
    assert_non_null(memory);
    world->port = hdl_port_init(&world->config, memory);
}

/* -- The design ---------------------------------------------------------------------------------*/

static uint32_t beat_bytes(const struct world *world)
{
    return world->config.width_bits / 8;
}

/* It offers the next beat of its frame. */
static void offer(struct world *world)
{
    const uint32_t left = world->bytes[world->sending] - world->sent_bytes;
    const uint32_t bytes = left < beat_bytes(world) ? left : beat_bytes(world);
    uint8_t data[HDL_WIDTH_BITS_MAX / 8], keep[HDL_WIDTH_BITS_MAX / 64] = {0};
    for (uint32_t i = 0; i < beat_bytes(world); i++) {
        data[i] = i < bytes ? byte_of(world, world->sending, world->sent_bytes + i)
                            : (uint8_t)prng_next(&world->prng);
        keep[i / 8] |= (uint8_t)((i < bytes) << i % 8);
    }
    world->last = bytes == left;
    if (world->cuts && world->sending == 0 && world->last && bytes > 1) {
        keep[(bytes - 1) / 8] &= (uint8_t) ~(1u << (bytes - 1) % 8);
    }
    memcpy(world->data, data, sizeof(data));
    memcpy(world->keep, keep, sizeof(keep));
    world->offers = true;
}

static void sent(struct world *world)
{
    const uint32_t left = world->bytes[world->sending] - world->sent_bytes;
    world->sent_bytes += left < beat_bytes(world) ? left : beat_bytes(world);
    world->offers = false;
    if (world->last) {
        world->sending++;
        world->sent_bytes = 0;
    }
}

/* A beat on the port's outputs that it took: contiguous, whole but for the last one, and right. */
static void receive(struct world *world)
{
    const struct hdl_out *beat = &world->before;
    const uint32_t frame = FRAMES + world->got;
    const uint32_t length = world->bytes[frame] < 60 ? 60 : world->bytes[frame];
    const uint32_t left = length - world->got_bytes;
    uint8_t data[HDL_WIDTH_BITS_MAX / 8], keep[HDL_WIDTH_BITS_MAX / 64];
    memcpy(data, beat->m_data, sizeof(data));
    memcpy(keep, beat->m_keep, sizeof(keep));
    for (uint32_t i = 0; i < beat_bytes(world); i++) {
        const uint32_t at = world->got_bytes + i;
        assert_int_equal(keep[i / 8] >> i % 8 & 1, i < left);
        if (i < left) {
            assert_int_equal(data[i], at < world->bytes[frame] ? byte_of(world, frame, at) : 0);
        }
    }
    assert_int_equal(beat->m_last, left <= beat_bytes(world));
    world->got_bytes += beat_bytes(world);
    if (beat->m_last) {
        world->got++;
        world->got_bytes = 0;
    }
}

/* Once driven, a beat stays as it is until it is taken. */
static void expect_stable(const struct world *world, const struct hdl_out *now, bool taken)
{
    if (world->before.m_valid && !taken) {
        assert_true(now->m_valid && now->m_last == world->before.m_last);
        assert_memory_equal(now->m_data, world->before.m_data, beat_bytes(world));
        assert_memory_equal(now->m_keep, world->before.m_keep, (beat_bytes(world) + 7) / 8);
    }
}

static void cycle(struct world *world)
{
    struct hdl_out now = world->before;
    if (!world->offers && world->sending < FRAMES && prng_chance(&world->prng, world->valid_ppm)) {
        offer(world);
    }
    const struct hdl_in in = {.s_data = world->data,
                              .s_keep = world->keep,
                              .s_valid = world->offers,
                              .s_last = world->last,
                              .m_ready = prng_chance(&world->prng, world->ready_ppm)};
    world->now_ps += CYCLE_PS;
    hdl_port_edge(world->port, world->now_ps, &in, &now);
    if (world->offers && world->before.s_ready) {
        sent(world);
    }
    const bool taken = world->before.m_valid && in.m_ready;
    if (taken) {
        receive(world);
    }
    expect_stable(world, &now, taken);
    world->before = now;
}

/* -- The world ----------------------------------------------------------------------------------*/

static void push_some(struct world *world)
{
    uint8_t data[LONGEST];
    while (world->pushed < FRAMES && prng_chance(&world->prng, 300000)) {
        const uint32_t frame = FRAMES + world->pushed;
        for (uint32_t i = 0; i < world->bytes[frame]; i++) {
            data[i] = byte_of(world, frame, i);
        }
        const struct hdl_frame pushed = {.at_ps = world->now_ps + prng_below(&world->prng, 20000),
                                         .data = data,
                                         .bytes = world->bytes[frame]};
        if (!hdl_port_push(world->port, &pushed)) {
            return;
        }
        world->pushed++;
    }
}

/* False: a frame differs from what the design sent. */
static bool pull_some(struct world *world)
{
    struct hdl_frame frame;
    bool right = true;
    while (prng_chance(&world->prng, 300000) && hdl_port_pull(world->port, &frame)) {
        const uint32_t bytes = world->bytes[world->pulled];
        right &= frame.bytes == (bytes < 60 ? 60 : bytes);
        for (uint32_t i = 0; i < frame.bytes && right; i++) {
            right &= frame.data[i] == (i < bytes ? byte_of(world, world->pulled, i) : 0);
        }
        world->pulled++;
    }
    return right;
}

/* Returns whether all frames arrived right. */
static bool play(struct world *world)
{
    bool right = true;
    for (uint64_t cycles = 0; world->got < FRAMES || world->pulled < FRAMES; cycles++) {
        assert_true(cycles < UINT64_C(100000000));
        push_some(world);
        cycle(world);
        right = pull_some(world) && right;
        if (!right) {
            break;
        }
    }
    for (uint32_t i = 0; i < HDL_RULES; i++) {
        right &= hdl_port_counters(world->port)->rules[i] == 0;
    }
    free(world->port);
    return right;
}

static uint64_t worlds = 8;

static void test_random(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= worlds; seed++) {
        make_world(&world, seed);
        if (!play(&world)) {
            fail_msg("seed %llu", (unsigned long long)seed);
        }
    }
}

/* The test would notice one byte. */
static void test_notices(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        make_world(&world, seed);
        world.bytes[0] = 100;
        world.cuts = world.config.width_bits > 32;
        assert_int_equal(play(&world), !world.cuts);
    }
}

/* Usage: port_random_test [WORLDS] */
int main(int argc, char **argv)
{
    worlds = argc > 1 ? strtoull(argv[1], NULL, 10) : worlds;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_notices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
