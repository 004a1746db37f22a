/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What if more than 16 packets could be under way (8.2.4)? Throughput over
 * distance, by the rows of the tables. All of it is prediction.
 */
#include <stdio.h>

#include "lab/lant/bench.h"

/* Printed, or fitted to what is printed; parameters do not change them. */
enum {
    MAC = 59,
    SWITCH = 18,
    PACKET_FLITS = 68,
    STORE_FLITS = 5,
    ANSWER_FLITS = 4,
    RDMA_RECEIVE = 17,
    SHM_RECEIVE = 16,
    ACK = 2,
    SHM_DONE = 5,
};

#define LINE_CYCLES (PACKET_FLITS + 4 + PACKET_FLITS / 24.0) /* A packet on a full line. */
#define PACKET_BITS (8.0 * LANT_PAYLOAD_BYTES_MAX)

enum {
    NEAR = 8,
    FAR = 32, /* Hops. */
    STREAM_BYTES = 1 << 20,
    NEAR_BYTES = 1 << 18,
    STORE_BYTES = 8,
    STORES = 1024, /* Each half is whole round trips of 16 and of 64 rows. */
    ROWS_MOST = 256,
    KNEE_FROM = 14, /* The rows among which the first that are enough are looked for. */
    KNEE_TO = 26,
};

/* -- Arithmetic ---------------------------------------------------------------------------------*/

/* Links and switches, there and back. */
static double way_cycles(uint32_t hops)
{
    return 2.0 * (hops * MAC + (hops + 1) * SWITCH);
}

/* From the first flit of a packet until its row is free. */
static double packet_cycles(uint32_t hops)
{
    return way_cycles(hops) + 2 * PACKET_FLITS + RDMA_RECEIVE + ANSWER_FLITS + ACK;
}

static double store_cycles(uint32_t hops)
{
    return way_cycles(hops) + 2 * STORE_FLITS + SHM_RECEIVE + ANSWER_FLITS + SHM_DONE;
}

static double gbps_of(double cycles)
{
    return PACKET_BITS * 1e3 / (cycles * LANT_CYCLE_PS);
}

/* `rows` packets in a round trip, or as many as the line takes. */
static double predicted_gbps(uint32_t rows, uint32_t hops)
{
    const double each = packet_cycles(hops) / rows;
    return gbps_of(each > LINE_CYCLES ? each : LINE_CYCLES);
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static double measured_gbps(struct lab_run *run, uint32_t rows, uint32_t timers, uint32_t hops)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_ring_of(run, 2 * hops + 1);
    config.rdma.work.segment_bytes = 0;
    config.rdma.rows = (uint16_t)rows;
    config.early_timers = config.early_timers == 0 ? 0 : timers;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    const double gbps = lant_bench_goodput(bench, hops, hops == NEAR ? NEAR_BYTES : STREAM_BYTES);
    lant_bench_end(bench);
    return gbps;
}

/* Cycles a store, of many that wait for rows. */
static double measured_stores(struct lab_run *run, uint32_t rows, uint32_t hops)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_ring_of(run, 2 * hops + 1);
    config.shm.rows = (uint16_t)rows;
    config.shm.early_timers = 0;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    for (uint32_t i = 0; i < STORES; i++) {
        CHECK(lant_bench_put(bench, 0, hops, (uint64_t)STORE_BYTES * i, STORE_BYTES));
    }
    const uint64_t *done = &bench->probes[0].done;
    (void)lant_bench_until(bench, done, STORES / 2);
    const uint64_t half_ps = bench->sim.now_ps;
    (void)lant_bench_until(bench, done, STORES);
    const double cycles = lant_in_cycles(bench->sim.now_ps - half_ps) / (STORES - STORES / 2);
    lant_bench_settle(bench);
    lant_bench_end(bench);
    return cycles;
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void judge_rows(struct lab_run *run)
{
    struct lab_series *series = NULL;
    struct lab_figure *figure = lab_add_figure(run, "rows", "Throughput over packets under way",
                                               "rows", "payload, Gb/s", true);
    lab_add_level(figure, gbps_of(LINE_CYCLES), "the line");
    series = lab_add_curve(run, "%u hops", FAR);
    for (uint32_t rows = 16; rows <= ROWS_MOST; rows *= 2) {
        char id[LAB_ID_BYTES];
        const double expected = predicted_gbps(rows, FAR);
        const double measured = measured_gbps(run, rows, rows, FAR);
        lab_add_point(series, rows, measured, expected);
        if (expected < gbps_of(LINE_CYCLES)) {
            (void)snprintf(id, sizeof(id), "LNI-W-2.rows/%u", rows);
            lab_judge_relative(lab_add_row(run, id, "Gb/s", "%u rows, over %u hops", rows, FAR),
                               expected, measured, 0.01);
        }
    }
}

static void judge_full(struct lab_run *run)
{
    const double gbps = measured_gbps(run, lant_whole(run, "rows"), lant_whole(run, "timers"), FAR);
    lab_judge_relative(
        lab_add_row(run, "LNI-W-2.full", "Gb/s", "as many rows as there are, over %u hops", FAR),
        gbps_of(LINE_CYCLES), gbps, 0.01);
}

/* The fewest rows with which the line is full. */
static void judge_knee(struct lab_run *run)
{
    uint32_t rows = KNEE_FROM;
    while (rows < KNEE_TO && measured_gbps(run, rows, rows, NEAR) < 0.999 * gbps_of(LINE_CYCLES)) {
        rows++;
    }
    lab_judge_absolute(
        lab_add_row(run, "LNI-W-2.knee", "rows", "the fewest that fill the line, %u hops", NEAR),
        ceil(packet_cycles(NEAR) / LINE_CYCLES), rows, 0.5);
}

static void judge_stores(struct lab_run *run)
{
    static const uint32_t counts[] = {16, 64};
    static const char *const ids[] = {"LNI-W-2.stores/16", "LNI-W-2.stores/64"};
    for (uint32_t i = 0; i < COUNT_OF(counts); i++) {
        lab_judge_relative(
            lab_add_row(run, ids[i], "cycles", "a store, over %u hops, %u rows of loads and stores",
                        FAR, counts[i]),
            store_cycles(FAR) / counts[i], measured_stores(run, counts[i], FAR), 0.02);
    }
}

static void in_flight(struct lab_run *run)
{
    judge_rows(run);
    judge_full(run);
    judge_knee(run);
    judge_stores(run);
}

static const struct lab_claim in_flight_claims[] = {
    {
        .id = "LNI-W-2.rows",
        .reference = LAB_PREDICTED,
        .ground = LAB_MECHANISM,
        .given = "LNI-A7",
        .source = "OC: n x 512 bytes in 2 x (32 x 59 + 33 x 18) + 159 = 5123 cycles",
        .broken_by = "mac=40 | switch=0 | early=off",
        .because = "the round trip is shorter; or the engine waits for the far end",
    },
    {.id = "LNI-W-2.full",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A11",
     .source = "OC: 256 > 5123 / 74.8, bandwidth times delay",
     .broken_by = "rows=16 | timers=16",
     .because = "16 packets under way, or 16 and the engine's 3, do not cover the round trip"},
    {.id = "LNI-W-2.knee",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = "OC: 2 x (8 x 59 + 9 x 18) + 159 = 1427 cycles, of 74.8 a packet",
     .broken_by = "mac=30 | mac=90",
     .because = "the round trip is another"},
    {.id = "LNI-W-2.stores",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = "OC: 2 x (32 x 59 + 33 x 18) + 35 = 4999 cycles, shared by the rows",
     .broken_by = "mac=40",
     .because = "the round trip is shorter"},
};

const struct lab_experiment lant_in_flight = {
    .name = "lant/in-flight",
    .what = "what if: more than 16 packets under way",
    LANT_COMMON,
    .uses = LANT_LINE_USES
    "switch shm_issue shm_receive shm_done rdma_setup ram rdma_receive ack early_timer early "
    "engine_window timeout retries receiver rows=256 timers=256",
    LANT_CLAIMS(in_flight_claims),
    .quick = true,
    .run = in_flight,
    .explains = "The tables bound what is under way, and so throughput over distance: as many "
                "packets as rows in each round trip. 16 are enough for six hops; 32 hops need 69. "
                "The timers of early acknowledgement must grow with the rows, or the DMA engine "
                "waits for the far end. The model does not know the logic that larger tables cost.",
};
