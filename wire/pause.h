/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pause - Ethernet's frames of flow control: LFC, which stops a link, and PFC, which stops classes.
 *
 * Purpose    Between fields and the octets of a frame, from the destination address to the padding.
 * Inputs     Fields; or the octets of a frame that a peer has sent.
 * Outputs    PAUSE_FRAME_BYTES octets; fields, or a verdict that names what is wrong.
 * Ownership  Values only.
 * Threads    No state.
 * Time       Not used; a quantum is 512 bit times of the link.
 * Units      Octets, quanta.
 * Limits     Frames without the FCS, which is the line's, and without a VLAN tag.
 * Source     IEEE 802.3, clause 31, Annexes 31B (PAUSE) and 31D (PFC).
 */
#ifndef WIRE_PAUSE_H
#define WIRE_PAUSE_H

#include <stddef.h>
#include <stdint.h>

#define PAUSE_FRAME_BYTES   60u
#define PAUSE_CLASSES       8u
#define PAUSE_ALL_CLASSES   0xffu
#define PAUSE_QUANTA_MAX    0xffffu
#define PAUSE_QUANTUM_BYTES 64u /* 512 bit times. */

enum pause_kind {
    PAUSE_LINK,  /* LFC: everything that the link carries. */
    PAUSE_CLASS, /* PFC: the classes that the frame names. */
};

/* What a frame asks for: what it names may not begin for so many quanta; 0: it may again. */
struct pause {
    enum pause_kind kind;
    uint8_t classes;                /* PFC: bit c: the frame names class c. Else 0. */
    uint16_t quanta[PAUSE_CLASSES]; /* By class, 0 for those that are not named; LFC: the first. */
};

struct pause_frame {
    uint8_t source[6]; /* The address of the port that sends it. */
    struct pause pause;
};

enum pause_verdict {
    PAUSE_GOOD,
    PAUSE_WRONG_LENGTH, /* Frames of MAC control have one length. */
    PAUSE_WRONG_ADDRESS,
    PAUSE_WRONG_TYPE,
    PAUSE_UNKNOWN_OPCODE,
};

static inline struct pause pause_link(uint16_t quanta)
{
    return (struct pause){.kind = PAUSE_LINK, .quanta = {quanta}};
}

/* The same quanta for all these classes. */
struct pause pause_classes(uint8_t classes, uint16_t quanta);

void pause_encode(uint8_t out[PAUSE_FRAME_BYTES], const struct pause_frame *frame);

/* `frame` is written only if the verdict is PAUSE_GOOD. What the standard reserves (the octet above
 * the vector of classes, quanta of classes that are not named, padding) does not matter. */
enum pause_verdict pause_decode(const uint8_t *bytes, size_t count, struct pause_frame *frame);
const char *pause_verdict_text(enum pause_verdict verdict);

#endif
