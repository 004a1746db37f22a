/* SPDX-License-Identifier: BSD-2-Clause
 *
 * answer_receiver - the controller that makes bus responses of packets (C4).
 *
 * Purpose    Says of each verified packet for which table it is, and whether what it answers is to
 *            be sent again.
 * Inputs     Flits (lant_packet_receiver_take of `receiver`).
 * Outputs    lant_answer_receiver_offer, _taken: one packet a cycle.
 * Ownership  The caller owns the struct; the packet offered is the receiver's.
 * Threads    One caller at a time.
 * Time       As packet_receiver.h.
 * Units      Flits.
 * Limits     As packet_receiver.h.
 * Source     Lant D, Table D.4; specification 2.1, 2.3, 2.7.
 *
 * COMPLETION_NOTIFICATION is a request, but comes here, as in Table D.4. A damaged one is offered,
 * for a NACK. A damaged answer is dropped, for nobody answers answers: whoever waits for it sends
 * its request again when its time is over (our choice).
 */
#ifndef HARDWARE_LANT_ANSWER_RECEIVER_H
#define HARDWARE_LANT_ANSWER_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/lant/packet_receiver.h"

enum lant_answer_kind {
    LANT_ANSWER_SHM,
    LANT_ANSWER_RDMA,
    LANT_ANSWER_NOTIFICATION,
    LANT_ANSWER_NONE, /* Not for this controller. */
};

static inline enum lant_answer_kind lant_answer_kind(uint32_t type)
{
    switch (type) {
    case LANT_R:
    case LANT_B: return LANT_ANSWER_SHM;
    case LANT_RDMA_ACK: return LANT_ANSWER_RDMA;
    case LANT_COMPLETION_NOTIFICATION: return LANT_ANSWER_NOTIFICATION;
    default: return LANT_ANSWER_NONE;
    }
}

struct lant_answer_arrival {
    enum lant_answer_kind kind;
    bool again;   /* A NACK: the request goes to the retransmission queue. */
    bool damaged; /* A notification, to be answered with a NACK; its payload is void. */
    const struct lant_packet *packet;
};

struct lant_answer_receiver {
    struct lant_packet_receiver receiver;
    uint64_t damaged; /* Answers dropped, because their CRC was wrong; */
    uint64_t strays;  /* packets dropped that C3 should have had. */
};

static inline void lant_answer_receiver_init(struct lant_answer_receiver *receiver,
                                             uint32_t packets)
{
    *receiver = (struct lant_answer_receiver){0};
    lant_packet_receiver_init(&receiver->receiver, packets);
}

static inline bool lant_answer_receiver_ready(const struct lant_answer_receiver *receiver)
{
    return lant_packet_receiver_ready(&receiver->receiver);
}

static inline void lant_answer_receiver_take(struct lant_answer_receiver *receiver,
                                             const struct lant_flit *flit)
{
    lant_packet_receiver_take(&receiver->receiver, flit);
}

MUST_USE bool lant_answer_receiver_offer(const struct lant_answer_receiver *receiver,
                                         struct lant_answer_arrival *arrival);

static inline void lant_answer_receiver_taken(struct lant_answer_receiver *receiver)
{
    lant_packet_receiver_taken(&receiver->receiver);
}

/* What is nobody's is dropped here, and never offered. */
void lant_answer_receiver_step(struct lant_answer_receiver *receiver);

static inline bool lant_answer_receiver_idle(const struct lant_answer_receiver *receiver)
{
    return lant_packet_receiver_idle(&receiver->receiver);
}

#endif
