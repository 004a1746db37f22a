/* SPDX-License-Identifier: BSD-2-Clause
 *
 * faults - a bad network on purpose: drops, duplicates, reorders, delays and corrupts packets.
 *
 * Purpose    `nonic run --fault SPEC`: the same seed makes the same pattern of faults.
 * Inputs     "drop=0.01,dup=0.01,reorder=0.01,corrupt=0.001,delay=50us:0.01,seed=7,dir=tx": each
 *            fault by probability, or by position ("drop=#3": the third packet; may be repeated).
 * Outputs    A decision for each packet; held packets come back later.
 * Ownership  faults_open allocates, faults_close frees (NULL does nothing).
 * Threads    One caller at a time.
 * Time       `now` is an argument.
 * Units      Nanoseconds; probabilities are kept in millionths.
 * Limits     FAULTS_HELD_MAX packets held; more are let through.
 * Source     docs/decisions.
 */
#ifndef DRIVERS_FAULTS_H
#define DRIVERS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/instant.h"
#include "drivers/link.h"

#define FAULTS_HELD_MAX 256

enum fault_direction {
    FAULT_SENDING = 1,
    FAULT_RECEIVING = 2,
};

struct fault_decision {
    bool drop, duplicate, reorder, corrupt;
    uint32_t corrupt_bit; /* A bit of the packet, BTH to ICRC. */
    uint64_t delay_ns;
};

struct faults;

/* NULL with a reason in `error` that names the valid words. */
struct faults *faults_open(const char *spec, char *error, size_t error_bytes);
void faults_close(struct faults *faults);

/* Does the specification speak of this direction? */
bool faults_apply(const struct faults *faults, enum fault_direction direction);

/* What happens to the next packet, of `count` bytes. */
struct fault_decision faults_decide(struct faults *faults, uint32_t count);

/* Keeps a copy until its delay is over or, reordered, a few later packets have passed. False: there
 * is no room, the packet is still the caller's. */
bool faults_hold(struct faults *faults, struct link *link, const uint8_t *bytes, uint32_t count,
                 struct instant now, const struct fault_decision *decision);

/* A held packet whose time has come: copied to `bytes` (ROCE_PACKET_BYTES_MAX), its length
 * returned; 0 if there is none. */
uint32_t faults_release(struct faults *faults, struct instant now, struct link **link,
                        uint8_t *bytes);

uint32_t faults_held(const struct faults *faults);

#endif
