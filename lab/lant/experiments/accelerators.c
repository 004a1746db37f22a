/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Blocks of data through two accelerators on two nodes, with the transport in the interface and in
 * software: Table 7.3, Fig. 7.5, Fig. 7.6 (rows A36 to A45, A47, A60, A61).
 */
#include "lab/lant/chain_runs.h"

enum {
    KB = 1024,
    SIZES = 7,
    HLS = 288, /* Cycles: 7.3's multiplication of matrices. */
};

/* Table 7.3. The document's accelerators compute for a multiple of these, in both dataflows. */
static const struct {
    const char *row;
    uint32_t bytes, cycles;
} table[SIZES] = {
    {"LNI-A36", 512, 989},       {"LNI-A37", KB, 1407},     {"LNI-A38", 2 * KB, 2268},
    {"LNI-A39", 4 * KB, 3984},   {"LNI-A40", 8 * KB, 7422}, {"LNI-A41", 16 * KB, 14231},
    {"LNI-A42", 32 * KB, 27925},
};

/* -- Rows ---------------------------------------------------------------------------------------*/

static void latencies(struct lab_run *run)
{
    for (uint32_t i = 0; i < SIZES; i++) {
        lab_judge_relative(
            lab_add_row(run, table[i].row, "cycles", "a block of %u bytes", table[i].bytes),
            table[i].cycles, lant_chain_latency(run, false, table[i].bytes, 0), 0.01);
    }
}

/* By how many per cent the interface is faster than software. */
static double latency_gain(struct lab_run *run, uint32_t bytes)
{
    return 100 *
           (1 - lant_chain_latency(run, false, bytes, 0) / lant_chain_latency(run, true, bytes, 0));
}

static void gains(struct lab_run *run)
{
    static const struct {
        const char *row;
        uint32_t bytes;
        double predicted;
    } sizes[] = {{"LNI-A60/1", KB, 23}, {"LNI-A60/4", 4 * KB, 12}, {"LNI-A60/32", 32 * KB, 4.7}};
    const double most = latency_gain(run, 512);
    lab_judge_absolute(lab_add_row(run, "LNI-A43", "%", "less latency, 512 bytes"), 29, most, 1);
    lab_judge_absolute(lab_add_row(run, "LNI-E2", "%", "less latency, 512 bytes"), 25, most, 2);
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        lab_judge_absolute(
            lab_add_row(run, sizes[i].row, "%", "less latency, %u KB", sizes[i].bytes / KB),
            sizes[i].predicted, latency_gain(run, sizes[i].bytes), 2);
    }
    const double offloaded = lant_chain_throughput(run, false, 32 * KB, 0);
    lab_judge_absolute(lab_add_row(run, "LNI-A44", "%", "more throughput, 32 KB"), 8.6,
                       100 * (offloaded / lant_chain_throughput(run, true, 32 * KB, 0) - 1), 0.5);
    lab_judge_relative(lab_add_row(run, "LNI-A45.level", "Gb/s", "blocks of 32 KB"), 2.49,
                       offloaded, 0.04);
    lab_judge_range(lab_add_row(run, "LNI-A45.gain", "%", "32 KB, more than 16 KB"), 1, 4,
                    100 * (offloaded / lant_chain_throughput(run, false, 16 * KB, 0) - 1));
}

static void computing(struct lab_run *run)
{
    static const double predicted[] = {1.46, 0.56, 0.35};
    static const char *const rows[] = {"LNI-A61/0", "LNI-A61/1", "LNI-A61/2"};
    lab_judge_relative(lab_add_row(run, "LNI-A47", "Gb/s", "1 KB, %u cycles of computing", HLS),
                       1.1, lant_chain_throughput(run, false, KB, HLS), 0.005);
    for (uint32_t ratio = 0; ratio < COUNT_OF(rows); ratio++) {
        const uint64_t compute = (uint64_t)ratio * table[1].cycles;
        lab_judge_relative(lab_add_row(run, rows[ratio], "Gb/s", "1 KB, R = %u", ratio),
                           predicted[ratio], lant_chain_throughput(run, false, KB, compute), 0.04);
    }
}

/* -- Figures ------------------------------------------------------------------------------------*/

/* A panel of Fig. 7.5: the ratio of computation and communication on the axis, a curve a size. */
static void draw_throughput(struct lab_run *run, bool software)
{
    static const double ratios[] = {0, 0.2, 0.5, 1, 1.5, 2};
    struct lab_figure *figure = lab_add_figure(
        run, software ? "throughput-software" : "throughput",
        software ? "Fig. 7.5: data through two accelerators, transport in software"
                 : "Fig. 7.5: data through two accelerators, transport in the interface",
        "R: computation, of communication", "Gb/s", false);
    if (!software) {
        lab_add_mark(figure, 0.2, 1.1, "1 KB, 1.1");
    }
    for (uint32_t k = 0; k < SIZES; k++) {
        struct lab_series *series = lab_add_curve(run, "blocks of %u bytes", table[k].bytes);
        for (uint32_t i = 0; i < COUNT_OF(ratios); i++) {
            const uint64_t compute = (uint64_t)llround(ratios[i] * table[k].cycles);
            lab_add_point(series, ratios[i],
                          lant_chain_throughput(run, software, table[k].bytes, compute),
                          LAB_NOTHING);
        }
    }
}

static void draw_latency(struct lab_run *run)
{
    static const double ratios[] = {0, 2};
    struct lab_figure *figure =
        lab_add_figure(run, "latency", "Fig. 7.6: latency of a block over its size",
                       "bytes of a block", "us", true);
    figure->log_y = true;
    for (uint32_t k = 0; k < SIZES; k++) {
        lab_add_mark(figure, table[k].bytes, table[k].cycles * LANT_CYCLE_PS * 1e-6, "");
    }
    for (uint32_t i = 0; i < 2 * COUNT_OF(ratios); i++) {
        const bool software = i % 2 == 1;
        struct lab_series *series = lab_add_curve(
            run, "%s, R = %g", software ? "transport in software" : "offloaded", ratios[i / 2]);
        for (uint32_t k = 0; k < SIZES; k++) {
            const uint64_t compute = (uint64_t)llround(ratios[i / 2] * table[k].cycles);
            const double cycles = lant_chain_latency(run, software, table[k].bytes, compute);
            lab_add_point(series, table[k].bytes, cycles * LANT_CYCLE_PS * 1e-6, LAB_NOTHING);
        }
    }
}

static void accelerators(struct lab_run *run)
{
    latencies(run);
    gains(run);
    computing(run);
    lab_progress(run, 0.4);
    draw_throughput(run, false);
    draw_throughput(run, true);
    lab_progress(run, 0.8);
    draw_latency(run);
}

#define STAGES                                                                                     \
    .reference = LAB_PRINTED, .ground = LAB_MECHANISM, .source = "Table 7.3",                      \
    .because = "the stages of a block follow one another, and all four copies count"

static const struct lab_claim accelerators_claims[] = {
    {.id = "LNI-A36",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 7.3",
     .broken_by = "submit=60 | notice=0 | intermediate=direct",
     .because = "what the application takes before and after was set by it; and a copy less shows"},
    {.id = "LNI-A37",
     .given = "LNI-A36 LNI-A42",
     .broken_by = "intermediate=direct | copy=18",
     STAGES},
    {.id = "LNI-A38",
     .given = "LNI-A36 LNI-A42",
     .broken_by = "intermediate=direct | copy=20",
     STAGES},
    {.id = "LNI-A39", .given = "LNI-A42", .broken_by = "intermediate=direct | overlap=on", STAGES},
    {.id = "LNI-A40", .given = "LNI-A42", .broken_by = "intermediate=direct | overlap=on", STAGES},
    {.id = "LNI-A41",
     .given = "LNI-A42",
     .broken_by = "intermediate=direct | overlap=on | early=off",
     STAGES},
    {.id = "LNI-A42",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 7.3",
     .broken_by = "copy=21 | intermediate=direct | overlap=on | early=off",
     .because = "the time of a copy was set by it; and the stages follow one another"},
    {.id = "LNI-A43",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "7.2.3.2: as much as about 29 %",
     .broken_by = "cpu_path=300 | software=bypass",
     .because = "the way through the CPU was set by it"},
    {.id = "LNI-A44",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "7.2.3.1: 8.6 %",
     .broken_by = "detour=0 | software=bypass",
     .because = "the way through DRAM was set by it"},
    {.id = "LNI-E2",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_MECHANISM,
     .given = "LNI-A43",
     .source = "Micro2020: up to 25 % less latency than a software-based transport",
     .broken_by = "software=bypass",
     .because = "without the CPU in its way the software transport is the other one",
     .not_reproduced =
         "29.7 % at the smallest size of Table 7.3, since the way through the CPU was "
         "fitted to the 29 % of 7.2.3.2. The paper's abstract, all that was read, "
         "does not name its sizes: of 1 KB it would be 23.5 %"},
    {.id = "LNI-A60",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A43 LNI-A44",
     .source = "7.2.3.2: improved for small and medium blocks; OC: by how much",
     .broken_by = "software=bypass",
     .because = "without the CPU in its way the software transport is the other one"},
    {.id = "LNI-A45.level",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: blocks of 32 KB, of which one is sent while no other work is done",
     .broken_by = "buffers=2 | blocks=1",
     .because = "a block is sent while nothing else is done, and both accelerators are at work"},
    {.id = "LNI-A45.gain",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "7.2.3.1: appears to be a saturation point; OC: the bounds",
     .broken_by = "copy=2 | mac=1000",
     .because = "what a block costs beside its bytes is little against these"},
    {.id = "LNI-A47",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "7.3: about 1.1 Gb/s",
     .broken_by = "turn=0 | buffers=2 | blocks=1",
     .because = "the turn of an accelerator was set by it"},
    {.id = "LNI-A61",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A47",
     .source = "OC: an accelerator computes for R times the latency of Table 7.3",
     .broken_by = "buffers=2 | blocks=1",
     .because = "an accelerator computes or sends, and both are at work on different blocks"},
};

const struct lab_experiment lant_accelerators = {
    .name = "lant/accelerators",
    .what = "blocks of data through accelerators of two nodes, with and without the CPU",
    LANT_COMMON,
    .uses = LANT_CHAIN_USES,
    LANT_CLAIMS(accelerators_claims),
    .quick = true,
    .run = accelerators,
    .explains =
        "The stages of a block follow one another, and the four copies of it are more than the "
        "transfer. The first accelerator is busy until its result has been acknowledged and the "
        "second one has been told, which bounds the throughput of both. Seven latencies rest on "
        "two fits: the time of a copy, and the application's time. The time that the software "
        "transport adds was fitted to two figures, and an accelerator's time between two blocks to "
        "one. Of 7.3 the throughput at R = 0.20 is shown; its 137 MFLOPS and 134,277 blocks a "
        "second "
        "are arithmetic on that, and its peak needs areas of gates.",
};
