/* SPDX-License-Identifier: BSD-2-Clause
 *
 * More comes than can leave: pauses that lose nothing, and rates that become fair.
 */
#include <stdio.h>

#include "lab/roce/experiments.h"

/* A node sends to `target` from its own rack, and three from another one, whose frames come by one
 * line: the parking lot. */
static const char racks[] = "switch near\n"
                            "switch far\n"
                            "node target\n"
                            "node beside\n"
                            "node a\n"
                            "node b\n"
                            "node c\n"
                            "link target near\n"
                            "link beside near\n"
                            "link a far\n"
                            "link b far\n"
                            "link c far\n"
                            "link near far\n";
#define RACKS_SENDERS 4u

static struct roce_load load_of(struct lab_run *run)
{
    return (struct roce_load){.work = (enum roce_work)lab_word(run, "work"),
                              .bytes = (uint32_t)lab_value(run, "payload"),
                              .depth = (uint32_t)lab_value(run, "depth"),
                              .warm_ps = lab_ps(run, "warm"),
                              .stop_ps = lab_ps(run, "duration")};
}

/* -- Incast -------------------------------------------------------------------------------------*/

static void judge_incast(struct lab_run *run, const struct roce_world *world)
{
    const struct roce_counters counters = roce_counters_of(world->roce);
    const double line = roce_line_gbps(&world->config, world->load.bytes);
    const double gbps = roce_world_gbps(world);
    lab_judge_absolute(lab_add_row(run, "ROC-C1", "packets", "of %llu lost by the switch",
                                   (unsigned long long)counters.packets),
                       0, (double)counters.lost, 0);
    lab_judge_range(lab_add_row(run, "ROC-C2", "", "pauses that the switch asked for"), 1,
                    LAB_UNBOUNDED, (double)counters.switches.xoffs);
    lab_judge_range(lab_add_row(run, "ROC-C3", "Gb/s", "payload that comes to the one"),
                    0.99 * line, 1.001 * line, gbps);
}

static void incast(struct lab_run *run)
{
    struct roce_world world;
    char topology[ROCE_TEXT_BYTES];
    const uint32_t senders = (uint32_t)lab_value(run, "senders");
    struct roce_load load = load_of(run);
    (void)snprintf(topology, sizeof(topology), "star:%u", senders + 1);
    load.topology = topology;
    if (!roce_world_open(&world, run, &load, senders)) {
        return;
    }
    for (uint32_t i = 0; i < senders; i++) {
        roce_world_flow(&world, i + 1, 0);
    }
    roce_world_run(&world);
    judge_incast(run, &world);
    roce_world_close(&world);
}

static const struct lab_claim incast_claims[] = {
    {.id = "ROC-C1",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: PFC with headroom loses nothing",
     .broken_by = "flow=none | xoff=520000",
     .because = "nobody is asked to pause; no headroom is left"},
    {.id = "ROC-C2",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: more comes than can leave",
     .broken_by = "flow=none",
     .because = "nobody is asked to pause"},
    {.id = "ROC-C3",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the line to the one is always busy",
     .broken_by = "flow=none",
     .because = "what is lost is sent again"},
};

const struct lab_experiment roce_incast = {
    ROCE_COMMON,
    ROCE_CLAIMS(incast_claims),
    .name = "roce/incast",
    .what = "many nodes send to one: pauses, and nothing lost",
    .uses =
        ROCE_USES "cache buffer paths ecn=off work payload=4096 depth=256 senders duration warm",
    .run = incast,
    .explains =
        "Each input of the switch asks its sender to pause when it has room for no more than what "
        "may still come: both passes of the line, a frame in progress each way, and the pause "
        "itself. So nothing is lost, the line to the one is never idle, and who is paused waits "
        "with everything that he sends. Without pauses RC sends again from the lost packet on, and "
        "half of the line carries what was there before.",
};

/* -- Fairness -----------------------------------------------------------------------------------*/

static void judge_fairness(struct lab_run *run, const struct roce_world *world)
{
    const struct roce_counters counters = roce_counters_of(world->roce);
    const double line = roce_line_gbps(&world->config, world->load.bytes);
    lab_judge_range(lab_add_row(run, "ROC-D1", "", "Jain's index of %u senders", RACKS_SENDERS),
                    0.98, 1, roce_world_fairness(world));
    lab_judge_range(lab_add_row(run, "ROC-D2", "Gb/s", "payload that comes to the one"),
                    0.85 * line, 1.001 * line, roce_world_gbps(world));
    lab_judge_absolute(lab_add_row(run, "ROC-D3", "packets", "of %llu lost by the switches",
                                   (unsigned long long)counters.packets),
                       0, (double)counters.lost, 0);
}

static void fairness(struct lab_run *run)
{
    struct roce_world world;
    struct roce_load load = load_of(run);
    load.text = racks;
    load.text_bytes = sizeof(racks) - 1;
    if (!roce_world_open(&world, run, &load, RACKS_SENDERS)) {
        return;
    }
    for (uint32_t i = 1; i <= RACKS_SENDERS; i++) {
        roce_world_flow(&world, i, 0);
    }
    roce_world_run(&world);
    judge_fairness(run, &world);
    roce_world_close(&world);
}

static const struct lab_claim fairness_claims[] = {
    {.id = "ROC-D1",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "DCQCN: fair, where PFC alone is not",
     .broken_by = "ecn=off",
     .because = "pauses share the line among inputs, of which three senders have one"},
    {.id = "ROC-D2",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC",
     .broken_by = "mark=1000",
     .because = "packets are marked before a queue has formed"},
    {.id = "ROC-D3",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: PFC with headroom loses nothing",
     .broken_by = "flow=none",
     .because = "nobody is asked to pause"},
};

const struct lab_experiment roce_fairness = {
    ROCE_COMMON,
    ROCE_CLAIMS(fairness_claims),
    .name = "roce/fairness",
    .what = "rates become fair by DCQCN where pauses alone are not",
    .uses =
        ROCE_USES "cache buffer paths ecn work payload=16384 depth=64 duration=40000 warm=20000",
    .run = fairness,
    .explains =
        "Three senders are behind one line, and the fourth has a line of its own. Pauses share the "
        "line to the one among the switch's inputs, so the fourth gets a half (ecn=off: Jain's "
        "index 0.75). With marks each flow finds its own rate, and all get a quarter. DCQCN's "
        "parameters are the engine's, which are the publication's for 40 Gb/s; at 100 Gb/s rates "
        "rise slowly after a cut, and a tenth of the line stays idle.",
};
