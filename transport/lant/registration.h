/* SPDX-License-Identifier: BSD-2-Clause
 *
 * registration - packets of registered operations that have come.
 *
 * Purpose    A row for each registered operation that is under way to this node, with a mask of its
 *            packets: so the receiver itself sees that an operation is complete, and knows
 *            duplicates while it is not.
 * Inputs     The registering packet's source, operation, base and number of packets; which packet
 *            is taken, and which is in memory.
 * Outputs    The row of a packet; whether it came before; whether its operation is complete.
 * Ownership  A value. Only `entries` rows and `mask_bits` bits of each mask are used.
 * Time       Ticks of the caller's choice; lant_registrations_oldest gives the row that has been
 *            unused for longest.
 * Units      A bit of a mask is a packet of 512 bytes.
 * Limits     LANT_REGISTRATIONS_MAX rows of LANT_MASK_BITS_MAX bits. Nothing makes room.
 * Source     Lant 6.2.1. The end of an operation follows from its number of packets, as there;
 *            6.2.1.2 speaks of bytes, which no header has.
 *
 * Lant's mask has one bit a packet, and is marked when the packet goes to memory. Here that is the
 * mask `taken`; a second one, `written`, is marked when its bytes are there. A second copy that
 * comes in between is a duplicate, but is not acknowledged: its bytes might still be on their way.
 * The operation is complete when `written` has only ones.
 */
#ifndef TRANSPORT_LANT_REGISTRATION_H
#define TRANSPORT_LANT_REGISTRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/lant/operation_key.h"

#define LANT_REGISTRATIONS     64u /* Default: our choice. */
#define LANT_REGISTRATIONS_MAX 1024u
#define LANT_MASK_BITS         128u
#define LANT_MASK_BITS_MAX     1024u
#define LANT_MASK_WORDS_MAX    (LANT_MASK_BITS_MAX / 64)
#define LANT_ROW_NONE          UINT16_MAX

enum lant_row_state {
    LANT_ROW_FREE,
    LANT_ROW_ACTIVE,
    LANT_ROW_COMPLETE, /* Until its notification has been handed out. It is found no more. */
};

struct lant_row {
    uint64_t key, base, used_at;
    uint32_t birth;        /* Tells it from earlier users of the row. */
    uint16_t next;         /* Active: in its chain of the hash table; free: the next free one. */
    uint16_t older, newer; /* Active rows in the order of their last use. */
    uint16_t packets;
    uint16_t writing;    /* Packets on their way into memory. */
    uint16_t last_bytes; /* Payload of the last packet, once it is taken. */
    uint8_t state;       /* enum lant_row_state. */
};

struct lant_registrations {
    uint16_t entries, mask_bits, mask_words;
    uint16_t used, used_max;
    uint16_t free;           /* First free row, */
    uint16_t oldest, newest; /* and the ends of the active ones. */
    uint32_t births;
    uint32_t bits;
    uint16_t chains[2 * LANT_REGISTRATIONS_MAX];
    struct lant_row rows[LANT_REGISTRATIONS_MAX];
    /* Each row has `taken`, then `written`, mask_words of both. */
    uint64_t masks[LANT_REGISTRATIONS_MAX * 2 * LANT_MASK_WORDS_MAX];
};

struct lant_registering {
    uint32_t source, operation;
    uint64_t base;
    uint16_t packets; /* 1 to mask_bits. */
};

enum lant_mark {
    LANT_MARK_NEW,
    LANT_MARK_TAKEN, /* On its way into memory. */
    LANT_MARK_WRITTEN,
};

void lant_registrations_init(struct lant_registrations *registrations, uint32_t entries,
                             uint32_t mask_bits);

/* -- Asking -------------------------------------------------------------------------------------*/

/* The active row of the operation that was registered with just this base, or LANT_ROW_NONE; */
uint32_t lant_registrations_find_base(const struct lant_registrations *registrations,
                                      uint32_t source, uint32_t operation, uint64_t base);
/* and the active row whose range has `address`. */
uint32_t lant_registrations_find(const struct lant_registrations *registrations, uint32_t source,
                                 uint32_t operation, uint64_t address);

static inline bool lant_registrations_full(const struct lant_registrations *registrations)
{
    return registrations->used == registrations->entries;
}

static inline const struct lant_row *lant_registrations_row(
    const struct lant_registrations *registrations, uint32_t row)
{
    CHECK(row < registrations->entries && registrations->rows[row].state != LANT_ROW_FREE);
    return &registrations->rows[row];
}

enum lant_mark lant_registrations_mark(const struct lant_registrations *registrations, uint32_t row,
                                       uint32_t packet);
/* 64 bits of the mask as 6.2.1.2 has it: a one has come, or is no packet of the operation. */
uint64_t lant_registrations_taken(const struct lant_registrations *registrations, uint32_t row,
                                  uint32_t word);
/* The active row longest unused, or LANT_ROW_NONE. */
static inline uint32_t lant_registrations_oldest(const struct lant_registrations *registrations)
{
    return registrations->oldest;
}

/* All bytes: from the number of packets and the last one's length. */
uint32_t lant_row_bytes(const struct lant_row *row);

/* -- Telling ------------------------------------------------------------------------------------*/

/* Takes a row, which there is; none of its packets is taken. */
uint32_t lant_registrations_add(struct lant_registrations *registrations, uint64_t now,
                                const struct lant_registering *registering);
/* A packet that is new goes to memory. */
void lant_registrations_take(struct lant_registrations *registrations, uint32_t row,
                             uint32_t packet, uint32_t bytes);
/* It is there. True: the operation is complete; it is among the active rows no more. */
MUST_USE bool lant_registrations_written(struct lant_registrations *registrations, uint32_t row,
                                         uint32_t packet);
/* It could not be written: it has not come. */
void lant_registrations_give_back(struct lant_registrations *registrations, uint32_t row,
                                  uint32_t packet);
/* Something came for an active row. */
void lant_registrations_touch(struct lant_registrations *registrations, uint64_t now, uint32_t row);
/* None of its packets is on its way into memory. */
void lant_registrations_remove(struct lant_registrations *registrations, uint32_t row);

void lant_registrations_check(const struct lant_registrations *registrations);

#endif
