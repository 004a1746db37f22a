/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A program that polls looks at timers now and then, also while each of its polls finds
 *         packets.
 * Method  A live NIC without its thread at an address of its own, over UDP; datagrams arrive that
 *         are too short to be packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_wake.h"
#include "drivers/system/socket_address.h"

/* The most rounds with packets between two looks at timers. */
#define ROUNDS_MAX 64

static struct live *live;
static int stranger;

static int open_live(void **state)
{
    (void)state;
    char error[256];
    const struct live_config config = {.wire = LIVE_WIRE_UDP, .batch = 1};
    live = live_claim(&config, error, sizeof(error));
    if (live == NULL) {
        fail_msg("%s", error);
    }
    live_lock(live);
    live->udp.peers = 1; /* As if a peer were reached over UDP: the socket is looked at. */
    stranger = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return stranger < 0;
}

static int close_live(void **state)
{
    (void)state;
    close(stranger);
    live_unlock(live);
    live_close(live);
    return 0;
}

/* Loopback delivers before the call returns. */
static void send_something(void)
{
    const union socket_address to =
        socket_address_of(live->addresses.entries[0].gid.bytes, ROCE_UDP_PORT, 0);
    assert_int_equal(sendto(stranger, "short", 5, 0, &to.any, socket_address_bytes(&to)), 5);
}

/* How many rounds bring packets until a timer that is due is looked at. Each round brings some, or
 * each second one, and none in which an idle program would look at its clock. */
static uint32_t rounds_until_timer(bool each)
{
    const struct instant due = live_now(live);
    const uint64_t before = live->udp.counters.datagrams_received;
    uint32_t brought = 0;
    live->manager.due = due;
    while (live->manager.due.ns == due.ns && brought <= ROUNDS_MAX) {
        if (each || live->thread.rounds % 2 != 0) {
            send_something();
            brought++;
        }
        live_progress(live, false);
    }
    assert_int_equal(live->udp.counters.datagrams_received - before, brought);
    return brought;
}

static void test_timers_of_a_busy_poller(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_in_range(rounds_until_timer(true), 1, ROUNDS_MAX);
        assert_in_range(rounds_until_timer(false), 1, ROUNDS_MAX);
    }
}

static void test_timers_of_an_idle_poller(void **state)
{
    (void)state;
    const struct instant due = live_now(live);
    live->manager.due = due;
    for (uint32_t i = 0; i < ROUNDS_MAX && live->manager.due.ns == due.ns; i++) {
        live_progress(live, false);
    }
    assert_true(live->manager.due.ns != due.ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_of_a_busy_poller),
        cmocka_unit_test(test_timers_of_an_idle_poller),
    };
    return cmocka_run_group_tests(tests, open_live, close_live);
}
