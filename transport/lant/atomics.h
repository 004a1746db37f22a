/* SPDX-License-Identifier: BSD-2-Clause
 *
 * atomics - atomic requests that arrive from other nodes, each done once.
 *
 * Purpose    Judges an ATOMIC packet: may memory be changed, has the request come before? Names the
 *            next step, and makes the answer, which brings the old value of memory.
 * Inputs     Packets that decoded whole; the old value of memory.
 * Outputs    The next step (struct lant_atomic_work): change memory, answer or drop; the R packet
 *            when memory was changed.
 * Ownership  The caller owns the struct, its memory and the table of ranges, and changes memory:
 *            one request at a time, and nothing else between its read and its write.
 * Time       Ticks of the caller's choice.
 * Units      Local addresses, multiples of 8; operands of 8 bytes.
 * Limits     The table remembers a limited number of requests that may still be repeated. A request
 *            that finds it full is answered NACK_BUSY, and not done: a request that was done is
 *            never forgotten too early. Atomics do not look at exclusive accesses' locks, as plain
 *            stores do not.
 * Source     Lant 8.2.3, which names them as future work; the rest is our choice. LNI-W-4.
 */
#ifndef TRANSPORT_LANT_ATOMICS_H
#define TRANSPORT_LANT_ATOMICS_H

#include "transport/lant/range.h"
#include "transport/lant/shm_recent.h"

struct lant_atomics_config {
    uint32_t node;
    uint32_t entries;  /* Requests remembered, a power of two; 0: atomics are switched off. */
    uint64_t lifetime; /* How long: a packet's attempts and its life in the network. */
    bool forgets;      /* Nothing is remembered: a request that comes twice is done twice. */
};

struct lant_atomics_counters {
    uint64_t done;
    uint64_t repeated;  /* Came again after the answer: answered again. */
    uint64_t under_way; /* Came again before it: dropped. */
    uint64_t busy;      /* No room to remember it: NACK_BUSY. */
    uint64_t refused;   /* DECERR, SLVERR. */
    uint64_t switched_off;
    uint64_t wrong_class; /* Dropped: its answer would go to another table. */
};

struct lant_atomics {
    struct lant_atomics_config config;
    struct lant_shm_recent recent;
    struct lant_atomics_counters counters;
};

/* `memory` has lant_shm_recent_bytes(config->entries), and may be NULL if there are none. */
void lant_atomics_init(struct lant_atomics *atomics, const struct lant_atomics_config *config,
                       void *memory);

enum lant_atomic_action {
    LANT_ATOMIC_DO,
    LANT_ATOMIC_ANSWER,
    LANT_ATOMIC_DROP,
};

struct lant_atomic_work {
    uint8_t action; /* enum lant_atomic_action. */
    uint8_t what;   /* enum lant_atomic. */
    uint64_t address;
    uint64_t operand, compare;
    uint32_t tag;              /* DO: for lant_atomics_on_memory. */
    struct lant_packet answer; /* ANSWER. */
};

void lant_atomics_on_request(struct lant_atomics *atomics, const struct lant_ranges *ranges,
                             const struct lant_packet *packet, uint64_t now,
                             struct lant_atomic_work *work);

/* The word that memory holds after the request, if it held `old`. */
uint64_t lant_atomic_result(enum lant_atomic what, uint64_t old, uint64_t operand,
                            uint64_t compare);

/* The request of this tag, with this footer, has been done; memory held `old`. */
void lant_atomics_on_memory(struct lant_atomics *atomics, uint32_t tag,
                            const struct lant_footer *footer, uint64_t old,
                            struct lant_packet *answer);

uint64_t lant_atomics_deadline(const struct lant_atomics *atomics);
void lant_atomics_on_time(struct lant_atomics *atomics, uint64_t now);

#endif
