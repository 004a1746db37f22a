/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_cm - requests of programs to their ids.
 */
#include "transport/ibta/rdma_cm.h"

#include <string.h>

#include "transport/ibta/rdma_cm_internal.h"
#include "wire/inet.h"

void rdma_cm_init(struct rdma_cm *manager, uint64_t seed, uint8_t id_base, uint64_t ca_guid)
{
    memset(manager, 0, sizeof(*manager));
    cm_init(&manager->cm, seed, id_base, ca_guid);
    list_init(&manager->listeners);
    list_init(&manager->questions);
    list_init(&manager->changed);
    list_init(&manager->spare_ids);
    list_init(&manager->spare_events);
    list_init(&manager->released);
    manager->path_mtu_max = RDMA_PATH_MTU_LAST;
}

/* -- Memory -------------------------------------------------------------------------------------*/

void rdma_cm_give_id(struct rdma_cm *manager, struct rdma_id *memory)
{
    rdma_id_init(memory, NULL, 0, 0);
    list_append(&manager->spare_ids, &memory->released);
    manager->spare_id_count++;
}

void rdma_cm_give_event(struct rdma_cm *manager, struct rdma_event *memory)
{
    memset(memory, 0, sizeof(*memory));
    list_init(&memory->node);
    list_append(&manager->spare_events, &memory->node);
    manager->spare_event_count++;
}

struct rdma_id *rdma_cm_next_released(struct rdma_cm *manager)
{
    struct list *node = list_pop(&manager->released);
    return node == NULL ? NULL : CONTAINER_OF(node, struct rdma_id, released);
}

bool rdma_cm_wants_id(const struct rdma_cm *manager)
{
    return manager->spare_id_count < RDMA_SPARE_IDS;
}

bool rdma_cm_wants_event(const struct rdma_cm *manager)
{
    return manager->spare_event_count < RDMA_SPARE_EVENTS;
}

struct rdma_event *rdma_cm_take_spare_event(struct rdma_cm *manager)
{
    struct list *node = list_pop(&manager->spare_events);
    if (node == NULL) {
        return NULL;
    }
    manager->spare_event_count--;
    return CONTAINER_OF(node, struct rdma_event, node);
}

/* -- Channels -----------------------------------------------------------------------------------*/

void rdma_channel_init(struct rdma_channel *channel)
{
    list_init(&channel->events);
    list_init(&channel->changed);
}

void rdma_channel_forget(struct rdma_channel *channel)
{
    list_remove(&channel->changed);
}

static void rdma_note_changed(struct rdma_cm *manager, struct rdma_channel *channel)
{
    if (list_empty(&channel->changed)) {
        list_append(&manager->changed, &channel->changed);
    }
}

struct rdma_channel *rdma_cm_next_changed(struct rdma_cm *manager)
{
    struct list *node = list_pop(&manager->changed);
    return node == NULL ? NULL : CONTAINER_OF(node, struct rdma_channel, changed);
}

const struct rdma_event *rdma_channel_peek(const struct rdma_channel *channel)
{
    return list_empty(&channel->events)
               ? NULL
               : CONTAINER_OF(channel->events.next, struct rdma_event, node);
}

struct rdma_event *rdma_channel_take(struct rdma_cm *manager, struct rdma_channel *channel)
{
    struct list *node = list_pop(&channel->events);
    if (node == NULL) {
        return NULL;
    }
    rdma_note_changed(manager, channel);
    struct rdma_event *event = CONTAINER_OF(node, struct rdma_event, node);
    if (event->kind == RDMA_EVENT_CONNECT_REQUEST) {
        event->listener->backlog++;
        event->listener->events_reported++;
        event->id->listener = NULL;
    } else {
        event->id->events_reported++;
        if (event->multicast != NULL) {
            event->multicast->events_reported++;
        }
    }
    return event;
}

struct rdma_event *rdma_raise(struct rdma_cm *manager, struct rdma_id *id,
                              enum rdma_event_kind kind, int status)
{
    struct rdma_channel *channel = id->channel;
    const bool told = kind == RDMA_EVENT_CONNECT_REQUEST || (id->alive && id->uid != 0);
    if (channel == NULL || !told) {
        return NULL;
    }
    struct rdma_event *event = rdma_cm_take_spare_event(manager);
    CHECK(event != NULL);
    event->kind = kind;
    event->status = status;
    event->id = id;
    list_append(&channel->events, &event->node);
    rdma_note_changed(manager, channel);
    return event;
}

static bool stock_suffices(const struct rdma_cm *manager)
{
    return manager->spare_event_count > 0;
}

static void discard(struct rdma_cm *manager, struct rdma_channel *channel, struct rdma_event *event)
{
    list_remove(&event->node);
    rdma_cm_give_event(manager, event);
    rdma_note_changed(manager, channel);
}

/* -- Before there is a connection ---------------------------------------------------------------*/

void rdma_id_init(struct rdma_id *id, struct rdma_channel *channel, uint16_t port_space,
                  uint64_t uid)
{
    memset(id, 0, sizeof(*id));
    cm_connection_init(&id->connection);
    list_init(&id->listening);
    list_init(&id->asking);
    list_init(&id->released);
    id->channel = channel;
    id->port_space = port_space;
    id->datagrams = port_space == RDMA_PORT_SPACE_UDP || port_space == RDMA_PORT_SPACE_IPOIB;
    id->uid = uid;
    id->alive = true;
}

enum status rdma_id_bind(struct rdma_id *id, const struct rdma_address *address,
                         const uint8_t gid[16])
{
    if (id->state != RDMA_ID_IDLE) {
        return STATUS_INVALID;
    }
    id->source = *address;
    memcpy(id->source_gid, gid, 16);
    id->state = RDMA_ID_BOUND;
    return STATUS_OK;
}

static void ask(struct rdma_cm *manager, struct rdma_id *id, enum rdma_id_state state)
{
    id->state = (uint8_t)state;
    list_append(&manager->questions, &id->asking);
}

struct rdma_id *rdma_cm_next_question(struct rdma_cm *manager, enum rdma_question *question)
{
    struct list *node = list_pop(&manager->questions);
    if (node == NULL) {
        return NULL;
    }
    struct rdma_id *id = CONTAINER_OF(node, struct rdma_id, asking);
    *question = id->state == RDMA_ID_RESOLVING ? RDMA_QUESTION_ADDRESS
                : id->state == RDMA_ID_ROUTING ? RDMA_QUESTION_SERVICE
                                               : RDMA_QUESTION_SERVER;
    return id;
}

static void set_loopback(struct rdma_address *address)
{
    static const uint8_t ipv6[16] = {[15] = 1};
    static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
    memcpy(address->ip, address->ipv6 ? ipv6 : ipv4, 16);
}

enum status rdma_id_resolve_address(struct rdma_cm *manager, struct rdma_id *id,
                                    const struct rdma_address *destination)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (id->state != RDMA_ID_BOUND || id->source.ipv6 != destination->ipv6) {
        return STATUS_INVALID;
    }
    id->destination = *destination;
    if (inet_is_any(id->destination.ip)) {
        set_loopback(&id->destination);
    }
    ask(manager, id, RDMA_ID_RESOLVING);
    INVARIANTS(rdma_id_check(manager, id));
    return STATUS_OK;
}

/* Without memory the answer is lost, and asked for again. */
static bool has_stock_for_answer(struct rdma_cm *manager, struct rdma_id *id)
{
    if (!stock_suffices(manager) && list_empty(&id->asking)) {
        list_append(&manager->questions, &id->asking);
    }
    return stock_suffices(manager);
}

static bool awaits_route(struct rdma_cm *manager, struct rdma_id *id)
{
    return id->state == RDMA_ID_RESOLVING && has_stock_for_answer(manager, id);
}

void rdma_cm_on_route(struct rdma_cm *manager, struct rdma_id *id, const struct rdma_route *route)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (!awaits_route(manager, id)) {
        return;
    }
    id->source = route->source;
    memcpy(id->source_gid, route->source_gid, 16);
    memcpy(id->peer_gid, id->destination.ip, 16);
    id->path_mtu = route->path_mtu;
    id->has_path = true;
    id->state = RDMA_ID_RESOLVED;
    rdma_raise(manager, id, RDMA_EVENT_ADDR_RESOLVED, 0);
    INVARIANTS(rdma_id_check(manager, id));
}

void rdma_cm_on_no_route(struct rdma_cm *manager, struct rdma_id *id, int failure)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (awaits_route(manager, id)) {
        id->state = RDMA_ID_BOUND;
        rdma_raise(manager, id, RDMA_EVENT_ADDR_ERROR, -failure);
    }
}

enum status rdma_id_resolve_route(struct rdma_cm *manager, struct rdma_id *id)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (id->state != RDMA_ID_RESOLVED) {
        return STATUS_INVALID;
    }
    if (!stock_suffices(manager)) {
        return STATUS_FULL;
    }
    ask(manager, id, RDMA_ID_ROUTING);
    INVARIANTS(rdma_id_check(manager, id));
    return STATUS_OK;
}

enum status rdma_id_listen(struct rdma_cm *manager, struct rdma_id *id, uint32_t backlog)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (id->state == RDMA_ID_LISTENING) {
        return STATUS_INVALID;
    }
    if (id->state != RDMA_ID_BOUND) {
        return STATUS_INVALID;
    }
    id->backlog = backlog;
    id->state = RDMA_ID_LISTENING;
    list_append(&manager->listeners, &id->listening);
    INVARIANTS(rdma_id_check(manager, id));
    return STATUS_OK;
}

/* -- Connecting ---------------------------------------------------------------------------------*/

static bool fits(const struct rdma_parameters *parameters, size_t room)
{
    return parameters->private_bytes <= room;
}

enum status rdma_id_connect(struct rdma_cm *manager, struct rdma_id *id,
                            const struct rdma_parameters *parameters)
{
    INVARIANTS(rdma_id_check(manager, id));
    const size_t room =
        (id->datagrams ? CM_SIDR_REQ_PRIVATE_BYTES : CM_REQ_PRIVATE_BYTES) - CM_ADDRESSES_BYTES;
    if (id->state != RDMA_ID_ROUTED || !fits(parameters, room)) {
        return STATUS_INVALID;
    }
    id->wish = *parameters;
    id->qkey = parameters->qkey;
    ask(manager, id, RDMA_ID_FINDING);
    INVARIANTS(rdma_id_check(manager, id));
    return STATUS_OK;
}

static void fill_addresses(const struct rdma_id *id, uint8_t *private_data)
{
    struct cm_addresses addresses = {.ipv6 = id->destination.ipv6, .source_port = id->source.port};
    memcpy(addresses.source, id->source.ip, 16);
    memcpy(addresses.destination, id->destination.ip, 16);
    cm_addresses_encode(&addresses, private_data);
    memcpy(private_data + CM_ADDRESSES_BYTES, id->wish.private_data, id->wish.private_bytes);
}

static enum status send_sidr_request(struct rdma_cm *manager, struct rdma_id *id,
                                     struct instant now)
{
    struct cm_message message = {0};
    message.sidr_req.service_id = cm_service_id(id->port_space, id->destination.port);
    fill_addresses(id, message.private_data);
    return cm_sidr_request(&manager->cm, &id->connection, id->source_gid, id->peer_gid, &message,
                           now);
}

static enum status send_request(struct rdma_cm *manager, struct rdma_id *id, struct instant now)
{
    const struct rdma_parameters *wish = &id->wish;
    id->starting_psn = rdma_draw_psn(manager);
    id->responder_resources = wish->responder_resources;
    id->initiator_depth = wish->initiator_depth;
    id->retry_count = wish->retry_count;
    id->rnr_retry_count = wish->rnr_retry_count;
    id->path_ack_timeout = rdma_ack_timeout(id);
    struct cm_message message = {0};
    message.req = (struct cm_req){
        .service_id = cm_service_id(id->port_space, id->destination.port),
        .qpn = wish->qpn,
        .responder_resources = wish->responder_resources,
        .initiator_depth = wish->initiator_depth,
        .transport = id->unreliable ? CM_TRANSPORT_UC : CM_TRANSPORT_RC,
        .flow_control = wish->flow_control,
        .starting_psn = id->starting_psn,
        .retry_count = wish->retry_count,
        .path_mtu = id->path_mtu,
        .rnr_retry_count = wish->rnr_retry_count,
        .srq = wish->srq,
        .primary = {.hop_limit = RDMA_HOP_LIMIT,
                    .traffic_class = id->type_of_service,
                    .local_ack_timeout = id->path_ack_timeout},
    };
    fill_addresses(id, message.private_data);
    return cm_request(&manager->cm, &id->connection, id->source_gid, id->peer_gid, &message, now);
}

static bool awaits_server(struct rdma_cm *manager, struct rdma_id *id)
{
    return (id->state == RDMA_ID_ROUTING || id->state == RDMA_ID_FINDING) &&
           has_stock_for_answer(manager, id);
}

/* There is a route with or without a server: connecting asks for the server. */
static void resolve_route(struct rdma_cm *manager, struct rdma_id *id)
{
    id->state = RDMA_ID_ROUTED;
    rdma_raise(manager, id, RDMA_EVENT_ROUTE_RESOLVED, 0);
}

void rdma_cm_on_nobody(struct rdma_cm *manager, struct rdma_id *id)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (!awaits_server(manager, id)) {
        return;
    }
    if (id->state == RDMA_ID_ROUTING) {
        resolve_route(manager, id);
        return;
    }
    id->state = RDMA_ID_DISCONNECTED;
    if (id->datagrams) {
        rdma_raise(manager, id, RDMA_EVENT_UNREACHABLE, CM_SIDR_UNSUPPORTED);
    } else {
        rdma_raise(manager, id, RDMA_EVENT_REJECTED, CM_REASON_INVALID_SERVICE_ID);
    }
}

void rdma_cm_on_found(struct rdma_cm *manager, struct rdma_id *id, const struct rdma_server *server,
                      struct instant now)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (!awaits_server(manager, id)) {
        return;
    }
    memcpy(id->source_gid, server->source_gid, 16);
    memcpy(id->peer_gid, server->gid, 16);
    id->connection.process = server->process;
    if (id->state == RDMA_ID_ROUTING) {
        resolve_route(manager, id);
        return;
    }
    id->state = RDMA_ID_CONNECTING;
    const enum status status =
        id->datagrams ? send_sidr_request(manager, id, now) : send_request(manager, id, now);
    CHECK(status == STATUS_OK);
    INVARIANTS(rdma_id_check(manager, id));
}

static void fill_rep(struct rdma_id *id, const struct rdma_parameters *parameters,
                     struct cm_message *message)
{
    id->responder_resources = parameters->responder_resources;
    id->initiator_depth = parameters->initiator_depth;
    message->rep = (struct cm_rep){
        .qpn = parameters->qpn,
        .starting_psn = id->starting_psn,
        .responder_resources = parameters->responder_resources,
        .initiator_depth = parameters->initiator_depth,
        .flow_control = parameters->flow_control,
        .rnr_retry_count = parameters->rnr_retry_count,
        .srq = parameters->srq,
    };
    memcpy(message->private_data, parameters->private_data, parameters->private_bytes);
}

enum status rdma_id_accept(struct rdma_cm *manager, struct rdma_id *id,
                           const struct rdma_parameters *parameters, uint64_t uid,
                           struct instant now)
{
    INVARIANTS(rdma_id_check(manager, id));
    const size_t room = id->datagrams ? CM_SIDR_REP_PRIVATE_BYTES : CM_REP_PRIVATE_BYTES;
    if (id->state != RDMA_ID_REQUESTED || !fits(parameters, room)) {
        return STATUS_INVALID;
    }
    struct cm_message message = {0};
    enum status status;
    if (id->datagrams) {
        message.sidr_rep = (struct cm_sidr_rep){
            .status = CM_SIDR_VALID,
            .qpn = parameters->qpn,
            .qkey = parameters->qkey != 0 ? parameters->qkey : RDMA_UDP_QKEY,
        };
        memcpy(message.private_data, parameters->private_data, parameters->private_bytes);
        status = cm_sidr_reply(&manager->cm, &id->connection, &message);
    } else {
        fill_rep(id, parameters, &message);
        status = cm_reply(&manager->cm, &id->connection, &message, now);
    }
    if (status == STATUS_OK) {
        id->state = RDMA_ID_CONNECTED;
        id->uid = uid;
    }
    INVARIANTS(rdma_id_check(manager, id));
    return status;
}

enum status rdma_id_establish(struct rdma_cm *manager, struct rdma_id *id, struct instant now)
{
    INVARIANTS(rdma_id_check(manager, id));
    struct cm_message rtu = {0};
    if (id->state != RDMA_ID_CONNECTING) {
        return STATUS_INVALID;
    }
    const enum status status = cm_confirm(&manager->cm, &id->connection, &rtu, now);
    if (status == STATUS_OK) {
        id->state = RDMA_ID_CONNECTED;
    }
    INVARIANTS(rdma_id_check(manager, id));
    return status;
}

enum status rdma_id_note_established(struct rdma_cm *manager, struct rdma_id *id)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (!stock_suffices(manager)) {
        return STATUS_FULL;
    }
    const enum status status = cm_note_established(&manager->cm, &id->connection);
    if (status == STATUS_OK) {
        rdma_raise(manager, id, RDMA_EVENT_ESTABLISHED, 0);
    }
    INVARIANTS(rdma_id_check(manager, id));
    return status;
}

enum status rdma_id_reject(struct rdma_cm *manager, struct rdma_id *id, enum cm_reason reason,
                           const void *private_data, size_t private_bytes)
{
    INVARIANTS(rdma_id_check(manager, id));
    enum status status;
    if (id->state != RDMA_ID_REQUESTED && id->state != RDMA_ID_CONNECTING) {
        return STATUS_INVALID;
    }
    if (id->datagrams) {
        if (private_bytes > CM_SIDR_REP_PRIVATE_BYTES) {
            return STATUS_INVALID;
        }
        struct cm_message message = {.sidr_rep = {.status = CM_SIDR_REJECTED}};
        if (private_bytes > 0) {
            memcpy(message.private_data, private_data, private_bytes);
        }
        status = cm_sidr_reply(&manager->cm, &id->connection, &message);
    } else {
        status = cm_reject(&manager->cm, &id->connection, reason, private_data, private_bytes);
    }
    if (status == STATUS_OK) {
        id->state = RDMA_ID_DISCONNECTED;
    }
    INVARIANTS(rdma_id_check(manager, id));
    return status;
}

enum status rdma_id_disconnect(struct rdma_cm *manager, struct rdma_id *id, struct instant now)
{
    INVARIANTS(rdma_id_check(manager, id));
    if (!rdma_id_has_connection(id)) {
        return STATUS_INVALID;
    }
    /* With Linux it is no error that there is nothing to end. */
    const bool ends = !id->datagrams && id->connection.state != CM_STATE_IDLE &&
                      (id->state == RDMA_ID_CONNECTED || id->state == RDMA_ID_DISCONNECTED);
    return ends ? cm_disconnect(&manager->cm, &id->connection, now) : STATUS_OK;
}

enum status rdma_id_tell(struct rdma_cm *manager, struct rdma_id *id, enum rdma_event_kind kind,
                         int status, uint64_t argument)
{
    if (kind != RDMA_EVENT_USER && kind != RDMA_EVENT_INTERNAL) {
        return STATUS_INVALID;
    }
    if (!stock_suffices(manager)) {
        return STATUS_FULL;
    }
    struct rdma_event *event = rdma_raise(manager, id, kind, status);
    if (event == NULL) {
        return STATUS_INVALID;
    }
    event->argument = argument;
    return STATUS_OK;
}

/* -- The id that an event belongs to ------------------------------------------------------------*/

static bool belongs(const struct rdma_event *event, const struct rdma_id *id)
{
    return event->kind == RDMA_EVENT_CONNECT_REQUEST ? event->listener == id : event->id == id;
}

bool rdma_id_has_events(const struct rdma_id *id)
{
    const struct list *head = id->channel == NULL ? NULL : &id->channel->events;
    for (const struct list *node = head == NULL ? NULL : head->next; node != head;
         node = node->next) {
        if (belongs(CONTAINER_OF_CONST(node, struct rdma_event, node), id)) {
            return true;
        }
    }
    return false;
}

void rdma_id_migrate(struct rdma_cm *manager, struct rdma_id *id, struct rdma_channel *to)
{
    struct rdma_channel *from = id->channel;
    if (from == to) {
        return;
    }
    struct list *next;
    for (struct list *node = from->events.next; node != &from->events; node = next) {
        struct rdma_event *event = CONTAINER_OF(node, struct rdma_event, node);
        next = node->next;
        if (belongs(event, id)) {
            list_remove(node);
            list_append(&to->events, node);
            if (event->kind == RDMA_EVENT_CONNECT_REQUEST) {
                event->id->channel = to;
            }
        }
    }
    id->channel = to;
    rdma_note_changed(manager, from);
    rdma_note_changed(manager, to);
}

static void let_go(struct rdma_cm *manager, struct rdma_id *id, struct instant now)
{
    id->alive = false;
    id->state = RDMA_ID_IDLE; /* Answers of the world that are under way find nothing to do. */
    id->channel = NULL;
    id->listener = NULL;
    list_remove(&id->asking);
    list_remove(&id->listening);
    if (cm_release(&manager->cm, &id->connection, now)) {
        list_append(&manager->released, &id->released);
    }
    INVARIANTS(rdma_id_check(manager, id));
}

static void discard_events(struct rdma_cm *manager, struct rdma_id *id, struct instant now)
{
    struct rdma_channel *channel = id->channel;
    struct list *next;
    for (struct list *node = channel->events.next; node != &channel->events; node = next) {
        struct rdma_event *event = CONTAINER_OF(node, struct rdma_event, node);
        next = node->next;
        if (belongs(event, id)) {
            struct rdma_id *child = event->kind == RDMA_EVENT_CONNECT_REQUEST ? event->id : NULL;
            discard(manager, channel, event);
            if (child != NULL) {
                let_go(manager, child, now);
            }
        }
    }
}

void rdma_id_release(struct rdma_cm *manager, struct rdma_id *id, struct instant now)
{
    INVARIANTS(rdma_id_check(manager, id));
    discard_events(manager, id, now);
    let_go(manager, id, now);
    INVARIANTS(rdma_id_check(manager, id));
}

/* -- Multicast ----------------------------------------------------------------------------------*/

enum status rdma_multicast_join(struct rdma_cm *manager, struct rdma_multicast *multicast,
                                struct rdma_id *id, const struct rdma_address *group, uint64_t uid)
{
    const bool early = id->state == RDMA_ID_BOUND || id->state == RDMA_ID_RESOLVED;
    if (!id->datagrams || !early || inet_is_any(id->source.ip)) {
        return STATUS_INVALID;
    }
    if (!stock_suffices(manager)) {
        return STATUS_FULL;
    }
    *multicast = (struct rdma_multicast){.id = id, .uid = uid, .group = *group};
    struct rdma_event *event = rdma_raise(manager, id, RDMA_EVENT_MULTICAST_JOIN, 0);
    if (event != NULL) {
        event->multicast = multicast;
        event->parameters.qpn = RDMA_MULTICAST_QPN;
        event->parameters.qkey = id->qkey != 0 ? id->qkey : RDMA_UDP_QKEY;
        memcpy(event->peer_gid, group->ip, 16);
    }
    return STATUS_OK;
}

void rdma_multicast_leave(struct rdma_cm *manager, struct rdma_multicast *multicast)
{
    struct rdma_channel *channel = multicast->id->channel;
    struct list *next;
    for (struct list *node = channel->events.next; node != &channel->events; node = next) {
        struct rdma_event *event = CONTAINER_OF(node, struct rdma_event, node);
        next = node->next;
        if (event->multicast == multicast) {
            discard(manager, channel, event);
        }
    }
}
