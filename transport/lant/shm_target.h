/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_target - loads and stores that arrive from other nodes.
 *
 * Purpose    Judges an AR or AW packet: may memory be asked, is it an exclusive access that has to
 *            wait for somebody's lock, has it come before? Then makes the answer.
 * Inputs     Packets that decoded whole; the answers of local memory.
 * Outputs    What to do now (struct lant_shm_work): read, write, answer, hold or drop; and the
 *            R or B packet when memory has answered.
 * Ownership  The caller owns the struct, the memory of its `recent`, the table of ranges and the
 *            inbound CAM, which RDMA uses as well.
 * Time       Ticks of the caller's choice.
 * Units      Local addresses; a beat is the 8 bytes around its address.
 * Limits     A load that comes twice is simply done twice.
 * Source     Lant 3.3.3, 4.1.4.2, 6.2.1.1 (nothing is written before its CRC is known); LNI-14..18,
 *            LNI-36..40.
 *
 * A packet that is held must be presented again, unchanged, before any later packet of the same
 * input: nothing of it is remembered.
 */
#ifndef TRANSPORT_LANT_SHM_TARGET_H
#define TRANSPORT_LANT_SHM_TARGET_H

#include "transport/lant/exclusive.h"
#include "transport/lant/inbound.h"
#include "transport/lant/range.h"
#include "transport/lant/shm_recent.h"

struct lant_shm_target_config {
    uint32_t node;
    uint32_t recent;        /* Requests remembered, a power of two. */
    uint64_t lifetime;      /* How long: a packet's attempts and its life in the network. */
    uint64_t lock_lifetime; /* How long an exclusive access may take. */
    bool strict_thesis;     /* Nothing is remembered: the hazard of the thesis, 4.5. */
};

struct lant_shm_target_counters {
    uint64_t loads, stores; /* Went to memory. */
    uint64_t exclusives;    /* Exclusive ones among them. */
    uint64_t repeated;      /* Came again after the answer: answered again, or read again. */
    uint64_t under_way;     /* Came again before it: dropped, the answer is still to come. */
    uint64_t locked;        /* Answered LOCKED. */
    uint64_t held;          /* The CAM is full; each time that the packet is presented counts. */
    uint64_t astray;        /* For another node: DECERR. */
    uint64_t no_range;      /* DECERR. */
    uint64_t no_right;      /* SLVERR. */
    uint64_t malformed;     /* SLVERR. */
    uint64_t wrong_class;   /* Dropped: its answer would go to another table. */
};

struct lant_shm_target {
    struct lant_shm_target_config config;
    struct lant_exclusive exclusive;
    struct lant_shm_recent recent;
    struct lant_shm_target_counters counters;
};

/* `memory` has lant_shm_recent_bytes(config->recent). */
void lant_shm_target_init(struct lant_shm_target *target,
                          const struct lant_shm_target_config *config, void *memory);

enum lant_shm_action {
    LANT_SHM_READ,
    LANT_SHM_WRITE,
    LANT_SHM_ANSWER,
    LANT_SHM_HOLD,
    LANT_SHM_DROP,
};

struct lant_shm_work {
    uint8_t action;   /* enum lant_shm_action. */
    uint8_t local_id; /* READ, WRITE: the bus ID, by which memory answers. */
    uint8_t strobe;   /* The bytes of the beat. */
    uint8_t protection;
    uint64_t address;          /* The beat's: a multiple of 8. */
    uint64_t data;             /* WRITE. */
    struct lant_packet answer; /* ANSWER. */
};

void lant_shm_target_on_request(struct lant_shm_target *target, struct lant_inbound *inbound,
                                const struct lant_ranges *ranges, const struct lant_packet *packet,
                                uint64_t now, struct lant_shm_work *work);

/* Memory has answered `record`, which came from lant_inbound_on_memory and has class SHM. `data` is
 * the beat that was read. */
void lant_shm_target_on_memory(struct lant_shm_target *target,
                               const struct lant_inbound_record *record, uint64_t data,
                               struct lant_packet *answer);

/* The R or B packet that says no more than `response`: for a request of which only H1 and the
 * footer are good (LANT_NACK_CRC), or that nobody will do. */
void lant_shm_refuse(uint32_t node, const struct lant_packet *request, enum lant_response response,
                     struct lant_packet *answer);

uint64_t lant_shm_target_deadline(const struct lant_shm_target *target);
void lant_shm_target_on_time(struct lant_shm_target *target, uint64_t now);

#endif
