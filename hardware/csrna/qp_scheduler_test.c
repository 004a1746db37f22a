/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every WQE that was rung for goes on once and in order. Queue pairs take turns. A visit
 *         and a window have their bounds. A full window stops no other queue pair. Behaviours
 *         CSR-34, CSR-35, CSR-36, CSR-37, CSR-38.
 * Method  Random doorbells, visits and acknowledgements beside counters and a row that is searched;
 *         doorbells no program should ring; 131,072 queue pairs at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/csrna/qp_scheduler.h"

enum {
    QPS = 20
};

struct model_qp {
    uint64_t rung, taken;
    uint32_t in_flight;
    bool visited;
    struct qp_visit visit;
};

struct world {
    struct prng prng;
    struct qp_scheduler scheduler;
    struct qp_scheduler_parameters parameters;
    struct model_qp qps[QPS];
    uint32_t row[QPS], row_count;
};

static uint32_t draw(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

/* Puts the queue pair at the end of the row if it has its turn and isn't there. */
static void settle(struct world *world, uint32_t slot)
{
    const struct model_qp *qp = &world->qps[slot];
    if (qp->visited || qp->rung == qp->taken || qp->in_flight >= world->parameters.window) {
        return;
    }
    for (uint32_t i = 0; i < world->row_count; i++) {
        if (world->row[i] == slot) {
            return;
        }
    }
    world->row[world->row_count++] = slot;
}

static void ring(struct world *world, uint32_t slot)
{
    struct model_qp *qp = &world->qps[slot];
    const uint32_t sq_wqes = world->parameters.sq_wqes;
    const struct qp_doorbell doorbell = {.slot = slot,
                                         .count = (uint16_t)(1 + draw(world, 10)),
                                         .offset = (uint16_t)(qp->rung % sq_wqes)};
    const enum status status = qp_scheduler_doorbell(&world->scheduler, &doorbell);
    if (qp->rung - qp->taken + doorbell.count > sq_wqes) {
        assert_int_equal(status, STATUS_FULL);
        return;
    }
    assert_int_equal(status, STATUS_OK);
    qp->rung += doorbell.count;
    settle(world, slot);
}

static void next(struct world *world)
{
    struct qp_visit visit;
    const bool any = qp_scheduler_next(&world->scheduler, &visit);
    assert_int_equal(any, world->row_count != 0);
    if (!any) {
        return;
    }
    struct model_qp *qp = &world->qps[visit.slot];
    assert_int_equal(visit.slot, world->row[0]); /* In turn. */
    world->row_count--;
    memmove(world->row, world->row + 1, world->row_count * sizeof(world->row[0]));
    assert_false(qp->visited);
    assert_int_equal(visit.offset, qp->taken % world->parameters.sq_wqes); /* CSR-34 */
    assert_true(visit.wqes >= 1 && visit.wqes <= world->parameters.visit_wqes);
    assert_true(visit.wqes <= qp->rung - qp->taken);
    qp->visited = true;
    qp->visit = visit;
}

/* The WQEs of a visit have come. */
static void take(struct world *world, uint32_t slot)
{
    struct model_qp *qp = &world->qps[slot];
    struct qp_message messages[256];
    const uint32_t bound = draw(world, 2) ? 64 : 3000;
    for (uint32_t i = 0; i < qp->visit.wqes; i++) {
        messages[i].bytes = draw(world, bound);
        messages[i].packets = 1 + messages[i].bytes / 1024;
    }
    const uint32_t taken = qp_scheduler_take(&world->scheduler, slot, messages);
    assert_true(taken >= 1 && taken <= qp->visit.wqes);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < taken; i++) {
        assert_true(qp->in_flight < world->parameters.window); /* CSR-37 */
        qp->in_flight += messages[i].packets;
        bytes += messages[i].bytes;
    }
    assert_true(taken == 1 || bytes <= world->parameters.visit_bytes); /* CSR-38 */
    if (taken < qp->visit.wqes) {                                      /* Not for nothing. */
        assert_true(qp->in_flight >= world->parameters.window ||
                    bytes + messages[taken].bytes > world->parameters.visit_bytes);
    }
    qp->taken += taken;
    qp->visited = false;
    settle(world, slot);
}

static void acknowledge(struct world *world, uint32_t slot, uint32_t packets)
{
    world->qps[slot].in_flight -= packets;
    qp_scheduler_acknowledged(&world->scheduler, slot, packets);
    settle(world, slot);
}

static void step(struct world *world, bool rings)
{
    const uint32_t slot = draw(world, QPS);
    const struct model_qp *qp = &world->qps[slot];
    switch (draw(world, 4)) {
    case 0:
        if (rings) {
            ring(world, slot);
        }
        break;
    case 1: next(world); break;
    case 2:
        if (qp->visited) {
            take(world, slot);
        }
        break;
    default: acknowledge(world, slot, draw(world, qp->in_flight + 1)); break;
    }
}

static void run(uint64_t seed)
{
    static struct world world;
    uint8_t memory[QPS * sizeof(struct qp_scheduled)];
    memset(&world, 0, sizeof(world));
    prng_init(&world.prng, seed);
    world.parameters = (struct qp_scheduler_parameters){.qps = QPS,
                                                        .sq_wqes = 1u << (4 + draw(&world, 12)),
                                                        .visit_wqes = 1 + draw(&world, 20),
                                                        .visit_bytes = draw(&world, 8192),
                                                        .window = 1 + draw(&world, 100)};
    assert_int_equal(qp_scheduler_bytes(QPS), sizeof(memory));
    qp_scheduler_init(&world.scheduler, &world.parameters, memory);
    for (uint32_t i = 0; i < 20000; i++) {
        step(&world, true);
    }
    bool left = true;
    for (uint32_t i = 0; left; i++) {
        assert_true(i < 20000000);
        step(&world, false);
        left = false;
        for (uint32_t slot = 0; slot < QPS; slot++) { /* CSR-35: all that was rung for goes on. */
            left |= world.qps[slot].taken != world.qps[slot].rung;
        }
    }
}

/* CSR-34, CSR-35, CSR-37, CSR-38 */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        run(seed);
    }
}

static const struct qp_scheduler_parameters usual = {
    .qps = 8, .sq_wqes = 256, .visit_wqes = 16, .visit_bytes = 4096, .window = 100};

static void ring_once(struct qp_scheduler *scheduler, uint32_t slot, uint16_t count,
                      uint16_t offset, enum status expected)
{
    const struct qp_doorbell doorbell = {.slot = slot, .count = count, .offset = offset};
    assert_int_equal(qp_scheduler_doorbell(scheduler, &doorbell), expected);
}

/* CSR-35: doorbells become one; those that would lose WQEs are refused and change nothing. */
static void test_doorbells(void **state)
{
    (void)state;
    struct qp_scheduler scheduler;
    struct qp_scheduled memory[8];
    struct qp_visit visit;
    const struct qp_doorbell doorbell = {
        .slot = 0xabcdef, .opcode = 0x12, .count = 0x3456, .offset = 0x789a};
    assert_true(qp_doorbell_pack(doorbell) == UINT64_C(0x789a345612abcdef));
    const struct qp_doorbell unpacked = qp_doorbell_unpack(UINT64_C(0x789a345612abcdef));
    assert_true(qp_doorbell_pack(unpacked) == UINT64_C(0x789a345612abcdef));
    qp_scheduler_init(&scheduler, &usual, memory);
    ring_once(&scheduler, 3, 5, 0, STATUS_OK);
    ring_once(&scheduler, 3, 2, 5, STATUS_OK);
    assert_int_equal(scheduler.coalesced, 1);
    ring_once(&scheduler, 3, 1, 8, STATUS_INVALID);
    ring_once(&scheduler, 3, 1, 6, STATUS_INVALID);
    ring_once(&scheduler, 3, 0, 7, STATUS_INVALID);
    ring_once(&scheduler, 8, 1, 0, STATUS_INVALID);
    ring_once(&scheduler, 3, 250, 7, STATUS_FULL);
    assert_true(qp_scheduler_next(&scheduler, &visit));
    assert_true(visit.slot == 3 && visit.wqes == 7 && visit.offset == 0);
    ring_once(&scheduler, 3, 249, 7, STATUS_OK); /* While it is visited. */
    assert_false(qp_scheduler_next(&scheduler, &visit));
    const struct qp_message messages[7] = {{64, 1}, {64, 1}, {64, 1}, {64, 1},
                                           {64, 1}, {64, 1}, {64, 1}};
    assert_int_equal(qp_scheduler_take(&scheduler, 3, messages), 7);
    assert_true(qp_scheduler_next(&scheduler, &visit));
    assert_true(visit.wqes == 16 && visit.offset == 7);
}

/* CSR-36: equal load, equal service: within a window of visits nobody gets twice another's. */
static void test_fair(void **state)
{
    (void)state;
    struct qp_scheduler scheduler;
    struct qp_scheduled memory[8];
    struct qp_message messages[16];
    uint16_t rung[8] = {0};
    for (int i = 0; i < 16; i++) {
        messages[i] = (struct qp_message){64, 1};
    }
    qp_scheduler_init(&scheduler, &usual, memory);
    for (int window = 0; window < 50; window++) {
        uint32_t served[8] = {0};
        for (int visits = 0; visits < 20; visits++) {
            for (uint32_t slot = 0; slot < 8; slot++) {
                if (memory[slot].pending < 100) {
                    ring_once(&scheduler, slot, 100, rung[slot] % 256, STATUS_OK);
                    rung[slot] = (uint16_t)(rung[slot] + 100);
                }
            }
            struct qp_visit visit;
            assert_true(qp_scheduler_next(&scheduler, &visit));
            const uint32_t taken = qp_scheduler_take(&scheduler, visit.slot, messages);
            qp_scheduler_acknowledged(&scheduler, visit.slot, taken);
            served[visit.slot] += taken;
        }
        uint32_t least = UINT32_MAX, most = 0;
        for (uint32_t slot = 0; slot < 8; slot++) {
            least = served[slot] < least ? served[slot] : least;
            most = served[slot] > most ? served[slot] : most;
        }
        assert_true(least > 0 && most <= 2 * least);
    }
}

/* CSR-37: 100 packets, then nothing but acknowledgements brings it back; the other one goes on. */
static void test_window(void **state)
{
    (void)state;
    struct qp_scheduler scheduler;
    struct qp_scheduled memory[8];
    struct qp_message messages[16];
    struct qp_visit visit;
    uint32_t sent[8] = {0};
    for (int i = 0; i < 16; i++) {
        messages[i] = (struct qp_message){64, 1};
    }
    qp_scheduler_init(&scheduler, &usual, memory);
    ring_once(&scheduler, 0, 256, 0, STATUS_OK);
    ring_once(&scheduler, 1, 256, 0, STATUS_OK);
    while (qp_scheduler_next(&scheduler, &visit)) {
        const uint32_t taken = qp_scheduler_take(&scheduler, visit.slot, messages);
        sent[visit.slot] += taken;
        if (visit.slot == 1) {
            qp_scheduler_acknowledged(&scheduler, 1, taken);
        }
    }
    assert_int_equal(sent[0], 100);
    assert_int_equal(sent[1], 256);
    assert_int_equal(scheduler.blocked, 1);
    qp_scheduler_acknowledged(&scheduler, 0, 3);
    assert_true(qp_scheduler_next(&scheduler, &visit));
    assert_true(visit.slot == 0 && visit.wqes == 3 && visit.offset == 100);
}

/* CSR-36: as many as there can be, each visited once before any is again. */
static void test_many(void **state)
{
    (void)state;
    struct qp_scheduler scheduler;
    struct qp_scheduler_parameters parameters = usual;
    parameters.qps = QP_SLOTS_MAX;
    void *memory = malloc(qp_scheduler_bytes(QP_SLOTS_MAX));
    qp_scheduler_init(&scheduler, &parameters, memory);
    for (uint32_t slot = 0; slot < QP_SLOTS_MAX; slot++) {
        ring_once(&scheduler, slot, 4, 0, STATUS_OK);
    }
    const struct qp_message messages[4] = {{4096, 1}, {4096, 1}, {4096, 1}, {4096, 1}};
    for (uint32_t i = 0; i < 4 * QP_SLOTS_MAX; i++) {
        struct qp_visit visit;
        assert_true(qp_scheduler_next(&scheduler, &visit));
        assert_int_equal(visit.slot, i % QP_SLOTS_MAX);
        assert_int_equal(qp_scheduler_take(&scheduler, visit.slot, messages), 1);
    }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_doorbells),
        cmocka_unit_test(test_fair),   cmocka_unit_test(test_window),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
