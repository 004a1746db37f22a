/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A packet costs an output one event: `lead` cycles before the end of one packet the output looks
 * for the next, and fixes its transmission, beginning with its credit words if there are any. The
 * packet begins when the choice has been made and told, and not before the one in front has ended.
 */
#include "lab/forth/crossbar.h"

#include <stdlib.h>

#include "sim/trace.h"

#define LINE_BYTES  64u
#define LINES_AHEAD 10u /* Lines of a packet; the processor finds further ones by itself. */

static struct crosspoint *point_at(struct crossbar *crossbar, uint32_t input, uint32_t output)
{
    return &crossbar->points[input * crossbar->config.ports + output];
}

static uint64_t cycles_ps(const struct crossbar *crossbar, uint32_t cycles)
{
    return cycles * crossbar->cycle_ps;
}

static uint32_t words_of(const struct forth_packet *packet)
{
    return packet->qwords + FORTH_OVERHEAD_WORDS;
}

static void show(struct crossbar *crossbar, const struct crosspoint *point)
{
    if (UNLIKELY(crossbar->fabric->trace != NULL)) {
        sim_trace_value(crossbar->fabric->trace, point->track, crossbar->fabric->sim->now_ps,
                        point->words);
    }
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Schedules the event at `at_ps`, unless it is scheduled earlier already. */
static void wake(struct crossbar *crossbar, struct sim_event *event, uint64_t at_ps)
{
    if (!sim_event_scheduled(event)) {
        sim_schedule(crossbar->fabric->sim, event, at_ps);
    } else if (at_ps < event->at_ps) {
        sim_reschedule(crossbar->fabric->sim, event, at_ps);
    }
}

/* -- Credits to the attached node ---------------------------------------------------------------*/

static bool overdue(const struct crossbar_port *port)
{
    return port->refreshes_due > 1;
}

/* Sends the credits that have changed, from `begin_ps` on, and a repetition if one is overdue. */
static void send_credits(struct crossbar_port *port, uint64_t begin_ps)
{
    struct forth_credit credit;
    uint64_t at_ps = begin_ps;
    if (port->told_ps > at_ps && !overdue(port)) {
        return;
    }
    while (forth_credits_next(&port->credits, overdue(port), &credit)) {
        port->refreshes_due = overdue(port) ? 0 : port->refreshes_due;
        forth_link_credit(port->out, credit, at_ps, port->crossbar->config.credit);
        at_ps = port->out->free_ps;
    }
}

static void tell(struct sim *sim, struct sim_event *event)
{
    struct crossbar_port *port = CONTAINER_OF(event, struct crossbar_port, tell);
    if (sim->now_ps < port->told_ps) {
        sim_schedule(sim, event, port->told_ps);
    } else if (port->out->free_ps <= sim->now_ps) {
        send_credits(port, sim->now_ps);
    } else if (!sim_event_scheduled(&port->serve)) {
        sim_schedule(
            sim, event,
            port->out->free_ps); /* The link is busy; else the credits go in front of the packet. */
    }
}

static void departed(struct crossbar *crossbar, uint32_t input, uint32_t output, uint32_t words,
                     uint64_t at_ps)
{
    struct crossbar_port *port = &crossbar->ports[input];
    forth_credits_departed(&port->credits, output, words);
    if (port->credits.modified != 0) {
        port->told_ps = at_ps + cycles_ps(crossbar, crossbar->config.sync);
        /* An output that is to choose a packet sends credits in front of it. */
        if (!sim_event_scheduled(&port->serve)) {
            wake(crossbar, &port->tell, port->told_ps);
        }
    }
}

/* A credit may be lost, so credits that have not changed are repeated while the link is idle. If it
 * was not idle for two periods, they are repeated between packets. */
static void refresh(struct sim *sim, struct sim_event *event)
{
    struct crossbar_port *port = CONTAINER_OF(event, struct crossbar_port, refresh);
    struct forth_credit credit;
    port->refreshes_due++;
    if (port->out->free_ps <= sim->now_ps && port->credits.modified == 0 &&
        forth_credits_next(&port->credits, true, &credit)) {
        forth_link_credit(port->out, credit, sim->now_ps, port->crossbar->config.credit);
        port->refreshes_due = 0;
    }
    sim_after(sim, event, port->crossbar->config.refresh_ps);
}

/* -- Packets out --------------------------------------------------------------------------------*/

/* The header is the one that came, so the CRC made anew for it is the one that came, too. The body
 * CRC is the sender's, right or wrong. */
static void depart(struct crossbar_port *port, uint32_t input, struct crosspoint *point,
                   struct forth_packet *packet)
{
    struct crossbar *crossbar = port->crossbar;
    const uint32_t words = words_of(packet);
    uint64_t begin_ps = later_of(crossbar->fabric->sim->now_ps, port->out->free_ps);
    begin_ps = later_of(begin_ps, port->informed_ps);
    if (port->served >= 0 && (uint32_t)port->served != input) {
        begin_ps = later_of(begin_ps, port->packet_end_ps +
                                          cycles_ps(crossbar, crossbar->config.change_over));
    }
    port->gap_ps += port->ahead ? begin_ps - port->packet_end_ps : 0;
    crossbar->flight_ps_last = begin_ps - packet->began_ps;
    point->words -= words;
    show(crossbar, point);
    forth_window_sent(&port->window, words);
    forth_link_packet(port->out, packet, begin_ps);
    point->leaving = words;
    point->left_ps = port->packet_end_ps = port->out->free_ps;
    port->served = (int)input;
    port->packets_out++;
    port->words_out += words;
    sim_note(crossbar->fabric->sim, packet->header ^ begin_ps << 8 ^ input);
    departed(crossbar, input, port->index, words, begin_ps);
}

/* The packet that would be chosen now. It may have waited so long that no near cache has it, so its
 * lines are asked for one packet's time ahead. */
static const void *likely_next(struct crossbar_port *port)
{
    const int input = forth_output_likely(&port->scheduler);
    if (input < 0) {
        return NULL;
    }
    const char *packet =
        (const char *)point_at(port->crossbar, (uint32_t)input, port->index)->packets.next;
    for (uint32_t line = 0; line < LINES_AHEAD; line++) {
        __builtin_prefetch(packet + (size_t)line * LINE_BYTES, 0, 2);
    }
    return packet;
}

static uint64_t choice_ps(const struct crossbar *crossbar)
{
    return cycles_ps(crossbar, crossbar->config.decide + crossbar->config.inform);
}

/* The output will look for its next packet before this one has ended. */
static void look_ahead(struct crossbar_port *port)
{
    const struct crossbar *crossbar = port->crossbar;
    const uint64_t at_ps = port->out->free_ps - cycles_ps(crossbar, crossbar->config.lead);
    port->serve.hint = likely_next(port);
    port->ahead = true;
    port->informed_ps = at_ps + choice_ps(crossbar);
    sim_schedule(crossbar->fabric->sim, &port->serve, at_ps);
}

static void serve(struct sim *sim, struct sim_event *event)
{
    struct crossbar_port *port = CONTAINER_OF(event, struct crossbar_port, serve);
    struct crossbar *crossbar = port->crossbar;
    if (port->credits.modified != 0 || overdue(port)) {
        send_credits(port, later_of(sim->now_ps, port->out->free_ps));
    }
    if (port->chosen < 0) {
        port->chosen = forth_output_next(&port->scheduler);
        if (port->chosen < 0) {
            if (port->credits.modified != 0) {
                wake(crossbar, &port->tell, later_of(port->told_ps, port->out->free_ps));
            }
            return;
        }
    }
    const uint32_t input = (uint32_t)port->chosen;
    struct crosspoint *point = point_at(crossbar, input, port->index);
    CHECK(!list_empty(&point->packets));
    struct forth_packet *packet = CONTAINER_OF(point->packets.next, struct forth_packet, node);
    if (!forth_window_admits(&port->window, words_of(packet))) {
        forth_link_collect(port->end.in);
    }
    if (!forth_window_admits(&port->window, words_of(packet))) {
        forth_link_await(port->end.in);
        port->ahead = false;
        if (port->credits.modified != 0) {
            wake(crossbar, &port->tell, later_of(port->told_ps, port->out->free_ps));
        }
        return;
    }
    list_remove(&packet->node);
    port->chosen = -1;
    depart(port, input, point, packet);
    look_ahead(port);
}

/* -- Arrivals -----------------------------------------------------------------------------------*/

/* Nothing of the packet is delivered, but its words have been paid for: they are given back to its
 * flow. */
static void discard(struct crossbar_port *port, struct forth_packet *packet, uint32_t output)
{
    port->discarded++;
    departed(port->crossbar, port->index, output, words_of(packet),
             port->crossbar->fabric->sim->now_ps);
    forth_packet_lose(port->crossbar->fabric, packet);
}

static uint32_t output_of(const struct crossbar *crossbar, uint64_t header)
{
    return crossbar->route[header >> 56 & (FORTH_NODES - 1)];
}

/* The header names the flow, if no more than one of its bits is wrong. */
static void discard_spoilt(struct crossbar_port *port, struct forth_packet *packet)
{
    uint64_t header = packet->header;
    if (packet->fate == FORTH_FATE_SOP || forth_header_repair(&header, packet->header_crc)) {
        discard(port, packet, output_of(port->crossbar, header));
        return;
    }
    port->discarded++;
    port->unrepaired++;
    forth_packet_lose(port->crossbar->fabric, packet);
}

/* Works out the most words that the buffer holds while this packet comes in and another one may go
 * out, both at a word a cycle. False: that is more than it has room for. */
static bool fits(struct crossbar *crossbar, struct crosspoint *point, uint32_t words)
{
    const uint64_t now = crossbar->fabric->sim->now_ps;
    const uint64_t left = point->left_ps <= now ? 0 : (point->left_ps - now) / crossbar->cycle_ps;
    const uint32_t leaving = left / 2 < point->leaving ? (uint32_t)(left / 2) : point->leaving;
    const uint32_t most = point->words + (leaving > words ? leaving : words);
    point->peak = most > point->peak ? most : point->peak;
    return most <= crossbar->config.buffer_words;
}

static void on_packet(struct forth_end *end, struct forth_packet *packet)
{
    struct crossbar_port *port = CONTAINER_OF(end, struct crossbar_port, end);
    struct crossbar *crossbar = port->crossbar;
    if (packet->fate == FORTH_FATE_SOP ||
        (packet->fate == FORTH_FATE_HEADER && !crossbar->config.crc_ignored)) {
        discard_spoilt(port, packet);
        return;
    }
    const uint32_t words = words_of(packet);
    const uint32_t output = output_of(crossbar, packet->header);
    struct crosspoint *point = point_at(crossbar, port->index, output);
    struct crossbar_port *to = &crossbar->ports[output];
    if (to->out == NULL) {
        discard(port, packet, output); /* No node is attached there. */
        return;
    }
    if (!fits(crossbar, point, words)) {
        /* A sender was told of room that does not exist: three flipped bits can look like one. */
        port->overflows++;
        discard(port, packet, output);
        return;
    }
    port->packets_in++;
    port->words_in += words;
    list_append(&point->packets, &packet->node);
    point->words += words;
    show(crossbar, point);
    forth_output_arrived(&to->scheduler, port->index);
    if (to->chosen < 0 && !sim_event_scheduled(&to->serve)) {
        to->ahead = false;
        sim_after(crossbar->fabric->sim, &to->serve, choice_ps(crossbar));
    }
}

static void on_credit(struct forth_end *end, uint16_t word)
{
    struct crossbar_port *port = CONTAINER_OF(end, struct crossbar_port, end);
    struct forth_credit credit;
    if (forth_credit_decode(word, &credit) != FORTH_GOOD) {
        port->bad_credits++;
        return;
    }
    forth_window_credit(&port->window, credit.value);
    if (end->waiting) {
        end->waiting = false;
        if (!sim_event_scheduled(&port->serve)) {
            sim_schedule(port->crossbar->fabric->sim, &port->serve,
                         port->crossbar->fabric->sim->now_ps);
        }
    }
}

/* -- Construction -------------------------------------------------------------------------------*/

static void open_port(struct crossbar *crossbar, uint32_t index)
{
    struct crossbar_port *port = &crossbar->ports[index];
    *port = (struct crossbar_port){
        /* The scheduler hears of a packet `sync` cycles behind the head, which follows SOP. */
        .end = {.lead = 1 + crossbar->config.sync, .on_packet = on_packet, .on_credit = on_credit},
        .crossbar = crossbar,
        .index = index,
        .chosen = -1,
        .served = -1,
    };
    sim_event_init(&port->serve, serve);
    sim_event_init(&port->tell, tell);
    sim_event_init(&port->refresh, refresh);
    forth_output_init(&port->scheduler, crossbar->config.ports);
    port->scheduler.arbiter = crossbar->config.arbiter;
    port->scheduler.weight = crossbar->config.weight;
    forth_credits_init(&port->credits, crossbar->config.ports);
    forth_window_init(&port->window, (uint16_t)crossbar->config.node_words);
}

void crossbar_open(struct crossbar *crossbar, struct forth_fabric *fabric,
                   const struct crossbar_config *config)
{
    CHECK(config->ports >= 1 && config->ports <= FORTH_PORTS_MAX);
    *crossbar = (struct crossbar){
        .fabric = fabric, .config = *config, .cycle_ps = sim_clock_at(config->clock, 1)};
    crossbar->ports = calloc(config->ports, sizeof(crossbar->ports[0]));
    crossbar->points = calloc((size_t)config->ports * config->ports, sizeof(crossbar->points[0]));
    CHECK(crossbar->ports != NULL && crossbar->points != NULL);
    for (uint32_t i = 0; i < config->ports; i++) {
        open_port(crossbar, i);
    }
    for (uint32_t i = 0; i < config->ports * config->ports; i++) {
        list_init(&crossbar->points[i].packets);
    }
    for (uint32_t i = 0; i < FORTH_NODES; i++) {
        crossbar->route[i] = (uint8_t)(i % config->ports);
    }
}

void crossbar_close(struct crossbar *crossbar)
{
    free(crossbar->points);
    free(crossbar->ports);
}

void crossbar_trace(struct crossbar *crossbar, struct sim_trace *trace)
{
    static const char *const names[] = {"from 0", "from 1", "from 2", "from 3",
                                        "from 4", "from 5", "from 6", "from 7"};
    for (uint32_t output = 0; output < crossbar->config.ports; output++) {
        for (uint32_t input = 0; input < crossbar->config.ports; input++) {
            point_at(crossbar, input, output)->track =
                sim_trace_track(trace, "crosspoints to", (int)output,
                                input < COUNT_OF(names) ? names[input] : "from others", 9);
        }
    }
}

void crossbar_attach(struct crossbar *crossbar, uint32_t port, struct forth_link *out)
{
    crossbar->ports[port].out = out;
    if (crossbar->config.refresh_ps > 0) {
        /* The outputs do not all repeat at the same time. */
        sim_after(crossbar->fabric->sim, &crossbar->ports[port].refresh,
                  crossbar->config.refresh_ps * (port + 1) / crossbar->config.ports);
    }
}
