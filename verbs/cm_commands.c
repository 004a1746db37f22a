/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_commands - the commands of the rdma_cm device, one function each, in the order of their
 * numbers.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "drivers/clock.h"
#include "verbs/cm_internal.h"
#include "wire/inet.h"

/* What the kernel allows to wait at a listener, unless a program asks for less. */
#define BACKLOG_MAX 1024

/* The command's own struct; false: it is not all there. */
static bool read_in(const struct cm_command *command, void *to, size_t bytes)
{
    if (command->in_bytes < bytes) {
        return false;
    }
    memcpy(to, command->in, bytes);
    return true;
}

/* The program's memory for a response is named in the command, as to the kernel. */
static int write_out(const struct cm_command *command, uint64_t response, const void *from,
                     size_t bytes)
{
    if (command->out_bytes < bytes) {
        return ENOSPC;
    }
    if (response == 0) {
        return EFAULT;
    }
    memcpy((void *)(uintptr_t)response, from, bytes);
    return 0;
}

#define READ_IN(command, in)                                                                       \
    do {                                                                                           \
        if (!read_in((command), &(in), sizeof(in))) {                                              \
            return EINVAL;                                                                         \
        }                                                                                          \
    } while (0)

static struct cm_id *find_id(const struct cm_command *command, uint32_t handle)
{
    struct cm_id *id = cm_handle_find(handle, CM_HANDLE_ID);
    return id != NULL && id->core.channel == &command->file->channel ? id : NULL;
}

static struct rdma_cm *manager_of(const struct cm_command *command)
{
    return live_cm(command->file->live);
}

static struct instant now_of(const struct cm_command *command)
{
    return live_now(command->file->live);
}

/* -- Ids ----------------------------------------------------------------------------------------*/

static int create_id(struct cm_command *command)
{
    struct rdma_ucm_create_id in;
    READ_IN(command, in);
    if (in.ps != RDMA_PS_TCP && in.ps != RDMA_PS_UDP && in.ps != RDMA_PS_IPOIB &&
        in.ps != RDMA_PS_IB) {
        return EINVAL;
    }
    struct cm_id *id = cm_id_make();
    if (id == NULL) {
        return ENOMEM;
    }
    rdma_id_init(&id->core, &command->file->channel, in.ps, in.uid);
    if (in.ps == RDMA_PS_IB) {
        id->core.datagrams = in.qp_type == IBV_QPT_UD;
        id->core.unreliable = in.qp_type == IBV_QPT_UC;
    }
    id->core.handle = cm_handle_take(CM_HANDLE_ID, id);
    const struct rdma_ucm_create_id_resp out = {.id = id->core.handle};
    const int failure =
        id->core.handle == 0 ? ENOMEM : write_out(command, in.response, &out, sizeof(out));
    if (failure != 0) {
        cm_handle_give(id->core.handle);
        free(id);
        return failure;
    }
    list_append(&command->file->ids, &id->node);
    return 0;
}

static int destroy_id(struct cm_command *command)
{
    struct rdma_ucm_destroy_id in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const struct rdma_ucm_destroy_id_resp out = {.events_reported = id->core.events_reported};
    const int failure = write_out(command, in.response, &out, sizeof(out));
    if (failure == 0) {
        cm_id_destroy(command->file->live, id);
    }
    return failure;
}

/* An id that may share its port claims it when it listens. */
static int claim_port(const struct cm_command *command, struct cm_id *id,
                      struct rdma_address *address)
{
    return live_cm_claim(command->file->live, id->core.port_space, address, id->core.ipv6_only,
                         &id->service);
}

static int bind_to(const struct cm_command *command, struct cm_id *id, struct rdma_address address)
{
    if (id->core.state != RDMA_ID_IDLE) {
        return EINVAL;
    }
    if (!inet_is_any(address.ip) && !address_is_local(address.ip)) {
        return EADDRNOTAVAIL;
    }
    if (!id->core.reuse_address || address.port == 0) {
        const int failure = claim_port(command, id, &address);
        if (failure != 0) {
            return failure;
        }
    }
    uint8_t gid[16];
    live_cm_gid_for(command->file->live, address.ip, gid);
    return status_errno(rdma_id_bind(&id->core, &address, gid));
}

static int bind_sockaddr(struct cm_command *command, uint32_t handle, const void *sockaddr,
                         size_t bytes)
{
    struct rdma_address address;
    struct cm_id *id = find_id(command, handle);
    if (id == NULL) {
        return ENOENT;
    }
    if (!cm_read_address(sockaddr, bytes, &address)) {
        return EAFNOSUPPORT;
    }
    return bind_to(command, id, address);
}

static int bind_ip(struct cm_command *command)
{
    struct rdma_ucm_bind_ip in;
    READ_IN(command, in);
    return bind_sockaddr(command, in.id, &in.addr, sizeof(in.addr));
}

static int bind_any(struct cm_command *command)
{
    struct rdma_ucm_bind in;
    READ_IN(command, in);
    if (in.addr_size > sizeof(in.addr)) {
        return EINVAL;
    }
    return bind_sockaddr(command, in.id, &in.addr, in.addr_size);
}

/* -- Resolving ----------------------------------------------------------------------------------*/

static int resolve(struct cm_command *command, uint32_t handle, const void *from, size_t from_bytes,
                   const void *to, size_t to_bytes)
{
    struct rdma_address source, destination;
    struct cm_id *id = find_id(command, handle);
    if (id == NULL) {
        return ENOENT;
    }
    (void)cm_read_address(from, from_bytes, &source); /* May be none. */
    if (!cm_read_address(to, to_bytes, &destination)) {
        return EAFNOSUPPORT;
    }
    if (source.known && !inet_is_any(source.ip) && !address_is_local(source.ip)) {
        return EADDRNOTAVAIL;
    }
    return status_errno(
        rdma_id_resolve_address(manager_of(command), &id->core, &source, &destination));
}

static int resolve_ip(struct cm_command *command)
{
    struct rdma_ucm_resolve_ip in;
    READ_IN(command, in);
    return resolve(command, in.id, &in.src_addr, sizeof(in.src_addr), &in.dst_addr,
                   sizeof(in.dst_addr));
}

static int resolve_address(struct cm_command *command)
{
    struct rdma_ucm_resolve_addr in;
    READ_IN(command, in);
    if (in.src_size > sizeof(in.src_addr) || in.dst_size > sizeof(in.dst_addr)) {
        return EINVAL;
    }
    return resolve(command, in.id, &in.src_addr, in.src_size, &in.dst_addr, in.dst_size);
}

static int resolve_route(struct cm_command *command)
{
    struct rdma_ucm_resolve_route in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    return id == NULL ? ENOENT
                      : status_errno(rdma_id_resolve_route(manager_of(command), &id->core));
}

/* -- Queries ------------------------------------------------------------------------------------*/

static bool has_device(const struct rdma_id *id)
{
    return id->has_path || (id->source.known && !inet_is_any(id->source.ip));
}

static bool has_route(const struct rdma_id *id)
{
    return id->has_path && id->state >= RDMA_ID_ROUTED && id->state != RDMA_ID_LISTENING;
}

static __be64 guid_of(const struct cm_command *command, const struct rdma_id *id)
{
    return has_device(id) ? __builtin_bswap64(live_guid(command->file->live)) : 0;
}

static int query_route(struct cm_command *command)
{
    struct rdma_ucm_query in; /* Same form as this command had before it had options. */
    if (!read_in(command, &in, offsetof(struct rdma_ucm_query, option))) {
        return EINVAL;
    }
    struct cm_id *found = find_id(command, in.id);
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
    if (has_route(id)) {
        out.num_paths = 1;
        cm_write_path(id, &out.ib_route[0]);
    }
    /* Programs of before the index offer no room for it. */
    const size_t old = offsetof(struct rdma_ucm_query_route_resp, ibdev_index);
    const size_t bytes = command->out_bytes < sizeof(out) ? old : sizeof(out);
    return write_out(command, in.response, &out, bytes);
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
    const size_t old = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
    const size_t bytes = command->out_bytes < sizeof(out) ? old : sizeof(out);
    return write_out(command, response, &out, bytes);
}

static int query_path(struct cm_command *command, uint64_t response, const struct rdma_id *id)
{
    struct rdma_ucm_query_path_resp head = {0};
    struct ib_path_rec_data data;
    struct ib_user_path_rec path;
    uint8_t out[sizeof(head) + sizeof(data)];
    size_t bytes = sizeof(head);
    if (has_route(id) && command->out_bytes >= sizeof(out)) {
        cm_write_path(id, &path);
        cm_pack_path(&path, &data);
        memcpy(out + sizeof(head), &data, sizeof(data));
        head.num_paths = 1;
        bytes = sizeof(out);
    }
    memcpy(out, &head, sizeof(head));
    return write_out(command, response, out, bytes);
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
    const size_t old = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
    const size_t bytes = command->out_bytes < sizeof(out) ? old : sizeof(out);
    return write_out(command, response, &out, bytes);
}

static int query(struct cm_command *command)
{
    struct rdma_ucm_query in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    switch (in.option) {
    case RDMA_USER_CM_QUERY_ADDR: return query_address(command, in.response, &id->core);
    case RDMA_USER_CM_QUERY_PATH: return query_path(command, in.response, &id->core);
    case RDMA_USER_CM_QUERY_GID: return query_gid(command, in.response, &id->core);
    default: return ENOSYS;
    }
}

/* -- Connecting ---------------------------------------------------------------------------------*/

static int connect_id(struct cm_command *command)
{
    struct rdma_ucm_connect in;
    if (!read_in(command, &in, offsetof(struct rdma_ucm_connect, ece))) {
        return EINVAL;
    }
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    if (!in.conn_param.valid) {
        return EINVAL;
    }
    struct rdma_parameters parameters;
    cm_read_parameters(&in.conn_param, &parameters);
    return status_errno(rdma_id_connect(manager_of(command), &id->core, &parameters));
}

static int listen_id(struct cm_command *command)
{
    struct rdma_ucm_listen in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    int failure = 0;
    if (id->core.state == RDMA_ID_IDLE) {
        const struct rdma_address any = {.ip = {[10] = 0xff, [11] = 0xff}, .known = true};
        failure = bind_to(command, id, any);
    } else if (id->core.state == RDMA_ID_BOUND && id->service == NULL) {
        failure = claim_port(command, id, &id->core.source);
    }
    if (failure != 0) {
        return failure;
    }
    const bool all = in.backlog == 0 || in.backlog > BACKLOG_MAX;
    const enum status status =
        rdma_id_listen(manager_of(command), &id->core, all ? BACKLOG_MAX : in.backlog);
    return status == STATUS_OK ? live_cm_offer(command->file->live, id->service)
                               : status_errno(status);
}

static int accept_id(struct cm_command *command)
{
    struct rdma_ucm_accept in;
    if (!read_in(command, &in, offsetof(struct rdma_ucm_accept, ece))) {
        return EINVAL;
    }
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    if (!in.conn_param.valid) {
        return status_errno(rdma_id_establish(manager_of(command), &id->core));
    }
    struct rdma_parameters parameters;
    cm_read_parameters(&in.conn_param, &parameters);
    const enum status status =
        rdma_id_accept(manager_of(command), &id->core, &parameters, now_of(command));
    if (status == STATUS_OK) {
        id->core.uid = in.uid;
    }
    return status_errno(status);
}

static int reject_id(struct cm_command *command)
{
    struct rdma_ucm_reject in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const enum cm_reason reason = in.reason == 0 ? CM_REASON_CONSUMER : (enum cm_reason)in.reason;
    if (reason != CM_REASON_CONSUMER && reason != CM_REASON_VENDOR_OPTION) {
        return EINVAL;
    }
    return status_errno(rdma_id_reject(manager_of(command), &id->core, reason, in.private_data,
                                       in.private_data_len));
}

static int disconnect_id(struct cm_command *command)
{
    struct rdma_ucm_disconnect in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    return id == NULL
               ? ENOENT
               : status_errno(rdma_id_disconnect(manager_of(command), &id->core, now_of(command)));
}

static int init_qp_attr(struct cm_command *command)
{
    struct rdma_ucm_init_qp_attr in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    struct ib_uverbs_qp_attr out;
    const int failure = cm_write_qp_attributes(command->file->live, &id->core, in.qp_state, &out);
    return failure != 0 ? failure : write_out(command, in.response, &out, sizeof(out));
}

static int notify(struct cm_command *command)
{
    struct rdma_ucm_notify in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    if (in.event != IBV_EVENT_COMM_EST) {
        return 0;
    }
    return status_errno(rdma_id_note_established(manager_of(command), &id->core));
}

/* -- Events -------------------------------------------------------------------------------------*/

/* A peer's request becomes an id of this file, under a handle of its own. EAGAIN: no event. */
static int get_event(struct cm_command *command)
{
    struct rdma_ucm_get_event in;
    READ_IN(command, in);
    struct cm_file *file = command->file;
    const size_t old = offsetof(struct rdma_ucm_event_resp, ece);
    if (command->out_bytes < old - sizeof(uint32_t)) {
        return ENOSPC;
    }
    if (in.response == 0) {
        return EFAULT;
    }
    if (list_empty(&file->channel.events)) {
        return EAGAIN;
    }
    struct rdma_event *next = CONTAINER_OF(file->channel.events.next, struct rdma_event, node);
    if (next->kind == RDMA_EVENT_CONNECT_REQUEST && next->id->handle == 0) {
        struct cm_id *id = CONTAINER_OF(next->id, struct cm_id, core);
        id->core.handle = cm_handle_take(CM_HANDLE_ID, id);
        if (id->core.handle == 0) {
            return ENOMEM;
        }
        list_append(&file->ids, &id->node);
    }
    struct rdma_event *event = rdma_channel_take(manager_of(command), &file->channel);
    struct rdma_ucm_event_resp out;
    cm_write_event(file->live, event, &out);
    const size_t bytes = command->out_bytes < sizeof(out) ? command->out_bytes : sizeof(out);
    live_cm_give_back(file->live, event);
    return write_out(command, in.response, &out, bytes);
}

/* -- Options ------------------------------------------------------------------------------------*/

static int set_id_option(struct cm_id *id, uint32_t name, const uint8_t *value, uint32_t bytes)
{
    int number = 0;
    if (bytes == sizeof(number)) {
        memcpy(&number, value, sizeof(number));
    }
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        if (bytes != 1) {
            return EINVAL;
        }
        id->core.type_of_service = value[0];
        return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (bytes != 1 || value[0] > 31) {
            return EINVAL;
        }
        id->core.ack_timeout = value[0];
        return 0;
    case RDMA_OPTION_ID_REUSEADDR:
        if (bytes != sizeof(number)) {
            return EINVAL;
        }
        id->core.reuse_address = number != 0;
        return 0;
    case RDMA_OPTION_ID_AFONLY:
        if (bytes != sizeof(number) || id->core.state != RDMA_ID_IDLE) {
            return EINVAL;
        }
        id->core.ipv6_only = number != 0;
        return 0;
    default: return ENOSYS;
    }
}

static int set_option(struct cm_command *command)
{
    struct rdma_ucm_set_option in;
    READ_IN(command, in);
    struct cm_id *id = find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const uint8_t *value = (const uint8_t *)(uintptr_t)in.optval;
    if (value == NULL) {
        return EFAULT;
    }
    if (in.level == RDMA_OPTION_ID) {
        return set_id_option(id, in.optname, value, in.optlen);
    }
    /* The path a program knows from elsewhere is the one there is: its GIDs are the addresses. */
    if (in.level != RDMA_OPTION_IB || in.optname != RDMA_OPTION_IB_PATH) {
        return ENOSYS;
    }
    if (in.optlen == 0 || in.optlen % sizeof(struct ib_path_rec_data) != 0) {
        return EINVAL;
    }
    return status_errno(rdma_id_resolve_route(manager_of(command), &id->core));
}

/* -- Multicast ----------------------------------------------------------------------------------*/

static int join(struct cm_command *command, uint32_t handle, const void *sockaddr, size_t bytes,
                uint64_t uid, uint64_t response)
{
    struct rdma_address group;
    struct cm_id *id = find_id(command, handle);
    if (id == NULL) {
        return ENOENT;
    }
    if (!cm_read_address(sockaddr, bytes, &group)) {
        return EAFNOSUPPORT;
    }
    if (command->out_bytes < sizeof(struct rdma_ucm_create_id_resp)) {
        return ENOSPC;
    }
    struct cm_multicast *multicast = calloc(1, sizeof(*multicast));
    const uint32_t taken = multicast == NULL ? 0 : cm_handle_take(CM_HANDLE_MULTICAST, multicast);
    if (taken == 0) {
        free(multicast);
        return ENOMEM;
    }
    const enum status status =
        rdma_multicast_join(manager_of(command), &multicast->core, &id->core, &group, uid);
    if (status != STATUS_OK) {
        cm_handle_give(taken);
        free(multicast);
        return status_errno(status);
    }
    multicast->core.handle = taken;
    list_init(&multicast->node);
    list_append(&id->multicasts, &multicast->node);
    const struct rdma_ucm_create_id_resp out = {.id = taken};
    return write_out(command, response, &out, sizeof(out));
}

static int join_ip_multicast(struct cm_command *command)
{
    struct rdma_ucm_join_ip_mcast in;
    READ_IN(command, in);
    return join(command, in.id, &in.addr, sizeof(in.addr), in.uid, in.response);
}

static int join_multicast(struct cm_command *command)
{
    struct rdma_ucm_join_mcast in;
    READ_IN(command, in);
    if (in.addr_size > sizeof(in.addr) || in.join_flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
        return EINVAL;
    }
    return join(command, in.id, &in.addr, in.addr_size, in.uid, in.response);
}

static int leave_multicast(struct cm_command *command)
{
    struct rdma_ucm_destroy_id in;
    READ_IN(command, in);
    struct cm_multicast *multicast = cm_handle_find(in.id, CM_HANDLE_MULTICAST);
    if (multicast == NULL || multicast->core.id->channel != &command->file->channel) {
        return ENOENT;
    }
    const struct rdma_ucm_destroy_id_resp out = {.events_reported =
                                                     multicast->core.events_reported};
    const int failure = write_out(command, in.response, &out, sizeof(out));
    if (failure == 0) {
        rdma_multicast_leave(manager_of(command), &multicast->core);
        cm_handle_give(in.id);
        list_remove(&multicast->node);
        free(multicast);
    }
    return failure;
}

/* Called on the new file, naming the old one. */
static int migrate_id(struct cm_command *command)
{
    struct rdma_ucm_migrate_id in;
    READ_IN(command, in);
    struct cm_file *from = cm_file_of((int)in.fd);
    if (from == NULL) {
        return EINVAL;
    }
    struct cm_id *id = cm_handle_find(in.id, CM_HANDLE_ID);
    if (id == NULL || id->core.channel != &from->channel) {
        return ENOENT;
    }
    const struct rdma_ucm_migrate_resp out = {.events_reported = id->core.events_reported};
    const int failure = write_out(command, in.response, &out, sizeof(out));
    if (failure == 0) {
        rdma_id_migrate(manager_of(command), &id->core, &command->file->channel);
        list_remove(&id->node);
        list_append(&command->file->ids, &id->node);
    }
    return failure;
}

/* -- All of them --------------------------------------------------------------------------------*/

int cm_execute(uint32_t number, struct cm_command *command)
{
    static int (*const commands[])(struct cm_command *) = {
        [RDMA_USER_CM_CMD_CREATE_ID] = create_id,
        [RDMA_USER_CM_CMD_DESTROY_ID] = destroy_id,
        [RDMA_USER_CM_CMD_BIND_IP] = bind_ip,
        [RDMA_USER_CM_CMD_RESOLVE_IP] = resolve_ip,
        [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = resolve_route,
        [RDMA_USER_CM_CMD_QUERY_ROUTE] = query_route,
        [RDMA_USER_CM_CMD_CONNECT] = connect_id,
        [RDMA_USER_CM_CMD_LISTEN] = listen_id,
        [RDMA_USER_CM_CMD_ACCEPT] = accept_id,
        [RDMA_USER_CM_CMD_REJECT] = reject_id,
        [RDMA_USER_CM_CMD_DISCONNECT] = disconnect_id,
        [RDMA_USER_CM_CMD_INIT_QP_ATTR] = init_qp_attr,
        [RDMA_USER_CM_CMD_GET_EVENT] = get_event,
        [RDMA_USER_CM_CMD_SET_OPTION] = set_option,
        [RDMA_USER_CM_CMD_NOTIFY] = notify,
        [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = join_ip_multicast,
        [RDMA_USER_CM_CMD_LEAVE_MCAST] = leave_multicast,
        [RDMA_USER_CM_CMD_MIGRATE_ID] = migrate_id,
        [RDMA_USER_CM_CMD_QUERY] = query,
        [RDMA_USER_CM_CMD_BIND] = bind_any,
        [RDMA_USER_CM_CMD_RESOLVE_ADDR] = resolve_address,
        [RDMA_USER_CM_CMD_JOIN_MCAST] = join_multicast,
    };
    if (number >= COUNT_OF(commands)) {
        return EINVAL;
    }
    return commands[number] == NULL ? ENOSYS : commands[number](command);
}
