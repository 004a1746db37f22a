/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The ICRC by matrices, as formulas and as a pipeline of three stages (rows A33, A34).
 */
#include "hardware/feroce/crc.h"
#include "base/prng.h"
#include "hardware/feroce/timing.h"
#include "lab/feroce/experiments.h"

enum {
    /* From the IP header on: the longest datagram without its ICRC. */
    FRAME_BYTES_MAX = 20 + 8 + 12 + 16 + 4 + 4096,
    WIDTH_LEAST = 8, /* Bytes. */
    WIDTH_MOST = 64,
};

/* Both rows are compared with this: the polynomial as it is written, octets from their lowest bit,
 * a bit at a time. */
static uint32_t mirror(uint32_t value)
{
    uint32_t mirrored = 0;
    for (uint32_t i = 0; i < 32; i++) {
        mirrored |= (value >> i & 1) << (31 - i);
    }
    return mirrored;
}

static uint32_t serial(uint32_t seed, const uint8_t *bytes, uint32_t count)
{
    uint32_t crc = mirror(seed);
    for (uint32_t at = 0; at < count; at++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            const uint32_t in = bytes[at] >> bit & 1;
            crc = crc << 1 ^ (0x04c11db7u & -(crc >> 31 ^ in));
        }
    }
    return mirror(crc);
}

static void fill(struct prng *prng, uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)prng_next(prng);
    }
}

/* A unit has one fault: that of the powers, if they have one. */
static enum feroce_crc_fault fault_of(struct lab_run *run)
{
    static const enum feroce_crc_fault of_powers[] = {FEROCE_CRC_RIGHT, FEROCE_CRC_SLICE_POWER,
                                                      FEROCE_CRC_SEED_POWER};
    static const enum feroce_crc_fault of_seed[] = {FEROCE_CRC_RIGHT, FEROCE_CRC_SEED_EARLY};
    const uint32_t powers = lab_word(run, "crc_powers"), seed = lab_word(run, "crc_seed");
    return powers != 0 ? of_powers[powers] : of_seed[seed];
}

/* -- A33: formulas ------------------------------------------------------------------------------*/

/* Random words and seeds; each width of keep has its turn. */
static void formula_row(struct lab_run *run, const char *id, uint32_t width_bytes)
{
    struct feroce_crc_formula formula;
    struct prng prng;
    const uint32_t vectors = feroce_whole(run, "vectors");
    uint32_t equal = 0;
    feroce_crc_formula_init(&formula, fault_of(run));
    prng_init(&prng, run->seed + ((uint64_t)width_bytes << 32));
    for (uint32_t i = 0; i < vectors; i++) {
        uint8_t bytes[4 * FEROCE_CRC_SLICES_MAX];
        const uint32_t count = 4 * (1 + i % (width_bytes / 4));
        const uint32_t seed = (uint32_t)prng_next(&prng);
        fill(&prng, bytes, count);
        const struct feroce_crc_word word = feroce_crc_word_of(bytes, count, true);
        const uint32_t crc = feroce_crc_after(&formula, seed, &word);
        equal += crc == serial(seed, bytes, count);
        lab_note(run, crc);
    }
    lab_judge_absolute(lab_add_row(run, id, "", "%u bits, keep 4 to %u bytes: vectors right",
                                   8 * width_bytes, width_bytes),
                       vectors, equal, 0);
}

/* -- A34: the stepped unit ----------------------------------------------------------------------*/

/* Frames on their way into the unit, and those that it is to answer. At most `tree` + 2 words are
 * in it, so no more frames than places. */
struct stream {
    struct prng prng;
    uint32_t frames, made; /* To make; made. */
    uint32_t bytes, at;
    uint8_t frame[FRAME_BYTES_MAX];
    uint32_t crc[FEROCE_CRC_TREE_MAX + 4];
    uint64_t last[FEROCE_CRC_TREE_MAX + 4]; /* The cycle of its last word. */
};

struct outcome {
    uint64_t cycles; /* All of them, from the first word to the last result. */
    uint64_t words;
    uint64_t least, most; /* From a last word to its result. */
    uint32_t done, right;
};

static void next_frame(struct stream *stream, uint32_t width)
{
    /* A fourth is one word, where frames end in each cycle. */
    const uint32_t most = prng_below(&stream->prng, 4) == 0 ? width : FRAME_BYTES_MAX;
    stream->bytes = 4 + 4 * (uint32_t)prng_below(&stream->prng, most / 4);
    stream->at = 0;
    fill(&stream->prng, stream->frame, stream->bytes);
    stream->crc[stream->made++ % COUNT_OF(stream->crc)] =
        feroce_crc_finish(serial(FEROCE_CRC_START, stream->frame, stream->bytes));
}

/* A word in each cycle, as long as there are frames. */
static void give_word(struct stream *stream, struct feroce_crc *unit, uint64_t now)
{
    const uint32_t width = unit->config.width_bytes;
    if (stream->at == stream->bytes) {
        if (stream->made == stream->frames) {
            return;
        }
        next_frame(stream, width);
    }
    const uint32_t left = stream->bytes - stream->at, count = left < width ? left : width;
    const struct feroce_crc_word word =
        feroce_crc_word_of(stream->frame + stream->at, count, count == left);
    feroce_crc_take(unit, &word);
    stream->at += count;
    stream->last[(stream->made - 1) % COUNT_OF(stream->last)] = now;
}

static struct outcome stream_frames(struct lab_run *run, uint32_t width_bytes)
{
    struct feroce_crc unit;
    struct stream stream = {.frames = feroce_whole(run, "frames")};
    struct outcome outcome = {.least = UINT64_MAX};
    const struct feroce_crc_config config = {.width_bytes = (uint8_t)width_bytes,
                                             .tree_cycles = (uint8_t)lab_value(run, "crc_tree"),
                                             .fault = fault_of(run)};
    feroce_crc_init(&unit, &config);
    prng_init(&stream.prng, run->seed);
    for (uint64_t now = 0; outcome.done < stream.frames; now++) {
        uint32_t icrc;
        if (feroce_crc_offer(&unit, &icrc)) {
            const uint32_t place = outcome.done++ % COUNT_OF(stream.crc);
            const uint64_t cycles = now - stream.last[place];
            outcome.right += icrc == stream.crc[place];
            outcome.least = cycles < outcome.least ? cycles : outcome.least;
            outcome.most = cycles > outcome.most ? cycles : outcome.most;
            outcome.cycles = now;
            lab_note(run, icrc ^ now << 32);
        }
        give_word(&stream, &unit, now);
        feroce_crc_step(&unit);
    }
    outcome.words = unit.counters.words;
    return outcome;
}

static void stream_rows(struct lab_run *run, const struct outcome *outcome, uint32_t bits)
{
    const bool narrow = bits == 64;
    lab_judge_absolute(lab_add_row(run, narrow ? "FER-A34/64" : "FER-A34/512", "",
                                   "%u bits, a word each cycle: frames right", bits),
                       feroce_whole(run, "frames"), outcome->right, 0);
    lab_judge_absolute(lab_add_row(run, narrow ? "FER-A34.cycles/64" : "FER-A34.cycles/512",
                                   "cycles", "%u bits: last word to ICRC", bits),
                       3, (double)outcome->most, 0);
}

/* Rows for the widths of the document's two formulas; two between them are drawn. */
static void crc(struct lab_run *run)
{
    formula_row(run, "FER-A33/64", 8);
    formula_row(run, "FER-A33/512", 64);
    struct lab_figure *figure = lab_add_figure(
        run, "latency", "Latency of the ICRC over the width of a word", "bits", "cycles", true);
    lab_add_mark(figure, 512, 3, "CRC implementation: 3 stages");
    struct lab_series *series = lab_add_curve(run, "the pipeline of three stages");
    for (uint32_t width = WIDTH_LEAST; width <= WIDTH_MOST; width *= 2) {
        const struct outcome outcome = stream_frames(run, width);
        const uint32_t bits = 8 * width;
        if (outcome.least != outcome.most || outcome.cycles != outcome.words - 1 + outcome.most) {
            lab_fail(run, "%u bits: %u to %u cycles from last word to ICRC; %llu for %llu words",
                     bits, (uint32_t)outcome.least, (uint32_t)outcome.most,
                     (unsigned long long)outcome.cycles, (unsigned long long)outcome.words);
        }
        if (width == WIDTH_LEAST || width == WIDTH_MOST) {
            stream_rows(run, &outcome, bits);
        }
        lab_add_point(series, bits, (double)outcome.most, 3);
        lab_progress(run, (double)width / WIDTH_MOST);
    }
    series = lab_add_curve(run, "the unit of RTL2026");
    for (uint32_t width = WIDTH_LEAST; width <= WIDTH_MOST; width *= 2) {
        lab_add_point(series, 8 * width, feroce_icrc_cycles(width), LAB_NOTHING);
    }
}

static const struct lab_claim crc_claims[] = {
    {.id = "FER-A33",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "CRC32 operation: the formulas for 64 and 512 bits give the CRC32",
     .broken_by = "crc_powers=slice | crc_powers=seed",
     .because = "one power of M is off by one"},
    {.id = "FER-A34",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "CRC implementation: pipelined; RoCEv2 FPGA stack: AXI4-Stream between modules",
     .broken_by = "crc_seed=first | crc_powers=slice | crc_powers=seed",
     .because = "the seed comes two words late; or one power of M is off by one"},
    {.id = "FER-A34.cycles",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "CRC implementation: 3 stages",
     .broken_by = "crc_tree=2",
     .because = "the tree has another register"},
};

const struct lab_experiment feroce_crc = {
    FEROCE_COMMON,
    .name = "feroce/crc",
    .what = "the ICRC by matrices: 64 and 512 bits a cycle, in three stages",
    .uses = "crc_powers crc_seed crc_tree vectors frames",
    FEROCE_CLAIMS(crc_claims),
    .quick = true,
    .run = crc,
    .explains =
        "A word's CRC is a sum of products, of which only one has the register in it. So all "
        "others may take as many cycles as they like, and words come without a gap as long as "
        "that one product closes in a cycle. More registers in the tree make the result later, "
        "not wrong. The authors' public design of 2026 takes 8 cycles at 64 bits and 11 at "
        "512; the slides give no reason.",
};
