/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long the hardware takes for a small write, from the store that starts it until the other
 * side's receiver has all of it in memory (row A7).
 */
#include <string.h>

#include "lab/exanest/experiments.h"

enum {
    TID = 7,
    BYTES = 16,
    TARGET = 0x8000,
};

/* The four stores of a block, W3 last, each as soon as the unit takes it. Returns when it took the
 * last one. */
static uint64_t store_block(struct exanest_world *world, uint32_t from, uint32_t to)
{
    const struct exanest_descriptor descriptor = {
        .source = EXANEST_MEMORY_VA,
        .target = {exanest_fabric_fpga(&world->machine.fabric, to)->coordinate,
                   EXANEST_MEMORY_VA + TARGET},
        .bytes = BYTES,
        .pdid = 1,
        .sequence = 1,
    };
    static const uint8_t order[EXANEST_DESCRIPTOR_WORDS] = {3, 0, 1, 2};
    uint64_t words[EXANEST_DESCRIPTOR_WORDS], taken_ps = 0;
    exanest_descriptor_encode(&descriptor, words);
    for (uint32_t i = 0; i < EXANEST_DESCRIPTOR_WORDS; i++) {
        taken_ps = exanest_world_store(world, from, TID * EXANEST_DESCRIPTOR_BYTES + 8u * order[i],
                                       words[order[i]]);
    }
    return taken_ps;
}

/* In us. */
static double latency_of(struct lab_run *run, const struct exanest_machine_config *config,
                         uint32_t to)
{
    struct exanest_world *world = exanest_world_begin(run, config);
    const struct exanest_fpga *target = exanest_fabric_fpga(&world->machine.fabric, to);
    uint8_t *source = exanest_machine_bytes(&world->machine, 0, 0, EXANEST_MEMORY_VA, BYTES);
    for (uint32_t i = 0; i < BYTES; i++) {
        source[i] = (uint8_t)prng_next(&world->sim.prng);
    }
    const uint64_t began_ps = store_block(world, 0, to);
    const uint64_t *complete = &target->receiver.counters.meanings[EXANEST_COMPLETE];
    while (*complete == 0 && sim_step(&world->sim)) {
    }
    const double us = (double)(world->sim.now_ps - began_ps) / 1e6;
    const uint8_t *arrived =
        exanest_machine_bytes(&world->machine, to, 0, EXANEST_MEMORY_VA + TARGET, BYTES);
    if (*complete == 0 || memcmp(source, arrived, BYTES) != 0) {
        lab_fail(run, "a write of %u bytes did not arrive, or arrived wrong", BYTES);
    }
    exanest_world_end(world);
    return us;
}

static void latency(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const double far = latency_of(run, &config, 1);
    config.fabric.fpga.memory.read_cycles = (uint32_t)lab_value(run, "hit");
    const double near = latency_of(run, &config, 1);
    lab_judge_relative(lab_add_row(run, "EXA-A7", "us",
                                   "16 bytes over one link; %.3f if memory takes %g cycles", far,
                                   lab_value(run, "read")),
                       0.70, near, 0.03);
}

static const struct lab_claim latency_claims[] = {
    {.id = "EXA-A7",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "7: 0.7 us in hardware, almost 0.5 of them in transceivers",
     .broken_by = "hit=40 | wire=0",
     .because = "the time of memory that 5.1 prints does not fit; the wire is most of it"},
};

const struct lab_experiment exanest_latency = {
    .name = "exanest/latency",
    .what = "a small write, from its last store until it is complete at the other side",
    EXANEST_COMMON,
    .uses = EXANEST_USES "hit",
    EXANEST_CLAIMS(latency_claims),
    .quick = true,
    .run = latency,
    .explains =
        "The sum of the units' cycles and the wire. The document's memory answers in up to 40 "
        "cycles (5.1), which do not fit into it: so the time of a read that hits a cache was "
        "fitted.",
};
