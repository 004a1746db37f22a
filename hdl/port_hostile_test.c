/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever a design drives, and whatever it is sent: the port stands, keeps its own side of
 *         the stream, and loses no frame without counting it. FER-120, FER-121, FER-124, FER-125.
 * Method  A design that keeps no rule, and resets in the middle of everything. A second, plain
 *         reading counts the frames that it began, and those that came to it.
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
    WORLD_EDGES = 20000,
    LONGER = 200 /* Frames are up to this longer than the longest. */
};

struct world {
    struct prng prng;
    struct hdl_port_config config;
    struct hdl_port *port;
    uint64_t now_ps, pulled_ps;

    /* The design. */
    uint32_t valid_ppm, ready_ppm, last_ppm;
    uint32_t data[HDL_WIDTH_BITS_MAX / 32], keep[HDL_WIDTH_BITS_MAX / 256];
    struct hdl_out before; /* The port's outputs before the edge. */
    bool within;           /* One of its frames. */
    uint64_t begun, over;  /* Its frames; `over` are those that the port has had to the end. */

    uint64_t pushed, refused, pulled, come;
    uint8_t frame[HDL_FRAME_BYTES_MAX + LONGER];
};

static bool chance(struct world *world, uint32_t ppm)
{
    return prng_chance(&world->prng, ppm);
}

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

static void make_world(struct world *world, uint64_t seed)
{
    static const uint32_t longest[] = {HDL_FRAME_BYTES_MIN, 61, 1518, HDL_FRAME_BYTES_MAX};
    memset(world, 0, sizeof(*world));
    prng_init(&world->prng, seed);
    world->config = (struct hdl_port_config){
        .width_bits = 8u << below(world, 8),
        .frame_bytes = longest[below(world, COUNT_OF(longest))],
        .frames = 2 + below(world, 4),
        .line_fs_per_byte = (uint64_t)below(world, 3) * 100000,
        .paused_by = below(world, 1u << HDL_CLASSES),
        .ready_ppm = chance(world, 300000) ? 1000000 : 200000 + below(world, 800000),
        .gap_ppm = chance(world, 500000) ? below(world, 700000) : 0,
        .seed = seed};
    world->valid_ppm = 300000 + below(world, 700001);
    world->ready_ppm = 100000 + below(world, 900001);
    world->last_ppm = 20000 + below(world, 900000);
    for (uint32_t i = 0; i < sizeof(world->frame); i++) {
        world->frame[i] = (uint8_t)i;
    }
    void *memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(hdl_port_bytes(&world->config)));
    assert_non_null(memory);
    world->port = hdl_port_init(&world->config, memory);
}

/* -- The design ---------------------------------------------------------------------------------*/

/* Mostly whole beats, so that frames get long; else anything. */
static void make_keep(struct world *world)
{
    const uint32_t kind = below(world, 8);
    for (uint32_t i = 0; i < COUNT_OF(world->keep); i++) {
        const uint32_t any = (uint32_t)prng_next(&world->prng);
        world->keep[i] = kind == 0 ? any : kind == 1 ? (1u << any % 32) - 1 : UINT32_MAX;
    }
}

static struct hdl_in make_beat(struct world *world)
{
    make_keep(world);
    world->data[below(world, COUNT_OF(world->data))] = (uint32_t)prng_next(&world->prng);
    return (struct hdl_in){.s_data = world->data,
                           .s_keep = world->keep,
                           .reset = chance(world, 2000),
                           .s_valid = chance(world, world->valid_ppm),
                           .s_last = chance(world, world->last_ppm),
                           .s_user = chance(world, 50000),
                           .m_ready = chance(world, world->ready_ppm),
                           .unknown_handshake = chance(world, 2000),
                           .unknown_beat = chance(world, 2000)};
}

/* The port's beats: whole but for the last one, which begins with byte 0; there until they are
 * taken. */
static void judge(struct world *world, const struct hdl_in *in, const struct hdl_out *now)
{
    const struct hdl_out *before = &world->before;
    const bool taken = before->m_valid && in->m_ready;
    uint8_t keep[HDL_WIDTH_BITS_MAX / 64];
    assert_false(in->reset && (now->m_valid || now->s_ready));
    if (before->m_valid && !taken && !in->reset) {
        assert_true(now->m_valid && now->m_last == before->m_last && now->m_user == before->m_user);
        assert_memory_equal(now->m_data, before->m_data, world->config.width_bits / 8);
    }
    world->come += taken && before->m_last && !in->reset;
    memcpy(keep, now->m_keep, sizeof(keep));
    for (uint32_t i = 1; now->m_valid && i < world->config.width_bits / 8; i++) {
        const bool kept = keep[i / 8] >> i % 8 & 1, previous = keep[(i - 1) / 8] >> (i - 1) % 8 & 1;
        assert_true(now->m_last ? previous || !kept : kept);
    }
}

static void edge(struct world *world)
{
    const struct hdl_in in = make_beat(world);
    struct hdl_out now = world->before;
    world->now_ps += 1 + below(world, 6400);
    hdl_port_edge(world->port, world->now_ps, &in, &now);
    judge(world, &in, &now);
    if (in.reset) {
        world->over += world->within;
        world->within = false;
    } else if (in.s_valid && world->before.s_ready) {
        world->begun += !world->within;
        world->within = !in.s_last;
        world->over += in.s_last;
    }
    world->before = now;
}

/* -- The world ----------------------------------------------------------------------------------*/

static void push(struct world *world)
{
    const bool is_short = chance(world, 800000);
    const uint32_t most = is_short ? 200 : world->config.frame_bytes + LONGER;
    const struct hdl_frame frame = {.at_ps = world->now_ps + below(world, 20000),
                                    .data = world->frame,
                                    .bytes = below(world, most),
                                    .bad = chance(world, 300000)};
    const uint32_t room = hdl_port_room(world->port);
    const bool pushed = hdl_port_push(world->port, &frame);
    world->pushed += pushed;
    world->refused += !pushed;
    assert_int_equal(hdl_port_room(world->port), room - pushed);
    assert_true(!pushed || (room > 0 && frame.bytes <= world->config.frame_bytes));
}

static void pause(struct world *world)
{
    const struct hdl_pause one = {.at_ps = world->now_ps + below(world, 20000),
                                  .priority = below(world, HDL_CLASSES),
                                  .quanta = chance(world, 300000) ? 0 : below(world, 4)};
    world->refused += !hdl_port_pause(world->port, &one);
}

static void pull(struct world *world)
{
    struct hdl_frame frame;
    struct hdl_violation violation;
    while (hdl_port_pull(world->port, &frame)) {
        assert_true(frame.bytes >= HDL_FRAME_BYTES_MIN && !frame.bad);
        assert_true(frame.bytes <= world->config.frame_bytes && frame.at_ps >= world->pulled_ps);
        world->pulled_ps = frame.at_ps;
        world->pulled++;
    }
    while (hdl_port_violation(world->port, &violation)) {
        assert_true(violation.rule < HDL_RULES && violation.at_ps <= world->now_ps);
    }
}

/* Each frame was delivered, or is counted by the reason why it was not, or waits. */
static void account(struct world *world)
{
    const struct hdl_counters *counters = hdl_port_counters(world->port);
    const uint64_t waiting = world->config.frames - hdl_port_room(world->port);
    pull(world);
    assert_int_equal(counters->sent_frames, world->pulled);
    assert_int_equal(counters->sent_frames + counters->bad + counters->lost_in_reset[0],
                     world->over);
    assert_int_equal(world->begun, world->over + world->within);
    assert_int_equal(counters->received_frames, world->come);
    assert_int_equal(counters->received_frames + counters->lost_in_reset[1] + waiting,
                     world->pushed);
    assert_int_equal(counters->refused, world->refused);
}

/* Returns the frames of the world, both ways. */
static uint64_t play(struct world *world, uint64_t seed)
{
    make_world(world, seed);
    for (uint32_t i = 0; i < WORLD_EDGES; i++) {
        if (chance(world, 300000)) {
            push(world);
        }
        if (chance(world, 5000)) {
            pause(world);
        }
        edge(world);
        if (chance(world, 700000)) {
            pull(world);
        }
    }
    account(world);
    free(world->port);
    return world->begun + world->pushed;
}

static uint64_t wanted = 100000;

static void test_hostile(void **state)
{
    (void)state;
    static struct world world;
    uint64_t frames = 0, seed = 0;
    while (frames < wanted) {
        frames += play(&world, ++seed);
    }
    print_message("%llu frames, %llu edges\n", (unsigned long long)frames,
                  (unsigned long long)seed * WORLD_EDGES);
}

/* Usage: hdl_port_hostile_test [FRAMES] */
int main(int argc, char **argv)
{
    wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : wanted;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
