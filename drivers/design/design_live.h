/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design_live - a hardware design on the real network: frames of its port and datagrams of sockets,
 *               and a clock that waits for answers.
 *
 * Purpose    Between a port (hdl/port.h) and sockets (design_port.h) stands the bridge
 *            (hdl/bridge.h), and hdl/hold.h says when the clock waits. The caller steps the design.
 *            Frames pass a TAP device as they are; there the bridge judges ICRCs alone.
 * Inputs     Frames of the design, which the caller pulls; the time, edge by edge or a few at once.
 * Outputs    Frames for the design, by `give`; datagrams.
 * Time       The design's own, in ps, and never backwards.
 * Ownership  The caller's struct must not move between design_live_open and design_live_close.
 */
#ifndef DRIVERS_DESIGN_LIVE_H
#define DRIVERS_DESIGN_LIVE_H

#include "base/instant.h"
#include "drivers/design/design_port.h"
#include "hdl/bridge.h"
#include "hdl/hold.h"

struct design_live;

struct design_live_config {
    uint64_t hold_ps;   /* hold_begin. */
    uint32_t grant_ms;  /* A wait ends after this time, */
    struct instant end; /* or at this time of drivers/system/clock.h. */
    uint64_t look_ps;   /* The sockets are looked at this often. */
    uint64_t reset_ps;  /* Before this time nothing is given to the design, for it hears nothing. */
    /* A frame for the design. False: it does not get it, because its port had no room, which the
     * port counts, or because the frame paused the port. */
    bool (*give)(struct design_live *live, const struct hdl_frame *frame);
    /* A datagram to the design, whose ICRC is right. True: it was for the caller. May be NULL. */
    bool (*takes)(struct design_live *live, const struct inet_datagram *datagram);
};

struct design_live {
    struct design_live_config config;
    struct hdl_port *line; /* The caller sets it before the first turn. */
    struct bridge bridge;
    struct hold hold;
    struct design_port *port;
    uint64_t now_ps, next_look_ps;
    struct design_arrival waiting; /* For room in the port, or for the design's MAC address. */
    bool has_waiting, has_asked;
    bool whole; /* Frames pass as they are. */
    uint64_t asked_ps;
    uint64_t beats, beats_received, given, taken;
    uint64_t sleeps, slept_ns;
};

/* False, with a reason in `error`: the sockets cannot be had. */
MUST_USE bool design_live_open(struct design_live *live, const struct design_live_config *config,
                               const struct design_port_config *port, char *error,
                               size_t error_bytes);
void design_live_close(struct design_live *live);

/* A frame of the design, which has been pulled. The bridge counts what became of it. */
enum bridge_verdict design_live_leave(struct design_live *live, const struct hdl_frame *frame,
                                      uint64_t now_ps);

/* Behind an edge. Datagrams that came become frames; it sleeps while the clock waits. Returns the
 * time at which the next turn is due: until then the design may run, but its clock waits late. */
uint64_t design_live_turn(struct design_live *live, uint64_t now_ps);

#endif
