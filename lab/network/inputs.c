/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Switches that queue at their inputs: one queue each, whose head alone may leave, and an arbiter
 * at each output among the heads that want it.
 */
#include <stdlib.h>

#include "lab/network/network.h"

static struct network_packet *head_of(const struct network_input *input)
{
    return CONTAINER_OF(input->packets.next, struct network_packet, event.node);
}

static struct network_input *input_of(struct list *turn)
{
    return CONTAINER_OF(turn, struct network_input, turn);
}

/* The smaller, the sooner its turn: round robin begins behind the input that was served last. */
static uint64_t rank(const struct network_input *output, const struct network_input *input)
{
    const bool around =
        output->network->config.arbiter == NETWORK_ROUND_ROBIN && input->port <= output->served;
    return (uint64_t)around << 32 | input->port;
}

static struct network_input *choose(const struct network_input *output)
{
    struct network_input *best = input_of(output->waiting.next);
    if (output->network->config.arbiter == NETWORK_OLDEST) {
        return best;
    }
    for (struct list *at = best->turn.next; at != &output->waiting; at = at->next) {
        struct network_input *input = input_of(at);
        best = rank(output, input) < rank(output, best) ? input : best;
    }
    return best;
}

/* When the packet came in: its event was its arrival. A switch decides while a packet waits, so its
 * delay counts from there; but nothing leaves before now. */
static struct sim_span came(const struct network *network, const struct network_packet *packet)
{
    const uint64_t now_ps = network->sim.now_ps, at_ps = packet->event.at_ps;
    const uint64_t delay_ps = network->config.delay_ps;
    const uint64_t head_ps = at_ps + delay_ps > now_ps ? at_ps : now_ps - delay_ps;
    return (struct sim_span){head_ps, sim_later(head_ps, at_ps + packet->lag_ps)};
}

/* The output is free, and inputs wait for it. */
static void serve(struct network_input *output)
{
    struct network *network = output->network;
    struct network_input *input = choose(output);
    struct network_packet *packet = head_of(input);
    const struct sim_output_kind *kind =
        &network->kinds[network->topology.ports[output->port].link_class];
    struct sim_span out;
    list_remove(&input->turn);
    list_remove(&packet->event.node);
    input->busy = output->serving = true;
    output->served = input->port;
    output->leaving = packet->bytes;
    CHECK(sim_output_send(kind, &network->wires[output->port], came(network, packet),
                          sim_wire_ps(&kind->wire, packet->bytes), &out));
    sim_schedule(&network->sim, &output->freed, out.tail_ps);
    network_travel(network, packet, output->port, out);
}

static void present(struct network_input *input)
{
    struct network_input *output = &input->network->inputs[head_of(input)->port];
    list_append(&output->waiting, &input->turn);
    if (!output->serving) {
        serve(output);
    }
}

static void on_freed(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct network_input *output = CONTAINER_OF(event, struct network_input, freed);
    struct network_input *input = &output->network->inputs[output->served];
    output->serving = input->busy = false;
    input->bytes -= output->leaving;
    if (!list_empty(&input->packets)) {
        present(input);
    }
    if (!output->serving && !list_empty(&output->waiting)) {
        serve(output);
    }
}

void network_at_input(struct network *network, struct network_packet *packet)
{
    struct network_input *input = &network->inputs[packet->by];
    const uint32_t room = network->config.buffer_bytes;
    if (room != 0 && input->bytes + packet->bytes > room) {
        network_drop(network, packet);
        return;
    }
    const bool first = list_empty(&input->packets) && !input->busy;
    input->bytes += packet->bytes;
    list_append(&input->packets, &packet->event.node);
    if (first) {
        present(input);
    }
}

void network_inputs_open(struct network *network)
{
    const uint32_t ports = network->topology.first_port[topology_vertices(&network->topology)];
    network->inputs = calloc(ports, sizeof(network->inputs[0]));
    CHECK(network->inputs != NULL);
    for (uint32_t i = 0; i < ports; i++) {
        struct network_input *input = &network->inputs[i];
        input->network = network;
        input->port = i;
        list_init(&input->packets);
        list_init(&input->turn);
        list_init(&input->waiting);
        sim_event_init(&input->freed, on_freed);
    }
}
