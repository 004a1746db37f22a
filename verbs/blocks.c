/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/blocks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/check.h"
#include "base/list.h"
#include "drivers/system/leaks.h"

#define CHUNK_BYTES ((size_t)2 << 20)
/* Larger ones are pages of their own. */
#define BLOCK_BYTES_MAX (CHUNK_BYTES / 8)
/* A program with this number of blocks of a size, or fewer, does not pay for a chunk. */
#define LONERS_MAX 32
#define SIZES_MAX  16

/* A block that is free holds the way to the next one. */
struct free_block {
    struct free_block *next;
};

/* At the start of its 2 MB. */
struct chunk {
    struct list node; /* In its size's list while it has room. */
    struct size *size;
    struct free_block *free;
    uint32_t used, fresh; /* Blocks in use; blocks that were ever. */
};

struct size {
    size_t bytes;
    uint32_t loners;
    struct list chunks; /* With room. */
};

static struct {
    pthread_mutex_t mutex;
    struct size sizes[SIZES_MAX];
    uint32_t count;
} blocks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint32_t room(const struct size *size)
{
    return (uint32_t)((CHUNK_BYTES - line_aligned(sizeof(struct chunk))) / size->bytes);
}

/* A block that is not in use is in the list of free ones, or was never in use; a chunk with room is
 * in its size's list. */
static void chunk_check(const struct chunk *chunk)
{
    CHECK(chunk->used <= chunk->fresh && chunk->fresh <= room(chunk->size));
    CHECK((chunk->free == NULL) == (chunk->used == chunk->fresh));
    CHECK(list_empty(&chunk->node) == (chunk->used == room(chunk->size)));
    list_check(&chunk->node);
}

static bool has_block(const struct chunk *chunk, const void *block)
{
    const size_t at = (size_t)((const uint8_t *)block - (const uint8_t *)chunk);
    const size_t in_blocks = at - line_aligned(sizeof(*chunk));
    return in_blocks % chunk->size->bytes == 0 && in_blocks / chunk->size->bytes < chunk->fresh;
}

static struct size *size_of(size_t bytes)
{
    CHECK(bytes == line_aligned(bytes) && bytes <= BLOCK_BYTES_MAX);
    for (uint32_t i = 0; i < blocks.count; i++) {
        if (blocks.sizes[i].bytes == bytes) {
            return &blocks.sizes[i];
        }
    }
    if (blocks.count == SIZES_MAX) {
        return NULL;
    }
    struct size *size = &blocks.sizes[blocks.count++];
    size->bytes = bytes;
    list_init(&size->chunks);
    return size;
}

/* 2 MB at a multiple of 2 MB. */
static void *map_chunk(void)
{
    uint8_t *memory = mmap(NULL, 2 * CHUNK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    const size_t before = -(uintptr_t)memory & (CHUNK_BYTES - 1);
    if (before != 0) {
        munmap(memory, before);
    }
    munmap(memory + before + CHUNK_BYTES, CHUNK_BYTES - before);
    madvise(memory + before, CHUNK_BYTES, MADV_HUGEPAGE);
    leaks_look_here(memory + before, CHUNK_BYTES);
    return memory + before;
}

static struct chunk *new_chunk(struct size *size)
{
    struct chunk *chunk = map_chunk();
    if (chunk != NULL) {
        CHECK(((uintptr_t)chunk & (CHUNK_BYTES - 1)) == 0); /* Its blocks find it by that. */
        chunk->size = size;
        list_init(&chunk->node);
        list_append(&size->chunks, &chunk->node);
    }
    return chunk;
}

static void *take_from_chunk(struct size *size)
{
    struct chunk *chunk = list_empty(&size->chunks)
                              ? new_chunk(size)
                              : CONTAINER_OF(size->chunks.next, struct chunk, node);
    if (chunk == NULL) {
        return NULL;
    }
    INVARIANTS(chunk_check(chunk));
    CHECK(chunk->size == size && chunk->used < room(size));
    void *block = chunk->free;
    if (block != NULL) {
        chunk->free = chunk->free->next;
        memset(block, 0, size->bytes);
    } else {
        block = (uint8_t *)chunk + line_aligned(sizeof(*chunk)) + chunk->fresh * size->bytes;
        chunk->fresh++;
    }
    chunk->used++;
    if (chunk->used == room(size)) {
        list_remove(&chunk->node);
    }
    INVARIANTS(chunk_check(chunk));
    INVARIANTS(CHECK(has_block(chunk, block)));
    return block;
}

static void give_to_chunk(struct chunk *chunk, void *block)
{
    struct size *size = chunk->size;
    struct free_block *freed = block;
    INVARIANTS(chunk_check(chunk));
    INVARIANTS(CHECK(has_block(chunk, block)));
    CHECK(chunk->used > 0);
    if (chunk->used == room(size)) {
        list_append(&size->chunks, &chunk->node);
    }
    freed->next = chunk->free;
    chunk->free = freed;
    chunk->used--;
    INVARIANTS(chunk_check(chunk));
    /* One stays, or a program at the border would map and unmap it for every block. */
    const bool alone = size->chunks.next == &chunk->node && size->chunks.previous == &chunk->node;
    if (chunk->used == 0 && !alone) {
        list_remove(&chunk->node);
        leaks_look_no_more(chunk, CHUNK_BYTES);
        munmap(chunk, CHUNK_BYTES);
    }
}

/* Is the next block of a size to be in a chunk? NULL: on the heap. */
static struct size *shared_size(size_t bytes)
{
    struct size *size = bytes <= BLOCK_BYTES_MAX ? size_of(bytes) : NULL;
    if (size == NULL || size->loners < LONERS_MAX) {
        if (size != NULL) {
            size->loners++;
        }
        return NULL;
    }
    return size;
}

static void *take_alone(size_t bytes)
{
    void *block = aligned_alloc(64, bytes);
    return block == NULL ? NULL : memset(block, 0, bytes);
}

/* It was not to be had after all. */
static void forget_loner(size_t bytes)
{
    pthread_mutex_lock(&blocks.mutex);
    struct size *size = bytes <= BLOCK_BYTES_MAX ? size_of(bytes) : NULL;
    if (size != NULL) {
        CHECK(size->loners > 0 && size->loners <= LONERS_MAX);
        size->loners--;
    }
    pthread_mutex_unlock(&blocks.mutex);
}

void *blocks_take(size_t bytes, bool *shared)
{
    bytes = line_aligned(bytes);
    pthread_mutex_lock(&blocks.mutex);
    struct size *size = shared_size(bytes);
    void *block = size == NULL ? NULL : take_from_chunk(size);
    pthread_mutex_unlock(&blocks.mutex);
    *shared = size != NULL;
    if (*shared) {
        return block;
    }
    block = take_alone(bytes);
    if (block == NULL) {
        forget_loner(bytes);
    }
    return block;
}

void blocks_give(void *block, size_t bytes, bool shared)
{
    if (block == NULL) {
        return;
    }
    if (shared) {
        pthread_mutex_lock(&blocks.mutex);
        give_to_chunk((struct chunk *)((uintptr_t)block & ~(CHUNK_BYTES - 1)), block);
        pthread_mutex_unlock(&blocks.mutex);
    } else {
        forget_loner(line_aligned(bytes));
        free(block);
    }
}

void blocks_in_child(void)
{
    pthread_mutex_init(&blocks.mutex, NULL);
}
