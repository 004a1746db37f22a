/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rt_mailbox - the R5's mailbox: a FIFO of responses and one of read requests.
 *
 * Purpose    Two FIFOs, because an R5 that has no room for read requests must still get responses.
 *            Hardware overwrites the fields of a read request that a user could forge.
 * Inputs     exanest_rt_mailbox_take: words from the crossbar. The R5's reads of 32 bits.
 * Outputs    The words that the R5 reads; exanest_rt_mailbox_offer: acknowledgements to
 *            packetizers.
 * Time       A unit that is idle needs no steps.
 * Units      Responses of 32 bits; requests of three entries of 128 bits.
 * Limits     No header is taken while the response FIFO is full, as long as patience lasts
 *            (replies.h): an R5 whose store waits for the network reads no responses. Then they are
 *            dropped, and blocks' timeouts repair that. A read request that finds its FIFO full is
 *            refused.
 * Source     Xirouchakis 6.2, where one of the two "response FIFOs" has to be that of requests.
 *            That a request takes three entries is our choice: one has no room for its addresses.
 *
 * A packet that is not a good response or read request at its own address is refused with
 * NACK_DECODE if its sender waits for an answer, and else counted. A packet whose header is bad may
 * have been a response, so nobody is told, and the packetizer's timeout repairs that.
 */
#ifndef HARDWARE_EXANEST_RT_MAILBOX_H
#define HARDWARE_EXANEST_RT_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/beat.h"
#include "hardware/exanest/intake.h"
#include "hardware/exanest/replies.h"

#define EXANEST_RT_RESPONSES_MAX 64u
#define EXANEST_RT_REQUESTS_MAX  64u
#define EXANEST_RT_READS         4u /* Reads of 32 bits that pop an entry of a request. */

struct exanest_rt_mailbox_parameters {
    uint32_t coordinate;         /* Our own. */
    uint16_t reply_cycles;       /* Until an acknowledgement leaves. */
    uint8_t responses, requests; /* Depths. */
    uint8_t replies;
    uint32_t patience_cycles; /* 0: it never ends. */
};

/* All our choice. */
static inline struct exanest_rt_mailbox_parameters exanest_rt_mailbox_defaults(uint32_t coordinate)
{
    return (struct exanest_rt_mailbox_parameters){
        .coordinate = coordinate,
        .reply_cycles = 4,
        .responses = EXANEST_RT_RESPONSES_MAX,
        .requests = EXANEST_RT_REQUESTS_MAX,
        .replies = 4,
        .patience_cycles = EXANEST_PATIENCE_CYCLES,
    };
}

struct exanest_rt_mailbox_counters {
    uint64_t responses[EXANEST_STATUS_COUNT]; /* Put into the FIFO, by status. */
    uint64_t requests;                        /* Put into the FIFO. */
    uint64_t refused[EXANEST_STATUS_COUNT];   /* NACKs, by status. */
    uint64_t dropped;        /* Packets without a good footer, or with a bad header; responses
                              * with wrong words. */
    uint64_t responses_lost; /* Dropped: the FIFO was full for too long. */
    uint64_t unanswered;     /* Packets dropped, as if lost: their answers found no room. */
    uint64_t unexpected;     /* Packets that do not belong here. */
    uint64_t reads_empty;    /* Reads of an empty FIFO: */
    uint64_t requests_empty; /* responses; requests. */
    uint64_t waits;          /* Beats that were refused, in cycles. */
    uint32_t responses_max, requests_max;
};

struct exanest_rt_mailbox {
    struct exanest_rt_mailbox_parameters parameters;
    uint8_t response_head, responses;
    uint8_t request_head, requests;
    uint32_t refused; /* Cycles that a header has waited since the R5 last took a response. */
    uint8_t reads;    /* Reads of 32 bits that the oldest request has had. */
    struct exanest_intake intake;
    struct exanest_replies replies;
    struct exanest_word payload[EXANEST_READ_REQUEST_WORDS]; /* The incoming packet's. */
    struct exanest_rt_mailbox_counters counters;
    uint32_t response_ring[EXANEST_RT_RESPONSES_MAX];
    struct exanest_word request_ring[EXANEST_RT_REQUESTS_MAX][EXANEST_READ_REQUEST_WORDS];
};

void exanest_rt_mailbox_init(struct exanest_rt_mailbox *mailbox,
                             const struct exanest_rt_mailbox_parameters *parameters);

bool exanest_rt_mailbox_ready(const struct exanest_rt_mailbox *mailbox,
                              const struct exanest_beat *beat);
void exanest_rt_mailbox_take(struct exanest_rt_mailbox *mailbox, const struct exanest_beat *beat);
/* A beat is there and exanest_rt_mailbox_ready said no: counts. */
static inline void exanest_rt_mailbox_waits(struct exanest_rt_mailbox *mailbox)
{
    mailbox->counters.waits++;
    mailbox->refused += mailbox->responses == mailbox->parameters.responses;
}

/* The R5 reads the offset of responses: one read is one response, valid or not. */
uint32_t exanest_rt_mailbox_read_response(struct exanest_rt_mailbox *mailbox);
/* The R5 reads the offset of requests: the next 32 bits of the oldest request, least significant
 * first; every fourth read pops an entry, the twelfth the request. 0: none. */
uint32_t exanest_rt_mailbox_read_request(struct exanest_rt_mailbox *mailbox);

bool exanest_rt_mailbox_offer(const struct exanest_rt_mailbox *mailbox, struct exanest_beat *beat);
void exanest_rt_mailbox_taken(struct exanest_rt_mailbox *mailbox);

static inline void exanest_rt_mailbox_step(struct exanest_rt_mailbox *mailbox)
{
    exanest_replies_step(&mailbox->replies);
}

/* Nothing leaves until a word comes. The R5 may still read the FIFOs. */
static inline bool exanest_rt_mailbox_idle(const struct exanest_rt_mailbox *mailbox)
{
    return exanest_replies_idle(&mailbox->replies);
}

/* Is there something for the R5 to read? */
static inline bool exanest_rt_mailbox_empty(const struct exanest_rt_mailbox *mailbox)
{
    return mailbox->responses == 0 && mailbox->requests == 0;
}

#endif
