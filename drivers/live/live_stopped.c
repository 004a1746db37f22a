/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_stopped - a peer of this machine that does not run (docs/decisions/0017).
 *
 * Hardware answers while its process is stopped; here nobody does. But a process that is stopped
 * does not read, and it cannot have answered a packet that it has not read. Then a transport timer
 * that runs out says nothing about the network, and starts anew.
 */
#include <errno.h>
#include <string.h>

#include "drivers/live/live_internal.h"
#include "drivers/live/live_stopped.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/shortage.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/system.h"
#include "drivers/udp/udp_unread.h"

/* The time for which one look at /proc serves all queue pairs of a link. */
#define LOOK_NS 50000000
/* A look that fails for want of something says nothing. For up to this number of such looks in a
 * row, about a second, the peer counts as one that does not run; after that, as one that is not
 * there. */
#define BLIND_MAX 20

/* The ring says how far its reader is. The packet that the queue pair waits for was in the ring at
 * `since`: a mark of that time or later tells whether it was read. A peer that runs passes a mark
 * within no time, however much others send to it. */
static bool unread_in_ring(struct live *live, struct link *link, struct instant since)
{
    struct link_reading *reading = &link->reading;
    if (!shm_link_is_alive(link) || shm_link_has_read(link, shm_link_mark(link))) {
        return false;
    }
    if (reading->at.ns != 0 && !shm_link_has_read(link, reading->mark)) {
        shm_link_nudge(link); /* The kernel may have refused it the last time. */
        return true;
    }
    if (instant_reached(reading->at, since)) {
        return false;
    }
    /* Records of direct writes wake nobody: a peer that only sleeps is woken here, and reads. */
    shm_link_nudge(link);
    reading->at = live->now;
    reading->mark = shm_link_mark(link);
    return true;
}

/* This happens when a queue pair connects: later, the socket at that address may be a
 * stranger's. */
void live_meet_peer(struct live *live, struct link *link)
{
    struct link_reading *reading = &link->reading;
    if (reading->met_at.ns != 0 &&
        !instant_reached(live->now, instant_after(reading->met_at, LOOK_NS))) {
        return;
    }
    reading->met_at = live->now;
    struct udp_owner owner;
    const int cancellation = uncancelled_begin();
    const bool found = address_is_local(link->peer.bytes) && udp_find_owner(&link->peer, &owner);
    uncancelled_end(cancellation);
    reading->unmet = !found && shortage_is(errno);
    reading->owner = found ? owner : (struct udp_owner){.inode = 0};
}

/* The sockets of an address that processes share live longer than each process, and keep its unread
 * datagrams. If it is our address, we know which socket the peer reads. False with an errno that
 * shortage_is: we cannot tell. */
static bool look_at_socket(const struct live *live, const struct udp_link *link)
{
    if (link->link.slot != LOCAL_NO_SLOT &&
        !share_has_slot(&link->link.peer, (uint32_t)link->link.slot)) {
        return false;
    }
    errno = 0;
    for (uint32_t i = 0; link->link.slot != LOCAL_NO_SLOT && i < live->addresses.count; i++) {
        const struct address *address = &live->addresses.entries[i];
        if (live->addresses.shared && gid_equal(&address->gid, &link->link.peer)) {
            return share_has_unread(address->share, (uint32_t)link->link.slot);
        }
    }
    const struct link_reading *reading = &link->link.reading;
    if (reading->owner.inode == 0) {
        errno = reading->unmet ? EAGAIN : 0;
        return false;
    }
    return udp_unread_at(&link->link.peer, &reading->owner, link->link.slot != LOCAL_NO_SLOT);
}

static bool look_once(struct live *live, struct link *link)
{
    struct link_reading *reading = &link->reading;
    if (reading->unmet) {
        live_meet_peer(live, link);
    }
    errno = 0;
    const bool unread = look_at_socket(live, CONTAINER_OF(link, struct udp_link, link));
    const bool blind = !unread && shortage_is(errno);
    reading->blind = blind ? (uint8_t)(reading->blind + (reading->blind < BLIND_MAX)) : 0;
    CHECK(reading->blind <= BLIND_MAX);
    return unread || (blind && reading->blind < BLIND_MAX);
}

/* A socket tells only that it holds datagrams, not which. Before the last retry it does not
 * matter. */
static bool unread_in_socket(struct live *live, struct link *link, bool last)
{
    struct link_reading *reading = &link->reading;
    if (!last) {
        return false;
    }
    if (reading->at.ns == 0 || instant_reached(live->now, instant_after(reading->at, LOOK_NS))) {
        reading->unread = look_once(live, link);
        reading->at = live->now;
    }
    return reading->unread;
}

/* An answer may lie in a ring that has not been let in. That is the work of nonic's thread, which
 * may have had no processor since, or have stopped for good in a child of fork (the lock of a
 * sanitizer's malloc, which the parent held). */
static bool is_unread(struct live *live, const struct nic_overdue *overdue)
{
    struct link *link = nic_qp_link(overdue->qp);
    if (link == NULL) {
        return false;
    }
    return link->kind == LINK_SHM ? unread_in_ring(live, link, overdue->since) ||
                                        (live->shm != NULL && shm_port_greet(live->shm))
           : link->kind == LINK_UDP ? unread_in_socket(live, link, overdue->last)
                                    : false;
}

void live_check_retries(struct live *live)
{
    struct nic_overdue overdue;
    while (nic_next_overdue(live->nic, live->now, &overdue)) {
        if (is_unread(live, &overdue)) {
            nic_on_unread(live->nic, overdue.qp, live->now);
        } else {
            nic_on_timeout(live->nic, overdue.qp, live->now);
        }
    }
}
