/* SPDX-License-Identifier: BSD-2-Clause
 *
 * scheduler - the choice of the next packet in a buffered crossbar: the output's packet scheduler
 * and the input's credit scheduler.
 *
 * Source: TR376 3.2.3, 3.2.4.
 */
#ifndef HARDWARE_FORTH_SCHEDULER_H
#define HARDWARE_FORTH_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/forth/credit.h"
#include "wire/forth.h"

#define FORTH_PORTS_MAX 64

/* Plain round robin: the first of `eligible` (bit i: port i) behind `last`, cyclically; below
 * `ports`. -1: none is eligible. */
int forth_round_robin(uint64_t eligible, uint32_t last, uint32_t ports);

enum forth_arbiter {
    FORTH_ARBITER_ROUND_ROBIN, /* The document's choice. */
    FORTH_ARBITER_FIXED,       /* The lowest input first, always. */
};

/* One output: packets that stand in its crosspoints, by input. */
struct forth_output_scheduler {
    enum forth_arbiter arbiter;
    uint32_t ports;
    uint32_t last; /* The input that was served last. */
    uint64_t eligible;
    uint16_t waiting[FORTH_PORTS_MAX];
};

void forth_output_init(struct forth_output_scheduler *scheduler, uint32_t ports);
/* The head of a packet has come into the crosspoint of `input`. */
void forth_output_arrived(struct forth_output_scheduler *scheduler, uint32_t input);
/* The input that would be chosen now; -1: none. */
int forth_output_likely(const struct forth_output_scheduler *scheduler);
/* Takes one packet of that input and returns the input. */
int forth_output_next(struct forth_output_scheduler *scheduler);

/* One input: the words that have left its crosspoints, by output, as its sender has to be told. */
struct forth_credit_scheduler {
    uint32_t ports;
    uint32_t last_modified, last_refreshed;
    uint64_t modified;
    struct forth_ledger ledgers[FORTH_PORTS_MAX];
};

void forth_credits_init(struct forth_credit_scheduler *scheduler, uint32_t ports);
/* `words` of a packet to `output` have left. */
void forth_credits_departed(struct forth_credit_scheduler *scheduler, uint32_t output,
                            uint32_t words);
/* Chooses one credit to send, from the outputs whose value has changed, in turn. If there is none,
 * `refresh` chooses from the others, so that a lost credit is repaired. False: there is nothing to
 * send. */
bool forth_credits_next(struct forth_credit_scheduler *scheduler, bool refresh,
                        struct forth_credit *credit);

#endif
