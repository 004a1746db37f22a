/* SPDX-License-Identifier: BSD-2-Clause
 *
 * network - end nodes on the switches and wires of a topology, and the packets that they send.
 *
 * Purpose    Measures a network under the load of many nodes: offered and carried bytes, latency,
 *            losses.
 * Ownership  The network owns nodes, wires and packets; nothing is allocated while it runs.
 * Units      Bytes; the load of a wire that is never idle is 1.
 * Limits     Packets of NETWORK_BYTES_MAX bytes.
 * Source     sim/topology.h, sim/parts/switch.h; docs/decisions/0019-network.md.
 *
 * Topology, pattern and traffic are those of the configuration, or texts that the run was given.
 *
 * A packet costs one event for each switch on its way and one for its delivery: what waits at an
 * output is not moved, since its times are known on arrival. Nor is there one for its source: a
 * node makes its next packet when the one before reaches the first switch. (Switches that queue at
 * their inputs decide when an output becomes free, and need one event more: inputs.c. Where nodes
 * have several ports, or links to other nodes, each packet's departure is an event, too.)
 */
#ifndef LAB_NETWORK_NETWORK_H
#define LAB_NETWORK_NETWORK_H

#include "lab/lab.h"
#include "lab/reading.h"
#include "sim/errors.h"
#include "sim/meter.h"
#include "sim/parts/switch.h"
#include "sim/pattern.h"
#include "sim/pool.h"
#include "sim/topology.h"
#include "sim/traffic_trace.h"

#define NETWORK_BYTES_MAX UINT16_MAX

/* The words of the parameters with these names, in their order. */
enum network_pattern {
    NETWORK_OTHERS,   /* Any node but the sender. */
    NETWORK_ALL,      /* Any node. */
    NETWORK_OPPOSITE, /* The node half of all numbers further. */
};

enum network_buffering {
    NETWORK_AT_OUTPUTS,
    NETWORK_AT_INPUTS, /* One queue at each input, whose head alone may leave. */
};

enum network_arbiter {
    NETWORK_OLDEST, /* The input whose head has waited longest. */
    NETWORK_ROUND_ROBIN,
    NETWORK_FIXED, /* The input of the lowest number. */
};

struct network_config {
    struct lab_text texts[LAB_TEXTS]; /* Texts that were given hold instead of the members below. */
    char topology[LAB_TEXT_BYTES];    /* As topology_open reads it. */
    /* Where the description does not say what links are like, the wire's kind does. */
    struct sim_wire_kind wire;
    enum sim_switching switching;
    uint64_t delay_ps;     /* The time from input to output in a switch. */
    uint32_t buffer_bytes; /* Room at an output or input of a switch; 0: without a bound. */
    enum network_buffering buffering;
    enum network_arbiter arbiter;
    enum network_pattern pattern;
    char destinations[LAB_TEXT_BYTES]; /* As pattern_open reads it; if empty, `pattern` holds. */
    double load;
    bool regular;         /* Packets come at equal intervals, not at random. */
    bool spread;          /* Packets take all paths between two nodes, not one. */
    bool detours;         /* They take detours (topology_detour). */
    uint32_t least, most; /* Words of 8 bytes of a payload: uniform between the two. */
    uint32_t frame_bytes; /* The bytes of a packet on a wire beside its payload. */
    bool real_bytes;      /* Payloads are written, carried and compared. */
    bool crc_ignored;     /* Nodes take packets that a wire has spoilt. */
    double bit_errors;
    uint64_t warm_ps, stop_ps; /* Measuring begins at warm_ps; nodes stop making packets at
                                * stop_ps. */
};

struct network;

struct network_packet {
    struct sim_event event; /* Its head is at a switch, or all of it; or all of it at its node. */
    struct network *network;
    uint32_t port;        /* The output of that switch by which it leaves; or the node. */
    uint32_t destination; /* A node. */
    uint32_t lag_ps;      /* From the event to its tail. */
    uint16_t bytes;       /* On the wire. */
    uint16_t entropy;     /* Chooses among equal paths. */
    uint64_t born_ps;
    uint32_t source, number; /* The packet is the source's `number`th. */
    uint32_t by;             /* Switches with input queues: the wire by which it came. At a node
                              * that departs: the one by which it leaves. */
    uint16_t words;          /* The length of its payload. */
    uint8_t links;           /* Wires that it has been sent over. */
    bool spoilt;             /* A wire has flipped a bit of it. */
    _Alignas(8) uint64_t payload[];
};

struct network_node {
    uint64_t born_ps; /* When its newest packet was made. */
    uint32_t made, received;
};

/* The input of a switch at the end of a wire; and the output that is the beginning of a wire. Both
 * have the number of the port from which the wire leads. */
struct network_input {
    struct list packets; /* The input's queue. */
    struct list turn;    /* Its place among those that wait for an output. */
    uint32_t port;
    uint32_t bytes;         /* Bytes of `packets` and of the one that is leaving. */
    bool busy;              /* A packet is leaving. */
    struct list waiting;    /* The output: inputs whose heads want it. */
    bool serving;           /* A packet leaves by it, */
    struct sim_event freed; /* until now. */
    uint32_t served;        /* The input from which that came, or the last one did, */
    uint32_t leaving;       /* and its bytes. */
    struct network *network;
};

/* A node's progress in a trace. */
struct network_replayer {
    uint32_t message; /* Its next message, or its present one. UINT32_MAX: none. */
    uint64_t sent;    /* Bytes of that. */
};

struct network_replayed {
    uint32_t destination;
    uint16_t words;
};

/* Messages that nodes send one after the other, each in packets of the largest size. */
struct network_replay {
    struct traffic_trace trace;     /* Without messages there is none. */
    uint32_t *next;                 /* The same node's next message, by message. */
    struct network_replayer *nodes; /* By node. */
    uint64_t offered_bytes;         /* Payload of all messages, in words of 8 bytes. */
    uint64_t delivered_bytes;
};

struct network {
    struct sim sim;
    struct network_config config;
    struct topology topology;
    struct pattern destinations; /* If there is one. */
    bool patterned;              /* There is one. */
    bool departs; /* A node has several ports, or a link to a node: departures are events. */
    struct network_replay replay;
    struct sim_output_kind kinds[TOPOLOGY_CLASSES_MAX]; /* Outputs, by the class of their link. */
    struct sim_wire *wires; /* By port: the direction that leaves by it. */
    struct network_node *nodes;
    struct network_input *inputs; /* By port; NULL: switches queue at their outputs. */
    struct sim_pool packets;
    struct sim_errors errors; /* Errors of all wires: one bit after the other. */
    struct sim_trace *trace;
    uint32_t track; /* The trace's: packets under way. */
    struct sim_capture *capture;
    struct lab_run *run;
    uint64_t gap_ps;   /* The mean interval between two packets of a node; 0: none. */
    uint64_t *gaps_ps; /* The same by node, where nodes differ; else NULL. */
    /* Every packet that was made is still on its way or one of the others. */
    uint64_t made, delivered, dropped, discarded, wrong, misled;
    uint64_t
        ledger; /* Names of packets: added when made, taken off when they have come to an end. */
    /* From warm_ps on: */
    uint64_t warm_bytes[TOPOLOGY_CLASSES_MAX]; /* Delivered, by the class of the sender's link. */
    uint64_t came_ps;                          /* When the newest of all was delivered. */
    uint64_t waited_ps, waits; /* From a packet's making to its first byte on the wire: the sum. */
    uint64_t links;            /* Wires that the delivered packets have passed, summed. */
    struct sim_spread latency; /* From a packet's making to its delivery. */
    uint64_t warm_packets;     /* Packets, and */
    uint64_t warm_payload;     /* Bytes that were delivered before nodes stopped. */
    /* If somebody looks (network_watch): for how long each port's wire was in use, and what waited
     * before the outputs of switches, in bytes. */
    uint64_t *busy_ps;
    struct lab_lengths waiting;
};

/* Opens the world and makes each node's first packet. False: the run has failed. */
bool network_open(struct network *network, struct lab_run *run,
                  const struct network_config *config);
/* Wires and queues are looked at from now on, which costs time and memory. */
void network_watch(struct network *network);
/* The share of its time for which the busiest wire was in use. */
double network_busiest(const struct network *network);
/* Runs until every packet has come to an end. */
void network_run(struct network *network);
/* Checks that every lost packet was counted; reports the memory of parts; frees. */
void network_close(struct network *network);

/* The memory of nodes, wires and topology, and of the most packets that were under way at a
 * time. */
uint64_t network_bytes(const struct network *network);
/* The share of the time for which a node's wire carries delivered packets, on average; and the
 * share that the load offers. The wire of a node with several wires is its first one. */
double network_throughput(const struct network *network);
double network_offered(const struct network *network);

/* -- Between the files --------------------------------------------------------------------------*/

/* node.c: the node makes its next packet, unless it is to stop. */
void network_make(struct network *network, uint32_t node);
void network_deliver(struct sim *sim, struct sim_event *event);
/* A packet has come to an end, however. */
void network_end(struct network *network, struct network_packet *packet);

/* fabric.c: there is no room for the packet. */
void network_drop(struct network *network, struct network_packet *packet);
/* The packet leaves by `port` as `out`, and goes on from there. */
void network_travel(struct network *network, struct network_packet *packet, uint32_t port,
                    struct sim_span out);

/* network.c: fails the run because of a text. Always false. */
bool network_refuse(struct network *network, enum lab_text_kind kind, const char *error);

/* replay.c: opens the trace that the run was given, if any. False: the run has failed. */
bool network_replay_open(struct network *network);
void network_replay_close(struct network *network);
uint64_t network_replay_bytes(const struct network *network);
/* When the node's next packet is there to be sent; UINT64_MAX: it has sent all. */
uint64_t network_replay_time(const struct network *network, uint32_t node);
/* Takes that packet's words off the node's message, and says where it goes. */
struct network_replayed network_replay_take(struct network *network, uint32_t node);

/* inputs.c */
void network_inputs_open(struct network *network);
void network_at_input(struct network *network, struct network_packet *packet);

/* parameters.c */
#define NETWORK_PARAMETER_COUNT 22
extern const struct lab_document network_document;
extern const struct lab_parameter network_parameters[NETWORK_PARAMETER_COUNT];
struct network_config network_config_of(struct lab_run *run);
/* Fails the run if the texts that it was given are wrong, or contradict its settings. */
void network_judge_texts(struct lab_run *run);

static inline uint64_t network_name(const struct network_packet *packet)
{
    return ((uint64_t)packet->source << 32 | packet->number) * UINT64_C(0x9e3779b97f4a7c15);
}

#endif
