/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_scenario_test - programs that connect, accept, refuse and let go over a bad network.
 *
 * Goal    Safety: both ends of a connection mean the same one, and know the same numbers and
 *         private data of it; a request that comes twice is told of once; an id is established at
 *         most once, hears nothing after its release, and its memory comes back exactly once.
 *         Liveness: unless its program lets go, every attempt and every acceptance comes to a
 *         definite end; when all is over nothing is left.
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
#include "tests/world/link.h"
#include "tests/world/timer.h"
#include "tests/world/variety.h"
#include "transport/ibta/rdma_cm.h"

#define NODES_MAX    3
#define ATTEMPTS_MAX 48
#define ENDS_MAX     512
#define ERRANDS_MAX  1024
#define LETTERS_MAX  1024
#define PORT         18515
#define US           UINT64_C(1000000)
#define MS           UINT64_C(1000000000)

/* One side of a connection, or of an attempt at one. */
struct end {
    struct rdma_id *id; /* NULL: its memory is back. */
    uint32_t node;
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

/* The private data of a message. */
struct card {
    uint32_t end, try, qpn;
};

/* The next step of a program. */
enum errand_kind {
    ERRAND_DECIDE,    /* It answers a request. */
    ERRAND_ESTABLISH, /* It has its queue pair ready. */
    ERRAND_END,       /* It has had enough. */
    ERRAND_RELEASE,
    ERRAND_BEGIN,
    ERRAND_WAKE, /* It looks at its channel again. */
};

struct errand {
    struct sim_event event;
    enum errand_kind kind;
    uint32_t number; /* The end's; to begin or to wake, the node's. */
};

/* One world after the other takes from it, and gives all back. */
struct stock {
    struct sim_pool mads, errands;
};

struct node {
    struct rdma_cm cm;
    uint8_t ip[16];
    struct rdma_channel channel;
    struct rdma_id *listeners[2]; /* TCP, UDP. */
    struct sim_event timer;       /* Its manager's deadline. */
    uint64_t asleep_ps;           /* Until then its program looks at no event. */
    uint32_t events_made, ids_made, ids_back;
};

struct world {
    uint64_t seed;
    struct sim sim;
    struct link link; /* Between all nodes. */
    struct stock *stock;
    struct node nodes[NODES_MAX];
    uint32_t node_count, end_count;
    struct end ends[ENDS_MAX];
    uint64_t slowness_ps;
    uint32_t successes, failures;
};

static struct instant now_of(const struct world *world)
{
    return sim_instant(&world->sim);
}

#define REQUIRE(world, condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg("seed %llu at %llu ns: %s", (unsigned long long)(world)->seed,                \
                     (unsigned long long)now_of(world).ns, #condition);                            \
        }                                                                                          \
    } while (0)

/* -- The future ---------------------------------------------------------------------------------*/

static void on_errand(struct sim *sim, struct sim_event *event);

static void plan(struct world *world, uint64_t delay_ps, enum errand_kind kind, uint32_t number)
{
    struct errand *errand = sim_pool_take(&world->stock->errands);
    REQUIRE(world, errand != NULL);
    sim_event_init(&errand->event, on_errand);
    errand->kind = kind;
    errand->number = number;
    sim_after(&world->sim, &errand->event, delay_ps);
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

static uint32_t node_at(const struct world *world, const uint8_t ip[16])
{
    uint32_t n = 0;
    while (n < world->node_count && memcmp(world->nodes[n].ip, ip, 16) != 0) {
        n++;
    }
    REQUIRE(world, n < world->node_count);
    return n;
}

/* A17.6.1.2: RoCE has no LIDs that a refusal could be about. */
static void require_reason(const struct world *world, const struct cm_mad *mad)
{
    const uint8_t *reason = mad->bytes + CM_HEADER_BYTES + 10;
    REQUIRE(world, mad->bytes[17] != CM_REJ || reason[0] != 0 ||
                       (reason[1] != 13 && reason[1] != 19 && reason[1] != 0));
}

static void send_mad(struct world *world, uint32_t from, const struct cm_mad *mad)
{
    require_reason(world, mad);
    REQUIRE(world, node_at(world, mad->source) == from);
    link_send(&world->link, from, node_at(world, mad->destination), mad->bytes, CM_MAD_BYTES);
}

/* -- Programs -----------------------------------------------------------------------------------*/

/* Quick most of the time, else as slow as the world has it. */
static uint64_t whim(struct world *world)
{
    return prng_below(&world->sim.prng, 4) != 0 ? prng_below(&world->sim.prng, 2 * MS)
                                                : prng_below(&world->sim.prng, world->slowness_ps);
}

static struct rdma_parameters introduce(const struct end *end, uint32_t number)
{
    struct rdma_parameters parameters = {.qpn = end->qpn, .qkey = 0x80000000u + end->qpn};
    const struct card card = {number, end->try, end->qpn};
    memcpy(parameters.private_data, &card, sizeof(card));
    parameters.private_bytes = sizeof(card);
    return parameters;
}

static struct end *new_end(struct world *world, uint32_t node, struct rdma_id *id)
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

static bool is_used(const struct world *world, uint32_t qpn)
{
    for (uint32_t i = 0; i < world->end_count; i++) {
        if (world->ends[i].qpn == qpn && !world->ends[i].released) {
            return true;
        }
    }
    return false;
}

static void release(struct world *world, struct end *end)
{
    if (!end->released) {
        end->released = true;
        rdma_id_release(&world->nodes[end->node].cm, end->id, now_of(world));
    }
}

/* A program uses a queue pair again as soon as it has let go of its connection. The peer may not
 * know yet that the connection has ended. */
static void use_queue_pair_again(struct world *world, struct end *end)
{
    const struct end *earlier =
        &world->ends[prng_below(&world->sim.prng, number_of(world, end) + 1)];
    if (earlier->released && earlier->node == end->node && !is_used(world, earlier->qpn)) {
        end->qpn = earlier->qpn;
    }
}

static void begin(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    struct rdma_id *id = calloc(1, sizeof(*id));
    node->ids_made++;
    struct end *end = new_end(world, n, id);
    const uint32_t number = number_of(world, end);
    end->active = true;
    end->datagrams = prng_below(&world->sim.prng, 4) == 0;
    use_queue_pair_again(world, end);
    rdma_id_init(id, &node->channel, end->datagrams ? RDMA_PORT_SPACE_UDP : RDMA_PORT_SPACE_TCP,
                 number + 1);
    id->handle = number + 1;
    const struct node *to =
        &world->nodes[(n + 1 + prng_below(&world->sim.prng, world->node_count - 1)) %
                      world->node_count];
    const struct rdma_address any = {.known = true};
    struct rdma_address peer = {.port = PORT, .known = true};
    /* Now and then to where nobody listens. */
    peer.port = (uint16_t)(peer.port + (prng_below(&world->sim.prng, 12) == 0));
    memcpy(peer.ip, to->ip, 16);
    REQUIRE(world, rdma_id_bind(id, &any, any.ip) == STATUS_OK);
    REQUIRE(world, rdma_id_resolve_address(&node->cm, id, &peer) == STATUS_OK);
    if (prng_below(&world->sim.prng, 8) == 0) {
        plan(world, whim(world), ERRAND_RELEASE, number); /* Changes its mind, whenever. */
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
    const uint64_t mood = prng_below(&world->sim.prng, 10);
    enum status status = STATUS_OK;
    if (mood == 0) {
        status = rdma_id_reject(&node->cm, end->id, CM_REASON_CONSUMER, "no", 2);
    }
    if (mood <= 1) {
        release(world, end);
        return;
    }
    const struct rdma_parameters parameters = introduce(end, number_of(world, end));
    status = rdma_id_accept(&node->cm, end->id, &parameters, end->id->handle, now_of(world));
    if (status != STATUS_OK) {
        release(world, end); /* The peer has taken it back. */
        return;
    }
    end->accepted = true;
    end->waiting = !end->datagrams;
    end->psn = end->id->starting_psn;
    end->remote_psn = end->id->remote_starting_psn;
    if (end->datagrams || prng_below(&world->sim.prng, 8) == 0) {
        plan(world, whim(world), ERRAND_END, number_of(world, end));
    }
}

static void establish(struct world *world, struct end *end)
{
    struct node *node = &world->nodes[end->node];
    if (prng_below(&world->sim.prng, 12) == 0) {
        (void)!rdma_id_reject(&node->cm, end->id, CM_REASON_CONSUMER, NULL, 0);
        release(world, end);
        return;
    }
    if (rdma_id_establish(&node->cm, end->id, now_of(world)) == STATUS_OK) {
        REQUIRE(world, ++end->established == 1);
        end->waiting = false;
        world->successes++;
        plan(world, whim(world), ERRAND_END, number_of(world, end));
    } /* Else it is told why not. */
}

static void end_it(struct world *world, struct end *end)
{
    struct node *node = &world->nodes[end->node];
    if (end->datagrams || prng_below(&world->sim.prng, 3) == 0) {
        release(world, end);
        return;
    }
    end->ending = rdma_id_disconnect(&node->cm, end->id, now_of(world)) == STATUS_OK;
    end->waiting = false;
    if (!end->ending || prng_below(&world->sim.prng, 2) == 0) {
        plan(world, whim(world), ERRAND_RELEASE, number_of(world, end));
    }
}

/* -- Events of programs -------------------------------------------------------------------------*/

/* A REQ that comes twice is one request, as long as the first one is alive. */
static void require_first(const struct world *world, uint32_t n, const struct card *card)
{
    for (uint32_t i = 0; i < world->end_count; i++) {
        const struct end *end = &world->ends[i];
        if (!end->active && end->node == n && end->peer == card->end && end->try == card->try &&
            !end->released) {
            const enum cm_state state = end->id->connection.state;
            REQUIRE(world, state != CM_STATE_REQ_RECEIVED && state != CM_STATE_REP_SENT &&
                               state != CM_STATE_ESTABLISHED &&
                               state != CM_STATE_SIDR_REQ_RECEIVED &&
                               state != CM_STATE_SIDR_REP_SENT);
        }
    }
}

static void on_request(struct world *world, uint32_t n, const struct rdma_event *event)
{
    struct card card;
    memcpy(&card, event->parameters.private_data, sizeof(card));
    REQUIRE(world, card.end < world->end_count);
    const struct end *asker = &world->ends[card.end];
    require_first(world, n, &card);
    struct end *end = new_end(world, n, event->id);
    end->datagrams = event->id->datagrams;
    end->peer = card.end;
    end->try = card.try;
    REQUIRE(world, asker->active && asker->datagrams == end->datagrams);
    REQUIRE(world, card.try <= asker->try && card.qpn == asker->qpn);
    REQUIRE(world, end->datagrams || event->parameters.qpn == asker->qpn);
    REQUIRE(world, event->listener == world->nodes[n].listeners[end->datagrams]);
    plan(world, whim(world), ERRAND_DECIDE, number_of(world, end));
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
    plan(world, whim(world), ERRAND_ESTABLISH, number_of(world, end));
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
    plan(world, whim(world), ERRAND_END, number_of(world, end));
}

static void on_failure(struct world *world, struct end *end)
{
    REQUIRE(world, end->waiting || end->ending);
    end->waiting = false;
    world->failures++;
    if (end->active && end->id->state == RDMA_ID_ROUTED && end->try < 3) {
        try_to_connect(world, end);
    } else {
        plan(world, whim(world), ERRAND_RELEASE, number_of(world, end));
    }
}

static void on_disconnected(struct world *world, struct end *end)
{
    /* Also of an acceptance whose RTU was overtaken. */
    REQUIRE(world, end->established == 1 || end->ending || (!end->active && end->waiting));
    end->waiting = false;
    plan(world, whim(world), ERRAND_RELEASE, number_of(world, end));
}

static void hear(struct world *world, uint32_t n, const struct rdma_event *event)
{
    struct node *node = &world->nodes[n];
    sim_note(&world->sim, (uint64_t)event->kind << 32 | event->id->handle);
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
    case RDMA_EVENT_TIMEWAIT_EXIT:
    case RDMA_EVENT_USER:
    case RDMA_EVENT_INTERNAL: return;
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
            struct rdma_route route = {.source = source, .path_mtu = 3};
            memcpy(route.source_gid, node->ip, 16);
            rdma_cm_on_route(&node->cm, id, &route);
        } else {
            struct rdma_server server = {.process = 0};
            memcpy(server.gid, id->destination.ip, 16);
            memcpy(server.source_gid, node->ip, 16);
            rdma_cm_on_found(&node->cm, id, &server, now_of(world));
        }
    }
}

static bool settle_once(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    struct cm_mad mad;
    bool moved = false;
    answer_questions(world, node);
    while (cm_next_message(&node->cm.cm, &mad)) {
        sim_note(&world->sim, mad.bytes[17]);
        send_mad(world, n, &mad);
    }
    struct rdma_event *event;
    while (node->asleep_ps <= world->sim.now_ps &&
           (event = rdma_channel_take(&node->cm, &node->channel)) != NULL) {
        hear(world, n, event);
        rdma_cm_give_event(&node->cm, event);
        moved = true;
        if (sim_fault_strikes(&world->link.settings.faults, SIM_FAULT_lazy, &world->sim.prng)) {
            const uint64_t nap_ps = whim(world);
            node->asleep_ps = world->sim.now_ps + nap_ps;
            plan(world, nap_ps, ERRAND_WAKE, n);
        }
    }
    while (rdma_cm_next_changed(&node->cm) != NULL) {
    }
    take_back(world, node);
    return moved;
}

/* Something happened at a node: lets it do all that follows, and sets its timer. Only MADs tell
 * other nodes of it. */
static void settle(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    while (settle_once(world, n)) {
    }
    timer_set(&world->sim, &node->timer, cm_deadline(&node->cm.cm));
}

static void carry_out(struct world *world, enum errand_kind kind, struct end *end)
{
    if (end->released) {
        return;
    }
    prepare(&world->nodes[end->node]);
    switch (kind) {
    case ERRAND_DECIDE: decide(world, end); return;
    case ERRAND_ESTABLISH: establish(world, end); return;
    case ERRAND_END: end_it(world, end); return;
    case ERRAND_RELEASE: release(world, end); return;
    case ERRAND_BEGIN:
    case ERRAND_WAKE: break;
    }
}

static void on_errand(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(sim, struct world, sim);
    struct errand *errand = CONTAINER_OF(event, struct errand, event);
    const enum errand_kind kind = errand->kind;
    const uint32_t number = errand->number;
    sim_pool_give(&world->stock->errands, errand);
    switch (kind) {
    case ERRAND_BEGIN:
        begin(world, number);
        settle(world, number);
        return;
    case ERRAND_WAKE: settle(world, number); return;
    case ERRAND_DECIDE:
    case ERRAND_ESTABLISH:
    case ERRAND_END:
    case ERRAND_RELEASE:
        carry_out(world, kind, &world->ends[number]);
        settle(world, world->ends[number].node);
        return;
    }
}

static void on_mad(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(sim, struct world, sim);
    struct datagram *mad = link_datagram(event);
    struct node *to = &world->nodes[mad->to];
    uint8_t bytes[CM_MAD_BYTES]; /* An array of its own: sanitizers see a read behind it. */
    memcpy(bytes, mad->bytes, sizeof(bytes));
    prepare(to);
    rdma_cm_on_message(&to->cm, world->nodes[mad->from].ip, to->ip, bytes, sizeof(bytes),
                       now_of(world));
    settle(world, mad->to);
    link_give(mad);
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(sim, struct world, sim);
    struct node *node = CONTAINER_OF(event, struct node, timer);
    prepare(node);
    rdma_cm_on_time(&node->cm, now_of(world));
    settle(world, (uint32_t)(node - world->nodes));
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static void add_node(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    static const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 10};
    rdma_cm_init(&node->cm, prng_next(&world->sim.prng), 0, 0x1000u + n);
    rdma_channel_init(&node->channel);
    sim_event_init(&node->timer, on_timer);
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
        REQUIRE(world, rdma_id_listen(&node->cm, id,
                                      1 + (uint32_t)prng_below(&world->sim.prng, 8)) == STATUS_OK);
    }
}

/* Sometimes this, sometimes none. */
static uint32_t maybe(struct prng *prng, uint32_t millionths)
{
    return prng_below(prng, 2) ? (uint32_t)prng_below(prng, millionths) : 0;
}

static struct link_settings draw_settings(struct prng *prng)
{
    static const uint32_t drops[8] = {0, 0, 50000, 100000, 200000, 400000, 800000, 1000000};
    /* RoCE's checksums find damage: these bytes make it another kind of MAD for QP 1. */
    struct link_settings settings = {.damage_bytes = 4};
    uint32_t *millionths = settings.faults.millionths;
    settings.latency_ps = US + prng_below(prng, 20 * MS);
    settings.late_ps = prng_below(prng, prng_below(prng, 2) ? 50 * MS : 400 * MS);
    millionths[SIM_FAULT_drop] = drops[prng_below(prng, 8)];
    millionths[SIM_FAULT_duplicate] = maybe(prng, 300000);
    millionths[SIM_FAULT_late] = maybe(prng, 500000);
    millionths[SIM_FAULT_damage] = maybe(prng, 100000);
    millionths[SIM_FAULT_lazy] = maybe(prng, 200000);
    return settings;
}

static struct world *world_make(uint64_t seed, struct stock *stock)
{
    struct world *world = calloc(1, sizeof(*world));
    struct prng *prng = &world->sim.prng;
    world->seed = seed;
    world->stock = stock;
    sim_init(&world->sim, seed);
    sim_run_until(&world->sim, SIM_NS); /* 0 is no time to the engines. */
    const struct link_settings settings = draw_settings(prng);
    link_init(&world->link, &world->sim, &stock->mads, &settings, on_mad);
    world->node_count = 2 + (uint32_t)prng_below(prng, 2);
    world->slowness_ps = 1 + prng_below(prng, prng_below(prng, 2) ? 500 * MS : 20000 * MS);
    for (uint32_t n = 0; n < world->node_count; n++) {
        add_node(world, n);
    }
    const uint64_t attempts = 1 + prng_below(prng, ATTEMPTS_MAX);
    const uint64_t span_ps = 1 + prng_below(prng, 3000 * MS);
    for (uint64_t i = 0; i < attempts; i++) {
        const uint32_t n = (uint32_t)prng_below(prng, world->node_count);
        plan(world, prng_below(prng, span_ps), ERRAND_BEGIN, n);
    }
    return world;
}

static void require_empty(struct world *world, struct node *node)
{
    for (uint32_t i = 0; i < CM_BUCKETS; i++) {
        REQUIRE(world, list_empty(&node->cm.cm.local[i]) && list_empty(&node->cm.cm.remote[i]));
        REQUIRE(world, list_empty(&node->cm.cm.connected[i]));
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

/* Every program has heard how its attempts ended, and let go or still is connected; now all let
 * go. */
static void release_all(struct world *world)
{
    for (uint32_t i = 0; i < world->end_count; i++) {
        struct end *end = &world->ends[i];
        REQUIRE(world, end->released || !end->waiting);
        /* A program that disconnects gets DISCONNECTED, even if the peer is gone. */
        REQUIRE(world, end->released || !end->ending);
        release(world, end);
    }
    for (uint32_t n = 0; n < world->node_count; n++) {
        for (int i = 0; i < 2; i++) {
            rdma_id_release(&world->nodes[n].cm, world->nodes[n].listeners[i], now_of(world));
        }
        settle(world, n);
    }
}

struct sums {
    uint64_t worlds, successes, failures;
    uint64_t unmatched, out_of_state, malformed, backlog_full, retransmitted, stale;
    struct variety faults;
};

static void add_up(const struct world *world, struct sums *sums)
{
    for (uint32_t n = 0; n < world->node_count; n++) {
        const struct rdma_cm *cm = &world->nodes[n].cm;
        sums->unmatched += cm->cm.counters.unmatched;
        sums->out_of_state += cm->cm.counters.out_of_state;
        sums->malformed += cm->cm.counters.malformed;
        sums->stale += cm->cm.counters.stale;
        sums->backlog_full += cm->counters.backlog_full;
        sums->retransmitted += cm->cm.counters.retransmitted;
    }
    variety_add(&sums->faults, &world->link.settings.faults);
    sums->worlds++;
    sums->successes += world->successes;
    sums->failures += world->failures;
}

static void require_end(struct world *world)
{
    uint64_t malformed = 0;
    for (uint32_t n = 0; n < world->node_count; n++) {
        require_empty(world, &world->nodes[n]);
        malformed += world->nodes[n].cm.cm.counters.malformed;
        free_stock(&world->nodes[n]);
    }
    const struct sim_faults *faults = &world->link.settings.faults;
    REQUIRE(world, malformed == faults->struck[SIM_FAULT_damage]);
    REQUIRE(world, faults->millionths[SIM_FAULT_drop] < 1000000 || world->successes == 0);
    REQUIRE(world, world->link.crowded == 0);
    REQUIRE(world, sim_pool_taken(&world->stock->mads) == 0);
    REQUIRE(world, sim_pool_taken(&world->stock->errands) == 0);
}

static uint64_t run(uint64_t seed, struct stock *stock, struct sums *sums)
{
    struct world *world = world_make(seed, stock);
    uint64_t steps = 0;
    while (sim_step(&world->sim)) {
        REQUIRE(world, ++steps < 1000000);
    }
    release_all(world);
    while (sim_step(&world->sim)) {
        REQUIRE(world, ++steps < 2000000);
    }
    require_end(world);
    add_up(world, sums);
    const uint64_t digest = world->sim.digest;
    free(world);
    return digest;
}

static struct seeds seeds;
static struct stock stock;

static void print_sums(const struct sums *sums)
{
    printf("%llu worlds: %llu connections, %llu failures, %llu repetitions, %llu unmatched, "
           "%llu out of state, %llu malformed, %llu for want of backlog, %llu stale\n",
           (unsigned long long)sums->worlds, (unsigned long long)sums->successes,
           (unsigned long long)sums->failures, (unsigned long long)sums->retransmitted,
           (unsigned long long)sums->unmatched, (unsigned long long)sums->out_of_state,
           (unsigned long long)sums->malformed, (unsigned long long)sums->backlog_full,
           (unsigned long long)sums->stale);
}

/* The worlds are as varied as they should be. */
static void expect_variety(const struct sums *sums)
{
    assert_true(sums->successes > sums->worlds && sums->failures > sums->worlds);
    assert_true(sums->unmatched > 0 && sums->out_of_state > 0 && sums->malformed > 0);
    assert_true(sums->backlog_full > 0 && sums->stale > 0);
    const char *missing = variety_missing(
        &sums->faults, 1u << SIM_FAULT_drop | 1u << SIM_FAULT_duplicate | 1u << SIM_FAULT_late |
                           1u << SIM_FAULT_damage | 1u << SIM_FAULT_lazy);
    if (missing != NULL) {
        fail_msg("the fault %s never struck", missing);
    }
}

static void test_random_worlds(void **state)
{
    (void)state;
    struct sums sums = {0};
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        run(seed, &stock, &sums);
    }
    print_sums(&sums);
    if (sums.worlds >= 100) {
        expect_variety(&sums);
    }
}

static void test_a_seed_is_a_run(void **state)
{
    (void)state;
    struct sums sums = {0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_int_equal(run(seed, &stock, &sums), run(seed, &stock, &sums));
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 2000);
    link_pool_open(&stock.mads, LETTERS_MAX, CM_MAD_BYTES);
    sim_pool_open(&stock.errands, ERRANDS_MAX, sizeof(struct errand));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_a_seed_is_a_run),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    sim_pool_close(&stock.mads);
    sim_pool_close(&stock.errands);
    return seeds_finish(&seeds, failures);
}
