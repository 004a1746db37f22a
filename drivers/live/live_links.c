/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_links - the removal of links that nobody holds.
 *
 * live_resolve and its like hold the link that they find for an address vector; live_release lets
 * go of the link when the vector is no longer used. A link that nobody holds is idle. It may still
 * be named by a datagram that waits in a send queue (its address handle may be destroyed by then),
 * and by a packet that the fault injector holds; so some idle links are kept, and before others go,
 * these packets are looked at. No message costs anything for it (docs/decisions/0038).
 */
#include <stdlib.h>

#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/system/local_socket.h"
#include "nic/inventory.h"

void live_begin_links(struct live *live)
{
    live->links.nowhere =
        (struct link){.kind = LINK_NOWHERE, .lost = true, .first = &live->links.nowhere};
    list_init(&live->links.nowhere.parked);
    list_init(&live->links.nowhere.waiting);
    list_init(&live->links.waiting);
    link_table_init(&live->links.shared);
}

/* NULL: the link belongs to no port, and stays. */
static struct link_table *table_of(struct live *live, const struct link *link)
{
    switch (link->kind) {
    case LINK_UDP: return &live->udp.links;
    case LINK_SHM: return live->shm == NULL ? NULL : shm_port_links(live->shm);
    case LINK_SHARED: return &live->links.shared;
    case LINK_NOWHERE: break;
    }
    return NULL;
}

void live_let_go(struct live *live, struct link *link)
{
    struct link_table *table = table_of(live, link);
    if (table == NULL) {
        return;
    }
    if (link->kind == LINK_UDP) {
        udp_port_release(&live->udp, link);
    } else {
        link_table_release(table, link);
    }
}

/* Marks the links of packets that wait, for which nobody holds a link. */
static void mark_wanted(struct live *live, bool wanted)
{
    struct nic_datagram_at at = {0};
    const struct nic_av *av;
    while ((av = nic_each_datagram(live->nic, &at)) != NULL) {
        ((struct link *)av->link)->wanted = wanted;
    }
    uint64_t place = 0;
    const struct faults_packet *held;
    while (live->faults != NULL && (held = faults_each_held(live->faults, &place)) != NULL) {
        held->link->first->wanted = wanted;
    }
}

/* A number is one link's, and blocks go over UDP alone. */
static void number_check(const struct live *live, const struct link *link)
{
    CHECK(link->kind == LINK_UDP && link->number <= LIVE_NUMBERS_MAX);
    CHECK(link->number == 0 ||
          (live->links.numbers[link->number / 64] >> link->number % 64 & 1) != 0);
}

/* Takes the number back, so that another link may get it. */
static void free_number(struct live *live, struct link *link)
{
    INVARIANTS(number_check(live, link));
    if (link->number != 0) {
        nic_forget_peer(live->nic, link->number);
        live->links.numbers[link->number / 64] &= ~(UINT64_C(1) << link->number % 64);
    }
}

uint32_t live_free_number(const struct live *live)
{
    const uint32_t most = nic_limits(live->nic)->block.peers;
    CHECK(most <= LIVE_NUMBERS_MAX);
    for (uint32_t number = 1; number <= most; number++) {
        if ((live->links.numbers[number / 64] >> number % 64 & 1) == 0) {
            return number;
        }
    }
    return 0;
}

void live_take_number(struct live *live, struct link *link, uint32_t number)
{
    CHECK(link->number == 0 && number >= 1 && number <= LIVE_NUMBERS_MAX);
    CHECK((live->links.numbers[number / 64] >> number % 64 & 1) == 0);
    live->links.numbers[number / 64] |= UINT64_C(1) << number % 64;
    link->number = number;
    INVARIANTS(number_check(live, link));
}

static void drop_shared(struct live *live, struct link *link)
{
    struct live_shared *shared = CONTAINER_OF(link, struct live_shared, link);
    CHECK(link->kind == LINK_SHARED);
    link_table_remove(&live->links.shared, link);
    for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
        if (shared->slots[i].link != NULL) {
            live_let_go(live, shared->slots[i].link);
        }
    }
    free(shared);
}

/* A queue pair that still waits for room here has another destination by now. */
static void drop(struct live *live, struct link *link)
{
    CHECK(link->holders == 0 && link->routes == 0);
    nic_unpark(live->nic, &link->parked);
    CHECK(list_empty(&link->parked));
    list_remove(&link->waiting);
    switch (link->kind) {
    case LINK_UDP:
        free_number(live, link);
        udp_port_drop(&live->udp, link);
        break;
    case LINK_SHM: shm_port_drop(live->shm, link); break;
    case LINK_SHARED: drop_shared(live, link); break;
    case LINK_NOWHERE: break;
    }
}

static void sweep_table(struct live *live, struct link_table *table)
{
    struct link *link = link_table_first_idle(table), *next;
    for (; link != NULL; link = next) {
        next = link_table_next(table, link);
        if (link_table_spares(table, link)) {
            drop(live, link);
        }
    }
    link_table_note_swept(table);
}

/* Shared links go first, because they hold others. */
static void sweep(struct live *live)
{
    mark_wanted(live, true);
    sweep_table(live, &live->links.shared);
    sweep_table(live, &live->udp.links);
    if (live->shm != NULL) {
        sweep_table(live, shm_port_links(live->shm));
    }
    mark_wanted(live, false);
}

void live_sweep_links(struct live *live)
{
    if (link_table_is_crowded(&live->links.shared) || link_table_is_crowded(&live->udp.links) ||
        (live->shm != NULL && link_table_is_crowded(shm_port_links(live->shm)))) {
        sweep(live);
    }
}

void live_release(struct live *live, const struct nic_av *av)
{
    INVARIANTS(live_check_locked(live));
    /* A child of fork has its parent's links as they were then, and lets none of them go. */
    if (av->link != NULL && !live->inherited) {
        live_let_go(live, av->link);
        live_sweep_links(live);
    }
}

/* The shared link, held; NULL: no memory. */
struct link *live_hold_fan(struct live *live, const struct nic_av *av)
{
    const struct link_name name = {
        .self = &av->source, .peer = &av->destination, .slot = LOCAL_NO_SLOT};
    struct link *link = link_table_find(&live->links.shared, &name);
    if (link == NULL) {
        struct live_shared *shared = calloc(1, sizeof(*shared));
        if (shared == NULL) {
            return NULL;
        }
        link = &shared->link;
        link_init(link, LINK_SHARED, &name);
        if (!link_table_add(&live->links.shared, link)) {
            free(shared);
            return NULL;
        }
    }
    link_table_hold(&live->links.shared, link);
    return link;
}

void live_forget_links(struct live *live)
{
    struct link *link;
    while ((link = link_table_next(&live->links.shared, NULL)) != NULL) {
        drop_shared(live, link);
    }
    link_table_close(&live->links.shared);
}
