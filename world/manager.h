/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - the connection manager of a world's NIC: its messages, times and questions.
 *
 * Purpose    Puts transport/ibta/rdma_cm.h on the NIC's QP 1 and answers what it asks.
 * Inputs     rdma_id_* on live_cm(live), between live_cm_prepare and live_cm_settle.
 * Outputs    MADs to peers; through struct live_cm_listener, what programs are to be told.
 * Ownership  The listener makes and frees ids; events are the world's.
 * Threads    Everything is called with the NIC's lock held (world.h).
 * Time       As world.h.
 * Units      As rdma_cm.h.
 * Source     docs/decisions/0013.
 */
#ifndef WORLD_MANAGER_H
#define WORLD_MANAGER_H

#include "transport/ibta/rdma_cm.h"
#include "world/world.h"

struct live_cm_listener {
    struct rdma_id *(*make_id)(void); /* For a peer's request; NULL: no memory. */
    void (*on_released)(struct rdma_id *id);
    void (*on_changed)(struct rdma_channel *channel);
};
/* Before the first id. Again: no change. */
void live_cm_listen(struct live *live, const struct live_cm_listener *listener);

struct rdma_cm *live_cm(struct live *live);

/* Before a wish of a program: the manager has the memory it may need. False: there is none. */
MUST_USE bool live_cm_prepare(struct live *live);
/* After it: questions are answered or put, messages sent, programs told. */
void live_cm_settle(struct live *live);

/* An event that was taken from a channel and told. */
void live_cm_give_back(struct live *live, struct rdma_event *event);

/* A port that an id has claimed. */
struct service;

/* Claims a port of this machine, or any if it is 0, for an id: 0 or an errno. */
int live_cm_claim(struct live *live, uint16_t port_space, struct rdma_address *address,
                  bool ipv6_only, struct service **service);
/* Peers find it from now on: 0 or an errno. */
int live_cm_offer(struct live *live, struct service *service);
/* Others may claim it. */
void live_cm_unclaim(struct service *service);

/* A port for an id that connects from any: another one than that of the last 16383 such ids. */
uint16_t live_cm_source_port(struct live *live);

/* Which of our GIDs stands for an address of this machine. */
void live_cm_gid_for(const struct live *live, const uint8_t ip[16], uint8_t gid[16]);

#endif
