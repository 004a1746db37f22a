/* SPDX-License-Identifier: BSD-2-Clause
 *
 * flow - finite buffers in switches: credits, or packets that are dropped.
 *
 * Purpose    A switch has a buffer for each line that leads to it. With credits, the other end of
 *            the line knows how much room is left, and a packet waits until there is enough.
 *            Without credits, a packet for which there is no room is dropped, and the transport
 *            sends it again.
 * Inputs     Packets that are ready to leave by a port; packets that come to a switch.
 * Outputs    lant_fabric_transmit; whether a packet that came found room; calls to on_ready.
 * Time       Picoseconds. A packet's room is free when its tail has left the switch; the credit for
 *            it takes as long on the line back as a flit takes on the line there, and no room on
 *            it.
 * Units      Flits of buffer.
 * Limits     Packets wait for their output, not for the one before them in the buffer. With one
 *            channel, credits can deadlock where ways form a circle: tori and dragonflies need two,
 *            and networks from text, whose ways nobody knows, are refused (sim/topology.h).
 * Source     Lant 4, which assumes credits and leaves them out. The design is our choice, after
 *            Kung, Morris, "Credit-based flow control" (1995), and for the channels Dally, Seitz,
 *            "Deadlock-free message routing" (1987).
 *
 * Virtual channels: buffers of their own behind each line, which they share. In a ring a packet is
 * in channel 0 until it passes between the last coordinate and 0, and from there on in channel 1,
 * which nobody enters elsewhere; in the next dimension it begins again. In a dragonfly channel 1 is
 * for what has passed the global link. So no packet waits in a circle.
 */
#ifndef LAB_LANT_FLOW_H
#define LAB_LANT_FLOW_H

#include "sim/kernel.h"
#include "sim/pool.h"
#include "sim/topology.h"

struct lant_fabric;
struct lant_frame;

enum lant_flow_kind {
    LANT_FLOW_NONE,    /* Buffers have no bound. */
    LANT_FLOW_CREDITS, /* Nothing is dropped. */
    LANT_FLOW_DROP,
};

#define LANT_FLOW_BUFFER_MAX 65536u /* Flits. */
#define LANT_NO_PORT         UINT32_MAX
#define LANT_CHANNELS_MAX    2u

/* A buffer at the far end of a line. */
struct lant_flow_channel {
    struct list queue; /* Packets that wait to leave for it, in their order. */
    uint32_t used;     /* Its flits, as the end that decides about them counts them; */
    uint32_t most;     /* the most at a time. */
};

/* One direction of a line: the port by which packets leave. */
struct lant_flow_port {
    struct lant_fabric *fabric;
    struct sim_event event; /* A packet may leave. */
    struct lant_flow_channel channels[LANT_CHANNELS_MAX];
};

struct lant_flow {
    struct lant_flow_port *ports; /* By the topology's ports. NULL: LANT_FLOW_NONE. */
    uint32_t port_count;
    struct sim_pool returns; /* Room that becomes free at some time. */
    struct list coming;      /* These, in no order. */
    uint64_t dropped;        /* Packets that found no room. */
    uint64_t waited;         /* Packets that waited for credits. */
    /* The packet that waited in a node's MAC has left; NULL: nobody asks. */
    void (*on_ready)(void *nodes, uint32_t node);
};

/* NULL, or why such a network is refused. */
const char *lant_flow_refuses(enum lant_flow_kind kind, uint32_t channels,
                              const struct topology *topology);

void lant_flow_open(struct lant_fabric *fabric);
void lant_flow_close(struct lant_fabric *fabric);

/* The packet leaves by the port, an index of the topology's, at `ready_ps` or as soon as it can. */
void lant_flow_send(struct lant_fabric *fabric, uint32_t vertex, uint32_t port,
                    struct lant_frame *frame, uint64_t ready_ps);
/* A packet's head has come to a switch. False: there is no room for it. */
bool lant_flow_arrives(struct lant_fabric *fabric, const struct lant_frame *frame);
/* The packet's tail leaves the switch, or is forgotten there, at `at_ps`. */
void lant_flow_leaves(struct lant_fabric *fabric, const struct lant_frame *frame, uint64_t at_ps);
/* Does no packet wait for the port? A node's MAC holds one that waits for room. */
bool lant_flow_ready(const struct lant_fabric *fabric, uint32_t port);

#endif
