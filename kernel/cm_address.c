/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_address - commands that bind ids to addresses, listen there, and find the way to peers.
 */
#include <errno.h>
#include <string.h>

#include "base/status.h"
#include "drivers/system/socket_address.h"
#include "kernel/cm_internal.h"
#include "wire/inet.h"

/* The requests that the kernel lets wait at a listener, unless a program asks for fewer. */
#define BACKLOG_MAX 1024

/* -- Binding ------------------------------------------------------------------------------------*/

/* An id that may share its port claims it when it listens. */
static int claim_port(const struct cm_command *command, struct cm_id *id,
                      struct rdma_address *address)
{
    CHECK(id->service == NULL); /* It would keep its port for ever. */
    const int failure = live_cm_claim(command->file->live, id->core.port_space, address,
                                      id->core.ipv6_only, &id->service);
    CHECK((failure == 0) == (id->service != NULL) && (failure != 0 || address->port != 0));
    return failure;
}

static void give_up_port(struct cm_id *id)
{
    CHECK(id->service != NULL);
    live_cm_unclaim(id->service);
    id->service = NULL;
}

/* The owner of a port for datagrams is found before it listens, and even if it never does. rsockets
 * exchange queue pair numbers by themselves, and only ask for the way to the port that the peer has
 * bound. On hardware that is the way to the machine. */
static int claim_at_once(const struct cm_command *command, struct cm_id *id,
                         struct rdma_address *address)
{
    int failure = claim_port(command, id, address);
    if (failure == 0 && id->core.datagrams) {
        failure = live_cm_offer(command->file->live, id->service);
        if (failure != 0) {
            give_up_port(id);
        }
    }
    return failure;
}

/* Is the port another id's of this process that may share it, which `id` may not? */
static int check_sharers(const struct cm_id *id, const struct rdma_address *address)
{
    uint32_t at = 0;
    const struct cm_id *other;
    while ((other = cm_handle_each(&at, CM_HANDLE_ID)) != NULL) {
        const struct rdma_address *its = &other->core.source;
        if (other == id || !other->reuse_address || other->service != NULL ||
            other->core.port_space != id->core.port_space || its->port != address->port) {
            continue;
        }
        if (its->ipv6 != address->ipv6 && (its->ipv6 ? other : id)->core.ipv6_only) {
            continue;
        }
        if (inet_is_any(its->ip) || inet_is_any(address->ip)) {
            return EADDRNOTAVAIL;
        }
        if (memcmp(its->ip, address->ip, 16) == 0) {
            return EADDRINUSE;
        }
    }
    return 0;
}

/* Ids that may share their port do so until one of them listens. They cannot have the port of an id
 * that does not share, or that listens. */
static int share_port(const struct cm_command *command, struct cm_id *id,
                      struct rdma_address *address)
{
    const int failure = claim_port(command, id, address);
    if (failure == 0) {
        give_up_port(id);
    }
    return failure;
}

/* The port of an id that connects from any port is not claimed: no peer asks for it. */
static int take_port(const struct cm_command *command, struct cm_id *id,
                     struct rdma_address *address, bool connects)
{
    if (address->port == 0 && connects) {
        address->port = live_cm_source_port(command->file->live);
        return 0;
    }
    if (address->port == 0) {
        return claim_at_once(command, id, address);
    }
    if (id->reuse_address) {
        return share_port(command, id, address);
    }
    const int failure = check_sharers(id, address);
    return failure != 0 ? failure : claim_at_once(command, id, address);
}

static int bind_to(const struct cm_command *command, struct cm_id *id, struct rdma_address address,
                   bool connects)
{
    if (!rdma_id_is_idle(&id->core)) {
        return EINVAL;
    }
    if (!inet_is_any(address.ip) && !address_is_local(address.ip)) {
        return errno != 0 ? errno : EADDRNOTAVAIL;
    }
    const int failure = take_port(command, id, &address, connects);
    if (failure != 0) {
        return failure;
    }
    CHECK(address.port != 0);
    uint8_t gid[16];
    live_cm_gid_for(command->file->live, address.ip, gid);
    return status_errno(rdma_id_bind(&id->core, &address, gid));
}

static int bind_sockaddr(struct cm_command *command, uint32_t handle, const void *sockaddr,
                         size_t bytes)
{
    struct rdma_address address;
    struct cm_id *id = cm_find_id(command, handle);
    if (id == NULL) {
        return ENOENT;
    }
    if (!cm_read_address(sockaddr, bytes, &address)) {
        return EINVAL;
    }
    return bind_to(command, id, address, false);
}

int cm_command_bind_ip(struct cm_command *command)
{
    struct rdma_ucm_bind_ip in;
    CM_READ_IN(command, in);
    return bind_sockaddr(command, in.id, &in.addr, sizeof(in.addr));
}

int cm_command_bind(struct cm_command *command)
{
    struct rdma_ucm_bind in;
    CM_READ_IN(command, in);
    if (in.addr_size > sizeof(in.addr)) {
        return EINVAL;
    }
    return bind_sockaddr(command, in.id, &in.addr, in.addr_size);
}

/* Offers the service of an id that is bound. If that fails, the id is as it was. */
static int offer(const struct cm_command *command, struct cm_id *id)
{
    const bool unclaimed = id->service == NULL;
    struct rdma_address address = id->core.source; /* It names a port: binding has claimed any. */
    int failure = unclaimed ? claim_port(command, id, &address) : 0;
    if (failure != 0) {
        return failure;
    }
    CHECK(address.port == id->core.source.port);
    failure = live_cm_offer(command->file->live, id->service);
    if (failure != 0 && unclaimed) {
        give_up_port(id);
    }
    return failure;
}

/* One that is not bound remains bound to any address, should listening fail: as with the kernel. */
int cm_command_listen(struct cm_command *command)
{
    struct rdma_ucm_listen in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    int failure = 0;
    if (rdma_id_is_idle(&id->core)) {
        const struct rdma_address any = {.ip = {[10] = 0xff, [11] = 0xff}, .known = true};
        failure = bind_to(command, id, any, false);
    }
    if (failure == 0) {
        failure = rdma_id_is_bound(&id->core) ? offer(command, id) : EINVAL;
    }
    if (failure != 0) {
        return failure;
    }
    /* A request that comes from now on is heard when this command has ended. */
    const bool all = in.backlog == 0 || in.backlog > BACKLOG_MAX;
    return status_errno(
        rdma_id_listen(cm_manager(command), &id->core, all ? BACKLOG_MAX : in.backlog));
}

/* -- Resolving ----------------------------------------------------------------------------------*/

/* Linux binds an id before it looks for the way: where the program says, or to any address. */
static int bind_source(const struct cm_command *command, struct cm_id *id,
                       const struct rdma_address *source, bool ipv6)
{
    struct rdma_address any = {.known = true, .ipv6 = ipv6};
    if (!ipv6) {
        any.ip[10] = any.ip[11] = 0xff;
    }
    return bind_to(command, id, source->known ? *source : any, true);
}

static int resolve(struct cm_command *command, uint32_t handle, const void *from, size_t from_bytes,
                   const void *to, size_t to_bytes)
{
    struct rdma_address source, destination;
    struct cm_id *id = cm_find_id(command, handle);
    if (id == NULL) {
        return ENOENT;
    }
    (void)cm_read_address(from, from_bytes, &source); /* May be none. */
    if (!cm_read_address(to, to_bytes, &destination)) {
        return EINVAL;
    }
    if (rdma_id_is_idle(&id->core)) {
        const int failure = bind_source(command, id, &source, destination.ipv6);
        if (failure != 0) {
            return failure;
        }
    }
    return status_errno(rdma_id_resolve_address(cm_manager(command), &id->core, &destination));
}

int cm_command_resolve_ip(struct cm_command *command)
{
    struct rdma_ucm_resolve_ip in;
    CM_READ_IN(command, in);
    return resolve(command, in.id, &in.src_addr, sizeof(in.src_addr), &in.dst_addr,
                   sizeof(in.dst_addr));
}

int cm_command_resolve_address(struct cm_command *command)
{
    struct rdma_ucm_resolve_addr in;
    CM_READ_IN(command, in);
    if (in.src_size > sizeof(in.src_addr) || in.dst_size > sizeof(in.dst_addr)) {
        return EINVAL;
    }
    return resolve(command, in.id, &in.src_addr, in.src_size, &in.dst_addr, in.dst_size);
}

int cm_command_resolve_route(struct cm_command *command)
{
    struct rdma_ucm_resolve_route in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    return id == NULL ? ENOENT
                      : status_errno(rdma_id_resolve_route(cm_manager(command), &id->core));
}

/* The subnet administrator of an InfiniBand fabric knows services by name; Ethernet has none. Linux
 * says so only of an id that has a device. */
int cm_command_resolve_ib_service(struct cm_command *command)
{
    struct cm_resolve_ib_service in;
    CM_READ_IN(command, in);
    const struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const bool has_device = rdma_id_is_bound(&id->core) && !inet_is_any(id->core.source.ip);
    return has_device ? EOPNOTSUPP : EINVAL;
}
