/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/bus.h"

static void on_event(struct sim *sim, struct sim_event *event);

void forth_bus_init(struct forth_bus *bus, struct sim *sim, struct sim_clock clock)
{
    *bus = (struct forth_bus){.sim = sim, .clock = clock};
    sim_event_init(&bus->event, on_event);
}

void forth_bus_attach(struct forth_bus *bus, struct forth_bus_user *user)
{
    CHECK(bus->count < FORTH_BUS_USERS_MAX);
    user->index = bus->count;
    bus->users[bus->count++] = user;
    bus->last = bus->count - 1;
}

uint64_t forth_bus_cycle(const struct forth_bus *bus)
{
    return sim_clock_edge(bus->clock, bus->sim->now_ps);
}

static void wake(struct forth_bus *bus, uint64_t cycle)
{
    sim_reschedule(bus->sim, &bus->event, sim_clock_at(bus->clock, cycle));
}

/* While another user waits, the holder keeps the bus until its latency timer ends. If the timer has
 * run out already, it keeps the bus until the cycle under way ends. */
static void shorten(struct forth_bus *bus)
{
    const struct forth_bus_tenure *tenure = &bus->tenure;
    if (bus->latency_timer == 0 || tenure->data <= bus->latency_timer) {
        return;
    }
    const uint64_t first_data = bus->began + tenure->overhead;
    const uint64_t expiry = first_data + bus->latency_timer;
    const uint64_t now = forth_bus_cycle(bus);
    const uint64_t end = now < expiry ? expiry : now + 1;
    if (end < first_data + tenure->data) {
        wake(bus, end);
    }
}

static void grant(struct forth_bus *bus)
{
    if (bus->waiting == 0) {
        return;
    }
    /* Users behind the last one come first. */
    const uint32_t behind = bus->waiting >> (bus->last + 1) << (bus->last + 1);
    bus->last = (uint32_t)__builtin_ctz(behind != 0 ? behind : bus->waiting);
    bus->waiting &= ~(1u << bus->last);
    bus->holder = bus->users[bus->last];
    bus->began = forth_bus_cycle(bus);
    bus->tenure = bus->holder->granted(bus->holder);
    bus->tenures++;
    wake(bus, bus->began + bus->tenure.overhead + bus->tenure.data);
    if (bus->waiting != 0) {
        shorten(bus);
    }
}

static void end(struct forth_bus *bus)
{
    struct forth_bus_user *user = bus->holder;
    const uint64_t held = forth_bus_cycle(bus) - bus->began;
    const uint32_t moved = (uint32_t)(held - bus->tenure.overhead);
    bus->busy_cycles += held;
    bus->disconnects += moved < bus->tenure.data;
    if (UNLIKELY(bus->trace != NULL)) {
        sim_trace_span(bus->trace, bus->track, user->name, moved,
                       sim_clock_at(bus->clock, bus->began), bus->sim->now_ps);
    }
    bus->holder = NULL;
    user->ended(user, moved);
}

static void on_event(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_bus *bus = CONTAINER_OF(event, struct forth_bus, event);
    if (bus->holder != NULL) {
        end(bus);
    }
    /* A request made by `ended` has waited no longer than the others. */
    if (bus->holder == NULL) {
        grant(bus);
    }
}

void forth_bus_request(struct forth_bus *bus, struct forth_bus_user *user)
{
    bus->waiting |= 1u << user->index;
    if (bus->holder != NULL) {
        shorten(bus);
    } else if (!sim_event_scheduled(&bus->event)) {
        wake(bus, forth_bus_cycle(bus));
    }
}

void forth_bus_withdraw(struct forth_bus *bus, struct forth_bus_user *user)
{
    bus->waiting &= ~(1u << user->index);
}
