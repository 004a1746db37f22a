/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The document's future work does on nodes what the document says.
 * Method  Small worlds whose lines lose what the test says; times by arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/node.h"

struct seen {
    struct lant_world world;
    struct sim sim;
    uint32_t done;
    uint64_t done_ps;
    struct lant_shm_done last;
};

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct seen *seen = context;
    if (lant_shm_done_on_bus(done)) {
        seen->done++;
        seen->done_ps = seen->sim.now_ps;
        seen->last = *done;
    }
}

static struct lant_fabric_config network(const char *topology)
{
    struct lant_fabric_config config = {
        .switch_line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24},
        .switch_cycles = 18,
        .packets = 4096,
    };
    (void)snprintf(config.topology, sizeof(config.topology), "%s", topology);
    return config;
}

static struct lant_node_config without_early(void)
{
    struct lant_node_config config = lant_node_default();
    config.shm.early_timers = 0;
    config.early_timers = 0;
    return config;
}

static struct seen *open_world(const struct lant_node_config *config,
                               const struct lant_fabric_config *fabric)
{
    struct seen *seen = calloc(1, sizeof(*seen));
    char error[TOPOLOGY_ERROR_BYTES];
    sim_init(&seen->sim, 1);
    assert_true(lant_world_open(&seen->world, config, fabric, &seen->sim, 1, error, sizeof(error)));
    for (uint32_t i = 0; i < seen->world.count; i++) {
        seen->world.nodes[i].program = (struct lant_program){.context = seen, .on_done = on_done};
    }
    return seen;
}

static void run(struct seen *seen)
{
    while (!lant_world_idle(&seen->world)) {
        assert_true(sim_step(&seen->sim));
    }
}

static void close_world(struct seen *seen)
{
    lant_world_close(&seen->world);
    free(seen);
}

/* A store whose first copies are all lost, until one is let through: when it is done. */
static uint64_t resent_cycles(uint32_t to, uint32_t copies)
{
    struct lant_node_config config = without_early();
    struct lant_fabric_config fabric = network("torus:4x3");
    fabric.loss_millionths = 1000000;
    config.timers = (struct lant_distance_timers){.used = true,
                                                  .base = lant_cycles(700),
                                                  .hop = lant_cycles(300),
                                                  .torus = {.dimensions = 2, .size = {4, 3}}};
    struct seen *seen = open_world(&config, &fabric);
    const struct lant_shm_access access = {
        .address = lant_global(to, 128), .bytes = 8, .store = true};
    const uint8_t data[8] = {1};
    assert_true(lant_node_access(&seen->world.nodes[0], &access, data));
    while (seen->world.fabric.counters.lost < copies) {
        assert_true(sim_step(&seen->sim));
    }
    seen->world.fabric.errors.loss_millionths = 0;
    run(seen);
    assert_int_equal(seen->done, 1);
    assert_int_equal(seen->last.response, LANT_OKAY);
    assert_int_equal(seen->world.nodes[to].shm_target.counters.stores, 1);
    assert_int_equal(seen->world.nodes[0].shm.counters.resent, copies);
    const uint64_t cycles = seen->done_ps / LANT_CYCLE_PS;
    close_world(seen);
    return cycles;
}

/* LNI-W-1: a packet's timer is the base, and a time for each hop: from its footer, 5 cycles behind
 * its first flit, to the next copy's first flit. */
static void test_timers_by_distance(void **state)
{
    (void)state;
    static const uint32_t hops[12] = {0, 1, 2, 1, 1, 2, 3, 2, 1, 2, 3, 2};
    for (uint32_t to = 1; to < COUNT_OF(hops); to++) {
        const uint64_t timer = 5 + 700 + 300 * hops[to];
        const uint64_t first = resent_cycles(to, 1);
        assert_int_equal(resent_cycles(to, 2) - first, timer);
        assert_int_equal(resent_cycles(to, 3) - first, 2 * timer);
    }
}

/* LNI-W-2: over a line whose round trip is longer than 1,024 packets take, as many are under way as
 * there are rows; all come, in as many round trips as that asks for. */
static void test_rows(void **state)
{
    (void)state;
    enum {
        PACKETS = 2048,
        BYTES = PACKETS * LANT_PAYLOAD_BYTES_MAX
    };
    for (uint32_t rows = 16; rows <= LANT_ROWS_MAX; rows *= 4) {
        struct lant_node_config config = lant_node_default();
        struct lant_fabric_config fabric = network("all-to-all:2");
        fabric.node_line.latency_cycles = 100000;
        config.rdma.rows = (uint16_t)rows;
        config.early_timers = rows;
        config.rdma.timeout = lant_cycles(1000000);
        config.memory_bytes = BYTES;
        struct seen *seen = open_world(&config, &fabric);
        struct lant_node *node = &seen->world.nodes[0];
        for (uint32_t i = 0; i < BYTES; i++) {
            node->memory[i] = (uint8_t)(i * 13 + (i >> 9));
        }
        const struct lant_work work = {
            .descriptor = {.destination = lant_global(1, 0), .bytes = BYTES}};
        assert_int_equal(lant_node_submit(node, LANT_QUEUE_CPU, &work), LANT_SUBMIT_COMMITTED);
        run(seen);
        assert_memory_equal(seen->world.nodes[1].memory, node->memory, BYTES);
        assert_int_equal(node->rdma.transactions.used_max, rows);
        assert_int_equal(node->rdma.counters.packets, PACKETS);
        assert_int_equal(node->rdma.counters.again, 0);
        /* Each round trip is 200,000 cycles and the time of its packets on the line. */
        const uint64_t trips = PACKETS / rows;
        assert_in_range(seen->sim.now_ps / LANT_CYCLE_PS, trips * 200000,
                        (trips + 2) * (200000 + 200) + PACKETS * 80);
        close_world(seen);
    }
}

/* LNI-W-3: five nodes send to one through buffers of hardly a packet. With credits nodes wait, and
 * no packet goes again. Without them, dropped packets go again. The data are right either way. */
static void test_hot_spot(void **state)
{
    (void)state;
    enum {
        NODES = 6,
        BYTES = 16384
    };
    for (enum lant_flow_kind flow = LANT_FLOW_CREDITS; flow <= LANT_FLOW_DROP; flow++) {
        struct lant_node_config config = lant_node_default();
        struct lant_fabric_config fabric = network("star:6");
        uint64_t again = 0;
        fabric.node_line = fabric.switch_line;
        fabric.flow = flow;
        fabric.buffer_flits = LANT_PACKET_FLITS_MAX;
        config.rdma.retries = LANT_RETRIES_MAX;
        struct seen *seen = open_world(&config, &fabric);
        for (uint32_t from = 1; from < NODES; from++) {
            struct lant_node *node = &seen->world.nodes[from];
            memset(node->memory, (int)from, BYTES);
            const struct lant_work work = {
                .descriptor = {.destination = lant_global(0, (uint64_t)BYTES * from),
                               .bytes = BYTES}};
            assert_int_equal(lant_node_submit(node, LANT_QUEUE_CPU, &work), LANT_SUBMIT_COMMITTED);
        }
        run(seen);
        for (uint32_t from = 1; from < NODES; from++) {
            const struct lant_node *node = &seen->world.nodes[from];
            assert_memory_equal(seen->world.nodes[0].memory + (uint64_t)BYTES * from, node->memory,
                                BYTES);
            again += node->rdma.counters.again;
        }
        assert_int_equal(again != 0, flow == LANT_FLOW_DROP);
        assert_int_equal(seen->world.fabric.flow.dropped != 0, flow == LANT_FLOW_DROP);
        close_world(seen);
    }
}

/* Node 0 counts at node 1, `times` times. */
static struct seen *count(struct lant_node_config config, uint32_t times, uint32_t loss_millionths)
{
    struct lant_fabric_config fabric = network("all-to-all:2");
    const struct lant_shm_access access = {
        .address = lant_global(1, 64), .bytes = 8, .operand = 3, .atomic = LANT_FETCH_ADD};
    fabric.node_line = fabric.switch_line;
    fabric.loss_millionths = loss_millionths;
    config.shm.retries = LANT_RETRIES_MAX;
    struct seen *seen = open_world(&config, &fabric);
    for (uint32_t i = 0; i < times; i++) {
        assert_true(lant_node_access(&seen->world.nodes[0], &access, NULL));
    }
    run(seen);
    assert_int_equal(seen->done, times);
    return seen;
}

/* LNI-W-4: a count is done once though its packet, or its answer, is lost; the last one brings what
 * all before it made; a machine without atomics refuses, and memory stays. */
static void test_atomics(void **state)
{
    (void)state;
    enum {
        TIMES = 500
    };
    struct lant_node_config config = without_early();
    struct seen *seen = count(config, 1, 0);
    uint64_t sum;
    assert_int_equal(seen->last.response, LANT_DECERR);
    memcpy(&sum, seen->world.nodes[1].memory + 64, sizeof(sum));
    assert_int_equal(sum, 0);
    close_world(seen);
    config.atomics.entries = 1024;
    seen = count(config, TIMES, 100000);
    const struct lant_node *target = &seen->world.nodes[1];
    memcpy(&sum, target->memory + 64, sizeof(sum));
    assert_int_equal(sum, 3 * TIMES);
    assert_int_equal(seen->last.response, LANT_OKAY);
    assert_int_equal(seen->last.data, 3 * (TIMES - 1));
    assert_int_equal(target->atomics.counters.done, TIMES);
    assert_in_range(target->atomics.counters.repeated, TIMES / 20, TIMES / 5);
    close_world(seen);
}

/* -- Checks at links ----------------------------------------------------------------------------*/

struct checked {
    struct lant_fabric_counters fabric;
    uint64_t again, refused; /* By the receiving node, for the CRC. */
};

/* 32 KB over two links, of which some bits are flipped: every byte comes. */
static struct checked send_checked(enum lant_checking checking)
{
    enum {
        BYTES = 32768,
        TO = 2,
    };
    struct lant_node_config config = lant_node_default();
    struct lant_fabric_config fabric = network("torus:5");
    fabric.bit_errors = 2e-5;
    fabric.checking = checking;
    fabric.check_cycles = 64;
    config.rdma.retries = 7;
    struct seen *seen = open_world(&config, &fabric);
    struct lant_node *from = &seen->world.nodes[0], *to = &seen->world.nodes[TO];
    for (uint32_t i = 0; i < BYTES; i++) {
        from->memory[i] = (uint8_t)(i * 7 + i / 256);
    }
    const struct lant_work work = {
        .descriptor = {.destination = lant_global(TO, 0), .bytes = BYTES}};
    assert_int_equal(lant_node_submit(from, LANT_QUEUE_CPU, &work), LANT_SUBMIT_COMMITTED);
    run(seen);
    assert_memory_equal(from->memory, to->memory, BYTES);
    const struct checked checked = {.fabric = seen->world.fabric.counters,
                                    .again = from->rdma.counters.again,
                                    .refused = to->counters.verdicts[LANT_CRC_WRONG]};
    close_world(seen);
    return checked;
}

static void test_link_checks(void **state)
{
    (void)state;
    const struct checked ends = send_checked(LANT_CHECK_ENDS);
    assert_int_equal(ends.fabric.nacked, 0);
    assert_true(ends.refused > 0 && ends.again >= ends.refused);
    const struct checked links = send_checked(LANT_CHECK_LINKS);
    assert_true(links.fabric.nacked > 0 && links.fabric.corrected == 0);
    assert_true(links.again >= links.fabric.nacked + links.refused);
    const struct checked code = send_checked(LANT_CHECK_CODE);
    assert_true(code.fabric.corrected > 0 && code.fabric.flipped == 0);
    assert_int_equal(code.again, 0);
}

/* A switch keeps a packet that it checks, of whose room no credit tells. */
static void test_link_checks_need_room(void **state)
{
    (void)state;
    struct lant_fabric_config fabric = network("star:4");
    struct topology topology;
    char error[TOPOLOGY_ERROR_BYTES];
    fabric.flow = LANT_FLOW_CREDITS;
    fabric.buffer_flits = 205;
    assert_true(lant_fabric_topology(&fabric, &topology, error, sizeof(error)));
    topology_close(&topology);
    fabric.checking = LANT_CHECK_LINKS;
    assert_false(lant_fabric_topology(&fabric, &topology, error, sizeof(error)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link_checks),        cmocka_unit_test(test_link_checks_need_room),
        cmocka_unit_test(test_timers_by_distance), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_hot_spot),           cmocka_unit_test(test_atomics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
