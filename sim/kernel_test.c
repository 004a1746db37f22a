/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Events run in the order of time, then of scheduling, whatever is scheduled, moved or
 *         cancelled from where.
 * Method  Random worlds against a list that is searched from end to end; clocks against fractions
 *         that do not drift.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "sim/clock.h"
#include "sim/kernel.h"

#define EVENTS 200

/* The model: what is scheduled, in the order of scheduling. */
struct entry {
    uint64_t at_ps;
    uint32_t index;
};

struct world {
    struct sim sim;
    struct prng prng;
    struct sim_event events[EVENTS];
    struct entry model[EVENTS];
    uint32_t model_count;
    uint64_t run;
    bool quiet; /* Schedules no more. */
};

static void model_remove(struct world *world, uint32_t index)
{
    for (uint32_t i = 0; i < world->model_count; i++) {
        if (world->model[i].index == index) {
            for (uint32_t k = i + 1; k < world->model_count; k++) {
                world->model[k - 1] = world->model[k];
            }
            world->model_count--;
            return;
        }
    }
    fail_msg("an event ran that was not scheduled");
}

static const struct entry *model_first(const struct world *world)
{
    const struct entry *first = NULL;
    for (uint32_t i = 0; i < world->model_count; i++) {
        if (first == NULL || world->model[i].at_ps < first->at_ps) {
            first = &world->model[i];
        }
    }
    return first;
}

/* Delays of every magnitude, and often none. */
static uint64_t draw_delay(struct prng *prng)
{
    const uint64_t magnitude = prng_below(prng, 45);
    return magnitude == 0 ? 0 : prng_next(prng) >> (64 - magnitude);
}

static void schedule(struct world *world, uint32_t index)
{
    const uint64_t at_ps = world->sim.now_ps + draw_delay(&world->prng);
    sim_schedule(&world->sim, &world->events[index], at_ps);
    world->model[world->model_count++] = (struct entry){at_ps, index};
}

static void meddle(struct world *world)
{
    for (uint64_t i = prng_below(&world->prng, 3); i > 0; i--) {
        const uint32_t index = (uint32_t)prng_below(&world->prng, EVENTS);
        struct sim_event *event = &world->events[index];
        if (!sim_event_scheduled(event)) {
            schedule(world, index);
        } else if (prng_below(&world->prng, 2)) {
            model_remove(world, index);
            sim_cancel(event);
            assert_false(sim_event_scheduled(event));
        }
    }
}

static void act(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(sim, struct world, sim);
    const uint32_t index = (uint32_t)(event - world->events);
    const struct entry expected = *model_first(world);
    assert_int_equal(index, expected.index);
    assert_true(sim->now_ps == expected.at_ps);
    model_remove(world, index);
    sim_note(sim, index);
    world->run++;
    if (!world->quiet) {
        meddle(world);
        if (!sim_event_scheduled(event)) {
            schedule(world, index);
        }
    }
}

static uint64_t run(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    sim_init(&world->sim, seed);
    prng_init(&world->prng, seed);
    for (uint32_t i = 0; i < EVENTS; i++) {
        sim_event_init(&world->events[i], act);
    }
    for (uint32_t i = 0; i < EVENTS / 2; i++) {
        schedule(world, i);
    }
    while (world->run < 5000) {
        if (prng_below(&world->prng, 20) == 0) {
            const uint64_t until = world->sim.now_ps + draw_delay(&world->prng) / 64;
            sim_run_until(&world->sim, until);
            assert_true(world->sim.now_ps == until);
            assert_true(world->model_count == 0 || model_first(world)->at_ps > until);
        }
        const uint64_t next = sim_next_ps(&world->sim);
        assert_true(next == (world->model_count == 0 ? UINT64_MAX : model_first(world)->at_ps));
        if (!sim_step(&world->sim)) {
            schedule(world, 0);
        }
    }
    world->quiet = true;
    while (sim_step(&world->sim)) {
    }
    assert_int_equal(world->model_count, 0);
    assert_true(world->sim.events == world->run);
    const uint64_t digest = world->sim.digest;
    free(world);
    return digest;
}

static void test_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        assert_true(run(seed) == run(seed));
    }
    assert_true(run(1) != run(2));
}

static void count(struct sim *sim, struct sim_event *event)
{
    (void)event;
    sim_note(sim, 1);
}

static void test_ends_of_time(void **state)
{
    (void)state;
    struct sim sim;
    struct sim_event events[3];
    sim_init(&sim, 1);
    assert_false(sim_step(&sim));
    assert_true(sim_next_ps(&sim) == UINT64_MAX);
    for (int i = 0; i < 3; i++) {
        sim_event_init(&events[i], count);
    }
    sim_schedule(&sim, &events[0], UINT64_MAX - 1);
    sim_schedule(&sim, &events[1], 0);
    sim_schedule(&sim, &events[2], UINT64_C(1) << 63);
    assert_true(sim_step(&sim) && sim.now_ps == 0);
    assert_true(sim_step(&sim) && sim.now_ps == UINT64_C(1) << 63);
    assert_true(sim_step(&sim) && sim.now_ps == UINT64_MAX - 1);
    sim_cancel(&events[0]); /* Not scheduled: nothing. */
    assert_false(sim_step(&sim));
}

static void test_clocks(void **state)
{
    (void)state;
    const struct sim_clock network = sim_clock_hz(78125000), odd = {1000000000, 322265625 / 1000};
    assert_true(sim_clock_at(network, 1) == 12800);
    assert_true(sim_clock_at(network, 1000000007) == 12800ull * 1000000007);
    assert_true(sim_clock_edge(network, 0) == 0);
    assert_true(sim_clock_edge(network, 1) == 1);
    assert_true(sim_clock_edge(network, 12800) == 1);
    assert_true(sim_clock_edge(network, 12801) == 2);
    struct prng prng;
    prng_init(&prng, 1);
    for (int i = 0; i < 100000; i++) {
        const uint64_t cycle = prng_next(&prng) >> 30;
        assert_true(sim_clock_edge(odd, sim_clock_at(odd, cycle)) == cycle);
        assert_true(sim_clock_at(odd, cycle + 1) > sim_clock_at(odd, cycle));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ends_of_time),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
