/* SPDX-License-Identifier: BSD-2-Clause
 *
 * output_buffer - the slots in which a port's packets are put together, and which of them is next.
 *
 * Purpose    The scheduler allocates a slot, the barrel shifter fills it, the ExaNetizer empties
 *            it. Filled slots leave in the order of their allocation; an older one that is not
 *            filled yet holds none of them up.
 * Outputs    exanest_buffer_winner; what a word did to its slot.
 * Ownership  The caller owns the struct and the slots.
 * Time       exanest_buffer_step counts cycles, only for slots whose release waits.
 * Limits     1..16 slots.
 * Source     Xirouchakis 5.3.4. Rows EXA-A11 and EXA-A25 rest on it.
 */
#ifndef HARDWARE_EXANEST_OUTPUT_BUFFER_H
#define HARDWARE_EXANEST_OUTPUT_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/exanest.h"

#define EXANEST_SLOTS     8u /* A port (5.3.4). */
#define EXANEST_SLOTS_MAX 16u

struct exanest_slot {
    struct exanest_header header;
    struct exanest_footer footer; /* Without the CRCs. */
    uint8_t port;
    uint8_t written, left; /* Words of payload that have come, and that are still to come. */
    uint8_t response;      /* All RRESP together. */
    uint16_t wait;         /* Cycles until a released slot is free. */
    struct exanest_word payload[EXANEST_PAYLOAD_WORDS_MAX];
};

struct exanest_output_buffer {
    uint8_t slot_count;
    uint8_t used_count;
    uint16_t used;                     /* Bit i: slot i. */
    uint16_t filled;                   /* Slots that could be sent next. */
    uint16_t waiting;                  /* Released, but not free yet. */
    uint8_t by_age[EXANEST_SLOTS_MAX]; /* The used ones, in order of allocation. */
    struct exanest_slot *slots;
};

/* `slots` has room for `slot_count`. */
void exanest_buffer_init(struct exanest_output_buffer *buffer, uint32_t slot_count,
                         struct exanest_slot *slots);

static inline bool exanest_buffer_has_room(const struct exanest_output_buffer *buffer)
{
    return buffer->used_count < buffer->slot_count;
}

/* Takes a free slot for a packet of `port`; there must be one. Returns which. */
uint32_t exanest_buffer_allocate(struct exanest_output_buffer *buffer, uint32_t port);

/* The scheduler writes the registers of the slot and how many words will come. */
void exanest_buffer_describe(struct exanest_output_buffer *buffer, uint32_t slot,
                             const struct exanest_header *header,
                             const struct exanest_footer *footer);

enum exanest_fill {
    EXANEST_FILLING,
    EXANEST_FILLED,
    EXANEST_FAULTED, /* Filled, but memory answered with an error: the slot is free again. */
};

enum exanest_fill exanest_buffer_write(struct exanest_output_buffer *buffer, uint32_t slot,
                                       struct exanest_word word, uint32_t response);

/* comp_winner: the oldest filled slot of the port; -1: none. */
int exanest_buffer_winner(const struct exanest_output_buffer *buffer, uint32_t port);

/* The ExaNetizer has begun to send the slot: it wins no more. */
void exanest_buffer_latch(struct exanest_output_buffer *buffer, uint32_t slot);

/* o_prio_decrement: the slot is free, at once or after some steps. */
void exanest_buffer_release(struct exanest_output_buffer *buffer, uint32_t slot, uint32_t cycles);

/* A cycle passes for slots whose release waits. */
void exanest_buffer_step(struct exanest_output_buffer *buffer);

void exanest_buffer_check(const struct exanest_output_buffer *buffer);

#endif
