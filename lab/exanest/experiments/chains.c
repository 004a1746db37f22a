/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Transfers in an order: chains of the send unit, of the firmware, and a user who waits himself.
 */
#include <string.h>

#include "lab/exanest/experiments.h"

#define LEAST 64u
#define MOST  16384u
#define LINE  UINT64_C(16384) /* Blocks lie so far apart. */
#define COUNT 16u             /* Blocks. */

/* The way in which a block comes behind the one before it; the first three are the parameter's
 * words. */
enum way {
    CHAIN,   /* The send unit enqueues it. */
    DONE,    /* The R5 stores its W3 when it has seen the Done bit of the one before. */
    NONE,    /* In turns. */
    USER,    /* A transfer that is chained, which the R5 begins. */
    PROGRAM, /* A transfer that a program posts when it has seen the end of the one before. */
    WAYS,
};

struct order {
    enum way way;
    uint32_t count, bytes; /* Blocks, and bytes of each. */
};

struct sent {
    double us;              /* From the store that starts the first block to the last word. */
    uint64_t first_written; /* Bytes that were written when the first block was complete. */
};

/* -- The send unit; its descriptors are stored here, as by its R5 ------------------------------*/

static uint64_t source_of(uint32_t block)
{
    return EXANEST_MEMORY_VA + block * LINE;
}

static uint64_t target_of(uint32_t block)
{
    return source_of(COUNT + block);
}

static void fill(struct exanest_world *world)
{
    uint8_t *at = exanest_machine_bytes(&world->machine, 0, 0, source_of(0), COUNT * LINE);
    for (uint32_t i = 0; i < COUNT * LINE; i++) {
        at[i] = (uint8_t)prng_next(&world->sim.prng);
    }
}

static void check(struct exanest_world *world, uint32_t count, uint32_t bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(exanest_machine_bytes(&world->machine, 0, 0, source_of(i), bytes),
                   exanest_machine_bytes(&world->machine, 1, 0, target_of(i), bytes), bytes) != 0) {
            lab_fail(world->run, "block %u of a chain arrived wrong", i);
        }
    }
}

/* Block i is transaction i. */
static uint32_t word_at(uint32_t block, uint32_t word)
{
    return block * EXANEST_DESCRIPTOR_BYTES + 8 * word;
}

static void describe(struct exanest_world *world, uint32_t block, const struct order *order,
                     uint64_t words[EXANEST_DESCRIPTOR_WORDS])
{
    const struct exanest_descriptor descriptor = {
        .source = source_of(block),
        .target = {exanest_fabric_fpga(&world->machine.fabric, 1)->coordinate, target_of(block)},
        .bytes = (uint16_t)order->bytes,
        .pdid = 1,
        .sequence = 1,
        .waits = order->way == CHAIN && block > 0,
        .chained = order->way == CHAIN && block + 1 < order->count,
        .successor = (uint16_t)(block + 1),
    };
    exanest_descriptor_encode(&descriptor, words);
}

/* All descriptors but what starts them; of a chain that, too, from its end to its head. */
static void prepare(struct exanest_world *world, const struct order *order)
{
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    for (uint32_t i = order->count; i-- > 0;) {
        describe(world, i, order, words);
        exanest_world_store(world, 0, word_at(i, 3), words[3]);
        exanest_world_store(world, 0, word_at(i, 0), words[0]);
        exanest_world_store(world, 0, word_at(i, 1), words[1]);
        if (order->way == CHAIN && i > 0) {
            exanest_world_store(world, 0, word_at(i, 2), words[2]);
        }
    }
}

static void spend(struct exanest_world *world, const char *parameter)
{
    sim_run_until(&world->sim, world->sim.now_ps + lab_ps(world->run, parameter));
}

static void start(struct exanest_world *world, uint32_t block, const struct order *order)
{
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    describe(world, block, order, words);
    if (order->way == DONE) {
        spend(world, "r5_store");
    }
    exanest_world_store(world, 0, word_at(block, 2), words[2]);
}

static void await_done(struct exanest_world *world, uint32_t block)
{
    uint64_t words[EXANEST_DESCRIPTOR_WORDS] = {0};
    do {
        spend(world, "r5_read");
        words[2] = exanest_world_load(world, 0, word_at(block, 2));
    } while (!exanest_descriptor_decode(words).done);
}

static struct sent send_blocks(struct lab_run *run, const struct exanest_machine_config *config,
                               const struct order *order)
{
    struct exanest_machine_config sized = *config;
    sized.process_bytes = 2 * COUNT * LINE;
    struct exanest_world *world = exanest_world_begin(run, &sized);
    const struct exanest_fpga *target = exanest_fabric_fpga(&world->machine.fabric, 1);
    fill(world);
    prepare(world, order);
    const uint64_t began_ps = world->sim.now_ps;
    start(world, 0, order);
    for (uint32_t i = 1; i < order->count && order->way != CHAIN; i++) {
        if (order->way == DONE) {
            await_done(world, i - 1);
        }
        start(world, i, order);
    }
    const uint64_t *complete = &target->receiver.counters.meanings[EXANEST_COMPLETE];
    const uint64_t words = order->count * exanest_payload_words(0, order->bytes);
    struct sent sent = {0};
    while (target->memory.words_written < words && sim_step(&world->sim)) {
        if (*complete == 1 && sent.first_written == 0) {
            sent.first_written = target->memory.words_written * EXANEST_WORD_BYTES;
        }
    }
    sent.us = (double)(world->sim.now_ps - began_ps) / 1e6;
    while (sim_step(&world->sim)) {
    }
    check(world, order->count, order->bytes);
    exanest_world_end(world);
    return sent;
}

/* -- The firmware's chains, and none ------------------------------------------------------------*/

/* From the posts, which are made at once, to the end of the last transfer. */
static double chain_transfers(struct lab_run *run, const struct exanest_machine_config *config,
                              const struct order *order)
{
    struct exanest_machine_config sized = *config;
    sized.process_bytes = 2 * COUNT * LINE;
    struct exanest_world *world = exanest_world_begin(run, &sized);
    const struct exanest_r5 *r5 = &world->machine.r5s[0];
    fill(world);
    for (uint32_t i = 0; i < order->count; i++) {
        const struct exanest_write write = {.to = 1,
                                            .source = source_of(i),
                                            .va = target_of(i),
                                            .bytes = order->bytes,
                                            .chain = i > 0};
        exanest_machine_write(&world->machine, 0, 0, i, &write);
    }
    while (exanest_r5_transfer(r5, 0, order->count - 1).state != EXANEST_TRANSFER_DONE &&
           sim_step(&world->sim)) {
    }
    const double us = (double)world->sim.now_ps / 1e6;
    check(world, order->count, order->bytes);
    exanest_world_end(world);
    return us;
}

static double in_all_us(struct lab_run *run, const struct exanest_machine_config *config,
                        const struct order *order)
{
    return order->way == USER ? chain_transfers(run, config, order)
                              : send_blocks(run, config, order).us;
}

/* The time of each block that is behind another one. */
static double block_us(struct lab_run *run, const struct exanest_machine_config *config,
                       enum way way, uint32_t bytes)
{
    if (way == PROGRAM) {
        struct exanest_program_config program = exanest_program_default(0, 1, true, bytes);
        program.count = COUNT;
        program.call_ns = (uint32_t)(lab_ps(run, "call") / SIM_NS);
        program.poll_ns = (uint32_t)(lab_ps(run, "look") / SIM_NS);
        return exanest_flows_of(run, config, &program, 1).us;
    }
    const struct order all = {.way = way, .count = COUNT, .bytes = bytes};
    const struct order one = {.way = way, .count = 1, .bytes = bytes};
    return (in_all_us(run, config, &all) - in_all_us(run, config, &one)) / (COUNT - 1);
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void draw(struct lab_run *run, const struct exanest_machine_config *config)
{
    static const char *const names[WAYS] = {
        "a chain of the send unit", "the R5 looks for the Done bit", "in turns, without an order",
        "a chain of the firmware", "the program waits"};
    lab_add_figure(run, "order", "Throughput of blocks, one behind the other",
                   "bytes of a block, or of a transfer", "Gb/s", true);
    for (enum way way = 0; way < WAYS; way++) {
        struct lab_series *series = lab_add_curve(run, "%s", names[way]);
        for (uint32_t bytes = LEAST; bytes <= MOST; bytes *= 2) {
            lab_add_point(series, bytes, 8e-3 * bytes / block_us(run, config, way, bytes),
                          LAB_NOTHING);
        }
    }
}

static void chains(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    exanest_set_times(run, &config);
    const enum way way = (enum way)lab_word(run, "order");
    const struct order blocks = {.way = way, .count = COUNT, .bytes = 4096};
    lab_judge_absolute(lab_add_row(run, "EXA-C-order", "B",
                                   "written when the first of %u blocks of %u bytes is complete",
                                   COUNT, blocks.bytes),
                       blocks.bytes, (double)send_blocks(run, &config, &blocks).first_written, 0);
    const double none_us = block_us(run, &config, NONE, LEAST);
    lab_judge_relative(lab_add_row(run, "EXA-C-next", "us",
                                   "behind the one before it comes a block of %u bytes of a chain; "
                                   "expected: as if it were not chained",
                                   LEAST),
                       none_us, block_us(run, &config, way, LEAST), 0.02);
    const double done_us = block_us(run, &config, DONE, LEAST);
    const double cycle_us = 1 / lab_value(run, "datapath");
    lab_judge_absolute(lab_add_row(run, "EXA-C-done", "us",
                                   "the same if the R5 looks for the Done bit: a read and a store"),
                       lab_value(run, "r5_read") + lab_value(run, "r5_store") + 5 * cycle_us,
                       done_us, 2 * cycle_us);
    const double saved_us = lab_value(run, "call") + lab_value(run, "look") +
                            lab_value(run, "lookup") + lab_value(run, "r5_read");
    const double user_us = block_us(run, &config, USER, LEAST);
    const double program_us = block_us(run, &config, PROGRAM, LEAST);
    lab_judge_absolute(lab_add_row(run, "EXA-C-user", "us",
                                   "saved by a chained write of %u bytes, which takes %.2f us: the "
                                   "program's look and call, and what the R5 does when it wakes",
                                   LEAST, user_us),
                       saved_us, program_us - user_us, 0.02);
    draw(run, &config);
}

static const struct lab_claim chains_claims[] = {
    {.id = "EXA-C-order",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.1: \"sent one by one in a predetermined order\"",
     .broken_by = "order=none",
     .because = "blocks that are not chained take turns, packet by packet"},
    {.id = "EXA-C-next",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.1: \"scheduled to depart right after the last packet\" of the one before",
     .broken_by = "order=done",
     .because = "the R5 has to see that one is done, and to start the next one"},
    {.id = "EXA-C-done",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.1: chains offload the R5; OC: its times",
     .broken_by = "scheduler=60 | link=1",
     .because = "the bit is not yet set when the R5 looks; or the link is busy for longer"},
    {.id = "EXA-C-user",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "1.1: the order of transfers is the user's; OC: times of program and R5",
     .broken_by = "r5_poll=0.5",
     .because = "a look at the scratchpad would be saved, too"},
};

const struct lab_experiment exanest_chains = {
    .name = "exanest/chains",
    .what = "what chains save, of the send unit and of the firmware, by size",
    EXANEST_COMMON,
    .uses = EXANEST_USES_MACHINE EXANEST_USES_TIMES "order call look",
    EXANEST_CLAIMS(chains_claims),
    .quick = true,
    .run = chains,
    .explains =
        "The send unit can send blocks in an order that the R5 has written down before. Without "
        "that, the R5 would wait for each block's Done bit. That is set when the last packet has "
        "been asked of memory, while up to eight packets wait for the link: so only blocks of "
        "less than a packet's 256 bytes come later. At 10 Gb/s a chain saves the R5's time, and "
        "no time of the link. Chains of transfers are made by the firmware, which begins the next "
        "one when the one before is answered: they save what a program needs to see an end and to "
        "post again, and not the way there and back. The document prints no figure of either.",
};
