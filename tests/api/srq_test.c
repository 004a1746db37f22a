/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A shared receive queue is resized while it is in use: what is posted stays, the order of
 *         use follows the new size, its limit still tells, and what cannot be is refused.
 * Method  One connection, small messages, receives that write their number where they point.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/check.h"

/* A queue of more receives is used newest first (docs/decisions/0015). */
enum {
    IN_TURN_MAX = 256,
    MESSAGE_BYTES = 8
};

struct world {
    struct api *api;
    struct ibv_srq *srq;
    struct ibv_qp *sender, *receiver;
};

static struct world open_world(struct api *api, uint32_t receives)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = receives, .max_sge = 1}};
    struct world world = {.api = api, .srq = ibv_create_srq(api->pd, &init)};
    assert_non_null(world.srq);
    world.receiver = api_create_qp(api, IBV_QPT_RC, api->cqs[1], world.srq);
    world.sender = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    api_connect(api, world.receiver, world.sender);
    api_connect(api, world.sender, world.receiver);
    return world;
}

static void close_world(struct world *world)
{
    assert_int_equal(ibv_destroy_qp(world->receiver), 0);
    assert_int_equal(ibv_destroy_qp(world->sender), 0);
    assert_int_equal(ibv_destroy_srq(world->srq), 0);
}

static int post(struct world *world, uint64_t number)
{
    struct ibv_sge sge = api_sge(world->api->mrs[1], (uint32_t)number * MESSAGE_BYTES, 8);
    struct ibv_recv_wr *bad, wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1};
    return ibv_post_srq_recv(world->srq, &wr, &bad);
}

static void post_numbers(struct world *world, uint64_t first, uint64_t end)
{
    for (uint64_t number = first; number < end; number++) {
        assert_int_equal(post(world, number), 0);
    }
}

/* Sends a message of its own. Returns the receive that took it, which holds it. */
static uint64_t send_one(struct world *world)
{
    static uint64_t message = 1;
    struct api *api = world->api;
    *(uint64_t *)(void *)api->memory[0] = ++message;
    assert_int_equal(api_post(world->sender, IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    const struct ibv_wc wc = api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_int_equal(*(uint64_t *)(void *)(api->memory[1] + wc.wr_id * MESSAGE_BYTES), message);
    return wc.wr_id;
}

static int modify(struct world *world, uint32_t receives, uint32_t limit, int mask)
{
    struct ibv_srq_attr attr = {.max_wr = receives, .srq_limit = limit};
    return ibv_modify_srq(world->srq, &attr, mask);
}

static int resize(struct world *world, uint32_t receives)
{
    return modify(world, receives, 77777, IBV_SRQ_MAX_WR);
}

static void expect_size(const struct world *world, uint32_t receives, uint32_t limit)
{
    struct ibv_srq_attr attr;
    assert_int_equal(ibv_query_srq(world->srq, &attr), 0);
    assert_int_equal(attr.max_wr, receives);
    assert_int_equal(attr.max_sge, 1);
    assert_int_equal(attr.srq_limit, limit);
}

static void test_receives_stay(void **state)
{
    struct world world = open_world(*state, 4);
    post_numbers(&world, 0, 4);
    assert_int_equal(post(&world, 4), ENOMEM);
    assert_int_equal(resize(&world, IN_TURN_MAX), 0);
    expect_size(&world, IN_TURN_MAX, 0);
    assert_int_equal(send_one(&world), 0);
    post_numbers(&world, 4, 9);
    assert_int_equal(resize(&world, 7), EINVAL); /* Eight are posted. */
    expect_size(&world, IN_TURN_MAX, 0);
    assert_int_equal(resize(&world, 8), 0);
    assert_int_equal(post(&world, 9), ENOMEM);
    for (uint64_t number = 1; number < 9; number++) {
        assert_int_equal(send_one(&world), number);
    }
    assert_int_equal(resize(&world, 1), 0);
    assert_int_equal(post(&world, 1), 0);
    assert_int_equal(post(&world, 2), ENOMEM);
    assert_int_equal(send_one(&world), 1);
    close_world(&world);
}

/* By its new size a queue becomes a pool, and by the next one it is none any more. */
static void test_pool(void **state)
{
    struct world world = open_world(*state, 8);
    post_numbers(&world, 0, 8);
    assert_int_equal(resize(&world, IN_TURN_MAX + 1), 0);
    post_numbers(&world, 8, IN_TURN_MAX + 1);
    assert_int_equal(post(&world, 0), ENOMEM);
    for (uint64_t number = IN_TURN_MAX; number >= 8; number--) {
        assert_int_equal(send_one(&world), number);
    }
    assert_int_equal(resize(&world, 8), 0);
    for (uint64_t number = 0; number < 8; number++) {
        assert_int_equal(send_one(&world), number);
    }
    close_world(&world);
}

static void test_limit(void **state)
{
    struct world world = open_world(*state, 16);
    post_numbers(&world, 0, 4);
    assert_int_equal(modify(&world, 0, 5, IBV_SRQ_LIMIT), 0);
    /* It would tell of fewer than 5, which 4 always are. */
    assert_int_equal(resize(&world, 4), EINVAL);
    expect_size(&world, 16, 5);
    assert_int_equal(modify(&world, 4, 5, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(modify(&world, 3, 3, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
    expect_size(&world, 16, 5);
    assert_int_equal(modify(&world, 4, 3, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
    expect_size(&world, 4, 3);
    assert_int_equal(resize(&world, 1000), 0);
    expect_size(&world, 1000, 3);
    (void)send_one(&world);
    expect_size(&world, 1000, 3);
    (void)send_one(&world);
    api_expect_event(world.api, IBV_EVENT_SRQ_LIMIT_REACHED);
    expect_size(&world, 1000, 0);
    close_world(&world);
}

static void test_refused(void **state)
{
    struct world world = open_world(*state, 16);
    struct ibv_device_attr device;
    assert_int_equal(ibv_query_device(world.api->context, &device), 0);
    assert_true(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
    const uint32_t most = (uint32_t)device.max_srq_wr;
    assert_int_equal(resize(&world, 0), EINVAL);
    assert_int_equal(resize(&world, most + 1), EINVAL);
    assert_int_equal(resize(&world, UINT32_MAX), EINVAL);
    assert_int_equal(modify(&world, 32, 0, IBV_SRQ_MAX_WR | 4), EINVAL);
    expect_size(&world, 16, 0);
    assert_int_equal(resize(&world, most), 0);
    expect_size(&world, most, 0);
    close_world(&world);
}

struct resizer {
    struct world *world;
    atomic_bool done;
};

static void *resize_always(void *context)
{
    static const uint32_t sizes[] = {8, 300, 9, 64, 257, 256};
    struct resizer *resizer = context;
    for (uint32_t i = 0; !atomic_load(&resizer->done); i++) {
        assert_int_equal(resize(resizer->world, sizes[i % COUNT_OF(sizes)]), 0);
    }
    return NULL;
}

/* Two threads: at any time each of the 8 receives is there, once. */
static void test_resized_under_traffic(void **state)
{
    struct world world = open_world(*state, 8);
    struct resizer resizer = {.world = &world};
    pthread_t thread;
    post_numbers(&world, 0, 8);
    assert_int_equal(pthread_create(&thread, NULL, resize_always, &resizer), 0);
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < 8; i++) {
            seen |= 1u << send_one(&world);
        }
        assert_int_equal(seen, 0xff);
        post_numbers(&world, 0, 8);
    }
    atomic_store(&resizer.done, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_receives_stay, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_pool, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_limit, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_refused, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_resized_under_traffic, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
