/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hold - the cost of an event in the laboratory's queue, by the number of events in it. Prints one
 * JSON object.
 */
#include "bench/hold.h"

#include "sim/kernel.h"

struct world {
    struct sim sim;
    struct hold hold;
};

static void again(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(sim, struct world, sim);
    sim_after(sim, event, hold_delay_ps(&world->hold));
}

int main(int count, char **arguments)
{
    struct world *world = calloc(1, sizeof(*world));
    if (world == NULL) {
        return 1;
    }
    world->hold = hold_parse(count, arguments);
    sim_init(&world->sim, 1);
    struct sim_event *events = calloc(world->hold.pending, sizeof(*events));
    if (events == NULL) {
        return 1;
    }
    for (uint64_t i = 0; i < world->hold.pending; i++) {
        sim_event_init(&events[i], again);
        sim_schedule(&world->sim, &events[i], hold_delay_ps(&world->hold));
    }
    /* Two rounds, after which neighbours in memory are not neighbours in time. */
    for (uint64_t i = 0; i < 2 * world->hold.pending; i++) {
        sim_step(&world->sim);
    }
    const double began = hold_now_s();
    for (uint64_t i = 0; i < world->hold.runs; i++) {
        sim_step(&world->sim);
    }
    printf("{\"ns\": %.2f}\n", (hold_now_s() - began) / (double)world->hold.runs * 1e9);
    free(events);
    free(world);
    return 0;
}
