/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_cm - management datagrams, and the connection manager that programs connect with.
 */
#ifndef DRIVERS_LIVE_CM_H
#define DRIVERS_LIVE_CM_H

#include "drivers/services/services.h"
#include "nic/nic.h"
#include "wire/cm.h"
#include "wire/roce.h"
#include "world/manager.h"

struct live;
struct presence;

/* A datagram for QP 1. Its bytes are copies: a peer may go on writing where the frame lies. */
struct live_mad {
    struct gid source, destination;
    struct inet_variant variant;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    uint32_t headers_bytes;
    uint32_t bytes; /* Only a MAD of CM_MAD_BYTES is looked into. */
    uint8_t mad[CM_MAD_BYTES];
};

struct live_manager {
    struct rdma_cm *cm;
    struct live_cm_listener listener;
    struct services services;
    struct presence *presence;   /* NULL: we hear of no process's end. */
    struct list parked, lookups; /* live_cm_route.c: requests, and the ports they are for. */
    uint32_t parked_count;
    struct instant due; /* When live_cm_on_time is wanted. */
    uint32_t psn;       /* The PSN of the next management datagram. */
    uint16_t lid;       /* 0: not yet claimed. */
    uint16_t ports;     /* Source ports of connections: the next one; 0: none was given yet. */
};

/* live_cm.c. live_cm_arrival: a packet for QP 1 has come; live_cm_serve: the services' descriptor
 * is readable; live_cm_on_time: time has passed. */
MUST_USE bool live_cm_open(struct live *live, uint64_t seed);
void live_cm_close(struct live *live);
void live_cm_arrival(struct live *live, const struct nic_frame *frame, const struct nic_move *move);
void live_cm_serve(struct live *live);
void live_cm_on_time(struct live *live);
/* Processes have ended, and their ends are still to be told: by live_cm_on_gone, when all packets
 * that they had sent have been taken in. */
bool live_cm_has_gone(const struct live *live);
void live_cm_on_gone(struct live *live);
/* The process ends: sends those answers once more that a peer may not have got. */
void live_cm_say_again(struct live *live);

/* live_cm_gone.c: before a request goes to a process, and when a request has come from a process.
 * From then on we hear of the end of that process. */
void live_cm_meet_server(struct live *live, const struct cm_mad *mad, uint32_t slot);
void live_cm_meet_requester(struct live *live, const struct live_mad *mad);
void live_cm_look_for_gone(struct live *live, const struct gid *gid, uint32_t slot);
MUST_USE bool live_cm_watch(struct live *live);
void live_cm_hear_of_gone(struct live *live);
/* The thread, if there is one, tells the ends of processes that have not been told. */
void live_cm_wake_for_gone(struct live *live);
/* A request that came in is ours to judge. */
void live_cm_judge(struct live *live, const struct live_mad *mad);

/* live_cm_route.c: a message has come to an address that processes share. True: it is a request
 * whose port no process of ours serves; it is kept, and the port's owner is looked for. */
MUST_USE bool live_cm_route(struct live *live, const struct live_mad *mad);
/* The answer to a question of ours about the owner of a service. False: it is no such question. */
MUST_USE bool live_cm_routed(struct live *live, const void *context, bool found,
                             const struct service_owner *owner);
void live_cm_forget_routes(struct live *live);

#endif
