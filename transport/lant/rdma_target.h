/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_target - a node's handling of the RDMA that other nodes send to it.
 *
 * Purpose    Judges each packet: into memory, known already, too early, or refused; says when an
 *            operation's bytes are all there.
 * Inputs     Whole packets of the types 5, 6, 7 and 9; damaged ones of which the footer is
 *            readable; the writes that are done.
 * Outputs    Writes, with their places; answers (RDMA_ACK); the local notifications RECV and
 *            RECV_REG.
 * Ownership  A value. The caller gives the tombstones' memory and the table of ranges.
 * Time       Ticks of the caller's choice. Memory may take its time: a packet goes into memory
 *            between _on_packet and _on_written.
 * Units      Bytes; local addresses of 42 bits.
 * Limits     Those of registration, escape, tombstones. LANT_ARRIVALS_HELD notifications of
 *            operations that were not registered wait for the local queue; of registered ones as
 *            many as there are rows.
 * Source     Lant 6.2. Our choice: what was complete is remembered for a while (tombstones.h), and
 *            duplicates are acknowledged again.
 *
 * The flow: _on_packet says LANT_RDMA_TARGET_WRITE and fills in a write. The world writes the bytes
 * and gives the write back by _on_written, which makes the answer. So a packet is acknowledged, and
 * counts for its operation, when its bytes are in memory: no notification is ahead of them. It is
 * known as taken from its judgement on: a second copy that comes in between is dropped without an
 * answer, since an acknowledgement would say too much; the first copy's will say it.
 *
 * A registering packet releases the packets that waited for it. The world takes these by
 * _next_released until there is none.
 *
 * `strict_thesis` is Lant 6.2 as it is printed: nothing is remembered of complete operations, and
 * duplicates are dropped without an answer, also those of active ones.
 */
#ifndef TRANSPORT_LANT_RDMA_TARGET_H
#define TRANSPORT_LANT_RDMA_TARGET_H

#include "transport/lant/escape.h"
#include "transport/lant/range.h"
#include "transport/lant/registration.h"
#include "transport/lant/tombstones.h"

#define LANT_ARRIVALS_HELD 64u
#define LANT_ARRIVALS_MAX  (LANT_REGISTRATIONS_MAX + LANT_ARRIVALS_HELD)
#define LANT_RDMA_BYTES    (1u << 26) /* An operation has fewer. */

struct lant_rdma_target_config {
    uint32_t node;               /* Our own. */
    uint16_t entries, mask_bits; /* Registration table. */
    uint16_t escapes;            /* Packets. */
    uint32_t tombstones;         /* Operations. */
    uint64_t escape_ticks;       /* T_esc: below the senders' timeout. */
    uint64_t age_ticks;          /* (MAX_RETRY + 2) x timeout: then a sender is dead. */
    uint64_t lifetime_ticks;     /* MPL: from then on no copy of a packet is on its way. */
    bool strict_thesis;          /* No tombstones, no second acknowledgements. */
    bool keyhole;                /* Somebody behind us puts keyhole packets into order. */
};

enum lant_rdma_target_verdict {
    LANT_RDMA_TARGET_WRITE,       /* Write the payload, then call _on_written. */
    LANT_RDMA_TARGET_NOTIFIED,    /* A completion notification. Acknowledged. */
    LANT_RDMA_TARGET_DUPLICATE,   /* Acknowledged again; not with strict_thesis. */
    LANT_RDMA_TARGET_UNDER_WAY,   /* A first copy is on its way into memory. Dropped. */
    LANT_RDMA_TARGET_ESCAPED,     /* Waits for its operation's registration. */
    LANT_RDMA_TARGET_ESCAPE_FULL, /* Dropped: the sender tries again. */
    LANT_RDMA_TARGET_TABLE_FULL,  /* Dropped likewise. */
    LANT_RDMA_TARGET_HELD,        /* A completion notification for which there is no room. Nothing
                                      has changed: keep it and offer it again, or drop it. */
    LANT_RDMA_TARGET_ASTRAY,      /* For another node: DECERR. */
    LANT_RDMA_TARGET_ILLEGAL,     /* Memory that is not offered: DECERR. */
    /* From here on SLVERR: the sender broke a rule, and the same packet would do so again. */
    LANT_RDMA_TARGET_INCONSISTENT, /* Fields do not fit each other, or the operation. */
    LANT_RDMA_TARGET_TOO_LONG,     /* Registered with more packets than the mask has bits. */
    LANT_RDMA_TARGET_KEYHOLE,      /* Nobody here can bring it into order. */
    LANT_RDMA_TARGET_VERDICT_COUNT,
};

/* Bytes on their way into memory: the first `bytes` of the packet's payload. The target needs the
 * other members when the bytes are there. */
struct lant_rdma_write {
    uint64_t address;
    uint16_t bytes;
    bool fixed; /* A keyhole: each flit goes to the same address, in the order of H3's numbers. */
    uint8_t priority;
    uint16_t row, packet; /* LANT_ROW_NONE: not registered. */
    uint32_t birth;
    struct lant_footer footer;
};

struct lant_rdma_action {
    enum lant_rdma_target_verdict verdict;
    bool answers; /* There is a packet to send now. */
    struct lant_rdma_write write;
};

/* A receive entry of a local queue. */
struct lant_rdma_arrival {
    bool registered; /* RECV_REG, else RECV. */
    uint16_t row;    /* The target's own. */
    uint32_t source;
    uint32_t operation;
    uint32_t tag; /* RECV: 20 bits of the sender's choice. */
    uint32_t bytes;
    uint64_t address; /* Local. */
};

struct lant_rdma_target_counters {
    uint64_t verdicts[LANT_RDMA_TARGET_VERDICT_COUNT];
    uint64_t written, write_failures;
    uint64_t registered; /* Operations that began, */
    uint64_t arrivals;   /* and notifications that were handed out, of any kind. */
    uint64_t released;   /* Packets that waited in the escape channel for good. */
    uint64_t expired;    /* Packets that waited for nothing. */
    uint64_t aged;       /* Operations whose sender is dead. */
    uint64_t nacks;
};

struct lant_rdma_target {
    struct lant_rdma_target_config config;
    const struct lant_ranges *ranges;
    uint16_t arrivals_first, arrivals_count, arrivals_held; /* Held: not registered. */
    struct lant_rdma_target_counters counters;
    struct lant_tombstones tombstones;
    struct lant_rdma_arrival arrivals[LANT_ARRIVALS_MAX]; /* A ring. */
    struct lant_registrations registrations;
    struct lant_escape escape;
};

/* `tombstones`: lant_tombstones_bytes(config->tombstones), aligned for uint64_t. `ranges` may
 * change between two calls; the caller cares for writes that are on their way then. */
void lant_rdma_target_init(struct lant_rdma_target *target,
                           const struct lant_rdma_target_config *config,
                           const struct lant_ranges *ranges, void *tombstones);

/* A whole packet of the types 5, 6, 7 or 9. `answer` (header and footer) is filled in if
 * action->answers; its epoch is the sender's business. */
void lant_rdma_target_on_packet(struct lant_rdma_target *target, uint64_t now,
                                const struct lant_packet *packet, struct lant_rdma_action *action,
                                struct lant_packet *answer);

/* A packet that waited for the registration of its operation: copied to `packet`, and judged like
 * one that comes now. False: there is none. */
MUST_USE bool lant_rdma_target_next_released(struct lant_rdma_target *target, uint64_t now,
                                             struct lant_packet *packet,
                                             struct lant_rdma_action *action,
                                             struct lant_packet *answer);

/* The bytes are in memory (LANT_OKAY), or memory refused them. There is always an answer. */
void lant_rdma_target_on_written(struct lant_rdma_target *target, uint64_t now,
                                 const struct lant_rdma_write *write, enum lant_response response,
                                 struct lant_packet *answer);

/* A packet with LANT_CRC_WRONG. True: `answer` is its NACK. False: it is not of our types. The NACK
 * repeats operation, offset and attempt, which may be damaged: the sender compares them. */
MUST_USE bool lant_rdma_target_on_damaged(struct lant_rdma_target *target,
                                          const struct lant_packet *packet,
                                          struct lant_packet *answer);

/* The next notification for the local queue, which can take one. While it cannot, the caller does
 * not ask: registered operations keep their rows, and nothing is lost. */
MUST_USE bool lant_rdma_target_next_notification(struct lant_rdma_target *target,
                                                 struct lant_rdma_arrival *arrival);

uint64_t lant_rdma_target_deadline(const struct lant_rdma_target *target);
void lant_rdma_target_on_time(struct lant_rdma_target *target, uint64_t now);

/* Nothing is kept of anybody (LNI-54). */
static inline bool lant_rdma_target_idle(const struct lant_rdma_target *target)
{
    return target->registrations.used == 0 && target->escape.used == 0 &&
           target->tombstones.count == 0 && target->arrivals_count == 0;
}

#endif
