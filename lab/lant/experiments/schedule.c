/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Large transfers in segments: the transfers behind them, and those that can begin early (rows A64,
 * A68).
 */
#include "lab/lant/bench.h"

enum {
    KB = 1024,
    MB = 1 << 20,
    BLOCKS = 3,
};

/* Tags. */
enum {
    LARGE = 1,
    SMALL = 2,
};

/* The receiver works on a piece as soon as it has come, as long as a MB is on its way. */
struct worker {
    struct lant_bench *bench;
    double free_cycles, cycles_per_byte;
};

static void on_piece(void *context, enum lant_queue queue,
                     const struct lant_notification *notification)
{
    (void)queue;
    struct worker *worker = context;
    const double now = lant_in_cycles(worker->bench->sim.now_ps);
    worker->free_cycles =
        fmax(worker->free_cycles, now) + notification->bytes * worker->cycles_per_byte;
}

/* When the work on 3 MB is done, in cycles. */
static double pipeline(struct lab_run *run, uint32_t segment, double cycles_per_byte)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_line_of(run);
    config.rdma.work.segment_bytes = segment;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    struct worker worker = {bench, 0, cycles_per_byte};
    bench->world.nodes[1].program =
        (struct lant_program){.context = &worker, .on_notification = on_piece};
    lant_bench_transfer(bench, 1, BLOCKS * MB, 0);
    lant_bench_settle(bench);
    lant_bench_end(bench);
    return worker.free_cycles;
}

/* How long 1 KB takes that is submitted just behind 1 MB, in cycles. */
static double behind(struct lab_run *run, uint32_t segment)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_line_of(run);
    config.rdma.work.segment_bytes = segment;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    lant_bench_transfer(bench, 1, MB, LARGE);
    lant_bench_transfer(bench, 1, KB, SMALL);
    /* Either may be the first that has left. */
    struct lant_probe *probe = &bench->probes[0];
    if (lant_bench_until(bench, &probe->pushed, 1) && (probe->pushed_tags & 1 << SMALL) == 0) {
        (void)lant_bench_until(bench, &probe->pushed, 2);
    }
    const double cycles = lant_in_cycles(bench->probes[0].pushed_ps);
    lant_bench_settle(bench);
    lant_bench_end(bench);
    return cycles;
}

static void schedule(struct lab_run *run)
{
    const uint32_t piece = lant_segment_of(run, "pieces");
    const uint32_t segment = lant_segment_of(run, "segment");
    const double cycles_per_byte = pipeline(run, 0, 0) / (BLOCKS * (double)MB);
    const double whole = pipeline(run, 0, cycles_per_byte);
    lab_judge_absolute(
        lab_add_row(run, "LNI-A64", "", "3 MB in pieces, worked on as they come, of whole"),
        4.0 / 6, pipeline(run, piece, cycles_per_byte) / whole, 0.02);
    lab_judge_range(lab_add_row(run, "LNI-A68", "cycles", "1 KB behind 1 MB, in segments"), 0,
                    1.05 * 128 * 74.83, behind(run, segment));
    lab_judge_relative(lab_add_row(run, "LNI-A68.whole", "cycles", "1 KB behind 1 MB, whole"),
                       153000, behind(run, lant_segment_of(run, "unsegmented")), 0.05);
}

static const struct lab_claim schedule_claims[] = {
    {.id = "LNI-A64",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "Fig. 6.9: pieces of 1MB of 3MB; OC: (3 + 1) / (3 + 3)",
     .broken_by = "pieces=0",
     .because = "the receiver hears of nothing before all has come"},
    {.id = "LNI-A68",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.3: smaller operations before larger ones; OC: 128 x 74.83, and 5 %",
     .broken_by = "segment=0 | segment=256",
     .because = "what is small waits for the whole of what is large"},
    {.id = "LNI-A68.whole",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 2,048 x 74.83",
     .broken_by = "unsegmented=128",
     .because = "it then waits for a segment only"},
};

const struct lab_experiment lant_schedule = {
    .name = "lant/schedule",
    .what = "large transfers in segments",
    LANT_COMMON,
    .uses =
        LANT_LINE_USES "rdma_setup ram rdma_receive ack rows operations timers early_timer early "
                       "engine_window timeout register segment receiver pieces unsegmented",
    LANT_CLAIMS(schedule_claims),
    .quick = true,
    .run = schedule,
    .explains = "Segments let a receiver begin early and small transfers overtake.",
};
