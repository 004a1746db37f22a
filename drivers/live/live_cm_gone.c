/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_cm_gone - the ends of processes that we are connected with, or about to be.
 */
#include <string.h>
#include <sys/epoll.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_wake.h"
#include "drivers/system/presence.h"
#include "drivers/system/system.h"

bool live_cm_has_gone(const struct live *live)
{
    struct gid gid;
    uint32_t slot;
    return live->manager.presence != NULL && presence_gone(live->manager.presence, &gid, &slot);
}

/* False: there is no memory to handle the end; we hear of it later. */
static bool hear_of(struct live *live, const struct gid *gid, uint32_t slot)
{
    struct cm_mad mad;
    uint32_t at = 0;
    INVARIANTS(live_check_locked(live));
    while (live_cm_prepare(live) &&
           cm_speak_for(&live->manager.cm->cm, gid->bytes, slot, &at, &mad)) {
        rdma_cm_on_message(live->manager.cm, mad.source, mad.destination, mad.bytes,
                           sizeof(mad.bytes), live->now);
    }
    if (!live_cm_prepare(live)) {
        return false;
    }
    presence_forget(live->manager.presence, gid, slot);
    return true;
}

void live_cm_hear_of_gone(struct live *live)
{
    struct gid gid;
    uint32_t slot;
    while (live->manager.presence != NULL && presence_gone(live->manager.presence, &gid, &slot) &&
           hear_of(live, &gid, slot)) {
    }
}

/* A name may have belonged to a process whose end we have not noticed yet. Its successor at this
 * name would be taken for it. Ends of others wait for the thread, which takes in before what these
 * have sent. */
void live_cm_look_for_gone(struct live *live, const struct gid *gid, uint32_t slot)
{
    CHECK(slot < SHARE_SLOTS);
    INVARIANTS(live_check_locked(live));
    if (live->manager.presence != NULL) {
        presence_serve(live->manager.presence);
        if (presence_is_gone(live->manager.presence, gid, slot)) {
            (void)hear_of(live, gid, slot);
        }
        live_cm_wake_for_gone(live);
    }
}

void live_cm_wake_for_gone(struct live *live)
{
    if (live_cm_has_gone(live)) {
        live_wake(live);
    }
}

static void meet(struct live *live, const uint8_t peer[16], uint32_t slot)
{
    struct gid gid;
    CHECK(slot < SHARE_SLOTS);
    memcpy(gid.bytes, peer, 16);
    if (live->manager.presence != NULL) {
        presence_meet(live->manager.presence, &gid, slot);
    }
}

static bool is_request(const uint8_t mad[CM_MAD_BYTES])
{
    const uint16_t attribute = load_be16(mad + 16);
    return attribute == CM_REQ || attribute == CM_SIDR_REQ;
}

void live_cm_meet_server(struct live *live, const struct cm_mad *mad, uint32_t slot)
{
    if (is_request(mad->bytes)) {
        meet(live, mad->destination, slot);
    }
}

/* The message's id says which of the processes behind the address sent it. */
void live_cm_meet_requester(struct live *live, const struct live_mad *mad)
{
    struct cm_message message;
    if (mad->bytes == CM_MAD_BYTES && is_request(mad->mad) &&
        cm_decode(mad->mad, mad->bytes, &message) == CM_GOOD) {
        live_cm_look_for_gone(live, &mad->source, message.local_id >> 24);
        meet(live, mad->source.bytes, message.local_id >> 24);
    }
}

void live_cm_judge(struct live *live, const struct live_mad *mad)
{
    INVARIANTS(live_check_locked(live));
    live_cm_meet_requester(live, mad);
    rdma_cm_on_message(live->manager.cm, mad->source.bytes, mad->destination.bytes, mad->mad,
                       mad->bytes, live->now);
}

bool live_cm_watch(struct live *live)
{
    CHECK(live->thread.poll_fd >= 0);
    struct epoll_event event = {.events = EPOLLIN};
    if (live->manager.presence == NULL) {
        return true;
    }
    event.data.fd = presence_fd(live->manager.presence);
    return system_epoll_change(live->thread.poll_fd, EPOLL_CTL_ADD, event.data.fd, &event) == 0;
}
