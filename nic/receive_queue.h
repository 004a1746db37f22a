/* SPDX-License-Identifier: BSD-2-Clause
 *
 * receive_queue - posted receives, of one queue pair or shared by many.
 *
 * A ring of fixed slots: a receive request and its SGEs. The caller owns the memory. A slot is a
 * power of two long, so one of up to three SGEs lies within a cache line.
 */
#ifndef NIC_RECEIVE_QUEUE_H
#define NIC_RECEIVE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/list.h"
#include "base/status.h"
#include "nic/region.h"
#include "nic/types.h"

struct receive {
    uint64_t wr_id;
    uint32_t bytes; /* Sum of the SGEs; UINT32_MAX, more than any message, if it is more. */
    uint32_t sge_count;
    struct sge sges[];
};

struct receive_queue {
    uint8_t *slots;
    uint32_t slot_bytes;
    uint32_t mask;
    uint32_t limit; /* The program's max_wr. */
    uint8_t sge_max;
    bool newest_first;
    uint16_t unpolled;   /* Kept by nic/slots.c only: posted, and no completion polled. */
    uint32_t head, tail; /* Free-running. */
};

/* Memory for `limit` receives of `sge_max` SGEs each; 0 if `limit` is. */
size_t receive_queue_bytes(uint32_t limit, uint32_t sge_max);
/* `memory` is 64-byte aligned; not used if `limit` is 0. `sge_max` is at most NIC_SGE_MAX. */
void receive_queue_init(struct receive_queue *queue, uint32_t limit, uint32_t sge_max,
                        void *memory);

/* STATUS_INVALID: too many SGEs; STATUS_FULL: no room. Copies the request. */
MUST_USE enum status receive_queue_post(struct receive_queue *queue, uint64_t wr_id,
                                        const struct sge *sges, uint32_t sge_count);

/* Moves the posted receives into `memory` of receive_queue_bytes(limit, sge_max), in the order of
 * posting, and returns the old memory, which is the caller's again. `limit` is not 0. The caller
 * has judged that it is at least receive_queue_count. */
void *receive_queue_resize(struct receive_queue *queue, uint32_t limit, void *memory);

/* The newest two receives, which there are, change places. */
void receive_queue_swap_newest(struct receive_queue *queue);

static inline uint32_t receive_queue_count(const struct receive_queue *queue)
{
    return queue->tail - queue->head;
}

static inline void receive_queue_check(const struct receive_queue *queue)
{
    CHECK(receive_queue_count(queue) <= queue->limit);
    CHECK(queue->limit == 0 || queue->limit - 1 <= queue->mask);
    CHECK(queue->limit == 0 || (queue->slots != NULL && queue->sge_max <= NIC_SGE_MAX));
}

static inline struct receive *receive_queue_at(const struct receive_queue *queue, uint32_t position)
{
    return (struct receive *)(void *)(queue->slots +
                                      (size_t)(position & queue->mask) * queue->slot_bytes);
}

/* The receive for the next message, the oldest one or, of a pool, the newest; NULL if there is
 * none. Stays in place until receive_queue_drop, in a pool also until the next post. */
static inline struct receive *receive_queue_first(const struct receive_queue *queue)
{
    INVARIANTS(receive_queue_check(queue));
    return queue->head == queue->tail
               ? NULL
               : receive_queue_at(queue, queue->newest_first ? queue->tail - 1 : queue->head);
}

/* Removes the receive that receive_queue_first returns; there must be one. */
static inline void receive_queue_drop(struct receive_queue *queue)
{
    CHECK(queue->head != queue->tail);
    if (queue->newest_first) {
        queue->tail--;
    } else {
        queue->head++;
    }
    INVARIANTS(receive_queue_check(queue));
}

/* The receive that was dropped last, or before others that were put back, is the first one again.
 * Its queue has room for it, and is no pool. */
void receive_queue_put_back(struct receive_queue *queue, const struct receive *receive);

/* Prefetches receives behind the oldest one, and their buffers: with thousands of receives posted,
 * none would be in a cache (the newest one of a pool is). This changes nothing but time: the
 * addresses are not judged. Lines in front of a buffer are prefetched, too, because many programs
 * keep notes there. */
static inline void receive_queue_look_ahead(const struct receive_queue *queue)
{
    enum {
        SLOTS_AHEAD = 4,
        BUFFERS_AHEAD = 2,
        LINE = 64,
        PAGE = 4096
    };
    if (queue->newest_first) {
        return;
    }
    __builtin_prefetch(receive_queue_at(queue, queue->head + SLOTS_AHEAD));
    const struct receive *receive = receive_queue_at(queue, queue->head + BUFFERS_AHEAD);
    if (receive_queue_count(queue) <= BUFFERS_AHEAD || receive->sge_count == 0) {
        return;
    }
    const uintptr_t buffer = (uintptr_t)receive->sges[0].address;
    for (int line = -3; line <= 1; line++) {
        __builtin_prefetch((const void *)(buffer + (uintptr_t)(line * LINE)), 1);
    }
    if (receive->sges[0].bytes > PAGE) {
        __builtin_prefetch((const void *)(buffer + PAGE), 1);
    }
}

/* An XRC domain: requests to its targets may name its shared receive queues. */
struct xrcd {
    uint32_t users; /* Targets and shared receive queues. */
};

/* A shared receive queue. One of many receives is a pool, the newest of which is used first, while
 * it is in a cache (docs/decisions/0015). */
struct srq {
    struct receive_queue queue;
    struct pd *pd;
    struct xrcd *xrcd;    /* XRC, else NULL: its domain, ... */
    struct cq *cq;        /* ... where its receives complete, ... */
    uint32_t number;      /* ... and its name, see srq_enter; 0: none. */
    uint32_t limit_armed; /* Fires SRQ_LIMIT_REACHED once when fewer are left; 0: not armed. */
    uint32_t users;       /* Queue pairs attached. */
    uint32_t events;      /* 1 << enum nic_event_kind, not yet collected. */
    struct list event_link;
};

/* Does not count the queue in `pd`; the caller does. */
void srq_init(struct srq *srq, struct pd *pd, uint32_t limit, uint32_t sge_max, void *memory);

/* May it hold `limit` receives from now on? Not if more are posted. Not if `limit_armed` is larger:
 * then it would always hold fewer receives than that. */
static inline bool srq_may_resize(const struct srq *srq, uint32_t limit, uint32_t limit_armed)
{
    return limit > 0 && receive_queue_count(&srq->queue) <= limit && limit_armed <= limit;
}

/* receive_queue_resize of a shared queue, which may become a pool by it, or no longer be one. */
void *srq_resize(struct srq *srq, uint32_t limit, void *memory);

#endif
