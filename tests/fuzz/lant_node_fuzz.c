/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever a hostile peer sends, a node writes only to memory that it offers, its program's
 *         own accesses and transfers come to an end, and it has nothing left to do afterwards.
 *         LNI-92
 * Method  Two nodes on a line. libFuzzer's bytes are commands: node 0's program loads, stores and
 *         transfers; packets with any fields and right codes, or any flits, come from where node 1
 *         is, beside node 1's honest answers; time passes. Invariants are on.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lab/lant/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum {
    MEMORY = 32768,
    OFFERED = 8192, /* From here on, as many bytes. */
    COMMANDS_MAX = 64,
    STEPS_MAX = 2000000,
};

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *input, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes && input->left > 0; i++, input->left--) {
        value = value << 8 | *input->at++;
    }
    return value;
}

static void program_does(struct lant_node *node, struct input *input)
{
    static const uint8_t data[64] = {1, 2, 3};
    static const uint8_t sizes[] = {1, 2, 4, 8, 16, 64};
    const uint8_t what = (uint8_t)take(input, 1);
    const uint64_t address = lant_global(1, (take(input, 1) << 6) % MEMORY);
    if (what & 1) {
        const struct lant_shm_access access = {.address = address,
                                               .bytes = sizes[(what >> 1) % sizeof(sizes)],
                                               .store = what >> 4 & 1,
                                               .bus_id = what >> 5};
        (void)lant_node_access(node, &access, access.store ? data : NULL);
        return;
    }
    const struct lant_work work = {.descriptor = {.destination = address,
                                                  .bytes = 1 + (uint32_t)take(input, 2) % OFFERED,
                                                  .no_register = what >> 1 & 1},
                                   .no_notif = what >> 2 & 1};
    (void)lant_node_submit(node, what >> 3 & 1 ? LANT_QUEUE_FPGA : LANT_QUEUE_CPU, &work);
}

/* A packet with any fields that fit their bits. */
static void forge(struct input *input, struct lant_packet *packet)
{
    const uint64_t fields = take(input, 8);
    memset(packet, 0, sizeof(*packet));
    packet->header = (struct lant_header){
        .type = fields & 0xf,
        .payload = (uint8_t)((fields >> 4 & 0x7f) % (LANT_PAYLOAD_FLITS_MAX + 1)),
        .packets = fields >> 11 & 0x7ff,
        .lock = fields >> 22 & 1,
        .keyhole = fields >> 23 & 1,
        .address = take(input, 2) << (fields >> 61),
        .strobe = (uint8_t)take(input, 1),
        .size = fields >> 24 & 7,
    };
    packet->footer = (struct lant_footer){
        .source = fields >> 27 & 3,
        .class = fields >> 29 & 3,
        .row = fields >> 31 & 0x1f,
        .response = fields >> 36 & 7,
        .generation = fields >> 39 & 3,
        .bus_id = fields >> 41 & 3,
        .operation = fields >> 43 & 0x3f,
        .offset = (uint32_t)take(input, 1),
        .attempt = fields >> 49 & 7,
    };
    memset(packet->payload, 0xa5, sizeof(packet->payload));
}

static void peer_sends(struct lant_world *world, struct input *input)
{
    struct lant_packet packet;
    struct lant_frame *frame = lant_fabric_frame(&world->fabric);
    forge(input, &packet);
    frame->count = lant_encode(&packet, frame->flits);
    const uint8_t flip = (uint8_t)take(input, 1);
    if (flip < frame->count) {
        frame->flits[flip] ^= take(input, 8);
    }
    (void)lant_fabric_send(&world->fabric, 1, frame, world->sim->now_ps);
}

static void check_memory(const struct lant_node *node)
{
    for (uint32_t i = 0; i < MEMORY; i++) {
        CHECK(node->memory[i] == 0 || (i >= OFFERED && i < 2 * OFFERED));
    }
}

static void run(struct lant_world *world, uint64_t until_ps)
{
    for (uint32_t steps = 0; sim_next_ps(world->sim) <= until_ps; steps++) {
        CHECK(steps < STEPS_MAX);
        (void)sim_step(world->sim);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct sim sim;
    static struct lant_world world;
    struct input input = {bytes, count};
    struct lant_node_config config = lant_node_default();
    const struct lant_line line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24};
    const struct lant_fabric_config fabric = {
        .topology = "all-to-all:2", .node_line = line, .switch_line = line, .packets = 512};
    const uint8_t small = (uint8_t)take(&input, 1);
    char error[TOPOLOGY_ERROR_BYTES];
    config.memory_bytes = MEMORY;
    config.rdma_target.entries = small & 1 ? 1 : 8;
    config.rdma_target.escapes = small & 2 ? 1 : 8;
    config.inbound.entries = small & 4 ? 1 : 8;
    config.shm.rows = config.rdma.rows = small & 8 ? 2 : 16;
    config.early_timers = small & 16 ? 0 : 16;
    config.atomics.entries = small & 32 ? 0 : 2;
    sim_init(&sim, 1);
    CHECK(lant_world_open(&world, &config, &fabric, &sim, 1, error, sizeof(error)));
    world.nodes[0].ranges.ranges[0].base = OFFERED;
    world.nodes[0].ranges.ranges[0].bytes = OFFERED;
    for (uint32_t i = 0; i < COMMANDS_MAX && input.left > 0; i++) {
        const uint8_t command = (uint8_t)take(&input, 1);
        switch (command & 3) {
        case 0: program_does(&world.nodes[0], &input); break;
        case 1: run(&world, sim.now_ps + lant_cycles(command)); break;
        default: peer_sends(&world, &input); break;
        }
    }
    run(&world, UINT64_MAX - 1);
    CHECK(lant_world_idle(&world));
    check_memory(&world.nodes[0]);
    lant_world_close(&world);
    return 0;
}
