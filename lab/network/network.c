/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/network/network.h"

#include <stdlib.h>

/* Packets that may be under way, for each node: each has one of its own, which it makes ahead. */
#define PACKETS_A_NODE 256u
#define PACKETS_MOST   (1u << 24)

/* -- Opening ------------------------------------------------------------------------------------*/

static uint64_t bytes_of(const struct network_config *config, uint32_t words)
{
    return 8ull * words + config->frame_bytes;
}

static bool sizes_good(const struct network_config *config)
{
    return config->least > 0 && config->least <= config->most &&
           bytes_of(config, config->most) <= NETWORK_BYTES_MAX;
}

/* A node sends by one port: its next packet waits for the one before. */
static bool nodes_good(const struct topology *topology)
{
    for (uint32_t node = 0; node < topology->nodes; node++) {
        if (topology_degree(topology, node) != 1) {
            return false;
        }
    }
    return true;
}

static struct sim_output_kind kind_of(const struct network_config *config,
                                      const struct topology_link *link)
{
    const bool bounded = config->buffer_bytes != 0 && config->buffering == NETWORK_AT_OUTPUTS;
    const struct sim_wire_kind wire = {.byte_fs = link->byte_fs, .latency_ps = link->latency_ps};
    return (struct sim_output_kind){
        .wire = wire,
        .switching = config->switching,
        .delay_ps = config->delay_ps,
        .buffer_ps = bounded ? sim_wire_ps(&wire, config->buffer_bytes) : SIM_UNBOUNDED_PS,
    };
}

/* The time of a packet on a wire has 32 bits: 4 ms. */
static bool make_kinds(struct network *network)
{
    const struct network_config *config = &network->config;
    struct topology *topology = &network->topology;
    bool fit = true;
    topology_default_link(topology, (uint32_t)config->wire.byte_fs, config->wire.latency_ps);
    for (uint32_t i = 0; i < topology->link_count; i++) {
        network->kinds[i] = kind_of(config, &topology->links[i]);
        fit &= sim_wire_ps(&network->kinds[i].wire, bytes_of(config, config->most)) <= UINT32_MAX;
    }
    return fit;
}

static bool open_topology(struct network *network)
{
    const struct network_config *config = &network->config;
    char error[TOPOLOGY_ERROR_BYTES];
    struct topology *topology = &network->topology;
    if (!topology_open(topology, config->topology, error, sizeof(error))) {
        lab_fail(network->run, "%s", error);
        return false;
    }
    if (!nodes_good(topology)) {
        lab_fail(network->run, "nodes of %s do not have one port each", config->topology);
    } else if (!make_kinds(network)) {
        lab_fail(network->run, "a packet of %llu bytes takes more than 4 ms on a wire",
                 (unsigned long long)bytes_of(config, config->most));
    } else {
        return true;
    }
    topology_close(topology);
    return false;
}

/* The generator is the pattern's own: what nodes draw does not depend on it. */
static bool open_destinations(struct network *network)
{
    struct prng prng;
    char error[TOPOLOGY_ERROR_BYTES];
    prng_init(&prng, network->run->seed);
    if (network->config.destinations[0] == '\0' ||
        pattern_open(&network->destinations, network->config.destinations, network->topology.nodes,
                     &prng, error, sizeof(error))) {
        return true;
    }
    lab_fail(network->run, "%s", error);
    topology_close(&network->topology);
    return false;
}

/* A pattern may leave a node nobody to send to. */
static bool sends(const struct network *network, uint32_t node)
{
    return network->config.destinations[0] == '\0' ||
           pattern_load(&network->destinations, node) > 0;
}

static uint64_t gap_ps(const struct network *network)
{
    const struct network_config *config = &network->config;
    const double mean = (double)(bytes_of(config, config->least) + bytes_of(config, config->most));
    const double byte_ps = (double)network->kinds[0].wire.byte_fs / 1000;
    return config->load >= 1 ? 0 : (uint64_t)(mean / 2 * byte_ps / config->load);
}

static size_t packet_bytes(const struct network_config *config)
{
    return sizeof(struct network_packet) + (config->real_bytes ? 8ull * config->most : 0);
}

static void open_parts(struct network *network)
{
    const uint32_t nodes = network->topology.nodes;
    const uint32_t ports = network->topology.first_port[topology_vertices(&network->topology)];
    const uint64_t wanted = (uint64_t)nodes * PACKETS_A_NODE;
    sim_pool_open(&network->packets, (uint32_t)(wanted < PACKETS_MOST ? wanted : PACKETS_MOST),
                  packet_bytes(&network->config));
    network->wires = calloc(ports, sizeof(network->wires[0]));
    network->nodes = calloc(nodes, sizeof(network->nodes[0]));
    CHECK(network->wires != NULL && network->nodes != NULL);
    if (network->config.buffering == NETWORK_AT_INPUTS) {
        network_inputs_open(network);
    }
}

bool network_open(struct network *network, struct lab_run *run, const struct network_config *config)
{
    *network = (struct network){.config = *config, .run = run};
    if (!sizes_good(config)) {
        lab_fail(run, "packets have up to %u bytes, and least is not above most",
                 NETWORK_BYTES_MAX);
        return false;
    }
    if (!open_topology(network) || !open_destinations(network)) {
        return false;
    }
    lab_world_begin(run, &network->sim, &network->trace, &network->capture, PCAPNG_LINK_USER0);
    if (network->trace != NULL) {
        network->track = sim_trace_track(network->trace, "network", 0, "packets under way", 32);
    }
    sim_errors_init(&network->errors, run->seed, config->bit_errors, 0);
    network->gap_ps = gap_ps(network);
    open_parts(network);
    for (uint32_t node = 0; node < network->topology.nodes; node++) {
        if (sends(network, node)) {
            network_make(network, node);
        }
    }
    return true;
}

/* -- Running ------------------------------------------------------------------------------------*/

void network_run(struct network *network)
{
    const uint64_t step_ps = network->config.stop_ps / 64 + 1;
    for (uint32_t i = 1; i <= 64 && network->run->failure[0] == '\0'; i++) {
        sim_run_until(&network->sim, i * step_ps);
        lab_progress(network->run, i / 64.0);
    }
    while (network->run->failure[0] == '\0' && sim_step(&network->sim)) {
    }
}

double network_throughput(const struct network *network)
{
    const struct network_config *config = &network->config;
    const double window_ps = (double)(config->stop_ps - config->warm_ps);
    const double byte_ps = (double)network->kinds[0].wire.byte_fs / 1000;
    return (double)network->warm_bytes * byte_ps / window_ps / network->topology.nodes;
}

/* -- The end ------------------------------------------------------------------------------------*/

static void check(struct network *network)
{
    struct lab_run *run = network->run;
    const uint64_t ended =
        network->delivered + network->dropped + network->discarded + network->wrong;
    if (network->made != ended || network->ledger != 0 || sim_pool_taken(&network->packets) > 0) {
        lab_fail(run, "%llu packets were made, %llu came to an end, %u are under way",
                 (unsigned long long)network->made, (unsigned long long)ended,
                 sim_pool_taken(&network->packets));
    }
    if (network->misled > 0 || (network->wrong > 0 && !network->config.crc_ignored)) {
        lab_fail(run, "%llu packets at the wrong node, %llu with wrong bytes",
                 (unsigned long long)network->misled, (unsigned long long)network->wrong);
    }
}

struct parts {
    uint64_t nodes, ports, topology, packets; /* Bytes. */
    uint64_t port_count;
};

static struct parts parts_of(const struct network *network)
{
    const struct topology *topology = &network->topology;
    const struct sim_pool *packets = &network->packets;
    const uint64_t ports = topology->first_port[topology_vertices(topology)];
    const uint64_t inputs = network->inputs == NULL ? 0 : ports * sizeof(network->inputs[0]);
    const bool patterned = network->config.destinations[0] != '\0';
    return (struct parts){
        .nodes = topology->nodes * sizeof(network->nodes[0]) +
                 (patterned ? pattern_bytes(&network->destinations) : 0),
        .ports = ports * sizeof(network->wires[0]) + inputs,
        .topology = topology_bytes(topology),
        .packets = packets->used * (uint64_t)(packets->bytes + sizeof(packets->back[0])),
        .port_count = ports,
    };
}

uint64_t network_bytes(const struct network *network)
{
    const struct parts parts = parts_of(network);
    return parts.nodes + parts.ports + parts.topology + parts.packets;
}

static void tell_memory(const struct network *network)
{
    const struct parts parts = parts_of(network);
    lab_add_memory(network->run, "node", network->topology.nodes, parts.nodes);
    lab_add_memory(network->run, "port", parts.port_count, parts.ports);
    lab_add_memory(network->run, "topology", 1, parts.topology);
    lab_add_memory(network->run, "packet", network->packets.used, parts.packets);
}

void network_close(struct network *network)
{
    if (network->run->failure[0] == '\0') {
        check(network);
    }
    tell_memory(network);
    lab_world_end(network->run, &network->sim, network->trace, network->capture);
    sim_pool_close(&network->packets);
    topology_close(&network->topology);
    pattern_close(&network->destinations);
    free(network->inputs);
    free(network->wires);
    free(network->nodes);
}
