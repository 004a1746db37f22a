/* SPDX-License-Identifier: BSD-2-Clause
 *
 * faults - a bad network on purpose, which drops, duplicates, reorders, delays and corrupts
 * packets.
 *
 * Purpose    `nonic run --fault SPEC`: the same seed makes the same pattern of faults.
 * Inputs     "drop=0.01,dup=0.01,reorder=0.01,corrupt=0.001,delay=50us:0.01,seed=7,dir=tx": each
 *            fault by probability, or by position ("drop=#3": the third packet; may be repeated).
 * Outputs    A decision for each packet; held packets come back later, those that are delayed in
 *            the order in which they were held.
 * Ownership  faults_open allocates all memory, faults_close frees it (NULL does nothing). Bytes of
 *            held packets are copies. A caller that takes a packet may read its bytes until
 *            faults_settle.
 * Units      Nanoseconds; probabilities are kept in millionths.
 * Limits     FAULTS_HELD_BYTES of packets are held: as many as are on their way for 50 ms at 10
 *            Gb/s. The caller keeps a packet that finds no room.
 * Source     docs/decisions.
 */
#ifndef DRIVERS_FAULTS_H
#define DRIVERS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/instant.h"
#include "drivers/link.h"

#define FAULTS_HELD_BYTES (64u << 20)
/* A packet takes FAULTS_HELD_COST bytes beside its headers and payload, rounded up to a cache line.
 * At the end of the queue, the room of up to one packet stays empty. */
#define FAULTS_HELD_COST 64

enum fault_direction {
    FAULT_SENDING = 1,
    FAULT_RECEIVING = 2,
};

struct fault_decision {
    bool drop, duplicate, reorder, corrupt;
    uint32_t corrupt_bit; /* A bit of the packet, BTH to ICRC. */
    uint64_t delay_ns;
};

/* A packet that is held. */
struct faults_packet {
    struct link *link;
    const uint8_t *bytes; /* Headers and payload, without pad and ICRC. */
    struct inet_variant variant;
    bool whole; /* `bytes` is a whole packet, and payload_bytes its length. */
    uint8_t pad_bytes;
    uint16_t headers_bytes, payload_bytes;
};

static inline bool fault_strikes(const struct fault_decision *fault)
{
    return fault->drop || fault->duplicate || fault->reorder || fault->corrupt ||
           fault->delay_ns != 0;
}

/* Does the packet leave later? */
static inline bool fault_holds(const struct fault_decision *fault)
{
    return !fault->drop && (fault->reorder || fault->delay_ns != 0);
}

struct faults;

/* NULL with a reason in `error` that names the valid words. */
struct faults *faults_open(const char *spec, char *error, size_t error_bytes);
void faults_close(struct faults *faults);

/* Does the specification speak of this direction? */
bool faults_apply(const struct faults *faults, enum fault_direction direction);

/* Decides the faults of the next packet, which has `count` bytes. */
struct fault_decision faults_decide(struct faults *faults, uint32_t count);

/* Keeps a copy of the packet until its delay is over or, if it is reordered, until a few later
 * packets have passed. False: there is no room, and the packet is still the caller's. */
bool faults_hold(struct faults *faults, const struct faults_packet *packet, struct instant now,
                 const struct fault_decision *decision);

/* A held packet whose time has come; NULL: there is none. The same one, until it is taken. */
const struct faults_packet *faults_due(struct faults *faults, struct instant now);
/* The packet that faults_due has just named is on its way. */
void faults_take(struct faults *faults);
/* The bytes of all packets that were taken are no longer read. */
void faults_settle(struct faults *faults);

/* When the next held packet is due if no other one passes; INSTANT_NEVER: none is held, or `faults`
 * is NULL. */
struct instant faults_deadline(struct faults *faults);
uint32_t faults_held(const struct faults *faults);
/* The held packets one after the other, from *at, which starts at 0 and moves on. NULL: there are
 * no more. */
const struct faults_packet *faults_each_held(const struct faults *faults, uint64_t *at);

#endif
