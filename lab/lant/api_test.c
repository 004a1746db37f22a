/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Calls of programs return when Table 3.5 says, with the results that it prints; data are
 *         where they should be by then; what nobody reads is kept, and holds who would add to it.
 * Method  Two nodes and a line, a program on each. Times are compared with what the nodes have
 *         under way. A random program beside an array of bytes, on a line that flips bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/api.h"

enum {
    TARGET = 0x10000, /* In node 1's memory. */
    TIMEOUT_CYCLES = 3000,
    OUTSIDE = 8 << 20, /* No memory of a node is there. */
};

struct rig {
    struct sim sim;
    struct lant_world world;
    struct lant_api apis[2];
};

static struct rig *open_rig(const struct lant_node_config *config, double bit_errors)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    const struct lant_line line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24};
    const struct lant_fabric_config fabric = {.topology = "all-to-all:2",
                                              .node_line = line,
                                              .switch_line = line,
                                              .bit_errors = bit_errors,
                                              .packets = 4096};
    const struct lant_api_config api = {.send_ps = lant_cycles(100),
                                        .timeout_ps = lant_cycles(TIMEOUT_CYCLES)};
    char error[TOPOLOGY_ERROR_BYTES];
    assert_non_null(rig);
    sim_init(&rig->sim, 1);
    assert_true(lant_world_open(&rig->world, config, &fabric, &rig->sim, 1, error, sizeof(error)));
    for (uint32_t i = 0; i < 2; i++) {
        lant_api_open(&rig->apis[i], &api, &rig->world.nodes[i]);
        for (uint32_t k = 0; k < config->memory_bytes; k++) {
            rig->world.nodes[i].memory[k] = (uint8_t)(k * 7 + (k >> 8) + 100 * i);
        }
    }
    return rig;
}

static struct rig *open_default(void)
{
    const struct lant_node_config config = lant_node_default();
    return open_rig(&config, 0);
}

static void close_rig(struct rig *rig)
{
    while (!lant_world_idle(&rig->world)) {
        assert_true(sim_step(&rig->sim));
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rig->apis[i].counters.strange, 0);
        lant_api_close(&rig->apis[i]);
    }
    lant_world_close(&rig->world);
    free(rig);
}

static enum lant_result result_of(struct rig *rig, const struct lant_call *call)
{
    while (!lant_call_has_returned(call)) {
        assert_true(sim_step(&rig->sim));
    }
    return call->result;
}

static bool arrived(const struct rig *rig, uint32_t bytes)
{
    return memcmp(rig->world.nodes[1].memory + TARGET, rig->world.nodes[0].memory, bytes) == 0;
}

/* -- Transfers ----------------------------------------------------------------------------------*/

/* LNI-53: send returns before the ACKs, and confirm_notif afterwards. */
static void test_send(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    struct lant_call send = {0}, confirm = {0};
    lant_api_send(&rig->apis[0], &send, 0, lant_global(1, TARGET), 1024);
    assert_int_equal(result_of(rig, &send), LANT_RESULT_OK);
    assert_int_equal(lant_rdma_in_flight(&rig->world.nodes[0].rdma), 2);
    assert_false(arrived(rig, 1024));
    /* Its cost, LNI-A2's 69 cycles, the line for one packet, and the flits of the other one. */
    assert_in_range(send.returned_ps, lant_cycles(100 + 63 + 74 + 68),
                    lant_cycles(100 + 63 + 75 + 68));
    lant_api_confirm_notif(&rig->apis[0], &confirm);
    assert_int_equal(result_of(rig, &confirm), LANT_RESULT_OK);
    assert_int_equal(lant_rdma_in_flight(&rig->world.nodes[0].rdma), 0);
    assert_true(arrived(rig, 1024));
    close_rig(rig);
}

/* LNI-53: send_blocking returns after the last ACK. */
static void test_send_blocking(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    struct lant_call send = {0};
    lant_api_send_blocking(&rig->apis[0], &send, 0, lant_global(1, TARGET), 16);
    assert_int_equal(result_of(rig, &send), LANT_RESULT_OK);
    assert_true(arrived(rig, 16));
    assert_int_equal(send.returned_ps, lant_cycles(100 + 232)); /* LNI-A2. */
    assert_int_equal(rig->world.nodes[0].rdma.transactions.used, 0);
    close_rig(rig);
}

/* LNI-53: confirm_notif returns 1 on timeout, and so do the others that wait. */
static void test_timeouts(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    struct lant_call confirm = {0}, receive = {0}, quick = {0}, send = {0};
    lant_api_confirm_notif(&rig->apis[0], &confirm);
    lant_api_recv(&rig->apis[1], &receive);
    lant_api_quick_recv(&rig->apis[1], &quick);
    assert_int_equal(result_of(rig, &confirm), 1);
    assert_int_equal(result_of(rig, &receive), LANT_RESULT_TIMEOUT);
    assert_int_equal(result_of(rig, &quick), LANT_RESULT_TIMEOUT);
    assert_int_equal(confirm.returned_ps, lant_cycles(TIMEOUT_CYCLES));
    /* 64 KB take longer than that; they arrive all the same, and are confirmed. */
    lant_api_send_blocking(&rig->apis[0], &send, 0, lant_global(1, TARGET), 65536);
    assert_int_equal(result_of(rig, &send), 1);
    assert_false(arrived(rig, 65536));
    uint32_t timeouts = 0;
    do {
        lant_api_confirm_notif(&rig->apis[0], &confirm);
    } while (result_of(rig, &confirm) == LANT_RESULT_TIMEOUT && ++timeouts < 100);
    assert_int_equal(confirm.result, LANT_RESULT_OK);
    assert_true(arrived(rig, 65536));
    assert_int_equal(timeouts, 2); /* 128 packets of 74.8 cycles, and 3000 for each of three. */
    close_rig(rig);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        uint64_t source, destination;
        uint32_t bytes;
    } wrong[] = {{0, TARGET, 0}, {4, TARGET, 64}, {0, TARGET + 1, 64}, {1 << 20, TARGET, 64}};
    struct rig *rig = open_default();
    struct lant_call call = {0};
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        lant_api_send(&rig->apis[0], &call, wrong[i].source, lant_global(1, wrong[i].destination),
                      wrong[i].bytes);
        assert_int_equal(result_of(rig, &call), LANT_RESULT_REFUSED);
        lant_api_send_blocking(&rig->apis[0], &call, wrong[i].source,
                               lant_global(1, wrong[i].destination), wrong[i].bytes);
        assert_int_equal(result_of(rig, &call), LANT_RESULT_REFUSED);
    }
    lant_api_shm_write(&rig->apis[0], &call, lant_global(1, TARGET), "", 0);
    assert_int_equal(result_of(rig, &call), LANT_RESULT_REFUSED);
    lant_api_shm_write(&rig->apis[0], &call, lant_global(1, LANT_ADDRESSES - 4), "12345", 5);
    assert_int_equal(result_of(rig, &call), LANT_RESULT_REFUSED);
    assert_int_equal(rig->world.nodes[0].counters.sent, 0);
    close_rig(rig);
}

/* A peer refuses: send() cannot know it, but a call that waits for the end does. */
static void test_failures(void **state)
{
    (void)state;
    const uint64_t outside = lant_global(1, OUTSIDE);
    struct rig *rig = open_default();
    struct lant_call send = {0}, confirm = {0}, fence = {0}, blocking = {0};
    lant_api_send(&rig->apis[0], &send, 0, outside, 512);
    lant_api_rdma_fence(&rig->apis[0], &fence);
    assert_int_equal(result_of(rig, &send), LANT_RESULT_OK);
    lant_api_rdma_fence(&rig->apis[0], &fence);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_FAILED);
    lant_api_confirm_notif(&rig->apis[0], &confirm);
    assert_int_equal(result_of(rig, &confirm), LANT_RESULT_FAILED);
    lant_api_send_blocking(&rig->apis[0], &blocking, 0, outside, 512);
    assert_int_equal(result_of(rig, &blocking), LANT_RESULT_FAILED);
    /* A later fence does not report an earlier failure. */
    lant_api_rdma_fence(&rig->apis[0], &fence);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_OK);
    close_rig(rig);
}

enum {
    MANY = 100
};

/* More sends than the queue takes: those that find no room wait. */
static void test_many(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    static struct lant_call sends[MANY];
    struct lant_call fence = {0}, confirm = {0};
    memset(sends, 0, sizeof(sends));
    for (uint32_t i = 0; i < MANY; i++) {
        lant_api_send(&rig->apis[0], &sends[i], 512 * i, lant_global(1, TARGET + 512 * i), 512);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(result_of(rig, &sends[i]), LANT_RESULT_OK);
        assert_true(i == 0 || sends[i].returned_ps > sends[i - 1].returned_ps);
    }
    assert_true(rig->world.nodes[0].rdma.work.submitted[LANT_SUBMIT_FULL] > 0);
    lant_api_rdma_fence(&rig->apis[0], &fence);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_OK);
    assert_true(arrived(rig, 512 * MANY));
    for (uint32_t i = 0; i < MANY; i++) {
        lant_api_confirm_notif(&rig->apis[0], &confirm);
        assert_int_equal(result_of(rig, &confirm), LANT_RESULT_OK);
    }
    lant_api_confirm_notif(&rig->apis[0], &confirm);
    assert_int_equal(result_of(rig, &confirm), LANT_RESULT_TIMEOUT);
    lant_api_forget_arrivals(&rig->apis[1]);
    close_rig(rig);
}

/* -- Arrivals -----------------------------------------------------------------------------------*/

static void expect_received(const struct lant_call *call, uint32_t bytes)
{
    assert_int_equal(call->received.bytes, bytes);
    assert_int_equal(call->received.address, TARGET);
    assert_int_equal(call->received.node, 0);
}

/* LNI-67: quick_recv on registered data returns before the sender's SENT; recv does not at all. */
static void test_quick_recv(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    struct lant_call send = {0}, quick = {0}, slow = {0};
    lant_api_quick_recv(&rig->apis[1], &quick);
    lant_api_recv(&rig->apis[1], &slow);
    lant_api_send_blocking(&rig->apis[0], &send, 0, lant_global(1, TARGET), 1024);
    assert_int_equal(result_of(rig, &quick), LANT_RESULT_OK);
    assert_true(arrived(rig, 1024));
    expect_received(&quick, 1024);
    assert_false(lant_call_has_returned(&send));
    assert_int_equal(result_of(rig, &send), LANT_RESULT_OK);
    assert_true(quick.returned_ps < send.returned_ps);
    assert_int_equal(result_of(rig, &slow), LANT_RESULT_TIMEOUT);
    close_rig(rig);
}

/* LNI-67: recv returns only after the completion packet, which leaves behind the last ACK. */
static void test_recv(void **state)
{
    (void)state;
    struct lant_node_config config = lant_node_default();
    config.rdma.registers.bytes_at_most = 0;
    struct rig *rig = open_rig(&config, 0);
    struct lant_call send = {0}, quick = {0}, slow = {0};
    lant_api_quick_recv(&rig->apis[1], &quick);
    lant_api_recv(&rig->apis[1], &slow);
    lant_api_send(&rig->apis[0], &send, 0, lant_global(1, TARGET), 1024);
    uint64_t told_ps = 0, acknowledged_ps = 0;
    while (!lant_call_has_returned(&slow)) {
        assert_true(sim_step(&rig->sim));
        const struct lant_rdma *rdma = &rig->world.nodes[0].rdma;
        told_ps = told_ps == 0 && rdma->counters.told != 0 ? rig->sim.now_ps : told_ps;
        acknowledged_ps =
            acknowledged_ps == 0 && rdma->counters.packets == 2 && lant_rdma_in_flight(rdma) == 0
                ? rig->sim.now_ps
                : acknowledged_ps;
    }
    assert_int_equal(slow.result, LANT_RESULT_OK);
    expect_received(&slow, 1024);
    assert_true(acknowledged_ps > 0 && told_ps >= acknowledged_ps);
    assert_true(slow.returned_ps >= told_ps + lant_cycles(59));
    assert_int_equal(result_of(rig, &quick), LANT_RESULT_TIMEOUT);
    close_rig(rig);
}

enum {
    ARRIVALS = 20
};

/* A program that does not read fills its queue, which holds the interface: nothing is lost. */
static void test_unread(void **state)
{
    (void)state;
    struct lant_node_config config = lant_node_default();
    config.notifications = 2;
    struct rig *rig = open_rig(&config, 0);
    static struct lant_call sends[ARRIVALS];
    struct lant_call quick = {0}, confirm = {0};
    memset(sends, 0, sizeof(sends));
    for (uint32_t i = 0; i < ARRIVALS; i++) {
        lant_api_send(&rig->apis[0], &sends[i], 0, lant_global(1, TARGET + 512 * i), 8 * (i + 1));
    }
    sim_run_until(&rig->sim, lant_cycles(50000));
    assert_int_equal(rig->world.nodes[0].notifications[LANT_QUEUE_CPU].count, 2);
    assert_int_equal(rig->world.nodes[1].notifications[LANT_QUEUE_CPU].count, 2);
    for (uint32_t i = 0; i < ARRIVALS; i++) {
        lant_api_quick_recv(&rig->apis[1], &quick);
        assert_int_equal(result_of(rig, &quick), LANT_RESULT_OK);
        assert_int_equal(quick.received.bytes, 8 * (i + 1));
        assert_int_equal(quick.received.address, TARGET + 512 * i);
        lant_api_confirm_notif(&rig->apis[0], &confirm);
        assert_int_equal(result_of(rig, &confirm), LANT_RESULT_OK);
    }
    close_rig(rig);
}

/* -- Loads and stores ---------------------------------------------------------------------------*/

/* Every length and alignment, there and back; bytes beside them stay. */
static void test_lengths(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    uint8_t *memory = rig->world.nodes[1].memory, model[128], bytes[64], back[64];
    memcpy(model, memory + TARGET, sizeof(model));
    for (uint32_t i = 0; i < 8 * 40; i++) {
        const uint32_t at = i % 8 + 16, length = i / 8 + 1;
        struct lant_call write = {0}, read = {0}, fence = {0};
        for (uint32_t k = 0; k < length; k++) {
            bytes[k] = model[at + k] = (uint8_t)(i * 3 + k);
        }
        lant_api_shm_write(&rig->apis[0], &write, lant_global(1, TARGET + at), bytes, length);
        assert_int_equal(result_of(rig, &write), LANT_RESULT_OK);
        lant_api_shm_read(&rig->apis[0], &read, lant_global(1, TARGET + at), back, length);
        assert_int_equal(result_of(rig, &read), LANT_RESULT_OK);
        assert_memory_equal(back, bytes, length);
        lant_api_shm_fence(&rig->apis[0], &fence, 1);
        assert_int_equal(result_of(rig, &fence), LANT_RESULT_OK);
        assert_memory_equal(memory + TARGET, model, sizeof(model));
    }
    close_rig(rig);
}

/* LNI-34: an early store has returned before it is done; the fence waits for all of them. */
static void test_fence(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    uint8_t *memory = rig->world.nodes[1].memory;
    struct lant_call writes[3] = {0}, fence = {0}, other = {0};
    uint8_t bytes[256];
    memset(bytes, 0xee, sizeof(bytes));
    for (uint32_t i = 0; i < 3; i++) {
        lant_api_shm_write(&rig->apis[0], &writes[i], lant_global(1, TARGET + 256 * i), bytes, 256);
    }
    lant_api_shm_fence(&rig->apis[0], &fence, 1);
    lant_api_shm_fence(&rig->apis[0], &other, 0);
    assert_int_equal(result_of(rig, &writes[2]), LANT_RESULT_OK);
    assert_int_equal(lant_api_poll(&writes[2]), LANT_STORE_WAITS);
    assert_int_not_equal(memory[TARGET + 3 * 256 - 1], 0xee);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lant_api_poll(&writes[i]), LANT_STORE_DONE);
        assert_memory_equal(memory + TARGET + 256 * i, bytes, 256);
    }
    assert_true(fence.returned_ps > writes[2].returned_ps + lant_cycles(100));
    assert_int_equal(result_of(rig, &other), LANT_RESULT_OK);
    assert_true(other.returned_ps < fence.returned_ps);
    close_rig(rig);
}

/* LNI-34: a fence reports a store that was refused behind an early answer, and a later fence does
 * not. */
static void test_fence_fails(void **state)
{
    (void)state;
    struct rig *rig = open_default();
    struct lant_call write = {0}, good = {0}, fence = {0}, read = {0};
    uint8_t bytes[16] = {1};
    lant_api_shm_write(&rig->apis[0], &write, lant_global(1, OUTSIDE), bytes, 16);
    lant_api_shm_write(&rig->apis[0], &good, lant_global(1, TARGET), bytes, 16);
    lant_api_shm_fence(&rig->apis[0], &fence, LANT_ALL_NODES);
    assert_int_equal(result_of(rig, &write), LANT_RESULT_OK);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_FAILED);
    assert_int_equal(lant_api_poll(&write), LANT_STORE_FAILED);
    assert_int_equal(lant_api_poll(&good), LANT_STORE_DONE);
    lant_api_shm_fence(&rig->apis[0], &fence, LANT_ALL_NODES);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_OK);
    lant_api_shm_read(&rig->apis[0], &read, lant_global(1, OUTSIDE), bytes, 16);
    assert_int_equal(result_of(rig, &read), LANT_RESULT_FAILED);
    close_rig(rig);
}

/* Without early acknowledgement the call itself says it; so does a fence that covers it. */
static void test_genuine(void **state)
{
    (void)state;
    struct lant_node_config config = lant_node_default();
    config.shm.early_timers = 0;
    struct rig *rig = open_rig(&config, 0);
    struct lant_call write = {0}, fence = {0}, other = {0};
    static const uint8_t bytes[16] = {1};
    lant_api_shm_write(&rig->apis[0], &write, lant_global(1, TARGET), bytes, 16);
    assert_int_equal(result_of(rig, &write), LANT_RESULT_OK);
    assert_int_equal(write.returned_ps, lant_cycles(172)); /* LNI-A1. */
    assert_int_equal(lant_api_poll(&write), LANT_STORE_DONE);
    assert_memory_equal(rig->world.nodes[1].memory + TARGET, bytes, 16);
    lant_api_shm_write(&rig->apis[0], &write, lant_global(1, OUTSIDE), bytes, 16);
    lant_api_shm_fence(&rig->apis[0], &fence, 1);
    lant_api_shm_fence(&rig->apis[0], &other, 0);
    assert_int_equal(result_of(rig, &write), LANT_RESULT_FAILED);
    assert_int_equal(lant_api_poll(&write), LANT_STORE_FAILED);
    assert_int_equal(result_of(rig, &fence), LANT_RESULT_FAILED);
    assert_int_equal(result_of(rig, &other), LANT_RESULT_OK);
    close_rig(rig);
}

/* -- A random program ---------------------------------------------------------------------------*/

enum {
    AREA = 4096,
    STEPS = 600,
};

/* A load or a transfer, and the bytes that it should have moved. `model` is the area in node 1. */
static void random_step(struct rig *rig, struct prng *prng, uint8_t *model)
{
    uint8_t bytes[600];
    struct lant_call call = {0}, fence = {0};
    const uint32_t length = 1 + (uint32_t)prng_below(prng, sizeof(bytes));
    const uint32_t at = (uint32_t)prng_below(prng, AREA - length);
    const uint64_t there = lant_global(1, TARGET + at);
    struct lant_api *api = &rig->apis[0];
    if (prng_below(prng, 3) == 0) {
        lant_api_shm_read(api, &call, there, bytes, length);
        assert_int_equal(result_of(rig, &call), LANT_RESULT_OK);
        assert_memory_equal(bytes, model + at, length);
    } else if (prng_below(prng, 2) == 0) {
        for (uint32_t i = 0; i < length; i++) {
            bytes[i] = model[at + i] = (uint8_t)prng_next(prng);
        }
        lant_api_shm_write(api, &call, there, bytes, length);
        assert_int_equal(result_of(rig, &call), LANT_RESULT_OK);
        /* Transfers know nothing of stores: one that comes later could be overtaken. */
        lant_api_shm_fence(api, &fence, 1);
        assert_int_equal(result_of(rig, &fence), LANT_RESULT_OK);
        assert_int_equal(lant_api_poll(&call), LANT_STORE_DONE);
    } else {
        const uint32_t from = at & ~7u;
        memcpy(model + from, rig->world.nodes[0].memory + from * 5, length);
        lant_api_send_blocking(api, &call, from * 5, lant_global(1, TARGET + from), length);
        if (result_of(rig, &call) == LANT_RESULT_TIMEOUT) {
            lant_api_rdma_fence(api, &call); /* A packet was lost: it comes all the same. */
        }
        assert_int_equal(result_of(rig, &call), LANT_RESULT_OK);
    }
    lant_api_forget_arrivals(&rig->apis[1]);
    assert_memory_equal(rig->world.nodes[1].memory + TARGET, model, AREA);
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        const struct lant_node_config config = lant_node_default();
        struct rig *rig = open_rig(&config, seed == 1 ? 0 : 2e-5);
        uint8_t model[AREA];
        struct prng prng;
        prng_init(&prng, seed);
        prng_init(&rig->sim.prng, seed);
        memcpy(model, rig->world.nodes[1].memory + TARGET, AREA);
        for (uint32_t i = 0; i < STEPS; i++) {
            random_step(rig, &prng, model);
        }
        assert_true(seed == 1 || rig->world.nodes[0].shm.counters.resent > 0);
        assert_true(seed == 1 || rig->world.nodes[0].rdma.counters.again > 0);
        close_rig(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_send),       cmocka_unit_test(test_send_blocking),
        cmocka_unit_test(test_timeouts),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failures),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_quick_recv), cmocka_unit_test(test_recv),
        cmocka_unit_test(test_unread),     cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_fence),      cmocka_unit_test(test_fence_fails),
        cmocka_unit_test(test_genuine),    cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
