/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All FPGAs of a torus write to and read from each other at random: is anything lost, and how much
 * of what the torus could carry does each get? (EXA-63)
 */
#include <string.h>

#include "lab/exanest/crowd.h"
#include "lab/exanest/experiments.h"

enum {
    SIZES_MAX = 8, /* Tori in a run, at most. */
    LEAST = 4,     /* QFDBs of the smallest one: as EXA-63 says. */
};

struct torus {
    uint8_t size[3];
    uint32_t qfdbs;
    double bound; /* Gb/s for an FPGA. */
    struct exanest_crowd_result result;
};

/* A packet of 256 bytes from router to router takes 18 words and a gap. */
static double channel_gbps(const struct exanest_machine_config *config)
{
    const struct exanest_router_config *router = &config->fabric.router;
    const double cycles = (18.0 * router->word_hundredths + router->gap_hundredths) / 100;
    return 2048 * ((double)config->fabric.datapath_hz / 1e9) / cycles;
}

/* Each of n FPGAs sends to all others alike. In a dimension of k QFDBs it is k/4 hops on average
 * to any FPGA (k even, the shorter way round); so it is k/4 * n/(n-1) to any other. A QFDB has four
 * FPGAs that send, and two channels in each dimension: the longest one's fill first. This is the
 * bound by bisection: n/2 FPGAs send half of what they send over its 2 * 2 * qfdbs/k channels. */
static double bound_of(const struct exanest_machine_config *config, const struct torus *torus)
{
    const double fpgas = 4.0 * torus->qfdbs;
    uint32_t longest = 1;
    for (uint32_t d = 0; d < 3; d++) {
        longest = torus->size[d] > longest ? torus->size[d] : longest;
    }
    return channel_gbps(config) / (2 * (longest / 4.0) * fpgas / (fpgas - 1));
}

/* Half of it, by the longest dimension; false: it is the smallest one. */
static bool halve(uint8_t size[3])
{
    uint32_t longest = 0;
    for (uint32_t d = 1; d < 3; d++) {
        longest = size[d] > size[longest] ? d : longest;
    }
    if ((uint32_t)size[0] * size[1] * size[2] < 2 * LEAST || size[longest] % 2 != 0) {
        return false;
    }
    size[longest] /= 2;
    return true;
}

static void tell_memory(struct exanest_world *world)
{
    struct exanest_machine *machine = &world->machine;
    const uint32_t fpgas = exanest_fabric_fpgas(&machine->fabric);
    const uint32_t qfdbs = machine->fabric.qfdb_count;
    const struct exanest_fpga *fpga = exanest_fabric_fpga(&machine->fabric, 0);
    const struct exanest_link *link = &machine->fabric.qfdbs[0].links[0];
    const uint64_t flying = 2 * (link->ways[0].mask + 1) * sizeof(*link->ways[0].flying);
    const uint64_t wires = machine->fabric.qfdbs[0].routes
                               ? 6 * (uint64_t)(machine->fabric.wire_mask + 1) *
                                     (sizeof(*machine->fabric.qfdbs[0].wires[0].words) +
                                      sizeof(*machine->fabric.qfdbs[0].wires[0].credits))
                               : 0;
    const struct exanest_fabric_config *fabric = &machine->config.fabric;
    struct exanest_router_config router = fabric->router;
    memcpy(router.size, fabric->size, sizeof(router.size));
    lab_add_memory(world->run, "FPGA", fpgas,
                   fpgas * (sizeof(*fpga) + exanest_exadma_bytes(&fabric->fpga.exadma)));
    lab_add_memory(world->run, "R5", fpgas, fpgas * sizeof(machine->r5s[0]));
    lab_add_memory(world->run, "memory", fpgas, fpgas * fpga->memory.bytes.size);
    lab_add_memory(world->run, "link", 6 * qfdbs, 6 * qfdbs * (sizeof(*link) + flying));
    lab_add_memory(world->run, "router", qfdbs,
                   qfdbs * (sizeof(struct exanest_router) + exanest_router_bytes(&router) + wires));
}

static void play(struct lab_run *run, struct torus *torus)
{
    struct exanest_machine_config config =
        exanest_config_of(run, torus->size[0], torus->size[1], torus->size[2]);
    config.fabric.router.channels = lab_word(run, "dateline") == 1 ? 1 : 2;
    config.fabric.router.remote_slots = (uint8_t)lab_value(run, "router_slots");
    config.fabric.fpga.receiver.patience_cycles = (uint32_t)lab_value(run, "patience");
    config.firmware.sequences = EXANEST_CONTINUING;
    torus->bound = bound_of(&config, torus);
    struct exanest_crowd crowd;
    exanest_crowd_plan(&crowd, torus->size, (uint32_t)lab_value(run, "transfers"), run->seed);
    config.process_bytes = exanest_crowd_process_bytes(&crowd);
    struct exanest_world *world = exanest_world_begin(run, &config);
    torus->result = exanest_crowd_run(&crowd, &world->machine);
    tell_memory(world);
    exanest_world_end(world);
    exanest_crowd_close(&crowd);
}

/* The sum of all that must not be. */
static double failures_of(const struct exanest_crowd_result *result)
{
    return (double)(result->lost + result->wrong + result->late + result->stands + !result->idle);
}

static void draw(struct lab_run *run, const struct torus *tori, uint32_t count)
{
    lab_add_figure(run, "all-to-all", "random traffic between all FPGAs of a torus", "FPGAs",
                   "payload for each FPGA [Gb/s]", true);
    struct lab_series *measured = lab_add_curve(run, "measured");
    for (uint32_t i = count; i-- > 0;) {
        lab_add_point(measured, 4.0 * tori[i].qfdbs, tori[i].result.gbps, LAB_NOTHING);
    }
    struct lab_series *bound = lab_add_curve(run, "bound by bisection");
    for (uint32_t i = count; i-- > 0;) {
        lab_add_point(bound, 4.0 * tori[i].qfdbs, tori[i].bound, LAB_NOTHING);
    }
}

static void all_to_all(struct lab_run *run)
{
    struct torus tori[SIZES_MAX] = {
        {.size = {(uint8_t)lab_value(run, "x"), (uint8_t)lab_value(run, "y"),
                  (uint8_t)lab_value(run, "z")}}};
    tori[0].qfdbs = (uint32_t)tori[0].size[0] * tori[0].size[1] * tori[0].size[2];
    if (tori[0].qfdbs > EXANEST_QFDBS_MAX) {
        lab_fail(run, "a torus has at most %u QFDBs", EXANEST_QFDBS_MAX);
        return;
    }
    uint32_t count = 1;
    for (; count < SIZES_MAX; count++) {
        tori[count] = tori[count - 1];
        if (!halve(tori[count].size)) {
            break;
        }
        tori[count].qfdbs /= 2;
    }
    double failures = 0;
    for (uint32_t i = count; i-- > 0;) {
        play(run, &tori[i]);
        failures += failures_of(&tori[i].result);
        lab_progress(run, (double)tori[i].qfdbs / (2 * tori[0].qfdbs));
    }
    const struct exanest_crowd_result *largest = &tori[0].result;
    lab_judge_absolute(
        lab_add_row(run, "EXA-63", "", "%u FPGAs: lost %u, wrong %u, late %llu, %s; %llu re-sent",
                    4 * tori[0].qfdbs, largest->lost, largest->wrong,
                    (unsigned long long)largest->late,
                    largest->stands ? "stands still" : (largest->idle ? "at rest" : "not at rest"),
                    (unsigned long long)largest->resent),
        0, failures, 0);
    lab_judge_range(lab_add_row(run, "EXA-W-bisection", "",
                                "share of %.2f Gb/s; %.3g words, %.3g FPGA cycles", tori[0].bound,
                                (double)largest->words, (double)largest->cycles),
                    1.0 / 3, 1, largest->gbps / tori[0].bound);
    draw(run, tori, count);
}

static const struct lab_claim all_to_all_claims[] = {
    {.id = "EXA-63",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.2: \"no routing deadlocks\", since the router resolves them; 3.2.2: no overflows",
     .broken_by = "dateline=off | patience=0 transfers=32",
     .because =
         "the rings of the torus close; receivers wait for each other to take their answers (with "
         "16 transfers each, one seed of five comes to its end all the same)"},
    {.id = "EXA-W-bisection",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if all FPGAs send to each other at random: a third is no derivation",
     .broken_by = "router_slots=2",
     .because = "a channel stands while a credit is on its way"},
};

const struct lab_experiment exanest_all_to_all = {
    .name = "exanest/all-to-all",
    .what = "random writes and reads between all FPGAs of a torus",
    EXANEST_COMMON,
    .uses = EXANEST_USES "x y z transfers dateline patience router_slots",
    EXANEST_CLAIMS(all_to_all_claims),
    .run = all_to_all,
    .explains = "The document says that its network has no routing deadlocks, and measures no "
                "traffic of many but that of an application (7.1). The router is ours. The bound "
                "follows from the torus; the floor "
                "does not: five seeds gave 0.44 to 0.66 of it. Rings of eight give less, since "
                "what passes a router takes turns with four FPGAs there. Receivers that wait for "
                "each other's answers stand still, unless their patience ends (decision 23).",
};
