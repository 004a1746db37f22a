/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    With any fault in the network, each operation is done once or fails by name, no other
 *         byte is touched, and in the end all tables are empty.
 * Method  Random worlds: a few nodes on some network, tables of random sizes, packets that are
 *         lost, doubled, damaged and late. Programs load, store, lock, transfer, and store flags
 *         behind fences. A model of memory, in which each part has one writer, says what loads must
 *         get, what transfers must have brought, and what all memory holds in the end.
 *         Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/node.h"
#include "sim/faults.h"
#include "tests/scenarios/seeds.h"
#include "tests/world/variety.h"

enum {
    NODES = 6, /* At most. */
    WORD = 8,
    WORDS = 16,
    LOCKS = 2,
    SLOTS = 4,
    SLOT_BYTES = 3584,
    TRANSFER_MOST = 3500,
    ACCESSES = 1024,
    /* A node's memory: for each node that writes to it, words, a flag with its data, and slots of
     * transfers; then locks; then the bytes that it transfers to others. */
    FLAG_DATA_AT = WORDS * WORD + 128,
    FLAG_AT = FLAG_DATA_AT + 8 * WORD + 64,
    SLOTS_AT = 1024,
    REGION = 16384,
    LOCKS_AT = NODES * REGION,
    SOURCES_AT = LOCKS_AT + 256,
    MEMORY_BYTES = SOURCES_AT + NODES * SLOTS * SLOT_BYTES,
    TURN_CYCLES = 400,
    LATE_CYCLES = 8000, /* Less than the network's time, on which lifetimes rest. */
};

enum purpose {
    PLAIN,
    FLAG_DATA,
    FLAG,
    LOCK_LOAD,
    LOCK_STORE,
    ASTRAY, /* To no memory. */
};

struct access {
    bool open;
    enum purpose purpose;
    uint32_t from, to, which;
    struct lant_shm_access access;
    struct lant_shm_gather gather;
    uint8_t expected[64], got[64];
};

enum slot_state {
    IDLE,
    UNDER_WAY,
    RETIRED, /* Copies of its transfer may come at any time. */
};

struct slot {
    enum slot_state state;
    uint32_t bytes, tag;
    uint64_t source, destination; /* Local to their nodes. */
    bool told;                    /* It is not registered. */
    uint8_t heard[16];            /* By segment: how often the target was notified. */
};

/* A writer and a node: the flag says which round's data are there. */
struct litmus {
    bool busy, fenced, retired;
    uint32_t fence;
    uint64_t round;
};

struct lock {
    bool busy[NODES]; /* This node tries. */
    uint64_t done, perhaps;
};

struct model {
    uint8_t memory[MEMORY_BYTES];
    uint8_t unknown[MEMORY_BYTES]; /* A write there has failed. */
};

struct world {
    struct sim sim;
    struct lant_world lant;
    struct sim_faults faults;
    uint64_t seed;
    uint32_t nodes, turns, tags;
    uint32_t dead; /* From `dies_ps` on nothing goes to it or comes from it; UINT32_MAX: nobody. */
    uint64_t dies_ps;
    bool fences, polls;
    bool holds; /* An operation ends when no copy of its packets is on its way. */
    uint32_t segment;
    struct sim_event turn;
    struct access accesses[ACCESSES];
    struct slot slots[NODES][NODES][SLOTS]; /* By sender, target. */
    struct litmus litmus[NODES][NODES];     /* By writer, target. */
    struct lock locks[NODES][LOCKS];
    struct model *models; /* By node. */
    uint64_t submitted, sent, received, failed, accessed, reordered;
};

struct sums {
    struct variety faults;
    uint64_t failed, escaped, table_full, escape_full, duplicates, unregistered, registered, nacks;
    uint64_t conflicts, held, locked, repeated, gave_way, reordered, accesses_failed, dead, reports;
};

static void complain(const struct world *world, const char *what)
{
    fail_msg("seed %llu at %.0f cycles: %s", (unsigned long long)world->seed,
             (double)world->sim.now_ps / LANT_CYCLE_PS, what);
}

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->sim.prng, bound);
}

static bool chance(struct world *world, uint32_t percent)
{
    return below(world, 100) < percent;
}

static uint64_t region(uint32_t writer)
{
    return (uint64_t)writer * REGION;
}

/* -- The network --------------------------------------------------------------------------------*/

static struct world *world_of(struct lant_world *lant)
{
    return CONTAINER_OF(lant, struct world, lant);
}

static bool is_cut(const struct world *world, uint32_t node)
{
    return node == world->dead && world->sim.now_ps >= world->dies_ps;
}

static void on_late(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_frame *frame = CONTAINER_OF(event, struct lant_frame, event);
    lant_node_on_frame(frame->fabric->nodes, frame->vertex, frame);
}

static void later(struct world *world, struct lant_frame *frame, uint32_t cycles)
{
    sim_event_init(&frame->event, on_late);
    sim_after(&world->sim, &frame->event, lant_cycles(1 + below(world, cycles)));
}

static void damage(struct world *world, struct lant_frame *frame)
{
    const uint32_t at =
        below(world, 2) == 0 ? below(world, frame->count) : frame->count - 1 - below(world, 4);
    for (uint32_t bits = 1 + below(world, 3); bits > 0; bits--) {
        frame->flits[at] ^= UINT64_C(1) << below(world, 64);
    }
}

/* In place of the node's own: a packet has come, and this becomes of it. */
static void on_frame(void *nodes, uint32_t index, struct lant_frame *frame)
{
    struct world *world = world_of(nodes);
    struct prng *prng = &world->sim.prng;
    struct lant_header head;
    const bool known = lant_head_decode(frame->flits[0], &head) != LANT_DAMAGED;
    const uint32_t source = (uint32_t)(frame->flits[frame->count - 2] >> 42);
    if (is_cut(world, index) || is_cut(world, source) ||
        (known && is_cut(world, head.destination)) ||
        sim_fault_strikes(&world->faults, SIM_FAULT_drop, prng)) {
        lant_fabric_free(frame->fabric, frame);
        return;
    }
    if (sim_fault_strikes(&world->faults, SIM_FAULT_duplicate, prng)) {
        struct lant_frame *copy = lant_fabric_frame(frame->fabric);
        assert_non_null(copy);
        copy->count = frame->count;
        copy->vertex = frame->vertex;
        memcpy(copy->flits, frame->flits, frame->count * sizeof(frame->flits[0]));
        later(world, copy, LATE_CYCLES);
    }
    if (sim_fault_strikes(&world->faults, SIM_FAULT_damage, prng)) {
        damage(world, frame);
    }
    if (sim_fault_strikes(&world->faults, SIM_FAULT_late, prng)) {
        later(world, frame, LATE_CYCLES);
    } else if (sim_fault_strikes(&world->faults, SIM_FAULT_reorder, prng)) {
        later(world, frame, 300);
    } else {
        lant_node_on_frame(nodes, index, frame);
    }
}

/* -- Loads, stores, flags, locks ----------------------------------------------------------------*/

static void forget(struct world *world, uint32_t to, uint64_t at, uint32_t bytes)
{
    memset(world->models[to].unknown + at, 1, bytes);
}

static bool is_known(const struct world *world, uint32_t to, uint64_t at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (world->models[to].unknown[at + i]) {
            return false;
        }
    }
    return true;
}

/* NULL: the interface has no room, or the test. */
static struct access *begin_access(struct world *world, enum purpose purpose, uint32_t from,
                                   uint32_t to, uint64_t at, uint32_t bytes, const uint8_t *data)
{
    static const bool locks[] = {[LOCK_LOAD] = true, [LOCK_STORE] = true};
    uint32_t token = 0;
    while (token < ACCESSES && world->accesses[token].open) {
        token++;
    }
    if (token == ACCESSES) {
        return NULL;
    }
    struct access *access = &world->accesses[token];
    *access = (struct access){.open = true, .purpose = purpose, .from = from, .to = to};
    access->access = (struct lant_shm_access){.address = lant_global(to, at),
                                              .bytes = bytes,
                                              .token = token,
                                              .bus_id = (uint8_t)(purpose * 4 + below(world, 2)),
                                              .store = data != NULL,
                                              .lock = purpose < COUNT_OF(locks) && locks[purpose]};
    if (access->access.lock) {
        access->access.bus_id = (uint8_t)from; /* The store's must be the load's. */
    }
    access->gather = lant_shm_gather_begin(&access->access);
    access->access.accelerator = chance(world, 20);
    access->access.timeout = chance(world, 20) ? lant_cycles(500 + below(world, 9500)) : 0;
    if (data == NULL && purpose != ASTRAY) {
        memcpy(access->expected, world->models[to].memory + at, bytes);
    }
    if (!lant_node_access(&world->lant.nodes[from], &access->access, data)) {
        access->open = false;
        return NULL;
    }
    world->accessed++;
    return access;
}

static void plain_access(struct world *world, uint32_t from, uint32_t to)
{
    const uint32_t size = 1u << below(world, 7);
    const uint32_t at = below(world, WORDS * WORD / size) * size;
    const uint64_t address = region(from) + at;
    uint8_t data[64];
    for (uint32_t i = 0; i < size; i++) {
        data[i] = (uint8_t)prng_next(&world->sim.prng);
    }
    const bool store = chance(world, 60);
    if (begin_access(world, PLAIN, from, to, address, size, store ? data : NULL) != NULL && store) {
        memcpy(world->models[to].memory + address, data, size);
    }
}

/* Nobody offers this memory: it is refused by name. */
static void stray_access(struct world *world, uint32_t from, uint32_t to)
{
    const uint8_t data[WORD] = {1};
    const uint64_t at = MEMORY_BYTES + WORD * (uint64_t)below(world, 1000);
    (void)begin_access(world, ASTRAY, from, to, at, WORD, chance(world, 50) ? data : NULL);
}

static void store_round(struct world *world, enum purpose purpose, uint32_t from, uint32_t to)
{
    struct litmus *litmus = &world->litmus[from][to];
    const uint32_t bytes = purpose == FLAG ? WORD : 8 * WORD;
    const uint64_t at = region(from) + (purpose == FLAG ? FLAG_AT : FLAG_DATA_AT);
    uint8_t data[8 * WORD];
    for (uint32_t i = 0; i < 8; i++) {
        memcpy(data + (size_t)WORD * i, &litmus->round, WORD);
    }
    if (begin_access(world, purpose, from, to, at, bytes, data) == NULL) {
        /* No room: with data it is as if nothing had been; a round without a flag ends here. */
        litmus->busy = false;
        litmus->round -= purpose == FLAG_DATA;
        return;
    }
    memcpy(world->models[to].memory + at, data, bytes);
}

static void begin_round(struct world *world, uint32_t from, uint32_t to)
{
    struct litmus *litmus = &world->litmus[from][to];
    if (litmus->busy || litmus->retired) {
        return;
    }
    litmus->busy = true;
    litmus->round++;
    store_round(world, FLAG_DATA, from, to);
    if (litmus->busy && !world->fences) {
        store_round(world, FLAG, from, to);
    }
}

static void look_at_fence(struct world *world, uint32_t from, uint32_t to)
{
    struct litmus *litmus = &world->litmus[from][to];
    struct lant_shm *shm = &world->lant.nodes[from].shm;
    if (!litmus->fenced) {
        return;
    }
    switch (lant_shm_fence_look(shm, litmus->fence)) {
    case LANT_SHM_FENCE_WAITS: return;
    case LANT_SHM_FENCE_FAILED: litmus->retired = true; break;
    case LANT_SHM_FENCE_PASSED: break;
    }
    lant_shm_fence_end(shm, litmus->fence);
    litmus->fenced = false;
    if (litmus->retired) {
        litmus->busy = false;
    } else {
        store_round(world, FLAG, from, to);
    }
}

/* LNI-88, and LNI-34: who sees the flag sees the data. */
static void look_at_flags(struct world *world)
{
    for (uint32_t from = 0; from < world->nodes; from++) {
        for (uint32_t to = 0; to < world->nodes; to++) {
            uint64_t flag, word;
            const uint8_t *memory = world->lant.nodes[to].memory + region(from);
            if (world->litmus[from][to].round == 0) {
                continue;
            }
            memcpy(&flag, memory + FLAG_AT, WORD);
            for (uint32_t i = 0; i < 8; i++) {
                memcpy(&word, memory + FLAG_DATA_AT + (size_t)WORD * i, WORD);
                world->reordered += word < flag;
                if (word < flag && world->fences) {
                    complain(world, "a flag without its data");
                }
            }
        }
    }
}

static void begin_lock(struct world *world, uint32_t from, uint32_t to)
{
    const uint32_t which = below(world, LOCKS);
    const uint64_t at = LOCKS_AT + WORD * which;
    if (!world->locks[to][which].busy[from]) {
        struct access *access = begin_access(world, LOCK_LOAD, from, to, at, WORD, NULL);
        if (access != NULL) {
            access->which = which;
            world->locks[to][which].busy[from] = true;
        }
    }
}

static void lock_ends(struct world *world, const struct access *access)
{
    struct lock *lock = &world->locks[access->to][access->which];
    lock->busy[access->from] = false;
    if (access->purpose == LOCK_STORE) {
        lock->done += access->gather.response == LANT_EXOKAY;
        lock->perhaps +=
            access->gather.response != LANT_EXOKAY && access->gather.response != LANT_LOCKED;
        return;
    }
    if (access->gather.response != LANT_EXOKAY) {
        return;
    }
    uint64_t value;
    uint8_t data[WORD];
    memcpy(&value, access->got, WORD);
    value++;
    memcpy(data, &value, WORD);
    struct access *store = begin_access(world, LOCK_STORE, access->from, access->to,
                                        lant_global_address(access->access.address), WORD, data);
    if (store != NULL) {
        store->which = access->which;
        lock->busy[access->from] = true;
    }
}

/* The initiator has its answer on the bus. */
static void access_answered(struct world *world, struct access *access)
{
    const uint64_t at = lant_global_address(access->access.address);
    const uint32_t bytes = access->access.bytes;
    struct litmus *litmus = &world->litmus[access->from][access->to];
    const bool good = access->gather.response == LANT_OKAY && !access->gather.fake;
    if (access->purpose == PLAIN && !access->access.store && good &&
        is_known(world, access->to, at, bytes) &&
        memcmp(access->got, access->expected, bytes) != 0) {
        complain(world, "a load got what was not stored");
    }
    if (access->purpose == FLAG_DATA && world->fences) {
        litmus->fence = lant_shm_fence_begin(&world->lant.nodes[access->from].shm, access->to);
        assert_int_not_equal(litmus->fence, LANT_SHM_NO_FENCES);
        litmus->fenced = true;
    }
}

/* Nothing more comes for it. */
static void access_ended(struct world *world, struct access *access)
{
    const bool good =
        !access->gather.fake && !access->gather.denied &&
        (access->gather.response == LANT_OKAY || access->gather.response == LANT_EXOKAY);
    struct litmus *litmus = &world->litmus[access->from][access->to];
    struct access ended = *access;
    if (ended.purpose == ASTRAY && good) {
        complain(world, "what nobody offers was there");
    }
    access->open = false;
    litmus->retired |= !good && (ended.purpose == FLAG_DATA || ended.purpose == FLAG);
    if (ended.purpose == FLAG) {
        litmus->busy = false;
    }
    if (ended.access.lock) {
        lock_ends(world, &ended);
    }
    world->failed += !good && ended.gather.response != LANT_LOCKED;
}

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct world *world = world_of(((struct lant_node *)context)->world);
    struct access *access = &world->accesses[done->token];
    if (done->token >= ACCESSES || !access->open ||
        access->from != ((struct lant_node *)context)->index) {
        complain(world, "an answer to nothing");
    }
    const bool on_bus = lant_shm_done_on_bus(done);
    if (done->store && !done->lock && access->purpose != ASTRAY && done->response != LANT_OKAY) {
        forget(world, access->to, lant_global_address(done->address) / WORD * WORD, WORD);
    }
    lant_shm_gather_add(&access->gather, &access->access, done,
                        access->access.store ? NULL : access->got);
    if (on_bus && access->gather.unanswered == 0) {
        access_answered(world, access);
    }
    if (access->gather.unfinished == 0) {
        access_ended(world, access);
    }
}

/* -- Transfers ----------------------------------------------------------------------------------*/

static uint64_t source_at(uint32_t to, uint32_t slot)
{
    return SOURCES_AT + (uint64_t)(to * SLOTS + slot) * SLOT_BYTES;
}

static void fill_source(struct world *world, uint32_t node, uint64_t at)
{
    uint8_t *memory = world->lant.nodes[node].memory + at;
    for (uint32_t i = 0; i < SLOT_BYTES; i += WORD) {
        const uint64_t word = prng_next(&world->sim.prng);
        memcpy(memory + i, &word, WORD);
    }
    memcpy(world->models[node].memory + at, memory, SLOT_BYTES);
}

static void begin_transfer(struct world *world, uint32_t from, uint32_t to, uint32_t which)
{
    struct slot *slot = &world->slots[from][to][which];
    if (slot->state != IDLE) {
        return;
    }
    const uint32_t most = chance(world, 50) ? 600 : TRANSFER_MOST;
    *slot = (struct slot){.bytes = 1 + below(world, most),
                          .tag = from << 16 | to << 8 | which,
                          .source = source_at(to, which) + WORD * below(world, 8),
                          .destination = region(from) + SLOTS_AT + (uint64_t)which * SLOT_BYTES +
                                         WORD * below(world, 8)};
    const struct lant_work work = {
        .descriptor = {.source = slot->source,
                       .destination = lant_global(to, slot->destination),
                       .bytes = slot->bytes,
                       .priority = (uint8_t)below(world, LANT_PRIORITIES),
                       .no_register = chance(world, 30)},
        .tag = slot->tag,
        .timeout = chance(world, 20) ? lant_cycles(500 + below(world, 9500)) : 0};
    const enum lant_submit verdict =
        lant_node_submit(&world->lant.nodes[from], (enum lant_queue)(which % 2), &work);
    assert_true(verdict == LANT_SUBMIT_COMMITTED || verdict == LANT_SUBMIT_FULL);
    if (verdict == LANT_SUBMIT_COMMITTED) {
        slot->state = UNDER_WAY;
        world->submitted++;
    }
}

static uint32_t segment_of(const struct world *world, const struct slot *slot)
{
    return world->segment == 0 || slot->bytes <= world->segment ? slot->bytes : world->segment;
}

/* Something of a transfer has come: all of it, or a segment. */
static void hear_of_arrival(struct world *world, uint32_t node,
                            const struct lant_notification *notification)
{
    const uint32_t from = notification->node;
    const uint64_t at = notification->destination - region(from);
    if (from >= world->nodes || notification->destination < region(from) + SLOTS_AT ||
        at >= SLOTS_AT + SLOTS * SLOT_BYTES) {
        complain(world, "a notification of nothing");
    }
    struct slot *slot = &world->slots[from][node][(at - SLOTS_AT) / SLOT_BYTES];
    const uint32_t segment = slot->bytes == 0 ? 1 : segment_of(world, slot);
    const uint64_t behind = notification->destination - slot->destination;
    const uint64_t left = slot->bytes - behind;
    if (slot->state == IDLE || notification->destination < slot->destination ||
        behind % segment != 0 || behind >= slot->bytes ||
        notification->bytes != (left < segment ? left : segment)) {
        complain(world, "a notification of what is not under way");
    }
    if (slot->heard[behind / segment]++ != 0) {
        complain(world, "an arrival was notified twice");
    }
    if (slot->state == UNDER_WAY &&
        memcmp(world->lant.nodes[node].memory + notification->destination,
               world->lant.nodes[from].memory + slot->source + behind, notification->bytes) != 0) {
        complain(world, "a notification came before its bytes");
    }
    slot->told |= notification->kind == LANT_NOTIFY_RECV;
    world->received++;
}

/* The sender is told of the end: then it writes over the bytes that it has sent (LNI-51). */
static void hear_of_end(struct world *world, uint32_t node, enum lant_queue queue,
                        const struct lant_notification *notification)
{
    const uint32_t to = notification->tag >> 8 & 0xff, which = notification->tag & 0xff;
    if (notification->tag >> 16 != node || to >= world->nodes || which >= SLOTS ||
        world->slots[node][to][which].state != UNDER_WAY || queue != which % 2 ||
        notification->bytes != world->slots[node][to][which].bytes) {
        complain(world, "an end was notified of nothing");
    }
    struct slot *slot = &world->slots[node][to][which];
    const uint32_t errors = notification->status & LANT_STATUS_ERRORS;
    world->sent++;
    if (errors != 0) {
        world->failed++;
        slot->state = RETIRED;
        forget(world, to, slot->destination, slot->bytes);
        return;
    }
    const uint32_t segment = segment_of(world, slot);
    for (uint32_t i = 0; i * segment < slot->bytes; i++) {
        if (slot->heard[i] != 1) {
            complain(world, "the target was not notified of what the sender was");
        }
    }
    memcpy(world->models[to].memory + slot->destination,
           world->lant.nodes[node].memory + slot->source, slot->bytes);
    fill_source(world, node, source_at(to, which));
    /* A sender waits for the copies that it has sent itself, not for those that the network makes;
     * receivers know these of registered operations only. */
    const bool doubled = slot->told && world->faults.millionths[SIM_FAULT_duplicate] > 0;
    slot->state = world->holds && !doubled ? IDLE : RETIRED;
    if (world->turns > 0 && chance(world, 50)) {
        begin_transfer(world, node, to, which);
    }
}

static void hear(struct world *world, uint32_t node, enum lant_queue queue,
                 const struct lant_notification *notification)
{
    if (notification->kind == LANT_NOTIFY_SENT) {
        hear_of_end(world, node, queue, notification);
    } else {
        hear_of_arrival(world, node, notification);
    }
}

static void on_notification(void *context, enum lant_queue queue,
                            const struct lant_notification *notification)
{
    struct lant_node *node = context;
    hear(world_of(node->world), node->index, queue, notification);
}

/* Programs without calls look into their queues: all of them until there is nothing, and hear of
 * arrivals first. */
static void poll_all(struct world *world)
{
    enum {
        MOST = 4096
    };
    static struct {
        uint32_t node;
        enum lant_queue queue;
        struct lant_notification what;
    } found[MOST];
    uint32_t count = 0;
    for (bool some = true; some;) {
        some = false;
        for (uint32_t i = 0; i < 2 * world->nodes; i++) {
            assert_true(count < MOST);
            found[count].node = i / 2;
            found[count].queue = (enum lant_queue)(i % 2);
            if (lant_node_poll(&world->lant.nodes[i / 2], found[count].queue, &found[count].what)) {
                count++;
                some = true;
            }
        }
    }
    for (uint32_t k = 0; k < 2 * count; k++) {
        const bool end = found[k % count].what.kind == LANT_NOTIFY_SENT;
        if (end == (k >= count)) {
            hear(world, found[k % count].node, found[k % count].queue, &found[k % count].what);
        }
    }
}

static void look_at_fences(struct world *world)
{
    for (uint32_t i = 0; i < world->nodes * world->nodes; i++) {
        look_at_fence(world, i / world->nodes, i % world->nodes);
    }
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static void on_turn(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(event, struct world, turn);
    look_at_fences(world);
    if (world->polls && chance(world, 20)) {
        poll_all(world);
    }
    for (uint32_t i = below(world, 4); i > 0 && world->turns > 0; i--) {
        const uint32_t from = below(world, world->nodes), to = below(world, world->nodes);
        switch (below(world, 8)) {
        case 0:
        case 1:
        case 2: plain_access(world, from, to); break;
        case 3: begin_round(world, from, to); break;
        case 4:
            if (chance(world, 90)) {
                begin_lock(world, from, to);
            } else {
                stray_access(world, from, to);
            }
            break;
        default: begin_transfer(world, from, to, below(world, SLOTS)); break;
        }
    }
    world->turns -= world->turns > 0;
    if (world->turns > 0) {
        sim_after(sim, event, lant_cycles(1 + below(world, TURN_CYCLES)));
    }
}

static struct lant_node_config config_by_chance(struct world *world)
{
    struct lant_node_config config = lant_node_default();
    const bool small = chance(world, 50);
    world->holds = chance(world, 70);
    config.memory_bytes = MEMORY_BYTES;
    config.shm.retries = config.rdma.retries = (uint8_t)(chance(world, 70) ? 7 : below(world, 8));
    config.rdma.mpl_hold = world->holds;
    config.rdma.serial_retransmission = chance(world, 30);
    config.early_timers = chance(world, 30) ? 0 : 1 + below(world, 16);
    config.shm.early_timers = (uint16_t)(chance(world, 30) ? 0 : 1 + below(world, 16));
    config.rdma_target.mask_bits = config.rdma.registers.mask_bits =
        (uint16_t)(chance(world, 30) ? 4 : 128);
    config.rdma.registers.off = chance(world, 10);
    config.rdma.work.segment_bytes =
        chance(world, 50) ? LANT_PAYLOAD_BYTES_MAX * (1 + below(world, 4)) : LANT_SEGMENT_BYTES;
    config.rdma.work.large_after = below(world, 4);
    config.rdma.work.priorities = chance(world, 30);
    config.in_charge = below(world, 2);
    if (chance(world, 10)) { /* Identifiers and sequences come round (LNI-93). */
        config.rdma.generations = 2u << below(world, 3);
        config.shm.sequences = 64u << below(world, 3);
    }
    config.shm.first_sequence = below(world, config.shm.sequences);
    config.burst_window = 1 + below(world, 5);
    config.costs.memory = chance(world, 30) ? below(world, 300) : 0;
    config.costs.cut_through = chance(world, 20);
    if (small) {
        config.shm.rows = (uint16_t)(1 + below(world, 8));
        config.shm.pending = (uint16_t)(1 + below(world, 8));
        config.rdma.rows = (uint16_t)(1 + below(world, 8));
        config.rdma.operations = (uint16_t)(1 + below(world, 8));
        config.rdma.partials = (uint16_t)(config.rdma.rows + below(world, 4));
        config.rdma.work.capacity = (uint16_t)(1 + below(world, 8));
        config.rdma.work.parents = (uint16_t)(1 + below(world, 2));
        config.rdma_target.entries = (uint16_t)(1 + below(world, 4));
        config.rdma_target.escapes = (uint16_t)(1 + below(world, 4));
        config.inbound.entries = (uint16_t)(1 + below(world, 3));
        config.inbound.records = (uint16_t)(config.inbound.entries + below(world, 4));
        config.notifications = 1 + below(world, 4);
    }
    world->segment = config.rdma.work.segment_bytes;
    return config;
}

static struct lant_fabric_config fabric_by_chance(struct world *world)
{
    static const char *const topologies[] = {"all-to-all:2", "all-to-all:5",    "star:4",
                                             "torus:3x2",    "torus:2x2x2",     "torus:4x4",
                                             "fat-tree:4",   "dragonfly:2,2,1", "dragonfly:1,2,1"};
    const struct lant_line line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24};
    struct lant_fabric_config fabric = {
        .node_line = line, .switch_line = line, .switch_cycles = 18, .packets = 8192};
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "%s",
                   topologies[below(world, COUNT_OF(topologies))]);
    fabric.one_way = chance(world, 20);
    fabric.bit_errors = chance(world, 50) ? 0 : chance(world, 50) ? 1e-6 : 1e-5;
    return fabric;
}

static void faults_by_chance(struct world *world)
{
    uint32_t *millionths = world->faults.millionths;
    const uint32_t most = chance(world, 20) ? 0 : chance(world, 70) ? 10000 : 60000;
    millionths[SIM_FAULT_drop] = below(world, most + 1);
    millionths[SIM_FAULT_duplicate] = chance(world, 50) ? 0 : below(world, most + 1);
    millionths[SIM_FAULT_damage] = below(world, most + 1);
    millionths[SIM_FAULT_late] = below(world, most + 1);
    millionths[SIM_FAULT_reorder] = below(world, 4 * most + 1);
    world->dead = UINT32_MAX;
    if (chance(world, 12)) {
        world->dead = below(world, world->nodes);
        world->dies_ps = lant_cycles(below(world, 30000));
    }
}

static struct world *open_world(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    char error[TOPOLOGY_ERROR_BYTES];
    assert_non_null(world);
    world->seed = seed;
    sim_init(&world->sim, seed);
    const struct lant_node_config config = config_by_chance(world);
    const struct lant_fabric_config fabric = fabric_by_chance(world);
    assert_true(
        lant_world_open(&world->lant, &config, &fabric, &world->sim, seed, error, sizeof(error)));
    world->lant.fabric.sink = on_frame;
    world->nodes = world->lant.count < NODES ? world->lant.count : NODES;
    world->fences = chance(world, 75);
    world->polls = chance(world, 30);
    world->turns = chance(world, 90) ? 60 + below(world, 120) : 800;
    faults_by_chance(world);
    world->models = calloc(world->lant.count, sizeof(world->models[0]));
    assert_non_null(world->models);
    for (uint32_t i = 0; i < world->lant.count; i++) {
        struct lant_node *node = &world->lant.nodes[i];
        node->program =
            (struct lant_program){.context = node,
                                  .on_done = on_done,
                                  .on_notification = world->polls ? NULL : on_notification};
        for (uint32_t k = 0; k < NODES * SLOTS; k++) {
            fill_source(world, i, source_at(k / SLOTS, k % SLOTS));
        }
    }
    sim_event_init(&world->turn, on_turn);
    sim_schedule(&world->sim, &world->turn, 0);
    return world;
}

static void judge_memory(struct world *world)
{
    for (uint32_t to = 0; to < world->nodes; to++) {
        for (uint32_t which = 0; which < LOCKS; which++) {
            const struct lock *lock = &world->locks[to][which];
            uint8_t *memory = world->lant.nodes[to].memory + LOCKS_AT + (size_t)WORD * which;
            uint64_t value;
            memcpy(&value, memory, WORD);
            if (value < lock->done || value > lock->done + lock->perhaps) {
                complain(world, "exclusive stores were not done once");
            }
            memcpy(world->models[to].memory + LOCKS_AT + (size_t)WORD * which, memory, WORD);
        }
    }
    for (uint32_t node = 0; node < world->lant.count; node++) {
        for (uint32_t i = 0; i < MEMORY_BYTES; i++) {
            if (!world->models[node].unknown[i] &&
                world->lant.nodes[node].memory[i] != world->models[node].memory[i]) {
                printf("node %u, byte %u\n", node, i);
                complain(world, "memory is not as the model says");
            }
        }
    }
}

/* LNI-54: of nobody anything is kept. */
static void judge_tables(struct world *world)
{
    if (!lant_world_idle(&world->lant)) {
        complain(world, "the world stands still, and something is not done");
    }
    for (uint32_t i = 0; i < world->lant.count; i++) {
        const struct lant_node *node = &world->lant.nodes[i];
        uint32_t locks = 0;
        for (uint32_t k = 0; k < LANT_EXCLUSIVES_MAX; k++) {
            locks += node->shm_target.exclusive.locks[k].valid;
        }
        if (!lant_rdma_target_idle(&node->rdma_target) || locks != 0 ||
            node->shm_target.recent.count != 0 || node->shm.fenced != 0) {
            printf("node %u: %u rows, %u escaped, %u tombstones, %u arrivals, %u locks, %u recent, "
                   "fences %llx\n",
                   i, node->rdma_target.registrations.used, node->rdma_target.escape.used,
                   node->rdma_target.tombstones.count, node->rdma_target.arrivals_count, locks,
                   node->shm_target.recent.count, (unsigned long long)node->shm.fenced);
            complain(world, "a node keeps something");
        }
    }
    for (uint32_t i = 0; i < ACCESSES; i++) {
        if (world->accesses[i].open) {
            complain(world, "an access never ended");
        }
    }
    if (world->sent != world->submitted) {
        complain(world, "a transfer never ended");
    }
}

static void add(struct sums *sums, const struct world *world)
{
    variety_add(&sums->faults, &world->faults);
    sums->failed += world->failed;
    sums->reordered += world->reordered;
    sums->dead += world->dead != UINT32_MAX;
    for (uint32_t i = 0; i < world->lant.count; i++) {
        const struct lant_node *node = &world->lant.nodes[i];
        const uint64_t *verdicts = node->rdma_target.counters.verdicts;
        sums->escaped += verdicts[LANT_RDMA_TARGET_ESCAPED];
        sums->escape_full += verdicts[LANT_RDMA_TARGET_ESCAPE_FULL];
        sums->table_full += verdicts[LANT_RDMA_TARGET_TABLE_FULL];
        sums->duplicates += verdicts[LANT_RDMA_TARGET_DUPLICATE];
        sums->registered += node->rdma.counters.registered;
        sums->unregistered += node->rdma.counters.told;
        sums->nacks += node->counters.verdicts[LANT_CRC_WRONG];
        sums->conflicts += node->shm.counters.conflicts;
        sums->accesses_failed += node->shm.counters.failed;
        sums->held += node->shm_target.counters.held;
        sums->locked += node->shm_target.counters.locked;
        sums->repeated += node->shm_target.counters.repeated;
        sums->reports += node->counters.reports;
        sums->gave_way += node->rdma.counters.gave_way;
    }
}

static uint64_t run(uint64_t seed, struct sums *sums)
{
    struct world *world = open_world(seed);
    uint32_t steps = 0;
    for (bool more = true; more;) {
        while (sim_step(&world->sim)) {
            look_at_flags(world);
            if (++steps > 5000000) {
                complain(world, "no end");
            }
        }
        const uint64_t before = world->sent + world->received + world->accessed;
        look_at_fences(world);
        if (world->polls) {
            poll_all(world);
        }
        more = world->sent + world->received + world->accessed != before;
    }
    judge_tables(world);
    judge_memory(world);
    add(sums, world);
    const uint64_t digest = world->sim.digest + world->accessed + world->received;
    lant_world_close(&world->lant);
    free(world->models);
    free(world);
    return digest;
}

static struct seeds seeds;

/* LNI-22 LNI-24 LNI-32 LNI-34 LNI-39 LNI-51 LNI-52 LNI-61 LNI-78 LNI-86 LNI-88 */
static void test_random_worlds(void **state)
{
    (void)state;
    static struct sums sums;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        const uint64_t digest = run(seed, &sums);
        if (seed % 16 == 0 && run(seed, &sums) != digest) {
            fail_msg("seed %llu: another digest the second time", (unsigned long long)seed);
        }
    }
    /* Rules that nobody exercised are rules that nobody tested. */
    if (seeds.count >= 100) {
        assert_true(sums.failed > 0 && sums.accesses_failed > 0 && sums.nacks > 0);
        assert_true(sums.escaped > 0 && sums.escape_full > 0 && sums.table_full > 0);
        assert_true(sums.registered > 0 && sums.unregistered > 0 && sums.duplicates > 0);
        assert_true(sums.conflicts > 0 && sums.held > 0 && sums.locked > 0 && sums.repeated > 0);
        assert_true(sums.dead > 0 && sums.reports > 0);
        assert_true(sums.reordered > 0); /* Without fences, flags overtake data. */
        assert_null(variety_missing(&sums.faults, 1u << SIM_FAULT_drop | 1u << SIM_FAULT_duplicate |
                                                      1u << SIM_FAULT_reorder |
                                                      1u << SIM_FAULT_late |
                                                      1u << SIM_FAULT_damage));
    }
}

/* LNI-89: a peer is dead. A transfer to it fails when its attempts are over, and nothing is
 * kept. */
static void dead_peer(uint8_t retries)
{
    enum {
        COSTS = 1000, /* More than an attempt takes beside its timer. */
    };
    struct world *world = calloc(1, sizeof(*world));
    char error[TOPOLOGY_ERROR_BYTES];
    struct lant_node_config config = lant_node_default();
    const struct lant_fabric_config fabric = {.topology = "all-to-all:2", .packets = 64};
    assert_non_null(world);
    config.memory_bytes = MEMORY_BYTES;
    config.rdma.retries = config.shm.retries = retries;
    sim_init(&world->sim, 1);
    assert_true(
        lant_world_open(&world->lant, &config, &fabric, &world->sim, 1, error, sizeof(error)));
    world->lant.fabric.sink = on_frame;
    world->nodes = 2;
    world->dead = 1;
    world->segment = config.rdma.work.segment_bytes;
    world->models = calloc(2, sizeof(world->models[0]));
    world->lant.nodes[0].program = (struct lant_program){
        .context = &world->lant.nodes[0], .on_done = on_done, .on_notification = on_notification};
    assert_non_null(begin_access(world, PLAIN, 0, 1, 0, WORD, NULL));
    assert_non_null(begin_access(world, PLAIN, 0, 1, WORD, WORD, (const uint8_t[WORD]){1}));
    begin_transfer(world, 0, 1, 0);
    while (world->failed < 3) {
        assert_true(sim_step(&world->sim));
    }
    assert_true(world->sim.now_ps <=
                (retries + 1u) * (lant_cycles(COSTS) + world->lant.config.rdma.timeout));
    while (sim_step(&world->sim)) {
    }
    judge_tables(world);
    assert_int_equal(world->failed, 3);
    lant_world_close(&world->lant);
    free(world->models);
    free(world);
}

static void test_dead_peer(void **state)
{
    (void)state;
    for (uint8_t retries = 0; retries <= LANT_RETRIES_MAX; retries++) {
        dead_peer(retries);
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 600);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_worlds),
                                       cmocka_unit_test(test_dead_peer)};
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
