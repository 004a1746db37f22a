/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Both links of a pair of FPGAs: blocks that alternate between them (row A25), and, by a fixture,
 * packets of one block that take both.
 */
#include <math.h>
#include <stdio.h>

#include "lab/exanest/experiments.h"

#define MEGABYTE 1048576u
#define FAST_MHZ 200u /* The document's design target for the datapath. */

/* Gb/s: what two links carry, whatever the datapath's clock; and what one port of a crossbar lets
 * through, 16 words of 18 and 2 idle cycles. */
#define TWO_LINKS (2 * EXANEST_STREAM_BITS / exanest_aurora_packet_ns(10))
#define ONE_PORT  (19.2 * 16 / 20)

static const uint32_t kilobytes[] = {16, 32, 64, 128, 256, 512, 1024};

/* -- Machines -----------------------------------------------------------------------------------*/

static struct exanest_machine_config two_links(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    config.fabric.links_per_pair = 2;
    config.fabric.fpga.exadma.shares_buffer = lab_word(run, "buffers") == 1;
    config.firmware.path_policy =
        lab_word(run, "paths") == 0 ? EXANEST_PATH_ALTERNATES : EXANEST_PATH_OF_TRANSFER;
    return config;
}

/* The same, but packets take both links in turn, of which the second is slower. */
static struct exanest_machine_config sprayed(struct lab_run *run, double second_us)
{
    struct exanest_machine_config config = two_links(run);
    config.fabric.fpga.sprays = true;
    config.fabric.second_longer_ps =
        (uint32_t)llround(fmax(second_us - lab_value(run, "wire"), 0) * 1e6);
    return config;
}

/* Gives links another rate, and the datapath another clock. */
static struct exanest_machine_config at(struct lab_run *run, struct exanest_machine_config config,
                                        uint32_t mhz, uint32_t mbps)
{
    const uint32_t gap = (uint32_t)lab_value(run, "gap");
    config.fabric.datapath_hz = mhz * UINT64_C(1000000);
    config.fabric.link.serializer.line =
        exanest_line_of((enum exanest_line_model)lab_word(run, "line"), gap, mhz, mbps);
    return config;
}

static struct exanest_stream stream(struct lab_run *run,
                                    const struct exanest_machine_config *config)
{
    return exanest_stream_of(run, config, 0, 1, (uint32_t)lab_value(run, "megabytes") * MEGABYTE, 0,
                             0);
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void judge_blocks(struct lab_run *run)
{
    struct exanest_machine_config config = two_links(run);
    const double both = stream(run, &config).gbps;
    lab_judge_relative(lab_add_row(run, "EXA-A25", "Gb/s", "blocks alternate between two links"),
                       TWO_LINKS, both, 0.01);
    lab_judge_relative(lab_add_row(run, "EXA-A25.port", "Gb/s",
                                   "the same, as one port of the receiver's crossbar lets through"),
                       ONE_PORT, both, 0.01);
    config.firmware.writes_outstanding *= 2; /* As many for each link as one link has. */
    const struct exanest_machine_config fast = at(run, config, FAST_MHZ, exanest_link_mbps(run));
    lab_judge_relative(lab_add_row(run, "EXA-W-both", "Gb/s",
                                   "twice as many blocks, datapath of %u MHz", FAST_MHZ),
                       TWO_LINKS, stream(run, &fast).gbps, 0.01);
    config.fabric.fpga.crossbar.idle = 0;
    lab_judge_relative(lab_add_row(run, "EXA-A25.links", "Gb/s",
                                   "twice as many blocks, crossbars without idle cycles"),
                       TWO_LINKS, stream(run, &config).gbps, 0.01);
}

static void judge_packets(struct lab_run *run)
{
    const double late_us = lab_value(run, "late_wire");
    const struct exanest_machine_config alike = sprayed(run, lab_value(run, "wire"));
    const struct exanest_machine_config late = sprayed(run, late_us);
    const struct exanest_machine_config fast = at(run, late, FAST_MHZ, exanest_link_mbps(run));
    const struct exanest_stream even = stream(run, &alike), uneven = stream(run, &late);
    lab_judge_relative(lab_add_row(run, "EXA-W-spray", "Gb/s", "packets alternate between links"),
                       ONE_PORT, even.gbps, 0.01);
    lab_judge_range(lab_add_row(run, "EXA-W-spray.stops", "",
                                "%g us instead of %g for every other packet: share that is left",
                                late_us, lab_value(run, "wire")),
                    0, 0.95, uneven.gbps / even.gbps);
    lab_judge_absolute(lab_add_row(run, "EXA-W-spray.resent", "blocks", "sent again"), 0,
                       (double)(even.resent + uneven.resent), 0);
    lab_judge_relative(lab_add_row(run, "EXA-W-spray.late", "Gb/s",
                                   "%g us for every other packet, datapath of %u MHz", late_us,
                                   FAST_MHZ),
                       TWO_LINKS, stream(run, &fast).gbps, 0.01);
}

/* -- The figure ---------------------------------------------------------------------------------*/

static void add_curve(struct lab_run *run, const char *name,
                      const struct exanest_machine_config *config)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t i = 0; i < COUNT_OF(kilobytes); i++) {
        const uint32_t bytes = kilobytes[i] * 1024;
        const double us = exanest_stream_of(run, config, 0, 1, bytes, 0, 0).us;
        lab_add_point(series, kilobytes[i], bytes * 8 / us / 1000, LAB_NOTHING);
    }
}

static void add_figure(struct lab_run *run)
{
    char name[64];
    const double late_us = lab_value(run, "late_wire");
    const struct exanest_machine_config one = exanest_config_of(run, 1, 1, 1);
    const struct exanest_machine_config both = two_links(run);
    const struct exanest_machine_config fast = at(run, both, FAST_MHZ, exanest_link_mbps(run));
    const struct exanest_machine_config wide = at(run, both, 150, 16000);
    const struct exanest_machine_config late = sprayed(run, late_us);
    struct lab_figure *figure =
        lab_add_figure(run, "paths", "Throughput of a write, by its size", "KB", "Gb/s", true);
    lab_add_mark(figure, LAB_NOTHING, 8.23, "8.23: one link, printed");
    lab_add_level(figure, ONE_PORT, "15.36: a crossbar's port");
    add_curve(run, "one link", &one);
    add_curve(run, "two links", &both);
    add_curve(run, "two links, datapath of 200 MHz", &fast);
    add_curve(run, "two links of 16 Gb/s", &wide);
    snprintf(name, sizeof(name), "packets over two links, the second of %g us", late_us);
    add_curve(run, name, &late);
}

static void multipath(struct lab_run *run)
{
    judge_blocks(run);
    lab_progress(run, 0.3);
    judge_packets(run);
    lab_progress(run, 0.6);
    add_figure(run);
}

/* Settings that take the second path away: one link's worth of slots, of blocks, or of links. */
#define BLOCKS_BROKEN_BY "buffers=shared slots=2 | write_blocks=1 | paths=fixed"
#define BLOCKS_BECAUSE                                                                             \
    "two packets in flight keep less than one link busy; one block, or two, at a time do not "     \
    "cover "                                                                                       \
    "a round trip; and without a second path there is one link"

static const struct lab_claim claims[] = {
    {.id = "EXA-A25",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: twice a link's 8.37 Gb/s",
     .broken_by = BLOCKS_BROKEN_BY,
     .because = BLOCKS_BECAUSE,
     .not_reproduced = "Both links end at one port of the receiver's crossbar, which rests two "
                       "cycles behind each packet: 15.36 Gb/s, as in A6 (EXA-A25.port). Without "
                       "that the links would be the bound (EXA-A25.links)."},
    {.id = "EXA-A25.port",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3: 19.2 Gb/s; 3.2.2: 16 words of 18 and 2 idle cycles",
     .broken_by = BLOCKS_BROKEN_BY,
     .because = BLOCKS_BECAUSE},
    {.id = "EXA-A25.links",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: twice a link's 8.37 Gb/s",
     .broken_by = BLOCKS_BROKEN_BY,
     .because = BLOCKS_BECAUSE},
    {.id = "EXA-W-both",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if both links are used, and the datapath meets its target of 200 MHz",
     .broken_by = BLOCKS_BROKEN_BY,
     .because = BLOCKS_BECAUSE},
    {.id = "EXA-W-spray",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if a network sprayed packets",
     .broken_by = "buffers=shared slots=2 | write_blocks=1",
     .because = "two packets in flight, or one block at a time, do not keep two links busy"},
    {.id = "EXA-W-spray.stops",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if the links that a network sprays over are not alike",
     .broken_by = "datapath=200 | late_wire=0.42",
     .because = "a faster receiver never stops a link; and XON comes back soon enough on two short "
                "ones"},
    {.id = "EXA-W-spray.resent",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if the links that a network sprays over are not alike",
     .broken_by = "late_wire=10",
     .because = "more words are on the wire than are free when XOFF is sent"},
    {.id = "EXA-W-spray.late",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if the links that a network sprays over are not alike, but never stopped",
     .broken_by = "buffers=shared slots=2 | write_blocks=1 | late_wire=40",
     .because = "two packets in flight, or one block at a time, do not keep two links busy; four "
                "blocks do not cover a round trip of 40 us"},
};

const struct lab_experiment exanest_multipath = {
    .name = "exanest/multipath",
    .what = "both links between two FPGAs, by blocks and by packets",
    EXANEST_COMMON,
    .uses = EXANEST_USES "megabytes paths buffers late_wire",
    EXANEST_CLAIMS(claims),
    .quick = true,
    .run = multipath,
    .explains =
        "The document's FPGAs have two links for each pair and use one. With both, the sender "
        "keeps "
        "up, but the receiver does not: what comes from both has to pass one port of its crossbar. "
        "Packets that overtake each other cost nothing, since the receiver writes and marks each "
        "by itself; but a link that is stopped by the full port needs twice its latency to go on, "
        "and a buffer for that time. At 200 MHz nothing is ever stopped.",
};
