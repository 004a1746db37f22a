/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/receive_queue.h"

#include "base/bits.h"

/* The receives of a shared queue with at most this limit are used in turn. */
#define IN_TURN_MAX 256

static size_t slot_bytes(uint32_t sge_max)
{
    return power_of_two((uint32_t)(sizeof(struct receive) + sge_max * sizeof(struct sge)));
}

size_t receive_queue_bytes(uint32_t limit, uint32_t sge_max)
{
    return limit == 0 ? 0 : power_of_two(limit) * slot_bytes(sge_max);
}

void receive_queue_init(struct receive_queue *queue, uint32_t limit, uint32_t sge_max, void *memory)
{
    CHECK(sge_max <= NIC_SGE_MAX);
    *queue = (struct receive_queue){.sge_max = (uint8_t)sge_max};
    if (limit == 0) {
        return;
    }
    CHECK(memory != NULL);
    CHECK(limit <= 1u << 31);
    queue->slots = memory;
    queue->slot_bytes = (uint32_t)slot_bytes(sge_max);
    queue->mask = (uint32_t)(power_of_two(limit) - 1);
    queue->limit = limit;
}

enum status receive_queue_post(struct receive_queue *queue, uint64_t wr_id, const struct sge *sges,
                               uint32_t sge_count)
{
    INVARIANTS(receive_queue_check(queue));
    if (UNLIKELY(sge_count > queue->sge_max)) {
        return STATUS_INVALID;
    }
    if (UNLIKELY(receive_queue_count(queue) >= queue->limit)) {
        return STATUS_FULL;
    }
    struct receive *receive = receive_queue_at(queue, queue->tail);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sge_count; i++) {
        receive->sges[i] = sges[i];
        bytes += sges[i].bytes;
    }
    receive->wr_id = wr_id;
    receive->bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    receive->sge_count = sge_count;
    queue->tail++;
    INVARIANTS(receive_queue_check(queue));
    return STATUS_OK;
}

void receive_queue_put_back(struct receive_queue *queue, const struct receive *receive)
{
    CHECK(!queue->newest_first && receive_queue_count(queue) < queue->limit);
    queue->head--;
    __builtin_memcpy(receive_queue_at(queue, queue->head), receive,
                     sizeof(*receive) + receive->sge_count * sizeof(struct sge));
    INVARIANTS(receive_queue_check(queue));
}

void *receive_queue_resize(struct receive_queue *queue, uint32_t limit, void *memory)
{
    INVARIANTS(receive_queue_check(queue));
    const uint32_t count = receive_queue_count(queue);
    CHECK(memory != NULL && limit > 0);
    CHECK(limit <= 1u << 31);
    CHECK(count <= limit);
    uint8_t *to = memory;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_memcpy(to, receive_queue_at(queue, queue->head + i), queue->slot_bytes);
        to += queue->slot_bytes;
    }
    void *old = queue->slots;
    queue->slots = memory;
    queue->mask = (uint32_t)(power_of_two(limit) - 1);
    queue->limit = limit;
    queue->head = 0;
    queue->tail = count;
    INVARIANTS(receive_queue_check(queue));
    return old;
}

void receive_queue_swap_newest(struct receive_queue *queue)
{
    CHECK(receive_queue_count(queue) >= 2);
    uint8_t *newest = (uint8_t *)receive_queue_at(queue, queue->tail - 1);
    uint8_t *other = (uint8_t *)receive_queue_at(queue, queue->tail - 2);
    for (uint32_t i = 0; i < queue->slot_bytes; i++) {
        const uint8_t byte = newest[i];
        newest[i] = other[i];
        other[i] = byte;
    }
}

static void choose_order(struct srq *srq)
{
    srq->queue.newest_first = srq->queue.limit > IN_TURN_MAX;
}

void srq_init(struct srq *srq, struct pd *pd, uint32_t limit, uint32_t sge_max, void *memory)
{
    *srq = (struct srq){.pd = pd};
    receive_queue_init(&srq->queue, limit, sge_max, memory);
    choose_order(srq);
    list_init(&srq->event_link);
}

void *srq_resize(struct srq *srq, uint32_t limit, void *memory)
{
    void *old = receive_queue_resize(&srq->queue, limit, memory);
    choose_order(srq);
    return old;
}
