/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/hostile_memory.h"

#include <string.h>

#include "base/check.h"

#define PLANS_MAX  64
#define RANGES_MAX 8192
#define RANGES_OWN 16 /* For hostile_note. */

static struct {
    uint8_t *memory;
    size_t bytes;
    uint32_t reads; /* So far. */
    uint32_t changes;
    struct plan {
        size_t offset;
        uint32_t at; /* The number of reads before the change. */
        uint8_t bytes[HOSTILE_WRITE_BYTES_MAX];
        uint8_t count;
    } plans[PLANS_MAX];
    uint32_t plan_count;
    struct range {
        size_t offset, bytes;
    } ranges[RANGES_MAX]; /* Not zero any more. */
    uint32_t range_count;
    size_t counted;
    uint8_t counts[HOSTILE_COUNTED_BYTES_MAX];
} hostile;

void hostile_begin(void *memory, size_t bytes)
{
    hostile.memory = memory;
    hostile.bytes = bytes;
    hostile.reads = hostile.changes = hostile.plan_count = hostile.range_count = 0;
    hostile_count(bytes);
}

void hostile_end(void)
{
    for (uint32_t i = 0; i < hostile.range_count; i++) {
        memset(hostile.memory + hostile.ranges[i].offset, 0, hostile.ranges[i].bytes);
    }
    hostile.bytes = 0;
}

void hostile_note(size_t offset, size_t bytes)
{
    CHECK(offset <= hostile.bytes && bytes <= hostile.bytes - offset);
    CHECK(hostile.range_count < RANGES_MAX);
    hostile.ranges[hostile.range_count++] = (struct range){offset, bytes};
}

void hostile_write(size_t offset, const void *from, size_t bytes)
{
    if (offset >= hostile.bytes || hostile.range_count >= RANGES_MAX - RANGES_OWN) {
        return;
    }
    const size_t room = hostile.bytes - offset;
    const size_t count = bytes < room ? bytes : room;
    hostile_note(offset, count);
    memcpy(hostile.memory + offset, from, count);
}

void hostile_plan(size_t offset, uint32_t reads, struct input *input)
{
    struct plan plan = {.offset = offset, .at = hostile.reads + reads};
    plan.count = (uint8_t)(1 + take(input) % HOSTILE_WRITE_BYTES_MAX);
    for (uint32_t i = 0; i < plan.count; i++) {
        plan.bytes[i] = take(input);
    }
    if (hostile.plan_count < PLANS_MAX) {
        hostile.plans[hostile.plan_count++] = plan;
    }
}

void hostile_count(size_t offset)
{
    hostile.counted = offset;
    memset(hostile.counts, 0, sizeof(hostile.counts));
}

uint32_t hostile_reads_of(size_t offset)
{
    CHECK(offset >= hostile.counted && offset - hostile.counted < HOSTILE_COUNTED_BYTES_MAX);
    return hostile.counts[offset - hostile.counted];
}

uint32_t hostile_changes(void)
{
    return hostile.changes;
}

/* -- Reads --------------------------------------------------------------------------------------*/

static size_t offset_of(const void *at)
{
    return (uintptr_t)at - (uintptr_t)hostile.memory;
}

static void count(size_t offset, size_t bytes)
{
    for (size_t i = offset; i < offset + bytes; i++) {
        if (i >= hostile.counted && i - hostile.counted < HOSTILE_COUNTED_BYTES_MAX &&
            hostile.counts[i - hostile.counted] < UINT8_MAX) {
            hostile.counts[i - hostile.counted]++;
        }
    }
}

/* Writes the changes that are due, before the read. */
static void strike(void)
{
    hostile.reads++;
    for (uint32_t i = 0; i < hostile.plan_count; i++) {
        struct plan *plan = &hostile.plans[i];
        if (plan->count > 0 && plan->at <= hostile.reads) {
            hostile_write(plan->offset, plan->bytes, plan->count);
            plan->count = 0;
            hostile.changes++;
        }
    }
}

static void on_load(const void *at, size_t bytes)
{
    const size_t offset = offset_of(at);
    if (UNLIKELY(offset < hostile.bytes)) {
        count(offset, bytes);
        strike();
    }
}

/* The names that the compiler calls. */
void __sanitizer_cov_load1(const void *at);
void __sanitizer_cov_load2(const void *at);
void __sanitizer_cov_load4(const void *at);
void __sanitizer_cov_load8(const void *at);
void __sanitizer_cov_load16(const void *at);
void *__real___asan_memcpy(void *to, const void *from, size_t bytes);
void *__wrap___asan_memcpy(void *to, const void *from, size_t bytes);

void __sanitizer_cov_load1(const void *at)
{
    on_load(at, 1);
}

void __sanitizer_cov_load2(const void *at)
{
    on_load(at, 2);
}

void __sanitizer_cov_load4(const void *at)
{
    on_load(at, 4);
}

void __sanitizer_cov_load8(const void *at)
{
    on_load(at, 8);
}

void __sanitizer_cov_load16(const void *at)
{
    on_load(at, 16);
}

/* A copy is not one read: the other process may be in the middle of a change. */
void *__wrap___asan_memcpy(void *to, const void *from, size_t bytes)
{
    const size_t offset = offset_of(from);
    if (LIKELY(offset >= hostile.bytes) || bytes == 0) {
        return __real___asan_memcpy(to, from, bytes);
    }
    const size_t half = bytes / 2;
    count(offset, bytes);
    strike();
    __real___asan_memcpy(to, from, half);
    strike();
    __real___asan_memcpy((uint8_t *)to + half, (const uint8_t *)from + half, bytes - half);
    return to;
}
