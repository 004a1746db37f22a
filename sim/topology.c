/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/topology_internal.h"

#define DEFAULT_BYTE_FS    80000u
#define DEFAULT_LATENCY_PS 500000u

bool topology_refuse(char *error, size_t error_bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error, error_bytes, format, arguments);
    va_end(arguments);
    return false;
}

/* -- Building -----------------------------------------------------------------------------------*/

void topology_reserve(struct topology *topology, uint32_t nodes, uint32_t switches,
                      uint32_t port_count)
{
    const size_t vertices = (size_t)nodes + switches;
    topology->nodes = nodes;
    topology->switches = switches;
    topology->first_port = calloc(vertices + 1, sizeof(topology->first_port[0]));
    topology->ports = malloc(port_count * sizeof(topology->ports[0]));
    CHECK(topology->first_port != NULL && topology->ports != NULL);
    for (uint32_t i = 0; i < port_count; i++) {
        topology->ports[i] = (struct topology_port){.peer = TOPOLOGY_NOBODY};
    }
    topology->bytes =
        (vertices + 1) * sizeof(topology->first_port[0]) + port_count * sizeof(topology->ports[0]);
}

static void point(struct topology *topology, struct topology_end from, struct topology_end to,
                  uint32_t link_class)
{
    struct topology_port *port = &topology->ports[topology->first_port[from.vertex] + from.port];
    CHECK(port->peer == TOPOLOGY_NOBODY);
    *port = (struct topology_port){
        .peer = to.vertex, .peer_port = to.port & 0xffffff, .link_class = link_class & 0xff};
}

void topology_join(struct topology *topology, struct topology_end one, struct topology_end other,
                   uint32_t link_class)
{
    point(topology, one, other, link_class);
    point(topology, other, one, link_class);
}

/* -- Named topologies ---------------------------------------------------------------------------*/

static void build_star(struct topology *topology, uint32_t nodes)
{
    topology_reserve(topology, nodes, 1, 2 * nodes);
    for (uint32_t node = 0; node < nodes; node++) {
        topology_set_degree(topology, node, 1);
    }
    topology_set_degree(topology, nodes, nodes);
    for (uint32_t node = 0; node < nodes; node++) {
        topology_join(topology, (struct topology_end){node, 0}, (struct topology_end){nodes, node},
                      TOPOLOGY_LINK_OF_NODE);
    }
}

bool topology_open(struct topology *topology, const char *description, char *error,
                   size_t error_bytes)
{
    unsigned nodes = 0;
    int read = 0;
    memset(topology, 0, sizeof(*topology));
    if (sscanf(description, "star:%7u%n", &nodes, &read) != 1 || description[read] != '\0' ||
        nodes < 2 || nodes > TOPOLOGY_NODES_MAX) {
        return topology_refuse(error, error_bytes, "\"%.40s\" is not star:N with N of 2..%u",
                               description, TOPOLOGY_NODES_MAX);
    }
    topology->kind = TOPOLOGY_STAR;
    build_star(topology, nodes);
    topology->link_count = 1;
    topology_default_link(topology, DEFAULT_BYTE_FS, DEFAULT_LATENCY_PS);
    return true;
}

void topology_close(struct topology *topology)
{
    free(topology->first_port);
    free(topology->ports);
    memset(topology, 0, sizeof(*topology));
}

/* -- What is asked ------------------------------------------------------------------------------*/

void topology_default_link(struct topology *topology, uint32_t byte_fs, uint64_t latency_ps)
{
    CHECK(byte_fs > 0);
    for (uint32_t i = 0; i < topology->link_count; i++) {
        struct topology_link *link = &topology->links[i];
        link->byte_fs = link->rate_given ? link->byte_fs : byte_fs;
        link->latency_ps = link->latency_given ? link->latency_ps : latency_ps;
    }
}

uint32_t topology_route(const struct topology *topology, uint32_t vertex, uint32_t destination,
                        uint32_t entropy)
{
    (void)entropy;
    return vertex < topology->nodes ? 0 : destination;
}

size_t topology_bytes(const struct topology *topology)
{
    return topology->bytes;
}
