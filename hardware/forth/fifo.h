/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fifo - the two FIFOs of the FORTH NIC between bus and network: room, and whole packets.
 *
 * The world has the words. The FIFO has only their number, because a word that comes to a full FIFO
 * is lost, and because transmission begins only when a whole packet stands in it.
 *
 * Source: TR376 2.1, 3.1.5 (pckt_cntr).
 */
#ifndef HARDWARE_FORTH_FIFO_H
#define HARDWARE_FORTH_FIFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* One of 1,024 places stays empty, which tells full from empty. */
#define FORTH_FIFO_WORDS 1023

struct forth_fifo {
    uint32_t used; /* Words in the FIFO, and words promised to a packet on its way into it. */
    uint32_t peak;
    uint32_t packets;  /* Whole packets: pckt_cntr. */
    uint32_t overflow; /* Words lost. */
};

static inline bool forth_fifo_has_room(const struct forth_fifo *fifo, uint32_t words)
{
    return fifo->used + words <= FORTH_FIFO_WORDS;
}

/* Returns how many of the words are lost. */
static inline uint32_t forth_fifo_put(struct forth_fifo *fifo, uint32_t words)
{
    const uint32_t room = FORTH_FIFO_WORDS - fifo->used;
    const uint32_t kept = words < room ? words : room;
    fifo->used += kept;
    fifo->peak = fifo->used > fifo->peak ? fifo->used : fifo->peak;
    fifo->overflow += words - kept;
    return words - kept;
}

static inline void forth_fifo_take(struct forth_fifo *fifo, uint32_t words)
{
    CHECK(fifo->used >= words);
    fifo->used -= words;
}

/* A packet has become whole; a packet is taken. Both may come in one cycle. */
static inline void forth_fifo_count(struct forth_fifo *fifo, bool whole, bool taken)
{
    CHECK(!taken || fifo->packets > 0 || whole);
    fifo->packets = fifo->packets + whole - taken;
}

#endif
