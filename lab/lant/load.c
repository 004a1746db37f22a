/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lant/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/lant/fabric.h"
#include "lab/network/network.h"

enum {
    PAYLOAD_FLITS = 64,
    PACKET_FLITS = 68, /* With two of the header and two of the footer. */
    FLIT_BYTES = 8,
};

#define PS_PER_US 1e6
#define PS_PER_NS 1e3

const struct lant_size lant_size_1k = {1024, {10, 10, 10}, {8, 8, 16}, 16, 1};
const struct lant_size lant_size_8k = {8192, {20, 20, 20}, {16, 16, 32}, 32, 8};
const struct lant_size lant_size_64k = {65536, {39, 41, 41}, {32, 32, 64}, 64, 64};

const char *const lant_network_names[] = {"3D torus", "fat tree", "dragonfly"};
const char *const lant_network_ids[] = {"torus", "tree", "fly"};

struct lant_network lant_network_of(const struct lant_size *size, enum lant_network_kind kind)
{
    const uint32_t half = size->radix / 2;
    switch (kind) {
    case LANT_TORUS: return lant_torus_of(size->torus[0], size->torus[1], size->torus[2]);
    case LANT_FAT_TREE: return lant_fat_tree_of(2 * half * half * half, size->radix, size->radix);
    case LANT_DRAGONFLY:
        return lant_dragonfly_of(LANT_GROUP_ROUTERS * size->globals + 1, LANT_GROUP_ROUTERS,
                                 LANT_ROUTER_HOSTS, size->globals);
    }
    UNREACHABLE("a network outside its enum");
}

/* A torus' node has its switch in the same FPGA: no MAC is between the two. */
static void describe_torus(struct lab_run *run, const struct lant_size *size, char *text,
                           size_t bytes)
{
    enum {
        NEAR_CUBE,
        POWER,
        MESH
    };
    const uint32_t word = lab_word(run, "torus");
    const uint32_t *shape = word == POWER ? size->power : size->torus;
    if (word == MESH) {
        lab_fail(run, "there are no meshes under load");
    }
    snprintf(text, bytes, "torus:%ux%ux%u@10,0/10,%.3f", shape[0], shape[1], shape[2],
             lab_value(run, "mac") * LANT_CYCLE_PS / PS_PER_NS);
}

struct lant_dragonfly lant_dragonfly_under_load(struct lab_run *run, const struct lant_size *size)
{
    static const uint32_t routers[] = {8, 16, 4}, hosts[] = {16, 8, 32};
    const uint32_t word = lab_word(run, "group");
    const uint32_t globals =
        (LANT_GROUP_ROUTERS * size->globals + routers[word] - 1) / routers[word];
    return (struct lant_dragonfly){.groups = routers[word] * globals + 1,
                                   .routers = routers[word],
                                   .hosts = hosts[word],
                                   .globals = globals};
}

static void describe_dragonfly(struct lab_run *run, const struct lant_size *size, char *text,
                               size_t bytes)
{
    const struct lant_dragonfly dragonfly = lant_dragonfly_under_load(run, size);
    snprintf(text, bytes, "dragonfly:%u,%u,%u", dragonfly.hosts, dragonfly.routers,
             dragonfly.globals);
}

static void describe(struct lab_run *run, const struct lant_size *size, enum lant_network_kind kind,
                     char *text, size_t bytes)
{
    switch (kind) {
    case LANT_TORUS: describe_torus(run, size, text, bytes); return;
    case LANT_FAT_TREE: snprintf(text, bytes, "fat-tree:%u:3", size->radix); return;
    case LANT_DRAGONFLY: describe_dragonfly(run, size, text, bytes); return;
    }
    UNREACHABLE("a network outside its enum");
}

/* The flits that are not payload, the line's own ones too, as bytes: 87, rounded up from 86.67. */
static uint32_t frame_bytes(struct lab_run *run)
{
    const double pause = lab_value(run, "mac_pause");
    const double flits = PACKET_FLITS - PAYLOAD_FLITS + lab_value(run, "mac_frame") +
                         (pause == 0 ? 0 : PACKET_FLITS / pause);
    return (uint32_t)llround(FLIT_BYTES * flits);
}

static struct network_config config_of(struct lab_run *run, const struct lant_size *size,
                                       enum lant_network_kind kind,
                                       const struct lant_traffic *traffic)
{
    struct network_config config = {
        .wire = {.byte_fs = LANT_CYCLE_PS * 1000u / FLIT_BYTES,
                 .latency_ps = LANT_CYCLE_PS * (uint64_t)lab_value(run, "mac")},
        .switching = lab_word(run, "forwards") == 0 ? SIM_CUT_THROUGH : SIM_STORE_AND_FORWARD,
        .delay_ps = LANT_CYCLE_PS * (uint64_t)lab_value(run, "switch"),
        .buffering = lab_word(run, "queues") == 0 ? NETWORK_AT_OUTPUTS : NETWORK_AT_INPUTS,
        .pattern = traffic->opposite ? NETWORK_OPPOSITE : NETWORK_OTHERS,
        .load = traffic->load,
        .spread = !traffic->one_path,
        .detours = traffic->detours,
        .least = PAYLOAD_FLITS,
        .most = PAYLOAD_FLITS,
        .frame_bytes = frame_bytes(run),
        .warm_ps = (uint64_t)llround(traffic->warm_us * PS_PER_US),
        .stop_ps = (uint64_t)llround(traffic->stop_us * PS_PER_US),
    };
    describe(run, size, kind, config.topology, sizeof(config.topology));
    snprintf(config.destinations, sizeof(config.destinations), "%s", traffic->destinations);
    return config;
}

struct lant_outcome lant_load_network(struct lab_run *run, const struct lant_size *size,
                                      enum lant_network_kind kind,
                                      const struct lant_traffic *traffic)
{
    const struct network_config config = config_of(run, size, kind, traffic);
    struct network *network = calloc(1, sizeof(*network));
    struct lant_outcome outcome = {0};
    CHECK(network != NULL);
    if (run->failure[0] == '\0' && network_open(network, run, &config)) {
        network_run(network);
        const double packet_bytes = FLIT_BYTES * PAYLOAD_FLITS + config.frame_bytes;
        outcome = (struct lant_outcome){
            .latency = sim_spread_mean(&network->latency) / LANT_CYCLE_PS,
            .carried = network_throughput(network),
            .share = (double)network->warm_bytes[0] / ((double)network->waits * packet_bytes),
        };
        network_close(network);
    }
    free(network);
    return outcome;
}
