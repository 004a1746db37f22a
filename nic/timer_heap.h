/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timer_heap - which of many deadlines comes first: a binary heap of nodes embedded in objects.
 *
 * Purpose    Keeps one deadline per object, and finds the earliest.
 * Inputs     timer_heap_set, timer_heap_remove.
 * Outputs    timer_heap_first.
 * Ownership  The caller owns the nodes and the array, and keeps both in place.
 * Threads    One caller at a time.
 * Time       An instant per node; nothing here knows what time it is.
 * Units      Nanoseconds.
 * Limits     `capacity` nodes at once.
 * Source     None: the textbook heap. Nodes of equal deadlines come in an order that depends on the
 *            calls alone, so a run repeats.
 */
#ifndef NIC_TIMER_HEAP_H
#define NIC_TIMER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/instant.h"

/* Zeroed memory is a node that is not set. */
struct timer_node {
    struct instant at;
    uint32_t index; /* Its place in the heap, counted from 1; 0: not set. */
};

struct timer_heap {
    struct timer_node **nodes;
    uint32_t count;
    uint32_t capacity;
};

void timer_heap_init(struct timer_heap *heap, struct timer_node **nodes, uint32_t capacity);

static inline bool timer_is_set(const struct timer_node *node)
{
    return node->index != 0;
}

/* Sets the node's deadline, or moves it. O(log n). */
void timer_heap_set(struct timer_heap *heap, struct timer_node *node, struct instant at);

/* Does nothing to a node that is not set. O(log n). */
void timer_heap_remove(struct timer_heap *heap, struct timer_node *node);

/* The node with the earliest deadline; NULL if none is set. */
static inline struct timer_node *timer_heap_first(const struct timer_heap *heap)
{
    return heap->count == 0 ? NULL : heap->nodes[0];
}

#endif
