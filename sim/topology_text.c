/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads a graph from text: names first, then links, then perhaps routes. All that is kept while
 * reading is bounded by the length of the text, because every statement takes some letters.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/topology.h"
#include "sim/topology_internal.h"

#define NONE UINT32_MAX

/* No statement is shorter than "node a" and its end, so a text of n bytes has n / 7 + 1 at most. */
#define STATEMENT_BYTES_LEAST 7

struct vertex {
    struct text_word name;
    bool is_switch;
    uint32_t number; /* Among the nodes, or among the switches. */
    uint32_t degree;
};

struct edge {
    uint32_t ends[2]; /* Indices of vertices in the order of the text. */
    uint32_t link_class;
};

struct route {
    uint32_t at, destination; /* Indices of vertices in the order of the text. */
    uint32_t to;              /* One of them, or NONE: the port is meant. */
    uint32_t port;
    uint32_t line;
};

struct reader {
    struct topology *topology;
    struct text_lines lines;
    struct vertex *vertices;
    struct edge *edges;
    struct route *routes;
    uint32_t *hash; /* Indices of vertices, plus 1, by their names. */
    uint32_t hash_mask;
    uint32_t nodes, switches, edge_count, route_count;
};

/* -- Names --------------------------------------------------------------------------------------*/

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(struct text_word word)
{
    if (word.length > TOPOLOGY_NAME_MAX || !is_letter(word.text[0])) {
        return false;
    }
    for (uint32_t i = 1; i < word.length; i++) {
        const char c = word.text[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != ':') {
            return false;
        }
    }
    return true;
}

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t *slot_of(const struct reader *reader, struct text_word name)
{
    uint32_t hash = 0;
    for (uint32_t i = 0; i < name.length; i++) {
        hash = (hash ^ (uint8_t)name.text[i]) * 0x01000193u;
    }
    hash ^= hash >> 15;
    while (true) {
        uint32_t *const slot = &reader->hash[hash & reader->hash_mask];
        const struct text_word there = *slot == 0 ? name : reader->vertices[*slot - 1].name;
        if (there.length == name.length && memcmp(there.text, name.text, name.length) == 0) {
            return slot;
        }
        hash++;
    }
}

static bool find(const struct reader *reader, struct text_word name, uint32_t *index)
{
    const uint32_t slot = *slot_of(reader, name);
    *index = slot - 1;
    return slot != 0 ||
           text_line_refuse(&reader->lines, "there is no node or switch %.*s before this line",
                            TEXT_WORD(name));
}

/* -- Statements ---------------------------------------------------------------------------------*/

static bool read_vertex(struct reader *reader)
{
    const struct text_word name = reader->lines.words[1];
    const bool is_switch = text_word_is(reader->lines.words[0], "switch");
    uint32_t *const number = is_switch ? &reader->switches : &reader->nodes;
    const uint32_t most = is_switch ? TOPOLOGY_SWITCHES_MAX : TOPOLOGY_NODES_MAX;
    if (!is_name(name)) {
        return text_line_refuse(&reader->lines,
                                "\"%.*s\" is no name: a letter, then up to %u letters, digits or "
                                "any of -_.:",
                                TEXT_WORD(name), TOPOLOGY_NAME_MAX - 1);
    }
    uint32_t *const slot = slot_of(reader, name);
    if (*slot != 0) {
        return text_line_refuse(&reader->lines, "there is a %.*s already", TEXT_WORD(name));
    }
    if (*number == most) {
        return text_line_refuse(&reader->lines, "there are %u already, which is the most", most);
    }
    const uint32_t index = reader->nodes + reader->switches;
    reader->vertices[index] = (struct vertex){name, is_switch, (*number)++, 0};
    *slot = index + 1;
    return true;
}

/* Finds the class with this rate and latency, or makes one. */
static bool classify(struct reader *reader, const struct topology_link *link, uint32_t *link_class)
{
    struct topology *const topology = reader->topology;
    for (uint32_t i = 0; i < topology->link_count; i++) {
        const struct topology_link *known = &topology->links[i];
        if (known->rate_given == link->rate_given && known->latency_given == link->latency_given &&
            known->byte_fs == link->byte_fs && known->latency_ps == link->latency_ps) {
            *link_class = i;
            return true;
        }
    }
    if (topology->link_count == TOPOLOGY_CLASSES_MAX) {
        return text_line_refuse(&reader->lines, "links of more than %u kinds",
                                TOPOLOGY_CLASSES_MAX);
    }
    *link_class = topology->link_count++;
    topology->links[*link_class] = *link;
    return true;
}

static bool read_link(struct reader *reader)
{
    const struct text_lines *const lines = &reader->lines;
    struct topology_link link = {.rate_given = false};
    struct edge edge;
    for (uint32_t i = 0; i < 2; i++) {
        if (!find(reader, lines->words[1 + i], &edge.ends[i])) {
            return false;
        }
        if (reader->vertices[edge.ends[i]].degree++ == TOPOLOGY_DEGREE_MAX) {
            return text_line_refuse(lines, "%.*s has %u ports already, which is the most",
                                    TEXT_WORD(lines->words[1 + i]), TOPOLOGY_DEGREE_MAX);
        }
    }
    if (edge.ends[0] == edge.ends[1]) {
        return text_line_refuse(lines, "%.*s is linked with itself", TEXT_WORD(lines->words[1]));
    }
    if (reader->edge_count == TOPOLOGY_PORTS_MAX / 2) {
        return text_line_refuse(lines, "there are %u links already, which is the most",
                                TOPOLOGY_PORTS_MAX / 2);
    }
    if (lines->count > 3 &&
        !topology_read_link(&link, lines->words[3], lines->count > 4 ? &lines->words[4] : NULL)) {
        return text_line_refuse(lines, TOPOLOGY_LINK_GRAMMAR);
    }
    if (!classify(reader, &link, &edge.link_class)) {
        return false;
    }
    reader->edges[reader->edge_count++] = edge;
    return true;
}

static bool read_route(struct reader *reader)
{
    const struct text_lines *const lines = &reader->lines;
    struct route route = {.to = NONE, .line = lines->number};
    uint64_t port = 0;
    if (!find(reader, lines->words[1], &route.at) ||
        !find(reader, lines->words[2], &route.destination)) {
        return false;
    }
    if (!reader->vertices[route.at].is_switch || reader->vertices[route.destination].is_switch) {
        return text_line_refuse(lines, "a route is one of a switch to a node");
    }
    if (!text_word_number(lines->words[3], TOPOLOGY_DEGREE_MAX, &port) &&
        !find(reader, lines->words[3], &route.to)) {
        return false;
    }
    route.port = (uint32_t)port;
    reader->routes[reader->route_count++] = route;
    return true;
}

static const struct statement {
    const char *name;
    uint32_t least, most; /* Words. */
    bool (*read)(struct reader *reader);
    const char *grammar;
} statements[] = {
    {"node", 2, 2, read_vertex, "node NAME"},
    {"switch", 2, 2, read_vertex, "switch NAME"},
    {"link", 3, 5, read_link, "link NAME NAME [RATE_GBPS [LATENCY_NS]]"},
    {"route", 4, 4, read_route, "route SWITCH NODE PORT or route SWITCH NODE NEIGHBOUR"},
};

static bool read_line(struct reader *reader)
{
    const struct text_lines *const lines = &reader->lines;
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        const struct statement *const statement = &statements[i];
        if (text_word_is(lines->words[0], statement->name)) {
            return lines->count < statement->least || lines->count > statement->most
                       ? text_line_refuse(lines, "this is not %s", statement->grammar)
                       : statement->read(reader);
        }
    }
    return text_line_refuse(lines, "\"%.*s\" is not node, switch, link or route",
                            TEXT_WORD(lines->words[0]));
}

/* -- The network --------------------------------------------------------------------------------*/

static uint32_t vertex_of(const struct reader *reader, uint32_t index)
{
    const struct vertex *const vertex = &reader->vertices[index];
    return vertex->is_switch ? reader->nodes + vertex->number : vertex->number;
}

/* The ports of a vertex are numbered in the order of the links. `degree` counts them again. */
static void join(struct reader *reader)
{
    struct topology *const topology = reader->topology;
    topology_reserve(topology, reader->nodes, reader->switches, 2 * reader->edge_count);
    for (uint32_t i = 0; i < reader->nodes + reader->switches; i++) {
        topology->first_port[vertex_of(reader, i) + 1] = reader->vertices[i].degree;
        reader->vertices[i].degree = 0;
    }
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        topology_set_degree(topology, vertex, topology->first_port[vertex + 1]);
    }
    for (uint32_t i = 0; i < reader->edge_count; i++) {
        struct topology_end ends[2];
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t index = reader->edges[i].ends[j];
            ends[j] =
                (struct topology_end){vertex_of(reader, index), reader->vertices[index].degree++};
        }
        topology_join(topology, ends[0], ends[1], reader->edges[i].link_class);
    }
}

/* -- Routes -------------------------------------------------------------------------------------*/

/* Whether a route means this port. */
static bool route_means(const struct reader *reader, const struct route *route, uint32_t port)
{
    const uint32_t peer =
        topology_port_of(reader->topology, vertex_of(reader, route->at), port)->peer;
    return route->to == NONE ? port == route->port : peer == vertex_of(reader, route->to);
}

/* Writes the detours of a route to `detours`, or counts them if it is NULL. False: there is no such
 * port, or one leads to a node that is not the destination. */
static bool add_detours(struct reader *reader, const struct route *route,
                        struct topology_detour *detours, uint32_t *count)
{
    const uint32_t at = vertex_of(reader, route->at);
    const uint32_t destination = vertex_of(reader, route->destination);
    const uint32_t before = *count;
    reader->lines.number = route->line;
    for (uint32_t port = 0; port < topology_degree(reader->topology, at); port++) {
        if (!route_means(reader, route, port)) {
            continue;
        }
        const uint32_t peer = topology_port_of(reader->topology, at, port)->peer;
        if (peer < reader->nodes && peer != destination) {
            return text_line_refuse(&reader->lines, "this route leads to another node, and nodes "
                                                    "do not forward");
        }
        if (detours != NULL) {
            detours[*count] = (struct topology_detour){at, destination, port, route->line};
        }
        if ((*count)++ == TOPOLOGY_DETOURS_MAX) {
            return text_line_refuse(&reader->lines, "the routes name more than %u ports",
                                    TOPOLOGY_DETOURS_MAX);
        }
    }
    return *count > before ||
           text_line_refuse(&reader->lines, route->to == NONE ? "the switch has no such port"
                                                              : "the two are not linked");
}

static int order_of(uint32_t one, uint32_t other)
{
    return (one > other) - (one < other);
}

static int compare_detours(const void *left, const void *right)
{
    const struct topology_detour *const one = left, *const other = right;
    const int by_destination = order_of(one->destination, other->destination);
    const int by_vertex = order_of(one->vertex, other->vertex);
    const int by_port = order_of(one->port, other->port);
    return by_destination != 0 ? by_destination
           : by_vertex != 0    ? by_vertex
           : by_port != 0      ? by_port
                               : order_of(one->line, other->line);
}

static bool sort_detours(struct reader *reader, struct topology_detour *detours, uint32_t count)
{
    if (count > 1) {
        qsort(detours, count, sizeof(detours[0]), compare_detours);
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct topology_detour *const one = &detours[i - 1], *const other = &detours[i];
        if (one->destination == other->destination && one->vertex == other->vertex &&
            one->port == other->port) {
            reader->lines.number = other->line;
            return text_line_refuse(&reader->lines, "line %u gives this port already", one->line);
        }
    }
    return true;
}

static bool collect_detours(struct reader *reader, struct topology_detour **detours,
                            uint32_t *count)
{
    uint32_t needed = 0;
    for (uint32_t i = 0; i < reader->route_count; i++) {
        if (!add_detours(reader, &reader->routes[i], NULL, &needed)) {
            return false;
        }
    }
    *detours = calloc(needed + 1, sizeof((*detours)[0]));
    CHECK(*detours != NULL);
    for (uint32_t i = 0; i < reader->route_count; i++) {
        CHECK(add_detours(reader, &reader->routes[i], *detours, count));
    }
    return sort_detours(reader, *detours, *count);
}

/* -- All together -------------------------------------------------------------------------------*/

static void *take(size_t count, size_t bytes)
{
    void *const memory = calloc(count, bytes);
    CHECK(memory != NULL);
    return memory;
}

static void reader_init(struct reader *reader, struct topology *topology, const char *text,
                        size_t bytes, char *error, size_t error_bytes)
{
    const size_t most = bytes / STATEMENT_BYTES_LEAST + 1;
    *reader = (struct reader){.topology = topology, .hash_mask = 15};
    while (reader->hash_mask < 2 * most) {
        reader->hash_mask = 2 * reader->hash_mask + 1;
    }
    text_lines_init(&reader->lines, text, bytes, error, error_bytes);
    reader->vertices = take(most, sizeof(reader->vertices[0]));
    reader->edges = take(most, sizeof(reader->edges[0]));
    reader->routes = take(most, sizeof(reader->routes[0]));
    reader->hash = take((size_t)reader->hash_mask + 1, sizeof(reader->hash[0]));
}

static void reader_close(struct reader *reader)
{
    free(reader->vertices);
    free(reader->edges);
    free(reader->routes);
    free(reader->hash);
}

static bool build(struct reader *reader, char *error, size_t error_bytes)
{
    struct topology_detour *detours = NULL;
    uint32_t count = 0;
    if (!topology_fits(reader->nodes, 0, error, error_bytes)) {
        return false;
    }
    join(reader);
    struct text_word *const names =
        take((size_t)reader->nodes + reader->switches, sizeof(names[0]));
    for (uint32_t i = 0; i < reader->nodes + reader->switches; i++) {
        names[vertex_of(reader, i)] = reader->vertices[i].name;
    }
    const bool good =
        collect_detours(reader, &detours, &count) &&
        topology_table_build(reader->topology, names, detours, count, error, error_bytes);
    free(names);
    free(detours);
    return good;
}

bool topology_parse(struct topology *topology, const char *text, size_t bytes, char *error,
                    size_t error_bytes)
{
    struct reader reader;
    memset(topology, 0, sizeof(*topology));
    if (bytes > TOPOLOGY_TEXT_MAX) {
        return text_refuse(error, error_bytes, "the text has more than %u bytes",
                           TOPOLOGY_TEXT_MAX);
    }
    topology->kind = TOPOLOGY_TEXT;
    topology->link_count = 1;
    reader_init(&reader, topology, text, bytes, error, error_bytes);
    bool good = true;
    while (good && text_lines_next(&reader.lines)) {
        good = read_line(&reader);
    }
    good = good && build(&reader, error, error_bytes);
    reader_close(&reader);
    if (good) {
        topology_set_defaults(topology);
    } else {
        topology_close(topology);
    }
    return good;
}
