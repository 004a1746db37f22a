/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long one store and one transfer take over a line: Table 3.6 (rows A1, A2, A6, A57).
 */
#include "lab/lant/bench.h"

/* In cycles, until the bus answers; without early acknowledgement. */
static double store(struct lab_run *run, const struct lant_node_config *config, uint32_t bytes)
{
    const struct lant_fabric_config fabric = lant_line_of(run);
    struct lant_bench *bench = lant_bench_begin(run, config, &fabric);
    const double cycles = lant_bench_store(bench, 1, bytes);
    lant_bench_end(bench);
    return cycles;
}

/* In cycles, until the local notification. */
static double transfer(struct lab_run *run, const struct lant_node_config *config, uint32_t bytes)
{
    const struct lant_fabric_config fabric = lant_line_of(run);
    struct lant_bench *bench = lant_bench_begin(run, config, &fabric);
    lant_bench_transfer(bench, 1, bytes, 0);
    lant_bench_settle(bench);
    const double cycles = lant_in_cycles(bench->probes[0].sent_ps);
    lant_bench_end(bench);
    return cycles;
}

static void latency(struct lab_run *run)
{
    static const uint32_t flits[] = {2, 8, 32, 64};
    struct lant_node_config config = lant_config_of(run);
    config.shm.early_timers = 0;
    config.early_timers = 0;
    const double two = store(run, &config, 16), one = store(run, &config, 8);
    lab_judge_absolute(lab_add_row(run, "LNI-A1", "cycles", "a store of 16 bytes"), 172, two, 0.5);
    lab_judge_absolute(lab_add_row(run, "LNI-A6", "cycles",
                                   "16 bytes, which are two packets, behind 8 bytes (%.0f cycles)",
                                   one),
                       10, two - one, 0.5);
    const double large = transfer(run, &config, 16);
    lab_judge_absolute(lab_add_row(run, "LNI-A2", "cycles", "a transfer of 16 bytes"), 232, large,
                       0.5);
    lab_judge_range(lab_add_row(run, "LNI-A4", "%", "less latency than the transfer, the store"),
                    25, LAB_UNBOUNDED, 100 * (1 - two / large));
    const double macs = 100 * 2.0 * lant_whole(run, "mac");
    lab_judge_absolute(lab_add_row(run, "LNI-A5/store", "%", "of the store's time, its MACs"), 68.6,
                       macs / two, 0.1);
    lab_judge_absolute(lab_add_row(run, "LNI-A5/transfer", "%", "of the transfer's, its MACs"),
                       50.9, macs / large, 0.1);
    lab_add_figure(run, "latency", "One transfer over a line", "flits of payload", "cycles", true);
    struct lab_series *series = lab_add_curve(run, "until the local notification");
    for (uint32_t i = 0; i < COUNT_OF(flits); i++) {
        const double cycles = transfer(run, &config, flits[i] * LANT_FLIT_BYTES);
        const double expected = 220 + 2 * (4.0 + flits[i]);
        lab_judge_absolute(lab_add_row(run,
                                       flits[i] == 2    ? "LNI-A57/2"
                                       : flits[i] == 8  ? "LNI-A57/8"
                                       : flits[i] == 32 ? "LNI-A57/32"
                                                        : "LNI-A57/64",
                                       "cycles", "one packet of %u flits of payload", flits[i]),
                           expected, cycles, 2);
        lab_add_point(series, flits[i], cycles, expected);
    }
}

static const struct lab_claim latency_claims[] = {
    {.id = "LNI-A1",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 3.6: 172 cycles",
     .broken_by = "mac=58 | shm_receive=15",
     .because = "the sum of the stages is the figure that it was set by"},
    {.id = "LNI-A6",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "3.4.1: over 10 cycles, about 5.5 % of 172",
     .broken_by = "shm_beat=5",
     .because =
         "only the beats' distance keeps the second packet behind the first: Table 3.6 is one "
         "point and cannot show another"},
    {.id = "LNI-A2",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 3.6: 232 cycles",
     .broken_by = "ram=29 | rdma_setup=34",
     .because = "the sum of the stages is the figure that it was set by"},
    {.id = "LNI-A4",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A1 LNI-A2",
     .source = "3.4.1: over 25 %; abstract",
     .broken_by = "ram=20",
     .because = "the transfer then reads its memory sooner"},
    {.id = "LNI-A5",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A1 LNI-A2",
     .source = "3.4.1: 68.6 % and 50.9 %",
     .broken_by = "mac=58",
     .because = "a MAC then takes less of the same"},
    {.id = "LNI-A57",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A2",
     .source = "OC: 220 + 2 (4 + p), stored once at the receiver, on top of leaving",
     .broken_by = "receiver=cut",
     .because = "a receiver that forwards at once takes each flit's time only once"},
};

const struct lab_experiment lant_latency = {
    .name = "lant/latency",
    .what = "a store and a transfer over one line",
    LANT_COMMON,
    .uses = "mac mac_frame shm_issue shm_beat shm_receive shm_done shm_rows rdma_setup ram "
            "rdma_receive rdma_done ack timeout register receiver",
    LANT_CLAIMS(latency_claims),
    .quick = true,
    .run = latency,
    .explains = "The parts of Table 3.6 add up, and store and forward shows in the length. How the "
                "stages depend on the length is assumed: the table has one length.",
};
