/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine_say - what a machine's NICs have counted, for the person who made the run.
 */
#include <stdio.h>
#include <string.h>

#include "box/machine.h"
#include "lab/roce/roce.h"

enum {
    LINES_MAX = 8,
};

static size_t say_latency(const struct roce_node_counters *counters, char *into, size_t bytes)
{
    if (counters->followed == 0) {
        return (size_t)snprintf(into, bytes, "\n");
    }
    const double us = (double)counters->followed_ps / (double)counters->followed / 1e6;
    return (size_t)snprintf(into, bytes, "; %.3f us from post to completion, mean of %llu\n", us,
                            (unsigned long long)counters->followed);
}

static size_t say_node(const struct roce_node_counters *counters, uint32_t node, pid_t owner,
                       bool has_others, char *into, size_t bytes)
{
    const double share = (double)counters->contexts_found / (double)counters->contexts_asked;
    const size_t end = (size_t)snprintf(
        into, bytes,
        "node %u (process %d%s): %llu contexts asked for, %.1f %% on the chip, %llu read", node,
        owner, has_others ? " and others" : "", (unsigned long long)counters->contexts_asked,
        100 * share, (unsigned long long)counters->contexts_read);
    return end + say_latency(counters, into + end, bytes - end);
}

/* The node that asked for most of those that asked for fewer than `below`, or that come behind
 * `last` and asked for as many; `nodes`: none did. */
static uint32_t next_node(const struct roce *roce, uint32_t nodes, uint64_t below, uint32_t last)
{
    uint32_t best = nodes;
    uint64_t most = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        const uint64_t asked = roce_node_counters_of(roce, i).contexts_asked;
        if (asked > most && (asked < below || (asked == below && i > last))) {
            best = i;
            most = asked;
        }
    }
    return best;
}

void machine_say(const struct roce *roce, const pid_t *owners, uint32_t nics, char *into,
                 size_t bytes)
{
    const uint32_t all = roce_nodes(roce), nodes = nics < all ? nics : all;
    uint64_t below = UINT64_MAX;
    uint32_t node = 0;
    size_t end = 0;
    for (int i = 0; i < LINES_MAX; i++) {
        node = next_node(roce, nodes, below, node);
        if (node == nodes) {
            return;
        }
        const struct roce_node_counters counters = roce_node_counters_of(roce, node);
        below = counters.contexts_asked;
        end += say_node(&counters, node, owners[node], node + all < nics, into + end, bytes - end);
    }
    if (next_node(roce, nodes, below, node) != nodes) {
        snprintf(into + end, bytes - end, "and other nodes, which asked for fewer\n");
    }
}
