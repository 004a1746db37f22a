/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Blocks that are issued together share the send unit packet by packet (A27).
 */
#include "lab/exanest/experiments.h"

#include <string.h>

#define BLOCK      16384u
#define BLOCKS_MAX 16u
/* 64 packets over a link, and inside an FPGA, where a packet of 18 words and two idle cycles takes
 * 20. */
#define LINK_BLOCK_US   (64 * exanest_aurora_packet_ns(10) / 1000)
#define INSIDE_BLOCK_US (64 * 20 / 150.0)

struct trial {
    struct exanest_world *world;
    const struct exanest_fpga *target;
    uint32_t to;
    uint32_t posted;   /* Blocks, */
    uint64_t answered; /* and those that the receiver has answered: they have arrived. */
};

static void post(struct trial *trial)
{
    const uint32_t i = trial->posted++;
    const struct exanest_write write = {.to = trial->to,
                                        .source = EXANEST_MEMORY_VA + i * BLOCK,
                                        .va = EXANEST_MEMORY_VA + (BLOCKS_MAX + i) * BLOCK,
                                        .bytes = BLOCK};
    exanest_machine_write(&trial->world->machine, 0, 0, i, &write);
}

static void step(struct trial *trial)
{
    if (!sim_step(&trial->world->sim)) {
        lab_fail(trial->world->run, "blocks did not arrive");
        trial->answered = trial->posted;
        return;
    }
    trial->answered = trial->target->receiver.counters.responses[EXANEST_ACK];
}

/* A block whose packets wait for the link when its descriptor is Done. */
static void occupy(struct trial *trial)
{
    const struct exanest_fpga *source = exanest_fabric_fpga(&trial->world->machine.fabric, 0);
    post(trial);
    while (!exanest_pending_descriptor(&source->exadma.list, 0).done && trial->answered == 0) {
        step(trial);
    }
}

static uint8_t *bytes_of(struct trial *trial, uint32_t fpga, uint32_t block)
{
    return exanest_machine_bytes(&trial->world->machine, fpga, 0, EXANEST_MEMORY_VA + block * BLOCK,
                                 BLOCKS_MAX * BLOCK);
}

static void fill(struct trial *trial)
{
    uint8_t *source = bytes_of(trial, 0, 0);
    for (uint32_t i = 0; i < BLOCKS_MAX * BLOCK; i += sizeof(uint64_t)) {
        const uint64_t random = prng_next(&trial->world->sim.prng);
        memcpy(source + i, &random, sizeof(random));
    }
}

static void compare(struct trial *trial)
{
    if (memcmp(bytes_of(trial, 0, 0), bytes_of(trial, trial->to, BLOCKS_MAX),
               trial->posted * BLOCK) != 0) {
        lab_fail(trial->world->run, "blocks arrived wrong");
    }
}

/* The mean time until a block has arrived, of `blocks` that are issued together, behind one that
 * still occupies the link or alone; in us. */
static double mean_finish(struct lab_run *run, const struct exanest_machine_config *config,
                          uint32_t to, uint32_t blocks, bool busy)
{
    struct exanest_machine_config free_of_charge = *config;
    memset(&free_of_charge.firmware.costs, 0, sizeof(free_of_charge.firmware.costs));
    free_of_charge.process_bytes = 2 * BLOCKS_MAX * BLOCK;
    struct trial trial = {.world = exanest_world_begin(run, &free_of_charge), .to = to};
    trial.target = exanest_fabric_fpga(&trial.world->machine.fabric, to);
    fill(&trial);
    if (busy) {
        occupy(&trial);
    }
    for (uint32_t i = 0; i < blocks; i++) {
        post(&trial);
    }
    while (busy && trial.answered == 0) {
        step(&trial);
    }
    const uint64_t began_ps = trial.world->sim.now_ps;
    uint64_t sum_ps = 0;
    for (uint64_t done = trial.answered; done < trial.posted;) {
        step(&trial);
        for (; done < trial.answered; done++) {
            sum_ps += trial.world->sim.now_ps - began_ps;
        }
    }
    compare(&trial);
    exanest_world_end(trial.world);
    return (double)sum_ps / blocks / 1e6;
}

static double share(struct lab_run *run, const struct exanest_machine_config *config, uint32_t to,
                    uint32_t blocks, bool busy)
{
    return mean_finish(run, config, to, blocks, busy) /
           (blocks * (to == 0 ? INSIDE_BLOCK_US : LINK_BLOCK_US));
}

static void draw(struct lab_run *run, const struct exanest_machine_config *config)
{
    static const struct {
        const char *name;
        uint32_t to;
        bool drains, busy;
    } curves[] = {{"a packet a turn, over a link that is busy", 1, false, true},
                  {"a packet a turn, over an idle link", 1, false, false},
                  {"a packet a turn, inside an FPGA", 0, false, false},
                  {"a block a turn, over an idle link", 1, true, false}};
    lab_add_figure(run, "finish", "Blocks of 16 KB, issued together: when one of them is there",
                   "blocks", "mean / time that all need", false);
    for (uint32_t c = 0; c < COUNT_OF(curves); c++) {
        struct exanest_machine_config own = *config;
        own.fabric.fpga.exadma.drains = curves[c].drains;
        struct lab_series *series = lab_add_curve(run, "%s", curves[c].name);
        for (uint32_t blocks = 2; blocks < BLOCKS_MAX; blocks++) {
            lab_add_point(series, blocks, share(run, &own, curves[c].to, blocks, curves[c].busy),
                          curves[c].drains ? (blocks + 1) / (2.0 * blocks) : 1);
        }
    }
}

static void fairness(struct lab_run *run)
{
    static const struct {
        const char *row;
        uint32_t blocks;
        bool busy;
    } judged[] = {{"EXA-A27.few/2", 2, false}, {"EXA-A27.few/4", 4, false},
                  {"EXA-A27", 8, false},       {"EXA-A27.busy/2", 2, true},
                  {"EXA-A27.busy/4", 4, true}, {"EXA-A27.busy/8", 8, true}};
    const struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    for (uint32_t i = 0; i < COUNT_OF(judged); i++) {
        const uint32_t blocks = judged[i].blocks;
        const bool busy = judged[i].busy;
        const double inside = share(run, &config, 0, blocks, busy);
        lab_judge_relative(lab_add_row(run, judged[i].row, "",
                                       "mean finish / time of %u blocks%s; inside %.3f", blocks,
                                       busy ? ", link busy" : "", inside),
                           1, share(run, &config, 1, blocks, busy), 0.05);
    }
    draw(run, &config);
}

#define SOURCE  "5.3.2: a packet for each visit of the scheduler"
#define BECAUSE "each block is sent before the next one's turn: (n + 1) / 2n"

static const struct lab_claim fairness_claims[] = {
    {.id = "EXA-A27",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = SOURCE,
     .broken_by = "drains=on",
     .because = BECAUSE},
    {.id = "EXA-A27.few",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = SOURCE,
     .broken_by = "drains=on",
     .because = BECAUSE,
     .not_reproduced =
         "The block that is issued first gets most of the first 22 packets, which fill the slots "
         "and the link's FIFO: while one leaves every 20 cycles, turns are not even."},
    {.id = "EXA-A27.busy",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = SOURCE,
     .broken_by = "drains=on",
     .because = BECAUSE},
};

const struct lab_experiment exanest_fairness = {
    .name = "exanest/fairness",
    .what = "blocks that are issued together",
    EXANEST_COMMON,
    .uses = EXANEST_USES,
    EXANEST_CLAIMS(fairness_claims),
    .quick = true,
    .run = fairness,
    .explains =
        "A scheduler that sends one packet of each block in turn ends all of them late; one that "
        "drains a block first ends them one after another. The document's scheduler puts a block "
        "back to the end of its FIFO when no slot is free, which takes three cycles, so the next "
        "slot goes to whoever is in front when it becomes free, and not to whoever waited longest. "
        "Over a busy link, 36.7 cycles a packet, this is fair on the whole. Inside an FPGA, where "
        "a packet takes exactly 20 cycles, it is not: of 2 blocks the first is sent whole before "
        "the second (0.75, as if drained), of 4 and 8 half of them (0.75, 0.73). Every sixth turn "
        "finds a slot, so 5, 7, 11 or 13 blocks, with no factor of six, share evenly. Over an "
        "idle link the first 22 packets, which fill slots and FIFO, leave at that rate, so two "
        "blocks of 64 packets are at 0.90, and longer streams nearer to 1.",
};
