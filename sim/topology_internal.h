/* SPDX-License-Identifier: BSD-2-Clause
 *
 * topology_internal - how topologies are put together.
 *
 * A builder says how many ports each vertex has, and then joins ports; each port exactly once.
 */
#ifndef SIM_TOPOLOGY_INTERNAL_H
#define SIM_TOPOLOGY_INTERNAL_H

#include "sim/topology.h"

/* Stands in a port's `peer` until it is joined. */
#define TOPOLOGY_NOBODY UINT32_MAX

/* One end of a link. */
struct topology_end {
    uint32_t vertex, port;
};

/* Takes memory. The degrees follow, vertex by vertex, by topology_set_degree. */
void topology_reserve(struct topology *topology, uint32_t nodes, uint32_t switches,
                      uint32_t port_count);
/* The next vertex has so many ports. */
static inline void topology_set_degree(struct topology *topology, uint32_t vertex, uint32_t degree)
{
    topology->first_port[vertex + 1] = topology->first_port[vertex] + degree;
}

void topology_join(struct topology *topology, struct topology_end one, struct topology_end other,
                   uint32_t link_class);

/* Writes an error; always false, so that it can be returned. */
bool topology_refuse(char *error, size_t error_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
