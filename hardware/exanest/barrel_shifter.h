/* SPDX-License-Identifier: BSD-2-Clause
 *
 * barrel_shifter - moves bytes from their place in the source's lines to that in the target's.
 *
 * Purpose    The virtualized barrel shifter: eight channels, one for each AXI ID, whose beats may
 *            be mixed. Each has its commands, in the order of its reads, and 16 bytes of carry.
 * Inputs     exanest_shifter_command (a packet was asked for), exanest_shifter_beat (memory).
 * Outputs    exanest_shifter_step: the word that leaves the pipeline in this cycle, and its slot.
 * Ownership  The caller owns the struct and the memory of the commands.
 * Time       One step is one cycle; a word leaves `cycles` after the beat that completed it. The
 *            slot takes it one cycle later, which is the same step's business here.
 * Units      Words of 16 bytes; lanes are bytes of a word.
 * Limits     One beat a cycle, and none in the cycle behind a packet whose last beat made two
 *            words. One command for each slot.
 * Source     Xirouchakis 5.3.3.
 */
#ifndef HARDWARE_EXANEST_BARREL_SHIFTER_H
#define HARDWARE_EXANEST_BARREL_SHIFTER_H

#include <stddef.h>

#include "hardware/exanest/axi.h"

#define EXANEST_SHIFTER_CYCLES     2u /* Our choice. */
#define EXANEST_SHIFTER_CYCLES_MAX 12u
#define EXANEST_SHIFTER_LINE       16u /* Words in the pipeline, by cycle. */

struct exanest_shift_command {
    uint16_t slot;  /* Which it fills; also names the command. */
    uint16_t next;  /* The next one of the channel. */
    uint16_t bytes; /* 1..256. */
    uint8_t source_lane, target_lane;
    uint8_t beats, words; /* Beats that come in, and words that go out. */
};

struct exanest_shift_channel {
    uint16_t head, tail;  /* EXANEST_NO_SLOT: there is no command. */
    uint8_t beats, words; /* The first command's, so far. */
    uint8_t response;
    struct exanest_word carry;
};

#define EXANEST_NO_SLOT UINT16_MAX

struct exanest_shifted {
    struct exanest_word word;
    uint16_t slot;
    uint8_t response; /* All RRESP of the packet so far. */
};

struct exanest_shifter {
    uint8_t cycles;
    uint8_t bubble; /* Variation (EXA-A19): cycles without a beat between two commands. */
    uint8_t busy;   /* Cycles in which no beat is taken: this one included if not 0. */
    uint8_t now;    /* Index into the line. */
    bool beat;      /* One was taken in this cycle. */
    uint16_t due;   /* Bit i: line[i] holds a word. */
    uint16_t slots;
    struct exanest_shift_command *commands; /* By slot. */
    struct exanest_shift_channel channels[EXANEST_AXI_IDS];
    struct exanest_shifted line[EXANEST_SHIFTER_LINE];
};

/* `commands` has room for `slots`. */
void exanest_shifter_init(struct exanest_shifter *shifter, uint32_t cycles, uint32_t bubble,
                          uint32_t slots, struct exanest_shift_command *commands);

/* `bytes` from `source` will come by `axi_id`; they go to `target`, in `slot`. */
void exanest_shifter_command(struct exanest_shifter *shifter, uint32_t axi_id, uint32_t slot,
                             uint64_t source, uint64_t target, uint32_t bytes);

/* RREADY. */
static inline bool exanest_shifter_ready(const struct exanest_shifter *shifter)
{
    return shifter->busy == 0 && !shifter->beat;
}

/* A word of the oldest command of its ID; there must be one. */
void exanest_shifter_beat(struct exanest_shifter *shifter, const struct exanest_read_beat *beat);

/* False: no word leaves in this cycle. */
bool exanest_shifter_step(struct exanest_shifter *shifter, struct exanest_shifted *out);

static inline bool exanest_shifter_idle(const struct exanest_shifter *shifter)
{
    return shifter->due == 0 && shifter->busy == 0 && !shifter->beat;
}

void exanest_shifter_check(const struct exanest_shifter *shifter);

#endif
