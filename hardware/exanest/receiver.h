/* SPDX-License-Identifier: BSD-2-Clause
 *
 * receiver - the RDMA receiver: packets into memory, and one response for a block.
 *
 * Purpose    Writes payload to memory as it comes, keeps books of the blocks under way in a context
 *            table, and answers each with one response, and a completion notification if asked.
 * Inputs     exanest_receiver_take: words from the crossbar. exanest_receiver_on_write_response:
 *            the memory's answer to a burst of writes.
 * Outputs    exanest_receiver_next_write: writes to memory. exanest_receiver_offer: responses,
 *            acknowledgements and notifications.
 * Time       A unit that is idle needs no steps.
 * Limits     `arrivals` packets between header and judgement, `write_words` words on their way to
 *            memory, `replies` answers: then it isn't ready, as long as its patience lasts
 *            (replies.h). Nothing is dropped without a counter.
 * Source     Xirouchakis 4, 4.1, 6.1. The document says nothing of what a lost answer does to a
 *            notification: its block comes again and notifies again.
 *
 * Our choice, where the document is silent:
 *   - A write whose header has `priority` is a packetizer's message: it is written to memory and
 *     acknowledged, and has no context (replies.h).
 *   - A notification is written, and nobody answers it. An error in it, or an absent page, loses
 *     it. A packet of any other type is counted.
 *   - A payload that isn't in memory (a peripheral's address, or past the end of the 39 bits), or a
 *     control packet that isn't 32 aligned bytes, is refused with NACK_DECODE.
 *   - A packet with more or fewer words than its header says is refused like one with a wrong CRC.
 *   - A header whose code is right, but that can't be, is refused with NACK_DECODE.
 */
#ifndef HARDWARE_EXANEST_RECEIVER_H
#define HARDWARE_EXANEST_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/axi.h"
#include "hardware/exanest/beat.h"
#include "hardware/exanest/context_table.h"
#include "hardware/exanest/intake.h"
#include "hardware/exanest/replies.h"

#define EXANEST_CONTROL_PAYLOAD   32u
#define EXANEST_AGE_BLOCKS        10u /* Block timeouts: our choice. */
#define EXANEST_RECEIVER_ARRIVALS 32u /* The most that `arrivals` can be. */
#define EXANEST_RECEIVER_WORDS    16u /* The most that `write_words` can be. */

struct exanest_receiver_parameters {
    uint32_t coordinate; /* Our own. */
    struct exanest_context_parameters contexts;
    uint16_t response_cycles; /* From judgement to the response's header. */
    uint16_t write_cycles;    /* From a word's beat to its write. */
    uint8_t arrivals, write_words, replies;
    uint32_t patience_cycles; /* Until answers that cannot leave hold nothing up (replies.h). */
    bool berr3_is_fault;      /* DECERR is a page fault, too. */
    bool response_per_packet; /* For EXA-A26 alone: see exanest_receiver_defaults. */
};

/* All our choice. The 2 cycles are the receiver's share of EXA-A7. The packets are those of a
 * memory that answers in 40 cycles, 3 words and 2 idle cycles each.
 *
 * With `response_per_packet` each packet that is marked without completing its block has an ACK of
 * its own, with the sequence before the block's. The R5 takes it for a stale one, so only the
 * number of responses changes. */
static inline struct exanest_receiver_parameters exanest_receiver_defaults(uint32_t coordinate)
{
    return (struct exanest_receiver_parameters){
        .coordinate = coordinate,
        .contexts = EXANEST_CONTEXT_DEFAULTS,
        .response_cycles = 4,
        .write_cycles = 2,
        .arrivals = 16,
        .write_words = 8,
        .replies = 4,
        .patience_cycles = EXANEST_PATIENCE_CYCLES,
    };
}

/* The intake counts types, bytes and errors of packets (exanest_receiver.intake). */
struct exanest_receiver_counters {
    uint64_t meanings[EXANEST_MEANING_COUNT];        /* Packets of transactions. */
    uint64_t responses[EXANEST_STATUS_COUNT];        /* Responses to R5s, by status; */
    uint64_t acknowledgements[EXANEST_STATUS_COUNT]; /* those to packetizers. */
    uint64_t aged;                                   /* Contexts that were forgotten. */
    uint64_t flushes;         /* Newer instances that took the place of older ones. */
    uint64_t notifications;   /* Notifications that were sent. */
    uint64_t notified;        /* Notifications of others that were written to memory; */
    uint64_t notify_failed;   /* those that were not, or with wrong bytes. */
    uint64_t dropped;         /* Packets without a good footer: nobody can be told. */
    uint64_t unexpected;      /* Packets of types that do not belong here. */
    uint64_t outside;         /* Packets refused because of where they'd go, or a control's size. */
    uint64_t write_errors[2]; /* SLVERR, DECERR. */
    uint64_t words_written;
    uint64_t unanswered; /* Packets dropped, as if lost, since their answers found no room. */
    uint64_t waits;      /* Beats that were refused, in cycles. */
};

struct exanest_receiver_queued {
    uint64_t due;
    struct exanest_memory_write write;
};

/* A packet between its header and its judgement. */
struct exanest_arrival {
    struct exanest_header header;
    struct exanest_footer footer;
    struct exanest_word payload[2]; /* A control packet's. */
    uint8_t header_verdict;         /* enum exanest_verdict. */
    uint8_t outcome;                /* enum exanest_outcome, once it has ended. */
    uint8_t response;               /* enum exanest_axi_response, once the memory has answered. */
    bool ended, answered;
    bool placed;  /* Its payload goes to memory; */
    bool burst;   /* some of it did: there is an answer to wait for. */
    bool outside; /* It has no place in memory, or is no control packet. */
};

struct exanest_receiver {
    struct exanest_receiver_parameters parameters;
    uint64_t now;
    bool burst_open;            /* The newest arrival's burst has begun and not ended. */
    uint8_t write_head, writes; /* In `queue`. */
    uint8_t head, arrivals;     /* In `ring`. */
    uint8_t settled;            /* Arrivals from `head` on that wait for no answer of the memory. */
    uint8_t out;                /* Bursts that have left whole and have no answer yet. */
    struct exanest_intake intake;
    struct exanest_replies replies;
    struct exanest_receiver_counters counters;
    struct exanest_receiver_queued queue[EXANEST_RECEIVER_WORDS];
    struct exanest_arrival ring[EXANEST_RECEIVER_ARRIVALS];
    struct exanest_context_table table;
};

void exanest_receiver_init(struct exanest_receiver *receiver,
                           const struct exanest_receiver_parameters *parameters);

bool exanest_receiver_ready(const struct exanest_receiver *receiver,
                            const struct exanest_beat *beat);
void exanest_receiver_take(struct exanest_receiver *receiver, const struct exanest_beat *beat);
/* A beat is there and exanest_receiver_ready said no: counts. */
static inline void exanest_receiver_waits(struct exanest_receiver *receiver)
{
    receiver->counters.waits++;
}

/* Pulls the next write. False: there is none in this cycle. */
bool exanest_receiver_next_write(struct exanest_receiver *receiver,
                                 struct exanest_memory_write *write);
/* The memory's answer to the oldest burst that has left whole and has none. */
void exanest_receiver_on_write_response(struct exanest_receiver *receiver,
                                        enum exanest_axi_response response);

bool exanest_receiver_offer(const struct exanest_receiver *receiver, struct exanest_beat *beat);
void exanest_receiver_taken(struct exanest_receiver *receiver);

void exanest_receiver_step(struct exanest_receiver *receiver);

/* Nothing is left to do until a word comes. */
static inline bool exanest_receiver_idle(const struct exanest_receiver *receiver)
{
    /* A packet that is still coming in is an arrival. */
    return receiver->arrivals == (receiver->intake.open ? 1 : 0) && receiver->writes == 0 &&
           exanest_replies_idle(&receiver->replies);
}

/* EXANEST_AGE_BLOCKS block timeouts have passed: contexts that nothing comes for are forgotten. */
static inline void exanest_receiver_age(struct exanest_receiver *receiver)
{
    receiver->counters.aged += exanest_context_age(&receiver->table);
}

/* The debug port (peripheral 4): context 0..255. */
static inline const struct exanest_context *exanest_receiver_context(
    const struct exanest_receiver *receiver, uint32_t place)
{
    return exanest_context_at(&receiver->table, place);
}

#endif
