/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_times_test - how long messages take: behind a late packet, without a receive, to a stranger.
 *
 * Goal    A packet that is late makes its own message late and no other one (SRD-40). A message
 *         that finds no receive is refused in one round trip, or comes again after the pauses that
 *         the target asks for (SRD-41). The first message to a process takes one round trip more,
 *         and no other one does (SRD-42).
 * Method  Two processes in virtual time, at a distance that the seed draws. A message's time is
 *         that from posting it to its receive's completion. For SRD-40 the seed draws a packet
 *         that takes 50 ms, and the run is compared with the same one without that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/scenarios/seeds.h"
#include "tests/world/processes.h"

#define MS       PROCESSES_MS
#define S        PROCESSES_S
#define MESSAGES 1000u
#define BYTES    (4 * PROCESSES_CHUNK)
#define HELD_PS  (50 * MS)
/* A target without a receive asks for a pause of this. */
#define PAUSE_PS (64 * UINT64_C(16) * MS / 1000)

struct message {
    struct sim_event post;
    uint32_t bytes;
    uint64_t posted_ps, delivered_ps, completed_ps; /* 0: not yet. */
    uint32_t status;
};

/* A packet that takes its time. */
struct held {
    struct sim_event event;
    uint32_t count;
    uint8_t bytes[SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX];
};

struct rows {
    struct processes world;
    struct message messages[MESSAGES];
    uint32_t held; /* The message of which a packet is held; MESSAGES: none. */
    uint32_t held_index;
    bool holds_all; /* And each copy of it. */
    struct held copies[512];
    uint32_t copy_count;
    uint32_t left[256]; /* Packets that left, by opcode. */
    uint64_t trip_ps;   /* One way. */
};

static struct rows *rows_of(struct processes *world)
{
    return CONTAINER_OF(world, struct rows, world);
}

static void on_release(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    const struct held *held = CONTAINER_OF(event, struct held, event);
    link_send(&world->link, 0, 1, held->bytes, held->count);
}

/* Keeps the packet that is held. */
static bool on_leaving(struct processes *world, uint32_t from, uint32_t to, const uint8_t *bytes,
                       uint32_t count)
{
    struct rows *rows = rows_of(world);
    struct srd_packet packet;
    (void)from;
    (void)to;
    rows->left[bytes[0]]++;
    if (bytes[0] != SRD_SEND || srd_decode(bytes, count, NULL, 0, &packet) != SRD_GOOD ||
        packet.immediate != rows->held || packet.index != rows->held_index ||
        (packet.resent && !rows->holds_all)) {
        return true;
    }
    CHECK(rows->copy_count < COUNT_OF(rows->copies));
    struct held *held = &rows->copies[rows->copy_count++];
    memcpy(held->bytes, bytes, count);
    held->count = count;
    sim_event_init(&held->event, on_release);
    sim_after(&world->sim, &held->event, HELD_PS);
    return false;
}

static void on_completed(struct processes *world, uint32_t process,
                         const struct completion *completion)
{
    struct rows *rows = rows_of(world);
    if (process == 0) {
        struct message *message = &rows->messages[completion->wr_id];
        assert_int_equal(message->completed_ps, 0);
        message->completed_ps = world->sim.now_ps;
        message->status = completion->vendor_error;
        return;
    }
    struct message *message = &rows->messages[completion->immediate];
    assert_int_equal(completion->status, COMPLETION_SUCCESS);
    assert_int_equal(completion->bytes, message->bytes);
    assert_int_equal(message->delivered_ps, 0);
    message->delivered_ps = world->sim.now_ps;
}

static void post(struct rows *rows, uint32_t number, uint32_t bytes)
{
    struct message *message = &rows->messages[number];
    message->bytes = bytes;
    message->posted_ps = rows->world.sim.now_ps;
    processes_send(&rows->world, 0, 1, WORK_SEND_IMMEDIATE, number, 0, bytes);
}

static void on_post(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    const struct message *message = CONTAINER_OF(event, struct message, post);
    struct rows *rows = rows_of(world);
    post(rows, (uint32_t)(message - rows->messages), message->bytes);
}

static void receive(struct rows *rows, uint32_t count)
{
    while (count-- != 0) {
        processes_receive(&rows->world, 1, 0, 0, BYTES);
    }
}

static void pass(struct rows *rows, uint64_t ps)
{
    sim_run_until(&rows->world.sim, rows->world.sim.now_ps + ps);
}

/* Two processes at a distance of `trip_ps`. */
static struct rows *start(uint64_t seed, uint64_t trip_ps, uint8_t rnr_retry)
{
    struct rows *rows = calloc(1, sizeof(*rows));
    struct processes_settings settings = {.count = 2,
                                          .depth = 1024,
                                          .datagrams = 8192,
                                          .rnr_retry = rnr_retry,
                                          .srd = processes_roomy,
                                          .link = {.latency_ps = trip_ps}};
    rows->held = MESSAGES;
    rows->trip_ps = trip_ps;
    rows->world.completed = on_completed;
    rows->world.leaves = on_leaving;
    settings.srd.peers = 2;
    processes_make(&rows->world, &settings, seed);
    return rows;
}

static void finish(struct rows *rows)
{
    pass(rows, 2 * S);
    assert_true(processes_are_quiet(&rows->world));
    processes_end(&rows->world);
    free(rows);
}

/* -- A late packet (SRD-40) ---------------------------------------------------------------------*/

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* The time that 99 % of the messages did not exceed, without those that waited until the flow was
 * fast; `in_order`: if none could overtake another. */
static uint64_t slow_ps(const struct rows *rows, uint32_t but, bool in_order)
{
    static uint64_t times[MESSAGES];
    uint64_t last_ps = 0;
    uint32_t count = 0;
    for (uint32_t i = MESSAGES / 4; i < MESSAGES; i++) {
        const struct message *message = &rows->messages[i];
        assert_int_equal(message->status, SRD_STATUS_OK);
        last_ps = message->delivered_ps > last_ps ? message->delivered_ps : last_ps;
        if (i != but) {
            times[count++] = (in_order ? last_ps : message->delivered_ps) - message->posted_ps;
        }
    }
    qsort(times, count, sizeof(times[0]), compare);
    return times[count * 99 / 100];
}

/* Messages of one to four packets, one each `gap_ps` or so; some packets overtake others. */
static struct rows *stream(uint64_t seed, uint64_t gap_ps, bool holds, bool holds_all)
{
    struct rows *rows = start(seed, MS / 20, 7);
    struct prng draws;
    prng_init(&draws, seed);
    rows->world.link.settings.reorder_ps = MS / 100;
    rows->world.link.settings.faults.millionths[SIM_FAULT_reorder] = 100000;
    receive(rows, MESSAGES);
    uint64_t at_ps = rows->world.sim.now_ps;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message *message = &rows->messages[i];
        at_ps += gap_ps / 2 + prng_below(&draws, gap_ps);
        message->bytes = (uint32_t)prng_below(&draws, BYTES) + 1;
        sim_event_init(&message->post, on_post);
        sim_schedule(&rows->world.sim, &message->post, at_ps);
    }
    const uint32_t held = MESSAGES / 2 + (uint32_t)prng_below(&draws, MESSAGES / 4);
    rows->held = holds ? held : MESSAGES;
    rows->held_index = (rows->messages[held].bytes - 1) / PROCESSES_CHUNK / 2;
    rows->holds_all = holds_all;
    pass(rows, at_ps + S - rows->world.sim.now_ps);
    return rows;
}

static void late_packet(uint64_t seed)
{
    struct rows *plain = stream(seed, MS / 200, false, false);
    struct rows *rows = stream(seed, MS / 200, true, false);
    const struct message *held = &rows->messages[rows->held];
    const uint64_t usual = slow_ps(plain, rows->held, false);
    assert_int_equal(rows->copy_count, 1);
    assert_in_range(usual, rows->trip_ps, 2 * rows->trip_ps);
    assert_true(held->delivered_ps - held->posted_ps > 2 * usual);
    assert_in_range(slow_ps(rows, rows->held, false), 0, usual * 110 / 100);
    assert_true(slow_ps(rows, rows->held, true) > 2 * usual); /* The run could have shown it. */
    finish(plain);
    finish(rows);
}

/* No copy comes sooner either. The flow slows down, as it does for any loss, but it goes on. */
static void late_copies(uint64_t seed)
{
    struct rows *rows = stream(seed, MS / 5, true, true);
    const struct message *held = &rows->messages[rows->held];
    assert_true(rows->copy_count > 1);
    assert_in_range(held->delivered_ps - held->posted_ps, HELD_PS, HELD_PS + MS);
    assert_in_range(slow_ps(rows, rows->held, false), 0, MS);
    assert_true(slow_ps(rows, rows->held, true) > 40 * MS);
    finish(rows);
}

/* -- No receive (SRD-41) ------------------------------------------------------------------------*/

/* A message of four packets to a target that gets a receive after `after_ps`. */
static struct rows *refused(uint64_t seed, uint8_t rnr_retry, uint64_t after_ps)
{
    struct prng draws;
    prng_init(&draws, seed);
    struct rows *rows = start(seed, MS / 50 + prng_below(&draws, MS / 10), rnr_retry);
    receive(rows, 1);
    post(rows, 0, BYTES);
    pass(rows, 100 * MS);
    assert_int_equal(rows->messages[0].status, SRD_STATUS_OK);
    post(rows, 1, BYTES);
    pass(rows, after_ps);
    receive(rows, 1);
    return rows;
}

static void no_receive(uint64_t seed)
{
    const struct message *message;
    struct rows *rows;
    for (uint8_t tries = 0; tries < 7; tries++) {
        rows = refused(seed, tries, 100 * MS);
        message = &rows->messages[1];
        const uint64_t ps = message->completed_ps - message->posted_ps;
        const uint64_t expected = tries * PAUSE_PS + 2 * (tries + UINT64_C(1)) * rows->trip_ps;
        assert_int_equal(message->status, SRD_STATUS_NO_RECEIVE);
        assert_in_range(ps, expected, expected * 6 / 5);
        pass(rows, 60 * S);
        assert_int_equal(message->delivered_ps, 0);
        finish(rows);
    }
    rows = refused(seed, 7, 10 * MS);
    message = &rows->messages[1];
    pass(rows, 60 * S);
    assert_int_equal(message->status, SRD_STATUS_OK);
    assert_in_range(message->delivered_ps - message->posted_ps, 10 * MS, 13 * MS);
    finish(rows);
}

/* -- First contact (SRD-42) ---------------------------------------------------------------------*/

/* Eight short messages at once: how long each takes, in ways from one process to the other. */
static void expect_ways(struct rows *rows, uint32_t first, uint32_t ways)
{
    receive(rows, 8);
    for (uint32_t i = first; i < first + 8; i++) {
        post(rows, i, 64);
    }
    pass(rows, 20 * rows->trip_ps);
    for (uint32_t i = first; i < first + 8; i++) {
        const struct message *message = &rows->messages[i];
        assert_int_equal(message->status, SRD_STATUS_OK);
        assert_in_range(message->delivered_ps - message->posted_ps, ways * rows->trip_ps,
                        ways * rows->trip_ps * 6 / 5);
    }
}

static void first_contact(uint64_t seed)
{
    struct prng draws;
    prng_init(&draws, seed);
    struct rows *rows = start(seed, 2 * MS + prng_below(&draws, 6 * MS), 0);
    expect_ways(rows, 0, 3);
    const uint32_t hellos = rows->left[SRD_HELLO];
    for (uint32_t i = 1; i < 6; i++) { /* At once, and after both have rested. */
        expect_ways(rows, 20 * i, 1);
        pass(rows, i / 2 * S);
    }
    assert_int_equal(rows->left[SRD_HELLO], hellos);
    pass(rows, 31 * S); /* The flow is begun anew. */
    expect_ways(rows, 200, 3);
    finish(rows);
}

static struct seeds seeds;

static void test_rows(void **state)
{
    (void)state;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        late_packet(seed);
        late_copies(seed);
        no_receive(seed);
        first_contact(seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    seeds = seeds_from_arguments(argc, argv, 10);
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
