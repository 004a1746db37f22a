/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ethernet - ports of Ethernet and the line between two of them, with flow control.
 *
 * Purpose    Queues frames by class, puts them on the line one after the other, and stops when the
 *            other end asks for it (LFC, PFC).
 * Inputs     The user's frames; pauses that the user asks for.
 * Outputs    Calls: a frame begins, the line is free again, a frame has come, a frame was lost.
 * Ownership  A frame lies in a struct of the user's, usually out of a pool. From sim_port_send on
 *            it belongs to the parts, until on_frame or on_loss of some port gives it back. A port
 *            must not move; nothing is allocated after sim_port_open.
 * Units      Bytes of a frame: from the destination address to the FCS. A shorter frame than 64 is
 *            padded. On the line 8 bytes of preamble come before it, and a gap of 12 and
 *            `extra_bytes` behind it.
 * Limits     The highest class goes first, as 802.1Q has it by default; within a class, first come,
 *            first served. The far end notices by the FCS which frames a line has spoilt.
 * Source     IEEE 802.3, Annexes 31B and 31D; 802.1Q 8.6.8.1. The formats: wire/pause.h.
 *
 * A pause is heard when the last bit of its frame has come. It begins at the next frame boundary
 * (the end of the frame in progress; at once if there is none) and lasts quanta * 512 bit times
 * from there. Quanta 0 ends it at once. A new pause takes the place of the one before. LFC and each
 * class's PFC run side by side, and what either stops stands still. Frames of flow control are
 * never stopped: they go out at the next boundary ahead of all others, and cost their time on the
 * line.
 *
 * How to use it: sim_port_open both ends, sim_port_join them; sim_frame_open and sim_port_send a
 * frame. A source that is always busy sends its next frame from on_begin. A NIC that cannot keep up
 * calls sim_port_pause. The other end of a line may be a port of a switch
 * (sim/parts/ethernet_switch.h). Errors of what a port sends: sim_errors_init(&port->errors, ...).
 */
#ifndef SIM_PARTS_ETHERNET_H
#define SIM_PARTS_ETHERNET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "sim/errors.h"
#include "sim/kernel.h"
#include "sim/parts/wire.h"
#include "wire/pause.h"

#define SIM_ETHERNET_BYTES_MIN      64u
#define SIM_ETHERNET_PREAMBLE_BYTES 8u
#define SIM_ETHERNET_GAP_BYTES      12u
/* A frame of flow control with preamble and gap. */
#define SIM_ETHERNET_PAUSE_BYTES                                                                   \
    (SIM_ETHERNET_PREAMBLE_BYTES + SIM_ETHERNET_BYTES_MIN + SIM_ETHERNET_GAP_BYTES)

/* Properties that the lines of one kind share. */
struct sim_ethernet_kind {
    struct sim_wire_kind wire; /* Its rate; its latency is the cable's. */
    uint64_t fec_ps;           /* The time that forward error correction adds to a pass of the
                                * line. */
    uint32_t extra_bytes;      /* A longer gap behind every frame. */
};

/* -- Frames -------------------------------------------------------------------------------------*/

/* The bits of ECN in the IP header (RFC 3168). */
enum sim_ecn {
    SIM_NOT_ECT = 0,
    SIM_ECT_1 = 1,
    SIM_ECT_0 = 2,
    SIM_CE = 3,
};

enum sim_loss {
    SIM_LOST_ON_LINE,
    SIM_SPOILT_ON_LINE, /* Its FCS is wrong. */
    SIM_NO_ROOM_AT_INPUT,
    SIM_NO_ROOM_AT_OUTPUT,
    SIM_LOSSES,
};

struct sim_port;

struct sim_frame {
    /* The parts' own. */
    struct sim_event event;
    struct list node;      /* Its place in a queue. */
    struct sim_port *port; /* Where it is, or on its way to. */
    bool stored;           /* It takes room in a switch, */
    uint32_t ingress;      /* which it entered by this port. */
    /* The user's; the parts change nothing but ECT to CE. */
    uint32_t bytes;
    uint32_t destination; /* Switches choose the output by it. */
    uint8_t class;
    uint8_t ecn; /* enum sim_ecn */
    /* Errors that the line makes in this frame; on_begin may set them. */
    bool lost, spoilt;
    /* When it passed the end of the line: in on_begin the near one, in on_frame the far one. The
     * head is the preamble's first bit, the tail is the FCS's last one. */
    struct sim_span span;
};

static inline void sim_frame_open(struct sim_frame *frame, uint32_t bytes, uint32_t destination,
                                  uint8_t class, enum sim_ecn ecn)
{
    CHECK(class < PAUSE_CLASSES && bytes > 0);
    *frame =
        (struct sim_frame){.bytes = bytes < SIM_ETHERNET_BYTES_MIN ? SIM_ETHERNET_BYTES_MIN : bytes,
                           .destination = destination,
                           .class = class,
                           .ecn = (uint8_t)ecn};
    list_init(&frame->node);
}

/* The bytes of a line's time that a frame of `bytes` bytes (64 or more) takes in all. */
static inline uint64_t sim_ethernet_line_bytes(const struct sim_ethernet_kind *kind, uint64_t bytes)
{
    return SIM_ETHERNET_PREAMBLE_BYTES + bytes + SIM_ETHERNET_GAP_BYTES + kind->extra_bytes;
}

static inline uint64_t sim_ethernet_line_ps(const struct sim_ethernet_kind *kind, uint64_t bytes)
{
    return sim_wire_ps(&kind->wire, sim_ethernet_line_bytes(kind, bytes));
}

/* From the first bit of the preamble to the last of the FCS. */
static inline uint64_t sim_ethernet_frame_ps(const struct sim_ethernet_kind *kind, uint64_t bytes)
{
    return sim_wire_ps(&kind->wire, SIM_ETHERNET_PREAMBLE_BYTES + bytes);
}

static inline uint64_t sim_ethernet_pass_ps(const struct sim_ethernet_kind *kind)
{
    return kind->wire.latency_ps + kind->fec_ps;
}

static inline uint64_t sim_ethernet_quanta_ps(const struct sim_ethernet_kind *kind, uint64_t quanta)
{
    return sim_wire_ps(&kind->wire, quanta * PAUSE_QUANTUM_BYTES);
}

/* -- Ports --------------------------------------------------------------------------------------*/

/* A port calls its user by these. Any of them may send frames and pauses. */
struct sim_port_calls {
    /* A good frame has come, and is the user's again. */
    void (*on_frame)(struct sim_port *port, struct sim_frame *frame);
    /* A frame did not, and is the user's again. NULL: lines make no errors. */
    void (*on_loss)(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss);
    /* A frame that was sent begins; it is still the parts'. May be NULL. */
    void (*on_begin)(struct sim_port *port, struct sim_frame *frame);
    /* A pause was heard, for a user that has a queue of its own. May be NULL. */
    void (*on_pause)(struct sim_port *port, const struct pause *pause);
    /* The line is free again: what began last is out, its gap included. May be NULL. */
    void (*on_free)(struct sim_port *port);
    /* on_frame comes with the head of a frame, also of a spoilt one; else with its tail. */
    bool at_head;
};

/* A frame of flow control that is on its way. */
struct sim_flight {
    struct pause pause;
    uint64_t at_ps; /* Its last bit is at the far end. */
};

struct sim_port_counters {
    uint64_t frames_sent, frames_come, frames_lost, frames_spoilt; /* The latter two: on coming. */
    uint64_t line_bytes;                                           /* That those sent took of it. */
    uint64_t pauses_sent, pauses_lost;                             /* Lost or spoilt on the line. */
    uint64_t pauses_heard, pauses_ignored;
};

struct sim_port {
    struct sim *sim;
    struct sim_ethernet_kind kind;
    const struct sim_port_calls *calls;
    struct sim_port *peer;
    uint64_t notice_ps; /* The time between the head or tail and on_frame. */
    /* Pauses to which it listens; all, when it was opened. */
    bool hears_link;
    uint8_t hears_classes;
    struct sim_errors errors; /* Those of the frames that it sends. */
    /* Sending. */
    struct list queues[PAUSE_CLASSES];
    uint64_t waiting_bytes[PAUSE_CLASSES]; /* In these queues. */
    struct sim_event turn;                 /* The line is free, or a pause is over. */
    bool sending;                          /* The line is not free yet, */
    uint64_t tail_ps, free_ps;             /* until then; a frame in progress ends at its tail. */
    uint64_t link_until_ps, until_ps[PAUSE_CLASSES]; /* Paused until then. */
    /* Flow control that it sends: the wanted pauses, by kind, and those on the line. */
    struct pause wanted[2];
    bool wants[2];
    struct sim_flight *flights; /* A ring. */
    uint32_t flight_room, flight_first, flight_count;
    struct sim_event landing; /* The first of them lands. */
    struct sim_port_counters counters;
};

void sim_port_open(struct sim_port *port, struct sim *sim, const struct sim_ethernet_kind *kind,
                   const struct sim_port_calls *calls);
void sim_port_close(struct sim_port *port);
/* Another kind of line, before the first frame. */
void sim_port_change(struct sim_port *port, const struct sim_ethernet_kind *kind);
/* They are the two ends of a line. Each direction is of its sender's kind. */
void sim_port_join(struct sim_port *a, struct sim_port *b);

/* The frame, which was opened, goes to the end of its class's queue; it begins now if it can. */
void sim_port_send(struct sim_port *port, struct sim_frame *frame);

/* A frame for whose time on the line its user has cared: its last bit leaves at `tail_ps`, now or
 * later. It waits for nothing, pauses included, and the other end gets it whole: nobody can cut it
 * through. Of one port frames are either sent or carried. */
void sim_port_carry(struct sim_port *port, struct sim_frame *frame, uint64_t tail_ps);

/* Asks the other end for a pause, or with quanta 0 for its end. One that waits for the next frame
 * boundary already goes together with it; where they disagree, the later one counts. */
void sim_port_pause(struct sim_port *port, const struct pause *pause);

/* The class may not begin a frame now, whether one is in progress or not. */
bool sim_port_paused(const struct sim_port *port, uint32_t class);

/* A frame of this class that was sent now would begin now. */
bool sim_port_idle(struct sim_port *port, uint32_t class);

#endif
