/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A node takes the time that the document measured; transfers reach memory, also where
 *         packets overtake each other and bits are flipped.
 * Method  Two nodes and a line: the points of Table 3.6 by which costs were found are met to the
 *         cycle. A ring in which packets take both ways, with flipped bits.
 */
#include "lab/lant/test_node.h"

static uint64_t store_cycles(uint32_t bytes)
{
    const struct lant_node_config config = without_early();
    const struct lant_fabric_config fabric = line();
    struct seen *seen = open_world(&config, &fabric);
    uint8_t data[64];
    memset(data, 7, sizeof(data));
    const struct lant_shm_access access = {
        .address = lant_global(1, 128), .bytes = bytes, .store = true};
    assert_true(lant_node_access(&seen->world.nodes[0], &access, data));
    run(seen);
    assert_int_equal(seen->done, bytes / 8);
    assert_memory_equal(seen->world.nodes[1].memory + 128, data, bytes);
    const uint64_t cycles = seen->done_ps / LANT_CYCLE_PS;
    assert_int_equal(seen->done_ps % LANT_CYCLE_PS, 0);
    close_world(seen);
    return cycles;
}

static uint64_t transfer_cycles(uint32_t bytes)
{
    const struct lant_node_config config = without_early();
    const struct lant_fabric_config fabric = line();
    struct seen *seen = open_world(&config, &fabric);
    struct lant_node *node = &seen->world.nodes[0];
    for (uint32_t i = 0; i < bytes; i++) {
        node->memory[i] = (uint8_t)(i * 7 + 1);
    }
    const struct lant_work work = {
        .descriptor = {.destination = lant_global(1, 4096), .bytes = bytes}};
    assert_int_equal(lant_node_submit(node, LANT_QUEUE_CPU, &work), LANT_SUBMIT_COMMITTED);
    run(seen);
    assert_int_equal(seen->sent, 1);
    assert_int_equal(seen->received, 1);
    assert_memory_equal(seen->world.nodes[1].memory + 4096, node->memory, bytes);
    const uint64_t cycles = seen->sent_ps / LANT_CYCLE_PS;
    close_world(seen);
    return cycles;
}

/* LNI-83: the points LNI-A1 and LNI-A2. */
static void test_calibration(void **state)
{
    (void)state;
    assert_int_equal(store_cycles(8), 162);
    assert_int_equal(store_cycles(16), 172);
    assert_int_equal(transfer_cycles(16), 232);
    assert_int_equal(transfer_cycles(512), 356);
}

/* A transfer of 64 KB around a ring of eight, half way: each packet may go either way. */
static uint64_t both_ways(uint64_t seed)
{
    const struct lant_node_config config = without_early();
    struct lant_fabric_config fabric = line();
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "torus:8");
    fabric.node_line = (struct lant_line){0};
    fabric.bit_errors = 1e-7;
    struct seen *seen = open_world(&config, &fabric);
    prng_init(&seen->sim.prng, seed);
    struct lant_node *node = &seen->world.nodes[0], *far = &seen->world.nodes[4];
    for (uint32_t i = 0; i < 65536; i++) {
        node->memory[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    /* Another flow makes one of the ways the slower one, so that packets overtake each other. */
    const struct lant_work other = {
        .descriptor = {.destination = lant_global(2, 65536), .bytes = 65536}};
    const struct lant_work work = {
        .descriptor = {.destination = lant_global(4, 65536), .bytes = 65536}};
    assert_int_equal(lant_node_submit(&seen->world.nodes[1], LANT_QUEUE_CPU, &other),
                     LANT_SUBMIT_COMMITTED);
    assert_int_equal(lant_node_submit(node, LANT_QUEUE_CPU, &work), LANT_SUBMIT_COMMITTED);
    run(seen);
    assert_memory_equal(far->memory + 65536, node->memory, 65536);
    assert_int_equal(seen->sent, 2);
    const uint64_t digest = seen->sim.digest;
    close_world(seen);
    return digest;
}

/* LNI-78 LNI-86: the data are right, and one seed is one run. */
static void test_both_ways(void **state)
{
    (void)state;
    const uint64_t digest = both_ways(1);
    assert_int_equal(both_ways(1), digest);
    assert_int_not_equal(both_ways(2), digest);
}

/* LNI-17: data of transfers take entries of the CAM as well. With one entry, two senders' packets
 * wait for each other, and none is lost. */
static void test_senders_share_the_cam(void **state)
{
    (void)state;
    struct lant_node_config config = without_early();
    struct lant_fabric_config fabric = line();
    config.inbound.entries = 1;
    config.costs.memory = 30;
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "all-to-all:3");
    struct seen *seen = open_world(&config, &fabric);
    const struct lant_node *target = &seen->world.nodes[2];
    for (uint32_t from = 0; from < 2; from++) {
        struct lant_node *node = &seen->world.nodes[from];
        memset(node->memory, 1 + (int)from, 8192);
        const struct lant_work work = {
            .descriptor = {.destination = lant_global(2, 8192 * from), .bytes = 8192}};
        assert_int_equal(lant_node_submit(node, LANT_QUEUE_CPU, &work), LANT_SUBMIT_COMMITTED);
    }
    run(seen);
    assert_int_equal(target->inbound.counters.admitted, 32);
    assert_int_equal(target->inbound.counters.entries_peak, 1);
    assert_true(target->inbound.counters.held_entry >= 16);
    for (uint32_t from = 0; from < 2; from++) {
        assert_memory_equal(target->memory + 8192 * from, seen->world.nodes[from].memory, 8192);
    }
    assert_int_equal(seen->received, 2);
    close_world(seen);
}

/* A packet waits for its own line only. Node 0 begins with one to node 1, whose line it keeps for a
 * long time. Its word to node 2 is as early as ever. */
static void test_lines_of_a_node(void **state)
{
    (void)state;
    uint64_t alone_ps = 0;
    for (uint32_t both = 0; both < 2; both++) {
        const struct lant_node_config config = without_early();
        struct lant_fabric_config fabric = line();
        const uint8_t data[8] = {1};
        fabric.node_line.frame_flits = 10000;
        (void)snprintf(fabric.topology, sizeof(fabric.topology), "all-to-all:3");
        struct seen *seen = open_world(&config, &fabric);
        for (uint32_t to = both ? 1 : 2; to <= 2; to++) {
            const struct lant_shm_access access = {
                .address = lant_global(to, 0), .bytes = 8, .store = true};
            assert_true(lant_node_access(&seen->world.nodes[0], &access, data));
        }
        run(seen);
        assert_int_equal(seen->done, 1 + both);
        if (!both) {
            alone_ps = seen->done_ps;
        } else {
            assert_in_range(seen->done_ps, alone_ps, alone_ps + lant_cycles(20));
        }
        close_world(seen);
    }
}

/* A transfer that fails is recorded where it was begun; if an accelerator began it, with the
 * CPU in charge. */
static void test_failures_are_recorded(void **state)
{
    (void)state;
    for (enum lant_queue queue = LANT_QUEUE_CPU; queue < LANT_QUEUE_COUNT; queue++) {
        struct lant_node_config config = without_early();
        const struct lant_fabric_config fabric = line();
        config.in_charge = 1;
        struct seen *seen = open_world(&config, &fabric);
        struct lant_node *node = &seen->world.nodes[0];
        const struct lant_work work = {
            .descriptor = {.destination = lant_global(1, config.memory_bytes), .bytes = 512},
            .tag = 77};
        assert_int_equal(lant_node_submit(node, queue, &work), LANT_SUBMIT_COMMITTED);
        run(seen);
        assert_int_equal(seen->sent, 1);
        assert_int_equal(lant_errors_count(&node->errors), 1);
        const struct lant_error *error = lant_errors_at(&node->errors, 0);
        assert_int_equal(error->kind, LANT_ERROR_RDMA);
        assert_int_equal(error->address, lant_global(1, config.memory_bytes));
        assert_int_equal(error->initiator, 77);
        assert_int_equal(error->attempts, 1);
        assert_int_equal(error->response, LANT_DECERR);
        assert_int_equal(seen->world.nodes[1].counters.reports, queue == LANT_QUEUE_FPGA);
        close_world(seen);
    }
}

/* Two transfers end a few cycles apart, since the second is shorter: each is notified in its own
 * time. */
static void test_each_in_its_time(void **state)
{
    (void)state;
    static const uint32_t bytes[] = {512, 16};
    const struct lant_node_config config = lant_node_default();
    const struct lant_fabric_config fabric = line();
    struct seen *seen = open_world(&config, &fabric);
    for (uint32_t i = 0; i < 2; i++) {
        const struct lant_work work = {
            .descriptor = {.destination = lant_global(1, 4096 * i), .bytes = bytes[i]}};
        assert_int_equal(lant_node_submit(&seen->world.nodes[0], LANT_QUEUE_CPU, &work),
                         LANT_SUBMIT_COMMITTED);
    }
    while (seen->sent == 0) {
        assert_true(sim_step(&seen->sim));
    }
    const uint64_t first_ps = seen->sent_ps;
    run(seen);
    assert_int_equal(seen->sent, 2);
    assert_in_range(seen->sent_ps - first_ps, lant_cycles(1),
                    lant_cycles(config.costs.rdma_done - config.costs.row));
    close_world(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calibration),           cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_senders_share_the_cam), cmocka_unit_test(test_lines_of_a_node),
        cmocka_unit_test(test_failures_are_recorded), cmocka_unit_test(test_each_in_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
