/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/pool.h"

#include <stdlib.h>

#define LINE_BYTES 64

void sim_pool_open(struct sim_pool *pool, uint32_t count, size_t bytes)
{
    /* An odd number of lines, so that objects do not all fall into the same sets of a cache. */
    const size_t lines = (bytes + LINE_BYTES - 1) / LINE_BYTES | 1;
    *pool = (struct sim_pool){.count = count, .left = count, .bytes = lines * LINE_BYTES};
    pool->memory = calloc(count, pool->bytes);
    pool->free = calloc(count, sizeof(pool->free[0]));
    CHECK(pool->memory != NULL && pool->free != NULL);
    for (uint32_t i = 0; i < count; i++) {
        pool->free[count - 1 - i] = pool->memory + i * pool->bytes;
    }
}

void sim_pool_close(struct sim_pool *pool)
{
    free(pool->free);
    free(pool->memory);
    *pool = (struct sim_pool){.memory = NULL};
}
