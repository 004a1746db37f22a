/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_restarts_test - a process that dies and comes back again and again, while others send to it.
 *
 * Goal    Each request ends within 5 s, once: it succeeded, or was aborted, or is unknown. A
 *         success was delivered. A message that was denied comes only after it was posted again.
 *         None is delivered twice, to whichever life of the target (SRD-43).
 * Method  For a minute of virtual time the target dies every 100 ms; its next life posts receives
 *         up to 10 ms after it came. Four processes send to it over a network with losses, copies
 *         and packets that are up to 5 s late, which the seed draws.
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
#define BYTES    (4 * PROCESSES_CHUNK)
#define SENDERS  4u
#define TARGET   SENDERS
#define DEPTH    16u /* Messages of a sender under way. */
#define RECEIVES 64u
#define MESSAGES 400000u
#define STORM_PS (60 * S)
#define LIFE_PS  (100 * MS)
#define PAUSE_PS (40 * MS)
#define LIMIT_PS (5 * S) /* T_GIVEUP, and a second. */
#define STATUSES (SRD_STATUS_FEATURE_MISMATCH + 1)

/* A message, as its program knows it. */
struct fate {
    uint64_t posted_ps;
    uint32_t bytes;
    uint8_t delivered, status;
    bool done, denied; /* The last word was that it was not taken. */
};

/* A place of a sender, where one message after the other is under way. */
struct place {
    struct sim_event post;
    uint32_t sender, message;
};

struct storm {
    struct processes world;
    struct sim_event death, birth; /* It posts receives a while after it came. */
    struct place places[SENDERS][DEPTH];
    struct fate *fates;
    uint32_t posted, deaths;
    uint64_t until_ps, ends[STATUSES];
};

static struct storm *storm_of(struct processes *world)
{
    return CONTAINER_OF(world, struct storm, world);
}

static _Noreturn void violated(const struct processes *world, const char *what, uint32_t message)
{
    fail_msg("seed %llu, %.6f s, message %u: %s", (unsigned long long)world->seed,
             (double)world->sim.now_ps / 1e12, message, what);
    abort();
}

/* -- The target ---------------------------------------------------------------------------------*/

static void on_birth(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    (void)event;
    for (uint32_t i = 0; i < RECEIVES; i++) {
        processes_receive(world, TARGET, i % 32, i % 32 * BYTES, BYTES);
    }
}

static void on_death(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    struct storm *storm = storm_of(world);
    processes_restart(world, TARGET);
    sim_after(sim, &storm->birth, prng_below(&sim->prng, 10 * MS));
    storm->deaths++;
    if (sim->now_ps < storm->until_ps) {
        sim_after(sim, event, LIFE_PS);
    }
}

/* -- Senders ------------------------------------------------------------------------------------*/

/* The place's message, for the first time or once more. */
static void post(struct storm *storm, struct place *place)
{
    struct fate *fate = &storm->fates[place->message];
    fate->posted_ps = storm->world.sim.now_ps;
    fate->denied = false;
    const uint32_t at = (uint32_t)(place - storm->places[place->sender]) * BYTES;
    processes_send(&storm->world, place->sender, TARGET, WORK_SEND_IMMEDIATE, place->message, at,
                   fate->bytes);
}

static void on_post(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    post(storm_of(world), CONTAINER_OF(event, struct place, post));
}

/* The next message of a place whose last one is done. */
static void draw_next(struct storm *storm, struct place *place)
{
    struct prng *prng = &storm->world.sim.prng;
    if (storm->world.sim.now_ps >= storm->until_ps) {
        return;
    }
    CHECK(storm->posted < MESSAGES);
    place->message = storm->posted++;
    storm->fates[place->message].bytes = 1 + (uint32_t)prng_below(prng, BYTES);
    sim_after(&storm->world.sim, &place->post, prng_below(prng, PAUSE_PS));
}

static void on_end(struct storm *storm, uint32_t sender, const struct completion *completion)
{
    const uint32_t number = (uint32_t)completion->wr_id;
    struct fate *fate = &storm->fates[number];
    const uint64_t took_ps = storm->world.sim.now_ps - fate->posted_ps;
    struct place *place = storm->places[sender];
    while (place->message != number) {
        place++;
    }
    if (fate->done || took_ps > LIMIT_PS) {
        violated(&storm->world, fate->done ? "it ends twice" : "it ends too late", number);
    }
    CHECK(completion->vendor_error < STATUSES);
    storm->ends[completion->vendor_error]++;
    fate->status = (uint8_t)completion->vendor_error;
    switch (completion->vendor_error) {
    case SRD_STATUS_OK:
        if (fate->delivered != 1) {
            violated(&storm->world, "a success that was not delivered", number);
        }
        break;
    case SRD_STATUS_NO_RECEIVE:
    case SRD_STATUS_BAD_QPN: /* It waited for a receive of a queue pair that is gone. */
        fate->denied = true;
        if (fate->delivered != 0) {
            violated(&storm->world, "it was delivered, and denied", number);
        }
        sim_after(&storm->world.sim, &place->post, prng_below(&storm->world.sim.prng, MS));
        return;
    case SRD_STATUS_ABORT:
    case SRD_STATUS_UNRESPONSIVE: break;
    default: violated(&storm->world, "another status", number);
    }
    fate->done = true;
    draw_next(storm, place);
}

static void on_storm(struct processes *world, uint32_t process, const struct completion *completion)
{
    struct storm *storm = storm_of(world);
    if (process != TARGET) {
        on_end(storm, process, completion);
        return;
    }
    struct fate *fate = &storm->fates[completion->immediate];
    assert_int_equal(completion->status, COMPLETION_SUCCESS);
    assert_int_equal(completion->bytes, fate->bytes);
    if (++fate->delivered > 1 || fate->denied) {
        violated(world, fate->denied ? "delivered after it was denied" : "delivered twice",
                 completion->immediate);
    }
    processes_receive(world, TARGET, completion->wr_id, (uint32_t)completion->wr_id * BYTES, BYTES);
}

/* -- The world ----------------------------------------------------------------------------------*/

static void make_storm(struct storm *storm, uint64_t seed)
{
    struct processes_settings settings = {
        .count = SENDERS + 1,
        .depth = RECEIVES,
        .datagrams = 65536,
        .rnr_retry = 3,
        .srd = processes_roomy,
        .link = {.latency_ps = MS / 20, .reorder_ps = 2 * MS, .late_ps = 5 * S}};
    settings.link.faults.millionths[SIM_FAULT_drop] = 10000;
    settings.link.faults.millionths[SIM_FAULT_duplicate] = 10000;
    settings.link.faults.millionths[SIM_FAULT_reorder] = 100000;
    settings.link.faults.millionths[SIM_FAULT_late] = 5000;
    storm->fates = calloc(MESSAGES, sizeof(*storm->fates));
    storm->world.completed = on_storm;
    processes_make(&storm->world, &settings, seed);
    storm->until_ps = storm->world.sim.now_ps + STORM_PS;
    sim_event_init(&storm->birth, on_birth);
    sim_event_init(&storm->death, on_death);
    sim_after(&storm->world.sim, &storm->death, LIFE_PS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        for (uint32_t k = 0; k < DEPTH; k++) {
            storm->places[i][k].sender = i;
            sim_event_init(&storm->places[i][k].post, on_post);
            draw_next(storm, &storm->places[i][k]);
        }
    }
}

static void restarts(uint64_t seed)
{
    struct storm *storm = calloc(1, sizeof(*storm));
    make_storm(storm, seed);
    sim_run_until(&storm->world.sim, storm->until_ps + 20 * S);
    for (uint32_t i = 0; i < storm->posted; i++) {
        if (!storm->fates[i].done) {
            violated(&storm->world, "it never ends", i);
        }
    }
    assert_int_equal(storm->ends[SRD_STATUS_OK] + storm->ends[SRD_STATUS_ABORT] +
                         storm->ends[SRD_STATUS_UNRESPONSIVE],
                     storm->posted);
    assert_true(storm->deaths >= STORM_PS / LIFE_PS && storm->ends[SRD_STATUS_ABORT] != 0 &&
                storm->ends[SRD_STATUS_NO_RECEIVE] != 0 && storm->ends[SRD_STATUS_BAD_QPN] != 0 &&
                storm->ends[SRD_STATUS_OK] > storm->posted / 2);
    print_message(
        "seed %llu: %u messages, %u deaths; %llu aborted, %llu unknown, %llu denied\n",
        (unsigned long long)seed, storm->posted, storm->deaths,
        (unsigned long long)storm->ends[SRD_STATUS_ABORT],
        (unsigned long long)storm->ends[SRD_STATUS_UNRESPONSIVE],
        (unsigned long long)(storm->ends[SRD_STATUS_NO_RECEIVE] + storm->ends[SRD_STATUS_BAD_QPN]));
    assert_true(processes_are_quiet(&storm->world));
    processes_end(&storm->world);
    free(storm->fates);
    free(storm);
}

static struct seeds seeds;

static void test_worlds(void **state)
{
    (void)state;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        restarts(seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds)};
    seeds = seeds_from_arguments(argc, argv, 3);
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
