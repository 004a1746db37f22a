/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads beside writes: what both achieve over one link (rows A3 and A5).
 */
#include "lab/exanest/experiments.h"

#define MEGABYTE 1048576u
#define MESSAGE  65536u /* A read of the stream: 4 blocks. */
#define LEAST    16u    /* A word: what a rate is counted in. */

static struct exanest_program_config program_of(struct lab_run *run, bool writes, uint32_t bytes)
{
    struct exanest_program_config program = exanest_program_default(0, 1, writes, bytes);
    program.piece = !writes && lab_word(run, "ask") == 1 ? EXANEST_BLOCK_BYTES_MAX : 0;
    return program;
}

static double rate_of(struct lab_run *run, const struct exanest_machine_config *config, bool writes,
                      uint32_t bytes, uint32_t count, uint32_t window)
{
    struct exanest_program_config program = program_of(run, writes, bytes);
    program.count = count;
    program.window = window;
    return exanest_flows_of(run, config, &program, 1).gbps;
}

static double time_of(struct lab_run *run, const struct exanest_machine_config *config, bool writes)
{
    const struct exanest_program_config program = program_of(run, writes, MEGABYTE);
    return exanest_flows_of(run, config, &program, 1).us;
}

static void draw_sizes(struct lab_run *run, const struct exanest_machine_config *config)
{
    const uint32_t window = (uint32_t)lab_value(run, "window");
    struct lab_figure *figure = lab_add_figure(
        run, "sizes", "Figures 7-1 and 7-2: throughput over one link", "bytes", "Gb/s", true);
    lab_add_mark(figure, LAB_NOTHING, 8.23, "8.23, writes");
    lab_add_mark(figure, LAB_NOTHING, 8.3, "8.3, reads");
    for (uint32_t curve = 0; curve < 3; curve++) {
        static const char *const names[] = {"writes, one at a time", "reads, one at a time",
                                            "reads, a window of them"};
        struct lab_series *series = lab_add_curve(run, "%s", names[curve]);
        for (uint32_t bytes = LEAST; bytes <= MEGABYTE; bytes *= 4) {
            uint32_t count = MEGABYTE / 2 / bytes;
            count = count < 2 ? 2 : count > 128 ? 128 : count;
            const double gbps =
                rate_of(run, config, curve == 0, bytes, count, curve == 2 ? window : 1);
            lab_add_point(series, bytes, gbps, LAB_NOTHING);
            lab_progress(run, 0.2 + 0.8 * (curve + bytes / (double)MEGABYTE) / 3);
        }
    }
}

static void reads(struct lab_run *run)
{
    const struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t bytes = (uint32_t)lab_value(run, "megabytes") * MEGABYTE;
    const double writes = exanest_stream_of(run, &config, 0, 1, bytes, 0, 0).gbps;
    const double gbps =
        rate_of(run, &config, false, MESSAGE, bytes / MESSAGE, (uint32_t)lab_value(run, "window"));
    lab_judge_relative(lab_add_row(run, "EXA-A3", "",
                                   "reads of 64 KB at %.2f Gb/s, by writes at %.2f", gbps, writes),
                       1, gbps / writes, 0.01);
    lab_progress(run, 0.1);
    const double write_us = time_of(run, &config, true);
    const double read_us = time_of(run, &config, false);
    lab_judge_relative(lab_add_row(run, "EXA-A5", "",
                                   "throughput of one read of 1 MB, %.1f us, by one write, %.1f us",
                                   read_us, write_us),
                       0.996, write_us / read_us, 0.005);
    lab_progress(run, 0.2);
    draw_sizes(run, &config);
}

static const struct lab_claim reads_claims[] = {
    {.id = "EXA-A3",
     .reference = LAB_PRINTED,
     .ground = LAB_MECHANISM,
     .source = "7: 8.3 Gb/s of reads by 8.23 of writes",
     .broken_by = "window=1 read_blocks=1 | window=1 ask=block",
     .because = "nothing is under way while a block is answered, or asked for"},
    {.id = "EXA-A5",
     .reference = LAB_PRINTED,
     .ground = LAB_MECHANISM,
     .source = "7: \"generally the same regarding throughput\"; a request by 1 MB's time",
     .broken_by = "ask=block | read_blocks=1",
     .because = "a request is paid for each block; or a block waits for the one before"},
};

const struct lab_experiment exanest_reads = {
    .name = "exanest/reads",
    .what = "reads beside writes over one link",
    EXANEST_COMMON,
    .uses = EXANEST_USES "megabytes window ask",
    EXANEST_CLAIMS(reads_claims),
    .quick = true,
    .run = reads,
    .explains =
        "The owner's send unit moves what is read as it moves what is written, so all that a read "
        "costs more is its request, once. The distance of both to 8.23 and 8.3 Gb/s is that of the "
        "link's model (exanest/throughput). A process has one channel of the packetizer, and waits "
        "for the acknowledgement of a request before the next: that does not hold up a stream.",
};
