/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fabric - the links and switches between network interfaces.
 *
 * Purpose    Carries packets from node to node: takes the time of lines and switches, chooses one
 *            of the equal ways for each packet, flips bits.
 * Inputs     Packets as flits, and when a node's first flit leaves.
 * Outputs    A call to the node's sink when a packet's last flit has come; counters.
 * Ownership  The fabric owns packets on their way: a node takes one with lant_fabric_frame, gives
 *            it away with lant_fabric_send, and gives back one that it got with lant_fabric_free.
 * Time       Picoseconds; a flit takes a cycle of LANT_CYCLE_PS on every line.
 * Limits     Switches queue without a bound, unless `flow` says how buffers are kept (flow.h): the
 *            document assumes credits, and each node has few packets under way. Without it nothing
 *            is lost but by flipped bits and by lines that lose packets.
 * Source     Lant 3.1.3, 3.4.2, 3.4.3, 5.3.
 *
 * An event is a packet's head at a switch, or its tail at a node. A switch forwards when it has H1
 * (virtual cut-through); it mends one wrong bit of it, and drops what it cannot read.
 */
#ifndef LAB_LANT_FABRIC_H
#define LAB_LANT_FABRIC_H

#include "lab/lab.h"
#include "lab/lant/flow.h"
#include "sim/errors.h"
#include "sim/pool.h"
#include "sim/topology.h"
#include "wire/lant.h"

#define LANT_CYCLE_PS 6400u

/* One direction of a line between two parts of the network. */
struct lant_line {
    uint32_t latency_cycles; /* From the flit in to the flit out. */
    uint32_t frame_flits;    /* Flits of the line that a packet takes beside its own: preamble,
                              * end. */
    uint32_t pause_flits;    /* The line takes one more for each pause_flits; 0: none. */
    uint32_t code_flits;     /* Likewise one of an error correcting code for each; 0: none. */
    bool store_and_forward;  /* A packet leaves the receiving MAC when all of it has come. */
};

/* The place where flipped bits are looked for (5.3.2): the words of the parameter "checking". */
enum lant_checking {
    LANT_CHECK_ENDS,  /* The receiver, by the CRC. */
    LANT_CHECK_LINKS, /* Each switch as well: it answers a damaged request with a NACK. */
    LANT_CHECK_CODE,  /* Each link, by a code that corrects. */
};

struct lant_fabric_config {
    struct lab_text given;         /* A text that holds instead of the next member, if any. */
    char topology[LAB_TEXT_BYTES]; /* As topology_open reads it. */
    struct lant_line node_line;    /* Between a node and its switch, or two nodes. */
    struct lant_line switch_line;  /* Between two switches. */
    uint32_t switch_cycles;        /* From the head in to the head out. */
    bool one_way;                  /* Packets for a node take one way, not any. */
    bool ageing;                   /* A packet is dropped behind LANT_AGE_MAX switches. */
    double bit_errors;             /* The rate on each line. */
    uint32_t loss_millionths;      /* How many of a million packets a line loses. */
    uint32_t packets;              /* Packets that can be on their way. */
    enum lant_flow_kind flow;
    uint32_t buffer_flits; /* At a switch, for each channel of a line; LANT_FLOW_NONE: no bound. */
    uint32_t channels;     /* The channels of each line; 0 is 1. */
    enum lant_checking checking;
    uint32_t check_cycles; /* The delay of a packet with data at a switch that checks (5.3.2.1). */
    bool may_deadlock;     /* Networks that need more channels are not refused. */
};

struct lant_fabric;

struct lant_frame {
    struct sim_event event;
    struct lant_fabric *fabric;
    uint64_t head_ps, tail_ps; /* When the first flit is there, and when the last one is over. */
    uint32_t vertex;           /* Where. */
    uint32_t came_by;          /* The port by which it left the last vertex; or LANT_NO_PORT. */
    struct list place;         /* In a queue of flow.h, */
    uint64_t ready_ps;         /* which it can leave from now on, */
    bool waits;                /* and for room. */
    bool crossed;              /* A dragonfly's global link. */
    uint8_t channel;           /* In which it came by `came_by`, */
    uint8_t next;              /* and in which it leaves. */
    uint32_t count;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
};

/* The node gets a packet, whose last flit is over now. */
typedef void (*lant_sink)(void *nodes, uint32_t node, struct lant_frame *frame);

struct lant_fabric_counters {
    uint64_t carried;           /* Packets that came to their node. */
    uint64_t flipped;           /* Bits. */
    uint64_t mended;            /* Heads, by switches. */
    uint64_t corrected;         /* Packets with wrong bits, by LANT_CHECK_CODE; */
    uint64_t nacked;            /* and requests that LANT_CHECK_LINKS refused. */
    uint64_t lost;              /* By lines. */
    uint64_t refused_strangers; /* Requests for nodes that do not exist, by the sender's switch; */
    uint64_t dropped_strangers; /* what else goes to such nodes. */
    uint64_t dropped_heads, dropped_old;
    uint64_t dropped_checked; /* By LANT_CHECK_LINKS, whose sender nobody can tell. */
    uint64_t dropped_full;    /* More packets on their way than the world has room for. */
    uint64_t switches;        /* Passed, by those that came to their node. */
};

struct lant_fabric {
    struct sim *sim;
    struct lant_fabric_config config;
    struct topology topology;
    uint64_t *free_ps; /* By port: when its line can take the next packet, */
    uint64_t *busy_ps; /* and for how long packets have had it. */
    struct sim_pool frames;
    struct sim_errors errors;
    struct lant_flow flow;
    lant_sink sink;
    void *nodes;
    struct lant_fabric_counters counters;
};

/* The network that the configuration describes. False: it is wrong, or its buffers can
 * deadlock, and `error` says how. */
MUST_USE bool lant_fabric_topology(const struct lant_fabric_config *config,
                                   struct topology *topology, char *error, size_t error_bytes);
/* False: the topology is wrong, and `error` says how. `fabric` must not move afterwards. */
MUST_USE bool lant_fabric_open(struct lant_fabric *fabric, const struct lant_fabric_config *config,
                               struct sim *sim, uint64_t seed, lant_sink sink, void *nodes,
                               char *error, size_t error_bytes);
void lant_fabric_close(struct lant_fabric *fabric);

/* NULL: as many as there can be are on their way, and this one is lost. */
struct lant_frame *lant_fabric_frame(struct lant_fabric *fabric);
void lant_fabric_free(struct lant_fabric *fabric, struct lant_frame *frame);

/* The node's first flit leaves at `head_ps`, or as soon as its line is free; to the node itself by
 * no line at all. If there is no such node, the sender's own switch says so. Returns when
 * the line takes the first flit; the last one has left the node `count` cycles later. */
uint64_t lant_fabric_send(struct lant_fabric *fabric, uint32_t node, struct lant_frame *frame,
                          uint64_t head_ps);

/* Has the node's MAC room for a packet? If not, flow.on_ready says when it has. */
bool lant_fabric_ready(const struct lant_fabric *fabric, uint32_t node);

/* For flow.c: the packet leaves by the port (an index of the topology's), its head at `ready_ps` or
 * when the line is free, which is returned. */
uint64_t lant_fabric_transmit(struct lant_fabric *fabric, uint32_t port, struct lant_frame *frame,
                              uint64_t ready_ps);
const struct lant_line *lant_fabric_line(const struct lant_fabric *fabric, uint32_t port);

/* When the node's line can take a packet. On which one of several lines a packet waits is known
 * when it is sent: then it is now. */
static inline uint64_t lant_fabric_free_ps(const struct lant_fabric *fabric, uint32_t node)
{
    return topology_degree(&fabric->topology, node) == 1
               ? fabric->free_ps[fabric->topology.first_port[node]]
               : 0;
}

/* How long a packet takes of the line. */
static inline uint64_t lant_line_ps(const struct lant_line *line, uint32_t flits)
{
    const uint64_t own_ps = (uint64_t)flits * LANT_CYCLE_PS;
    uint64_t ps = own_ps + (uint64_t)line->frame_flits * LANT_CYCLE_PS;
    ps += line->pause_flits == 0 ? 0 : own_ps / line->pause_flits;
    return line->code_flits == 0 ? ps : ps + own_ps / line->code_flits;
}

#endif
