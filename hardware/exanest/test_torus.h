/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_torus - routers of a torus, joined by wires that only take time; and packets whose number
 * says everything about them, so that a sink knows the bytes that must come.
 */
#ifndef HARDWARE_EXANEST_TEST_TORUS_H
#define HARDWARE_EXANEST_TEST_TORUS_H

#include <stdlib.h>

#include "hardware/exanest/router.h"
#include "hardware/exanest/test_packet.h"

#define TORUS_NODES 64u
#define TORUS_WIRE  128u

/* From a remote output to the neighbour's input, and credits for that output the other way. */
struct torus_wire {
    uint32_t head, count, credit_head, credit_count;
    uint64_t when[TORUS_WIRE], credit_when[TORUS_WIRE];
    struct exanest_beat beats[TORUS_WIRE];
    uint8_t channels[TORUS_WIRE];
};

struct torus {
    uint32_t nodes, delay; /* Cycles. */
    uint64_t now;
    void *memory[TORUS_NODES];
    struct exanest_router routers[TORUS_NODES];
    struct torus_wire wires[TORUS_NODES][EXANEST_ROUTER_REMOTES_MAX];
};

static inline struct exanest_place torus_place(const uint8_t size[3], uint32_t node, uint8_t fpga)
{
    return (struct exanest_place){
        .x = (uint8_t)(node % size[0]),
        .y = (uint8_t)(node / size[0] % size[1]),
        .z = (uint8_t)(node / size[0] / size[1]),
        .fpga = fpga,
    };
}

/* Memory of an FPGA. */
static inline struct exanest_target torus_target(const struct torus *torus, uint32_t node,
                                                 uint8_t fpga)
{
    return (struct exanest_target){
        exanest_coordinate(torus_place(torus->routers[0].size, node, fpga)), 0x1000};
}

static inline struct torus *torus_new(struct exanest_router_config config, uint32_t delay)
{
    struct torus *torus = calloc(1, sizeof(*torus));
    torus->nodes = (uint32_t)config.size[0] * config.size[1] * config.size[2];
    torus->delay = delay;
    CHECK(torus->nodes <= TORUS_NODES && delay < TORUS_WIRE);
    for (uint32_t node = 0; node < torus->nodes; node++) {
        const struct exanest_place place = torus_place(config.size, node, 0);
        config.own[0] = place.x;
        config.own[1] = place.y;
        config.own[2] = place.z;
        torus->memory[node] = malloc(exanest_router_bytes(&config));
        exanest_router_init(&torus->routers[node], &config, torus->memory[node]);
    }
    return torus;
}

static inline void torus_free(struct torus *torus)
{
    for (uint32_t node = 0; node < torus->nodes; node++) {
        free(torus->memory[node]);
    }
    free(torus);
}

/* The node that a remote port leads to. */
static inline uint32_t torus_neighbour(const struct torus *torus, uint32_t node, uint32_t port)
{
    const struct exanest_router *router = &torus->routers[node];
    const uint32_t d = (port - EXANEST_ROUTER_LOCALS) / 2, size = router->size[d];
    const uint32_t step = (port - EXANEST_ROUTER_LOCALS) % 2 == 0 ? 1 : size - 1;
    uint32_t at[3] = {router->own[0], router->own[1], router->own[2]};
    at[d] = (at[d] + step) % size;
    return (at[2] * router->size[1] + at[1]) * router->size[0] + at[0];
}

static inline uint32_t torus_opposite(uint32_t port)
{
    return ((port - EXANEST_ROUTER_LOCALS) ^ 1) + EXANEST_ROUTER_LOCALS;
}

/* Takes the words that the wires bring in this cycle. */
static inline void torus_arrive(struct torus *torus, uint32_t node, uint32_t port)
{
    struct torus_wire *wire = &torus->wires[node][port - EXANEST_ROUTER_LOCALS];
    if (wire->count > 0 && wire->when[wire->head % TORUS_WIRE] == torus->now) {
        exanest_router_take(&torus->routers[torus_neighbour(torus, node, port)],
                            torus_opposite(port), &wire->beats[wire->head % TORUS_WIRE]);
        wire->head++;
        wire->count--;
    }
    while (wire->credit_count > 0 &&
           wire->credit_when[wire->credit_head % TORUS_WIRE] == torus->now) {
        exanest_router_on_credit(&torus->routers[node], port,
                                 wire->channels[wire->credit_head % TORUS_WIRE]);
        wire->credit_head++;
        wire->credit_count--;
    }
}

/* This router's input at `port` tells its credits to the router that sends there. */
static inline void torus_tell_credits(struct torus *torus, uint32_t node, uint32_t port)
{
    const uint32_t neighbour = torus_neighbour(torus, node, port);
    struct torus_wire *wire =
        &torus->wires[neighbour][torus_opposite(port) - EXANEST_ROUTER_LOCALS];
    uint32_t channel;
    while (exanest_router_next_credit(&torus->routers[node], port, &channel)) {
        CHECK(wire->credit_count < TORUS_WIRE);
        const uint32_t at = (wire->credit_head + wire->credit_count++) % TORUS_WIRE;
        wire->credit_when[at] = torus->now + torus->delay;
        wire->channels[at] = (uint8_t)channel;
    }
}

/* A cycle, but for the local ports. Returns the remote words that were moved. */
static inline uint32_t torus_cycle(struct torus *torus)
{
    uint32_t moved = 0;
    torus->now++;
    for (uint32_t node = 0; node < torus->nodes; node++) {
        exanest_router_step(&torus->routers[node]);
    }
    for (uint32_t node = 0; node < torus->nodes; node++) {
        struct exanest_router *router = &torus->routers[node];
        for (uint32_t port = EXANEST_ROUTER_LOCALS; port < router->ports; port++) {
            struct torus_wire *wire = &torus->wires[node][port - EXANEST_ROUTER_LOCALS];
            struct exanest_beat beat;
            torus_arrive(torus, node, port);
            if (exanest_router_offer(router, port, &beat)) {
                const uint32_t at = (wire->head + wire->count++) % TORUS_WIRE;
                wire->beats[at] = beat;
                wire->when[at] = torus->now + torus->delay;
                exanest_router_taken(router, port);
                moved++;
            }
            if ((exanest_router_credits_due(router) >> port & 1) != 0) {
                torus_tell_credits(torus, node, port);
            }
        }
    }
    return moved;
}

/* -- Packets that know themselves ---------------------------------------------------------------*/

/* The source and destination of a packet, and its number among their packets. Ends are 0..255: node
 * or FPGA and port. */
struct torus_flow {
    uint32_t from, to, sequence;
};

static inline uint32_t torus_number(struct torus_flow flow)
{
    return flow.from | flow.to << 8 | (flow.sequence & 0x3fff) << 16;
}

static inline struct torus_flow torus_flow(uint32_t number)
{
    return (struct torus_flow){number & 0xff, number >> 8 & 0xff, number >> 16 & 0x3fff};
}

/* The length follows from the number; header-only packets and the longest are frequent. */
static inline uint32_t torus_words(uint32_t number)
{
    const uint32_t drawn = number * UINT32_C(2654435761) >> 27;
    return drawn < 18 ? 1 + drawn : drawn < 28 ? 18 : 1;
}

static inline struct test_packet torus_packet(struct exanest_target target, uint32_t number)
{
    return test_packet(target, torus_words(number), number);
}

/* Receives packets, one word after the other. */
struct torus_sink {
    struct exanest_target target; /* As the header has it. */
    uint32_t at, number;
    struct test_packet expected;
};

/* Takes a word; true at a packet's end. Fails a CHECK if the word is not what has to come. */
static inline bool torus_sink(struct torus_sink *sink, const struct exanest_beat *beat)
{
    if (sink->at == 0) {
        struct exanest_header header;
        CHECK(beat->part == EXANEST_HEADER);
        CHECK(exanest_header_decode(beat->word, &header) == EXANEST_GOOD);
        sink->number = test_packet_number(beat->word);
        sink->target = header.target;
        sink->expected = torus_packet(header.target, sink->number);
    }
    CHECK(test_beat_equal(beat, &sink->expected.beats[sink->at]));
    sink->at = beat->last ? 0 : sink->at + 1;
    return beat->last;
}

#endif
