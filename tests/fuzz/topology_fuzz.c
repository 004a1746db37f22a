/* SPDX-License-Identifier: BSD-2-Clause
 *
 * topology_fuzz - graphs as text.
 *
 * Goal    Whatever comes, nothing outside is read or written, no assertion fails, every error ends
 *         and can be printed; and what is accepted is a network in which each packet arrives.
 * Method  The input is the text. If it is accepted, every link has two ends, and every pair of the
 *         first nodes is walked with some entropies.
 */
#include <string.h>

#include "base/check.h"
#include "sim/topology.h"

#define NODES_WALKED 16u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_links(const struct topology *graph)
{
    for (uint32_t vertex = 0; vertex < topology_vertices(graph); vertex++) {
        for (uint32_t i = 0; i < topology_degree(graph, vertex); i++) {
            const struct topology_port *port = topology_port_of(graph, vertex, i);
            const struct topology_port *back = topology_port_of(graph, port->peer, port->peer_port);
            CHECK(back->peer == vertex && back->peer_port == i);
            CHECK(port->link_class < graph->link_count);
            CHECK(graph->links[port->link_class].byte_fs > 0);
        }
    }
}

static void walk(const struct topology *graph, uint32_t from, uint32_t to, uint32_t entropy)
{
    uint32_t vertex = from;
    for (uint32_t hops = 0; vertex != to; hops++) {
        CHECK(hops < topology_vertices(graph) && (hops == 0 || vertex >= graph->nodes));
        const uint32_t port = topology_route(graph, vertex, to, entropy);
        CHECK(port < topology_degree(graph, vertex));
        vertex = topology_port_of(graph, vertex, port)->peer;
    }
}

static void walk_all(const struct topology *graph)
{
    const uint32_t nodes = graph->nodes < NODES_WALKED ? graph->nodes : NODES_WALKED;
    for (uint32_t from = 0; from < nodes; from++) {
        for (uint32_t to = 0; to < nodes; to++) {
            for (uint32_t entropy = 0; entropy < 3; entropy++) {
                walk(graph, from, to, entropy);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct topology graph;
    char error[TOPOLOGY_ERROR_BYTES];
    memset(error, 'x', sizeof(error));
    if (topology_parse(&graph, (const char *)bytes, count, error, sizeof(error))) {
        check_links(&graph);
        walk_all(&graph);
        topology_close(&graph);
        return 0;
    }
    const size_t length = strnlen(error, sizeof(error));
    CHECK(length > 0 && length < sizeof(error));
    for (size_t i = 0; i < length; i++) {
        CHECK(error[i] >= ' ' && error[i] <= '~');
    }
    return 0;
}
