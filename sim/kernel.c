/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A radix heap. Time never goes back, so an event's bucket, the highest bit in which its time
 * differs from the last event's, only ever falls: it moves at most once for each bit of its delay,
 * whatever the number of events. Events of one time always share a bucket, and every move keeps
 * their order.
 */
#include "sim/kernel.h"

void sim_init(struct sim *sim, uint64_t seed)
{
    *sim = (struct sim){.now_ps = 0};
    prng_init(&sim->prng, seed);
    for (int i = 0; i < SIM_BUCKETS; i++) {
        list_init(&sim->buckets[i]);
    }
}

static void put(struct sim *sim, struct sim_event *event)
{
    const uint64_t difference = event->at_ps ^ sim->floor_ps;
    if (difference == 0) {
        list_append(&sim->buckets[0], &event->node);
        return;
    }
    const int bit = 63 - __builtin_clzll(difference);
    sim->filled |= UINT64_C(1) << bit;
    list_append(&sim->buckets[bit + 1], &event->node);
}

void sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at_ps)
{
    CHECK(at_ps >= sim->now_ps);
    CHECK(!sim_event_scheduled(event));
    event->at_ps = at_ps;
    put(sim, event);
}

void sim_cancel(struct sim_event *event)
{
    list_remove(&event->node);
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
static struct list *lowest(struct sim *sim)
{
    while (sim->filled != 0) {
        struct list *bucket = &sim->buckets[__builtin_ctzll(sim->filled) + 1];
        if (!list_empty(bucket)) {
            return bucket;
        }
        sim->filled &= sim->filled - 1; /* Everything in it was cancelled. */
    }
    return NULL;
}

/* Brings the earliest events into bucket 0. False: there are none. */
static bool settle(struct sim *sim)
{
    if (!list_empty(&sim->buckets[0])) {
        return true;
    }
    struct list *bucket = lowest(sim);
    if (bucket == NULL) {
        return false;
    }
    sim->floor_ps = earliest(bucket);
    sim->filled &= sim->filled - 1;
    struct list *node;
    while ((node = list_pop(bucket)) != NULL) {
        put(sim, CONTAINER_OF(node, struct sim_event, node));
    }
    return true;
}

uint64_t sim_next_ps(struct sim *sim)
{
    if (!list_empty(&sim->buckets[0])) {
        return sim->floor_ps;
    }
    const struct list *bucket = lowest(sim);
    return bucket == NULL ? UINT64_MAX : earliest(bucket);
}

bool sim_step(struct sim *sim)
{
    if (!settle(sim)) {
        return false;
    }
    struct sim_event *event = CONTAINER_OF(list_pop(&sim->buckets[0]), struct sim_event, node);
    sim->now_ps = sim->floor_ps;
    sim->events++;
    event->act(sim, event);
    return true;
}

void sim_run_until(struct sim *sim, uint64_t until_ps)
{
    CHECK(until_ps >= sim->now_ps);
    while (sim_next_ps(sim) <= until_ps) {
        sim_step(sim);
    }
    sim->now_ps = until_ps;
}
