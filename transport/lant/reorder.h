/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reorder - the packets of one keyhole transfer, brought into the order of their numbers.
 *
 * Purpose    All data of a keyhole go to one address, as into a FIFO whose reader needs them in
 *            order; the network does not keep it.
 * Inputs     lant_reorder_put: a packet of LANT_RDMA_UNREGISTERED with H3.
 * Outputs    lant_reorder_next: payloads, in order, each once.
 * Ownership  A value that has copies of the packets. One transfer at a time has it: from its first
 *            packet that comes, whichever that is, until its last one was handed out.
 * Units      Packets; their order is H3's.
 * Limits     LANT_REORDER_MAX packets. Transfers that ended are remembered, LANT_REORDER_ENDED of
 *            them: an older one whose packet comes once more would get the buffer and keep it. So
 *            does a transfer that its sender has given up: nothing releases the buffer then.
 * Source     Lant 4.4: one buffer, whose ownership is locked. Our choice: how it is released, and
 *            that packets that find no room are dropped, so that their sender's timer sends them
 *            again.
 */
#ifndef TRANSPORT_LANT_REORDER_H
#define TRANSPORT_LANT_REORDER_H

#include "transport/lant/operation_key.h"

#define LANT_REORDER_MAX   128u
#define LANT_REORDER_ENDED 16u

enum lant_reorder_verdict {
    LANT_REORDER_TAKEN, /* Acknowledge it. */
    LANT_REORDER_KNOWN, /* It came before: likewise. */
    /* From here on: drop it. */
    LANT_REORDER_BUSY,  /* Another transfer has the buffer. */
    LANT_REORDER_FAR,   /* So far ahead that there is no room. */
    LANT_REORDER_WRONG, /* Its numbers do not fit. */
};

struct lant_reorder {
    bool owned;
    uint32_t slots;
    uint64_t owner; /* lant_operation_key. */
    uint32_t next, total, held;
    uint32_t ended_count; /* All there were; the last ones are in `ended`. */
    uint64_t ended[LANT_REORDER_ENDED];
    bool full[LANT_REORDER_MAX]; /* By the packet's number, modulo `slots`. */
    struct lant_packet packets[LANT_REORDER_MAX];
};

void lant_reorder_init(struct lant_reorder *reorder, uint32_t slots);
enum lant_reorder_verdict lant_reorder_put(struct lant_reorder *reorder,
                                           const struct lant_packet *packet);
/* The next one in order. False: it has not come yet. */
MUST_USE bool lant_reorder_next(struct lant_reorder *reorder, struct lant_packet *packet);

#endif
