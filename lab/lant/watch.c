/* SPDX-License-Identifier: BSD-2-Clause
 *
 * watch - see watch.h.
 */
#include "lab/lant/watch.h"

#include <stdlib.h>

#include "base/bytes.h"

static const char *const level_names[LANT_LEVEL_COUNT] = {
    [LANT_LEVEL_SHM] = "loads and stores",
    [LANT_LEVEL_RDMA] = "packets of the DMA engine",
    [LANT_LEVEL_CAM] = "inbound CAM",
};

static const char *const type_names[LANT_TYPE_COUNT] = {
    [LANT_AR] = "AR",
    [LANT_AW] = "AW",
    [LANT_R] = "R",
    [LANT_B] = "B",
    [LANT_RDMA_WRITE] = "RDMA_WRITE",
    [LANT_RDMA_WRITE_REGISTER] = "RDMA_WRITE_REGISTER",
    [LANT_RDMA_UNREGISTERED] = "RDMA_UNREGISTERED",
    [LANT_RDMA_ACK] = "RDMA_ACK",
    [LANT_COMPLETION_NOTIFICATION] = "COMPLETION_NOTIFICATION",
    [LANT_ERROR_REPORT] = "ERROR_REPORT",
    [LANT_ATOMIC] = "ATOMIC",
};

struct lant_watch *lant_watch_open(struct sim *sim, struct sim_trace *trace,
                                   struct sim_capture *capture, uint32_t nodes)
{
    if (trace == NULL && capture == NULL) {
        return NULL;
    }
    struct lant_watch *watch = calloc(1, sizeof(*watch));
    CHECK(watch != NULL);
    *watch = (struct lant_watch){.sim = sim, .trace = trace, .capture = capture};
    if (trace == NULL) {
        return watch;
    }
    watch->nodes = nodes < LANT_WATCH_NODES_MAX ? nodes : LANT_WATCH_NODES_MAX;
    for (uint32_t i = 0; i < watch->nodes; i++) {
        watch->tracks[i].output = sim_trace_track(trace, "node", (int)i, "output", 0);
        for (uint32_t k = 0; k < LANT_LEVEL_COUNT; k++) {
            watch->tracks[i].levels[k] = sim_trace_track(trace, "node", (int)i, level_names[k], 11);
        }
    }
    return watch;
}

void lant_watch_close(struct lant_watch *watch)
{
    free(watch);
}

void lant_watch_sent(struct lant_watch *watch, uint32_t node, const struct lant_header *header,
                     uint64_t begin_ps, uint64_t end_ps)
{
    if (watch != NULL && node < watch->nodes) {
        sim_trace_span(watch->trace, watch->tracks[node].output, type_names[header->type],
                       header->destination, begin_ps, end_ps);
    }
}

void lant_watch_levels(struct lant_watch *watch, uint32_t node,
                       const uint32_t levels[LANT_LEVEL_COUNT])
{
    if (watch == NULL || node >= watch->nodes) {
        return;
    }
    for (uint32_t k = 0; k < LANT_LEVEL_COUNT; k++) {
        if (levels[k] != watch->tracks[node].now[k]) {
            watch->tracks[node].now[k] = levels[k];
            sim_trace_value(watch->trace, watch->tracks[node].levels[k], watch->sim->now_ps,
                            levels[k]);
        }
    }
}

void lant_watch_came(struct lant_watch *watch, const struct lant_frame *frame)
{
    uint8_t bytes[LANT_PACKET_FLITS_MAX * LANT_FLIT_BYTES];
    if (watch == NULL || watch->capture == NULL) {
        return;
    }
    for (uint32_t i = 0; i < frame->count; i++) {
        store_be64(bytes + (size_t)i * LANT_FLIT_BYTES, frame->flits[i]);
    }
    sim_capture_packet(watch->capture, watch->sim->now_ps, bytes,
                       (size_t)frame->count * LANT_FLIT_BYTES);
}
