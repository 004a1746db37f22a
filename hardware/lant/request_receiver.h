/* SPDX-License-Identifier: BSD-2-Clause
 *
 * request_receiver - the controller that makes bus requests of packets (C3).
 *
 * Purpose    Gives the payload of verified requests towards memory, one beat a cycle; damaged
 *            requests as one beat without payload, to be answered.
 * Inputs     Flits (lant_request_receiver_take).
 * Outputs    Beats (lant_request_receiver_offer, _taken).
 * Ownership  The caller owns the struct.
 * Threads    One caller at a time.
 * Time       One call of lant_request_receiver_step is a cycle. timing.h has the sums.
 * Units      Flits, beats of 8 bytes.
 * Limits     As packet_receiver.h.
 * Source     Lant D, Table D.3; specification 2.1; LNI-14.
 *
 * Nothing of a packet is given before its CRC was found right. With `cut_through`, which no machine
 * should have, its beats are given as they come, unverified, and at the end one more beat says what
 * the packet was worth: by then memory has it. This is for experiments that show what store and
 * forward costs.
 */
#ifndef HARDWARE_LANT_REQUEST_RECEIVER_H
#define HARDWARE_LANT_REQUEST_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/lant/packet_receiver.h"

struct lant_request_beat {
    const struct lant_packet *packet; /* Unless `unverified`. */
    struct lant_header header;
    enum lant_verdict verdict; /* LANT_WHOLE; LANT_CRC_WRONG, LANT_TYPE_UNKNOWN: to be answered. */
    uint32_t beat;             /* 0, 1, ... */
    uint64_t data;             /* If the packet has payload, and is whole. */
    bool last;
    bool unverified; /* cut_through: of a packet whose end has not been seen. */
};

struct lant_request_receiver {
    bool cut_through;
    bool taken, ends; /* A beat was taken in this cycle; it is its packet's last. */
    uint8_t beat;     /* The next one, of the first packet that is here. */
    uint64_t beats;
    uint64_t damaged; /* cut_through: beats given of packets that turned out to be bad. */
    struct lant_packet_receiver receiver;
};

void lant_request_receiver_init(struct lant_request_receiver *receiver, uint32_t packets,
                                bool cut_through);

static inline bool lant_request_receiver_ready(const struct lant_request_receiver *receiver)
{
    return lant_packet_receiver_ready(&receiver->receiver);
}

static inline void lant_request_receiver_take(struct lant_request_receiver *receiver,
                                              const struct lant_flit *flit)
{
    lant_packet_receiver_take(&receiver->receiver, flit);
}

MUST_USE bool lant_request_receiver_offer(const struct lant_request_receiver *receiver,
                                          struct lant_request_beat *beat);
void lant_request_receiver_taken(struct lant_request_receiver *receiver);

void lant_request_receiver_step(struct lant_request_receiver *receiver);

static inline bool lant_request_receiver_idle(const struct lant_request_receiver *receiver)
{
    return lant_packet_receiver_idle(&receiver->receiver) && !receiver->taken;
}

#endif
