/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/feroce/design.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "lab/feroce/machine.h"
#include "wire/icrc.h"

#define RESET_EDGES      16
#define FRAMES_WAIT      256
#define ETHERNET_BYTES   14
#define TYPE_IPV4        0x0800
#define PROTOCOL_UDP     17
#define DO_NOT_FRAGMENT  0x4000
#define SENT_OF(node, n) (&(node)->queues[0].sent[(n) % FEROCE_SENT_MAX])

const char *const feroce_stray_texts[FEROCE_STRAYS] = {
    [FEROCE_STRAY_PROTOCOL] = "not UDP over IPv4 in one piece, with DF, or lengths disagree",
    [FEROCE_STRAY_ADDRESS] = "to an address or a port that nobody has",
    [FEROCE_STRAY_ROCE] = "no packet of RoCEv2",
    [FEROCE_STRAY_ICRC] = "the ICRC is wrong",
};

/* -- Frames of the design -----------------------------------------------------------------------*/

/* Headers up to UDP's. The payload is what remains in front of `bytes`; false: there is none. */
static bool read_outer(const struct hdl_frame *frame, struct feroce_packet_on_line *packet,
                       const uint8_t **payload, uint32_t *bytes)
{
    const uint8_t *ip = frame->data + ETHERNET_BYTES, *udp = ip + INET_IPV4_BYTES;
    if (frame->bytes < FEROCE_FRAME_HEADERS_BYTES || load_be16(frame->data + 12) != TYPE_IPV4 ||
        ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || load_be16(ip + 6) != DO_NOT_FRAGMENT) {
        return false;
    }
    const uint32_t total = load_be16(ip + 2), udp_bytes = load_be16(udp + 4);
    if (udp_bytes < INET_UDP_BYTES || total != INET_IPV4_BYTES + udp_bytes ||
        total > frame->bytes - ETHERNET_BYTES) {
        return false;
    }
    packet->addresses = (struct feroce_frame){
        .source_ip = load_be32(ip + 12),
        .destination_ip = load_be32(ip + 16),
        .source_port = load_be16(udp),
        .destination_port = load_be16(udp + 2),
        .identification = load_be16(ip + 4),
        .service_class = ip[1] >> 5,
    };
    memcpy(packet->addresses.destination_mac, frame->data, 6);
    memcpy(packet->addresses.source_mac, frame->data + 6, 6);
    *payload = udp + INET_UDP_BYTES;
    *bytes = udp_bytes - INET_UDP_BYTES;
    return true;
}

static bool check_icrc(struct feroce_design *design, const struct feroce_packet_on_line *packet,
                       const uint8_t *bytes, uint32_t count)
{
    const struct feroce_frame *addresses = &packet->addresses;
    const struct inet_flow flow =
        inet_flow_ipv4(addresses->source_ip, addresses->source_port, addresses->destination_ip,
                       addresses->destination_port);
    const uint32_t wanted =
        icrc_compute(&flow, addresses->identification, bytes, count - ROCE_ICRC_BYTES, NULL, 0);
    const uint32_t found = load_le32(bytes + count - ROCE_ICRC_BYTES);
    if (found != wanted && design->strays[FEROCE_STRAY_ICRC] == 0) {
        design->icrc_found = found;
        design->icrc_wanted = wanted;
    }
    return found == wanted;
}

/* Headers and payload of a packet of RoCEv2. FEROCE_STRAYS: all is well. */
static enum feroce_stray read_roce(struct feroce_design *design,
                                   struct feroce_packet_on_line *packet, const uint8_t *bytes,
                                   uint32_t count)
{
    struct roce_packet roce;
    if (count < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
        return FEROCE_STRAY_ROCE;
    }
    if (!check_icrc(design, packet, bytes, count)) {
        return FEROCE_STRAY_ICRC;
    }
    const uint32_t inner = count - ROCE_ICRC_BYTES;
    if (roce_decode(bytes, inner, &roce) != ROCE_GOOD) {
        return FEROCE_STRAY_ROCE;
    }
    const struct roce_opcode *opcode = roce_opcode(roce.opcode);
    packet->header_bytes = opcode->headers_bytes;
    packet->payload_bytes = inner - packet->header_bytes;
    memcpy(packet->headers, bytes, packet->header_bytes);
    memcpy(packet->payload, bytes + packet->header_bytes, packet->payload_bytes);
    packet->is_data = (opcode->traits & ROCE_IS_REQUEST) != 0;
    packet->is_last = (opcode->traits & ROCE_IS_LAST) != 0;
    packet->psn = (struct psn){roce.psn};
    return FEROCE_STRAYS;
}

static enum feroce_stray read_frame(struct feroce_design *design, const struct hdl_frame *frame,
                                    struct feroce_packet_on_line *packet)
{
    const struct feroce_machine *machine = design->node->machine;
    const uint8_t *bytes;
    uint32_t count;
    if (!read_outer(frame, packet, &bytes, &count)) {
        return FEROCE_STRAY_PROTOCOL;
    }
    packet->from = design->node->number;
    packet->to = packet->addresses.destination_ip - feroce_ip_of(0);
    packet->index = 0;
    if (packet->to != feroce_receiver_number(machine) ||
        packet->addresses.source_ip != feroce_ip_of(packet->from)) {
        return FEROCE_STRAY_ADDRESS;
    }
    if (packet->addresses.destination_port == ROCE_UDP_PORT) {
        return read_roce(design, packet, bytes, count);
    }
    if (packet->addresses.destination_port != FEROCE_PORT_CM || count > sizeof(packet->headers)) {
        return FEROCE_STRAY_ADDRESS;
    }
    packet->has_icrc = false;
    packet->icrc = 0;
    packet->header_bytes = count;
    memcpy(packet->headers, bytes, count);
    return FEROCE_STRAYS;
}

/* Keeps in mind what an acknowledgement will mean. */
static void note_data(struct feroce_design *design, struct feroce_packet_on_line *packet,
                      const struct hdl_frame *frame)
{
    struct feroce_node *node = design->node;
    const uint64_t now_ps = node->sim->now_ps;
    packet->resent = psn_distance(packet->psn, design->next) > 0;
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

static void on_design_frame(struct sim_design *of, uint32_t port, const struct hdl_frame *frame)
{
    struct feroce_design *design = CONTAINER_OF(of, struct feroce_design, design);
    struct feroce_node *node = design->node;
    struct feroce_packet_on_line *packet = feroce_take_packet(node->machine);
    const enum feroce_stray stray = read_frame(design, frame, packet);
    if (stray != FEROCE_STRAYS) {
        design->strays[stray]++;
        feroce_give_packet(node->machine, packet);
        return;
    }
    feroce_seal(packet);
    packet->from_design = true;
    packet->wave = (uint32_t)hdl_port_counters(of->ports[port])->sent_frames;
    if (packet->is_data) {
        note_data(design, packet, frame);
    }
    node->cm_replies += !packet->has_icrc;
    sim_port_carry(&node->port, &packet->frame, frame->at_ps);
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

static void on_frame(struct sim_port *port, struct sim_frame *line_frame)
{
    struct feroce_node *node = CONTAINER_OF(port, struct feroce_node, port);
    struct feroce_packet_on_line *packet =
        CONTAINER_OF(line_frame, struct feroce_packet_on_line, frame);
    uint8_t bytes[FEROCE_PACKET_BYTES_MAX];
    const struct hdl_frame frame = {
        .at_ps = node->sim->now_ps, .data = bytes, .bytes = feroce_packet_encode(packet, bytes)};
    packet->from_design = false;
    if (sim_design_push(&node->design->design, 0, &frame)) {
        packet->wave = ++node->design->taken;
    } else {
        node->design->refused++;
    }
    feroce_note_arrival(node->machine, packet);
    if (packet->has_icrc) {
        note_answer(node->design, packet);
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
    sim_design_pause(&CONTAINER_OF(port, struct feroce_node, port)->design->design, 0, pause);
}

const struct sim_port_calls feroce_design_calls = {
    .on_frame = on_frame, .on_loss = on_loss, .on_begin = on_begin, .on_pause = on_pause};

/* -- Opening ------------------------------------------------------------------------------------*/

void feroce_design_open(struct feroce_node *node, const struct hdl_model_ops *ops)
{
    struct feroce_machine *machine = node->machine;
    struct feroce_design *design = calloc(1, sizeof(*design));
    CHECK(design != NULL);
    design->node = node;
    node->design = design;
    const struct sim_design_config config = {
        .ops = ops,
        .port = {.frame_bytes = HDL_FRAME_BYTES_MAX,
                 .frames = FRAMES_WAIT,
                 .line_fs_per_byte = machine->setup.board_line.wire.byte_fs,
                 .paused_by = 1 << HDL_LINK | 1,
                 .ready_ppm = 1000000},
        .period_fs = machine->setup.timing.cycle_ps * 1000,
        .reset_edges = RESET_EDGES,
        .seed = machine->run->seed * FEROCE_SENDERS_MAX + node->number,
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
