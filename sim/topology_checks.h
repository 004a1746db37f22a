/* SPDX-License-Identifier: BSD-2-Clause
 *
 * topology_checks - for tests: links have two ends, and routes are shortest ways.
 */
#ifndef SIM_TOPOLOGY_CHECKS_H
#define SIM_TOPOLOGY_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/topology.h"

static inline void check_links(const struct topology *topology)
{
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        for (uint32_t i = 0; i < topology_degree(topology, vertex); i++) {
            const struct topology_port *port = topology_port_of(topology, vertex, i);
            assert_true(port->peer < topology_vertices(topology) && port->peer != vertex);
            assert_true(port->peer_port < topology_degree(topology, port->peer));
            const struct topology_port *back =
                topology_port_of(topology, port->peer, port->peer_port);
            assert_int_equal(back->peer, vertex);
            assert_int_equal(back->peer_port, i);
            assert_int_equal(back->link_class, port->link_class);
            assert_true(port->link_class < topology->link_count);
            assert_true(topology->links[port->link_class].byte_fs > 0);
        }
    }
}

/* -- Shortest ways ------------------------------------------------------------------------------*/

#define FAR UINT32_MAX

/* The hops from every vertex to a node; other nodes do not forward. */
static inline void search(const struct topology *topology, uint32_t node, uint32_t *hops,
                          uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    memset(hops, 0xff, topology_vertices(topology) * sizeof(hops[0]));
    hops[node] = 0;
    queue[tail++] = node;
    while (head < tail) {
        const uint32_t vertex = queue[head++];
        for (uint32_t i = 0; i < topology_degree(topology, vertex); i++) {
            const uint32_t peer = topology_port_of(topology, vertex, i)->peer;
            if (hops[peer] == FAR && (vertex == node || vertex >= topology->nodes)) {
                hops[peer] = hops[vertex] + 1;
                queue[tail++] = peer;
            }
        }
    }
}

/* Follows the routes, notes the classes of the links on them, and returns their number. */
static inline uint32_t walk(const struct topology *topology, uint32_t from, uint32_t to,
                            uint32_t entropy, uint32_t most, uint8_t *classes)
{
    uint32_t vertex = from, hops = 0;
    while (vertex != to) {
        assert_true(hops < most && (hops == 0 || vertex >= topology->nodes));
        const uint32_t port = topology_route(topology, vertex, to, entropy);
        assert_true(port < topology_degree(topology, vertex));
        classes[hops++] = topology_port_of(topology, vertex, port)->link_class;
        vertex = topology_port_of(topology, vertex, port)->peer;
    }
    return hops;
}

static const uint32_t entropies[] = {0, 1, 2, 0x12345678, 0xdeadbeef, UINT32_MAX};

static inline void check_shortest(const struct topology *topology)
{
    const uint32_t vertices = topology_vertices(topology);
    uint32_t *const hops = malloc(2 * vertices * sizeof(hops[0]));
    uint8_t *const classes = malloc(vertices);
    for (uint32_t to = 0; to < topology->nodes; to++) {
        search(topology, to, hops, hops + vertices);
        for (uint32_t from = 0; from < topology->nodes; from++) {
            assert_true(hops[from] != FAR);
            for (size_t i = 0; i < COUNT_OF(entropies); i++) {
                assert_int_equal(walk(topology, from, to, entropies[i], hops[from], classes),
                                 hops[from]);
            }
        }
    }
    free(classes);
    free(hops);
}

#endif
