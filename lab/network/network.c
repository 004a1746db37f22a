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

/* A node with one port, to a switch, makes its next packet when that has the one before. */
static bool any_departs(const struct topology *topology)
{
    for (uint32_t node = 0; node < topology->nodes; node++) {
        if (topology_degree(topology, node) != 1 ||
            topology_port_of(topology, node, 0)->peer < topology->nodes) {
            return true;
        }
    }
    return false;
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

/* Errors in a file have its name in front of them. */
bool network_refuse(struct network *network, enum lab_text_kind kind, const char *error)
{
    const struct lab_text *text = &network->config.texts[kind];
    lab_fail(network->run, "%s%s%s", text->text != NULL ? text->name : "",
             text->text != NULL ? ": " : "", error);
    return false;
}

static bool open_topology(struct network *network)
{
    const struct network_config *config = &network->config;
    const struct lab_text *given = &config->texts[LAB_TOPOLOGY];
    char error[TOPOLOGY_ERROR_BYTES];
    struct topology *topology = &network->topology;
    const bool open =
        given->text != NULL
            ? topology_parse(topology, given->text, given->bytes, error, sizeof(error))
            : topology_open(topology, given->name != NULL ? given->name : config->topology, error,
                            sizeof(error));
    if (!open) {
        return network_refuse(network, LAB_TOPOLOGY, error);
    }
    network->departs = any_departs(topology);
    if (!make_kinds(network)) {
        lab_fail(network->run, "a packet of %llu bytes takes more than 4 ms on a wire",
                 (unsigned long long)bytes_of(config, config->most));
        topology_close(topology);
        return false;
    }
    return true;
}

/* The generator is the pattern's own: what nodes draw does not depend on it. */
static bool open_destinations(struct network *network)
{
    const struct lab_text *given = &network->config.texts[LAB_PATTERN];
    const char *name = given->name != NULL ? given->name : network->config.destinations;
    const uint32_t nodes = network->topology.nodes;
    struct prng prng;
    char error[TOPOLOGY_ERROR_BYTES];
    prng_init(&prng, network->run->seed);
    network->patterned = name[0] != '\0';
    return !network->patterned ||
           (given->text != NULL
                ? pattern_parse(&network->destinations, given->text, given->bytes, nodes, error,
                                sizeof(error))
                : pattern_open(&network->destinations, name, nodes, &prng, error, sizeof(error))) ||
           network_refuse(network, LAB_PATTERN, error);
}

/* How much of the load a node offers. A pattern may leave a node nobody to send to. */
static double share_of(const struct network *network, uint32_t node)
{
    return network->patterned ? pattern_load(&network->destinations, node) : 1;
}

static uint32_t class_of(const struct network *network, uint32_t node)
{
    return topology_port_of(&network->topology, node, 0)->link_class;
}

static uint64_t gap_ps(const struct network *network, uint32_t link_class, double share)
{
    const struct network_config *config = &network->config;
    const double mean = (double)(bytes_of(config, config->least) + bytes_of(config, config->most));
    const double byte_ps = (double)network->kinds[link_class].wire.byte_fs / 1000;
    const double load = config->load * share;
    return load >= 1 && !network->departs ? 0 : (uint64_t)(mean / 2 * byte_ps / load);
}

/* Where the links of nodes have one class, and all offer the same, one gap goes for all. */
static void set_gaps(struct network *network)
{
    const uint32_t nodes = network->topology.nodes;
    bool alike = true;
    for (uint32_t node = 0; node < nodes; node++) {
        const double share = share_of(network, node);
        alike &= class_of(network, node) == 0 && (share <= 0 || share >= 1);
    }
    network->gap_ps = gap_ps(network, 0, 1);
    if (alike) {
        return;
    }
    network->gaps_ps = calloc(nodes, sizeof(network->gaps_ps[0]));
    CHECK(network->gaps_ps != NULL);
    for (uint32_t node = 0; node < nodes; node++) {
        const double share = share_of(network, node);
        network->gaps_ps[node] = share > 0 ? gap_ps(network, class_of(network, node), share) : 0;
    }
}

static void close_described(struct network *network)
{
    topology_close(&network->topology);
    pattern_close(&network->destinations);
    network_replay_close(network);
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

/* Opens what the configuration and its texts describe. False: the run has failed. */
static bool open_described(struct network *network, struct lab_run *run,
                           const struct network_config *config)
{
    *network = (struct network){.config = *config, .run = run};
    if (!sizes_good(config)) {
        lab_fail(run, "packets have up to %u bytes, and least is not above most",
                 NETWORK_BYTES_MAX);
        return false;
    }
    if (!open_topology(network)) {
        return false;
    }
    if (!open_destinations(network) || !network_replay_open(network)) {
        close_described(network);
        return false;
    }
    return true;
}

void network_judge_texts(struct lab_run *run)
{
    const struct network_config config = network_config_of(run);
    struct network *network = calloc(1, sizeof(*network));
    CHECK(network != NULL);
    if (run->failure[0] == '\0' && open_described(network, run, &config)) {
        close_described(network);
    }
    free(network);
}

bool network_open(struct network *network, struct lab_run *run, const struct network_config *config)
{
    if (!open_described(network, run, config)) {
        return false;
    }
    lab_world_begin(run, &network->sim, &network->trace, &network->capture, PCAPNG_LINK_BYTES);
    if (network->trace != NULL) {
        network->track = sim_trace_track(network->trace, "network", 0, "packets under way", 32);
    }
    sim_errors_init(&network->errors, run->seed, config->bit_errors, 0);
    set_gaps(network);
    open_parts(network);
    for (uint32_t node = 0; node < network->topology.nodes; node++) {
        if (share_of(network, node) > 0) {
            network_make(network, node);
        }
    }
    return true;
}

/* -- Running ------------------------------------------------------------------------------------*/

void network_watch(struct network *network)
{
    const uint32_t ports = network->topology.first_port[topology_vertices(&network->topology)];
    network->busy_ps = calloc(ports, sizeof(network->busy_ps[0]));
    CHECK(network->busy_ps != NULL);
}

double network_busiest(const struct network *network)
{
    const uint32_t ports = network->topology.first_port[topology_vertices(&network->topology)];
    uint64_t most = 0;
    for (uint32_t i = 0; i < ports; i++) {
        most = network->busy_ps[i] > most ? network->busy_ps[i] : most;
    }
    return network->sim.now_ps == 0 ? 0 : (double)most / (double)network->sim.now_ps;
}

/* The bytes that wait before each output of a switch. */
static void look(struct network *network)
{
    const struct topology *topology = &network->topology;
    const uint64_t now_ps = network->sim.now_ps;
    const uint32_t first = topology->first_port[topology->nodes];
    const uint32_t ports = topology->first_port[topology_vertices(topology)];
    for (uint32_t i = first; i < ports; i++) {
        const uint64_t byte_fs = network->kinds[topology->ports[i].link_class].wire.byte_fs;
        const uint64_t wait_ps = sim_wire_wait_ps(&network->wires[i], now_ps);
        lab_lengths_count(&network->waiting, network->inputs != NULL ? network->inputs[i].bytes
                                                                     : wait_ps * 1000 / byte_fs);
    }
}

#define LOOK_PS UINT64_C(1000000) /* Between two looks at a trace. */

void network_run(struct network *network)
{
    const uint64_t step_ps = network->config.stop_ps / 64 + 1;
    for (uint32_t i = 1; i <= 64 && network->run->failure[0] == '\0'; i++) {
        sim_run_until(&network->sim, i * step_ps);
        if (network->busy_ps != NULL) {
            look(network);
        }
        lab_progress(network->run, i / 64.0);
    }
    /* A trace's messages are wished for by now, and under way. */
    uint64_t look_ps = network->sim.now_ps;
    while (network->run->failure[0] == '\0' && sim_step(&network->sim)) {
        if (network->busy_ps != NULL && network->replay.trace.count > 0 &&
            network->sim.now_ps >= look_ps) {
            look_ps = network->sim.now_ps + LOOK_PS;
            look(network);
        }
    }
}

double network_throughput(const struct network *network)
{
    const struct network_config *config = &network->config;
    const double window_ps = (double)(config->stop_ps - config->warm_ps);
    double carried_ps = 0;
    for (uint32_t i = 0; i < network->topology.link_count; i++) {
        const double byte_ps = (double)network->kinds[i].wire.byte_fs / 1000;
        carried_ps += (double)network->warm_bytes[i] * byte_ps;
    }
    return carried_ps / window_ps / network->topology.nodes;
}

double network_offered(const struct network *network)
{
    double shares = 0;
    for (uint32_t node = 0; node < network->topology.nodes; node++) {
        shares += share_of(network, node);
    }
    return network->config.load * (shares / network->topology.nodes);
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
    const uint64_t gaps =
        network->gaps_ps == NULL ? 0 : topology->nodes * sizeof(network->gaps_ps[0]);
    return (struct parts){
        .nodes = topology->nodes * sizeof(network->nodes[0]) + gaps +
                 (network->patterned ? pattern_bytes(&network->destinations) : 0) +
                 network_replay_bytes(network),
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
    close_described(network);
    free(network->gaps_ps);
    free(network->busy_ps);
    free(network->inputs);
    free(network->wires);
    free(network->nodes);
}
