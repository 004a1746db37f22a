/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pattern - the node to which a packet goes.
 *
 * Purpose    The patterns by which networks are usually loaded, and any other as a flow matrix.
 * Inputs     A description such as "hotspot:0.2" (pattern_open), or lines "FROM TO SHARE"
 *            (pattern_parse); docs/topologies.md has both grammars. Files are the caller's.
 * Outputs    A destination for each packet of a node.
 * Ownership  The pattern owns its arrays until pattern_close.
 * Threads    After it was opened it does not change; the generator is the caller's.
 * Time       A destination costs the same for all, but for a matrix the logarithm of its row.
 * Units      Nodes by number, from 0 on.
 * Limits     TOPOLOGY_NODES_MAX nodes, PATTERN_FLOWS_MAX flows of a matrix. A wrong description or
 *            text is refused with an error that says what is wrong.
 * Source     Dally, Towles, "Principles and Practices of Interconnection Networks" (2004), table
 *            3.1: the permutations, tornado and neighbour among them.
 */
#ifndef SIM_PATTERN_H
#define SIM_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/prng.h"

#define PATTERN_FLOWS_MAX (1u << 24)
#define PATTERN_TEXT_MAX  (1u << 28) /* Bytes. */

/* Stands for a destination: the node sends nothing. */
#define PATTERN_SILENT UINT32_MAX

enum pattern_kind {
    PATTERN_UNIFORM, /* Each of the others is as likely. */
    PATTERN_HOTSPOT, /* A share goes to one node, and the rest is uniform. */
    PATTERN_MAP,     /* Each node has one destination. */
    PATTERN_MATRIX,  /* Each node has some destinations, with shares. */
};

struct pattern_flow {
    uint32_t to;
    uint64_t until; /* The shares of the row up to and with this one. */
};

struct pattern {
    enum pattern_kind kind;
    uint32_t nodes;
    uint32_t hot, hot_thousandths; /* Hotspot. */
    uint32_t *map;                 /* Map: by node; a node that is mapped to itself is silent. */
    uint32_t *first_flow;          /* Matrix: the row of node n ends before first_flow[n + 1]. */
    struct pattern_flow *flows;    /* Ascending by destination in a row. */
    uint64_t most_load;            /* Matrix: the shares of the row that has most. */
};

/* Whether a text begins as a description does: with the name of a pattern. */
bool pattern_is_named(const char *text);
#define PATTERN_NAMES                                                                              \
    "uniform, permutation, transpose, bit-reverse, bit-complement, shuffle, tornado[:AxB], "       \
    "neighbour[:AxB] or hotspot:SHARE"

/* Opens one of uniform, permutation, transpose, bit-reverse, bit-complement, shuffle, tornado,
 * neighbour, hotspot for 2 nodes or more. Only "permutation" draws from `prng`. False: nothing is
 * open, and `error` says what is wrong. Aborts without memory. */
MUST_USE bool pattern_open(struct pattern *pattern, const char *description, uint32_t nodes,
                           struct prng *prng, char *error, size_t error_bytes);
/* The same for a flow matrix of `bytes` of text, which may go away afterwards. */
MUST_USE bool pattern_parse(struct pattern *pattern, const char *text, size_t bytes, uint32_t nodes,
                            char *error, size_t error_bytes);
void pattern_close(struct pattern *pattern);

/* Where the next packet of `self` goes: never to itself, but perhaps nowhere, PATTERN_SILENT. */
uint32_t pattern_destination(const struct pattern *pattern, struct prng *prng, uint32_t self);

/* How much of the full load a node offers: in a matrix its row against the largest row; elsewhere
 * 1, or 0 if it is silent. */
double pattern_load(const struct pattern *pattern, uint32_t self);

/* Its memory, beside the struct itself. */
size_t pattern_bytes(const struct pattern *pattern);

#endif
