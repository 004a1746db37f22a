/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lant/flow.h"

#include <stdlib.h>

#include "lab/lant/fabric.h"

/* Room that becomes free. */
struct returned {
    struct sim_event event;
    struct list place;
    struct lant_fabric *fabric;
    uint32_t port, flits;
};

const char *lant_flow_refuses(enum lant_flow_kind kind, const struct topology *topology)
{
    if (kind != LANT_FLOW_CREDITS) {
        return NULL;
    }
    switch (topology->kind) {
    case TOPOLOGY_STAR:
    case TOPOLOGY_ALL_TO_ALL:
    case TOPOLOGY_FAT_TREE: return NULL;
    case TOPOLOGY_TORUS: return "credits can deadlock in a torus without virtual channels";
    case TOPOLOGY_DRAGONFLY: return "credits can deadlock in a dragonfly without virtual channels";
    case TOPOLOGY_TEXT: return "credits can deadlock in a network of unknown ways";
    }
    UNREACHABLE("a topology outside its enum");
}

/* -- Room ---------------------------------------------------------------------------------------*/

static bool leads_to_switch(const struct lant_fabric *fabric, uint32_t port)
{
    return fabric->topology.ports[port].peer >= fabric->topology.nodes;
}

/* Whoever sends knows of the room only with credits; nodes take whatever comes. */
static bool has_room(const struct lant_fabric *fabric, uint32_t port, uint32_t flits)
{
    return fabric->config.flow != LANT_FLOW_CREDITS || !leads_to_switch(fabric, port) ||
           fabric->flow.ports[port].used + flits <= fabric->config.buffer_flits;
}

static void take_room(struct lant_flow_port *port, uint32_t flits)
{
    port->used += flits;
    port->most = port->used > port->most ? port->used : port->most;
}

bool lant_flow_ready(const struct lant_fabric *fabric, uint32_t port)
{
    return fabric->flow.ports == NULL || list_empty(&fabric->flow.ports[port].queue);
}

/* -- Leaving ------------------------------------------------------------------------------------*/

/* The packet's room at the vertex that it leaves is free behind its tail. */
static void transmit(struct lant_fabric *fabric, uint32_t port, struct lant_frame *frame)
{
    const uint64_t now_ps = fabric->sim->now_ps;
    list_remove(&frame->place);
    lant_flow_leaves(fabric, frame, now_ps + (uint64_t)frame->count * LANT_CYCLE_PS);
    frame->came_by = port;
    if (fabric->config.flow == LANT_FLOW_CREDITS && leads_to_switch(fabric, port)) {
        take_room(&fabric->flow.ports[port], frame->count);
    }
    (void)lant_fabric_transmit(fabric, port, frame, now_ps);
}

static void pump(struct lant_fabric *fabric, uint32_t number)
{
    struct lant_flow_port *port = &fabric->flow.ports[number];
    while (!list_empty(&port->queue)) {
        struct lant_frame *frame = CONTAINER_OF(port->queue.next, struct lant_frame, place);
        const uint64_t free_ps = fabric->free_ps[number];
        const uint64_t at_ps = frame->ready_ps > free_ps ? frame->ready_ps : free_ps;
        if (at_ps > fabric->sim->now_ps) {
            sim_reschedule(fabric->sim, &port->event, at_ps);
            return;
        }
        if (!has_room(fabric, number, frame->count)) {
            fabric->flow.waited += !frame->waits;
            frame->waits = true;
            return; /* Room that becomes free comes by here. */
        }
        transmit(fabric, number, frame);
    }
}

/* If the port is a node's, the node may go on. */
static void tell_node(struct lant_fabric *fabric, uint32_t port)
{
    const struct topology_port *link = &fabric->topology.ports[port];
    const uint32_t vertex = topology_port_of(&fabric->topology, link->peer, link->peer_port)->peer;
    if (fabric->flow.on_ready != NULL && vertex < fabric->topology.nodes &&
        lant_flow_ready(fabric, port)) {
        fabric->flow.on_ready(fabric->nodes, vertex);
    }
}

static void on_port(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_flow_port *port = CONTAINER_OF(event, struct lant_flow_port, event);
    const uint32_t number = (uint32_t)(port - port->fabric->flow.ports);
    pump(port->fabric, number);
    tell_node(port->fabric, number);
}

void lant_flow_send(struct lant_fabric *fabric, uint32_t port, struct lant_frame *frame,
                    uint64_t ready_ps)
{
    frame->ready_ps = ready_ps;
    frame->waits = false;
    list_append(&fabric->flow.ports[port].queue, &frame->place);
    pump(fabric, port);
}

/* -- Coming -------------------------------------------------------------------------------------*/

bool lant_flow_arrives(struct lant_fabric *fabric, const struct lant_frame *frame)
{
    if (fabric->config.flow != LANT_FLOW_DROP) {
        return true;
    }
    struct lant_flow_port *port = &fabric->flow.ports[frame->came_by];
    if (port->used + frame->count > fabric->config.buffer_flits) {
        fabric->flow.dropped++;
        return false;
    }
    take_room(port, frame->count);
    return true;
}

static void on_returned(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct returned *returned = CONTAINER_OF(event, struct returned, event);
    struct lant_fabric *fabric = returned->fabric;
    const uint32_t port = returned->port;
    CHECK(fabric->flow.ports[port].used >= returned->flits);
    fabric->flow.ports[port].used -= returned->flits;
    list_remove(&returned->place);
    sim_pool_give(&fabric->flow.returns, returned);
    pump(fabric, port);
    tell_node(fabric, port);
}

void lant_flow_leaves(struct lant_fabric *fabric, const struct lant_frame *frame, uint64_t at_ps)
{
    if (fabric->flow.ports == NULL || frame->came_by == LANT_NO_PORT ||
        !leads_to_switch(fabric, frame->came_by)) {
        return;
    }
    struct returned *returned = sim_pool_take(&fabric->flow.returns);
    CHECK(returned != NULL);
    *returned = (struct returned){.fabric = fabric, .port = frame->came_by, .flits = frame->count};
    sim_event_init(&returned->event, on_returned);
    list_init(&returned->place);
    list_append(&fabric->flow.coming, &returned->place);
    const uint64_t back_ps =
        fabric->config.flow == LANT_FLOW_CREDITS
            ? (uint64_t)lant_fabric_line(fabric, frame->came_by)->latency_cycles * LANT_CYCLE_PS
            : 0;
    sim_schedule(fabric->sim, &returned->event, at_ps + back_ps);
}

/* -- Opening ------------------------------------------------------------------------------------*/

void lant_flow_open(struct lant_fabric *fabric)
{
    struct lant_flow *flow = &fabric->flow;
    const uint32_t buffer = fabric->config.buffer_flits;
    if (fabric->config.flow == LANT_FLOW_NONE) {
        return;
    }
    CHECK(buffer >= LANT_PACKET_FLITS_MAX && buffer <= LANT_FLOW_BUFFER_MAX);
    flow->port_count = fabric->topology.first_port[topology_vertices(&fabric->topology)];
    flow->ports = calloc(flow->port_count, sizeof(flow->ports[0]));
    CHECK(flow->ports != NULL);
    for (uint32_t i = 0; i < flow->port_count; i++) {
        flow->ports[i].fabric = fabric;
        list_init(&flow->ports[i].queue);
        sim_event_init(&flow->ports[i].event, on_port);
    }
    list_init(&flow->coming);
    /* Each has taken room for a packet, of the fewest flits at least; a packet that was dropped has
     * taken none. */
    const uint64_t most = (uint64_t)flow->port_count * (buffer / LANT_PACKET_FLITS_MIN + 1);
    CHECK(most <= UINT32_MAX);
    sim_pool_open(&flow->returns, (uint32_t)most, sizeof(struct returned));
}

void lant_flow_close(struct lant_fabric *fabric)
{
    struct lant_flow *flow = &fabric->flow;
    if (flow->ports == NULL) {
        return;
    }
    for (struct list *place; (place = list_pop(&flow->coming)) != NULL;) {
        sim_cancel(&CONTAINER_OF(place, struct returned, place)->event);
    }
    for (uint32_t i = 0; i < flow->port_count; i++) {
        sim_cancel(&flow->ports[i].event);
    }
    sim_pool_close(&flow->returns);
    free(flow->ports);
}
