/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/pool.h"

#include "base/check.h"

void pool_init(struct pool *pool, size_t unit, void *memory, size_t bytes)
{
    CHECK(unit != 0 && unit % sizeof(struct pool_piece) == 0);
    *pool = (struct pool){.unit = unit, .fresh = memory, .fresh_bytes = bytes};
}

static void *take(struct pool *pool, uint32_t order)
{
    const size_t bytes = pool->unit << order;
    struct pool_piece *piece = pool->free[order];
    if (piece != NULL) {
        pool->free[order] = piece->next;
        return piece;
    }
    if (pool->fresh_bytes < bytes) {
        return NULL;
    }
    void *fresh = pool->fresh;
    pool->fresh += bytes;
    pool->fresh_bytes -= bytes;
    return fresh;
}

void *pool_take(struct pool *pool, uint32_t order)
{
    CHECK(order < POOL_ORDERS);
    void *piece = take(pool, order);
    /* So tests find a user that relies on zeroes, or on bytes that it left there. */
    INVARIANTS(piece == NULL ? NULL : __builtin_memset(piece, 0xa5, pool->unit << order));
    return piece;
}

void pool_give(struct pool *pool, uint32_t order, void *memory)
{
    struct pool_piece *piece = memory;
    piece->next = pool->free[order];
    pool->free[order] = piece;
}
