/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pool - memory that the queue pairs of a NIC take when they need it, and give back.
 *
 * Purpose    Few connections need all that a connection may need. A NIC has room for as many as
 *            its limits say, in memory that it got when it was made, and allocates nothing later.
 * Inputs     pool_take, pool_give.
 * Outputs    Pieces of memory that are not zeroed.
 * Ownership  The caller's memory, which is not touched before it is taken.
 * Units      Bytes; a piece of order n has `unit` << n of them.
 * Limits     POOL_ORDERS orders. A piece keeps its order: it is not split, nor joined.
 * Source     docs/decisions/0051.
 */
#ifndef NIC_POOL_H
#define NIC_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_ORDERS 8

struct pool_piece {
    struct pool_piece *next;
};

struct pool {
    size_t unit;
    uint8_t *fresh;                       /* From here on nothing was ever taken. */
    size_t fresh_bytes;                   /* The rest, from there on. */
    struct pool_piece *free[POOL_ORDERS]; /* The newest first: it is in a cache. */
};

/* `unit`: a multiple of 8. */
void pool_init(struct pool *pool, size_t unit, void *memory, size_t bytes);
/* NULL: there is none left. */
void *pool_take(struct pool *pool, uint32_t order);
void pool_give(struct pool *pool, uint32_t order, void *piece);

#endif
