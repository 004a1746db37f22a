/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/design/design_live.h"

#include <stdio.h>

#include "drivers/system/clock.h"

#define ANSWER_PS UINT64_C(20000000) /* A design gets this time to tell its MAC address. */
#define PS_PER_NS 1000u
#define NS_PER_MS 1000000u

static struct instant now_of(const struct design_live *live)
{
    return (struct instant){live->now_ps / PS_PER_NS};
}

bool design_live_open(struct design_live *live, const struct design_live_config *config,
                      const struct design_port_config *port, char *error, size_t error_bytes)
{
    *live = (struct design_live){.config = *config, .hold = hold_begin(config->hold_ps)};
    bridge_init(&live->bridge, port->ip);
    live->whole = port->tap != NULL;
    live->bridge.has_spoken = live->whole; /* Peers ask for its MAC address by themselves. */
    live->port = design_port_open(port, error, error_bytes);
    return live->port != NULL;
}

void design_live_close(struct design_live *live)
{
    design_port_close(live->port);
}

/* -- To the design ------------------------------------------------------------------------------*/

static void give(struct design_live *live)
{
    const struct hdl_frame frame = {
        .at_ps = live->now_ps, .data = live->bridge.frame, .bytes = live->bridge.frame_bytes};
    live->given += live->config.give(live, &frame);
}

/* May a frame go to the design now? Its MAC address is known, or it does not tell it. */
static bool knows_way(struct design_live *live, uint32_t peer_ip)
{
    if (!live->bridge.has_spoken && !live->has_asked) {
        live->has_asked = true;
        live->asked_ps = live->now_ps;
        bridge_ask(&live->bridge, peer_ip);
        give(live);
    }
    return live->bridge.has_spoken || live->now_ps - live->asked_ps >= ANSWER_PS;
}

static enum bridge_verdict come(struct design_live *live, const struct inet_datagram *datagram)
{
    return live->whole
               ? bridge_come_whole(&live->bridge, datagram->payload, datagram->payload_bytes)
               : bridge_come(&live->bridge, datagram);
}

static void take_arrival(struct design_live *live, const struct design_arrival *arrival)
{
    hold_came(&live->hold, live->now_ps);
    if (come(live, &arrival->datagram) == BRIDGE_CAME &&
        (live->config.takes == NULL || !live->config.takes(live, &arrival->datagram))) {
        if (arrival->corrupt) {
            uint8_t *payload = live->bridge.frame + (live->whole ? 0 : BRIDGE_HEADERS_BYTES);
            payload[arrival->corrupt_bit / 8] ^= (uint8_t)(1u << arrival->corrupt_bit % 8);
        }
        give(live);
    }
}

/* Two places stay free: for a question, and for an answer of the bridge. */
static void take_arrivals(struct design_live *live)
{
    while (live->now_ps > live->config.reset_ps && hdl_port_room(live->line) > 2) {
        if (!live->has_waiting && !design_port_receive(live->port, now_of(live), &live->waiting)) {
            return;
        }
        live->has_waiting = !knows_way(live, live->waiting.datagram.peer_ip);
        if (live->has_waiting) {
            return;
        }
        take_arrival(live, &live->waiting);
    }
}

/* -- Frames of the design -----------------------------------------------------------------------*/

/* `datagram` is set if it may leave. */
static enum bridge_verdict judge(struct design_live *live, const struct hdl_frame *frame,
                                 struct inet_datagram *datagram)
{
    if (!live->whole) {
        return bridge_leave(&live->bridge, frame->data, frame->bytes, datagram);
    }
    *datagram = (struct inet_datagram){.payload = frame->data, .payload_bytes = frame->bytes};
    return bridge_leave_whole(&live->bridge, frame->data, frame->bytes);
}

enum bridge_verdict design_live_leave(struct design_live *live, const struct hdl_frame *frame,
                                      uint64_t now_ps)
{
    struct inet_datagram datagram;
    live->now_ps = now_ps;
    live->taken++;
    const enum bridge_verdict verdict = judge(live, frame, &datagram);
    if (verdict == BRIDGE_LEFT || live->whole) {
        hold_left(&live->hold, now_ps);
        design_port_send(live->port, &datagram, now_of(live));
    } else if (verdict == BRIDGE_ANSWERED) {
        give(live);
    }
    return verdict;
}

/* -- A turn -------------------------------------------------------------------------------------*/

static void sleep_a_while(struct design_live *live)
{
    const struct instant before = clock_now(), end = live->config.end;
    const uint64_t left_ms = end.ns > before.ns ? (end.ns - before.ns) / NS_PER_MS + 1 : 0;
    const uint32_t grant_ms = live->config.grant_ms;
    fflush(stdout); /* The design may have printed something, too. */
    design_port_sleep(live->port, left_ms < grant_ms ? (uint32_t)left_ms : grant_ms);
    live->sleeps++;
    live->slept_ns += clock_now().ns - before.ns;
    hold_waited(&live->hold, live->now_ps);
    take_arrivals(live);
}

/* Nothing but the world can go on: no datagram waits for the design, and no fault for its time. */
static void hold_clock(struct design_live *live)
{
    take_arrivals(live);
    if (hold_waits(&live->hold, live->now_ps) && !live->has_waiting &&
        !design_port_release(live->port, now_of(live))) {
        sleep_a_while(live);
    }
}

/* A frame has come when the design has its last beat. */
static void note_beats(struct design_live *live)
{
    const struct hdl_counters *counters = hdl_port_counters(live->line);
    const uint64_t beats = counters->beats_sent + counters->beats_received;
    if (counters->beats_received != live->beats_received) {
        live->beats_received = counters->beats_received;
        hold_came(&live->hold, live->now_ps);
    } else if (beats != live->beats) {
        hold_moved(&live->hold, live->now_ps);
    }
    live->beats = beats;
}

uint64_t design_live_turn(struct design_live *live, uint64_t now_ps)
{
    live->now_ps = now_ps;
    note_beats(live);
    if (now_ps >= live->next_look_ps) {
        (void)design_port_release(live->port, now_of(live));
        take_arrivals(live);
        live->next_look_ps = now_ps + live->config.look_ps;
    }
    if (hold_waits(&live->hold, now_ps)) {
        hold_clock(live);
    }
    return live->next_look_ps;
}
