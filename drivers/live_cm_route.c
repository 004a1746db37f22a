/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_cm_route - requests that come to an address that several processes share.
 *
 * QPN 1 is everybody's: whoever wakes up reads what comes to it. An answer names the id its
 * receiver chose, but a request (REQ, SIDR_REQ) names a service, so the port's owner is asked, and
 * the request kept meanwhile; its sender repeats it, so a copy of one that is kept need not be.
 * When nobody of the address serves the port, we say so.
 */
#include <stdlib.h>
#include <string.h>

#include "drivers/live_internal.h"
#include "drivers/local_socket.h"

/* Each costs a descriptor until the owner answers, which mostly takes microseconds. */
#define PARKED_MAX 256

struct parked {
    struct list node;
    struct nic_arrival arrival; /* Its payload is `mad`. */
    uint8_t mad[CM_MAD_BYTES];
};

struct request {
    struct cm_message message;
    struct cm_addresses addresses;
    uint64_t service_id;
};

/* False: no request, or one that makes no sense. */
static bool read_request(const struct nic_arrival *arrival, struct request *request)
{
    if (cm_decode(arrival->packet.payload, arrival->packet.payload_bytes, &request->message) !=
        CM_GOOD) {
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

static bool is_parked(const struct live *live, const struct nic_arrival *arrival)
{
    const struct list *head = &live->cm_parked;
    for (const struct list *node = head->next; node != head; node = node->next) {
        const struct parked *parked = CONTAINER_OF_CONST(node, struct parked, node);
        if (memcmp(&parked->arrival.source, &arrival->source, sizeof(arrival->source)) == 0 &&
            memcmp(parked->mad, arrival->packet.payload, CM_MAD_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static struct parked *park(struct live *live, const struct nic_arrival *arrival)
{
    struct parked *parked = live->cm_parked_count < PARKED_MAX ? malloc(sizeof(*parked)) : NULL;
    if (parked != NULL) {
        parked->arrival = *arrival;
        memcpy(parked->mad, arrival->packet.payload, CM_MAD_BYTES);
        parked->arrival.packet.payload = parked->mad;
        list_init(&parked->node);
        list_append(&live->cm_parked, &parked->node);
        live->cm_parked_count++;
    }
    return parked;
}

static void forget(struct live *live, struct parked *parked)
{
    list_remove(&parked->node);
    live->cm_parked_count--;
    free(parked);
}

/* A process without an id of its own has no memory for a peer's either, but it can say no. */
static void judge_here(struct live *live, const struct nic_arrival *arrival,
                       const struct request *request)
{
    if (live->cm_listener.make_id != NULL) {
        live_cm_judge(live, arrival);
    } else {
        cm_refuse(&live->cm->cm, arrival->source.bytes, arrival->destination.bytes,
                  &request->message);
    }
}

bool live_cm_route(struct live *live, const struct nic_arrival *arrival)
{
    struct request request;
    if (!read_request(arrival, &request) ||
        rdma_cm_listens(live->cm, request.service_id, &request.addresses,
                        request.message.attribute == CM_SIDR_REQ)) {
        return false;
    }
    if (is_parked(live, arrival)) {
        return true;
    }
    struct parked *parked = park(live, arrival);
    if (parked == NULL) {
        nic_count(live->nic, COUNTER_drop_no_receive);
        return true;
    }
    if (services_await(&live->services, (uint16_t)(request.service_id >> 16),
                       request.addresses.destination, (uint16_t)request.service_id, live->now,
                       parked) == SERVICE_NOBODY) {
        forget(live, parked);
        judge_here(live, arrival, &request);
    }
    return true;
}

static bool hand_on(struct live *live, const struct parked *parked, int slot)
{
    uint8_t bytes[ROCE_PACKET_BYTES_MAX];
    const size_t headers = roce_encode_headers(&parked->arrival.packet, bytes);
    memcpy(bytes + headers, parked->mad, sizeof(parked->mad));
    const struct udp_datagram datagram = {
        .source = parked->arrival.source,
        .destination = parked->arrival.destination,
        .traffic_class = parked->arrival.traffic_class,
        .hop_limit = parked->arrival.hop_limit,
        .bytes = bytes,
        .count = headers + sizeof(parked->mad),
    };
    const bool handed =
        udp_port_hand_on(&live->udp, &datagram.destination, (uint32_t)slot, &datagram);
    live_count_port(live);
    return handed;
}

static struct parked *find(struct live *live, const void *context)
{
    struct list *head = &live->cm_parked;
    for (struct list *node = head->next; node != head; node = node->next) {
        if (CONTAINER_OF(node, struct parked, node) == context) {
            return CONTAINER_OF(node, struct parked, node);
        }
    }
    return NULL;
}

bool live_cm_routed(struct live *live, const void *context, bool found,
                    const struct service_owner *owner)
{
    struct parked *parked = find(live, context);
    if (parked == NULL) {
        return false;
    }
    const bool others =
        found && owner->slot != LOCAL_NO_SLOT && owner->slot != (int)live->addresses.slot;
    struct request request;
    CHECK(read_request(&parked->arrival, &request));
    if (!others || !hand_on(live, parked, owner->slot)) {
        judge_here(live, &parked->arrival, &request);
    }
    forget(live, parked);
    return true;
}

void live_cm_forget_routes(struct live *live)
{
    while (!list_empty(&live->cm_parked)) {
        forget(live, CONTAINER_OF(live->cm_parked.next, struct parked, node));
    }
}
