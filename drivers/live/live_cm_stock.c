/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_cm_stock - memory for the connection manager, allocated before it is needed.
 */
#include <stdlib.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"

bool live_cm_prepare(struct live *live)
{
    INVARIANTS(live_check_locked(live));
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
    INVARIANTS(live_check_locked(live));
    if (rdma_cm_wants_event(live->manager.cm)) {
        rdma_cm_give_event(live->manager.cm, event);
    } else {
        free(event);
    }
}
