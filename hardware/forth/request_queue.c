/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/request_queue.h"

#define POINTER_MASK (FORTH_QUEUE_REQUESTS - 1)
#define START_FLAG   (UINT64_C(1) << 59)

void forth_queue_init(struct forth_queue *queue, bool full_by_pointer)
{
    *queue = (struct forth_queue){.full_by_pointer = full_by_pointer};
}

void forth_queue_reset(struct forth_queue *queue)
{
    queue->tail = queue->head = queue->pending = queue->released = 0;
}

/* The pointers and the counts agree. */
static void forth_queue_check(const struct forth_queue *queue)
{
    CHECK(queue->released <= queue->pending && queue->pending <= FORTH_QUEUE_REQUESTS);
    CHECK(queue->head <= POINTER_MASK && queue->tail <= POINTER_MASK);
    CHECK(((queue->head + queue->pending) & POINTER_MASK) == queue->tail);
}

static bool full(const struct forth_queue *queue)
{
    const uint32_t usable = FORTH_QUEUE_REQUESTS - (queue->full_by_pointer ? 1 : 0);
    return queue->pending == usable;
}

static void complete(struct forth_queue *queue)
{
    if (full(queue)) {
        queue->refused++;
        return;
    }
    const bool start = queue->words[2 * queue->tail + 1] & START_FLAG;
    queue->tail = (queue->tail + 1) & POINTER_MASK;
    queue->pending++;
    if (start) {
        queue->released = queue->pending;
    }
}

/* A full queue's tail is the request being served: its words must not change. */
static bool overwrites_pending(const struct forth_queue *queue, uint32_t index)
{
    const uint32_t request = index / 2;
    const uint32_t distance = (request - queue->head) & POINTER_MASK;
    return distance < queue->pending;
}

void forth_queue_write(struct forth_queue *queue, uint32_t offset, uint64_t value, uint32_t bytes)
{
    INVARIANTS(forth_queue_check(queue));
    CHECK(bytes == 4 || bytes == 8);
    CHECK(offset % bytes == 0 && offset + bytes <= FORTH_QUEUE_BYTES);
    const uint32_t index = offset / 8;
    const bool upper = bytes == 8 || offset % 8 == 4;
    if (!overwrites_pending(queue, index)) {
        uint64_t *word = &queue->words[index];
        if (bytes == 8) {
            *word = value;
        } else if (upper) {
            *word = (*word & UINT32_MAX) | value << 32;
        } else {
            *word = (*word & ~(uint64_t)UINT32_MAX) | (value & UINT32_MAX);
        }
    }
    if (upper && index == 2 * (uint32_t)queue->tail + 1) {
        complete(queue);
    }
    INVARIANTS(forth_queue_check(queue));
}

bool forth_queue_released(const struct forth_queue *queue)
{
    return queue->released > 0;
}

enum forth_verdict forth_queue_next(const struct forth_queue *queue, struct forth_request *request)
{
    CHECK(forth_queue_released(queue));
    return forth_request_decode(&queue->words[2 * queue->head], request);
}

void forth_queue_advance(struct forth_queue *queue)
{
    CHECK(forth_queue_released(queue));
    queue->head = (queue->head + 1) & POINTER_MASK;
    queue->pending--;
    queue->released--;
    INVARIANTS(forth_queue_check(queue));
}
