/* SPDX-License-Identifier: BSD-2-Clause
 *
 * framer - cuts the stream of messages into packets and holds each of them until it is whole.
 *
 * Purpose    A packet's headers say how long it is; so its last word must have come before its
 *            first one goes on.
 * Inputs     feroce_framer_take: a beat of an AXI4-Stream whose tlast ends a message.
 * Outputs    feroce_framer_packet, the oldest whole packet; its beats
 *            (feroce_framer_offer, _taken).
 * Ownership  The caller owns the struct, of 10 KB.
 * Threads    One caller at a time.
 * Time       One call of feroce_framer_step is a cycle. What comes in one can leave in the next; a
 *            place that is left in one is free in the next.
 * Units      Bytes, words of the datapath.
 * Limits     A FIFO of 8 KB less a word. Widths of 64 to 1,024 bits, PMTUs of 256 to 4,096 bytes,
 *            both powers of two; so a packet's end is a word's end, and the FIFO holds the longest
 *            packet and, nearly, another one.
 * Source     Specification 3.4, 6.1.
 *
 * A message of a multiple of PMTU ends with a full packet. The request that belongs to a message is
 * not looked at here: its length goes into RETH, and the stream's tlast is what ends the message.
 */
#ifndef HARDWARE_FEROCE_FRAMER_H
#define HARDWARE_FEROCE_FRAMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#define FEROCE_FRAMER_BYTES     8192u /* One word of it is never used. */
#define FEROCE_FRAMER_WIDTH_MIN 8u
#define FEROCE_FRAMER_WIDTH_MAX 128u
#define FEROCE_FRAMER_WORDS     (FEROCE_FRAMER_BYTES / FEROCE_FRAMER_WIDTH_MIN)

#define FEROCE_FRAMER_PMTU_MIN 256u
#define FEROCE_FRAMER_PMTU_MAX 4096u

struct feroce_framer_config {
    uint16_t width_bytes, pmtu_bytes;
};

struct feroce_beat {
    uint8_t count; /* Bytes that tkeep marks, from byte 0 on. */
    bool last;     /* tlast. */
    uint8_t bytes[FEROCE_FRAMER_WIDTH_MAX];
};

/* What a beat comes to. Whoever gives data may get it wrong: the beat is refused and counted. */
enum feroce_beat_verdict {
    FEROCE_BEAT_GOOD,
    FEROCE_BEAT_EMPTY,   /* No byte. */
    FEROCE_BEAT_WIDE,    /* More bytes than a word. */
    FEROCE_BEAT_PARTIAL, /* Fewer, in the middle of a message. */
    FEROCE_BEAT_ODD,     /* No multiple of 4. */
    FEROCE_BEAT_VERDICTS,
};

struct feroce_cut {
    uint16_t bytes;
    bool first, last; /* The message's. */
};

struct feroce_framer_counters {
    uint64_t beats[FEROCE_BEAT_VERDICTS];
    uint64_t packets, messages; /* That have become whole. */
};

struct feroce_framer {
    struct feroce_framer_config config;
    uint16_t words;    /* The FIFO's, all but one. */
    uint16_t head;     /* The oldest word. */
    uint16_t used;     /* Words in the FIFO; */
    uint16_t part;     /* those of them whose packet is not whole. */
    uint16_t left;     /* Words of the oldest packet that have left. */
    uint16_t growing;  /* Bytes of the packet that is not whole. */
    bool begins;       /* The next packet is a message's first. */
    bool given, taken; /* In this cycle. */
    uint16_t packet_head, packet_count;
    struct feroce_beat beat; /* If given. */
    struct feroce_framer_counters counters;
    struct feroce_cut packets[FEROCE_FRAMER_WORDS];
    uint8_t memory[FEROCE_FRAMER_BYTES];
};

void feroce_framer_init(struct feroce_framer *framer, const struct feroce_framer_config *config);

/* tready. */
static inline bool feroce_framer_ready(const struct feroce_framer *framer)
{
    return framer->used < framer->words;
}

/* The beat of this cycle, if the framer is ready. */
MUST_USE enum feroce_beat_verdict feroce_framer_take(struct feroce_framer *framer,
                                                     const struct feroce_beat *beat);

/* The oldest whole packet, until its last beat is taken. */
MUST_USE bool feroce_framer_packet(const struct feroce_framer *framer, struct feroce_cut *packet);

/* Its beat that stands in this cycle, the same until it is taken; `last` says that the packet ends.
 */
MUST_USE bool feroce_framer_offer(const struct feroce_framer *framer, struct feroce_beat *beat);
void feroce_framer_taken(struct feroce_framer *framer);

void feroce_framer_step(struct feroce_framer *framer);

/* Would a step change nothing? */
static inline bool feroce_framer_idle(const struct feroce_framer *framer)
{
    return !framer->given && !framer->taken;
}

void feroce_framer_check(const struct feroce_framer *framer);

#endif
