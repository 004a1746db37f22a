/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Random traffic through a network: the carried load, the latency, the effects of errors.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/network/experiments.h"

#define PS_PER_NS 1e3

/* Runs one world; NULL: the run has failed. To be closed and freed. */
static struct network *run_world(struct lab_run *run, const struct network_config *config)
{
    struct network *network = calloc(1, sizeof(*network));
    CHECK(network != NULL);
    if (!network_open(network, run, config)) {
        free(network);
        return NULL;
    }
    network_run(network);
    return network;
}

static void end_world(struct network *network)
{
    network_close(network);
    free(network);
}

/* The time of a packet of mean size on a wire, in ns. */
static double length_ns(const struct network_config *config)
{
    const double bytes = 4.0 * (config->least + config->most) + config->frame_bytes;
    return bytes * (double)config->wire.byte_fs / 1e6;
}

/* -- One point ----------------------------------------------------------------------------------*/

/* Its messages, if the run was given a trace. */
static void add_messages(struct lab_run *run, const struct network *network)
{
    const struct network_replay *replay = &network->replay;
    lab_judge_relative(lab_add_row(run, "NET-carried/trace", "B",
                                   "of %u messages; latency %.0f ns, last at %.1f ns",
                                   replay->trace.count,
                                   sim_spread_mean(&network->latency) / PS_PER_NS,
                                   (double)network->came_ps / PS_PER_NS),
                       (double)replay->offered_bytes, (double)replay->delivered_bytes, 0);
}

static void add_load(struct lab_run *run, const struct network *network)
{
    const double latency_ns = sim_spread_mean(&network->latency) / PS_PER_NS;
    lab_judge_relative(
        lab_add_row(run, "NET-carried", "", "load carried; latency %.0f ns, 99 %% within %.0f ns",
                    latency_ns, (double)sim_spread_percentile(&network->latency, 0.99) / PS_PER_NS),
        network_offered(network), network_throughput(network), 0.02);
}

static void add_readings(struct lab_run *run, const struct network *network)
{
    const struct network_config *config = &network->config;
    const bool traced = network->replay.trace.count > 0;
    const double ps =
        traced ? (double)network->came_ps : (double)config->stop_ps - (double)config->warm_ps;
    const double bytes =
        traced ? (double)network->replay.delivered_bytes : (double)network->warm_payload;
    const double packets = (double)network->latency.count;
    const double counted = traced ? packets : (double)network->warm_packets;
    const struct lab_outcome outcome = {
        .gbps = ps > 0 ? 8e3 * bytes / ps : 0,
        .rate = ps > 0 ? 1e6 * counted / ps : 0,
        .latency = &network->latency,
        .latency_of = "from a packet's making to its delivery",
        .link = network_busiest(network),
        .link_of = "of its time, the busiest wire",
        .queue = &network->waiting,
        .queue_of = "bytes that an output of a switch (or an input) has, now and then",
        .lost = network->dropped + network->discarded,
        .lost_of = "packets dropped or spoilt",
    };
    lab_add_outcome(run, &outcome);
    lab_add_reading(run, "carried", "", network_throughput(network),
                    "load of a node's wire that was delivered, the mean");
    lab_add_reading(run, "wires", "", packets > 0 ? (double)network->links / packets : LAB_NOTHING,
                    "that a packet passed, the mean");
}

static void random_traffic(struct lab_run *run)
{
    const struct network_config config = network_config_of(run);
    struct network *network = calloc(1, sizeof(*network));
    CHECK(network != NULL);
    if (!network_open(network, run, &config)) {
        free(network);
        return;
    }
    network_watch(network);
    network_run(network);
    add_readings(run, network);
    if (network->replay.trace.count > 0) {
        add_messages(run, network);
    } else {
        add_load(run, network);
    }
    lab_judge_absolute(lab_add_row(run, "NET-dropped", "packets", "of %llu dropped",
                                   (unsigned long long)network->made),
                       0, (double)network->dropped, 0);
    end_world(network);
}

static const struct lab_claim random_claims[] = {
    {.id = "NET-carried",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what is not dropped arrives",
     .broken_by = "buffer=1000",
     .because = "an output has room for one packet"},
    {.id = "NET-dropped",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: at load 0.5 an output has a queue longer than n packets for 0.5^n at most",
     .broken_by = "buffer=1000",
     .because = "an output has room for one packet"},
};

/* -- Latency ------------------------------------------------------------------------------------*/

/* The mean number of wires between two nodes of a fat tree of three levels: 2 below a switch, 4 in
 * a pod, 6 else; `nodes` are the fourth part of the cube of its switches' ports. */
static double fat_tree_links(uint32_t nodes)
{
    const double half = cbrt(4.0 * nodes) / 2;
    const double below = half - 1, pod = half * half - half, all = nodes - 1.0;
    return (2 * below + 4 * pod + 6 * (all - below - pod)) / all;
}

/* At a low load packets hardly meet, and latency is the sum of its parts: wires, switches, and the
 * packet's own length once, as switches cut through. */
static void add_parts(struct lab_run *run)
{
    struct network_config config = network_config_of(run);
    config.load = lab_value(run, "low_load");
    struct network *network = run_world(run, &config);
    if (network == NULL) {
        return;
    }
    const double links = (double)network->links / (double)network->latency.count;
    const double parts_ns = links * (double)config.wire.latency_ps / PS_PER_NS +
                            (links - 1) * (double)config.delay_ps / PS_PER_NS + length_ns(&config);
    const double measured_ns = sim_spread_mean(&network->latency) / PS_PER_NS;
    /* The time that packets which come at random wait for a wire, and half as much again for
     * chance. */
    const double wait_ns = config.load / (2 * (1 - config.load)) * length_ns(&config);
    const double queueing_ns = 1.5 * links * wait_ns;
    lab_judge_range(
        lab_add_row(run, "NET-parts", "ns", "latency at load %g, %.2f wires", config.load, links),
        parts_ns, parts_ns + queueing_ns, measured_ns);
    lab_judge_relative(
        lab_add_row(run, "NET-links", "wires", "a packet's way, %u nodes", network->topology.nodes),
        fat_tree_links(network->topology.nodes), links, 0.01);
    end_world(network);
}

/* Pollaczek and Khinchine: a queue of packets of one length, which come at random. */
static void add_wait(struct lab_run *run)
{
    const struct network_config config = network_config_of(run);
    struct network *network = run_world(run, &config);
    if (network == NULL) {
        return;
    }
    const double waited_ns = (double)network->waited_ps / (double)network->waits / PS_PER_NS;
    lab_judge_relative(
        lab_add_row(run, "NET-wait", "ns", "waiting for a node's wire at load %g", config.load),
        config.load / (2 * (1 - config.load)) * length_ns(&config), waited_ns, 0.06);
    end_world(network);
}

static void latency(struct lab_run *run)
{
    add_parts(run);
    add_wait(run);
}

static const struct lab_claim latency_claims[] = {
    {.id = "NET-parts",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the sum of the parameters; Kleinrock: and above it M/D/1 at each wire",
     .broken_by = "switching=store-and-forward",
     .because = "a packet's length counts at every switch"},
    {.id = "NET-links",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "OC: in a fat tree of switches with k ports a switch has k/2 nodes, a pod k*k/4",
     .broken_by = "topology=torus",
     .because = "other networks have other ways"},
    {.id = "NET-wait",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "Kleinrock: Pollaczek and Khinchine's mean wait, for packets of one length",
     .broken_by = "arrivals=regular",
     .because = "packets do not meet if they come at equal intervals"},
};

/* -- Saturation ---------------------------------------------------------------------------------*/

/* Packets of one size for any node, as many as the wires take: the share that comes through. */
static double saturated(struct lab_run *run, uint32_t nodes, enum network_buffering buffering)
{
    struct network_config config = network_config_of(run);
    config.buffering = buffering;
    (void)snprintf(config.topology, sizeof(config.topology), "star:%u", nodes);
    struct network *network = run_world(run, &config);
    if (network == NULL) {
        return 0;
    }
    const double share = network_throughput(network);
    end_world(network);
    return share;
}

static void saturation(struct lab_run *run)
{
    const uint32_t many = (uint32_t)lab_value(run, "nodes");
    lab_judge_relative(lab_add_row(run, "NET-inputs/8", "", "queues at inputs, 8 ports"), 0.6184,
                       saturated(run, 8, NETWORK_AT_INPUTS), 0.01);
    lab_judge_relative(lab_add_row(run, "NET-inputs/many", "",
                                   "queues at inputs, %u ports; 0.586 is of infinitely many", many),
                       0.586, saturated(run, many, NETWORK_AT_INPUTS), 0.01);
    lab_judge_range(lab_add_row(run, "NET-outputs", "", "queues at outputs, %u ports", many), 0.98,
                    1, saturated(run, many, NETWORK_AT_OUTPUTS));
}

static const struct lab_claim saturation_claims[] = {
    {.id = "NET-inputs",
     .reference = LAB_PRINTED,
     .ground = LAB_MECHANISM,
     .source = "Karol, table I: 0.6184 with 8 ports, 0.586 with infinitely many",
     .broken_by = "pattern=opposite",
     .because = "heads of queues do not want the same output"},
    {.id = "NET-outputs",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: an output is idle only if nothing waits for it",
     .broken_by = "buffer=1200",
     .because = "an output has room for two packets, and drops others"},
};

/* -- Soak ---------------------------------------------------------------------------------------*/

static void soak(struct lab_run *run)
{
    const struct network_config config = network_config_of(run);
    struct network *network = run_world(run, &config);
    if (network == NULL) {
        return;
    }
    const uint64_t known = network->delivered + network->dropped + network->discarded;
    lab_judge_absolute(lab_add_row(run, "NET-unaccounted", "packets",
                                   "of %llu neither delivered, dropped (%llu) nor discarded (%llu)",
                                   (unsigned long long)network->made,
                                   (unsigned long long)network->dropped,
                                   (unsigned long long)network->discarded),
                       0, (double)(network->made - known), 0);
    lab_judge_absolute(lab_add_row(run, "NET-wrong", "packets", "delivered with wrong bytes"), 0,
                       (double)network->wrong, 0);
    end_world(network);
}

static const struct lab_claim soak_claims[] = {
    {.id = "NET-unaccounted",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: every packet that was made comes to an end that is counted",
     .broken_by = "crc=ignored",
     .because = "nodes take packets whose bytes are wrong"},
    {.id = "NET-wrong",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: nodes compare every byte",
     .broken_by = "crc=ignored",
     .because = "nodes take packets whose bytes are wrong"},
};

/* -- Their names --------------------------------------------------------------------------------*/

const struct lab_experiment network_random = {
    NETWORK_COMMON,
    .name = "network/random",
    .what = "one point: random traffic through a network, as the parameters say",
    .uses = NETWORK_USES "pattern least most topology=fat-tree nodes=1024 load buffer "
                         "bit_errors duration=40 warm=10",
    NETWORK_CLAIMS(random_claims),
    .quick = true,
    .judge_texts = network_judge_texts,
    .run = random_traffic,
    .explains = "A network carries what it is offered as long as its queues have room.",
};

const struct lab_experiment network_latency = {
    NETWORK_COMMON,
    .name = "network/latency",
    .what = "latency at a low load, and the wait for a wire at a higher one",
    .uses = NETWORK_USES "pattern least most topology=fat-tree nodes=128 load low_load buffer "
                         "bit_errors duration warm",
    NETWORK_CLAIMS(latency_claims),
    .quick = true,
    .run = latency,
    .explains = "At a low load the latency is the sum of wires, switches and the packet's length, "
                "and what packets wait for each other is within what a queue of random arrivals "
                "has. At load 0.5 the wait for a node's wire is that of the textbook.",
};

const struct lab_experiment network_saturation = {
    NETWORK_COMMON,
    .name = "network/saturation",
    .what = "what one switch carries, with queues at inputs and at outputs",
    .uses = NETWORK_USES
    "pattern=all least most topology nodes load=1 buffer bit_errors duration=1000 warm=100",
    NETWORK_CLAIMS(saturation_claims),
    .quick = true,
    .run = saturation,
    .explains = "With one queue at each input the packet at its head holds up those for other "
                "outputs, which costs two fifths of the rate with many ports. Queues at outputs "
                "cost nothing but memory that is fast enough for all inputs at once.",
};

const struct lab_experiment network_soak = {
    NETWORK_COMMON,
    .name = "network/soak",
    .what = "random packets of many sizes with bit errors and little room",
    .uses = NETWORK_USES "pattern least=8 most=1024 topology=torus nodes load=0.8 buffer=4096 "
                         "bit_errors=1e-6 duration warm",
    NETWORK_CLAIMS(soak_claims),
    .quick = true,
    .judge_texts = network_judge_texts,
    .run = soak,
    .explains =
        "Every packet comes to an end that has a counter: delivered as it was sent, dropped "
        "for want of room, or discarded because a wire spoilt it.",
};
