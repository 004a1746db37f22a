/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No deadline is forgotten or handed out more than a tick late; the wheel asks to be
 *         called in time; nothing is handed out for ever.
 * Method  Random calls over all scales of time, beside a model that searches an array.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "nic/timer_wheel.h"

enum {
    NODES = 40,
    STEPS = 400,
    SEEDS = 1000,
    TICK_NS = 4096,
};

struct world {
    struct prng prng;
    struct timer_wheel wheel;
    struct timer_link links[NODES];
    struct timer_node nodes[NODES];
    bool set[NODES]; /* The model. */
    uint64_t at[NODES];
    uint64_t now;
};

static struct {
    uint32_t moved_earlier, moved_later, removed, idle_removed, early, due;
} seen;

static void set(struct world *world, uint32_t i, uint64_t at)
{
    seen.moved_earlier += world->set[i] && at < world->at[i];
    seen.moved_later += world->set[i] && at > world->at[i];
    timer_wheel_set(&world->wheel, i, &world->nodes[i], (struct instant){at});
    world->set[i] = true;
    world->at[i] = at;
}

static void take_away(struct world *world, uint32_t i)
{
    seen.removed += world->set[i];
    seen.idle_removed += !world->set[i];
    timer_wheel_remove(&world->wheel, i, &world->nodes[i]);
    world->set[i] = false;
}

static void check(const struct world *world)
{
    uint64_t earliest = UINT64_MAX;
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(timer_is_set(&world->nodes[i]), world->set[i]);
        if (world->set[i]) {
            assert_int_equal(world->nodes[i].at.ns, world->at[i]);
            earliest = world->at[i] < earliest ? world->at[i] : earliest;
        }
    }
    const uint64_t deadline = timer_wheel_deadline(&world->wheel).ns;
    if (earliest == UINT64_MAX) {
        return;
    }
    const uint64_t least = earliest > world->now ? earliest : world->now;
    assert_true(deadline <= least || deadline - least < TICK_NS);
}

/* Takes due objects as the NIC does: a deadline that was not reached is set again. */
static void serve(struct world *world)
{
    uint32_t turns = 0, i;
    while ((i = timer_wheel_due(&world->wheel, (struct instant){world->now})) != TIMER_NONE) {
        assert_true(i < NODES && world->set[i]);
        assert_true(turns++ < 4 * NODES);
        if (world->at[i] > world->now) {
            seen.early++;
            set(world, i, world->at[i]);
        } else {
            seen.due++;
            take_away(world, i);
        }
        check(world);
    }
    for (i = 0; i < NODES; i++) {
        assert_true(!world->set[i] || world->at[i] > world->now ||
                    world->now - world->at[i] < TICK_NS);
    }
}

static uint64_t some_delay(struct prng *prng)
{
    return prng_below(prng, UINT64_C(1) << prng_below(prng, 50));
}

static void test_against_model(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(&world, 0, sizeof(world));
        prng_init(&world.prng, seed);
        world.now = some_delay(&world.prng);
        timer_wheel_init(&world.wheel, world.links, NODES);
        for (int i = 0; i < STEPS; i++) {
            const uint32_t node = (uint32_t)prng_below(&world.prng, NODES);
            switch (prng_below(&world.prng, 6)) {
            case 0:
            case 1: set(&world, node, world.now + some_delay(&world.prng)); break;
            case 2: set(&world, node, prng_below(&world.prng, world.now + 1)); break;
            case 3: take_away(&world, node); break;
            default:
                /* To the very deadline, or anywhere. */
                if (prng_below(&world.prng, 2) == 0) {
                    const uint64_t deadline = timer_wheel_deadline(&world.wheel).ns;
                    if (deadline != UINT64_MAX && deadline > world.now) {
                        world.now = deadline;
                    }
                } else {
                    world.now += some_delay(&world.prng);
                }
                serve(&world);
            }
            check(&world);
        }
    }
    assert_true(seen.moved_earlier > 1000 && seen.moved_later > 1000);
    assert_true(seen.removed > 10000 && seen.idle_removed > 1000);
    assert_true(seen.due > 10000 && seen.early > 1000);
}

/* The ends of time: INSTANT_NEVER is never handed out, and a past deadline at once. */
static void test_extremes(void **state)
{
    (void)state;
    static struct world world;
    timer_wheel_init(&world.wheel, world.links, NODES);
    set(&world, 0, UINT64_MAX);
    set(&world, 1, 0);
    world.now = UINT64_MAX / 2;
    serve(&world);
    assert_true(world.set[0]);
    assert_false(world.set[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
