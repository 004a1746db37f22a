/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Worlds of experiments, and the simplest thing to do in one: a stream of bytes from here to there.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/exanest/experiments.h"

#define BLOCK UINT64_C(16384) /* Offsets are those within such a line. */

struct exanest_world *exanest_world_begin(struct lab_run *run,
                                          const struct exanest_machine_config *config)
{
    struct exanest_world *world = malloc(sizeof(*world));
    CHECK(world != NULL);
    world->run = run;
    lab_world_begin(run, &world->sim, &world->trace, &world->capture, PCAPNG_LINK_EXANEST);
    exanest_machine_open(&world->machine, config, &world->sim);
    world->watch = exanest_watch_open(&world->machine, world->trace, world->capture);
    return world;
}

void exanest_world_end(struct exanest_world *world)
{
    exanest_watch_end(world->watch);
    lab_world_end(world->run, &world->sim, world->trace, world->capture);
    exanest_machine_close(&world->machine);
    exanest_watch_close(world->watch);
    free(world);
}

static void next_edge(struct exanest_world *world, uint32_t fpga)
{
    exanest_fabric_wake(&world->machine.fabric, fpga);
    sim_run_until(&world->sim, exanest_fabric_edge_ps(&world->machine.fabric));
}

uint64_t exanest_world_store(struct exanest_world *world, uint32_t fpga, uint32_t address,
                             uint64_t value)
{
    struct exanest_exadma *exadma = &exanest_fabric_fpga(&world->machine.fabric, fpga)->exadma;
    struct exanest_host_store store = exanest_host_store_64(address, value);
    uint64_t taken_ps = 0;
    for (bool answered = false; !answered;) {
        const bool waits = store.stage != EXANEST_STORE_ANSWER;
        next_edge(world, fpga);
        answered = exanest_exadma_write(exadma, &store);
        if (waits && store.stage == EXANEST_STORE_ANSWER) {
            taken_ps = world->sim.now_ps;
        }
    }
    return taken_ps;
}

uint64_t exanest_world_load(struct exanest_world *world, uint32_t fpga, uint32_t address)
{
    struct exanest_exadma *exadma = &exanest_fabric_fpga(&world->machine.fabric, fpga)->exadma;
    struct exanest_host_load load = {.address = address};
    do {
        next_edge(world, fpga);
    } while (!exanest_exadma_read(exadma, &load));
    return address % EXANEST_WORD_BYTES == 0 ? load.data.low : load.data.high;
}

static void fill(struct exanest_world *world, uint32_t fpga, uint64_t va, uint32_t bytes)
{
    uint8_t *at = exanest_machine_bytes(&world->machine, fpga, 0, va, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)prng_next(&world->sim.prng);
    }
}

/* Nothing is lost, and still a block was sent again, because its answer came too late: then the
 * others' come later yet, and the run would go on until each of them is given up. */
static bool hopeless(const struct exanest_world *world, uint32_t from,
                     const struct exanest_fpga *to)
{
    return to->misuse[EXANEST_PORT_RDMA] == NULL &&
           world->machine.r5s[from].firmware.counters.timeouts != 0;
}

/* Runs until `words` words have been written there; returns the time. */
static uint64_t run_to_word(struct exanest_world *world, uint32_t from,
                            const struct exanest_fpga *fpga, uint64_t words)
{
    while (fpga->memory.words_written < words && !hopeless(world, from, fpga) &&
           sim_step(&world->sim)) {
    }
    if (fpga->memory.words_written < words) {
        lab_fail(world->run, "a stream stopped after %llu words",
                 (unsigned long long)fpga->memory.words_written);
    }
    return world->sim.now_ps;
}

struct exanest_stream exanest_stream_of(struct lab_run *run,
                                        const struct exanest_machine_config *config, uint32_t from,
                                        uint32_t to, uint32_t bytes, uint32_t source_offset,
                                        uint32_t target_offset)
{
    struct exanest_machine_config sized = *config;
    const uint64_t half = ((uint64_t)bytes + 2 * BLOCK) / BLOCK * BLOCK;
    sized.process_bytes = 2 * half;
    struct exanest_world *world = exanest_world_begin(run, &sized);
    struct exanest_machine *machine = &world->machine;
    const struct exanest_fpga *target = exanest_fabric_fpga(&machine->fabric, to);
    const uint64_t source_va = EXANEST_MEMORY_VA + source_offset;
    const uint64_t target_va = EXANEST_MEMORY_VA + half + target_offset;
    fill(world, from, source_va, bytes);
    const struct exanest_write write = {
        .to = to, .source = source_va, .va = target_va, .bytes = bytes};
    const uint64_t began_ps = world->sim.now_ps;
    exanest_machine_write(machine, from, 0, 0, &write);
    const uint64_t words = bytes / EXANEST_WORD_BYTES;
    const uint64_t middle_ps = run_to_word(world, from, target, words / 2);
    const uint64_t end_ps = run_to_word(world, from, target, words);
    while (exanest_r5_transfer(&machine->r5s[from], 0, 0).state != EXANEST_TRANSFER_DONE &&
           !hopeless(world, from, target) && sim_step(&world->sim)) {
    }
    const struct exanest_stream stream = {
        .gbps = end_ps == middle_ps
                    ? 0
                    : (double)(words - words / 2) * 128 * 1000 / (double)(end_ps - middle_ps),
        .us = (double)(world->sim.now_ps - began_ps) / 1e6,
        .blocks = machine->r5s[from].firmware.counters.blocks,
        .packets = target->receiver.counters.meanings[EXANEST_MARKED] +
                   target->receiver.counters.meanings[EXANEST_COMPLETE],
        .responses = target->receiver.counters.responses[EXANEST_ACK],
        .resent = machine->r5s[from].firmware.counters.retransmits,
        .whole = memcmp(exanest_machine_bytes(machine, from, 0, source_va, bytes),
                        exanest_machine_bytes(machine, to, 0, target_va, bytes), bytes) == 0,
    };
    const struct exanest_transfer ended = exanest_r5_transfer(&machine->r5s[from], 0, 0);
    if (ended.state != EXANEST_TRANSFER_DONE) {
        lab_fail(run, "a stream was given up after %u bytes", ended.acked);
    } else if (!stream.whole) {
        lab_fail(run, "a stream arrived with wrong bytes");
    }
    exanest_world_end(world);
    return stream;
}
