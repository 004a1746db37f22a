/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long a write takes from its post to its end, by its size, and what throughput that is
 * (row A17; the curves of the document's figures are lost).
 */
#include "lab/exanest/experiments.h"

#define KILOBYTE 1024u
#define SMALLEST 64u
#define LARGEST  (4096u * KILOBYTE)

/* One transfer at a time, in us. */
static double time_of(struct lab_run *run, const struct exanest_machine_config *config, uint32_t to,
                      uint32_t bytes)
{
    return exanest_stream_of(run, config, 0, to, bytes, 0, 0).us;
}

static double slope_of(struct lab_run *run, const struct exanest_machine_config *config,
                       uint32_t least, uint32_t most, uint32_t step)
{
    const double more = time_of(run, config, 1, most) - time_of(run, config, 1, least);
    return more * step / (most - least);
}

struct curve {
    const char *name;
    struct exanest_machine_config config;
    uint32_t to;
    uint32_t count;
    double bytes[LAB_POINTS_MAX], us[LAB_POINTS_MAX];
};

static void measure(struct lab_run *run, struct curve *curve)
{
    for (uint32_t bytes = SMALLEST; bytes <= LARGEST; bytes *= 2) {
        curve->bytes[curve->count] = bytes;
        curve->us[curve->count++] = time_of(run, &curve->config, curve->to, bytes);
    }
}

static void draw(struct lab_run *run, const struct curve *curves, uint32_t count)
{
    struct lab_figure *figure =
        lab_add_figure(run, "throughput", "Writes, one at a time: throughput over size",
                       "bytes of a write", "payload (Gb/s)", true);
    lab_add_mark(figure, LAB_NOTHING, 8.23, "8.23: the most that was measured");
    lab_add_mark(figure, LAB_NOTHING, 8.9, "about 8.9: headers and footers");
    for (uint32_t i = 0; i < count; i++) {
        struct lab_series *series = lab_add_curve(run, "%s", curves[i].name);
        for (uint32_t k = 0; k < curves[i].count; k++) {
            lab_add_point(series, curves[i].bytes[k],
                          curves[i].bytes[k] * 8 / curves[i].us[k] / 1000, LAB_NOTHING);
        }
    }
    lab_add_figure(run, "time", "Writes, one at a time: completion time over size",
                   "bytes of a write", "from the post to the end (us)", true)
        ->log_y = true;
    for (uint32_t i = 0; i < count; i++) {
        struct lab_series *series = lab_add_curve(run, "%s", curves[i].name);
        for (uint32_t k = 0; k < curves[i].count; k++) {
            lab_add_point(series, curves[i].bytes[k], curves[i].us[k], LAB_NOTHING);
        }
    }
}

static void sizes(struct lab_run *run)
{
    const struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t mbps = exanest_link_mbps(run);
    const double packet_us = slope_of(run, &config, 256, 16 * KILOBYTE, 256);
    const double block_us = slope_of(run, &config, 64 * KILOBYTE, 1024 * KILOBYTE, 16 * KILOBYTE);
    lab_judge_relative(
        lab_add_row(run, "EXA-A17.packet", "ns", "a packet more, from 256 bytes to 16 KB"),
        exanest_aurora_packet_ns(10), packet_us * 1000, 0.01);
    lab_judge_relative(lab_add_row(run, "EXA-A17.block", "us",
                                   "a block of 16 KB more, from 64 KB to 1 MB of 2^20 bytes"),
                       64 * exanest_aurora_packet_ns(10) / 1000, block_us, 0.005);
    struct curve curves[] = {
        {.name = "a link, Aurora 64B/66B", .config = config, .to = 1},
        {.name = "a link, words and 3 dead cycles a packet", .config = config, .to = 1},
        {.name = "inside one FPGA", .config = config, .to = 0},
    };
    curves[1].config.fabric.link.serializer.line = exanest_line_gap(
        (uint32_t)lab_value(run, "gap"), (uint32_t)lab_value(run, "datapath"), mbps);
    for (uint32_t i = 0; i < COUNT_OF(curves); i++) {
        measure(run, &curves[i]);
    }
    draw(run, curves, COUNT_OF(curves));
}

static const struct lab_claim sizes_claims[] = {
    {.id = "EXA-A17.packet",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "6.3: Aurora 64B/66B; PG074: 37 blocks of 66 bits, compensation",
     .broken_by = "line=gap | slots=2",
     .because = "inside a block packets follow each other as fast as the wire takes them"},
    {.id = "EXA-A17.block",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 64 packets of 244.6 ns, and nothing between blocks",
     .broken_by = "write_blocks=1 | block_cost=20",
     .because = "a block in flight covers what the R5 does for another, if that is faster"},
};

const struct lab_experiment exanest_sizes = {
    .name = "exanest/sizes",
    .what = "completion time and throughput of a write, by its size",
    EXANEST_COMMON,
    .uses = EXANEST_USES,
    EXANEST_CLAIMS(sizes_claims),
    .quick = true,
    .run = sizes,
    .explains =
        "A write takes about 3.6 us from its post for the R5, memory and the way there and back, "
        "and 0.25 us for each packet; between blocks there is nothing, because others are in "
        "flight. So half of "
        "the throughput comes with 4 KB, and a write of 1 MB has 99 % of it (MB of "
        "2^20 bytes). The R5's time is "
        "our choice, so small sizes say little about the document, whose curves are lost: only "
        "their highest point is printed.",
};
