/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The first node is always one with the earliest deadline of all that are set, whatever was
 *         set, moved and removed before; nodes come out in the order of their deadlines.
 * Method  Random calls, many with equal deadlines, beside a model that searches a list. After each
 *         the whole heap is looked at: no node is earlier than its parent, each knows its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "nic/timer_heap.h"

enum {
    NODES = 40,
    STEPS = 300,
    SEEDS = 2000
};

struct world {
    struct prng prng;
    struct timer_heap heap;
    struct timer_node *places[NODES];
    struct timer_node nodes[NODES];
    bool set[NODES]; /* The model. */
    uint64_t at[NODES];
    uint32_t count;
    uint32_t capacity;
};

static struct {
    uint32_t inserted, moved_earlier, moved_later, removed, idle_removed, full;
} seen;

static void check_heap(const struct world *world)
{
    const struct timer_heap *heap = &world->heap;
    assert_int_equal(heap->count, world->count);
    for (uint32_t place = 1; place <= heap->count; place++) {
        const struct timer_node *node = heap->nodes[place - 1];
        assert_int_equal(node->index, place);
        if (place > 1) {
            assert_true(heap->nodes[place / 2 - 1]->at.ns <= node->at.ns);
        }
    }
    uint64_t earliest = UINT64_MAX;
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(timer_is_set(&world->nodes[i]), world->set[i]);
        if (world->set[i]) {
            assert_int_equal(world->nodes[i].at.ns, world->at[i]);
            earliest = world->at[i] < earliest ? world->at[i] : earliest;
        }
    }
    const struct timer_node *first = timer_heap_first(heap);
    if (world->count == 0) {
        assert_null(first);
        return;
    }
    assert_non_null(first);
    assert_int_equal(first->at.ns, earliest);
    assert_true(world->set[first - world->nodes]);
}

static void set(struct world *world, uint64_t i)
{
    /* Few different values, so that many are equal; now and then the ends of time. */
    static const uint64_t ends[] = {0, UINT64_MAX - 1, UINT64_MAX};
    const uint64_t at = prng_below(&world->prng, 10) == 0
                            ? ends[prng_below(&world->prng, COUNT_OF(ends))]
                            : prng_below(&world->prng, 30);
    if (!world->set[i] && world->count == world->capacity) {
        seen.full++;
        return;
    }
    seen.inserted += !world->set[i];
    seen.moved_earlier += world->set[i] && at < world->at[i];
    seen.moved_later += world->set[i] && at > world->at[i];
    world->count += !world->set[i];
    timer_heap_set(&world->heap, &world->nodes[i], (struct instant){at});
    world->set[i] = true;
    world->at[i] = at;
}

static void take_away(struct world *world, uint64_t i)
{
    timer_heap_remove(&world->heap, &world->nodes[i]);
    seen.removed += world->set[i];
    seen.idle_removed += !world->set[i];
    world->count -= world->set[i];
    world->set[i] = false;
}

static void drain(struct world *world)
{
    struct timer_node *first;
    uint64_t last = 0;
    while ((first = timer_heap_first(&world->heap)) != NULL) {
        assert_true(first->at.ns >= last);
        last = first->at.ns;
        take_away(world, (uint64_t)(first - world->nodes));
        check_heap(world);
    }
    assert_int_equal(world->count, 0);
}

static void test_against_model(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(&world, 0, sizeof(world));
        prng_init(&world.prng, seed);
        world.capacity = 1 + (uint32_t)prng_below(&world.prng, NODES);
        timer_heap_init(&world.heap, world.places, world.capacity);
        check_heap(&world);
        for (int i = 0; i < STEPS; i++) {
            const uint64_t node = prng_below(&world.prng, NODES);
            if (prng_below(&world.prng, 3) != 0) {
                set(&world, node);
            } else {
                take_away(&world, node);
            }
            check_heap(&world);
        }
        drain(&world);
    }
    assert_true(seen.inserted > 10000 && seen.removed > 10000);
    assert_true(seen.moved_earlier > 10000 && seen.moved_later > 10000);
    assert_true(seen.idle_removed > 1000 && seen.full > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
