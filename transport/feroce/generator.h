/* SPDX-License-Identifier: BSD-2-Clause
 *
 * generator - the board's own source of messages: one for each queue pair.
 *
 * Purpose    Says when the next message begins, and what it is; fills payload with a pattern.
 * Inputs     What a host asks for (struct feroce_meta), time.
 * Outputs    Messages, payload.
 * Units      Femtoseconds for the clock's cycle; nanoseconds; bytes.
 * Limits     Messages of multiples of 4 bytes.
 * Source     RTL2026 and RTL2024 (wire/feroce.h). That a length of 0 is refused is our choice.
 */
#ifndef TRANSPORT_FEROCE_GENERATOR_H
#define TRANSPORT_FEROCE_GENERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "transport/feroce/board.h"

/* Above this length the offset stays 0. */
#define FEROCE_OFFSET_LENGTH_MAX 0x10000000u

struct feroce_generator {
    enum feroce_stack stack;
    uint64_t cycle_fs;
    bool running;
    struct feroce_meta meta;
    uint32_t left;      /* Messages. */
    uint64_t offset;    /* The next WRITE's. */
    struct instant due; /* The next message. */
    uint64_t lost_fs;   /* The time that rounding `due` down lost. */
    uint32_t word;      /* The pattern's next one. */
};

void feroce_generator_init(struct feroce_generator *generator, enum feroce_stack stack,
                           uint64_t cycle_fs);

/* The queue pair was opened: its pattern begins anew. */
void feroce_generator_open(struct feroce_generator *generator);

/* False: it runs already, or there is nothing to send. */
MUST_USE bool feroce_generator_start(struct feroce_generator *generator,
                                     const struct feroce_meta *meta, struct instant now);
void feroce_generator_stop(struct feroce_generator *generator);

/* When the next message is due: INSTANT_NEVER if it does not run. */
struct instant feroce_generator_deadline(const struct feroce_generator *generator);

/* The message that is due. False: none is. Call it when the queue takes a message. */
MUST_USE bool feroce_generator_next(struct feroce_generator *generator, struct instant now,
                                    struct feroce_message *message);

/* The next `bytes`, a multiple of 4, of the queue pair's pattern. */
void feroce_generator_fill(struct feroce_generator *generator, uint8_t *out, uint32_t bytes);

/* The pattern from a word on: each word is its own index, least significant octet first. */
void feroce_pattern(uint32_t word, uint8_t *out, uint32_t bytes);

#endif
