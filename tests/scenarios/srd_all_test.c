/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_all_test - sixty-four processes, each of which sends to all others.
 *
 * Goal    All messages are delivered, once; each process knows 63 others, and room for no more is
 *         needed. One process is greedy: it has so much under way at one target that it alone could
 *         hold all places there for messages that come in part. No other process is slower for
 *         that, at this target or at any other (SRD-46).
 * Method  Messages of 1 KB, which are two packets, in virtual time; the seed draws the order of
 *         targets, and a network that overtakes and loses. Each process has a fixed number of
 *         messages under way, so that the time of one shows the rate. A target has 16 places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/scenarios/seeds.h"
#include "tests/world/processes.h"

#define MS         PROCESSES_MS
#define S          PROCESSES_S
#define ALL        64u
#define GREEDY     0u
#define TARGET     1u
#define BYTES      1024u
#define LONG_BYTES 8192u
#define DEPTH      8u  /* Messages of a process under way, ... */
#define HUNGER     64u /* ... and those of the greedy one to its target beside these. */
#define ROUNDS     20u /* Messages to each other process. */
#define RECEIVES   256u

struct party {
    uint32_t order[ALL - 1]; /* Its targets, in turn. */
    uint32_t sent, done;
    uint64_t ended_ps;
};

struct all {
    struct processes world;
    struct party parties[ALL];
    uint8_t *delivered;     /* By sender, target and number. */
    uint64_t *posted_ps;    /* Likewise. */
    uint64_t times_ps[ALL]; /* By target: of all messages to it but those of the greedy one. */
    uint32_t busy;          /* Processes that are not done. */
    uint64_t began_ps, long_ones;
};

static uint32_t place_of(uint32_t from, uint32_t to, uint32_t round)
{
    return (from * ALL + to) * ROUNDS + round;
}

static void send_next(struct all *all, uint32_t from)
{
    struct party *party = &all->parties[from];
    if (party->sent == (ALL - 1) * ROUNDS) {
        return;
    }
    const uint32_t to = party->order[party->sent % (ALL - 1)];
    const uint32_t number = place_of(from, to, party->sent / (ALL - 1));
    party->sent++;
    all->posted_ps[number] = all->world.sim.now_ps;
    processes_send(&all->world, from, to, WORK_SEND_IMMEDIATE, number, 0, BYTES);
}

/* A long message of the greedy one, until all are done; its number is that of no other. */
static void send_long(struct all *all)
{
    if (all->busy != 0) {
        processes_send(&all->world, GREEDY, TARGET, WORK_SEND_IMMEDIATE, UINT32_MAX, 0, LONG_BYTES);
    }
}

static void on_sent(struct all *all, uint32_t from, const struct completion *completion)
{
    struct party *party = &all->parties[from];
    if (completion->wr_id == UINT32_MAX) {
        all->long_ones++;
        send_long(all);
        return;
    }
    assert_int_equal(all->delivered[completion->wr_id], 1);
    if (++party->done == (ALL - 1) * ROUNDS) {
        party->ended_ps = all->world.sim.now_ps;
        all->busy--;
    }
    send_next(all, from);
}

static void on_completed(struct processes *world, uint32_t process,
                         const struct completion *completion)
{
    struct all *all = CONTAINER_OF(world, struct all, world);
    assert_int_equal(completion->status, COMPLETION_SUCCESS);
    if (completion->kind != COMPLETION_RECEIVE) {
        on_sent(all, process, completion);
        return;
    }
    if (completion->immediate != UINT32_MAX) {
        assert_int_equal(completion->bytes, BYTES);
        assert_int_equal(all->delivered[completion->immediate]++, 0);
        if (completion->immediate / ROUNDS / ALL != GREEDY) {
            all->times_ps[process] += world->sim.now_ps - all->posted_ps[completion->immediate];
        }
    }
    processes_receive(world, process, 0, 0, LONG_BYTES);
}

static void shuffle(struct all *all, uint32_t self)
{
    uint32_t *order = all->parties[self].order;
    for (uint32_t i = 0; i < ALL - 1; i++) {
        const uint32_t other = (uint32_t)prng_below(&all->world.sim.prng, i + 1u);
        order[i] = order[other];
        order[other] = i + (i >= self);
    }
}

static struct all *start(uint64_t seed)
{
    struct all *all = calloc(1, sizeof(*all));
    struct processes_settings settings = {
        .count = ALL,
        .depth = RECEIVES,
        .datagrams = 65536,
        .rnr_retry = 7,
        .srd = processes_roomy,
        .link = {.latency_ps = MS / 20, .reorder_ps = MS / 2, .late_ps = 0}};
    settings.srd.contacts = ALL - 1;
    settings.srd.assemblies = 16;
    settings.link.faults.millionths[SIM_FAULT_drop] = 2000;
    settings.link.faults.millionths[SIM_FAULT_reorder] = 200000;
    all->world.completed = on_completed;
    all->delivered = calloc(ALL * ALL * ROUNDS, 1);
    all->posted_ps = calloc(ALL * ALL * ROUNDS, sizeof(uint64_t));
    all->busy = ALL;
    processes_make(&all->world, &settings, seed);
    all->began_ps = all->world.sim.now_ps;
    for (uint32_t i = 0; i < ALL; i++) {
        shuffle(all, i);
        for (uint32_t k = 0; k < RECEIVES; k++) {
            processes_receive(&all->world, i, 0, 0, LONG_BYTES);
        }
    }
    return all;
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* How long a message to that process takes. */
static double mean_us(const struct all *all, uint32_t to)
{
    return (double)all->times_ps[to] / 1e6 / (ALL - 2) / ROUNDS;
}

static double usual_us(const struct all *all)
{
    uint64_t times[ALL];
    memcpy(times, all->times_ps, sizeof(times));
    qsort(times, ALL, sizeof(times[0]), compare);
    return (double)times[ALL / 2] / 1e6 / (ALL - 2) / ROUNDS;
}

static void all_to_all(uint64_t seed)
{
    struct all *all = start(seed);
    uint64_t times[ALL];
    for (uint32_t k = 0; k < HUNGER; k++) {
        send_long(all);
    }
    for (uint32_t i = 0; i < ALL; i++) {
        for (uint32_t k = 0; k < DEPTH; k++) {
            send_next(all, i);
        }
    }
    sim_run_until(&all->world.sim, all->began_ps + 10 * S);
    assert_int_equal(all->busy, 0);
    for (uint32_t i = 0; i < ALL; i++) {
        assert_int_equal(srd_contact_count(all->world.all[i].nic), ALL - 1);
        times[i] = i == GREEDY ? 0 : all->parties[i].ended_ps - all->began_ps;
    }
    qsort(times, ALL, sizeof(times[0]), compare);
    print_message("seed %llu: %.0f us to the target, %.0f us to others; %llu long ones\n",
                  (unsigned long long)seed, mean_us(all, TARGET), usual_us(all),
                  (unsigned long long)all->long_ones);
    assert_true(times[ALL - 1] < 2 * times[ALL / 2]);
    assert_true(mean_us(all, TARGET) < 2 * usual_us(all));
    assert_true(all->long_ones > HUNGER);
    assert_true(processes_are_quiet(&all->world));
    processes_end(&all->world);
    free(all->delivered);
    free(all->posted_ps);
    free(all);
}

static struct seeds seeds;

static void test_worlds(void **state)
{
    (void)state;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        all_to_all(seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds)};
    seeds = seeds_from_arguments(argc, argv, 2);
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
