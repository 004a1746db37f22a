/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pending_fifo - requests that wait for a context or for an earlier request of their queue pair:
 * two FIFOs, one online and one offline.
 *
 * New elements enter the offline FIFO, whose output is checked. An element whose check fails goes
 * to the online one, whose output serves returned contexts. So the online FIFO followed by the
 * offline one is always the order of arrival, and a check only moves the border between them. As
 * long as nothing but the first element is ever taken at either output, order cannot be lost; and
 * the roles may swap whenever the offline FIFO is empty, which begins another pass.
 *
 * Source: csRNA 4.3.1, figure 4 (the ports' numbers); CSR-16, CSR-17.
 */
#ifndef HARDWARE_CSRNA_PENDING_FIFO_H
#define HARDWARE_CSRNA_PENDING_FIFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/csrna/qpc.h"

#define PENDING_MAX (QPC_CHANNELS * QPC_OOCAP_MAX)
_Static_assert(PENDING_MAX < 256, "positions of 8 bits tell full from empty");

struct pending {
    uint32_t qpn;
    uint8_t channel, index, operation; /* As in struct qpc_request. */
    bool posted; /* The source's dma_posted: Type 1, its context is being read. Else Type 2. */
};

struct pending_ring {
    uint8_t head, tail; /* Free-running. */
    struct pending elements[256];
};

struct pending_fifo {
    uint32_t places; /* The places of each FIFO: 3 * oocap. */
    uint32_t online; /* 0 or 1: which of the two. */
    struct pending_ring rings[2];
};

static inline void pending_fifo_init(struct pending_fifo *fifo, uint32_t oocap)
{
    CHECK(oocap >= 1 && oocap <= QPC_OOCAP_MAX);
    fifo->places = QPC_CHANNELS * oocap;
    fifo->online = 0;
    fifo->rings[0].head = fifo->rings[0].tail = 0;
    fifo->rings[1].head = fifo->rings[1].tail = 0;
}

static inline uint32_t pending_ring_count(const struct pending_ring *ring)
{
    return (uint8_t)(ring->tail - ring->head);
}

static inline const struct pending_ring *pending_online(const struct pending_fifo *fifo)
{
    return &fifo->rings[fifo->online];
}

static inline const struct pending_ring *pending_offline(const struct pending_fifo *fifo)
{
    return &fifo->rings[!fifo->online];
}

static inline uint32_t pending_fifo_count(const struct pending_fifo *fifo)
{
    return pending_ring_count(&fifo->rings[0]) + pending_ring_count(&fifo->rings[1]);
}

static inline void pending_ring_push(struct pending_ring *ring, uint32_t places,
                                     struct pending element)
{
    CHECK(pending_ring_count(ring) < places);
    ring->elements[ring->tail++] = element;
}

static inline struct pending pending_ring_pop(struct pending_ring *ring)
{
    CHECK(ring->head != ring->tail);
    return ring->elements[ring->head++];
}

/* Port 1: a new element. */
static inline void pending_fifo_push(struct pending_fifo *fifo, struct pending element)
{
    pending_ring_push(&fifo->rings[!fifo->online], fifo->places, element);
}

/* Does port 2 show an element that waits for its context? */
static inline bool pending_fifo_shows_posted(const struct pending_fifo *fifo)
{
    const struct pending_ring *ring = pending_online(fifo);
    return ring->head != ring->tail && ring->elements[ring->head].posted;
}

/* Port 2: the oldest element of the online FIFO; there must be one. */
static inline struct pending pending_fifo_pop_returned(struct pending_fifo *fifo)
{
    return pending_ring_pop(&fifo->rings[fifo->online]);
}

/* Port 3: an element from port 4 that has to go on waiting. */
static inline void pending_fifo_push_checked(struct pending_fifo *fifo, struct pending element)
{
    pending_ring_push(&fifo->rings[fifo->online], fifo->places, element);
}

/* Port 4: the oldest element of the offline FIFO; there must be one. */
static inline struct pending pending_fifo_pop_check(struct pending_fifo *fifo)
{
    return pending_ring_pop(&fifo->rings[!fifo->online]);
}

/* The offline FIFO is empty: another pass begins. */
static inline void pending_fifo_swap(struct pending_fifo *fifo)
{
    CHECK(pending_ring_count(pending_offline(fifo)) == 0);
    fifo->online = !fifo->online;
}

#endif
