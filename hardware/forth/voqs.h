/* SPDX-License-Identifier: BSD-2-Clause
 *
 * voqs - virtual output queues: requests that wait in the NIC, a queue for each destination.
 *
 * With one queue the request at its head holds up all others while its destination takes nothing.
 * Here those for other destinations go first. The requests of one destination stay in order.
 *
 * Limits     FORTH_QUEUE_REQUESTS requests in all, FORTH_PORTS_MAX destinations.
 * Source     TR376 2.1: a virtual output queue for every destination "is being implemented". How
 *            it is built is our choice: queues of requests, and the FIFO's words shared equally.
 */
#ifndef HARDWARE_FORTH_VOQS_H
#define HARDWARE_FORTH_VOQS_H

#include "hardware/forth/request_queue.h"
#include "hardware/forth/scheduler.h"

struct forth_voqs {
    struct forth_request requests[FORTH_QUEUE_REQUESTS];
    uint16_t next[FORTH_QUEUE_REQUESTS]; /* The place of the request behind this one. */
    uint16_t free;                       /* The first place that no request has. */
    uint32_t count;
    uint64_t waiting; /* Bit i: destination i has requests. */
    struct {
        uint16_t first, last, count;
    } to[FORTH_PORTS_MAX];
};

void forth_voqs_init(struct forth_voqs *voqs);
/* False: there is no room for the request. */
bool forth_voqs_put(struct forth_voqs *voqs, const struct forth_request *request);
/* The oldest request for a destination that has one. */
const struct forth_request *forth_voqs_first(const struct forth_voqs *voqs, uint32_t to);
void forth_voqs_drop_first(struct forth_voqs *voqs, uint32_t to);

#endif
