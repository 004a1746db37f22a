/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The throughput of a link with packets of one shape (row A20).
 */
#include "lab/exanest/bench.h"
#include "lab/exanest/experiments.h"

enum {
    SOURCES = 2, /* While one packet leaves, another one waits. */
};

#define WARM_PS     (2000 * SIM_NS)
#define MEASURED_PS (40000 * SIM_NS)

/* The share of the line's time in which it carries words. */
static double use_of(struct lab_run *run, uint32_t words)
{
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct exanest_bench bench;
    const uint32_t mhz = (uint32_t)lab_value(run, "datapath");
    const uint32_t mbps = exanest_link_mbps(run);
    struct exanest_bench_config config = {
        .datapath_hz = mhz * UINT64_C(1000000),
        .crossbar = exanest_crossbar_default(),
        .link = exanest_link_default(),
        .sources = SOURCES,
        .words = words,
    };
    config.crossbar.idle = (uint8_t)lab_value(run, "idle");
    config.link.serializer.line =
        exanest_line_gap((uint32_t)lab_value(run, "ideal_gap"), mhz, mbps);
    lab_world_begin(run, &sim, &trace, &capture, PCAPNG_LINK_EXANEST);
    exanest_bench_open(&bench, &config, &sim);
    exanest_bench_run(&bench, WARM_PS);
    const uint64_t before = exanest_bench_receiver(&bench)->counters.words;
    exanest_bench_run(&bench, WARM_PS + MEASURED_PS);
    const uint64_t after = exanest_bench_receiver(&bench)->counters.words;
    const double share =
        (double)((after - before) * exanest_bench_word_ps(&bench)) / (double)MEASURED_PS;
    lab_world_end(run, &sim, trace, capture);
    exanest_bench_close(&bench);
    return share;
}

static void shapes(struct lab_run *run)
{
    double shares[EXANEST_PACKET_WORDS_MAX + 1];
    double least = 1;
    struct lab_figure *figure =
        lab_add_figure(run, "shapes", "Use of a link by packets of one shape", "bytes a packet",
                       "share of the line's time", false);
    lab_add_level(figure, 1, "a link that is full");
    struct lab_series *series = lab_add_curve(run, "one output of the crossbar");
    for (uint32_t n = 1; n <= EXANEST_PACKET_WORDS_MAX; n++) {
        shares[n] = use_of(run, n);
        const double line = n * 12.8;
        lab_add_point(series, n * EXANEST_WORD_BYTES, shares[n],
                      line / fmax(line, (n + 2) / 0.150));
        least = n < 3 ? least : fmin(least, shares[n]);
    }
    lab_judge_absolute(lab_add_row(run, "EXA-A20/16", "", "of a link, packets of 16 B"), 0.64,
                       shares[1], 0.01);
    lab_judge_absolute(lab_add_row(run, "EXA-A20/32", "", "of a link, packets of 32 B"), 0.96,
                       shares[2], 0.01);
    lab_judge_absolute(
        lab_add_row(run, "EXA-A20.longer", "", "of a link, packets of 48 to 288 B, the least"), 1,
        least, 0.01);
}

static const struct lab_claim shapes_claims[] = {
    {.id = "EXA-A20",
     .reference = LAB_DERIVED,
     .ground = LAB_ARITHMETIC,
     .source = "3.2.2: 2 idle cycles behind a packet, so n words take n + 2 cycles of 6.67 ns",
     .broken_by = "idle=0 | idle=4",
     .because = "short packets are held up by nothing else than the idle cycles"},
    {.id = "EXA-A20.longer",
     .reference = LAB_IN_WORDS,
     .ground = LAB_ARITHMETIC,
     .source = "3.2.2: \"able to saturate links nearly for all packet sizes\"; OC: which sizes",
     .broken_by = "idle=4 | link=16",
     .because = "with 4 idle cycles, or a link that is faster, 48 bytes no longer suffice"},
};

const struct lab_experiment exanest_shapes = {
    .name = "exanest/shapes",
    .what = "packets of one shape through one output of a crossbar to a link",
    EXANEST_COMMON,
    .uses = "datapath link idle ideal_gap",
    EXANEST_CLAIMS(shapes_claims),
    .quick = true,
    .run = shapes,
    .explains =
        "That the crossbar saturates links for nearly all packet sizes follows from its two idle "
        "cycles: only acknowledgements without footer (16 bytes) and, barely, responses (32) are "
        "too short. The link carries words alone here (exanest/throughput has its coding). In "
        "blocks of 66 bits with a separator a packet takes longer than the crossbar, whatever its "
        "size, but for the shortest, which fill it to 99 %.",
};
