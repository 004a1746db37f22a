/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/feroce/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/bytes.h"
#include "lab/feroce/machine.h"
#include "lab/feroce/receiver_internal.h"

#define LATE_PS UINT64_C(1000000) /* After the last packet, when answers are coalesced. */

/* -- Answers ------------------------------------------------------------------------------------*/

static uint32_t node_of(const struct gid *gid)
{
    return load_be32(gid->bytes + 12) - feroce_ip_of(0);
}

struct feroce_packet_on_line *feroce_receiver_packet(struct feroce_receiver *receiver, uint32_t to)
{
    struct feroce_packet_on_line *packet = feroce_take_packet(receiver->machine);
    packet->from = feroce_receiver_number(receiver->machine);
    packet->to = to;
    packet->addresses = (struct feroce_frame){
        .source_ip = feroce_ip_of(packet->from),
        .destination_ip = feroce_ip_of(to),
        .source_port = 0xc000,
        .destination_port = ROCE_UDP_PORT,
        .service_class = FEROCE_HOST_CLASS,
    };
    return packet;
}

static void send_answer(struct feroce_receiver *receiver, const struct nic_departure *departure)
{
    const uint8_t syndrome = departure->headers[ROCE_BTH_BYTES], kind = syndrome & 0x60;
    struct feroce_packet_on_line *packet =
        feroce_receiver_packet(receiver, node_of(&departure->av->destination));
    packet->header_bytes = departure->headers_bytes;
    memcpy(packet->headers, departure->headers, departure->headers_bytes);
    receiver->acks += kind == ROCE_AETH_ACK;
    receiver->naks += kind != ROCE_AETH_ACK;
    if (kind == ROCE_AETH_NAK && (syndrome & ROCE_AETH_VALUE_MASK) != 0) {
        receiver->refusals++;
        receiver->refusal = syndrome;
    }
    feroce_seal(packet);
    packet->frame.lost = sim_errors_loses(&receiver->answer_errors);
    sim_port_send(&receiver->port, &packet->frame);
}

static void pull(struct feroce_receiver *receiver)
{
    struct nic_departure departure;
    struct qp *qp;
    receiver->since_pull = 0;
    while ((qp = nic_next_qp(receiver->nic)) != NULL) {
        if (nic_next_packet(receiver->nic, qp, sim_instant(receiver->sim), &departure)) {
            send_answer(receiver, &departure);
            nic_rotate(receiver->nic, qp);
        }
    }
}

static void on_late(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    pull(CONTAINER_OF(event, struct feroce_receiver, late));
}

static void answer(struct feroce_receiver *receiver)
{
    if (++receiver->since_pull >= receiver->machine->setup.coalesce) {
        sim_cancel(&receiver->late);
        pull(receiver);
    } else {
        sim_reschedule(receiver->sim, &receiver->late, receiver->sim->now_ps + LATE_PS);
    }
}

/* -- Moves --------------------------------------------------------------------------------------*/

/* Compares the present content of the memory with the pattern. */
static void compare(struct feroce_receiver *receiver, struct feroce_connection *connection,
                    const uint8_t *bytes, uint32_t count)
{
    uint8_t expected[ROCE_PAYLOAD_BYTES_MAX];
    feroce_pattern(connection->word, expected, count);
    connection->word += count / 4;
    connection->delivered_bytes += count;
    receiver->compared += count;
    if (memcmp(bytes, expected, count) != 0) {
        for (uint32_t i = 0; i < count; i++) {
            const bool wrong = bytes[i] != expected[i];
            if (wrong && receiver->wrong == 0) {
                receiver->first_wrong = connection->delivered_bytes - count + i;
            }
            receiver->wrong += wrong;
        }
    }
}

static void make_move(struct feroce_receiver *receiver, const struct nic_move *move)
{
    struct feroce_connection *connection = qp_context(move->qp);
    const uint8_t *from = move->payload;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        const struct segment *segment = &move->segments[i];
        uint8_t *to = (uint8_t *)(uintptr_t)segment->address;
        memcpy(to, from, segment->bytes);
        compare(receiver, connection, to, segment->bytes);
        from += segment->bytes;
    }
}

static void poll_completions(struct feroce_receiver *receiver)
{
    struct completion completion = {0};
    while (cq_poll(&receiver->cq, &completion, 1) == 1) {
        receiver->failures += completion.status != COMPLETION_SUCCESS;
        receiver->messages++;
        feroce_receiver_repost(receiver, (uint32_t)completion.wr_id);
    }
}

/* -- Arrival ------------------------------------------------------------------------------------*/

static struct gid gid_of(uint32_t node)
{
    struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff}};
    store_be32(gid.bytes + 12, feroce_ip_of(node));
    return gid;
}

/* ack_ns after the last bit. A NIC that judged a packet before it could answer the one before would
 * ask for a lost packet earlier, by that time. */
static void on_taken(struct sim *sim, struct sim_event *event)
{
    struct feroce_packet_on_line *packet =
        CONTAINER_OF(event, struct feroce_packet_on_line, frame.event);
    struct feroce_receiver *receiver = &packet->machine->receiver;
    const struct nic_frame frame = {.headers = packet->headers,
                                    .payload = packet->payload,
                                    .headers_bytes = packet->header_bytes,
                                    .payload_bytes = packet->payload_bytes,
                                    .source = gid_of(packet->from),
                                    .destination = gid_of(packet->to),
                                    .hop_limit = 64};
    struct nic_move move;
    if (nic_on_packet(receiver->nic, &frame, sim_instant(sim), &move) == NIC_MOVES) {
        make_move(receiver, &move);
        nic_on_moved(receiver->nic, &move, NIC_MOVED, sim_instant(sim));
        poll_completions(receiver);
    }
    feroce_give_packet(packet->machine, packet);
    answer(receiver);
}

static void hand_in(struct feroce_receiver *receiver, struct feroce_packet_on_line *packet)
{
    sim_event_init(&packet->frame.event, on_taken);
    sim_after(receiver->sim, &packet->frame.event, receiver->machine->setup.ack_ps);
}

/* Packets that the line loses for the load's sake. */
static bool is_withheld(struct feroce_receiver *receiver,
                        const struct feroce_packet_on_line *packet)
{
    const struct feroce_load *load = &receiver->machine->load;
    if (!packet->has_icrc) {
        const bool opens = (packet->headers[0] >> 1 & 7) == FEROCE_OPEN_QP;
        const bool lost = opens && receiver->replies_left > 0;
        receiver->replies_left -= lost;
        return lost;
    }
    const bool lost =
        packet->psn.value == load->lost_psn && packet->index == 0 && !receiver->withheld;
    receiver->withheld |= lost;
    return lost;
}

static void keep_or_hand_in(struct feroce_receiver *receiver, struct feroce_packet_on_line *packet)
{
    if (receiver->machine->setup.keeps) {
        feroce_receiver_keep(receiver, packet, hand_in);
    } else {
        hand_in(receiver, packet);
    }
}

static void flip(struct feroce_receiver *receiver, struct feroce_packet_on_line *packet,
                 enum feroce_flip what)
{
    if (receiver->machine->setup.flip != what || receiver->spoilt || !packet->has_icrc) {
        return;
    }
    receiver->spoilt = true;
    if (what == FEROCE_FLIP_PAYLOAD) {
        packet->payload[0] ^= 1;
    } else {
        packet->icrc ^= 1;
    }
}

static void take(struct feroce_receiver *receiver, struct feroce_packet_on_line *packet)
{
    flip(receiver, packet, FEROCE_FLIP_ICRC);
    const bool sound = feroce_is_sound(packet);
    receiver->icrcs++;
    receiver->bad_icrcs += !sound;
    if (!sound) {
        feroce_give_packet(receiver->machine, packet);
        return;
    }
    flip(receiver, packet, FEROCE_FLIP_PAYLOAD);
    keep_or_hand_in(receiver, packet);
}

/* One threshold for all senders: that of the queue to the receiver. */
static void pause_all(struct feroce_machine *machine)
{
    const uint32_t out = feroce_receiver_number(machine);
    const struct sim_port *port = &machine->network.ports[out].port;
    const uint64_t queue_bytes = port->waiting_bytes[0];
    const bool wants = machine->receiver_pauses ? queue_bytes > machine->setup.input.xon_bytes
                                                : queue_bytes > machine->setup.input.xoff_bytes;
    if (wants == machine->receiver_pauses) {
        return;
    }
    machine->receiver_pauses = wants;
    const struct pause pause = pause_classes(1, wants ? PAUSE_QUANTA_MAX : 0);
    for (uint32_t i = 0; i < out; i++) {
        sim_port_pause(&machine->network.ports[i].port, &pause);
    }
}

static void note_identification(struct feroce_receiver *receiver, uint16_t identification)
{
    if (receiver->board_frames++ == 0) {
        receiver->first_identification = identification;
    } else {
        const uint16_t next = (uint16_t)(receiver->last_identification + 1);
        receiver->skipped_identifications += identification != next;
    }
    receiver->last_identification = identification;
    receiver->zero_identifications += identification == 0;
}

static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    struct feroce_receiver *receiver = CONTAINER_OF(port, struct feroce_receiver, port);
    struct feroce_packet_on_line *packet = CONTAINER_OF(frame, struct feroce_packet_on_line, frame);
    receiver->frames++;
    if (packet->from == 0) {
        note_identification(receiver, packet->addresses.identification);
    }
    feroce_note_arrival(receiver->machine, packet);
    if (receiver->machine->setup.pauser == FEROCE_PAUSED_BY_RECEIVER) {
        pause_all(receiver->machine);
    }
    if (is_withheld(receiver, packet)) {
        receiver->machine->withheld++;
        feroce_give_packet(receiver->machine, packet);
    } else if (packet->has_icrc) {
        take(receiver, packet);
    } else {
        feroce_receiver_on_cm(receiver, packet);
        feroce_give_packet(receiver->machine, packet);
    }
}

static void on_loss(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    (void)loss;
    struct feroce_receiver *receiver = CONTAINER_OF(port, struct feroce_receiver, port);
    receiver->machine->lost++;
    feroce_give_packet(receiver->machine, CONTAINER_OF(frame, struct feroce_packet_on_line, frame));
}

/* An answer begins. */
static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    const struct feroce_machine *machine =
        CONTAINER_OF(port, struct feroce_receiver, port)->machine;
    if (UNLIKELY(machine->watch != NULL)) {
        feroce_watch_line(machine->watch, CONTAINER_OF(frame, struct feroce_packet_on_line, frame));
    }
}

static const struct sim_port_calls calls = {
    .on_frame = on_frame, .on_loss = on_loss, .on_begin = on_begin};

void feroce_receiver_open(struct feroce_receiver *receiver, struct feroce_machine *machine)
{
    const struct feroce_load *load = &machine->load;
    *receiver = (struct feroce_receiver){
        .machine = machine, .sim = &machine->sim, .replies_left = load->lost_replies};
    sim_port_open(&receiver->port, receiver->sim, &machine->setup.line, &calls);
    sim_errors_init(&receiver->answer_errors, machine->run->seed * 16 + FEROCE_SENDERS_MAX, 0,
                    load->answer_loss_millionths);
    sim_event_init(&receiver->late, on_late);
    feroce_receiver_open_host(receiver);
}
