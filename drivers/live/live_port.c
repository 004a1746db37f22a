/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_port - the port and the GID table, as the network interfaces of the addresses are.
 *
 * Only a device that a user named is on interfaces: a loopback address of a process's own is always
 * there. Where the kernel tells nothing, as in some sandboxes, programs get no events, and the
 * state is looked up when they ask for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/live/live_internal.h"
#include "drivers/live/live_port.h"
#include "drivers/live/live_wake.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"

/* The time until we try again to open a watch that the system did not give us. */
#define AGAIN_NS 1000000000

static bool is_on_interfaces(const struct live *live)
{
    return live->addresses.shared;
}

/* -- State that is read without the lock --------------------------------------------------------*/

/* The address may have come back on another interface: from now on groups are joined there, and the
 * address's packets leave there. */
static void follow(struct live *live, uint32_t index)
{
    CHECK(index < live->addresses.count);
    const struct interface_address *now = &live->port.interfaces.addresses[index];
    struct address *address = &live->addresses.entries[index];
    if (now->present && now->interface_index != 0 &&
        now->interface_index != address->interface_index) {
        address->interface_index = now->interface_index;
        udp_senders_steer(&live->udp, index);
        udp_groups_steer(&live->udp);
    }
}

/* Each address of the device is followed, and only a watch keeps them up to date. */
static void port_check(const struct live *live)
{
    CHECK(live->port.interfaces.count == live->addresses.count);
    CHECK(live_gid_count(live) <= LIVE_GIDS_MAX);
    CHECK(!atomic_load(&live->port.told) || live->port.watch != NULL);
    for (uint32_t i = 0; i < live->port.name_count; i++) {
        CHECK(live->port.named[i] < live->addresses.count);
    }
}

static void publish(struct live *live)
{
    const struct interfaces *interfaces = &live->port.interfaces;
    INVARIANTS(port_check(live));
    uint32_t present = 0;
    for (uint32_t i = 0; i < interfaces->count; i++) {
        present |= (uint32_t)interfaces->addresses[i].present << i;
        atomic_store(&live->port.interface_indices[i], interfaces->addresses[i].interface_index);
        follow(live, i);
    }
    atomic_store(&live->port.gids, present);
    atomic_store(&live->port.state, (uint8_t)interfaces_port(interfaces));
}

uint32_t live_gid_count(const struct live *live)
{
    return live->config.nic == LIVE_EFA ? 1 : live->addresses.count + live->port.name_count;
}

/* The index of the address that an entry of the GID table is, or has a name of. */
static uint32_t address_of(const struct live *live, uint32_t index)
{
    CHECK(index < live_gid_count(live));
    return index < live->addresses.count ? index : live->port.named[index - live->addresses.count];
}

static bool is_present(const struct live *live, uint32_t index)
{
    return (atomic_load(&live->port.gids) >> address_of(live, index) & 1) != 0;
}

bool live_gid(const struct live *live, uint32_t index, struct live_gid *gid)
{
    if (index >= live_gid_count(live) || !is_present(live, index)) {
        return false;
    }
    *gid = (struct live_gid){
        .gid = live_own_gid(live, index),
        .address = live_own_address(live, index),
        .interface_index = atomic_load(&live->port.interface_indices[address_of(live, index)]),
    };
    return true;
}

struct gid live_own_address(const struct live *live, uint32_t index)
{
    return live->addresses.entries[address_of(live, index)].gid;
}

struct gid live_own_gid(const struct live *live, uint32_t index)
{
    struct gid gid = live_own_address(live, index);
    if (index >= live->addresses.count) {
        const struct gid address = gid;
        CHECK(inet_loopback_alias(address.bytes, gid.bytes));
    }
    return gid;
}

/* An address counts as gone only if the kernel tells changes: a state that was looked up once may
 * be old. */
bool live_gid_is_gone(const struct live *live, uint32_t index)
{
    return atomic_load(&live->port.told) && !is_present(live, index);
}

uint32_t live_interface(const struct live *live)
{
    return atomic_load(&live->port.interface_indices[0]);
}

enum live_port live_port_state(const struct live *live)
{
    return (enum live_port)atomic_load(&live->port.state);
}

/* -- Reading and hearing ------------------------------------------------------------------------*/

/* Addresses without an interface of their own have another name (docs/decisions/0034), as long as
 * there is room in the GID table. */
static void name_addresses(struct live *live)
{
    const struct address_set *set = &live->addresses;
    struct gid name;
    live->port.name_count = 0;
    for (uint32_t i = 0; i < set->count && set->count + live->port.name_count < ADDRESS_MAX; i++) {
        if (inet_loopback_alias(set->entries[i].gid.bytes, name.bytes)) {
            live->port.named[live->port.name_count++] = (uint8_t)i;
        }
    }
}

void live_port_begin(struct live *live)
{
    _Static_assert(INTERFACES_ADDRESSES_MAX >= ADDRESS_MAX, "each address has its place");
    _Static_assert(LIVE_GIDS_MAX >= ADDRESS_MAX, "and its GID");
    live->port.interfaces.count = live->addresses.count;
    for (uint32_t i = 0; i < live->addresses.count; i++) {
        const struct address *address = &live->addresses.entries[i];
        live->port.interfaces.addresses[i] = (struct interface_address){
            .gid = address->gid,
            .interface_index = address->interface_index,
            .unlisted = inet_is_loopback_ipv4(address->gid.bytes),
            .present = true,
            .up = true,
            .carrier = true,
        };
    }
    live->port.due = INSTANT_NEVER;
    name_addresses(live);
    publish(live);
}

/* Reads the whole state as it is now. False: it cannot be read. */
static bool read_now(struct interfaces *interfaces)
{
    struct interface_watch *watch = malloc(sizeof(*watch));
    if (watch == NULL || !interface_watch_open(watch, false)) {
        free(watch);
        return false;
    }
    const bool done = interface_watch_read(watch, interfaces);
    interface_watch_close(watch);
    free(watch);
    return done;
}

static void tell(struct live *live, uint32_t changes)
{
    INVARIANTS(live_check_locked(live));
    publish(live);
    if (changes != 0 && live->listener.on_port_change != NULL) {
        live->listener.on_port_change(changes);
    }
}

/* A program asks while the kernel tells nothing. If the kernel will tell again, events tell the
 * differences. */
static void take_reading(struct live *live, const struct interfaces *now)
{
    CHECK(now->count == live->addresses.count);
    if (instant_before(live->port.due, INSTANT_NEVER)) {
        tell(live, interfaces_replace(&live->port.interfaces, now));
    } else {
        live->port.interfaces = *now;
        publish(live);
    }
}

void live_port_refresh(struct live *live)
{
    if (!is_on_interfaces(live) || live->inherited || atomic_load(&live->port.told)) {
        return;
    }
    const int cancellation = uncancelled_begin();
    live_lock(live);
    struct interfaces now = live->port.interfaces;
    live_unlock(live);
    if (read_now(&now)) {
        live_lock(live);
        if (!atomic_load(&live->port.told)) {
            take_reading(live, &now);
        }
        live_unlock(live);
    }
    uncancelled_end(cancellation);
}

/* Opens `live->port.watch`, and reads the whole state from it. 0 or an errno; EPROTO: we do not
 * understand the kernel's messages. */
static int open_watch(struct live *live, struct interfaces *now)
{
    struct interface_watch *watch = malloc(sizeof(*watch));
    if (watch == NULL || !interface_watch_open(watch, true)) {
        const int reason = errno;
        free(watch);
        return reason;
    }
    errno = 0;
    if (!interface_watch_read(watch, now)) {
        const int reason = errno;
        interface_watch_close(watch);
        free(watch);
        return reason != 0 ? reason : EPROTO;
    }
    CHECK(live->port.watch == NULL); /* Its descriptor would be lost. */
    live->port.watch = watch;
    return 0;
}

/* True: the system gives no watch for want of something, and may give one later. */
static bool ask_later(struct live *live, int reason)
{
    const bool later = shortage_is(reason) || reason == EADDRINUSE;
    live->port.due = later ? instant_after(live->now, AGAIN_NS) : INSTANT_NEVER;
    return later;
}

bool live_port_watch(struct live *live)
{
    if (!is_on_interfaces(live)) {
        return false;
    }
    const int reason = open_watch(live, &live->port.interfaces);
    (void)ask_later(live, reason);
    atomic_store(&live->port.told, live->port.watch != NULL);
    publish(live);
    return live->port.watch != NULL;
}

void live_port_unwatch(struct live *live)
{
    atomic_store(&live->port.told, false);
    live->port.due = INSTANT_NEVER;
    if (live->port.watch != NULL) {
        interface_watch_close(live->port.watch);
        free(live->port.watch);
        live->port.watch = NULL;
    }
}

static void explain_silence(void)
{
    const int cancellation = uncancelled_begin();
    fprintf(stderr, "nonic: the kernel tells nothing more of network interfaces: no more events "
                    "tell that the port or its GIDs change\n");
    uncancelled_end(cancellation);
}

/* 0 or an errno. */
static int listen_to_watch(const struct live *live)
{
    CHECK(live->thread.poll_fd >= 0 && live->port.watch->fd >= 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = live->port.watch->fd};
    return system_epoll_change(live->thread.poll_fd, EPOLL_CTL_ADD, live->port.watch->fd, &event) ==
                   0
               ? 0
               : errno;
}

/* The kernel had no memory, or its messages make no sense: opens a new watch. Changes that were
 * missed meanwhile are told. */
static void begin_anew(struct live *live)
{
    struct interfaces now = live->port.interfaces;
    live_port_unwatch(live);
    int reason = open_watch(live, &now);
    if (reason == 0) {
        tell(live, interfaces_replace(&live->port.interfaces, &now));
        reason = listen_to_watch(live);
    }
    if (reason == 0) {
        atomic_store(&live->port.told, true);
        return;
    }
    live_port_unwatch(live);
    if (!ask_later(live, reason)) {
        explain_silence();
    }
}

void live_port_on_time(struct live *live)
{
    CHECK(live->port.watch == NULL); /* Else nothing is due. */
    begin_anew(live);
}

void live_port_serve(struct live *live)
{
    CHECK(live->port.watch != NULL);
    uint32_t changes;
    while (interface_watch_next(live->port.watch, &live->port.interfaces, &changes)) {
        tell(live, changes);
    }
    /* Some changes are visible, but raise no event. */
    publish(live);
    if (live->port.watch->failed) {
        begin_anew(live);
    }
}
