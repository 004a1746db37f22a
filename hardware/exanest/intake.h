/* SPDX-License-Identifier: BSD-2-Clause
 *
 * intake - takes a packet apart, word by word, and survives anything.
 *
 * Purpose    Every unit that a crossbar's output feeds has one: it decodes header and footer, sums
 *            the payload, holds the words against the header's length, and says how packets ended.
 * Inputs     exanest_intake_take: one beat a cycle.
 * Outputs    The beat's part in the packet (struct exanest_intake_step); header and footer.
 * Ownership  A value. Zeroed memory is an intake between two packets.
 * Limits     Never more payload words than the header announces are given out.
 * Source     Xirouchakis 3, 3.2.4, 6.1; wire/exanest.h.
 *
 * A packet ends with its footer, or with its header if that announces no footer. A header in the
 * midst of a packet, and a beat that says it's the last one, end it too: it was cut off.
 */
#ifndef HARDWARE_EXANEST_INTAKE_H
#define HARDWARE_EXANEST_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/beat.h"

#define EXANEST_TYPES (EXANEST_FLOW_RATE + 1) /* Index 0 is no type. */

/* How a packet ended: the first of these that is true. From BAD_HEADER on the footer is good, so
 * that the sender is known. */
enum exanest_outcome {
    EXANEST_CUT_OFF, /* It has no footer. */
    EXANEST_BAD_FOOTER,
    EXANEST_BAD_HEADER,
    EXANEST_TOO_SHORT, /* Fewer words of payload than the header announced. */
    EXANEST_TOO_LONG,
    EXANEST_BAD_PAYLOAD, /* Its CRC differs. */
    EXANEST_WHOLE,
    EXANEST_OUTCOME_COUNT,
};

struct exanest_intake_counters {
    uint64_t headers[EXANEST_VERDICT_COUNT];  /* By enum exanest_verdict. */
    uint64_t footers[EXANEST_VERDICT_COUNT];  /* Likewise. */
    uint64_t outcomes[EXANEST_OUTCOME_COUNT]; /* Packets: each has one outcome. */
    uint64_t packets[EXANEST_TYPES];          /* Whole ones, by type; */
    uint64_t bytes[EXANEST_TYPES];            /* the bytes of their payload. */
    uint64_t strays;                          /* Words of payload, and footers, without a header. */
};

struct exanest_intake {
    bool open;              /* Between a header and the end of its packet. */
    bool too_long;          /* More words came than there are to be. */
    uint8_t header_verdict; /* enum exanest_verdict. */
    uint8_t expected, words;
    uint32_t crc;
    struct exanest_header header; /* Zeros unless the verdict is EXANEST_GOOD. */
    struct exanest_footer footer; /* When a packet has ended with a good one. */
    struct exanest_intake_counters counters;
};

/* The kinds of a beat; several may be true. An earlier packet's end comes first. */
struct exanest_intake_step {
    bool interrupted; /* This header ended an earlier packet, which is cut off. */
    bool begins;
    bool payload; /* Word `words - 1` of a packet with a good header. */
    bool ends;
    uint8_t outcome; /* enum exanest_outcome, if it ends. */
};

struct exanest_intake_step exanest_intake_take(struct exanest_intake *intake,
                                               const struct exanest_beat *beat);

/* Which bytes of word `index` belong to the payload: bit k is byte k. */
uint16_t exanest_lanes(uint64_t va, uint32_t bytes, uint32_t index);

#endif
