/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fault_injector - stands for the network and its far end: swallows packets, and answers them after
 * 2 to 5 hops there and back.
 *
 * Purpose    Gives each packet a random distance. A record with the data for its answer wanders
 *            through as many delays and back. Chance may spoil it on the way. The answer is ACK or
 *            NACK.
 * Inputs     Packets without payload, when their last flit has entered (lant_fault_take).
 * Outputs    Answers (lant_fault_offer, _taken).
 * Time       Cycles, as numbers that rise. lant_fault_step says what happens in one. Cycles before
 *            lant_fault_deadline can be left out, and nothing changes by that: a random number is
 *            drawn when a record moves, not each cycle.
 * Limits     LANT_FAULT_PLACES_MAX records a buffer. A full buffer holds the records that come to
 *            it.
 * Source     Lant 5.3.1, 5.3.2, Fig. 5.7; LNI-81, LNI-82. That E_L counts only on the way there is
 *            our choice.
 *
 * A record in P_x has made x hops and is about to make one more, towards the far end; one in A_x
 * has x hops left to make back. So a packet of distance h goes P_0 .. P_(h-1), turns to A_h, and is
 * answered when it comes to A_0: 2h hops. P_5 has nothing to do then, since P_4 turns, too, and is
 * not made. At the end of each hop the record goes through a block A/N: chance may make its answer
 * a NACK. LLV: a record that is spoilt behind x hops turns there, to A_x, because the switch says
 * so itself. E2E: it goes on, and only the far end notices. ECC: nothing is ever spoilt.
 *
 * A_x takes one record a cycle: from A_(x+1) first, then from P_(x-1), which is our choice. A
 * record that must wait moves one cycle later, and keeps the result of its random draw.
 *
 * The threshold belongs to a bit error rate and a number of bits, 64 * 68 = 4352 for a full packet:
 *   round((1 - (1 - ber)^bits) * 2^32) = llround(-expm1(bits * log1p(-ber)) * 0x1p32),
 * which is the laboratory's to compute: this room has no floating point functions. Words of the
 * shift register are 1 .. 2^32 - 1, so thresholds of 0 and 1 both mean never, and 2^32 always.
 */
#ifndef HARDWARE_LANT_FAULT_INJECTOR_H
#define HARDWARE_LANT_FAULT_INJECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/lant/answers.h"
#include "transport/lant/ticks.h"

#define LANT_FAULT_HOPS_MAX     5u
#define LANT_FAULT_STAGES       (LANT_FAULT_HOPS_MAX + 1)
#define LANT_FAULT_PLACES_MAX   64u
#define LANT_FAULT_HOP_CYCLES   156u /* H_L: 998 ns (5.3.2.1). */
#define LANT_FAULT_CHECK_CYCLES 64u  /* E_L in LLV and ECC: the flits of a full payload. */
#define LANT_FAULT_ALWAYS       (UINT64_C(1) << 32)

enum lant_fault_mode {
    LANT_FAULT_E2E, /* The far end checks. */
    LANT_FAULT_LLV, /* Each switch checks, and answers a damaged packet with a NACK. */
    LANT_FAULT_ECC, /* Each switch repairs. The 12.5 % more packets are the sender's to send. */
};

struct lant_fault_config {
    enum lant_fault_mode mode;
    bool checks_answers;   /* E_L on the way back, too. */
    bool answers_are_safe; /* Nothing is spoilt on the way back: a comparison. */
    uint8_t places;        /* Records a buffer; "short" in the source; 16 is our choice. */
    uint8_t weights[LANT_FAULT_HOPS_MAX + 1]; /* By distance; weights[0] is 0. */
    uint32_t hop_cycles;                      /* H_L: 1 at least. */
    uint32_t check_cycles;                    /* E_L, on each hop there. */
    uint64_t threshold;                       /* For a hop, in 2^32nds. */
    uint32_t seed;                            /* Not 0. */
};

/* The document's for a mode; callers may change them. */
static inline struct lant_fault_config lant_fault_defaults(enum lant_fault_mode mode)
{
    return (struct lant_fault_config){.mode = mode,
                                      .places = 16,
                                      .weights = {0, 0, 8, 4, 2, 1},
                                      .hop_cycles = LANT_FAULT_HOP_CYCLES,
                                      .check_cycles =
                                          mode == LANT_FAULT_E2E ? 0 : LANT_FAULT_CHECK_CYCLES,
                                      .seed = 1};
}

/* Distribution L, R, or one distance for all packets (LNI-A63). */
static inline void lant_fault_local(struct lant_fault_config *config)
{
    for (uint32_t hops = 2; hops <= LANT_FAULT_HOPS_MAX; hops++) {
        config->weights[hops] = (uint8_t)(1u << (LANT_FAULT_HOPS_MAX - hops));
    }
    config->weights[1] = 0;
}

static inline void lant_fault_remote(struct lant_fault_config *config)
{
    for (uint32_t hops = 2; hops <= LANT_FAULT_HOPS_MAX; hops++) {
        config->weights[hops] = (uint8_t)(1u << (hops - 2));
    }
    config->weights[1] = 0;
}

static inline void lant_fault_fixed(struct lant_fault_config *config, uint32_t distance)
{
    for (uint32_t hops = 1; hops <= LANT_FAULT_HOPS_MAX; hops++) {
        config->weights[hops] = hops == distance;
    }
}

struct lant_fault_record {
    struct lant_ends answer; /* As it will be sent. */
    uint8_t hops;            /* The packet's distance. */
    bool judged, turns;      /* P_x: chance was asked at the end of this hop; it turns then. */
    uint64_t due;            /* The hop ends. */
};

struct lant_fault_buffer {
    uint64_t due; /* The head's; LANT_NEVER: none. */
    uint8_t head, count;
    struct lant_fault_record records[LANT_FAULT_PLACES_MAX]; /* A ring. */
};

struct lant_fault_counters {
    uint64_t packets, answers, nacks;       /* Taken; given; those of them that are NACKs. */
    uint64_t hops[LANT_FAULT_HOPS_MAX + 1]; /* Packets by distance. */
    uint64_t faults_forward, faults_back;   /* Chance struck, on a spoilt packet, too. */
    uint64_t shortcuts;                     /* LLV: turned before the far end. */
    uint64_t collisions;                    /* Cycles in which a record could not turn. */
};

struct lant_fault_injector {
    struct lant_fault_config config;
    uint32_t lfsr;
    uint32_t weight; /* The sum. */
    uint64_t now;    /* The next cycle that can be stepped. */
    struct lant_fault_counters counters;
    struct lant_fault_buffer forward[LANT_FAULT_HOPS_MAX]; /* P_0 .. P_4. */
    struct lant_fault_buffer back[LANT_FAULT_STAGES];      /* A_0 .. A_5. */
};

void lant_fault_init(struct lant_fault_injector *injector, const struct lant_fault_config *config);

/* Has P_0 room for a packet? */
static inline bool lant_fault_ready(const struct lant_fault_injector *injector)
{
    return injector->forward[0].count < injector->config.places;
}

/* A packet whose last flit enters in cycle `now`, before or after that cycle's step. */
void lant_fault_take(struct lant_fault_injector *injector, const struct lant_ends *packet,
                     uint64_t now);

/* The work of cycle `now`, which is later than the last one stepped. */
void lant_fault_step(struct lant_fault_injector *injector, uint64_t now);

/* The earliest cycle in which a step may change something; LANT_NEVER. */
uint64_t lant_fault_deadline(const struct lant_fault_injector *injector);

/* An answer that has come back, until it is taken; `hops` is the distance of its packet. */
MUST_USE bool lant_fault_offer(const struct lant_fault_injector *injector, struct lant_ends *answer,
                               uint32_t *hops);
void lant_fault_taken(struct lant_fault_injector *injector);

static inline bool lant_fault_idle(const struct lant_fault_injector *injector)
{
    return injector->counters.packets == injector->counters.answers;
}

#endif
