/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The effect of a faster datapath on a stream over one link (row A21). The document's clock is 150
 * MHz, its target 200: a measurement there would tell the two models of the line apart.
 */
#include "lab/exanest/experiments.h"

#define MEGABYTE 1048576u

static double gbps_at(struct lab_run *run, uint32_t mhz, enum exanest_line_model model)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t mbps = exanest_link_mbps(run);
    config.fabric.datapath_hz = mhz * UINT64_C(1000000);
    config.fabric.link.serializer.line =
        exanest_line_of(model, (uint32_t)lab_value(run, "gap"), mhz, mbps);
    const uint32_t bytes = (uint32_t)lab_value(run, "megabytes") * MEGABYTE;
    return exanest_stream_of(run, &config, 0, 1, bytes, 0, 0).gbps;
}

static void draw(struct lab_run *run)
{
    static const uint32_t clocks[] = {50, 75, 100, 125, 150, 175, 200, 225, 250};
    static const char *const names[] = {"Aurora 64B/66B", "words and 3 dead cycles a packet"};
    struct lab_figure *figure =
        lab_add_figure(run, "clock", "One link of 10 Gb/s over the datapath's clock",
                       "clock of the datapath (MHz)", "payload (Gb/s)", false);
    lab_add_mark(figure, EXANEST_DATAPATH_MHZ, 8.23, "8.23 measured");
    lab_add_mark(figure, LAB_NOTHING, 8.9, "about 8.9: headers and footers");
    for (uint32_t model = 0; model < COUNT_OF(names); model++) {
        struct lab_series *series = lab_add_curve(run, "%s", names[model]);
        for (uint32_t i = 0; i < COUNT_OF(clocks); i++) {
            lab_add_point(series, clocks[i],
                          gbps_at(run, clocks[i], (enum exanest_line_model)model), LAB_NOTHING);
        }
    }
}

static void clock_rows(struct lab_run *run)
{
    const uint32_t mhz = (uint32_t)lab_value(run, "datapath");
    const enum exanest_line_model model = (enum exanest_line_model)lab_word(run, "line");
    const enum exanest_line_model other = exanest_other_line(run);
    const double aurora = gbps_at(run, mhz, model);
    const double aurora_gain = aurora / gbps_at(run, EXANEST_DATAPATH_MHZ, model);
    const double gap = gbps_at(run, mhz, other);
    const double gap_gain = gap / gbps_at(run, EXANEST_DATAPATH_MHZ, other);
    const double gap_ns = exanest_gap_packet_ns(10, 3 * 5.0);
    const double slow_ns = exanest_gap_packet_ns(10, 3 / 0.15);
    lab_judge_relative(lab_add_row(run, "EXA-A21.gap/level", "Gb/s",
                                   "a link with 3 dead cycles a packet, datapath at 200 MHz"),
                       EXANEST_STREAM_BITS / gap_ns, gap, 0.003);
    lab_judge_relative(lab_add_row(run, "EXA-A21.gap/gain", "", "of its throughput at 150 MHz"),
                       slow_ns / gap_ns, gap_gain, 0.003);
    lab_judge_relative(lab_add_row(run, "EXA-A21.aurora/level", "Gb/s",
                                   "a link of Aurora 64B/66B, datapath at 200 MHz"),
                       EXANEST_STREAM_BITS / exanest_aurora_packet_ns(10), aurora, 0.003);
    lab_judge_relative(lab_add_row(run, "EXA-A21.aurora/gain", "", "of its throughput at 150 MHz"),
                       1, aurora_gain, 0.003);
    draw(run);
}

static const struct lab_claim clock_claims[] = {
    {.id = "EXA-A21.gap",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "abstract: up to 200 MHz; 7: 18 words of 12.8 ns and \"extra 3 clock cycles\"",
     .broken_by = "other_line=aurora | datapath=150",
     .because = "the line's coding does not know the datapath's clock"},
    {.id = "EXA-A21.aurora",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "PG074: 37 blocks of 66 bits, compensation takes 8 of 4992",
     .broken_by = "line=gap",
     .because = "dead time in cycles gets shorter with the clock"},
};

const struct lab_experiment exanest_clock = {
    .name = "exanest/clock",
    .what = "a stream over one link, by the clock of the datapath",
    EXANEST_COMMON,
    .uses = EXANEST_USES "datapath=200 megabytes=1 other_line",
    EXANEST_CLAIMS(clock_claims),
    .quick = true,
    .run = clock_rows,
    .explains =
        "The document measured at 150 MHz only. If the line's coding is what a packet costs, 200 "
        "MHz change nothing; if its \"extra 3 clock cycles\" are dead time of the wire, they make "
        "a link 2 % faster. Below 80 MHz the crossbar is slower than the link: 20 cycles a "
        "packet.",
};
