/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libnonic_hdl - a hardware design whose main() is the caller's: its ports, and the real network.
 *
 * Purpose    The caller steps a simulator, edge by edge. A port turns the beats of the design's
 *            AXI4-Stream into frames and back (hdl_port_edge above; nonic_axis calls it). hdl_live
 *            puts a port on the network of this machine, through UDP sockets and without
 *            privileges, as `nonic hdl live` does: docs/hdl.md says what becomes of each frame.
 * Time       The design's own, in ps, and never backwards.
 * Threads    One port, and what puts it on the network, belongs to one thread at a time. Different
 *            ports know nothing of one another.
 * Ownership  What *_open returns is the caller's, until *_close, which takes NULL, too.
 * Errors     *_open returns NULL, with a reason in `error`, which is cut at error_bytes.
 */
#ifndef NONIC_DESIGN_LIBRARY_H
#define NONIC_DESIGN_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hdl_port;
struct hdl_port_config;

/* A port in memory of its own. NULL: the configuration is wrong, or there is no memory. */
struct hdl_port *hdl_port_open(const struct hdl_port_config *config, char *error,
                               size_t error_bytes);
void hdl_port_close(struct hdl_port *port);

#define HDL_LIVE_NEVER UINT64_MAX

/* Zeros are what `nonic hdl live` does without options. All is copied. */
struct hdl_live_config {
    const char *address; /* The design's IPv4 address, one that this machine can bind. */
    /* UDP ports that receive, at most 64, beside 4791, 0x4321, and those that the design has sent
     * from. */
    const uint16_t *ports;
    uint32_t port_count;
    const char *fault; /* A bad network, as `nonic run --fault` says it; NULL: none. */
    /* The clock waits when nothing has come for this time since a frame left, or when nothing
     * passed for it. 0: 5 us; HDL_LIVE_NEVER: it never waits. */
    uint64_t hold_ps;
    uint32_t wait_ms;  /* The longest wait, in wall time, at most 60000; 0: 50. */
    uint64_t reset_ps; /* Up to this time no frame is given, since the design hears nothing. */
};

struct hdl_live;

/* The port stays the caller's, who closes it behind hdl_live_close. NULL: the address or a UDP port
 * cannot be bound, a value is wrong, or fewer than 3 frames can wait in the port. */
struct hdl_live *hdl_live_open(struct hdl_port *port, const struct hdl_live_config *config,
                               char *error, size_t error_bytes);
void hdl_live_close(struct hdl_live *live);

/* Frames of the port leave, and datagrams that came are pushed into it. It sleeps while the clock
 * waits, until a datagram comes, or a signal, or wait_ms are over. Returns the time, in ps, at
 * which the next turn is due: the caller steps the design until then. */
uint64_t hdl_live_turn(struct hdl_live *live, uint64_t now_ps);

struct hdl_live_counters {
    uint64_t given, taken;            /* Frames to the design, and of it. */
    uint64_t icrcs, icrcs_wrong;      /* The design's packets to UDP port 4791. */
    uint64_t peer_icrcs;              /* Those of its peers' packets that were right, */
    uint64_t peer_icrcs_wrong;        /* and those that were wrong. */
    uint64_t refused;                 /* Datagrams that the system did not take. */
    uint64_t lost;                    /* Datagrams for which a socket had no room. */
    uint64_t dropped_out, dropped_in; /* By faults. */
    uint64_t waits, waited_ns;        /* While the clock was held; wall time. */
};

void hdl_live_count(const struct hdl_live *live, struct hdl_live_counters *counters);

/* The kinds of frames and datagrams that were dropped, from index 0 on: what they are, and how many
 * came. NULL: there are no more kinds. */
const char *hdl_live_dropped(const struct hdl_live *live, uint32_t index, uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
