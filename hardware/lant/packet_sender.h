/* SPDX-License-Identifier: BSD-2-Clause
 *
 * packet_sender - the two controllers that make packets of requests (C1) and of answers (C2).
 *
 * Purpose    Chooses a source, makes header and footer flits of its request's fields, and sends the
 *            payload between them, one flit a cycle.
 * Inputs     Fields (lant_packet_sender_take) and payload (lant_packet_sender_take_data) of each
 *            source; either may come first.
 * Outputs    Flits (lant_packet_sender_offer, _taken).
 * Ownership  The caller owns the struct.
 * Threads    One caller at a time.
 * Time       One call of lant_packet_sender_step is a cycle of 6.4 ns. What comes in one cycle can
 *            leave in the next. timing.h has the sums.
 * Units      Flits.
 * Limits     LANT_SOURCES sources, with LANT_SEND_REQUESTS_MAX requests and LANT_SEND_FLITS_MAX
 *            flits of payload each.
 * Source     Lant 3.3.2.1, D, Tables D.1, D.2; specification 2.1; LNI-11 to LNI-13.
 *
 * States and their order are the parts of a packet (wire/lant.h). A controller stays in a part
 * while the flit that stands there is not taken, and in the body also while there is no payload. A
 * source is chosen between two packets, by the requests alone: payload that comes late holds
 * everybody up (our choice: Table D.1 asks for requesting queues only). Rows, IDs and the inbound
 * CAM are not here: they give the fields.
 *
 * C1 has five sources, C2 one (LANT_ANSWERS), which is what remains of Table D.2 without the CAM.
 */
#ifndef HARDWARE_LANT_PACKET_SENDER_H
#define HARDWARE_LANT_PACKET_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/lant/answers.h"
#include "wire/lant.h"

#define LANT_SEND_REQUESTS_MAX 16u
#define LANT_SEND_FLITS_MAX    128u

/* C1's, the most urgent first (Table D.1). */
enum lant_source {
    LANT_SOURCE_SHM_RETRY,
    LANT_SOURCE_SHM_READ,
    LANT_SOURCE_SHM_WRITE,
    LANT_SOURCE_RDMA_RETRY,
    LANT_SOURCE_RDMA,
    LANT_SOURCES,
    LANT_ANSWERS = 0, /* C2's only one. */
};

/* A flit on the datapath. */
struct lant_flit {
    uint64_t data;
    bool last; /* The packet ends with it. */
};

struct lant_sender_config {
    uint8_t sources;  /* LANT_SOURCES: C1; 1: C2. */
    uint8_t requests; /* That wait, of each source. */
    uint8_t flits;    /* The same of payload. */
};

static inline struct lant_sender_config lant_request_sender(void)
{
    return (struct lant_sender_config){LANT_SOURCES, 16, 128};
}

static inline struct lant_sender_config lant_answer_sender(void)
{
    return (struct lant_sender_config){1, 16, 128};
}

/* Two rings. */
struct lant_send_queue {
    uint8_t head, count;
    uint8_t data_head, data_count;
    struct lant_ends requests[LANT_SEND_REQUESTS_MAX];
    uint64_t data[LANT_SEND_FLITS_MAX];
};

struct lant_sender_counters {
    uint64_t packets[LANT_SOURCES];
    uint64_t flits;
    uint64_t waits; /* Cycles in the body without payload. */
};

struct lant_packet_sender {
    struct lant_sender_config config;
    bool active;             /* In the midst of a packet: */
    bool stands, taken;      /* a flit stands at the output; it was taken in this cycle. */
    uint8_t source;          /* enum lant_source. */
    uint8_t left;            /* Flits of payload to come, that which stands included. */
    enum lant_part part;     /* What stands, or is waited for. */
    uint32_t crc;            /* The flits before it. */
    struct lant_flit flit;   /* What stands. */
    struct lant_ends packet; /* The request that is being sent. */
    struct lant_sender_counters counters;
    struct lant_send_queue queues[LANT_SOURCES];
};

void lant_packet_sender_init(struct lant_packet_sender *sender,
                             const struct lant_sender_config *config);

/* Room for a request, for a flit of payload. */
static inline bool lant_packet_sender_ready(const struct lant_packet_sender *sender,
                                            uint32_t source)
{
    return sender->queues[source].count < sender->config.requests;
}

static inline bool lant_packet_sender_data_ready(const struct lant_packet_sender *sender,
                                                 uint32_t source)
{
    return sender->queues[source].data_count < sender->config.flits;
}

/* The payload of a source's packets comes in the order of its requests. */
void lant_packet_sender_take(struct lant_packet_sender *sender, uint32_t source,
                             const struct lant_ends *request);
void lant_packet_sender_take_data(struct lant_packet_sender *sender, uint32_t source,
                                  uint64_t flit);

/* The flit that stands in this cycle; the same until it is taken. */
MUST_USE bool lant_packet_sender_offer(const struct lant_packet_sender *sender,
                                       struct lant_flit *flit);
void lant_packet_sender_taken(struct lant_packet_sender *sender);

void lant_packet_sender_step(struct lant_packet_sender *sender);

/* Would a step change nothing? Payload that waits for its request does not count. */
static inline bool lant_packet_sender_idle(const struct lant_packet_sender *sender)
{
    for (uint32_t i = 0; i < sender->config.sources; i++) {
        if (sender->queues[i].count > 0) {
            return false;
        }
    }
    return !sender->active;
}

void lant_packet_sender_check(const struct lant_packet_sender *sender);

#endif
