/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A path numbers what leaves, believes only echoes that make sense, takes for lost what
 *         must be and nothing else, keeps its window and pace, probes, is left and comes back.
 * Method  A pipe of a fixed delay whose losses are known, and a list of all that was sent; timers
 *         by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/common/path.h"

#define PACKET 1000u
#define US     UINT64_C(1000)
#define MS     UINT64_C(1000000)

struct bench {
    struct path path;
    struct path_policy policy;
    struct path_record records[PATH_RECORDS];
};

static void start_with(struct bench *bench, struct path_policy policy, uint32_t tsn,
                       uint64_t trip_ns)
{
    bench->policy = policy;
    path_init(&bench->path,
              &(struct path_config){
                  .first_tsn = psn_of(tsn),
                  .packet_bytes = PACKET,
                  .trip_ns = trip_ns,
                  .records = bench->records,
                  .record_count = PATH_RECORDS,
                  .policy = &bench->policy,
              },
              (struct instant){0});
}

static void start_at(struct bench *bench, uint32_t tsn, uint64_t trip_ns)
{
    start_with(bench, path_policy_default(), tsn, trip_ns);
}

static struct instant at(uint64_t ns)
{
    return (struct instant){ns};
}

static struct psn sent(struct bench *bench, uint64_t now)
{
    return path_sent(&bench->path, PACKET, false, at(now));
}

static enum path_echo echo_held(struct bench *bench, struct psn tsn, uint32_t held, uint64_t now)
{
    const struct path_echo_report report = {.tsn = tsn, .held_ns = held};
    return path_on_echo(&bench->path, &report, at(now));
}

static enum path_echo echo(struct bench *bench, struct psn tsn, uint64_t now)
{
    return echo_held(bench, tsn, 0, now);
}

/* EXA-94 (TSN): numbers and echoes across the wrap. */
static void test_echoes(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, PSN_MASK - 2, 0);
    struct psn tsn[8];
    for (uint32_t n = 0; n < 8; n++) {
        tsn[n] = sent(&bench, n * 10 * US);
        assert_int_equal(tsn[n].value, (PSN_MASK - 2 + n) & PSN_MASK);
    }
    assert_int_equal(path_flight(&bench.path), 8 * PACKET);
    /* Never sent; before the first; half of all numbers back. */
    assert_int_equal(echo(&bench, psn_after(tsn[7], 1), 100 * US), PATH_ECHO_IMPOSSIBLE);
    assert_int_equal(echo(&bench, psn_before(tsn[0], 1), 100 * US), PATH_ECHO_OLD);
    assert_int_equal(echo(&bench, psn_before(psn_after(tsn[7], 1), PSN_HALF), 100 * US),
                     PATH_ECHO_IMPOSSIBLE);
    assert_false(rtt_known(&bench.path.rtt));
    assert_int_equal(path_flight(&bench.path), 8 * PACKET);
    /* One tells about all before it. */
    assert_int_equal(echo_held(&bench, tsn[4], 20000, 140 * US), PATH_ECHO_NEWS);
    assert_int_equal(bench.path.rtt.newest_ns, 80 * US);
    assert_int_equal(path_flight(&bench.path), 3 * PACKET);
    assert_int_equal(echo(&bench, tsn[4], 141 * US), PATH_ECHO_OLD);
    assert_int_equal(echo(&bench, tsn[2], 141 * US), PATH_ECHO_OLD);
    /* A peer that says to have held it for longer than all took: an echo, but no sample. */
    assert_int_equal(echo_held(&bench, tsn[6], UINT32_MAX, 150 * US), PATH_ECHO_NEWS);
    assert_int_equal(bench.path.rtt.newest_ns, 80 * US);
    assert_int_equal(path_on_arrived(&bench.path, tsn[5], at(150 * US)), PATH_ECHO_OLD);
    assert_int_equal(path_on_arrived(&bench.path, tsn[7], at(150 * US)), PATH_ECHO_NEWS);
    assert_int_equal(bench.path.rtt.newest_ns, 80 * US);
    assert_int_equal(path_flight(&bench.path), 0);
    assert_true(path_deadline(&bench.path).ns == UINT64_MAX);
}

/* The peer tells of each mark once: also in an answer that has no other news, because data came
 * before it, or a later answer. Nothing but an echo that is impossible makes them void. */
static void test_marks(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, 0, 0);
    for (uint32_t n = 0; n < 4; n++) {
        (void)sent(&bench, n * 10 * US);
    }
    struct path_echo_report report = {.tsn = psn_of(0), .ce_packets = 1};
    assert_int_equal(path_on_echo(&bench.path, &report, at(100 * US)), PATH_ECHO_NEWS);
    assert_int_equal(bench.path.congestion.round_marked, PACKET);
    assert_int_equal(path_on_arrived(&bench.path, psn_of(2), at(110 * US)), PATH_ECHO_NEWS);
    report = (struct path_echo_report){.tsn = psn_of(2), .ce_packets = 2};
    assert_int_equal(path_on_echo(&bench.path, &report, at(111 * US)), PATH_ECHO_OLD);
    report = (struct path_echo_report){.tsn = psn_of(1), .ce_packets = 3};
    assert_int_equal(path_on_echo(&bench.path, &report, at(112 * US)), PATH_ECHO_OLD);
    report = (struct path_echo_report){.tsn = psn_of(9), .ce_packets = 100};
    assert_int_equal(path_on_echo(&bench.path, &report, at(113 * US)), PATH_ECHO_IMPOSSIBLE);
    assert_int_equal(echo(&bench, psn_of(3), 114 * US), PATH_ECHO_NEWS);
    assert_int_equal(bench.path.congestion.round_marked, 6 * PACKET);
}

/* More than it can remember, and packets of one instant. */
static void test_records(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, 7, 0);
    for (uint32_t n = 0; n < 1000; n++) {
        sent(&bench, 5);
    }
    assert_int_equal(bench.path.record_count, 1);
    assert_int_equal(echo(&bench, psn_of(7 + 249), 100), PATH_ECHO_NEWS);
    assert_int_equal(path_flight(&bench.path), 750 * PACKET);
    for (uint32_t n = 0; n < 3 * PATH_RECORDS; n++) {
        sent(&bench, 1000 * (n + 1));
    }
    assert_int_equal(bench.path.record_count, PATH_RECORDS);
    assert_int_equal(echo(&bench, psn_of(7 + 999), MS), PATH_ECHO_OLD);
    const struct psn last = psn_before(bench.path.next, 1);
    assert_false(path_lost(&bench.path, psn_of(7 + 999), at(MS)));
    assert_int_equal(echo(&bench, last, MS), PATH_ECHO_NEWS);
    assert_int_equal(path_flight(&bench.path), 0);
    /* A forgotten packet is not lost later than a remembered one. */
    assert_true(path_loss_deadline(&bench.path, psn_of(7 + 999)).ns <=
                path_loss_deadline(&bench.path, psn_before(last, 1)).ns);
    /* Packets that leave within a small part of a round trip share a record. */
    start_at(&bench, 0, 0);
    sent(&bench, 0);
    assert_int_equal(echo(&bench, psn_of(0), 32 * MS), PATH_ECHO_NEWS);
    for (uint64_t ns = 0; ns < 64 * MS; ns += 10 * US) {
        sent(&bench, 32 * MS + ns);
    }
    assert_true(bench.path.record_count <= PATH_RECORDS);
    assert_int_equal(echo(&bench, psn_of(1), 97 * MS), PATH_ECHO_NEWS);
    assert_int_equal(bench.path.rtt.newest_ns, 65 * MS);
}

/* A packet of a pipe: when it left, and whether it comes. */
struct packet {
    uint64_t left, known; /* UINT64_MAX: nobody will ever hear of it. */
};

/* Plays packets through a pipe of `trip` that may delay each by `late` and loses some; echoes come
 * in the order of arrival. Nothing is lost that is not; all that is lost is found. */
static void play_pipe(uint64_t trip, uint64_t late, uint32_t loss, uint64_t seed)
{
    enum {
        PACKETS = 400
    };
    struct packet packets[PACKETS];
    struct bench bench;
    struct prng prng;
    prng_init(&prng, seed);
    start_at(&bench, (uint32_t)prng_next(&prng), trip);
    const struct psn first = bench.path.next;
    const uint64_t gap = trip / 64;
    for (uint32_t n = 0; n < PACKETS; n++) {
        packets[n].left = n * gap;
        packets[n].known = n * gap + trip + (late != 0 ? prng_below(&prng, late) : 0);
        /* The last is never lost: what would be found by is for probes. */
        if (n + 1 < PACKETS && prng_chance(&prng, loss)) {
            packets[n].known = UINT64_MAX;
        }
    }
    uint32_t next = 0;
    for (uint64_t now = 0; now < PACKETS * gap + 4 * trip; now += gap / 4) {
        for (uint32_t n = 0; n < next; n++) {
            if (packets[n].known <= now && packets[n].known > now - gap / 4) {
                (void)echo(&bench, psn_after(first, n), now);
            }
        }
        for (; next < PACKETS && packets[next].left <= now; next++) {
            assert_int_equal(sent(&bench, now).value, psn_after(first, next).value);
        }
        for (uint32_t n = 0; n < next; n++) {
            if (packets[n].known > now && packets[n].known != UINT64_MAX) {
                assert_false(path_lost(&bench.path, psn_after(first, n), at(now)));
            }
        }
    }
    for (uint32_t n = 0; n + 1 < PACKETS; n++) {
        assert_true(packets[n].known != UINT64_MAX ||
                    path_lost(&bench.path, psn_after(first, n), at(UINT32_MAX)));
    }
}

/* EXA-100: two paths whose delays differ by a millisecond lose nothing to each other, because each
 * is a pipe of its own; nor does one that is late by less than its reordering window. */
static void test_losses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        play_pipe(500 * US, 0, 0, seed);
        play_pipe(1500 * US, 0, 0, seed);
        play_pipe(1500 * US, 0, 100000, seed);
        play_pipe(1500 * US, 300 * US, 0, seed);
        play_pipe(20 * MS, 4 * MS, 50000, seed);
    }
}

/* Spurious losses widen the window, up to a smoothed round trip; later it shrinks. */
static void test_reordering_adapts(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, 0, 1 * MS);
    const struct psn early = sent(&bench, 0), later = sent(&bench, 0);
    assert_int_equal(echo(&bench, later, 1 * MS), PATH_ECHO_NEWS);
    assert_true(path_loss_deadline(&bench.path, later).ns == UINT64_MAX);
    assert_true(path_loss_deadline(&bench.path, early).ns == 1250 * US);
    path_on_spurious(&bench.path, 1, at(2 * MS));
    path_on_spurious(&bench.path, 1, at(2 * MS + 1));
    assert_true(path_loss_deadline(&bench.path, early).ns == 1500 * US);
    for (uint64_t n = 3; n < 30; n++) {
        path_on_spurious(&bench.path, 1, at(n * MS));
    }
    assert_true(path_loss_deadline(&bench.path, early).ns == 2 * MS);
    for (uint64_t n = 0; n < 16; n++) {
        assert_true(path_loss_deadline(&bench.path, early).ns == 2 * MS);
        path_on_lost(&bench.path, PACKET, at((40 + n) * MS));
        path_on_lost(&bench.path, PACKET, at((40 + n) * MS + 1));
    }
    assert_true(path_loss_deadline(&bench.path, early).ns == 1250 * US);
}

/* Short round trips do not make reordering shorter: a packet may be many round trips late. */
static void test_reordering_of_short_trips(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, 0, 60 * US);
    const struct psn early = sent(&bench, 0), later = sent(&bench, 0);
    assert_int_equal(echo(&bench, later, 60 * US), PATH_ECHO_NEWS);
    assert_true(path_loss_deadline(&bench.path, early).ns == 110 * US);
    for (uint64_t n = 1; n < 30; n++) {
        path_on_spurious(&bench.path, 1, at(n * MS));
        assert_true(path_loss_deadline(&bench.path, early).ns ==
                    (60 + 50 * (n < 15 ? n + 1 : 16)) * US);
    }
}

/* Slowing down is undone only if what was taken for lost had come, for the greater part. */
static void test_undone_if_most_had_come(void **state)
{
    (void)state;
    for (uint32_t spurious = 1; spurious <= 10; spurious++) {
        struct bench bench;
        start_at(&bench, 0, 1 * MS);
        struct congestion *congestion = &bench.path.congestion;
        congestion->before_loss = 100 * congestion->window;
        congestion->loss_rounds = 0;
        const uint64_t window = congestion->window;
        path_on_lost(&bench.path, 20 * PACKET, at(1 * MS));
        path_on_spurious(&bench.path, spurious, at(2 * MS));
        assert_true((congestion->window > window) == (spurious == 10));
        /* Old losses count less. */
        path_on_lost(&bench.path, 2 * PACKET, at(20 * MS));
        path_on_spurious(&bench.path, 4, at(21 * MS));
        assert_true((congestion->window > window) == (spurious >= 4));
    }
}

/* EXA-98: a probe after the probe's timer; this is doubled, and after 16 tries, by as many routes,
 * up to 64 times; anew after news. */
static void test_probes(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, 0, 4 * MS);
    assert_true(path_deadline(&bench.path).ns == UINT64_MAX);
    const struct psn tsn = sent(&bench, 100 * MS);
    sent(&bench, 105 * MS);
    uint64_t now = 100 * MS, wait = 8 * MS;
    for (uint32_t n = 0; n < 30; n++) {
        assert_true(path_on_time(&bench.path, at(0), at(now + wait - 1)) == PATH_QUIET);
        assert_int_equal(bench.path.turns, n == 0 ? 0 : n - 1);
        now += wait;
        assert_true(path_on_time(&bench.path, at(0), at(now)) == PATH_PROBE);
        wait = (n >= 1 && n < 17) || wait == 64 * 8 * MS ? wait : 2 * wait;
        assert_true(path_deadline(&bench.path).ns <= now + wait);
    }
    /* It timed out, too: the window is the least, but the path is not to blame. */
    assert_false(bench.path.suspect);
    assert_int_equal(congestion_window(&bench.path.congestion, &bench.policy.congestion),
                     2 * PACKET);
    assert_int_equal(echo(&bench, tsn, now + 1), PATH_ECHO_NEWS);
    const uint64_t again = rtt_pto_ns(&bench.path.rtt, &bench.policy.rtt, 0);
    assert_true(path_deadline(&bench.path).ns == now + 1 + again);
    /* The route that answered is kept. */
    assert_true(path_on_time(&bench.path, at(0), at(now + 1 + again)) == PATH_PROBE);
    assert_int_equal(bench.path.turns, 29);
}

/* EXA-100: a path that is silent through its probe and a timeout while another is not is left;
 * small probes, ever more seldom, bring it back. */
static void test_left(void **state)
{
    (void)state;
    struct bench bench;
    start_at(&bench, 0, 1 * MS);
    const struct psn tsn = sent(&bench, 0);
    assert_true(path_on_time(&bench.path, at(0), at(2 * MS)) == PATH_PROBE);
    sent(&bench, 2 * MS);
    /* A packet that left on another path before the probe was due proves nothing. */
    assert_true(path_on_time(&bench.path, at(1 * MS), at(12 * MS)) == PATH_PROBE);
    const uint64_t timeout = bench.path.timeout_at.ns;
    assert_false(path_lost(&bench.path, tsn, at(timeout)));
    assert_true(path_on_time(&bench.path, at(20 * MS), at(timeout)) == PATH_LEFT);
    assert_true(path_lost(&bench.path, tsn, at(timeout)));
    assert_int_equal(path_room(&bench.path, at(10000 * MS)), 0);
    assert_true(path_room_at(&bench.path, at(10000 * MS)).ns == UINT64_MAX);
    uint64_t now = timeout, wait = 100 * MS;
    struct psn probe = tsn;
    for (int n = 0; n < 12; n++) {
        assert_true(path_deadline(&bench.path).ns == now + wait);
        now += wait;
        assert_true(path_on_time(&bench.path, at(now), at(now)) == PATH_PROBE);
        assert_true(path_on_time(&bench.path, at(now), at(now)) == PATH_QUIET);
        probe = sent(&bench, now);
        assert_int_equal(bench.path.turns, n + 1); /* One before it was left. */
        wait = n == 0 ? 100 * MS : wait;
        wait = n != 0 && wait < 10000 * MS ? (2 * wait > 10000 * MS ? 10000 * MS : 2 * wait) : wait;
    }
    /* The first answer asks for another; if that one is lost, it starts anew. */
    assert_int_equal(echo(&bench, probe, now + 3 * MS), PATH_ECHO_NEWS);
    assert_true(bench.path.suspect);
    for (int n = 0; n < 2; n++) {
        now = path_deadline(&bench.path).ns;
        assert_true(path_on_time(&bench.path, at(now), at(now)) == PATH_PROBE);
        probe = sent(&bench, now);
    }
    assert_int_equal(echo(&bench, probe, now + 3 * MS), PATH_ECHO_NEWS);
    assert_true(bench.path.suspect);
    assert_true(path_on_time(&bench.path, at(now), at(now + 3 * MS)) == PATH_PROBE);
    probe = sent(&bench, now + 3 * MS);
    assert_int_equal(echo(&bench, probe, now + 6 * MS), PATH_ECHO_NEWS);
    assert_false(bench.path.suspect);
    assert_int_equal(rtt_least_ns(&bench.path.rtt), 3 * MS);
    assert_int_equal(path_flight(&bench.path), 0);
    assert_true(path_room(&bench.path, at(now + 7 * MS)) > 0);
}

/* A quarter of a millisecond without a question, between a quarter and a 16th of the window. */
static void test_asks(void **state)
{
    (void)state;
    static const struct {
        uint64_t trip_us;
        uint32_t packets; /* The window has 65 of them, and a half. */
    } rows[] = {{0, 17}, {200, 17}, {1000, 17}, {2000, 9}, {20000, 5}};
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct bench bench;
        start_at(&bench, 0, rows[row].trip_us * US);
        for (uint32_t n = 0; n < rows[row].packets; n++) {
            assert_false(path_wants_answer(&bench.path));
            sent(&bench, 0);
        }
        assert_true(path_wants_answer(&bench.path));
        (void)path_sent(&bench.path, PACKET, true, at(0));
        assert_false(path_wants_answer(&bench.path));
    }
}

/* A sender of one packet in a round trip learns nothing about the path's capacity. */
static void test_seldom_used(void **state)
{
    (void)state;
    for (uint32_t packets = 1; packets <= 40; packets += 39) {
        struct bench bench;
        start_at(&bench, 0, 1 * MS);
        const uint32_t before = congestion_window(&bench.path.congestion, &bench.policy.congestion);
        for (uint64_t n = 1; n < 20; n++) {
            struct psn last = bench.path.next;
            for (uint32_t packet = 0; packet < packets; packet++) {
                last = sent(&bench, n * MS);
            }
            assert_int_equal(echo(&bench, last, (n + 1) * MS), PATH_ECHO_NEWS);
        }
        const uint32_t after = congestion_window(&bench.path.congestion, &bench.policy.congestion);
        assert_true(packets == 1 ? after == before : after > before);
    }
}

/* Sends whenever there is room, for a second, with echoes a round trip later; never beyond the
 * window, and with the pace of the rate. */
static void test_window_and_pace(void **state)
{
    (void)state;
    enum {
        TRIP = 10000000
    };
    struct bench bench;
    start_at(&bench, 0, TRIP);
    bench.policy.congestion.most_bytes = 100 * PACKET; /* The window stays so. */
    static uint64_t sent_at[65536];
    uint32_t next = 0, echoed = 0, bursts = 0, burst_most = 0;
    uint64_t now = 0;
    while (now < 1000 * MS) {
        uint32_t burst = 0;
        while (path_room(&bench.path, at(now)) != 0) {
            assert_true(path_room_at(&bench.path, at(now)).ns <= now);
            sent_at[next++ % 65536] = now;
            sent(&bench, now);
            burst++;
            assert_true(path_flight(&bench.path) <= 101 * PACKET);
        }
        bursts += burst != 0;
        burst_most = now > 100 * MS && burst > burst_most ? burst : burst_most;
        const uint64_t room = path_room_at(&bench.path, at(now)).ns;
        const uint64_t news = echoed < next ? sent_at[echoed % 65536] + TRIP : UINT64_MAX;
        assert_true(room > now);
        assert_true(room != UINT64_MAX || news != UINT64_MAX);
        now = room < news ? room : news;
        while (echoed < next && sent_at[echoed % 65536] + TRIP <= now) {
            assert_int_equal(echo(&bench, psn_of(echoed++), now), PATH_ECHO_NEWS);
        }
    }
    /* A window in a round trip: 100 packets in 10 ms; batches of an eighth of a millisecond. */
    assert_in_range(next, 9500, 10100);
    assert_in_range(burst_most, 2, 5); /* Two batches of two, and what overshoots. */
    /* All of a batch leaves at once, not what is paid for beyond it. */
    assert_true(next >= 2 * bursts - 20);
}

/* How much leaves at once after a sender has slept. */
static uint32_t room_after_sleep(uint64_t trip_ns)
{
    struct bench bench;
    start_at(&bench, 0, trip_ns);
    assert_int_equal(echo(&bench, sent(&bench, 0), trip_ns), PATH_ECHO_NEWS);
    bench.path.congestion.window = (uint64_t)1000 * PACKET << 8;
    return path_room(&bench.path, at(100 * MS));
}

/* Where a round trip is shorter than a sender may oversleep, it catches up on a quarter of the
 * window; else on little, since what leaves at once is a queue on its way. */
static void test_oversleeps(void **state)
{
    (void)state;
    assert_in_range(room_after_sleep(MS), 249 * PACKET, 251 * PACKET);
    assert_in_range(room_after_sleep(20 * MS), 2 * PACKET, 50 * PACKET);
}

/* Only packets that are paid for leave, also where a nanosecond pays for more than one. */
static void test_fast_pace(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t packets = 0;
    start_at(&bench, 0, US);
    assert_int_equal(echo(&bench, sent(&bench, 0), US), PATH_ECHO_NEWS);
    bench.path.congestion.window = (uint64_t)1000 * PACKET << 8;
    while (path_room(&bench.path, at(MS)) != 0) {
        sent(&bench, MS);
        packets++;
    }
    assert_in_range(packets, 50, 251); /* A quarter of the window at most. */
}

/* Sends as long as there is room, for 2 ms. Returns the last TSN. */
static struct psn send_what_may_leave(struct bench *bench, uint64_t *now)
{
    struct psn last = psn_of(0);
    for (const uint64_t end = *now + 2000 * US; *now < end; *now += US) {
        if (path_room(&bench->path, at(*now)) > 0) {
            last = sent(bench, *now);
        }
    }
    return last;
}

/* Packets in flight after ten pauses of the peer of 20 ms each, behind which it has all that left.
 */
static uint32_t flight_after_pauses(struct path_policy policy)
{
    struct bench bench;
    uint64_t now = 0;
    start_with(&bench, policy, 0, 0);
    for (uint32_t pause = 0; pause < 10; pause++) {
        const struct psn last = send_what_may_leave(&bench, &now);
        for (const uint64_t end = now + 20000 * US; now < end; now += 100 * US) {
            if (instant_reached(at(now), path_deadline(&bench.path))) {
                (void)!path_on_time(&bench.path, at(0), at(now));
            }
        }
        (void)echo(&bench, last, now);
    }
    (void)send_what_may_leave(&bench, &now);
    return path_flight(&bench.path) / PACKET;
}

/* A ring in memory loses nothing: a peer that pauses does not run. */
static void test_ring(void **state)
{
    (void)state;
    assert_in_range(flight_after_pauses(path_policy_default()), 1, 100);
    assert_true(flight_after_pauses(path_policy_of_ring()) >= 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echoes),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_reordering_adapts),
        cmocka_unit_test(test_reordering_of_short_trips),
        cmocka_unit_test(test_undone_if_most_had_come),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_seldom_used),
        cmocka_unit_test(test_window_and_pace),
        cmocka_unit_test(test_oversleeps),
        cmocka_unit_test(test_fast_pace),
        cmocka_unit_test(test_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
