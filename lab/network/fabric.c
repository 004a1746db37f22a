/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Packets between the switches of a network.
 */
#include "lab/network/network.h"

static void network_at_switch(struct network *network, struct network_packet *packet);

static void on_switch(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct network_packet *packet = CONTAINER_OF(event, struct network_packet, event);
    network_at_switch(packet->network, packet);
}

/* The packet has reached the first switch, and its source may make the next one. */
static void on_first_switch(struct sim *sim, struct sim_event *event)
{
    struct network_packet *packet = CONTAINER_OF(event, struct network_packet, event);
    struct network *network = packet->network;
    const uint32_t source = packet->source;
    on_switch(sim, event);
    network_make(network, source);
}

/* Flips the bits that the wire gets wrong. Those of headers and check sums spoil the packet, too,
 * but have no bytes here. */
static void spoil(struct network *network, struct network_packet *packet)
{
    const uint64_t bits = 8ull * packet->bytes;
    const uint64_t frame_bits = 8ull * network->config.frame_bytes;
    uint64_t at = sim_errors_next(&network->errors, 0, bits);
    packet->spoilt |= at < bits;
    while (at < bits) {
        if (at >= frame_bits && network->config.real_bytes) {
            const uint64_t bit = at - frame_bits;
            packet->payload[bit / 64] ^= UINT64_C(1) << bit % 64;
        }
        at = sim_errors_next(&network->errors, at + 1, bits);
    }
}

static uint32_t port_at(const struct network *network, uint32_t vertex,
                        const struct network_packet *packet)
{
    const struct topology *topology = &network->topology;
    const uint32_t port =
        network->config.detours && packet->links == 1
            ? topology_detour(topology, vertex, packet->destination, packet->entropy)
            : topology_route(topology, vertex, packet->destination, packet->entropy);
    return topology->first_port[vertex] + port;
}

/* Routes do not change, so the output at the next switch is known now, and the cache can be asked
 * for it when the turn of the packet comes. */
void network_travel(struct network *network, struct network_packet *packet, uint32_t port,
                    struct sim_span out)
{
    const struct topology *topology = &network->topology;
    const struct topology_port *way = &topology->ports[port];
    const struct sim_output_kind *kind = &network->kinds[way->link_class];
    const struct sim_span there = sim_wire_arrival(&kind->wire, out);
    uint64_t at_ps = there.tail_ps;
    if (UNLIKELY(!sim_errors_pass(&network->errors, 8ull * packet->bytes))) {
        spoil(network, packet);
    }
    if (UNLIKELY(network->busy_ps != NULL)) {
        network->busy_ps[port] += out.tail_ps - out.head_ps;
    }
    packet->links++;
    packet->lag_ps = 0;
    if (way->peer < topology->nodes) {
        packet->event.act = network_deliver;
        packet->event.hint = &network->nodes[way->peer];
        packet->port = way->peer;
    } else {
        if (network->config.switching == SIM_CUT_THROUGH) {
            at_ps = there.head_ps;
            packet->lag_ps = (uint32_t)(there.tail_ps - there.head_ps);
        }
        packet->event.act = packet->links == 1 && !network->departs ? on_first_switch : on_switch;
        packet->by = port;
        packet->port = port_at(network, way->peer, packet);
        packet->event.hint = &network->wires[packet->port];
    }
    sim_schedule(&network->sim, &packet->event, at_ps);
}

void network_drop(struct network *network, struct network_packet *packet)
{
    network->dropped++;
    sim_note(&network->sim, ~network_name(packet));
    network_end(network, packet);
}

/* The packet is at a switch. */
static void network_at_switch(struct network *network, struct network_packet *packet)
{
    if (network->inputs != NULL) {
        network_at_input(network, packet);
        return;
    }
    const uint32_t port = packet->port;
    const struct sim_output_kind *kind = &network->kinds[network->topology.ports[port].link_class];
    const uint64_t now_ps = network->sim.now_ps;
    const struct sim_span in = {now_ps, now_ps + packet->lag_ps};
    struct sim_span out;
    if (sim_output_send(kind, &network->wires[port], in, sim_wire_ps(&kind->wire, packet->bytes),
                        &out)) {
        network_travel(network, packet, port, out);
    } else {
        network_drop(network, packet);
    }
}
