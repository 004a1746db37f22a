/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The network of a csRNA machine: links, a switch, and what they do to packets.
 */
#include <string.h>

#include "base/bytes.h"
#include "lab/csrna/internal.h"
#include "lab/csrna/machine.h"
#include "wire/inet.h"
#include "wire/roce_frame.h"

/* RoCEv2's frame beside headers and payload: Ethernet's header, FCS, preamble and gap; IPv4's and
 * UDP's headers; the ICRC. */
#define ROCEV2_FRAME_BYTES (38u + 28u + 4u)
/* The public model's: two addresses, and a BTH that is 4 bytes shorter than the real one. */
#define MODEL_FRAME_BYTES (12u - 4u)

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct csrna_packet *packet = CONTAINER_OF(event, struct csrna_packet, event);
    sim_note(sim, load_be32(packet->headers + 4) ^ (uint64_t)load_be32(packet->headers + 8) << 32);
    csrna_nic_receive(&packet->machine->nodes[packet->to].nic, packet);
}

struct csrna_packet *csrna_machine_packet(struct csrna_machine *machine)
{
    struct csrna_packet *packet = sim_pool_take(&machine->packets);
    if (packet == NULL) {
        lab_fail(machine->run, "more than %u packets are under way: the network cannot keep up",
                 CSRNA_PACKETS_MAX);
        return NULL;
    }
    packet->machine = machine;
    packet->again = false;
    sim_event_init(&packet->event, on_arrival);
    return packet;
}

void csrna_machine_free(struct csrna_machine *machine, struct csrna_packet *packet)
{
    sim_pool_give(&machine->packets, packet);
}

/* Writes the packet as a real wire would carry it. */
static void capture(struct csrna_machine *machine, const struct csrna_packet *packet)
{
    const struct gid source = csrna_node_gid(packet->from), to = csrna_node_gid(packet->to);
    uint8_t bytes[INET_HEADERS_BYTES_MAX + BLOCK_PACKET_BYTES_MAX], bth[BLOCK_PACKET_BYTES_MAX];
    const struct inet_flow flow = roce_flow(source.bytes, to.bytes);
    const size_t count = roce_frame_join(&flow, packet->headers, packet->headers_bytes,
                                         packet->payload, packet->payload_bytes, bth);
    CHECK(count != 0);
    const size_t before = inet_encode(bytes, &flow, 0, bth, count);
    memcpy(bytes + before, bth, count);
    sim_capture_packet(machine->capture, machine->sim.now_ps, bytes, before + count);
}

static uint32_t wire_bytes(const struct csrna_machine *machine, const struct csrna_packet *packet)
{
    switch (machine->load.framing) {
    case CSRNA_FRAMING_MODEL: return csrna_is_request(packet) ? machine->load.bytes : 0;
    case CSRNA_FRAMING_HEADERS:
        return packet->headers_bytes + packet->payload_bytes + MODEL_FRAME_BYTES;
    case CSRNA_FRAMING_ROCEV2:
        return packet->headers_bytes + packet->payload_bytes + ROCEV2_FRAME_BYTES;
    }
    CHECK(false);
}

/* False: the packet is lost. */
static bool survives(struct csrna_machine *machine, struct csrna_packet *packet)
{
    struct sim_faults *faults = &machine->world.faults;
    struct prng *prng = &machine->sim.prng;
    if (packet->payload_bytes > 0 && sim_fault_strikes(faults, SIM_FAULT_damage, prng)) {
        packet->payload[prng_below(prng, packet->payload_bytes)] ^= 0xff;
    }
    const bool lost = sim_fault_strikes(faults, SIM_FAULT_drop, prng);
    if (lost) {
        sim_note(&machine->sim, ~(uint64_t)load_be32(packet->headers + 8));
    }
    return !lost;
}

/* In the public model a packet reaches the switch in a cycle, and takes its length behind it only;
 * else the switch cuts through. `length_ps` is the packet's on a link. */
static struct sim_span send_to_switch(struct csrna_machine *machine, struct csrna_nic *nic,
                                      uint64_t length_ps)
{
    const bool in_a_cycle = machine->load.framing == CSRNA_FRAMING_MODEL;
    const struct sim_span sent = sim_wire_send(&nic->wire, machine->sim.now_ps,
                                               in_a_cycle ? nic->config.cycle_ps : length_ps);
    const struct sim_span at_switch = sim_wire_arrival(&machine->world.output.wire, sent);
    return in_a_cycle ? (struct sim_span){at_switch.tail_ps, at_switch.tail_ps} : at_switch;
}

/* Links are serial, and the switch queues at its outputs. All paths are equally long, so the packet
 * that is sent first is the first one at an output, and need not be an event there. */
void csrna_machine_send(struct csrna_machine *machine, struct csrna_packet *packet)
{
    const struct sim_output_kind *output = &machine->world.output;
    const uint64_t length_ps = sim_wire_ps(&output->wire, wire_bytes(machine, packet));
    const struct sim_span in =
        send_to_switch(machine, &machine->nodes[packet->from].nic, length_ps);
    struct sim_span out;
    CHECK(sim_output_send(output, &machine->nodes[packet->to].port, in, length_ps, &out));
    machine->nodes[packet->to].port_ps += length_ps;
    if (machine->capture != NULL) {
        capture(machine, packet);
    }
    if (!survives(machine, packet)) {
        csrna_machine_free(machine, packet);
        return;
    }
    sim_schedule(&machine->sim, &packet->event, out.tail_ps);
}
