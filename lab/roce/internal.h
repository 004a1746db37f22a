/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - between the files of the RoCE machine. They call one another downwards: machine.c
 * (opening, functions, timers), receive.c, send.c, connection.c, fabric.c (switches and lines),
 * capture.c, pcie.c. Beside them are the units of a NIC as csRNA's (units.c, units_memory.c), which
 * call send.c and receive.c when a context has come.
 */
#ifndef LAB_ROCE_INTERNAL_H
#define LAB_ROCE_INTERNAL_H

#include "base/list.h"
#include "lab/roce/roce.h"
#include "sim/pool.h"
#include "sim/topology.h"
#include "wire/inet.h"
#include "wire/roce.h"

struct roce_node;

/* The NIC's side of a queue pair. Zeroed: never seen. */
struct roce_connection {
    struct roce_function *function;
    struct qp *qp;          /* NULL: packets came for it, but it never rang, and sent nothing. */
    uint32_t qpn;           /* That of `qp`. */
    uint32_t birth;         /* Counts the queue pairs that had this place. */
    uint32_t rung, fetched; /* Requests, as qp_progress.posted counts them. */
    uint64_t fetched_ps;    /* When the newest that rang are here. */
    struct list held;       /* Packets whose work requests are not here yet. */
    struct list turn;       /* In function.turns: it was held up, and may go on. */
    /* When the newest of its packets was ready to be sent, by requests and answers; when the newest
     * answer was judged, and the newest move done: none overtakes the one before. */
    uint64_t ready_ps[2], judged_ps, moved_ps;
    uint32_t moves;      /* That have begun, and of which the engine has not heard. */
    struct list cached;  /* In node.contexts; linked to itself: its context is not on the chip. */
    uint64_t context_ps; /* When its context is there. */
    uint32_t slot;       /* The units' name of its place, + 1; 0: it has none. */
    /* The request that is followed (roce_node_counters), since then; 0: none is. */
    uint32_t followed;
    uint64_t followed_ps;
};

struct roce_function {
    struct roce *roce;
    struct roce_node *node;
    struct list neighbours; /* In node.functions. */
    struct nic *engine;
    struct roce_host host;
    uint32_t number;
    bool gone;
    struct roce_connection *connections; /* By QPN & mask: its engine has no two with one such. */
    uint32_t mask;
    struct roce_connection manager; /* QP 1, of which the engine knows nothing. */
    uint32_t manager_psn;
    struct list turns; /* Connections that were held up, to be pulled from: */
    bool turn;         /* now, or else one of those that the engine lists. */
    struct sim_event timer;
    bool had_news;       /* When the engine was entered: its program knows of these. */
    uint64_t reached_ps; /* When all moves that have begun are in memory. */
};

struct roce_node {
    struct roce *roce;
    uint32_t number;
    struct list functions; /* The one whose turn is next comes first. */
    struct list starved;   /* In roce.starved: it wanted a flight, and all were taken. */
    struct sim_port port;
    struct sim_wire in, out;            /* PCIe: to the NIC, from it. */
    struct sim_wire sending, receiving; /* The pipelines. */
    uint32_t waiting_bytes;             /* Packets that were pulled and are not on the line. */
    uint32_t track;                     /* The trace's: these. */
    struct list contexts;               /* On the chip, the least recently used one first. */
    uint32_t context_count;
    struct roce_units *units;           /* NULL: it has none, or nobody was attached yet. */
    struct roce_node_counters counters; /* But for what its units count of contexts. */
};

/* A packet on its way, with headers and payload. */
struct roce_flight {
    struct sim_frame frame;
    struct sim_event event; /* In a NIC: its next step. */
    struct roce *roce;
    struct list held;                   /* In connection.held, or in a queue of the units'. */
    struct roce_connection *connection; /* At the function where it is. */
    uint32_t birth;                     /* That connection's. */
    uint32_t from, to;                  /* Functions. */
    uint32_t entropy;
    uint32_t wanted; /* A request: it waits until this many work requests are here. */
    bool answers;    /* It is an answer or a notification, not a request. */
    bool inlined;    /* Its payload came with its work request. */
    bool gathered;   /* Its payload is in `payload`, */
    bool unreadable; /* or was not there. */
    bool faulted;    /* The memory that it goes to was not there. */
    bool paid;       /* The units count its payload among those that are being read. */
    uint8_t traffic_class, hop_limit;
    uint32_t flow_label;
    struct gid source, destination;
    uint32_t headers_bytes, data_bytes, pad_bytes;
    union {
        struct {
            uint32_t segment_count;
            struct segment segments[NIC_SEGMENT_MAX];
        } leaving;
        struct nic_move move;
    };
    uint8_t headers[NIC_HEADERS_BYTES_MAX];
    uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
};

/* The bytes that a packet takes before the line. */
static inline uint32_t roce_room(const struct roce_flight *flight)
{
    return flight->headers_bytes + flight->data_bytes + flight->pad_bytes;
}

/* A doorbell on its way, and the work requests that it is for. */
struct roce_bell {
    struct sim_event event;
    struct roce_connection *connection;
    uint32_t birth;
    uint32_t count, position; /* Work requests, up to this one. */
};

struct roce {
    struct sim *sim;
    struct roce_config config;
    struct topology topology;
    struct roce_node *nodes;
    struct sim_ethernet_switch *switches; /* By vertex, behind the nodes. */
    struct roce_function **functions;     /* By number. */
    uint32_t function_count;
    struct sim_pool flights, bells;
    struct list starved;   /* Nodes, in the order in which they get flights that are free again, */
    struct sim_event feed; /* when this comes. */
    struct roce_counters counters;
    struct sim_capture *capture; /* NULL: none. */
    struct sim_trace *trace;     /* Likewise. */
};

/* -- connection.c -------------------------------------------------------------------------------*/

/* That of a queue pair of the function's engine; it may be new. */
struct roce_connection *roce_connection_of(struct roce_function *function, struct qp *qp);
/* For a packet, which may name any QPN: the connection at its place, perhaps another one. */
struct roce_connection *roce_connection_at(struct roce_function *function, uint32_t qpn);
/* The same queue pair is still there as when the flight or bell was made. */
static inline bool roce_is_alive(const struct roce_connection *connection, uint32_t birth)
{
    return !connection->function->gone && connection->birth == birth;
}
/* Its queue pair was not destroyed since roce_forget. */
bool roce_has_qp(const struct roce_connection *connection);
/* Before the engine is told something. */
static inline void roce_enter(struct roce_function *function)
{
    function->had_news = nic_has_news(function->engine);
}
/* The engine was told something: its timers may have changed. `changed`: so did what a program
 * sees. */
void roce_settle(struct roce_function *function, bool changed);
/* When the context of a connection is on the chip; its reading begins now if it is not. */
uint64_t roce_context(struct roce_connection *connection);
/* The engine was told something of the connection's queue pair: requests may be complete. */
void roce_note_done(struct roce_connection *connection);
static inline void roce_end(struct roce_flight *flight)
{
    struct roce *roce = flight->roce;
    sim_pool_give(&roce->flights, flight);
    if (UNLIKELY(!list_empty(&roce->starved))) {
        sim_reschedule(roce->sim, &roce->feed, roce->sim->now_ps);
    }
}
/* The function is gone: what waits for work requests is dropped. */
void roce_end_connections(struct roce_function *function);
/* The packet, which was to leave, does not. */
void roce_drop(struct roce_flight *flight, uint64_t *counter);

/* -- pcie.c -------------------------------------------------------------------------------------*/

/* The NIC reads now; returns when the last byte is there. */
uint64_t roce_pcie_read(struct roce_node *node, uint32_t bytes);
/* Data that come with something else: they only take the bus's time. */
uint64_t roce_pcie_carry(struct roce_node *node, uint32_t bytes);
/* The NIC writes now; returns when the last byte is visible. */
uint64_t roce_pcie_write(struct roce_node *node, uint32_t bytes);
/* The processor writes to the NIC now; returns when it is there. */
uint64_t roce_pcie_ring(struct roce_node *node, uint32_t bytes);
/* From visible data to the completion behind them. */
uint64_t roce_pcie_completion_ps(const struct roce_node *node);
/* When a completion that is written now is visible, and nothing before it is not. */
uint64_t roce_pcie_completion(const struct roce_node *node);

/* capture.c: the bytes that wait before a node's line become more or fewer. */
void roce_wait(struct roce_node *node, int64_t bytes);

/* -- send.c, receive.c --------------------------------------------------------------------------*/

/* Pulls packets while there is room. */
void roce_serve(struct roce_node *node);
/* All work requests up to this one are here. */
void roce_fetched(struct roce_connection *connection, uint32_t position);
/* The packet has passed what is before its payload, which is read now. */
void roce_read_payload(struct roce_flight *flight);
/* A packet has come, from the line or from the node itself. */
void roce_arrive(struct roce_node *node, struct roce_flight *flight);
/* It has passed what is before its judgement. */
void roce_judge(struct roce_flight *flight);

/* -- units.c: a NIC as csRNA's ------------------------------------------------------------------*/

void roce_units_open(struct roce_node *node);
void roce_units_close(struct roce_node *node);
/* The doorbell for `count` work requests has come: roce_fetched when each has its context. */
void roce_units_ring(struct roce_connection *connection, uint32_t count);
/* A request that may be sent waits for the slowest unit: roce_read_payload. */
void roce_units_send(struct roce_flight *flight);
/* A payload that is being read, or is not any more. */
void roce_units_reading(struct roce_flight *flight, bool reads);
/* A packet has come: roce_judge. */
void roce_units_receive(struct roce_flight *flight);
/* The place gets another queue pair, or none. */
void roce_units_forget(struct roce_connection *connection);
/* Adds what they have counted of contexts; of a node that may have none. */
void roce_units_count(const struct roce_node *node, struct roce_node_counters *counters);

/* capture.c: the packet leaves. */
void roce_capture_flight(const struct roce_flight *flight);

/* -- fabric.c -----------------------------------------------------------------------------------*/

/* `calls` are those of nodes' ports. */
bool roce_fabric_open(struct roce *roce, const struct sim_port_calls *calls, char *error,
                      size_t error_bytes);
void roce_fabric_close(struct roce *roce);

#endif
