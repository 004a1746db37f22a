/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The ready ring knows each queue pair that wants to send once, in the order of turns,
 *         however full of holes it is.
 * Method  Queue pairs that take their turns and stop, beside a list; all places of the ring are
 *         asked for.
 */
#include "base/prng.h"
#include "nic/ibta/test_bench.h"

enum {
    QPS = 4,
    STEPS = 20000,
};

struct world {
    struct bench *bench;
    struct qp *qps[QPS];
    void *memory[QPS];
    struct qp *ready[QPS]; /* The list. */
    uint32_t count;
};

static struct qp *remove_at(struct world *world, uint32_t at)
{
    struct qp *qp = world->ready[at];
    world->count--;
    memmove(&world->ready[at], &world->ready[at + 1],
            (world->count - at) * sizeof(world->ready[0]));
    return qp;
}

static uint32_t place_of(const struct world *world, const struct qp *qp)
{
    uint32_t at = 0;
    while (at < world->count && world->ready[at] != qp) {
        at++;
    }
    return at;
}

/* `qp` gets work, or has its turn, or has no more work. */
static void step(struct world *world, struct qp *qp, bool stops)
{
    const uint32_t at = place_of(world, qp);
    if (at == world->count) {
        nic_schedule(qp);
    } else if (stops) {
        nic_unlist(remove_at(world, at));
        return;
    } else {
        nic_rotate(world->bench->nic, remove_at(world, at));
    }
    world->ready[world->count++] = qp;
}

static void expect_list(const struct world *world)
{
    const struct nic *nic = world->bench->nic;
    uint32_t count = 0;
    for (uint32_t ahead = 0; ahead <= nic->ready.mask + 1; ahead++) {
        const struct qp *qp = nic_ready_qp(nic, ahead);
        if (qp != NULL) {
            assert_true(count < world->count);
            assert_ptr_equal(qp, world->ready[count++]);
        }
    }
    assert_int_equal(count, world->count);
    assert_ptr_equal(nic_next_qp(world->bench->nic), count == 0 ? NULL : world->ready[0]);
}

static void test_against_a_list(void **state)
{
    (void)state;
    struct world world = {.bench = begin(QP_UC, QP_RTS)};
    struct prng prng;
    prng_init(&prng, 1);
    world.qps[0] = world.bench->qp;
    for (uint32_t i = 1; i < QPS; i++) {
        struct qp_request request = {.type = QP_UC,
                                     .pd = &world.bench->pd,
                                     .send_cq = &world.bench->cq,
                                     .receive_cq = &world.bench->cq,
                                     .capacity = {.sends = 1}};
        world.memory[i] = zeroed(qp_bytes(QP_UC, &request.capacity, false));
        assert_int_equal(qp_create(world.bench->nic, &request, world.memory[i], &world.qps[i]),
                         STATUS_OK);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        /* Some wait long for their turn: the others leave all of the ring's holes behind them. */
        const uint32_t busy = i / 64 % QPS + 1;
        step(&world, world.qps[prng_below(&prng, busy)], prng_chance(&prng, 100000));
        expect_list(&world);
    }
    for (uint32_t i = 1; i < QPS; i++) {
        qp_destroy(world.qps[i]);
        free(world.memory[i]);
    }
    end(world.bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_a_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
