/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/timers.h"

static uint64_t deadline_at(const struct exanest_timers *timers, uint32_t i)
{
    return timers->deadline[timers->heap[i]];
}

static void put(struct exanest_timers *timers, uint32_t i, uint16_t tid)
{
    timers->heap[i] = tid;
    timers->place[tid] = (uint16_t)(i + 1);
}

static void swap(struct exanest_timers *timers, uint32_t i, uint32_t j)
{
    const uint16_t tid = timers->heap[i];
    put(timers, i, timers->heap[j]);
    put(timers, j, tid);
}

/* Moves the timer at `i` to its place, towards either end. */
static void settle(struct exanest_timers *timers, uint32_t i)
{
    while (i > 0 && deadline_at(timers, i) < deadline_at(timers, (i - 1) / 2)) {
        swap(timers, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child + 1 < timers->count &&
            deadline_at(timers, child + 1) < deadline_at(timers, child)) {
            child++;
        }
        if (child >= timers->count || deadline_at(timers, child) >= deadline_at(timers, i)) {
            return;
        }
        swap(timers, i, child);
        i = child;
    }
}

void exanest_timers_set(struct exanest_timers *timers, uint32_t tid, uint64_t deadline)
{
    CHECK(tid < EXANEST_TIDS);
    timers->deadline[tid] = deadline;
    if (timers->place[tid] == 0) {
        put(timers, timers->count++, (uint16_t)tid);
    }
    settle(timers, timers->place[tid] - 1u);
}

void exanest_timers_cancel(struct exanest_timers *timers, uint32_t tid)
{
    CHECK(tid < EXANEST_TIDS);
    if (timers->place[tid] == 0) {
        return;
    }
    const uint32_t i = timers->place[tid] - 1u;
    timers->place[tid] = 0;
    timers->count--;
    if (i != timers->count) {
        put(timers, i, timers->heap[timers->count]);
        settle(timers, i);
    }
}

void exanest_timers_check(const struct exanest_timers *timers)
{
    uint32_t running = 0;
    CHECK(timers->count <= EXANEST_TIDS);
    for (uint32_t i = 0; i < timers->count; i++) {
        CHECK(timers->place[timers->heap[i]] == i + 1);
        CHECK(i == 0 || deadline_at(timers, (i - 1) / 2) <= deadline_at(timers, i));
    }
    for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
        running += timers->place[tid] != 0;
    }
    CHECK(running == timers->count);
}
