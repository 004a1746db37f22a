/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Both units do in each situation what the document says, cycle by cycle, also
 *         where the source's own scheme would lose order or a record. Behaviours CSR-01 .. CSR-08,
 *         CSR-13 .. CSR-15, CSR-17 .. CSR-21, CSR-23 .. CSR-27, CSR-30, CSR-31, CSR-43, CSR-44,
 *         CSR-46, CSR-50.
 * Method  Scripts. A world of arrays stands for memory and the units; it returns a context only
 *         when the script says so, and logs the answers. The invariants after every step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/align.h"
#include "hardware/csrna/qpc_manager.h"

enum {
    QPS = 1000,
    LOG = 4096
};

struct world {
    struct qpc_manager manager;
    void *manager_memory;
    struct qpc memory[QPS];
    uint32_t fetches[LOG], fetched, returned;
    struct qpc_answer answers[LOG];
    uint32_t versions[LOG]; /* The versions that the answers showed. */
    uint32_t answered, expected;
    uint32_t writes;
};

static struct world *start(enum qpc_policy policy, uint32_t oocap, uint32_t entries)
{
    struct world *world = calloc(1, sizeof(*world));
    const struct qpc_manager_parameters parameters = {
        .policy = policy, .victim = QPC_VICTIM_LRU, .oocap = oocap, .cache_entries = entries};
    world->manager_memory = aligned_alloc(64, line_aligned(qpc_manager_bytes(&parameters)));
    qpc_manager_init(&world->manager, &parameters, world->manager_memory);
    for (uint32_t i = 0; i < QPS; i++) {
        world->memory[i].qpn = i;
    }
    return world;
}

/* All answers were expected, and no work is left. */
static void end(struct world *world)
{
    assert_int_equal(world->expected, world->answered);
    assert_int_equal(world->returned, world->fetched);
    assert_true(qpc_manager_idle(&world->manager));
    assert_int_equal(pending_fifo_count(&world->manager.pending), 0);
    assert_int_equal(world->manager.table.count, 0);
    free(world->manager_memory);
    free(world);
}

static void act(struct world *world, const struct qpc_action *action)
{
    qpc_manager_check(&world->manager);
    if (action->writes_back) {
        world->memory[action->victim.qpn] = action->victim.context;
        world->writes++;
    }
    if (action->fetches) {
        world->fetches[world->fetched++] = action->fetch_qpn;
    }
    if (action->answers) {
        struct qpc *context = action->answer.context;
        assert_int_equal(context == NULL, action->answer.operation == QPC_PREFETCH);
        if (context != NULL) {
            assert_int_equal(context->qpn, action->answer.qpn);
            world->versions[world->answered] = context->version;
        }
        if (action->answer.operation == QPC_UPDATE) {
            context->version++;
        }
        world->answers[world->answered++] = action->answer;
    }
}

static void ask(struct world *world, uint8_t channel, uint8_t index, uint32_t qpn,
                enum qpc_operation operation)
{
    const struct qpc_request request = {
        .qpn = qpn, .channel = channel, .index = index, .operation = (uint8_t)operation};
    qpc_manager_request(&world->manager, &request);
}

static bool requests(struct world *world)
{
    struct qpc_action action;
    const bool due = qpc_manager_requests_due(&world->manager);
    assert_int_equal(qpc_manager_step_requests(&world->manager, &action), due);
    act(world, &action);
    return due;
}

static bool pending(struct world *world)
{
    struct qpc_action action;
    const bool due = qpc_manager_pending_due(&world->manager);
    assert_int_equal(qpc_manager_step_pending(&world->manager, &action), due);
    act(world, &action);
    return due;
}

/* Asks, and lets the request unit see it. */
static void see(struct world *world, uint8_t channel, uint8_t index, uint32_t qpn,
                enum qpc_operation operation)
{
    ask(world, channel, index, qpn, operation);
    assert_true(requests(world));
}

/* The oldest fetch returns. */
static void come(struct world *world)
{
    assert_true(world->returned < world->fetched);
    const uint32_t qpn = world->fetches[world->returned++];
    qpc_manager_on_fetched(&world->manager, qpn, &world->memory[qpn]);
}

/* Until nothing is left to do but to wait. */
static uint32_t settle(struct world *world)
{
    uint32_t cycles = 0;
    bool more = true;
    while (more) {
        more = pending(world);
        more |= requests(world);
        cycles += more;
        assert_true(cycles < 10000);
    }
    return cycles;
}

static void expect(struct world *world, uint32_t qpn, uint8_t channel, uint8_t index)
{
    assert_true(world->expected < world->answered);
    const struct qpc_answer *answer = &world->answers[world->expected++];
    assert_int_equal(answer->qpn, qpn);
    assert_int_equal(answer->channel, channel);
    assert_int_equal(answer->index, index);
}

static void expect_none(const struct world *world)
{
    assert_int_equal(world->expected, world->answered);
}

/* Brings the contexts first .. last into the cache. */
static void warm(struct world *world, uint32_t first, uint32_t last)
{
    for (uint32_t qpn = first; qpn <= last; qpn++) {
        see(world, QPC_DESCRIPTOR, 0, qpn, QPC_READ);
        come(world);
        settle(world);
        expect(world, qpn, QPC_DESCRIPTOR, 0);
    }
}

static const struct pending_record *record_of(struct world *world, uint32_t qpn)
{
    return pending_table_find(&world->manager.table, qpn);
}

/* -- Requests -----------------------------------------------------------------------------------*/

/* CSR-01, and the arbiter: channels in turn. */
static void test_hits(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 16, 8);
    warm(world, 1, 3);
    ask(world, QPC_REQUESTER, 4, 2, QPC_READ);
    ask(world, QPC_REQUESTER, 5, 1, QPC_READ);
    ask(world, QPC_REQUESTER, 6, 2, QPC_READ);
    ask(world, QPC_RESPONDER, 0, 3, QPC_READ);
    for (int i = 0; i < 4; i++) {
        assert_true(requests(world));
        assert_int_equal(world->answered, 4 + i); /* Each in its cycle. */
    }
    expect(world, 2, QPC_REQUESTER, 4);
    expect(world, 3, QPC_RESPONDER, 0);
    expect(world, 1, QPC_REQUESTER, 5);
    expect(world, 2, QPC_REQUESTER, 6);
    end(world);
}

/* CSR-02, CSR-03, CSR-04, CSR-06, CSR-07, CSR-08, CSR-14 */
static void test_miss(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 16, 8);
    warm(world, 9, 9);
    see(world, QPC_REQUESTER, 3, 5, QPC_READ);
    assert_int_equal(world->fetched, 2); /* CSR-02 */
    assert_int_equal(world->fetches[1], 5);
    assert_int_equal(record_of(world, 5) - world->manager.table.records, 16 + 3); /* CSR-08 */
    assert_int_equal(record_of(world, 5)->count, 1);
    see(world, QPC_REQUESTER, 4, 5, QPC_READ);
    see(world, QPC_RESPONDER, 0, 5, QPC_READ);
    assert_int_equal(world->fetched, 2);             /* CSR-03 */
    assert_int_equal(record_of(world, 5)->count, 3); /* CSR-06 */
    expect_none(world);
    see(world, QPC_REQUESTER, 5, 9, QPC_READ);
    expect(world, 9, QPC_REQUESTER, 5); /* CSR-04 */
    come(world);
    assert_true(pending(world));
    expect(world, 5, QPC_REQUESTER, 3);
    assert_true(record_of(world, 5)->returned);
    assert_int_equal(record_of(world, 5)->count, 2);
    assert_true(pending(world));
    expect(world, 5, QPC_REQUESTER, 4); /* CSR-14 */
    assert_true(pending(world));
    expect(world, 5, QPC_RESPONDER, 0);
    assert_null(record_of(world, 5)); /* CSR-07 */
    assert_int_equal(world->fetched, 2);
    end(world);
}

/* CSR-08: an index is used again while later requests of its old queue pair wait: the source would
 * write both records at one address. */
static void test_address_again(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 2, 8);
    see(world, QPC_DESCRIPTOR, 0, 1, QPC_READ);
    see(world, QPC_REQUESTER, 1, 1, QPC_READ);
    come(world);
    assert_true(pending(world));
    expect(world, 1, QPC_DESCRIPTOR, 0);
    see(world, QPC_DESCRIPTOR, 0, 2, QPC_READ);
    assert_int_equal(record_of(world, 2) - world->manager.table.records, 0);
    assert_int_equal(record_of(world, 1) - world->manager.table.records, 2 + 1);
    settle(world);
    expect(world, 1, QPC_REQUESTER, 1);
    come(world);
    settle(world);
    expect(world, 2, QPC_DESCRIPTOR, 0);
    end(world);
}

/* CSR-05: one queue pair on three channels, in the order in which the arbiter took them. */
static void test_three_channels(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 4, 8);
    for (uint8_t i = 0; i < 4; i++) {
        see(world, QPC_RESPONDER, i, 7, QPC_UPDATE);
        see(world, QPC_REQUESTER, i, 7, QPC_UPDATE);
        see(world, QPC_DESCRIPTOR, i, 7, QPC_READ);
    }
    come(world);
    settle(world);
    for (uint8_t i = 0; i < 4; i++) {
        expect(world, 7, QPC_RESPONDER, i);
        expect(world, 7, QPC_REQUESTER, i);
        expect(world, 7, QPC_DESCRIPTOR, i);
        assert_int_equal(world->versions[3 * i + 2], 2 * i + 2);
    }
    assert_int_equal(world->fetched, 1);
    end(world);
}

/* CSR-20, CSR-21, CSR-23, CSR-24: updates of a cached and of a missing context are seen by who
 * comes later, also after it was put out, which writes it back. */
static void test_updates(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 4, 2);
    see(world, QPC_REQUESTER, 0, 1, QPC_UPDATE);
    expect_none(world); /* CSR-21 */
    see(world, QPC_RESPONDER, 0, 1, QPC_READ);
    come(world);
    settle(world);
    expect(world, 1, QPC_REQUESTER, 0);
    expect(world, 1, QPC_RESPONDER, 0);
    see(world, QPC_REQUESTER, 0, 1, QPC_UPDATE);
    expect(world, 1, QPC_REQUESTER, 0);
    see(world, QPC_REQUESTER, 0, 1, QPC_READ);
    expect(world, 1, QPC_REQUESTER, 0);
    static const uint32_t versions[] = {0, 1, 1, 2}; /* CSR-20 */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world->versions[i], versions[i]);
    }
    assert_int_equal(world->memory[1].version, 0);
    warm(world, 2, 2);
    assert_int_equal(world->writes, 0);
    warm(world, 3, 3);                  /* Puts out 1. */
    assert_int_equal(world->writes, 1); /* CSR-23 */
    assert_int_equal(world->memory[1].version, 2);
    warm(world, 4, 4); /* Puts out 2, which is clean. */
    assert_int_equal(world->writes, 1);
    warm(world, 1, 1);
    assert_int_equal(world->versions[world->answered - 1], 2); /* CSR-24 */
    end(world);
}

/* CSR-30, CSR-31 */
static void test_prefetch(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 4, 2);
    see(world, QPC_DESCRIPTOR, 0, 1, QPC_PREFETCH);
    assert_int_equal(world->fetched, 1);
    see(world, QPC_DESCRIPTOR, 1, 1, QPC_PREFETCH); /* Pending: at once. */
    expect(world, 1, QPC_DESCRIPTOR, 1);
    see(world, QPC_DESCRIPTOR, 2, 1, QPC_READ);
    see(world, QPC_DESCRIPTOR, 3, 1, QPC_PREFETCH);
    expect(world, 1, QPC_DESCRIPTOR, 3);
    come(world);
    settle(world);
    expect(world, 1, QPC_DESCRIPTOR, 0);
    expect(world, 1, QPC_DESCRIPTOR, 2);
    see(world, QPC_DESCRIPTOR, 0, 1, QPC_PREFETCH); /* Cached: at once, without a fetch. */
    expect(world, 1, QPC_DESCRIPTOR, 0);
    assert_int_equal(world->fetched, 1); /* CSR-30 */
    const struct qpc_counters *counters = &world->manager.counters;
    assert_int_equal(counters->prefetches, 4);
    assert_int_equal(counters->prefetch_hits, 1);
    assert_int_equal(counters->prefetch_pendings, 2);
    assert_int_equal(counters->hits + counters->misses, 0); /* CSR-31 */
    end(world);
}

/* -- Waiting ------------------------------------------------------------------------------------*/

/* CSR-13, CSR-19: contexts go to whom they were fetched for, in that order, before any check. */
static void test_return_order(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 8);
    for (uint8_t i = 0; i < 5; i++) {
        see(world, QPC_REQUESTER, i, 10u + i, QPC_READ);
    }
    see(world, QPC_RESPONDER, 0, 10, QPC_READ);
    for (uint8_t i = 0; i < 5; i++) {
        assert_int_equal(world->fetches[i], 10 + i);
        come(world);
    }
    for (uint8_t i = 0; i < 5; i++) {
        assert_true(pending(world));
        expect(world, 10u + i, QPC_REQUESTER, i); /* One a cycle, although 10 could be checked. */
    }
    settle(world);
    expect(world, 10, QPC_RESPONDER, 0);
    end(world);
}

/* CSR-18: requests that wait for contexts are not checked again and again. */
static void test_checking_stops(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 8);
    see(world, QPC_REQUESTER, 0, 1, QPC_READ);
    see(world, QPC_REQUESTER, 1, 2, QPC_READ);
    see(world, QPC_REQUESTER, 2, 2, QPC_READ);
    see(world, QPC_REQUESTER, 3, 1, QPC_READ);
    assert_false(pending(world));
    come(world);
    assert_true(pending(world));
    expect(world, 1, QPC_REQUESTER, 0);
    assert_true(pending(world)); /* 2, of Type 1. */
    assert_true(pending(world)); /* 2, of Type 2. */
    assert_true(pending(world));
    expect(world, 1, QPC_REQUESTER, 3);
    assert_false(pending(world));
    assert_int_equal(world->manager.counters.checks, 4); /* The first one found its element. */
    come(world);
    settle(world);
    expect(world, 2, QPC_REQUESTER, 1);
    expect(world, 2, QPC_REQUESTER, 2);
    end(world);
}

/* CSR-15: the context goes again before the second request is checked. */
static void test_evicted_meanwhile(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 1);
    see(world, QPC_REQUESTER, 0, 1, QPC_UPDATE);
    see(world, QPC_RESPONDER, 0, 2, QPC_READ);
    see(world, QPC_REQUESTER, 1, 1, QPC_UPDATE);
    see(world, QPC_REQUESTER, 2, 1, QPC_READ);
    come(world);
    come(world);
    settle(world);
    expect(world, 1, QPC_REQUESTER, 0);
    expect(world, 2, QPC_RESPONDER, 0);
    expect_none(world);
    assert_int_equal(world->fetched, 3); /* One more, of 1. */
    assert_int_equal(world->fetches[2], 1);
    assert_int_equal(world->manager.counters.conversions, 1);
    assert_int_equal(world->writes, 1);
    come(world);
    settle(world);
    expect(world, 1, QPC_REQUESTER, 1);
    expect(world, 1, QPC_REQUESTER, 2);
    assert_int_equal(world->versions[3], 2);
    end(world);
}

/* CSR-05, where the source loses it: the context of 1 returns when the check of its second request
 * has failed, and its third was not checked yet. */
static void test_returned_in_a_pass(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 8);
    see(world, QPC_REQUESTER, 0, 2, QPC_READ);
    see(world, QPC_REQUESTER, 1, 1, QPC_READ);
    see(world, QPC_REQUESTER, 2, 1, QPC_READ);
    see(world, QPC_REQUESTER, 3, 1, QPC_READ);
    see(world, QPC_REQUESTER, 4, 2, QPC_READ);
    come(world);
    assert_true(pending(world));
    expect(world, 2, QPC_REQUESTER, 0);
    assert_true(pending(world)); /* The first and the second request of 1 go online. */
    assert_true(pending(world));
    come(world);
    assert_true(pending(world));
    expect(world, 1, QPC_REQUESTER, 1);
    settle(world);
    expect(world, 1, QPC_REQUESTER, 2);
    expect(world, 1, QPC_REQUESTER, 3);
    expect(world, 2, QPC_REQUESTER, 4);
    end(world);
}

/* CSR-05, the other way: the context of 3 returns when before its element stands a request of 1,
 * and behind it a later one of 1, whose context was put out and is being fetched again. */
static void test_returned_behind_others(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 1);
    see(world, QPC_REQUESTER, 0, 1, QPC_READ);
    see(world, QPC_RESPONDER, 0, 2, QPC_READ);
    see(world, QPC_REQUESTER, 1, 1, QPC_READ);
    see(world, QPC_REQUESTER, 2, 1, QPC_READ);
    see(world, QPC_DESCRIPTOR, 0, 3, QPC_READ);
    see(world, QPC_RESPONDER, 1, 2, QPC_READ);
    come(world);
    come(world);
    assert_true(pending(world));
    expect(world, 1, QPC_REQUESTER, 0);
    assert_true(pending(world));
    expect(world, 2, QPC_RESPONDER, 0); /* Puts out 1. */
    assert_true(pending(world));        /* The second request of 1 is converted. */
    assert_int_equal(world->fetches[3], 1);
    see(world, QPC_REQUESTER, 3, 1, QPC_READ);
    see(world, QPC_RESPONDER, 2, 2, QPC_READ);
    settle(world);
    expect(world, 2, QPC_RESPONDER, 1);
    expect(world, 2, QPC_RESPONDER, 2);
    const struct pending_ring *online = pending_online(&world->manager.pending);
    static const uint32_t expected[] = {1, 3, 1, 1};
    assert_int_equal(pending_ring_count(online), 4);
    for (uint8_t i = 0; i < 4; i++) {
        const struct pending *element = &online->elements[(uint8_t)(online->head + i)];
        assert_int_equal(element->qpn, expected[i]);
        assert_int_equal(element->posted, i == 1 || i == 2);
    }
    come(world);
    settle(world);
    expect(world, 3, QPC_DESCRIPTOR, 0);
    come(world);
    settle(world);
    expect(world, 1, QPC_REQUESTER, 1);
    expect(world, 1, QPC_REQUESTER, 2);
    expect(world, 1, QPC_REQUESTER, 3);
    end(world);
}

/* CSR-17: as many as can wait do: all of one queue pair, then all of different ones. */
static void test_all_wait(void **state)
{
    (void)state;
    for (uint32_t stride = 0; stride < 2; stride++) {
        struct world *world = start(QPC_NONBLOCKING, QPC_OOCAP_MAX, 4);
        for (uint8_t i = 0; i < QPC_OOCAP_MAX; i++) {
            for (uint8_t c = 0; c < QPC_CHANNELS; c++) {
                see(world, c, i, stride * (uint32_t)(QPC_CHANNELS * i + c), QPC_READ);
            }
        }
        assert_int_equal(pending_fifo_count(&world->manager.pending), PENDING_MAX);
        assert_int_equal(world->manager.table.count, stride == 0 ? 1 : PENDING_MAX);
        while (world->returned < world->fetched) {
            come(world);
        }
        settle(world);
        for (uint8_t i = 0; i < QPC_OOCAP_MAX; i++) {
            for (uint8_t c = 0; c < QPC_CHANNELS; c++) {
                expect(world, stride * (uint32_t)(QPC_CHANNELS * i + c), c, i);
            }
        }
        end(world);
    }
}

/* CSR-46: contexts return in every cycle, and in every cycle another one is missing. Requests that
 * wait behind their queue pair's first one are answered all the same. */
static void test_no_starvation(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 16, 4);
    see(world, QPC_RESPONDER, 0, 1, QPC_READ);
    see(world, QPC_RESPONDER, 1, 1, QPC_READ);
    see(world, QPC_RESPONDER, 2, 2, QPC_READ);
    see(world, QPC_RESPONDER, 3, 2, QPC_READ);
    uint32_t next = 100;
    for (uint8_t i = 0; i < 16; i++) {
        see(world, QPC_REQUESTER, i, next++, QPC_READ);
    }
    uint32_t responses = 0;
    for (int cycle = 0; cycle < 100 && responses < 4; cycle++) {
        if (world->returned < world->fetched) {
            come(world);
        }
        const uint32_t before = world->answered;
        assert_true(pending(world));
        for (uint32_t i = before; i < world->answered; i++) {
            const struct qpc_answer *answer = &world->answers[i];
            if (answer->channel == QPC_REQUESTER) {
                see(world, QPC_REQUESTER, answer->index, next++, QPC_READ);
            } else {
                assert_int_equal(answer->index, responses);
                responses++;
            }
        }
    }
    assert_int_equal(responses, 4);
    while (world->returned < world->fetched) {
        come(world);
        settle(world);
    }
    world->expected = world->answered;
    end(world);
}

/* CSR-43, CSR-44: one index per channel and one context: slow, not stuck. */
static void test_least(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 1, 1);
    for (uint32_t round = 0; round < 300; round++) {
        const uint32_t qpn[QPC_CHANNELS] = {round % 2, round % 3, round % 5 % 2};
        for (uint8_t c = 0; c < QPC_CHANNELS; c++) {
            see(world, c, 0, qpn[c], QPC_UPDATE);
        }
        while (world->returned < world->fetched) {
            come(world);
            settle(world);
        }
        settle(world);
        assert_int_equal(world->answered, QPC_CHANNELS * (round + 1));
    }
    uint32_t versions[3] = {0};
    for (uint32_t i = 0; i < world->answered; i++) {
        assert_int_equal(world->versions[i], versions[world->answers[i].qpn]++);
    }
    world->expected = world->answered;
    end(world);
}

/* -- First come, first served -------------------------------------------------------------------*/

/* CSR-25, CSR-26 */
static void test_fcfs(void **state)
{
    (void)state;
    struct world *world = start(QPC_FCFS, 16, 8);
    warm(world, 1, 2);
    ask(world, QPC_RESPONDER, 0, 1, QPC_READ);
    ask(world, QPC_RESPONDER, 1, 5, QPC_UPDATE);
    ask(world, QPC_DESCRIPTOR, 0, 2, QPC_READ);
    ask(world, QPC_REQUESTER, 0, 6, QPC_READ);
    ask(world, QPC_RESPONDER, 2, 5, QPC_READ);
    settle(world);
    expect(world, 1, QPC_RESPONDER, 0);
    expect_none(world); /* CSR-25: 2 is cached, and waits. */
    assert_true(qpc_manager_idle(&world->manager));
    come(world);
    settle(world);
    expect(world, 5, QPC_RESPONDER, 1); /* CSR-26 */
    expect(world, 2, QPC_DESCRIPTOR, 0);
    expect_none(world);
    come(world);
    settle(world);
    expect(world, 6, QPC_REQUESTER, 0);
    expect(world, 5, QPC_RESPONDER, 2);
    assert_int_equal(world->versions[world->answered - 1], 1);
    end(world);
}

/* Cycles that a fixed load takes. */
static uint32_t cycles_of(enum qpc_policy policy)
{
    struct world *world = start(policy, 16, 64);
    warm(world, 0, 49);
    uint32_t cycles = 0;
    for (uint32_t round = 0; round < 20; round++) {
        for (uint8_t i = 0; i < 16; i++) {
            for (uint8_t c = 0; c < QPC_CHANNELS; c++) {
                ask(world, c, i, (round * 7 + i * 3u + c) % 50, i % 2 ? QPC_UPDATE : QPC_READ);
            }
        }
        cycles += settle(world);
    }
    world->expected = world->answered;
    end(world);
    return cycles;
}

/* CSR-27: where nothing misses, nothing is gained. */
static void test_equal_cycles(void **state)
{
    (void)state;
    assert_int_equal(cycles_of(QPC_FCFS), 20 * 16 * QPC_CHANNELS);
    assert_int_equal(cycles_of(QPC_NONBLOCKING), 20 * 16 * QPC_CHANNELS);
}

/* -- Counters -----------------------------------------------------------------------------------*/

/* CSR-50: counted by hand. */
static void test_counters(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 1);
    see(world, QPC_REQUESTER, 0, 1, QPC_UPDATE); /* Miss. */
    see(world, QPC_REQUESTER, 1, 2, QPC_READ);   /* Miss. */
    see(world, QPC_REQUESTER, 2, 2, QPC_READ);   /* Type 2. */
    see(world, QPC_REQUESTER, 3, 1, QPC_READ);   /* Type 2. */
    come(world);
    assert_true(pending(world)); /* Check 1: 1 is answered, and ready. */
    come(world);
    assert_true(pending(world)); /* Check 2: 2 is answered, and ready; puts out 1. */
    assert_true(pending(world)); /* Check 3: the second of 2 is answered. */
    assert_true(pending(world)); /* Check 4: the second of 1 is converted. */
    assert_false(pending(world));
    come(world);
    assert_true(pending(world)); /* Check 5: it is answered; puts out 2, which is clean. */
    see(world, QPC_REQUESTER, 0, 1, QPC_READ);      /* Hit. */
    see(world, QPC_DESCRIPTOR, 0, 1, QPC_PREFETCH); /* Hit. */
    see(world, QPC_DESCRIPTOR, 0, 3, QPC_PREFETCH);
    see(world, QPC_REQUESTER, 0, 4, QPC_READ); /* Miss. */
    see(world, QPC_REQUESTER, 1, 3, QPC_READ); /* Type 2. */
    come(world);
    assert_true(pending(world));               /* Check 6: 3 is answered, and ready; puts out 1. */
    assert_true(pending(world));               /* Check 7: 4 goes online. */
    assert_true(pending(world));               /* Check 8: the second of 3 is answered. */
    see(world, QPC_REQUESTER, 1, 4, QPC_READ); /* Type 2. */
    come(world);
    assert_true(pending(world));               /* 4 is taken from the online FIFO; puts out 3. */
    assert_true(pending(world));               /* Check 9: its second is answered. */
    see(world, QPC_REQUESTER, 0, 5, QPC_READ); /* Miss. */
    see(world, QPC_REQUESTER, 1, 6, QPC_READ); /* Miss. */
    see(world, QPC_REQUESTER, 2, 5, QPC_READ); /* Type 2. */
    see(world, QPC_REQUESTER, 3, 6, QPC_READ); /* Type 2. */
    come(world);
    assert_true(pending(world));               /* Check 10: 5 is answered, and ready; puts out 4. */
    assert_true(pending(world));               /* Check 11: 6 goes online. */
    assert_true(pending(world));               /* Check 12: the second of 5 is answered. */
    see(world, QPC_REQUESTER, 0, 7, QPC_READ); /* Miss. */
    see(world, QPC_REQUESTER, 2, 7, QPC_READ); /* Type 2. */
    come(world);
    come(world);
    assert_true(pending(world)); /* 6 is taken from the online FIFO; puts out 5. */
    assert_true(pending(world)); /* Check 13: the second of 6 is answered. */
    assert_true(pending(world)); /* Check 14: 7 is answered, and ready; puts out 6. */
    assert_true(pending(world)); /* Check 15: its second is answered. */
    const struct qpc_counters expected = {.hits = 1,
                                          .misses = 6,
                                          .prefetches = 2,
                                          .prefetch_hits = 1,
                                          .fetches = 8,
                                          .type_1 = 8,
                                          .type_2 = 7,
                                          .conversions = 1,
                                          .checks = 15,
                                          .evictions = 7,
                                          .write_backs = 1};
    assert_memory_equal(&world->manager.counters, &expected, sizeof(expected));
    world->expected = world->answered;
    end(world);
}

/* CSR-50, CSR-16: swaps, by hand. */
static void test_swaps(void **state)
{
    (void)state;
    struct world *world = start(QPC_NONBLOCKING, 8, 8);
    see(world, QPC_REQUESTER, 0, 2, QPC_READ);
    see(world, QPC_REQUESTER, 1, 1, QPC_READ);
    see(world, QPC_REQUESTER, 2, 1, QPC_READ);
    see(world, QPC_REQUESTER, 3, 2, QPC_READ);
    come(world);
    assert_true(pending(world)); /* 2 is answered, and ready. Offline: 1, 1, 2. */
    assert_true(pending(world));
    assert_true(pending(world)); /* Online: 1, 1. */
    assert_true(pending(world)); /* The second of 2 is answered. */
    come(world);
    assert_true(pending(world)); /* 1 is taken from the online FIFO, and ready. */
    assert_int_equal(world->manager.counters.swaps, 0);
    assert_true(pending(world)); /* The offline FIFO is empty: its second is answered. */
    assert_int_equal(world->manager.counters.swaps, 1);
    assert_int_equal(world->manager.counters.checks, 5);
    expect(world, 2, QPC_REQUESTER, 0);
    expect(world, 2, QPC_REQUESTER, 3);
    expect(world, 1, QPC_REQUESTER, 1);
    expect(world, 1, QPC_REQUESTER, 2);
    end(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hits),
        cmocka_unit_test(test_miss),
        cmocka_unit_test(test_address_again),
        cmocka_unit_test(test_three_channels),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_return_order),
        cmocka_unit_test(test_checking_stops),
        cmocka_unit_test(test_evicted_meanwhile),
        cmocka_unit_test(test_returned_in_a_pass),
        cmocka_unit_test(test_returned_behind_others),
        cmocka_unit_test(test_all_wait),
        cmocka_unit_test(test_no_starvation),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_fcfs),
        cmocka_unit_test(test_equal_cycles),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_swaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
