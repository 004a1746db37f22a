/* SPDX-License-Identifier: BSD-2-Clause
 *
 * retransmissions - partial descriptors: packets that the DMA engine shall push again.
 *
 * Purpose    Keeps them in the order in which they failed.
 * Inputs     Failed packets.
 * Outputs    The oldest.
 * Units      Offsets count packets of 512 bytes.
 * Limits     LANT_PARTIALS_MAX.
 * Source     Lant 5.2.3, Fig. 5.5.
 *
 * The rows of the transaction table do not bound the depth: while a long descriptor is pushed, no
 * partial one is served, but the rows of failed packets carry new packets, which fail as well.
 * rdma_sender.h says what happens when it is full.
 *
 * The document finds the operation again by the address (5.2.3). Two operations may read the same
 * range, so here the identifier finds it, and the operation has the addresses.
 */
#ifndef TRANSPORT_LANT_RETRANSMISSIONS_H
#define TRANSPORT_LANT_RETRANSMISSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#define LANT_PARTIALS_MAX 4096u

struct lant_partial {
    uint64_t first_at; /* When its first copy left. */
    uint32_t identifier;
    uint32_t offset : 24;
    uint32_t attempt : 8; /* The copy that is to be sent. */
};

struct lant_retransmissions {
    uint16_t depth, head, count, count_max;
    struct lant_partial ring[LANT_PARTIALS_MAX];
};

void lant_retransmissions_init(struct lant_retransmissions *retransmissions, uint32_t depth);
/* There is room. */
void lant_retransmissions_put(struct lant_retransmissions *retransmissions,
                              struct lant_partial partial);
/* There is one. */
struct lant_partial lant_retransmissions_take(struct lant_retransmissions *retransmissions);
/* Forgets those of an operation; says how many these were. */
uint32_t lant_retransmissions_forget(struct lant_retransmissions *retransmissions,
                                     uint32_t identifier);

static inline const struct lant_partial *lant_retransmissions_at(
    const struct lant_retransmissions *retransmissions, uint32_t i)
{
    CHECK(i < retransmissions->count);
    return &retransmissions->ring[(retransmissions->head + i) % retransmissions->depth];
}

#endif
