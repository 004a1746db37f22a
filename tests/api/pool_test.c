/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A shared queue of many receives, of which the newest are used first, gives every message
 *         one that is posted, to itself: whole, in order, whichever queue pair it came by. When few
 *         are left, it says so.
 * Method  Two pairs of queue pairs, messages of one to three packets, completed in between each
 *         other. The program keeps some of the receives that were used for a while, as programs do,
 *         and posts them again in no particular order.
 */
#include "tests/api/api.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"

enum {
    PAIRS = 2,
    RECEIVES = 300,
    SLOT_BYTES = 10000,
    MESSAGES = 5000,
    IN_FLIGHT = 16, /* For each pair: what api_create_qp makes room for. */
    KEPT_MAX = RECEIVES - PAIRS * IN_FLIGHT
};

struct world {
    struct api *api;
    struct prng prng;
    struct ibv_srq *srq;
    struct ibv_qp *senders[PAIRS], *receivers[PAIRS];
    struct ibv_mr *mr;
    uint8_t *slots; /* RECEIVES to receive into, then IN_FLIGHT of each pair to send from. */
    bool posted[RECEIVES];
    uint32_t kept[RECEIVES], kept_count;
    uint32_t sent[PAIRS], acknowledged[PAIRS], received[PAIRS];
};

static uint8_t *slot(const struct world *world, uint32_t number)
{
    return world->slots + (size_t)number * SLOT_BYTES;
}

static uint32_t bytes_of(uint32_t pair, uint32_t message)
{
    return 4 + (message * 2654435761u + pair) % (SLOT_BYTES - 4);
}

static uint8_t pattern(uint32_t pair, uint32_t message)
{
    return (uint8_t)(message * PAIRS + pair);
}

static void post_receive(struct world *world, uint32_t number)
{
    assert_false(world->posted[number]);
    world->posted[number] = true;
    struct ibv_sge sge = {
        .addr = (uintptr_t)slot(world, number), .length = SLOT_BYTES, .lkey = world->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_srq_recv(world->srq, &wr, &bad), 0);
}

static bool may_send(const struct world *world, uint32_t pair)
{
    const uint32_t sent = world->sent[pair];
    return sent < MESSAGES && sent - world->acknowledged[pair] < IN_FLIGHT &&
           sent - world->received[pair] < IN_FLIGHT;
}

static void send(struct world *world, uint32_t pair)
{
    const uint32_t message = world->sent[pair]++;
    const uint32_t number = RECEIVES + pair * IN_FLIGHT + message % IN_FLIGHT;
    struct ibv_sge sge = {.addr = (uintptr_t)slot(world, number),
                          .length = bytes_of(pair, message),
                          .lkey = world->mr->lkey};
    memset(slot(world, number), pattern(pair, message), sge.length);
    struct ibv_send_wr *bad, wr = {.wr_id = pair,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND_WITH_IMM,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .imm_data = message};
    assert_int_equal(ibv_post_send(world->senders[pair], &wr, &bad), 0);
}

static void check_received(struct world *world, const struct ibv_wc *wc)
{
    const uint32_t pair = wc->qp_num == world->receivers[1]->qp_num;
    const uint32_t message = world->received[pair]++;
    assert_int_equal(wc->status, IBV_WC_SUCCESS);
    assert_int_equal(wc->imm_data, message);
    assert_int_equal(wc->byte_len, bytes_of(pair, message));
    assert_true(wc->wr_id < RECEIVES);
    assert_true(world->posted[wc->wr_id]);
    world->posted[wc->wr_id] = false;
    world->kept[world->kept_count++] = (uint32_t)wc->wr_id;
    const uint8_t *data = slot(world, (uint32_t)wc->wr_id);
    for (uint32_t i = 0; i < wc->byte_len; i++) {
        assert_int_equal(data[i], pattern(pair, message));
    }
}

static void return_some(struct world *world)
{
    while (world->kept_count > 0 &&
           (world->kept_count >= KEPT_MAX || prng_below(&world->prng, 4) != 0)) {
        const uint32_t which = (uint32_t)prng_below(&world->prng, world->kept_count);
        const uint32_t number = world->kept[which];
        world->kept[which] = world->kept[--world->kept_count];
        post_receive(world, number);
    }
}

static void poll(struct world *world)
{
    struct ibv_wc wc[8];
    int count = ibv_poll_cq(world->api->cqs[0], COUNT_OF(wc), wc);
    for (int i = 0; i < count; i++) {
        assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
        world->acknowledged[wc[i].wr_id]++;
    }
    count = ibv_poll_cq(world->api->cqs[1], COUNT_OF(wc), wc);
    for (int i = 0; i < count; i++) {
        check_received(world, &wc[i]);
    }
}

static void open_world(struct world *world, struct api *api)
{
    const size_t bytes = (size_t)(RECEIVES + PAIRS * IN_FLIGHT) * SLOT_BYTES;
    struct ibv_srq_init_attr init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
    *world = (struct world){.api = api, .slots = malloc(bytes)};
    prng_init(&world->prng, 1);
    assert_non_null(world->slots);
    world->mr = ibv_reg_mr(api->pd, world->slots, bytes, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(world->mr);
    world->srq = ibv_create_srq(api->pd, &init);
    assert_non_null(world->srq);
    for (int i = 0; i < PAIRS; i++) {
        world->senders[i] = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
        world->receivers[i] = api_create_qp(api, IBV_QPT_RC, api->cqs[1], world->srq);
        api_connect(api, world->senders[i], world->receivers[i]);
        api_connect(api, world->receivers[i], world->senders[i]);
    }
}

static void close_world(struct world *world)
{
    for (int i = 0; i < PAIRS; i++) {
        assert_int_equal(ibv_destroy_qp(world->senders[i]), 0);
        assert_int_equal(ibv_destroy_qp(world->receivers[i]), 0);
    }
    assert_int_equal(ibv_destroy_srq(world->srq), 0);
    assert_int_equal(ibv_dereg_mr(world->mr), 0);
    free(world->slots);
}

static void test_every_message_has_its_receive(void **state)
{
    struct world world;
    open_world(&world, *state);
    for (uint32_t i = 0; i < RECEIVES; i++) {
        post_receive(&world, i);
    }
    while (world.received[0] + world.received[1] < PAIRS * MESSAGES) {
        /* More packets than a poll takes in, so that receives are posted amid a message. */
        for (uint32_t sends = (uint32_t)prng_below(&world.prng, 2 * IN_FLIGHT); sends > 0;
             sends--) {
            const uint32_t pair = (uint32_t)prng_below(&world.prng, PAIRS);
            if (may_send(&world, pair)) {
                send(&world, pair);
            }
        }
        poll(&world);
        return_some(&world);
    }
    close_world(&world);
}

static void test_last_ones(void **state)
{
    struct world world;
    open_world(&world, *state);
    for (uint32_t i = 0; i < 6; i++) {
        post_receive(&world, i);
    }
    struct ibv_srq_attr attr = {.srq_limit = 5};
    assert_int_equal(ibv_modify_srq(world.srq, &attr, IBV_SRQ_LIMIT), 0);
    for (uint32_t i = 0; i < 6; i++) {
        send(&world, i % PAIRS);
        while (world.received[0] + world.received[1] <= i) {
            poll(&world);
        }
        if (i == 1) {
            api_expect_event(world.api, IBV_EVENT_SRQ_LIMIT_REACHED);
        }
    }
    assert_int_equal(world.kept_count, 6); /* All of them, down to the oldest. */
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_message_has_its_receive, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_last_ones, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
