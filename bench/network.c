/* SPDX-License-Identifier: BSD-2-Clause
 *
 * network - the laboratory's speed with packets through a network under full load.
 *
 * usage: network TOPOLOGY PACKETS [LOAD [none]]
 *        network TOPOLOGY --graph
 *
 * At load 1, the default, each node always has a packet of 24 to 512 bytes for some other node.
 * Payloads are written by the source and compared by the sink (none: packets have lengths only).
 * Wires and switches are those of bench/ns3_network.cc. Prints one JSON object.
 *
 * --graph prints the topology for that program: nodes and switches; for each vertex its degree, and
 * the peer and the peer's port of each of its ports; for each switch the port by which it reaches
 * each node.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/network/network.h"

#define WORDS_LEAST 1u
#define WORDS_MOST  62u
#define FRAME_BYTES 16u

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int print_graph(const char *description)
{
    static struct topology topology;
    char error[TOPOLOGY_ERROR_BYTES];
    if (!topology_open(&topology, description, error, sizeof(error))) {
        fprintf(stderr, "network: %s\n", error);
        return 1;
    }
    printf("%u %u\n", topology.nodes, topology.switches);
    for (uint32_t v = 0; v < topology_vertices(&topology); v++) {
        printf("%u", topology_degree(&topology, v));
        for (uint32_t port = 0; port < topology_degree(&topology, v); port++) {
            const struct topology_port *end = topology_port_of(&topology, v, port);
            printf(" %u %u", end->peer, end->peer_port);
        }
        printf("\n");
    }
    for (uint32_t v = topology.nodes; v < topology_vertices(&topology); v++) {
        for (uint32_t node = 0; node < topology.nodes; node++) {
            printf("%u ", topology_route(&topology, v, node, 0));
        }
        printf("\n");
    }
    topology_close(&topology);
    return 0;
}

static struct network_config config_of(const char *topology, double load, bool real)
{
    struct network_config config = {
        .wire = {.byte_fs = 80000, .latency_ps = 100000},
        .switching = SIM_STORE_AND_FORWARD,
        .load = load,
        .least = WORDS_LEAST,
        .most = WORDS_MOST,
        .frame_bytes = FRAME_BYTES,
        .real_bytes = real,
    };
    (void)snprintf(config.topology, sizeof(config.topology), "%s", topology);
    return config;
}

static void print(const struct network *network, double taken)
{
    printf("{\"nodes\":%u,\"packets\":%" PRIu64 ",\"events\":%" PRIu64
           ",\"wall_s\":%.6f,\"packets_per_s\":%.0f,\"events_per_s\":%.0f,\"node_bytes\":%.0f}\n",
           network->topology.nodes, network->delivered, network->sim.events, taken,
           (double)network->delivered / taken, (double)network->sim.events / taken,
           (double)network_bytes(network) / network->topology.nodes);
}

static int measure(const char *topology, uint64_t packets, double load, bool real)
{
    static struct lab_run run;
    static struct network network;
    struct network_config config = config_of(topology, load, real);
    char error[TOPOLOGY_ERROR_BYTES];
    lab_prepare(&run, lab_find("network/random"), 1);
    if (!topology_open(&network.topology, topology, error, sizeof(error))) {
        fprintf(stderr, "network: %s\n", error);
        return 1;
    }
    const uint64_t mean_bytes = 4 * (WORDS_LEAST + WORDS_MOST) + FRAME_BYTES;
    config.stop_ps = packets * mean_bytes * config.wire.byte_fs / 1000 / network.topology.nodes;
    config.stop_ps = (uint64_t)((double)config.stop_ps / load);
    topology_close(&network.topology);
    const bool open = network_open(&network, &run, &config);
    const double begun = seconds();
    if (open) {
        network_run(&network);
        print(&network, seconds() - begun);
        network_close(&network);
    }
    if (run.failure[0] != '\0') {
        fprintf(stderr, "network: %s\n", run.failure);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[2], "--graph") == 0) {
        return print_graph(argv[1]);
    }
    const uint64_t packets = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const double share = argc > 3 ? atof(argv[3]) : 1;
    const bool real = argc < 5;
    if (packets == 0 || !(share > 0 && share <= 1) || argc > 5 ||
        (!real && strcmp(argv[4], "none") != 0)) {
        fprintf(stderr, "usage: network TOPOLOGY PACKETS [LOAD [none]]\n"
                        "       network TOPOLOGY --graph\n");
        return 2;
    }
    return measure(argv[1], packets, share, real);
}
