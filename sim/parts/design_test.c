/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A design's edges are where they belong, without drift; frames go in and come out with
 *         their times, and the digest has them; a model that does not fit is refused with a reason.
 * Method  A model in C that sends back what it gets, beat by beat.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/parts/design.h"
#include "wire/pause.h"

/* -- The model ----------------------------------------------------------------------------------*/

struct hdl_model {
    const struct hdl_host *host;
    struct hdl_port *port;
    bool reset;
    struct hdl_out out; /* The port's outputs: they come back as the design's own. */
    uint64_t last_ps, resets;
};

static uint32_t wants_ports = 1, wants_number, wants_width = 64, wants_pairs, wants_pair;
static bool wants_xgmii;
static uint64_t edge_3_ps, edge_million_ps;
static struct sim_design_fault_rates rates;
static uint64_t wants_resets = 5, last_reset_edge; /* Edges with reset. */

static struct hdl_model *open_model(const struct hdl_model_ops *ops, const struct hdl_host *host,
                                    uint64_t seed)
{
    struct hdl_model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    (void)ops;
    (void)seed;
    model->host = host;
    model->reset = true;
    for (uint32_t i = 0; i < wants_ports; i++) {
        model->port =
            host->attach(host->owner, wants_number, wants_width, wants_xgmii, "loop.port");
        if (model->port == NULL) {
            free(model);
            return NULL;
        }
    }
    for (uint32_t i = 0; i < wants_pairs; i++) {
        if (host->attach_pair(host->owner, wants_pair) == NULL) {
            free(model);
            return NULL;
        }
    }
    return model;
}

static void reset_model(struct hdl_model *model, bool asserted)
{
    model->reset = asserted;
}

static uint64_t edges;

static void step_model(struct hdl_model *model, uint64_t now_ps, uint32_t clocks)
{
    (void)clocks;
    edges++;
    model->resets += model->reset;
    last_reset_edge = model->reset ? edges : last_reset_edge;
    edge_3_ps = edges == 3 ? now_ps : edge_3_ps;
    edge_million_ps = edges == 1000000 ? now_ps : edge_million_ps;
    const struct hdl_out before = model->out;
    const struct hdl_in in = {.s_data = before.m_data,
                              .s_keep = before.m_keep,
                              .reset = model->reset,
                              .s_valid = before.m_valid,
                              .s_last = before.m_last,
                              .m_ready = before.s_ready};
    model->host->edge(model->port, now_ps, &in, &model->out);
    model->last_ps = now_ps;
}

static bool finished_model(const struct hdl_model *model)
{
    (void)model;
    return edges == 1000000;
}

static void close_model(struct hdl_model *model)
{
    assert_int_equal(model->resets, edges == 0 ? 0 : wants_resets);
    free(model);
}

static const struct hdl_model_ops loop = {.abi = HDL_ABI,
                                          .in_bytes = sizeof(struct hdl_in),
                                          .out_bytes = sizeof(struct hdl_out),
                                          .name = "loop",
                                          .clocks = 1,
                                          .open = open_model,
                                          .reset = reset_model,
                                          .step = step_model,
                                          .finished = finished_model,
                                          .close = close_model};

/* -- Worlds -------------------------------------------------------------------------------------*/

static struct {
    struct sim sim;
    struct sim_design design;
    uint32_t came, pauses;
    uint64_t first_ps;
    uint8_t bytes[2000];
} world;

static void on_frame(struct sim_design *design, uint32_t port, const struct hdl_frame *frame)
{
    assert_ptr_equal(design, &world.design);
    assert_int_equal(port, wants_number);
    struct pause pause;
    if (pause_decode(frame->data, frame->bytes, &pause)) {
        world.pauses++;
        return;
    }
    assert_int_equal(frame->bytes, 100 + world.came);
    assert_memory_equal(frame->data, world.bytes, frame->bytes);
    world.first_ps = world.came == 0 ? frame->at_ps : world.first_ps;
    world.came++;
}

static bool begin_clocks(const struct hdl_model_ops *ops, uint64_t period_fs, uint64_t period2_fs)
{
    edges = 0;
    memset(&world, 0, sizeof(world));
    for (uint32_t i = 0; i < sizeof(world.bytes); i++) {
        world.bytes[i] = (uint8_t)(i * 7);
    }
    const struct sim_design_config config = {.ops = ops,
                                             .port = {.frame_bytes = 1518,
                                                      .frames = 16,
                                                      .line_fs_per_byte = 800000,
                                                      .ready_ppm = 1000000},
                                             .period_fs = {period_fs, period2_fs},
                                             .reset_edges = 5,
                                             .seed = 7,
                                             .faults = rates,
                                             .on_frame = on_frame};
    sim_init(&world.sim, 1);
    return sim_design_open(&world.design, &world.sim, &config);
}

static bool begin(const struct hdl_model_ops *ops, uint64_t period_fs)
{
    return begin_clocks(ops, period_fs, 0);
}

/* Ten frames go round; returns the digest. */
static uint64_t go_round(uint64_t at_ps)
{
    assert_true(begin(&loop, 6400000));
    for (uint32_t i = 0; i < 10; i++) {
        const struct hdl_frame frame = {.at_ps = at_ps, .data = world.bytes, .bytes = 100 + i};
        assert_true(sim_design_push(&world.design, wants_number, &frame));
    }
    sim_run_until(&world.sim, 10000000);
    sim_design_close(&world.design);
    assert_int_equal(world.came, 10);
    return world.sim.digest;
}

static void test_round(void **state)
{
    (void)state;
    wants_number = 3;
    const uint64_t digest = go_round(40000);
    /* Seen at edge 7 (44.8 ns), taken at edge 8 (51.2 ns): then it begins on the line. */
    assert_int_equal(world.first_ps, 51200 + (8 + 100 + 4) * 800);
    assert_true(digest == go_round(40000));
    assert_true(digest != go_round(40001));
    wants_xgmii = true;
    (void)go_round(40000);
    /* Start is seen at edge 7, and comes back at edge 8. */
    assert_int_equal(world.first_ps, 51200 + (8 + 100 + 4) * 800);
    wants_xgmii = false;
    wants_number = 0;
}

/* FER-131: 322.265625 MHz has no whole period in ps: the millionth edge is where it belongs to
 * the ps. */
static void test_edges(void **state)
{
    (void)state;
    assert_true(begin(&loop, 3103030));
    while (sim_step(&world.sim)) {
    }
    assert_int_equal(edge_3_ps, 9309);
    assert_int_equal(edge_million_ps, UINT64_C(3103030000));
    sim_design_close(&world.design);
}

static void expect_refused(const struct hdl_model_ops *ops, const char *says)
{
    assert_false(begin(ops, 6400000));
    if (strstr(world.design.error, says) == NULL) {
        fail_msg("refused with: %s", world.design.error);
    }
}

/* FER-134: a design of another nonic, and ports that do not fit. */
static void test_refused(void **state)
{
    (void)state;
    struct hdl_model_ops other = loop;
    other.abi++;
    expect_refused(&other, "another nonic");
    other = loop;
    other.out_bytes--;
    expect_refused(&other, "another nonic");
    wants_width = 96;
    expect_refused(&loop, "the width is a power of two");
    wants_width = 128;
    wants_xgmii = true;
    expect_refused(&loop, "XGMII has 64 bits");
    wants_xgmii = false;
    wants_width = 64;
    wants_number = SIM_DESIGN_PORTS_MAX;
    expect_refused(&loop, "beyond 15");
    wants_number = 0;
    wants_ports = 2;
    expect_refused(&loop, "two ports of number 0");
    wants_ports = 0;
    expect_refused(&loop, "loop has no nonic_axis");
    wants_ports = 1;
    wants_pairs = 2;
    wants_pair = HDL_PAIRS_MAX - 1;
    expect_refused(&loop, "two queue pairs of number 15");
    wants_pairs = 1;
    wants_pair = HDL_PAIRS_MAX;
    expect_refused(&loop, "beyond 15");
    wants_pairs = 0;
    wants_ports = 1;
}

/* A pause is the same when its frame is read. */
static void test_pause_frames(void **state)
{
    (void)state;
    const struct pause pauses[] = {pause_link(0), pause_link(0x1234), pause_classes(0x81, 0xfffe),
                                   pause_classes(0xff, 0)};
    for (size_t i = 0; i < COUNT_OF(pauses); i++) {
        uint8_t bytes[PAUSE_FRAME_BYTES];
        struct pause pause;
        pause_encode(&pauses[i], bytes);
        assert_true(pause_decode(bytes, sizeof(bytes), &pause));
        assert_int_equal(pause.kind, pauses[i].kind);
        assert_int_equal(pause.classes, pauses[i].classes);
        assert_memory_equal(pause.quanta, pauses[i].quanta, sizeof(pause.quanta));
    }
}

/* A frame of flow control is the MAC's: the design does not see it, unless it has its own MAC. */
static void test_pause(void **state)
{
    (void)state;
    uint8_t bytes[60] = {0x01, 0x80, 0xc2, 0, 0, 1, [12] = 0x88, 0x08, 0, 1, 0, 100};
    const struct hdl_frame frame = {.at_ps = 40000, .data = bytes, .bytes = sizeof(bytes)};
    struct pause pause;
    assert_true(begin(&loop, 6400000));
    assert_true(sim_design_push(&world.design, 0, &frame));
    sim_run_until(&world.sim, 100000);
    assert_int_equal(hdl_port_counters(world.design.ports[0])->pauses, 1);
    assert_int_equal(hdl_port_counters(world.design.ports[0])->received_frames, 0);
    sim_design_close(&world.design);
    wants_xgmii = true;
    assert_true(begin(&loop, 6400000));
    assert_true(sim_design_push(&world.design, 0, &frame));
    pause = pause_classes(0x28, 7);
    assert_true(sim_design_pause(&world.design, 0, &pause));
    sim_run_until(&world.sim, 1000000);
    assert_int_equal(hdl_port_counters(world.design.ports[0])->pauses, 0);
    assert_int_equal(hdl_port_counters(world.design.ports[0])->received_frames, 2);
    assert_int_equal(world.pauses, 2);
    sim_design_close(&world.design);
    wants_xgmii = false;
    assert_false(pause_decode(bytes, 35, &pause));
    bytes[15] = 2; /* Another opcode. */
    assert_false(pause_decode(bytes, sizeof(bytes), &pause));
}

/* -- Faults -------------------------------------------------------------------------------------*/

/* Frames go round, and a reset comes at `at_ps`. Returns the last edge with reset. */
static uint64_t reset_at(uint64_t at_ps, uint64_t resets)
{
    rates = (struct sim_design_fault_rates){.resets = 2, .reset_ps = {at_ps, at_ps + 6400}};
    wants_resets = 5 * resets;
    (void)go_round(40000);
    assert_int_equal(world.design.faults.resets, resets - 1);
    rates = (struct sim_design_fault_rates){0};
    wants_resets = 5;
    return last_reset_edge;
}

/* FER-153: it is seen strictly after its time. Another one that comes meanwhile adds nothing. */
static void test_reset_at(void **state)
{
    (void)state;
    assert_int_equal(reset_at(6400000 - 1, 2), 1000 + 4);
    assert_int_equal(reset_at(6400000, 2), 1001 + 4);
    assert_int_equal(reset_at(6400, 1), 5); /* In the reset that each design begins with. */
}

/* FER-125: a frame under way is lost and counted; those that wait come behind the reset. */
static void test_reset_loses(void **state)
{
    (void)state;
    rates = (struct sim_design_fault_rates){.resets = 1, .reset_ps = {60000}};
    wants_resets = 10;
    assert_true(begin(&loop, 6400000));
    world.came = 1; /* on_frame expects the frames from the second one on. */
    for (uint32_t i = 0; i < 10; i++) {
        const struct hdl_frame frame = {.at_ps = 40000, .data = world.bytes, .bytes = 100 + i};
        assert_true(sim_design_push(&world.design, 0, &frame));
    }
    sim_run_until(&world.sim, 10000000);
    const struct hdl_counters *counters = hdl_port_counters(world.design.ports[0]);
    assert_int_equal(world.came, 10);
    assert_int_equal(counters->lost_in_reset[0] + counters->lost_in_reset[1], 2);
    assert_int_equal(world.design.faults.last_reset_ps, 64000);
    sim_design_close(&world.design);
    rates = (struct sim_design_fault_rates){0};
    wants_resets = 5;
}

enum {
    STRUCK = 20000
};

/* Which of a port's frames are struck, and how long they are then. */
static void strike_all(const struct sim_design_fault_rates *with, uint64_t seed, uint32_t port,
                       uint16_t fates[STRUCK])
{
    struct sim_design_faults faults;
    sim_design_faults_init(&faults, with, seed);
    for (uint32_t i = 0; i < STRUCK; i++) {
        struct hdl_frame other = {.bytes = 64}, frame = {.bytes = 1000};
        (void)sim_design_faults_strike(&faults, !port, &other);
        const bool struck = sim_design_faults_strike(&faults, port, &frame);
        assert_true(struck == frame.bad && frame.bytes >= 1 && (struck || frame.bytes == 1000));
        fates[i] = struck ? (uint16_t)frame.bytes : 0;
    }
}

/* FER-154: of one seed, port and number one fate, whatever happens to other frames. */
static void test_strikes(void **state)
{
    (void)state;
    static uint16_t fates[5][STRUCK];
    const struct sim_design_fault_rates both = {.badfcs_ppm = 100000, .truncate_ppm = 50000};
    const struct sim_design_fault_rates cut = {.truncate_ppm = 50000};
    uint32_t bad = 0, cuts = 0, shortest = 1000;
    strike_all(&both, 1, 0, fates[0]);
    strike_all(&both, 1, 0, fates[1]);
    strike_all(&both, 1, 1, fates[2]);
    strike_all(&both, 2, 0, fates[3]);
    strike_all(&cut, 1, 0, fates[4]);
    assert_memory_equal(fates[0], fates[1], sizeof(fates[0]));
    assert_memory_not_equal(fates[0], fates[2], sizeof(fates[0]));
    assert_memory_not_equal(fates[0], fates[3], sizeof(fates[0]));
    for (uint32_t i = 0; i < STRUCK; i++) {
        assert_int_equal(fates[4][i], fates[0][i] == 1000 ? 0 : fates[0][i]);
        bad += fates[0][i] == 1000;
        cuts += fates[4][i] != 0;
        shortest = fates[4][i] != 0 && fates[4][i] < shortest ? fates[4][i] : shortest;
    }
    assert_in_range(bad, 1700, 2100); /* 10 % of the 95 % that are not cut. */
    assert_in_range(cuts, 850, 1150);
    assert_in_range(shortest, 1, 10);
}

/* FER-154: drawn resets are a function of the seed and the edge. */
static void test_drawn_resets(void **state)
{
    (void)state;
    const struct sim_design_fault_rates drawn = {.reset_ppm = 1000};
    struct sim_design_faults faults[3];
    uint32_t resets = 0, apart = 0;
    for (uint32_t i = 0; i < 3; i++) {
        sim_design_faults_init(&faults[i], &drawn, 1 + i / 2);
    }
    for (uint64_t edge = 1; edge <= 1000000; edge++) {
        const bool reset = sim_design_faults_reset(&faults[0], edge * 6400);
        assert_int_equal(reset, sim_design_faults_reset(&faults[1], edge * 1000));
        apart += reset != sim_design_faults_reset(&faults[2], edge * 6400);
        resets += reset;
    }
    assert_in_range(resets, 850, 1150);
    assert_true(apart > 1000);
}

/* -- Two clocks ---------------------------------------------------------------------------------*/

static struct {
    uint64_t rises[HDL_CLOCKS_MAX], steps, last_ps, period_fs[HDL_CLOCKS_MAX];
} risen;

/* Edge n of each clock is at n of its periods, to the ps below. */
static void step_clocks(struct hdl_model *model, uint64_t now_ps, uint32_t clocks)
{
    assert_true(now_ps > risen.last_ps && clocks != 0 && clocks < 4);
    for (uint32_t i = 0; i < HDL_CLOCKS_MAX; i++) {
        const bool due = (risen.rises[i] + 1) * risen.period_fs[i] / 1000 == now_ps;
        assert_int_equal(clocks >> i & 1, due);
        risen.rises[i] += due;
    }
    risen.steps++;
    risen.last_ps = now_ps;
    edges += clocks & 1;
    model->resets += model->reset && (clocks & 1) != 0;
}

/* FER-130: edges of two clocks at one time are one step; reset lasts by clk. */
static void test_two_clocks(void **state)
{
    (void)state;
    struct hdl_model_ops two = loop;
    two.clocks = 2;
    two.step = step_clocks;
    /* Periods in fs; and how many steps 1 us has: 156 + 312 less 156 that are common; ... */
    static const struct {
        uint64_t period_fs[HDL_CLOCKS_MAX], steps;
    } cases[] = {{{6400000, 3200000}, 312},
                 {{4000000, 6400000}, 250 + 156 - 31},
                 {{6400000, 6400000}, 156},
                 {{3103030, 6400000}, 322 + 156}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        memset(&risen, 0, sizeof(risen));
        memcpy(risen.period_fs, cases[i].period_fs, sizeof(risen.period_fs));
        assert_true(begin_clocks(&two, cases[i].period_fs[0], cases[i].period_fs[1]));
        sim_run_until(&world.sim, 1000000);
        assert_int_equal(world.design.edges, risen.rises[0]);
        sim_design_close(&world.design);
        assert_int_equal(risen.steps, cases[i].steps);
    }
    assert_false(begin_clocks(&two, 6400000, 0));
    assert_string_equal(world.design.error, "loop has a clk2, of which the period was not given");
    assert_false(begin_clocks(&loop, 6400000, 6400000));
    assert_string_equal(world.design.error, "loop has no clk2, of which the period was given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_pause),
        cmocka_unit_test(test_reset_at),     cmocka_unit_test(test_reset_loses),
        cmocka_unit_test(test_strikes),      cmocka_unit_test(test_drawn_resets),
        cmocka_unit_test(test_pause_frames), cmocka_unit_test(test_two_clocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
