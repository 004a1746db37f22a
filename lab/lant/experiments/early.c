/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The gain of a loop of stores by early acknowledgement, and the number of rows that the inbound
 * CAM has to hold (rows A59, A69).
 */
#include "lab/lant/bench.h"

enum {
    STORES = 400,
    BYTES = 8,
    FAR_CYCLES = 900, /* The round trip of the distant peer. */
    ARRIVALS = 200,
    ARRIVAL_FLITS = 5,
};

/* -- A loop of stores ---------------------------------------------------------------------------*/

struct loop {
    struct lant_bench *bench;
    struct sim_event wake, next;
    uint32_t issued, rows_most;
    uint64_t bus_ps;
};

static void store(struct loop *loop)
{
    CHECK(lant_bench_put(loop->bench, 0, 1, (uint64_t)BYTES * loop->issued, BYTES));
    loop->issued++;
    const uint32_t rows = (uint32_t)__builtin_popcountll(loop->bench->world.nodes[0].shm.busy);
    loop->rows_most = rows > loop->rows_most ? rows : loop->rows_most;
}

static void on_wake(struct sim *sim, struct sim_event *event)
{
    struct loop *loop = CONTAINER_OF(event, struct loop, wake);
    sim_after(sim, &loop->next, loop->bus_ps);
}

static void on_next(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct loop *loop = CONTAINER_OF(event, struct loop, next);
    if (loop->issued < STORES) {
        store(loop);
    }
}

/* A store, there and back, in cycles. */
static uint32_t round_trip_of(struct lab_run *run)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_line_of(run);
    config.shm.early_timers = 0;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    CHECK(lant_bench_put(bench, 0, 1, 0, BYTES));
    (void)lant_bench_until(bench, &bench->probes[0].done, 1);
    const uint32_t cycles = (uint32_t)lant_in_cycles(bench->sim.now_ps);
    lant_bench_settle(bench);
    lant_bench_end(bench);
    return cycles;
}

/* Cycles a store, and the most rows in use. The line is as long as `round_trip` says; 0: as it
 * is. */
static double loop_of(struct lab_run *run, uint32_t round_trip, uint32_t *rows_most)
{
    const struct lant_node_config config = lant_config_of(run);
    struct lant_fabric_config fabric = lant_line_of(run);
    const uint32_t near = round_trip == 0 ? 0 : round_trip_of(run);
    if (round_trip > near) {
        fabric.node_line.latency_cycles += (round_trip - near) / 2;
    }
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    struct loop loop = {.bench = bench, .bus_ps = lant_cycles(lant_whole(run, "bus"))};
    sim_event_init(&loop.wake, on_wake);
    sim_event_init(&loop.next, on_next);
    bench->probes[0].wakes = &loop.wake;
    store(&loop);
    (void)lant_bench_until(bench, &bench->probes[0].done, STORES / 2);
    const uint64_t half_ps = bench->sim.now_ps;
    (void)lant_bench_until(bench, &bench->probes[0].done, STORES);
    const double cycles = lant_in_cycles(bench->sim.now_ps - half_ps) / (STORES / 2);
    sim_cancel(&loop.wake);
    sim_cancel(&loop.next);
    lant_bench_settle(bench);
    lant_bench_end(bench);
    *rows_most = loop.rows_most;
    return cycles;
}

/* -- The CAM ------------------------------------------------------------------------------------*/

/* Stores of as many sources as there are arrive without a gap; the most entries in use. */
static uint32_t entries_of(struct lab_run *run, bool from_port, uint32_t memory, uint64_t *held)
{
    struct lant_node_config config = lant_config_of(run);
    struct lant_fabric_config fabric = lant_line_of(run);
    /* From the arrival to memory's answer. */
    config.costs.shm_receive = memory < ARRIVAL_FLITS ? 0 : memory - ARRIVAL_FLITS;
    if (from_port) {
        fabric.node_line.frame_flits = fabric.node_line.pause_flits = 0;
    }
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    for (uint32_t i = 0; i < ARRIVALS; i++) {
        const struct lant_packet packet = {
            .header = {.destination = 1,
                       .type = LANT_AW,
                       .payload = 1,
                       .address = (uint64_t)BYTES * i,
                       .strobe = 0xff,
                       .size = 3},
            .footer = {.row = (uint16_t)i, .bus_id = (uint8_t)i, .offset = i},
            .payload = {lant_bench_word(0, (uint64_t)BYTES * i)}};
        struct lant_frame *frame = lant_fabric_frame(&bench->world.fabric);
        CHECK(frame != NULL);
        frame->count = lant_encode(&packet, frame->flits);
        (void)lant_fabric_send(&bench->world.fabric, 0, frame, 0);
    }
    (void)lant_bench_until(bench, &bench->world.fabric.counters.carried, 2 * ARRIVALS);
    lant_bench_settle(bench);
    lant_bench_fill(bench, 0, BYTES * ARRIVALS);
    lant_bench_compare(bench, 1, 0, BYTES * ARRIVALS);
    const struct lant_inbound_counters *counters = &bench->world.nodes[1].inbound.counters;
    const uint32_t peak = (uint32_t)counters->entries_peak;
    *held = counters->held_entry;
    lant_bench_end(bench);
    return peak;
}

static void cam(struct lab_run *run)
{
    const uint32_t memory = lant_whole(run, "dram");
    uint64_t link_held, port_held, held = 0;
    const uint32_t link = entries_of(run, false, memory, &link_held);
    const uint32_t port = entries_of(run, true, memory, &port_held);
    lab_judge_range(lab_add_row(run, "LNI-A59.link", "", "entries in use, from one line"), 1, 4,
                    link);
    lab_judge_range(lab_add_row(run, "LNI-A59.port", "", "entries in use, from the switch's port"),
                    1, 7, port);
    lab_judge_absolute(lab_add_row(run, "LNI-A59.held", "", "requests that are held"), 0,
                       (double)(link_held + port_held), 0.5);
    uint32_t first = memory;
    while (held == 0 && first < 1000) {
        (void)entries_of(run, true, ++first, &held);
    }
    lab_judge_range(
        lab_add_row(run, "LNI-A59.first", "cycles", "of memory, when the first request is held"),
        36, 41, first);
}

static void early(struct lab_run *run)
{
    uint32_t near_rows, far_rows;
    const double near = loop_of(run, 0, &near_rows), far = loop_of(run, FAR_CYCLES, &far_rows);
    lab_judge_relative(lab_add_row(run, "LNI-A69.near", "cycles", "a store, at one hop"), 30, near,
                       0.1);
    lab_judge_range(lab_add_row(run, "LNI-A69.rows", "", "rows in use, at one hop"), 3, 4,
                    near_rows);
    lab_judge_relative(lab_add_row(run, "LNI-A69.far", "cycles",
                                   "a store, over %u cycles and back; %u rows in use", FAR_CYCLES,
                                   far_rows),
                       56, far, 0.1);
    cam(run);
}

static const struct lab_claim early_claims[] = {
    {.id = "LNI-A69.near",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.4.2: the bus, 28; 6.1: the timer, 2",
     .broken_by = "early=off",
     .because = "the store then waits for the far end",
     .not_reproduced = "44: a timer is granted behind the footer (6.1), which is 14 cycles behind "
                       "the store"},
    {.id = "LNI-A69.rows",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 162 of 44 cycles",
     .broken_by = "mac=300",
     .because = "more stores are under way over a longer line"},
    {.id = "LNI-A69.far",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 900 / 16",
     .broken_by = "early=off | shm_rows=8",
     .because = "the rows are what limits it"},
    {.id = "LNI-A59.link",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.3.3: 30 cycles of memory; OC: a packet in 9.2",
     .broken_by = "dram=60",
     .because = "more requests wait for slower memory"},
    {.id = "LNI-A59.port",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.3.3: 30 cycles of memory; OC: a packet in 5",
     .broken_by = "dram=60",
     .because = "more requests wait for slower memory"},
    {.id = "LNI-A59.held",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.3.3: 8 entries are enough but under extreme circumstances",
     .broken_by = "cam=4 | dram=60",
     .because = "fewer entries, or slower memory, hold requests up"},
    {.id = "LNI-A59.first",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 8 entries, a packet in 5 cycles",
     .broken_by = "cam=7 | cam=9",
     .because = "it is what the entries cover"},
};

const struct lab_experiment lant_early = {
    .name = "lant/early",
    .what = "a loop of stores that are acknowledged early, and the CAM that takes them in",
    LANT_COMMON,
    .uses = LANT_LINE_USES "shm_issue shm_receive shm_done shm_rows early_timer early timeout cam "
                           "receiver bus dram",
    LANT_CLAIMS(early_claims),
    .quick = true,
    .run = early,
    .explains = "A store costs its CPU what bus and interface take, however far its peer is, until "
                "rows are short. Eight entries of the CAM are enough for memory of 30 cycles.",
};
