/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ethernet_switch - a switch of Ethernet with queues at its outputs, flow control and ECN.
 *
 * Purpose    Passes frames on; asks senders to pause when their frames take too much room (PFC or
 *            LFC, by input); marks frames where a queue is long (ECN); drops frames that find no
 *            room.
 * Outputs    The same frames on other lines; pauses; counters; dropped frames, by on_loss.
 * Ownership  The switch owns its ports; frames are their users'. Nothing is allocated later on.
 * Units      Bytes of frames, FCS included, without preamble and gap.
 * Limits     A frame that cuts through takes no room. Each class of an input has room and
 *            thresholds of its own (with LFC, and without flow control, all classes together); each
 *            class of an output has a queue of its own. The switch notices a spoilt frame when it
 *            stores it, and passes it on when it cuts through.
 * Source     IEEE 802.1Qbb (PFC), 802.3 Annex 31B; RFC 3168 (ECN). Headroom: sim_headroom_of.
 *
 * A frame cuts through if its output is idle when its head has been in the switch for `delay_ps`:
 * its first bit leaves then. If not, it is stored `delay_ps` after its last bit. Then it is counted
 * at its input and joins the output's queue. It is in the input's room until it is out and the line
 * is free. If the input's bytes are then above xoff, a pause of `quanta` goes back to the sender,
 * and again in half its time as long as they are above xon; at or below xon quanta 0 goes.
 *
 * How to use it: fill a kind, sim_ethernet_switch_open with the number of ports, join each
 * &sim_ethernet_switch->ports[i].port with the port of a NIC or of another switch, and change
 * ports[i].limits where an input is to be different, before its first frame; a port whose line is
 * different gets it by sim_port_change. A frame leaves by the port that `route` says, or else by
 * the port outputs[frame->destination], or by the port of that number if `outputs` is NULL, too.
 */
#ifndef SIM_PARTS_ETHERNET_SWITCH_H
#define SIM_PARTS_ETHERNET_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/parts/ethernet.h"

#define SIM_NO_BOUND UINT64_MAX

/* -- Headroom -----------------------------------------------------------------------------------*/

/* The bytes of the line that may still come after an input has asked for a pause. */
struct sim_headroom {
    uint64_t cable;    /* Both passes of the line: its latency, */
    uint64_t fec;      /* and forward error correction. */
    uint64_t decision; /* The time that the switch takes to ask. */
    uint64_t crossing; /* The frame that crossed the threshold. */
    uint64_t progress; /* The frame that the sender has begun when it hears. */
    uint64_t reverse;  /* The frame that the pause has to wait for. */
    uint64_t pause;    /* The pause itself. */
};

/* For frames of up to `frame_bytes`, and up to `reverse_bytes` (0: none) on the way back. */
struct sim_headroom sim_headroom_of(const struct sim_ethernet_kind *line, uint64_t decision_ps,
                                    uint64_t frame_bytes, uint64_t reverse_bytes);
uint64_t sim_headroom_bytes(const struct sim_headroom *headroom);

/* -- The switch ---------------------------------------------------------------------------------*/

enum sim_flow_control {
    SIM_NO_FLOW_CONTROL,
    SIM_LFC,
    SIM_PFC,
};

/* Limits for the frames that came in by one port. */
struct sim_input_limits {
    enum sim_flow_control flow;
    uint64_t xoff_bytes, xon_bytes; /* Thresholds; xon is not above xoff. */
    uint64_t room_bytes;            /* A frame that finds less is dropped. */
};

struct sim_ethernet_switch_kind {
    struct sim_ethernet_kind line;
    uint64_t delay_ps; /* From the first bit in to the first bit out. */
    struct sim_input_limits input;
    uint64_t output_bytes; /* Room of an output's queue; what finds less is dropped. */
    uint64_t ecn_bytes;    /* A longer queue marks what joins it. */
    bool ecn_ignores;      /* Marks whether a frame is ECT or not; no switch should. */
    uint16_t quanta;       /* For which it asks; PAUSE_QUANTA_MAX in most switches. */
};

/* One class of an input. */
struct sim_lane {
    uint64_t bytes, worst_bytes;
    bool asked; /* Its sender was asked to pause. */
};

struct sim_switch_counters {
    uint64_t cut_through, stored;        /* By the port where they came in. */
    uint64_t xoffs, xons, refreshes;     /* Pauses that this input asked for. */
    uint64_t lost_at_input, lost_spoilt; /* By the port where they came in. */
    uint64_t lost_at_output;             /* By the port that they would have left by; */
    uint64_t marked, unmarkable;         /* likewise: CE set; not ECT, so it was not. */
    uint64_t worst_queue_bytes;          /* The longest queue of any class of this output. */
};

struct sim_ethernet_switch;

struct sim_switch_port {
    struct sim_port port;
    struct sim_ethernet_switch *of;
    struct sim_input_limits limits;
    struct sim_lane lanes[PAUSE_CLASSES];
    struct sim_event refresh;
    /* The frame that is leaving takes room of this lane until it is out. NULL: it cut through. */
    struct sim_lane *leaving;
    uint32_t leaving_ingress;
    uint64_t leaving_bytes;
    struct sim_switch_counters counters;
};

/* A frame was dropped by the switch, or lost or spoilt before it, and is the user's again. */
typedef void (*sim_switch_on_loss)(struct sim_ethernet_switch *from, struct sim_frame *frame,
                                   enum sim_loss loss);

/* The port by which a frame leaves: the same one each time that it is asked for one frame. */
typedef uint32_t (*sim_switch_route)(const struct sim_ethernet_switch *at,
                                     const struct sim_frame *frame);

struct sim_ethernet_switch {
    struct sim *sim;
    struct sim_ethernet_switch_kind kind;
    struct sim_switch_port *ports;
    uint32_t port_count;
    const uint32_t *outputs; /* By destination; the user's. NULL: a destination is a port. */
    sim_switch_route route;  /* The user's; NULL: `outputs` holds. */
    sim_switch_on_loss on_loss;
};

void sim_ethernet_switch_open(struct sim_ethernet_switch *of, struct sim *sim,
                              const struct sim_ethernet_switch_kind *kind, uint32_t ports,
                              sim_switch_on_loss on_loss);
void sim_ethernet_switch_close(struct sim_ethernet_switch *of);

/* Adds counters, but for worst_queue_bytes, which is the worse of the two. */
void sim_switch_counters_add(struct sim_switch_counters *total,
                             const struct sim_switch_counters *one);
/* The counters of all ports together. */
struct sim_switch_counters sim_ethernet_switch_total(const struct sim_ethernet_switch *of);
/* The most bytes that any class of an input held. */
uint64_t sim_ethernet_switch_worst(const struct sim_ethernet_switch *of);

#endif
