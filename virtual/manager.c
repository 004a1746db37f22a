/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - there is no connection manager (LIVE_OFFER_MANAGER): the rdma_cm device cannot be
 * opened, and so nobody calls these functions.
 */
#include "world/manager.h"

#include "base/check.h"

#define NEVER_CALLED UNREACHABLE("the connection manager of a world that has none")

void live_cm_listen(struct live *live, const struct live_cm_listener *listener)
{
    (void)live;
    (void)listener;
    NEVER_CALLED;
}

struct rdma_cm *live_cm(struct live *live)
{
    (void)live;
    NEVER_CALLED;
}

bool live_cm_prepare(struct live *live)
{
    (void)live;
    NEVER_CALLED;
}

void live_cm_settle(struct live *live)
{
    (void)live;
    NEVER_CALLED;
}

void live_cm_give_back(struct live *live, struct rdma_event *event)
{
    (void)live;
    (void)event;
    NEVER_CALLED;
}

int live_cm_claim(struct live *live, uint16_t port_space, struct rdma_address *address,
                  bool ipv6_only, struct service **service)
{
    (void)live;
    (void)port_space;
    (void)address;
    (void)ipv6_only;
    (void)service;
    NEVER_CALLED;
}

int live_cm_offer(struct live *live, struct service *service)
{
    (void)live;
    (void)service;
    NEVER_CALLED;
}

void live_cm_unclaim(struct service *service)
{
    (void)service;
    NEVER_CALLED;
}

uint16_t live_cm_source_port(struct live *live)
{
    (void)live;
    NEVER_CALLED;
}

void live_cm_gid_for(const struct live *live, const uint8_t ip[16], uint8_t gid[16])
{
    (void)live;
    (void)ip;
    (void)gid;
    NEVER_CALLED;
}
