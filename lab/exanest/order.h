/* SPDX-License-Identifier: BSD-2-Clause
 *
 * order - do the packets of a block come in the order in which they left?
 *
 * Purpose    Looks at each packet of data that a receiver has taken: a send unit sends a block's
 *            packets by ascending address, and a network of single paths keeps that.
 * Limits     Nothing is seen of packets of different blocks.
 * Source     Xirouchakis 3.2.1 (single paths); EXA-63: in order on each path.
 */
#ifndef LAB_EXANEST_ORDER_H
#define LAB_EXANEST_ORDER_H

#include "wire/exanest.h"

/* The newest packet of a block that has come. */
struct exanest_order_block {
    uint16_t sequence;
    uint8_t line;
};

struct exanest_order {
    uint8_t size[3];                    /* QFDBs in x, y and z. */
    uint32_t senders;                   /* FPGAs. */
    struct exanest_order_block *blocks; /* By sender and TID. */
    uint64_t packets, late;
};

void exanest_order_open(struct exanest_order *order, const uint8_t size[3]);
void exanest_order_close(struct exanest_order *order);

void exanest_order_note(struct exanest_order *order, const struct exanest_header *header,
                        const struct exanest_footer *footer);

#endif
