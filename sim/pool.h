/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pool - objects of one size, taken and given back without allocation.
 *
 * The one that was given back last is taken first: it is the one the cache still knows. Objects
 * that were never needed cost no memory, nor does their place on the stack.
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

struct sim_pool {
    uint8_t *memory;
    void **back;    /* A stack of those that were given back. */
    uint32_t count; /* All there are; */
    uint32_t used;  /* those that were ever taken, which is the most at a time; */
    uint32_t depth; /* and those on the stack. */
    size_t bytes;   /* The size of an object, rounded up to a cache line. */
    size_t mapped;  /* The size of all objects together, in whole pages. */
};

/* Makes `count` zeroed objects; those that are never used cost no memory. Aborts without memory. */
void sim_pool_open(struct sim_pool *pool, uint32_t count, size_t bytes);
void sim_pool_close(struct sim_pool *pool);

/* NULL: all are taken. The object has the bytes that its last user left there. */
static inline void *sim_pool_take(struct sim_pool *pool)
{
    if (LIKELY(pool->depth > 0)) {
        return pool->back[--pool->depth];
    }
    return pool->used == pool->count ? NULL : pool->memory + pool->used++ * pool->bytes;
}

static inline void sim_pool_give(struct sim_pool *pool, void *object)
{
    CHECK(pool->depth < pool->used);
    pool->back[pool->depth++] = object;
}

/* The most memory that the pool takes: the objects, and the stack. */
static inline size_t sim_pool_bytes(const struct sim_pool *pool)
{
    return pool->mapped + pool->count * sizeof(pool->back[0]);
}

static inline uint32_t sim_pool_taken(const struct sim_pool *pool)
{
    return pool->used - pool->depth;
}

#endif
