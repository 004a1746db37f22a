/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The network of RoCE NICs: the lines and switches of a topology.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/roce/internal.h"

/* The longest frame: Ethernet's header and FCS, IPv6, UDP, headers, payload, ICRC. */
#define FRAME_BYTES_MAX (18 + 48 + NIC_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX + 4)

/* -- Switches -----------------------------------------------------------------------------------*/

static void on_loss(struct sim_ethernet_switch *at, struct sim_frame *frame, enum sim_loss loss)
{
    struct roce_flight *flight = CONTAINER_OF(frame, struct roce_flight, frame);
    (void)at;
    (void)loss;
    flight->roce->counters.lost++;
    roce_end(flight);
}

static uint32_t route(const struct sim_ethernet_switch *at, const struct sim_frame *frame)
{
    const struct roce_flight *flight = CONTAINER_OF_CONST(frame, struct roce_flight, frame);
    const struct roce *roce = flight->roce;
    const uint32_t vertex = roce->topology.nodes + (uint32_t)(at - roce->switches);
    return topology_route(&roce->topology, vertex, frame->destination, flight->entropy);
}

/* A class of an input asks for a pause so early that what may still come finds room. */
static void limit_input(struct sim_switch_port *port, const struct sim_ethernet_switch_kind *kind)
{
    if (kind->input.flow == SIM_NO_FLOW_CONTROL || kind->input.xoff_bytes != 0) {
        return;
    }
    const struct sim_headroom headroom =
        sim_headroom_of(&port->port.kind, kind->delay_ps, FRAME_BYTES_MAX, FRAME_BYTES_MAX);
    const uint64_t bytes = sim_headroom_bytes(&headroom);
    const uint64_t xoff = port->limits.room_bytes > bytes ? port->limits.room_bytes - bytes : 0;
    port->limits.xoff_bytes = xoff;
    port->limits.xon_bytes = xoff > 2 * FRAME_BYTES_MAX ? xoff - 2 * FRAME_BYTES_MAX : 0;
}

static struct sim_port *port_of(struct roce *roce, uint32_t vertex, uint32_t port)
{
    const uint32_t nodes = roce->topology.nodes;
    return vertex < nodes ? &roce->nodes[vertex].port
                          : &roce->switches[vertex - nodes].ports[port].port;
}

static struct sim_ethernet_kind line_of(const struct roce *roce, const struct topology_port *port)
{
    const struct topology_link *link = &roce->topology.links[port->link_class];
    struct sim_ethernet_kind line = roce->config.switches.line;
    line.wire = (struct sim_wire_kind){.byte_fs = link->byte_fs, .latency_ps = link->latency_ps};
    return line;
}

static void open_vertex(struct roce *roce, uint32_t vertex, const struct sim_port_calls *calls)
{
    const struct topology *topology = &roce->topology;
    const uint32_t degree = topology_degree(topology, vertex);
    struct sim_ethernet_switch_kind kind = roce->config.switches;
    kind.line = line_of(roce, topology_port_of(topology, vertex, 0));
    if (vertex < topology->nodes) {
        sim_port_open(&roce->nodes[vertex].port, roce->sim, &kind.line, calls);
        return;
    }
    struct sim_ethernet_switch *at = &roce->switches[vertex - topology->nodes];
    sim_ethernet_switch_open(at, roce->sim, &kind, degree, on_loss);
    at->route = route;
    for (uint32_t i = 0; i < degree; i++) {
        const struct sim_ethernet_kind line = line_of(roce, topology_port_of(topology, vertex, i));
        sim_port_change(&at->ports[i].port, &line);
        limit_input(&at->ports[i], &kind);
    }
}

static void join(struct roce *roce, uint32_t vertex)
{
    const struct topology *topology = &roce->topology;
    for (uint32_t i = 0; i < topology_degree(topology, vertex); i++) {
        const struct topology_port *port = topology_port_of(topology, vertex, i);
        if (port->peer > vertex || (port->peer == vertex && port->peer_port > i)) {
            sim_port_join(port_of(roce, vertex, i), port_of(roce, port->peer, port->peer_port));
        }
    }
}

/* -- Opening ------------------------------------------------------------------------------------*/

static bool open_topology(struct roce *roce, char *error, size_t error_bytes)
{
    const struct roce_config *config = &roce->config;
    struct topology *topology = &roce->topology;
    const bool opened =
        config->text != NULL
            ? topology_parse(topology, config->text, config->text_bytes, error, error_bytes)
            : topology_open(topology, config->topology, error, error_bytes);
    if (!opened) {
        return false;
    }
    for (uint32_t i = 0; i < topology->nodes; i++) {
        if (topology_degree(topology, i) != 1 ||
            topology_port_of(topology, i, 0)->peer < topology->nodes) {
            (void)snprintf(error, error_bytes, "node %u has not one link to a switch, and no other",
                           i);
            topology_close(topology);
            return false;
        }
    }
    topology_default_link(topology, (uint32_t)config->line.byte_fs, config->line.latency_ps);
    return true;
}

/* A pause that comes too late loses frames. */
static bool has_headroom(const struct roce *roce, char *error, size_t error_bytes)
{
    const struct sim_input_limits *wanted = &roce->config.switches.input;
    for (uint32_t i = 0; i < roce->topology.switches; i++) {
        const uint32_t degree = topology_degree(&roce->topology, roce->topology.nodes + i);
        for (uint32_t port = 0; port < degree; port++) {
            if (wanted->flow != SIM_NO_FLOW_CONTROL &&
                roce->switches[i].ports[port].limits.xoff_bytes == 0) {
                (void)snprintf(error, error_bytes,
                               "buffer: %llu bytes are fewer than what still comes behind a pause",
                               (unsigned long long)wanted->room_bytes);
                return false;
            }
        }
    }
    return true;
}

bool roce_fabric_open(struct roce *roce, const struct sim_port_calls *calls, char *error,
                      size_t error_bytes)
{
    if (!open_topology(roce, error, error_bytes)) {
        return false;
    }
    const struct topology *topology = &roce->topology;
    roce->nodes = calloc(topology->nodes, sizeof(roce->nodes[0]));
    roce->switches = calloc(topology->switches, sizeof(roce->switches[0]));
    CHECK(roce->nodes != NULL && roce->switches != NULL);
    for (uint32_t i = 0; i < topology->nodes; i++) {
        roce->nodes[i].roce = roce;
        roce->nodes[i].number = i;
        list_init(&roce->nodes[i].functions);
        list_init(&roce->nodes[i].starved);
        list_init(&roce->nodes[i].contexts);
    }
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        open_vertex(roce, vertex, calls);
    }
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        join(roce, vertex);
    }
    if (!has_headroom(roce, error, error_bytes)) {
        roce_fabric_close(roce);
        return false;
    }
    return true;
}

void roce_fabric_close(struct roce *roce)
{
    for (uint32_t i = 0; i < roce->topology.nodes; i++) {
        sim_port_close(&roce->nodes[i].port);
    }
    for (uint32_t i = 0; i < roce->topology.switches; i++) {
        sim_ethernet_switch_close(&roce->switches[i]);
    }
    free(roce->nodes);
    free(roce->switches);
    topology_close(&roce->topology);
}

struct roce_counters roce_counters_of(const struct roce *roce)
{
    struct roce_counters counters = roce->counters;
    for (uint32_t i = 0; i < roce->topology.nodes; i++) {
        counters.contexts_read += roce->nodes[i].counters.contexts_read;
    }
    for (uint32_t i = 0; i < roce->topology.switches; i++) {
        const struct sim_switch_counters one = sim_ethernet_switch_total(&roce->switches[i]);
        sim_switch_counters_add(&counters.switches, &one);
    }
    return counters;
}

struct roce_node_counters roce_node_counters_of(const struct roce *roce, uint32_t node)
{
    struct roce_node_counters counters = roce->nodes[node].counters;
    roce_units_count(&roce->nodes[node], &counters);
    return counters;
}
