/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node_output - the packet that leaves a node next, and the DMA engine that reads memory for it.
 */
#include "lab/lant/node.h"

#include <string.h>

/* -- The DMA engine -----------------------------------------------------------------------------*/

static const struct lant_costs *costs_of(const struct lant_node *node)
{
    return &node->world->config.costs;
}

/* The engine takes its next descriptor when the bus has answered all bursts of the last one. */
static void start_descriptor(struct lant_node *node)
{
    struct lant_rdma_descriptor descriptor;
    const uint64_t now_ps = node->world->sim->now_ps;
    if (node->dma.active || node->dma.unanswered != 0) {
        return;
    }
    switch (lant_rdma_next_descriptor(&node->rdma, now_ps, &descriptor)) {
    case LANT_RDMA_NOTHING:
    case LANT_RDMA_WAITS_ANSWER:
    case LANT_RDMA_WAITS_SLOT:
    case LANT_RDMA_WAITS_IDENTIFIER: return;
    case LANT_RDMA_BUSY:
    case LANT_RDMA_STARTS_PARTIAL:
    case LANT_RDMA_STARTS_GIVEN_WAY:
    case LANT_RDMA_STARTS_OPERATION: break;
    }
    node->dma.active = true;
    node->dma.ready_ps = now_ps + lant_cycles(costs_of(node)->rdma_setup + costs_of(node)->ram);
}

static bool engine_shows(const struct lant_node *node)
{
    return node->dma.active && node->dma.unanswered < node->world->config.burst_window;
}

static bool next_of_engine(struct lant_node *node, struct lant_packet *packet)
{
    struct lant_rdma_push push;
    const uint64_t now_ps = node->world->sim->now_ps;
    if (!engine_shows(node) || node->dma.ready_ps > now_ps) {
        return false;
    }
    switch (lant_rdma_next_packet(&node->rdma, now_ps, packet, &push)) {
    case LANT_RDMA_PUSH_WAITS: return false;
    case LANT_RDMA_PUSH_NOTHING:
    case LANT_RDMA_PUSH_GIVES_WAY:
        node->dma.active = false;
        start_descriptor(node);
        return false;
    case LANT_RDMA_PUSHED: break;
    }
    CHECK(push.source <= node->world->config.memory_bytes &&
          push.bytes <= node->world->config.memory_bytes - push.source);
    packet->payload[packet->header.payload - 1] = 0;
    memcpy(packet->payload, node->memory + push.source, push.bytes);
    node->dma.unanswered++;
    node->dma.active = !push.ends;
    node->last_ends = push.all;
    node->last_tag = push.tag;
    return true;
}

/* The bus has answered a burst: there may be room for the next one. */
static void bus_answers(struct lant_node *node)
{
    struct lant_dma *dma = &node->dma;
    CHECK(dma->unanswered != 0);
    const bool was_full = dma->unanswered-- >= node->world->config.burst_window;
    const uint64_t next_ps = node->world->sim->now_ps + lant_cycles(costs_of(node)->t_gen);
    if (dma->active && was_full && dma->ready_ps < next_ps) {
        dma->ready_ps = next_ps;
    }
}

void lant_node_on_bus(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_node *node = CONTAINER_OF(event, struct lant_node, dma.bus);
    bus_answers(node);
    lant_node_settle(node);
}

static bool is_data(const struct lant_header *header)
{
    return header->type == LANT_RDMA_WRITE || header->type == LANT_RDMA_WRITE_REGISTER ||
           header->type == LANT_RDMA_UNREGISTERED;
}

/* Is the packet that leaves, or has just left, one of the DMA engine's that nobody has answered? An
 * honest peer cannot have, but a forger can. */
static bool last_is_under_way(const struct lant_node *node)
{
    const struct lant_footer *footer = &node->last.footer;
    if (!is_data(&node->last.header)) {
        return false;
    }
    const struct lant_transaction *row = &node->rdma.transactions.table[footer->row];
    return row->busy && row->identifier == lant_operation_of(footer) &&
           row->offset == footer->offset && row->attempt == footer->attempt;
}

/* A packet's last flit is out: the bus is answered early if there is a timer. */
static void burst_sent(struct lant_node *node)
{
    struct lant_dma *dma = &node->dma;
    if (!last_is_under_way(node)) {
        bus_answers(node);
    } else if (dma->early < node->world->config.early_timers) {
        dma->early++;
        sim_after(node->world->sim, &dma->bus, lant_cycles(costs_of(node)->early_timer));
    } else {
        dma->waiting++;
    }
}

void lant_node_packets_over(struct lant_node *node)
{
    struct lant_dma *dma = &node->dma;
    const uint32_t leaves = node->sending && last_is_under_way(node);
    const uint32_t under_way = lant_rdma_in_flight(&node->rdma) - leaves;
    while (dma->early + dma->waiting > under_way) {
        /* The oldest one is over. Its timer goes to the oldest one that waits for a timer, and the
         * bus is told of that one. Without timers that one itself is over. */
        if (dma->early != 0 && dma->waiting == 0) {
            dma->early--;
        } else {
            dma->waiting--;
            bus_answers(node);
        }
    }
}

/* -- The output ---------------------------------------------------------------------------------*/

static bool next_answer(struct lant_node *node, struct lant_packet *packet)
{
    if (list_empty(&node->answers)) {
        return false;
    }
    struct lant_visit *visit = CONTAINER_OF(node->answers.next, struct lant_visit, place);
    if (visit->ready_ps > node->world->sim->now_ps) {
        return false;
    }
    *packet = visit->packet;
    list_remove(&visit->place);
    sim_pool_give(&node->world->visits, visit);
    return true;
}

static bool next_packet(struct lant_node *node, struct lant_packet *packet)
{
    return next_answer(node, packet) || lant_shm_next_packet(&node->shm, packet) ||
           lant_rdma_next_completion(&node->rdma, node->world->sim->now_ps, packet) ||
           next_of_engine(node, packet) || lant_errors_next_report(&node->errors, packet);
}

/* When something that is known of now is ready; LANT_NEVER. */
static uint64_t ready_at(const struct lant_node *node)
{
    uint64_t at_ps = LANT_NEVER;
    if (!list_empty(&node->answers)) {
        at_ps = CONTAINER_OF(node->answers.next, struct lant_visit, place)->ready_ps;
    }
    if (engine_shows(node) && node->dma.ready_ps < at_ps &&
        node->dma.ready_ps > node->world->sim->now_ps) {
        at_ps = node->dma.ready_ps;
    }
    return at_ps;
}

/* Returns when the first flit leaves. */
static uint64_t onto_the_line(struct lant_node *node, const struct lant_packet *packet)
{
    struct lant_world *world = node->world;
    struct lant_frame *frame = lant_fabric_frame(&world->fabric);
    if (frame == NULL) {
        return world->sim->now_ps;
    }
    frame->count = lant_encode(packet, frame->flits);
    return lant_fabric_send(&world->fabric, node->index, frame, world->sim->now_ps);
}

static void send_packet(struct lant_node *node, const struct lant_packet *packet)
{
    struct lant_world *world = node->world;
    node->counters.sent++;
    node->last = (struct lant_ends){packet->header, packet->footer};
    node->sending = true;
    const uint64_t head_ps = onto_the_line(node, packet);
    node->free_ps = head_ps + lant_cycles(lant_packet_flits(&packet->header));
    lant_watch_sent(world->watch, node->index, &packet->header, head_ps, node->free_ps);
    if (node->dma.active && packet->footer.class == LANT_CLASS_RDMA &&
        node->dma.ready_ps < node->free_ps) {
        node->dma.ready_ps = node->free_ps;
    }
    sim_reschedule(world->sim, &node->output, node->free_ps);
}

void lant_node_pump(struct lant_node *node)
{
    struct lant_packet packet;
    struct sim *sim = node->world->sim;
    if (node->sending) {
        return;
    }
    start_descriptor(node);
    const uint64_t line_ps = lant_fabric_free_ps(&node->world->fabric, node->index);
    if (line_ps > sim->now_ps) {
        sim_reschedule(sim, &node->output, line_ps);
        return;
    }
    if (!lant_fabric_ready(&node->world->fabric, node->index)) {
        return; /* Room that becomes free comes by lant_node_settle. */
    }
    node->last_ends = false;
    if (next_packet(node, &packet)) {
        send_packet(node, &packet);
        return;
    }
    const uint64_t at_ps = ready_at(node);
    if (at_ps != LANT_NEVER) {
        sim_reschedule(sim, &node->output, at_ps);
    }
}

/* A packet's last flit is out; or something may be ready. */
void lant_node_on_output(struct sim *sim, struct sim_event *event)
{
    struct lant_node *node = CONTAINER_OF(event, struct lant_node, output);
    if (node->sending && node->free_ps <= sim->now_ps) {
        const uint8_t type = node->last.header.type;
        node->sending = false;
        if (type == LANT_AR || type == LANT_AW || type == LANT_ATOMIC) {
            lant_shm_sent(&node->shm, &node->last.footer, sim->now_ps);
        }
        if (is_data(&node->last.header)) {
            burst_sent(node);
            if (node->last_ends && node->program.on_pushed != NULL) {
                node->program.on_pushed(node->program.context, node->last_tag);
            }
        }
    }
    lant_node_settle(node);
}
