/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads over one link inside a QFDB, and over hops from router to router (row A4).
 */
#include <math.h>

#include "lab/exanest/experiments.h"

enum {
    /* A ring in which 8 hops are half the way round, so that no way back is shorter. */
    RING = 16,
    FIRST = 2,
    LAST = 8,
    MESSAGE = 65536, /* 4 blocks. */
    BYTES = 8,       /* The message with which latency is measured. */
    MEGABYTE = 1048576,
};

/* The F1 that is `hops` hops away from number 0; 1: over a link, in the same QFDB. */
static uint32_t at_distance(uint32_t hops)
{
    return hops == 1 ? 1 : hops * EXANEST_FPGAS;
}

static struct exanest_machine_config config_of(struct lab_run *run, uint32_t hops, uint32_t gap)
{
    struct exanest_machine_config config = exanest_config_of(run, hops == 1 ? 1 : RING, 1, 1);
    exanest_set_router(run, &config);
    config.fabric.router.gap_hundredths = (uint16_t)(100 * gap);
    return config;
}

static double rate_of(struct lab_run *run, uint32_t hops, uint32_t gap)
{
    const struct exanest_machine_config config = config_of(run, hops, gap);
    struct exanest_program_config program =
        exanest_program_default(0, at_distance(hops), false, MESSAGE);
    program.window = (uint32_t)lab_value(run, "window");
    program.count = (uint32_t)lab_value(run, "megabytes") * (MEGABYTE / MESSAGE);
    return exanest_flows_of(run, &config, &program, 1).gbps;
}

/* The rates over `from`, `from` + `step` ... hops. */
static void add_curve(struct lab_run *run, uint32_t gap, uint32_t from, uint32_t step,
                      double gbps[LAST + 1])
{
    struct lab_series *series = lab_add_curve(run, "%u cycles behind a packet of a router", gap);
    for (uint32_t hops = from; hops <= LAST; hops += step) {
        gbps[hops] = rate_of(run, hops, gap);
        lab_add_point(series, hops, gbps[hops], LAB_NOTHING);
        lab_progress(run, (double)hops / LAST);
    }
}

static void add_latencies(struct lab_run *run)
{
    lab_add_figure(run, "latency", "Latency of a read of 8 bytes by hops",
                   "1: inside a QFDB; 2 and more: from router to router", "us", false);
    struct lab_series *series = lab_add_curve(run, "memory that hits");
    for (uint32_t hops = 1; hops <= LAST; hops++) {
        struct exanest_machine_config config =
            config_of(run, hops, (uint32_t)lab_value(run, "router_gap"));
        config.fabric.fpga.memory.read_cycles = (uint32_t)lab_value(run, "hit");
        lab_add_point(series, hops,
                      exanest_transfer_us(run, &config, 0, at_distance(hops), false, BYTES),
                      LAB_NOTHING);
    }
}

static void hops(struct lab_run *run)
{
    const uint32_t gap = (uint32_t)lab_value(run, "router_gap");
    struct lab_figure *figure =
        lab_add_figure(run, "throughput", "Figure 7-3: throughput of reads by hops",
                       "1: inside a QFDB; 2 and more: from router to router", "Gb/s", false);
    lab_add_mark(figure, 1, 8.3, "8.3");
    lab_add_mark(figure, LAB_NOTHING, 7.9, "7.9");
    double gbps[LAST + 1], slower[LAST + 1];
    add_curve(run, gap, 1, 1, gbps);
    add_curve(run, gap + 1, FIRST, LAST - FIRST, slower);
    const double link = gbps[1];
    double least = gbps[FIRST], most = least, sum = 0;
    for (uint32_t i = FIRST; i <= LAST; i++) {
        least = fmin(least, gbps[i]);
        most = fmax(most, gbps[i]);
        sum += gbps[i];
    }
    const double mean = sum / (LAST - FIRST + 1);
    lab_judge_absolute(lab_add_row(run, "EXA-A4", "",
                                   "spread of reads' throughput over %d to %d hops, by its mean",
                                   FIRST, LAST),
                       0, (most - least) / mean, 0.001);
    lab_judge_relative(lab_add_row(run, "EXA-A4.level", "Gb/s",
                                   "reads from router to router; %.2f if its gap is %u cycles",
                                   slower[FIRST], gap + 1),
                       7.9, mean, 0.01);
    lab_judge_relative(lab_add_row(run, "EXA-A4.drop", "",
                                   "the same by %.2f over a link; %.3f if its gap is %u cycles",
                                   link, slower[FIRST] / link, gap + 1),
                       7.9 / 8.3, mean / link, 0.01);
    add_latencies(run);
}

static const struct lab_claim hops_claims[] = {
    {.id = "EXA-A4",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "7, figure 7-3: \"remains constant as the number of hops increases\"",
     .broken_by = "window=1 read_blocks=1 | window=1 read_blocks=2 router_latency=4500 megabytes=1",
     .because = "the blocks under way do not cover the round trip"},
    {.id = "EXA-A4.level",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "7, figure 7-3: 7.9 Gb/s",
     .broken_by = "router_gap=3 | router_gap=5",
     .because = "one number of cycles behind a packet fits"},
    {.id = "EXA-A4.drop",
     .reference = LAB_DERIVED,
     .ground = LAB_ARITHMETIC,
     .given = "EXA-A4.level",
     .source = "7, figure 7-3: from 8.3 to 7.9 Gb/s",
     .broken_by = "router_gap=3",
     .because = "the router would be less slow beside a link"},
};

const struct lab_experiment exanest_hops = {
    .name = "exanest/hops",
    .what = "reads over hops from router to router",
    EXANEST_COMMON,
    .uses = EXANEST_USES EXANEST_ROUTER_USES "megabytes hit window",
    EXANEST_CLAIMS(hops_claims),
    .run = hops,
    .explains =
        "Over hops throughput does not change, because the blocks of a window cover the longest "
        "way. Its level is no evidence: the router is a black box in the document, and its gap was "
        "fitted to it. The drop to it is some: over a link nothing was fitted. How long a hop "
        "takes is our choice: 120 cycles of a router, and a wire. Ploumidis2023 prints times over "
        "hops (exanest/eager), which are much shorter. The document's way of counting hops is lost "
        "with its figure: here the F1 of "
        "two QFDBs talk, and a hop is a wire between two routers. The ring of 16 QFDBs is ours, "
        "for 8 hops; the document's torus has a dimension of 4.",
};
