/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_world - two initiators and a target on a bad network, in virtual time, for tests.
 *
 * Purpose    Carries packets between shm.h and shm_target.h, and loses, doubles, delays and damages
 *            them; answers for memory, each ID and direction in order; counts how often each store
 *            was done.
 * Inputs     struct world_config; requests of the two programs.
 * Outputs    Memory; the counts; what the initiators say.
 * Ownership  A struct world, which is large: static.
 * Time       A tick a step.
 * Units      Millionths of packets.
 * Limits     For tests; after the headers that cmocka wants.
 * Source     -
 */
#ifndef TRANSPORT_LANT_SHM_WORLD_H
#define TRANSPORT_LANT_SHM_WORLD_H

#include "base/prng.h"
#include "transport/lant/shm.h"
#include "transport/lant/shm_target.h"

#define WORLD_INITIATORS 2u
#define WORLD_TARGET     9u
#define WORLD_GRANULES   64u
#define WORLD_BASE       UINT64_C(0x10000)
#define WORLD_FLIGHTS    512u
#define WORLD_SEQUENCES  8192u

struct world_config {
    struct lant_shm_config shm;
    struct lant_shm_target_config target;
    struct lant_inbound_config inbound;
    uint32_t loses, doubles, damages; /* Millionths. */
    uint64_t delay_min, delay_max;    /* The bounds of a packet's delay, */
    uint64_t memory_max;              /* and the longest time that an access takes. */
};

struct world_flight {
    bool damaged;
    struct lant_packet packet;
};

/* An access of memory. */
struct world_access {
    uint64_t ends; /* LANT_NEVER: free. */
    struct lant_shm_work work;
};

struct world_initiator {
    struct lant_shm shm;
    struct lant_errors errors;
    bool sending; /* `footer` is being built. */
    struct lant_footer footer;
    uint32_t times[WORLD_SEQUENCES]; /* How often the store of this sequence was done. */
    bool stores[WORLD_SEQUENCES];    /* It is one, not exclusive, and was sent. */
};

struct world {
    struct world_config config;
    struct prng prng;
    uint64_t now;
    struct world_initiator initiators[WORLD_INITIATORS];
    struct lant_shm_target target;
    struct lant_inbound inbound;
    struct lant_ranges ranges;
    uint64_t recent[1 << 16];
    uint64_t memory[WORLD_GRANULES];
    struct lant_packet input[WORLD_FLIGHTS]; /* The target's, in order: the first may be held. */
    uint32_t input_first, input_count;
    struct world_access accesses[256];
    uint64_t last_end[LANT_INBOUND_ENTRIES_MAX][2]; /* By local ID and direction. */
    uint64_t arrives[WORLD_FLIGHTS];                /* LANT_NEVER: this flight is none. */
    struct world_flight flights[WORLD_FLIGHTS];
    uint64_t lost, doubled, damaged;
};

static inline void world_init(struct world *world, const struct world_config *config, uint64_t seed)
{
    *world = (struct world){.config = *config};
    prng_init(&world->prng, seed);
    for (uint32_t i = 0; i < WORLD_INITIATORS; i++) {
        struct lant_shm_config shm = config->shm;
        const struct lant_errors_config errors = {.node = 1 + i, .in_charge = 1 + i};
        shm.node = 1 + i;
        lant_shm_init(&world->initiators[i].shm, &shm);
        lant_errors_init(&world->initiators[i].errors, &errors);
    }
    CHECK(lant_shm_recent_bytes(config->target.recent) <= sizeof(world->recent));
    lant_shm_target_init(&world->target, &config->target, world->recent);
    lant_inbound_init(&world->inbound, &config->inbound);
    world->ranges = (struct lant_ranges){.count = 1,
                                         .ranges = {{.base = WORLD_BASE,
                                                     .bytes = 8 * WORLD_GRANULES,
                                                     .may_read = true,
                                                     .may_write = true}}};
    for (uint32_t i = 0; i < WORLD_FLIGHTS; i++) {
        world->arrives[i] = LANT_NEVER;
    }
    for (uint32_t i = 0; i < COUNT_OF(world->accesses); i++) {
        world->accesses[i].ends = LANT_NEVER;
    }
}

/* -- The network --------------------------------------------------------------------------------*/

static inline void world_fly(struct world *world, const struct lant_packet *packet)
{
    const struct world_config *config = &world->config;
    uint32_t i = 0;
    while (world->arrives[i] != LANT_NEVER) {
        i++;
        CHECK(i < WORLD_FLIGHTS);
    }
    world->flights[i].damaged = prng_chance(&world->prng, config->damages);
    world->damaged += world->flights[i].damaged;
    world->flights[i].packet = *packet;
    world->arrives[i] = world->now + config->delay_min +
                        prng_below(&world->prng, config->delay_max - config->delay_min + 1);
}

static inline void world_send(struct world *world, const struct lant_packet *packet)
{
    if (prng_chance(&world->prng, world->config.loses)) {
        world->lost++;
        return;
    }
    world_fly(world, packet);
    if (prng_chance(&world->prng, world->config.doubles)) {
        world->doubled++;
        world_fly(world, packet);
    }
}

/* Half of the damaged packets can be answered with a NACK: their footer is good. Damaged answers
 * get none. */
static inline void world_arrive_damaged(struct world *world, const struct lant_packet *packet)
{
    if (packet->header.destination == WORLD_TARGET && prng_chance(&world->prng, 500000)) {
        struct lant_packet answer;
        lant_shm_refuse(WORLD_TARGET, packet, LANT_NACK_CRC, &answer);
        world_send(world, &answer);
    }
}

static inline void world_arrive(struct world *world, const struct lant_packet *packet)
{
    if (packet->header.type == LANT_AR || packet->header.type == LANT_AW) {
        const uint32_t place = (world->input_first + world->input_count) % WORLD_FLIGHTS;
        CHECK(world->input_count < WORLD_FLIGHTS);
        world->input[place] = *packet;
        world->input_count++;
        return;
    }
    struct world_initiator *initiator = &world->initiators[packet->header.destination - 1];
    (void)lant_shm_on_answer(&initiator->shm, &initiator->errors, packet, world->now);
}

static inline void world_step_network(struct world *world)
{
    for (uint32_t i = 0; i < WORLD_FLIGHTS; i++) {
        struct world_flight *flight = &world->flights[i];
        if (world->arrives[i] > world->now) {
            continue;
        }
        const struct lant_packet packet = flight->packet;
        world->arrives[i] = LANT_NEVER;
        if (flight->damaged) {
            world_arrive_damaged(world, &packet);
        } else {
            world_arrive(world, &packet);
        }
    }
}

/* -- The target ---------------------------------------------------------------------------------*/

static inline void world_begin_access(struct world *world, const struct lant_shm_work *work)
{
    uint64_t *last = &world->last_end[work->local_id][work->action == LANT_SHM_WRITE];
    const uint64_t ends = world->now + 1 + prng_below(&world->prng, world->config.memory_max);
    uint32_t i = 0;
    while (world->accesses[i].ends != LANT_NEVER) {
        i++;
        CHECK(i < COUNT_OF(world->accesses));
    }
    /* Later than the one before it with the same ID and direction. */
    *last = ends > *last ? ends : *last + 1;
    world->accesses[i] = (struct world_access){.ends = *last, .work = *work};
}

static inline void world_end_access(struct world *world, const struct lant_shm_work *work)
{
    const bool write = work->action == LANT_SHM_WRITE;
    uint64_t *word = &world->memory[(work->address - WORLD_BASE) / 8];
    struct lant_inbound_record record;
    struct lant_packet answer;
    CHECK(lant_inbound_on_memory(&world->inbound, write ? LANT_WRITES : LANT_READS, work->local_id,
                                 LANT_OKAY, &record));
    if (write) {
        world->initiators[record.footer.source - 1].times[lant_sequence_of(&record.footer)]++;
        for (uint32_t i = 0; i < 8; i++) {
            const uint64_t lane = work->strobe >> i & 1 ? UINT64_C(0xff) << 8 * i : 0;
            *word = (*word & ~lane) | (work->data & lane);
        }
    }
    lant_shm_target_on_memory(&world->target, &record, *word, &answer);
    world_send(world, &answer);
}

static inline void world_step_target(struct world *world)
{
    for (uint32_t i = 0; i < COUNT_OF(world->accesses); i++) {
        if (world->accesses[i].ends <= world->now) {
            const struct lant_shm_work work = world->accesses[i].work;
            world->accesses[i].ends = LANT_NEVER;
            world_end_access(world, &work);
        }
    }
    struct lant_shm_work work = {.action = LANT_SHM_DROP};
    while (world->input_count > 0 && work.action != LANT_SHM_HOLD) {
        lant_shm_target_on_request(&world->target, &world->inbound, &world->ranges,
                                   &world->input[world->input_first], world->now, &work);
        if (work.action == LANT_SHM_READ || work.action == LANT_SHM_WRITE) {
            world_begin_access(world, &work);
        } else if (work.action == LANT_SHM_ANSWER) {
            world_send(world, &work.answer);
        }
        if (work.action != LANT_SHM_HOLD) {
            world->input_first = (world->input_first + 1) % WORLD_FLIGHTS;
            world->input_count--;
        }
    }
    lant_shm_target_on_time(&world->target, world->now);
}

/* -- The initiators -----------------------------------------------------------------------------*/

/* A packet takes a tick from its header to its footer. */
static inline void world_step_initiator(struct world *world, struct world_initiator *initiator)
{
    struct lant_packet packet;
    if (initiator->sending) {
        lant_shm_sent(&initiator->shm, &initiator->footer, world->now);
        initiator->sending = false;
    }
    if (lant_shm_deadline(&initiator->shm, world->now) <= world->now) {
        lant_shm_on_time(&initiator->shm, &initiator->errors, world->now);
    }
    if (lant_shm_next_packet(&initiator->shm, &packet)) {
        const uint32_t sequence = lant_sequence_of(&packet.footer);
        CHECK(sequence < WORLD_SEQUENCES);
        initiator->stores[sequence] = packet.header.type == LANT_AW && !packet.header.lock;
        initiator->sending = true;
        initiator->footer = packet.footer;
        world_send(world, &packet);
    }
}

static inline void world_step(struct world *world)
{
    world->now++;
    world_step_network(world);
    world_step_target(world);
    for (uint32_t i = 0; i < WORLD_INITIATORS; i++) {
        world_step_initiator(world, &world->initiators[i]);
    }
}

#endif
