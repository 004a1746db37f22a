/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timer_wheel - deadlines of many objects, at a cost that does not grow with their number.
 *
 * Purpose    Keeps one deadline per object; hands objects out when theirs may have come.
 * Inputs     timer_wheel_set, timer_wheel_remove.
 * Outputs    timer_wheel_due, timer_wheel_deadline.
 * Ownership  The caller owns the nodes (within the objects) and the links (one per object, in one
 *            array, so that moving a timer does not touch its neighbours' objects).
 * Time       An instant per node; the wheel turns when timer_wheel_due is told the time.
 * Units      Nanoseconds; a deadline is rounded up to a tick of 4,096 ns.
 * Limits     `capacity` objects.
 * Source     Varghese and Lauck's hierarchical wheel, but nothing cascades by itself: a node whose
 *            slot has come is handed out although its deadline may lie later within the slot, and
 *            the owner, whose deadline has usually moved on by then, sets it anew.
 */
#ifndef NIC_TIMER_WHEEL_H
#define NIC_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/instant.h"

#define TIMER_LEVELS 9u
#define TIMER_SLOTS  64u
#define TIMER_NONE   UINT32_MAX

/* Zeroed memory is a node that is not set. */
struct timer_node {
    struct instant at;
    uint32_t list; /* Where it is: 0: not set; else the slot, counted from 1, or the due list. */
};

struct timer_link {
    uint32_t previous, next; /* TIMER_NONE ends a list. */
};

struct timer_wheel {
    struct timer_link *links; /* By object. */
    uint32_t capacity;
    uint64_t base;                                  /* Tick up to which the wheel has turned. */
    uint32_t levels;                                /* Bit l: occupied[l] is not 0. */
    uint64_t occupied[TIMER_LEVELS];                /* Bit i: slot i has nodes. */
    uint32_t first[TIMER_LEVELS * TIMER_SLOTS + 1]; /* By slot; the last is the due list. */
};

void timer_wheel_init(struct timer_wheel *wheel, struct timer_link *links, uint32_t capacity);

static inline bool timer_is_set(const struct timer_node *node)
{
    return node->list != 0;
}

/* Sets the deadline of object `id`, whose node this is, or moves it. O(1). */
void timer_wheel_set(struct timer_wheel *wheel, uint32_t id, struct timer_node *node,
                     struct instant at);

/* Does nothing to a node that is not set. O(1). */
void timer_wheel_remove(struct timer_wheel *wheel, uint32_t id, struct timer_node *node);

/* An object whose deadline may have been reached at `now`, which does not go backwards; TIMER_NONE
 * if there is none. It stays until its node is removed or set anew, which has to be before the next
 * call. Every deadline that was reached a tick ago is handed out; one that was not reached may be,
 * and is to be set again. */
uint32_t timer_wheel_due(struct timer_wheel *wheel, struct instant now);

/* The bits of levels and slots agree, and the wheel has not turned past a deadline. */
void timer_wheel_check(const struct timer_wheel *wheel);

/* When to call timer_wheel_due: at most a tick behind the earliest deadline. */
struct instant timer_wheel_deadline(const struct timer_wheel *wheel);

#endif
