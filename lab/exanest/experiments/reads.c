/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads beside writes: what both achieve over one link (rows A3 and A5).
 */
#include <string.h>

#include "lab/exanest/experiments.h"

#define MEGABYTE 1048576u
#define MESSAGE  65536u /* A read of the stream: 4 blocks. */
#define LEAST    16u    /* A word: what a rate is counted in. */
#define HELD     32768u /* A read of two blocks: one waits for the other. */
/* While the last block waits nothing moves: the way of the last packet before it, the response's,
 * the R5's read of it and its handling, the issue, and memory. And a request costs a little more
 * than a write's post. */
#define HELD_US (0.56 + 0.53 + 0.13 + 1.37 + 0.5 + 0.4 + 0.16)

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

static double time_of(struct lab_run *run, const struct exanest_machine_config *config, bool writes,
                      uint32_t bytes)
{
    const struct exanest_program_config program = program_of(run, writes, bytes);
    return exanest_flows_of(run, config, &program, 1).us;
}

static void draw_sizes(struct lab_run *run, const struct exanest_machine_config *config)
{
    const uint32_t window = (uint32_t)lab_value(run, "window");
    struct lab_figure *figure = lab_add_figure(
        run, "sizes", "Figures 7-1 and 7-2: throughput over one link", "bytes", "Gb/s", true);
    lab_add_mark(figure, LAB_NOTHING, 8.23, "8.23 of writes");
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

/* How many words of a read are not there when the program sees its notification. */
static uint32_t missing_of(struct lab_run *run, const struct exanest_machine_config *config)
{
    struct exanest_machine_config sized = *config;
    sized.process_bytes = exanest_program_memory(HELD);
    struct exanest_world *world = exanest_world_begin(run, &sized);
    struct exanest_machine *machine = &world->machine;
    const struct exanest_program_config program_config = program_of(run, false, HELD);
    uint8_t *source = exanest_machine_bytes(machine, 1, 0, exanest_program_source(), HELD);
    for (uint32_t i = 0; i < HELD; i++) {
        source[i] = (uint8_t)(1 + prng_below(&world->sim.prng, 255)); /* Memory is all 0. */
    }
    struct exanest_program program;
    exanest_program_open(&program, machine, &program_config);
    while (!exanest_program_over(&program) && sim_step(&world->sim)) {
    }
    const uint8_t *target =
        exanest_machine_bytes(machine, 0, 0, exanest_program_target(HELD), HELD);
    uint32_t missing = 0;
    for (uint32_t at = 0; at < HELD; at += EXANEST_WORD_BYTES) {
        missing += memcmp(source + at, target + at, EXANEST_WORD_BYTES) != 0;
    }
    if (!exanest_program_over(&program)) {
        lab_fail(run, "a read of %u bytes stopped", HELD);
    }
    while (sim_step(&world->sim)) {
    }
    exanest_world_end(world);
    return missing;
}

/* That the last block of a read is held back, and what it costs. */
static void judge_held(struct lab_run *run, const struct exanest_machine_config *config)
{
    const double write_us = time_of(run, config, true, HELD);
    const double read_us = time_of(run, config, false, HELD);
    lab_judge_relative(lab_add_row(run, "EXA-W-held", "us",
                                   "a read of 32 KB, %.2f us, takes longer than a write of them",
                                   read_us),
                       HELD_US, read_us - write_us, 0.05);
    lab_judge_absolute(lab_add_row(run, "EXA-A5.told", "words",
                                   "of 2,048 that lack when the end of a read of 32 KB is seen"),
                       0, missing_of(run, config), 0);
}

static void reads(struct lab_run *run)
{
    const struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t bytes = (uint32_t)lab_value(run, "megabytes") * MEGABYTE;
    const double writes = exanest_stream_of(run, &config, 0, 1, bytes, 0, 0).gbps;
    const double gbps =
        rate_of(run, &config, false, MESSAGE, bytes / MESSAGE, (uint32_t)lab_value(run, "window"));
    lab_judge_relative(lab_add_row(run, "EXA-A3", "Gb/s", "reads of 64 KB, many under way"), 8.3,
                       gbps, 0.01);
    lab_judge_absolute(lab_add_row(run, "EXA-A5/stream", "",
                                   "throughput of these reads by that of writes, %.2f Gb/s",
                                   writes),
                       1, gbps / writes, 0.005);
    lab_progress(run, 0.1);
    const double write_us = time_of(run, &config, true, MEGABYTE);
    const double read_us = time_of(run, &config, false, MEGABYTE);
    lab_judge_absolute(lab_add_row(run, "EXA-A5/one", "",
                                   "one read of 1 MB (2^20 bytes), %.1f us, by one write, %.1f us",
                                   read_us, write_us),
                       1, write_us / read_us, 0.005);
    judge_held(run, &config);
    lab_progress(run, 0.2);
    draw_sizes(run, &config);
}

static const struct lab_claim reads_claims[] = {
    {.id = "EXA-A3",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "7: 8.3 Gb/s of reads over one hop (figure 7-3)",
     .broken_by = "window=1 read_blocks=1 | window=1 ask=block | line=gap",
     .because = "nothing is under way while a block is answered, or asked for; three dead cycles "
                "a packet are too much"},
    {.id = "EXA-A5",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "7: \"the performance is generally the same regarding throughput\"",
     .broken_by = "window=1 ask=block | window=1 read_blocks=1",
     .because = "a request is paid for each block; or a block waits for the one before"},
    {.id = "EXA-A5.told",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "4.1.2: a notification informs the initiating node \"that the data have arrived\"",
     .broken_by = "notification=early",
     .because = "blocks take turns, and the last one may be complete before another one is"},
    {.id = "EXA-W-held",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: without appendix A, the block with the notification waits for all others: a "
               "way there and back, a response and an issue of the R5",
     .broken_by = "notification=early | block_cost=0",
     .because = "the last block leaves with the others; or the R5 takes no time for the answer"},
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
        "The owner's send unit moves what is read as it moves what is written. A read costs more "
        "for two reasons: its request, once, and our rule for its notification. The document's "
        "appendix A, which describes it, is missing. Here the last block of a read is held back "
        "until all others are answered (notification=held). Without that, the program would see "
        "the end of a read before the last data, since blocks take turns in the send unit. This is "
        "the step of the "
        "curve of single reads from 16 KB, which are one block, to larger ones; a read of 1 MB "
        "loses 0.3 % by it, and a stream of reads nothing, because other reads are under way "
        "meanwhile. A process has one channel of the packetizer, and waits for the acknowledgement "
        "of a request before the next: that does not hold up a stream either.",
};
