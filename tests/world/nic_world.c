/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/world/nic_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "nic/routes.h"
#include "tests/world/timer.h"
#include "wire/block.h"

/* A node too lazy to pull looks again this much later. */
#define LAZY_PS UINT64_C(1000000)
/* Time begins a little after 0, which is no time to some engines. */
#define BEGIN_PS UINT64_C(1000000)

/* An acknowledgement that travels with a packet (nic_piggyback) stands behind it: its PSN and its
 * AETH. A bit of the BTH that IBTA reserves says so. */
#define PIGGYBACK_BYTES 8
#define PIGGYBACK_AT    4
#define PIGGYBACK_BIT   1
/* Any packet, without its ICRC. */
#define PACKET_BYTES_MAX (NIC_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX + PIGGYBACK_BYTES)
#define DATAGRAM_BYTES   9000
#define CE               3 /* Congestion was met (RFC 3168). */
#define AROUND_BYTES     (INET_IPV4_BYTES + INET_UDP_BYTES + ROCE_ICRC_BYTES)
/* Where datagrams begin and end: at the first address of node 0 or 1, or at the second one. */
#define NODE_OF(end) ((end)&1u)

/* A move that takes its time. */
struct late_move {
    struct sim_event event;
    uint32_t node;
    struct datagram *datagram; /* Has the payload; NULL: the NIC has it. */
    struct nic_move move;
};

static struct nic_world *world_of(struct sim *sim)
{
    return CONTAINER_OF(sim, struct nic_world, sim);
}

/* -- Memory -------------------------------------------------------------------------------------*/

static void scatter(const struct nic_move *move)
{
    const uint8_t *payload = move->payload;
    uint32_t prefix = move->prefix_bytes;
    const uint8_t *from = move->prefix;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)move->segments[i].address;
        for (uint32_t k = 0; k < move->segments[i].bytes; k++) {
            if (prefix > 0) {
                *to++ = *from++;
                prefix--;
            } else {
                *to++ = *payload++;
            }
        }
    }
}

static void move_memory(struct nic_move *move)
{
    uint64_t *target = (uint64_t *)(uintptr_t)move->segments[0].address;
    switch (move->kind) {
    case NIC_MOVE_NOTHING:
    case NIC_MOVE_FLUSH: return; /* There is one memory, and one reader. */
    case NIC_MOVE_ATOMIC:
        move->original = *target;
        *target = nic_atomic_result(move, *target);
        return;
    case NIC_MOVE_SCATTER: scatter(move); return;
    }
}

static void finish_move(struct nic_world *world, uint32_t node, struct datagram *datagram,
                        struct nic_move *move)
{
    move_memory(move);
    nic_on_moved(world->nodes[node].nic, move, NIC_MOVED, sim_instant(&world->sim));
    if (datagram != NULL) {
        link_give(datagram);
    }
}

static void defer(struct nic_world *world, uint32_t number, struct datagram *datagram,
                  const struct nic_move *move);

static void make_move(struct nic_world *world, uint32_t node, struct datagram *datagram,
                      struct nic_move *move)
{
    if (world->move_ps != 0) {
        defer(world, node, datagram, move);
    } else {
        finish_move(world, node, datagram, move);
    }
}

/* Moves of packets that had come before their turn. */
static void make_held_moves(struct nic_world *world, uint32_t node)
{
    struct nic_move move;
    while (nic_next_held(world->nodes[node].nic, &move)) {
        make_move(world, node, NULL, &move);
    }
}

static void on_late_move(struct sim *sim, struct sim_event *event)
{
    struct nic_world *world = world_of(sim);
    struct late_move *late = CONTAINER_OF(event, struct late_move, event);
    const uint32_t node = late->node;
    finish_move(world, node, late->datagram, &late->move);
    sim_pool_give(&world->moves, late);
    make_held_moves(world, node);
}

/* Memory takes its time: the move and what follows from it happen later, in order if it has to. */
static void defer(struct nic_world *world, uint32_t number, struct datagram *datagram,
                  const struct nic_move *move)
{
    struct nic_node *node = &world->nodes[number];
    struct late_move *late = sim_pool_take(&world->moves);
    CHECK(late != NULL); /* There are as many as datagrams and held payloads. */
    sim_event_init(&late->event, on_late_move);
    late->node = number;
    late->datagram = datagram;
    late->move = *move;
    uint64_t done_ps = world->sim.now_ps + prng_below(&world->sim.prng, world->move_ps);
    if (move->in_order && done_ps < node->moves_until_ps) {
        done_ps = node->moves_until_ps;
    }
    if (done_ps > node->moves_until_ps) {
        node->moves_until_ps = done_ps;
    }
    sim_schedule(&world->sim, &late->event, done_ps);
}

/* -- Arrival ------------------------------------------------------------------------------------*/

static void note(struct sim *sim, const struct datagram *datagram)
{
    uint32_t at = 0;
    for (; at + sizeof(uint64_t) <= datagram->count; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, datagram->bytes + at, sizeof(word));
        sim_note(sim, word);
    }
    for (; at < datagram->count; at++) {
        sim_note(sim, datagram->bytes[at]);
    }
}

static void forget_events(const struct nic_world *world, uint32_t node)
{
    struct nic_event event;
    while (nic_next_event(world->nodes[node].nic, &event)) {
    }
}

static struct nic_piggyback take_piggyback(struct datagram *datagram)
{
    struct nic_piggyback piggyback = {0};
    if (!block_is(datagram->bytes[0]) && (datagram->bytes[PIGGYBACK_AT] & PIGGYBACK_BIT)) {
        datagram->bytes[PIGGYBACK_AT] &= (uint8_t)~PIGGYBACK_BIT;
        datagram->count -= PIGGYBACK_BYTES;
        const uint8_t *at = datagram->bytes + datagram->count;
        piggyback =
            (struct nic_piggyback){.there = true, .psn = load_be32(at), .aeth = load_be32(at + 4)};
    }
    return piggyback;
}

/* Gives the NIC what arrived. True: there is a move to make. */
static bool hand_in(struct nic_world *world, struct datagram *datagram, struct nic_move *move)
{
    const struct nic_piggyback piggyback = take_piggyback(datagram);
    const struct nic_frame frame = {.headers = datagram->bytes,
                                    .headers_bytes = datagram->count,
                                    .source = world->gids[datagram->from],
                                    .destination = world->gids[datagram->to],
                                    .arrived = sim_instant(&world->sim),
                                    .traffic_class = datagram->marked ? CE : 0,
                                    .hop_limit = 64,
                                    .piggyback = piggyback};
    struct nic *nic = world->nodes[NODE_OF(datagram->to)].nic;
    return nic_on_packet(nic, &frame, sim_instant(&world->sim), move) == NIC_MOVES;
}

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct nic_world *world = world_of(sim);
    struct datagram *datagram = link_datagram(event);
    struct nic_move move;
    note(sim, datagram);
    world->arrived++;
    const uint32_t node = NODE_OF(datagram->to);
    if (hand_in(world, datagram, &move)) {
        make_move(world, node, datagram, &move);
    } else {
        link_give(datagram);
    }
    make_held_moves(world, node);
}

/* -- Departure ----------------------------------------------------------------------------------*/

static uint32_t serialize(const struct nic_departure *departure, uint8_t *bytes)
{
    memcpy(bytes, departure->headers, departure->headers_bytes);
    uint32_t count = departure->headers_bytes;
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(bytes + count, (const void *)(uintptr_t)segment->address, segment->bytes);
        count += segment->bytes;
    }
    memset(bytes + count, 0, departure->pad_bytes);
    count += departure->pad_bytes;
    if (departure->piggyback.there) {
        bytes[PIGGYBACK_AT] |= PIGGYBACK_BIT;
        store_be32(bytes + count, departure->piggyback.psn);
        store_be32(bytes + count + 4, departure->piggyback.aeth);
        count += PIGGYBACK_BYTES;
    }
    return count;
}

static bool goes_by_dead_route(const struct nic_world *world, uint32_t node,
                               const struct nic_departure *departure)
{
    const uint8_t opcode = departure->headers[0];
    return world->sim.now_ps >= world->dead_from_ps &&
           (world->dead_routes[node] >> departure->route & 1) != 0 && block_is(opcode) &&
           opcode != BLOCK_HELLO && opcode != BLOCK_WELCOME;
}

static uint32_t end_of(const struct nic_world *world, const struct gid *gid)
{
    uint32_t end = 0;
    while (!gid_equal(&world->gids[end], gid)) {
        CHECK(++end < COUNT_OF(world->gids));
    }
    return end;
}

/* By which addresses it leaves, as its route says. */
static struct nic_route way_of(const struct nic_world *world, uint32_t node,
                               const struct nic_departure *departure)
{
    const struct nic_routes *routes = nic_peer_routes(world->nodes[node].nic, NIC_WORLD_PEER);
    return departure->route == 0
               ? (struct nic_route){.source = world->gids[node], .destination = world->gids[!node]}
               : nic_routes_at(routes, departure->av, departure->route);
}

static void send(struct nic_world *world, uint32_t node, const struct nic_departure *departure)
{
    uint8_t bytes[PACKET_BYTES_MAX];
    const struct nic_route route = way_of(world, node, departure);
    const uint32_t from = end_of(world, &route.source), to = end_of(world, &route.destination);
    const uint32_t count = serialize(departure, bytes);
    world->carried[route.pair != 0]++;
    world->sent_bytes[node] += count + AROUND_BYTES;
    if (world->stolen && to == COUNT_OF(world->gids) - 1) {
        world->astray_packets++;
        world->astray_bytes += count + AROUND_BYTES;
    } else if (goes_by_dead_route(world, node, departure) || world->dead_pairs[route.pair != 0]) {
        world->died++;
    } else if (departure->ecn == NIC_ECN_NOT) {
        link_send(&world->link, from, to, bytes, count);
    } else {
        link_send_markable(&world->link, from, to, bytes, count);
    }
}

/* The NIC has a number that nobody can guess. */
static void draw_number(struct nic_world *world, uint32_t node)
{
    struct nic_routes *routes = nic_peer_routes(world->nodes[node].nic, NIC_WORLD_PEER);
    if (routes != NULL && routes->peer_count != 0 && routes->random == 0) {
        routes->random = prng_next(&world->sim.prng);
    }
}

static void pull(struct nic_world *world, uint32_t number)
{
    struct sim *sim = &world->sim;
    struct nic_node *node = &world->nodes[number];
    struct nic_departure departure;
    struct qp *qp;
    forget_events(world, number);
    while ((qp = nic_next_qp(node->nic)) != NULL) {
        if (sim_fault_strikes(&world->link.settings.faults, SIM_FAULT_lazy, &sim->prng)) {
            if (!sim_event_scheduled(&node->pull)) {
                sim_after(sim, &node->pull, LAZY_PS);
            }
            return;
        }
        draw_number(world, number);
        if (!nic_next_packet(node->nic, qp, sim_instant(sim), &departure)) {
            continue;
        }
        CHECK(departure.payload_bytes + departure.pad_bytes <= ROCE_PAYLOAD_BYTES_MAX);
        send(world, number, &departure);
        nic_rotate(node->nic, qp);
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

/* Every step pulls: this is one. */
static void on_pull(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    (void)event;
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    const struct nic_node *node = CONTAINER_OF(event, struct nic_node, timer);
    nic_on_time(node->nic, sim_instant(sim));
}

static struct gid gid_of(uint8_t subnet, uint8_t host)
{
    return (struct gid){{[10] = 0xff, 0xff, 10, 0, subnet, host}};
}

static void node_init(struct nic_world *world, uint32_t number, const struct nic_limits *limits,
                      enum nic_world_second second)
{
    struct nic_node *node = &world->nodes[number];
    const size_t bytes = (nic_bytes(limits) + 63u) & ~(size_t)63u;
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    node->nic = nic_init(limits, prng_next(&world->sim.prng), memory);
    struct nic_routes *routes = nic_peer_routes(node->nic, NIC_WORLD_PEER);
    if (routes != NULL) {
        routes->datagram_bytes = DATAGRAM_BYTES;
        routes->ports = NIC_ROUTES_MAX;
        routes->own_count = second != NIC_WORLD_NONE;
        routes->own[0] = world->gids[number + 2];
    }
    node->gid = world->gids[number];
    sim_event_init(&node->timer, on_timer);
    sim_event_init(&node->pull, on_pull);
}

void nic_world_init(struct nic_world *world, uint64_t seed,
                    const struct nic_world_settings *settings, const struct nic_limits *limits)
{
    memset(world, 0, sizeof(*world));
    sim_init(&world->sim, seed);
    sim_run_until(&world->sim, BEGIN_PS);
    link_pool_open(&world->packets, NIC_WORLD_PACKETS_MAX, PACKET_BYTES_MAX);
    link_init(&world->link, &world->sim, &world->packets, &settings->link, on_arrival);
    world->move_ps = settings->move_ps;
    world->dead_from_ps = settings->dead_from_ps;
    memcpy(world->dead_routes, settings->dead_routes, sizeof(world->dead_routes));
    sim_pool_open(&world->moves, NIC_WORLD_PACKETS_MAX + 2 * limits->block.held,
                  sizeof(struct late_move));
    struct nic_limits second = *limits;
    if (settings->stranger) {
        second.block = (struct block_limits){.transport = NIC_TRANSPORT_RC};
    }
    world->stolen = settings->second == NIC_WORLD_STOLEN;
    for (uint8_t node = 0; node < 2; node++) {
        world->gids[node] = gid_of(0, (uint8_t)(node + 1));
        world->gids[node + 2] = gid_of(world->stolen && node == 1 ? 99 : 1, (uint8_t)(node + 1));
    }
    node_init(world, 0, limits, settings->second);
    node_init(world, 1, &second, settings->second);
}

void nic_world_free(struct nic_world *world)
{
    sim_pool_close(&world->moves);
    sim_pool_close(&world->packets);
    free(world->nodes[0].nic);
    free(world->nodes[1].nic);
}

bool nic_world_step(struct nic_world *world)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct nic_node *node = &world->nodes[i];
        nic_check(node->nic);
        pull(world, i);
        timer_set(&world->sim, &node->timer, nic_deadline(node->nic));
    }
    return sim_step(&world->sim);
}
