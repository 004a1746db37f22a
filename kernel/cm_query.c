/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_query - commands that ask what an id knows.
 */
#include <netinet/in.h>
#include <string.h>

#include "kernel/cm_internal.h"
#include "wire/inet.h"

static bool has_device(const struct rdma_id *id)
{
    return id->has_path || (id->source.known && !inet_is_any(id->source.ip));
}

static __be64 guid_of(const struct cm_command *command, const struct rdma_id *id)
{
    return has_device(id) ? __builtin_bswap64(live_guid(command->file->live)) : 0;
}

int cm_command_query_route(struct cm_command *command)
{
    struct rdma_ucm_query in; /* Same form as this command had before it had options. */
    if (!cm_read_in(command, &in, offsetof(struct rdma_ucm_query, option))) {
        return EINVAL;
    }
    struct cm_id *found = cm_find_id(command, in.id);
    if (found == NULL) {
        return ENOENT;
    }
    const struct rdma_id *id = &found->core;
    struct rdma_ucm_query_route_resp out = {.node_guid = guid_of(command, id)};
    cm_write_address(&id->source, &out.src_addr);
    cm_write_address(&id->destination, &out.dst_addr);
    if (has_device(id)) {
        out.port_num = 1;
        out.ib_route[0].pkey = 0xffff;
        memcpy(out.ib_route[0].sgid, id->source_gid, 16);
        memcpy(out.ib_route[0].dgid, id->peer_gid, 16);
    }
    if (rdma_id_has_route(id)) {
        out.num_paths = 1;
        cm_write_path(id, &out.ib_route[0]);
    }
    /* Programs of before the index offer no room for it. */
    const size_t old = offsetof(struct rdma_ucm_query_route_resp, ibdev_index);
    const size_t bytes = command->out_bytes < sizeof(out) ? old : sizeof(out);
    return cm_write_out(command, in.response, &out, bytes);
}

static int write_addresses(const struct cm_command *command, uint64_t response,
                           const struct rdma_ucm_query_addr_resp *out)
{
    const size_t old = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
    const size_t bytes = command->out_bytes < sizeof(*out) ? old : sizeof(*out);
    return cm_write_out(command, response, out, bytes);
}

static int query_address(struct cm_command *command, uint64_t response, const struct rdma_id *id)
{
    struct rdma_ucm_query_addr_resp out = {.node_guid = guid_of(command, id)};
    if (has_device(id)) {
        out.port_num = 1;
        out.pkey = 0xffff;
    }
    cm_write_address(&id->source, &out.src_addr);
    cm_write_address(&id->destination, &out.dst_addr);
    out.src_size = id->source.ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    out.dst_size = id->destination.ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    return write_addresses(command, response, &out);
}

static int query_path(struct cm_command *command, uint64_t response, const struct rdma_id *id)
{
    struct rdma_ucm_query_path_resp head = {0};
    struct ib_path_rec_data data;
    struct ib_user_path_rec path;
    uint8_t out[sizeof(head) + sizeof(data)];
    size_t bytes = sizeof(head);
    _Static_assert(offsetof(struct rdma_ucm_query_path_resp, path_data) == sizeof(head),
                   "the path stands behind the head");
    if (rdma_id_has_route(id) && command->out_bytes >= sizeof(out)) {
        cm_write_path(id, &path);
        cm_pack_path(&path, &data);
        memcpy(out + sizeof(head), &data, sizeof(data));
        head.num_paths = 1;
        bytes = sizeof(out);
    }
    memcpy(out, &head, sizeof(head));
    return cm_write_out(command, response, out, bytes);
}

/* GIDs as addresses of the IB family. */
static int query_gid(struct cm_command *command, uint64_t response, const struct rdma_id *id)
{
    struct rdma_ucm_query_addr_resp out = {.node_guid = guid_of(command, id)};
    if (has_device(id)) {
        out.port_num = 1;
        out.pkey = 0xffff;
        out.src_size = cm_write_gid(id->source_gid, &out.src_addr);
        out.dst_size = cm_write_gid(id->peer_gid, &out.dst_addr);
    }
    return write_addresses(command, response, &out);
}

int cm_command_query(struct cm_command *command)
{
    struct rdma_ucm_query in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    switch (in.option) {
    case RDMA_USER_CM_QUERY_ADDR: return query_address(command, in.response, &id->core);
    case RDMA_USER_CM_QUERY_PATH: return query_path(command, in.response, &id->core);
    case RDMA_USER_CM_QUERY_GID: return query_gid(command, in.response, &id->core);
    case CM_QUERY_IB_SERVICE:
        /* None was resolved: see cm_command_resolve_ib_service. */
        return command->out_bytes < sizeof(struct cm_ib_services) ? ENOSPC : ENODATA;
    default: return ENOSYS;
    }
}
