/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One point: every node sends to the node half of all numbers further, as the parameters say.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/roce/experiments.h"

static struct roce_load load_of(struct lab_run *run, char topology[ROCE_TEXT_BYTES])
{
    const struct lab_text *given = &run->texts[LAB_TOPOLOGY];
    (void)snprintf(topology, ROCE_TEXT_BYTES, "star:%u", (uint32_t)lab_value(run, "nodes"));
    return (struct roce_load){
        .topology = given->text != NULL   ? NULL
                    : given->name != NULL ? given->name
                                          : topology,
        .text = given->text,
        .text_bytes = given->bytes,
        .work = (enum roce_work)lab_word(run, "work"),
        .bytes = (uint32_t)lab_value(run, "payload"),
        .depth = (uint32_t)lab_value(run, "depth"),
        .warm_ps = lab_ps(run, "warm"),
        .stop_ps = lab_ps(run, "duration"),
    };
}

static void judge_texts(struct lab_run *run)
{
    char error[LAB_TEXT_BYTES], topology[ROCE_TEXT_BYTES];
    const struct roce_load load = load_of(run, topology);
    const struct lab_text *given = &run->texts[LAB_TOPOLOGY];
    if (run->texts[LAB_PATTERN].name != NULL || run->texts[LAB_TRAFFIC].name != NULL) {
        lab_fail(run, "it takes a --topology, and neither a pattern nor traffic");
    } else if (given->name != NULL && lab_is_set(run, "nodes")) {
        lab_fail(run, "the topology says how many nodes there are: they cannot be set as well");
    } else if (!roce_world_fits(run, &load, error, sizeof(error))) {
        lab_fail(run, "%s%s%s", given->text != NULL ? given->name : "",
                 given->text != NULL ? ": " : "", error);
    }
}

static void judge(struct lab_run *run, const struct roce_world *world)
{
    const struct roce_counters counters = roce_counters_of(world->roce);
    double least = LAB_UNBOUNDED;
    for (uint32_t i = 0; i < world->flow_count; i++) {
        least = fmin(least, roce_flow_gbps(&world->flows[i]));
    }
    lab_judge_relative(
        lab_add_row(run, "ROC-F1", "Gb/s",
                    "payload of the slowest of %u; latency %.2f us; %llu pauses, %llu marks, "
                    "%llu lost",
                    world->flow_count, sim_spread_mean(world->latency) / 1e6,
                    (unsigned long long)counters.switches.xoffs,
                    (unsigned long long)counters.switches.marked,
                    (unsigned long long)counters.lost),
        roce_line_gbps(&world->config, world->load.bytes), least, 0.01);
}

static void one(struct lab_run *run)
{
    struct roce_world world;
    char topology[ROCE_TEXT_BYTES];
    const struct roce_load load = load_of(run, topology);
    if (!roce_world_open(&world, run, &load, ROCE_FLOWS_MAX)) {
        return;
    }
    const uint32_t nodes = roce_nodes(world.roce);
    for (uint32_t i = 0; i < nodes && i < ROCE_FLOWS_MAX; i++) {
        roce_world_flow(&world, i, (i + (nodes + 1) / 2) % nodes);
    }
    roce_world_run(&world);
    judge(run, &world);
    roce_world_close(&world);
}

static const struct lab_claim claims[] = {
    {.id = "ROC-F1",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: each has a line of its own",
     .broken_by = "room=1",
     .because = "the next payload is read when the one before is on the line"},
};

const struct lab_experiment roce_one = {
    ROCE_COMMON,
    ROCE_CLAIMS(claims),
    .name = "roce/one",
    .what = "every node sends to the opposite one, as the parameters say",
    .uses = ROCE_USES "cache buffer paths ecn nodes=4 work payload depth duration=400 warm=100",
    .quick = true,
    .judge_texts = judge_texts,
    .run = one,
    .explains =
        "For exploring, on any network (--topology), with every byte checked. On networks with "
        "circles pauses can deadlock, and connections fail then (buffer=0). A capture has all "
        "packets, with the times at which they leave their NICs.",
};
