/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/crossbar.h"

#define PLACE_MASK EXANEST_CROSSBAR_LATENCY_MAX

_Static_assert((PLACE_MASK & (PLACE_MASK + 1)) == 0, "places of the registers wrap by a mask");
_Static_assert(EXANEST_PORTS_MAX <= 32, "a mask of ports is a uint32_t");

struct exanest_crossbar_config exanest_crossbar_default(void)
{
    return (struct exanest_crossbar_config){
        .ports = EXANEST_PORTS,
        .latency = EXANEST_CROSSBAR_LATENCY,
        .idle = EXANEST_CROSSBAR_IDLE,
    };
}

void exanest_crossbar_init(struct exanest_crossbar *crossbar,
                           const struct exanest_crossbar_config *config)
{
    CHECK(config->ports >= 1 && config->ports <= EXANEST_PORTS_MAX);
    CHECK(config->latency >= 1 && config->latency <= EXANEST_CROSSBAR_LATENCY_MAX);
    CHECK(config->idle <= EXANEST_CROSSBAR_IDLE_MAX);
    *crossbar = (struct exanest_crossbar){
        .ports = config->ports,
        .latency = config->latency,
        .idle = config->idle,
    };
    for (uint32_t i = 0; i < EXANEST_PORTS_MAX; i++) {
        crossbar->last[i] = EXANEST_PORTS_MAX - 1; /* Input 0 is the first. */
    }
}

static uint32_t bit_of(uint32_t port)
{
    return 1u << port;
}

/* Takes the lowest port out of a mask that is not empty. */
static uint32_t pop(uint32_t *mask)
{
    const uint32_t port = (uint32_t)__builtin_ctz(*mask);
    *mask &= *mask - 1;
    return port;
}

/* Headers that were not shown before come to wait for their output. */
static void note_requests(struct exanest_crossbar *crossbar, uint32_t fresh,
                          const struct exanest_offer offers[])
{
    while (fresh != 0) {
        const uint32_t input = pop(&fresh);
        const uint32_t output = offers[input].output;
        CHECK(offers[input].beat.part == EXANEST_HEADER);
        if (output == EXANEST_NO_PORT) {
            crossbar->engaged |= bit_of(input);
            crossbar->discarding |= bit_of(input);
            continue;
        }
        CHECK(output < crossbar->ports);
        crossbar->output_of[input] = (uint8_t)output;
        crossbar->requests[output] |= bit_of(input);
        crossbar->wanted |= bit_of(output);
        crossbar->waiting |= bit_of(input);
    }
}

/* The first of `requests` behind `last`, cyclically. */
static uint32_t round_robin(uint32_t requests, uint32_t last)
{
    const uint32_t behind = requests & (UINT32_MAX << 1 << last);
    return (uint32_t)__builtin_ctz(behind != 0 ? behind : requests);
}

/* Outputs that are free choose whose packet is next. Returns the inputs. */
static uint32_t grant(struct exanest_crossbar *crossbar, uint32_t free)
{
    uint32_t chosen = 0;
    while (free != 0) {
        const uint32_t output = pop(&free);
        const uint32_t input = round_robin(crossbar->requests[output], crossbar->last[output]);
        crossbar->last[output] = (uint8_t)input;
        crossbar->requests[output] &= ~bit_of(input);
        if (crossbar->requests[output] == 0) {
            crossbar->wanted &= ~bit_of(output);
        }
        crossbar->busy |= bit_of(output);
        chosen |= bit_of(input);
        crossbar->counters.packets++;
    }
    crossbar->waiting &= ~chosen;
    crossbar->engaged |= chosen;
    return chosen;
}

/* The words that one cycle moves, as masks. */
struct moves {
    uint32_t taken;    /* Inputs. */
    uint32_t entering; /* Outputs whose first register gets a word. */
    uint32_t ending;   /* Outputs of `entering` whose word is a packet's last. */
};

static void discard(struct exanest_crossbar *crossbar, struct moves *moves, uint32_t inputs,
                    const struct exanest_offer offers[])
{
    while (inputs != 0) {
        const uint32_t input = pop(&inputs);
        moves->taken |= bit_of(input);
        crossbar->counters.dropped++;
        if (offers[input].beat.last) {
            crossbar->counters.discarded++;
            crossbar->engaged &= ~bit_of(input);
            crossbar->discarding &= ~bit_of(input);
        }
    }
}

static void move_words(struct exanest_crossbar *crossbar, struct moves *moves, uint32_t inputs,
                       uint32_t stalled, const struct exanest_offer offers[])
{
    while (inputs != 0) {
        const uint32_t input = pop(&inputs);
        const uint32_t output = crossbar->output_of[input];
        if ((stalled >> output & 1) != 0) {
            continue;
        }
        const struct exanest_beat *beat = &offers[input].beat;
        crossbar->words[output][crossbar->tails[output]++ & PLACE_MASK] = *beat;
        crossbar->counters.words++;
        moves->taken |= bit_of(input);
        moves->entering |= bit_of(output);
        if (beat->last) {
            moves->ending |= bit_of(output);
            crossbar->engaged &= ~bit_of(input);
        }
    }
}

/* All registers of the outputs that are not stalled move on by one, and so does their rest. */
static void shift(struct exanest_crossbar *crossbar, uint32_t stalled, const struct moves *moves)
{
    for (uint32_t i = crossbar->latency - 1u; i > 0; i--) {
        crossbar->full[i] = (crossbar->full[i] & stalled) | (crossbar->full[i - 1] & ~stalled);
    }
    crossbar->full[0] = (crossbar->full[0] & stalled) | moves->entering;

    if ((crossbar->resting | moves->ending) == 0 || crossbar->idle == 0) {
        return;
    }
    uint32_t resting = 0;
    for (uint32_t i = crossbar->idle - 1u; i > 0; i--) {
        crossbar->rest[i] = (crossbar->rest[i] & stalled) | (crossbar->rest[i - 1] & ~stalled);
        resting |= crossbar->rest[i];
    }
    crossbar->rest[0] = (crossbar->rest[0] & stalled) | moves->ending;
    crossbar->resting = resting | crossbar->rest[0];
}

/* Inputs wait for one output each, and an output is owned by one input. */
static void check_inputs(const struct exanest_crossbar *crossbar)
{
    uint32_t owned = 0, waiting = 0;
    for (uint32_t i = 0; i < EXANEST_PORTS_MAX; i++) {
        const uint32_t output = crossbar->output_of[i];
        if ((crossbar->engaged & ~crossbar->discarding) >> i & 1) {
            CHECK((owned >> output & 1) == 0); /* One packet at a time. */
            owned |= 1u << output;
        }
        if (crossbar->waiting >> i & 1) {
            CHECK(crossbar->requests[output] >> i & 1);
        }
    }
    CHECK(owned == crossbar->busy);
    for (uint32_t o = 0; o < EXANEST_PORTS_MAX; o++) {
        CHECK((waiting & crossbar->requests[o]) == 0);
        CHECK((crossbar->wanted >> o & 1) == (crossbar->requests[o] != 0));
        waiting |= crossbar->requests[o];
    }
    CHECK(waiting == crossbar->waiting && (crossbar->waiting & crossbar->engaged) == 0);
    CHECK((crossbar->discarding & ~crossbar->engaged) == 0);
}

static void exanest_crossbar_check(const struct exanest_crossbar *crossbar)
{
    check_inputs(crossbar);
    uint32_t resting = 0;
    for (uint32_t i = 0; i < crossbar->idle; i++) {
        resting |= crossbar->rest[i];
    }
    CHECK(resting == crossbar->resting && (resting & crossbar->busy) == 0);
    for (uint32_t o = 0; o < EXANEST_PORTS_MAX; o++) {
        uint32_t words = 0;
        for (uint32_t i = 0; i < crossbar->latency; i++) {
            words += crossbar->full[i] >> o & 1;
        }
        CHECK(words == (uint8_t)(crossbar->tails[o] - crossbar->heads[o]));
        CHECK(o < crossbar->ports || words == 0);
    }
}

uint32_t exanest_crossbar_step(struct exanest_crossbar *crossbar, uint32_t offered,
                               const struct exanest_offer offers[], uint32_t ready)
{
    INVARIANTS(exanest_crossbar_check(crossbar));
    CHECK((crossbar->waiting & ~offered) == 0); /* Shown until it is taken. */
    const uint32_t shown = exanest_crossbar_shown(crossbar);
    const uint32_t stalled = shown & ~(uint32_t)ready;
    struct moves moves = {0};

    uint32_t delivered = shown & ready;
    while (delivered != 0) {
        crossbar->heads[pop(&delivered)]++;
    }
    note_requests(crossbar, offered & ~(crossbar->engaged | crossbar->waiting), offers);
    if (crossbar->discarding != 0) {
        discard(crossbar, &moves, offered & crossbar->discarding, offers);
    }
    const uint32_t under_way = offered & crossbar->engaged & ~crossbar->discarding;
    const uint32_t free = crossbar->wanted & ~(crossbar->busy | crossbar->resting | stalled);
    const uint32_t chosen = free != 0 ? grant(crossbar, free) : 0;
    move_words(crossbar, &moves, under_way | chosen, stalled, offers);
    crossbar->busy &= ~moves.ending;
    shift(crossbar, stalled, &moves);
    INVARIANTS(exanest_crossbar_check(crossbar));
    return moves.taken;
}
