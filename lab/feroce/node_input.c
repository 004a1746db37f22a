/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A board's input: acknowledgements, messages of the connection manager, its timers' time.
 */
#include <string.h>

#include "base/bytes.h"
#include "lab/feroce/machine.h"
#include "lab/feroce/node_internal.h"

/* -- Timers -------------------------------------------------------------------------------------*/

static uint64_t ps_of(const struct feroce_node *node, struct instant due)
{
    if (node->timing.timer_scale == 1) {
        return due.ns * SIM_NS;
    }
    return (uint64_t)((double)due.ns * 1e3 / node->timing.timer_scale) + SIM_NS;
}

/* Timers are visited every N cycles. */
void feroce_set_timer(struct feroce_node *node)
{
    const struct instant due = feroce_board_deadline(&node->board);
    if (due.ns == INSTANT_NEVER.ns) {
        sim_cancel(&node->timer);
        return;
    }
    const uint64_t at_ps = sim_later(ps_of(node, due), node->sim->now_ps);
    const uint64_t turn_ps = feroce_turn_ps(node, at_ps, 0);
    if (!sim_event_scheduled(&node->timer) || node->timer.at_ps != turn_ps) {
        sim_reschedule(node->sim, &node->timer, turn_ps);
    }
}

void feroce_on_timer(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_node *node = CONTAINER_OF(event, struct feroce_node, timer);
    feroce_board_on_time(&node->board, feroce_node_now(node));
    feroce_set_timer(node);
    feroce_wake_reader(node);
}

/* -- Events of the engine -----------------------------------------------------------------------*/

static void on_event(struct feroce_node *node, const struct feroce_event *event)
{
    struct feroce_queue_server *queue = &node->queues[event->index];
    switch (event->kind) {
    case FEROCE_EVENT_OPENED: feroce_generator_open(&queue->generator); break;
    case FEROCE_EVENT_CLOSED: feroce_generator_stop(&queue->generator); break;
    case FEROCE_EVENT_FAILED:
        node->failed_ps = node->sim->now_ps;
        node->syndrome = event->syndrome;
        break;
    case FEROCE_EVENT_META:
        if (event->meta.start &&
            feroce_generator_start(&queue->generator, &event->meta, sim_instant(node->sim))) {
            feroce_board_start(&node->board, event->index);
            feroce_wake_queue(queue);
        }
        break;
    }
}

void feroce_take_events(struct feroce_node *node)
{
    struct feroce_event event;
    while (feroce_board_next_event(&node->board, &event)) {
        on_event(node, &event);
    }
}

/* -- Connection manager -------------------------------------------------------------------------*/

static void send_replies(struct feroce_node *node)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip;
    uint16_t port;
    while (feroce_board_next_cm(&node->board, feroce_node_now(node), bytes, &ip, &port)) {
        struct feroce_packet_on_line *packet = feroce_take_packet(node->machine);
        packet->addresses = (struct feroce_frame){
            .source_ip = feroce_ip_of(node->number),
            .destination_ip = ip,
            .source_port = FEROCE_PORT_CM_FROM,
            .destination_port = port,
        };
        packet->from = node->number;
        packet->has_icrc = false;
        packet->icrc = 0;
        packet->header_bytes = FEROCE_CM_BYTES;
        memcpy(packet->headers, bytes, sizeof(bytes));
        node->cm_replies++;
        feroce_insert_output(node, packet);
    }
}

static void take_cm(struct feroce_node *node, const struct feroce_packet_on_line *packet)
{
    const struct feroce_frame *addresses = &packet->addresses;
    feroce_board_on_cm(&node->board, packet->headers, packet->header_bytes,
                       addresses->destination_ip, addresses->destination_port,
                       addresses->source_port);
    feroce_take_events(node);
    send_replies(node);
}

/* -- Acknowledgements ---------------------------------------------------------------------------*/

/* Everything up to CPL is acknowledged now that was not before. */
static void account(struct feroce_node *node, uint32_t index, struct psn before)
{
    struct feroce_queue_server *queue = &node->queues[index];
    const struct psn acked = node->board.window.windows[index].acked;
    for (struct psn psn = psn_after(before, 1); psn_distance(psn, acked) >= 0;
         psn = psn_after(psn, 1)) {
        const struct feroce_sent *sent = &queue->sent[psn.value % FEROCE_SENT_MAX];
        node->acked_bytes += sent->bytes;
        queue->acked_bytes += sent->bytes;
        queue->acked_packets++;
        feroce_monitor_note(&node->latency,
                            (node->sim->now_ps - sent->begun_ps) / node->timing.cycle_ps);
        if (sent->is_last) {
            node->messages++;
            queue->messages++;
            feroce_on_message(node->machine, node, node->sim->now_ps - sent->tail_ps);
        }
    }
}

enum feroce_arrival feroce_node_answer(struct feroce_node *node, const uint8_t *bytes, size_t count,
                                       bool icrc_is_right)
{
    const uint32_t qpn = load_be32(bytes + 4) & ROCE_24_BITS;
    const uint32_t index = feroce_table_find(&node->board.table, qpn);
    const struct psn before = node->board.window.windows[index % FEROCE_QPS_MAX].acked;
    const enum feroce_arrival arrival =
        feroce_board_on_roce(&node->board, bytes, count, icrc_is_right, feroce_node_now(node));
    if (arrival == FEROCE_ARRIVAL_ACK) {
        node->acks++;
        node->last_ack_ps = node->sim->now_ps;
        account(node, index, before);
    } else if (arrival == FEROCE_ARRIVAL_NAK || arrival == FEROCE_ARRIVAL_RNR) {
        node->last_nak_ps = node->sim->now_ps;
    }
    feroce_set_timer(node);
    feroce_wake_writer(node);
    feroce_wake_reader(node);
    return arrival;
}

static void on_decoded(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_packet_on_line *packet =
        CONTAINER_OF(event, struct feroce_packet_on_line, frame.event);
    struct feroce_node *node = &packet->machine->nodes[packet->to];
    if (packet->addresses.destination_port != ROCE_UDP_PORT) {
        take_cm(node, packet);
    } else {
        uint8_t bytes[NIC_HEADERS_BYTES_MAX + ROCE_ICRC_BYTES];
        const bool sound = feroce_is_sound(packet);
        memcpy(bytes, packet->headers, packet->header_bytes);
        store_le32(bytes + packet->header_bytes, packet->icrc);
        node->bad_icrcs += !sound;
        feroce_node_answer(node, bytes, packet->header_bytes + ROCE_ICRC_BYTES, sound);
    }
    feroce_give_packet(node->machine, packet);
}

/* -- The port -----------------------------------------------------------------------------------*/

static bool is_withheld(const struct feroce_node *node, const struct feroce_packet_on_line *packet)
{
    const uint32_t acks = node->machine->load.acks;
    return packet->has_icrc && acks != 0 && node->acks >= acks;
}

/* An answer is taken when the timers' round robin stands at its queue pair. */
static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    struct feroce_node *node = CONTAINER_OF(port, struct feroce_node, port);
    struct feroce_packet_on_line *packet = CONTAINER_OF(frame, struct feroce_packet_on_line, frame);
    feroce_note_arrival(node->machine, packet);
    if (is_withheld(node, packet)) {
        node->machine->withheld++;
        feroce_give_packet(node->machine, packet);
        return;
    }
    uint64_t at_ps = node->sim->now_ps + feroce_cycles_ps(node, node->timing.pipe_cycles);
    if (packet->has_icrc && !feroce_is_2024(node)) {
        at_ps = feroce_turn_ps(node, at_ps, load_be32(packet->headers + 4) & ROCE_24_BITS);
    }
    sim_event_init(&packet->frame.event, on_decoded);
    sim_schedule(node->sim, &packet->frame.event, at_ps);
}

static void on_loss(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    (void)loss;
    struct feroce_node *node = CONTAINER_OF(port, struct feroce_node, port);
    node->machine->lost++;
    feroce_give_packet(node->machine, CONTAINER_OF(frame, struct feroce_packet_on_line, frame));
}

/* A packet of the board's own begins; what the switch sends has another port. */
static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    struct feroce_node *node = CONTAINER_OF(port, struct feroce_node, port);
    struct feroce_packet_on_line *packet = CONTAINER_OF(frame, struct feroce_packet_on_line, frame);
    if (UNLIKELY(node->machine->watch != NULL)) {
        feroce_watch_line(node->machine->watch, packet);
    }
    if (!packet->is_data) {
        return;
    }
    const uint64_t now_ps = node->sim->now_ps;
    struct feroce_sent *sent =
        &node->queues[packet->index].sent[packet->psn.value % FEROCE_SENT_MAX];
    sent->tail_ps = frame->span.tail_ps;
    node->ahead--;
    node->packets++;
    node->frame_bytes += frame->bytes;
    node->payload_bytes += packet->payload_bytes;
    if (packet->resent) {
        node->first_resend_ps = node->resent++ == 0 ? now_ps : node->first_resend_ps;
    }
    feroce_wake_reader(node);
}

static void on_free(struct sim_port *port)
{
    feroce_wake_reader(CONTAINER_OF(port, struct feroce_node, port));
}

const struct sim_port_calls feroce_node_calls = {
    .on_frame = on_frame, .on_loss = on_loss, .on_begin = on_begin, .on_free = on_free};
