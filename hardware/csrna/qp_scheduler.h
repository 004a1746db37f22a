/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_scheduler - the choice of the queue pair whose work requests are read next.
 *
 * Purpose    Takes doorbells, and visits the queue pairs that have work in turn.
 * Limits     QP_SLOTS_MAX queue pairs; as many WQEs pending of each as its send queue holds. O(1).
 * Source     csRNA 4.1, 4.5; public model: doorbells, window.
 *
 * A visit has two halves, because nobody knows how much data WQEs stand for before they are read:
 * qp_scheduler_next says which to read, qp_scheduler_take which of them go on. The others stay
 * pending and are read again. A queue pair has no turn while it is in a visit, or while its window
 * is full. As soon as it may, it stands at the end of the row again.
 */
#ifndef HARDWARE_CSRNA_QP_SCHEDULER_H
#define HARDWARE_CSRNA_QP_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/status.h"

#define QP_SLOTS_MAX 131072

/* The 8 bytes that a program stores to ring. */
struct qp_doorbell {
    uint32_t slot;   /* 24 bits. */
    uint8_t opcode;  /* The first WQE's; not used, because each WQE names its own. */
    uint16_t count;  /* New WQEs. */
    uint16_t offset; /* The offset of the first new WQE in the send queue. */
};

static inline uint64_t qp_doorbell_pack(struct qp_doorbell doorbell)
{
    return (uint64_t)(doorbell.slot & 0xffffff) | (uint64_t)doorbell.opcode << 24 |
           (uint64_t)doorbell.count << 32 | (uint64_t)doorbell.offset << 48;
}

static inline struct qp_doorbell qp_doorbell_unpack(uint64_t word)
{
    return (struct qp_doorbell){.slot = word & 0xffffff,
                                .opcode = (uint8_t)(word >> 24),
                                .count = (uint16_t)(word >> 32),
                                .offset = (uint16_t)(word >> 48)};
}

enum qp_turn {
    QP_RESTS,   /* No work. */
    QP_LISTED,  /* In the row. */
    QP_VISITED, /* Its WQEs are being read. */
    QP_BLOCKED, /* Has work, but its window is full. */
};

struct qp_scheduled {
    uint32_t next;      /* In the row. */
    uint32_t pending;   /* WQEs that were rung for and not taken yet. */
    uint32_t in_flight; /* Packets sent and not acknowledged. */
    uint16_t offset;    /* The offset of the first pending WQE. */
    uint8_t turn;       /* enum qp_turn. */
    uint8_t visited;    /* WQEs of the visit that is open. */
};
_Static_assert(sizeof(struct qp_scheduled) <= 24, "a queue pair takes little");

struct qp_scheduler_parameters {
    uint32_t qps;         /* 1 .. QP_SLOTS_MAX. */
    uint32_t sq_wqes;     /* A send queue's length: a power of two, 65,536 at most. */
    uint32_t visit_wqes;  /* 1 .. 255. */
    uint32_t visit_bytes; /* The most data of a visit, but one message at least. */
    uint32_t window;      /* Packets in flight per queue pair, at which it is blocked; not 0. */
};

struct qp_scheduler {
    struct qp_scheduler_parameters parameters;
    struct qp_scheduled *qps;
    uint32_t first, last; /* The ends of the row, if it is not empty. */
    uint32_t listed;
    uint64_t coalesced; /* Doorbells that found work pending. */
    uint64_t blocked;   /* Times a queue pair had work and a full window. */
};

/* WQEs to read. */
struct qp_visit {
    uint32_t slot;
    uint32_t wqes;   /* At least one; they may go around the end of the send queue. */
    uint32_t offset; /* The offset of the first one. */
};

/* The message that a WQE stands for, known when the WQE has been read. */
struct qp_message {
    uint32_t bytes;
    uint32_t packets;
};

static inline size_t qp_scheduler_bytes(uint32_t qps)
{
    return qps * sizeof(struct qp_scheduled);
}

void qp_scheduler_init(struct qp_scheduler *scheduler,
                       const struct qp_scheduler_parameters *parameters, void *memory);

/* A program rings the doorbell. STATUS_INVALID: no such slot, no WQEs, or not the WQEs that follow
 * the last ones rung for (some would be lost). STATUS_FULL: more than the send queue holds. */
MUST_USE enum status qp_scheduler_doorbell(struct qp_scheduler *scheduler,
                                           const struct qp_doorbell *doorbell);

/* The next visit; false: no queue pair has its turn. */
bool qp_scheduler_next(struct qp_scheduler *scheduler, struct qp_visit *visit);

/* The WQEs of the visit of `slot` have been read: `messages[i]` is what the i-th stands for.
 * Returns how many go on and are sent now, one at least; the visit is over. Packets of a message
 * are not parted, so its last message may take a queue pair beyond its window. */
uint32_t qp_scheduler_take(struct qp_scheduler *scheduler, uint32_t slot,
                           const struct qp_message *messages);

/* `packets` of the packets in flight have been acknowledged. */
void qp_scheduler_acknowledged(struct qp_scheduler *scheduler, uint32_t slot, uint32_t packets);

#endif
