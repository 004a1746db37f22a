/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link - the words on a FORTH link: framing, alignment, and a receiver that survives any words.
 *
 * Purpose    A frame becomes link words; link words become credits, headers, data and errors.
 * Inputs     Words of 32 bits with a flag for each byte that is a control symbol.
 * Outputs    At most one forth_rx_event a word.
 * Time       A word is a cycle of the network clock.
 * Limits     FORTH_WORDS_MAX QWords a packet.
 * Source     TR376 3.1.5, 3.1.6. Our choice: which 16 bytes of a packet the document counts, and
 *            that the start symbol is not among them.
 */
#ifndef HARDWARE_FORTH_LINK_H
#define HARDWARE_FORTH_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/forth.h"

/* Control symbols, as bytes. */
#define FORTH_COMMA 0xbcu /* K28.5: idle; may be dropped or repeated. */
#define FORTH_SOP   0xfbu /* K27.7: a frame begins. */

/* One word of a link; byte 0 of `control` belongs to the first byte, bits 31..24. */
struct forth_word {
    uint32_t data;
    uint8_t control; /* Bit 3: the first byte is a control symbol, ... bit 0: the last. */
};

#define FORTH_IDLE_WORD ((struct forth_word){0xbcbcbcbcu, 0xf})
#define FORTH_SOP_WORD  ((struct forth_word){0xfbbcbcbcu, 0xf})

/* Words of a packet on one link: SOP, header, header CRC, payload, body CRC. */
static inline uint32_t forth_frame_words(uint32_t qwords)
{
    return 1 + 2 + 1 + 2 * qwords + 1;
}

/* A packet as it stands between FIFO and link. */
struct forth_frame {
    uint64_t header;
    uint16_t header_crc;
    uint32_t body_crc;
    const uint8_t *payload; /* The bytes, in the order of the link. */
    uint32_t qwords;        /* How much is sent; a good frame's header says the same. */
};

/* Encodes SOP, credits, and (frame not NULL) a packet behind them. Returns the number of words, for
 * which `out` has room. */
uint32_t forth_link_encode(const uint16_t *credits, uint32_t credit_count,
                           const struct forth_frame *frame, struct forth_word *out);

enum forth_rx_event {
    FORTH_RX_NOTHING,
    FORTH_RX_CREDIT,        /* A credit: `credit`. */
    FORTH_RX_CREDIT_PARITY, /* A credit that is to be ignored. */
    FORTH_RX_HEADER,        /* A header with a right CRC: `header`. */
    FORTH_RX_HEADER_CRC,    /* Nothing of this packet is delivered. */
    FORTH_RX_QWORD,     /* A QWord of data: `qword`; `last`: the packet's last one by its size. */
    FORTH_RX_END,       /* The body CRC is right. */
    FORTH_RX_BODY_CRC,  /* The body CRC is wrong; the data is delivered already. */
    FORTH_RX_ALIGNMENT, /* The packet ended elsewhere than its size says. */
};

enum forth_rx_state {
    FORTH_RX_START,  /* Looking for a SOP. */
    FORTH_RX_OPENED, /* Credits, or the header's first half. */
    FORTH_RX_HEADER_LOW,
    FORTH_RX_HEADER_CHECK,
    FORTH_RX_DATA_HIGH,
    FORTH_RX_DATA_LOW,
    FORTH_RX_BODY_CHECK,
    FORTH_RX_SKIPPING, /* A packet whose header was wrong, up to its end. */
};

struct forth_receiver {
    uint8_t state;    /* enum forth_rx_state. */
    uint32_t left;    /* QWords of the packet still to come. */
    uint32_t high;    /* First half of a QWord. */
    uint32_t crc;     /* The CRC of the body so far. */
    uint32_t skipped; /* Words of the packet that is being skipped. */
    /* The subject of the last event. */
    struct forth_credit credit;
    struct forth_header header;
    uint64_t header_word, qword;
    bool last;
};

/* Takes one aligned word. Zeroed memory is a receiver at start. */
enum forth_rx_event forth_receive(struct forth_receiver *receiver, struct forth_word word);

/* Restores word alignment: control symbols tell where words begin. */
struct forth_aligner {
    struct forth_word previous;
    uint8_t offset; /* Bytes by which words come late: 0..3. */
};

struct forth_word forth_align(struct forth_aligner *aligner, struct forth_word raw);

#endif
