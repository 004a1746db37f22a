/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_scenario_test - programs that connect, accept, refuse and let go over a bad network.
 *
 * Goal    Safety: both ends of a connection mean the same one, and know the same numbers and
 *         private data of it; an id is established at most once, hears nothing after its release,
 *         and its memory comes back exactly once. Liveness: unless its program lets go, every
 *         attempt and every acceptance comes to a definite end; when all is over nothing is left.
 * Method  Two or three nodes in virtual time, each with a manager, listeners and programs that are
 *         now quick, now slow, now rude, as the seed chooses; so are loss (up to all), copies,
 *         delay and damage. Memory that comes back is freed: sanitizers see who still uses it.
 *         Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/scenarios/seeds.h"
#include "transport/ibta/rdma_cm.h"

#define NODES_MAX    3
#define ATTEMPTS_MAX 48
#define ENDS_MAX     4096
#define ITEMS_MAX    65536
#define PORT         18515
#define MS           UINT64_C(1000000)

/* One side of a connection, or of an attempt at one. */
struct end {
    struct rdma_id *id; /* NULL: its memory is back. */
    uint8_t node;
    bool active, datagrams;
    bool released;        /* By its program. */
    bool ending;          /* Its program disconnects. */
    bool accepted;        /* Passive: the program said yes. */
    bool waiting;         /* Its program waits for an outcome. */
    uint32_t established; /* Events. */
    uint32_t peer;        /* The end it believes to talk to. */
    uint32_t try;         /* Which attempt of the active side it is. */
    uint32_t qpn, psn, remote_psn;
};

/* What travels in private data. */
struct card {
    uint32_t end, try, qpn;
};

enum item_kind {
    ITEM_LETTER,
    ITEM_DECIDE,    /* A program answers a request. */
    ITEM_ESTABLISH, /* A program has its queue pair ready. */
    ITEM_END,       /* A program has had enough. */
    ITEM_RELEASE,
    ITEM_BEGIN,
    ITEM_WAKE, /* A program looks at its channel again. */
};

struct item {
    uint64_t at_ns, order;
    enum item_kind kind;
    uint32_t end;
    struct cm_letter letter;
};

struct node {
    struct rdma_cm cm;
    uint8_t ip[16];
    struct rdma_channel channel;
    struct rdma_id *listeners[2]; /* TCP, UDP. */
    uint64_t asleep_ns;           /* Until then its program looks at no event. */
    uint32_t events_made, ids_made, ids_back;
};

struct world {
    uint64_t seed;
    struct prng prng;
    struct instant now;
    uint64_t order, digest;
    struct node nodes[NODES_MAX];
    uint32_t node_count, end_count;
    struct end ends[ENDS_MAX];
    struct item *items[ITEMS_MAX]; /* A heap. */
    uint32_t item_count;
    uint32_t drop, duplicate, delay, damage, sleepy; /* Millionths. */
    uint64_t latency_ns, delay_ns, slowness_ns;
    uint32_t damaged;
    uint32_t successes, failures;
};

#define REQUIRE(world, condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg("seed %llu at %llu ns: %s", (unsigned long long)(world)->seed,                \
                     (unsigned long long)(world)->now.ns, #condition);                             \
        }                                                                                          \
    } while (0)

/* -- The future ---------------------------------------------------------------------------------*/

static bool earlier(const struct item *a, const struct item *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static struct item *plan(struct world *world, uint64_t delay_ns, enum item_kind kind, uint32_t end)
{
    struct item *item = malloc(sizeof(*item));
    *item = (struct item){
        .at_ns = world->now.ns + delay_ns, .order = world->order++, .kind = kind, .end = end};
    REQUIRE(world, world->item_count < ITEMS_MAX);
    uint32_t i = world->item_count++;
    while (i > 0 && earlier(item, world->items[(i - 1) / 2])) {
        world->items[i] = world->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    world->items[i] = item;
    return item;
}

static struct item *pop(struct world *world)
{
    struct item *first = world->items[0], *last = world->items[--world->item_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= world->item_count) {
            break;
        }
        if (child + 1 < world->item_count &&
            earlier(world->items[child + 1], world->items[child])) {
            child++;
        }
        if (!earlier(world->items[child], last)) {
            break;
        }
        world->items[i] = world->items[child];
        i = child;
    }
    world->items[i] = last;
    return first;
}

static void tally(struct world *world, uint64_t value)
{
    world->digest = (world->digest ^ value) * UINT64_C(0x100000001b3) + world->now.ns;
}

/* -- Memory -------------------------------------------------------------------------------------*/

static void prepare(struct node *node)
{
    while (node->cm.spare_event_count < RDMA_SPARE_EVENTS) {
        node->events_made++;
        rdma_cm_give_event(&node->cm, calloc(1, sizeof(struct rdma_event)));
    }
    while (node->cm.spare_id_count < RDMA_SPARE_IDS) {
        node->ids_made++;
        rdma_cm_give_id(&node->cm, calloc(1, sizeof(struct rdma_id)));
    }
}

/* `handle` is the end's number, plus one; 0: a request that nobody was told of. */
static void take_back(struct world *world, struct node *node)
{
    struct rdma_id *id;
    while ((id = rdma_cm_next_released(&node->cm)) != NULL) {
        if (id->handle != 0 && id->handle <= world->end_count) {
            struct end *end = &world->ends[id->handle - 1];
            REQUIRE(world, end->id == id && end->released);
            end->id = NULL;
        }
        node->ids_back++;
        memset(id, 0xdd, sizeof(*id));
        free(id);
    }
}

/* -- The network --------------------------------------------------------------------------------*/

static void send_letter(struct world *world, const struct cm_letter *letter)
{
    struct prng *prng = &world->prng;
    const uint32_t copies = prng_chance(prng, world->duplicate) ? 2 : 1;
    for (uint32_t i = 0; i < copies; i++) {
        if (prng_chance(prng, world->drop)) {
            continue;
        }
        const uint64_t late =
            prng_chance(prng, world->delay) ? prng_below(prng, world->delay_ns) : 0;
        struct item *item = plan(world, world->latency_ns + late, ITEM_LETTER, 0);
        item->letter = *letter;
        /* The checksums of RoCE find damage, so this is another kind of MAD for QP 1. */
        if (prng_chance(prng, world->damage)) {
            item->letter.bytes[prng_below(prng, 4)] ^= (uint8_t)(1u << prng_below(prng, 8));
            world->damaged++;
        }
    }
}

static void arrive(struct world *world, const struct cm_letter *letter)
{
    for (uint32_t n = 0; n < world->node_count; n++) {
        struct node *node = &world->nodes[n];
        if (memcmp(node->ip, letter->destination, 16) == 0) {
            prepare(node);
            rdma_cm_on_message(&node->cm, letter->source, letter->destination, letter->bytes,
                               CM_MAD_BYTES, world->now);
            return;
        }
    }
}

/* -- Programs -----------------------------------------------------------------------------------*/

/* Quick most of the time, else as slow as the world has it. */
static uint64_t whim(struct world *world)
{
    return prng_below(&world->prng, 4) != 0 ? prng_below(&world->prng, 2 * MS)
                                            : prng_below(&world->prng, world->slowness_ns);
}

static struct rdma_parameters introduce(const struct end *end, uint32_t number)
{
    struct rdma_parameters parameters = {.qpn = end->qpn, .qkey = 0x80000000u + end->qpn};
    const struct card card = {number, end->try, end->qpn};
    memcpy(parameters.private_data, &card, sizeof(card));
    parameters.private_bytes = sizeof(card);
    return parameters;
}

static struct end *new_end(struct world *world, uint8_t node, struct rdma_id *id)
{
    REQUIRE(world, world->end_count < ENDS_MAX);
    struct end *end = &world->ends[world->end_count++];
    *end = (struct end){.id = id, .node = node, .qpn = 0x1000 + world->end_count};
    id->handle = world->end_count;
    return end;
}

static uint32_t number_of(const struct world *world, const struct end *end)
{
    return (uint32_t)(end - world->ends);
}

static void release(struct world *world, struct end *end)
{
    if (!end->released) {
        end->released = true;
        rdma_id_release(&world->nodes[end->node].cm, end->id, world->now);
    }
}

static void begin(struct world *world, uint8_t n)
{
    struct node *node = &world->nodes[n];
    struct rdma_id *id = calloc(1, sizeof(*id));
    node->ids_made++;
    struct end *end = new_end(world, n, id);
    const uint32_t number = number_of(world, end);
    end->active = true;
    end->datagrams = prng_below(&world->prng, 4) == 0;
    rdma_id_init(id, &node->channel, end->datagrams ? RDMA_PORT_SPACE_UDP : RDMA_PORT_SPACE_TCP,
                 number + 1);
    id->handle = number + 1;
    const struct node *to =
        &world
             ->nodes[(n + 1 + prng_below(&world->prng, world->node_count - 1)) % world->node_count];
    struct rdma_address none = {0}, peer = {.port = PORT, .known = true};
    /* Now and then to where nobody listens. */
    peer.port = (uint16_t)(peer.port + (prng_below(&world->prng, 12) == 0));
    memcpy(peer.ip, to->ip, 16);
    REQUIRE(world, rdma_id_resolve_address(&node->cm, id, &none, &peer) == STATUS_OK);
    if (prng_below(&world->prng, 8) == 0) {
        plan(world, whim(world), ITEM_RELEASE, number); /* Changes its mind, whenever. */
    }
}

static void try_to_connect(struct world *world, struct end *end)
{
    struct node *node = &world->nodes[end->node];
    end->try++;
    const struct rdma_parameters parameters = introduce(end, number_of(world, end));
    REQUIRE(world, rdma_id_connect(&node->cm, end->id, &parameters) == STATUS_OK);
    end->waiting = true;
}

static void decide(struct world *world, struct end *end)
{
    struct node *node = &world->nodes[end->node];
    const uint64_t mood = prng_below(&world->prng, 10);
    enum status status = STATUS_OK;
    if (mood == 0) {
        status = rdma_id_reject(&node->cm, end->id, CM_REASON_CONSUMER, "no", 2);
    }
    if (mood <= 1) {
        release(world, end);
        return;
    }
    const struct rdma_parameters parameters = introduce(end, number_of(world, end));
    status = rdma_id_accept(&node->cm, end->id, &parameters, world->now);
    if (status != STATUS_OK) {
        release(world, end); /* The peer has taken it back. */
        return;
    }
    end->id->uid = end->id->handle;
    end->accepted = true;
    end->waiting = !end->datagrams;
    end->psn = end->id->starting_psn;
    end->remote_psn = end->id->remote_starting_psn;
    if (end->datagrams || prng_below(&world->prng, 8) == 0) {
        plan(world, whim(world), ITEM_END, number_of(world, end));
    }
}

static void establish(struct world *world, struct end *end)
{
    struct node *node = &world->nodes[end->node];
    if (prng_below(&world->prng, 12) == 0) {
        (void)!rdma_id_reject(&node->cm, end->id, CM_REASON_CONSUMER, NULL, 0);
        release(world, end);
        return;
    }
    if (rdma_id_establish(&node->cm, end->id) == STATUS_OK) {
        REQUIRE(world, ++end->established == 1);
        end->waiting = false;
        world->successes++;
        plan(world, whim(world), ITEM_END, number_of(world, end));
    } /* Else it hears why not. */
}

static void end_it(struct world *world, struct end *end)
{
    struct node *node = &world->nodes[end->node];
    if (end->datagrams || prng_below(&world->prng, 3) == 0) {
        release(world, end);
        return;
    }
    end->ending = rdma_id_disconnect(&node->cm, end->id, world->now) == STATUS_OK;
    end->waiting = false;
    if (!end->ending || prng_below(&world->prng, 2) == 0) {
        plan(world, whim(world), ITEM_RELEASE, number_of(world, end));
    }
}

/* -- What programs hear -------------------------------------------------------------------------*/

static void on_request(struct world *world, uint8_t n, const struct rdma_event *event)
{
    struct card card;
    memcpy(&card, event->parameters.private_data, sizeof(card));
    REQUIRE(world, card.end < world->end_count);
    const struct end *asker = &world->ends[card.end];
    struct end *end = new_end(world, n, event->id);
    end->datagrams = event->id->datagrams;
    end->peer = card.end;
    end->try = card.try;
    REQUIRE(world, asker->active && asker->datagrams == end->datagrams);
    REQUIRE(world, card.try <= asker->try && card.qpn == asker->qpn);
    REQUIRE(world, end->datagrams || event->parameters.qpn == asker->qpn);
    REQUIRE(world, event->listener == world->nodes[n].listeners[end->datagrams]);
    plan(world, whim(world), ITEM_DECIDE, number_of(world, end));
}

/* Both know the same of each other. */
static void on_response(struct world *world, struct end *end, const struct rdma_event *event)
{
    struct card card;
    memcpy(&card, event->parameters.private_data, sizeof(card));
    REQUIRE(world, card.end < world->end_count);
    const struct end *peer = &world->ends[card.end];
    REQUIRE(world, peer->accepted && peer->peer == number_of(world, end));
    REQUIRE(world, card.try == end->try && peer->try == end->try);
    REQUIRE(world, event->parameters.qpn == peer->qpn);
    end->peer = card.end;
    if (end->datagrams) {
        REQUIRE(world, event->parameters.qkey == 0x80000000u + peer->qpn);
        return;
    }
    REQUIRE(world, end->id->remote_qpn == peer->qpn);
    REQUIRE(world, end->id->starting_psn == peer->remote_psn);
    REQUIRE(world, end->id->remote_starting_psn == peer->psn);
    plan(world, whim(world), ITEM_ESTABLISH, number_of(world, end));
}

static void on_established(struct world *world, struct end *end, const struct rdma_event *event)
{
    REQUIRE(world, end->waiting || end->ending);
    end->waiting = false;
    REQUIRE(world, ++end->established == 1);
    if (end->active) {
        REQUIRE(world, end->datagrams);
        on_response(world, end, event);
        world->successes++;
    } else {
        const struct end *peer = &world->ends[end->peer];
        REQUIRE(world, peer->established == 1 && peer->peer == number_of(world, end));
    }
    plan(world, whim(world), ITEM_END, number_of(world, end));
}

static void on_failure(struct world *world, struct end *end)
{
    REQUIRE(world, end->waiting || end->ending);
    end->waiting = false;
    world->failures++;
    if (end->active && end->id->state == RDMA_ID_ROUTED && end->try < 3) {
        try_to_connect(world, end);
    } else {
        plan(world, whim(world), ITEM_RELEASE, number_of(world, end));
    }
}

static void on_disconnected(struct world *world, struct end *end)
{
    /* Also of an acceptance whose RTU was overtaken. */
    REQUIRE(world, end->established == 1 || end->ending || (!end->active && end->waiting));
    end->waiting = false;
    plan(world, whim(world), ITEM_RELEASE, number_of(world, end));
}

static void hear(struct world *world, uint8_t n, const struct rdma_event *event)
{
    struct node *node = &world->nodes[n];
    tally(world, (uint64_t)event->kind << 32 | event->id->handle);
    if (event->kind == RDMA_EVENT_CONNECT_REQUEST) {
        on_request(world, n, event);
        return;
    }
    struct end *end = &world->ends[event->id->handle - 1];
    REQUIRE(world, end->id == event->id && !end->released && end->node == n);
    switch (event->kind) {
    case RDMA_EVENT_ADDR_RESOLVED:
        prepare(node);
        REQUIRE(world, rdma_id_resolve_route(&node->cm, end->id) == STATUS_OK);
        return;
    case RDMA_EVENT_ROUTE_RESOLVED: try_to_connect(world, end); return;
    case RDMA_EVENT_CONNECT_RESPONSE: on_response(world, end, event); return;
    case RDMA_EVENT_ESTABLISHED: on_established(world, end, event); return;
    case RDMA_EVENT_REJECTED:
    case RDMA_EVENT_UNREACHABLE: on_failure(world, end); return;
    case RDMA_EVENT_DISCONNECTED: on_disconnected(world, end); return;
    case RDMA_EVENT_TIMEWAIT_EXIT: return;
    case RDMA_EVENT_ADDR_ERROR:
    case RDMA_EVENT_ROUTE_ERROR:
    case RDMA_EVENT_CONNECT_REQUEST:
    case RDMA_EVENT_CONNECT_ERROR:
    case RDMA_EVENT_DEVICE_REMOVAL:
    case RDMA_EVENT_MULTICAST_JOIN:
    case RDMA_EVENT_MULTICAST_ERROR:
    case RDMA_EVENT_ADDR_CHANGE: break;
    }
    fail_msg("seed %llu: event %u", (unsigned long long)world->seed, event->kind);
}

/* -- Going round --------------------------------------------------------------------------------*/

static void answer_questions(struct world *world, struct node *node)
{
    struct rdma_id *id;
    enum rdma_question question;
    while ((id = rdma_cm_next_question(&node->cm, &question)) != NULL) {
        prepare(node);
        if (question == RDMA_QUESTION_ADDRESS) {
            struct rdma_address source = {.port = 40000, .known = true};
            memcpy(source.ip, node->ip, 16);
            rdma_cm_on_address(&node->cm, id, 0, &source, node->ip, id->destination.ip, 3);
        } else {
            rdma_cm_on_service(&node->cm, id, node->ip, id->destination.ip, world->now);
        }
    }
}

static bool settle_node(struct world *world, uint8_t n)
{
    struct node *node = &world->nodes[n];
    struct cm_letter letter;
    bool moved = false;
    answer_questions(world, node);
    while (cm_next_message(&node->cm.cm, &letter)) {
        tally(world, letter.bytes[17]);
        send_letter(world, &letter);
    }
    struct rdma_event *event;
    while (node->asleep_ns <= world->now.ns &&
           (event = rdma_channel_take(&node->cm, &node->channel)) != NULL) {
        hear(world, n, event);
        rdma_cm_give_event(&node->cm, event);
        moved = true;
        if (prng_chance(&world->prng, world->sleepy)) {
            const uint64_t nap_ns = whim(world);
            node->asleep_ns = world->now.ns + nap_ns;
            plan(world, nap_ns, ITEM_WAKE, 0);
        }
    }
    while (rdma_cm_next_changed(&node->cm) != NULL) {
    }
    take_back(world, node);
    return moved;
}

static void settle(struct world *world)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint8_t n = 0; n < world->node_count; n++) {
            moved |= settle_node(world, n);
        }
    }
}

static void carry_out(struct world *world, const struct item *item)
{
    if (item->kind == ITEM_LETTER) {
        arrive(world, &item->letter);
        return;
    }
    if (item->kind == ITEM_WAKE) {
        return;
    }
    if (item->kind == ITEM_BEGIN) {
        begin(world, (uint8_t)item->end);
        return;
    }
    struct end *end = &world->ends[item->end];
    if (end->released) {
        return;
    }
    prepare(&world->nodes[end->node]);
    switch (item->kind) {
    case ITEM_DECIDE: decide(world, end); return;
    case ITEM_ESTABLISH: establish(world, end); return;
    case ITEM_END: end_it(world, end); return;
    case ITEM_RELEASE: release(world, end); return;
    case ITEM_LETTER:
    case ITEM_BEGIN:
    case ITEM_WAKE: break;
    }
}

/* The next thing that happens; false: nothing ever will. */
static bool step(struct world *world)
{
    struct instant next = {world->item_count > 0 ? world->items[0]->at_ns : UINT64_MAX};
    for (uint32_t n = 0; n < world->node_count; n++) {
        const struct instant deadline = cm_deadline(&world->nodes[n].cm.cm);
        next = instant_before(deadline, next) ? deadline : next;
    }
    if (next.ns == UINT64_MAX) {
        return false;
    }
    world->now = instant_before(next, world->now) ? world->now : next;
    while (world->item_count > 0 && world->items[0]->at_ns <= world->now.ns) {
        struct item *item = pop(world);
        carry_out(world, item);
        free(item);
        settle(world);
    }
    for (uint32_t n = 0; n < world->node_count; n++) {
        prepare(&world->nodes[n]);
        rdma_cm_on_time(&world->nodes[n].cm, world->now);
    }
    settle(world);
    return true;
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static void add_node(struct world *world, uint8_t n)
{
    struct node *node = &world->nodes[n];
    static const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 10};
    rdma_cm_init(&node->cm, prng_next(&world->prng), 0, 0x1000u + n);
    rdma_channel_init(&node->channel);
    memcpy(node->ip, ip, 16);
    node->ip[15] = (uint8_t)(n + 1);
    prepare(node);
    for (int i = 0; i < 2; i++) {
        struct rdma_id *id = calloc(1, sizeof(*id));
        const struct rdma_address any = {
            .ip = {[10] = 0xff, [11] = 0xff}, .port = PORT, .known = true};
        node->ids_made++;
        rdma_id_init(id, &node->channel, i == 0 ? RDMA_PORT_SPACE_TCP : RDMA_PORT_SPACE_UDP, 1);
        id->handle = UINT32_MAX;
        node->listeners[i] = id;
        REQUIRE(world, rdma_id_bind(id, &any, node->ip) == STATUS_OK);
        REQUIRE(world, rdma_id_listen(&node->cm, id, 1 + (uint32_t)prng_below(&world->prng, 8)) ==
                           STATUS_OK);
    }
}

static struct world *world_make(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    prng_init(&world->prng, seed);
    struct prng *prng = &world->prng;
    world->seed = seed;
    world->now.ns = 1;
    world->node_count = 2 + (uint32_t)prng_below(prng, 2);
    const uint32_t weather = (uint32_t)prng_below(prng, 8);
    static const uint32_t drops[8] = {0, 0, 50000, 100000, 200000, 400000, 800000, 1000000};
    world->drop = drops[weather];
    world->duplicate = prng_below(prng, 2) ? (uint32_t)prng_below(prng, 300000) : 0;
    world->delay = prng_below(prng, 2) ? (uint32_t)prng_below(prng, 500000) : 0;
    world->damage = prng_below(prng, 2) ? (uint32_t)prng_below(prng, 100000) : 0;
    world->sleepy = prng_below(prng, 2) ? (uint32_t)prng_below(prng, 200000) : 0;
    world->latency_ns = 1000 + prng_below(prng, 20 * MS);
    world->delay_ns = 1 + prng_below(prng, prng_below(prng, 2) ? 50 * MS : 400 * MS);
    world->slowness_ns = 1 + prng_below(prng, prng_below(prng, 2) ? 500 * MS : 20000 * MS);
    for (uint8_t n = 0; n < world->node_count; n++) {
        add_node(world, n);
    }
    const uint64_t attempts = 1 + prng_below(prng, ATTEMPTS_MAX);
    const uint64_t span_ns = 1 + prng_below(prng, 3000 * MS);
    for (uint64_t i = 0; i < attempts; i++) {
        plan(world, prng_below(prng, span_ns), ITEM_BEGIN,
             (uint32_t)prng_below(prng, world->node_count));
    }
    return world;
}

static void require_empty(struct world *world, struct node *node)
{
    for (uint32_t i = 0; i < CM_BUCKETS; i++) {
        REQUIRE(world, list_empty(&node->cm.cm.local[i]) && list_empty(&node->cm.cm.remote[i]));
    }
    REQUIRE(world, list_empty(&node->cm.cm.timed) && list_empty(&node->cm.cm.outbox));
    REQUIRE(world, list_empty(&node->cm.questions) && list_empty(&node->cm.listeners));
    REQUIRE(world, node->ids_made - node->ids_back == node->cm.spare_id_count);
    REQUIRE(world, node->events_made == node->cm.spare_event_count);
}

static void free_stock(struct node *node)
{
    struct list *spare;
    while ((spare = list_pop(&node->cm.spare_events)) != NULL) {
        free(CONTAINER_OF(spare, struct rdma_event, node));
    }
    while ((spare = list_pop(&node->cm.spare_ids)) != NULL) {
        free(CONTAINER_OF(spare, struct rdma_id, released));
    }
}

struct sums {
    uint64_t successes, failures, counters[4], retransmitted;
};

static uint64_t run(uint64_t seed, struct sums *sums)
{
    struct world *world = world_make(seed);
    uint64_t steps = 0;
    while (step(world)) {
        REQUIRE(world, ++steps < 1000000);
    }
    /* Every program has heard how its attempts ended, and let go or still is connected. */
    for (uint32_t i = 0; i < world->end_count; i++) {
        const struct end *end = &world->ends[i];
        REQUIRE(world, end->released || !end->waiting);
    }
    for (uint32_t i = 0; i < world->end_count; i++) {
        if (!world->ends[i].released) {
            release(world, &world->ends[i]);
        }
    }
    for (uint32_t n = 0; n < world->node_count; n++) {
        for (int i = 0; i < 2; i++) {
            rdma_id_release(&world->nodes[n].cm, world->nodes[n].listeners[i], world->now);
        }
    }
    settle(world);
    while (step(world)) {
        REQUIRE(world, ++steps < 2000000);
    }
    uint64_t malformed = 0;
    for (uint32_t n = 0; n < world->node_count; n++) {
        struct node *node = &world->nodes[n];
        require_empty(world, node);
        malformed += node->cm.cm.counters.malformed;
        sums->counters[0] += node->cm.cm.counters.unmatched;
        sums->counters[1] += node->cm.cm.counters.out_of_state;
        sums->counters[2] += node->cm.cm.counters.malformed;
        sums->counters[3] += node->cm.counters.backlog_full;
        sums->retransmitted += node->cm.cm.counters.retransmitted;
        free_stock(node);
    }
    REQUIRE(world, malformed == world->damaged);
    REQUIRE(world, world->drop < 1000000 || world->successes == 0);
    sums->successes += world->successes;
    sums->failures += world->failures;
    const uint64_t digest = world->digest;
    free(world);
    return digest;
}

static struct seeds seeds;

static void test_random_worlds(void **state)
{
    (void)state;
    struct sums sums = {0};
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        run(seed, &sums);
    }
    printf("%llu worlds: %llu connections, %llu failures, %llu repetitions, %llu unmatched, "
           "%llu out of state, %llu malformed, %llu for want of backlog\n",
           (unsigned long long)seeds.count, (unsigned long long)sums.successes,
           (unsigned long long)sums.failures, (unsigned long long)sums.retransmitted,
           (unsigned long long)sums.counters[0], (unsigned long long)sums.counters[1],
           (unsigned long long)sums.counters[2], (unsigned long long)sums.counters[3]);
    if (seeds.count >= 100) { /* The worlds are as varied as they should be. */
        assert_true(sums.successes > seeds.count && sums.failures > seeds.count);
        assert_true(sums.counters[0] > 0 && sums.counters[1] > 0 && sums.counters[2] > 0);
        assert_true(sums.counters[3] > 0);
    }
}

static void test_a_seed_is_a_run(void **state)
{
    (void)state;
    struct sums sums = {0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_int_equal(run(seed, &sums), run(seed, &sums));
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 2000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_a_seed_is_a_run),
    };
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
