/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Ids, listeners, events and groups do what programs of librdmacm expect of them, and no
 *         memory is lost or used after it was given back.
 * Method  Two managers and a world that answers at once, in virtual time. After each step all
 *         memory is counted: events are in stock, in a channel or with the test, ids are in stock,
 *         released or the test's. Private data, depths and PSNs are compared at both ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "transport/ibta/rdma_cm.h"
#include "wire/inet.h"

#define CHANNELS 2
#define PORT     4000
#define IDS_MAX  64

struct node {
    struct rdma_cm cm;
    uint8_t ip[16];
    struct rdma_channel channels[CHANNELS];
    uint32_t events_made, ids_made, ids_back;
    struct rdma_id *ids[IDS_MAX]; /* All memory ever made. */
    bool mute;                    /* The world does not answer. */
};

struct pair {
    struct node nodes[2];
    struct instant now;
    uint32_t lose; /* The number of messages that are still to be lost. */
};

/* -- Memory -------------------------------------------------------------------------------------*/

static uint32_t count_of(const struct list *head)
{
    uint32_t count = 0;
    for (const struct list *node = head->next; node != head; node = node->next) {
        assert_ptr_equal(node->next->previous, node);
        count++;
    }
    return count;
}

static void check_node(const struct node *node)
{
    const struct rdma_cm *cm = &node->cm;
    uint32_t queued = 0;
    for (int c = 0; c < CHANNELS; c++) {
        queued += count_of(&node->channels[c].events);
    }
    assert_int_equal(count_of(&cm->spare_events), cm->spare_event_count);
    assert_int_equal(count_of(&cm->spare_ids), cm->spare_id_count);
    assert_int_equal(queued + cm->spare_event_count, node->events_made);
}

static struct rdma_id *make_id(struct node *node)
{
    struct rdma_id *id = calloc(1, sizeof(*id));
    assert_true(node->ids_made < IDS_MAX);
    node->ids[node->ids_made++] = id;
    return id;
}

static void prepare(struct node *node)
{
    while (rdma_cm_wants_event(&node->cm)) {
        struct rdma_event *event = calloc(1, sizeof(*event));
        node->events_made++;
        rdma_cm_give_event(&node->cm, event);
    }
    while (rdma_cm_wants_id(&node->cm)) {
        rdma_cm_give_id(&node->cm, make_id(node));
    }
    assert_true(node->cm.spare_event_count >= RDMA_SPARE_EVENTS);
    assert_true(node->cm.spare_id_count >= RDMA_SPARE_IDS);
}

/* -- The world ----------------------------------------------------------------------------------*/

static struct rdma_address address_of(const struct node *node, uint16_t port)
{
    struct rdma_address address = {.port = port, .known = true};
    memcpy(address.ip, node->ip, 16);
    address.ipv6 = !inet_is_ipv4(node->ip);
    return address;
}

static void answer_route(struct node *node, struct rdma_id *id, const struct rdma_address *source)
{
    struct rdma_route route = {.source = *source, .path_mtu = 3};
    memcpy(route.source_gid, node->ip, 16);
    rdma_cm_on_route(&node->cm, id, &route);
}

static void answer_server(struct pair *pair, struct node *node, struct rdma_id *id,
                          const uint8_t gid[16], uint32_t process)
{
    struct rdma_server server = {.process = process};
    memcpy(server.gid, gid, 16);
    memcpy(server.source_gid, node->ip, 16);
    rdma_cm_on_found(&node->cm, id, &server, pair->now);
}

static void answer_questions(struct pair *pair, struct node *node)
{
    struct rdma_id *id;
    enum rdma_question question;
    while (!node->mute && (id = rdma_cm_next_question(&node->cm, &question)) != NULL) {
        prepare(node);
        if (question == RDMA_QUESTION_ADDRESS) {
            struct rdma_address source = address_of(node, 0x7777);
            source.ipv6 = id->destination.ipv6;
            answer_route(node, id, &source);
        } else {
            answer_server(pair, node, id, id->peer_gid, 0);
        }
    }
}

static void take_back(struct node *node)
{
    struct rdma_id *id;
    while ((id = rdma_cm_next_released(&node->cm)) != NULL) {
        for (uint32_t i = 0; i < node->ids_made; i++) {
            if (node->ids[i] == id) {
                node->ids[i] = NULL;
                node->ids_back++;
                free(id);
                id = NULL;
                break;
            }
        }
        assert_null(id); /* It was one of ours, and not yet back. */
    }
}

/* Until nothing moves any more. */
static void settle(struct pair *pair)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (int n = 0; n < 2; n++) {
            struct node *node = &pair->nodes[n], *peer = &pair->nodes[!n];
            struct cm_mad mad;
            answer_questions(pair, node);
            while (cm_next_message(&node->cm.cm, &mad)) {
                moved = true;
                if (pair->lose > 0) {
                    pair->lose--;
                    continue;
                }
                prepare(peer);
                rdma_cm_on_message(&peer->cm, mad.source, mad.destination, mad.bytes, CM_MAD_BYTES,
                                   pair->now);
            }
            take_back(node);
            check_node(node);
        }
    }
}

static void pass_time(struct pair *pair, uint64_t ns)
{
    pair->now = instant_after(pair->now, ns);
    for (int n = 0; n < 2; n++) {
        prepare(&pair->nodes[n]);
        rdma_cm_on_time(&pair->nodes[n].cm, pair->now);
    }
    settle(pair);
}

static struct pair *pair_make_at(const uint8_t a[16], const uint8_t b[16])
{
    struct pair *pair = calloc(1, sizeof(*pair));
    pair->now.ns = 1000000;
    for (int n = 0; n < 2; n++) {
        struct node *node = &pair->nodes[n];
        rdma_cm_init(&node->cm, (uint64_t)n + 7, 0, 0x1000 + (uint64_t)n);
        memcpy(node->ip, n == 0 ? a : b, 16);
        for (int c = 0; c < CHANNELS; c++) {
            rdma_channel_init(&node->channels[c]);
        }
        prepare(node);
    }
    return pair;
}

static struct pair *pair_make(void)
{
    static const uint8_t ips[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                                       {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}};
    return pair_make_at(ips[0], ips[1]);
}

/* Lets go of all ids that are alive; all memory comes back. */
static void pair_free(struct pair *pair)
{
    for (int n = 0; n < 2; n++) {
        struct node *node = &pair->nodes[n];
        for (uint32_t i = 0; i < node->ids_made; i++) {
            if (node->ids[i] != NULL && node->ids[i]->alive && node->ids[i]->uid != 0) {
                rdma_id_release(&node->cm, node->ids[i], pair->now);
            }
        }
    }
    settle(pair);
    for (int i = 0; i < 20; i++) {
        pass_time(pair, 5000000000u);
    }
    for (int n = 0; n < 2; n++) {
        struct node *node = &pair->nodes[n];
        assert_int_equal(node->ids_made - node->ids_back, node->cm.spare_id_count);
        assert_int_equal(node->events_made, node->cm.spare_event_count);
        assert_true(cm_deadline(&node->cm.cm).ns == UINT64_MAX);
        struct list *spare;
        while ((spare = list_pop(&node->cm.spare_events)) != NULL) {
            free(CONTAINER_OF(spare, struct rdma_event, node));
        }
        while ((spare = list_pop(&node->cm.spare_ids)) != NULL) {
            free(CONTAINER_OF(spare, struct rdma_id, released));
        }
    }
    free(pair);
}

/* -- Calls of programs --------------------------------------------------------------------------*/

/* The oldest event of a channel, by value; fails the test if it is of another kind. */
static struct rdma_event expect_on(struct pair *pair, int n, int channel, enum rdma_event_kind kind)
{
    struct node *node = &pair->nodes[n];
    struct rdma_event *event = rdma_channel_take(&node->cm, &node->channels[channel]);
    assert_non_null(event);
    const struct rdma_event copy = *event;
    assert_int_equal(copy.kind, kind);
    rdma_cm_give_event(&node->cm, event);
    check_node(node);
    return copy;
}

static struct rdma_event expect(struct pair *pair, int n, enum rdma_event_kind kind)
{
    return expect_on(pair, n, 0, kind);
}

static void expect_silence_of(struct pair *pair, int n)
{
    for (int c = 0; c < CHANNELS; c++) {
        assert_true(list_empty(&pair->nodes[n].channels[c].events));
    }
}

static void expect_silence(struct pair *pair)
{
    expect_silence_of(pair, 0);
    expect_silence_of(pair, 1);
}

/* One request still waits on a channel, and nothing else anywhere. */
static void expect_silence_but(struct pair *pair, int n, int channel)
{
    for (int i = 0; i < 2 * CHANNELS; i++) {
        assert_int_equal(count_of(&pair->nodes[i / CHANNELS].channels[i % CHANNELS].events),
                         i == n * CHANNELS + channel);
    }
}

static struct rdma_id *create(struct pair *pair, int n, uint16_t port_space)
{
    struct node *node = &pair->nodes[n];
    struct rdma_id *id = make_id(node);
    rdma_id_init(id, &node->channels[0], port_space, 0x100 + node->ids_made);
    return id;
}

static struct rdma_id *listen_at(struct pair *pair, int n, uint16_t port_space,
                                 const struct rdma_address *address, uint32_t backlog)
{
    struct rdma_id *id = create(pair, n, port_space);
    assert_int_equal(rdma_id_bind(id, address, pair->nodes[n].ip), STATUS_OK);
    assert_int_equal(rdma_id_listen(&pair->nodes[n].cm, id, backlog), STATUS_OK);
    return id;
}

static struct rdma_id *listen_on(struct pair *pair, int n, uint16_t port_space, uint32_t backlog)
{
    const struct rdma_address address = address_of(&pair->nodes[n], PORT);
    return listen_at(pair, n, port_space, &address, backlog);
}

/* An id that is not bound is bound to any address, as an id of a program is. */
static enum status resolve_from_any(struct node *node, struct rdma_id *id,
                                    const struct rdma_address *destination)
{
    const struct rdma_address any = {.known = true, .ipv6 = destination->ipv6};
    if (rdma_id_is_idle(id)) {
        assert_int_equal(rdma_id_bind(id, &any, node->ip), STATUS_OK);
    }
    return rdma_id_resolve_address(&node->cm, id, destination);
}

static void resolve_address(struct pair *pair, int n, struct rdma_id *id, uint16_t port)
{
    const struct rdma_address peer = address_of(&pair->nodes[!n], port);
    prepare(&pair->nodes[n]);
    assert_int_equal(resolve_from_any(&pair->nodes[n], id, &peer), STATUS_OK);
    settle(pair);
}

static struct rdma_id *route(struct pair *pair, int n, uint16_t port_space, uint16_t port)
{
    struct rdma_id *id = create(pair, n, port_space);
    resolve_address(pair, n, id, port);
    assert_ptr_equal(expect(pair, n, RDMA_EVENT_ADDR_RESOLVED).id, id);
    prepare(&pair->nodes[n]);
    assert_int_equal(rdma_id_resolve_route(&pair->nodes[n].cm, id), STATUS_OK);
    settle(pair);
    assert_ptr_equal(expect(pair, n, RDMA_EVENT_ROUTE_RESOLVED).id, id);
    return id;
}

static struct rdma_parameters parameters_of(const char *text)
{
    struct rdma_parameters parameters = {.qpn = 0x123,
                                         .responder_resources = 3,
                                         .initiator_depth = 5,
                                         .retry_count = 6,
                                         .rnr_retry_count = 4,
                                         .flow_control = true,
                                         .srq = true,
                                         .private_bytes = (uint8_t)strlen(text)};
    memcpy(parameters.private_data, text, strlen(text));
    return parameters;
}

static void connect_id(struct pair *pair, int n, struct rdma_id *id)
{
    const struct rdma_parameters parameters = parameters_of("hello");
    prepare(&pair->nodes[n]);
    assert_int_equal(rdma_id_connect(&pair->nodes[n].cm, id, &parameters), STATUS_OK);
    settle(pair);
}

/* An id asks once in its life, as Linux has it: whatever the answer was. */
static void refuse_to_connect(struct pair *pair, int n, struct rdma_id *id)
{
    const struct rdma_parameters parameters = parameters_of("hello");
    assert_int_equal(rdma_id_connect(&pair->nodes[n].cm, id, &parameters), STATUS_INVALID);
}

/* Where nobody listens: the manager asks a few times more before it says so. */
static void connect_in_vain(struct pair *pair, int n, struct rdma_id *id)
{
    connect_id(pair, n, id);
    for (int i = 0; i < CM_REFUSALS_MAX; i++) {
        expect_silence(pair);
        pass_time(pair, CM_REFUSAL_PAUSE_NS << i);
    }
}

static enum status accept_id(struct pair *pair, int n, struct rdma_id *id)
{
    struct rdma_parameters parameters = parameters_of("welcome");
    parameters.qpn = 0x456;
    parameters.responder_resources = 2;
    parameters.initiator_depth = 1;
    prepare(&pair->nodes[n]);
    const enum status status =
        rdma_id_accept(&pair->nodes[n].cm, id, &parameters, 0x900, pair->now);
    assert_int_equal(id->uid == 0x900, status == STATUS_OK || id->state == RDMA_ID_CONNECTED);
    settle(pair);
    return status;
}

struct ends {
    struct rdma_id *listener, *active, *passive;
};

/* Node 0 connects to node 1, up to both ESTABLISHED (the active side's library adds its own). */
static struct ends establish(struct pair *pair)
{
    struct ends ends;
    ends.listener = listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    ends.active = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
    connect_id(pair, 0, ends.active);
    ends.passive = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_int_equal(accept_id(pair, 1, ends.passive), STATUS_OK);
    expect(pair, 0, RDMA_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rdma_id_establish(&pair->nodes[0].cm, ends.active, pair->now), STATUS_OK);
    settle(pair);
    assert_ptr_equal(expect(pair, 1, RDMA_EVENT_ESTABLISHED).id, ends.passive);
    expect_silence(pair);
    return ends;
}

/* -- Connections --------------------------------------------------------------------------------*/

static void expect_text(const struct rdma_parameters *parameters, const char *text, size_t room)
{
    assert_int_equal(parameters->private_bytes, room);
    assert_memory_equal(parameters->private_data, text, strlen(text));
    for (size_t i = strlen(text); i < room; i++) {
        assert_int_equal(parameters->private_data[i], 0);
    }
}

static void test_connect_and_disconnect(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct rdma_id *listener = listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
    assert_int_equal(a->source.port, 0x7777);
    connect_id(pair, 0, a);
    const struct rdma_event request = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST);
    struct rdma_id *b = request.id;
    assert_ptr_equal(request.listener, listener);
    assert_int_equal(listener->events_reported, 1);
    assert_int_equal(b->events_reported, 0);
    expect_text(&request.parameters, "hello", 56);
    assert_int_equal(request.parameters.responder_resources, 5); /* The peer's initiator depth. */
    assert_int_equal(request.parameters.initiator_depth, 3);
    assert_int_equal(request.parameters.retry_count, 6);
    assert_int_equal(request.parameters.rnr_retry_count, 4);
    assert_int_equal(request.parameters.qpn, 0x123);
    assert_true(request.parameters.flow_control && request.parameters.srq);
    assert_int_equal(b->source.port, PORT);
    assert_int_equal(b->destination.port, 0x7777);
    assert_memory_equal(b->source.ip, pair->nodes[1].ip, 16);
    assert_memory_equal(b->destination.ip, pair->nodes[0].ip, 16);
    assert_memory_equal(b->peer_gid, pair->nodes[0].ip, 16);
    assert_int_equal(b->path_mtu, 3);
    assert_int_equal(accept_id(pair, 1, b), STATUS_OK);
    const struct rdma_event response = expect(pair, 0, RDMA_EVENT_CONNECT_RESPONSE);
    expect_text(&response.parameters, "welcome", 196);
    assert_int_equal(response.parameters.responder_resources, 1);
    assert_int_equal(response.parameters.initiator_depth, 2);
    assert_int_equal(response.parameters.qpn, 0x456);
    /* Both ends have all that a queue pair needs. */
    assert_int_equal(a->remote_qpn, 0x456);
    assert_int_equal(b->remote_qpn, 0x123);
    assert_int_equal(a->starting_psn, b->remote_starting_psn);
    assert_int_equal(b->starting_psn, a->remote_starting_psn);
    assert_true(a->starting_psn <= 0xffffff && b->starting_psn <= 0xffffff);
    assert_int_equal(a->responder_resources, 1);
    assert_int_equal(b->initiator_depth, 1);
    assert_int_equal(a->initiator_depth, 2);
    assert_int_equal(b->responder_resources, 2);
    assert_int_equal(rdma_id_establish(&pair->nodes[0].cm, a, pair->now), STATUS_OK);
    settle(pair);
    assert_ptr_equal(expect(pair, 1, RDMA_EVENT_ESTABLISHED).id, b);
    assert_int_equal(rdma_id_disconnect(&pair->nodes[0].cm, a, pair->now), STATUS_OK);
    settle(pair);
    assert_ptr_equal(expect(pair, 0, RDMA_EVENT_DISCONNECTED).id, a);
    assert_ptr_equal(expect(pair, 1, RDMA_EVENT_DISCONNECTED).id, b);
    /* As both may call it when they hear of it. */
    assert_int_equal(rdma_id_disconnect(&pair->nodes[1].cm, b, pair->now), STATUS_OK);
    expect_silence(pair);
    pass_time(pair, 1000000000u);
    assert_ptr_equal(expect(pair, 0, RDMA_EVENT_TIMEWAIT_EXIT).id, a);
    assert_ptr_equal(expect(pair, 1, RDMA_EVENT_TIMEWAIT_EXIT).id, b);
    assert_int_equal(rdma_id_disconnect(&pair->nodes[1].cm, b, pair->now), STATUS_OK);
    expect_silence(pair);
    pair_free(pair);
}

/* An id of any state tells its own channel something; that is no event of a connection. */
static void test_own_words(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct rdma_cm *cm = &pair->nodes[0].cm;
    const struct ends ends = establish(pair);
    struct rdma_id *a = ends.active;
    assert_int_equal(rdma_id_tell(cm, a, RDMA_EVENT_USER, -7, 0x1122334455667788), STATUS_OK);
    assert_int_equal(rdma_id_tell(cm, a, RDMA_EVENT_INTERNAL, 0, 16), STATUS_OK);
    const struct rdma_event user = expect(pair, 0, RDMA_EVENT_USER);
    assert_ptr_equal(user.id, a);
    assert_int_equal(user.status, -7);
    assert_int_equal(user.argument, 0x1122334455667788);
    assert_int_equal(expect(pair, 0, RDMA_EVENT_INTERNAL).argument, 16);
    assert_int_equal(rdma_id_tell(cm, a, RDMA_EVENT_ESTABLISHED, 0, 0), STATUS_INVALID);
    expect_silence(pair);
    struct rdma_event *stock[RDMA_SPARE_EVENTS];
    uint32_t taken = 0;
    while (taken < RDMA_SPARE_EVENTS && (stock[taken] = rdma_cm_take_spare_event(cm)) != NULL) {
        taken++;
    }
    assert_int_equal(rdma_id_tell(cm, a, RDMA_EVENT_USER, 0, 0), STATUS_FULL);
    while (taken > 0) {
        rdma_cm_give_event(cm, stock[--taken]);
    }
    pair_free(pair);
}

/* PSNs are drawn, not counted. */
static void test_starting_psns(void **state)
{
    (void)state;
    uint32_t same = 0, last = 0;
    for (int i = 0; i < 20; i++) {
        struct pair *pair = pair_make();
        prng_init(&pair->nodes[0].cm.cm.prng, (uint64_t)i * 77 + 1);
        const struct ends ends = establish(pair);
        same += ends.active->starting_psn == last;
        last = ends.active->starting_psn;
        pair_free(pair);
    }
    assert_int_equal(same, 0);
}

static void test_private_data_room(void **state)
{
    (void)state;
    static const struct {
        uint16_t port_space;
        uint8_t request, reply;
    } rooms[] = {{RDMA_PORT_SPACE_TCP, 56, 196}, {RDMA_PORT_SPACE_UDP, 180, 136}};
    for (size_t i = 0; i < COUNT_OF(rooms); i++) {
        struct pair *pair = pair_make();
        struct rdma_parameters much = {.qpn = 1};
        memset(much.private_data, 0xab, sizeof(much.private_data));
        listen_on(pair, 1, rooms[i].port_space, 8);
        struct rdma_id *a = route(pair, 0, rooms[i].port_space, PORT);
        much.private_bytes = (uint8_t)(rooms[i].request + 1);
        assert_int_equal(rdma_id_connect(&pair->nodes[0].cm, a, &much), STATUS_INVALID);
        much.private_bytes--;
        assert_int_equal(rdma_id_connect(&pair->nodes[0].cm, a, &much), STATUS_OK);
        settle(pair);
        const struct rdma_event request = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST);
        assert_int_equal(request.parameters.private_bytes, rooms[i].request);
        assert_memory_equal(request.parameters.private_data, much.private_data, rooms[i].request);
        much.private_bytes = (uint8_t)(rooms[i].reply + 1);
        assert_int_equal(rdma_id_accept(&pair->nodes[1].cm, request.id, &much, 1, pair->now),
                         STATUS_INVALID);
        much.private_bytes--;
        assert_int_equal(rdma_id_accept(&pair->nodes[1].cm, request.id, &much, 1, pair->now),
                         STATUS_OK);
        request.id->uid = 1;
        settle(pair);
        const struct rdma_event answer =
            expect(pair, 0, i == 0 ? RDMA_EVENT_CONNECT_RESPONSE : RDMA_EVENT_ESTABLISHED);
        assert_int_equal(answer.parameters.private_bytes, rooms[i].reply);
        assert_memory_equal(answer.parameters.private_data, much.private_data, rooms[i].reply);
        pair_free(pair);
    }
}

static void test_rejections(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
    connect_id(pair, 0, a);
    struct rdma_id *b = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    uint8_t much[255] = {'n', 'o'};
    assert_int_equal(rdma_id_reject(&pair->nodes[1].cm, b, CM_REASON_CONSUMER, much, 149),
                     STATUS_INVALID);
    assert_int_equal(rdma_id_reject(&pair->nodes[1].cm, b, CM_REASON_CONSUMER, much, 148),
                     STATUS_OK);
    settle(pair);
    const struct rdma_event rejected = expect(pair, 0, RDMA_EVENT_REJECTED);
    assert_int_equal(rejected.status, CM_REASON_CONSUMER);
    expect_text(&rejected.parameters, "no", 148);
    assert_int_equal(rdma_id_reject(&pair->nodes[1].cm, b, CM_REASON_CONSUMER, NULL, 0),
                     STATUS_INVALID);
    assert_int_equal(accept_id(pair, 1, b), STATUS_INVALID);
    b->uid = 1;
    /* The active side rejects the reply. */
    struct rdma_id *second = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
    connect_id(pair, 0, second);
    struct rdma_id *c = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_int_equal(accept_id(pair, 1, c), STATUS_OK);
    expect(pair, 0, RDMA_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rdma_id_reject(&pair->nodes[0].cm, second, CM_REASON_VENDOR_OPTION, NULL, 0),
                     STATUS_OK);
    settle(pair);
    assert_int_equal(expect(pair, 1, RDMA_EVENT_REJECTED).status, CM_REASON_VENDOR_OPTION);
    expect_silence(pair);
    pair_free(pair);
}

/* The question whether a request would find a listener gets the answer that the request would
 * get. */
static void test_listens(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct rdma_cm *cm = &pair->nodes[1].cm;
    struct cm_addresses addresses = {.source_port = 5};
    memcpy(addresses.source, pair->nodes[0].ip, 16);
    memcpy(addresses.destination, pair->nodes[1].ip, 16);
    const struct rdma_id *id = listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    const uint64_t service = cm_service_id(RDMA_PORT_SPACE_TCP, id->source.port);
    assert_true(rdma_cm_listens(cm, service, &addresses, false));
    assert_false(rdma_cm_listens(cm, service, &addresses, true));
    assert_false(rdma_cm_listens(cm, service + 1, &addresses, false));
    assert_false(rdma_cm_listens(&pair->nodes[0].cm, service, &addresses, false));
    memcpy(addresses.destination, pair->nodes[0].ip, 16);
    assert_false(rdma_cm_listens(cm, service, &addresses, false));
    pair_free(pair);
}

/* Nobody listens: of RC a rejection, of UD an unreachable service. The id is of no more use. */
static void test_no_listener(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    struct rdma_id *other_port = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT + 1);
    connect_in_vain(pair, 0, other_port);
    assert_int_equal(expect(pair, 0, RDMA_EVENT_REJECTED).status, CM_REASON_INVALID_SERVICE_ID);
    struct rdma_id *datagrams = route(pair, 0, RDMA_PORT_SPACE_UDP, PORT);
    connect_in_vain(pair, 0, datagrams);
    assert_int_equal(expect(pair, 0, RDMA_EVENT_UNREACHABLE).status, CM_SIDR_UNSUPPORTED);
    struct rdma_id *other_space = route(pair, 0, RDMA_PORT_SPACE_IB, PORT);
    connect_in_vain(pair, 0, other_space);
    assert_int_equal(expect(pair, 0, RDMA_EVENT_REJECTED).status, CM_REASON_INVALID_SERVICE_ID);
    assert_int_equal(pair->nodes[1].cm.counters.no_listener, 3 * (1 + CM_REFUSALS_MAX));
    expect_silence(pair);
    refuse_to_connect(pair, 0, datagrams);
    pair_free(pair);
}

/* A program that connects a little early does not notice. */
static void test_listener_comes_late(void **state)
{
    (void)state;
    static const uint16_t spaces[] = {RDMA_PORT_SPACE_TCP, RDMA_PORT_SPACE_UDP};
    for (size_t i = 0; i < COUNT_OF(spaces); i++) {
        struct pair *pair = pair_make();
        connect_id(pair, 0, route(pair, 0, spaces[i], PORT));
        assert_int_equal(pair->nodes[1].cm.counters.no_listener, 1);
        listen_on(pair, 1, spaces[i], 8);
        expect_silence(pair);
        pass_time(pair, CM_REFUSAL_PAUSE_NS);
        struct rdma_id *child = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
        assert_int_equal(accept_id(pair, 1, child), STATUS_OK);
        expect(pair, 0,
               spaces[i] == RDMA_PORT_SPACE_TCP ? RDMA_EVENT_CONNECT_RESPONSE
                                                : RDMA_EVENT_ESTABLISHED);
        expect_silence(pair);
        pair_free(pair);
    }
}

/* The world knows without asking that nobody serves the port. */
static void test_nobody_serves(void **state)
{
    (void)state;
    for (int datagrams = 0; datagrams < 2; datagrams++) {
        struct pair *pair = pair_make();
        struct node *node = &pair->nodes[0];
        struct rdma_id *id =
            route(pair, 0, datagrams ? RDMA_PORT_SPACE_UDP : RDMA_PORT_SPACE_TCP, PORT);
        const struct rdma_parameters parameters = parameters_of("");
        enum rdma_question question;
        node->mute = true;
        assert_int_equal(rdma_id_connect(&node->cm, id, &parameters), STATUS_OK);
        assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
        assert_int_equal(question, RDMA_QUESTION_SERVER);
        assert_null(rdma_cm_next_question(&node->cm, &question));
        rdma_cm_on_nobody(&node->cm, id);
        if (datagrams) {
            assert_int_equal(expect(pair, 0, RDMA_EVENT_UNREACHABLE).status, CM_SIDR_UNSUPPORTED);
        } else {
            assert_int_equal(expect(pair, 0, RDMA_EVENT_REJECTED).status,
                             CM_REASON_INVALID_SERVICE_ID);
        }
        rdma_cm_on_nobody(&node->cm, id); /* It no longer waits. */
        expect_silence(pair);
        refuse_to_connect(pair, 0, id);
        pair_free(pair);
    }
}

static void test_unreachable(void **state)
{
    (void)state;
    for (int datagrams = 0; datagrams < 2; datagrams++) {
        struct pair *pair = pair_make();
        struct rdma_id *id =
            route(pair, 0, datagrams ? RDMA_PORT_SPACE_UDP : RDMA_PORT_SPACE_TCP, PORT);
        pair->lose = UINT32_MAX;
        connect_id(pair, 0, id);
        for (int i = 0; i < 20; i++) {
            pass_time(pair, 5000000000u);
        }
        const struct rdma_event event = expect(pair, 0, RDMA_EVENT_UNREACHABLE);
        assert_int_equal(event.status, -110);
        expect_silence(pair);
        pair->lose = 0;
        refuse_to_connect(pair, 0, id);
        pair_free(pair);
    }
}

/* Address resolution fails: the id is bound, and may try again. */
static void test_address_errors(void **state)
{
    (void)state;
    for (int bound = 0; bound < 2; bound++) {
        struct pair *pair = pair_make();
        struct node *node = &pair->nodes[0];
        struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
        const struct rdma_address here = address_of(node, 7);
        struct rdma_address other = here;
        other.ipv6 = !here.ipv6;
        assert_int_equal(rdma_id_resolve_address(&node->cm, id, &here), STATUS_INVALID);
        if (bound) {
            assert_int_equal(rdma_id_bind(id, &here, node->ip), STATUS_OK);
            assert_int_equal(rdma_id_bind(id, &here, node->ip), STATUS_INVALID);
        }
        node->mute = true;
        resolve_address(pair, 0, id, PORT);
        assert_int_equal(rdma_id_resolve_address(&node->cm, id, &here), STATUS_INVALID);
        enum rdma_question question;
        assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
        assert_int_equal(question, RDMA_QUESTION_ADDRESS);
        rdma_cm_on_no_route(&node->cm, id, 101);
        assert_int_equal(expect(pair, 0, RDMA_EVENT_ADDR_ERROR).status, -101);
        assert_int_equal(id->state, RDMA_ID_BOUND);
        assert_int_equal(id->source.port, bound ? 7 : 0);
        assert_int_equal(rdma_id_resolve_address(&node->cm, id, &other), STATUS_INVALID);
        node->mute = false;
        resolve_address(pair, 0, id, PORT);
        expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
        pair_free(pair);
    }
}

/* Every wish in a state that does not allow it is refused, and changes nothing. */
static void test_wishes_out_of_place(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[0];
    const struct rdma_parameters parameters = parameters_of("");
    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(rdma_id_resolve_route(&node->cm, id), STATUS_INVALID);
        assert_int_equal(rdma_id_listen(&node->cm, id, 1), STATUS_INVALID);
        assert_int_equal(rdma_id_connect(&node->cm, id, &parameters), STATUS_INVALID);
        assert_int_equal(rdma_id_accept(&node->cm, id, &parameters, 1, pair->now), STATUS_INVALID);
        assert_int_equal(rdma_id_establish(&node->cm, id, pair->now), STATUS_INVALID);
        assert_int_equal(rdma_id_note_established(&node->cm, id), STATUS_INVALID);
        assert_int_equal(rdma_id_reject(&node->cm, id, CM_REASON_CONSUMER, NULL, 0),
                         STATUS_INVALID);
        assert_int_equal(rdma_id_disconnect(&node->cm, id, pair->now), STATUS_INVALID);
        id = listen_on(pair, 0, RDMA_PORT_SPACE_TCP, 1);
    }
    const struct ends ends = establish(pair);
    assert_int_equal(rdma_id_connect(&node->cm, ends.active, &parameters), STATUS_INVALID);
    assert_int_equal(rdma_id_establish(&node->cm, ends.active, pair->now), STATUS_INVALID);
    assert_int_equal(accept_id(pair, 1, ends.passive), STATUS_INVALID);
    expect_silence(pair);
    pair_free(pair);
}

static void test_note_established(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
    connect_id(pair, 0, a);
    struct rdma_id *b = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_int_equal(accept_id(pair, 1, b), STATUS_OK);
    expect(pair, 0, RDMA_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rdma_id_note_established(&pair->nodes[1].cm, b), STATUS_OK);
    expect(pair, 1, RDMA_EVENT_ESTABLISHED);
    assert_int_equal(rdma_id_establish(&pair->nodes[0].cm, a, pair->now), STATUS_OK);
    settle(pair); /* The RTU tells nothing new. */
    expect_silence(pair);
    pair_free(pair);
}

/* -- Listeners ----------------------------------------------------------------------------------*/

static struct rdma_id *asked_of(struct pair *pair, uint16_t port_space)
{
    struct rdma_id *a = route(pair, 0, port_space, PORT);
    connect_id(pair, 0, a);
    const struct rdma_event request = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST);
    request.id->uid = 1; /* The test's from now on. */
    return request.listener;
}

static void test_listener_of_the_address_before_any(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct rdma_address any = {.ip = {[10] = 0xff, [11] = 0xff}, .port = PORT, .known = true};
    struct rdma_id *everywhere = listen_at(pair, 1, RDMA_PORT_SPACE_TCP, &any, 8);
    assert_ptr_equal(asked_of(pair, RDMA_PORT_SPACE_TCP), everywhere);
    struct rdma_id *here = listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    assert_ptr_equal(asked_of(pair, RDMA_PORT_SPACE_TCP), here);
    const struct rdma_address elsewhere = {
        .ip = {[10] = 0xff, [11] = 0xff, [12] = 9}, .port = PORT, .known = true};
    listen_at(pair, 1, RDMA_PORT_SPACE_TCP, &elsewhere, 8);
    assert_ptr_equal(asked_of(pair, RDMA_PORT_SPACE_TCP), here);
    rdma_id_release(&pair->nodes[1].cm, here, pair->now);
    assert_ptr_equal(asked_of(pair, RDMA_PORT_SPACE_TCP), everywhere);
    pair_free(pair);
}

/* On any IPv6 address listens who listens to IPv4, too, unless it said otherwise. */
static void test_listeners_for_any_address(void **state)
{
    (void)state;
    static const uint8_t v4[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
                                      {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
    static const uint8_t v6[2][16] = {{0xfd, [15] = 1}, {0xfd, [15] = 2}};
    const struct rdma_address any4 = {
        .ip = {[10] = 0xff, [11] = 0xff}, .port = PORT, .known = true};
    const struct rdma_address any6 = {.port = PORT, .known = true, .ipv6 = true};
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        for (int order = 0; order < 2; order++) {
            struct pair *pair = ipv6 ? pair_make_at(v6[0], v6[1]) : pair_make_at(v4[0], v4[1]);
            struct rdma_id *for4 = NULL, *for6 = NULL;
            for (int i = 0; i < 2; i++) {
                if (i == order) {
                    for4 = listen_at(pair, 1, RDMA_PORT_SPACE_TCP, &any4, 8);
                } else {
                    for6 = create(pair, 1, RDMA_PORT_SPACE_TCP);
                    assert_int_equal(rdma_id_set_ipv6_only(for6, true), STATUS_OK);
                    assert_int_equal(rdma_id_bind(for6, &any6, pair->nodes[1].ip), STATUS_OK);
                    assert_int_equal(rdma_id_listen(&pair->nodes[1].cm, for6, 8), STATUS_OK);
                }
            }
            assert_ptr_equal(asked_of(pair, RDMA_PORT_SPACE_TCP), ipv6 ? for6 : for4);
            rdma_id_release(&pair->nodes[1].cm, ipv6 ? for6 : for4, pair->now);
            struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
            connect_in_vain(pair, 0, a);
            expect(pair, 0, RDMA_EVENT_REJECTED);
            pair_free(pair);
        }
        struct pair *pair = ipv6 ? pair_make_at(v6[0], v6[1]) : pair_make_at(v4[0], v4[1]);
        struct rdma_id *both = listen_at(pair, 1, RDMA_PORT_SPACE_TCP, &any6, 8);
        assert_ptr_equal(asked_of(pair, RDMA_PORT_SPACE_TCP), both);
        pair_free(pair);
    }
}

static void test_backlog(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 2);
    for (int i = 0; i < 3; i++) {
        connect_id(pair, 0, route(pair, 0, RDMA_PORT_SPACE_TCP, PORT));
    }
    assert_int_equal(pair->nodes[1].cm.counters.backlog_full, 1);
    /* The third has been told nothing, and asks again. */
    expect_silence_of(pair, 0);
    /* A request that the program has heard of makes room. */
    expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id->uid = 1;
    pass_time(pair, 300000000u);
    for (int i = 0; i < 2; i++) {
        expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id->uid = 1;
    }
    expect_silence(pair);
    pair_free(pair);
}

/* Requests that a peer may not make, and messages that are no request of this service at all. */
static void test_requests_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t transport, path_mtu, version;
        enum cm_reason reason;
    } cases[] = {
        {CM_TRANSPORT_RC, 3, 4, 0},
        {CM_TRANSPORT_RC, 4, 4, 0},
        {CM_TRANSPORT_UC, 1, 4, CM_REASON_INVALID_TRANSPORT},  /* Its listener is RC's. */
        {CM_TRANSPORT_RC, 5, 4, CM_REASON_INVALID_PATH_MTU},   /* More than the port has. */
        {CM_TRANSPORT_RC, 3, 6, CM_REASON_INVALID_SERVICE_ID}, /* No listener on that address. */
        {CM_TRANSPORT_RD, 3, 4, CM_REASON_INVALID_TRANSPORT},
        {CM_TRANSPORT_OTHER, 3, 4, CM_REASON_INVALID_TRANSPORT},
        {CM_TRANSPORT_RC, 0, 4, CM_REASON_INVALID_PATH_MTU},
        {CM_TRANSPORT_RC, 6, 4, CM_REASON_INVALID_PATH_MTU},
        {CM_TRANSPORT_RC, 3, 5, CM_REASON_UNSUPPORTED_REQUEST},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pair *pair = pair_make();
        struct node *node = &pair->nodes[1];
        listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
        node->cm.path_mtu_max = 4;
        struct cm_message req = {.attribute = CM_REQ,
                                 .transaction_id = 5,
                                 .local_id = 6,
                                 .req = {.service_id = cm_service_id(RDMA_PORT_SPACE_TCP, PORT),
                                         .transport = cases[i].transport,
                                         .path_mtu = cases[i].path_mtu}};
        uint8_t bytes[CM_MAD_BYTES];
        req.private_data[1] = (uint8_t)(cases[i].version << 4);
        memcpy(req.private_data + 32, node->ip + 12, 4);
        cm_encode(&req, bytes);
        rdma_cm_on_message(&node->cm, pair->nodes[0].ip, node->ip, bytes, sizeof(bytes), pair->now);
        check_node(node);
        struct cm_mad mad;
        struct cm_message answer;
        const bool answered = cm_next_message(&node->cm.cm, &mad);
        assert_int_equal(answered, cases[i].reason != 0);
        if (answered) {
            assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &answer), CM_GOOD);
            assert_int_equal(answer.attribute, CM_REJ);
            assert_int_equal(answer.rej.reason, cases[i].reason);
            assert_int_equal(answer.remote_id, 6);
            expect_silence(pair);
        } else {
            const struct rdma_event request = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST);
            assert_int_equal(request.id->unreliable, cases[i].transport == CM_TRANSPORT_UC);
            request.id->uid = 1;
        }
        pair_free(pair);
    }
}

/* A17.6.1: a request may say of LIDs what it likes, also of another path's: no refusal speaks of
 * them. */
static void test_lids_mean_nothing(void **state)
{
    (void)state;
    static const uint16_t lids[] = {0, 1, 0xbfff, 0xc000, 0xffff};
    for (size_t i = 0; i < COUNT_OF(lids) * COUNT_OF(lids); i++) {
        struct pair *pair = pair_make();
        struct node *node = &pair->nodes[1];
        listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
        const uint16_t local = lids[i / COUNT_OF(lids)], remote = lids[i % COUNT_OF(lids)];
        struct cm_message req = {.attribute = CM_REQ,
                                 .transaction_id = 5,
                                 .local_id = 6,
                                 .req = {.service_id = cm_service_id(RDMA_PORT_SPACE_TCP, PORT),
                                         .path_mtu = 3,
                                         .primary = {.local_lid = local, .remote_lid = remote}},
                                 .private_data = {[1] = 4 << 4}};
        uint8_t bytes[CM_MAD_BYTES];
        memcpy(req.private_data + 32, node->ip + 12, 4);
        cm_encode(&req, bytes);
        /* The alternate path, as wide as the primary, behind it. */
        memset(bytes + CM_HEADER_BYTES + 96, (uint8_t)local, 44);
        rdma_cm_on_message(&node->cm, pair->nodes[0].ip, node->ip, bytes, sizeof(bytes), pair->now);
        struct cm_mad mad;
        assert_false(cm_next_message(&node->cm.cm, &mad));
        expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id->uid = 1;
        pair_free(pair);
    }
}

/* -- The owner of events ------------------------------------------------------------------------*/

static void test_migrate(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[1];
    struct rdma_id *listener = listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    for (int i = 0; i < 3; i++) {
        connect_id(pair, 0, route(pair, 0, RDMA_PORT_SPACE_TCP, PORT));
    }
    struct rdma_id *first = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_int_equal(accept_id(pair, 1, first), STATUS_OK);
    /* The listener's requests move along in their order; an id that was told of stays. */
    struct list *oldest = node->channels[0].events.next;
    rdma_id_migrate(&node->cm, listener, &node->channels[1]);
    rdma_id_migrate(&node->cm, listener, &node->channels[1]);
    assert_true(list_empty(&node->channels[0].events));
    assert_ptr_equal(node->channels[1].events.next, oldest);
    struct rdma_id *second = expect_on(pair, 1, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_ptr_equal(second->channel, &node->channels[1]);
    assert_ptr_equal(first->channel, &node->channels[0]);
    second->uid = 1;
    /* An id's own events move, and nobody else's. */
    struct node *active = &pair->nodes[0];
    struct rdma_id *a = CONTAINER_OF(active->channels[0].events.next, struct rdma_event, node)->id;
    struct rdma_id *other = create(pair, 0, RDMA_PORT_SPACE_TCP);
    resolve_address(pair, 0, other, PORT);
    rdma_id_migrate(&active->cm, a, &active->channels[1]);
    assert_ptr_equal(expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED).id, other);
    assert_ptr_equal(expect_on(pair, 0, 1, RDMA_EVENT_CONNECT_RESPONSE).id, a);
    expect_silence_but(pair, 1, 1);
    pair_free(pair);
}

/* An id has the events that it will be told of: not those of others on its channel; without a
 * channel it has none. */
static void test_has_events(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
    struct rdma_id *other = create(pair, 0, RDMA_PORT_SPACE_TCP);
    const struct rdma_id alone = {0};
    assert_false(rdma_id_has_events(&alone));
    assert_false(rdma_id_has_events(id));
    resolve_address(pair, 0, other, PORT);
    assert_true(rdma_id_has_events(other));
    assert_false(rdma_id_has_events(id));
    resolve_address(pair, 0, id, PORT);
    assert_true(rdma_id_has_events(id));
    assert_ptr_equal(expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED).id, other);
    assert_false(rdma_id_has_events(other));
    assert_true(rdma_id_has_events(id));
    expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
    assert_false(rdma_id_has_events(id));
    pair_free(pair);
}

/* Which channels' readiness may have changed is said once for each. */
static void test_changed_channels(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[0];
    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
    assert_null(rdma_cm_next_changed(&node->cm));
    resolve_address(pair, 0, id, PORT);
    assert_ptr_equal(rdma_cm_next_changed(&node->cm), &node->channels[0]);
    assert_null(rdma_cm_next_changed(&node->cm));
    expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
    assert_ptr_equal(rdma_cm_next_changed(&node->cm), &node->channels[0]);
    assert_int_equal(rdma_id_resolve_route(&node->cm, id), STATUS_OK);
    rdma_id_migrate(&node->cm, id, &node->channels[1]);
    assert_ptr_equal(rdma_cm_next_changed(&node->cm), &node->channels[0]);
    assert_ptr_equal(rdma_cm_next_changed(&node->cm), &node->channels[1]);
    assert_null(rdma_cm_next_changed(&node->cm));
    rdma_id_release(&node->cm, id, pair->now); /* Its event goes. */
    rdma_channel_forget(&node->channels[1]);
    assert_null(rdma_cm_next_changed(&node->cm));
    pair_free(pair);
}

/* A listener goes: requests its program has not heard of are refused. */
static void test_listener_goes_with_requests_pending(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct rdma_id *listener = listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    for (int i = 0; i < 3; i++) {
        connect_id(pair, 0, route(pair, 0, RDMA_PORT_SPACE_TCP, PORT));
    }
    struct rdma_id *heard = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    rdma_id_release(&pair->nodes[1].cm, listener, pair->now);
    settle(pair);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(expect(pair, 0, RDMA_EVENT_REJECTED).status, CM_REASON_CONSUMER);
    }
    assert_int_equal(accept_id(pair, 1, heard), STATUS_OK);
    expect(pair, 0, RDMA_EVENT_CONNECT_RESPONSE);
    expect_silence(pair);
    pair_free(pair);
}

static void test_release_with_events_pending(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct ends ends = establish(pair);
    assert_int_equal(rdma_id_disconnect(&pair->nodes[0].cm, ends.active, pair->now), STATUS_OK);
    settle(pair); /* DISCONNECTED waits at both. */
    const uint32_t back = pair->nodes[0].ids_back;
    rdma_id_release(&pair->nodes[0].cm, ends.active, pair->now);
    settle(pair);
    assert_int_equal(pair->nodes[0].ids_back, back + 1);
    assert_true(list_empty(&pair->nodes[0].channels[0].events));
    assert_ptr_equal(expect(pair, 1, RDMA_EVENT_DISCONNECTED).id, ends.passive);
    pair_free(pair);
}

/* A peer that takes its request back before the program has answered, or even heard. */
static void test_request_taken_back(void **state)
{
    (void)state;
    for (int heard = 0; heard < 2; heard++) {
        struct pair *pair = pair_make();
        listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
        struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
        struct rdma_id *b = NULL;
        connect_id(pair, 0, a);
        if (heard) {
            b = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
        }
        rdma_id_release(&pair->nodes[0].cm, a, pair->now);
        settle(pair);
        if (!heard) {
            b = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
        }
        /* The program has not named it yet: it learns of the end when it accepts. */
        expect_silence(pair);
        assert_int_equal(accept_id(pair, 1, b), STATUS_INVALID);
        b->uid = 1;
        pair_free(pair);
    }
}

/* Answers that come for an id which was released while it waited. */
static void test_answers_after_release(void **state)
{
    (void)state;
    for (int finding = 0; finding < 2; finding++) {
        struct pair *pair = pair_make();
        struct node *node = &pair->nodes[0];
        struct rdma_id *id;
        enum rdma_question question;
        if (finding) {
            const struct rdma_parameters parameters = parameters_of("");
            id = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
            assert_int_equal(rdma_id_connect(&node->cm, id, &parameters), STATUS_OK);
        } else {
            const struct rdma_address peer = address_of(&pair->nodes[1], PORT);
            id = create(pair, 0, RDMA_PORT_SPACE_TCP);
            assert_int_equal(resolve_from_any(node, id, &peer), STATUS_OK);
        }
        assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
        rdma_id_release(&node->cm, id, pair->now);
        answer_route(node, id, &id->source);
        rdma_cm_on_no_route(&node->cm, id, 101);
        answer_server(pair, node, id, pair->nodes[1].ip, 0);
        rdma_cm_on_nobody(&node->cm, id);
        struct cm_mad mad;
        assert_false(cm_next_message(&node->cm.cm, &mad));
        expect_silence(pair);
        pair_free(pair);
    }
}

/* MADs name the process that the world found last; an answer without one changes nothing, nor
 * does one that nobody waits for any more. */
static void test_process_of_the_server(void **state)
{
    (void)state;
    for (int datagrams = 0; datagrams < 2; datagrams++) {
        struct pair *pair = pair_make();
        struct node *node = &pair->nodes[0];
        const uint8_t *gid = pair->nodes[1].ip;
        const struct rdma_parameters parameters = parameters_of("");
        struct rdma_id *id =
            route(pair, 0, datagrams ? RDMA_PORT_SPACE_UDP : RDMA_PORT_SPACE_TCP, PORT);
        enum rdma_question question;
        struct cm_mad mad;
        node->mute = true;
        answer_server(pair, node, id, gid, 5); /* Not asked for. */
        assert_int_equal(id->connection.process, 0);
        prepare(node);
        assert_int_equal(rdma_id_connect(&node->cm, id, &parameters), STATUS_OK);
        assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
        assert_int_equal(question, RDMA_QUESTION_SERVER);
        answer_server(pair, node, id, gid, 7);
        answer_server(pair, node, id, node->ip, 8); /* No longer asked for. */
        assert_true(cm_next_message(&node->cm.cm, &mad));
        assert_int_equal(mad.process, 7);
        assert_memory_equal(mad.destination, gid, 16);
        node->mute = false;
        pair_free(pair);
    }
}

/* -- Options and progress -----------------------------------------------------------------------*/

/* The options that a program sets are in the request that the peer gets; bad values change
 * nothing. */
static void test_options(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct rdma_id *listener = create(pair, 1, RDMA_PORT_SPACE_IB);
    const struct rdma_address here = address_of(&pair->nodes[1], PORT);
    rdma_id_set_service(listener, ROCE_SERVICE_UC);
    assert_int_equal(rdma_id_bind(listener, &here, pair->nodes[1].ip), STATUS_OK);
    assert_int_equal(rdma_id_listen(&pair->nodes[1].cm, listener, 1), STATUS_OK);
    assert_int_equal(rdma_id_set_ipv6_only(listener, true), STATUS_INVALID);
    assert_false(listener->ipv6_only);

    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_IB);
    rdma_id_set_service(id, ROCE_SERVICE_UD);
    assert_true(id->datagrams && !id->unreliable);
    rdma_id_set_service(id, ROCE_SERVICE_RC);
    assert_true(!id->datagrams && !id->unreliable);
    rdma_id_set_type_of_service(id, 0xb8);
    assert_int_equal(rdma_id_set_ack_timeout(id, 32), STATUS_INVALID);
    assert_false(id->ack_timeout_set);
    assert_int_equal(rdma_id_set_ack_timeout(id, 31), STATUS_OK);
    assert_int_equal(rdma_id_set_ack_timeout(id, 21), STATUS_OK);
    assert_int_equal(rdma_id_set_ack_timeout(id, 32), STATUS_INVALID);
    assert_true(id->ack_timeout_set && id->ack_timeout == 21);
    rdma_id_set_service(id, ROCE_SERVICE_UC);
    assert_int_equal(rdma_id_set_ack_timeout(id, 20), STATUS_INVALID);
    resolve_address(pair, 0, id, PORT);
    expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
    prepare(&pair->nodes[0]);
    assert_int_equal(rdma_id_resolve_route(&pair->nodes[0].cm, id), STATUS_OK);
    settle(pair);
    expect(pair, 0, RDMA_EVENT_ROUTE_RESOLVED);
    connect_id(pair, 0, id);
    struct rdma_id *child = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_true(child->unreliable && !child->datagrams);
    assert_int_equal(child->type_of_service, 0xb8);
    assert_int_equal(child->path_ack_timeout, 21);
    assert_int_equal(accept_id(pair, 1, child), STATUS_OK);
    pair_free(pair);
}

/* To no address in particular means to this machine. */
static void test_destination_of_any_address(void **state)
{
    (void)state;
    static const struct rdma_address anys[2] = {
        {.ip = {[10] = 0xff, [11] = 0xff}, .port = PORT, .known = true},
        {.port = PORT, .known = true, .ipv6 = true}};
    static const uint8_t loopbacks[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                                             {[15] = 1}};
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        struct pair *pair = pair_make();
        struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
        assert_int_equal(resolve_from_any(&pair->nodes[0], id, &anys[ipv6]), STATUS_OK);
        assert_memory_equal(id->destination.ip, loopbacks[ipv6], 16);
        settle(pair);
        expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
        assert_memory_equal(id->destination.ip, loopbacks[ipv6], 16);
        assert_memory_equal(id->peer_gid, loopbacks[ipv6], 16);
        assert_int_equal(id->destination.port, PORT);
        pair_free(pair);
    }
}

static void expect_progress(const struct rdma_id *id, const char *progress)
{
    assert_int_equal(rdma_id_is_idle(id), strcmp(progress, "idle") == 0);
    assert_int_equal(rdma_id_is_bound(id), strcmp(progress, "bound") == 0);
    assert_int_equal(rdma_id_has_route(id),
                     strcmp(progress, "routed") == 0 || strcmp(progress, "connecting") == 0);
    assert_int_equal(rdma_id_expects_peer(id),
                     strcmp(progress, "connecting") == 0 || strcmp(progress, "listening") == 0);
}

/* The progress that an id reports, from its making to its end, at both ends. */
static void test_progress(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct rdma_address here = address_of(&pair->nodes[1], PORT);
    struct rdma_id *listener = create(pair, 1, RDMA_PORT_SPACE_TCP);
    expect_progress(listener, "idle");
    assert_int_equal(rdma_id_bind(listener, &here, pair->nodes[1].ip), STATUS_OK);
    expect_progress(listener, "bound");
    assert_int_equal(rdma_id_listen(&pair->nodes[1].cm, listener, 1), STATUS_OK);
    expect_progress(listener, "listening");

    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
    resolve_address(pair, 0, id, PORT);
    expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
    expect_progress(id, "resolved");
    prepare(&pair->nodes[0]);
    assert_int_equal(rdma_id_resolve_route(&pair->nodes[0].cm, id), STATUS_OK);
    settle(pair);
    expect(pair, 0, RDMA_EVENT_ROUTE_RESOLVED);
    expect_progress(id, "routed");
    connect_id(pair, 0, id);
    expect_progress(id, "connecting");
    assert_null(rdma_channel_peek(&pair->nodes[0].channels[0]));
    const struct rdma_event *told = rdma_channel_peek(&pair->nodes[1].channels[0]);
    assert_non_null(told);
    assert_int_equal(told->kind, RDMA_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(rdma_channel_peek(&pair->nodes[1].channels[0]), told);
    struct rdma_id *child = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    expect_progress(child, "connecting");
    assert_int_equal(accept_id(pair, 1, child), STATUS_OK);
    expect_progress(child, "connecting");
    pair_free(pair);
}

/* -- Memory that is short -----------------------------------------------------------------------*/

static void drain(struct node *node)
{
    struct rdma_event *spare;
    while ((spare = rdma_cm_take_spare_event(&node->cm)) != NULL) {
        node->events_made--;
        free(spare);
    }
    check_node(node);
    assert_true(rdma_cm_wants_event(&node->cm));
}

/* Without events in stock wishes fail, messages are dropped, and time and questions wait: nothing
 * is lost for good. */
static void test_stock_exhaustion(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[0];
    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_TCP);
    const struct rdma_address peer = address_of(&pair->nodes[1], PORT);
    enum rdma_question question;
    assert_int_equal(resolve_from_any(node, id, &peer), STATUS_OK);
    for (int round = 0; round < 2; round++) {
        drain(node);
        assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
        assert_int_equal(question, RDMA_QUESTION_ADDRESS);
        if (round == 0) {
            answer_route(node, id, &peer);
        } else {
            rdma_cm_on_no_route(&node->cm, id, 101);
        }
    }
    settle(pair); /* The question is put once more. */
    expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
    drain(node);
    assert_int_equal(rdma_id_resolve_route(&node->cm, id), STATUS_FULL);
    prepare(node);
    assert_int_equal(rdma_id_resolve_route(&node->cm, id), STATUS_OK);
    drain(node);
    assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
    assert_int_equal(question, RDMA_QUESTION_SERVICE);
    answer_server(pair, node, id, peer.ip, 0);
    settle(pair);
    expect(pair, 0, RDMA_EVENT_ROUTE_RESOLVED);
    const struct rdma_parameters parameters = parameters_of("");
    assert_int_equal(rdma_id_connect(&node->cm, id, &parameters), STATUS_OK);
    drain(node);
    assert_ptr_equal(rdma_cm_next_question(&node->cm, &question), id);
    answer_server(pair, node, id, peer.ip, 0);
    drain(&pair->nodes[1]);
    listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    settle(pair);
    struct rdma_id *b = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    assert_int_equal(accept_id(pair, 1, b), STATUS_OK);
    expect(pair, 0, RDMA_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rdma_id_establish(&node->cm, id, pair->now), STATUS_OK);
    drain(&pair->nodes[1]);
    assert_int_equal(rdma_id_note_established(&pair->nodes[1].cm, b), STATUS_FULL);
    settle(pair);
    expect(pair, 1, RDMA_EVENT_ESTABLISHED);
    pair_free(pair);
}

static void test_messages_and_time_without_stock(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[1];
    const struct ends ends = establish(pair);
    struct cm_mad mad;
    assert_int_equal(rdma_id_disconnect(&pair->nodes[0].cm, ends.active, pair->now), STATUS_OK);
    assert_true(cm_next_message(&pair->nodes[0].cm.cm, &mad));
    drain(node);
    rdma_cm_on_message(&node->cm, mad.source, mad.destination, mad.bytes, CM_MAD_BYTES, pair->now);
    assert_int_equal(node->cm.cm.counters.crowded_out, 1);
    assert_int_equal(ends.passive->connection.state, CM_STATE_ESTABLISHED);
    pass_time(pair, 1000000000u); /* It is repeated. */
    expect(pair, 0, RDMA_EVENT_DISCONNECTED);
    expect(pair, 1, RDMA_EVENT_DISCONNECTED);
    drain(node);
    pair->now = instant_after(pair->now, 10000000000u);
    rdma_cm_on_time(&node->cm, pair->now);
    assert_true(instant_reached(pair->now, cm_deadline(&node->cm.cm)));
    pass_time(pair, 0);
    expect(pair, 1, RDMA_EVENT_TIMEWAIT_EXIT);
    pair_free(pair);
}

static void test_no_id_for_a_request(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[1];
    listen_on(pair, 1, RDMA_PORT_SPACE_TCP, 8);
    struct list *spare = list_pop(&node->cm.spare_ids);
    node->cm.spare_id_count--;
    struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT), *held;
    held = CONTAINER_OF(spare, struct rdma_id, released);
    const struct rdma_parameters parameters = parameters_of("");
    assert_int_equal(rdma_id_connect(&pair->nodes[0].cm, a, &parameters), STATUS_OK);
    answer_questions(pair, &pair->nodes[0]);
    struct cm_mad mad;
    assert_true(cm_next_message(&pair->nodes[0].cm.cm, &mad));
    struct list *again = list_pop(&node->cm.spare_ids);
    if (again != NULL) {
        node->cm.spare_id_count--;
    }
    rdma_cm_on_message(&node->cm, mad.source, mad.destination, mad.bytes, CM_MAD_BYTES, pair->now);
    assert_int_equal(node->cm.cm.counters.crowded_out, 1);
    assert_false(cm_next_message(&node->cm.cm, &mad));
    rdma_cm_give_id(&node->cm, held);
    if (again != NULL) {
        rdma_cm_give_id(&node->cm, CONTAINER_OF(again, struct rdma_id, released));
    }
    pass_time(pair, 1000000000u); /* Its repetition finds memory. */
    expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id->uid = 1;
    pair_free(pair);
}

/* -- Datagrams and groups -----------------------------------------------------------------------*/

static void test_datagrams(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    listen_on(pair, 1, RDMA_PORT_SPACE_UDP, 8);
    for (int chosen = 0; chosen < 2; chosen++) {
        struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_UDP, PORT);
        connect_id(pair, 0, a);
        const struct rdma_event request = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST);
        expect_text(&request.parameters, "hello", 180);
        assert_memory_equal(request.peer_gid, pair->nodes[0].ip, 16);
        struct rdma_parameters parameters = parameters_of("welcome");
        parameters.qkey = chosen ? 0x99 : 0;
        request.id->uid = 1;
        assert_int_equal(rdma_id_accept(&pair->nodes[1].cm, request.id, &parameters, 1, pair->now),
                         STATUS_OK);
        settle(pair);
        const struct rdma_event answer = expect(pair, 0, RDMA_EVENT_ESTABLISHED);
        assert_int_equal(answer.parameters.qpn, 0x123);
        assert_int_equal(answer.parameters.qkey, chosen ? 0x99 : RDMA_UDP_QKEY);
        assert_memory_equal(answer.peer_gid, pair->nodes[1].ip, 16);
        expect_text(&answer.parameters, "welcome", 136);
        assert_int_equal(rdma_id_disconnect(&pair->nodes[0].cm, a, pair->now), STATUS_OK);
    }
    struct rdma_id *a = route(pair, 0, RDMA_PORT_SPACE_UDP, PORT);
    connect_id(pair, 0, a);
    struct rdma_id *b = expect(pair, 1, RDMA_EVENT_CONNECT_REQUEST).id;
    uint8_t much[CM_SIDR_REP_PRIVATE_BYTES + 1] = {0};
    assert_int_equal(rdma_id_reject(&pair->nodes[1].cm, b, CM_REASON_CONSUMER, much, sizeof(much)),
                     STATUS_INVALID);
    assert_int_equal(rdma_id_reject(&pair->nodes[1].cm, b, CM_REASON_CONSUMER, "no", 2), STATUS_OK);
    b->uid = 1;
    settle(pair);
    assert_int_equal(expect(pair, 0, RDMA_EVENT_UNREACHABLE).status, CM_SIDR_REJECTED);
    expect_silence(pair); /* A side that accepts datagrams gets no further event. */
    pair_free(pair);
}

static void test_multicast(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[0];
    const struct rdma_address group = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1},
                                       .known = true};
    struct rdma_multicast first, second;
    struct rdma_id *stream = route(pair, 0, RDMA_PORT_SPACE_TCP, PORT);
    assert_int_equal(rdma_multicast_join(&node->cm, &first, stream, &group, 7), STATUS_INVALID);
    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_UDP);
    assert_int_equal(rdma_multicast_join(&node->cm, &first, id, &group, 7), STATUS_INVALID);
    resolve_address(pair, 0, id, PORT);
    expect(pair, 0, RDMA_EVENT_ADDR_RESOLVED);
    drain(node);
    assert_int_equal(rdma_multicast_join(&node->cm, &first, id, &group, 7), STATUS_FULL);
    prepare(node);
    assert_int_equal(rdma_multicast_join(&node->cm, &first, id, &group, 7), STATUS_OK);
    assert_int_equal(rdma_multicast_join(&node->cm, &second, id, &group, 8), STATUS_OK);
    const uint32_t reported = id->events_reported;
    const struct rdma_event event = expect(pair, 0, RDMA_EVENT_MULTICAST_JOIN);
    assert_ptr_equal(event.multicast, &first);
    assert_ptr_equal(event.id, id);
    assert_int_equal(event.parameters.qpn, 0xffffff);
    assert_int_equal(event.parameters.qkey, RDMA_UDP_QKEY);
    assert_memory_equal(event.peer_gid, group.ip, 16);
    assert_int_equal(first.events_reported, 1);
    assert_int_equal(id->events_reported, reported + 1);
    rdma_multicast_leave(&node->cm, &second); /* It has not been told of. */
    expect_silence(pair);
    rdma_multicast_leave(&node->cm, &first);
    /* An id that goes with a group's event pending. */
    assert_int_equal(rdma_multicast_join(&node->cm, &first, id, &group, 7), STATUS_OK);
    rdma_id_migrate(&node->cm, id, &node->channels[1]);
    rdma_multicast_leave(&node->cm, &first);
    expect_silence(pair);
    pair_free(pair);
}

/* An id may join when it has an address, until it listens. */
static void test_multicast_states(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct node *node = &pair->nodes[0];
    const struct rdma_address here = address_of(node, PORT);
    const struct rdma_address group = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1},
                                       .known = true};
    struct rdma_multicast multicast;
    struct rdma_id *id = create(pair, 0, RDMA_PORT_SPACE_UDP);
    assert_int_equal(rdma_id_bind(id, &here, node->ip), STATUS_OK);
    prepare(node);
    assert_int_equal(rdma_multicast_join(&node->cm, &multicast, id, &group, 7), STATUS_OK);
    rdma_multicast_leave(&node->cm, &multicast);
    assert_int_equal(rdma_id_listen(&node->cm, id, 1), STATUS_OK);
    prepare(node);
    assert_int_equal(rdma_multicast_join(&node->cm, &multicast, id, &group, 7), STATUS_INVALID);
    expect_silence(pair);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connect_and_disconnect),
        cmocka_unit_test(test_own_words),
        cmocka_unit_test(test_starting_psns),
        cmocka_unit_test(test_private_data_room),
        cmocka_unit_test(test_rejections),
        cmocka_unit_test(test_listens),
        cmocka_unit_test(test_no_listener),
        cmocka_unit_test(test_listener_comes_late),
        cmocka_unit_test(test_nobody_serves),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_address_errors),
        cmocka_unit_test(test_wishes_out_of_place),
        cmocka_unit_test(test_note_established),
        cmocka_unit_test(test_listener_of_the_address_before_any),
        cmocka_unit_test(test_listeners_for_any_address),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_requests_refused),
        cmocka_unit_test(test_lids_mean_nothing),
        cmocka_unit_test(test_migrate),
        cmocka_unit_test(test_has_events),
        cmocka_unit_test(test_changed_channels),
        cmocka_unit_test(test_listener_goes_with_requests_pending),
        cmocka_unit_test(test_release_with_events_pending),
        cmocka_unit_test(test_request_taken_back),
        cmocka_unit_test(test_answers_after_release),
        cmocka_unit_test(test_process_of_the_server),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_destination_of_any_address),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_stock_exhaustion),
        cmocka_unit_test(test_messages_and_time_without_stock),
        cmocka_unit_test(test_no_id_for_a_request),
        cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_multicast),
        cmocka_unit_test(test_multicast_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
