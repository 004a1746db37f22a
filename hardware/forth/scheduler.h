/* SPDX-License-Identifier: BSD-2-Clause
 *
 * scheduler - the choice of the next packet in a buffered crossbar: the output's packet scheduler
 * and the input's credit scheduler.
 *
 * Source: TR376 3.2.3, 3.2.4.
 *
 * The output's choice is an arbiter out of arbiters.def. To add one: a file in arbiters/ with the
 * function forth_arbiter_NAME, the file's name in meson.build, and a line in arbiters.def. It looks
 * at the scheduler, and returns the input that would be served next, or -1 if none is eligible.
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
static inline int forth_round_robin(uint64_t eligible, uint32_t last, uint32_t ports)
{
    CHECK(ports <= FORTH_PORTS_MAX && last < ports);
    CHECK(ports == 64 || eligible >> ports == 0);
    if (eligible == 0) {
        return -1;
    }
    /* Ports behind `last` come first. (A shift by 64 would be undefined.) */
    const uint64_t behind = last == 63 ? 0 : eligible >> (last + 1) << (last + 1);
    return __builtin_ctzll(behind != 0 ? behind : eligible);
}

enum forth_arbiter {
#define ARBITER(name, word) FORTH_ARBITER_##name,
#include "hardware/forth/arbiters.def"
#undef ARBITER
    FORTH_ARBITERS
};

/* Their words, each behind a space. */
extern const char forth_arbiter_words[];

/* One output: packets that stand in its crosspoints, by input. */
struct forth_output_scheduler {
    enum forth_arbiter arbiter;
    uint32_t ports;
    uint32_t weight;   /* Input 0's, with an arbiter that has weights. */
    uint32_t last;     /* The input that was served last, */
    uint32_t in_row;   /* and how many of its packets were, one behind the other. */
    uint64_t eligible; /* Bit i: input i has a packet. */
    uint16_t waiting[FORTH_PORTS_MAX];
};

void forth_output_init(struct forth_output_scheduler *scheduler, uint32_t ports);
/* The head of a packet has come into the crosspoint of `input`. */
void forth_output_arrived(struct forth_output_scheduler *scheduler, uint32_t input);
/* The input that would be chosen now; -1: none. */
int forth_output_likely(const struct forth_output_scheduler *scheduler);
/* Takes one packet of that input and returns the input. */
int forth_output_next(struct forth_output_scheduler *scheduler);

#define ARBITER(name, word)                                                                        \
    int forth_arbiter_##name(const struct forth_output_scheduler *scheduler);
#include "hardware/forth/arbiters.def"
#undef ARBITER

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
