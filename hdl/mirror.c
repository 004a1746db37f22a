/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdl/mirror.h"

#include <string.h>

#include "base/check.h"
#include "hdl/port_internal.h"

const struct hdl_port_config *hdl_mirror_config(const struct hdl_port *port)
{
    return &port->config;
}

bool hdl_mirror_next_frame(struct hdl_port *port, struct hdl_frame *frame)
{
    if (port->forwarded == port->in.end) {
        return false;
    }
    const struct slot *slot = slot_at(port, &port->in, port->forwarded);
    *frame = (struct hdl_frame){.at_ps = slot->at_ps,
                                .data = data_at(port, &port->in, port->forwarded),
                                .bytes = slot->bytes,
                                .bad = slot->bad};
    port->forwarded++;
    return true;
}

bool hdl_mirror_next_pause(struct hdl_port *port, struct hdl_pause *pause)
{
    if (port->pauses_first == port->pauses_end) {
        return false;
    }
    *pause = port->pauses[port->pauses_first++ % HDL_PAUSES_AHEAD];
    return true;
}

bool hdl_mirror_on_frame(struct hdl_port *port, const struct hdl_frame *frame)
{
    if (queued(&port->out) == port->config.frames || frame->bytes > port->config.frame_bytes ||
        frame->bad) {
        return false;
    }
    memcpy(data_at(port, &port->out, port->out.end), frame->data, frame->bytes);
    *slot_at(port, &port->out, port->out.end) =
        (struct slot){.at_ps = frame->at_ps, .bytes = frame->bytes};
    port->out.end++;
    return true;
}

void hdl_mirror_on_violation(struct hdl_port *port, const struct hdl_violation *violation)
{
    if (port->violation_count < HDL_VIOLATIONS_KEPT) {
        port->violations[port->violation_count++] = *violation;
    }
}

/* Here frames are padded and refused, there all else happens: the sums of both are the port's. */
static void add(struct hdl_counters *sum, const struct hdl_counters *now,
                const struct hdl_counters *before)
{
    uint64_t words[3][sizeof(*sum) / sizeof(uint64_t)];
    memcpy(words[0], sum, sizeof(*sum));
    memcpy(words[1], now, sizeof(*sum));
    memcpy(words[2], before, sizeof(*sum));
    for (size_t i = 0; i < COUNT_OF(words[0]); i++) {
        words[0][i] += words[1][i] - words[2][i];
    }
    memcpy(sum, words[0], sizeof(*sum));
}

bool hdl_mirror_on_counters(struct hdl_port *port, const struct hdl_counters *counters)
{
    const uint64_t taken = counters->received_frames + counters->lost_in_reset[1];
    if (taken < port->in.first || taken > port->forwarded) {
        return false;
    }
    port->in.first = taken;
    add(&port->counters, counters, &port->mirrored);
    port->mirrored = *counters;
    return true;
}
