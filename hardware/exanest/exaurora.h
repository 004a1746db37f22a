/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exaurora - one direction of an ExAurora link: the serializer at one end, the deserializer at the
 * other.
 *
 * Purpose    Words of packets, in order, to the FPGA at the other end, which can stop them.
 * Inputs     The serializer: beats of the datapath, flow-control words of the peer, and when the
 *            line is free. The deserializer: pieces from the line.
 * Outputs    The serializer: pieces for the line, and how long each takes. The deserializer: beats,
 *            and the flow-control words that it wants sent.
 * Time       ..._step is one 150 MHz cycle, for the datapath's side. Line time is the world's: a
 *            piece says how many picoseconds it needs.
 * Units      128-bit words; on the line 64-bit ones; picoseconds.
 * Limits     EXANEST_FIFO_WORDS words at each end.
 * Source     Xirouchakis 6.3; PG074 (the coding of Aurora 64B/66B), whose full name is in
 *            lab/exanest/parameters.c. The document has one number for both watermarks and says
 *            "valid" where the header is ready to be taken: how we read both is our choice.
 *
 * The world joins the halves of a link: when the line is free it asks exanest_serializer_next for a
 * piece, gives it to the other end's deserializer `sent_ps` and the wire's latency later, and asks
 * again after `free_ps`. While a deserializer's exanest_deserializer_next_flow says so, it gives
 * the flow-control word to the serializer of the same end, whose line carries it before any data;
 * the other end's serializer gets it by exanest_serializer_on_flow. Nothing stops between the two
 * 64-bit words of one piece. So the world asks for two (`most`) only while two conditions hold. No
 * flow-control word is on its way to this serializer: the world knows it, because the wire's
 * latency is longer than a word. And this end's deserializer is calm, because its flow-control word
 * would wait for the second word.
 *
 * A flow-control word that is lost would stop the link for ever, or overflow the FIFO: nothing
 * repairs that. Words that find no room are lost and counted; what comes out is still packets, at
 * most EXANEST_PACKET_WORDS_MAX words each, closed by a word that is no footer if the end was lost.
 */
#ifndef HARDWARE_EXANEST_EXAURORA_H
#define HARDWARE_EXANEST_EXAURORA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/exanest/beat.h"
#include "hardware/exanest/word_fifo.h"

#define EXANEST_HEADER_ROOM    18u /* Words that are free when a header is taken (6.3). */
#define EXANEST_WATERMARK      72u /* Words (6.3): XOFF when so few are free, XON when in use. */
#define EXANEST_LINK_MBPS      10000u
#define EXANEST_DATAPATH_MHZ   150u
#define EXANEST_FLOW_PS        12800u /* Our choice: until a flow-control word has left. */
#define EXANEST_AURORA_BLOCKS  4992u  /* Clock compensation takes 8 of this number (PG074). */
#define EXANEST_AURORA_STOPPED 8u

/* Native flow control: bit 7 stops; bits 6..0, a pause's length, are not used. */
#define EXANEST_FLOW_XON  0x00u
#define EXANEST_FLOW_XOFF 0x80u

/* How long things take on the line, in picoseconds. */
struct exanest_line {
    uint32_t half_ps;   /* A 64-bit word. */
    uint32_t packet_ps; /* Dead time behind a packet. */
    uint32_t flow_ps;   /* A flow-control word. */
    /* After compensation_every_ps of line time in use, the line stops for compensation_ps. 0: it
     * never does. */
    uint32_t compensation_every_ps, compensation_ps;
};

/* `gap`: the line carries data only, but is dead for `cycles` of the datapath behind a packet. */
struct exanest_line exanest_line_gap(uint32_t cycles, uint32_t datapath_mhz, uint32_t link_mbps);
/* `aurora`: blocks of 66 bits, a separator block per packet, and clock compensation. */
struct exanest_line exanest_line_aurora(uint32_t link_mbps);

/* The piece that the line carries at a time. */
struct exanest_piece {
    bool is_flow;   /* A flow-control word: `flow`. Otherwise data: */
    uint8_t flow;   /* EXANEST_FLOW_... */
    uint8_t halves; /* 64-bit words: 1 or 2. */
    bool last;      /* The packet ends with it (TLAST). */
    uint8_t channel;
    uint64_t words[2];
    uint32_t sent_ps; /* After that it has left, */
    uint32_t free_ps; /* and after that the line is free. */
};

struct exanest_serializer_config {
    struct exanest_line line;
    uint16_t header_room;
    uint8_t fall_through;
};

struct exanest_serializer {
    struct exanest_line line;
    uint16_t header_room;
    bool stopped;         /* The peer said XOFF. */
    bool half_sent;       /* The first half of the FIFO's head has left. */
    bool flow_waits;      /* `flow` is to be sent. */
    uint8_t flow;         /* EXANEST_FLOW_... */
    uint32_t since_ps;    /* Line time in use since the last compensation. */
    uint64_t packets;     /* Sent. */
    uint64_t wrong_flows; /* From the peer: flow-control words that we do not know. */
    struct exanest_fifo fifo;
};

/* 10 Gb/s, `aurora`: the document names the core (6.3). */
struct exanest_serializer_config exanest_serializer_default(void);
void exanest_serializer_init(struct exanest_serializer *serializer,
                             const struct exanest_serializer_config *config);

/* A header is taken only if a whole packet of the greatest length has room. */
static inline bool exanest_serializer_ready(const struct exanest_serializer *serializer,
                                            const struct exanest_beat *beat)
{
    const uint32_t room = beat->part == EXANEST_HEADER ? serializer->header_room : 1;
    return serializer->fifo.used + room <= EXANEST_FIFO_WORDS;
}

static inline void exanest_serializer_take(struct exanest_serializer *serializer,
                                           const struct exanest_beat *beat)
{
    CHECK(exanest_serializer_ready(serializer, beat));
    exanest_fifo_put(&serializer->fifo, beat);
}

static inline void exanest_serializer_step(struct exanest_serializer *serializer)
{
    exanest_fifo_step(&serializer->fifo);
}

/* Would a step change nothing? */
static inline bool exanest_serializer_idle(const struct exanest_serializer *serializer)
{
    return exanest_fifo_settled(&serializer->fifo);
}

/* The deserializer of this end wants its peer to be told. A word that was not sent yet is
 * replaced. */
void exanest_serializer_send_flow(struct exanest_serializer *serializer, uint8_t flow);
/* The peer's deserializer tells us. */
void exanest_serializer_on_flow(struct exanest_serializer *serializer, uint8_t flow);

/* Would exanest_serializer_next give a piece? */
static inline bool exanest_serializer_due(const struct exanest_serializer *serializer)
{
    return serializer->flow_waits || (!serializer->stopped && serializer->fifo.visible > 0);
}

/* The line is free. False: there is nothing to send. `most`: 64-bit words, 1 or 2. */
MUST_USE bool exanest_serializer_next(struct exanest_serializer *serializer, uint32_t most,
                                      struct exanest_piece *piece);

struct exanest_deserializer_config {
    uint16_t xoff_free; /* XOFF when this number of words or fewer is free. */
    uint16_t xon_used;  /* XON when this number of words or fewer is in use. */
    uint8_t fall_through;
};

/* The errors of the peer or the line, and their effects. */
struct exanest_deserializer_counters {
    uint64_t words, packets; /* Put into the FIFO. */
    uint64_t lost;           /* Words that found no room. */
    uint64_t cut;            /* Packets that were closed because their end found none. */
    uint64_t bad_headers;    /* Packets whose header could not be read. */
    uint64_t misframed;      /* Packets that ended before or after their header's length. */
    uint64_t stops;          /* XOFFs. */
};

struct exanest_deserializer {
    uint16_t xoff_free, xon_used;
    bool has_half; /* `half` is the first half of a word. */
    uint64_t half;
    bool off;         /* The peer is to be stopped. */
    bool told_off;    /* ... and that has been sent. */
    bool skipping;    /* The rest of the packet on the line is dropped. */
    bool has_footer;  /* As its header says. */
    uint8_t seen;     /* Words of the packet on the line. */
    uint8_t expected; /* 0: its header could not be read, TLAST alone says where it ends. */
    uint16_t peak;    /* Words in the FIFO, at most. */
    struct exanest_deserializer_counters counters;
    struct exanest_fifo fifo;
};

struct exanest_deserializer_config exanest_deserializer_default(void);
void exanest_deserializer_init(struct exanest_deserializer *deserializer,
                               const struct exanest_deserializer_config *config);

/* A piece of data has come. */
void exanest_deserializer_on_piece(struct exanest_deserializer *deserializer,
                                   const struct exanest_piece *piece);

void exanest_deserializer_step(struct exanest_deserializer *deserializer);
/* Would a step change nothing, and is there nothing to tell? */
static inline bool exanest_deserializer_idle(const struct exanest_deserializer *deserializer)
{
    const uint32_t used = deserializer->fifo.used;
    const bool stays = deserializer->off ? used > deserializer->xon_used
                                         : EXANEST_FIFO_WORDS - used > deserializer->xoff_free;
    return stays && deserializer->off == deserializer->told_off &&
           exanest_fifo_settled(&deserializer->fifo);
}

/* Is no flow-control word wanted before several words have come or gone? */
static inline bool exanest_deserializer_calm(const struct exanest_deserializer *deserializer)
{
    const uint32_t used = deserializer->fifo.used;
    const uint32_t several = 4;
    return deserializer->off == deserializer->told_off &&
           (deserializer->off ? used > deserializer->xon_used + several
                              : used + several + deserializer->xoff_free < EXANEST_FIFO_WORDS);
}

/* Which flow-control word is to be sent now? True at most once for each. */
MUST_USE bool exanest_deserializer_next_flow(struct exanest_deserializer *deserializer,
                                             uint8_t *flow);

MUST_USE static inline bool exanest_deserializer_offer(
    const struct exanest_deserializer *deserializer, struct exanest_beat *beat)
{
    if (deserializer->fifo.visible == 0) {
        return false;
    }
    *beat = exanest_fifo_head(&deserializer->fifo);
    return true;
}

static inline void exanest_deserializer_taken(struct exanest_deserializer *deserializer)
{
    exanest_fifo_pop(&deserializer->fifo);
}

#endif
