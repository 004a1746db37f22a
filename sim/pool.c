/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/pool.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/align.h"

#define PAGE_BYTES      UINT64_C(4096)
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

void sim_pool_open(struct sim_pool *pool, uint32_t count, size_t bytes)
{
    /* An odd number of lines, so that objects do not all fall into the same sets of a cache. */
    const size_t lines = line_aligned(bytes) / CACHE_LINE_BYTES | 1;
    *pool = (struct sim_pool){.count = count, .bytes = lines * CACHE_LINE_BYTES};
    const size_t all = count * pool->bytes;
    const size_t unit = all < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES;
    const size_t pages = round_up(all, unit);
    pool->mapped = pages;
    pool->memory = mmap(NULL, pages, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pool->back = calloc(count, sizeof(pool->back[0]));
    CHECK(pool->memory != MAP_FAILED && pool->back != NULL);
    /* With huge pages a large pool takes fewer pages than a TLB has entries. */
    if (all >= HUGE_PAGE_BYTES) {
        (void)madvise(pool->memory, pages, MADV_HUGEPAGE);
    }
}

void sim_pool_close(struct sim_pool *pool)
{
    free(pool->back);
    (void)munmap(pool->memory, pool->mapped);
    *pool = (struct sim_pool){.memory = NULL};
}
