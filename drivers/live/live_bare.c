/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/live_bare.h"

#include <stdlib.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_port.h"
#include "drivers/live/live_wake.h"

struct live *live_bare_make(const struct gid *gids, uint32_t count)
{
    struct live *live = calloc(1, sizeof(*live));
    CHECK(live != NULL && count >= 1 && count <= ADDRESS_MAX);
    live->config.batch = 32;
    live->config.device = "bare";
    habit_init(&live->habit, live->config.batch);
    live->thread.stat_fd = live->thread.wake_fd = live->thread.poll_fd = live->manager.services.fd =
        -1;
    live->addresses.mtu = PATH_MTU_1024;
    live->addresses.count = count;
    for (uint32_t i = 0; i < count; i++) {
        live->addresses.entries[i] = (struct address){.gid = gids[i], .fd = -1, .claim = -1};
    }
    live_port_begin(live);
    live->manager.due = INSTANT_NEVER;
    list_init(&live->manager.services.node);
    list_init(&live->manager.services.claims);
    list_init(&live->manager.services.questions);
    live_begin_links(live);
    link_table_init(&live->udp.links);
    list_init(&live->manager.parked);
    list_init(&live->manager.lookups);
    lock_init(&live->lock);
    live->manager.cm = calloc(1, sizeof(*live->manager.cm));
    CHECK(live->manager.cm != NULL);
    rdma_cm_init(live->manager.cm, 1, 0, 1);
    return live;
}

void live_bare_drop(struct live *live)
{
    live_cm_close(live);
    lock_destroy(&live->lock);
    free(live);
}

void live_bare_on_time(struct live *live)
{
    live_now(live);
    live_cm_on_time(live);
}
