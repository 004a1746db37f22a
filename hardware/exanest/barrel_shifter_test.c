/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Bytes arrive in their lanes, all of them and nothing else, however they are shifted and
 *         however beats of different IDs are mixed.
 * Method  All pairs of lanes and all lengths; random mixtures of eight channels, against bytes that
 *         are copied one by one. Behaviours EXA-23, EXA-24.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/barrel_shifter.h"

#define SLOTS 64

/* A packet: where it comes from, where it goes, what came out of it. */
struct job {
    uint32_t source, target, bytes, id; /* Lanes of the first and the second. */
    uint32_t sent, got;                 /* Beats and words. */
    uint8_t from[272], to[256];
    uint8_t response;
    bool active;
};

struct bench {
    struct exanest_shifter shifter;
    struct exanest_shift_command commands[SLOTS];
    struct job jobs[SLOTS];
    uint32_t steps;
};

static void begin(struct bench *bench, uint32_t cycles, uint32_t bubble)
{
    memset(bench, 0, sizeof(*bench));
    exanest_shifter_init(&bench->shifter, cycles, bubble, SLOTS, bench->commands);
}

static void command(struct bench *bench, struct prng *prng, uint32_t slot, uint32_t id,
                    uint32_t source, uint32_t target, uint32_t bytes)
{
    struct job *job = &bench->jobs[slot];
    *job =
        (struct job){.source = source, .target = target, .bytes = bytes, .id = id, .active = true};
    for (size_t i = 0; i < sizeof(job->from); i++) {
        job->from[i] = (uint8_t)(1 + prng_below(prng, 255)); /* Never 0, as the pad is. */
    }
    exanest_shifter_command(&bench->shifter, id, slot, source, target, bytes);
}

static uint32_t words_of(uint32_t lane, uint32_t bytes)
{
    return (lane + bytes + 15) / 16;
}

static void beat(struct bench *bench, struct job *job, uint32_t response)
{
    struct exanest_read_beat shown = {.axi_id = (uint8_t)job->id, .response = (uint8_t)response};
    memcpy(&shown.word, job->from + 16 * (size_t)job->sent, 16);
    job->sent++;
    job->response |= (uint8_t)response;
    shown.last = job->sent == words_of(job->source, job->bytes);
    exanest_shifter_beat(&bench->shifter, &shown);
}

/* A cycle. The words that come out are kept, and looked at when the last one has come. Returns that
 * job. */
static struct job *step(struct bench *bench)
{
    struct exanest_shifted out;
    bench->steps++;
    if (!exanest_shifter_step(&bench->shifter, &out)) {
        return NULL;
    }
    struct job *job = &bench->jobs[out.slot];
    const uint32_t words = words_of(job->target, job->bytes);
    assert_true(job->active && job->got < words);
    memcpy(job->to + 16 * (size_t)job->got, &out.word, 16);
    job->got++;
    if (job->got < words) {
        return NULL;
    }
    uint8_t expected[256] = {0};
    memcpy(expected + job->target, job->from + job->source, job->bytes);
    assert_memory_equal(job->to, expected, 16 * (size_t)words);
    assert_int_equal(job->sent, words_of(job->source, job->bytes));
    assert_int_equal(out.response, job->response);
    job->active = false;
    return job;
}

/* EXA-23: every pair of lanes, every length that fits into a packet. */
static void test_all_shifts(void **state)
{
    (void)state;
    static struct bench bench;
    struct prng prng;
    prng_init(&prng, 1);
    begin(&bench, 2, 0);
    for (uint32_t source = 0; source < 16; source++) {
        for (uint32_t target = 0; target < 16; target++) {
            for (uint32_t bytes = 1; bytes <= 256 - target; bytes++) {
                struct job *job = &bench.jobs[bytes % SLOTS];
                command(&bench, &prng, bytes % SLOTS, bytes % 8, source, target, bytes);
                uint32_t left = 100;
                while (job->active) {
                    assert_true(left-- != 0);
                    if (job->sent < words_of(source, bytes) &&
                        exanest_shifter_ready(&bench.shifter)) {
                        beat(&bench, job, 0);
                    }
                    step(&bench);
                }
            }
        }
    }
    assert_true(exanest_shifter_idle(&bench.shifter));
}

/* EXA-24: eight channels, mixed at random; within one, first come, first served. */
static void test_mixed_channels(void **state)
{
    (void)state;
    static struct bench bench;
    struct prng prng;
    uint32_t queue[8][SLOTS], head[8] = {0}, tail[8] = {0}, finished = 0;
    prng_init(&prng, 2);
    begin(&bench, 2, 0);
    for (uint32_t round = 0; round < 400000; round++) {
        const uint32_t slot = (uint32_t)prng_below(&prng, SLOTS);
        if (!bench.jobs[slot].active && prng_below(&prng, 12) == 0) {
            const uint32_t id = (uint32_t)prng_below(&prng, 8);
            const uint32_t target = (uint32_t)prng_below(&prng, 16);
            const uint32_t most = prng_below(&prng, 2) ? 256 - target : 40;
            command(&bench, &prng, slot, id, (uint32_t)prng_below(&prng, 16), target,
                    1 + (uint32_t)prng_below(&prng, most));
            queue[id][tail[id]++ % SLOTS] = slot;
        }
        const uint32_t id = (uint32_t)prng_below(&prng, 8);
        if (head[id] != tail[id] && exanest_shifter_ready(&bench.shifter)) {
            struct job *job = &bench.jobs[queue[id][head[id] % SLOTS]];
            beat(&bench, job, prng_below(&prng, 50) ? 0 : 2 + (uint32_t)prng_below(&prng, 2));
            head[id] += job->sent == words_of(job->source, job->bytes);
        }
        finished += step(&bench) != NULL;
    }
    assert_true(finished > 10000);
}

/* Two cycles, one beat a cycle; a packet whose last beat makes two words costs one more. */
static void test_cycles(void **state)
{
    (void)state;
    static struct bench bench;
    struct prng prng;
    prng_init(&prng, 3);
    for (uint32_t cycles = 0; cycles <= EXANEST_SHIFTER_CYCLES_MAX; cycles += 2) {
        begin(&bench, cycles, 0);
        command(&bench, &prng, 3, 1, 0, 0, 256);
        for (uint32_t i = 0; i < 16; i++) {
            assert_true(exanest_shifter_ready(&bench.shifter));
            beat(&bench, &bench.jobs[3], 0);
            assert_false(exanest_shifter_ready(&bench.shifter));
            step(&bench);
            assert_int_equal(bench.jobs[3].got, i + 1 > cycles ? i + 1 - cycles : 0);
        }
        for (uint32_t i = 0; i < cycles; i++) {
            assert_false(exanest_shifter_idle(&bench.shifter));
            step(&bench);
        }
        assert_int_equal(bench.jobs[3].got, 16);
        assert_true(exanest_shifter_idle(&bench.shifter));
    }
    begin(&bench, 2, 0);
    command(&bench, &prng, 0, 0, 0, 8, 16);
    beat(&bench, &bench.jobs[0], 0);
    step(&bench);
    assert_false(exanest_shifter_ready(&bench.shifter));
    step(&bench);
    assert_true(exanest_shifter_ready(&bench.shifter));
    begin(&bench, 2, 8);
    command(&bench, &prng, 0, 0, 0, 0, 16);
    beat(&bench, &bench.jobs[0], 0);
    for (uint32_t i = 0; i <= 8; i++) {
        assert_false(exanest_shifter_ready(&bench.shifter));
        step(&bench);
    }
    assert_true(exanest_shifter_ready(&bench.shifter));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_shifts),
        cmocka_unit_test(test_mixed_channels),
        cmocka_unit_test(test_cycles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
