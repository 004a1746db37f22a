/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The world of busy senders follows its configuration, so that its experiments measure the
 *         switch: it sends at the line's rate, pauses when it has to, and accounts for every frame.
 * Method  Counts by hand at 10 Gb/s with frames of 980 bytes, which take 800 ns of a line; FER-87
 *         with a long pause, FER-90 in a world with everything at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/network/experiments.h"
#include "lab/network/flow.h"

#define US   UINT64_C(1000000)
#define SLOT (US * 8 / 10)

static struct lab_run *prepare(void)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, &network_pause, 1);
    return run;
}

static struct flow_config config_of(uint32_t senders)
{
    return (struct flow_config){
        .kind = {.line = {.wire = {.byte_fs = 800000, .latency_ps = 10000}},
                 .delay_ps = 500000,
                 .input = {SIM_PFC, 10000, 5000, SIM_NO_BOUND},
                 .output_bytes = SIM_NO_BOUND,
                 .ecn_bytes = SIM_NO_BOUND,
                 .quanta = PAUSE_QUANTA_MAX},
        .senders = senders,
        .frame_bytes = 980,
        .warm_ps = 100 * US,
        .stop_ps = 900 * US,
    };
}

static struct flow_world *run_world(struct lab_run *run, const struct flow_config *config)
{
    struct flow_world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    flow_open(world, run, config);
    flow_run(world);
    return world;
}

static void end_world(struct flow_world *world, struct lab_run *run)
{
    flow_close(world);
    assert_string_equal(run->failure, "");
    free(world);
    free(run);
}

/* One sender fills the line and no queue; frames of the receiver go to the senders in turn. */
static void test_one_sender(void **state)
{
    (void)state;
    struct lab_run *run = prepare();
    struct flow_config config = config_of(1);
    config.reverse_bytes = 64;
    struct flow_world *world = run_world(run, &config);
    assert_int_equal(world->hosts[1].counted[0], 800 * US / SLOT);
    assert_int_equal(world->hosts[0].made, 900 * US / SLOT + 1);
    assert_int_equal(world->hosts[0].came, world->hosts[1].made);
    assert_int_equal(sim_ethernet_switch_worst(&world->middle), 0);
    end_world(world, run);
}

static void test_senders_share(void **state)
{
    (void)state;
    struct lab_run *run = prepare();
    struct flow_config config = config_of(4);
    config.stagger_ps = US;
    config.reverse_bytes = 200;
    struct flow_world *world = run_world(run, &config);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 4; i++) {
        assert_in_range(world->hosts[4].counted[i], 220, 280);
        assert_in_range(world->hosts[i].came, world->hosts[4].made / 4,
                        world->hosts[4].made / 4 + 1);
        sum += world->hosts[4].counted[i];
    }
    assert_in_range(sum, 999, 1001);
    end_world(world, run);
}

/* FER-87: held frames come later, all of them; no frame comes in between. 4 ms are longer than one
 * pause can ask for. */
static void test_hold(void **state)
{
    (void)state;
    struct lab_run *run = prepare();
    struct flow_config config = config_of(2);
    config.hold_ps = 50 * US;
    config.go_ps = 4050 * US;
    config.stop_ps = 4100 * US;
    config.warm_ps = 52 * US;
    struct flow_world *world = run_world(run, &config);
    /* Between the boundary after the pause's coming and its end nothing begins. */
    const uint32_t counted = world->hosts[2].counted[0] + world->hosts[2].counted[1];
    assert_in_range(counted, 50 * US / SLOT - 3, 50 * US / SLOT + 1);
    assert_int_equal(flow_lost(world), 0);
    assert_true(sim_ethernet_switch_total(&world->middle).refreshes >= 2);
    end_world(world, run);
}

/* A dropped frame is counted once and does not come. FER-90: a frame that comes marked is ECT. */
static void test_everything_at_once(void **state)
{
    (void)state;
    for (uint32_t ect = 0; ect < 2; ect++) {
        struct lab_run *run = prepare();
        struct flow_config config = config_of(3);
        config.kind.input.room_bytes = 12000;
        config.kind.line.wire.latency_ps = 3 * US;
        config.kind.ecn_bytes = 3000;
        config.ecn = ect ? SIM_ECT_1 : SIM_NOT_ECT;
        config.reverse_bytes = 980;
        config.hold_ps = 200 * US;
        config.go_ps = 300 * US;
        config.unpaused = true;
        struct flow_world *world = run_world(run, &config);
        uint64_t made = 0;
        for (uint32_t i = 0; i < 3; i++) {
            made += world->hosts[i].made;
        }
        assert_true(flow_lost(world) > 0);
        assert_int_equal(made, world->hosts[3].came + flow_lost(world));
        assert_int_equal(world->ce > 0, ect);
        end_world(world, run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_sender),
        cmocka_unit_test(test_senders_share),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_everything_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
