/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_cm_route - requests that come to an address that several processes share.
 *
 * QPN 1 belongs to all of them: the process that wakes up reads the packets to it. An answer names
 * the id that its receiver chose. But a request (REQ, SIDR_REQ) names a service, so we look for the
 * port's owner, and keep the request meanwhile. Its sender repeats it; copies of a request that is
 * kept are dropped. If no process of the address serves the port, we say so.
 *
 * Anybody can send requests for ports that nobody serves, and those are kept longest. So a port is
 * asked about once for all requests to it; a sender waits for few ports at a time; and a newcomer
 * takes the place of the oldest request. A request for a port that is served is seldom kept long
 * enough to become that. A request that has to go is dropped: its sender repeats it.
 */
#include <stdlib.h>
#include <string.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_stat.h"
#include "drivers/system/local_socket.h"

#define PARKED_MAX            1024
#define PARKED_MAX_OF_SENDER  256
#define LOOKUPS_MAX_OF_SENDER 16

/* A port whose owner is looked for. */
struct lookup {
    struct list node; /* In live.manager.lookups. */
    struct list parked;
    uint16_t port_space, port;
    uint8_t address[16];
    struct gid sender; /* The sender of the first request. */
};

struct parked {
    struct list node;   /* In live.manager.parked, oldest first. */
    struct list fellow; /* In lookup->parked. */
    struct lookup *lookup;
    struct live_mad mad;
};

struct request {
    struct cm_message message;
    struct cm_addresses addresses;
    uint64_t service_id;
};

/* False: it is no request, or it makes no sense. */
static bool read_request(const struct live_mad *mad, struct request *request)
{
    if (cm_decode(mad->mad, mad->bytes, &request->message) != CM_GOOD) {
        return false;
    }
    if (request->message.attribute == CM_REQ) {
        request->service_id = request->message.req.service_id;
    } else if (request->message.attribute == CM_SIDR_REQ) {
        request->service_id = request->message.sidr_req.service_id;
    } else {
        return false;
    }
    return cm_addresses_decode(request->message.private_data, &request->addresses);
}

/* A request waits in the list of all, and in that of its port, which is there as long as one
 * waits for it. */
static void parked_check(const struct live *live, const struct parked *parked)
{
    CHECK(live->manager.parked_count >= 1 && live->manager.parked_count <= PARKED_MAX);
    CHECK(!list_empty(&live->manager.lookups) && !list_empty(&parked->lookup->parked));
    CHECK(parked->mad.headers_bytes <= sizeof(parked->mad.headers));
    CHECK(parked->mad.bytes == CM_MAD_BYTES);
    list_check(&parked->node);
    list_check(&parked->fellow);
}

/* Frees a request, and its lookup with the last one. */
static void forget(struct live *live, struct parked *parked)
{
    struct lookup *lookup = parked->lookup;
    INVARIANTS(parked_check(live, parked));
    list_remove(&parked->node);
    list_remove(&parked->fellow);
    live->manager.parked_count--;
    free(parked);
    if (list_empty(&lookup->parked)) {
        services_forget(&live->manager.services, lookup);
        list_remove(&lookup->node);
        free(lookup);
    }
}

/* The request whose place a new one of `sender` takes; NULL: there is room. */
static struct parked *oldest_to_go(const struct live *live, const struct gid *sender)
{
    struct parked *of_sender = NULL;
    uint32_t count = 0;
    const struct list *head = &live->manager.parked;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct parked *parked = CONTAINER_OF(node, struct parked, node);
        if (gid_equal(&parked->mad.source, sender)) {
            of_sender = of_sender == NULL ? parked : of_sender;
            count++;
        }
    }
    return count >= PARKED_MAX_OF_SENDER ? of_sender
           : live->manager.parked_count >= PARKED_MAX
               ? CONTAINER_OF(head->next, struct parked, node)
               : NULL;
}

static void drop(struct live *live, struct parked *parked)
{
    cm_note_crowded_out(&live->manager.cm->cm);
    forget(live, parked);
}

static void make_room(struct live *live, const struct gid *sender)
{
    struct parked *oldest = oldest_to_go(live, sender);
    if (oldest != NULL) {
        drop(live, oldest);
    }
}

/* Makes room for a lookup of one more port for `sender`: if it has many, its oldest one ends. */
static void make_room_for_lookup(struct live *live, const struct gid *sender)
{
    struct lookup *oldest = NULL;
    uint32_t count = 0;
    const struct list *head = &live->manager.lookups;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct lookup *lookup = CONTAINER_OF(node, struct lookup, node);
        if (gid_equal(&lookup->sender, sender)) {
            oldest = oldest == NULL ? lookup : oldest;
            count++;
        }
    }
    if (count < LOOKUPS_MAX_OF_SENDER) {
        return;
    }
    bool last;
    do {
        last = oldest->parked.next == oldest->parked.previous;
        drop(live, CONTAINER_OF(oldest->parked.next, struct parked, fellow));
    } while (!last);
}

static struct lookup *find_lookup(const struct live *live, const struct request *request)
{
    const struct list *head = &live->manager.lookups;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct lookup *lookup = CONTAINER_OF(node, struct lookup, node);
        if (lookup->port_space == (uint16_t)(request->service_id >> 16) &&
            lookup->port == (uint16_t)request->service_id &&
            memcmp(lookup->address, request->addresses.destination, 16) == 0) {
            return lookup;
        }
    }
    return NULL;
}

static bool is_parked(const struct lookup *lookup, const struct live_mad *mad)
{
    const struct list *head = &lookup->parked;
    for (const struct list *node = head->next; node != head; node = node->next) {
        const struct parked *parked = CONTAINER_OF_CONST(node, struct parked, fellow);
        if (gid_equal(&parked->mad.source, &mad->source) &&
            memcmp(parked->mad.mad, mad->mad, CM_MAD_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static struct lookup *make_lookup(struct live *live, const struct request *request,
                                  const struct gid *sender)
{
    make_room_for_lookup(live, sender);
    struct lookup *lookup = malloc(sizeof(*lookup));
    if (lookup != NULL) {
        *lookup = (struct lookup){.port_space = (uint16_t)(request->service_id >> 16),
                                  .port = (uint16_t)request->service_id,
                                  .sender = *sender};
        memcpy(lookup->address, request->addresses.destination, 16);
        list_init(&lookup->node);
        list_init(&lookup->parked);
        list_append(&live->manager.lookups, &lookup->node);
    }
    return lookup;
}

/* False: no memory. */
static bool park(struct live *live, const struct live_mad *mad, struct lookup *lookup)
{
    struct parked *parked = malloc(sizeof(*parked));
    if (parked == NULL) {
        return false;
    }
    parked->lookup = lookup;
    parked->mad = *mad;
    list_init(&parked->node);
    list_init(&parked->fellow);
    list_append(&live->manager.parked, &parked->node);
    list_append(&lookup->parked, &parked->fellow);
    live->manager.parked_count++;
    INVARIANTS(parked_check(live, parked));
    return true;
}

/* A process that made no id of its own has no memory for a peer's either, but it can refuse. */
static void judge_here(struct live *live, const struct live_mad *mad, const struct request *request)
{
    if (live->manager.listener.make_id != NULL) {
        live_cm_judge(live, mad);
    } else {
        cm_refuse(&live->manager.cm->cm, mad->source.bytes, mad->destination.bytes,
                  &request->message);
    }
}

static bool hand_on(struct live *live, const struct live_mad *mad, int slot)
{
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX + CM_MAD_BYTES];
    CHECK(slot != (int)live->addresses.slot && mad->headers_bytes <= sizeof(mad->headers));
    memcpy(bytes, mad->headers, mad->headers_bytes);
    memcpy(bytes + mad->headers_bytes, mad->mad, sizeof(mad->mad));
    const struct udp_datagram datagram = {
        .source = mad->source,
        .destination = mad->destination,
        .variant = mad->variant,
        .bytes = bytes,
        .count = mad->headers_bytes + sizeof(mad->mad),
    };
    const bool handed =
        udp_port_hand_on(&live->udp, &datagram.destination, (uint32_t)slot, &datagram);
    live_count_port(live);
    return handed;
}

static void settle(struct live *live, struct lookup *lookup, bool found,
                   const struct service_owner *owner)
{
    const bool others = found && owner->slot != LOCAL_NO_SLOT &&
                        owner->slot != (int)live->addresses.slot &&
                        gid_equal(&owner->gid, &live->addresses.entries[0].gid);
    bool last;
    CHECK(!list_empty(&lookup->parked)); /* Else it would have gone. */
    do {
        struct parked *parked = CONTAINER_OF(lookup->parked.next, struct parked, fellow);
        struct request request;
        /* It was a request when it came, and nobody else could change our copy. */
        CHECK(read_request(&parked->mad, &request));
        if (!live_cm_prepare(live)) {
            nic_count(live->nic, COUNTER_drop_no_receive);
        } else if (!others || !hand_on(live, &parked->mad, owner->slot)) {
            judge_here(live, &parked->mad, &request);
        }
        last = lookup->parked.next == lookup->parked.previous;
        forget(live, parked);
    } while (!last);
}

bool live_cm_routed(struct live *live, const void *context, bool found,
                    const struct service_owner *owner)
{
    struct list *head = &live->manager.lookups;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct lookup *lookup = CONTAINER_OF(node, struct lookup, node);
        if (lookup == context) {
            settle(live, lookup, found, owner);
            return true;
        }
    }
    return false;
}

/* Keeps a request while we look for the port's owner. */
static void keep(struct live *live, const struct live_mad *mad, const struct request *request)
{
    struct lookup *lookup = find_lookup(live, request);
    if (lookup != NULL && is_parked(lookup, mad)) {
        return;
    }
    make_room(live, &mad->source);
    lookup = find_lookup(live, request); /* The lookup may have gone to make room. */
    const bool known = lookup != NULL;
    lookup = known ? lookup : make_lookup(live, request, &mad->source);
    if (lookup == NULL || !park(live, mad, lookup)) {
        nic_count(live->nic, COUNTER_drop_no_receive);
        if (lookup != NULL && !known) {
            list_remove(&lookup->node);
            free(lookup);
        }
        return;
    }
    if (!known && services_await(&live->manager.services, lookup->port_space, lookup->address,
                                 lookup->port, live->now, lookup) == SERVICE_NOBODY) {
        settle(live, lookup, false, NULL);
    }
}

bool live_cm_route(struct live *live, const struct live_mad *mad)
{
    struct request request;
    if (!read_request(mad, &request) ||
        rdma_cm_listens(live->manager.cm, request.service_id, &request.addresses,
                        request.message.attribute == CM_SIDR_REQ)) {
        return false;
    }
    keep(live, mad, &request);
    return true;
}

void live_cm_forget_routes(struct live *live)
{
    while (!list_empty(&live->manager.parked)) {
        forget(live, CONTAINER_OF(live->manager.parked.next, struct parked, node));
    }
    CHECK(live->manager.parked_count == 0 && list_empty(&live->manager.lookups));
}
