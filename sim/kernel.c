/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Events that are far stand in a radix heap, from which they come into a wheel of slots as it
 * turns. A slot of few events is kept in the order of time, by looking at the last few of them. A
 * slot of many events is not. When its turn has come it is opened into 64 parts, and a part into 64
 * lists of one time each. Every list keeps the order of scheduling among events of one time, and so
 * does what moves from one into another. That gives the order of time, then of scheduling, if an
 * event never comes in behind one that was scheduled later for the same time. Therefore an event
 * leaves the heap as soon as the wheel reaches its time, before another event can be scheduled
 * there. No event is put into a slot or a part that is opened, but only into the parts or lists
 * that were made of it.
 */
#include "sim/kernel.h"

#define SLOT_MASK  (SIM_SLOTS - 1)
#define PART_MASK  (SIM_PARTS - 1)
#define LINE_BYTES 64
#define NONE       UINT64_MAX
/* The number of slots that are fetched at a time. */
#define FETCHED 4u
/* The most events at the end of a slot that are looked at for the place of another one. */
#define LOOKS_MAX 8

static void parts_init(struct sim_parts *parts)
{
    parts->opened = NONE;
    for (uint32_t i = 0; i < SIM_PARTS; i++) {
        list_init(&parts->parts[i]);
    }
}

void sim_init(struct sim *sim, uint64_t seed)
{
    *sim = (struct sim){.far = {.least_ps = UINT64_MAX}};
    prng_init(&sim->prng, seed);
    parts_init(&sim->times);
    parts_init(&sim->slot);
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

/* -- Parts --------------------------------------------------------------------------------------*/

static void parts_put(struct sim_parts *parts, struct sim_event *event, int shift)
{
    const uint32_t part = (uint32_t)(event->at_ps >> shift) & PART_MASK;
    list_append(&parts->parts[part], &event->node);
    parts->filled |= UINT64_C(1) << part;
}

/* The first part that holds something; NULL: none does. */
static struct list *parts_first(struct sim_parts *parts)
{
    while (parts->filled != 0) {
        struct list *part = &parts->parts[__builtin_ctzll(parts->filled)];
        if (!list_empty(part)) {
            return part;
        }
        parts->filled &= parts->filled - 1; /* All events in it were cancelled. */
    }
    return NULL;
}

/* Makes parts of what a list holds; `parts` are empty. */
static void parts_open(struct sim_parts *parts, struct list *whole, uint64_t opened, int shift)
{
    struct list *node = whole->next;
    list_init(whole);
    parts->opened = opened;
    while (node != whole) {
        struct list *following = node->next;
        parts_put(parts, event_of(node), shift);
        node = following;
    }
}

/* Puts them together again. */
static void parts_close(struct sim_parts *parts, struct list *whole)
{
    struct list *part;
    parts->opened = NONE;
    while ((part = parts_first(parts)) != NULL) {
        struct list *node;
        while ((node = list_pop(part)) != NULL) {
            list_append(whole, node);
        }
    }
}

/* -- The wheel ----------------------------------------------------------------------------------*/

static bool near(const struct sim *sim, uint64_t at_ps)
{
    return (at_ps >> SIM_SLOT_BITS) - (sim->now_ps >> SIM_SLOT_BITS) < SIM_SLOTS;
}

static bool is_mixed(const struct sim *sim, uint32_t slot)
{
    return sim->mixed[slot / 64] >> slot % 64 & 1;
}

/* Puts an event into a slot: in the order of time as long as that is a matter of few looks, else at
 * the end. The events that are looked at are those scheduled last, which the caches still have. */
static void wheel_put(struct sim *sim, struct sim_event *event)
{
    const uint32_t slot = (uint32_t)(event->at_ps >> SIM_SLOT_BITS) & SLOT_MASK;
    struct list *head = &sim->slots[slot];
    struct list *before = head->previous;
    sim->filled[slot / 64] |= UINT64_C(1) << slot % 64;
    if (before == head) {
        sim->mixed[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    }
    for (uint32_t looks = 0;
         before != head && !is_mixed(sim, slot) && event_of(before)->at_ps > event->at_ps;) {
        before = before->previous;
        if (++looks == LOOKS_MAX) {
            sim->mixed[slot / 64] |= UINT64_C(1) << slot % 64;
            before = head->previous;
        }
    }
    list_append(before->next, &event->node); /* In front of what follows `before`. */
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

/* -- The parts that are opened ------------------------------------------------------------------
 *
 * While `times` has events, they come before all others. Events in `slot` come before those in the
 * wheel. The part of `times` is one of the slot in `slot`. */

static void close_times(struct sim *sim)
{
    const uint32_t part = (uint32_t)sim->times.opened & PART_MASK;
    if (sim->times.filled != 0) {
        sim->slot.filled |= UINT64_C(1) << part;
        parts_close(&sim->times, &sim->slot.parts[part]);
    }
    sim->times.opened = NONE;
}

static void close_slot(struct sim *sim)
{
    const uint32_t slot = (uint32_t)sim->slot.opened & SLOT_MASK;
    close_times(sim);
    if (sim->slot.filled != 0) {
        sim->filled[slot / 64] |= UINT64_C(1) << slot % 64;
        sim->mixed[slot / 64] |= UINT64_C(1) << slot % 64;
        parts_close(&sim->slot, &sim->slots[slot]);
    }
    sim->slot.opened = NONE;
}

/* Puts an event that is near where it belongs. It may be earlier than the opened part, because the
 * next event was looked for before this one was scheduled. Then that part is closed first. */
static void put(struct sim *sim, struct sim_event *event)
{
    const uint64_t slot = event->at_ps >> SIM_SLOT_BITS, part = event->at_ps >> SIM_PART_BITS;
    if (part == sim->times.opened) {
        parts_put(&sim->times, event, 0);
        return;
    }
    if (slot == sim->slot.opened) {
        if (UNLIKELY(part < sim->times.opened)) {
            close_times(sim);
        }
        parts_put(&sim->slot, event, SIM_PART_BITS);
        return;
    }
    if (UNLIKELY(slot < sim->slot.opened)) {
        close_slot(sim);
    }
    wheel_put(sim, event);
}

static bool has_one(const struct list *head)
{
    return head->next == head->previous;
}

/* Brings the events of a slot that is to be opened into the caches, and those of the slots behind
 * it. A list says where an event is only when the one before has come; so several lists are walked
 * side by side, each from both ends. */
static void fetch(struct sim *sim, uint64_t slot)
{
    const struct list *front[FETCHED], *back[FETCHED];
    for (uint32_t i = 0; i < FETCHED; i++) {
        front[i] = sim->slots[(slot + i) & SLOT_MASK].next;
        back[i] = sim->slots[(slot + i) & SLOT_MASK].previous;
    }
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (uint32_t i = 0; i < FETCHED; i++) {
            front[i] = front[i] == back[i] ? front[i] : front[i]->next;
            back[i] = front[i] == back[i] ? back[i] : back[i]->previous;
            goes_on |= front[i] != back[i];
        }
    }
    sim->fetched = slot + FETCHED;
}

static void open_slot(struct sim *sim, struct list *list)
{
    const uint64_t slot = event_of(list->next)->at_ps >> SIM_SLOT_BITS;
    if (slot >= sim->fetched) {
        fetch(sim, slot);
    }
    sim->times.opened = NONE;
    parts_open(&sim->slot, list, slot, SIM_PART_BITS);
}

/* The list that begins with the next of the events that are near; NULL: none. */
static struct list *first(struct sim *sim)
{
    struct list *list = parts_first(&sim->times);
    if (list != NULL) {
        return list;
    }
    list = parts_first(&sim->slot);
    if (list == NULL) {
        list = wheel_first(sim);
        if (list == NULL || !is_mixed(sim, (uint32_t)(list - sim->slots)) || has_one(list)) {
            return list;
        }
        open_slot(sim, list);
        list = parts_first(&sim->slot);
    }
    if (!has_one(list)) {
        parts_open(&sim->times, list, event_of(list->next)->at_ps >> SIM_PART_BITS, 0);
        list = parts_first(&sim->times);
    }
    return list;
}

/* -- Wheel and heap -----------------------------------------------------------------------------*/

void sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at_ps)
{
    CHECK(at_ps >= sim->now_ps);
    CHECK(!sim_event_scheduled(event));
    event->at_ps = at_ps;
    if (LIKELY(near(sim, at_ps))) {
        put(sim, event);
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
            put(sim, event_of(node));
        }
    }
}

static void set_time(struct sim *sim, uint64_t now_ps)
{
    sim->now_ps = now_ps;
    if (UNLIKELY(near(sim, sim->far.least_ps))) {
        approach(sim);
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
 * those around it, are asked for now; if it has the same time, so are its hint and the event behind
 * it. */
static void prefetch_behind(struct sim *sim, const struct list *list)
{
    const struct list *following = list->next;
    if (following != list) {
        prefetch_owner(following);
        __builtin_prefetch(following->next);
        __builtin_prefetch(CONTAINER_OF_CONST(following, struct sim_event, node)->hint);
        return;
    }
    const struct list *ahead = parts_first(&sim->times);
    ahead = ahead != NULL ? ahead : parts_first(&sim->slot);
    if (ahead != NULL) {
        prefetch_owner(ahead->next);
        __builtin_prefetch(CONTAINER_OF_CONST(ahead->next, struct sim_event, node)->hint);
        return;
    }
    ahead = wheel_first(sim);
    if (ahead != NULL) {
        prefetch_owner(ahead->next);
        prefetch_owner(ahead->previous);
    }
}

/* Takes the next event if it is due by `until_ps`, and sets the time to that of the event. NULL:
 * there is none. */
static struct sim_event *next(struct sim *sim, uint64_t until_ps)
{
    struct list *list = first(sim);
    if (UNLIKELY(list == NULL)) {
        const uint64_t least_ps = heap_least(&sim->far);
        if (least_ps == UINT64_MAX || least_ps > until_ps) {
            return NULL;
        }
        set_time(sim, least_ps);
        list = first(sim);
    }
    struct sim_event *event = event_of(list->next);
    if (event->at_ps > until_ps) {
        return NULL;
    }
    list_remove(&event->node);
    set_time(sim, event->at_ps);
    prefetch_behind(sim, list);
    return event;
}

uint64_t sim_next_ps(struct sim *sim)
{
    const struct list *list = first(sim);
    return list != NULL ? event_of(list->next)->at_ps : heap_least(&sim->far);
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
    set_time(sim, until_ps);
}

/* -- For statistics -----------------------------------------------------------------------------*/

static uint64_t length(const struct list *lists, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (const struct list *at = lists[i].next; at != &lists[i]; at = at->next) {
            sum++;
        }
    }
    return sum;
}

uint64_t sim_pending(const struct sim *sim)
{
    return length(sim->times.parts, SIM_PARTS) + length(sim->slot.parts, SIM_PARTS) +
           length(sim->slots, SIM_SLOTS) + length(sim->far.buckets, SIM_BUCKETS);
}
