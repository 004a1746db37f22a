/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The peak rate of an FPGA whose accelerators compute what comes by its link: 7.3, step by step,
 * with the throughput of a block measured.
 */
#include <math.h>

#include "lab/lant/chain_runs.h"

#define BYTE_BITS 8.0
#define HUNDRED   100.0

struct estimate {
    double gbps;     /* One accelerator needs this, */
    double rate;     /* Blocks of data a second. */
    double mflops;   /* and computes this. */
    double room;     /* Accelerators for which there are flip-flops. */
    double carried;  /* And those that the links can feed. */
    double placed;   /* And those that are placed. */
    double gflops;   /* They compute this, */
    double feasible; /* and of as many of them as the links can feed. */
};

static struct estimate estimate_of(struct lab_run *run)
{
    const uint32_t bytes = lant_whole(run, "data");
    struct estimate estimate = {
        .gbps = lant_chain_throughput(run, false, bytes, lant_whole(run, "hls")),
        .placed = lab_value(run, "placed"),
    };
    const double free_ffs =
        lab_value(run, "device_ffs") * (1 - lab_value(run, "stack_ffs") / HUNDRED);
    estimate.rate = estimate.gbps * 1e9 / (BYTE_BITS * bytes);
    estimate.mflops = estimate.rate * lab_value(run, "flop") / 1e6;
    estimate.room = floor(free_ffs / lab_value(run, "block_ffs"));
    estimate.carried = lab_value(run, "links") * lab_value(run, "link_rate") / estimate.gbps;
    estimate.gflops = estimate.placed * estimate.mflops / 1e3;
    estimate.feasible = fmin(estimate.placed, estimate.carried) * estimate.mflops / 1e3;
    return estimate;
}

static void estimate(struct lab_run *run)
{
    const struct estimate got = estimate_of(run);
    lab_add_reading(run, "gbps", "Gb/s", got.gbps, "of data through one accelerator, measured");
    lab_add_reading(run, "rate", "/s", got.rate, "blocks of data through it");
    lab_add_reading(run, "mflops", "MFLOPS", got.mflops, "of one accelerator");
    lab_add_reading(run, "room", "", got.room, "accelerators for which there are flip-flops");
    lab_add_reading(run, "carried", "", got.carried, "accelerators that the links can feed");
    lab_add_reading(run, "gflops", "GFLOPS", got.gflops, "of those that are placed");
    lab_add_reading(run, "feasible", "GFLOPS", got.feasible,
                    "of those that are placed and that the links can feed");
    lab_judge_relative(lab_add_row(run, "LNI-T1.rate", "/s", "blocks of data"), 134277, got.rate,
                       0.01);
    lab_judge_relative(lab_add_row(run, "LNI-T1.block", "MFLOPS", "an accelerator"), 137,
                       got.mflops, 0.01);
    lab_judge_absolute(lab_add_row(run, "LNI-T1.room", "", "accelerators that fit"), 16, got.room,
                       0);
    lab_judge_relative(lab_add_row(run, "LNI-T1.peak", "GFLOPS", "an FPGA"), 1.233, got.gflops,
                       0.01);
    lab_judge_relative(lab_add_row(run, "LNI-T1.fed", "GFLOPS", "as much as the link feeds"), 1.233,
                       got.feasible, 0.01);
}

static const struct lab_claim estimate_claims[] = {
    {.id = "LNI-T1.rate",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A47",
     .source = "7.3: approximately 134,277",
     .broken_by = "hls=400 | turn=60",
     .because = "a block takes longer"},
    {.id = "LNI-T1.block",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A47",
     .source = "7.3: approximately 137 MFLOPS",
     .broken_by = "hls=400 | flop=512",
     .because = "a block takes longer, or has less to compute"},
    {.id = "LNI-T1.room",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "7.3: 16 IP blocks on a single FPGA",
     .broken_by = "stack_ffs=0 | block_ffs=40000",
     .because = "the interface takes no flip-flops, or an accelerator takes more"},
    {.id = "LNI-T1.peak",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A47",
     .source = "7.3: 1.233 GFLOPS per FPGA",
     .broken_by = "placed=16 | hls=400",
     .because = "other accelerators, or slower ones"},
    {.id = "LNI-T1.fed",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A47",
     .source = "7.3: 9 blocks transmitting over a single link, 1.233 GFLOPS",
     .broken_by = "hls=400",
     .because = "the link feeds more slow accelerators, which compute less",
     .not_reproduced = "1.066 GFLOPS: 9 accelerators of 1.1 Gb/s are 9.9 Gb/s, more than the 8.56 "
                       "Gb/s that 3.4.3 measures of a link, which feeds 7.8 of them"},
};

const struct lab_experiment lant_estimate = {
    LANT_COMMON,
    .name = "lant/estimate",
    .what = "the peak rate of an FPGA with accelerators, as 7.3 estimates it",
    .uses = LANT_CHAIN_USES "data flop hls block_ffs device_ffs stack_ffs placed links link_rate",
    LANT_CLAIMS(estimate_claims),
    .quick = true,
    .run = estimate,
    .explains =
        "For an accelerator of your own, set what its synthesis reports: --set data=4096 --set "
        "flop=8192 --set hls=1100 --set block_ffs=52000 --json. The throughput of its blocks is "
        "measured in the model of chapter 7; the rest is the document's arithmetic. The document "
        "lets 9 accelerators share a link, which feeds 7.8: the last two rows are the estimate "
        "without that bound, and with it.",
};
