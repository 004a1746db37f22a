/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link - one direction of a FORTH link: packets and credits on their way, and what bit errors
 * do to them.
 *
 * Purpose    Whole packets travel as one event each. The verdict that the receiver of
 *            hardware/forth/link.h would reach word by word is worked out from the places of the
 *            flipped bits.
 * Ownership  Packets come from the fabric's pool; on_packet and on_lost hand them to the receiver.
 * Time       Transmission in cycles of the sender's clock; a word is a cycle.
 * Limits     One or two lanes.
 * Source     TR376 3.1.5, 3.1.6, 3.1.6.3.
 */
#ifndef LAB_FORTH_LINK_H
#define LAB_FORTH_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "hardware/forth/credit.h"
#include "hardware/forth/link.h"
#include "sim/clock.h"
#include "sim/errors.h"
#include "sim/kernel.h"
#include "sim/pool.h"

struct forth_end;
struct sim_trace;
struct sim_capture;

/* The fate of a packet on a link. */
enum forth_fate {
    FORTH_FATE_GOOD,
    FORTH_FATE_BODY,   /* The payload or its CRC is not as sent: delivered, and flagged. */
    FORTH_FATE_HEADER, /* The header or its CRC: not delivered. */
    FORTH_FATE_SOP,    /* The start symbol: words without a beginning, not delivered. */
};

struct forth_packet {
    struct sim_event event; /* Its arrival. */
    struct list node;       /* Its place in the list of the buffer where it stands. */
    struct forth_end *to;
    uint64_t header;     /* As on the link. */
    uint16_t header_crc; /* Made anew for every link; set only where it is looked at. */
    uint16_t qwords;     /* The length of the payload. */
    uint32_t body_crc;
    uint8_t fate; /* enum forth_fate, on the link it came by. */
    /* When its first word came to the receiver, and when its last one was over. */
    uint64_t began_ps, ended_ps;
    _Alignas(8) uint8_t payload[]; /* In the order of the link; as much as the fabric's most. */
};

/* A receiver. A packet arrives when `lead` cycles of it, and part/of_parts of its payload, are
 * here: what the receiver waits for before it does anything.
 *
 * A credit that nobody waits for need not be an event: unless the end is `eager`, credits are kept
 * on the link until the end collects them, or waits for them. */
struct forth_end {
    uint32_t lead, part, of_parts;
    bool eager;            /* Every credit is an event, at its own time. */
    bool waiting;          /* The end waits for credits: set by forth_link_await. */
    struct forth_link *in; /* The link that leads here. */
    void (*on_packet)(struct forth_end *end, struct forth_packet *packet);
    void (*on_credit)(struct forth_end *end, uint16_t credit);
};

/* State that the links, switches and NICs of one world share. */
struct forth_fabric {
    struct sim *sim;
    struct sim_pool packets, credits;
    struct sim_trace *trace;     /* NULL: nobody looks. */
    struct sim_capture *capture; /* NULL: nobody captures. */
};

/* `packets` of up to `qwords` each can exist at a time. */
void forth_fabric_open(struct forth_fabric *fabric, struct sim *sim, uint32_t packets,
                       uint32_t qwords);
void forth_fabric_close(struct forth_fabric *fabric);

struct forth_link {
    struct forth_fabric *fabric;
    struct forth_end *to;
    struct sim_clock clock;
    uint64_t latency_ps;
    uint64_t free_ps; /* When the next word can begin. */
    uint32_t lanes;
    uint32_t track; /* The number of its track in the trace. */
    /* The counters of packets stand apart from those of credits: a compiler that adds to two
     * neighbours at once would make the load wait until both have left the store buffer. */
    uint64_t packets, qwords; /* Sent. */
    uint64_t commas_ps;   /* Idle words behind each packet: the document's interface has none. */
    uint64_t busy_cycles; /* Cycles in which the link carries packets or credits. */
    uint64_t lost_credits, credits;
    struct list travelling; /* Credits that have not been handed over yet, */
    uint32_t kept;          /* and the number of them. */
    struct sim_event credit_event;
    struct sim_errors errors;
    uint64_t bad_bodies, bad_headers, bad_sops; /* Ground truth: packets that this link spoilt, */
    uint64_t bad_before; /* and how many of them had a wrong body when they came to it. */
};

void forth_link_init(struct forth_link *link, struct forth_fabric *fabric, struct forth_end *to,
                     struct sim_clock clock, uint64_t latency_ps, uint32_t lanes);

/* Cycles of a packet: 5 + 2n on one lane, 4 + n on two. */
static inline uint32_t forth_link_cycles(const struct forth_link *link, uint32_t qwords)
{
    return link->lanes == 1 ? forth_frame_words(qwords) : 4 + qwords;
}

static inline uint64_t forth_link_ps(const struct forth_link *link, uint64_t cycles)
{
    return sim_clock_at(link->clock, cycles);
}

/* Ends a packet that is not delivered: the world's digest tells of it. */
void forth_packet_lose(struct forth_fabric *fabric, struct forth_packet *packet);

/* Fills in the body CRC of a packet whose header and payload are complete. */
void forth_packet_seal(struct forth_packet *packet);

/* Sends from `begin_ps` on, which is not before the link is free; it is free again behind the last
 * word, and the commas if there are any. `began_ps` and `ended_ps` are then the receiver's. */
void forth_link_packet(struct forth_link *link, struct forth_packet *packet, uint64_t begin_ps);
/* Occupies the link for `cycles`; the credit is at the other end behind SOP and its own word. */
void forth_link_credit(struct forth_link *link, struct forth_credit credit, uint64_t begin_ps,
                       uint32_t cycles);

/* Hands over the credits that have come by now. Credits that come later are events, until the end
 * is told of one. */
void forth_link_collect(struct forth_link *link);
void forth_link_await(struct forth_link *link);

/* Flips bit `bit` of a packet's frame on one lane, SOP first; when all are flipped, the packet's
 * fate is what a receiver would make of it. */
void forth_packet_flip(struct forth_packet *packet, uint32_t bit);
void forth_packet_judge(struct forth_packet *packet);

#endif
