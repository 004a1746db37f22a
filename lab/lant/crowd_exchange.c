/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crowd_exchange - all-to-all: see crowd.h.
 *
 * A node's memory has a pool of words of its own, then a place for each other node's block, with a
 * few bytes between two of them which nobody may touch. The block for node d begins at word d of
 * the pool: so all blocks differ, also those of one node. Each node sends in an order of its own.
 * One transfer of four is not registered: its end is told by a packet.
 */
#include "lab/lant/crowd.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNDER_WAY = 32, /* Transfers that a program has submitted, and of which it has not heard. */
    WORD = sizeof(uint64_t),
    GUARD = 512,
};

struct exchange;

struct member {
    struct exchange *exchange;
    struct lant_node *node;
    struct sim_event wake;
    uint32_t begun, ended, place, stride; /* The next peer, and the step to the one after it. */
};

struct exchange {
    uint32_t nodes, block, spacing;
    uint64_t pool_bytes, memory_bytes;
    struct member *members;
    /* By node times nodes, and its peer: how often it heard of the block that it sent, and that
     * came. */
    uint8_t *sent, *came;
    uint64_t false_words; /* Notifications of what nobody did. */
    uint64_t last_ps;     /* The last notification. */
};

static bool is_told(uint32_t from, uint32_t to)
{
    return (from + to) % 4 == 0;
}

static uint64_t place_of(const struct exchange *exchange, uint32_t from)
{
    return exchange->pool_bytes + (uint64_t)from * exchange->spacing;
}

static void submit(struct member *member)
{
    const struct exchange *exchange = member->exchange;
    const uint32_t from = member->node->index;
    const uint32_t to = (from + 1 + member->place) % exchange->nodes;
    const struct lant_work work = {
        .descriptor = {.source = WORD * (uint64_t)to,
                       .destination = lant_global(to, place_of(exchange, from)),
                       .bytes = exchange->block,
                       .no_register = is_told(from, to)},
        .tag = to};
    const enum lant_queue queue = to % 2 == 0 ? LANT_QUEUE_CPU : LANT_QUEUE_FPGA;
    CHECK(lant_node_submit(member->node, queue, &work) == LANT_SUBMIT_COMMITTED);
    member->place = (member->place + member->stride) % (exchange->nodes - 1);
    member->begun++;
}

static void on_wake(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct member *member = CONTAINER_OF(event, struct member, wake);
    while (member->begun < member->exchange->nodes - 1 &&
           member->begun - member->ended < UNDER_WAY) {
        submit(member);
    }
}

/* A word of the peer's block, or of the block for it. */
static void hear(struct exchange *exchange, uint8_t *heard, uint32_t node, uint32_t peer,
                 bool makes_sense)
{
    if (!makes_sense || peer >= exchange->nodes) {
        exchange->false_words++;
        return;
    }
    uint8_t *count = &heard[(uint64_t)node * exchange->nodes + peer];
    *count = (uint8_t)(*count == UINT8_MAX ? UINT8_MAX : *count + 1);
}

static void on_notification(void *context, enum lant_queue queue,
                            const struct lant_notification *notification)
{
    struct member *member = context;
    struct exchange *exchange = member->exchange;
    const uint32_t self = member->node->index;
    const bool whole = notification->bytes == exchange->block;
    exchange->last_ps = member->node->world->sim->now_ps;
    if (notification->kind == LANT_NOTIFY_SENT) {
        const uint32_t to = notification->tag;
        hear(exchange, exchange->sent, self, to,
             whole && queue == (to % 2 == 0 ? LANT_QUEUE_CPU : LANT_QUEUE_FPGA));
        member->ended++;
        if (!sim_event_scheduled(&member->wake)) {
            sim_after(member->node->world->sim, &member->wake, 0);
        }
        return;
    }
    const uint32_t from = notification->node;
    hear(exchange, exchange->came, self, from,
         whole && notification->destination == place_of(exchange, from) &&
             is_told(from, self) == (notification->kind == LANT_NOTIFY_RECV));
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void join(struct exchange *exchange, struct member *member, struct lant_node *node,
                 struct prng *prng)
{
    const uint32_t others = exchange->nodes - 1;
    *member = (struct member){.exchange = exchange, .node = node};
    sim_event_init(&member->wake, on_wake);
    member->place = (uint32_t)prng_below(prng, others);
    do {
        member->stride = 1 + (uint32_t)prng_below(prng, others);
    } while (common_divisor(member->stride, others) != 1);
    node->program = (struct lant_program){.context = member, .on_notification = on_notification};
    for (uint32_t i = 0; i < exchange->pool_bytes / WORD; i++) {
        const uint64_t word = lant_bench_word(node->index, i);
        memcpy(node->memory + WORD * (uint64_t)i, &word, WORD);
    }
    sim_schedule(node->world->sim, &member->wake, 0);
}

static void judge_memory(const struct exchange *exchange, const struct lant_world *world,
                         struct lant_crowd_outcome *outcome)
{
    uint8_t *expected = malloc(exchange->memory_bytes);
    CHECK(expected != NULL);
    for (uint32_t to = 0; to < world->count; to++) {
        const bool takes_part = to < exchange->nodes;
        memset(expected, 0, exchange->memory_bytes);
        for (uint32_t i = 0; takes_part && i < exchange->pool_bytes / WORD; i++) {
            const uint64_t word = lant_bench_word(to, i);
            memcpy(expected + WORD * (uint64_t)i, &word, WORD);
        }
        for (uint32_t from = 0; takes_part && from < exchange->nodes; from++) {
            for (uint32_t at = 0; from != to && at < exchange->block; at += WORD) {
                const uint32_t left = exchange->block - at;
                const uint64_t word = lant_bench_word(from, to + at / WORD);
                memcpy(expected + place_of(exchange, from) + at, &word, left < WORD ? left : WORD);
            }
        }
        lant_crowd_compare(&world->nodes[to], expected, outcome);
    }
    free(expected);
}

static void judge_words(const struct exchange *exchange, struct lant_crowd_outcome *outcome)
{
    outcome->miscounted += exchange->false_words;
    for (uint32_t node = 0; node < exchange->nodes; node++) {
        for (uint32_t peer = 0; peer < exchange->nodes; peer++) {
            const uint64_t at = (uint64_t)node * exchange->nodes + peer;
            outcome->miscounted += lant_crowd_apart(exchange->sent[at], node != peer);
            outcome->miscounted += lant_crowd_apart(exchange->came[at], node != peer);
        }
    }
}

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    CHECK(memory != NULL);
    return memory;
}

struct lant_crowd_outcome lant_crowd_exchange(struct lab_run *run, enum lant_network_kind kind)
{
    struct exchange exchange = {.nodes = lant_whole(run, "crowd"),
                                .block = lant_whole(run, "block")};
    struct lant_crowd_outcome outcome = {0};
    struct prng prng;
    prng_init(&prng, run->seed);
    exchange.spacing = (exchange.block / WORD + 1) * WORD;
    exchange.pool_bytes = WORD * (uint64_t)exchange.nodes + exchange.spacing;
    exchange.memory_bytes = place_of(&exchange, exchange.nodes) + GUARD;
    exchange.members = zeroed(exchange.nodes, sizeof(exchange.members[0]));
    exchange.sent = zeroed(exchange.nodes, exchange.nodes);
    exchange.came = zeroed(exchange.nodes, exchange.nodes);
    struct lant_bench *bench = lant_crowd_open(run, kind, exchange.memory_bytes);
    for (uint32_t i = 0; i < exchange.nodes; i++) {
        join(&exchange, &exchange.members[i], &bench->world.nodes[i], &prng);
    }
    lant_crowd_finish(bench, &outcome);
    outcome.us = (double)exchange.last_ps / 1e6;
    outcome.operations = (uint64_t)exchange.nodes * (exchange.nodes - 1);
    judge_memory(&exchange, &bench->world, &outcome);
    judge_words(&exchange, &outcome);
    lant_crowd_close(bench);
    free(exchange.members);
    free(exchange.sent);
    free(exchange.came);
    return outcome;
}
