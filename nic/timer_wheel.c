/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/timer_wheel.h"

#include "base/check.h"

#define TICK_BITS 12
#define TICK_MASK ((UINT64_C(1) << TICK_BITS) - 1)
#define SLOT_BITS 6
#define DUE       (TIMER_LEVELS * TIMER_SLOTS)

/* Later than this is as good as never: the wheel's levels end here. */
#define LAST_TICK ((UINT64_C(1) << (SLOT_BITS * TIMER_LEVELS - 2)) - 1)

_Static_assert(SLOT_BITS *TIMER_LEVELS - 2 <= 64 - TICK_BITS, "a tick's number has room");

void timer_wheel_init(struct timer_wheel *wheel, struct timer_link *links, uint32_t capacity)
{
    *wheel = (struct timer_wheel){.links = links, .capacity = capacity};
    for (uint32_t i = 0; i <= DUE; i++) {
        wheel->first[i] = TIMER_NONE;
    }
}

void timer_wheel_check(const struct timer_wheel *wheel)
{
    CHECK(wheel->levels >> TIMER_LEVELS == 0);
    for (uint32_t level = 0; level < TIMER_LEVELS; level++) {
        const uint64_t occupied = wheel->occupied[level];
        CHECK((wheel->levels >> level & 1) == (occupied != 0));
        if (occupied != 0) {
            /* Above the lowest level, the slot that `base` stands in was emptied. */
            const uint32_t turned = wheel->base >> (level * SLOT_BITS) & (TIMER_SLOTS - 1);
            const uint32_t lowest = (uint32_t)__builtin_ctzll(occupied);
            CHECK(level == 0 ? lowest >= turned : lowest > turned);
        }
    }
}

/* Checks one slot: its bit in `occupied` says whether it has nodes, and its first node begins the
 * list. */
static void check_slot(const struct timer_wheel *wheel, uint32_t slot)
{
    const uint32_t first = wheel->first[slot];
    CHECK((wheel->occupied[slot / TIMER_SLOTS] >> slot % TIMER_SLOTS & 1) == (first != TIMER_NONE));
    CHECK(first == TIMER_NONE || wheel->links[first].previous == TIMER_NONE);
}

static void push(struct timer_wheel *wheel, uint32_t list, uint32_t id)
{
    const uint32_t next = wheel->first[list];
    wheel->links[id] = (struct timer_link){.previous = TIMER_NONE, .next = next};
    if (next != TIMER_NONE) {
        wheel->links[next].previous = id;
    }
    wheel->first[list] = id;
}

/* The slot of a tick not before `base`: on the level of the highest digit in which they differ, so
 * that all ticks on a lower level come before those on a higher one. */
static uint32_t slot_of(const struct timer_wheel *wheel, uint64_t tick)
{
    const uint64_t difference = tick ^ wheel->base;
    const uint32_t level =
        difference == 0 ? 0 : (63u - (uint32_t)__builtin_clzll(difference)) / SLOT_BITS;
    return level * TIMER_SLOTS + (uint32_t)(tick >> (level * SLOT_BITS) & (TIMER_SLOTS - 1));
}

void timer_wheel_set(struct timer_wheel *wheel, uint32_t id, struct timer_node *node,
                     struct instant at)
{
    INVARIANTS(timer_wheel_check(wheel));
    CHECK(id < wheel->capacity);
    timer_wheel_remove(wheel, id, node);
    uint64_t tick = (at.ns >> TICK_BITS) + ((at.ns & TICK_MASK) != 0);
    tick = tick < wheel->base ? wheel->base : tick;
    tick = tick > LAST_TICK ? LAST_TICK : tick;
    const uint32_t slot = slot_of(wheel, tick);
    push(wheel, slot, id);
    wheel->occupied[slot / TIMER_SLOTS] |= UINT64_C(1) << slot % TIMER_SLOTS;
    wheel->levels |= 1u << slot / TIMER_SLOTS;
    node->at = at;
    node->list = slot + 1;
    INVARIANTS(check_slot(wheel, slot));
    INVARIANTS(timer_wheel_check(wheel));
}

/* The last node has left a slot. */
static void empty(struct timer_wheel *wheel, uint32_t slot)
{
    const uint32_t level = slot / TIMER_SLOTS;
    wheel->occupied[level] &= ~(UINT64_C(1) << slot % TIMER_SLOTS);
    if (wheel->occupied[level] == 0) {
        wheel->levels &= ~(1u << level);
    }
}

/* A node on the due list still names its slot, so the due list is known by its first node. */
void timer_wheel_remove(struct timer_wheel *wheel, uint32_t id, struct timer_node *node)
{
    if (!timer_is_set(node)) {
        return;
    }
    const struct timer_link link = wheel->links[id];
    const uint32_t slot = node->list - 1;
    node->list = 0;
    if (link.next != TIMER_NONE) {
        wheel->links[link.next].previous = link.previous;
    }
    if (link.previous != TIMER_NONE) {
        wheel->links[link.previous].next = link.next;
    } else if (wheel->first[DUE] == id) {
        wheel->first[DUE] = link.next;
    } else {
        CHECK(wheel->first[slot] == id);
        wheel->first[slot] = link.next;
        if (link.next == TIMER_NONE) {
            empty(wheel, slot);
        }
    }
    INVARIANTS(check_slot(wheel, slot));
    INVARIANTS(timer_wheel_check(wheel));
}

/* The earliest slot with nodes and the tick it begins at; false if there is none. */
static bool earliest(const struct timer_wheel *wheel, uint32_t *slot, uint64_t *tick)
{
    if (wheel->levels == 0) {
        return false;
    }
    const uint32_t level = (uint32_t)__builtin_ctz(wheel->levels);
    const uint32_t place = (uint32_t)__builtin_ctzll(wheel->occupied[level]);
    const uint32_t shift = level * SLOT_BITS;
    *slot = level * TIMER_SLOTS + place;
    *tick = (wheel->base >> shift >> SLOT_BITS << SLOT_BITS | place) << shift;
    return true;
}

uint32_t timer_wheel_due(struct timer_wheel *wheel, struct instant now)
{
    INVARIANTS(timer_wheel_check(wheel));
    if (wheel->first[DUE] != TIMER_NONE) {
        return wheel->first[DUE];
    }
    const uint64_t present = now.ns >> TICK_BITS;
    uint32_t slot;
    uint64_t tick;
    if (!earliest(wheel, &slot, &tick) || tick > present) {
        wheel->base = present > wheel->base ? present : wheel->base;
        return TIMER_NONE;
    }
    wheel->base = tick > wheel->base ? tick : wheel->base;
    wheel->first[DUE] = wheel->first[slot];
    wheel->first[slot] = TIMER_NONE;
    empty(wheel, slot);
    INVARIANTS(timer_wheel_check(wheel));
    return wheel->first[DUE];
}

struct instant timer_wheel_deadline(const struct timer_wheel *wheel)
{
    uint32_t slot;
    uint64_t tick;
    if (wheel->first[DUE] != TIMER_NONE) {
        return (struct instant){0};
    }
    return earliest(wheel, &slot, &tick) ? (struct instant){tick << TICK_BITS} : INSTANT_NEVER;
}
