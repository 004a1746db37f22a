/* SPDX-License-Identifier: BSD-2-Clause
 *
 * request_queue - the cyclic queue of DMA requests that a host writes into a FORTH NIC.
 *
 * Purpose    Holds requests in the order they were written; a start flag releases them together.
 * Inputs     forth_queue_write, as the host's bus writes fall on it; forth_queue_reset.
 * Outputs    forth_queue_next, then forth_queue_advance once the request is served.
 * Ownership  A value of 16 KB.
 * Limits     FORTH_QUEUE_REQUESTS, or one less (full_by_pointer).
 * Source     TR376 2.1, 3.1.3. The queue has 16 KB from 0x4000 on: the document gives two other
 *            ranges, both too small for it.
 */
#ifndef HARDWARE_FORTH_REQUEST_QUEUE_H
#define HARDWARE_FORTH_REQUEST_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/forth.h"

#define FORTH_QUEUE_REQUESTS 1024
#define FORTH_QUEUE_BYTES    (FORTH_QUEUE_REQUESTS * 16)

struct forth_queue {
    uint64_t words[2 * FORTH_QUEUE_REQUESTS];
    uint16_t tail; /* Where the host's next request is complete. */
    uint16_t head; /* The request that is being served. */
    uint16_t pending;
    uint16_t released;    /* Pending requests up to the newest start flag, that one included. */
    bool full_by_pointer; /* Full at tail + 1 == head: 1,023 requests. Else 1,024 (the source's). */
    uint32_t refused;     /* Requests written while the queue was full. */
};

void forth_queue_init(struct forth_queue *queue, bool full_by_pointer);

/* Control bit 24: both pointers to 0; pending requests are forgotten. */
void forth_queue_reset(struct forth_queue *queue);

/* The host writes 4 or 8 bytes, aligned, at `offset` from the queue's start. The write of the last
 * DWord of request `tail` makes it pending, or is refused and counted if the queue is full. */
void forth_queue_write(struct forth_queue *queue, uint32_t offset, uint64_t value, uint32_t bytes);

/* Is there a request to serve? */
bool forth_queue_released(const struct forth_queue *queue);

/* The oldest released request; there must be one. */
MUST_USE enum forth_verdict forth_queue_next(const struct forth_queue *queue,
                                             struct forth_request *request);

/* The request at the head has been served, or cannot be. */
void forth_queue_advance(struct forth_queue *queue);

#endif
