/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A wire carries one thing after the other, and a packet leaves a switch's output when it
 *         may: in turn, not before it has come, not faster than it comes, never beyond the buffer.
 * Method  Random packets beside a model that knows no spans: it moves byte after byte through a
 *         queue, and keeps the time at which each came in and went out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "sim/parts/switch.h"

#define PACKETS 4000u
#define FS      1000u

/* -- The model ----------------------------------------------------------------------------------*/

struct model {
    uint64_t byte_ps, delay_ps; /* The output's. */
    uint64_t room;              /* Bytes that may wait. */
    bool whole;                 /* Store and forward. */
    uint64_t last_ps;           /* When the byte before has left. */
};

/* Byte k of the packet is there at the end of its time on the wire that it came by. The packet
 * begins at the earliest time at which no byte would leave before it has come. */
static uint64_t model_begin(const struct model *model, uint64_t head_ps, uint64_t in_ps,
                            uint64_t bytes)
{
    uint64_t begin_ps = head_ps + model->delay_ps;
    for (uint64_t k = 0; k < bytes; k++) {
        const uint64_t come_ps = head_ps + model->delay_ps + (model->whole ? bytes : k + 1) * in_ps;
        const uint64_t leaves_ps = (model->whole ? 0 : k + 1) * model->byte_ps;
        if (begin_ps + leaves_ps < come_ps) {
            begin_ps = come_ps - leaves_ps;
        }
    }
    return begin_ps;
}

/* Counts, one by one, the bytes that are before the output when the packet could begin. */
static bool model_send(struct model *model, uint64_t head_ps, uint64_t in_ps, uint64_t bytes,
                       uint64_t *out_ps)
{
    const uint64_t begin_ps = model_begin(model, head_ps, in_ps, bytes);
    uint64_t before = 0;
    for (uint64_t at_ps = begin_ps; at_ps < model->last_ps; at_ps++) {
        before++;
    }
    if (before + bytes * model->byte_ps > model->room * model->byte_ps) {
        return false;
    }
    model->last_ps = begin_ps + before;
    *out_ps = model->last_ps;
    for (uint64_t k = 0; k < bytes; k++) {
        model->last_ps += model->byte_ps;
    }
    return true;
}

/* -- Tests --------------------------------------------------------------------------------------*/

struct counts {
    uint32_t sent, dropped, waited;
};

static struct counts compare(const struct sim_output_kind *kind, uint64_t in_ps, uint64_t seed)
{
    const uint64_t byte_ps = kind->wire.byte_fs / FS;
    struct model model = {.byte_ps = byte_ps,
                          .delay_ps = kind->delay_ps,
                          .room = kind->buffer_ps / byte_ps,
                          .whole = kind->switching == SIM_STORE_AND_FORWARD};
    struct sim_wire output = {.free_ps = 0};
    struct counts counts = {.sent = 0};
    struct prng prng;
    uint64_t head_ps = 0;
    prng_init(&prng, seed);
    for (uint32_t i = 0; i < PACKETS; i++) {
        const uint64_t bytes = 1 + prng_below(&prng, 90);
        const struct sim_span in = {head_ps, head_ps + bytes * in_ps};
        struct sim_span out = {0, 0};
        uint64_t model_ps = 0;
        const bool fits = sim_output_send(kind, &output, in, sim_wire_ps(&kind->wire, bytes), &out);
        assert_int_equal(fits, model_send(&model, head_ps, in_ps, bytes, &model_ps));
        assert_int_equal(out.head_ps, model_ps);
        if (fits) {
            assert_int_equal(out.tail_ps, model.last_ps);
            assert_true(out.tail_ps >= in.tail_ps + kind->delay_ps);
        }
        counts.sent += fits;
        counts.dropped += !fits;
        counts.waited += fits && out.head_ps > sim_output_ready(kind, in, bytes * byte_ps);
        /* The next one may come by another input, before this one's tail. */
        head_ps += prng_below(&prng, 2 * bytes * in_ps);
    }
    return counts;
}

static void test_against_bytes(void **state)
{
    (void)state;
    static const uint64_t speeds[][2] = {{4, 4}, {8, 3}, {3, 8}}; /* In, out: ps a byte. */
    for (uint32_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        for (uint32_t whole = 0; whole < 2; whole++) {
            const struct sim_output_kind kind = {
                .wire = {.byte_fs = speeds[i][1] * FS, .latency_ps = 100},
                .switching = whole ? SIM_STORE_AND_FORWARD : SIM_CUT_THROUGH,
                .delay_ps = 17,
                .buffer_ps = 200 * speeds[i][1]};
            const struct counts counts = compare(&kind, speeds[i][0], i + 10 * whole);
            assert_int_equal(counts.sent + counts.dropped, PACKETS);
            assert_true(counts.waited > PACKETS / 10);
            assert_true(counts.sent > PACKETS / 4);
            assert_true(counts.dropped > 0 || speeds[i][1] < speeds[i][0]);
        }
    }
}

static void test_wire(void **state)
{
    (void)state;
    const struct sim_wire_kind kind = {.byte_fs = 80 * FS, .latency_ps = 5000}; /* 100 Gb/s */
    struct sim_wire wire = {.free_ps = 0};
    const struct sim_span first = sim_wire_send(&wire, 1000, sim_wire_ps(&kind, 64));
    assert_int_equal(first.head_ps, 1000);
    assert_int_equal(first.tail_ps, 1000 + 64 * 80);
    assert_int_equal(sim_wire_wait_ps(&wire, 3000), 1000 + 64 * 80 - 3000);
    const struct sim_span second = sim_wire_send(&wire, 3000, sim_wire_ps(&kind, 1));
    assert_int_equal(second.head_ps, first.tail_ps);
    assert_int_equal(sim_wire_wait_ps(&wire, 100000), 0);
    const struct sim_span there = sim_wire_arrival(&kind, second);
    assert_int_equal(there.head_ps, second.head_ps + 5000);
    assert_int_equal(there.tail_ps, second.tail_ps + 5000);
}

/* An output without a bound drops nothing; one with no room for a packet drops it even if it is
 * idle. */
static void test_bounds(void **state)
{
    (void)state;
    struct sim_output_kind kind = {.wire = {.byte_fs = FS}, .buffer_ps = SIM_UNBOUNDED_PS};
    struct sim_wire output = {.free_ps = 0};
    struct sim_span out;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(sim_output_send(&kind, &output, (struct sim_span){0, 9}, 9, &out));
        assert_int_equal(out.head_ps, 9 * i);
    }
    kind.buffer_ps = 8;
    output.free_ps = 0;
    assert_false(sim_output_send(&kind, &output, (struct sim_span){50, 59}, 9, &out));
    assert_int_equal(output.free_ps, 0);
    assert_true(sim_output_send(&kind, &output, (struct sim_span){50, 58}, 8, &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_bytes),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
