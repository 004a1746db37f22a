/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "lab/forth/experiments.h"

#define PACKETS_A_PORT 512u
#define QWORDS_LEAST   1u
#define QWORDS_MOST    62u

static void assemble(struct forth_yard *yard)
{
    struct lab_run *run = yard->run;
    const uint32_t nodes = yard->count;
    forth_fabric_open(&yard->fabric, yard->sim, forth_packets(run, nodes, PACKETS_A_PORT * nodes),
                      QWORDS_MOST);
    const struct crossbar_config config = forth_crossbar_config(run, nodes);
    crossbar_open(&yard->crossbar, &yard->fabric, &config);
    yard->stations = calloc(nodes, sizeof(yard->stations[0]));
    yard->up = calloc(nodes, sizeof(yard->up[0]));
    yard->down = calloc(nodes, sizeof(yard->down[0]));
    CHECK(yard->stations != NULL && yard->up != NULL && yard->down != NULL);
    for (uint32_t i = 0; i < nodes; i++) {
        forth_link_open(&yard->up[i], &yard->fabric, crossbar_end(&yard->crossbar, i), run, i + 1,
                        1, 2 * i);
        forth_link_open(&yard->down[i], &yard->fabric, &yard->stations[i].end, run, 0, 1,
                        2 * i + 1);
        crossbar_attach(&yard->crossbar, i, &yard->down[i]);
    }
}

static void add_tracks(struct forth_yard *yard, struct sim_trace *trace)
{
    for (uint32_t i = 0; i < yard->count; i++) {
        yard->up[i].track = sim_trace_track(trace, "node", (int)i, "link out", 0);
        yard->down[i].track = sim_trace_track(trace, "switch output", (int)i, "link", 0);
    }
    crossbar_trace(&yard->crossbar, trace);
}

void forth_yard_open(struct forth_yard *yard, struct lab_run *run, uint32_t nodes)
{
    *yard = (struct forth_yard){.run = run, .count = nodes, .sim = &yard->own};
    struct sim_trace *trace;
    struct sim_capture *capture;
    lab_world_begin(run, yard->sim, &trace, &capture, PCAPNG_LINK_FORTH);
    assemble(yard);
    yard->fabric.trace = trace;
    yard->fabric.capture = capture;
    if (trace != NULL) {
        add_tracks(yard, trace);
    }
}

void forth_yard_open_in(struct forth_yard *yard, struct lab_run *run, struct sim *sim,
                        uint32_t nodes)
{
    *yard = (struct forth_yard){.run = run, .count = nodes, .sim = sim};
    assemble(yard);
}

struct station_config forth_station_config(struct lab_run *run, uint32_t index, uint32_t nodes)
{
    return (struct station_config){
        .index = index,
        .nodes = nodes,
        .load = 1,
        .only = -1,
        .least = QWORDS_LEAST,
        .most = QWORDS_MOST,
        .packets = UINT64_MAX,
        .crosspoint_words = forth_window_words(run, (uint32_t)lab_value(run, "crosspoint")),
        .crc_ignored = lab_word(run, "crc") != 0,
        .credit = forth_costs_of(run, forth_account_of(run)).credit,
        .refresh_ps = forth_refresh_ps(run),
    };
}

void forth_yard_station(struct forth_yard *yard, const struct station_config *config)
{
    station_open(&yard->stations[config->index], &yard->fabric, &yard->up[config->index], config,
                 yard->run->seed * 1009 + config->index);
}

static uint64_t packets_spoilt(const struct forth_yard *yard)
{
    uint64_t spoilt = 0;
    for (uint32_t i = 0; i < yard->count; i++) {
        spoilt += yard->up[i].bad_headers + yard->up[i].bad_sops + yard->up[i].bad_bodies;
        spoilt += yard->down[i].bad_headers + yard->down[i].bad_sops + yard->down[i].bad_bodies;
    }
    return spoilt;
}

void forth_yard_check(const struct forth_yard *yard)
{
    uint64_t missing = 0;
    for (uint32_t i = 0; i < yard->count; i++) {
        for (uint32_t from = 0; from < yard->count; from++) {
            const struct sim_sink *sink = &yard->stations[i].sinks[from];
            missing += sink->missing;
            if (sink->wrong_bytes + sink->earlier > 0) {
                lab_fail(yard->run, "port %u from %u: %llu wrong, %llu again or out of order", i,
                         from, (unsigned long long)sink->wrong_bytes,
                         (unsigned long long)sink->earlier);
            }
        }
    }
    if (missing > packets_spoilt(yard)) {
        lab_fail(yard->run, "%llu packets are missing, links spoilt only %llu",
                 (unsigned long long)missing, (unsigned long long)packets_spoilt(yard));
    }
}

static void tell_memory(const struct forth_yard *yard)
{
    const uint64_t count = yard->count;
    const uint64_t station_bytes =
        sizeof(yard->stations[0]) + sim_pool_bytes(&yard->stations[0].waiting);
    lab_add_memory(yard->run, "station", count, count * station_bytes);
    lab_add_memory(yard->run, "link", 2 * count, 2 * count * sizeof(yard->up[0]));
    forth_tell_fabric(yard->run, &yard->fabric);
    forth_tell_switch(yard->run, &yard->crossbar);
}

void forth_yard_close(struct forth_yard *yard)
{
    tell_memory(yard);
    if (yard->sim == &yard->own) {
        lab_world_end(yard->run, yard->sim, yard->fabric.trace, yard->fabric.capture);
    }
    for (uint32_t i = 0; i < yard->count; i++) {
        station_close(&yard->stations[i]);
    }
    crossbar_close(&yard->crossbar);
    forth_fabric_close(&yard->fabric);
    free(yard->stations);
    free(yard->up);
    free(yard->down);
}
