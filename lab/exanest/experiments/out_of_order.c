/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads of memory that are answered out of order: a small block whose memory hits a cache, beside a
 * stream of another domain whose memory does not.
 */
#include <string.h>

#include "lab/exanest/experiments.h"

#define BLOCK   UINT64_C(16384)
#define STREAM  4u  /* Blocks of the stream, all under way at once. */
#define SMALLS  12u /* Small blocks, one after the other, */
#define BYTES   64u /* of 64 bytes, */
#define TID     64u /* from this transaction on. */
#define WAIT_NS 500u

#define MISS_HIDDEN 100u /* Less than the eight slots' packets need for the link. */
static const uint32_t misses[] = {40, 100, 200, 300, 400, 600};

/* The means of small blocks. */
struct smalls {
    double us;     /* From the store that starts one until it is complete. */
    double cycles; /* Until memory has answered it. */
};

/* One descriptor, whose last store starts it. The stream goes to FPGA 1, small blocks to FPGA 2. */
static void start(struct exanest_world *world, uint32_t tid, uint32_t process, uint32_t to,
                  uint64_t place, uint32_t bytes)
{
    static const uint8_t order[EXANEST_DESCRIPTOR_WORDS] = {3, 0, 1, 2};
    const uint64_t va = EXANEST_MEMORY_VA + place;
    const struct exanest_descriptor descriptor = {
        .source = va,
        .target = {exanest_fabric_fpga(&world->machine.fabric, to)->coordinate, va},
        .bytes = (uint16_t)bytes,
        .pdid = (uint16_t)(process + 1),
        .sequence = 1,
    };
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    exanest_descriptor_encode(&descriptor, words);
    for (uint32_t i = 0; i < EXANEST_DESCRIPTOR_WORDS; i++) {
        exanest_world_store(world, 0, tid * EXANEST_DESCRIPTOR_BYTES + 8u * order[i],
                            words[order[i]]);
    }
}

static void fill(struct exanest_world *world, uint32_t process, uint64_t bytes)
{
    uint8_t *at = exanest_machine_bytes(&world->machine, 0, process, EXANEST_MEMORY_VA, bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)prng_next(&world->sim.prng);
    }
}

static void check(struct exanest_world *world, uint32_t process, uint32_t to, uint64_t bytes)
{
    struct exanest_machine *machine = &world->machine;
    if (memcmp(exanest_machine_bytes(machine, 0, process, EXANEST_MEMORY_VA, bytes),
               exanest_machine_bytes(machine, to, process, EXANEST_MEMORY_VA, bytes), bytes) != 0) {
        lab_fail(world->run, "bytes of process %u arrived wrong", process);
    }
}

/* A small block, from the store that starts it until it is complete; after a while of any length.
 */
static uint64_t small_ps(struct exanest_world *world, uint32_t number)
{
    const uint64_t *complete = &exanest_fabric_fpga(&world->machine.fabric, 2)
                                    ->receiver.counters.meanings[EXANEST_COMPLETE];
    const uint64_t wait_ps = prng_below(&world->sim.prng, WAIT_NS) * SIM_NS;
    sim_run_until(&world->sim, world->sim.now_ps + wait_ps);
    start(world, TID + number, 1, 2, number * BYTES, BYTES);
    const uint64_t began_ps = world->sim.now_ps;
    while (*complete == number && sim_step(&world->sim)) {
    }
    return world->sim.now_ps - began_ps;
}

static struct smalls smalls_of(struct lab_run *run, const struct exanest_machine_config *config,
                               uint32_t miss, uint32_t stream)
{
    struct exanest_machine_config sized = *config;
    sized.processes = 2;
    sized.process_bytes = STREAM * BLOCK;
    struct exanest_world *world = exanest_world_begin(run, &sized);
    struct exanest_memory *memory = &exanest_fabric_fpga(&world->machine.fabric, 0)->memory;
    const uint32_t hit = config->fabric.fpga.memory.read_cycles;
    exanest_memory_set_late(memory, 1, EXANEST_MEMORY_VA, miss > hit ? miss - hit : 0);
    fill(world, 0, STREAM * BLOCK);
    fill(world, 1, SMALLS * BYTES);
    for (uint32_t i = 0; i < stream; i++) {
        start(world, i, 0, 1, i * BLOCK, (uint32_t)BLOCK);
    }
    uint64_t sum_ps = 0, sum_cycles = 0;
    for (uint32_t i = 0; i < SMALLS; i++) {
        sum_ps += small_ps(world, i);
        sum_cycles += memory->waited[1];
    }
    if (stream > 0 && exanest_fabric_fpga(&world->machine.fabric, 0)->exadma.scheduler.count == 0) {
        lab_fail(run, "the stream ended before the small blocks did");
    }
    while (sim_step(&world->sim)) {
    }
    if (stream > 0) {
        check(world, 0, 1, stream * BLOCK);
    }
    check(world, 1, 2, SMALLS * BYTES);
    exanest_world_end(world);
    return (struct smalls){.us = (double)sum_ps / SMALLS / 1e6,
                           .cycles = (double)sum_cycles / SMALLS};
}

/* The same beside a stream, whose memory takes `miss` cycles; with answers in any order, or not. */
static struct smalls beside(struct lab_run *run, struct exanest_machine_config config,
                            uint32_t miss, bool in_order)
{
    config.fabric.fpga.memory.in_order = in_order;
    return smalls_of(run, &config, miss, STREAM);
}

static double saved_us(struct lab_run *run, const struct exanest_machine_config *config,
                       uint32_t miss)
{
    return beside(run, *config, miss, true).us -
           beside(run, *config, miss, lab_word(run, "ids") == 1).us;
}

static void draw(struct lab_run *run, const struct exanest_machine_config *config)
{
    lab_add_figure(run, "miss", "A block of 64 bytes that hits, beside a stream that misses",
                   "cycles until memory answers the stream", "us", false);
    for (uint32_t in_order = 0; in_order < 2; in_order++) {
        struct lab_series *series =
            lab_add_curve(run, in_order ? "answers in order" : "answers out of order");
        for (uint32_t i = 0; i < COUNT_OF(misses); i++) {
            lab_add_point(series, misses[i], beside(run, *config, misses[i], in_order == 1).us,
                          LAB_NOTHING);
        }
    }
}

static void out_of_order(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t hit = (uint32_t)lab_value(run, "hit"), miss = (uint32_t)lab_value(run, "miss");
    config.fabric.fpga.memory.read_cycles = hit;
    const struct smalls smalls = beside(run, config, miss, lab_word(run, "ids") == 1);
    lab_judge_range(lab_add_row(run, "EXA-O-hit", "cycles",
                                "until memory has answered a read of %u bytes that hits; %.0f if "
                                "it answered in order",
                                BYTES, beside(run, config, miss, true).cycles),
                    hit, hit + EXANEST_PAYLOAD_BYTES_MAX / 16.0, smalls.cycles);
    lab_judge_range(lab_add_row(run, "EXA-O-block", "us",
                                "saved for a whole block: %.2f us; %.2f without a stream",
                                smalls.us, smalls_of(run, &config, miss, 0).us),
                    (miss - hit) / 2.0 / lab_value(run, "datapath"),
                    (miss - hit) / lab_value(run, "datapath"), saved_us(run, &config, miss));
    lab_judge_absolute(lab_add_row(run, "EXA-O-hidden", "us",
                                   "saved if a miss takes %u cycles: packets wait for the link",
                                   MISS_HIDDEN),
                       0, saved_us(run, &config, MISS_HIDDEN), 0.02);
    draw(run, &config);
}

static const struct lab_claim out_of_order_claims[] = {
    {.id = "EXA-O-hit",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: data in a cache come \"with much smaller latency\" than behind DRAM's",
     .broken_by = "ids=one",
     .because = "the read waits for those that were asked before"},
    {.id = "EXA-O-block",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.3, 5.3.4: eight slots, of which an older one that is empty holds up no other",
     .broken_by = "ids=one | slots=16",
     .because = "nothing is saved; or twice the slots cover the time of a miss"},
    {.id = "EXA-O-hidden",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: eight packets take 296 cycles of a link at 10 Gb/s",
     .broken_by = "slots=2",
     .because = "the slots do not cover the time of a miss, so packets do not wait for the link"},
};

const struct lab_experiment exanest_out_of_order = {
    .name = "exanest/out-of-order",
    .what = "a small block whose memory hits a cache, beside a stream whose memory does not",
    EXANEST_COMMON,
    .uses = EXANEST_USES "hit miss ids",
    EXANEST_CLAIMS(out_of_order_claims),
    .quick = true,
    .run = out_of_order,
    .explains =
        "Each protection domain has an AXI ID, and memory may answer reads of different IDs in any "
        "order: this is the document's reason for a barrel shifter with eight channels. It prints "
        "no figure. Here two domains send, with descriptors that are stored directly: the stream "
        "goes to another FPGA than the small blocks. A read that hits is then answered in a "
        "twentieth of the time. The whole block gains only if memory is slower than the link: the "
        "send unit reads eight packets ahead, which take 296 cycles at 10 Gb/s, and as long as a "
        "miss takes less, what is read early waits for the link instead. How long a miss takes is "
        "our choice.",
};
