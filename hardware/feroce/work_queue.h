/* SPDX-License-Identifier: BSD-2-Clause
 *
 * work_queue - the work requests that wait in front of a queue's header producer.
 *
 * Purpose    Up to 16 requests, in order; the oldest one belongs to the packets that leave the
 *            framer, until the last one of its message.
 * Inputs     feroce_work_queue_post, a program's; feroce_work_queue_advance.
 * Outputs    feroce_work_queue_head.
 * Ownership  A value.
 * Threads    One caller at a time.
 * Time       Not used: what a request takes beside its data is in timing.h.
 * Units      Bytes.
 * Limits     FEROCE_WORK_MAX requests.
 * Source     Specification 3.4; 3.8 for lengths.
 */
#ifndef HARDWARE_FEROCE_WORK_QUEUE_H
#define HARDWARE_FEROCE_WORK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define FEROCE_WORK_MAX 16u

struct feroce_work {
    bool write; /* Else SEND. */
    bool has_immediate;
    uint32_t immediate;
    uint32_t qpn;    /* The board's own. */
    uint64_t offset; /* WRITE: added to the peer's base address. */
    uint32_t length; /* Bytes, for RETH: the stream's tlast ends the message. */
};

enum feroce_work_verdict {
    FEROCE_WORK_GOOD,
    FEROCE_WORK_FULL,
    FEROCE_WORK_LENGTH, /* 0, or no multiple of 4. */
    FEROCE_WORK_VERDICTS,
};

struct feroce_work_queue {
    uint8_t head, count;
    uint64_t posts[FEROCE_WORK_VERDICTS];
    struct feroce_work work[FEROCE_WORK_MAX];
};

static inline void feroce_work_queue_init(struct feroce_work_queue *queue)
{
    *queue = (struct feroce_work_queue){.head = 0};
}

static inline enum feroce_work_verdict feroce_work_queue_post(struct feroce_work_queue *queue,
                                                              const struct feroce_work *work)
{
    const enum feroce_work_verdict verdict = work->length == 0 || work->length % 4 != 0
                                                 ? FEROCE_WORK_LENGTH
                                             : queue->count == FEROCE_WORK_MAX ? FEROCE_WORK_FULL
                                                                               : FEROCE_WORK_GOOD;
    queue->posts[verdict]++;
    if (verdict == FEROCE_WORK_GOOD) {
        queue->work[(queue->head + queue->count) % FEROCE_WORK_MAX] = *work;
        queue->count++;
    }
    return verdict;
}

/* The oldest request; NULL: none waits. */
static inline const struct feroce_work *feroce_work_queue_head(
    const struct feroce_work_queue *queue)
{
    return queue->count == 0 ? NULL : &queue->work[queue->head];
}

/* The last packet of its message has left. */
static inline void feroce_work_queue_advance(struct feroce_work_queue *queue)
{
    CHECK(queue->count > 0);
    queue->head = (uint8_t)((queue->head + 1u) % FEROCE_WORK_MAX);
    queue->count--;
}

#endif
