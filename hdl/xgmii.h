/* SPDX-License-Identifier: BSD-2-Clause
 *
 * xgmii - Ethernet frames in the words of XGMII: 64 bits of data, and a bit of control for each
 *         octet.
 *
 * Purpose    A MAC in a design speaks XGMII. Words of it are taken apart into frames, with a
 *            verdict about each, and frames become words.
 * Inputs     Words, one for each edge of the clock; whatever they are, they have a verdict.
 * Outputs    Events, in the order in which they happened; words.
 * Units      Octets. A frame here begins with the destination's address; with its FCS if so said.
 * Ownership  A decoder writes into the caller's memory; an encoder reads it.
 * Limits     The line alone: no clock, no flow control.
 * Source     IEEE 802.3, clause 46 (XGMII: 46.2 frames, 46.3.1.4 alignment and deficit idle count,
 *            46.3.4 link faults), 49.2.4 (64 bits), 3.2.9 (FCS).
 */
#ifndef HDL_XGMII_H
#define HDL_XGMII_H

#include <stdbool.h>
#include <stdint.h>

enum {
    XGMII_LANES = 8,
    XGMII_FCS_OCTETS = 4,
    XGMII_FRAME_OCTETS_MIN = 64, /* With the FCS. */
    XGMII_GAP_MIN = 5,           /* From terminate, which counts, up to start: of what is taken, */
    XGMII_GAP = 12,              /* and the mean of what is sent. */
    XGMII_DEFICIT_MAX = 3,
    XGMII_FAULTS = 4,  /* Ordered sets that bring the link down, */
    XGMII_QUIET = 128, /* and columns of four lanes without one that bring it up again. */
    XGMII_EVENTS_MAX = 4 * XGMII_LANES
};

/* Octets of lanes whose control bit is set. */
enum {
    XGMII_IDLE = 0x07,
    XGMII_SEQUENCE = 0x9c, /* Begins an ordered set. */
    XGMII_START = 0xfb,
    XGMII_TERMINATE = 0xfd,
    XGMII_ERROR = 0xfe
};

struct xgmii_word {
    uint8_t data[XGMII_LANES];
    uint8_t control; /* Bit i is of lane i. */
};

/* -- From words to frames -----------------------------------------------------------------------*/

enum xgmii_event {
    XGMII_BEGUN,   /* A frame has. */
    XGMII_WHOLE,   /* It has ended, and is good. */
    XGMII_DROPPED, /* It has ended, and its fault was told. */
    /* Faults: of a frame the first one, */
    XGMII_BAD_LANE,     /* It begins in another lane than 0 and 4. */
    XGMII_BAD_GAP,      /* The gap in front of it is too short. */
    XGMII_BAD_PREAMBLE, /* No six octets 0x55 and 0xd5. */
    XGMII_BAD_OCTET,    /* There is an error in it. */
    XGMII_BAD_END,      /* It ends without terminate. */
    XGMII_BAD_SHORT,
    XGMII_BAD_LONG,
    XGMII_BAD_FCS,
    /* and of a gap. */
    XGMII_BAD_STRAY, /* Neither idle nor start nor an ordered set. */
    XGMII_EVENTS
};

struct xgmii_events {
    uint32_t count;
    uint8_t what[XGMII_EVENTS_MAX], lane[XGMII_EVENTS_MAX];
};

/* As the other end tells it. */
enum xgmii_link {
    XGMII_LINK_GOOD,
    XGMII_LOCAL_FAULT, /* It hears nothing. */
    XGMII_REMOTE_FAULT /* We do not hear it, it says. */
};

struct xgmii_decoder {
    /* The caller's, from XGMII_BEGUN to the frame's end. Nothing is written in the word in which a
     * frame begins. */
    uint8_t *frame;
    uint32_t room; /* Octets, FCS included. */
    bool spoilt;   /* The frame in progress is. The caller may set it, and no fault is told. */
    /* Octets of the frame in progress, and of the last one that was whole; with FCS. A word has
     * one end of a whole frame at most. */
    uint32_t octets, whole_octets;
    enum xgmii_link link;

    enum {
        XGMII_BETWEEN,
        XGMII_IN_PREAMBLE,
        XGMII_IN_FRAME
    } state;
    uint32_t preamble; /* Octets behind start. */
    uint32_t gap;      /* Octets since terminate. */
    bool strayed;      /* It was told of this gap. */
    uint32_t faults, quiet;
    enum xgmii_link fault; /* These ordered sets were of this kind. */
};

/* As after a reset. */
void xgmii_decoder_init(struct xgmii_decoder *decoder, uint32_t room);
/* `events` are all those of the word. */
void xgmii_decode(struct xgmii_decoder *decoder, const struct xgmii_word *word,
                  struct xgmii_events *events);

/* -- From frames to words -----------------------------------------------------------------------*/

struct xgmii_frame {
    const uint8_t *data;
    uint32_t octets; /* Without FCS, at least 60; of a bad one that was cut, at least 1. */
    bool bad;        /* Its FCS is made wrong. */
};

struct xgmii_encoder {
    bool busy;        /* A frame is in progress. */
    uint32_t at;      /* Octets of it that were sent, from start on. */
    uint32_t gap;     /* Octets since terminate, */
    uint32_t deficit; /* and those that gaps before it were too short. */
    uint8_t fcs[XGMII_FCS_OCTETS];
};

void xgmii_encoder_init(struct xgmii_encoder *encoder);
/* `frame` is the one in progress, or may begin; NULL: none. Returns whether it has ended. With a
 * bad link no frame begins, and the answer to a local fault is a remote one. */
bool xgmii_encode(struct xgmii_encoder *encoder, enum xgmii_link link,
                  const struct xgmii_frame *frame, struct xgmii_word *word);

#endif
