/* SPDX-License-Identifier: BSD-2-Clause
 *
 * kernel - virtual time: the order of events.
 *
 * Purpose    Runs events in the order (time, order of scheduling), the same on every machine.
 * Outputs    sim_step runs the next event; sim_note collects what happened into a digest.
 * Ownership  An event lies inside the struct that waits for it; the kernel links it and allocates
 *            nothing.
 * Time       Integer picoseconds; 2^64 of them are 213 days.
 * Limits     None on the number of events: an event costs the same among a thousand and, but for
 *            the caches, among a million.
 * Source     Varghese, Lauck, "Hashed and hierarchical timing wheels" (1987), for near events;
 *            Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem"
 *            (1990), the radix heap, for far ones. docs/decisions/0007.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "base/list.h"
#include "base/prng.h"

struct sim;
struct sim_event;

/* The event has left the queue: it may be scheduled again from here. */
typedef void (*sim_action)(struct sim *sim, struct sim_event *event);

struct sim_event {
    struct list node; /* Linked to itself: not scheduled. */
    uint64_t at_ps;
    const void
        *hint; /* The memory that the action will look at first, beside its owner; NULL: none. */
    sim_action act;
};

/* The wheel: a slot is 4,096 ps, and it reaches 4.2 us ahead; most delays of networks lie there. */
#define SIM_SLOT_BITS 12
#define SIM_SLOTS     1024u

/* A slot of many events that is opened: 64 parts of 64 ps; and a part of it: 64 times of 1 ps. */
#define SIM_PART_BITS 6
#define SIM_PARTS     64u

/* Bucket 0 holds the events that are due at `floor_ps`; bucket b holds those whose time first
 * differs from `floor_ps` in bit b-1. */
#define SIM_BUCKETS 65

struct sim_heap {
    uint64_t floor_ps;
    uint64_t least_ps; /* No event is earlier; UINT64_MAX: none. */
    uint64_t filled;   /* Bit b - 1: bucket b may hold something. */
    struct list buckets[SIM_BUCKETS];
};

struct sim_parts {
    uint64_t opened; /* Which slot, or which part, of all time is in here. */
    uint64_t filled; /* Bit p: part p may hold something. */
    struct list parts[SIM_PARTS];
};

struct sim {
    uint64_t now_ps;
    uint64_t events; /* Run so far. */
    uint64_t digest;
    struct prng prng;
    struct sim_parts times;          /* The part that comes next: lists of events of one time. */
    struct sim_parts slot;           /* The rest of the slot that comes next. */
    uint64_t filled[SIM_SLOTS / 64]; /* Bit s: slot s may hold something. */
    uint64_t mixed[SIM_SLOTS / 64];  /* Bit s: its events are not in the order of time. */
    struct list slots[SIM_SLOTS];    /* The wheel. */
    uint64_t fetched;                /* Slots before this one were brought into the caches. */
    struct sim_heap far;             /* The events beyond the wheel. */
};

/* `sim` must not move afterwards: its lists point into it. */
void sim_init(struct sim *sim, uint64_t seed);

static inline void sim_event_init(struct sim_event *event, sim_action act)
{
    list_init(&event->node);
    event->at_ps = 0;
    event->hint = NULL;
    event->act = act;
}

static inline bool sim_event_scheduled(const struct sim_event *event)
{
    return !list_empty(&event->node);
}

/* The time for engines, which count nanoseconds. */
#define SIM_NS UINT64_C(1000)

static inline struct instant sim_instant(const struct sim *sim)
{
    return (struct instant){sim->now_ps / SIM_NS};
}

/* Schedules an event that is not scheduled yet, at a time that is not in the past. */
void sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at_ps);

static inline void sim_after(struct sim *sim, struct sim_event *event, uint64_t delay_ps)
{
    sim_schedule(sim, event, sim->now_ps + delay_ps);
}

/* Does nothing if the event is not scheduled. */
void sim_cancel(struct sim_event *event);

/* Moves the event if it is scheduled, else schedules it. */
static inline void sim_reschedule(struct sim *sim, struct sim_event *event, uint64_t at_ps)
{
    sim_cancel(event);
    sim_schedule(sim, event, at_ps);
}

/* Runs the next event. False: none. */
bool sim_step(struct sim *sim);

/* Runs every event up to and including `until_ps`, which is then the time. */
void sim_run_until(struct sim *sim, uint64_t until_ps);

/* When the next event is due; UINT64_MAX: never. */
uint64_t sim_next_ps(struct sim *sim);

/* Counts the events that are scheduled: it walks over all of them. */
uint64_t sim_pending(const struct sim *sim);

/* Notes something on which two runs must agree. */
static inline void sim_note(struct sim *sim, uint64_t what)
{
    sim->digest = (sim->digest ^ what ^ sim->now_ps) * 0x9e3779b97f4a7c15u;
    sim->digest ^= sim->digest >> 29;
}

#endif
