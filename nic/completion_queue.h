/* SPDX-License-Identifier: BSD-2-Clause
 *
 * completion_queue - completions, which tell a program about finished work.
 *
 * Purpose    A ring of completions, and the arming rules of ibv_req_notify_cq.
 * Inputs     cq_push from the NIC; cq_poll, cq_arm from verbs.
 * Outputs    Completions in order; cq_push tells when the program is to be woken.
 * Ownership  The caller owns the struct and the ring memory.
 * Time       Each completion carries the instant its pusher gave, in nanoseconds.
 * Units      Completions.
 * Limits     `capacity`; one more is an overrun, which is an error of the queue (IBTA 11.2.7).
 * Source     IBTA Vol. 1 chapters 10.8.5 and 11.4.2.
 */
#ifndef NIC_COMPLETION_QUEUE_H
#define NIC_COMPLETION_QUEUE_H

#include "base/check.h"
#include "base/instant.h"
#include "base/list.h"
#include "nic/types.h"

struct completion {
    uint64_t wr_id;
    uint64_t at_ns;     /* When it was pushed. */
    uint32_t bytes;     /* Received or read; for UD with the 40 bytes of GRH. */
    uint32_t immediate; /* Untouched wire bytes, or the invalidated key. */
    uint32_t qpn;
    uint32_t source_qpn;   /* UD receives. XRC receives: the number of their shared queue. */
    uint8_t status;        /* enum completion_status. */
    uint8_t kind;          /* enum completion_kind. */
    uint8_t flags;         /* enum completion_flag. */
    uint8_t service_level; /* UD receives: UD_SERVICE_LEVEL_IPV4 or _IPV6. */
    union {
        uint16_t pkey_index;
        uint16_t host; /* SRD receives: the sender's (nic/srd.h). */
    };
    uint8_t vendor_error; /* The syndrome of a NAK, an enum srd_status; 0 otherwise. */
    bool solicited;
};

/* The service level of a UD receive, as Mellanox hardware reports it and UCX relies on it: 2 in the
 * low bits says that the GRH area has an IPv4 header, 1 an IPv6 header; bit 3 marks RoCE. */
#define UD_SERVICE_LEVEL_IPV4 10
#define UD_SERVICE_LEVEL_IPV6 9

enum cq_arming {
    CQ_NOT_ARMED,
    CQ_ARMED_SOLICITED, /* Wakes for a solicited receive or an error. */
    CQ_ARMED_NEXT,      /* Wakes for any completion. */
};

struct cq {
    struct completion *ring; /* 2^n entries, positions run free and are masked. */
    uint32_t mask;
    uint32_t capacity; /* As promised to the program; at most mask + 1. */
    uint32_t head, tail;
    enum cq_arming arming;
    bool overrun;           /* An entry was lost: the queue is in error. */
    bool overrun_told;      /* The program was told. */
    uint32_t users;         /* Queue pairs that complete here. */
    uint32_t events;        /* 1 << enum nic_event_kind, not yet collected. */
    struct list notify;     /* On nic.cqs_to_notify while a notification waits to be collected. */
    struct list event_link; /* On nic.cqs_with_events while `events` is not 0. */
    /* As many as the ring has entries: the sender's address of each UD receive in it. NULL: nobody
     * asks. */
    struct gid *sources;
};

/* Ring entries for a queue of `capacity`, 1 .. 2^31: a power of two. */
uint32_t cq_ring_entries(uint32_t capacity);
void cq_init(struct cq *cq, uint32_t capacity, struct completion *ring);

/* The number of completions that wait to be polled. */
static inline uint32_t cq_count(const struct cq *cq)
{
    return cq->tail - cq->head;
}

static inline void cq_check(const struct cq *cq)
{
    CHECK((cq->mask & (cq->mask + 1)) == 0 && cq->capacity <= cq->mask + 1);
    CHECK(cq_count(cq) <= cq->capacity);
    CHECK(cq->arming <= CQ_ARMED_NEXT);
    CHECK(cq->overrun || !cq->overrun_told);
}

static inline bool completion_is_receive(const struct completion *completion)
{
    return completion->kind == COMPLETION_RECEIVE ||
           completion->kind == COMPLETION_RECEIVE_WRITE_IMMEDIATE;
}

/* Does it wake a queue that is armed for "solicited only"? A receive whose sender asked for it
 * does, and any failure. */
static inline bool completion_is_solicited(const struct completion *completion)
{
    return completion->solicited || completion->status != COMPLETION_SUCCESS;
}

enum cq_push_result {
    CQ_PUSHED,
    CQ_PUSHED_NOTIFY, /* Likewise, and the arming fired: the program is to be woken. */
    CQ_OVERRUN,       /* No room: the completion is lost, the queue is in error. */
};

/* Appends a completion. A queue in error still takes completions while there is room, and its
 * arming may still fire. */
MUST_USE static inline enum cq_push_result cq_push(struct cq *cq,
                                                   const struct completion *completion,
                                                   struct instant now)
{
    INVARIANTS(cq_check(cq));
    if (UNLIKELY(cq_count(cq) >= cq->capacity)) {
        cq->overrun = true;
        return CQ_OVERRUN;
    }
    struct completion *entry = &cq->ring[cq->tail & cq->mask];
    *entry = *completion;
    entry->at_ns = now.ns;
    cq->tail++;
    if (LIKELY(cq->arming == CQ_NOT_ARMED)) {
        return CQ_PUSHED;
    }
    if (cq->arming == CQ_ARMED_SOLICITED && !completion_is_solicited(completion)) {
        return CQ_PUSHED;
    }
    cq->arming = CQ_NOT_ARMED;
    return CQ_PUSHED_NOTIFY;
}

/* The UD receive that is pushed next came from this address. */
static inline void cq_note_source(struct cq *cq, const struct gid *source)
{
    if (UNLIKELY(cq->sources != NULL) && cq_count(cq) < cq->capacity) {
        cq->sources[cq->tail & cq->mask] = *source;
    }
}

/* Takes back the newest completion, if it says that request `wr_id` of queue pair `qpn` succeeded:
 * the request has failed after all, and nobody has polled since. */
static inline void cq_take_back(struct cq *cq, uint32_t qpn, uint64_t wr_id)
{
    const struct completion *newest = &cq->ring[(cq->tail - 1) & cq->mask];
    if (!cq->overrun && cq_count(cq) != 0 && newest->qpn == qpn && newest->wr_id == wr_id &&
        newest->status == COMPLETION_SUCCESS) {
        cq->tail--;
    }
}

/* For a poll without a copy: the `ahead`th completion that waits, and `taken` of them
 * go. */
static inline const struct completion *cq_peek(const struct cq *cq, uint32_t ahead)
{
    INVARIANTS(CHECK(ahead < cq_count(cq)));
    return &cq->ring[(cq->head + ahead) & cq->mask];
}

/* A queue with sources: that of the `ahead`th completion that waits, if it is a UD receive. */
static inline const struct gid *cq_peek_source(const struct cq *cq, uint32_t ahead)
{
    INVARIANTS(CHECK(cq->sources != NULL && ahead < cq_count(cq)));
    return &cq->sources[(cq->head + ahead) & cq->mask];
}

static inline void cq_drop(struct cq *cq, uint32_t taken)
{
    cq->head += taken;
    if (cq->head == cq->tail) {
        cq->head = cq->tail = 0; /* There, the memory is in a cache. */
    }
    INVARIANTS(cq_check(cq));
}

/* Takes up to `count` completions; returns how many. */
static inline uint32_t cq_poll(struct cq *cq, struct completion *out, uint32_t count)
{
    INVARIANTS(cq_check(cq));
    const uint32_t waiting = cq_count(cq);
    const uint32_t taken = count < waiting ? count : waiting;
    for (uint32_t i = 0; i < taken; i++) {
        out[i] = *cq_peek(cq, i);
    }
    cq_drop(cq, taken);
    return taken;
}

/* ibv_req_notify_cq: the next completion that is pushed, or the next solicited one, fires once.
 * Completions that wait already do not fire. A queue that is armed for any completion stays so
 * until it fires (IBTA 11.4.2.2). */
void cq_arm(struct cq *cq, bool solicited_only);

/* Removes the completions of one queue pair. Returns their number, of sends and of receives. */
struct cq_forgotten {
    uint32_t sends, receives;
};
struct cq_forgotten cq_forget_qp(struct cq *cq, uint32_t qpn);

/* Moves the queued completions of a queue without sources into a new ring of
 * cq_ring_entries(capacity), and returns the old one, which is the caller's again. The caller has
 * judged that `capacity` is at least cq_count. */
struct completion *cq_resize(struct cq *cq, uint32_t capacity, struct completion *ring);

#endif
