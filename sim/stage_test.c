/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Chains take the time that theory gives them, and flow control loses nothing where the
 *         buffer covers a round trip, and does where it does not.
 * Method  Chains of one to eight stages; a fast sender in front of a slow receiver under each flow
 *         control.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/stage.h"

#define STAGES_MAX 10
#define UNITS      400
#define BYTES      1000u
#define BYTE_PS    80u /* 100 Gb/s. */
#define LINK_PS    50000u
#define DELAY_PS   7000u

struct chain {
    struct sim sim;
    struct sim_stage stages[STAGES_MAX];
    struct sim_unit units[UNITS];
    uint32_t arrived;
    uint64_t last_ps;
};

static void sink(struct sim_stage *stage, struct sim_unit *unit)
{
    struct chain *chain = stage->owner;
    assert_ptr_equal(unit, &chain->units[chain->arrived]); /* In order. */
    chain->arrived++;
    chain->last_ps = chain->sim.now_ps;
}

static void ignore(struct sim_stage *stage, struct sim_unit *unit)
{
    (void)stage;
    (void)unit;
}

static struct sim_stage_config plain(bool cut_through)
{
    return (struct sim_stage_config){.cut_through = cut_through,
                                     .delay_ps = DELAY_PS,
                                     .byte_ps = BYTE_PS,
                                     .link_ps = LINK_PS,
                                     .buffer_bytes = UINT32_MAX};
}

static struct chain *make_chain(const struct sim_stage_config *configs, uint32_t count)
{
    struct chain *chain = calloc(1, sizeof(*chain));
    assert_non_null(chain);
    sim_init(&chain->sim, 1);
    for (uint32_t i = 0; i < count; i++) {
        sim_stage_init(&chain->stages[i], &chain->sim, &configs[i]);
        if (i > 0) {
            sim_stage_join(&chain->stages[i - 1], &chain->stages[i]);
        }
    }
    chain->stages[count - 1].sink = sink;
    chain->stages[count - 1].owner = chain;
    return chain;
}

/* All of them stand at the first stage at time 0. */
static void send(struct chain *chain, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        chain->units[i] = (struct sim_unit){.bytes = BYTES};
        list_init(&chain->units[i].node);
        assert_true(sim_stage_arrive(&chain->stages[0], &chain->units[i]));
    }
    while (sim_step(&chain->sim)) {
    }
}

static void test_latency(void **state)
{
    (void)state;
    for (uint64_t hops = 1; hops <= 8; hops++) {
        for (int cut_through = 0; cut_through < 2; cut_through++) {
            struct sim_stage_config configs[STAGES_MAX];
            for (uint32_t i = 0; i <= hops; i++) {
                configs[i] = plain(cut_through);
            }
            struct chain *chain = make_chain(configs, (uint32_t)hops + 1);
            send(chain, 1);
            const uint64_t unit_ps = BYTES * BYTE_PS;
            /* Cut-through pays for the unit once, store-and-forward at every hop. */
            const uint64_t expected =
                hops * (DELAY_PS + LINK_PS) + (cut_through ? 1 : hops) * unit_ps;
            assert_int_equal(chain->last_ps, expected);
            free(chain);
        }
    }
}

/* A slow input: cut-through must not run dry in front of a fast link. */
static void test_slow_into_fast(void **state)
{
    (void)state;
    struct sim_stage_config configs[3] = {plain(true), plain(true), plain(true)};
    configs[0].byte_ps = 4 * BYTE_PS;
    struct chain *chain = make_chain(configs, 3);
    send(chain, 1);
    /* The tail leaves the second stage when it has come, and a delay later. */
    assert_int_equal(chain->last_ps, DELAY_PS + BYTES * 4 * BYTE_PS + LINK_PS + DELAY_PS + LINK_PS);
    free(chain);
}

/* A fast link into a stage with a link four times slower. */
static struct chain *squeeze(enum sim_flow_control control, uint32_t buffer, uint32_t high,
                             uint32_t low)
{
    struct sim_stage_config configs[3] = {plain(true), plain(true), plain(true)};
    configs[1].byte_ps = 4 * BYTE_PS;
    configs[1].buffer_bytes = buffer;
    configs[1].control = control;
    configs[1].high = high;
    configs[1].low = low;
    configs[1].pause_quanta = 2000; /* 10 us: taken back before it runs out. */
    return make_chain(configs, 3);
}

/* On its way when the word is sent, until it is heard: a round trip at the sender's rate. */
#define ROUND_TRIP_BYTES (2 * LINK_PS / BYTE_PS + BYTES)

static void check_lossless(enum sim_flow_control control, uint32_t buffer, uint32_t high,
                           uint32_t low)
{
    struct chain *chain = squeeze(control, buffer, high, low);
    send(chain, UNITS);
    assert_int_equal(chain->arrived, UNITS);
    assert_int_equal(chain->stages[1].lost, 0);
    assert_true(chain->stages[1].peak <= buffer);
    /* The slow link never waited: it is the bottleneck alone that takes time. */
    const uint64_t slow_ps = (uint64_t)UNITS * BYTES * 4 * BYTE_PS;
    assert_in_range(chain->last_ps, slow_ps, slow_ps + slow_ps / 50);
    free(chain);
}

static void test_lossless(void **state)
{
    (void)state;
    check_lossless(SIM_FLOW_CREDIT, 6 * BYTES, 0, 0);
    check_lossless(SIM_FLOW_ONOFF, 4 * BYTES + ROUND_TRIP_BYTES + BYTES, 4 * BYTES, 2 * BYTES);
    check_lossless(SIM_FLOW_PAUSE, 8 * BYTES + 2 * ROUND_TRIP_BYTES, 8 * BYTES, 4 * BYTES);
}

/* Without flow control, or with a stop that comes too late, the buffer overflows. */
static void test_losses(void **state)
{
    (void)state;
    struct chain *chain = squeeze(SIM_FLOW_NONE, 4 * BYTES, 0, 0);
    send(chain, 1);
    assert_int_equal(chain->arrived, 1);
    free(chain);
    static const enum sim_flow_control controls[] = {SIM_FLOW_NONE, SIM_FLOW_ONOFF};
    for (uint32_t i = 0; i < 2; i++) {
        chain = squeeze(controls[i], 4 * BYTES, 4 * BYTES, BYTES);
        chain->stages[2].sink = ignore;
        for (uint32_t k = 0; k < UNITS; k++) {
            chain->units[k] = (struct sim_unit){.bytes = BYTES};
            list_init(&chain->units[k].node);
            (void)sim_stage_arrive(&chain->stages[0], &chain->units[k]);
        }
        while (sim_step(&chain->sim)) {
        }
        assert_true(chain->stages[1].lost > 0);
        free(chain);
    }
}

/* Credits for less than a round trip cap the rate: buffer / (round trip + holding it). */
static void test_credit_rate(void **state)
{
    (void)state;
    struct sim_stage_config configs[3] = {plain(true), plain(true), plain(true)};
    configs[1].buffer_bytes = BYTES; /* One unit at a time. */
    configs[1].control = SIM_FLOW_CREDIT;
    struct chain *chain = make_chain(configs, 3);
    send(chain, 100);
    assert_int_equal(chain->arrived, 100);
    /* Out, across, through, and its credit back; the next one is ready by then. */
    const uint64_t round_ps = LINK_PS + DELAY_PS + BYTES * BYTE_PS + LINK_PS;
    const uint64_t first_ps = 2 * (DELAY_PS + LINK_PS) + BYTES * BYTE_PS;
    assert_int_equal(chain->last_ps, first_ps + 99 * round_ps);
    free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latency),     cmocka_unit_test(test_slow_into_fast),
        cmocka_unit_test(test_lossless),    cmocka_unit_test(test_losses),
        cmocka_unit_test(test_credit_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
