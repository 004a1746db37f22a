/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/rc_window.h"

/* A window on a path without a limit that has grown to this is none any more. */
#define WINDOW_RESTORED (4u << 20)

uint32_t rc_cost_of(const struct rc_requester *requester, const struct work *work, uint32_t packets)
{
    const uint64_t full = (uint64_t)packets * requester->mtu_bytes;
    const uint32_t bytes = full < work->bytes ? (uint32_t)full : work->bytes;
    return bytes + packets * requester->policy->packet_cost;
}

struct work *rc_oldest_in_flight(const struct rc_requester *requester,
                                 const struct send_queue *queue, uint32_t *position)
{
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        struct work *work = send_queue_at(queue, at);
        if (!work->started) {
            return NULL;
        }
        if (work_covers(work, requester->unacked)) {
            *position = at;
            return work;
        }
    }
    return NULL;
}

/* Flight bytes from `unacked` up to `send`. */
static uint32_t flight(const struct rc_requester *requester, const struct send_queue *queue)
{
    if (psn_equal(requester->unacked, requester->send)) {
        return 0;
    }
    uint32_t position;
    const struct work *oldest = rc_oldest_in_flight(requester, queue, &position);
    CHECK(oldest != NULL);
    const uint32_t acked = (uint32_t)psn_distance(oldest->first, requester->unacked);
    uint32_t sent = requester->cost;
    if (!psn_equal(requester->send, requester->next)) {
        const struct work *resending = send_queue_at(queue, queue->next);
        const uint32_t packets = (uint32_t)psn_distance(resending->first, requester->send);
        sent = resending->cost + rc_cost_of(requester, resending, packets);
    }
    return sent - (oldest->cost + rc_cost_of(requester, oldest, acked));
}

/* The window admits a packet when it is not full; the last one may overshoot, so that a window
 * smaller than a packet still moves. */
static bool window_full(const struct rc_requester *requester, const struct send_queue *queue)
{
    if (psn_distance(requester->unacked, requester->send) >= 0x7f0000) {
        return true;
    }
    return requester->window != 0 && flight(requester, queue) >= requester->window;
}

void rc_window_update(struct rc_requester *requester, const struct send_queue *queue)
{
    requester->window_shut = window_full(requester, queue);
}

void rc_window_reopen(struct rc_requester *requester, const struct send_queue *queue)
{
    const uint32_t window = requester->window;
    if (requester->window_shut &&
        (window == 0 || flight(requester, queue) <= window - window / 4)) {
        rc_window_update(requester, queue);
    }
}

void rc_window_shrink(struct rc_requester *requester, const struct send_queue *queue)
{
    const uint32_t least = 16 * (requester->mtu_bytes + requester->policy->packet_cost);
    const uint32_t before = requester->window != 0 ? requester->window : flight(requester, queue);
    requester->window = before / 2 < least ? least : before / 2;
    if (requester->window_max != 0 && requester->window > requester->window_max) {
        requester->window = requester->window_max;
    }
}

void rc_window_grow(struct rc_requester *requester, uint32_t packets)
{
    if (requester->window == requester->window_max) {
        return;
    }
    const uint32_t full = requester->window_max != 0 ? requester->window_max : WINDOW_RESTORED;
    const uint64_t grown = requester->window + (uint64_t)packets * (requester->mtu_bytes / 4);
    requester->window = grown < full ? (uint32_t)grown : requester->window_max;
}

struct rc_load rc_requester_load(const struct rc_requester *requester,
                                 const struct send_queue *queue)
{
    return (struct rc_load){.flight_bytes = flight(requester, queue),
                            .window_bytes = requester->window};
}
