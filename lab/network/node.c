/* SPDX-License-Identifier: BSD-2-Clause
 *
 * End nodes: the packets that they send, and their verdicts on those that come.
 */
#include "lab/network/network.h"
#include "sim/traffic.h"

/* -- Sources ------------------------------------------------------------------------------------*/

static uint32_t choose_destination(struct network *network, uint32_t node)
{
    const uint32_t nodes = network->topology.nodes;
    if (network->patterned) {
        return pattern_destination(&network->destinations, &network->sim.prng, node);
    }
    switch (network->config.pattern) {
    case NETWORK_OTHERS: return sim_destination(&network->sim.prng, node, nodes, 0);
    case NETWORK_ALL: return (uint32_t)prng_below(&network->sim.prng, nodes);
    case NETWORK_OPPOSITE: return (node + nodes / 2) % nodes;
    }
    UNREACHABLE("a pattern outside its enum");
}

static uint16_t choose_words(struct network *network)
{
    const uint32_t least = network->config.least, most = network->config.most;
    return (uint16_t)(least == most ? least
                                    : least + prng_below(&network->sim.prng, most - least + 1));
}

static bool is_replayed(const struct network *network)
{
    return network->replay.trace.count > 0;
}

/* When the node has its next packet: as soon as the wire is free, at equal intervals, at random
 * ones, or when its trace says. */
static uint64_t choose_time(struct network *network, uint32_t index, const struct sim_wire *wire)
{
    const struct network_node *node = &network->nodes[index];
    const uint64_t gap_ps = network->gaps_ps == NULL ? network->gap_ps : network->gaps_ps[index];
    if (is_replayed(network)) {
        return network_replay_time(network, index);
    }
    if (gap_ps == 0) {
        return sim_later(node->born_ps, wire->free_ps);
    }
    return node->born_ps +
           (network->config.regular ? gap_ps : sim_poisson_gap(&network->sim.prng, gap_ps));
}

static void fill(struct network *network, struct network_packet *packet, uint16_t words)
{
    packet->words = words;
    packet->bytes = (uint16_t)(8 * packet->words + network->config.frame_bytes);
    if (network->config.real_bytes) {
        sim_payload_fill(packet->payload, packet->words, packet->destination,
                         (uint64_t)packet->source << 20 | (packet->number & 0xfffff));
    }
}

static struct network_packet *take(struct network *network)
{
    struct network_packet *packet = sim_pool_take(&network->packets);
    if (packet == NULL) {
        lab_fail(network->run, "more than %u packets are under way: the network cannot keep up",
                 network->packets.count);
        return NULL;
    }
    list_init(&packet->event.node);
    packet->network = network;
    packet->spoilt = false;
    packet->links = 0;
    return packet;
}

/* Shows in the trace how many packets there are. */
static void network_show(struct network *network)
{
    if (UNLIKELY(network->trace != NULL)) {
        sim_trace_value(network->trace, network->track, network->sim.now_ps,
                        sim_pool_taken(&network->packets));
    }
}

/* The packet goes to its wire now, or as soon as that is free. */
static struct sim_span send(struct network *network, struct network_packet *packet, uint32_t port)
{
    const struct sim_output_kind *kind = &network->kinds[network->topology.ports[port].link_class];
    const uint64_t born_ps = packet->born_ps;
    const uint64_t from_ps = network->departs ? network->sim.now_ps : born_ps;
    const struct sim_span out =
        sim_wire_send(&network->wires[port], from_ps, sim_wire_ps(&kind->wire, packet->bytes));
    if (UNLIKELY(network->capture != NULL && network->config.real_bytes)) {
        sim_capture_packet(network->capture, out.head_ps, (const uint8_t *)packet->payload,
                           8ull * packet->words);
    }
    if (born_ps >= network->config.warm_ps) {
        network->waited_ps += out.head_ps - born_ps;
        network->waits++;
    }
    return out;
}

/* A node that departs makes its next packet when the one before has its wire. */
static void on_departure(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct network_packet *packet = CONTAINER_OF(event, struct network_packet, event);
    struct network *network = packet->network;
    const uint32_t source = packet->source, port = packet->by;
    network_travel(network, packet, port, send(network, packet, port));
    network_make(network, source);
}

static void depart(struct network *network, struct network_packet *packet)
{
    const struct topology *topology = &network->topology;
    const uint32_t source = packet->source;
    packet->by = topology->first_port[source] +
                 topology_route(topology, source, packet->destination, packet->entropy);
    packet->event.act = on_departure;
    packet->event.hint = &network->wires[packet->by];
    sim_schedule(&network->sim, &packet->event,
                 sim_later(sim_later(packet->born_ps, network->sim.now_ps),
                           network->wires[packet->by].free_ps));
}

void network_make(struct network *network, uint32_t index)
{
    struct network_node *node = &network->nodes[index];
    const uint32_t port = network->topology.first_port[index];
    const uint64_t born_ps = choose_time(network, index, &network->wires[port]);
    struct network_packet *packet = born_ps < network->config.stop_ps ? take(network) : NULL;
    if (packet == NULL) {
        return;
    }
    const bool replayed = is_replayed(network);
    const struct network_replayed taken =
        replayed ? network_replay_take(network, index) : (struct network_replayed){.words = 0};
    node->born_ps = packet->born_ps = born_ps;
    packet->source = index;
    packet->number = node->made++;
    packet->destination = replayed ? taken.destination : choose_destination(network, index);
    packet->entropy = network->config.spread ? (uint16_t)prng_next(&network->sim.prng) : 0;
    fill(network, packet, replayed ? taken.words : choose_words(network));
    network->made++;
    network->ledger += network_name(packet);
    network_show(network);
    if (network->departs) {
        depart(network, packet);
    } else {
        network_travel(network, packet, port, send(network, packet, port));
    }
}

/* -- Sinks --------------------------------------------------------------------------------------*/

void network_end(struct network *network, struct network_packet *packet)
{
    network->ledger -= network_name(packet);
    sim_pool_give(&network->packets, packet);
    network_show(network);
}

/* A packet has the bytes that its source made for this node. Only its own number is expected here:
 * packets of many sources come in any order, and that none is missing or doubled the ledger
 * knows. */
static bool right(struct network *network, const struct network_packet *packet, uint32_t node)
{
    if (packet->destination != node) {
        network->misled++;
        return false;
    }
    if (!network->config.real_bytes) {
        return true;
    }
    struct sim_sink sink = {.expected =
                                (uint64_t)packet->source << 20 | (packet->number & 0xfffff)};
    return sim_sink_judge(&sink, packet->payload, packet->words, node) == SIM_PAYLOAD_GOOD;
}

static void count(struct network *network, const struct network_packet *packet)
{
    const uint64_t now_ps = network->sim.now_ps;
    const struct topology *topology = &network->topology;
    network->delivered++;
    network->came_ps = now_ps;
    network->replay.delivered_bytes += 8ull * packet->words;
    if (now_ps >= network->config.warm_ps && now_ps < network->config.stop_ps) {
        const uint32_t from = network->gaps_ps == NULL ? 0 : topology->first_port[packet->source];
        network->warm_bytes[topology->ports[from].link_class] += packet->bytes;
        network->warm_packets++;
        network->warm_payload += 8ull * packet->words;
    }
    if (packet->born_ps >= network->config.warm_ps) {
        network->links += packet->links;
        sim_spread_count(&network->latency, now_ps - packet->born_ps);
    }
}

void network_deliver(struct sim *sim, struct sim_event *event)
{
    struct network_packet *packet = CONTAINER_OF(event, struct network_packet, event);
    struct network *network = packet->network;
    const uint32_t node = packet->port;
    network->nodes[node].received++;
    if (packet->spoilt && !network->config.crc_ignored) {
        network->discarded++;
        sim_note(sim, ~network_name(packet) - node);
    } else if (right(network, packet, node)) {
        count(network, packet);
        sim_note(sim, network_name(packet) + node);
    } else {
        network->wrong++;
        sim_note(sim, ~network_name(packet) + node);
    }
    network_end(network, packet);
}
