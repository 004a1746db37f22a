/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/timer_heap.h"

#include "base/check.h"

/* Places are counted from 1, so that the children of place i are 2i and 2i + 1. */
static struct timer_node *node_at(const struct timer_heap *heap, uint32_t place)
{
    return heap->nodes[place - 1];
}

static void put(struct timer_heap *heap, uint32_t place, struct timer_node *node)
{
    heap->nodes[place - 1] = node;
    node->index = place;
}

void timer_heap_init(struct timer_heap *heap, struct timer_node **nodes, uint32_t capacity)
{
    CHECK(capacity <= 1u << 30);
    *heap = (struct timer_heap){.nodes = nodes, .capacity = capacity};
}

/* `place` is free: finds where, from there towards the top, `node` belongs, and puts it there. */
static void rise(struct timer_heap *heap, uint32_t place, struct timer_node *node)
{
    while (place > 1 && instant_before(node->at, node_at(heap, place / 2)->at)) {
        put(heap, place, node_at(heap, place / 2));
        place /= 2;
    }
    put(heap, place, node);
}

/* Likewise towards the bottom. */
static void sink(struct timer_heap *heap, uint32_t place, struct timer_node *node)
{
    for (;;) {
        uint32_t child = 2 * place;
        if (child > heap->count) {
            break;
        }
        if (child < heap->count &&
            instant_before(node_at(heap, child + 1)->at, node_at(heap, child)->at)) {
            child++;
        }
        if (!instant_before(node_at(heap, child)->at, node->at)) {
            break;
        }
        put(heap, place, node_at(heap, child));
        place = child;
    }
    put(heap, place, node);
}

/* Only one of the two ways can be open: below `place` everything is later than above it. */
static void settle(struct timer_heap *heap, uint32_t place, struct timer_node *node)
{
    if (place > 1 && instant_before(node->at, node_at(heap, place / 2)->at)) {
        rise(heap, place, node);
    } else {
        sink(heap, place, node);
    }
}

void timer_heap_set(struct timer_heap *heap, struct timer_node *node, struct instant at)
{
    node->at = at;
    if (!timer_is_set(node)) {
        CHECK(heap->count < heap->capacity);
        heap->count++;
        rise(heap, heap->count, node);
        return;
    }
    CHECK(node->index <= heap->count);
    CHECK(node_at(heap, node->index) == node);
    settle(heap, node->index, node);
}

void timer_heap_remove(struct timer_heap *heap, struct timer_node *node)
{
    if (!timer_is_set(node)) {
        return;
    }
    const uint32_t place = node->index;
    CHECK(place <= heap->count);
    CHECK(node_at(heap, place) == node);
    struct timer_node *last = node_at(heap, heap->count);
    node->index = 0;
    heap->count--;
    if (last != node) {
        settle(heap, place, last);
    }
}
