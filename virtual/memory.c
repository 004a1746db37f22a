/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - all objects lie in the arena of the process's NIC.
 */
#include "virtual/world.h"

/* Taken without the lock of the NIC, and by the program's threads alone. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct arena *current;

void world_use_arena(struct arena *arena)
{
    pthread_mutex_init(&mutex, NULL);
    current = arena;
}

void world_hold_arena(void)
{
    pthread_mutex_lock(&mutex);
}

void world_let_arena(void)
{
    pthread_mutex_unlock(&mutex);
}

static void *take(size_t bytes)
{
    pthread_mutex_lock(&mutex);
    void *memory = current == NULL ? NULL : arena_take(current, bytes);
    pthread_mutex_unlock(&mutex);
    return memory;
}

/* A child of fork may give back what its parent took: that is of the parent's arena. */
static struct arena *arena_of(const void *memory)
{
    const uint64_t from = BOX_ARENA_ADDRESS(0), step = BOX_ARENA_ADDRESS(1) - from;
    const uint64_t address = (uintptr_t)memory;
    CHECK(address >= from && address < from + BOX_ARENAS_MAX * step);
    return (struct arena *)(uintptr_t)(from + (address - from) / step * step);
}

static void give(void *memory)
{
    if (memory != NULL) {
        pthread_mutex_lock(&mutex);
        arena_give(arena_of(memory), memory);
        pthread_mutex_unlock(&mutex);
    }
}

const struct live_arena *live_arena(void)
{
    static const struct live_arena arena = {.take = take, .give = give};
    return &arena;
}
