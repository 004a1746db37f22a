/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/station.h"

#include <string.h>

#define WAITING_MAX 1024

struct waiting {
    struct list node;
    uint32_t to;
    uint32_t qwords;
};

static uint32_t flow_of(uint32_t from, uint32_t to)
{
    return from << 8 | to;
}

/* -- Making packets -----------------------------------------------------------------------------*/

static bool saturated(const struct station *station)
{
    return station->config.load >= 1;
}

static uint32_t pick_size(struct station *station)
{
    const struct station_config *config = &station->config;
    return config->least + (uint32_t)prng_below(&station->prng, config->most - config->least + 1);
}

static uint32_t pick_destination(struct station *station)
{
    const struct station_config *config = &station->config;
    return config->only >= 0
               ? (uint32_t)config->only
               : sim_destination(&station->prng, config->index, config->nodes, config->unbalance);
}

static struct list *queue_of(struct station *station, uint32_t to)
{
    return station->config.one_queue ? &station->queue : &station->flows[to].queue;
}

static void enqueue(struct station *station, uint32_t to)
{
    struct waiting *waiting = sim_pool_take(&station->waiting);
    station->made++;
    if (waiting == NULL) {
        station->not_queued++;
        return;
    }
    *waiting = (struct waiting){.to = to, .qwords = pick_size(station)};
    list_append(queue_of(station, to), &waiting->node);
    station->eligible |= UINT64_C(1) << (station->config.one_queue ? 0 : to);
}

/* A saturated source of virtual output queues has a packet for every destination at any time: only
 * the size of that packet is drawn ahead. */
static bool always_ready(const struct station *station)
{
    return saturated(station) && !station->config.one_queue;
}

static void make_ready(struct station *station, uint32_t to)
{
    const uint64_t bit = UINT64_C(1) << to;
    if (station->made == station->config.packets) {
        station->eligible &= ~bit;
        return;
    }
    station->made++;
    station->flows[to].qwords = (uint16_t)pick_size(station);
    station->eligible |= bit;
}

static void begin(struct station *station)
{
    const struct station_config *config = &station->config;
    if (config->one_queue) {
        if (config->packets > 0) {
            enqueue(station, pick_destination(station));
        }
        return;
    }
    for (uint32_t i = 0; i < config->nodes; i++) {
        if (config->only >= 0 ? i == (uint32_t)config->only : i != config->index) {
            make_ready(station, i);
        }
    }
}

static void send(struct sim *sim, struct sim_event *event);

/* Draws the next arrival so that the packets' own time loads the link as asked. */
static void schedule_arrival(struct station *station)
{
    const struct station_config *config = &station->config;
    if (station->made >= config->packets) {
        return;
    }
    const uint32_t mean = (config->least + config->most) / 2;
    const double ps = (double)forth_link_ps(station->out, forth_link_cycles(station->out, mean));
    const uint64_t gap = sim_poisson_gap(&station->prng, (uint64_t)(ps / config->load));
    sim_after(station->fabric->sim, &station->arrival, gap);
}

static void try_send(struct station *station)
{
    if (!sim_event_scheduled(&station->send)) {
        const uint64_t now = station->fabric->sim->now_ps;
        const uint64_t free = station->out->free_ps;
        sim_schedule(station->fabric->sim, &station->send, free > now ? free : now);
    }
}

static void arrive(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct station *station = CONTAINER_OF(event, struct station, arrival);
    enqueue(station, pick_destination(station));
    try_send(station);
    schedule_arrival(station);
}

/* -- Sending ------------------------------------------------------------------------------------*/

static void transmit(struct station *station, uint32_t to, uint32_t qwords, uint64_t begin_ps)
{
    struct forth_packet *packet = sim_pool_take(&station->fabric->packets);
    CHECK(packet != NULL);
    struct station_flow *flow = &station->flows[to];
    uint64_t payload[FORTH_WORDS_MAX];
    forth_window_sent(&flow->window, qwords + FORTH_OVERHEAD_WORDS);
    packet->qwords = (uint16_t)qwords;
    packet->header =
        forth_header_encode(&(struct forth_header){.node = (uint8_t)to, .words = packet->qwords});
    /* The payload goes by way of a copy, which is much faster than filling in place:
     * docs/performance.md. */
    sim_payload_fill(payload, qwords, flow_of(station->config.index, to), flow->number++);
    memcpy(packet->payload, payload, 8 * (size_t)qwords);
    forth_packet_seal(packet);
    station->sent++;
    forth_link_packet(station->out, packet, begin_ps);
}

static struct waiting *first_of(struct list *queue)
{
    return CONTAINER_OF(queue->next, struct waiting, node);
}

/* The next destination, in turn, for whose first packet there is room. -1: none. */
static int next_destination(struct station *station, uint32_t *qwords)
{
    uint64_t candidates = station->eligible;
    while (candidates != 0) {
        const int at = forth_round_robin(candidates, station->last, FORTH_PORTS_MAX);
        uint32_t to = (uint32_t)at;
        if (always_ready(station)) {
            *qwords = station->flows[to].qwords;
        } else {
            const struct waiting *first = first_of(queue_of(station, to));
            *qwords = first->qwords;
            to = first->to;
        }
        if (forth_window_admits(&station->flows[to].window, *qwords + FORTH_OVERHEAD_WORDS)) {
            station->last = (uint32_t)at;
            return (int)to;
        }
        candidates &= ~(UINT64_C(1) << at);
    }
    return -1;
}

static void leave_queue(struct station *station, uint32_t to)
{
    struct list *queue = queue_of(station, to);
    sim_pool_give(&station->waiting, CONTAINER_OF(list_pop(queue), struct waiting, node));
    if (saturated(station) && station->made < station->config.packets) {
        enqueue(station, pick_destination(station));
    }
    if (list_empty(queue)) {
        station->eligible &= ~(UINT64_C(1) << (station->config.one_queue ? 0 : to));
    }
}

static void send_packet(struct station *station, uint64_t begin_ps)
{
    uint32_t qwords;
    forth_link_collect(station->end.in);
    const int to = next_destination(station, &qwords);
    if (to < 0) {
        if (station->eligible != 0) {
            forth_link_await(station->end.in);
        }
        return;
    }
    transmit(station, (uint32_t)to, qwords, begin_ps);
    if (always_ready(station)) {
        make_ready(station, (uint32_t)to);
    } else {
        leave_queue(station, (uint32_t)to);
    }
}

static void send_credit(struct station *station)
{
    const struct forth_credit credit = {.flow = (uint8_t)station->config.index,
                                        .value = forth_ledger_take(&station->ledger)};
    forth_link_credit(station->out, credit, station->fabric->sim->now_ps, station->config.credit);
}

static void send(struct sim *sim, struct sim_event *event)
{
    struct station *station = CONTAINER_OF(event, struct station, send);
    uint64_t begin_ps = sim->now_ps;
    station->end.waiting = false;
    if (station->ledger.modified) {
        send_credit(station);
        begin_ps = station->out->free_ps; /* A packet follows at once. */
    }
    send_packet(station, begin_ps);
    if (station->out->free_ps > sim->now_ps) {
        sim_schedule(sim, event, station->out->free_ps);
    }
}

static void refresh(struct sim *sim, struct sim_event *event)
{
    struct station *station = CONTAINER_OF(event, struct station, refresh);
    station->ledger.modified = true;
    try_send(station);
    sim_after(sim, event, station->config.refresh_ps);
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static void count_delivery(struct station *station, const struct forth_packet *packet)
{
    const uint64_t now = station->fabric->sim->now_ps;
    station->received_qwords += packet->qwords;
    if (now >= station->config.warm_ps) {
        station->warm_qwords += packet->qwords;
        station->warm_packets++;
    }
}

static void deliver(struct station *station, const struct forth_packet *packet)
{
    const size_t bytes = 8 * (size_t)packet->qwords;
    const uint64_t *payload = (const uint64_t *)(const void *)packet->payload;
    const uint32_t from = (uint32_t)(payload[0] >> 48) & (FORTH_PORTS_MAX - 1);
    __builtin_prefetch(&station->sinks[from],
                       1); /* The line is there when the CRC has been checked. */
    const bool body_good =
        station->config.crc_ignored ||
        forth_body_crc(FORTH_BODY_CRC_BEGIN, packet->payload, bytes) == packet->body_crc;
    station->received++;
    if (!body_good) {
        /* The packet is known to be wrong: it takes its place in the order, and is judged no
         * further. */
        station->flagged++;
        sim_note(station->fabric->sim, ~packet->header ^ packet->body_crc);
        return;
    }
    const enum sim_payload_verdict verdict = sim_sink_judge(
        &station->sinks[from], payload, packet->qwords, flow_of(from, station->config.index));
    sim_note(station->fabric->sim, payload[0] + verdict);
    count_delivery(station, packet);
}

static void on_packet(struct forth_end *end, struct forth_packet *packet)
{
    struct station *station = CONTAINER_OF(end, struct station, end);
    if (packet->fate == FORTH_FATE_SOP ||
        (packet->fate == FORTH_FATE_HEADER && !station->config.crc_ignored)) {
        station->header_errors++;
        forth_ledger_forwarded(&station->ledger, packet->qwords + FORTH_OVERHEAD_WORDS);
        forth_packet_lose(station->fabric, packet);
    } else {
        deliver(station, packet);
        forth_ledger_forwarded(&station->ledger, packet->qwords + FORTH_OVERHEAD_WORDS);
        sim_pool_give(&station->fabric->packets, packet);
    }
    if (station->ledger.modified) {
        try_send(station);
    }
}

static void on_credit(struct forth_end *end, uint16_t word)
{
    struct station *station = CONTAINER_OF(end, struct station, end);
    struct forth_credit credit;
    if (forth_credit_decode(word, &credit) != FORTH_GOOD) {
        station->bad_credits++;
        return;
    }
    if (credit.flow < station->config.nodes) {
        forth_window_credit(&station->flows[credit.flow].window, credit.value);
        if (end->waiting) {
            end->waiting = false;
            try_send(station);
        }
    }
}

/* -- Construction -------------------------------------------------------------------------------*/

void station_open(struct station *station, struct forth_fabric *fabric, struct forth_link *out,
                  const struct station_config *config, uint64_t seed)
{
    CHECK(config->nodes <= FORTH_PORTS_MAX && config->index < config->nodes);
    CHECK(config->least >= 1 && config->least <= config->most && config->load > 0);
    *station = (struct station){
        /* The end waits for the whole packet, so all that is checked has come. */
        .end = {.lead = 5,
                .part = 1,
                .of_parts = 1,
                .in = station->end.in,
                .on_packet = on_packet,
                .on_credit = on_credit},
        .fabric = fabric,
        .out = out,
        .config = *config,
        .last = FORTH_PORTS_MAX - 1,
    };
    prng_init(&station->prng, seed);
    sim_event_init(&station->send, send);
    station->send.hint = &station->end.in->travelling;
    sim_event_init(&station->arrival, arrive);
    sim_event_init(&station->refresh, refresh);
    sim_pool_open(&station->waiting, WAITING_MAX, sizeof(struct waiting));
    list_init(&station->queue);
    for (uint32_t i = 0; i < config->nodes; i++) {
        forth_window_init(&station->flows[i].window, (uint16_t)config->crosspoint_words);
        list_init(&station->flows[i].queue);
    }
    if (saturated(station)) {
        begin(station);
        try_send(station);
    } else {
        schedule_arrival(station);
    }
    if (config->refresh_ps > 0) {
        sim_after(fabric->sim, &station->refresh, config->refresh_ps);
    }
}

void station_close(struct station *station)
{
    sim_pool_close(&station->waiting);
}

bool station_done(const struct station *station)
{
    return station->made >= station->config.packets && station->eligible == 0;
}
