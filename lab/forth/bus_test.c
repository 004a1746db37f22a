/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Users that take turns, and one that must let go; the cycles are counted by hand. FNX-16.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lab/forth/bus.h"

struct user {
    struct forth_bus_user user;
    struct forth_bus *bus;
    uint32_t overhead, left, grants, moved, disconnects;
    uint64_t ended_at; /* Cycle. */
};

static struct forth_bus_tenure granted(struct forth_bus_user *user)
{
    struct user *self = CONTAINER_OF(user, struct user, user);
    self->grants++;
    return (struct forth_bus_tenure){self->overhead, self->left};
}

static void ended(struct forth_bus_user *user, uint32_t moved)
{
    struct user *self = CONTAINER_OF(user, struct user, user);
    self->disconnects += moved < self->left;
    self->left -= moved;
    self->moved += moved;
    self->ended_at = forth_bus_cycle(self->bus);
    if (self->left > 0) {
        forth_bus_request(self->bus, user);
    }
}

static void add_user(struct forth_bus *bus, struct user *user, uint32_t overhead, uint32_t data)
{
    *user = (struct user){.user = {.granted = granted, .ended = ended},
                          .bus = bus,
                          .overhead = overhead,
                          .left = data};
    forth_bus_attach(bus, &user->user);
}

static void test_bus(void **state)
{
    (void)state;
    struct sim sim;
    struct forth_bus bus;
    struct user users[3];
    sim_init(&sim, 1);
    forth_bus_init(&bus, &sim, sim_clock_hz(100000000));
    for (uint32_t i = 0; i < 3; i++) {
        add_user(&bus, &users[i], 10, 20 + i);
    }
    /* All at once: one behind the other, in turn. */
    for (uint32_t i = 0; i < 3; i++) {
        forth_bus_request(&bus, &users[i].user);
    }
    sim_run_until(&sim, 1000000000);
    assert_int_equal(users[0].ended_at, 30);
    assert_int_equal(users[1].ended_at, 30 + 31);
    assert_int_equal(users[2].ended_at, 30 + 31 + 32);
    assert_int_equal(bus.busy_cycles, 93);
    assert_int_equal(bus.disconnects, 0);
}

/* Asks again as soon as it has had the bus. */
static void ended_greedily(struct forth_bus_user *user, uint32_t moved)
{
    struct user *self = CONTAINER_OF(user, struct user, user);
    self->moved += moved;
    forth_bus_request(self->bus, user);
}

/* FNX-16: users that want the bus all the time, as the two directions of a node that sends to
 * itself and its host do, get it in turn. */
static void test_fairness(void **state)
{
    (void)state;
    struct sim sim;
    struct forth_bus bus;
    struct user users[3];
    sim_init(&sim, 1);
    forth_bus_init(&bus, &sim, sim_clock_hz(100000000));
    for (uint32_t i = 0; i < 3; i++) {
        add_user(&bus, &users[i], 10, 20 + 100 * i);
        users[i].user.ended = ended_greedily;
        forth_bus_request(&bus, &users[i].user);
    }
    sim_run_until(&sim, 1000000000);
    assert_int_equal(bus.tenures, users[0].grants + users[1].grants + users[2].grants);
    assert_true(bus.tenures > 600);
    for (uint32_t i = 0; i < 3; i++) {
        assert_in_range(users[i].grants, bus.tenures / 3, bus.tenures / 3 + 1);
    }
}

static void test_latency_timer(void **state)
{
    (void)state;
    struct sim sim;
    struct forth_bus bus;
    struct user users[2];
    sim_init(&sim, 1);
    forth_bus_init(&bus, &sim, sim_clock_hz(100000000));
    bus.latency_timer = 100;
    add_user(&bus, &users[0], 10, 350);
    add_user(&bus, &users[1], 5, 5);
    forth_bus_request(&bus, &users[0].user);
    /* Nobody else: no end to it. Then somebody, behind the timer's end: the cycle is finished. */
    sim_run_until(&sim, 200 * 10000);
    forth_bus_request(&bus, &users[1].user);
    sim_run_until(&sim, 202 * 10000);
    assert_int_equal(users[0].moved, 201 - 10);
    sim_run_until(&sim, 1000000000);
    assert_int_equal(users[0].disconnects, 1);
    assert_int_equal(users[0].grants, 2);
    assert_int_equal(users[0].moved, 350);
    assert_int_equal(users[1].ended_at, 211);
    /* Somebody waits from the start: up to the timer. */
    users[0].left = 350;
    users[1].left = 5;
    forth_bus_request(&bus, &users[0].user);
    sim_step(&sim);
    forth_bus_request(&bus, &users[1].user);
    const uint64_t began = bus.began;
    while (users[1].left > 0) {
        assert_true(sim_step(&sim));
    }
    assert_int_equal(users[1].ended_at, began + 10 + 100 + 5 + 5);
    sim_run_until(&sim, 2000000000);
    assert_int_equal(users[0].left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bus),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_latency_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
