/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - the connection manager: its datagrams go through the machine's network, and the box
 * knows who serves which port.
 */
#include "world/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/box_address.h"
#include "base/bytes.h"
#include "virtual/world.h"

/* A port that nobody serves is looked for again after 8, 16, ... 128 ms, a quarter of a second in
 * all: its server may just be making its next listener (docs/decisions/0013). */
#define SEARCH_PAUSE_NS UINT64_C(8000000)
#define SEARCHES_MAX    5
/* Without memory the manager cannot go on: it tries again after this time. */
#define OUT_OF_MEMORY_NS UINT64_C(10000000)
/* Between two looks, while a process that ends waits for peers to answer. */
#define LEAVE_LOOK_NS 20000
/* Ports of ids that connect from any. */
#define SOURCE_PORT_FIRST 32768
#define SOURCE_PORT_COUNT 16384

/* An id whose peer is looked for again. */
struct search {
    struct list node;
    struct rdma_id *id;
    uint32_t made;
    struct instant again;
};

/* -- Opening ------------------------------------------------------------------------------------*/

bool world_manager_open(struct live *live)
{
    struct manager *manager = &live->manager;
    list_init(&manager->searches);
    manager->due = INSTANT_NEVER;
    manager->cm = calloc(1, sizeof(*manager->cm));
    if (manager->cm == NULL) {
        return false;
    }
    rdma_cm_init(manager->cm, live->arena->head.seed, 0, live_guid(live));
    manager->cm->path_mtu_max = (uint8_t)live_active_mtu(live);
    return true;
}

void world_manager_close(struct live *live)
{
    struct rdma_event *event;
    if (live->manager.cm == NULL) {
        return;
    }
    while ((event = rdma_cm_take_spare_event(live->manager.cm)) != NULL) {
        free(event);
    }
    free(live->manager.cm);
    live->manager.cm = NULL;
}

void live_cm_listen(struct live *live, const struct live_cm_listener *listener)
{
    live->manager.listener = *listener;
}

struct rdma_cm *live_cm(struct live *live)
{
    return live->manager.cm;
}

/* -- Memory -------------------------------------------------------------------------------------*/

bool live_cm_prepare(struct live *live)
{
    struct rdma_cm *cm = live->manager.cm;
    while (rdma_cm_wants_event(cm)) {
        struct rdma_event *event = calloc(1, sizeof(*event));
        if (event == NULL) {
            return false;
        }
        rdma_cm_give_event(cm, event);
    }
    while (live->manager.listener.make_id != NULL && rdma_cm_wants_id(cm)) {
        struct rdma_id *id = live->manager.listener.make_id();
        if (id == NULL) {
            return false;
        }
        rdma_cm_give_id(cm, id);
    }
    return true;
}

void live_cm_give_back(struct live *live, struct rdma_event *event)
{
    if (rdma_cm_wants_event(live->manager.cm)) {
        rdma_cm_give_event(live->manager.cm, event);
    } else {
        free(event);
    }
}

/* -- Addresses ----------------------------------------------------------------------------------*/

static bool is_loopback(const uint8_t ip[16])
{
    static const uint8_t ipv6[16] = {[15] = 1};
    return inet_is_loopback_ipv4(ip) || memcmp(ip, ipv6, sizeof(ipv6)) == 0;
}

static bool is_of_a_node(const uint8_t ip[16], uint32_t *node)
{
    uint32_t function;
    return box_address_read(ip, node, &function);
}

/* All addresses of its node, of which each NIC has one. */
static bool is_own(const struct live *live, const uint8_t ip[16])
{
    uint32_t node;
    return is_loopback(ip) ||
           (is_of_a_node(ip, &node) && node == world_page()->place[live->number].node);
}

void live_cm_gid_for(const struct live *live, const uint8_t ip[16], uint8_t gid[16])
{
    const struct gid own = world_gid(live->number);
    (void)ip;
    memcpy(gid, own.bytes, sizeof(own.bytes));
}

uint16_t live_cm_source_port(struct live *live)
{
    return (uint16_t)(SOURCE_PORT_FIRST + live->manager.ports++ % SOURCE_PORT_COUNT);
}

/* 0, or an errno: there is no way. */
static int find_route(struct live *live, const struct rdma_id *id, struct rdma_route *route)
{
    const uint8_t *to = id->destination.ip;
    uint32_t node;
    if (!inet_is_multicast(to) && !is_loopback(to) && !is_of_a_node(to, &node)) {
        return ENETUNREACH;
    }
    live_cm_gid_for(live, to, route->source_gid);
    route->source = id->source;
    route->path_mtu = (uint8_t)live_active_mtu(live);
    if (inet_is_any(route->source.ip)) {
        memcpy(route->source.ip, is_loopback(to) ? to : route->source_gid, 16);
    }
    return is_own(live, route->source.ip) ? 0 : ENODEV;
}

static void answer_address(struct live *live, struct rdma_id *id)
{
    struct rdma_route route;
    const int failure = find_route(live, id, &route);
    if (failure == 0) {
        rdma_cm_on_route(live->manager.cm, id, &route);
    } else {
        rdma_cm_on_no_route(live->manager.cm, id, failure);
    }
}

/* -- Ports --------------------------------------------------------------------------------------*/

/* A port that an id has claimed. */
struct service {
    struct live *live;
    uint64_t claim;
};

/* A number where others are asked about a place. */
static const void *plain(uint64_t about)
{
    return (const void *)(uintptr_t)about;
}

int live_cm_claim(struct live *live, uint16_t port_space, struct rdma_address *address,
                  bool ipv6_only, struct service **service)
{
    struct box_port port = {.space = port_space, .port = address->port, .ipv6_only = ipv6_only};
    memcpy(port.address, address->ip, sizeof(port.address));
    if (!inet_is_any(address->ip) && !is_own(live, address->ip)) {
        return EADDRNOTAVAIL;
    }
    struct service *made = malloc(sizeof(*made));
    if (made == NULL) {
        return ENOMEM;
    }
    const int64_t claim = world_ask(BOX_ASK_CLAIM, live->number, &port);
    if (claim < 0) {
        free(made);
        return (int)-claim;
    }
    *made = (struct service){.live = live, .claim = (uint64_t)claim};
    address->port = port.port;
    *service = made;
    return 0;
}

int live_cm_offer(struct live *live, struct service *service)
{
    return (int)-world_ask(BOX_ASK_OFFER, live->number, plain(service->claim));
}

void live_cm_unclaim(struct service *service)
{
    (void)world_ask(BOX_ASK_RELEASE, service->live->number, plain(service->claim));
    free(service);
}

/* -- Peers --------------------------------------------------------------------------------------*/

/* The process that serves the port that the id connects to. False: there is none. */
static bool find_server(struct live *live, struct rdma_id *id)
{
    struct box_port port = {.space = id->port_space, .port = id->destination.port};
    memcpy(port.address, id->destination.ip, sizeof(port.address));
    const int64_t found = world_ask(BOX_ASK_FIND, live->number, &port);
    if (found < 0) {
        return false;
    }
    struct rdma_server server = {.process = 0};
    const struct gid gid = world_gid((uint32_t)found), own = world_gid(live->number);
    memcpy(server.gid, gid.bytes, sizeof(server.gid));
    memcpy(server.source_gid, own.bytes, sizeof(server.source_gid));
    rdma_cm_on_found(live->manager.cm, id, &server, live_now(live));
    return true;
}

static void search_end(struct search *search)
{
    list_remove(&search->node);
    free(search);
}

/* False: no memory. */
static bool search_begin(struct live *live, struct rdma_id *id)
{
    struct search *search = calloc(1, sizeof(*search));
    if (search != NULL) {
        search->id = id;
        search->again = instant_after(live_now(live), SEARCH_PAUSE_NS);
        list_init(&search->node);
        list_append(&live->manager.searches, &search->node);
    }
    return search != NULL;
}

static void search_on(struct live *live, struct search *search)
{
    if (find_server(live, search->id)) {
        search_end(search);
    } else if (++search->made == SEARCHES_MAX) {
        rdma_cm_on_nobody(live->manager.cm, search->id);
        search_end(search);
    } else {
        search->again = instant_after(live_now(live), SEARCH_PAUSE_NS << search->made);
    }
}

static void search_all(struct live *live)
{
    const struct list *head = &live->manager.searches;
    for (struct list *node = head->next, *next; node != head; node = next) {
        struct search *search = CONTAINER_OF(node, struct search, node);
        next = node->next;
        if (instant_reached(live_now(live), search->again)) {
            search_on(live, search);
        }
    }
}

/* The id is no more. */
static void search_forget(struct live *live, const struct rdma_id *id)
{
    const struct list *head = &live->manager.searches;
    for (struct list *node = head->next, *next; node != head; node = next) {
        struct search *search = CONTAINER_OF(node, struct search, node);
        next = node->next;
        if (search->id == id) {
            search_end(search);
        }
    }
}

/* Only who connects is patient. */
static void answer_service(struct live *live, struct rdma_id *id, bool patiently)
{
    if (!find_server(live, id) && !(patiently && search_begin(live, id))) {
        rdma_cm_on_nobody(live->manager.cm, id);
    }
}

/* -- Going round --------------------------------------------------------------------------------*/

/* False: there may be more questions, but there is no memory for their answers. */
static bool put_questions(struct live *live)
{
    struct rdma_id *id;
    enum rdma_question question;
    bool memory;
    while ((memory = live_cm_prepare(live)) &&
           (id = rdma_cm_next_question(live->manager.cm, &question)) != NULL) {
        if (question == RDMA_QUESTION_ADDRESS) {
            answer_address(live, id);
        } else {
            answer_service(live, id, question == RDMA_QUESTION_SERVER);
        }
    }
    return memory;
}

/* One for an address that no NIC has is lost, as it would be on the way. */
static void send_mad(const struct live *live, const struct cm_mad *mad)
{
    struct gid to;
    struct box_datagram datagram = {0};
    memcpy(to.bytes, mad->destination, sizeof(to.bytes));
    memcpy(datagram.bytes, mad->bytes, sizeof(datagram.bytes));
    const int peer = world_number(&to);
    if (peer >= 0) {
        datagram.peer = (uint32_t)peer;
        nic_count(live->nic, COUNTER_sent_pkts);
        nic_counters(live->nic)->values[COUNTER_sent_bytes] += sizeof(datagram.bytes);
        (void)world_ask(BOX_ASK_SEND, live->number, &datagram);
    }
}

/* When there is something to do again. */
static struct instant next_due(const struct live *live, struct instant now, bool has_memory)
{
    struct instant at = cm_deadline(&live->manager.cm->cm);
    const struct list *head = &live->manager.searches;
    for (const struct list *node = head->next; node != head; node = node->next) {
        at = instant_earlier(at, CONTAINER_OF_CONST(node, struct search, node)->again);
    }
    return has_memory ? at : instant_earlier(at, instant_after(now, OUT_OF_MEMORY_NS));
}

static void set_alarm(struct live *live, struct instant at)
{
    const uint64_t clock_ns = at.ns == UINT64_MAX ? UINT64_MAX : at.ns - BOX_MONOTONIC_NS;
    if (at.ns != live->manager.due.ns) {
        live->manager.due = at;
        (void)world_ask(BOX_ASK_ALARM, live->number, plain(clock_ns));
    }
}

void live_cm_settle(struct live *live)
{
    const struct manager *manager = &live->manager;
    const bool has_memory = put_questions(live);
    struct cm_mad mad;
    while (cm_next_message(&manager->cm->cm, &mad)) {
        send_mad(live, &mad);
    }
    struct rdma_id *id;
    while ((id = rdma_cm_next_released(manager->cm)) != NULL) {
        search_forget(live, id);
        manager->listener.on_released(id);
    }
    struct rdma_channel *channel;
    while ((channel = rdma_cm_next_changed(manager->cm)) != NULL) {
        manager->listener.on_changed(channel);
    }
    set_alarm(live, next_due(live, live_now(live), has_memory));
}

/* The peer's kernel would send messages for it: they are received as if it had (cm_speak_for). */
static void hear_of_end(struct live *live, const struct gid *peer)
{
    struct cm_mad mad;
    uint32_t at = 0;
    while (live_cm_prepare(live) &&
           cm_speak_for(&live->manager.cm->cm, peer->bytes, 0, &at, &mad)) {
        rdma_cm_on_message(live->manager.cm, mad.source, mad.destination, mad.bytes,
                           sizeof(mad.bytes), live_now(live));
    }
}

static void take(struct live *live, const struct box_datagram *datagram)
{
    const struct gid peer = world_gid(datagram->peer), own = world_gid(live->number);
    if (!live_cm_prepare(live)) {
        nic_count(live->nic, COUNTER_drop_no_receive);
    } else if (datagram->ended) {
        hear_of_end(live, &peer);
    } else {
        rdma_cm_on_message(live->manager.cm, peer.bytes, own.bytes, datagram->bytes,
                           sizeof(datagram->bytes), live_now(live));
    }
    live_cm_settle(live);
}

void world_manager_work(struct live *live)
{
    struct box_datagram datagram;
    while (live->arena->head.letters > 0 &&
           world_ask(BOX_ASK_RECEIVE, live->number, &datagram) == 1) {
        take(live, &datagram);
    }
    if (instant_reached(live_now(live), live->manager.due)) {
        live->manager.due = INSTANT_NEVER; /* The alarm is over. */
        if (live_cm_prepare(live)) {
            search_all(live);
            rdma_cm_on_time(live->manager.cm, live_now(live));
        }
        live_cm_settle(live);
    }
}

/* -- The end ------------------------------------------------------------------------------------*/

/* The world's thread goes on meanwhile. */
void world_manager_leave(struct live *live)
{
    const struct timespec pause = {.tv_nsec = LEAVE_LOOK_NS};
    struct cm *cm = &live->manager.cm->cm;
    cm_hurry(cm, live_now(live));
    while (cm_is_parting(cm)) {
        live_cm_settle(live);
        live_unlock(live);
        (void)syscall(SYS_nanosleep, &pause, NULL);
        live_lock(live);
    }
}
