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
    uint8_t channel;
};

const char *lant_flow_refuses(enum lant_flow_kind kind, uint32_t channels,
                              const struct topology *topology)
{
    if (kind != LANT_FLOW_CREDITS) {
        return NULL;
    }
    switch (topology->kind) {
    case TOPOLOGY_STAR:
    case TOPOLOGY_ALL_TO_ALL:
    case TOPOLOGY_FAT_TREE: return NULL;
    case TOPOLOGY_TORUS:
        return channels >= 2 ? NULL : "credits can deadlock in a torus without virtual channels";
    case TOPOLOGY_DRAGONFLY:
        return channels >= 2 ? NULL
                             : "credits can deadlock in a dragonfly without virtual channels";
    case TOPOLOGY_TEXT: return "credits can deadlock in a network of unknown ways";
    }
    UNREACHABLE("a topology outside its enum");
}

/* -- Channels -----------------------------------------------------------------------------------*/

/* The dimension of a torus' switch to which its port belongs; 0: a node's port. */
static uint32_t dimension_of(const struct topology *topology, uint32_t number)
{
    uint32_t i = topology->digit_count - 1;
    while (i > 0 && number < topology->digits[i].port) {
        i--;
    }
    return i;
}

/* Does the link lead from the last coordinate to 0, or back? A ring of two is one link. */
static bool goes_around(const struct topology *topology, uint32_t vertex, uint32_t number)
{
    const struct topology_digit *digit = &topology->digits[dimension_of(topology, number)];
    const uint32_t place = topology->labels[vertex] >> digit->shift & digit->mask;
    return digit->both_ports && place == (number == digit->port ? digit->size - 1 : 0);
}

/* By the port here that the line leads to: a node's port is of none. */
static bool came_in_dimension(const struct topology *topology, const struct lant_frame *frame,
                              uint32_t dimension)
{
    if (frame->came_by == LANT_NO_PORT) {
        return false;
    }
    return dimension_of(topology, topology->ports[frame->came_by].peer_port) == dimension;
}

/* The channel in which a packet leaves the vertex by its port of this number. */
static uint8_t channel_of(const struct lant_fabric *fabric, uint32_t vertex, uint32_t number,
                          const struct lant_frame *frame)
{
    const struct topology *topology = &fabric->topology;
    if (fabric->config.channels == 1 || vertex < topology->nodes) {
        return 0;
    }
    if (topology->kind == TOPOLOGY_DRAGONFLY) {
        return frame->crossed;
    }
    const uint32_t dimension =
        topology->kind == TOPOLOGY_TORUS ? dimension_of(topology, number) : 0;
    if (dimension == 0) {
        return 0;
    }
    return goes_around(topology, vertex, number) ||
           (frame->channel == 1 && came_in_dimension(topology, frame, dimension));
}

/* -- Room ---------------------------------------------------------------------------------------*/

static bool leads_to_switch(const struct lant_fabric *fabric, uint32_t port)
{
    return fabric->topology.ports[port].peer >= fabric->topology.nodes;
}

/* A sender knows of the room only with credits; nodes take every packet. */
static bool has_room(const struct lant_fabric *fabric, uint32_t port,
                     const struct lant_frame *frame)
{
    return fabric->config.flow != LANT_FLOW_CREDITS || !leads_to_switch(fabric, port) ||
           fabric->flow.ports[port].channels[frame->next].used + frame->count <=
               fabric->config.buffer_flits;
}

static void take_room(struct lant_flow_channel *channel, uint32_t flits)
{
    channel->used += flits;
    channel->most = channel->used > channel->most ? channel->used : channel->most;
}

bool lant_flow_ready(const struct lant_fabric *fabric, uint32_t port)
{
    for (uint32_t i = 0; fabric->flow.ports != NULL && i < LANT_CHANNELS_MAX; i++) {
        if (!list_empty(&fabric->flow.ports[port].channels[i].queue)) {
            return false;
        }
    }
    return true;
}

/* -- Leaving ------------------------------------------------------------------------------------*/

/* The packet's room at the vertex that it leaves is free behind its tail. */
static void transmit(struct lant_fabric *fabric, uint32_t port, struct lant_frame *frame)
{
    const uint64_t now_ps = fabric->sim->now_ps;
    list_remove(&frame->place);
    lant_flow_leaves(fabric, frame, now_ps + (uint64_t)frame->count * LANT_CYCLE_PS);
    frame->came_by = port;
    frame->channel = frame->next;
    frame->crossed |= fabric->topology.ports[port].link_class == TOPOLOGY_LINK_GLOBAL;
    if (fabric->config.flow == LANT_FLOW_CREDITS && leads_to_switch(fabric, port)) {
        take_room(&fabric->flow.ports[port].channels[frame->channel], frame->count);
    }
    (void)lant_fabric_transmit(fabric, port, frame, now_ps);
}

/* The first of the packets that wait for the port for which there is room; NULL. */
static struct lant_frame *first_of(struct lant_fabric *fabric, uint32_t number)
{
    struct lant_flow_port *port = &fabric->flow.ports[number];
    struct lant_frame *first = NULL;
    for (uint32_t i = 0; i < fabric->config.channels; i++) {
        if (list_empty(&port->channels[i].queue)) {
            continue;
        }
        struct lant_frame *frame =
            CONTAINER_OF(port->channels[i].queue.next, struct lant_frame, place);
        if (!has_room(fabric, number, frame)) {
            fabric->flow.waited += !frame->waits;
            frame->waits = true;
        } else if (first == NULL || frame->ready_ps < first->ready_ps) {
            first = frame;
        }
    }
    return first;
}

/* Room that becomes free comes by here. */
static void pump(struct lant_fabric *fabric, uint32_t number)
{
    for (struct lant_frame *frame; (frame = first_of(fabric, number)) != NULL;) {
        const uint64_t free_ps = fabric->free_ps[number];
        const uint64_t at_ps = frame->ready_ps > free_ps ? frame->ready_ps : free_ps;
        if (at_ps > fabric->sim->now_ps) {
            sim_reschedule(fabric->sim, &fabric->flow.ports[number].event, at_ps);
            return;
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

void lant_flow_send(struct lant_fabric *fabric, uint32_t vertex, uint32_t port,
                    struct lant_frame *frame, uint64_t ready_ps)
{
    frame->ready_ps = ready_ps;
    frame->waits = false;
    frame->next = channel_of(fabric, vertex, port - fabric->topology.first_port[vertex], frame);
    list_append(&fabric->flow.ports[port].channels[frame->next].queue, &frame->place);
    pump(fabric, port);
}

/* -- Coming -------------------------------------------------------------------------------------*/

bool lant_flow_arrives(struct lant_fabric *fabric, const struct lant_frame *frame)
{
    if (fabric->config.flow != LANT_FLOW_DROP) {
        return true;
    }
    struct lant_flow_channel *channel =
        &fabric->flow.ports[frame->came_by].channels[frame->channel];
    if (channel->used + frame->count > fabric->config.buffer_flits) {
        fabric->flow.dropped++;
        return false;
    }
    take_room(channel, frame->count);
    return true;
}

static void on_returned(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct returned *returned = CONTAINER_OF(event, struct returned, event);
    struct lant_fabric *fabric = returned->fabric;
    const uint32_t port = returned->port;
    struct lant_flow_channel *channel = &fabric->flow.ports[port].channels[returned->channel];
    CHECK(channel->used >= returned->flits);
    channel->used -= returned->flits;
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
    *returned = (struct returned){
        .fabric = fabric, .port = frame->came_by, .flits = frame->count, .channel = frame->channel};
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
    CHECK(fabric->config.channels <= LANT_CHANNELS_MAX);
    CHECK(buffer >= LANT_PACKET_FLITS_MAX && buffer <= LANT_FLOW_BUFFER_MAX);
    flow->port_count = fabric->topology.first_port[topology_vertices(&fabric->topology)];
    flow->ports = calloc(flow->port_count, sizeof(flow->ports[0]));
    CHECK(flow->ports != NULL);
    for (uint32_t i = 0; i < flow->port_count; i++) {
        flow->ports[i].fabric = fabric;
        for (uint32_t k = 0; k < LANT_CHANNELS_MAX; k++) {
            list_init(&flow->ports[i].channels[k].queue);
        }
        sim_event_init(&flow->ports[i].event, on_port);
    }
    list_init(&flow->coming);
    /* Each has taken room for a packet, of the fewest flits at least; a packet that was dropped has
     * taken none. */
    const uint64_t most =
        (uint64_t)flow->port_count * fabric->config.channels * (buffer / LANT_PACKET_FLITS_MIN + 1);
    CHECK(most <= UINT32_MAX);
    sim_pool_open(&flow->returns, (uint32_t)most, sizeof(struct returned));
}

/* Packets that wait for ever. */
static void give_back(struct lant_fabric *fabric, struct lant_flow_port *port)
{
    for (uint32_t i = 0; i < LANT_CHANNELS_MAX; i++) {
        for (struct list *place; (place = list_pop(&port->channels[i].queue)) != NULL;) {
            lant_fabric_free(fabric, CONTAINER_OF(place, struct lant_frame, place));
        }
    }
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
        give_back(fabric, &flow->ports[i]);
    }
    sim_pool_close(&flow->returns);
    free(flow->ports);
}
