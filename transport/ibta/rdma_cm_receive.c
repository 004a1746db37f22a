/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_cm_receive - messages of peers become events of ids.
 */
#include <string.h>

#include "transport/ibta/rdma_cm.h"
#include "transport/ibta/rdma_cm_internal.h"
#include "wire/inet.h"

static struct rdma_id *id_of(struct cm_connection *connection)
{
    return CONTAINER_OF(connection, struct rdma_id, connection);
}

static void copy_private(struct rdma_parameters *to, const struct cm_message *from, size_t skip)
{
    const size_t bytes = cm_private_bytes((enum cm_attribute)from->attribute) - skip;
    to->private_bytes = (uint8_t)bytes;
    memcpy(to->private_data, from->private_data + skip, bytes);
}

/* -- Requests -----------------------------------------------------------------------------------*/

/* Does a listener on any address take this one? On IPv6 it serves both families, unless its program
 * wants no IPv4. */
static bool takes(const struct rdma_id *id, const uint8_t destination[16])
{
    return inet_is_ipv4(destination) ? !id->source.ipv6 || !id->ipv6_only : id->source.ipv6;
}

/* The id that listens on the port: first on this very address, then on any address. */
static struct rdma_id *find_listener(struct rdma_cm *manager, uint64_t service_id,
                                     const struct cm_addresses *addresses, bool datagrams)
{
    struct rdma_id *found = NULL;
    struct list *head = &manager->listeners;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct rdma_id *id = CONTAINER_OF(node, struct rdma_id, listening);
        if (cm_service_id(id->port_space, id->source.port) != service_id ||
            id->datagrams != datagrams) {
            continue;
        }
        if (memcmp(id->source.ip, addresses->destination, 16) == 0) {
            return id;
        }
        if (inet_is_any(id->source.ip) && takes(id, addresses->destination)) {
            found = id;
        }
    }
    return found;
}

bool rdma_cm_listens(struct rdma_cm *manager, uint64_t service_id,
                     const struct cm_addresses *addresses, bool datagrams)
{
    return find_listener(manager, service_id, addresses, datagrams) != NULL;
}

static void set_addresses(struct rdma_id *id, const struct cm_addresses *addresses,
                          const struct rdma_id *listener)
{
    id->source = (struct rdma_address){
        .port = listener->source.port, .known = true, .ipv6 = addresses->ipv6};
    memcpy(id->source.ip, addresses->destination, 16);
    id->destination = (struct rdma_address){
        .port = addresses->source_port, .known = true, .ipv6 = addresses->ipv6};
    memcpy(id->destination.ip, addresses->source, 16);
}

/* Programs prepare their queue pair before they accept, so all it needs is known from now on. */
static void set_connection(struct rdma_cm *manager, struct rdma_id *id, const struct cm_req *req)
{
    id->starting_psn = rdma_draw_psn(manager);
    id->responder_resources = req->initiator_depth;
    id->initiator_depth = req->responder_resources;
    id->path_mtu = req->path_mtu;
    id->remote_starting_psn = req->starting_psn;
    id->remote_qpn = req->qpn;
    id->retry_count = req->retry_count;
    id->rnr_retry_count = req->rnr_retry_count;
    id->path_ack_timeout = req->primary.local_ack_timeout;
    id->type_of_service = req->primary.traffic_class;
    id->unreliable = req->transport == CM_TRANSPORT_UC;
}

/* The spare id becomes the listener's child and its program's to answer. */
static void adopt(struct rdma_cm *manager, struct rdma_id *id, struct rdma_id *listener,
                  const struct cm_event *event, const struct cm_addresses *addresses)
{
    const struct cm_message *message = event->message;
    id->channel = listener->channel;
    id->listener = listener;
    id->port_space = listener->port_space;
    id->datagrams = listener->datagrams;
    id->state = RDMA_ID_REQUESTED;
    id->ack_timeout = listener->ack_timeout;
    id->ack_timeout_set = listener->ack_timeout_set;
    memcpy(id->source_gid, id->connection.source, 16);
    memcpy(id->peer_gid, id->connection.destination, 16);
    id->has_path = true;
    set_addresses(id, addresses, listener);
    struct rdma_event *told = rdma_raise(manager, id, RDMA_EVENT_CONNECT_REQUEST, 0);
    CHECK(told != NULL);
    told->listener = listener;
    copy_private(&told->parameters, message, CM_ADDRESSES_BYTES);
    if (!id->datagrams) {
        const struct cm_req *req = &message->req;
        set_connection(manager, id, req);
        /* The peer's initiator depth is our number of responder resources. */
        told->parameters.responder_resources = req->initiator_depth;
        told->parameters.initiator_depth = req->responder_resources;
        told->parameters.flow_control = req->flow_control;
        told->parameters.retry_count = req->retry_count;
        told->parameters.rnr_retry_count = req->rnr_retry_count;
        told->parameters.srq = req->srq;
        told->parameters.qpn = req->qpn;
    } else {
        id->path_mtu = 0;
        memcpy(told->peer_gid, id->peer_gid, 16);
    }
}

/* The reason why no queue pair could serve this request; 0: none. */
static enum cm_reason judge(const struct rdma_cm *manager, const struct cm_req *req)
{
    if (req->transport != CM_TRANSPORT_RC && req->transport != CM_TRANSPORT_UC) {
        return CM_REASON_INVALID_TRANSPORT;
    }
    if (req->path_mtu < RDMA_PATH_MTU_FIRST || req->path_mtu > manager->path_mtu_max) {
        return CM_REASON_INVALID_PATH_MTU;
    }
    return 0;
}

/* A request that no program is asked about. */
static void refuse(struct rdma_cm *manager, struct rdma_id *spare, bool datagrams,
                   enum cm_reason reason, enum cm_sidr_status sidr_status, struct instant now)
{
    if (datagrams) {
        struct cm_message message = {.sidr_rep = {.status = (uint8_t)sidr_status}};
        CHECK(cm_sidr_reply(&manager->cm, &spare->connection, &message) == STATUS_OK);
    } else {
        CHECK(cm_reject(&manager->cm, &spare->connection, reason, NULL, 0) == STATUS_OK);
    }
    CHECK(cm_release(&manager->cm, &spare->connection, now));
    rdma_cm_give_id(manager, spare);
}

/* The program is busy: the peer repeats its request, and gives up after a minute. Linux refuses
 * datagrams, whose peers ask again by themselves. */
static void put_off(struct rdma_cm *manager, struct rdma_id *spare, bool datagrams,
                    struct instant now)
{
    if (datagrams) {
        refuse(manager, spare, true, 0, CM_SIDR_REJECTED, now);
        return;
    }
    cm_drop(&manager->cm, &spare->connection);
    rdma_cm_give_id(manager, spare);
}

static void on_requested(struct rdma_cm *manager, const struct cm_event *event, bool datagrams,
                         struct instant now)
{
    struct rdma_id *spare = id_of(event->connection);
    list_remove(&spare->released);
    manager->spare_id_count--;
    struct cm_addresses addresses;
    const enum cm_reason flaw = datagrams ? 0 : judge(manager, &event->message->req);
    if (flaw != 0 || !cm_addresses_decode(event->message->private_data, &addresses)) {
        manager->counters.malformed_request++;
        refuse(manager, spare, datagrams, flaw != 0 ? flaw : CM_REASON_UNSUPPORTED_REQUEST,
               CM_SIDR_UNSUPPORTED, now);
        return;
    }
    struct rdma_id *listener =
        find_listener(manager, spare->connection.service_id, &addresses, datagrams);
    if (listener == NULL) {
        manager->counters.no_listener++;
        refuse(manager, spare, datagrams, CM_REASON_INVALID_SERVICE_ID, CM_SIDR_UNSUPPORTED, now);
        return;
    }
    if (!datagrams && listener->unreliable != (event->message->req.transport == CM_TRANSPORT_UC)) {
        manager->counters.malformed_request++; /* Its programs have queue pairs of one kind. */
        refuse(manager, spare, datagrams, CM_REASON_INVALID_TRANSPORT, CM_SIDR_REJECTED, now);
        return;
    }
    if (listener->backlog == 0) {
        manager->counters.backlog_full++;
        put_off(manager, spare, datagrams, now);
        return;
    }
    listener->backlog--;
    adopt(manager, spare, listener, event, &addresses);
}

/* -- Answers ------------------------------------------------------------------------------------*/

static void on_replied(struct rdma_cm *manager, struct rdma_id *id, const struct cm_message *rep)
{
    id->remote_starting_psn = rep->rep.starting_psn;
    id->remote_qpn = rep->rep.qpn;
    id->responder_resources = rep->rep.initiator_depth;
    id->initiator_depth = rep->rep.responder_resources;
    id->rnr_retry_count = rep->rep.rnr_retry_count;
    struct rdma_event *event = rdma_raise(manager, id, RDMA_EVENT_CONNECT_RESPONSE, 0);
    if (event != NULL) {
        event->parameters.responder_resources = rep->rep.initiator_depth;
        event->parameters.initiator_depth = rep->rep.responder_resources;
        event->parameters.flow_control = rep->rep.flow_control;
        event->parameters.rnr_retry_count = rep->rep.rnr_retry_count;
        event->parameters.srq = rep->rep.srq;
        event->parameters.qpn = rep->rep.qpn;
        copy_private(&event->parameters, rep, 0);
    }
}

static void on_sidr_replied(struct rdma_cm *manager, struct rdma_id *id,
                            const struct cm_message *reply)
{
    if (reply->sidr_rep.status != CM_SIDR_VALID) {
        id->state = RDMA_ID_DISCONNECTED;
        rdma_raise(manager, id, RDMA_EVENT_UNREACHABLE, reply->sidr_rep.status);
        return;
    }
    id->state = RDMA_ID_CONNECTED;
    id->remote_qpn = reply->sidr_rep.qpn;
    struct rdma_event *event = rdma_raise(manager, id, RDMA_EVENT_ESTABLISHED, 0);
    if (event != NULL) {
        event->parameters.qpn = reply->sidr_rep.qpn;
        event->parameters.qkey = reply->sidr_rep.qkey;
        memcpy(event->peer_gid, id->peer_gid, 16);
        copy_private(&event->parameters, reply, 0);
    }
}

static void on_rejected(struct rdma_cm *manager, struct rdma_id *id, const struct cm_message *rej)
{
    id->state = RDMA_ID_DISCONNECTED;
    struct rdma_event *event = rdma_raise(manager, id, RDMA_EVENT_REJECTED, rej->rej.reason);
    if (event != NULL) {
        copy_private(&event->parameters, rej, 0);
    }
}

static void on_event(struct rdma_cm *manager, const struct cm_event *event, struct instant now)
{
    struct rdma_id *id = event->connection == NULL ? NULL : id_of(event->connection);
    switch (event->kind) {
    case CM_EVENT_NONE: return;
    case CM_EVENT_REQUESTED: on_requested(manager, event, false, now); return;
    case CM_EVENT_SIDR_REQUESTED: on_requested(manager, event, true, now); return;
    case CM_EVENT_REPLIED: on_replied(manager, id, event->message); return;
    case CM_EVENT_SIDR_REPLIED: on_sidr_replied(manager, id, event->message); return;
    case CM_EVENT_REJECTED: on_rejected(manager, id, event->message); return;
    case CM_EVENT_ESTABLISHED: rdma_raise(manager, id, RDMA_EVENT_ESTABLISHED, 0); return;
    case CM_EVENT_UNREACHABLE:
        id->state = RDMA_ID_DISCONNECTED;
        rdma_raise(manager, id, RDMA_EVENT_UNREACHABLE, -RDMA_ETIMEDOUT);
        return;
    case CM_EVENT_DISCONNECTED:
        id->state = RDMA_ID_DISCONNECTED;
        rdma_raise(manager, id, RDMA_EVENT_DISCONNECTED, 0);
        return;
    case CM_EVENT_TIMEWAIT_OVER: rdma_raise(manager, id, RDMA_EVENT_TIMEWAIT_EXIT, 0); return;
    case CM_EVENT_RELEASED: list_append(&manager->released, &id->released); return;
    }
    UNREACHABLE("an event outside its enum");
}

/* The id that an event is about, unless its message was all there was to it. */
static void check_about(struct rdma_cm *manager, const struct cm_event *event)
{
    if (event->connection != NULL) {
        rdma_id_check(manager, id_of(event->connection));
    }
}

void rdma_cm_on_message(struct rdma_cm *manager, const uint8_t source[16],
                        const uint8_t destination[16], const uint8_t *bytes, size_t count,
                        struct instant now)
{
    struct cm_event event;
    if (manager->spare_event_count < 1) {
        manager->cm.counters.crowded_out++;
        return;
    }
    struct cm_connection *spare = NULL;
    if (!list_empty(&manager->spare_ids)) {
        spare = &CONTAINER_OF(manager->spare_ids.next, struct rdma_id, released)->connection;
    }
    cm_on_message(&manager->cm, source, destination, bytes, count, spare, now, &event);
    on_event(manager, &event, now);
    INVARIANTS(check_about(manager, &event));
}

void rdma_cm_on_time(struct rdma_cm *manager, struct instant now)
{
    struct cm_event event;
    while (manager->spare_event_count > 0 && instant_reached(now, cm_deadline(&manager->cm))) {
        cm_on_time(&manager->cm, now, &event);
        on_event(manager, &event, now);
        INVARIANTS(check_about(manager, &event));
    }
}
