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

/* The model: the scheduled events, in the order of scheduling. */
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
    uint64_t seed, run;
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

/* Delays of every magnitude, and often none; or few different ones, near and beyond the wheel,
 * whose sums meet all the time. */
static uint64_t draw_delay(struct world *world)
{
    static const uint64_t few[] = {0, 30, 100, 4100, 500000, 1000000, 3000000, 4500000, 9000000};
    struct prng *prng = &world->prng;
    const uint64_t magnitude = prng_below(prng, 45);
    if (world->seed % 2 == 0) {
        return few[magnitude % COUNT_OF(few)];
    }
    return magnitude == 0 ? 0 : prng_next(prng) >> (64 - magnitude);
}

static void schedule(struct world *world, uint32_t index)
{
    const uint64_t at_ps = world->sim.now_ps + draw_delay(world);
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
    world->seed = seed;
    for (uint32_t i = 0; i < EVENTS; i++) {
        sim_event_init(&world->events[i], act);
    }
    for (uint32_t i = 0; i < EVENTS / 2; i++) {
        schedule(world, i);
    }
    while (world->run < 5000) {
        if (prng_below(&world->prng, 20) == 0) {
            const uint64_t until =
                world->sim.now_ps + draw_delay(world) / (world->seed % 2 == 0 ? 1 : 64);
            sim_run_until(&world->sim, until);
            assert_true(world->sim.now_ps == until);
            assert_true(world->model_count == 0 || model_first(world)->at_ps > until);
        }
        const uint64_t next = sim_next_ps(&world->sim);
        assert_true(next == (world->model_count == 0 ? UINT64_MAX : model_first(world)->at_ps));
        /* From outside, after the next event was looked for. */
        for (uint64_t i = prng_below(&world->prng, 20) == 0 ? 5 : 0; i > 0; i--) {
            meddle(world);
        }
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
    for (uint64_t seed = 1; seed <= 100; seed++) {
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

/* A world whose events say who they are, and the order that they ran in. */
struct few {
    struct sim sim;
    struct sim_event events[8];
    char ran[16];
    uint32_t count;
};

static void say(struct sim *sim, struct sim_event *event)
{
    struct few *few = CONTAINER_OF(sim, struct few, sim);
    few->ran[few->count++] = (char)('a' + (event - few->events));
}

static void begin(struct few *few)
{
    *few = (struct few){.count = 0};
    sim_init(&few->sim, 1);
    for (size_t i = 0; i < COUNT_OF(few->events); i++) {
        sim_event_init(&few->events[i], say);
    }
}

static void at(struct few *few, char name, uint64_t at_ps)
{
    sim_schedule(&few->sim, &few->events[name - 'a'], at_ps);
}

static void expect(struct few *few, const char *order)
{
    while (sim_step(&few->sim)) {
    }
    assert_string_equal(few->ran, order);
}

/* The first event was scheduled when its time was far, the second one when it was near. */
static void test_far_comes_before_near(void **state)
{
    (void)state;
    struct few few;
    begin(&few);
    at(&few, 'a', 10000000);
    sim_run_until(&few.sim, 8000000);
    at(&few, 'b', 10000000);
    expect(&few, "ab");
}

/* Somebody looks for the next event, whose slot is opened; then come earlier ones. */
static void test_earlier_than_what_is_opened(void **state)
{
    (void)state;
    struct few few;
    begin(&few);
    at(&few, 'a', 100);
    at(&few, 'b', 100);
    sim_run_until(&few.sim, 100);
    at(&few, 'c', 9000);
    at(&few, 'd', 9100);
    assert_true(sim_next_ps(&few.sim) == 9000);
    at(&few, 'e', 100);
    at(&few, 'f', 200);
    expect(&few, "abefcd");
}

/* The same, but the events of the opened part, then of the opened slot, are cancelled in
 * between. */
static void test_earlier_than_what_was_opened(void **state)
{
    (void)state;
    static const struct {
        uint64_t gone_ps, earlier_ps, later_ps;
    } cases[] = {{200, 100, 201}, {9000, 100, 9100}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct few few;
        begin(&few);
        at(&few, 'a', cases[i].gone_ps);
        at(&few, 'b', cases[i].gone_ps);
        assert_true(sim_next_ps(&few.sim) == cases[i].gone_ps);
        sim_cancel(&few.events[0]);
        sim_cancel(&few.events[1]);
        assert_true(sim_next_ps(&few.sim) == UINT64_MAX);
        at(&few, 'c', cases[i].earlier_ps);
        at(&few, 'd', cases[i].later_ps);
        expect(&few, "cd");
    }
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
        cmocka_unit_test(test_far_comes_before_near),
        cmocka_unit_test(test_earlier_than_what_is_opened),
        cmocka_unit_test(test_earlier_than_what_was_opened),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
