/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/completion_queue.h"

#include "base/bits.h"

/* A completion queue is memory that every message touches. */
_Static_assert(sizeof(struct completion) == 40, "a completion has no gaps");

uint32_t cq_ring_entries(uint32_t capacity)
{
    CHECK(capacity > 0);
    CHECK(capacity <= 1u << 31);
    return (uint32_t)power_of_two(capacity);
}

void cq_init(struct cq *cq, uint32_t capacity, struct completion *ring)
{
    CHECK(ring != NULL);
    *cq = (struct cq){
        .ring = ring,
        .mask = cq_ring_entries(capacity) - 1,
        .capacity = capacity,
    };
    list_init(&cq->notify);
    list_init(&cq->event_link);
}

void cq_arm(struct cq *cq, bool solicited_only)
{
    INVARIANTS(cq_check(cq));
    if (!solicited_only) {
        cq->arming = CQ_ARMED_NEXT;
    } else if (cq->arming == CQ_NOT_ARMED) {
        cq->arming = CQ_ARMED_SOLICITED;
    }
}

struct completion *cq_resize(struct cq *cq, uint32_t capacity, struct completion *ring)
{
    CHECK(ring != NULL);
    INVARIANTS(cq_check(cq));
    CHECK(capacity >= cq_count(cq) && cq->sources == NULL);
    struct completion *old = cq->ring;
    const uint32_t entries = cq_ring_entries(capacity);
    const uint32_t moved = cq_poll(cq, ring, cq_count(cq));
    cq->ring = ring;
    cq->mask = entries - 1;
    cq->capacity = capacity;
    cq->head = 0;
    cq->tail = moved;
    INVARIANTS(cq_check(cq));
    return old;
}

struct cq_forgotten cq_forget_qp(struct cq *cq, uint32_t qpn)
{
    INVARIANTS(cq_check(cq));
    struct cq_forgotten forgotten = {0};
    uint32_t to = cq->head;
    for (uint32_t from = cq->head; from != cq->tail; from++) {
        const struct completion *completion = &cq->ring[from & cq->mask];
        if (completion->qpn != qpn) {
            if (cq->sources != NULL) {
                cq->sources[to & cq->mask] = cq->sources[from & cq->mask];
            }
            cq->ring[to++ & cq->mask] = *completion;
        } else if (completion_is_receive(completion)) {
            forgotten.receives++;
        } else {
            forgotten.sends++;
        }
    }
    cq->tail = to;
    INVARIANTS(cq_check(cq));
    return forgotten;
}
