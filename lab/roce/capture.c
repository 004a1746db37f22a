/* SPDX-License-Identifier: BSD-2-Clause
 *
 * For people: packets as a real line would carry them, into a capture; and a trace.
 */
#include <string.h>

#include "lab/roce/internal.h"
#include "wire/roce_frame.h"

void roce_capture_flight(const struct roce_flight *flight)
{
    const struct roce *roce = flight->roce;
    if (roce->capture == NULL) {
        return;
    }
    uint8_t bytes[INET_HEADERS_BYTES_MAX + BLOCK_PACKET_BYTES_MAX], bth[BLOCK_PACKET_BYTES_MAX];
    const struct inet_flow flow = roce_flow(flight->source.bytes, flight->destination.bytes);
    const size_t count =
        roce_frame_join(&flow, flight->headers, flight->headers_bytes, flight->payload,
                        flight->data_bytes + flight->pad_bytes, bth);
    CHECK(count != 0);
    const size_t before = inet_encode(bytes, &flow, 0, bth, count);
    memcpy(bytes + before, bth, count);
    sim_capture_packet(roce->capture, roce->sim->now_ps, bytes, before + count);
}

void roce_capture(struct roce *roce, struct sim_capture *capture)
{
    roce->capture = capture;
}

/* -- A trace ------------------------------------------------------------------------------------*/

void roce_trace(struct roce *roce, struct sim_trace *trace)
{
    roce->trace = trace;
    for (uint32_t i = 0; trace != NULL && i < roce->topology.nodes; i++) {
        if (i == SIM_TRACE_TRACKS_MAX) {
            return;
        }
        roce->nodes[i].track =
            sim_trace_track(trace, "node", (int)i, "bytes that wait before the line", 32);
    }
}

void roce_wait(struct roce_node *node, int64_t bytes)
{
    const struct roce *roce = node->roce;
    node->waiting_bytes = (uint32_t)(node->waiting_bytes + bytes);
    if (UNLIKELY(roce->trace != NULL) && node->number < SIM_TRACE_TRACKS_MAX) {
        sim_trace_value(roce->trace, node->track, roce->sim->now_ps, node->waiting_bytes);
    }
}
