/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Receives come out whole, in the order they were posted or, of a pool, the newest first,
 *         also when the queue is resized meanwhile; a queue never holds more than its limit, nor
 *         writes outside the memory it asked for.
 * Method  Random posts, drops and new sizes, beside a model that never wraps: an array of every
 *         receive ever posted, or of those that a pool holds. The memory is exactly
 *         receive_queue_bytes long and guarded by the sanitizer. Positions start shortly before
 *         they wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "nic/receive_queue.h"

enum {
    STEPS = 200,
    SEEDS = 2000,
    LIMIT_MAX = 20
};

struct posted {
    uint64_t wr_id, bytes;
    uint32_t sge_count;
    struct sge sges[NIC_SGE_MAX];
};

struct world {
    struct prng prng;
    struct receive_queue queue;
    void *memory;
    uint32_t limit, sge_max;
    struct posted all[STEPS];
    uint32_t posted, dropped;
};

static struct {
    uint32_t posted[STATUS_DENIED + 1], empty, dropped, dropped_newest, saturated;
    uint32_t grown, shrunk, full_after_resize;
} seen;

static uint32_t draw(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

static void post(struct world *world)
{
    struct posted request = {.wr_id = prng_next(&world->prng)};
    const uint32_t asked = draw(world, world->sge_max + 2);
    request.sge_count = asked;
    if (asked <= NIC_SGE_MAX) {
        for (uint32_t i = 0; i < asked; i++) {
            request.sges[i].address = prng_next(&world->prng);
            request.sges[i].key = (uint32_t)prng_next(&world->prng);
            request.sges[i].bytes =
                draw(world, 4) == 0 ? (uint32_t)prng_next(&world->prng) : draw(world, 1000);
            request.bytes += request.sges[i].bytes;
        }
    }
    enum status expected = STATUS_OK;
    if (asked > world->sge_max) {
        expected = STATUS_INVALID;
    } else if (world->posted - world->dropped == world->limit) {
        expected = STATUS_FULL;
    }
    assert_int_equal(
        receive_queue_post(&world->queue, request.wr_id, asked == 0 ? NULL : request.sges, asked),
        expected);
    seen.posted[expected]++;
    if (expected == STATUS_OK) {
        world->all[world->posted++] = request;
        seen.saturated += request.bytes > UINT32_MAX;
    }
}

static void drop(struct world *world)
{
    receive_queue_drop(&world->queue);
    if (world->queue.newest_first) {
        world->posted--;
        seen.dropped_newest++;
    } else {
        world->dropped++;
        seen.dropped++;
    }
}

static void check_first(const struct world *world)
{
    const struct receive *first = receive_queue_first(&world->queue);
    if (world->posted == world->dropped) {
        assert_null(first);
        seen.empty++;
        return;
    }
    const bool newest = world->queue.newest_first;
    const struct posted *expected = &world->all[newest ? world->posted - 1 : world->dropped];
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % _Alignof(struct receive), 0);
    assert_int_equal(first->wr_id, expected->wr_id);
    assert_int_equal(first->bytes, expected->bytes > UINT32_MAX ? UINT32_MAX : expected->bytes);
    assert_int_equal(first->sge_count, expected->sge_count);
    for (uint32_t i = 0; i < expected->sge_count; i++) {
        assert_int_equal(first->sges[i].address, expected->sges[i].address);
        assert_int_equal(first->sges[i].bytes, expected->sges[i].bytes);
        assert_int_equal(first->sges[i].key, expected->sges[i].key);
    }
}

/* To any size that holds what is posted. */
static void resize(struct world *world)
{
    const uint32_t least = world->posted == world->dropped ? 1 : world->posted - world->dropped;
    const uint32_t limit = draw(world, 3) == 0 ? least : least + draw(world, LIMIT_MAX);
    void *memory = malloc(receive_queue_bytes(limit, world->sge_max));
    assert_non_null(memory);
    assert_ptr_equal(receive_queue_resize(&world->queue, limit, memory), world->memory);
    free(world->memory);
    seen.grown += limit > world->limit;
    seen.shrunk += limit < world->limit;
    seen.full_after_resize += limit == world->posted - world->dropped;
    world->memory = memory;
    world->limit = limit;
}

static void run(struct world *world)
{
    for (int i = 0; i < STEPS; i++) {
        if (draw(world, 40) == 0) {
            resize(world);
        } else if (draw(world, 5) < 3) {
            post(world);
        } else if (world->posted != world->dropped) {
            drop(world);
        }
        assert_int_equal(receive_queue_count(&world->queue), world->posted - world->dropped);
        check_first(world);
    }
}

static void test_against_model(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(&world, 0, sizeof(world));
        prng_init(&world.prng, seed);
        world.limit = 1 + draw(&world, LIMIT_MAX);
        world.sge_max = draw(&world, 4) == 0 ? draw(&world, NIC_SGE_MAX + 1) : draw(&world, 5);
        const size_t bytes = receive_queue_bytes(world.limit, world.sge_max);
        world.memory = malloc(bytes);
        assert_non_null(world.memory);
        memset(&world.queue, 0x55, sizeof(world.queue));
        receive_queue_init(&world.queue, world.limit, world.sge_max, world.memory);
        world.queue.head = world.queue.tail = UINT32_MAX - draw(&world, STEPS);
        world.queue.newest_first = draw(&world, 2) == 0;
        run(&world);
        free(world.memory);
    }
    assert_true(seen.posted[STATUS_OK] > 10000);
    assert_true(seen.posted[STATUS_FULL] > 10000 && seen.posted[STATUS_INVALID] > 10000);
    assert_true(seen.empty > 1000 && seen.dropped > 10000 && seen.saturated > 1000);
    assert_true(seen.dropped_newest > 10000);
    assert_true(seen.grown > 1000 && seen.shrunk > 1000 && seen.full_after_resize > 1000);
}

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(receive_queue_bytes(0, 4), 0);
    assert_int_equal(receive_queue_bytes(1, 0), 16);
    assert_int_equal(receive_queue_bytes(1, 1), 32);
    assert_int_equal(receive_queue_bytes(1, 3), 64);
    assert_int_equal(receive_queue_bytes(5, 4), 8 * 128);
    /* More than fits 32 bits, as a program may ask before it is refused. */
    assert_int_equal(receive_queue_bytes(1u << 31, 3), (uint64_t)64 << 31);
    assert_int_equal(receive_queue_bytes(UINT32_MAX, 1), (uint64_t)32 << 32);
}

/* A queue pair with a shared receive queue has a queue of its own that takes no receives. */
static void test_no_receives(void **state)
{
    (void)state;
    struct receive_queue queue;
    memset(&queue, 0x55, sizeof(queue));
    receive_queue_init(&queue, 0, NIC_SGE_MAX, NULL);
    assert_int_equal(receive_queue_count(&queue), 0);
    assert_null(receive_queue_first(&queue));
    assert_int_equal(receive_queue_post(&queue, 1, NULL, 0), STATUS_FULL);
    assert_null(receive_queue_first(&queue));
}

static void test_shared(void **state)
{
    (void)state;
    struct pd pd = {.users = 3};
    _Alignas(64) uint8_t memory[4 * 32];
    struct srq srq;
    assert_int_equal(receive_queue_bytes(3, 1), sizeof(memory));
    memset(&srq, 0x55, sizeof(srq));
    srq_init(&srq, &pd, 3, 1, memory);
    assert_ptr_equal(srq.pd, &pd);
    assert_int_equal(pd.users, 3);
    assert_int_equal(srq.limit_armed, 0);
    assert_int_equal(srq.users, 0);
    assert_int_equal(srq.events, 0);
    assert_true(list_empty(&srq.event_link));
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(receive_queue_post(&srq.queue, i, NULL, 0), STATUS_OK);
    }
    assert_int_equal(receive_queue_post(&srq.queue, 3, NULL, 0), STATUS_FULL);
    assert_int_equal(receive_queue_first(&srq.queue)->wr_id, 0);
}

/* Many receives are a pool, few are used in turn. */
static void test_pool(void **state)
{
    (void)state;
    static const uint32_t limits[] = {256, 257, 4095};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct pd pd = {.users = 3};
        struct srq srq;
        void *memory = aligned_alloc(64, receive_queue_bytes(limits[i], 1));
        assert_non_null(memory);
        srq_init(&srq, &pd, limits[i], 1, memory);
        assert_int_equal(receive_queue_post(&srq.queue, 1, NULL, 0), STATUS_OK);
        assert_int_equal(receive_queue_post(&srq.queue, 2, NULL, 0), STATUS_OK);
        assert_int_equal(receive_queue_first(&srq.queue)->wr_id, limits[i] > 256 ? 2 : 1);
        free(memory);
    }
}

static uint64_t take(struct srq *srq)
{
    const uint64_t wr_id = receive_queue_first(&srq->queue)->wr_id;
    receive_queue_drop(&srq->queue);
    return wr_id;
}

/* By growing a queue becomes a pool, and by shrinking it no longer is one: what is posted stays,
 * and is used in the new order. The limit stays armed. */
static void test_resized_across_the_pool(void **state)
{
    (void)state;
    struct pd pd = {.users = 3};
    struct srq srq;
    void *memory[3];
    static const uint32_t limits[COUNT_OF(memory)] = {4, 257, 256};
    for (size_t i = 0; i < COUNT_OF(memory); i++) {
        memory[i] = aligned_alloc(64, receive_queue_bytes(limits[i], 2));
        assert_non_null(memory[i]);
    }
    srq_init(&srq, &pd, limits[0], 2, memory[0]);
    srq.limit_armed = 2;
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(receive_queue_post(&srq.queue, i, NULL, 0), STATUS_OK);
    }
    assert_int_equal(take(&srq), 1);
    assert_ptr_equal(srq_resize(&srq, limits[1], memory[1]), memory[0]);
    free(memory[0]);
    assert_int_equal(receive_queue_post(&srq.queue, 5, NULL, 0), STATUS_OK);
    assert_int_equal(receive_queue_post(&srq.queue, 6, NULL, 0), STATUS_OK);
    assert_int_equal(take(&srq), 6);
    assert_ptr_equal(srq_resize(&srq, limits[2], memory[2]), memory[1]);
    free(memory[1]);
    assert_int_equal(receive_queue_count(&srq.queue), 4);
    for (uint64_t i = 2; i <= 5; i++) {
        assert_int_equal(take(&srq), i);
    }
    assert_null(receive_queue_first(&srq.queue));
    assert_int_equal(srq.limit_armed, 2);
    free(memory[2]);
}

static void test_who_may_resize(void **state)
{
    (void)state;
    struct pd pd = {.users = 3};
    _Alignas(64) uint8_t memory[4 * 16];
    struct srq srq;
    srq_init(&srq, &pd, 4, 0, memory);
    assert_int_equal(receive_queue_post(&srq.queue, 1, NULL, 0), STATUS_OK);
    assert_int_equal(receive_queue_post(&srq.queue, 2, NULL, 0), STATUS_OK);
    assert_true(srq_may_resize(&srq, 2, 0));
    assert_true(srq_may_resize(&srq, 1u << 20, 0));
    assert_false(srq_may_resize(&srq, 1, 0));
    assert_true(srq_may_resize(&srq, 3, 3));
    assert_false(srq_may_resize(&srq, 3, 4));
    assert_int_equal(take(&srq), 1);
    assert_int_equal(take(&srq), 2);
    assert_false(srq_may_resize(&srq, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_no_receives),    cmocka_unit_test(test_shared),
        cmocka_unit_test(test_pool),           cmocka_unit_test(test_resized_across_the_pool),
        cmocka_unit_test(test_who_may_resize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
