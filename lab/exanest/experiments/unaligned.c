/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes between any two offsets in a word: how many blocks and packets they are, and how fast
 * (row A19).
 */
#include <math.h>

#include "lab/exanest/experiments.h"

#define BYTES        1048576u
#define BLOCKS       (BYTES / EXANEST_BLOCK_BYTES_MAX)
#define PACKETS      (BYTES / EXANEST_PAYLOAD_BYTES_MAX)
#define CURVES       5u
#define OFFSETS      EXANEST_WORD_BYTES
#define THROUGH_LINK 1u
#define INSIDE       0u

/* The source's: none, the smallest and the largest, and around the middle. */
static const uint32_t sources[CURVES] = {0, 1, 7, 8, 15};

/* The pairs of offsets that differ most from the prediction. */
struct found {
    double blocks[2], packets[2]; /* [0]: the target's offset is 0, [1]: it isn't. */
    double share[CURVES][OFFSETS];
    double least; /* As a share of an aligned stream. */
};

static double worse(double a, double b, double expected)
{
    return fabs(b - expected) > fabs(a - expected) ? b : a;
}

static struct exanest_machine_config config_of(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    config.firmware.cut = (uint8_t)lab_word(run, "block_cut");
    return config;
}

static struct found found_of(struct lab_run *run, uint32_t to)
{
    struct exanest_machine_config config = config_of(run);
    const double aligned = exanest_stream_of(run, &config, 0, to, BYTES, 0, 0).gbps;
    struct found found = {
        .blocks = {BLOCKS, BLOCKS + 1}, .packets = {PACKETS, PACKETS + 1}, .least = 1};
    for (uint32_t i = 0; i < CURVES; i++) {
        for (uint32_t target = 0; target < OFFSETS; target++) {
            const uint32_t shifted = target != 0;
            config.fabric.fpga.exadma.shifter_bubble =
                sources[i] == target ? 0 : (uint32_t)lab_value(run, "bubble");
            const struct exanest_stream stream =
                exanest_stream_of(run, &config, 0, to, BYTES, sources[i], target);
            found.blocks[shifted] =
                worse(found.blocks[shifted], (double)stream.blocks, BLOCKS + shifted);
            found.packets[shifted] =
                worse(found.packets[shifted], (double)stream.packets, PACKETS + shifted);
            found.share[i][target] = stream.gbps / aligned;
            found.least = fmin(found.least, found.share[i][target]);
        }
    }
    return found;
}

static void draw(struct lab_run *run, const char *id, const char *title, const struct found *found)
{
    struct lab_figure *figure =
        lab_add_figure(run, id, title, "offset of the destination in a word (bytes)",
                       "throughput, of that of an aligned stream", false);
    figure->from_zero = false;
    for (uint32_t i = 0; i < CURVES; i++) {
        struct lab_series *series = lab_add_curve(run, "source %u bytes behind a word", sources[i]);
        for (uint32_t target = 0; target < OFFSETS; target++) {
            lab_add_point(series, target, found->share[i][target], LAB_NOTHING);
        }
    }
}

static void unaligned(struct lab_run *run)
{
    const struct found link = found_of(run, THROUGH_LINK);
    lab_progress(run, 0.5);
    const struct found inside = found_of(run, INSIDE);
    for (uint32_t shifted = 0; shifted < 2; shifted++) {
        const char *where = shifted ? "the target's offset is 1..15" : "the target's offset is 0";
        lab_judge_absolute(lab_add_row(run, shifted ? "EXA-A19.blocks/1-15" : "EXA-A19.blocks/0",
                                       "", "blocks of 1 MB (2^20 bytes), %s", where),
                           BLOCKS + shifted,
                           worse(link.blocks[shifted], inside.blocks[shifted], BLOCKS + shifted),
                           0);
        lab_judge_absolute(lab_add_row(run, shifted ? "EXA-A19.packets/1-15" : "EXA-A19.packets/0",
                                       "", "packets of 1 MB (2^20 bytes), %s", where),
                           PACKETS + shifted,
                           worse(link.packets[shifted], inside.packets[shifted], PACKETS + shifted),
                           0);
    }
    lab_judge_range(
        lab_add_row(run, "EXA-A19.link", "", "of the aligned throughput, over a link, any offsets"),
        0.99, LAB_UNBOUNDED, link.least);
    lab_judge_range(lab_add_row(run, "EXA-A19.inside", "",
                                "of the aligned throughput, inside an FPGA, any offsets"),
                    0.98, LAB_UNBOUNDED, inside.least);
    draw(run, "link", "1 MB over a link, by offsets", &link);
    draw(run, "inside", "1 MB inside an FPGA, by offsets", &inside);
}

static const struct lab_claim unaligned_claims[] = {
    {.id = "EXA-A19.blocks",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "4: no transaction crosses 16 KB boundaries of the destination",
     .broken_by = "block_cut=source",
     .because = "the source's offset would decide, and a block could touch 65 lines of 256 bytes, "
                "for which the receiver has 64 bits: it never completes"},
    {.id = "EXA-A19.packets",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "5.3.2: the first packet ends at a line of 256 bytes of the destination",
     .broken_by = "cut=source | block_cut=source",
     .because = "two packets would share a line of the destination, and so a bit of the receiver's "
                "64: the block never completes"},
    {.id = "EXA-A19.link",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: only the first and the last block change",
     .broken_by = "cut=source | block_cut=source",
     .because = "blocks never complete, and the stream stops"},
    {.id = "EXA-A19.inside",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: a word a cycle; OC: 17 words of the source fit into a packet's 20 cycles",
     .broken_by = "cut=source | bubble=8",
     .because = "blocks never complete; or the shifter takes 25 cycles for a packet"},
};

const struct lab_experiment exanest_unaligned = {
    .name = "exanest/unaligned",
    .what = "1 MB between any two offsets in a word, over a link and inside an FPGA",
    EXANEST_COMMON,
    .uses = EXANEST_USES "bubble block_cut",
    EXANEST_CLAIMS(unaligned_claims),
    .run = unaligned,
    .explains =
        "Offsets cost nothing but one block and one packet more, and not even these if the "
        "destination is aligned. A shifted packet takes 17 beats of memory for its 16 words, which "
        "is less than the 20 cycles that the crossbar takes for it. That blocks and packets end at "
        "lines of the destination is no matter of speed: otherwise two packets share a bit of the "
        "receiver's bitmap, and their block is never complete. All 16 offsets of the destination "
        "are tried with 5 of the source: a run of all 256 pairs takes three times as long and "
        "shows the same.",
};
