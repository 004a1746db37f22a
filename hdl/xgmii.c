/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdl/xgmii.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define ALL_CONTROL     0xffu
#define COLUMN          4 /* Lanes. */
#define PREAMBLE        0x55
#define SFD             0xd5
#define PREAMBLE_OCTETS 8 /* Start and SFD included. */
#define GAP_COUNTED     255u

static const uint8_t idles[XGMII_LANES] = {XGMII_IDLE, XGMII_IDLE, XGMII_IDLE, XGMII_IDLE,
                                           XGMII_IDLE, XGMII_IDLE, XGMII_IDLE, XGMII_IDLE};
static const uint8_t remote_fault[XGMII_LANES] = {XGMII_SEQUENCE, 0, 0, 2, XGMII_SEQUENCE, 0, 0, 2};
#define SETS_CONTROL 0x11u /* Two ordered sets. */

/* CRC-32, four bits at a time. The library for ICRCs is not there where this is compiled with a
 * design. */
static uint32_t fcs_of(const uint8_t *data, uint32_t count)
{
    static const uint32_t table[] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                     0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                     0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static uint32_t widened(uint32_t gap, uint32_t octets)
{
    return gap + octets > GAP_COUNTED ? GAP_COUNTED : gap + octets;
}

/* -- Link faults --------------------------------------------------------------------------------*/

/* Columns without an ordered set of a fault. */
static void note_quiet(struct xgmii_decoder *decoder, uint32_t columns)
{
    if (decoder->quiet < XGMII_QUIET) {
        decoder->quiet += columns;
        if (decoder->quiet >= XGMII_QUIET) {
            decoder->faults = 0;
            decoder->link = XGMII_LINK_GOOD;
        }
    }
}

static void note_fault(struct xgmii_decoder *decoder, enum xgmii_link fault)
{
    decoder->faults =
        fault == decoder->fault ? decoder->faults + (decoder->faults < XGMII_FAULTS) : 1;
    decoder->fault = fault;
    decoder->quiet = 0;
    if (decoder->faults == XGMII_FAULTS) {
        decoder->link = fault;
    }
}

/* -- From words to frames -----------------------------------------------------------------------*/

void xgmii_decoder_init(struct xgmii_decoder *decoder, uint32_t room)
{
    CHECK(room >= XGMII_FRAME_OCTETS_MIN);
    *decoder = (struct xgmii_decoder){.room = room, .gap = GAP_COUNTED, .quiet = XGMII_QUIET};
}

static void tell(struct xgmii_events *events, uint32_t lane, enum xgmii_event event)
{
    CHECK(events->count < XGMII_EVENTS_MAX);
    events->what[events->count] = (uint8_t)event;
    events->lane[events->count++] = (uint8_t)lane;
}

static void spoil(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane,
                  enum xgmii_event fault)
{
    if (!decoder->spoilt) {
        tell(events, lane, fault);
    }
    decoder->spoilt = true;
}

static void begin(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane)
{
    decoder->state = XGMII_IN_PREAMBLE;
    decoder->preamble = 0;
    decoder->octets = 0;
    decoder->spoilt = false;
    decoder->strayed = false;
    tell(events, lane, XGMII_BEGUN);
    if (lane % COLUMN != 0) {
        spoil(decoder, events, lane, XGMII_BAD_LANE);
    } else if (decoder->gap < XGMII_GAP_MIN) {
        spoil(decoder, events, lane, XGMII_BAD_GAP);
    }
}

static void end(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane,
                uint32_t gap)
{
    if (decoder->spoilt) {
        tell(events, lane, XGMII_DROPPED);
    } else {
        tell(events, lane, XGMII_WHOLE);
        decoder->whole_octets = decoder->octets;
    }
    decoder->state = XGMII_BETWEEN;
    decoder->gap = gap;
}

static bool fcs_is_right(const struct xgmii_decoder *decoder)
{
    const uint32_t covered = decoder->octets - XGMII_FCS_OCTETS;
    return load_le32(decoder->frame + covered) == fcs_of(decoder->frame, covered);
}

static void terminate(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane)
{
    if (decoder->state == XGMII_IN_PREAMBLE) {
        spoil(decoder, events, lane, XGMII_BAD_PREAMBLE);
    } else if (decoder->octets < XGMII_FRAME_OCTETS_MIN) {
        spoil(decoder, events, lane, XGMII_BAD_SHORT);
    } else if (!decoder->spoilt && !fcs_is_right(decoder)) {
        spoil(decoder, events, lane, XGMII_BAD_FCS);
    }
    end(decoder, events, lane, 1);
}

/* The gap behind such a frame cannot be told. */
static void end_without_terminate(struct xgmii_decoder *decoder, struct xgmii_events *events,
                                  uint32_t lane)
{
    spoil(decoder, events, lane, XGMII_BAD_END);
    end(decoder, events, lane, GAP_COUNTED);
}

static void stray(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane)
{
    if (!decoder->strayed) {
        tell(events, lane, XGMII_BAD_STRAY);
    }
    decoder->strayed = true;
    decoder->gap = widened(decoder->gap, 1);
}

static void take_preamble(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane,
                          uint8_t octet)
{
    const bool last = ++decoder->preamble == PREAMBLE_OCTETS - 1;
    if (octet != (last ? SFD : PREAMBLE)) {
        spoil(decoder, events, lane, XGMII_BAD_PREAMBLE);
    }
    decoder->state = last ? XGMII_IN_FRAME : XGMII_IN_PREAMBLE;
}

static void take_data(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane,
                      uint8_t octet)
{
    switch (decoder->state) {
    case XGMII_BETWEEN: stray(decoder, events, lane); break;
    case XGMII_IN_PREAMBLE: take_preamble(decoder, events, lane, octet); break;
    case XGMII_IN_FRAME:
        if (decoder->octets == decoder->room) {
            spoil(decoder, events, lane, XGMII_BAD_LONG);
            return;
        }
        if (!decoder->spoilt) {
            decoder->frame[decoder->octets] = octet;
        }
        decoder->octets++;
        break;
    default: UNREACHABLE("state");
    }
}

static void take_control(struct xgmii_decoder *decoder, struct xgmii_events *events, uint32_t lane,
                         uint8_t octet)
{
    const bool within = decoder->state != XGMII_BETWEEN;
    if (within && octet == XGMII_TERMINATE) {
        terminate(decoder, events, lane);
        return;
    }
    if (within && octet == XGMII_ERROR) {
        spoil(decoder, events, lane, XGMII_BAD_OCTET);
        take_data(decoder, events, lane, octet);
        return;
    }
    if (within) {
        end_without_terminate(decoder, events, lane);
    }
    if (octet == XGMII_START) {
        begin(decoder, events, lane);
    } else if (octet == XGMII_IDLE) {
        decoder->gap = widened(decoder->gap, 1);
    } else {
        stray(decoder, events, lane);
    }
}

/* An ordered set takes a column. */
static void take_set(struct xgmii_decoder *decoder, struct xgmii_events *events,
                     const uint8_t *column, uint32_t lane)
{
    if (decoder->state != XGMII_BETWEEN) {
        end_without_terminate(decoder, events, lane);
    }
    decoder->gap = widened(decoder->gap, COLUMN);
    const bool fault = column[1] == 0 && column[2] == 0 && (column[3] == 1 || column[3] == 2);
    if (fault) {
        note_fault(decoder, column[3] == 1 ? XGMII_LOCAL_FAULT : XGMII_REMOTE_FAULT);
    } else {
        note_quiet(decoder, 1); /* Reserved. */
    }
}

static void take_column(struct xgmii_decoder *decoder, const struct xgmii_word *word, uint32_t lane,
                        struct xgmii_events *events)
{
    const uint32_t control = word->control >> lane & 0xf;
    if (control == 1 && word->data[lane] == XGMII_SEQUENCE) {
        take_set(decoder, events, word->data + lane, lane);
        return;
    }
    for (uint32_t i = lane; i < lane + COLUMN; i++) {
        if (word->control >> i & 1) {
            take_control(decoder, events, i, word->data[i]);
        } else {
            take_data(decoder, events, i, word->data[i]);
        }
    }
    note_quiet(decoder, 1);
}

/* The word is data alone, within a good frame, or idle, between two of them. */
static bool take_plain(struct xgmii_decoder *decoder, const struct xgmii_word *word)
{
    if (word->control == 0 && decoder->state == XGMII_IN_FRAME && !decoder->spoilt &&
        decoder->octets + XGMII_LANES <= decoder->room) {
        memcpy(decoder->frame + decoder->octets, word->data, XGMII_LANES);
        decoder->octets += XGMII_LANES;
    } else if (word->control == ALL_CONTROL && decoder->state == XGMII_BETWEEN &&
               memcmp(word->data, idles, XGMII_LANES) == 0) {
        decoder->gap = widened(decoder->gap, XGMII_LANES);
    } else {
        return false;
    }
    note_quiet(decoder, XGMII_LANES / COLUMN);
    return true;
}

void xgmii_decode(struct xgmii_decoder *decoder, const struct xgmii_word *word,
                  struct xgmii_events *events)
{
    events->count = 0;
    if (!take_plain(decoder, word)) {
        take_column(decoder, word, 0, events);
        take_column(decoder, word, COLUMN, events);
    }
}

/* -- From frames to words -----------------------------------------------------------------------*/

void xgmii_encoder_init(struct xgmii_encoder *encoder)
{
    *encoder = (struct xgmii_encoder){.gap = GAP_COUNTED};
}

/* How many octets would be missing from gaps, if a frame began here. */
static int32_t deficit_here(const struct xgmii_encoder *encoder)
{
    return (int32_t)encoder->deficit + XGMII_GAP - (int32_t)encoder->gap;
}

static void start(struct xgmii_encoder *encoder, const struct xgmii_frame *frame)
{
    const int32_t deficit = deficit_here(encoder);
    CHECK(frame->octets >= (frame->bad ? 1 : XGMII_FRAME_OCTETS_MIN - XGMII_FCS_OCTETS));
    const uint32_t fcs = fcs_of(frame->data, frame->octets);
    store_le32(encoder->fcs, frame->bad ? ~fcs : fcs);
    encoder->deficit = deficit > 0 ? (uint32_t)deficit : 0;
    encoder->busy = true;
    encoder->at = 0;
}

static bool may_start(const struct xgmii_encoder *encoder, uint32_t lane)
{
    return lane % COLUMN == 0 && deficit_here(encoder) <= XGMII_DEFICIT_MAX;
}

/* The next octet of the frame in progress; *control: its lane is one of control. */
static uint8_t next_octet(const struct xgmii_encoder *encoder, const struct xgmii_frame *frame,
                          bool *control)
{
    *control = false;
    if (encoder->at < PREAMBLE_OCTETS) {
        *control = encoder->at == 0;
        return *control ? XGMII_START : encoder->at == PREAMBLE_OCTETS - 1 ? SFD : PREAMBLE;
    }
    const uint32_t at = encoder->at - PREAMBLE_OCTETS;
    if (at < frame->octets) {
        return frame->data[at];
    }
    *control = at == frame->octets + XGMII_FCS_OCTETS;
    return *control ? XGMII_TERMINATE : encoder->fcs[at - frame->octets];
}

/* Returns whether the frame has ended with this lane. */
static bool fill_lane(struct xgmii_encoder *encoder, const struct xgmii_frame *frame, uint32_t lane,
                      struct xgmii_word *word)
{
    bool control = true;
    word->data[lane] = encoder->busy ? next_octet(encoder, frame, &control) : XGMII_IDLE;
    word->control |= (uint8_t)(control << lane);
    if (!encoder->busy) {
        encoder->gap = widened(encoder->gap, 1);
        return false;
    }
    encoder->at++;
    encoder->busy = word->data[lane] != XGMII_TERMINATE || !control;
    encoder->gap = 1;
    return !encoder->busy;
}

static bool fill_word(struct xgmii_encoder *encoder, const struct xgmii_frame *frame,
                      struct xgmii_word *word)
{
    bool ended = false;
    word->control = 0;
    for (uint32_t lane = 0; lane < XGMII_LANES; lane++) {
        if (!encoder->busy && frame != NULL && !ended && may_start(encoder, lane)) {
            start(encoder, frame);
        }
        ended |= fill_lane(encoder, frame, lane, word);
    }
    return ended;
}

bool xgmii_encode(struct xgmii_encoder *encoder, enum xgmii_link link,
                  const struct xgmii_frame *frame, struct xgmii_word *word)
{
    CHECK(!encoder->busy || frame != NULL);
    if (encoder->busy && encoder->at >= PREAMBLE_OCTETS &&
        encoder->at + XGMII_LANES <= PREAMBLE_OCTETS + frame->octets) {
        word->control = 0;
        memcpy(word->data, frame->data + encoder->at - PREAMBLE_OCTETS, XGMII_LANES);
        encoder->at += XGMII_LANES;
        return false;
    }
    if (encoder->busy || (frame != NULL && link == XGMII_LINK_GOOD)) {
        return fill_word(encoder, frame, word);
    }
    const bool answers = link == XGMII_LOCAL_FAULT;
    word->control = answers ? SETS_CONTROL : ALL_CONTROL;
    memcpy(word->data, answers ? remote_fault : idles, XGMII_LANES);
    encoder->gap = widened(encoder->gap, XGMII_LANES);
    return false;
}
