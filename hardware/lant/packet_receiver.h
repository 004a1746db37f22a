/* SPDX-License-Identifier: BSD-2-Clause
 *
 * packet_receiver - collects the flits of packets, and gives whole ones that are verified.
 *
 * Purpose    What the two controllers of the receiving side (C3, C4) have in common: they follow
 *            the parts of a packet, keep it, and check its CRC at the end (store and forward).
 * Inputs     Flits (lant_packet_receiver_take).
 * Outputs    Packets with a verdict (lant_packet_receiver_offer, _taken): good ones, and those
 *            whose sender can be told what is wrong. All others are dropped and counted.
 * Ownership  The caller owns the struct. A packet offered is the receiver's until it is taken.
 * Threads    One caller at a time.
 * Time       One call of lant_packet_receiver_step is a cycle. A packet whose last flit is taken in
 *            one cycle is offered in the next.
 * Units      Flits.
 * Limits     LANT_RECEIVE_PACKETS_MAX packets that are whole. If all places are in use, the last
 *            flit of the next packet is not taken.
 * Source     Lant D, Tables D.3, D.4; specification 2.1, 2.16; LNI-12, LNI-14.
 *
 * The link says with which flit a packet ends. If that is not where H1 says, or H1 cannot be read,
 * flits are dropped up to that end, so that the next packet is seen from its beginning.
 */
#ifndef HARDWARE_LANT_PACKET_RECEIVER_H
#define HARDWARE_LANT_PACKET_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/lant/packet_sender.h"
#include "wire/lant.h"

#define LANT_RECEIVE_PACKETS_MAX 8u

struct lant_arrival {
    enum lant_verdict verdict; /* LANT_WHOLE, LANT_CRC_WRONG, LANT_TYPE_UNKNOWN. */
    struct lant_packet packet;
};

struct lant_receiver_counters {
    uint64_t packets[LANT_VERDICT_COUNT];
    uint64_t flits;
    uint64_t repaired;
};

struct lant_packet_receiver {
    uint8_t packets;     /* Places for packets that are whole. */
    uint8_t head, count; /* The ring of them. */
    bool held;           /* A flit was taken in this cycle. */
    bool skips;          /* The rest of a packet that has `why`. */
    enum lant_verdict why;
    enum lant_part part;       /* What the next flit is. */
    uint8_t left, kept;        /* Flits of payload to come; flits kept. */
    uint8_t seen;              /* Flits of the packet so far, kept or not; 255 is more. */
    struct lant_flit flit;     /* The one that is held. */
    struct lant_header header; /* H1's part of it, from HEAD2 on. */
    struct lant_receiver_counters counters;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    struct lant_arrival arrivals[LANT_RECEIVE_PACKETS_MAX];
};

void lant_packet_receiver_init(struct lant_packet_receiver *receiver, uint32_t packets);

/* Is a flit taken in this cycle? */
static inline bool lant_packet_receiver_ready(const struct lant_packet_receiver *receiver)
{
    return !receiver->held && (receiver->count < receiver->packets || receiver->part != LANT_FOOT2);
}

void lant_packet_receiver_take(struct lant_packet_receiver *receiver, const struct lant_flit *flit);

void lant_packet_receiver_step(struct lant_packet_receiver *receiver);

/* The first packet that is whole; NULL: there is none. */
static inline const struct lant_arrival *lant_packet_receiver_offer(
    const struct lant_packet_receiver *receiver)
{
    return receiver->count == 0 ? NULL : &receiver->arrivals[receiver->head];
}

void lant_packet_receiver_taken(struct lant_packet_receiver *receiver);

/* Has nothing come that is still here? */
static inline bool lant_packet_receiver_idle(const struct lant_packet_receiver *receiver)
{
    return !receiver->held && !receiver->skips && receiver->kept == 0 && receiver->count == 0;
}

void lant_packet_receiver_check(const struct lant_packet_receiver *receiver);

#endif
