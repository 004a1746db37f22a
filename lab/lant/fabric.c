/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fabric - see fabric.h.
 */
#include "lab/lant/fabric.h"

#include "hardware/lant/switch_head.h"

#include <stdio.h>
#include <stdlib.h>

const struct lant_line *lant_fabric_line(const struct lant_fabric *fabric, uint32_t port)
{
    return fabric->topology.ports[port].link_class == TOPOLOGY_LINK_OF_NODE
               ? &fabric->config.node_line
               : &fabric->config.switch_line;
}

static void flip_bits(struct lant_fabric *fabric, struct lant_frame *frame)
{
    const uint64_t bits = 64 * (uint64_t)frame->count;
    if (sim_errors_pass(&fabric->errors, bits)) {
        return;
    }
    uint64_t bit = sim_errors_next(&fabric->errors, 0, bits);
    if (fabric->config.checking == LANT_CHECK_CODE) {
        fabric->counters.corrected += bit < bits;
        return;
    }
    while (bit < bits) {
        frame->flits[bit / 64] ^= UINT64_C(1) << (63 - bit % 64);
        fabric->counters.flipped++;
        bit = sim_errors_next(&fabric->errors, bit + 1, bits);
    }
}

/* Two runs agree on every bit of a packet that comes, or that is lost. */
static void note(const struct lant_fabric *fabric, const struct lant_frame *frame, bool comes)
{
    uint64_t all = frame->vertex ^ (uint64_t)comes << 63;
    for (uint32_t i = 0; i < frame->count; i++) {
        all = (all ^ frame->flits[i]) * UINT64_C(0x9e3779b97f4a7c15);
        all ^= all >> 31;
    }
    sim_note(fabric->sim, all);
}

static void drop(struct lant_fabric *fabric, struct lant_frame *frame, uint64_t *counter)
{
    note(fabric, frame, false);
    ++*counter;
    lant_fabric_free(fabric, frame);
}

uint64_t lant_fabric_transmit(struct lant_fabric *fabric, uint32_t at, struct lant_frame *frame,
                              uint64_t ready_ps)
{
    const struct topology_port *link = &fabric->topology.ports[at];
    const struct lant_line *line = lant_fabric_line(fabric, at);
    const uint64_t head_ps = ready_ps > fabric->free_ps[at] ? ready_ps : fabric->free_ps[at];
    const uint64_t length_ps = (uint64_t)frame->count * LANT_CYCLE_PS;
    fabric->free_ps[at] = head_ps + lant_line_ps(line, frame->count);
    fabric->busy_ps[at] += lant_line_ps(line, frame->count);
    frame->head_ps = head_ps + (uint64_t)line->latency_cycles * LANT_CYCLE_PS +
                     (line->store_and_forward ? length_ps : 0);
    frame->tail_ps = frame->head_ps + length_ps;
    frame->vertex = link->peer;
    if (sim_errors_loses(&fabric->errors)) {
        if (fabric->config.flow == LANT_FLOW_CREDITS) {
            lant_flow_leaves(fabric, frame, frame->tail_ps); /* The far end notices that. */
        }
        drop(fabric, frame, &fabric->counters.lost);
        return head_ps;
    }
    flip_bits(fabric, frame);
    const bool at_node = link->peer < fabric->topology.nodes;
    sim_schedule(fabric->sim, &frame->event, at_node ? frame->tail_ps : frame->head_ps);
    return head_ps;
}

/* The packet leaves `vertex` by `port`, its head at `ready_ps` or when it can. */
static uint64_t leave(struct lant_fabric *fabric, uint32_t vertex, uint32_t port,
                      struct lant_frame *frame, uint64_t ready_ps)
{
    const uint32_t at = fabric->topology.first_port[vertex] + port;
    if (fabric->flow.ports == NULL) {
        return lant_fabric_transmit(fabric, at, frame, ready_ps);
    }
    lant_flow_send(fabric, vertex, at, frame, ready_ps);
    return ready_ps;
}

/* A switch forgets the packet when its tail is there. */
static void drop_at_switch(struct lant_fabric *fabric, struct lant_frame *frame, uint64_t *counter)
{
    lant_flow_leaves(fabric, frame, frame->tail_ps);
    drop(fabric, frame, counter);
}

/* The last hop does not count for a packet's age. */
static bool leads_to_node(const struct lant_fabric *fabric, uint32_t vertex, uint32_t port)
{
    return fabric->topology.ports[fabric->topology.first_port[vertex] + port].peer <
           fabric->topology.nodes;
}

static uint32_t port_to(struct lant_fabric *fabric, uint32_t vertex, uint32_t node)
{
    const uint32_t entropy =
        fabric->config.one_way ? 0 : (uint32_t)prng_next(&fabric->sim->prng) | 1;
    return topology_route(&fabric->topology, vertex, node, entropy);
}

/* The packet is damaged: its answer leaves the switch that noticed it, when all of it was there. */
static void nack(struct lant_fabric *fabric, struct lant_frame *frame, uint32_t destination)
{
    const struct lant_fabric_config *config = &fabric->config;
    struct lant_packet answer;
    if (!lant_switch_refusal(frame->flits, frame->count, destination, 0, LANT_NACK_CRC, &answer) ||
        answer.header.destination >= fabric->topology.nodes) {
        drop_at_switch(fabric, frame, &fabric->counters.dropped_checked);
        return;
    }
    const uint64_t checked_ps = frame->head_ps + (uint64_t)config->check_cycles * LANT_CYCLE_PS;
    const uint64_t known_ps = checked_ps > frame->tail_ps ? checked_ps : frame->tail_ps;
    fabric->counters.nacked++;
    frame->count = lant_encode(&answer, frame->flits);
    leave(fabric, frame->vertex, port_to(fabric, frame->vertex, answer.header.destination), frame,
          known_ps + (uint64_t)config->switch_cycles * LANT_CYCLE_PS);
}

static bool is_whole(const struct lant_frame *frame)
{
    struct lant_packet packet;
    uint32_t repaired;
    return lant_decode(frame->flits, frame->count, &packet, &repaired) == LANT_WHOLE;
}

static void at_switch(struct lant_fabric *fabric, struct lant_frame *frame)
{
    if (fabric->flow.ports != NULL && !lant_flow_arrives(fabric, frame)) {
        lant_fabric_free(fabric, frame);
        return;
    }
    struct lant_header head;
    switch (lant_head_decode(frame->flits[0], &head)) {
    case LANT_CLEAN: break;
    case LANT_REPAIRED:
        (void)lant_secded_check(&frame->flits[0]);
        fabric->counters.mended++;
        break;
    case LANT_DAMAGED: drop_at_switch(fabric, frame, &fabric->counters.dropped_heads); return;
    }
    if (head.destination >= fabric->topology.nodes) {
        drop_at_switch(fabric, frame, &fabric->counters.dropped_strangers);
        return;
    }
    if (fabric->config.checking == LANT_CHECK_LINKS && !is_whole(frame)) {
        nack(fabric, frame, head.destination);
        return;
    }
    const uint32_t port = port_to(fabric, frame->vertex, head.destination);
    if (fabric->config.ageing && !leads_to_node(fabric, frame->vertex, port)) {
        if (head.age == LANT_AGE_MAX) {
            drop_at_switch(fabric, frame, &fabric->counters.dropped_old);
            return;
        }
        frame->flits[0] = lant_head_aged(frame->flits[0]);
    }
    fabric->counters.switches++;
    const bool checks = fabric->config.checking != LANT_CHECK_ENDS && head.payload != 0;
    const uint64_t cycles =
        fabric->config.switch_cycles + (checks ? fabric->config.check_cycles : 0);
    leave(fabric, frame->vertex, port, frame, frame->head_ps + cycles * LANT_CYCLE_PS);
}

static void on_frame(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_frame *frame = CONTAINER_OF(event, struct lant_frame, event);
    struct lant_fabric *fabric = frame->fabric;
    if (frame->vertex >= fabric->topology.nodes) {
        at_switch(fabric, frame);
        return;
    }
    fabric->counters.carried++;
    note(fabric, frame, true);
    fabric->sink(fabric->nodes, frame->vertex, frame);
}

/* To the node that sends it, by no line at all. */
static void deliver_here(struct lant_fabric *fabric, uint32_t node, struct lant_frame *frame,
                         uint64_t head_ps)
{
    frame->vertex = node;
    frame->head_ps = head_ps;
    frame->tail_ps = head_ps + (uint64_t)frame->count * LANT_CYCLE_PS;
    sim_schedule(fabric->sim, &frame->event, frame->tail_ps);
}

/* The node's own switch answers when it has all of a packet to nowhere. */
static void refuse(struct lant_fabric *fabric, uint32_t node, struct lant_frame *frame,
                   uint64_t head_ps)
{
    struct lant_packet answer;
    if (!lant_switch_refusal(frame->flits, frame->count, node, 0, LANT_DECERR, &answer)) {
        drop(fabric, frame, &fabric->counters.dropped_strangers);
        return;
    }
    const uint64_t cycles = frame->count + fabric->config.switch_cycles;
    fabric->counters.refused_strangers++;
    frame->count = lant_encode(&answer, frame->flits);
    deliver_here(fabric, node, frame, head_ps + cycles * LANT_CYCLE_PS);
}

uint64_t lant_fabric_send(struct lant_fabric *fabric, uint32_t node, struct lant_frame *frame,
                          uint64_t head_ps)
{
    struct lant_header head;
    (void)lant_head_decode(frame->flits[0], &head);
    if (head.destination >= fabric->topology.nodes) {
        refuse(fabric, node, frame, head_ps);
        return head_ps;
    }
    if (head.destination == node) {
        deliver_here(fabric, node, frame, head_ps);
        return head_ps;
    }
    const uint32_t port = topology_degree(&fabric->topology, node) == 1
                              ? 0
                              : topology_route(&fabric->topology, node, head.destination, 0);
    return leave(fabric, node, port, frame, head_ps);
}

/* -- Opening ------------------------------------------------------------------------------------*/

bool lant_fabric_topology(const struct lant_fabric_config *config, struct topology *topology,
                          char *error, size_t error_bytes)
{
    const struct lab_text *given = &config->given;
    const bool open =
        given->text != NULL
            ? topology_parse(topology, given->text, given->bytes, error, error_bytes)
            : topology_open(topology, given->name != NULL ? given->name : config->topology, error,
                            error_bytes);
    if (!open) {
        return false;
    }
    const char *refused = lant_flow_refuses(config->flow, config->channels, topology);
    if (config->checking == LANT_CHECK_LINKS && config->flow != LANT_FLOW_NONE) {
        (void)snprintf(error, error_bytes, "switches that check have no bound for their buffers");
        topology_close(topology);
        return false;
    }
    if (refused != NULL && !config->may_deadlock) {
        (void)snprintf(error, error_bytes, "%s", refused);
        topology_close(topology);
        return false;
    }
    return true;
}

bool lant_fabric_open(struct lant_fabric *fabric, const struct lant_fabric_config *config,
                      struct sim *sim, uint64_t seed, lant_sink sink, void *nodes, char *error,
                      size_t error_bytes)
{
    *fabric = (struct lant_fabric){.sim = sim, .config = *config, .sink = sink, .nodes = nodes};
    fabric->config.channels = config->channels == 0 ? 1 : config->channels;
    if (!lant_fabric_topology(config, &fabric->topology, error, error_bytes)) {
        return false;
    }
    const uint32_t ports = fabric->topology.first_port[topology_vertices(&fabric->topology)];
    fabric->free_ps = calloc(ports, sizeof(fabric->free_ps[0]));
    fabric->busy_ps = calloc(ports, sizeof(fabric->busy_ps[0]));
    CHECK(fabric->free_ps != NULL && fabric->busy_ps != NULL);
    sim_pool_open(&fabric->frames, config->packets, sizeof(struct lant_frame));
    lant_flow_open(fabric);
    sim_errors_init(&fabric->errors, seed, config->bit_errors, config->loss_millionths);
    return true;
}

void lant_fabric_close(struct lant_fabric *fabric)
{
    lant_flow_close(fabric);
    CHECK(fabric->frames.depth == fabric->frames.used);
    sim_pool_close(&fabric->frames);
    free(fabric->free_ps);
    free(fabric->busy_ps);
    topology_close(&fabric->topology);
}

struct lant_frame *lant_fabric_frame(struct lant_fabric *fabric)
{
    struct lant_frame *frame = sim_pool_take(&fabric->frames);
    if (frame == NULL) {
        fabric->counters.dropped_full++;
        return NULL;
    }
    sim_event_init(&frame->event, on_frame);
    frame->fabric = fabric;
    frame->came_by = LANT_NO_PORT;
    frame->channel = 0;
    frame->crossed = false;
    list_init(&frame->place);
    return frame;
}

bool lant_fabric_ready(const struct lant_fabric *fabric, uint32_t node)
{
    return topology_degree(&fabric->topology, node) != 1 ||
           lant_flow_ready(fabric, fabric->topology.first_port[node]);
}

void lant_fabric_free(struct lant_fabric *fabric, struct lant_frame *frame)
{
    sim_pool_give(&fabric->frames, frame);
}
