/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/common/work.h"

#include "base/align.h"
#include "base/bits.h"
#include "base/check.h"

/* Slots start on cache lines, so that one request's head is one line to fetch. */
static uint32_t slot_bytes(uint32_t tail_bytes)
{
    return (uint32_t)line_aligned(sizeof(struct work) + tail_bytes);
}

size_t send_queue_bytes(uint32_t limit, uint32_t tail_bytes)
{
    return (size_t)power_of_two(limit) * slot_bytes(tail_bytes);
}

void send_queue_init(struct send_queue *queue, uint32_t limit, uint32_t tail_bytes, void *memory)
{
    CHECK(memory != NULL || limit == 0);
    *queue = (struct send_queue){
        .slots = memory,
        .slot_bytes = slot_bytes(tail_bytes),
        .mask = (uint32_t)(power_of_two(limit) - 1),
        .limit = limit,
    };
}
