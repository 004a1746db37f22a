/* SPDX-License-Identifier: BSD-2-Clause
 *
 * operations - the table of RDMA operations that have been begun and have not ended.
 *
 * Purpose    Knows of each operation where its packets come from and go to, and how many of them
 *            are still to be acknowledged. Gives operations their identifiers.
 * Inputs     Operations as the work queues give them.
 * Outputs    An operation's packets: address, length, type; whether one may begin.
 * Ownership  A value. The sender (rdma_sender.h) changes the operations.
 * Time       Ticks of the caller's choice.
 * Units      Bytes; offsets count packets of 512 bytes from the operation's base.
 * Limits     LANT_OPERATIONS_MAX.
 * Source     Lant 5.2.3, Fig. 5.3, 6.4 (which operations are registered); LNI-43, LNI-50, LNI-65,
 *            LNI-93. How an identifier is made is our choice.
 *
 * An identifier has 20 bits: the slot in the lowest bits, above it a generation, which counts the
 * operations of the slot. Up to 16 slots take 4 bits; 64 take 6, and the generation
 * two less. In a packet the lower 12 bits are OPN and the upper 8 are GEN in any case, and nobody
 * but the sender looks into them.
 */
#ifndef TRANSPORT_LANT_OPERATIONS_H
#define TRANSPORT_LANT_OPERATIONS_H

#include "transport/lant/identifiers.h"
#include "transport/lant/work_queues.h"
#include "wire/lant.h"

#define LANT_OPERATIONS_MAX       64u
#define LANT_OPERATIONS           16u
#define LANT_NO_SLOT              UINT16_MAX
#define LANT_IDENTIFIER_BITS      20
#define LANT_REGISTER_PACKETS_MAX 1024u /* NPKT has 11 bits. */

enum lant_operation_phase {
    LANT_OPERATION_FREE,
    LANT_OPERATION_ACTIVE, /* Packets are to be pushed, or to be acknowledged. */
    LANT_OPERATION_HOLDS,  /* A copy of a packet may be on its way until `deadline`. */
    LANT_OPERATION_TELLS,  /* Its COMPLETION_NOTIFICATION is to be sent. */
    LANT_OPERATION_TOLD,   /* It has been, and is to be acknowledged by `deadline`. */
    LANT_OPERATION_ENDED,  /* The local notification is to be taken. */
};

struct lant_operation {
    struct lant_work_operation work;
    uint64_t timeout;
    uint64_t deadline;     /* HOLDS, TOLD. */
    uint64_t copies_until; /* From then on no unanswered copy of a packet is on its way. */
    uint32_t identifier;
    uint32_t packets;   /* All of it, */
    uint32_t sent;      /* pushed at least once, */
    uint32_t remaining; /* not acknowledged. */
    uint32_t in_flight; /* Rows. */
    uint32_t partials;  /* Failed, and not pushed again yet: then the operation is "failed" (5.2.3),
                           and "refreshed" when there are none. */
    uint32_t status;    /* LANT_STATUS_. */
    uint8_t phase;      /* enum lant_operation_phase. */
    uint8_t copies;     /* COMPLETION_NOTIFICATIONs sent. */
    uint8_t attempts;   /* The highest of any packet. */
    bool registered;
    bool given_up;
};

struct lant_operations {
    uint16_t slots, used, used_max;
    uint8_t slot_bits;
    uint64_t free;
    struct lant_identifiers generations[LANT_OPERATIONS_MAX];
    struct lant_operation table[LANT_OPERATIONS_MAX];
};

/* Which operations are registered at their receiver (6.4). */
struct lant_register_rule {
    bool off;
    uint16_t mask_bits;     /* W of the receivers: packets. */
    uint32_t bytes_at_most; /* Where the benefit vanishes. */
};

/* `generations` of each slot, a power of two; 0: as many as the identifier's bits can tell. */
void lant_operations_init(struct lant_operations *operations, uint32_t slots, uint32_t generations);

/* A free slot whose next identifier may be used by `now`. LANT_NO_SLOT: there is none. Then `until`
 * says when the next identifier of a free slot may be used; UINT64_MAX: no slot is free. */
uint16_t lant_operations_find(const struct lant_operations *operations, uint64_t now,
                              uint64_t lifetime, uint64_t *until);

/* Begins an operation in a slot that lant_operations_find gave. */
struct lant_operation *lant_operation_open(struct lant_operations *operations, uint32_t slot,
                                           const struct lant_work_operation *work, uint64_t now);
void lant_operation_close(struct lant_operations *operations, uint32_t slot, uint64_t now);

static inline uint32_t lant_operation_slot(const struct lant_operations *operations,
                                           uint32_t identifier)
{
    return identifier & ((1u << operations->slot_bits) - 1);
}

/* The operation that has this identifier; NULL: none has. Any 20 bits may be asked for. */
static inline struct lant_operation *lant_operation_find(struct lant_operations *operations,
                                                         uint32_t identifier)
{
    const uint32_t slot = lant_operation_slot(operations, identifier);
    struct lant_operation *operation = &operations->table[slot];
    return slot < operations->slots && operation->phase != LANT_OPERATION_FREE &&
                   operation->identifier == identifier
               ? operation
               : NULL;
}

/* A keyhole operation is never registered: all its packets have the address of the first. */
bool lant_operation_may_register(const struct lant_work_operation *work,
                                 const struct lant_register_rule *rule);

/* The payload of packet `offset`. */
static inline uint32_t lant_operation_packet_bytes(const struct lant_operation *operation,
                                                   uint32_t offset)
{
    const uint32_t left = operation->work.bytes - offset * LANT_PAYLOAD_BYTES_MAX;
    return left < LANT_PAYLOAD_BYTES_MAX ? left : LANT_PAYLOAD_BYTES_MAX;
}

static inline uint64_t lant_operation_packet_source(const struct lant_operation *operation,
                                                    uint32_t offset)
{
    return operation->work.source + (uint64_t)offset * LANT_PAYLOAD_BYTES_MAX;
}

/* Global. */
static inline uint64_t lant_operation_packet_destination(const struct lant_operation *operation,
                                                         uint32_t offset)
{
    return operation->work.destination +
           (operation->work.keyhole ? 0 : (uint64_t)offset * LANT_PAYLOAD_BYTES_MAX);
}

/* The header and footer of packet `offset`, but for source, row and attempt. */
void lant_operation_packet(const struct lant_operation *operation, uint32_t offset,
                           struct lant_packet *packet);
/* The COMPLETION_NOTIFICATION, but for source, row and attempt. */
void lant_operation_completion(const struct lant_operation *operation, struct lant_packet *packet);

void lant_operations_check(const struct lant_operations *operations);

#endif
