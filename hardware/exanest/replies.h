/* SPDX-License-Identifier: BSD-2-Clause
 *
 * replies - the small packets with which receiving units answer, and their way out.
 *
 * Purpose    Makes responses, acknowledgements and notifications, and sends them in order.
 * Inputs     exanest_replies_put_...: there must be room.
 * Outputs    exanest_replies_offer and exanest_replies_taken, as beat.h says.
 * Time       A reply is offered `cycles` after it was put.
 * Limits     EXANEST_REPLIES_MAX wait.
 * Source     Xirouchakis 3, 6.1. `cycles` and `patience` are our choice
 *            (docs/decisions/0023-patience.md).
 *
 * An answer goes to the unit that asked: our choice. A packetizer's message (a read request, or a
 * write with the header's bit `priority`, which the send unit never sets in a write) is
 * acknowledged by a header alone, to the packetizers of the source. A transaction's packet is
 * acknowledged by header and footer, to the R5's mailbox there. No other packet is ever answered,
 * so no answer has an answer.
 *
 * Patience keeps units from waiting for each other for ever. Answers share links with the packets
 * that they answer. A unit that took nothing until its answers have left could wait for another one
 * that does the same. So patience ends: once no word of an answer has left for `patience` cycles,
 * the unit takes packets again. A packet whose answer finds no room is treated as if the network
 * had lost it, and its sender sends it again after a time (4.1). The unit noted nothing of the
 * packet, so its notification is not lost, but comes later.
 */
#ifndef HARDWARE_EXANEST_REPLIES_H
#define HARDWARE_EXANEST_REPLIES_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/beat.h"

#define EXANEST_REPLIES_MAX     8u
#define EXANEST_REPLY_WORDS_MAX 4u /* A notification to an address that no word begins at. */
/* 100 us: a tenth of a block's timeout, so that what waits elsewhere is not sent again, too. */
#define EXANEST_PATIENCE_CYCLES 15000u

struct exanest_reply {
    uint64_t due;
    uint8_t count;
    struct exanest_word words[EXANEST_REPLY_WORDS_MAX];
};

struct exanest_replies {
    uint32_t coordinate; /* Our own: the source in footers. */
    uint32_t cycles;
    uint32_t patience; /* Cycles; 0: it never ends. */
    uint8_t depth;
    uint8_t head, count;
    uint8_t sent; /* Words of the oldest reply that have left. */
    uint64_t now;
    uint64_t moved;   /* When a word left last, or the oldest reply was due if that is later. */
    uint64_t longest; /* The longest wait, in cycles, of a word that has left. */
    struct exanest_reply ring[EXANEST_REPLIES_MAX];
};

void exanest_replies_init(struct exanest_replies *replies, uint32_t coordinate, uint32_t cycles,
                          uint32_t patience, uint32_t depth);

static inline uint32_t exanest_replies_room(const struct exanest_replies *replies)
{
    return (uint32_t)replies->depth - replies->count;
}

static inline bool exanest_replies_idle(const struct exanest_replies *replies)
{
    return replies->count == 0;
}

/* No word has left for so long that packets need not wait for it any more. */
static inline bool exanest_replies_stuck(const struct exanest_replies *replies)
{
    return replies->patience != 0 && replies->count > 0 &&
           replies->now >= replies->moved + replies->patience;
}

enum exanest_asker {
    EXANEST_ASKER_NONE,
    EXANEST_ASKER_TRANSACTION,
    EXANEST_ASKER_PACKETIZER,
};

/* The unit that is told the outcome of a packet with this header. */
static inline enum exanest_asker exanest_asker(const struct exanest_header *header)
{
    if (header->type == EXANEST_READ_REQUEST ||
        (header->type == EXANEST_WRITE && header->priority)) {
        return EXANEST_ASKER_PACKETIZER;
    }
    return header->type == EXANEST_WRITE || header->type == EXANEST_CONTROL
               ? EXANEST_ASKER_TRANSACTION
               : EXANEST_ASKER_NONE;
}

/* A response about the transaction of a footer, to the R5 of its source. */
void exanest_replies_put_response(struct exanest_replies *replies, uint16_t pdid,
                                  const struct exanest_footer *footer, enum exanest_status status);
/* An acknowledgement, to the packetizer whose message had this footer. */
void exanest_replies_put_acknowledgement(struct exanest_replies *replies, uint16_t pdid,
                                         const struct exanest_footer *footer,
                                         enum exanest_status status);
/* An acknowledgement, to the zDMA whose packet had this footer. */
void exanest_replies_put_zdma(struct exanest_replies *replies, uint16_t pdid,
                              const struct exanest_footer *footer, enum exanest_status status);
/* One of the first two, as the packet's asker needs it. False: none. */
bool exanest_replies_answer(struct exanest_replies *replies, const struct exanest_header *header,
                            const struct exanest_footer *footer, enum exanest_status status);
/* 16 bytes to an address that a user gave, with the transaction's footer. */
void exanest_replies_put_notification(struct exanest_replies *replies, uint16_t pdid,
                                      const struct exanest_control *control);

bool exanest_replies_offer(const struct exanest_replies *replies, struct exanest_beat *beat);
void exanest_replies_taken(struct exanest_replies *replies);

static inline void exanest_replies_step(struct exanest_replies *replies)
{
    replies->now++;
}

void exanest_replies_check(const struct exanest_replies *replies);

#endif
