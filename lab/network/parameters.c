/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of a network, and what they make of it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/network/network.h"

#define PS_PER_NS 1e3

static const char *const others[] = {
    "Karol: M. J. Karol, M. G. Hluchyj, S. P. Morgan, Input Versus Output Queueing on a "
    "Space-Division Packet Switch, IEEE Transactions on Communications 35(12), 1987",
    "Kleinrock: L. Kleinrock, Queueing Systems, volume I: Theory, Wiley, 1975",
    NULL,
};

const struct lab_document network_document = {
    .title = "networks of switches; Karol, Hluchyj, Morgan (1987)",
    .sections = "table",
    .others = others,
    .note =
        "No document describes this network: it is built of our own parts. Two textbook results "
        "are compared with it, and the rest are predictions.",
};

const struct lab_parameter network_parameters[NETWORK_PARAMETER_COUNT] = {
    LAB_WORD(
        "topology", "star fat-tree torus dragonfly", "OC",
        "one switch; a fat tree of three levels; a torus of three dimensions, two nodes a switch; "
        "a dragonfly with as many nodes and global links a router, and twice as many routers a "
        "group"),
    LAB_WHOLE("nodes", "", 64, 2, TOPOLOGY_NODES_MAX, "OC",
              "end nodes: the smallest network of its kind that has them"),
    LAB_REAL("rate", "Gb/s", 100, 0.1, 1e4, "OC", "rate of a wire"),
    LAB_REAL("link", "ns", 500, 0, 1e6, "OC", "latency of a wire"),
    LAB_REAL("switch", "ns", 200, 0, 1e6, "OC", "what a switch takes, from head to head"),
    LAB_WORD("switching", "cut-through store-and-forward", "OC",
             "what of a packet has to be at a switch before it may go on"),
    LAB_WORD("buffering", "outputs inputs", "Karol", "where switches queue"),
    LAB_WHOLE("buffer", "B", 65536, 0, 1e9, "OC", "room of an output or input; 0: no bound"),
    LAB_WORD("arbiter", "oldest round-robin fixed", "OC",
             "switches that queue at inputs: whose turn it is"),
    LAB_WORD("pattern", "others all opposite", "OC",
             "destinations: any other node; any node; the one half of all numbers further"),
    LAB_REAL("load", "", 0.5, 1e-6, 1, "OC", "share of a wire's rate that its node offers"),
    LAB_REAL("low_load", "", 0.01, 1e-6, 1, "OC", "a load at which packets hardly meet"),
    LAB_WORD("arrivals", "random regular", "OC", "when packets come: as by Poisson; equal gaps"),
    LAB_WORD("paths", "all one", "OC", "which of several shortest paths packets take"),
    LAB_WHOLE("least", "B", 512, 8, 65528, "OC", "payload of the smallest packet, in 8 bytes"),
    LAB_WHOLE("most", "B", 512, 8, 65528, "OC", "payload of the largest packet, in 8 bytes"),
    LAB_WHOLE("frame", "B", 38, 0, 1024, "OC: Ethernet's, preamble and gap included",
              "what a packet takes of a wire beside its payload"),
    LAB_WORD("payload", "real none", "OC", "whether payloads are written, carried and compared"),
    LAB_WORD("crc", "checked ignored", "OC", "whether nodes discard what a wire has spoilt"),
    LAB_REAL("bit_errors", "", 0, 0, 1e-3, "OC", "share of bits that wires flip"),
    LAB_REAL("duration", "us", 200, 0.1, 1e6, "OC", "time for which nodes make packets"),
    LAB_REAL("warm", "us", 50, 0, 1e6, "OC", "what comes before is not measured"),
};

static uint32_t whole(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value(run, name);
}

static uint64_t ns(struct lab_run *run, const char *name)
{
    return (uint64_t)llround(lab_value(run, name) * PS_PER_NS);
}

/* The words of the parameter "topology", in their order. */
enum kind {
    STAR,
    FAT_TREE,
    TORUS,
    DRAGONFLY,
};

/* The nodes of the networks of a kind, by size: the switch's ports; a switch's ports, in a tree of
 * three levels; the length of a ring; a router's nodes. */
static uint64_t nodes_of(enum kind kind, uint64_t size)
{
    switch (kind) {
    case STAR: return size;
    case FAT_TREE: return size * size * size / 4;
    case TORUS: return 2 * size * size * size;
    case DRAGONFLY: return 2 * size * size * (2 * size * size + 1);
    }
    UNREACHABLE("a topology outside its words");
}

/* Describes the smallest network of the kind that has `nodes` nodes or more. */
static void describe(enum kind kind, uint64_t nodes, char *text, size_t bytes)
{
    uint32_t size = kind == FAT_TREE ? 4 : 1;
    while (nodes_of(kind, size) < nodes || (kind == TORUS && size < 2)) {
        size += kind == FAT_TREE ? 2 : 1;
    }
    switch (kind) {
    case STAR: (void)snprintf(text, bytes, "star:%u", size); return;
    case FAT_TREE: (void)snprintf(text, bytes, "fat-tree:%u", size); return;
    case TORUS: (void)snprintf(text, bytes, "torus:%ux%ux%u:2", size, size, size); return;
    case DRAGONFLY: (void)snprintf(text, bytes, "dragonfly:%u,%u,%u", size, 2 * size, size); return;
    }
    UNREACHABLE("a topology outside its words");
}

/* Text holds instead of these parameters, so that nobody sets them in vain. */
static const struct {
    enum lab_text_kind kind;
    const char *name;
} replaced[] = {
    {LAB_TOPOLOGY, "topology"}, {LAB_TOPOLOGY, "nodes"},   {LAB_PATTERN, "pattern"},
    {LAB_TRAFFIC, "pattern"},   {LAB_TRAFFIC, "load"},     {LAB_TRAFFIC, "arrivals"},
    {LAB_TRAFFIC, "least"},     {LAB_TRAFFIC, "duration"}, {LAB_TRAFFIC, "warm"},
};

static const char *const text_names[LAB_TEXTS] = {
    [LAB_TOPOLOGY] = "topology", [LAB_PATTERN] = "pattern", [LAB_TRAFFIC] = "traffic"};

static void judge_settings(struct lab_run *run)
{
    for (uint32_t i = 0; i < COUNT_OF(replaced); i++) {
        if (run->texts[replaced[i].kind].name != NULL && lab_is_set(run, replaced[i].name)) {
            lab_fail(run, "the %s that is given as text says what %s is: it cannot be set as well",
                     text_names[replaced[i].kind], replaced[i].name);
        }
    }
    if (run->texts[LAB_PATTERN].name != NULL && run->texts[LAB_TRAFFIC].name != NULL) {
        lab_fail(run,
                 "a trace of traffic says where packets go: a pattern cannot be given as well");
    }
}

struct network_config network_config_of(struct lab_run *run)
{
    judge_settings(run);
    struct network_config config = {
        .wire = {.byte_fs = (uint64_t)llround(8e6 / lab_value(run, "rate")),
                 .latency_ps = ns(run, "link")},
        .switching = (enum sim_switching)lab_word(run, "switching"),
        .delay_ps = ns(run, "switch"),
        .buffer_bytes = whole(run, "buffer"),
        .buffering = (enum network_buffering)lab_word(run, "buffering"),
        .arbiter = (enum network_arbiter)lab_word(run, "arbiter"),
        .pattern = (enum network_pattern)lab_word(run, "pattern"),
        .load = lab_value(run, "load"),
        .regular = lab_word(run, "arrivals") != 0,
        .spread = lab_word(run, "paths") == 0,
        .least = whole(run, "least") / 8,
        .most = whole(run, "most") / 8,
        .frame_bytes = whole(run, "frame"),
        .real_bytes = lab_word(run, "payload") == 0,
        .crc_ignored = lab_word(run, "crc") != 0,
        .bit_errors = lab_value(run, "bit_errors"),
        .warm_ps = lab_ps(run, "warm"),
        .stop_ps = lab_ps(run, "duration"),
    };
    if (run->texts[LAB_TRAFFIC].name != NULL) {
        config.least = config.most; /* The length of a message says how long packets are. */
    }
    memcpy(config.texts, run->texts, sizeof(config.texts));
    describe((enum kind)lab_word(run, "topology"), whole(run, "nodes"), config.topology,
             sizeof(config.topology));
    return config;
}
