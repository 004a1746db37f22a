/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Shortest ways in a graph of any shape.
 *
 * The table has a row for every vertex that chooses: switches, and nodes with several ports. It has
 * a column for every destination; nodes with one port share that of their switch. An entry is the
 * number of a set of ports, because there are far fewer sets than entries.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/topology.h"
#include "sim/topology_internal.h"

#define NONE      UINT32_MAX
#define HASH_BITS 17 /* Twice as many as there are sets at most. */

struct topology_table {
    uint32_t rows, columns;
    uint32_t *row_of;    /* By vertex; NONE: it has one port only, and is a node. */
    uint32_t *column_of; /* By node. */
    uint32_t *target;    /* By column: the vertex that all ways lead to. */
    uint16_t *sets;      /* By row and column: the number of a set; a row's own column has none. */
    uint32_t *set_first; /* The ports of set s: set_first[s] up to set_first[s + 1] - 1. */
    uint16_t *set_ports; /* Ascending. */
    uint32_t set_count;
};

/* State that is needed while the table is made. */
struct search {
    struct topology *topology;
    struct topology_table *table;
    const struct text_word *names;
    const struct topology_detour *detours; /* Detours of the columns that are not done. */
    uint32_t detour_count;
    uint32_t *hops, *queue; /* By vertex. */
    uint32_t *hash;         /* Numbers of sets, plus 1. */
    uint16_t *ports;        /* The set that is being collected. */
    uint32_t set_ports_size;
    char *error;
    size_t error_bytes;
};

static bool is_node(const struct topology *topology, uint32_t vertex)
{
    return vertex < topology->nodes;
}

/* -- Rows and columns ---------------------------------------------------------------------------*/

static void *take_numbers(size_t count)
{
    uint32_t *const numbers = malloc((count > 0 ? count : 1) * sizeof(numbers[0]));
    CHECK(numbers != NULL);
    memset(numbers, 0xff, count * sizeof(numbers[0]));
    return numbers;
}

static void count_rows(const struct topology *topology, struct topology_table *table)
{
    table->row_of = take_numbers(topology_vertices(topology));
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        if (!is_node(topology, vertex) || topology_degree(topology, vertex) != 1) {
            table->row_of[vertex] = table->rows++;
        }
    }
}

static uint32_t add_column(struct topology_table *table, uint32_t vertex)
{
    table->target[table->columns] = vertex;
    return table->columns++;
}

/* Nodes that detours name, have a column of their own. */
static void count_columns(const struct search *search)
{
    const struct topology *const topology = search->topology;
    struct topology_table *const table = search->table;
    uint32_t *const column_of_switch = take_numbers(topology_vertices(topology));
    table->column_of = take_numbers(topology->nodes);
    table->target = take_numbers(topology->nodes);
    for (uint32_t i = 0; i < search->detour_count; i++) {
        uint32_t *const column = &table->column_of[search->detours[i].destination];
        *column = *column == NONE ? add_column(table, search->detours[i].destination) : *column;
    }
    for (uint32_t node = 0; node < topology->nodes; node++) {
        if (table->column_of[node] != NONE) {
            continue;
        }
        const bool shared = topology_degree(topology, node) == 1 &&
                            !is_node(topology, topology_port_of(topology, node, 0)->peer);
        const uint32_t target = shared ? topology_port_of(topology, node, 0)->peer : node;
        if (column_of_switch[target] == NONE) {
            column_of_switch[target] = add_column(table, target);
        }
        table->column_of[node] = column_of_switch[target];
    }
    free(column_of_switch);
}

/* -- Sets of ports ------------------------------------------------------------------------------*/

static bool set_is(const struct topology_table *table, uint32_t set, const uint16_t *ports,
                   uint32_t count)
{
    const uint32_t first = table->set_first[set];
    return table->set_first[set + 1] - first == count &&
           memcmp(table->set_ports + first, ports, count * sizeof(ports[0])) == 0;
}

static bool add_set(struct search *search, uint32_t count)
{
    struct topology_table *const table = search->table;
    const uint32_t first = table->set_first[table->set_count];
    if (table->set_count == TOPOLOGY_SETS_MAX || first + count > TOPOLOGY_SET_PORTS_MAX) {
        return text_refuse(search->error, search->error_bytes,
                           "there are more than %u different sets of equally short ways",
                           table->set_count);
    }
    while (first + count > search->set_ports_size) {
        search->set_ports_size *= 2;
    }
    table->set_ports =
        realloc(table->set_ports, search->set_ports_size * sizeof(table->set_ports[0]));
    CHECK(table->set_ports != NULL);
    memcpy(table->set_ports + first, search->ports, count * sizeof(table->set_ports[0]));
    table->set_first[++table->set_count] = first + count;
    return true;
}

/* Finds the number of the set that was collected, or gives it one. */
static bool intern(struct search *search, uint32_t count, uint16_t *number)
{
    uint32_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ search->ports[i]) * 0x9e3779b1u;
    }
    uint32_t *slot = &search->hash[hash >> (32 - HASH_BITS)];
    while (*slot != 0 && !set_is(search->table, *slot - 1, search->ports, count)) {
        slot = slot + 1 == search->hash + (1u << HASH_BITS) ? search->hash : slot + 1;
    }
    if (*slot == 0) {
        if (!add_set(search, count)) {
            return false;
        }
        *slot = search->table->set_count;
    }
    *number = (uint16_t)(*slot - 1);
    return true;
}

/* -- One column ---------------------------------------------------------------------------------*/

/* Counts the hops to a target in breadth; nodes do not forward. */
static void search_breadth(struct search *search, uint32_t target)
{
    const struct topology *const topology = search->topology;
    uint32_t head = 0, tail = 0;
    memset(search->hops, 0xff, topology_vertices(topology) * sizeof(search->hops[0]));
    search->hops[target] = 0;
    search->queue[tail++] = target;
    while (head < tail) {
        const uint32_t vertex = search->queue[head++];
        const uint32_t degree = topology_degree(topology, vertex);
        for (uint32_t i = 0; i < degree; i++) {
            const uint32_t peer = topology_port_of(topology, vertex, i)->peer;
            if (search->hops[peer] == NONE) {
                search->hops[peer] = search->hops[vertex] + 1;
                if (!is_node(topology, peer)) {
                    search->queue[tail++] = peer;
                }
            }
        }
    }
}

static bool all_reached(const struct search *search, uint32_t target)
{
    for (uint32_t vertex = 0; vertex < topology_vertices(search->topology); vertex++) {
        if (search->hops[vertex] == NONE) {
            return text_refuse(search->error, search->error_bytes,
                               "there is no way from %.*s to %.*s (nodes do not forward)",
                               TEXT_WORD(search->names[vertex]), TEXT_WORD(search->names[target]));
        }
    }
    return true;
}

/* Collects the ports of shortest ways, or of the detours that come next in the order. */
static uint32_t collect(struct search *search, uint32_t vertex, uint32_t target)
{
    const struct topology *const topology = search->topology;
    uint32_t count = 0;
    while (search->detour_count > 0 && search->detours->vertex == vertex &&
           search->detours->destination == target) {
        search->ports[count++] = (uint16_t)search->detours->port;
        search->detours++;
        search->detour_count--;
    }
    const uint32_t degree = count > 0 ? 0 : topology_degree(topology, vertex);
    for (uint32_t i = 0; i < degree; i++) {
        const uint32_t peer = topology_port_of(topology, vertex, i)->peer;
        if (search->hops[peer] + 1 == search->hops[vertex] &&
            (peer == target || !is_node(topology, peer))) {
            search->ports[count++] = (uint16_t)i;
        }
    }
    return count;
}

static uint16_t *entry_of(const struct topology_table *table, uint32_t vertex, uint32_t column)
{
    return &table->sets[(size_t)table->row_of[vertex] * table->columns + column];
}

static bool has_port(const struct topology_table *table, uint16_t set, uint32_t port)
{
    uint32_t from = table->set_first[set], to = table->set_first[set + 1];
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (table->set_ports[middle] == port) {
            return true;
        }
        from = table->set_ports[middle] < port ? middle + 1 : from;
        to = table->set_ports[middle] < port ? to : middle;
    }
    return false;
}

/* Detours may lead in a circle. From the target backwards: a vertex is safe as soon as all of its
 * ports lead to safe ones; `hops` counts the ports that do not yet. */
static void mark_safe(struct search *search, uint32_t column)
{
    const struct topology *const topology = search->topology;
    struct topology_table *const table = search->table;
    uint32_t head = 0, tail = 0;
    for (uint32_t vertex = topology->nodes; vertex < topology_vertices(topology); vertex++) {
        const uint16_t set = *entry_of(table, vertex, column);
        search->hops[vertex] = table->set_first[set + 1] - table->set_first[set];
    }
    search->queue[tail++] = table->target[column];
    while (head < tail) {
        const uint32_t vertex = search->queue[head++];
        for (uint32_t i = 0; i < topology_degree(topology, vertex); i++) {
            const struct topology_port *port = topology_port_of(topology, vertex, i);
            if (!is_node(topology, port->peer) &&
                has_port(table, *entry_of(table, port->peer, column), port->peer_port) &&
                --search->hops[port->peer] == 0) {
                search->queue[tail++] = port->peer;
            }
        }
    }
}

/* Names one of the detours without which there would be no circle. */
static bool detours_arrive(struct search *search, const struct topology_detour *first,
                           uint32_t column)
{
    mark_safe(search, column);
    for (const struct topology_detour *detour = first; detour != search->detours; detour++) {
        if (search->hops[detour->vertex] > 0) {
            return text_refuse(search->error, search->error_bytes,
                               "line %u: this route leads packets for %.*s round in a circle",
                               detour->line, TEXT_WORD(search->names[detour->destination]));
        }
    }
    return true;
}

static bool fill_column(struct search *search, uint32_t column)
{
    const struct topology_detour *const first = search->detours;
    const uint32_t target = search->table->target[column];
    search_breadth(search, target);
    if (!all_reached(search, target)) {
        return false;
    }
    for (uint32_t vertex = 0; vertex < topology_vertices(search->topology); vertex++) {
        if (search->table->row_of[vertex] != NONE && vertex != target &&
            !intern(search, collect(search, vertex, target),
                    entry_of(search->table, vertex, column))) {
            return false;
        }
    }
    return search->detours == first || detours_arrive(search, first, column);
}

/* -- The table ----------------------------------------------------------------------------------*/

static bool table_fits(const struct search *search)
{
    const struct topology_table *const table = search->table;
    const uint64_t ports = search->topology->first_port[topology_vertices(search->topology)];
    if ((uint64_t)table->rows * table->columns > TOPOLOGY_TABLE_MAX) {
        return text_refuse(search->error, search->error_bytes,
                           "a table for %u vertices and %u destinations is beyond %u entries",
                           table->rows, table->columns, TOPOLOGY_TABLE_MAX);
    }
    if (table->columns * ports > TOPOLOGY_SEARCH_MAX) {
        return text_refuse(search->error, search->error_bytes,
                           "%u destinations times %llu ports are beyond a search of %u steps",
                           table->columns, (unsigned long long)ports, TOPOLOGY_SEARCH_MAX);
    }
    return true;
}

static void count_bytes(struct topology *topology, const struct search *search)
{
    const struct topology_table *const table = search->table;
    topology->bytes += sizeof(*table) + topology_vertices(topology) * sizeof(table->row_of[0]) +
                       2 * (size_t)topology->nodes * sizeof(uint32_t) +
                       (size_t)table->rows * table->columns * sizeof(table->sets[0]) +
                       (TOPOLOGY_SETS_MAX + 1) * sizeof(table->set_first[0]) +
                       search->set_ports_size * sizeof(table->set_ports[0]);
}

static bool fill(struct search *search)
{
    struct topology_table *const table = search->table;
    const uint32_t vertices = topology_vertices(search->topology);
    search->hops = take_numbers(vertices);
    search->queue = take_numbers(vertices);
    search->hash = calloc(1u << HASH_BITS, sizeof(search->hash[0]));
    search->ports = calloc(TOPOLOGY_DEGREE_MAX, sizeof(search->ports[0]));
    search->set_ports_size = 1024;
    table->sets = calloc((size_t)table->rows * table->columns + 1, sizeof(table->sets[0]));
    table->set_first = calloc(TOPOLOGY_SETS_MAX + 1, sizeof(table->set_first[0]));
    CHECK(search->hash != NULL && search->ports != NULL && table->sets != NULL &&
          table->set_first != NULL);
    bool good = true;
    for (uint32_t column = 0; good && column < table->columns; column++) {
        good = fill_column(search, column);
    }
    free(search->hops);
    free(search->queue);
    free(search->hash);
    free(search->ports);
    return good;
}

bool topology_table_build(struct topology *topology, const struct text_word *names,
                          const struct topology_detour *detours, uint32_t detour_count, char *error,
                          size_t error_bytes)
{
    struct search search = {.topology = topology,
                            .names = names,
                            .detours = detours,
                            .detour_count = detour_count,
                            .error = error,
                            .error_bytes = error_bytes};
    topology->table = search.table = calloc(1, sizeof(*search.table));
    CHECK(search.table != NULL);
    count_rows(topology, search.table);
    count_columns(&search);
    if (!table_fits(&search) || !fill(&search)) {
        return false;
    }
    count_bytes(topology, &search);
    return true;
}

void topology_table_close(struct topology_table *table)
{
    if (table != NULL) {
        free(table->row_of);
        free(table->column_of);
        free(table->target);
        free(table->sets);
        free(table->set_first);
        free(table->set_ports);
        free(table);
    }
}

uint32_t topology_table_route(const struct topology *topology, uint32_t vertex,
                              uint32_t destination, uint32_t entropy)
{
    const struct topology_table *const table = topology->table;
    const uint32_t row = table->row_of[vertex];
    const struct topology_port *const last = topology_port_of(topology, destination, 0);
    if (row == NONE) {
        return 0;
    }
    if (last->peer == vertex && table->row_of[destination] == NONE) {
        return last->peer_port;
    }
    const uint16_t set = table->sets[(size_t)row * table->columns + table->column_of[destination]];
    const uint32_t first = table->set_first[set], count = table->set_first[set + 1] - first;
    return table->set_ports[first + topology_choose(entropy, vertex, count)];
}
