/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Every node sends to every other, here and in the laboratory's network, which knows no NICs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lab/network/network.h"
#include "lab/roce/experiments.h"

/* The one fat tree of 64 nodes with full bisection: five levels of switches with four ports. */
#define TOPOLOGY   "fat-tree:4:5"
#define NODES      64u
#define MTU        4096u
#define LINE_BYTES 60u

/* -- With NICs ----------------------------------------------------------------------------------*/

struct found {
    struct roce_config config;
    uint64_t last_ps; /* When the last byte was in memory. */
};

static struct found with_nics(struct lab_run *run, uint32_t bytes)
{
    struct roce_world world;
    const struct roce_load load = {.topology = TOPOLOGY,
                                   .work = ROCE_WRITE,
                                   .bytes = bytes,
                                   .depth = 1,
                                   .messages = 1,
                                   .alike = true,
                                   .stop_ps = UINT64_MAX};
    struct found found = {.config = roce_world_config(run, &load)};
    if (!roce_world_open(&world, run, &load, NODES * (NODES - 1))) {
        return found;
    }
    for (uint32_t i = 0; i < NODES * (NODES - 1); i++) {
        const uint32_t from = i / (NODES - 1), step = 1 + i % (NODES - 1);
        roce_world_flow(&world, from, (from + step) % NODES);
    }
    roce_world_run(&world);
    for (uint32_t i = 0; i < NODES; i++) {
        found.last_ps = sim_later(found.last_ps, world.programs[i].written_ps);
    }
    roce_world_close(&world);
    return found;
}

/* -- Without ------------------------------------------------------------------------------------*/

/* A node sends a packet to each of the others in turn, as a NIC does whose queue pairs take turns.
 */
static char *trace_of(uint32_t bytes, size_t *length)
{
    const uint32_t rounds = bytes / MTU;
    char *text = malloc((size_t)rounds * NODES * (NODES - 1) * LINE_BYTES);
    CHECK(text != NULL);
    *length = 0;
    for (uint32_t i = 0; i < rounds * NODES * (NODES - 1); i++) {
        const uint32_t from = i % NODES, step = 1 + i / NODES % (NODES - 1);
        *length += (size_t)snprintf(text + *length, LINE_BYTES, "0 %u %u %u\n", from,
                                    (from + step) % NODES, MTU);
    }
    return text;
}

static uint64_t without_nics(struct lab_run *run, const struct roce_config *config, uint32_t bytes)
{
    struct network *network = calloc(1, sizeof(*network));
    CHECK(network != NULL);
    size_t length;
    char *text = trace_of(bytes, &length);
    const struct network_config without = {
        .texts = {[LAB_TRAFFIC] = {.name = "all to all", .text = text, .bytes = length}},
        .topology = TOPOLOGY,
        .wire = config->line,
        .switching = SIM_CUT_THROUGH,
        .delay_ps = config->switches.delay_ps,
        .load = 1,
        .least = MTU / 8,
        .most = MTU / 8,
        .frame_bytes = ROCE_FRAME_BYTES,
        .stop_ps = UINT64_C(1) << 50,
    };
    uint64_t last_ps = 0;
    if (network_open(network, run, &without)) {
        network_run(network);
        last_ps = network->came_ps;
        network_close(network);
    }
    free(network);
    free(text);
    return last_ps;
}

/* The parts of a packet's way that are in the NICs. */
static uint64_t nics_ps(const struct roce_config *config)
{
    struct roce_config star = *config;
    star.line = (struct sim_wire_kind){.byte_fs = 0, .latency_ps = 0};
    star.switches.delay_ps = 0;
    return roce_sum_ps(&star, ROCE_WRITE, MTU);
}

static void all_to_all(struct lab_run *run)
{
    const uint32_t bytes = (uint32_t)lab_value(run, "payload") / MTU * MTU;
    const struct found found = with_nics(run, bytes);
    if (run->failure[0] != '\0' || bytes == 0) {
        return;
    }
    lab_progress(run, 0.8);
    const uint64_t expected_ps = without_nics(run, &found.config, bytes) + nics_ps(&found.config);
    lab_judge_relative(lab_add_row(run, "ROC-E1", "us",
                                   "%u B from each of %u nodes to each, until all is there", bytes,
                                   NODES),
                       (double)expected_ps / 1e6, (double)found.last_ps / 1e6, 0.02);
}

static const struct lab_claim claims[] = {
    {.id = "ROC-E1",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: as the laboratory's network, network/random",
     .broken_by = "room=1 | paths=flow",
     .because = "NICs do not keep their lines busy; flows meet by chance, and not by destination"},
};

const struct lab_experiment roce_all_to_all = {
    ROCE_COMMON,
    ROCE_CLAIMS(claims),
    .name = "roce/all-to-all",
    .what = "all nodes of a fat tree send to all, with NICs and without",
    .uses = ROCE_USES "buffer=0 paths=one ecn=off cache=0 payload=65536",
    .run = all_to_all,
    .explains =
        "The laboratory's network has the same switches and lines, and sources that send without "
        "end. Here each packet costs a NIC its DMA reads and writes, each message a doorbell, a "
        "work request and an acknowledgement, and queue pairs take turns. All of this hides behind "
        "the line but for the beginning, when the first queue pairs send before the others are "
        "there: some 3 us. Queues have no bound, and a packet's path is its destination's.",
};
