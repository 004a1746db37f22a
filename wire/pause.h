/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pause - Ethernet's frames of flow control: LFC stops a link, PFC stops classes.
 *
 * Purpose    The fields of such a frame, which lines of the laboratory carry as a value.
 * Time       Not used; a quantum is 512 bit times of the link.
 * Units      Octets, quanta.
 * Source     IEEE 802.3, clause 31, Annexes 31B (PAUSE) and 31D (PFC).
 */
#ifndef WIRE_PAUSE_H
#define WIRE_PAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

#define PAUSE_CLASSES       8u
#define PAUSE_ALL_CLASSES   0xffu
#define PAUSE_QUANTA_MAX    0xffffu
#define PAUSE_QUANTUM_BYTES 64u /* 512 bit times. */
#define PAUSE_FRAME_BYTES   60u /* Without FCS. */

enum pause_kind {
    PAUSE_LINK,  /* LFC: everything that the link carries. */
    PAUSE_CLASS, /* PFC: the classes that the frame names. */
};

/* The request of a frame: the named classes may not begin to send for these quanta; 0: they may
 * again. */
struct pause {
    enum pause_kind kind;
    uint8_t classes;                /* PFC: bit c: the frame names class c. Else 0. */
    uint16_t quanta[PAUSE_CLASSES]; /* By class, 0 for those that are not named; LFC: the first. */
};

static inline struct pause pause_link(uint16_t quanta)
{
    return (struct pause){.kind = PAUSE_LINK, .quanta = {quanta}};
}

/* The same quanta for all these classes. */
static inline struct pause pause_classes(uint8_t classes, uint16_t quanta)
{
    struct pause pause = {.kind = PAUSE_CLASS, .classes = classes};
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        pause.quanta[i] = classes >> i & 1 ? quanta : 0;
    }
    return pause;
}

static const uint8_t pause_destination[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

/* Reads a frame from the destination's address on. False: it is no frame of flow control. */
static inline bool pause_decode(const uint8_t *frame, size_t count, struct pause *pause)
{
    if (count < 36 || memcmp(frame, pause_destination, sizeof(pause_destination)) != 0 ||
        load_be16(frame + 12) != 0x8808) {
        return false;
    }
    *pause = pause_link(load_be16(frame + 16));
    if (load_be16(frame + 14) == 0x0101) {
        *pause = (struct pause){.kind = PAUSE_CLASS, .classes = frame[17]};
        for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
            const uint16_t quanta = load_be16(frame + 18 + 2 * i);
            pause->quanta[i] = pause->classes >> i & 1 ? quanta : 0;
        }
    }
    return pause->kind == PAUSE_CLASS || load_be16(frame + 14) == 0x0001;
}

/* The frame, of a switch that has no address. */
static inline void pause_encode(const struct pause *pause, uint8_t frame[PAUSE_FRAME_BYTES])
{
    memset(frame, 0, PAUSE_FRAME_BYTES);
    memcpy(frame, pause_destination, sizeof(pause_destination));
    frame[6] = 2;
    store_be16(frame + 12, 0x8808);
    store_be16(frame + 14, pause->kind == PAUSE_LINK ? 0x0001 : 0x0101);
    if (pause->kind == PAUSE_LINK) {
        store_be16(frame + 16, pause->quanta[0]);
        return;
    }
    frame[17] = pause->classes;
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        store_be16(frame + 18 + 2 * i, pause->quanta[i]);
    }
}

#endif
