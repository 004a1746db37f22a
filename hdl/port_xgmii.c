/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A port whose signals are XGMII's: the MAC is the design's own, and the line is in the signals.
 * Ready, gaps and pauses hold nothing back: who speaks XGMII hears pauses as frames.
 */
#include <string.h>

#include "hdl/port_internal.h"

static const enum hdl_rule rules[XGMII_EVENTS] = {
    [XGMII_BAD_LANE] = HDL_START_LANE,   [XGMII_BAD_GAP] = HDL_GAP,
    [XGMII_BAD_PREAMBLE] = HDL_PREAMBLE, [XGMII_BAD_OCTET] = HDL_ERROR,
    [XGMII_BAD_END] = HDL_TERMINATE,     [XGMII_BAD_SHORT] = HDL_RUNT,
    [XGMII_BAD_LONG] = HDL_OVERSIZE,     [XGMII_BAD_FCS] = HDL_FCS,
    [XGMII_BAD_STRAY] = HDL_STRAY};

void port_xgmii_init(struct hdl_port *port)
{
    xgmii_decoder_init(&port->decoder, port->config.frame_bytes + XGMII_FCS_OCTETS);
    xgmii_encoder_init(&port->encoder);
}

/* -- Of the design ------------------------------------------------------------------------------*/

/* Nothing holds a design back that speaks XGMII: without room the frame is refused. */
static void begun(struct hdl_port *port)
{
    port->within = true;
    port->begun++;
    port->spoilt = queued(&port->out) == port->config.frames;
    port->decoder.spoilt |= port->spoilt;
    port->decoder.frame = data_at(port, &port->out, port->out.end);
    port->counters.refused += port->spoilt;
}

/* Terminate stands in the lane behind the last octet. */
static void whole(struct hdl_port *port, uint64_t now_ps, uint32_t lane)
{
    const uint32_t bytes = port->decoder.whole_octets - XGMII_FCS_OCTETS;
    *slot_at(port, &port->out, port->out.end) =
        (struct slot){.at_ps = now_ps + line_ps(port, lane), .bytes = bytes};
    port->out.end++;
    port->counters.sent_frames++;
    port->counters.sent_bytes += bytes;
}

static void happened(struct hdl_port *port, enum xgmii_event event, uint64_t now_ps, uint32_t lane)
{
    if (event == XGMII_BEGUN) {
        begun(port);
    } else if (event == XGMII_WHOLE) {
        whole(port, now_ps, lane);
        port->within = false;
    } else if (event == XGMII_DROPPED) {
        port->counters.bad += !port->spoilt;
        port->within = false;
    } else {
        port_broken(port, rules[event], now_ps);
    }
}

static void edge_of_design(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in)
{
    struct xgmii_word word;
    struct xgmii_events events;
    memcpy(word.data, in->s_data, sizeof(word.data));
    memcpy(&word.control, in->s_keep, sizeof(word.control));
    const bool was_within = port->within;
    xgmii_decode(&port->decoder, &word, &events);
    for (uint32_t i = 0; i < events.count; i++) {
        happened(port, (enum xgmii_event)events.what[i], now_ps, events.lane[i]);
    }
    port->counters.beats_sent += was_within || port->within;
}

/* -- To the design ------------------------------------------------------------------------------*/

static void edge_to_design(struct hdl_port *port, uint64_t now_ps, struct hdl_out *out)
{
    const struct slot *slot = slot_at(port, &port->in, port->in.first);
    const bool due = queued(&port->in) > 0 && slot->at_ps < now_ps;
    const struct xgmii_frame frame = {
        .data = data_at(port, &port->in, port->in.first), .octets = slot->bytes, .bad = slot->bad};
    struct xgmii_word word;
    const bool ended = xgmii_encode(&port->encoder, port->decoder.link, due ? &frame : NULL, &word);
    const bool carries = ended || port->encoder.busy;
    memcpy(out->m_data, word.data, sizeof(word.data));
    out->m_keep[0] = word.control;
    out->received_frame = carries ? (uint32_t)port->in.first + 1 : 0;
    port->counters.beats_received += carries;
    if (ended) {
        port->counters.received_frames++;
        port->counters.received_bytes += slot->bytes;
        port->in.first++;
    }
}

/* -- The edge -----------------------------------------------------------------------------------*/

static void edge_in_reset(struct hdl_port *port)
{
    port->counters.lost_in_reset[0] += port->within;
    port->counters.lost_in_reset[1] += port->encoder.busy;
    port->in.first += port->encoder.busy;
    port->within = false;
    port_xgmii_init(port);
}

void port_xgmii_edge(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in,
                     struct hdl_out *out)
{
    if (in->reset) {
        edge_in_reset(port);
    } else {
        edge_of_design(port, now_ps, in);
    }
    edge_to_design(port, in->reset ? 0 : now_ps, out);
    out->sent_frame = port->within ? (uint32_t)port->out.end + 1 : 0;
    out->link_up = port->decoder.link == XGMII_LINK_GOOD;
}
