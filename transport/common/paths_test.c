/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Blocks are spread over the paths that have room, small ones take the quickest, and a path
 *         that dies is left while the others go on.
 * Method  Four pipes of different delays and one clock; who may be left is asked at every step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/common/paths.h"

#define PATHS  4
#define PACKET 4608u
#define US     UINT64_C(1000)
#define MS     UINT64_C(1000000)
#define OUT    4096u

struct bench {
    struct path_policy policy;
    struct paths paths;
    struct path path[PATHS];
    struct path_record records[PATHS][PATH_RECORDS];
    uint64_t trip[PATHS];     /* UINT64_MAX: dead. */
    uint64_t due[PATHS][OUT]; /* When the echo of a TSN comes. */
    uint32_t next[PATHS], echoed[PATHS];
    uint32_t probes, left[PATHS];
};

static struct instant at(uint64_t ns)
{
    return (struct instant){ns};
}

static void start(struct bench *bench)
{
    *bench = (struct bench){.policy = path_policy_default()};
    for (uint8_t n = 0; n < PATHS; n++) {
        path_init(&bench->path[n],
                  &(struct path_config){
                      .packet_bytes = PACKET,
                      .trip_ns = PATHS * MS,
                      .records = bench->records[n],
                      .record_count = PATH_RECORDS,
                      .policy = &bench->policy,
                  },
                  at(0));
        bench->trip[n] = (n + 1) * MS;
    }
    paths_init(&bench->paths, bench->path, bench->path + 1, PATHS);
}

static void send(struct bench *bench, uint8_t path, uint64_t now)
{
    const uint64_t trip = bench->trip[path];
    bench->due[path][bench->next[path]++ % OUT] = trip == UINT64_MAX ? trip : now + trip;
    (void)path_sent(&bench->path[path], PACKET, true, at(now));
}

static void hear(struct bench *bench, uint64_t now)
{
    for (uint8_t n = 0; n < PATHS; n++) {
        for (; bench->echoed[n] != bench->next[n]; bench->echoed[n]++) {
            const uint64_t due = bench->due[n][bench->echoed[n] % OUT];
            if (due > now && due != UINT64_MAX) {
                break;
            }
            const struct path_echo_report echo = {.tsn = psn_of(bench->echoed[n])};
            if (due != UINT64_MAX) {
                assert_int_not_equal(path_on_echo(&bench->path[n], &echo, at(now)),
                                     PATH_ECHO_IMPOSSIBLE);
            }
        }
    }
}

static void tick(struct bench *bench, uint64_t now)
{
    hear(bench, now);
    uint8_t left;
    while ((left = paths_on_time(&bench->paths, at(now))) != PATH_NONE) {
        bench->left[left]++;
    }
    struct paths_probe probe;
    while (paths_next_probe(&bench->paths, false, at(now), &probe)) {
        assert_false(probe.own_route);
        bench->probes++;
        send(bench, probe.path, now);
    }
    assert_true(paths_deadline(&bench->paths).ns > now);
}

/* Sends a packet every 20 us where it is told to. */
static void play(struct bench *bench, uint64_t from, uint64_t to)
{
    for (uint64_t now = from; now < to; now += 20 * US) {
        tick(bench, now);
        const uint8_t path = paths_choose(&bench->paths, false, at(now));
        if (path != PATH_NONE) {
            assert_true(path_room(&bench->path[path], at(now)) > 0);
            send(bench, path, now);
        } else {
            uint64_t first = UINT64_MAX;
            for (int n = 0; n < PATHS; n++) {
                const uint64_t room = path_room_at(&bench->path[n], at(now)).ns;
                first = room < first ? room : first;
            }
            assert_true(first > now);
            assert_true(paths_room_at(&bench->paths, at(now)).ns == first);
        }
    }
}

static void test_round_robin(void **state)
{
    (void)state;
    static struct bench bench;
    start(&bench);
    play(&bench, 0, 500 * MS);
    for (int n = 0; n < PATHS; n++) {
        assert_in_range(bench.next[n], 25000 / PATHS - 300, 25000 / PATHS + 300);
        assert_int_equal(bench.left[n], 0);
    }
    assert_int_equal(bench.probes, 0);
    /* The quickest is path 0, unless it has no room. */
    assert_int_equal(paths_choose(&bench.paths, true, at(500 * MS)), 0);
    while (path_room(&bench.path[0], at(500 * MS)) > 0) {
        send(&bench, 0, 500 * MS);
    }
    assert_int_equal(paths_choose(&bench.paths, true, at(500 * MS)), 1);
}

/* EXA-100: a path that loses everything is left within a few round trips of the timers' floors, and
 * found again when it works; the others go on. */
static void test_death(void **state)
{
    (void)state;
    static struct bench bench;
    start(&bench);
    play(&bench, 0, 100 * MS);
    bench.trip[2] = UINT64_MAX;
    const uint32_t before = bench.next[2];
    play(&bench, 100 * MS, 140 * MS);
    assert_int_equal(bench.left[2], 1);
    const uint32_t wasted = bench.next[2];
    assert_in_range(wasted - before, 1, 600);
    play(&bench, 140 * MS, 400 * MS);
    assert_in_range(bench.next[2] - wasted, 1, 4);
    bench.trip[2] = 3 * MS;
    play(&bench, 400 * MS, 1200 * MS);
    assert_false(bench.path[2].suspect);
    assert_true(bench.next[2] - wasted > 1000);
    for (int n = 0; n < PATHS; n++) {
        assert_int_equal(bench.left[n], n == 2);
    }
}

/* When all are silent none is to blame: they are probed, and one at least is never left. */
static void test_all_silent(void **state)
{
    (void)state;
    static struct bench bench;
    start(&bench);
    play(&bench, 0, 100 * MS);
    for (int n = 0; n < PATHS; n++) {
        bench.trip[n] = UINT64_MAX;
    }
    play(&bench, 100 * MS, 3000 * MS);
    for (int n = 0; n < PATHS; n++) {
        assert_int_equal(bench.left[n], 0);
        bench.trip[n] = (uint64_t)(n + 1) * MS;
    }
    assert_in_range(bench.probes, 4 * 8, 4 * 36);
    play(&bench, 3000 * MS, 4000 * MS);
    for (int n = 0; n < PATHS; n++) {
        assert_false(bench.path[n].suspect);
    }
    /* One after the other, each while the rest goes on: the last one stays. */
    uint64_t now = 4000 * MS;
    for (int n = 0; n < PATHS; n++) {
        bench.trip[n] = UINT64_MAX;
        play(&bench, now, now + 200 * MS);
        now += 200 * MS;
        assert_true(bench.path[n].suspect == (n != PATHS - 1));
    }
}

/* EXA-100: only the paths of the group count. A single one is not left, whatever arrives by another
 * one that lies behind it in memory. */
static void test_only_paths_of_the_group(void **state)
{
    (void)state;
    static struct bench bench;
    start(&bench);
    paths_init(&bench.paths, bench.path, bench.path + 1, 1);
    for (uint64_t now = 0; now < 400 * MS; now += MS) {
        tick(&bench, now);
        send(&bench, 1, now);
        if (now < 105 * MS) {
            bench.trip[0] = now < 100 * MS ? MS : UINT64_MAX;
            send(&bench, 0, now);
        }
    }
    assert_true(bench.probes > 0);
    assert_int_equal(bench.left[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_all_silent),
        cmocka_unit_test(test_only_paths_of_the_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
