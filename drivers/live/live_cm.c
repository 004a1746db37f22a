/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_explain.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_resolve.h"
#include "drivers/live/live_transmit.h"
#include "drivers/live/live_wake.h"
#include "drivers/share_route.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/presence.h"
#include "drivers/system/random.h"
#include "drivers/system/shortage.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/system.h"
#include "wire/inet.h"

/* Source ports of ids that did not ask for one. */
#define SOURCE_PORT_FIRST 32768
#define SOURCE_PORT_COUNT 16384

/* Local identifiers are claimed like ports, in a space that no program can name. */
#define LID_SPACE       0
#define LID_UNICAST_MAX 0xbfff
#define LID_TRIES       64

/* Without memory the manager cannot go on: it tries again after this time. */
#define OUT_OF_MEMORY_NS 10000000u

/* -- Opening ------------------------------------------------------------------------------------*/

bool live_cm_open(struct live *live, uint64_t seed)
{
    const bool shared = live->addresses.shared;
    const struct service_owner self = {.gid = live->addresses.entries[0].gid,
                                       .slot = shared ? (int)live->addresses.slot : LOCAL_NO_SLOT};
    CHECK(live->manager.cm == NULL && live->addresses.count > 0);
    live->manager.cm = calloc(1, sizeof(*live->manager.cm));
    if (live->manager.cm == NULL) {
        return false;
    }
    /* Answers find the process by the id that it chose (share_route.h). */
    rdma_cm_init(live->manager.cm, seed, (uint8_t)(shared ? live->addresses.slot : 0),
                 live_guid(live));
    live->manager.cm->path_mtu_max = (uint8_t)live_active_mtu(live);
    live->manager.due = INSTANT_NEVER;
    struct gid gids[ADDRESS_MAX];
    for (uint32_t i = 0; i < live->addresses.count; i++) {
        gids[i] = live->addresses.entries[i].gid;
    }
    live->manager.presence =
        presence_open(gids, live->addresses.count, shared ? live->addresses.slot : 0);
    return live->manager.presence != NULL && services_open(&live->manager.services, &self);
}

void live_cm_close(struct live *live)
{
    services_close(&live->manager.services);
    presence_close(live->manager.presence);
    live->manager.presence = NULL;
    live_cm_forget_routes(live);
    if (live->manager.cm == NULL) {
        return;
    }
    struct rdma_event *event;
    while ((event = rdma_cm_take_spare_event(live->manager.cm)) != NULL) {
        free(event);
    }
    free(live->manager.cm);
    live->manager.cm = NULL;
}

void live_cm_listen(struct live *live, const struct live_cm_listener *listener)
{
    INVARIANTS(live_check_locked(live));
    live->manager.listener = *listener;
}

struct rdma_cm *live_cm(struct live *live)
{
    return live->manager.cm;
}

/* -- Addresses ----------------------------------------------------------------------------------*/

/* The index among our addresses; -1: none of them. Connections are made between addresses: their
 * link-local names are told to no peer. */
static int own_address(const struct live *live, const uint8_t ip[16])
{
    for (uint32_t i = 0; i < live->addresses.count; i++) {
        if (memcmp(live->addresses.entries[i].gid.bytes, ip, 16) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* An address of ours that can talk to `peer`. */
static const struct gid *gid_towards(const struct live *live, const uint8_t peer[16])
{
    CHECK(live->addresses.count > 0);
    for (uint32_t i = 0; i < live->addresses.count; i++) {
        const struct gid *gid = &live->addresses.entries[i].gid;
        if (inet_is_ipv4(gid->bytes) == inet_is_ipv4(peer)) {
            return gid;
        }
    }
    return &live->addresses.entries[0].gid;
}

void live_cm_gid_for(const struct live *live, const uint8_t ip[16], uint8_t gid[16])
{
    const int own = own_address(live, ip);
    memcpy(gid, live->addresses.entries[own < 0 ? 0 : own].gid.bytes, 16);
}

/* Can packets leave from this address? */
static bool is_usable(const struct live *live, const uint8_t ip[16])
{
    const int own = own_address(live, ip);
    return own >= 0 && !live_gid_is_gone(live, (uint32_t)own);
}

uint16_t live_cm_source_port(struct live *live)
{
    if (live->manager.ports == 0) {
        random_draw(&live->manager.ports, sizeof(live->manager.ports));
    }
    return (uint16_t)(SOURCE_PORT_FIRST + live->manager.ports++ % SOURCE_PORT_COUNT);
}

/* The kernel's choice, unless only another address of ours leads there: this device may have only
 * one that the kernel does not prefer. */
static bool choose_source(const struct live *live, const struct rdma_address *destination,
                          uint8_t from[16])
{
    const uint8_t *to = destination->ip;
    if (!address_towards(to, destination->scope_id, from)) {
        return false;
    }
    for (uint32_t i = 0; i < live->addresses.count && own_address(live, from) < 0; i++) {
        const uint8_t *own = live->addresses.entries[i].gid.bytes;
        if (inet_is_ipv4(own) == inet_is_ipv4(to) && is_usable(live, own) &&
            !live->addresses.entries[i].loopback && address_leads(own, to)) {
            memcpy(from, own, 16);
        }
    }
    return true;
}

/* The path MTU of this port, but no larger than that of a peer on another interface of this
 * machine. A path MTU that fits Ethernet's usual MTU fits all interfaces. */
static enum path_mtu path_mtu_to(const struct live *live, const uint8_t to[16])
{
    const enum path_mtu own = live_active_mtu(live);
    enum path_mtu peers = own;
    if (own > PATH_MTU_1024 && !inet_is_loopback_ipv4(to) && !inet_is_multicast(to)) {
        (void)address_path_mtu(address_interface_bytes(to), &peers);
    }
    return peers < own ? peers : own;
}

/* Finds the route to the id's destination. 0, or an errno: there is none. */
static int find_route(struct live *live, const struct rdma_id *id, struct rdma_route *route)
{
    const uint8_t *to = id->destination.ip;
    struct rdma_address *source = &route->source;
    const bool multicast = inet_is_multicast(to);
    *source = id->source;
    if (inet_is_any(source->ip)) {
        if (multicast && live->config.device == NULL) {
            memcpy(source->ip, gid_towards(live, to)->bytes, 16);
        } else if (!choose_source(live, &id->destination, source->ip)) {
            return shortage_is(errno) ? errno : ENETUNREACH;
        }
        source->scope_id = id->destination.scope_id;
    }
    if (!multicast && !address_is_local(to) && !is_usable(live, source->ip)) {
        if (errno != 0) {
            return errno;
        }
        if (live->config.device == NULL) {
            live_explain_machine(&live->explained);
        }
        return ENODEV;
    }
    live_cm_gid_for(live, source->ip, route->source_gid);
    route->path_mtu = (uint8_t)path_mtu_to(live, to);
    return 0;
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

/* On another machine, the process that has the address serves the port; on this machine, other
 * processes are asked. */
static void answer_service(struct live *live, struct rdma_id *id, bool patiently)
{
    const uint8_t *to = id->destination.ip;
    if (!inet_is_multicast(to) && !address_is_local(to)) {
        if (errno != 0) {
            rdma_cm_on_nobody(live->manager.cm, id); /* We may know it when asked again. */
            return;
        }
        struct rdma_server server = {.process = 0};
        memcpy(server.gid, to, 16);
        memcpy(server.source_gid, id->source_gid, 16);
        rdma_cm_on_found(live->manager.cm, id, &server, live->now);
        return;
    }
    if (inet_is_multicast(to) || (patiently ? services_await : services_find)(
                                     &live->manager.services, id->port_space, to,
                                     id->destination.port, live->now, id) == SERVICE_NOBODY) {
        rdma_cm_on_nobody(live->manager.cm, id);
    }
}

int live_cm_claim(struct live *live, uint16_t port_space, struct rdma_address *address,
                  bool ipv6_only, struct service **service)
{
    INVARIANTS(live_check_locked(live));
    return services_claim(&live->manager.services, port_space, address->ip, ipv6_only,
                          address->port, &address->port, service);
}

int live_cm_offer(struct live *live, struct service *service)
{
    INVARIANTS(live_check_locked(live));
    return services_offer(&live->manager.services, service);
}

void live_cm_unclaim(struct service *service)
{
    services_release(service);
}

/* -- Local identifiers --------------------------------------------------------------------------*/

/* Can only this machine reach the device? */
static bool within_machine(const struct live *live)
{
    static const uint8_t loopback[16] = {[15] = 1};
    for (uint32_t i = 0; i < live->addresses.count; i++) {
        const uint8_t *address = live->addresses.entries[i].gid.bytes;
        if (!inet_is_loopback_ipv4(address) && memcmp(address, loopback, sizeof(loopback)) != 0) {
            return false;
        }
    }
    return true;
}

uint16_t live_lid(struct live *live)
{
    static const uint8_t any[16];
    if (!within_machine(live)) {
        return 0;
    }
    const int cancellation = uncancelled_begin();
    live_lock(live);
    for (int i = 0; live->manager.lid == 0 && i < LID_TRIES; i++) {
        uint16_t lid, chosen;
        struct service *service;
        random_draw(&lid, sizeof(lid));
        lid = (uint16_t)(1 + lid % LID_UNICAST_MAX);
        CHECK(lid != 0 && lid <= LID_UNICAST_MAX); /* 0 says that there is none. */
        if (services_claim(&live->manager.services, LID_SPACE, any, true, lid, &chosen, &service) !=
            0) {
            continue;
        }
        if (services_offer(&live->manager.services, service) == 0) {
            live->manager.lid = lid;
        } else {
            services_release(service);
        }
    }
    const uint16_t lid = live->manager.lid;
    live_unlock(live);
    uncancelled_end(cancellation);
    return lid;
}

bool live_gid_of_lid(struct live *live, uint16_t lid, struct gid *gid)
{
    if (lid == live->manager.lid && lid != 0) {
        *gid = live->addresses.entries[0].gid;
        return true;
    }
    struct service_owner owner;
    if (!services_ask(LID_SPACE, lid, &owner)) {
        return false;
    }
    *gid = owner.gid;
    return true;
}

/* -- Going round --------------------------------------------------------------------------------*/

/* The slot of the process behind the destination: of the one that was found to serve the port, or
 * of the one whose id the message names. For a peer that is alone, or on another machine, the slot
 * does not matter. */
static uint32_t slot_for(const struct cm_mad *mad)
{
    if (mad->process != 0) {
        return mad->process - 1;
    }
    const int slot = share_slot_of_mad(mad->bytes, sizeof(mad->bytes));
    return slot == LOCAL_NO_SLOT ? 0 : (uint32_t)slot;
}

static void send_mad(struct live *live, const struct cm_mad *mad)
{
    struct nic_av av = {0};
    memcpy(av.source.bytes, mad->source, 16);
    memcpy(av.destination.bytes, mad->destination, 16);
    /* A peer that cannot be reached counts as one that does not answer. */
    if (live_resolve_management(live, &av, slot_for(mad)) == STATUS_OK) {
        live_transmit_mad(live, &av, mad->bytes);
    }
}

void live_cm_say_again(struct live *live)
{
    struct cm_mad mad;
    INVARIANTS(live_check_locked(live));
    cm_say_again(&live->manager.cm->cm, live_now(live));
    while (cm_next_copy(&live->manager.cm->cm, &mad)) {
        send_mad(live, &mad);
    }
}

/* Asks the questions of ids. False: there may be more, but there is no memory for their answers. */
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

static void answer_found(struct live *live, struct rdma_id *id, const struct service_owner *owner)
{
    CHECK(owner->slot >= LOCAL_NO_SLOT && owner->slot < SHARE_SLOTS); /* It was judged. */
    struct rdma_server server = {.process = (uint32_t)(owner->slot + 1)};
    memcpy(server.gid, owner->gid.bytes, 16);
    memcpy(server.source_gid, gid_towards(live, owner->gid.bytes)->bytes, 16);
    rdma_cm_on_found(live->manager.cm, id, &server, live->now);
}

/* Takes in the answers. False: there may be more, but there is no memory for them. */
static bool take_answers(struct live *live)
{
    void *context;
    bool found, memory;
    struct service_owner owner;
    while ((memory = live_cm_prepare(live)) &&
           services_next_answer(&live->manager.services, &context, &found, &owner)) {
        if (live_cm_routed(live, context, found, &owner)) {
            continue;
        }
        if (found &&
            !live_is_out_of_reach(live, &owner.gid, owner.slot < 0 ? 0 : (uint32_t)owner.slot)) {
            live_cm_look_for_gone(live, &owner.gid, owner.slot < 0 ? 0 : (uint32_t)owner.slot);
            answer_found(live, context, &owner);
        } else {
            rdma_cm_on_nobody(live->manager.cm, context);
        }
    }
    return memory;
}

static struct instant due(const struct live *live)
{
    const struct instant cm = cm_deadline(&live->manager.cm->cm);
    const struct instant services = services_deadline(&live->manager.services);
    return instant_before(cm, services) ? cm : services;
}

void live_cm_settle(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    const struct live_cm_listener *listener = &live->manager.listener;
    CHECK(live->manager.cm != NULL);
    const bool answered = take_answers(live), put = put_questions(live);
    struct cm_mad mad;
    while (cm_next_message(&live->manager.cm->cm, &mad)) {
        live_cm_meet_server(live, &mad, slot_for(&mad));
        send_mad(live, &mad);
        cm_note_sent(&live->manager.cm->cm, &mad, live->now);
    }
    struct rdma_id *id;
    while ((id = rdma_cm_next_released(live->manager.cm)) != NULL) {
        services_forget(&live->manager.services, id);
        listener->on_released(id);
    }
    struct rdma_channel *channel;
    while ((channel = rdma_cm_next_changed(live->manager.cm)) != NULL) {
        listener->on_changed(channel);
    }
    live->manager.due = due(live);
    if (!answered || !put) {
        const struct instant again = instant_after(live->now, OUT_OF_MEMORY_NS);
        live->manager.due = instant_before(again, live->manager.due) ? again : live->manager.due;
    }
    live_wake_for_work(live);
}

static void take_mad(const struct nic_frame *frame, const struct nic_move *move,
                     struct live_mad *mad)
{
    const uint32_t headers =
        frame->payload == NULL ? frame->headers_bytes - move->payload_bytes : frame->headers_bytes;
    INVARIANTS(CHECK(headers <= frame->headers_bytes));
    mad->source = frame->source;
    mad->destination = frame->destination;
    mad->variant = (struct inet_variant){.flow_label = frame->flow_label,
                                         .traffic_class = frame->traffic_class,
                                         .hop_limit = frame->hop_limit};
    mad->headers_bytes = headers < sizeof(mad->headers) ? headers : sizeof(mad->headers);
    mad->bytes = move->payload_bytes;
    memcpy(mad->headers, frame->headers, mad->headers_bytes);
    if (mad->bytes == CM_MAD_BYTES) {
        memcpy(mad->mad, move->payload, CM_MAD_BYTES);
    }
}

static void judge_arrival(struct live *live, const struct live_mad *mad)
{
    INVARIANTS(live_check_locked(live));
    if (!live_cm_prepare(live)) {
        nic_count(live->nic, COUNTER_drop_no_receive);
        return;
    }
    if (!live->addresses.shared || !live_cm_route(live, mad)) {
        live_cm_judge(live, mad);
    }
    live_cm_settle(live);
}

/* A program's poll calls this function, and services.c and socket_address.c call functions of the C
 * library that would end a cancelled thread. */
void live_cm_arrival(struct live *live, const struct nic_frame *frame, const struct nic_move *move)
{
    struct live_mad mad;
    take_mad(frame, move, &mad);
    const int cancellation = uncancelled_begin();
    judge_arrival(live, &mad);
    uncancelled_end(cancellation);
}

void live_cm_serve(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    services_serve(&live->manager.services);
    live_explain_other_version(&live->explained, live->manager.services.other_version);
    live->manager.services.other_version = 0;
    if (live->config.wire == LIVE_WIRE_SHM) {
        live_explain_other_layouts(&live->explained, live_now(live));
    }
    live_cm_settle(live);
}

void live_cm_on_gone(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    live_cm_hear_of_gone(live);
    live_cm_settle(live);
}

/* No thread is cancelled here either. */
void live_cm_on_time(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    const int cancellation = uncancelled_begin();
    if (!live_cm_prepare(live)) {
        live->manager.due = instant_after(live->now, OUT_OF_MEMORY_NS);
    } else {
        services_on_time(&live->manager.services, live->now);
        rdma_cm_on_time(live->manager.cm, live->now);
        live_cm_wake_for_gone(live);
        live_cm_settle(live);
    }
    uncancelled_end(cancellation);
}
