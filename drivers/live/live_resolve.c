/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_resolve - the link that leads to a peer.
 *
 * Local processes of our user are reached through shared memory, all others over UDP. Where several
 * processes share the peer's address, each has links of its own, named by its slot: the upper bits
 * of the destination QPN. A connection knows that number; an address handle does not, so its vector
 * has a shared link (live_links.h), and every datagram chooses among its slots.
 */
#include <errno.h>
#include <string.h>

#include "drivers/live/live_explain.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_multicast.h"
#include "drivers/live/live_resolve.h"
#include "drivers/live/live_stopped.h"
#include "drivers/shm/shm_layout.h"
#include "drivers/system/clock.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"

/* A process that was not there, or is gone, is looked for again after this long. */
#define LOOK_AGAIN_NS 100000000

/* A peer whose queue of callers is full is busy, and not absent: other users may fill it. A call of
 * the program waits for a place during CROWDED_NS. */
#define CROWDED_NS      100000000
#define CROWDED_LOOK_NS 50000

/* A destination that the program names by its link-local name is found by its address. */
static void use_address(struct nic_av *av)
{
    struct gid address;
    if (inet_of_loopback_alias(av->destination.bytes, address.bytes)) {
        av->destination = address;
        av->destination_by_alias = 1;
    }
}

static void explain_no_udp(struct live *live, const struct gid *source,
                           const struct gid *destination)
{
    live_explain_no_udp(&live->explained, udp_port_fd_count(&live->udp) == 0, source, destination);
}

/* -- Over UDP -----------------------------------------------------------------------------------*/

static bool is_known(struct live *live, const struct nic_av *av, int slot)
{
    return udp_port_known_link(&live->udp, &av->source, &av->destination, slot) != NULL;
}

/* A loopback address that nobody shares belongs to one process; for other addresses we cannot
 * know. */
static struct link *link_to_lone(struct live *live, const struct nic_av *av)
{
    if (!is_known(live, av, LOCAL_NO_SLOT) &&
        (!inet_is_loopback_ipv4(av->destination.bytes) || share_exists(&av->destination))) {
        return NULL;
    }
    return udp_port_link(&live->udp, &av->source, &av->destination, LOCAL_NO_SLOT);
}

static struct link *udp_link_to(struct live *live, const struct nic_av *av, uint32_t slot)
{
    struct link *link = is_known(live, av, (int)slot) ? NULL : link_to_lone(live, av);
    return link != NULL ? link
                        : udp_port_link(&live->udp, &av->source, &av->destination, (int)slot);
}

/* The peer was dialled in vain, and errno says why. True: another try may succeed. Meanwhile our
 * own callers are let in, because one of them may wait for us in the same way. */
static bool wait_for_place(struct live *live, const struct gid *peer, struct instant *end)
{
    INVARIANTS(live_check_locked(live));
    const struct instant now = clock_now();
    if (live->shm == NULL || errno != EAGAIN) {
        return false;
    }
    if (instant_reached(now, *end)) {
        live_explain_crowded(&live->explained, peer);
        errno = EAGAIN;
        return false;
    }
    if (instant_reached(*end, INSTANT_NEVER)) {
        *end = instant_after(now, CROWDED_NS);
    }
    shm_port_accept(live->shm);
    system_sleep(CROWDED_LOOK_NS);
    return true;
}

/* -- Connections --------------------------------------------------------------------------------*/

static bool is_in_use(struct live *live, const struct nic_av *av, int slot)
{
    const struct link *link = udp_port_known_link(&live->udp, &av->source, &av->destination, slot);
    return link != NULL && link->connected;
}

/* From now on the peer takes our UDP packets for a stranger's, unless we tell it that some queue
 * pairs found no ring when they were connected. */
static void tell_of_udp(struct live *live, const struct nic_av *av, uint32_t slot)
{
    CHECK(((const struct link *)av->link)->kind == LINK_SHM);
    if (is_in_use(live, av, LOCAL_NO_SLOT) || is_in_use(live, av, (int)slot)) {
        shm_link_tell_of_udp(av->link);
    }
}

/* NULL: shared memory does not lead there. errno is EPERM if the peer is a program of another user;
 * or a shortage (shortage.h). */
static struct link *shm_link_to(struct live *live, const struct nic_av *av, uint32_t slot)
{
    if (live->shm == NULL) {
        errno = 0;
        return NULL;
    }
    /* Processes with an address of their own mostly talk to each other, and so do those that share
     * one. */
    const int names[2] = {LOCAL_NO_SLOT, (int)slot};
    const bool first = live->addresses.shared;
    struct link *link = shm_port_link(live->shm, &av->destination, names[first]);
    if (link == NULL) {
        const int reason = errno;
        link = shm_port_link(live->shm, &av->destination, names[!first]);
        errno = link == NULL && (reason == EPERM || shortage_is(reason)) ? reason : errno;
    }
    return link;
}

/* Packets by a ring come from our first address, also if the queue pair has another one: from that
 * one the peer would drop them as a stranger's. */
static bool has_ring_source(const struct live *live, const struct nic_av *av)
{
    return gid_equal(&av->source, &live->addresses.entries[0].gid);
}

static struct link *shm_link_of_connection(struct live *live, const struct nic_av *av,
                                           uint32_t slot)
{
    if (!has_ring_source(live, av)) {
        errno = 0;
        return NULL;
    }
    struct instant end = INSTANT_NEVER;
    struct link *link;
    do {
        link = shm_link_to(live, av, slot);
    } while (link == NULL && wait_for_place(live, &av->destination, &end));
    return link;
}

static struct link *shm_link_of_datagrams(struct live *live, const struct nic_av *av)
{
    struct instant end = INSTANT_NEVER;
    struct link *link = NULL;
    do {
        link = live->shm == NULL ? NULL : shm_port_link(live->shm, &av->destination, LOCAL_NO_SLOT);
    } while (link == NULL && wait_for_place(live, &av->destination, &end));
    return link;
}

static void explain_shm_only(struct live *live, const struct nic_av *av, uint32_t slot, int reason)
{
    if (!has_ring_source(live, av)) {
        live_explain_source(&live->explained, &live->addresses.entries[0].gid, &av->source);
    } else {
        (void)live_explain_no_ring(&live->explained, &av->destination, slot, reason == EPERM);
    }
}

/* The first links may carry blocks, as long as there are numbers; only a program that reaches a
 * whole network has more links. A peer that may speak blocks later is probed now: it answers if it
 * is a nonic. */
static uint32_t peer_of(struct live *live, struct link *link)
{
    CHECK(link->kind == LINK_UDP && link->holders > 0);
    const uint32_t number = link->number != 0 ? 0 : live_free_number(live);
    struct nic_routes *routes = nic_peer_routes(live->nic, number);
    if (routes != NULL && udp_port_offer_routes(&live->udp, link, routes)) {
        live_take_number(live, link, number);
        udp_flow_probe(&live->udp, CONTAINER_OF(link, struct udp_link, link));
    }
    return link->number;
}

enum status live_resolve(struct live *live, struct nic_av *av, uint32_t destination_qpn)
{
    INVARIANTS(live_check_locked(live));
    const uint32_t slot = share_slot_of(destination_qpn);
    use_address(av);
    av->window_bytes = 0;
    av->piggyback_bytes = 0;
    av->peer = 0;
    struct link *link = shm_link_of_connection(live, av, slot);
    if (link != NULL) {
        av->link = link;
        /* Captures and faults are about packets. */
        av->piggyback_bytes = live->is_watched ? 0 : SHM_PIGGYBACK_BYTES;
        tell_of_udp(live, av, slot);
        return STATUS_OK;
    }
    int reason = errno;
    if (live->config.wire == LIVE_WIRE_SHM) {
        explain_shm_only(live, av, slot, reason);
        return live_unreachable(reason);
    }
    errno = 0;
    link = udp_link_to(live, av, slot);
    reason = errno;
    if (link == NULL) {
        explain_no_udp(live, &av->source, &av->destination);
        return live_unreachable(reason);
    }
    link->connected = true;
    live_meet_peer(live, link);
    udp_port_serve_connections(&live->udp, &av->source);
    av->link = link;
    av->window_bytes = udp_port_window_bytes(&live->udp);
    av->peer = peer_of(live, link) & NIC_PEERS_MASK;
    return STATUS_OK;
}

/* The link is not held: it stays until links are swept the next time. */
static struct link *shm_link_for_now(struct live *live, const struct nic_av *av, uint32_t slot)
{
    struct link *link = shm_link_to(live, av, slot);
    if (link != NULL) {
        live_let_go(live, link);
    }
    return link;
}

/* Where there are rings alone, the first packet makes the ring: also to one of those who share an
 * address. */
static bool ring_leads_to(const struct live *live, const struct gid *peer, uint32_t slot)
{
    return live->shm != NULL &&
           (live->config.wire == LIVE_WIRE_SHM || shm_port_knows(live->shm, peer, LOCAL_NO_SLOT) ||
            shm_port_knows(live->shm, peer, (int)slot));
}

struct link *live_ring_for_now(struct live *live, const struct qp *qp)
{
    const struct nic_av *av = nic_carrier_av(qp);
    const uint32_t slot = av != NULL ? share_slot_of(nic_qp_destination(qp)) : 0;
    return av != NULL && ring_leads_to(live, &av->destination, slot)
               ? shm_link_for_now(live, av, slot)
               : NULL;
}

/* A peer of SRD may have no address handle here. Over UDP the datagram reaches a process that reads
 * the peer's common socket, and hands it on. */
struct link *live_link_for_now(struct live *live, const struct nic_departure *departure)
{
    const struct nic_av *av = departure->av;
    const uint32_t slot = share_slot_of(departure->destination_qpn);
    if (UNLIKELY(departure->route != 0)) {
        return udp_port_passing_route(&live->udp, &av->source, &av->destination, departure->route);
    }
    if (ring_leads_to(live, &av->destination, slot)) {
        struct link *link = shm_link_for_now(live, av, slot);
        return link != NULL && shm_link_has_room(link) ? link : NULL;
    }
    return live->config.wire == LIVE_WIRE_SHM
               ? NULL
               : udp_port_passing_link(&live->udp, &av->source, &av->destination, LOCAL_NO_SLOT);
}

/* Have we an address from which UDP leads to the peer? */
static bool has_family_of(const struct live *live, const struct gid *peer)
{
    bool has = false;
    for (uint32_t i = 0; i < live->addresses.count; i++) {
        has |= inet_is_ipv4(live->addresses.entries[i].gid.bytes) == inet_is_ipv4(peer->bytes);
    }
    return has;
}

bool live_is_out_of_reach(struct live *live, const struct gid *peer, uint32_t slot)
{
    INVARIANTS(live_check_locked(live));
    const struct nic_av av = {.source = live->addresses.entries[0].gid, .destination = *peer};
    const bool shm_only = live->config.wire == LIVE_WIRE_SHM;
    if ((!shm_only && has_family_of(live, peer)) || shm_link_for_now(live, &av, slot) != NULL) {
        return false;
    }
    if (shm_only) {
        return live_explain_no_ring(&live->explained, peer, slot, errno == EPERM);
    }
    explain_no_udp(live, &av.source, peer);
    return true;
}

/* Over UDP the datagram reaches a process that reads the peer's common socket, and hands it on. */
enum status live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot)
{
    INVARIANTS(live_check_locked(live));
    live_sweep_links(live);
    av->link = shm_link_for_now(live, av, slot);
    if (av->link == NULL && live->config.wire == LIVE_WIRE_SHM) {
        (void)live_explain_no_ring(&live->explained, &av->destination, slot, errno == EPERM);
    } else if (av->link == NULL) {
        av->link = udp_port_passing_link(&live->udp, &av->source, &av->destination, LOCAL_NO_SLOT);
    }
    return av->link != NULL ? STATUS_OK : STATUS_INVALID;
}

/* -- Datagrams ----------------------------------------------------------------------------------*/

/* Can packets go there at all? */
static bool is_reachable(struct live *live, const struct nic_av *av)
{
    const bool by_udp = live->config.wire != LIVE_WIRE_SHM &&
                        inet_is_ipv4(av->source.bytes) == inet_is_ipv4(av->destination.bytes);
    return by_udp || (live->shm != NULL && share_exists(&av->destination));
}

enum status live_resolve_datagrams(struct live *live, struct nic_av *av)
{
    INVARIANTS(live_check_locked(live));
    use_address(av);
    av->window_bytes = 0;
    if (inet_is_multicast(av->destination.bytes)) {
        return live_resolve_group(live, av);
    }
    errno = 0;
    av->link = shm_link_of_datagrams(live, av);
    int reason = errno;
    if (av->link == NULL && live->config.wire != LIVE_WIRE_SHM) {
        av->link = link_to_lone(live, av);
    }
    if (av->link == NULL && is_reachable(live, av)) {
        av->link = live_hold_fan(live, av);
        reason = ENOMEM;
    }
    if (av->link == NULL && live->config.wire == LIVE_WIRE_SHM) {
        (void)live_explain_no_ring(&live->explained, &av->destination, 0, reason == EPERM);
    } else if (av->link == NULL) {
        explain_no_udp(live, &av->source, &av->destination);
    }
    return av->link == NULL ? live_unreachable(reason) : STATUS_OK;
}

static struct link *look_for(struct live *live, struct live_shared *shared, uint32_t slot)
{
    const struct nic_av av = {.source = shared->link.self, .destination = shared->link.peer};
    struct link *link = NULL;
    if (live->shm != NULL) {
        link = shm_port_link(live->shm, &av.destination, (int)slot);
    }
    if (link == NULL && live->config.wire != LIVE_WIRE_SHM) {
        link = udp_link_to(live, &av, slot);
    }
    return link;
}

struct link *live_slot_link(struct live *live, struct link *base, uint32_t destination_qpn)
{
    struct live_shared *shared = CONTAINER_OF(base, struct live_shared, link);
    const uint32_t slot = share_slot_of(destination_qpn);
    INVARIANTS(CHECK(base->kind == LINK_SHARED && slot < SHARE_SLOTS));
    struct live_slot *at = &shared->slots[slot];
    const bool best =
        at->link != NULL && !at->link->lost && (at->link->kind == LINK_SHM || live->shm == NULL);
    if (LIKELY(best) || (at->link != NULL && !instant_reached(live->now, at->look_at))) {
        return at->link;
    }
    struct link *found = look_for(live, shared, slot);
    if (found == NULL && at->link == NULL && live->config.wire == LIVE_WIRE_SHM) {
        (void)live_explain_no_ring(&live->explained, &base->peer, slot, errno == EPERM);
    }
    if (at->link != NULL) {
        live_let_go(live, at->link);
    }
    at->link = found != NULL ? found : &live->links.nowhere;
    INVARIANTS(CHECK(at->link->kind != LINK_SHARED));
    INVARIANTS(CHECK(at->link->holders > 0 || at->link == &live->links.nowhere));
    at->look_at = instant_after(live->now, LOOK_AGAIN_NS);
    return at->link;
}
