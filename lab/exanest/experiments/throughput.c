/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rate of a stream of writes over one link, and inside an FPGA (rows A1, A2, A6, A12, A26).
 */
#include "lab/exanest/experiments.h"

#define MEGABYTE 1048576u

static struct exanest_stream stream_between(struct lab_run *run,
                                            const struct exanest_machine_config *config,
                                            uint32_t to)
{
    return exanest_stream_of(run, config, 0, to, (uint32_t)lab_value(run, "megabytes") * MEGABYTE,
                             0, 0);
}

static void throughput(struct lab_run *run)
{
    const struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t mhz = (uint32_t)lab_value(run, "datapath");
    const uint32_t mbps = exanest_link_mbps(run);
    struct exanest_machine_config ideal = config;
    ideal.fabric.link.serializer.line =
        exanest_line_gap((uint32_t)lab_value(run, "ideal_gap"), mhz, mbps);
    const struct exanest_stream bound = stream_between(run, &ideal, 1);
    lab_progress(run, 0.25);
    const struct exanest_stream stream = stream_between(run, &config, 1);
    lab_progress(run, 0.5);
    struct exanest_machine_config coded = config;
    coded.fabric.link.serializer.line = exanest_line_aurora(mbps);
    const struct exanest_stream aurora = stream_between(run, &coded, 1);
    lab_progress(run, 0.75);
    const struct exanest_stream inside = stream_between(run, &config, 0);
    struct exanest_machine_config one = config;
    one.firmware.writes_outstanding = (uint16_t)lab_value(run, "small_blocks");
    const struct exanest_stream alone = stream_between(run, &one, 1);
    lab_judge_relative(lab_add_row(run, "EXA-A1", "Gb/s", "a link without dead time"),
                       10.0 * 16 / 18, bound.gbps, 0.002);
    lab_judge_relative(
        lab_add_row(run, "EXA-A2", "Gb/s", "a link; coded as by Aurora it is %.2f", aurora.gbps),
        8.23, stream.gbps, 0.01);
    lab_judge_relative(lab_add_row(run, "EXA-A6", "Gb/s", "inside one FPGA"), 19.2 * 16 / 20,
                       inside.gbps, 0.01);
    lab_judge_relative(lab_add_row(run, "EXA-A12", "Gb/s", "one block at a time"), 6.75, alone.gbps,
                       0.03);
    lab_judge_absolute(lab_add_row(run, "EXA-A26", "", "responses a 64 packets"), 1,
                       64.0 * (double)stream.responses / (double)stream.packets, 0);
}

static const struct lab_claim throughput_claims[] = {
    {.id = "EXA-A1",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "3: about 8.9 Gb/s; 10 x 16 of 18 words",
     .broken_by = "slots=2 | write_blocks=1 | ideal_gap=1",
     .because = "two packets in flight do not cover the time that one takes, nor does one block "
                "cover its own response; a cycle of dead time is 2.8 %"},
    {.id = "EXA-A2",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "7: at most 8.23 Gb/s",
     .broken_by = "gap=2 | gap=4 | slots=2 | write_blocks=1",
     .because = "one of three readings of the printed three cycles fits, and no other number "
                "does; packets and blocks in flight must cover their own way"},
    {.id = "EXA-A6",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "19.2 Gb/s x 16 words of 18 and 2 idle cycles",
     .broken_by = "idle=0 | idle=3 | slots=3 | scheduler=21",
     .because = "the crossbar's idle cycles are the bound; three packets in flight are too few for "
                "it, and a scheduler that takes longer than a packet takes its place"},
    {.id = "EXA-A12",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "specification 6.2: a block's wire time, twice the latency, and the R5's 2 us",
     .broken_by = "small_blocks=2 | block_cost=0 | wire=5",
     .because = "two blocks cover each other's round trip; the R5's work and the wire are parts of "
                "it"},
    {.id = "EXA-A26",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "4: one response a block of 64 packets",
     .broken_by = "responses=packet",
     .because = "each packet is answered"},
};

const struct lab_experiment exanest_throughput = {
    .name = "exanest/throughput",
    .what = "a stream of writes over one link, and inside an FPGA",
    EXANEST_COMMON,
    .uses = EXANEST_USES "megabytes ideal_gap small_blocks",
    EXANEST_CLAIMS(throughput_claims),
    .quick = true,
    .run = throughput,
    .explains = "The bound of a link is the share of payload in a packet. The document "
                "measured less; its three cycles, read as dead time of the wire, come to 8.18.",
};
