/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crowd - see crowd.h: networks of many nodes, and their counters in the end.
 */
#include "lab/lant/crowd.h"

#include <stdio.h>
#include <string.h>

enum {
    TREE_LEVELS = 3,
    FRAMES_A_NODE = 96, /* Requests and answers of all rows, with room to spare. */
};

void lant_crowd_grid(uint32_t nodes, uint32_t grid[3])
{
    uint32_t least = UINT32_MAX;
    grid[0] = nodes;
    grid[1] = grid[2] = 1;
    for (uint32_t a = 1; a <= nodes; a++) {
        for (uint32_t b = a; nodes % a == 0 && a * b <= nodes; b++) {
            const uint32_t c = nodes / a / b;
            if (a * b * c == nodes && c >= b && a * b + b * c + c * a < least) {
                least = a * b + b * c + c * a;
                grid[0] = c;
                grid[1] = b;
                grid[2] = a;
            }
        }
    }
}

void lant_crowd_describe(enum lant_network_kind kind, uint32_t nodes, char *text, size_t bytes)
{
    uint32_t grid[3], radix = 4, globals = 1;
    switch (kind) {
    case LANT_TORUS:
        do { /* A ring has at least two nodes. */
            lant_crowd_grid(nodes++, grid);
        } while (grid[2] < 2);
        (void)snprintf(text, bytes, "torus:%ux%ux%u", grid[0], grid[1], grid[2]);
        return;
    case LANT_FAT_TREE:
        while (radix * radix * radix / 4 < nodes) {
            radix += 2;
        }
        (void)snprintf(text, bytes, "fat-tree:%u:%u", radix, (uint32_t)TREE_LEVELS);
        return;
    case LANT_DRAGONFLY: /* Balanced: as many hosts as global links, twice as many routers. */
        while (2 * globals * globals * (2 * globals * globals + 1) < nodes) {
            globals++;
        }
        (void)snprintf(text, bytes, "dragonfly:%u,%u,%u", globals, 2 * globals, globals);
        return;
    }
    UNREACHABLE("a network outside its enum");
}

struct lant_bench *lant_crowd_open(struct lab_run *run, enum lant_network_kind kind,
                                   uint64_t memory_bytes)
{
    const uint32_t nodes = lant_whole(run, "crowd");
    struct lant_node_config config = lant_config_of(run);
    struct lant_fabric_config fabric = lant_ring_of(run, 2);
    lant_crowd_describe(kind, nodes, fabric.topology, sizeof(fabric.topology));
    if (kind != LANT_TORUS) {
        fabric.node_line = fabric.switch_line; /* The switch is not in the node's own FPGA. */
    }
    fabric.bit_errors = lab_value(run, "bit_errors");
    fabric.packets = FRAMES_A_NODE * nodes;
    config.memory_bytes = memory_bytes;
    config.believes_crc = lab_word(run, "crc") != 0;
    config.shm_target.strict_thesis = config.rdma_target.strict_thesis =
        lab_word(run, "rings") != 0;
    uint32_t ring = 1;
    while (ring < lant_whole(run, "ring")) {
        ring *= 2;
    }
    config.rdma_target.tombstones = config.shm_target.recent = ring;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    const uint64_t each = sizeof(bench->world.nodes[0]) + memory_bytes +
                          lant_tombstones_bytes(config.rdma_target.tombstones) +
                          lant_shm_recent_bytes(config.shm_target.recent);
    lab_add_memory(run, "node", bench->world.count, bench->world.count * each);
    return bench;
}

static bool keeps_something(const struct lant_node *node)
{
    return !lant_shm_idle(&node->shm) || !lant_rdma_idle(&node->rdma) ||
           !lant_inbound_idle(&node->inbound) || !lant_rdma_target_idle(&node->rdma_target) ||
           node->shm_target.recent.count != 0;
}

void lant_crowd_finish(struct lant_bench *bench, struct lant_crowd_outcome *outcome)
{
    struct lant_world *world = &bench->world;
    while (sim_step(&bench->sim)) {
    }
    outcome->flipped = world->fabric.counters.flipped;
    outcome->repaired = world->fabric.counters.mended;
    for (uint32_t i = 0; i < world->count; i++) {
        const struct lant_node *node = &world->nodes[i];
        const uint64_t *verdicts = node->rdma_target.counters.verdicts;
        outcome->packets += node->counters.received;
        outcome->repaired += node->counters.repaired;
        outcome->nacks += node->counters.verdicts[LANT_CRC_WRONG];
        outcome->timeouts += node->shm.counters.timeouts + node->rdma.counters.timeouts;
        outcome->again += verdicts[LANT_RDMA_TARGET_DUPLICATE] + node->shm_target.counters.repeated;
        outcome->failed += node->shm.counters.failed + node->rdma.counters.failed;
        outcome->kept += keeps_something(node);
        if (node->counters.dropped_full != 0) {
            lab_fail(bench->run, "a node had no room for what came");
        }
    }
    if (world->fabric.counters.dropped_full != 0) {
        lab_fail(bench->run, "there was no room for what was on its way");
    }
}

void lant_crowd_close(struct lant_bench *bench)
{
    lant_bench_end(bench);
}

void lant_crowd_compare(const struct lant_node *node, const uint8_t *expected,
                        struct lant_crowd_outcome *outcome)
{
    const uint64_t bytes = node->world->config.memory_bytes;
    outcome->bytes += bytes;
    if (memcmp(node->memory, expected, bytes) == 0) {
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) {
        outcome->wrong += node->memory[i] != expected[i];
    }
}
