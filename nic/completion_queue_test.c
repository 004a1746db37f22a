/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Completions come out once, in order, and unchanged; the one too many is refused and
 *         noticed; an armed queue fires exactly once, for exactly the completion it waits for.
 * Method  Random pushes, polls, armings and resizings, beside a model that never wraps: an array of
 *         every completion ever pushed, and the two wishes a program can have open. Positions start
 *         shortly before they wrap. Every combination of arming and completion is tried by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "nic/completion_queue.h"

enum {
    CAPACITY_MAX = 20,
    STEPS = 300,
    SEEDS = 2000,
    POLL_MAX = 24
};

struct world {
    struct prng prng;
    struct cq cq;
    struct completion *ring; /* Exactly as long as the queue says, for the sanitizer to guard. */
    struct completion all[STEPS];
    uint32_t pushed, polled, capacity;
    bool wants_any, wants_solicited, lost;
};

static struct {
    uint32_t results[CQ_OVERRUN + 1];
    uint32_t grown, shrunk;
} seen;

static uint32_t draw(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

static struct completion *new_ring(uint32_t capacity)
{
    struct completion *ring = malloc(cq_ring_entries(capacity) * sizeof(*ring));
    assert_non_null(ring);
    return ring;
}

static struct completion random_completion(struct world *world)
{
    struct completion completion;
    uint8_t *bytes = (uint8_t *)&completion;
    for (size_t i = 0; i < sizeof(completion); i++) {
        bytes[i] = (uint8_t)draw(world, 256);
    }
    completion.status = draw(world, 3) == 0 ? (uint8_t)draw(world, 14) : COMPLETION_SUCCESS;
    completion.solicited = draw(world, 3) == 0;
    return completion;
}

static void push(struct world *world)
{
    const struct completion completion = random_completion(world);
    enum cq_push_result expected = CQ_PUSHED;
    if (world->pushed - world->polled == world->capacity) {
        expected = CQ_OVERRUN;
        world->lost = true;
    } else {
        world->all[world->pushed++] = completion;
        const bool solicited = completion.solicited || completion.status != COMPLETION_SUCCESS;
        if (world->wants_any || (world->wants_solicited && solicited)) {
            expected = CQ_PUSHED_NOTIFY;
            world->wants_any = false;
            world->wants_solicited = false;
        }
    }
    assert_int_equal(cq_push(&world->cq, &completion, (struct instant){completion.at_ns}),
                     expected);
    seen.results[expected]++;
}

static void poll(struct world *world)
{
    struct completion out[POLL_MAX + 1];
    struct completion untouched;
    memset(&untouched, 0x55, sizeof(untouched));
    const uint32_t count = draw(world, POLL_MAX);
    const uint32_t waiting = world->pushed - world->polled;
    const uint32_t expected = count < waiting ? count : waiting;
    out[expected] = untouched;
    assert_int_equal(cq_poll(&world->cq, out, count), expected);
    assert_memory_equal(out, &world->all[world->polled], expected * sizeof(out[0]));
    assert_memory_equal(&out[expected], &untouched, sizeof(untouched));
    world->polled += expected;
}

static void arm(struct world *world)
{
    const bool solicited_only = draw(world, 2);
    cq_arm(&world->cq, solicited_only);
    world->wants_any |= !solicited_only;
    world->wants_solicited = true;
}

static void resize(struct world *world)
{
    const uint32_t waiting = world->pushed - world->polled;
    const uint32_t capacity = 1 + draw(world, CAPACITY_MAX);
    if (capacity < waiting) {
        return;
    }
    struct completion *ring = new_ring(capacity);
    assert_ptr_equal(cq_resize(&world->cq, capacity, ring), world->ring);
    free(world->ring);
    world->ring = ring;
    seen.grown += capacity > world->capacity;
    seen.shrunk += capacity < world->capacity;
    world->capacity = capacity;
}

static void test_against_model(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(&world, 0, sizeof(world));
        prng_init(&world.prng, seed);
        world.capacity = 1 + draw(&world, CAPACITY_MAX);
        world.ring = new_ring(world.capacity);
        memset(&world.cq, 0x55, sizeof(world.cq));
        cq_init(&world.cq, world.capacity, world.ring);
        world.cq.head = world.cq.tail = UINT32_MAX - draw(&world, STEPS);
        for (int i = 0; i < STEPS; i++) {
            const uint32_t choice = draw(&world, 16);
            if (choice < 10) {
                push(&world);
            } else if (choice < 12) {
                poll(&world);
            } else if (choice < 15) {
                arm(&world);
            } else {
                resize(&world);
            }
            assert_int_equal(cq_count(&world.cq), world.pushed - world.polled);
            assert_int_equal(world.cq.capacity, world.capacity);
            assert_int_equal(world.cq.overrun, world.lost);
        }
        free(world.ring);
    }
    for (size_t i = 0; i < COUNT_OF(seen.results); i++) {
        assert_true(seen.results[i] > 10000);
    }
    assert_true(seen.grown > 1000 && seen.shrunk > 1000);
}

/* Armings in the order they are made, what is pushed, and what that fires. */
static void test_every_arming(void **state)
{
    (void)state;
    enum {
        PLAIN,
        SOLICITED,
        FAILED
    };
    static const struct {
        const char *armings; /* n: for the next completion, s: for a solicited one. */
        int pushed;
        enum cq_push_result result;
    } cases[] = {
        {"", PLAIN, CQ_PUSHED},
        {"", SOLICITED, CQ_PUSHED},
        {"", FAILED, CQ_PUSHED},
        {"n", PLAIN, CQ_PUSHED_NOTIFY},
        {"n", SOLICITED, CQ_PUSHED_NOTIFY},
        {"n", FAILED, CQ_PUSHED_NOTIFY},
        {"s", PLAIN, CQ_PUSHED},
        {"s", SOLICITED, CQ_PUSHED_NOTIFY},
        {"s", FAILED, CQ_PUSHED_NOTIFY},
        {"sn", PLAIN, CQ_PUSHED_NOTIFY},
        {"ns", PLAIN, CQ_PUSHED_NOTIFY},
        {"nn", PLAIN, CQ_PUSHED_NOTIFY},
        {"ss", PLAIN, CQ_PUSHED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct completion ring[4];
        struct cq cq;
        cq_init(&cq, 4, ring);
        /* A completion that waits already is no reason to wake. */
        struct completion completion = {.solicited = true, .status = COMPLETION_FLUSHED};
        assert_int_equal(cq_push(&cq, &completion, (struct instant){1}), CQ_PUSHED);
        for (const char *arming = cases[i].armings; *arming != 0; arming++) {
            cq_arm(&cq, *arming == 's');
        }
        completion.solicited = cases[i].pushed == SOLICITED;
        completion.status = cases[i].pushed == FAILED ? COMPLETION_FLUSHED : COMPLETION_SUCCESS;
        assert_int_equal(cq_push(&cq, &completion, (struct instant){1}), cases[i].result);
        completion.status = COMPLETION_FLUSHED;
        const bool still_armed = cases[i].armings[0] != 0 && cases[i].result == CQ_PUSHED;
        assert_int_equal(cq_push(&cq, &completion, (struct instant){1}),
                         still_armed ? CQ_PUSHED_NOTIFY : CQ_PUSHED);
        assert_int_equal(cq_push(&cq, &completion, (struct instant){1}), CQ_PUSHED);
    }
}

/* Any set of completions may be forgotten: the rest comes out in order, from a ring that wraps. */
static void test_forgets_one_queue_pair(void **state)
{
    (void)state;
    for (uint32_t pattern = 0; pattern < 1u << 8; pattern++) {
        struct completion ring[8], out[8];
        struct cq cq;
        cq_init(&cq, 8, ring);
        cq.head = cq.tail = UINT32_MAX - 2;
        uint64_t kept[8];
        uint32_t kept_count = 0;
        for (uint32_t i = 0; i < 8; i++) {
            const bool ours = pattern >> i & 1;
            const struct completion completion = {.wr_id = i, .qpn = ours ? 7 : 8};
            assert_int_equal(cq_push(&cq, &completion, (struct instant){1}), CQ_PUSHED);
            if (!ours) {
                kept[kept_count++] = i;
            }
        }
        cq_forget_qp(&cq, 7);
        assert_int_equal(cq_poll(&cq, out, 8), kept_count);
        for (uint32_t i = 0; i < kept_count; i++) {
            assert_int_equal(out[i].wr_id, kept[i]);
            assert_int_equal(out[i].qpn, 8);
        }
        assert_int_equal(cq_count(&cq), 0);
    }
}

/* The addresses of senders stay beside their completions: pushed, polled, refused because the queue
 * is full, and forgotten with a queue pair. */
static void test_sources(void **state)
{
    (void)state;
    for (uint32_t pattern = 0; pattern < 1u << 8; pattern++) {
        struct completion ring[8], out;
        struct gid sources[8];
        struct cq cq;
        cq_init(&cq, 8, ring);
        cq.sources = sources;
        cq.head = cq.tail = UINT32_MAX - 2;
        for (uint32_t i = 0; i < 9; i++) {
            const struct gid source = {.bytes = {(uint8_t)(i + 1)}};
            const struct completion completion = {.wr_id = i, .qpn = pattern >> i & 1 ? 7 : 8};
            cq_note_source(&cq, &source);
            assert_int_equal(cq_push(&cq, &completion, (struct instant){1}),
                             i < 8 ? CQ_PUSHED : CQ_OVERRUN);
        }
        cq_forget_qp(&cq, 7);
        while (cq_count(&cq) > 0) {
            const struct gid source = *cq_peek_source(&cq, 0);
            assert_int_equal(cq_poll(&cq, &out, 1), 1);
            assert_int_equal(source.bytes[0], out.wr_id + 1);
            assert_int_equal(out.qpn, 8);
        }
    }
}

static void test_init(void **state)
{
    (void)state;
    static const struct {
        uint32_t capacity, entries;
    } sizes[] = {{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1000, 1024}, {1u << 31, 1u << 31}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_int_equal(cq_ring_entries(sizes[i].capacity), sizes[i].entries);
    }
    struct completion ring[4];
    struct cq cq;
    memset(&cq, 0x55, sizeof(cq));
    cq_init(&cq, 3, ring);
    assert_int_equal(cq.users, 0);
    assert_int_equal(cq.events, 0);
    assert_true(list_empty(&cq.notify));
    assert_true(list_empty(&cq.event_link));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_every_arming),
        cmocka_unit_test(test_forgets_one_queue_pair),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
