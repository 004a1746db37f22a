/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/feroce/design.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "lab/feroce/machine.h"

#define FRAMES_WAIT      256
#define SENT_OF(node, n) (&(node)->queues[0].sent[(n) % FEROCE_SENT_MAX])

/* -- Frames of the design -----------------------------------------------------------------------*/

/* A datagram of the design, whose frame was judged: addresses as they stand in it. */
static void read_addresses(struct feroce_packet_on_line *packet, const struct hdl_frame *frame,
                           const struct inet_datagram *datagram, uint32_t own_ip)
{
    packet->addresses = (struct feroce_frame){
        .source_ip = own_ip,
        .destination_ip = datagram->peer_ip,
        .source_port = datagram->own_port,
        .destination_port = datagram->peer_port,
        .identification = load_be16(frame->data + 18),
        .service_class = datagram->variant.traffic_class >> 5,
    };
    memcpy(packet->addresses.destination_mac, frame->data, 6);
    memcpy(packet->addresses.source_mac, frame->data + 6, 6);
}

/* False: it is no packet of RoCEv2 that we know. */
static bool read_roce(struct feroce_packet_on_line *packet, const struct inet_datagram *datagram)
{
    struct roce_packet roce;
    const uint32_t bytes = datagram->payload_bytes - ROCE_ICRC_BYTES;
    if (roce_decode(datagram->payload, bytes, &roce) != ROCE_GOOD) {
        return false;
    }
    const struct roce_opcode *opcode = roce_opcode(roce.opcode);
    packet->header_bytes = opcode->headers_bytes;
    packet->payload_bytes = bytes - packet->header_bytes;
    memcpy(packet->headers, datagram->payload, packet->header_bytes);
    memcpy(packet->payload, datagram->payload + packet->header_bytes, packet->payload_bytes);
    packet->is_data = (opcode->traits & ROCE_IS_REQUEST) != 0;
    packet->is_last = (opcode->traits & ROCE_IS_LAST) != 0;
    packet->psn = (struct psn){roce.psn};
    return true;
}

/* False: it goes nowhere. */
static bool read_datagram(const struct feroce_design *design, struct feroce_packet_on_line *packet,
                          const struct inet_datagram *datagram)
{
    packet->from = design->node->number;
    packet->to = datagram->peer_ip - feroce_ip_of(0);
    packet->index = 0;
    if (packet->to != feroce_receiver_number(design->node->machine)) {
        return false;
    }
    if (datagram->peer_port == ROCE_UDP_PORT) {
        return read_roce(packet, datagram);
    }
    packet->has_icrc = false;
    packet->icrc = 0;
    packet->header_bytes = datagram->payload_bytes;
    if (datagram->peer_port != FEROCE_PORT_CM || packet->header_bytes > sizeof(packet->headers)) {
        return false;
    }
    memcpy(packet->headers, datagram->payload, packet->header_bytes);
    return true;
}

/* Keeps in mind what an acknowledgement will mean. */
static void note_data(struct feroce_design *design, struct feroce_packet_on_line *packet,
                      const struct hdl_frame *frame)
{
    struct feroce_node *node = design->node;
    const uint64_t now_ps = node->sim->now_ps;
    packet->resent = psn_distance(packet->psn, design->next) > 0;
    design->last_data_ps = now_ps;
    node->packets++;
    node->frame_bytes += packet->frame.bytes;
    node->payload_bytes += packet->payload_bytes;
    if (packet->resent) {
        node->first_resend_ps = node->resent++ == 0 ? now_ps : node->first_resend_ps;
        return;
    }
    design->next = psn_after(packet->psn, 1);
    *SENT_OF(node, packet->psn.value) = (struct feroce_sent){.tail_ps = frame->at_ps,
                                                             .begun_ps = now_ps,
                                                             .bytes = packet->payload_bytes,
                                                             .is_last = packet->is_last};
}

static void send(struct feroce_design *design, const struct hdl_frame *frame,
                 const struct inet_datagram *datagram)
{
    struct feroce_node *node = design->node;
    struct feroce_packet_on_line *packet = feroce_take_packet(node->machine);
    if (!read_datagram(design, packet, datagram)) {
        design->nowhere++;
        feroce_give_packet(node->machine, packet);
        return;
    }
    read_addresses(packet, frame, datagram, design->bridge.ip);
    feroce_seal(packet);
    packet->from_design = true;
    packet->wave = (uint32_t)hdl_port_counters(design->design.ports[0])->sent_frames;
    if (packet->is_data) {
        note_data(design, packet, frame);
    }
    node->cm_replies += !packet->has_icrc;
    sim_port_carry(&node->port, &packet->frame, frame->at_ps);
}

/* Returns whether the port had room. */
static bool give(struct feroce_design *design, const struct hdl_frame *frame)
{
    const bool room = sim_design_push(&design->design, 0, frame);
    design->given += room;
    design->refused += !room;
    return room;
}

static void on_design_frame(struct sim_design *of, uint32_t port, const struct hdl_frame *frame)
{
    struct feroce_design *design = CONTAINER_OF(of, struct feroce_design, design);
    struct inet_datagram datagram;
    (void)port;
    const enum bridge_verdict verdict =
        bridge_leave(&design->bridge, frame->data, frame->bytes, &datagram);
    if (verdict == BRIDGE_LEFT) {
        send(design, frame, &datagram);
    } else if (verdict == BRIDGE_ANSWERED) {
        const struct hdl_frame answer = {.at_ps = design->node->sim->now_ps,
                                         .data = design->bridge.frame,
                                         .bytes = design->bridge.frame_bytes};
        (void)give(design, &answer);
    }
}

/* -- Packets to the design ----------------------------------------------------------------------*/

/* Everything before `end` is acknowledged. */
static void account(struct feroce_design *design, struct psn end)
{
    struct feroce_node *node = design->node;
    if (psn_distance(end, design->next) < 0) {
        return; /* It acknowledges what nobody sent. */
    }
    for (; psn_distance(design->acked, end) > 0; design->acked = psn_after(design->acked, 1)) {
        const struct feroce_sent *sent = SENT_OF(node, design->acked.value);
        node->acked_bytes += sent->bytes;
        if (sent->is_last) {
            node->messages++;
            feroce_on_message(node->machine, node, node->sim->now_ps - sent->tail_ps);
        }
    }
}

static void note_answer(struct feroce_design *design, const struct feroce_packet_on_line *packet)
{
    struct feroce_node *node = design->node;
    const struct psn psn = {load_be32(packet->headers + 8) & ROCE_24_BITS};
    if ((packet->headers[ROCE_BTH_BYTES] & 0x60) == ROCE_AETH_ACK) {
        node->acks++;
        node->last_ack_ps = node->sim->now_ps;
        account(design, psn_after(psn, 1));
    } else {
        node->last_nak_ps = node->sim->now_ps;
        account(design, psn);
    }
}

/* Orders to the connection manager are never spoilt: nobody would send them again. With cut-through
 * its head has come, and lines of this machine spoil nothing, so it will be good. */
static void on_frame(struct sim_port *port, struct sim_frame *line_frame)
{
    struct feroce_node *node = CONTAINER_OF(port, struct feroce_node, port);
    struct feroce_design *design = node->design;
    struct feroce_packet_on_line *packet =
        CONTAINER_OF(line_frame, struct feroce_packet_on_line, frame);
    uint8_t bytes[FEROCE_PACKET_BYTES_MAX];
    CHECK(!line_frame->spoilt);
    memcpy(packet->addresses.destination_mac, design->bridge.mac, 6);
    packet->from_design = false;
    struct hdl_frame frame = {
        .at_ps = node->sim->now_ps, .data = bytes, .bytes = feroce_packet_encode(packet, bytes)};
    const bool struck = packet->has_icrc && sim_design_strike(&design->design, 0, &frame);
    if (give(design, &frame)) {
        packet->wave = design->given;
    }
    feroce_note_arrival(node->machine, packet);
    if (packet->has_icrc && !struck) {
        note_answer(design, packet);
    }
    feroce_give_packet(node->machine, packet);
}

static void on_loss(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    struct feroce_node *node = CONTAINER_OF(port, struct feroce_node, port);
    (void)loss;
    node->machine->lost++;
    feroce_give_packet(node->machine, CONTAINER_OF(frame, struct feroce_packet_on_line, frame));
}

static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    const struct feroce_machine *machine = CONTAINER_OF(port, struct feroce_node, port)->machine;
    if (UNLIKELY(machine->watch != NULL)) {
        feroce_watch_line(machine->watch, CONTAINER_OF(frame, struct feroce_packet_on_line, frame));
    }
}

static void on_pause(struct sim_port *port, const struct pause *pause)
{
    struct feroce_design *design = CONTAINER_OF(port, struct feroce_node, port)->design;
    design->given += sim_design_pause(&design->design, 0, pause);
}

const struct sim_port_calls feroce_design_calls = {
    .on_frame = on_frame, .on_loss = on_loss, .on_begin = on_begin, .on_pause = on_pause};
const struct sim_port_calls feroce_cut_through_calls = {.on_frame = on_frame,
                                                        .on_loss = on_loss,
                                                        .on_begin = on_begin,
                                                        .on_pause = on_pause,
                                                        .at_head = true};

/* -- Opening ------------------------------------------------------------------------------------*/

void feroce_design_open(struct feroce_node *node, const struct hdl_model_ops *ops)
{
    struct feroce_machine *machine = node->machine;
    struct feroce_design *design = calloc(1, sizeof(*design));
    CHECK(design != NULL);
    design->node = node;
    bridge_init(&design->bridge, feroce_ip_of(node->number));
    node->design = design;
    const struct sim_design_config config = {
        .ops = ops,
        .port = {.frame_bytes = HDL_FRAME_BYTES_MAX,
                 .frames = FRAMES_WAIT,
                 .line_fs_per_byte = machine->setup.board_line.wire.byte_fs,
                 .paused_by = 1 << HDL_LINK | 1,
                 .ready_ppm = machine->setup.design_ready_ppm,
                 .gap_ppm = machine->setup.design_gap_ppm,
                 .cut_through = machine->setup.design_cut_through},
        .period_fs = {machine->setup.design_period_fs[0],
                      ops->clocks > 1 ? machine->setup.design_period_fs[1] : 0},
        .reset_edges = SIM_DESIGN_RESET_EDGES,
        .seed = machine->run->seed * FEROCE_SENDERS_MAX + node->number,
        .faults = machine->setup.design_faults,
        .on_frame = on_design_frame,
    };
    if (!sim_design_open(&design->design, node->sim, &config)) {
        lab_fail(machine->run, "%s", design->design.error);
    } else if (design->design.port_count != 1) {
        lab_fail(machine->run, "%s has %u ports: a board has one", ops->name,
                 design->design.port_count);
    }
}

void feroce_design_close(struct feroce_node *node)
{
    if (node->design != NULL) {
        sim_design_close(&node->design->design);
        free(node->design);
    }
}
