/* SPDX-License-Identifier: BSD-2-Clause
 *
 * misuse - a bad network in front of one block: packets are lost, repeated, damaged, late.
 *
 * Purpose    Stands between the crossbar and a block that takes packets, and misuses some of them.
 * Ownership  The faults and the generator are the world's.
 * Time       One step is a cycle. A packet is taken whole before it goes on, which makes the way
 *            longer by the packet's length.
 * Limits     EXANEST_MISUSED_MAX packets at a time: then it takes no more. Notifications pass. A
 *            packet that comes twice is not damaged: a second copy that comes when the block is
 *            complete changes memory, and nothing repairs that.
 * Source     Our choice: the document's network loses nothing, and keeps the order of a block's
 *            packets; its engine repairs all of these (4.1).
 */
#ifndef LAB_EXANEST_MISUSE_H
#define LAB_EXANEST_MISUSE_H

#include "hardware/exanest/beat.h"
#include "sim/faults.h"

#define EXANEST_MISUSED_MAX    32u
#define EXANEST_REORDER_CYCLES 600u    /* A packet that left up to this much later overtakes it. */
#define EXANEST_LATE_CYCLES    400000u /* Longer than a block's timeout. */

struct exanest_misused {
    uint64_t due; /* The cycle from which on it may go. */
    uint8_t count;
    struct exanest_beat beats[EXANEST_PACKET_WORDS_MAX];
};

struct exanest_misuse {
    struct sim_faults *faults;
    struct prng *prng;
    uint64_t now;
    uint8_t sent;   /* Beats of the packet in `going` that have left. */
    uint8_t going;  /* Its place; EXANEST_MISUSED_MAX: none. */
    uint32_t held;  /* Bit i: place i holds a whole packet. */
    uint8_t coming; /* The place of the packet that comes in; EXANEST_MISUSED_MAX: none does. */
    uint64_t order; /* Packets taken so far: the oldest goes first. */
    uint64_t orders[EXANEST_MISUSED_MAX];
    struct exanest_misused packets[EXANEST_MISUSED_MAX];
};

void exanest_misuse_init(struct exanest_misuse *misuse, struct sim_faults *faults,
                         struct prng *prng);

/* Two places have to be free, since a packet may be doubled. */
bool exanest_misuse_ready(const struct exanest_misuse *misuse);
void exanest_misuse_take(struct exanest_misuse *misuse, const struct exanest_beat *beat);
bool exanest_misuse_offer(const struct exanest_misuse *misuse, struct exanest_beat *beat);
void exanest_misuse_taken(struct exanest_misuse *misuse);
void exanest_misuse_step(struct exanest_misuse *misuse);

static inline bool exanest_misuse_idle(const struct exanest_misuse *misuse)
{
    return misuse->held == 0;
}

#endif
