/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Two live NICs in one process are independent: each has its addresses, its clock and its
 *         habit; both serve ports at the same time; and one goes on when the other is closed.
 * Method  Two NICs at loopback addresses of their own, each with its thread; and one thread of the
 *         test for each, which claims ports and gives them back, as programs do that listen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"

#define ROUNDS        3000
#define SPACE         0x0106
#define PORTS_AT_ONCE 4

static struct live *open_live(enum live_wire wire)
{
    char error[256];
    const struct live_config config = {.wire = wire, .batch = 32};
    struct live *live = live_claim(&config, error, sizeof(error));
    if (live == NULL || !live_start(live, error, sizeof(error))) {
        fail_msg("%s", error);
    }
    return live;
}

static void open_two(struct live *lives[2])
{
    lives[0] = open_live(LIVE_WIRE_AUTO);
    lives[1] = open_live(LIVE_WIRE_UDP);
}

static int claim(struct live *live, uint16_t port, struct service **service)
{
    struct rdma_address address = {.port = port};
    live_lock(live);
    live_cm_gid_for(live, live->addresses.entries[0].gid.bytes, address.ip);
    const int failure = live_cm_claim(live, SPACE, &address, false, service);
    live_unlock(live);
    return failure;
}

static void unclaim(struct live *live, struct service *service)
{
    live_lock(live);
    live_cm_unclaim(service);
    live_unlock(live);
}

struct worker {
    struct live *live;
    uint32_t claimed;
};

/* A port of a NIC's own address is always to be had. */
static void *claim_and_release(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < ROUNDS; i++) {
        struct service *services[PORTS_AT_ONCE];
        uint32_t count = 0;
        for (uint16_t port = 1; port <= PORTS_AT_ONCE; port++) {
            count += claim(worker->live, port, &services[count]) == 0;
        }
        worker->claimed += count;
        while (count > 0) {
            unclaim(worker->live, services[--count]);
        }
    }
    return NULL;
}

static void test_both_serve_ports(void **state)
{
    (void)state;
    struct live *lives[2];
    pthread_t threads[2];
    open_two(lives);
    struct worker workers[2] = {{.live = lives[0]}, {.live = lives[1]}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, claim_and_release, &workers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].claimed, ROUNDS * PORTS_AT_ONCE);
    }
    live_close(lives[0]);
    live_close(lives[1]);
}

static void test_each_has_its_own(void **state)
{
    (void)state;
    struct live *lives[2];
    open_two(lives);
    assert_false(
        gid_equal(&lives[0]->addresses.entries[0].gid, &lives[1]->addresses.entries[0].gid));
    assert_true(live_guid(lives[0]) != live_guid(lives[1]));
    assert_true(live_has_memory_wire(lives[0]));
    assert_false(live_has_memory_wire(lives[1]));
    for (int i = 0; i < 1000; i++) {
        live_lock(lives[0]);
        live_progress(lives[0], false);
        live_unlock(lives[0]);
    }
    live_lock(lives[1]);
    assert_int_equal(lives[1]->thread.rounds, 0);
    assert_int_equal(lives[1]->habit.polls, 0);
    assert_int_equal(lives[1]->habit.driver, HABIT_WATCHED);
    live_unlock(lives[1]);
    live_close(lives[1]);
    live_close(lives[0]);
}

static void test_one_goes_on(void **state)
{
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        struct live *lives[2];
        struct service *service;
        open_two(lives);
        live_close(lives[closed]);
        assert_int_equal(claim(lives[!closed], 7, &service), 0);
        unclaim(lives[!closed], service);
        live_close(lives[!closed]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_its_own),
        cmocka_unit_test(test_one_goes_on),
        cmocka_unit_test(test_both_serve_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
