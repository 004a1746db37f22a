/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Events that are near stand in a wheel of slots, by time, then by order of scheduling; those that
 * are far in a radix heap, from which they come into the wheel as it turns. An event of a network
 * is put in at the end of a slot and taken out at its beginning: both touch a line or two.
 */
#include "sim/kernel.h"

#define SLOT_MASK  (SIM_SLOTS - 1)
#define LINE_BYTES 64

void sim_init(struct sim *sim, uint64_t seed)
{
    *sim = (struct sim){.far = {.least_ps = UINT64_MAX}};
    prng_init(&sim->prng, seed);
    for (uint32_t i = 0; i < SIM_BUCKETS; i++) {
        list_init(&sim->far.buckets[i]);
    }
    for (uint32_t i = 0; i < SIM_SLOTS; i++) {
        list_init(&sim->slots[i]);
    }
}

static inline struct sim_event *event_of(struct list *node)
{
    return CONTAINER_OF(node, struct sim_event, node);
}

/* -- The heap -----------------------------------------------------------------------------------
 *
 * Time never goes back, so an event's bucket, the highest bit in which its time differs from the
 * floor, only ever falls: it moves at most once for each bit of its delay. */

static void heap_put(struct sim_heap *heap, struct sim_event *event)
{
    const uint64_t difference = event->at_ps ^ heap->floor_ps;
    if (event->at_ps < heap->least_ps) {
        heap->least_ps = event->at_ps;
    }
    if (difference == 0) {
        list_append(&heap->buckets[0], &event->node);
        return;
    }
    const int bit = 63 - __builtin_clzll(difference);
    heap->filled |= UINT64_C(1) << bit;
    list_append(&heap->buckets[bit + 1], &event->node);
}

static uint64_t earliest(const struct list *bucket)
{
    uint64_t earliest_ps = UINT64_MAX;
    for (const struct list *at = bucket->next; at != bucket; at = at->next) {
        const struct sim_event *event = CONTAINER_OF_CONST(at, struct sim_event, node);
        if (event->at_ps < earliest_ps) {
            earliest_ps = event->at_ps;
        }
    }
    return earliest_ps;
}

/* The lowest bucket above 0 that holds something; NULL if all are empty. */
static struct list *heap_lowest(struct sim_heap *heap)
{
    while (heap->filled != 0) {
        struct list *bucket = &heap->buckets[__builtin_ctzll(heap->filled) + 1];
        if (!list_empty(bucket)) {
            return bucket;
        }
        heap->filled &= heap->filled - 1; /* All events in the bucket were cancelled. */
    }
    return NULL;
}

/* The cancelled event may have been the earliest one. */
static uint64_t heap_least(struct sim_heap *heap)
{
    if (!list_empty(&heap->buckets[0])) {
        heap->least_ps = heap->floor_ps;
    } else {
        const struct list *bucket = heap_lowest(heap);
        heap->least_ps = bucket == NULL ? UINT64_MAX : earliest(bucket);
    }
    return heap->least_ps;
}

/* Brings the earliest events into bucket 0; there are some. */
static void heap_settle(struct sim_heap *heap)
{
    if (!list_empty(&heap->buckets[0])) {
        return;
    }
    struct list *bucket = heap_lowest(heap);
    struct list *node;
    heap->floor_ps = earliest(bucket);
    heap->filled &= heap->filled - 1;
    while ((node = list_pop(bucket)) != NULL) {
        heap_put(heap, event_of(node));
    }
}

/* -- The wheel ----------------------------------------------------------------------------------*/

static bool near(const struct sim *sim, uint64_t at_ps)
{
    return (at_ps >> SIM_SLOT_BITS) - (sim->now_ps >> SIM_SLOT_BITS) < SIM_SLOTS;
}

/* The event goes behind all events that are earlier, and behind those that were scheduled before it
 * for the same time: nearly always at the end. */
static void wheel_put(struct sim *sim, struct sim_event *event)
{
    const uint32_t slot = (uint32_t)(event->at_ps >> SIM_SLOT_BITS) & SLOT_MASK;
    struct list *head = &sim->slots[slot];
    struct list *before = head->previous;
    while (before != head) {
        const struct sim_event *other = CONTAINER_OF_CONST(before, struct sim_event, node);
        if (other->at_ps < event->at_ps ||
            (other->at_ps == event->at_ps && other->order < event->order)) {
            break;
        }
        before = before->previous;
    }
    list_append(before->next, &event->node); /* The event goes in front of the one that follows. */
    sim->filled[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* The first slot from the present one on that holds something; NULL: none does. */
static struct list *wheel_first(struct sim *sim)
{
    const uint32_t start = (uint32_t)(sim->now_ps >> SIM_SLOT_BITS) & SLOT_MASK;
    uint32_t word = start / 64;
    uint64_t bits = sim->filled[word] & UINT64_MAX << start % 64;
    for (uint32_t i = 0; i <= SIM_SLOTS / 64; i++) {
        while (bits != 0) {
            const uint32_t bit = (uint32_t)__builtin_ctzll(bits);
            struct list *head = &sim->slots[64 * word + bit];
            if (!list_empty(head)) {
                return head;
            }
            bits &= bits - 1;
            sim->filled[word] &= ~(UINT64_C(1) << bit);
        }
        word = (word + 1) % (SIM_SLOTS / 64);
        bits = sim->filled[word];
    }
    return NULL;
}

/* -- Both ---------------------------------------------------------------------------------------*/

void sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at_ps)
{
    CHECK(at_ps >= sim->now_ps);
    CHECK(!sim_event_scheduled(event));
    event->at_ps = at_ps;
    event->order = sim->scheduled++;
    if (LIKELY(near(sim, at_ps))) {
        wheel_put(sim, event);
    } else {
        heap_put(&sim->far, event);
    }
}

void sim_cancel(struct sim_event *event)
{
    list_remove(&event->node);
}

/* All events of the heap that the wheel reaches now move into the wheel. */
static void approach(struct sim *sim)
{
    while (heap_least(&sim->far) != UINT64_MAX && near(sim, sim->far.least_ps)) {
        heap_settle(&sim->far);
        struct list *node;
        while ((node = list_pop(&sim->far.buckets[0])) != NULL) {
            wheel_put(sim, event_of(node));
        }
    }
}

static void prefetch_owner(const struct list *node)
{
    const char *owner = (const char *)node;
    __builtin_prefetch(owner);
    __builtin_prefetch(owner + LINE_BYTES);
    __builtin_prefetch(owner + 2 * LINE_BYTES);
}

/* In a large world the owner of an event is never in the cache. So the lines of the next event, and
 * those around it, are asked for now; if it stands in the same slot, so are its hint and the event
 * behind it. */
static void prefetch_behind(struct sim *sim, const struct list *slot)
{
    const struct list *following = slot->next;
    if (following != slot) {
        prefetch_owner(following);
        __builtin_prefetch(following->next);
        __builtin_prefetch(CONTAINER_OF_CONST(following, struct sim_event, node)->hint);
        return;
    }
    const struct list *ahead = wheel_first(sim);
    if (ahead != NULL) {
        prefetch_owner(ahead->next);
    }
}

/* Takes the next event if it is due by `until_ps`, and sets the time to that of the event. NULL:
 * there is none. */
static struct sim_event *next(struct sim *sim, uint64_t until_ps)
{
    struct list *slot = wheel_first(sim);
    if (UNLIKELY(slot == NULL || event_of(slot->next)->at_ps >= sim->far.least_ps)) {
        /* An event of the heap may be as early: if it comes first, it sets the time. */
        const uint64_t least_ps = heap_least(&sim->far);
        const uint64_t near_ps = slot == NULL ? UINT64_MAX : event_of(slot->next)->at_ps;
        const uint64_t at_ps = least_ps < near_ps ? least_ps : near_ps;
        if (at_ps > until_ps || (slot == NULL && least_ps == UINT64_MAX)) {
            return NULL;
        }
        sim->now_ps = at_ps;
        approach(sim);
        slot = wheel_first(sim);
    }
    struct sim_event *event = event_of(slot->next);
    if (event->at_ps > until_ps) {
        return NULL;
    }
    list_remove(&event->node);
    sim->now_ps = event->at_ps;
    prefetch_behind(sim, slot);
    return event;
}

uint64_t sim_next_ps(struct sim *sim)
{
    const struct list *slot = wheel_first(sim);
    const uint64_t near_ps = slot == NULL ? UINT64_MAX : event_of(slot->next)->at_ps;
    if (near_ps < sim->far.least_ps) {
        return near_ps;
    }
    const uint64_t far_ps = heap_least(&sim->far);
    return far_ps < near_ps ? far_ps : near_ps;
}

static void run(struct sim *sim, struct sim_event *event)
{
    sim->events++;
    event->act(sim, event);
}

bool sim_step(struct sim *sim)
{
    struct sim_event *event = next(sim, UINT64_MAX);
    if (event == NULL) {
        return false;
    }
    run(sim, event);
    return true;
}

void sim_run_until(struct sim *sim, uint64_t until_ps)
{
    CHECK(until_ps >= sim->now_ps);
    struct sim_event *event;
    while ((event = next(sim, until_ps)) != NULL) {
        run(sim, event);
    }
    sim->now_ps = until_ps;
}
