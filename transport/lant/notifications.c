/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/notifications.h"

void lant_notifications_check(const struct lant_notifications *queue)
{
    CHECK(queue->depth >= 1 && queue->depth <= LANT_NOTIFICATIONS_MAX);
    CHECK(queue->count <= queue->depth && queue->head < queue->depth);
    CHECK(queue->count <= queue->count_max && queue->count_max <= queue->depth);
    CHECK(!queue->holding || queue->held != 0);
}

bool lant_notifications_admit(struct lant_notifications *queue)
{
    if (queue->count < queue->depth) {
        return true;
    }
    if (!queue->holding) {
        queue->holding = true;
        queue->held++;
    }
    return false;
}

void lant_notifications_put(struct lant_notifications *queue,
                            const struct lant_notification *notification)
{
    INVARIANTS(lant_notifications_check(queue));
    CHECK(queue->count < queue->depth);
    queue->ring[(uint32_t)(queue->head + queue->count) % queue->depth] = *notification;
    queue->count++;
    queue->count_max = queue->count > queue->count_max ? queue->count : queue->count_max;
    queue->given++;
    queue->holding = false;
    INVARIANTS(lant_notifications_check(queue));
}

bool lant_notifications_take(struct lant_notifications *queue,
                             struct lant_notification *notification)
{
    INVARIANTS(lant_notifications_check(queue));
    if (queue->count == 0) {
        return false;
    }
    *notification = queue->ring[queue->head];
    queue->head = (uint16_t)((queue->head + 1u) % queue->depth);
    queue->count--;
    INVARIANTS(lant_notifications_check(queue));
    return true;
}
