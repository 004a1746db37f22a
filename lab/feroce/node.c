/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/feroce/node.h"

#include <stdlib.h>
#include <string.h>

#include "hardware/feroce/timing.h"
#include "lab/feroce/design.h"
#include "lab/feroce/machine.h"
#include "lab/feroce/node_internal.h"

/* The first edge of the clock that is not before `at_ps`. */
static uint64_t feroce_edge_ps(const struct feroce_node *node, uint64_t at_ps)
{
    const uint64_t cycle_ps = node->timing.cycle_ps;
    return (at_ps + cycle_ps - 1) / cycle_ps * cycle_ps;
}

uint64_t feroce_turn_ps(const struct feroce_node *node, uint64_t at_ps, uint32_t index)
{
    const uint64_t qps = node->board.config.window.qps;
    const uint64_t edge = feroce_edge_ps(node, at_ps) / node->timing.cycle_ps;
    return (edge + (index + qps - edge % qps) % qps) * node->timing.cycle_ps;
}

bool feroce_is_2024(const struct feroce_node *node)
{
    return node->board.config.stack == FEROCE_STACK_2024;
}

struct instant feroce_node_now(const struct feroce_node *node)
{
    const uint64_t ps = node->sim->now_ps;
    return node->timing.timer_scale == 1
               ? (struct instant){ps / SIM_NS}
               : (struct instant){(uint64_t)((double)ps * node->timing.timer_scale / 1e3)};
}

/* -- Queues: generator, framer ------------------------------------------------------------------*/

/* The next message, if it is due; else says when to look again. */
static bool take_message(struct feroce_queue_server *queue)
{
    struct feroce_node *node = queue->node;
    const uint64_t now_ps = node->sim->now_ps;
    const uint64_t due_ns = feroce_generator_deadline(&queue->generator).ns;
    if (queue->ready_requests >= FEROCE_REQUESTS || due_ns == INSTANT_NEVER.ns) {
        return false;
    }
    const uint64_t due_ps = sim_later(due_ns * SIM_NS, queue->next_message_ps);
    if (due_ps > now_ps) {
        sim_reschedule(node->sim, &queue->event, feroce_edge_ps(node, due_ps));
        return false;
    }
    if (!feroce_generator_next(&queue->generator, sim_instant(node->sim), &queue->message)) {
        return false;
    }
    queue->left = queue->message.length;
    queue->first = true;
    queue->next_message_ps =
        now_ps + feroce_cycles_ps(node, feroce_generator_cycles(queue->generator.meta.frequency,
                                                                queue->message.length,
                                                                node->timing.qp_width_bytes));
    return true;
}

static uint32_t next_bytes(const struct feroce_queue_server *queue)
{
    const uint32_t pmtu = queue->node->board.config.window.pmtu;
    return queue->left < pmtu ? queue->left : pmtu;
}

static bool has_place(const struct feroce_queue_server *queue)
{
    if (feroce_is_2024(queue->node)) {
        return queue->ready_count == 0;
    }
    return queue->ready_bytes + next_bytes(queue) <= FEROCE_QUEUE_BYTES &&
           queue->ready_count < FEROCE_READY_MAX;
}

static void push_ready(struct feroce_queue_server *queue)
{
    const uint32_t bytes = next_bytes(queue);
    queue->left -= bytes;
    queue->ready[(queue->ready_first + queue->ready_count++) % FEROCE_READY_MAX] =
        (struct feroce_ready){queue->message, bytes, queue->left == 0};
    queue->ready_bytes += bytes;
    queue->ready_requests += queue->left == 0;
}

static struct feroce_ready pop_ready(struct feroce_queue_server *queue)
{
    const struct feroce_ready ready = queue->ready[queue->ready_first];
    queue->ready_first = (queue->ready_first + 1) % FEROCE_READY_MAX;
    queue->ready_count--;
    queue->ready_bytes -= ready.bytes;
    queue->ready_requests -= ready.last;
    return ready;
}

static void stream_2024(struct feroce_node *node);

/* Begins to fill the next packet. In 2024 only what a request takes comes before the packet streams
 * on to the line. */
void feroce_wake_queue(struct feroce_queue_server *queue)
{
    struct feroce_node *node = queue->node;
    if (queue->filling || (queue->left == 0 && !take_message(queue)) || !has_place(queue)) {
        return;
    }
    const uint32_t request_cycles = queue->first ? node->timing.request_cycles : 0;
    const uint32_t cycles =
        feroce_is_2024(node) ? request_cycles
                             : feroce_queue_cycles(next_bytes(queue), node->timing.qp_width_bytes,
                                                   queue->first, request_cycles);
    queue->filling = true;
    queue->first = false;
    sim_reschedule(node->sim, &queue->event, node->sim->now_ps + feroce_cycles_ps(node, cycles));
}

static void on_queue(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_queue_server *queue = CONTAINER_OF(event, struct feroce_queue_server, event);
    struct feroce_node *node = queue->node;
    if (!queue->filling) { /* The generator is due; or in 2024 the packet before has streamed. */
        feroce_wake_queue(queue);
        return;
    }
    push_ready(queue);
    if (feroce_is_2024(node)) {
        stream_2024(node);
        return;
    }
    queue->filling = false;
    feroce_wake_queue(queue);
    feroce_wake_writer(node);
}

/* The board does not take it: the message is dropped whole, and its generator stops (FER-30). */
static void drop_message(struct feroce_queue_server *queue)
{
    queue->dropped++;
    queue->left = 0;
    queue->ready_count = queue->ready_bytes = queue->ready_requests = 0;
    feroce_generator_stop(&queue->generator);
}

static bool store(struct feroce_queue_server *queue, const struct feroce_ready *ready)
{
    struct feroce_node *node = queue->node;
    uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
    feroce_generator_fill(&queue->generator, payload, ready->bytes);
    const enum feroce_store verdict =
        feroce_board_store(&node->board, queue->index, &ready->message, payload, ready->bytes,
                           ready->last, feroce_node_now(node));
    if (verdict == FEROCE_STORED) {
        return true;
    }
    if (verdict != FEROCE_STORE_NOT_OPEN && verdict != FEROCE_STORE_HALTED) {
        lab_fail(node->machine->run, "a board does not store a packet: verdict %u", verdict);
    }
    drop_message(queue);
    return false;
}

/* -- Memory write -------------------------------------------------------------------------------*/

void feroce_wake_writer(struct feroce_node *node)
{
    const uint32_t qps = node->board.config.window.qps;
    for (uint32_t i = 0; i < qps && !node->writing && !feroce_is_2024(node); i++) {
        const uint32_t index = (node->write_turn + i) % qps;
        struct feroce_queue_server *queue = &node->queues[index];
        const bool closed = !node->board.window.windows[index].open;
        if (queue->ready_count == 0 || (!closed && !feroce_board_has_room(&node->board, index))) {
            continue;
        }
        node->writing = true;
        node->write_index = index;
        node->write_turn = (index + 1) % qps;
        const uint32_t cycles =
            feroce_store_cycles(queue->ready[queue->ready_first].bytes, node->timing.width_bytes);
        sim_after(node->sim, &node->write, feroce_cycles_ps(node, cycles));
    }
}

static void on_written(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_node *node = CONTAINER_OF(event, struct feroce_node, write);
    struct feroce_queue_server *queue = &node->queues[node->write_index];
    node->writing = false;
    if (queue->ready_count > 0) {
        const struct feroce_ready ready = pop_ready(queue);
        if (store(queue, &ready)) {
            feroce_set_timer(node);
            feroce_wake_reader(node);
        }
    }
    feroce_wake_queue(queue);
    feroce_wake_writer(node);
}

/* -- The reader ---------------------------------------------------------------------------------*/

static uint32_t read_ahead(const struct feroce_node *node)
{
    return node->timing.read_ahead > 0 ? node->timing.read_ahead : 1;
}

/* May another packet be handed on? With no read-ahead the line has to be free. */
static bool may_hand_on(const struct feroce_node *node)
{
    return node->ahead < read_ahead(node) && (node->timing.read_ahead > 0 || !node->port.sending);
}

/* Visits that found nothing while it slept. */
static void catch_up(struct feroce_node *node)
{
    const uint64_t empty_ps = feroce_cycles_ps(node, node->timing.visit_cycles);
    const uint64_t now_ps = node->sim->now_ps;
    if (node->visit_ps < now_ps) {
        const uint64_t visits = (now_ps - node->visit_ps + empty_ps - 1) / empty_ps;
        const uint64_t qps = node->board.config.window.qps;
        node->visit_ps += visits * empty_ps;
        node->board.turn = (uint32_t)((node->board.turn + visits) % qps);
    }
}

void feroce_wake_reader(struct feroce_node *node)
{
    if (feroce_is_2024(node)) {
        stream_2024(node);
        return;
    }
    if (node->asleep && feroce_retransmission_has_work(&node->board.window)) {
        node->asleep = false;
        catch_up(node);
        sim_reschedule(node->sim, &node->read, node->visit_ps);
    } else if (node->blocked && may_hand_on(node)) {
        node->blocked = false;
        node->visit_ps = feroce_edge_ps(node, node->sim->now_ps);
        sim_reschedule(node->sim, &node->read, node->visit_ps);
    }
}

/* The packet that a visit found, on its way. */
static struct feroce_packet_on_line *make_packet(struct feroce_node *node,
                                                 const struct feroce_packet *read)
{
    struct feroce_machine *machine = node->machine;
    struct feroce_packet_on_line *packet = feroce_take_packet(machine);
    const bool old = feroce_is_2024(node);
    packet->addresses = (struct feroce_frame){
        .source_ip = feroce_ip_of(node->number),
        .destination_ip = read->destination_ip,
        .source_port = old ? FEROCE_PORT_DATA_FROM_2024 : FEROCE_PORT_DATA_FROM,
        .destination_port = ROCE_UDP_PORT,
    };
    packet->from = node->number;
    packet->is_data = true;
    packet->resent = read->resent;
    packet->is_last = read->is_last;
    packet->index = read->qpn - FEROCE_FIRST_QPN;
    packet->psn = read->psn;
    packet->header_bytes = read->header_bytes;
    packet->payload_bytes = read->payload_bytes;
    memcpy(packet->headers, read->headers, read->header_bytes);
    memcpy(packet->payload, read->payload, read->payload_bytes);
    struct feroce_sent *sent =
        &node->queues[packet->index].sent[packet->psn.value % FEROCE_SENT_MAX];
    *sent = (struct feroce_sent){.bytes = read->payload_bytes, .is_last = read->is_last};
    const struct psn oldest = psn_after(node->board.window.windows[packet->index].acked, 1);
    node->oldest_resends += read->resent && psn_equal(packet->psn, oldest);
    node->ahead++;
    return packet;
}

static void begin_output(struct feroce_node *node);

static void push_output(struct feroce_node *node, struct feroce_packet_on_line *packet)
{
    CHECK(node->output_count < FEROCE_OUTPUT_MAX);
    node->output[(node->output_first + node->output_count++) % FEROCE_OUTPUT_MAX] = packet;
    begin_output(node);
}

/* A visit of R's that finds nothing clears the stall, as often as it comes. */
static void visit_in_vain(struct feroce_node *node)
{
    struct feroce_packet none;
    bool rewound;
    for (uint32_t i = 0; i < node->board.config.window.qps; i++) {
        (void)feroce_board_visit(&node->board, feroce_node_now(node), &none, &rewound);
    }
    feroce_wake_writer(node);
}

static void visit(struct feroce_node *node)
{
    struct feroce_packet read;
    bool rewound = false;
    const struct feroce_visit_cycles costs = {node->timing.visit_cycles,
                                              node->timing.packet_cycles};
    const enum feroce_visit found =
        feroce_board_visit(&node->board, feroce_node_now(node), &read, &rewound);
    if (found == FEROCE_VISIT_PACKET) {
        node->in_hand = make_packet(node, &read);
    } else if (found == FEROCE_VISIT_GIVES_UP) {
        feroce_take_events(node);
        feroce_wake_writer(node);
    }
    feroce_set_timer(node);
    node->visit_ps =
        node->sim->now_ps +
        feroce_cycles_ps(node, feroce_visit_cycles(&costs, found == FEROCE_VISIT_PACKET, rewound));
    sim_schedule(node->sim, &node->read, node->visit_ps);
}

static void on_read(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_node *node = CONTAINER_OF(event, struct feroce_node, read);
    if (node->in_hand != NULL) {
        push_output(node, node->in_hand);
        node->in_hand = NULL;
    }
    if (!may_hand_on(node)) {
        node->blocked = true;
        return;
    }
    if (!feroce_retransmission_has_work(&node->board.window)) {
        node->asleep = true;
        if ((node->board.config.window.quirks & FEROCE_QUIRK_STALL) != 0) {
            visit_in_vain(node);
        }
        return;
    }
    visit(node);
}

/* -- Memory read, headers, ICRC -----------------------------------------------------------------*/

static bool resolve(struct feroce_node *node, struct feroce_packet_on_line *packet)
{
    const uint32_t to = packet->addresses.destination_ip - feroce_ip_of(0);
    packet->to = to;
    if (to <= feroce_receiver_number(node->machine)) {
        return true;
    }
    /* Nobody answers. One state machine serves all that is sent, so all of it waits. */
    node->arp_requests += FEROCE_ARP_TRIES;
    return false;
}

/* Monitors: the packet's BTH passes to the UDP/IP stack; its last word does. */
static void note_begin(struct feroce_node *node, const struct feroce_packet_on_line *packet)
{
    if (!packet->is_data) {
        return;
    }
    struct feroce_queue_server *queue = &node->queues[packet->index];
    const uint64_t now_ps = node->sim->now_ps;
    queue->sent[packet->psn.value % FEROCE_SENT_MAX].begun_ps = now_ps;
    queue->transfer_ps = queue->transfer_ps == 0 ? now_ps : queue->transfer_ps;
}

static void note_end(struct feroce_node *node, const struct feroce_packet_on_line *packet)
{
    if (packet->is_data && packet->is_last) {
        struct feroce_queue_server *queue = &node->queues[packet->index];
        const uint64_t ps = node->sim->now_ps - queue->transfer_ps;
        feroce_monitor_note(&node->transfer, ps / node->timing.cycle_ps);
        queue->transfer_ps = 0;
    }
}

static void begin_output(struct feroce_node *node)
{
    if (node->sending || node->output_count == 0) {
        return;
    }
    struct feroce_packet_on_line *packet = node->output[node->output_first];
    node->sending = true;
    if (!resolve(node, packet)) {
        sim_after(node->sim, &node->send, FEROCE_ARP_WAIT_PS);
        return;
    }
    packet->addresses.identification = feroce_is_2024(node) ? 0 : node->identification++;
    feroce_seal(packet);
    note_begin(node, packet);
    const uint32_t frame_bytes = (uint32_t)FEROCE_FRAME_HEADERS_BYTES + packet->header_bytes +
                                 packet->payload_bytes + (packet->has_icrc ? ROCE_ICRC_BYTES : 0);
    const uint32_t cycles = feroce_send_cycles(frame_bytes, node->timing.width_bytes);
    sim_after(node->sim, &node->send, feroce_cycles_ps(node, cycles));
}

static void on_sent(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_node *node = CONTAINER_OF(event, struct feroce_node, send);
    struct feroce_packet_on_line *packet = node->output[node->output_first];
    node->output_first = (node->output_first + 1) % FEROCE_OUTPUT_MAX;
    node->output_count--;
    node->sending = false;
    note_end(node, packet);
    if (packet->to <= feroce_receiver_number(node->machine)) {
        sim_port_send(&node->port, &packet->frame);
    } else {
        node->unresolved++;
        node->ahead -= packet->is_data;
        feroce_give_packet(node->machine, packet);
        feroce_wake_reader(node);
    }
    begin_output(node);
    stream_2024(node);
}

void feroce_insert_output(struct feroce_node *node, struct feroce_packet_on_line *packet)
{
    CHECK(node->output_count < FEROCE_OUTPUT_MAX);
    /* Behind the one in work. */
    const uint32_t at = node->sending ? 1 : 0;
    for (uint32_t i = node->output_count; i > at; i--) {
        node->output[(node->output_first + i) % FEROCE_OUTPUT_MAX] =
            node->output[(node->output_first + i - 1) % FEROCE_OUTPUT_MAX];
    }
    node->output[(node->output_first + at) % FEROCE_OUTPUT_MAX] = packet;
    node->output_count++;
    begin_output(node);
}

/* A packet of 2024 leaves its queue when headers and line take it, and streams. */
static void stream_2024(struct feroce_node *node)
{
    struct feroce_queue_server *queue = &node->queues[0];
    struct feroce_packet read;
    if (!feroce_is_2024(node) || queue->ready_count == 0 || node->sending || !may_hand_on(node)) {
        return;
    }
    const struct feroce_ready ready = pop_ready(queue);
    queue->filling = false;
    if (!store(queue, &ready)) {
        return;
    }
    CHECK(feroce_board_next_packet(&node->board, feroce_node_now(node), &read));
    push_output(node, make_packet(node, &read));
    const uint32_t words = feroce_words(ready.bytes, node->timing.width_bytes);
    sim_reschedule(node->sim, &queue->event, node->sim->now_ps + feroce_cycles_ps(node, words));
}

/* -- Opening ------------------------------------------------------------------------------------*/

static void open_queue(struct feroce_node *node, uint32_t index)
{
    struct feroce_queue_server *queue = &node->queues[index];
    queue->node = node;
    queue->index = index;
    sim_event_init(&queue->event, on_queue);
    feroce_generator_init(&queue->generator, node->board.config.stack,
                          node->timing.cycle_ps * 1000);
}

void feroce_node_open(struct feroce_node *node, struct feroce_machine *machine, uint32_t number)
{
    const struct feroce_setup *setup = &machine->setup;
    struct feroce_board_config config = setup->board;
    *node = (struct feroce_node){.machine = machine,
                                 .sim = &machine->sim,
                                 .number = number,
                                 .timing = setup->timing,
                                 .asleep = true};
    config.ip = feroce_ip_of(number);
    config.window.rto_ns = (uint64_t)((double)config.window.rto_ns * setup->timing.timer_scale);
    node->memory = malloc(feroce_board_bytes(&config));
    CHECK(node->memory != NULL);
    feroce_board_init(&node->board, &config, node->memory);
    sim_port_open(&node->port, node->sim, &setup->board_line,
                  setup->designs[number] == NULL ? &feroce_node_calls
                  : setup->design_cut_through    ? &feroce_cut_through_calls
                                                 : &feroce_design_calls);
    sim_errors_init(&node->port.errors, machine->run->seed * 16 + number, 0, 0);
    sim_event_init(&node->write, on_written);
    sim_event_init(&node->read, on_read);
    sim_event_init(&node->send, on_sent);
    sim_event_init(&node->timer, feroce_on_timer);
    for (uint32_t i = 0; i < config.window.qps; i++) {
        open_queue(node, i);
    }
    if (setup->designs[number] != NULL) {
        feroce_design_open(node, setup->designs[number]);
    }
}

void feroce_node_close(struct feroce_node *node)
{
    feroce_design_close(node);
    sim_port_close(&node->port);
    free(node->memory);
}
