/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/check.h"

#define NEVER UINT64_MAX

/* The two ends of each pair's links. */
static const uint8_t pairs[EXANEST_QFDB_PAIRS][2] = {{0, 1}, {0, 2}, {0, 3},
                                                     {1, 2}, {1, 3}, {2, 3}};

uint32_t exanest_fabric_end(uint32_t link, uint32_t end)
{
    return pairs[link % EXANEST_QFDB_PAIRS][end];
}

struct exanest_fabric_config exanest_fabric_default(uint32_t x, uint32_t y, uint32_t z)
{
    const struct exanest_place place = {0};
    return (struct exanest_fabric_config){
        .size = {(uint8_t)x, (uint8_t)y, (uint8_t)z},
        .datapath_hz = EXANEST_DATAPATH_MHZ * UINT64_C(1000000),
        .fpga = exanest_fpga_default(place),
        .link = exanest_link_default(),
        .links_per_pair = 1,
        .router = exanest_router_default(0, 0, (uint8_t)x, (uint8_t)y),
        .router_wire_cycles = EXANEST_ROUTER_WIRE_CYCLES,
    };
}

/* -- Places -------------------------------------------------------------------------------------*/

static struct exanest_place exanest_fabric_place(const struct exanest_fabric *fabric,
                                                 uint32_t number)
{
    const uint8_t *size = fabric->config.size;
    const uint32_t qfdb = number / EXANEST_FPGAS;
    return (struct exanest_place){
        .x = (uint8_t)(qfdb % size[0]),
        .y = (uint8_t)(qfdb / size[0] % size[1]),
        .z = (uint8_t)(qfdb / size[0] / size[1]),
        .fpga = (uint8_t)(number % EXANEST_FPGAS),
    };
}

static uint32_t qfdb_at(const struct exanest_fabric *fabric, const uint32_t at[3])
{
    const uint8_t *size = fabric->config.size;
    return (at[2] * size[1] + at[1]) * size[0] + at[0];
}

uint32_t exanest_fabric_number(const struct exanest_fabric *fabric, uint32_t coordinate)
{
    const struct exanest_place place = exanest_place(coordinate);
    const uint32_t at[3] = {place.x, place.y, place.z};
    return qfdb_at(fabric, at) * EXANEST_FPGAS + place.fpga;
}

/* -- Building -----------------------------------------------------------------------------------*/

static void on_edge(struct sim *sim, struct sim_event *event);

static void open_wires(struct exanest_fabric *fabric, struct exanest_qfdb *qfdb, uint32_t number)
{
    const uint8_t *size = fabric->config.size;
    const struct exanest_place place = exanest_fabric_place(fabric, number * EXANEST_FPGAS);
    for (uint32_t i = 0; i < 2 * EXANEST_ROUTER_DIMENSIONS; i++) {
        uint32_t at[3] = {place.x, place.y, place.z};
        const uint32_t dimension = i / 2;
        const uint32_t step = i % 2 == 0 ? 1 : size[dimension] - 1u;
        at[dimension] = (at[dimension] + step) % size[dimension];
        struct exanest_router_wire *wire = &qfdb->wires[i];
        wire->neighbour = qfdb_at(fabric, at);
        wire->port = EXANEST_ROUTER_LOCALS + (i ^ 1);
        wire->word_due = wire->credit_due = NEVER;
        wire->words = malloc((fabric->wire_mask + 1) * sizeof(*wire->words));
        wire->credits = malloc((fabric->wire_mask + 1) * sizeof(*wire->credits));
        CHECK(wire->words != NULL && wire->credits != NULL);
    }
}

static void open_router(struct exanest_fabric *fabric, struct exanest_qfdb *qfdb, uint32_t number)
{
    struct exanest_router_config config = fabric->config.router;
    const struct exanest_place place = exanest_fabric_place(fabric, number * EXANEST_FPGAS);
    config.own[0] = place.x;
    config.own[1] = place.y;
    config.own[2] = place.z;
    memcpy(config.size, fabric->config.size, sizeof(config.size));
    config.one_local_port = fabric->config.one_router_port;
    qfdb->routes = true;
    qfdb->router_memory = calloc(1, exanest_router_bytes(&config));
    CHECK(qfdb->router_memory != NULL);
    exanest_router_init(&qfdb->router, &config, qfdb->router_memory);
    qfdb->fpgas[0].router = &qfdb->router;
    open_wires(fabric, qfdb, number);
}

static struct exanest_fpga_config fpga_config(const struct exanest_fabric *fabric, uint32_t number)
{
    struct exanest_fpga_config config = fabric->config.fpga;
    const struct exanest_place place = exanest_fabric_place(fabric, number);
    config.routing = exanest_routing_default(place);
    if (fabric->config.links_per_pair == 2) {
        config.routing = exanest_routing_two_links(place);
        config.crossbar.ports = EXANEST_PORTS_MAX;
        config.exadma.ports = 2;
    }
    config.routing.one_router_port = fabric->config.one_router_port;
    config.receiver.coordinate = config.packetizer.coordinate = exanest_coordinate(place);
    return config;
}

static void open_links(const struct exanest_fabric *fabric, struct exanest_qfdb *qfdb)
{
    const uint32_t count = EXANEST_QFDB_PAIRS * fabric->config.links_per_pair;
    qfdb->links = calloc(count, sizeof(*qfdb->links));
    CHECK(qfdb->links != NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct exanest_link_config config = fabric->config.link;
        const bool second = i >= EXANEST_QFDB_PAIRS;
        config.wire_ps += second ? fabric->config.second_longer_ps : 0;
        exanest_link_open(&qfdb->links[i], &config);
        for (uint32_t end = 0; end < 2; end++) {
            exanest_fpga_plug(&qfdb->fpgas[exanest_fabric_end(i, end)], exanest_fabric_end(i, !end),
                              second, &qfdb->links[i], end);
        }
    }
}

static void open_qfdb(struct exanest_fabric *fabric, uint32_t number)
{
    struct exanest_qfdb *qfdb = &fabric->qfdbs[number];
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        const struct exanest_fpga_config config = fpga_config(fabric, number * EXANEST_FPGAS + i);
        exanest_fpga_open(&qfdb->fpgas[i], &config, fabric->sim);
    }
    open_links(fabric, qfdb);
    if (fabric->qfdb_count > 1) {
        open_router(fabric, qfdb, number);
    }
}

void exanest_fabric_open(struct exanest_fabric *fabric, struct sim *sim,
                         const struct exanest_fabric_config *config)
{
    memset(fabric, 0, sizeof(*fabric));
    fabric->sim = sim;
    fabric->config = *config;
    fabric->clock = sim_clock_hz(config->datapath_hz);
    fabric->qfdb_count = (uint32_t)config->size[0] * config->size[1] * config->size[2];
    CHECK(fabric->qfdb_count >= 1 && fabric->qfdb_count <= EXANEST_QFDBS_MAX);
    CHECK(config->links_per_pair >= 1 && config->links_per_pair <= EXANEST_LINKS_MAX);
    CHECK(config->links_per_pair == 2 || !config->fpga.sprays);
    CHECK(config->router_wire_cycles >= 1);
    /* A word a cycle, for as long as one flies. */
    fabric->wire_mask = (uint32_t)power_of_two(config->router_wire_cycles + 2) - 1;
    sim_event_init(&fabric->edge, on_edge);
    fabric->qfdbs = calloc(fabric->qfdb_count, sizeof(*fabric->qfdbs));
    CHECK(fabric->qfdbs != NULL);
    for (uint32_t i = 0; i < fabric->qfdb_count; i++) {
        open_qfdb(fabric, i);
    }
}

void exanest_fabric_close(struct exanest_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->qfdb_count; i++) {
        struct exanest_qfdb *qfdb = &fabric->qfdbs[i];
        for (uint32_t k = 0; k < EXANEST_FPGAS; k++) {
            exanest_fpga_close(&qfdb->fpgas[k]);
        }
        for (uint32_t k = 0; k < EXANEST_QFDB_PAIRS * fabric->config.links_per_pair; k++) {
            exanest_link_close(&qfdb->links[k]);
        }
        free(qfdb->links);
        for (uint32_t k = 0; k < COUNT_OF(qfdb->wires); k++) {
            free(qfdb->wires[k].words);
            free(qfdb->wires[k].credits);
        }
        free(qfdb->router_memory);
    }
    free(fabric->qfdbs);
}

/* -- Waking -------------------------------------------------------------------------------------*/

uint64_t exanest_fabric_edge_ps(const struct exanest_fabric *fabric)
{
    uint64_t edge = sim_clock_edge(fabric->clock, fabric->sim->now_ps);
    return sim_clock_at(fabric->clock, edge <= fabric->cycle ? fabric->cycle + 1 : edge);
}

static void wake_qfdb(struct exanest_fabric *fabric, uint32_t qfdb)
{
    fabric->awake[qfdb / 64] |= UINT64_C(1) << qfdb % 64;
}

void exanest_fabric_wake(struct exanest_fabric *fabric, uint32_t number)
{
    fabric->qfdbs[number / EXANEST_FPGAS].fpgas_awake |= (uint8_t)(1u << number % EXANEST_FPGAS);
    wake_qfdb(fabric, number / EXANEST_FPGAS);
    if (!sim_event_scheduled(&fabric->edge)) {
        sim_schedule(fabric->sim, &fabric->edge, exanest_fabric_edge_ps(fabric));
    }
}

/* -- Cycles -------------------------------------------------------------------------------------*/

static void step_links(struct exanest_qfdb *qfdb, uint64_t now_ps)
{
    for (uint32_t left = qfdb->links_awake; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        struct exanest_link *link = &qfdb->links[i];
        exanest_link_step(link, now_ps);
        for (uint32_t end = 0; end < 2; end++) {
            if (exanest_link_out(link, end)->fifo.visible > 0) {
                qfdb->fpgas_awake |= (uint8_t)(1u << exanest_fabric_end(i, end));
            }
        }
    }
}

static void rest_links(struct exanest_qfdb *qfdb)
{
    for (uint32_t left = qfdb->links_awake; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        if (exanest_link_idle(&qfdb->links[i])) {
            qfdb->links_awake &= (uint16_t) ~(1u << i);
        }
    }
}

/* Which link of the QFDB is at a port of FPGA `from`. */
static uint32_t link_at(uint32_t from, uint32_t port)
{
    static const uint8_t links[EXANEST_FPGAS][EXANEST_FPGAS] = {
        {0, 0, 1, 2}, {0, 0, 3, 4}, {1, 3, 0, 5}, {2, 4, 5, 0}};
    return port < EXANEST_FPGAS ? links[from][port]
                                : EXANEST_QFDB_PAIRS + links[from][port - EXANEST_PORT_SECOND_F1];
}

/* A word stands at one of its links: then it is not idle, though all its units are. */
static bool waited_for(const struct exanest_qfdb *qfdb, uint32_t fpga)
{
    for (uint32_t left = qfdb->fpgas[fpga].linked; left != 0; left &= left - 1) {
        const struct exanest_cable *cable = &qfdb->fpgas[fpga].cables[__builtin_ctz(left)];
        if (exanest_link_out(cable->link, cable->end)->fifo.visible > 0) {
            return true;
        }
    }
    return fpga == 0 && qfdb->routes &&
           (exanest_router_active(&qfdb->router) & ((1u << EXANEST_ROUTER_LOCALS) - 1)) != 0;
}

static void step_fpgas(struct exanest_qfdb *qfdb)
{
    for (uint32_t left = qfdb->fpgas_awake; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        for (uint32_t used = exanest_fpga_step(&qfdb->fpgas[i]); used != 0; used &= used - 1) {
            const uint32_t port = (uint32_t)__builtin_ctz(used);
            qfdb->links_awake |= (uint16_t)(1u << link_at(i, port));
        }
        exanest_fpga_call(&qfdb->fpgas[i]);
        qfdb->router_awake |= i == 0 && qfdb->routes && !exanest_router_idle(&qfdb->router);
        if (exanest_fpga_idle(&qfdb->fpgas[i]) && !waited_for(qfdb, i)) {
            qfdb->fpgas_awake &= (uint8_t) ~(1u << i);
        }
    }
}

/* Words that the router shows at its remote ports leave; so do credits for the words that it has
 * passed on. */
static void send_words(struct exanest_fabric *fabric, struct exanest_qfdb *qfdb)
{
    const uint64_t due = fabric->cycle + fabric->config.router_wire_cycles;
    const uint32_t remote = exanest_router_active(&qfdb->router) >> EXANEST_ROUTER_LOCALS;
    for (uint32_t left = remote; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        struct exanest_router_wire *wire = &qfdb->wires[i];
        const uint32_t place = wire->word_tail & fabric->wire_mask;
        const uint32_t port = EXANEST_ROUTER_LOCALS + i;
        if (exanest_router_offer(&qfdb->router, port, &wire->words[place].beat)) {
            exanest_router_taken(&qfdb->router, port);
            if (UNLIKELY(wire->lanes != NULL)) {
                const struct exanest_beat *beat = &wire->words[place].beat;
                exanest_lane_take_beat(&wire->lanes[beat->channel], beat);
            }
            wire->words[place].due = due;
            wire->word_due = wire->word_head == wire->word_tail ? due : wire->word_due;
            wire->word_tail++;
            qfdb->flying++;
        }
    }
    for (uint32_t left = exanest_router_credits_due(&qfdb->router); left != 0; left &= left - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(left);
        struct exanest_router_wire *wire = &qfdb->wires[port - EXANEST_ROUTER_LOCALS];
        const uint32_t place = wire->credit_tail & fabric->wire_mask;
        uint32_t channel;
        if (exanest_router_next_credit(&qfdb->router, port, &channel)) {
            wire->credits[place].due = due;
            wire->credits[place].channel = (uint8_t)channel;
            wire->credit_due = wire->credit_head == wire->credit_tail ? due : wire->credit_due;
            wire->credit_tail++;
            qfdb->flying++;
        }
    }
}

static void wake_router(struct exanest_fabric *fabric, uint32_t qfdb)
{
    fabric->qfdbs[qfdb].router_awake = true;
    wake_qfdb(fabric, qfdb);
}

static void deliver_word(struct exanest_fabric *fabric, struct exanest_router_wire *wire)
{
    const uint32_t mask = fabric->wire_mask;
    exanest_router_take(&fabric->qfdbs[wire->neighbour].router, wire->port,
                        &wire->words[wire->word_head++ & mask].beat);
    wire->word_due =
        wire->word_head == wire->word_tail ? NEVER : wire->words[wire->word_head & mask].due;
    wake_router(fabric, wire->neighbour);
}

static void deliver_credit(struct exanest_fabric *fabric, struct exanest_router_wire *wire)
{
    const uint32_t mask = fabric->wire_mask;
    exanest_router_on_credit(&fabric->qfdbs[wire->neighbour].router, wire->port,
                             wire->credits[wire->credit_head++ & mask].channel);
    wire->credit_due = wire->credit_head == wire->credit_tail
                           ? NEVER
                           : wire->credits[wire->credit_head & mask].due;
    wake_router(fabric, wire->neighbour);
}

/* Delivers the words and credits that have come to the ends of the wires that begin here. */
static void deliver(struct exanest_fabric *fabric, struct exanest_qfdb *qfdb)
{
    for (uint32_t i = 0; i < COUNT_OF(qfdb->wires) && qfdb->flying > 0; i++) {
        struct exanest_router_wire *wire = &qfdb->wires[i];
        if (wire->word_due == fabric->cycle) {
            deliver_word(fabric, wire);
            qfdb->flying--;
        }
        if (wire->credit_due == fabric->cycle) {
            deliver_credit(fabric, wire);
            qfdb->flying--;
        }
    }
}

static void step_router(struct exanest_fabric *fabric, struct exanest_qfdb *qfdb)
{
    if (!qfdb->router_awake) {
        return;
    }
    send_words(fabric, qfdb);
    exanest_router_step(&qfdb->router);
    const uint32_t locals = (1u << EXANEST_ROUTER_LOCALS) - 1;
    if ((exanest_router_active(&qfdb->router) & locals) != 0) {
        qfdb->fpgas_awake |= 1;
    }
    qfdb->router_awake = !exanest_router_idle(&qfdb->router);
}

static bool step_qfdb(struct exanest_fabric *fabric, struct exanest_qfdb *qfdb, uint64_t now_ps)
{
    step_links(qfdb, now_ps);
    step_fpgas(qfdb);
    step_router(fabric, qfdb);
    rest_links(qfdb);
    return qfdb->links_awake != 0 || qfdb->fpgas_awake != 0 || qfdb->router_awake ||
           qfdb->flying > 0;
}

/* The wires first, all of them: a unit that a wire wakes makes its cycle now, at any place in the
 * order. */
static bool step(struct exanest_fabric *fabric, uint64_t now_ps)
{
    bool any = false;
    const uint32_t words = (fabric->qfdb_count + 63) / 64;
    for (uint32_t i = 0; i < words; i++) {
        for (uint64_t left = fabric->awake[i]; left != 0; left &= left - 1) {
            struct exanest_qfdb *qfdb = &fabric->qfdbs[64 * i + (uint32_t)__builtin_ctzll(left)];
            if (qfdb->flying > 0) {
                deliver(fabric, qfdb);
            }
        }
    }
    for (uint32_t i = 0; i < words; i++) {
        for (uint64_t left = fabric->awake[i]; left != 0; left &= left - 1) {
            const uint32_t number = 64 * i + (uint32_t)__builtin_ctzll(left);
            if (step_qfdb(fabric, &fabric->qfdbs[number], now_ps)) {
                any = true;
            } else {
                fabric->awake[i] &= ~(left & -left);
            }
        }
    }
    return any;
}

static void on_edge(struct sim *sim, struct sim_event *event)
{
    struct exanest_fabric *fabric = CONTAINER_OF(event, struct exanest_fabric, edge);
    fabric->cycle = sim_clock_edge(fabric->clock, sim->now_ps);
    if (step(fabric, sim->now_ps)) {
        sim_schedule(sim, &fabric->edge, sim_clock_at(fabric->clock, fabric->cycle + 1));
    }
}
